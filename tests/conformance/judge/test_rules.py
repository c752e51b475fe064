"""Every rule is passed by one small trace and broken by another: no check is unable to fail."""

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
    follow,
    judged,
    lead,
    registered,
    reported,
    send,
    serve,
    start,
    take,
)
from tidegauge.conformance.checking.rules_outside_kernel import judge_sequence
from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Event, Trace

HW_ONLY = replace(TWO, profile="hw-only")
TWO_IN_SYNC = replace(TWO, min_isr=2)

TWO_ELIGIBLE = replace(TWO_IN_SYNC, profile="elr")

ELIGIBLE = (*OPENING, change(1, 0, (1, 2), elr=()), change(1, 0, (1,), elr=(2,)))
"""Broker 2 leaves an ISR that needs two members: it is eligible."""

ASKED = (
    *COPIED,
    reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0),
    reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=1),
)
"""A follower asks where an epoch ends."""

SHRUNK = (
    *OPENING,
    append(1, 0, 0),
    reported(1, "ShrinkIsr", isr=(1,), leo=1, hw=0),
    change(1, 0, (1,)),
    lead(1, 0, (1,), leo=1, hw=1, epoch_start=0),
)
"""Broker 2 leaves the ISR, and the high watermark follows."""

GROWN = (
    *SHRUNK,
    send(2, 1, 0, 0, -1),
    serve(1, 2, 0, 0, -1, res_hw=1, hw=1, leo=1),
    take(2, 1, 0, 0, res_hw=1, hw_before=0, hw=1),
    send(2, 1, 0, 1, 0),
    reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=1),
    serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=1),
    change(1, 0, (1, 2)),
    reported(1, "HandleAlterPartitionResponse", isr=(1, 2), error=0, hw_before=1, hw=1),
)
"""Broker 2 comes back into the ISR."""

LEARNED = (
    *COPIED,
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=1),
    take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0),
)
"""Broker 2 hears that record 0 is committed."""

DELETED_BEFORE = (
    *COPIED,
    reported(1, "LogStartMoved", log_start=1, hw=1),
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=1, res_log_start=1),
    take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0, res_log_start=1, log_start=1),
)
"""Record 0 is deleted: broker 2 hears that it is committed, and gone."""

RESET = (
    start(1, leo=3, hw=3, log_start=2, epochs=((0, 2),)),
    start(2, leo=1, hw=1, epochs=((0, 0),)),
    change(1, 1, (1,)),
    lead(1, 1, (1,), leo=3, hw_before=3, hw=3),
    follow(2, 1, 1, leo=1, hw=1),
    send(2, 1, 1, 1, 0),
    reported(1, "HandleFetch", peer=2, req_epoch=1, req_offset=1, req_last_epoch=0, error=1),
    reported(
        2,
        "HandleOutOfRange",
        peer=1,
        req_epoch=1,
        req_offset=1,
        leader_start=2,
        leader_end=3,
        target=2,
        leo_before=1,
        hw_before=1,
        leo=2,
        hw=2,
        log_start=2,
    ),
)
"""The leader's log begins above the follower's end: the follower starts anew there."""

TWO_ROUNDS = (
    start(1, leo=2, epochs=((0, 0), (2, 1))),
    start(2, leo=2, epochs=((0, 0), (1, 1))),
    change(2, 3, (2,)),
    lead(2, 3, (2,), leo=2, hw=2),
    follow(1, 2, 3, leo=2),
    send(1, 2, 3, 2, 2),
    reported(2, "HandleFetch", peer=1, req_epoch=3, req_offset=2, req_last_epoch=2, error=0, div_epoch=1, div_end=2, hw=2),
    reported(
        1,
        "HandleDivergingResponse",
        peer=2,
        req_epoch=3,
        req_offset=2,
        div_epoch=1,
        div_end=2,
        target=1,
        completed=False,
        leo_before=2,
        hw_before=0,
        leo=1,
        hw=0,
    ),
    send(1, 2, 3, 1, 0),
)
"""The leader's epoch 1 is unknown to the follower: it truncates to the end of epoch 0 and asks again."""

EARLY_HW = (
    *FORKED[:-2],
    reported(
        1,
        "HandleFetchResponse",
        peer=2,
        req_epoch=1,
        req_offset=1,
        error=0,
        res_hw=1,
        rec_base=1,
        rec_end=1,
        leo_before=1,
        hw_before=0,
        leo=1,
        hw=1,
    ),
    *bent(FORKED, -2, hw_before=1)[-2:],
)
"""KAFKA-14704: the high watermark of the diverging response first, then the truncation."""

