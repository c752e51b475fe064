"""What was not reported stays open, and what was reported is held against it all the same.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from collections.abc import Sequence
from dataclasses import replace

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
    reported,
    send,
    serve,
    start,
    take,
)
from tests.conformance.judge.test_rules import EARLY_HW, RESET
from tidegauge.traces.schema import Config, Event

LATE = (*bent((follow(2, 1, 0, leo=5, hw=4),), 0, log_start=3),)
"""The first line of broker 2, in the middle of its life."""
UNBOUNDED = bent(bent(RESET, -1, leader_start=..., log_start=5, leo=5, hw=5), -1, target=5)
DEPOSED = (
    *COPIED,
    append(1, 0, 1, 1, 1),
    reported(1, "Stop"),
    change(2, 1, (2,), (2,)),
    lead(2, 1, (2,), leo=1, hw=1),
    append(2, 1, 1, 1, 2),
)
"""Broker 1 has a record that was never acknowledged; broker 2 leads with another."""


@pytest.mark.parametrize(
    ("events", "config", "rules"),
    [
        ((*LATE, reported(2, "LogStartMoved", log_start=3)), TWO, set()),
        ((*LATE, reported(2, "LogStartMoved", log_start=2)), TWO, {"LOG-01"}),
        (bent(LATE, 0, hw=2), TWO, {"HW-01"}),
        ((*UNBOUNDED, reported(2, "LogStartMoved", log_start=5)), TWO, set()),
        ((*UNBOUNDED, reported(2, "LogStartMoved", log_start=3)), TWO, {"LOG-01"}),
        (bent(RESET, -1, req_epoch=..., req_offset=..., req_last_epoch=...), TWO, set()),
        ((*COPIED, reported(1, "Stop"), reported(1, "Observe", leo=0, hw=1)), TWO, {"LOG-02"}),
        ((*DEPOSED, reported(1, "Observe", leo=2)), TWO, set()),
        ((*DEPOSED, reported(1, "Observe", leo=1)), TWO, {"LOG-02"}),
        ((start(1, leo=1, hw=1, epochs=((0, 0),)), start(2, leo=1, hw=1, epochs=((1, 0),))), TWO, set()),
        ((*bent(OPENING, 3, leader_epoch=...), append(1, 0, 0)), TWO, set()),
    ],
)
def test_the_first_thing_that_is_heard_is_believed_and_the_next_is_held_against_it(
    events: Sequence[Event], config: Config, rules: set[str]
) -> None:
    """LOG-01, HW-01, LOG-02 and FETCH-09 of a replica of which little was heard before."""
    assert broken(events, config) == rules


@pytest.mark.parametrize(("deleted", "rules"), [(0, {"DATA-02"}), (1, set())], ids=["kept by all", "deleted by the third"])
def test_records_that_retention_deleted_somewhere_may_differ(deleted: int, rules: set[str]) -> None:
    """DATA-02: what is below the log start of any replica is no more promised (spec/LogStartMovement.tla)."""
    differ = (
        start(1, leo=1, hw=1, epochs=((0, 0),)),
        start(2, leo=1, hw=1, epochs=((1, 0),)),
        start(3, leo=1, hw=1, log_start=deleted, epochs=() if deleted else ((1, 0),)),
        change(1, 2, (1, 2, 3), (1, 2, 3)),
    )
    assert broken(differ, CONFIG) == rules


@pytest.mark.parametrize(
    ("fields", "rule", "missing"),
    [
        ({"hw": ..., "hw_before": ...}, "HW-03", {"hw"}),
        ({"isr": ...}, "HW-03", {"isr"}),
        ({"epoch_start": ..., "leo": ...}, "EPOCH-01", {"epoch_start"}),
        ({"leader_epoch": ...}, "APPEND-01", {"leader_epoch"}),
    ],
)
def test_a_role_that_is_partly_reported_names_what_was_missing(
    fields: dict[str, object], rule: str, missing: set[str]
) -> None:
    """An undecided check says which field would have decided it."""
    events = (*bent(OPENING, 3, **fields), append(1, 0, 0), send(2, 1, 0, 0, -1), serve(1, 2, 0, 0, -1, 0, 0, 1))
    tally = judged(events).tallies[rule]
    assert broken(events) == set()
    assert tally.undecided > 0
    assert missing <= set(tally.missing)


def test_a_new_epoch_forgets_that_a_response_had_moved_the_high_watermark() -> None:
    """HW-06 is about one response: after another role it is another fetch that is answered."""
    moved, truncates = EARLY_HW[:-2], EARLY_HW[-2]
    assert judged((*moved, truncates)).tallies["HW-06"].failed == 2
    again = (change(2, 2, (2,)), lead(2, 2, (2,), leo=1, hw_before=1, hw=1), follow(1, 2, 2, leo=1, hw=1))
    assert judged((*moved, *again, *bent((truncates,), 0, req_epoch=2))).tallies["HW-06"].failed == 1


def test_metadata_of_the_past_is_not_held_to_the_rules_of_an_election() -> None:
    """A broker that comes back replays an old role first; the next role is judged again."""
    back = (start(1, leo=1, hw=1, epochs=((0, 0),)), start(2), change(2, 3, (2,)))
    replayed = (*back, reported(1, "BecomeFollower", leader=2, leader_epoch=1, leo=1, hw=1))
    later = reported(1, "BecomeLeader", leader_epoch=2, isr=(1,), leo=1, hw_before=1)
    assert broken((*replayed, *bent((later,), 0, hw=1))) == set()
    assert broken((*replayed, *bent((later,), 0, hw=0))) == {"HW-04"}


def test_one_broker_alone_commits_what_it_has() -> None:
    """HW-03 under the lag rule: nobody else can hold the high watermark back."""
    alone = replace(TWO, nodes=(1,), lag_rule=True)
    elected = (start(1, leo=1, epochs=((0, 0),)), change(1, 1, (1,), (1,)))
    assert broken((*elected, lead(1, 1, (1,), leo=1, hw=1)), alone) == set()
    assert broken((*elected, lead(1, 1, (1,), leo=1, hw=0)), alone) == {"HW-03"}


def test_a_response_whose_fetch_nobody_saw_is_taken_as_it_is() -> None:
    """FETCH-10: what it says is in flight from there on."""
    said = {"peer": 2, "req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}
    unseen = (*COPIED, send(2, 1, 0, 1, 0), reported(1, "AnswerFetch", **said, res_hw=1, rec_base=1, rec_end=1))
    taken = take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0)
    assert broken((*unseen, taken)) == set()
    assert broken((*unseen, *bent((taken,), 0, res_hw=0, hw=0))) == {"FETCH-10"}
    diverges = (*FORKED[:-3], reported(2, "AnswerFetch", peer=1, req_epoch=1, req_offset=1, div_epoch=0, div_end=0))
    assert broken((*diverges, FORKED[-2])) == set()
    assert "FETCH-10" in broken((*diverges, *bent((FORKED[-2],), 0, div_end=1, target=1, leo=1)))
