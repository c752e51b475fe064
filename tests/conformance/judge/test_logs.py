"""What a log holds as it is loaded, deleted from, reset and looked at.

test_rules.py has one trace for and one against each rule; here are second checks and other branches of a rule, which
mutants of the judge slipped by (tests/mutation/kernel.py).
"""

from collections.abc import Sequence

import pytest

from tests.conformance.hand import COPIED, append, broken, change, follow, judged, lead, reported, send, start
from tidegauge.traces.schema import Event


@pytest.mark.parametrize(("node", "hw", "rules"), [(1, 1, set()), (1, 2, {"HW-10"}), (2, 0, set()), (2, 1, {"HW-10"})])
def test_a_checkpoint_holds_no_high_watermark_the_replica_never_had(node: int, hw: int, rules: set[str]) -> None:
    """HW-10; without the value nothing is decided."""
    assert broken((*COPIED, reported(node, "HwCheckpoint", hw=hw))) == rules
    assert judged((*COPIED, reported(node, "HwCheckpoint"))).tallies["HW-10"].undecided == 1


def entry(epoch: int, at: int) -> Event:
    return reported(2, "EpochCacheEntry", leader_epoch=epoch, epoch_start=at)


TWO_ENTRIES = (*COPIED, entry(1, 1), reported(2, "Observe", leo=1, epochs=((0, 0), (1, 1))))


@pytest.mark.parametrize(
    ("added", "rules"),
    [
        (entry(0, 0), set()),
        (entry(1, 1), set()),
        (entry(2, 1), set()),
        (entry(1, 0), {"EPOCH-02"}),
        (entry(1, 2), {"EPOCH-02"}),
        (entry(2, 0), {"EPOCH-02"}),
        (entry(0, 2), {"EPOCH-02"}),
    ],
)
def test_an_entry_is_above_the_last_one_or_it_is_there(added: Event, rules: set[str]) -> None:
    """EPOCH-02: LeaderEpochFileCache#assign."""
    assert broken(TWO_ENTRIES) == set()
    assert broken((*TWO_ENTRIES, added)) == rules
    half = reported(2, "EpochCacheEntry", leader_epoch=3)
    assert judged((*TWO_ENTRIES, half)).tallies["EPOCH-02"].undecided == 1


@pytest.mark.parametrize(
    ("epochs", "leo", "rules"),
    [
        (((0, 0), (1, 1)), 1, set()),
        (((0, 1), (1, 1)), 2, {"EPOCH-02"}),
        (((1, 0), (1, 1)), 2, {"EPOCH-02"}),
        (((0, 0), (1, 2)), 1, {"EPOCH-02"}),
    ],
)
def test_epochs_and_starts_rise_and_end_in_the_log(epochs: tuple[tuple[int, int], ...], leo: int, rules: set[str]) -> None:
    """EPOCH-02 on a cache that is read whole, of either broker."""
    assert broken((start(2, leo=leo, epochs=epochs),)) == rules
    assert broken((start(1, leo=leo, epochs=epochs), start(2))) == rules