MISSED_EPOCH = (
    start(1),
    start(2),
    start(3),
    change(1, 0, (1, 2, 3), (1, 2, 3)),
    lead(1, 0, (1, 2, 3)),
    follow(2, 1, 0),
    append(1, 0, 0),
    send(2, 1, 0, 0, -1),
    serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1),
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0),
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=0, hw=0, leo=1),
    change(3, 1, (1, 2, 3), (1, 2, 3)),
    change(1, 2, (1, 2), (1, 2)),
    lead(1, 2, (1, 2), leo=1, hw_before=0, hw=1),
)
"""Finding F2: broker 1 did not hear that broker 3 led, and counts what it recorded before."""

CASES: dict[str, tuple[Sequence[Event], Sequence[Event], Config]] = {
    "TRUNC-01": (FORKED, bent(FORKED, -2, target=1), TWO),
    "TRUNC-02": (TWO_ROUNDS, bent(TWO_ROUNDS, -1, req_last_epoch=2), TWO),
    "TRUNC-03": (FORKED, bent(FORKED, -2, leo=1), TWO),
    "TRUNC-04": (COPIED, (*COPIED, follow(2, 1, 0, leo=0)), TWO),
    "TRUNC-05": (
        (*OPENING, reported(2, "TruncateToHighWatermark", target=0, leo_before=0, hw_before=0, leo=0, hw=0)),
        (*COPIED, reported(2, "TruncateToHighWatermark", target=0, leo_before=1, hw_before=0, leo=0, hw=0)),
        TWO,
    ),
    "HW-01": (COPIED, bent(COPIED, 8, hw=2), TWO),
    "HW-02": (COPIED, bent(COPIED, 5, hw=1), TWO),
    "HW-03": (COPIED, bent(COPIED, 10, hw=0), TWO),
    "HW-04": (SHRUNK, (*SHRUNK, append(1, 0, 1, hw_before=1, hw=0)), TWO),
    "HW-05": (COPIED, bent(COPIED, 8, hw=1), TWO),
    "HW-06": (FORKED, EARLY_HW, TWO),
    "HW-07": (FORKED, (*bent(EARLY_HW, -2, hw=1),), TWO),
    "HW-08": (COPIED, MISSED_EPOCH, CONFIG),
    "HW-09": (COPIED, SHRUNK, TWO_IN_SYNC),
    "HW-10": (COPIED, (*COPIED, follow(2, 1, 0, leo=1, hw=1)), TWO),
    "FETCH-01": (COPIED, bent(COPIED, 9, req_offset=0), TWO),
    "FETCH-02": (COPIED, bent(COPIED, 9, req_last_epoch=-1), TWO),
    "FETCH-03": (COPIED, bent(COPIED, 9, req_epoch=1), TWO),
    "FETCH-04": (COPIED, (*COPIED, COPIED[-2]), TWO),
    "FETCH-05": (FORKED, bent(FORKED, -3, div_end=1), TWO),
    "FETCH-06": (COPIED, bent(COPIED, 7, rec_end=2), TWO),
    "FETCH-07": (COPIED, bent(COPIED, 10, remote_leo=0), TWO),
    "FETCH-08": (COPIED, bent(COPIED, 10, res_hw=1), TWO),
    "FETCH-09": (COPIED, bent(COPIED, 11, req_epoch=1), TWO),
    "FETCH-10": (COPIED, bent(COPIED, 8, res_hw=1), TWO),
    "FENCE-01": (COPIED, (*COPIED, send(2, 1, 0, 1, 0), *bent(COPIED, 10, req_epoch=1)[10:11]), TWO),
    "FENCE-02": (COPIED, (*COPIED, send(2, 1, 0, 1, 0), follow(1, 2, 1, leo=1, hw=1), COPIED[10]), TWO),
    "APPEND-01": (COPIED, bent(COPIED, 5, rec_epoch=1), TWO),
    "APPEND-02": (COPIED, bent(COPIED, 8, rec_epoch=1), TWO),
    "APPEND-03": (
        (*bent(COPIED, 5, acks=-1),),
        (*SHRUNK, bent((append(1, 0, 1, 1, 1),), 0, acks=-1)[0]),
        TWO_IN_SYNC,
    ),
    "EPOCH-01": (COPIED, bent(COPIED, 3, epoch_start=1), TWO),
    "EPOCH-02": (COPIED, bent(COPIED, 0, leo=1, epochs=((1, 0), (0, 1))), TWO),
    "EPOCH-03": (COPIED, (*COPIED, follow(2, 1, 1, leo=1), follow(2, 1, 0, leo=1)), TWO),
    "EPOCH-04": (COPIED, (*COPIED, follow(2, 2, 0, leo=1)), TWO),
    "EPOCH-05": (ASKED, bent(ASKED, -1, div_end=0), TWO),
    "EPOCH-06": (
        bent(bent(SHRUNK, 3, partition_epoch=0), -1, partition_epoch=1),
        (*bent(SHRUNK, -1, partition_epoch=1), lead(1, 0, (1, 2), leo=1, hw=1, epoch_start=0, partition_epoch=0)),
        TWO,
    ),
    "ISR-01": (GROWN, bent(GROWN, 13, remote_leo=0), TWO),
    "ISR-02": (SHRUNK, bent(SHRUNK, 6, isr=(2,)), TWO),
    "ISR-03": (SHRUNK, (*SHRUNK[:7], SHRUNK[6]), TWO),
    "ISR-04": (GROWN, (*SHRUNK, change(1, 0, (1, 2))), TWO),
    "CTRL-01": (FORKED, (*SHRUNK, change(2, 1, (2,))), TWO),
    "CTRL-02": (FORKED, bent(FORKED, 7, leader_epoch=3), TWO),
    "CTRL-03": (SHRUNK, (*SHRUNK, follow(2, 1, 5)), TWO),
    "CTRL-04": (SHRUNK, (*SHRUNK, change(1, 0, (1, 2), (1,))), TWO),
    "CTRL-05": (SHRUNK, (*SHRUNK, change(None, 1, (), ())), TWO),
    "CTRL-06": (
        (*OPENING, change(1, 0, (1,), replicas=(1, 2), elr=(2,))),
        (*OPENING, change(1, 0, (1,), replicas=(1,), elr=(2,))),
        TWO_ELIGIBLE,
    ),
    "CTRL-07": (
        (*ELIGIBLE, change(1, 0, (1,), elr=(2,))),
        (*ELIGIBLE, reported(100, "RegisterBroker", peer=2, clean=False), change(1, 0, (1,), elr=(2,))),
        TWO_ELIGIBLE,
    ),
    "CTRL-08": (
        (*OPENING, change(1, 0, (1, 2), replicas=(1, 2), adding=(2,), removing=(1,))),
        (*OPENING, change(1, 0, (1, 2), replicas=(1, 2), adding=(2,), removing=(2,))),
        TWO,
    ),
    "CTRL-09": (
        (*OPENING, registered(2, 7), registered(2, 9)),
        (*OPENING, registered(2, 9), registered(2, 7)),
        TWO,
    ),
    "OOR-01": (RESET, bent(RESET, -1, target=1), TWO),
    "LOAD-01": (FORKED, bent(FORKED, 10, leo=2), TWO),
    "LOAD-02": (FORKED, bent(FORKED, 10, epochs=((1, 0),)), TWO),
    "LIFE-01": (FORKED, (*COPIED, reported(2, "Crash"), send(2, 1, 0, 1, 0)), TWO),
    "LOG-01": (COPIED, (*COPIED, follow(2, 1, 0, leo=2)), TWO),
    "LOG-02": (
        (*COPIED, reported(2, "Observe", leo=1, epochs=((0, 0),))),
        (*COPIED, reported(2, "Observe", leo=1, epochs=((1, 0),))),
        TWO,
    ),
    "LOG-03": (
        DELETED_BEFORE,
        bent(DELETED_BEFORE, -1, log_start=0),
        TWO,
    ),
    "ACK-01": (
        (*COPIED, reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=1, error=0)),
        (*COPIED, reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=2, error=0)),
        TWO,
    ),
    "ACK-02": (
        (*COPIED, change(2, 1, (1, 2)), follow(1, 2, 1, leo=1, hw=1), reported(1, "ProduceAck", acks=-1, error=6)),
        (*COPIED, change(2, 1, (1, 2)), follow(1, 2, 1, leo=1, hw=1), reported(1, "ProduceAck", acks=-1, error=0)),
        TWO,
    ),
    "READ-01": ((*COPIED, reported(1, "Read", bound=1, rec_end=1)), (*COPIED, reported(1, "Read", bound=2)), TWO),
    "DATA-01": (
        (*COPIED, reported(1, "Crash"), change(2, 1, (2,), (2,)), lead(2, 1, (2,), leo=1, hw_before=0, hw=1)),
        (
            *COPIED,
            reported(1, "Crash"),
            reported(2, "Crash"),
            start(2, clean=False),
            change(2, 1, (2,), (2,)),
            lead(2, 1, (2,)),
        ),
        TWO,
    ),
    "DATA-02": (
        LEARNED,
        (*FORKED[:-3], reported(1, "LogStartMoved", log_start=0, hw=1)),
        TWO,
    ),
    "DATA-03": (
        (*COPIED, reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=1, error=0), reported(2, "Observe", leo=1)),
        (
            *COPIED,
            reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=1, error=0),
            reported(2, "Observe", leo=0, epochs=()),
        ),
        TWO,
    ),
}


