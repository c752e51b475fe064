"""Moving a replica to another log directory."""

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from tidegauge.impl.fetch import fetcher_manager as a
from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.replica.fetcher import Fetcher, PartitionFetchState, mark_for_truncation
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.storage.log import Log, append_as_follower, append_as_leader, truncate_to, update_high_watermark
from tidegauge.impl.topic_partition import TopicPartition

SETUP = Setup()
NOW = 1_000_000


def log_of(*batches: tuple[int, int, int], hw: int = 0) -> Log:
    log, _ = append_as_follower(SETUP, Log(), tuple(Batch(*b) for b in batches), 99)
    return update_high_watermark(SETUP, log, hw)


CURRENT = Partition(1, log_of((0, 4, 0), (5, 9, 1), hw=7), leader_id=2, leader_epoch=3, partition_epoch=1)
"""A follower: leadership does not matter."""


def filled(future: Fetcher, current: Partition, rounds: int = 6) -> Fetcher:
    for _ in range(rounds):
        future = a.fetch_future(SETUP, a.maybe_truncate_future(SETUP, future, current), current, NOW, 5)
    return future


def test_a_future_replica_is_filled_and_takes_the_place() -> None:
    """High watermark, log start and epoch cache come along; the thread is done with the partition."""
    current = CURRENT._replace(log=CURRENT.log._replace(start=2))
    future = filled(a.start_future_replica(SETUP, current, Log()), current)
    assert (future.log.batches, future.log.hw, future.log.start) == (current.log.batches, 7, 2)
    done, replaced, swapped = a.maybe_replace_current(future, current)
    assert (swapped, done.entry) == (True, None)
    assert replaced == current._replace(log=future.log)
    assert replaced.log.cache.memory.pairs() == ((0, 2), (1, 5))


def test_it_does_not_take_the_place_before_it_is_there() -> None:
    """Neither behind, nor while it truncates, nor when it was removed."""
    begun = a.start_future_replica(SETUP, CURRENT, Log())
    behind = a.fetch_future(SETUP, a.maybe_truncate_future(SETUP, begun, CURRENT), CURRENT, NOW, 5)
    assert behind.log.end == 5
    truncating = mark_for_truncation(filled(begun, CURRENT), 9)
    for future in (behind, truncating, Fetcher(CURRENT.log)):
        assert a.maybe_replace_current(future, CURRENT) == (future, CURRENT, False)


def test_what_the_current_log_truncate_is_truncated_in_the_future_one() -> None:
    """By the epoch's end offset of the current log, though nothing above the future log's high watermark is known wrong."""
    future = filled(a.start_future_replica(SETUP, CURRENT, Log()), CURRENT)
    truncated, _ = truncate_to(SETUP, CURRENT.log, 5)
    other, _ = append_as_leader(SETUP, truncated, 3, 3)
    current = CURRENT._replace(log=other)
    future = filled(mark_for_truncation(future, 5), current)
    assert future.log.batches == other.batches


def test_another_leader_epoch_is_fenced_here_too() -> None:
    """The current replica has moved on: the move fails, or waits, until it is added again."""
    future = a.start_future_replica(SETUP, CURRENT, Log())
    future = a.maybe_truncate_future(SETUP, future, CURRENT)
    newer, older = CURRENT._replace(leader_epoch=4), CURRENT._replace(leader_epoch=2)
    assert a.fetch_future(SETUP, future, newer, NOW, 5).failed
    waiting = a.fetch_future(SETUP, future, older, NOW, 5).entry
    assert waiting is not None
    assert waiting.delayed
    assert a.fetch_future(SETUP, Fetcher(Log()), CURRENT, NOW, 5) == Fetcher(Log())


def test_a_future_log_that_starts_below_the_current_one_begins_there_again() -> None:
    """Out of range, as for any follower."""
    current = CURRENT._replace(log=CURRENT.log._replace(start=5, segments=(5,), batches=CURRENT.log.batches[1:]))
    future = filled(a.start_future_replica(SETUP, current, Log()), current)
    assert (future.log.start, future.log.end) == (5, 10)


@pytest.mark.parametrize(
    ("in_progress", "delayed", "chosen"),
    [(None, (), "a-1"), ("b-0", (), "b-0"), ("b-0", ("b-0",), "a-1"), (None, ("a-1",), "a-2"), ("c-0", (), "a-1")],
)
def test_one_partition_is_moved_at_a_time(in_progress: str | None, delayed: tuple[str, ...], chosen: str) -> None:
    """The one that is being filled, else the first by topic and number that is ready."""
    names = {name: TopicPartition(name[0], int(name[2:])) for name in ("b-0", "a-2", "a-1", "c-0")}
    entries = {names[n]: PartitionFetchState(0, 1, delayed=n in delayed) for n in ("b-0", "a-2", "a-1")}
    assert a.select_partition_to_fetch(entries, names[in_progress] if in_progress else None) == names[chosen]
    assert a.select_partition_to_fetch({}, None) is None


class Transitions(RuleBasedStateMachine):
    """The current log grows, its epoch rises, and then it may be truncated at its batches; the future one follows."""

    def __init__(self) -> None:
        super().__init__()
        self.current = Partition(1, Log(), leader_id=1, leader_epoch=0)
        self.future = a.start_future_replica(SETUP, self.current, Log())

    @rule(records=st.integers(1, 3))
    def append(self, records: int) -> None:
        log, _ = append_as_leader(SETUP, self.current.log, records, self.current.leader_epoch)
        self.current = self.current._replace(log=log)

    @rule(back=st.integers(1, 4))
    def truncated(self, back: int) -> None:
        bases = [batch.base for batch in self.current.log.batches[-back:]]
        target = max(self.current.log.hw, min(bases, default=0))
        log, _ = truncate_to(SETUP, self.current.log, target)
        self.current = self.current._replace(log=log)
        self.new_epoch()
        self.future = mark_for_truncation(self.future, target)

    @rule()
    def commit(self) -> None:
        log = update_high_watermark(SETUP, self.current.log, self.current.log.end)
        self.current = self.current._replace(log=log)

    @rule()
    def new_epoch(self) -> None:
        self.current = self.current._replace(leader_epoch=self.current.leader_epoch + 1)
        self.future = a.start_future_replica(SETUP, self.current, self.future.log)

    @rule(max_records=st.integers(1, 6))
    def step(self, max_records: int) -> None:
        truncated = a.maybe_truncate_future(SETUP, self.future, self.current)
        self.future = a.fetch_future(SETUP, truncated, self.current, NOW, max_records)

    @rule()
    def replace(self) -> None:
        before = self.current
        self.future, self.current, swapped = a.maybe_replace_current(self.future, self.current)
        if swapped:
            assert self.current.log.batches == before.log.batches
            assert self.current.log.cache.memory == before.log.cache.memory
            self.future = a.start_future_replica(SETUP, self.current, Log())

    @invariant()
    def nothing_fails(self) -> None:
        assert not self.future.failed
        entry = self.future.entry
        assert entry is not None
        assert entry.truncating or entry.fetch_offset == self.future.log.end

    @invariant()
    def while_it_fetches_it_holds_what_the_current_log_holds(self) -> None:
        entry = self.future.entry
        if entry is not None and not entry.truncating:
            held = self.future.log.batches
            assert held == self.current.log.batches[: len(held)]

    @invariant()
    def a_high_watermark_was_told(self) -> None:
        assert self.future.log.hw <= self.current.log.hw


TestTransitions = Transitions.TestCase
