"""Judge inputs that are too large for one process in shares, side by side on all cores.

Rules of this file

1. A share is judged from nothing but the input: the report is the same whatever the number of shares and processes.
2. A share of broker logs is some of the partitions. The logs are read once and split into shards on disk, one for each share
   (traces.kafka_logs.discovery.shards). `Selection.shard` is which one is read: (number, of how many).
3. A share of NDJSON is a span of the file between two traces. If a line in it is not as expected, or a rule fails, the
   whole file is judged again: line numbers and messages depend on all lines before.
"""

import os
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

from tidegauge.conformance.checking.check import (
    CheckedInput,
    CheckOptions,
    Report,
    check,
    check_in_worker,
    merge_reports,
    merge_shares,
    overall_verdict,
)
from tidegauge.conformance.checking.inputs import NotSeparableError, is_ndjson
from tidegauge.conformance.engine.precompile import compile_in_background
from tidegauge.traces.formats.ndjson_columns import Span, spans
from tidegauge.traces.kafka_logs.discovery.files import log_size, logs_in
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.discovery.shards import split_logs
from tidegauge.util.input_limits import file_size
from tidegauge.util.workers import Echo, workers

LARGE_BYTES = 96_000_000
"""Bytes of logs, or of NDJSON, from which they are judged in shares."""

OF_A_SHARE = 16_000_000
"""Bytes of logs in a share; judging takes a few times as much memory."""

OF_A_SPAN = 256_000_000
"""Bytes of NDJSON in a share at most; each process has one share in memory. Less if that gives each process a share."""

FROM_UNCOMPILED, OF_A_SPAN_UNCOMPILED = 24_000_000, 6_000_000
"""LARGE_BYTES and OF_A_SPAN for NDJSON while the judge is not compiled: a share takes the interpreter a few seconds, after
which a line of progress says which rules fail so far."""


def check_in_parallel(
    paths: Sequence[str | PathLike[str]], how: CheckOptions, processes: int | None = None, echo: Echo = lambda _line: None
) -> Report:
    """Judge the paths as `check` does, large ones in shares on so many processes (default: one per core)."""
    processes = processes or os.cpu_count() or 1
    shares = [share_count(path) for path in paths]
    spans_by_path = [spans_to_judge(path, how, processes) for path in paths]
    # Each share is too small to have the judge compiled, all together are not.
    if any(count > 1 for count in shares) or any(spans_by_path):
        compile_in_background()
    # One call for all paths, since one `check` keeps its compiled judge and its automaton from path to path.
    if all(count == 1 for count in shares) and not any(spans_by_path):
        return check(paths, how, echo)
    reports = []
    for path, count, path_spans in zip(paths, shares, spans_by_path, strict=True):
        if count > 1:
            with tempfile.TemporaryDirectory(prefix="tidegauge-shares-") as folder, workers(processes) as side_by_side:
                reports.append(check_in_shares(path, count, how, side_by_side, folder, echo=echo))
        else:
            report = check_in_spans(path, path_spans, how, processes, echo) if path_spans else None
            reports.append(report or check([path], how, echo))
    return merge_reports(reports, how.explained)


def is_ready() -> bool:
    """Return whether the judge is compiled already."""
    from tidegauge.conformance.engine import compiled  # noqa: PLC0415  the compiler takes a second to load

    return compiled.is_ready()