RESTARTS = (*COPIED, reported(2, "Stop"))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((*RESTARTS, start(2, leo=1, epochs=((0, 0),))), set()),
        ((*RESTARTS, start(2, leo=0)), {"LOAD-01"}),
        ((*RESTARTS, start(2, leo=1, hw=1, epochs=((0, 0),))), {"LOAD-01"}),
        ((*RESTARTS, start(2, leo=1, epochs=((0, 0), (1, 1)))), {"LOAD-02"}),
        ((*RESTARTS, start(2, leo=1, epochs=())), {"LOAD-02"}),
        ((*RESTARTS, start(2, leo=1, epochs=((1, 0),))), {"LOAD-02"}),
        ((*RESTARTS, start(2, leo=1, epochs=((0, 1),))), {"LOAD-02"}),
        ((*RESTARTS, start(2, clean=False, leo=0)), set()),
        ((*RESTARTS, start(2, clean=False, leo=2, epochs=((0, 0),))), {"LOAD-01"}),
        ((*COPIED, start(2, leo=1, epochs=((0, 0),))), {"LIFE-01"}),
        ((*RESTARTS, reported(2, "Stop")), {"LIFE-01"}),
        ((*RESTARTS, reported(2, "LogStartMoved", log_start=0)), {"LIFE-01"}),
        ((*COPIED, reported(1, "Stop"), start(1, leo=1, hw=1, epochs=((0, 0),))), set()),
        ((*COPIED, reported(1, "Stop"), start(1, leo=1, hw=0, epochs=((0, 0),))), set()),
        ((*COPIED, reported(1, "Crash"), start(1, clean=False, leo=1, hw=0, epochs=((0, 0),))), set()),
        ((*RESTARTS, reported(2, "LoseDisk"), start(2)), set()),
        ((*RESTARTS, reported(2, "LoseDisk"), start(2, leo=1, epochs=((0, 0),))), {"LOAD-01", "LOAD-02"}),
        ((*COPIED, reported(2, "DeleteReplica"), start(2)), set()),
        ((*COPIED, reported(2, "DeleteReplica"), start(2, leo=1, epochs=((0, 0),))), {"LOAD-01", "LOAD-02"}),
    ],
)
def test_a_broker_loads_what_it_had(events: Sequence[Event], rules: set[str]) -> None:
    """LOAD-01, LOAD-02, LIFE-01: LogLoader, and the checkpoints of an orderly stop."""
    assert broken(events) == rules


DELETED = (*COPIED, append(1, 0, 1, 1, 1), reported(1, "LogStartMoved", log_start=1, hw=1))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        (DELETED, set()),
        ((*DELETED, reported(1, "LogStartMoved", log_start=0)), {"LOG-01"}),
        ((*DELETED, reported(1, "LogStartMoved", log_start=2)), {"HW-10", "HW-01"}),
        ((*DELETED, reported(1, "LogStartMoved", log_start=1, hw=0)), {"HW-10", "HW-01"}),
        ((*DELETED, reported(1, "LogStartMoved", log_start=1, hw=2)), {"HW-10"}),
        ((*DELETED, reported(1, "Observe", log_start=1)), set()),
        ((*DELETED, reported(1, "Observe", log_start=0)), {"LOG-02"}),
        ((*DELETED, reported(1, "Observe", leo=2, hw=1, log_start=1, epochs=((0, 1),))), set()),
        ((*DELETED, reported(1, "Observe", leo=2, hw=1, log_start=1, epochs=((0, 0),))), {"LOG-02"}),
        ((*DELETED, reported(1, "Observe", leo=1, hw=1)), {"LOG-02"}),
        ((*DELETED, reported(1, "Observe", hw=0)), set()),
        ((*DELETED, reported(1, "Observe", hw=2)), {"LOG-02"}),
        ((*DELETED, reported(1, "Stop"), reported(1, "Observe", hw=1)), set()),
        ((*DELETED, reported(1, "Stop"), reported(1, "Observe", hw=0)), {"LOG-02"}),
        ((*DELETED, reported(1, "Crash"), reported(1, "Observe", hw=0)), set()),
        ((*DELETED, reported(1, "Stop"), start(1, leo=2, hw=1, log_start=1, epochs=((0, 1),))), set()),
        ((*DELETED, reported(1, "Stop"), start(1, leo=2, hw=1, log_start=1, epochs=((0, 0),))), {"LOAD-02"}),
    ],
)
def test_a_log_start_rises_and_takes_nothing_back(events: Sequence[Event], rules: set[str]) -> None:
    """LOG-01, LOG-02, HW-10: UnifiedLog#maybeIncrementLogStartOffset."""
    assert broken(events) == rules


