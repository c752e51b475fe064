"""Proposals and what becomes of them, who is answered, and what clients are told.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import (
    CONFIG,
    COPIED,
    FORKED,
    OPENING,
    TWO,
    append,
    bent,
    broken,
    change,
    either_way,
    judged,
    lead,
    reported,
    send,
    serve,
    start,
    take,
)
from tests.conformance.judge.test_rules import GROWN, SHRUNK
from tidegauge.traces.schema import Event

REGISTERED = bent(OPENING, 2, partition_epoch=4)


def accepted(**fields: Any) -> Event:
    """The controller accepts a proposal of broker 1."""
    said = {"peer": 1, "leader_epoch": 0, "partition_epoch": 4, "isr": (1,), "error": 0, **fields}
    return reported(100, "AlterPartition", **{name: value for name, value in said.items() if value is not ...})


@pytest.mark.parametrize(
    ("events", "rules", "undecided"),
    [
        ((accepted(),), set(), 0),
        ((accepted(leader_epoch=1),), {"ISR-04"}, 0),
        ((accepted(leader_epoch=...),), set(), 0),
        ((accepted(peer=2),), {"ISR-04"}, 0),
        ((accepted(peer=...),), set(), 0),
        ((accepted(partition_epoch=3),), {"ISR-04"}, 0),
        ((accepted(partition_epoch=5),), {"ISR-04"}, 0),
        ((accepted(partition_epoch=...),), set(), 1),
        ((accepted(error=...),), set(), 1),
        ((accepted(error=42, leader_epoch=1, partition_epoch=9),), set(), 0),
        ((change(1, 0, (1,), partition_epoch=5), accepted()), set(), 0),
        ((change(1, 0, (1,), partition_epoch=5), accepted(isr=(2,))), {"ISR-04"}, 0),
        ((change(1, 0, (1,), partition_epoch=6), accepted()), {"CTRL-02", "ISR-04"}, 0),
    ],
)
def test_a_proposal_is_about_the_registration_as_it_stands(events: Sequence[Event], rules: set[str], undecided: int) -> None:
    """ISR-04: ReplicationControlManager#validateAlterPartitionData. The change that it makes may be reported first."""
    assert broken((*REGISTERED, *events)) == rules
    assert judged((*REGISTERED, *events)).tallies["ISR-04"].undecided == undecided


def responded(**fields: Any) -> Event:
    return reported(1, "HandleAlterPartitionResponse", **{"hw_before": 0, **fields})


PROPOSED = SHRUNK[:7]
AGAIN = reported(1, "ShrinkIsr", isr=(1,), leo=1, hw=0)


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((SHRUNK[7], responded(error=0, isr=(1,), hw=1)), set()),
        ((responded(error=0, isr=(1,), hw=1),), {"CTRL-03"}),
        ((responded(error=0, hw=1),), set()),
        ((responded(error=0, hw=0),), {"HW-03"}),
        ((responded(error=0, isr=(1, 2), hw=1),), {"HW-02", "HW-03"}),
        ((responded(error=0, isr=(1, 2), hw=0),), set()),
        ((responded(error=107, hw=0), AGAIN), set()),
        ((responded(error=42, hw=0), AGAIN), {"ISR-03"}),
        ((responded(error=42, hw=1),), {"HW-10"}),
        ((responded(error=42, isr=(1, 2), hw=0),), {"ISR-03"}),
        ((responded(error=42, isr=(1,), hw=0),), set()),
        ((responded(hw=0), AGAIN), set()),
        ((SHRUNK[7], responded(error=0, isr=(1,), hw_before=1, hw=1)), {"HW-10"}),
        ((AGAIN,), {"ISR-03"}),
    ],
)
def test_a_response_commits_a_proposal_or_gives_it_up(events: Sequence[Event], rules: set[str]) -> None:
    """ISR-03, and the high watermark that follows: Partition#handleAlterPartitionUpdate, #handleAlterPartitionError."""
    assert broken((*PROPOSED, *events)) == rules