def share_count(path: str | PathLike[str]) -> int:
    """Return the number of shares for the logs at a path; 1 for anything else."""
    size = log_size(Path(path))
    return 1 if size < LARGE_BYTES else -(-size // OF_A_SHARE)


def check_in_shares(
    path: str | PathLike[str],
    shares: int,
    how: CheckOptions,
    side_by_side: Callable[..., Iterator[Any]],
    folder: str,
    check_one: Callable[[str | PathLike[str], CheckOptions], Report] = check_in_worker,
    earlier: Mapping[int, Report] = {},
    echo: Echo = lambda _line: None,
) -> Report:
    """Return the report on broker logs, judged in so many shares of their partitions.

    The logs are first split into `folder`, then each share is judged. `side_by_side` is a map over processes, which see the
    logs and the folder at the same paths. `check_one` judges one share, which `Selection.shard` names. `earlier` are reports
    without a failure on shares that need not be judged again, by number.
    """
    begin, reports = time.perf_counter(), dict(earlier)
    # (number, of how many): the splitting reads only how many.
    selection = replace(how.selection or Selection(), shard=(0, shares), shard_dir=folder)
    left = [number for number in range(shares) if number not in earlier]
    logs = logs_in(Path(path)) if left else []
    size, size_read = sum(map(file_size, logs)), 0

    def say_progress(of_part: int) -> None:
        """Say how much of the logs is read when a part of them is."""
        nonlocal size_read
        size_read += of_part
        echo(f"{path}: {size_read / 1e6:,.0f} of {size / 1e6:,.0f} MB read")

    if left:
        split_logs(logs, selection, how.layout, side_by_side, say_progress)

    def judged(numbers: Sequence[int], selection: Selection) -> Iterator[tuple[int, Report]]:
        """Yield the reports on shares by number."""
        of_shares = [replace(how, selection=replace(selection, shard=(number, shares))) for number in numbers]
        return zip(numbers, side_by_side(partial(check_one, path), of_shares), strict=True)

    for number, report in judged(left, selection):
        reports[number] = report
        echo(_so_far(path, [*reports.values()], shares))
    # Lines that are missing may show in one share only, and explain what fails in another. A share without any event has
    # nothing of its own: a logger that was off seems a gap there.
    with_events = [checked for report in reports.values() for checked in report.inputs if checked.events]
    gaps = tuple(dict.fromkeys(gap for checked in with_events for gap in checked.gaps))
    failing = [number for number in left if reports[number].failures and gaps]
    reports |= dict(judged(failing, replace(selection, gaps=gaps)))
    return _as_one([reports[number] for number in range(shares)], how, begin)


def spans_to_judge(path: str | PathLike[str], how: CheckOptions, processes: int) -> list[Span]:
    """Return the spans of a large NDJSON file, split between its traces; none for a small one, and for anything else.

    Nor for one that is read as broker logs, which have a layout, or of which a selection is read.
    """
    place = Path(path)
    size = place.stat().st_size if place.is_file() else 0
    # Only for a large file: is_ready loads the compiler.
    uncompiled = size >= FROM_UNCOMPILED and not is_ready()
    if size < (FROM_UNCOMPILED if uncompiled else LARGE_BYTES) or how.selection or how.layout or not is_ndjson(place):
        return []
    span_bytes = OF_A_SPAN_UNCOMPILED if uncompiled else OF_A_SPAN
    return spans(place, min(span_bytes, -(-size // processes)))  # or less, so that each process has a share


def check_in_spans(
    path: str | PathLike[str], path_spans: Sequence[Span], how: CheckOptions, processes: int, echo: Echo = lambda _line: None
) -> Report | None:
    """Return the report on an NDJSON file, judged span by span; None if it has to be judged as a whole (rule 3)."""
    begin, parts = time.perf_counter(), list[Report]()
    try:
        with workers(processes) as map_in_processes:
            of_spans = [replace(how, span=span) for span in path_spans]
            for report in map_in_processes(partial(check_in_worker, path), of_spans):
                parts.append(report)
                echo(_so_far(path, parts, len(path_spans)))
    except NotSeparableError:
        return None
    # Failures, problems and notes name lines and traces by their number, which a span counts from its own beginning.
    clean = all(not (part.failures or part.problems or part.notes) for part in parts)
    return _as_one(parts, how, begin) if clean else None


def _so_far(path: str | PathLike[str], parts: Sequence[Report], shares: int) -> str:
    """Return the line of progress: how many of the shares are judged (`parts`), and which rules fail so far."""
    events = sum(part.events for part in parts)
    failing = sorted({rule.rule.id for part in parts for rule in part.rules if rule.tally.failed})
    verdict = f"FAIL: {', '.join(failing)}" if failing else "no rule fails so far"
    return f"{path}: {len(parts)} of {shares} shares, {events:,} events judged: {verdict}"


def _as_one(parts: Sequence[Report], how: CheckOptions, begin: float) -> Report:
    """Merge the reports on all shares of one path; each report has the same inputs, one for each cluster at the path.

    `begin`: when judging began, by time.perf_counter.
    """
    shares_of_input: dict[str, list[CheckedInput]] = {}
    for part in parts:
        for checked in part.inputs:
            shares_of_input.setdefault(checked.path, []).append(checked)
    inputs = tuple(map(merge_shares, shares_of_input.values()))
    # A share may have no event at all, where the input has some: the verdict is that of the inputs as a whole.
    merged = replace(merge_reports(parts, how.explained), inputs=inputs, verdict=overall_verdict(inputs))
    return replace(merged, seconds=time.perf_counter() - begin)