BEHIND = (
    start(1, leo=5, hw=5, log_start=3, epochs=((0, 3), (1, 4))),
    start(2, leo=2, hw=2, log_start=1, epochs=((0, 1),)),
    change(1, 2, (1,)),
    lead(1, 2, (1,), leo=5, hw_before=5, hw=5),
    follow(2, 1, 2, leo=2, hw=2),
    send(2, 1, 2, 2, 0),
    reported(1, "HandleFetch", peer=2, req_epoch=2, req_offset=2, req_last_epoch=0, error=1),
)
"""Broker 2 ends below the start of its leader's log."""
AHEAD = (
    start(1, leo=2, hw=2, log_start=0, epochs=((0, 0),)),
    start(2, leo=5, hw=4, log_start=1, epochs=((0, 1), (1, 3))),
    change(1, 2, (1,)),
    lead(1, 2, (1,), leo=2, hw_before=2, hw=2),
    follow(2, 1, 2, leo=5, hw=4),
    send(2, 1, 2, 5, 1),
    reported(1, "HandleFetch", peer=2, req_epoch=2, req_offset=5, req_last_epoch=1, error=1),
)
"""Broker 2 ends above its leader's log, and is told to start anew."""


def reset(offset: int, leader: tuple[int, int], before: int, **fields: object) -> Event:
    said = {"req_epoch": 2, "req_offset": offset, "leader_start": leader[0], "leader_end": leader[1], "leo_before": before}
    return reported(2, "HandleOutOfRange", peer=1, **said, **fields)


OBSERVED = reported(2, "Observe", leo=3, hw=3, log_start=3, epochs=())


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        ((*BEHIND, reset(2, (3, 5), 2, target=3, leo=3, hw=3, log_start=3), OBSERVED), set()),
        ((*BEHIND, reset(2, (3, 5), 2), OBSERVED), set()),
        ((*BEHIND, reset(2, (3, 5), 2, target=2)), {"OOR-01"}),
        ((*BEHIND, reset(2, (3, 5), 2, leo=2)), {"OOR-01", "HW-01"}),
        ((*BEHIND, reset(2, (3, 5), 2, hw=2)), {"OOR-01", "HW-01"}),
        ((*BEHIND, reset(2, (3, 5), 2, log_start=2)), {"OOR-01"}),
        ((*BEHIND, reset(1, (3, 5), 2)), {"FETCH-09", "FETCH-10"}),
        ((*BEHIND, reset(2, (3, 5), 2), send(2, 1, 2, 3, -1)), set()),
        ((*BEHIND, reset(2, (3, 5), 2), reset(2, (3, 5), 3)), {"FETCH-09", "FETCH-10"}),
    ],
)
def test_a_log_below_its_leaders_start_begins_anew_there(events: Sequence[Event], rules: set[str]) -> None:
    """OOR-01: UnifiedLog#truncateFullyAndStartAt. The cache is empty, the high watermark is the start."""
    assert broken(events) == rules


TRUNCATED = reported(2, "Observe", leo=2, hw=2, log_start=1, epochs=((0, 1),))


@pytest.mark.parametrize(
    ("events", "rules"),
    [
        (AHEAD, {"FETCH-05"}),
        ((*AHEAD, reset(5, (0, 2), 5, target=2, leo=2, hw=2), TRUNCATED), {"FETCH-05"}),
        ((*AHEAD, reset(5, (0, 2), 5), TRUNCATED), {"FETCH-05"}),
        ((*AHEAD, reset(5, (0, 2), 5, leo=3)), {"FETCH-05", "OOR-01"}),
        ((*AHEAD, reset(5, (0, 2), 5, hw=3)), {"FETCH-05", "OOR-01", "HW-01"}),
        ((*AHEAD, reset(5, (0, 2), 5, hw=1)), {"FETCH-05", "OOR-01"}),
    ],
)
def test_a_log_above_its_leaders_end_is_truncated_there(events: Sequence[Event], rules: set[str]) -> None:
    """OOR-01, UnifiedLog#truncateTo. With epochs the leader would have said where the logs diverge: FETCH-05."""
    assert broken(events) == rules