@pytest.mark.parametrize(
    ("fields", "rules"),
    [
        ({"remote_leo": ...}, set()),
        ({"isr": (2,)}, {"ISR-01"}),
        ({"isr": (1,)}, {"ISR-01"}),
        ({"remote_leo": 2}, {"ISR-01"}),
        ({"peer": ...}, set()),
    ],
)
def test_a_proposal_adds_the_replica_that_has_caught_up(fields: dict[str, Any], rules: set[str]) -> None:
    """ISR-01: Partition#maybeExpandIsr."""
    assert "ISR-01" in broken(bent(GROWN, 13, **fields)) if rules else "ISR-01" not in broken(bent(GROWN, 13, **fields))


ALONE = tuple(
    replace(event, fields={**event.fields, "partition_epoch": epoch})
    for event, epoch in ((change(1, 0, (1,)), 1), (lead(1, 0, (1,), leo=1, hw_before=1, hw=1, epoch_start=0), 1))
)
ADDS_2 = reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=1)
ADDS_3 = reported(1, "ExpandIsr", peer=3, isr=(1, 3), remote_leo=1)


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((ADDS_2, ADDS_2), {"ISR-03"}),
        ((ADDS_2, ALONE[1], ADDS_2), set()),
        ((ADDS_2, ALONE[1], ADDS_3), set()),
        ((ADDS_2, ALONE[1], ADDS_3, responded(error=107, isr=(1, 2), hw_before=1, hw=1)), set()),
        ((ADDS_2, ALONE[1], ADDS_2, ADDS_2), {"ISR-03"}),
        ((ADDS_2, ALONE[1], change(1, 0, (1, 2)), ADDS_3, append(1, 0, 1, 1, 2)), {"HW-02"}),
        ((ADDS_2, ALONE[1], change(1, 0, (1, 2)), append(1, 0, 1, 1, 2)), {"HW-02"}),
    ],
)
def test_a_proposal_that_known_metadata_erased_counts_on(events: Sequence[Event], rules: set[str]) -> None:
    """Finding F3: the leader may propose again, and is wrong only if it commits without the member it proposed before."""
    begun = (*SHRUNK[:-2], responded(error=0, isr=(1,), hw=1), *ALONE)
    assert broken((start(3), *begun, *events), replace(CONFIG, lag_rule=True)) == rules


def test_who_leads_is_needed_to_say_who_may_grow_the_isr() -> None:
    """ISR-04 without the leader of the change, and with it."""
    grown = (*SHRUNK, change(1, 0, (1, 2)))
    assert broken(grown) == {"ISR-04"}
    assert broken(bent(grown, -1, leader=...)) == set()
    assert judged(bent(grown, -1, leader=...)).tallies["ISR-04"].undecided == 1


FETCHED = (
    *COPIED,
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=1, req_broker_epoch=5),
    take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0),
    send(2, 1, 0, 1, 0),
)


def refused(error: int = 6, **fields: Any) -> Event:
    request = {"peer": 2, "req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}
    return reported(1, "HandleFetch", **{**request, "error": error, **fields})


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((refused(req_broker_epoch=4),), set()),
        ((refused(req_broker_epoch=5),), {"FENCE-01"}),
        ((refused(req_broker_epoch=6),), {"FENCE-01"}),
        ((refused(),), {"FENCE-01"}),
        ((refused(error=74),), {"FENCE-01"}),
        ((refused(error=75),), {"FENCE-01"}),
        ((refused(error=5),), set()),
        ((refused(error=3),), set()),
    ],
)
def test_who_is_refused_is_of_another_epoch_or_of_a_process_that_has_gone(events: Sequence[Event], rules: set[str]) -> None:
    """FENCE-01: Partition#checkCurrentLeaderEpoch, Replica#updateFetchStateOrThrow (KIP-903)."""
    assert broken((*FETCHED, *events)) == rules


def ack(**fields: Any) -> Event:
    return reported(1, "ProduceAck", **fields)


