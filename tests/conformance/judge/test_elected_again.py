"""One broker is elected again and again: what earlier leader epochs claim is asked of every later one.

The traces are short, so that they can be judged with little room too, where claims of the past are handed on
(tests/mutation/kernel_corpus.py).
"""

from collections.abc import Sequence
from typing import Any

import pytest

from tests.conformance.hand import append, bent, broken, change, follow, judged, lead, reported, start
from tidegauge.traces.schema import Event

REIGNS = 8


def reign(e: int, leader: int = 1, **fields: Any) -> tuple[Event, ...]:
    """The leader alone is in sync: it commits what it writes, and acknowledges it."""
    return (
        change(leader, e, (leader,), (1, 2), **fields),
        lead(leader, e, (leader,), leo=e, hw_before=e, hw=e),
        append(leader, e, e, e, e + 1),
        reported(leader, "ProduceAck", acks=-1, rec_end=e + 1, error=0),
    )


def reigns(first: int, behind: int, **fields: Any) -> tuple[Event, ...]:
    return tuple(event for e in range(first, behind) for event in reign(e, **fields))


BEGIN = (start(1), start(2))
ALL = (*BEGIN, *reigns(0, REIGNS))
FOLLOWED = (*BEGIN, *(event for e in range(REIGNS) for event in (*reign(e), follow(2, 1, e))))
"""Broker 2 follows along, and copies nothing."""


def elected(end: int, epoch: int = REIGNS, **fields: Any) -> tuple[Event, ...]:
    """Broker 1 once more, with a log that ends there."""
    return (change(1, epoch, (1,)), lead(1, epoch, (1,), leo=end, hw_before=end, hw=end, **fields))


PAIRS = REIGNS * (REIGNS - 1) // 2


@pytest.mark.parametrize("events", [ALL, FOLLOWED], ids=["alone", "followed"])
def test_every_leader_is_asked_for_what_every_earlier_one_claimed(events: Sequence[Event]) -> None:
    """DATA-01 and DATA-03, pair by pair."""
    assert broken(events) == set()
    assert judged(events).tallies["DATA-01"].held == PAIRS
    assert judged(events).tallies["DATA-03"].held == PAIRS


@pytest.mark.parametrize(("end", "lost"), [(REIGNS, 0), (REIGNS - 1, 1), (REIGNS - 3, 3), (0, REIGNS)])
def test_who_lacks_some_of_it_is_found_by_each_that_claimed_it(end: int, lost: int) -> None:
    """Claims of the past are as good as those that are remembered one by one."""
    seen = judged((*ALL, *elected(end)))
    assert seen.tallies["DATA-01"].failed == seen.tallies["DATA-03"].failed == lost


@pytest.mark.parametrize("at", [1, 4, REIGNS])
def test_an_unclean_election_ends_what_was_claimed_before(at: int) -> None:
    """Broker 2 is elected with nothing, and begins anew."""
    unclean = bent((change(2, at, (2,)),), 0, clean=False)
    later = (lead(2, at, (2,)), change(2, at + 1, (2,)), lead(2, at + 1, (2,)))
    events = (*BEGIN, *reigns(0, at), *unclean, *later)
    assert broken(events) == set()
    assert judged(events).tallies["DATA-01"].held == at * (at - 1) // 2


@pytest.mark.parametrize("at", [2, 5])
def test_where_nobody_says_whether_an_election_was_clean_nobody_is_blamed(at: int) -> None:
    """Broker 2 leads in between; whether it was to be had is open."""
    open_one = bent((change(2, at, (2,)),), 0, clean=...)
    again = (lead(2, at, (2,)), change(1, at + 1, (1,)), lead(1, at + 1, (1,), leo=at, hw_before=at, hw=at))
    assert "DATA-01" not in broken((*BEGIN, *reigns(0, at), *open_one, *again))