def held(rule: str, events: Sequence[Event], config: Config) -> Any:
    return judged(events, config).tallies[rule]


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_held_by_a_correct_trace(rule: str) -> None:
    """The rule is checked at least once there, and nothing else fails."""
    good, _, config = CASES[rule]
    tally = held(rule, good, config)
    assert tally.held > 0
    assert broken(good, config) == set()


@pytest.mark.parametrize("rule", CASES)
def test_a_rule_is_broken_by_a_wrong_trace(rule: str) -> None:
    """The one wrong thing in it is found by the rule it belongs to."""
    _, bad, config = CASES[rule]
    assert rule in broken(bad, config)


def test_an_isr_is_empty_only_where_eligible_leader_replicas_are_kept() -> None:
    """In a registration; a proposal always has its leader."""
    empty = (*SHRUNK, change(None, 1, (), ()))
    assert broken(empty, TWO) == {"CTRL-05"}
    assert broken(empty, replace(TWO, profile="elr")) == set()
    accepted = (*SHRUNK[:7], reported(100, "AlterPartition", peer=1, leader_epoch=0, isr=(), error=0))
    assert "CTRL-05" in broken(accepted, TWO)
    assert "CTRL-05" in broken(accepted, replace(TWO, profile="elr"))
    assert broken(bent(accepted, -1, error=42), TWO) == set()


