"""The premises of convergence hold in every reachable state: the link between the proofs and the protocol."""

from itertools import pairwise
from typing import Any

import pytest

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import explore
from tidegauge.impl.explorer.spec_view import FOLLOWER, LEADER
from tidegauge.spec.proofs.lemmas.logs import LogValue
from tidegauge.spec.proofs.premises import FETCH_MODE, record_epoch, replay


def log_of(broker: Any) -> LogValue:
    """A broker of a view as cache and end: an entry where the epoch changes, and one without records."""
    records, mark = broker[0], broker[2]
    entries = [(e, o) for o, e in enumerate(records) if o == 0 or records[o - 1] != e]
    if mark >= 0:
        entries.append((mark, len(records)))
    start = 0 if entries else len(records)
    return LogValue(tuple(e for e, _ in entries), tuple(s for _, s in entries), start, len(records))


def premises_broken(leader: LogValue, follower: LogValue) -> list[str]:
    """Which of the three premises fail for two concrete logs."""
    broken = []
    for log in (leader, follower):
        rising = all(a < b for column in (log.epochs, log.starts) for a, b in pairwise(column))
        covering = (
            (log.starts[0] == log.log_start and log.starts[-1] <= log.log_end)
            if log.epochs
            else log.log_start == log.log_end
        )
        if not (rising and covering):
            broken.append("well-formed caches")
    for e, s in zip(leader.epochs, leader.starts, strict=True):
        for f, t in zip(follower.epochs, follower.starts, strict=True):
            if e == f and (s != t or any(record_epoch(leader, o) != record_epoch(follower, o) for o in range(s))):
                broken.append("one past per entry")
    if not leader.epochs or leader.epochs[-1] < (follower.epochs or (-1,))[-1]:
        broken.append("the leader is the newest")
    return broken


@pytest.mark.parametrize(
    "bounds",
    [
        pytest.param(Bounds(2, 2, 1, 1), id="small"),
        pytest.param(Bounds(2, 1, 3, 0), id="epochs", marks=pytest.mark.long),
    ],
)
def test_every_leader_and_follower_that_meet_keep_the_premises(bounds: Bounds) -> None:
    """In every reachable state, a leader and a follower of the same epoch keep all three premises, and converge."""
    pairs = set()
    for brokers, *_ in explore(bounds).states:
        for number, leader in enumerate(brokers):
            for follower in brokers:
                meets = (
                    leader[4] == LEADER and follower[4] == FOLLOWER and follower[5] == leader[5] and follower[6] == number
                )
                if meets and leader[3] and follower[3]:
                    pairs.add((log_of(leader), log_of(follower)))
    assert len(pairs) > 20
    for left, right in pairs:
        assert premises_broken(left, right) == [], (str(left), str(right))
        run = replay(left, right, FETCH_MODE)
        assert run.converged, run.lines()


def test_the_premises_can_be_broken() -> None:
    """The check itself finds each broken premise."""
    good = LogValue((0, 1), (0, 1), 0, 2)
    assert premises_broken(good, good) == []
    assert premises_broken(good, LogValue((1,), (0,), 0, 2)) == ["one past per entry"]
    assert premises_broken(LogValue((0,), (0,), 0, 2), good) == ["the leader is the newest"]
    assert premises_broken(good, LogValue((1, 0), (0, 1), 0, 2)) == [
        "well-formed caches",
        "one past per entry",
        "one past per entry",
    ]