@pytest.mark.parametrize(
    ("event", "rules", "undecided"),
    [
        (ack(acks=-1, rec_end=1, error=0), set(), 0),
        (ack(acks=-1, rec_end=2, error=0), {"ACK-01"}, 0),
        (ack(acks=1, rec_end=2, error=0), set(), 0),
        (ack(acks=-1, rec_end=2, error=19), set(), 0),
        (ack(acks=-1, error=0), set(), 1),
        (ack(acks=-1, rec_end=1), set(), 1),
        (ack(rec_end=1, error=0), set(), 1),
        # One of the two rules out that it promises anything.
        (ack(rec_end=1, error=6), set(), 0),
        (ack(acks=1, rec_end=1), set(), 0),
    ],
)
def test_an_acknowledgement_waits_for_the_high_watermark(event: Event, rules: set[str], undecided: int) -> None:
    """ACK-01: DelayedProduce#tryComplete; other acks and errors promise nothing."""
    assert broken((*COPIED, event)) == rules
    assert judged((*COPIED, event)).tallies["ACK-01"].undecided == undecided


@pytest.mark.parametrize(
    ("fields", "rules", "undecided"),
    [
        ({"bound": 1, "rec_end": 1}, set(), 0),
        ({"bound": 1, "rec_end": 2}, {"READ-01"}, 0),
        ({"bound": 2, "rec_end": 1}, {"READ-01"}, 0),
        ({"rec_end": 1}, set(), 0),
        ({"rec_end": 2}, {"READ-01"}, 0),
        ({}, set(), 1),
    ],
)
def test_a_reader_is_shown_nothing_above_the_high_watermark(fields: dict[str, int], rules: set[str], undecided: int) -> None:
    """READ-01: the bound, and what is shown within it."""
    events = (*COPIED, reported(1, "Read", **fields))
    assert broken(events) == rules
    assert judged(events).tallies["READ-01"].undecided == undecided


@pytest.mark.parametrize(
    ("event", "rules"),
    [
        (append(1, 0, 1, 1, 1), set()),
        (append(1, 1, 1, 1, 1), {"APPEND-01"}),
        (append(1, 0, 2, 1, 1), {"LOG-01"}),
        (append(2, 0, 1, 0, 0), {"APPEND-01"}),
        (bent((append(1, 0, 1, 1, 1),), 0, rec_base=2)[0], {"APPEND-01"}),
        (bent((append(1, 0, 1, 1, 1),), 0, leo=1)[0], {"APPEND-01"}),
        (bent((append(1, 0, 1, 1, 1),), 0, leader_epoch=1)[0], {"APPEND-01"}),
        (bent((append(1, 0, 1, 1, 1),), 0, rec_epoch=...)[0], set()),
    ],
)
def test_a_leader_appends_in_its_epoch_at_its_end(event: Event, rules: set[str]) -> None:
    """APPEND-01: UnifiedLog#appendAsLeader."""
    assert broken((*COPIED, event)) == rules


ACKED = (*COPIED, ack(acks=-1, rec_base=0, rec_end=1, error=0))


@pytest.mark.parametrize(
    ("events", "rules", "undecided"),
    [
        ((*ACKED, reported(2, "Observe", leo=1, epochs=((0, 0),))), set(), 0),
        ((*ACKED, reported(2, "Observe", leo=0)), {"DATA-03", "LOG-02"}, 0),
        ((*ACKED, reported(2, "Observe", leo=1, epochs=((1, 0),))), {"DATA-03", "LOG-02"}, 0),
        ((*ACKED[:2], *bent(ACKED, 2, leader_epoch=...)[2:], reported(2, "Observe", leo=1)), set(), 1),
        ((*ACKED, change(1, 0, (1,)), reported(2, "Observe", leo=0)), {"LOG-02"}, 0),
        ((*FORKED[:6], ack(acks=-1, rec_end=1, error=0), reported(2, "Observe", leo=0)), {"ACK-01", "DATA-03"}, 0),
    ],
)
def test_a_member_of_the_isr_holds_what_was_acknowledged(events: Sequence[Event], rules: set[str], undecided: int) -> None:
    """DATA-03 in a snapshot of a member, as far as every election is known."""
    assert broken(events) == rules
    assert judged(events).tallies["DATA-03"].undecided == undecided


def test_a_committed_isr_has_to_be_registered_whatever_is_told_of_its_members() -> None:
    """CTRL-03, also where broker 2 has no events."""
    alone = tuple(event for event in PROPOSED if event.node != 2)
    for config in either_way(TWO):
        assert "CTRL-03" in broken((*alone, responded(error=0, isr=(1,), hw=1)), config)