def test_the_last_member_may_leave_to_an_eligible_leader() -> None:
    """In one change, with ELR: who left while the ISR was below min ISR is elected. Above it nobody is eligible."""
    elected = (*OPENING, change(1, 0, (1,)), change(2, 1, (2,)))
    assert broken(elected, replace(TWO_IN_SYNC, profile="elr")) == set()
    assert broken(elected, replace(TWO, profile="elr")) == {"CTRL-01"}
    assert broken(elected, TWO_IN_SYNC) == {"CTRL-01"}


def test_every_rule_has_its_two_traces() -> None:
    """All rules but SEQ-01, which is about the trace itself and has its own test."""
    assert set(CASES) == set(RULE_IDS) - {"SEQ-01"}


def test_a_gap_in_the_numbers_of_a_node_is_a_lost_line_and_a_restart_is_none() -> None:
    """SEQ-01 counts per node and begins anew at Start; what is reported twice breaks it."""
    assert judged(FORKED).tallies["SEQ-01"].held == len(FORKED)
    trace = Trace("gap", "t-0", TWO, tuple(replace(e, seq=at if at < 8 else at + 1) for at, e in enumerate(COPIED)))
    one_node = replace(trace, events=tuple(replace(e, node=1) for e in trace.events))
    columns = to_columns([one_node], TWO)
    seen = judge_sequence(judge(columns, TWO), [one_node], columns)
    assert (seen.tallies["SEQ-01"].after_loss, seen.tallies["SEQ-01"].failed) == (1, 0)
    assert "seq 9 follows 7" in seen.notes[0]
    twice = replace(trace, events=(*trace.events, trace.events[-1]))
    columns = to_columns([twice], TWO)
    assert judge_sequence(judge(columns, TWO), [twice], columns).tallies["SEQ-01"].failed == 1


def test_a_high_watermark_taken_with_the_truncation_is_named_for_what_it_is() -> None:
    """KAFKA-14704 as one event: HW-06 and not HW-07, unless it is above the truncation offset, too."""
    assert broken(bent(TWO_ROUNDS, -2, hw=1), TWO) == {"HW-06"}
    assert broken(bent(TWO_ROUNDS, -2, hw=2), TWO) >= {"HW-06", "HW-07"}


def test_a_leader_without_its_epoch_is_named_for_what_it_is() -> None:
    """KAFKA-7415 in a snapshot: EPOCH-01; an older epoch that is missing is not the leader's failure to record it."""
    leads = (*OPENING, append(1, 0, 0), reported(1, "Observe", leo=1, epochs=((0, 0),)))
    assert broken(leads, TWO) == set()
    assert broken(bent(leads, -1, epochs=()), TWO) == {"EPOCH-01"}
    assert broken((*COPIED, reported(2, "Observe", leo=1, epochs=())), TWO) == {"LOG-02"}


def test_a_leader_elected_again_stays_or_follows_the_rule() -> None:
    """Whether it forgot what it recorded of broker 2 nobody can say; whether its high watermark may be 1, anybody can."""
    elected = (change(1, 2, (1, 2, 3), (1, 2, 3)), lead(1, 2, (1, 2, 3), leo=1), follow(2, 1, 2, leo=1))
    again = (*MISSED_EPOCH[:-2], *elected, send(2, 1, 2, 1, 0))
    stays = (*again, serve(1, 2, 2, 1, 0, res_hw=0, hw=0, leo=1))
    assert broken(stays, CONFIG) == set()
    assert judged(stays, CONFIG).tallies["HW-03"].undecided == 0
    assert "HW-03" in broken((*again, serve(1, 2, 2, 1, 0, res_hw=0, hw=1, leo=1)), CONFIG)
