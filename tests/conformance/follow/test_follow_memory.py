"""What is held of a trace that grows: tables that are copied when they are too small, and nothing that grows with it."""

import gc
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from tests.conformance.follow.same_report import FedNdjson, hand, same, text_of
from tests.conformance.hand import COPIED, OPENING, reported
from tests.conformance.judge.test_superseded import reign, reigns, unheard
from tidegauge.conformance.engine.judge import PAST_AT_FIRST, ROOM_AT_FIRST, grown
from tidegauge.conformance.follow import ndjson as follow_ndjson
from tidegauge.conformance.follow.loop import News
from tidegauge.conformance.follow.ndjson import Window, WindowEvent
from tidegauge.conformance.judge.lineage import fork, fork_end, fork_start
from tidegauge.conformance.judge.state import CACHE_ROOM, PARTITION, PAST_ROOM, SIZED, TALLIES, epochs_row
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import Trace


@pytest.mark.parametrize("window", [8, follow_ndjson.WINDOW])
def test_a_table_that_is_too_small_is_copied(window: int, monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    """More leader epochs than there was room for at first, in a cache and of the past: the same tallies and failures."""
    monkeypatch.setattr(follow_ndjson, "WINDOW", window)
    epochs = tuple((epoch, epoch) for epoch in range(3 * ROOM_AT_FIRST))
    caches = [reported(node, "Start", clean=True, leo=100, hw=100, log_start=0, epochs=epochs) for node in (1, 2)]
    last = [reported(node, "Observe", leo=100, hw=100, log_start=0, epochs=epochs[:-1]) for node in (1, 2)]
    for events in ((*caches, *last), unheard(reigns(2 * PAST_AT_FIRST))):
        data = text_of(hand(events))
        same(data, range(0, len(data), len(data) // 50), folder)


def test_what_the_source_reports_is_learned(folder: Path) -> None:
    """The first cache entry, and the first assignment, count for the events before them as in `check`."""
    entry = reported(2, "EpochCacheEntry", leader_epoch=0, epoch_start=0)
    small = reported(100, "ChangePartition", leader=1, leader_epoch=0, isr=(1,), live=(1, 2), clean=True, replicas=(1,))
    unknown = [replace(one, fields={k: v for k, v in one.fields.items() if k != "rec_epoch"}) for one in COPIED]
    for late in (entry, small):
        for events in ((*COPIED, late, *COPIED[5:]), (*unknown, late), (*OPENING, *unknown[5:], late)):
            data = text_of(hand(events))
            same(data, range(0, len(data), 80), folder)


def test_a_copied_table_knows_the_same(runs: list[Trace]) -> None:
    """Whatever comes then is judged the same."""
    for run in runs:
        small, large = Window(run), Window(run)
        kept = [WindowEvent(event, 0, None) for event in run.events]
        for one in (small, large):
            one.take(kept[: len(kept) // 2], changed=False)
        large.now = grown(large.now, 2 * ROOM_AT_FIRST, 2 * PAST_AT_FIRST)
        for one in (small, large):
            one.take(kept[len(kept) // 2 :], changed=False)
        assert large.now[PARTITION, CACHE_ROOM] == 2 * ROOM_AT_FIRST
        assert small.recent == large.recent
        assert (small.now[TALLIES:SIZED] == large.now[TALLIES:SIZED]).all()


def test_a_copied_table_knows_where_logs_forked() -> None:
    """Which stands behind the room for their entries, and nothing else does."""
    st = Window(hand(())).now
    fork(st, 1, 3, 7)
    larger = grown(st, 2 * ROOM_AT_FIRST, PAST_AT_FIRST)
    assert [(fork_start(larger, log), fork_end(larger, log)) for log in (0, 1)] == [(0, 0), (3, 7)]
    assert larger[epochs_row(larger, 1), ROOM_AT_FIRST] == 0


def held(one: FedNdjson) -> tuple[int, ...]:
    """What is kept of a trace: bytes of its tables, their rooms, events, problems, what came up."""
    (trace,) = one.traces.values()
    window = trace.window
    tables = window.base.nbytes + window.now.nbytes
    rooms = (int(window.now[PARTITION, at]) for at in (CACHE_ROOM, PAST_ROOM))
    return tables, *rooms, len(window.past.failures), len(window.past.truncations), len(one.report().problems)


def months(reigns_: int) -> Iterator[bytes]:
    """A partition that changes its leader all the time, a reign after the other."""
    head, *start = ndjson.lines(hand(reigns(0)))
    yield "".join(f"{line}\n" for line in (head, *start)).encode()
    for epoch in range(reigns_):
        yield "".join(f"{line}\n" for line in list(ndjson.lines(hand(reign(epoch))))[1:]).encode()


@pytest.mark.parametrize("events", [6_000, pytest.param(300_000, marks=pytest.mark.long)])
def test_what_is_held_does_not_grow(events: int) -> None:
    """Behind the first third nothing more is held: not in tables, not in lists, not in any object of Python."""
    news = list[News]()
    one, per_reign = FedNdjson("f", news.append), len(reign(2))
    at, measured = 0, list[tuple[tuple[int, ...], int, int]]()
    for number, text in enumerate(months(events // per_reign)):
        one.feed(text)
        assert not news
        if number == (at + 1) * (events // per_reign) // 3:
            at += 1
            gc.collect()
            (trace,) = one.traces.values()
            measured.append((held(one), sys.getallocatedblocks(), len(trace.window.events)))
    assert len(measured) == 3
    assert measured[0][0] == measured[1][0] == measured[2][0]
    assert max(kept for _, _, kept in measured) <= 2 * follow_ndjson.WINDOW
    assert max(kept for _, _, kept in measured) - min(kept for _, _, kept in measured) <= follow_ndjson.WINDOW
    blocks = [count for _, count, _ in measured]
    assert blocks[2] - blocks[0] < 60 * follow_ndjson.WINDOW, "a window more or less"
    assert one.report().failures == 0
