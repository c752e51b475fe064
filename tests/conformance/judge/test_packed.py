"""A memory as few bytes holds what the whole table would, and nothing else is asked for."""

from collections.abc import Iterator

import numpy as np
import pytest

from tests.conformance.hand import COPIED, TWO, reported
from tidegauge.conformance.engine.judge import frozen_inputs, options_of
from tidegauge.conformance.engine.one_event import (
    FREE,
    Judge,
    empty_memories,
    judge_event,
    judge_from,
    pack,
    save,
    spans_of,
    unpack,
)
from tidegauge.conformance.engine.transitions import Pool, has_room, intern_row
from tidegauge.conformance.judge.compaction import forget_consumed, tidy
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import (
    FAILED,
    LEO,
    NOW,
    OVERFLOW,
    PARTITION,
    PIECEWISE,
    REGISTRATIONS,
    REPLICAS,
    SIZED,
    TALLIES,
    TERMS,
    Ints,
    State,
    allocate,
    forget,
)
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.schema import Config, Event, Trace

ROOM, PAST, WORDS = 8, 16, 200
JUNK = 77


def judge_of(events: tuple[Event, ...], config: Config) -> Judge:
    """One that knows nothing, to be asked about these events."""
    columns = to_columns([Trace("", "", config, events)], config)
    options = options_of(columns, config)
    options[PIECEWISE] = 1
    st = allocate(options, ROOM, 1, PAST)
    forget(st, 0)
    return judge_from(st, frozen_inputs(columns, None, np.zeros(0, np.int64)))


def packed(st: State) -> bytes:
    room = np.zeros(8 * WORDS, np.int8)
    end = pack(st, room, 0)
    assert end > 0
    return room[:end].tobytes()


def whole(st: State) -> bytes:
    """All cells that are the memory, those that stand for nothing being 0."""
    copy = st.copy()
    tidy(copy)
    spans = spans_of(copy)
    room = empty_memories(spans, 1)
    assert save(copy, spans, room[0])
    return room.tobytes()


def full_of_junk(st: State) -> State:
    """A table in which other traces have left something everywhere; what it counted is 0."""
    other = st.copy()
    other[PARTITION, :NOW] = JUNK
    other[REPLICAS : REPLICAS + 2] = JUNK
    other[SIZED:] = JUNK
    return other


def steps(runs: int, profile: str) -> Iterator[tuple[Judge, int]]:
    """Runs judged event by event, as far as nothing is forgotten for want of room."""
    for run in impl_walks(runs, profile=profile, steps=60, seed=11):
        judge = judge_of(tuple(run.events), run.config)
        for at in range(len(run.events)):
            judge_event(judge_traces, judge, at)
            if (
                judge.st[PARTITION, OVERFLOW] != 0
                or judge.st[PARTITION, REGISTRATIONS] > 12
                or judge.st[PARTITION, TERMS] > 12
            ):
                break
            forget_consumed(judge.st)
            yield judge, at + 1


@pytest.mark.parametrize("profile", ["fetch-truncation", "kip101"])
def test_two_memories_are_the_same_bytes_when_they_know_the_same(profile: str) -> None:
    pairs = {(packed(judge.st), whole(judge.st)) for judge, _ in steps(6, profile)}
    few, all_cells = (set(column) for column in zip(*pairs, strict=True))
    assert len(pairs) == len(few) == len(all_cells) > 100
    assert max(map(len, few)) < min(map(len, all_cells))


@pytest.mark.parametrize("profile", ["fetch-truncation", "kip101"])
def test_what_is_not_written_is_not_asked_for(profile: str) -> None:
    """Whatever stood in the table before, the judge knows the same, and makes the same of the next event."""
    compared = 0
    for judge, following in steps(6, profile):
        room = np.frombuffer(packed(judge.st), np.int8).copy()
        after = []
        for st in (judge.st.copy(), full_of_junk(judge.st)):
            unpack(st, room, 0)
            assert whole(st) == whole(judge.st)
            if following < len(judge.event):
                st[TALLIES:REPLICAS] = 0
                judge_event(judge_traces, judge._replace(st=st), following)
                forget_consumed(st)
                after.append((st[TALLIES:REPLICAS].tolist(), int(st[PARTITION, FAILED]), whole(st)))
                compared += 1
        assert not after or after[0] == after[1]
    assert compared > 500


def test_what_failed_is_no_part_of_it() -> None:
    judge = judge_of((*COPIED, reported(1, "Crash")), TWO)
    judge.st[PARTITION, FAILED] = judge.st[PARTITION, OVERFLOW] = 1
    unpack(judge.st, np.frombuffer(packed(judge.st), np.int8).copy(), 0)
    assert judge.st[PARTITION, FAILED] == judge.st[PARTITION, OVERFLOW] == 0


@pytest.mark.parametrize(("leo", "fits"), [(127, True), (128, False), (-127, True), (-128, False), (256, False)])
def test_numbers_that_are_no_bytes(leo: int, fits: bool) -> None:
    """-128 is what stands for UNKNOWN; 256 would come back as 0."""
    judge = judge_of(COPIED, TWO)
    judge.st[REPLICAS, LEO] = leo
    room = np.zeros(8 * WORDS, np.int8)
    assert (pack(judge.st, room, 0) > 0) == fits
    if fits:
        unpack(judge.st, room, 0)
        assert judge.st[REPLICAS, LEO] == leo


def test_the_last_word_is_filled_up() -> None:
    """Whatever an earlier memory left there: words are compared whole."""
    judge = judge_of(COPIED, TWO)
    clean, used = np.zeros(8 * WORDS, np.int8), np.full(8 * WORDS, JUNK, np.int8)
    end = pack(judge.st, clean, 8)
    assert pack(judge.st, used, 8) == end
    assert end % 8 == 0
    assert (clean[8:end] == used[8:end]).all()


def pool(rows: int, words: int) -> Pool:
    return Pool(np.zeros(words, np.int64), np.zeros(rows + 1, np.int64), np.full(2 * rows, FREE, np.int64))


def entered(into: Pool, count: int, said: Ints) -> int:
    begin = into.starts[count]
    into.words[begin : begin + len(said)] = said
    into.starts[count + 1] = begin + len(said)
    return intern_row(into, count)


def test_rows_are_kept_once() -> None:
    """Each of them is found again, however many share a place; a longer one that begins the same is another."""
    into = pool(64, 640)
    rows = [np.arange(length, dtype=np.int64) * step for length in range(2, 10) for step in range(1, 8)]
    assert [entered(into, at, row) for at, row in enumerate(rows)] == list(range(len(rows)))
    count = len(rows)
    assert [entered(into, count, row) for row in reversed(rows)] == list(reversed(range(count)))


def test_room_for_one_more() -> None:
    into = pool(2, 10)
    assert has_room(into, 0, 10)
    assert not has_room(into, 0, 11)
    entered(into, 0, np.arange(4))
    assert has_room(into, 1, 6)
    assert not has_room(into, 1, 7)
    entered(into, 1, np.arange(5))
    assert not has_room(into, 2, 0)