@pytest.mark.parametrize(
    ("fields", "rules", "undecided"),
    [
        ({"leo": REIGNS}, set(), 0),
        ({"leo": REIGNS, "epochs": tuple((e, e) for e in range(REIGNS))}, set(), 0),
        ({"leo": REIGNS - 1}, {"DATA-03", "LOG-02"}, 0),
        ({"leo": REIGNS, "epochs": ((0, 0), (REIGNS - 1, REIGNS - 1))}, {"DATA-03", "LOG-02"}, 0),
    ],
)
def test_a_member_of_the_isr_holds_what_all_of_them_acknowledged(
    fields: dict[str, Any], rules: set[str], undecided: int
) -> None:
    """DATA-03 in a snapshot of the last leader."""
    events = (*ALL, reported(1, "Observe", **fields))
    assert broken(events) == rules
    assert judged(events).tallies["DATA-03"].undecided == undecided


def test_a_snapshot_of_an_unknown_log_decides_nothing() -> None:
    """Where it ends is not told, and the lines before are missing."""
    silent = tuple(bent((event,), 0, leo=..., rec_end=...)[0] if event.node == 1 else event for event in ALL)
    assert broken((*silent, reported(1, "Observe", hw=REIGNS))) == set()


def test_a_claim_that_grows_late_is_held_against_leaders_that_began_before() -> None:
    """The line of broker 1 stands behind those of broker 2 that was elected with less."""
    two = (change(2, 3, (2,)), lead(2, 3, (2,), leo=1, hw_before=0, hw=1))
    late = (append(1, 2, 3, 3, 4), reported(1, "ProduceAck", acks=-1, rec_end=4, error=0))
    early = (*BEGIN, *reigns(0, 3))
    assert broken((*early, *late)) == set()
    clean = broken((*early, *two))
    assert {"DATA-01", "DATA-03", "CTRL-01"} <= clean
    seen = judged((*early, *two, *late)).tallies
    assert seen["DATA-01"].failed == judged((*early, *two)).tallies["DATA-01"].failed + 1


@pytest.mark.parametrize("epoch", [0, 3, REIGNS - 1])
def test_a_broker_that_comes_back_may_act_on_an_old_epoch_again(epoch: int) -> None:
    """It replays its metadata: who led then is known, or forgotten."""
    back = (reported(2, "Crash"), start(2, clean=False, leo=0), follow(2, 1, epoch))
    assert broken((*FOLLOWED, *back)) == set()
    assert broken((*FOLLOWED, *back[:-1], follow(2, 2, epoch))) == {"EPOCH-04"}


@pytest.mark.parametrize("kept", ["change", "lead"])
def test_without_one_side_the_table_fills_and_nothing_fails(kept: str) -> None:
    """Only the controller is heard, or only the leader."""
    kinds = {"change": ("ChangePartition", "Start"), "lead": ("BecomeLeader", "LeaderAppend", "ProduceAck", "Start")}
    assert broken(tuple(event for event in ALL if event.event in kinds[kept])) == set()


def test_an_isr_that_changes_to_and_fro_takes_no_room() -> None:
    """Each registration has a number of its own; the leader goes on from one to the next, or stays where it was."""
    events = [*BEGIN, *reign(0, partition_epoch=0)]
    for number in range(1, 9):
        isr = (1,) if number % 2 == 0 else (1, 2)
        events.append(reported(1, "ExpandIsr" if number % 2 else "ShrinkIsr", isr=isr))
        events.append(change(1, 0, isr, partition_epoch=number))
        if number != 6:
            events.append(lead(1, 0, isr, leo=1, hw_before=1, hw=1, epoch_start=0, partition_epoch=number))
    assert {"CTRL-02", "CTRL-03", "EPOCH-04", "EPOCH-06"} & broken(events) == set()
    assert broken((*events, lead(1, 0, (1,), leo=1, hw_before=1, hw=1, epoch_start=0, partition_epoch=2))) >= {"EPOCH-06"}
