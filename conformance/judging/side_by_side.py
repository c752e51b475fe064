"""Inputs that are too large for one process: judged in shares, side by side on all cores.

Rules of this file

1. A share is judged from nothing but the input: the same report comes out whatever the number of shares and processes.
2. Of broker logs it is some of the partitions. The logs are read once and taken apart into shares on disk (shares.py).
3. Of NDJSON it is some of the traces, one after another in the file. Where one is not what is expected, or fails, the
   file is judged again as a whole: what its line is and what is said of it depends on all before it.
"""

import os
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidegauge.conformance.judging.check import CheckOptions, Report, check
from tidegauge.conformance.judging.inputs import NotSeparableError, is_ndjson
from tidegauge.conformance.judging.merged import merge_reports, merge_shares
from tidegauge.conformance.judging.progress import Echo
from tidegauge.conformance.judging.workers import workers
from tidegauge.traces.files.ndjson_columns import Span, spans
from tidegauge.traces.kafka.lines.files import log_size, logs_in
from tidegauge.traces.kafka.lines.selection import Selection
from tidegauge.traces.kafka.lines.shares import take_apart

LARGE = 96_000_000
"""Bytes of logs or of NDJSON from which they are judged in shares,"""

OF_A_SHARE = 16_000_000
"""of so many bytes of logs each, for each of which memory takes some more,"""

OF_A_SPAN = 256_000_000
"""or of so many of NDJSON, and no more than give each process one. One of them is in memory for each process."""


def check_in_parallel(
    paths: Sequence[str | Path],
    how: CheckOptions,
    processes: int | None = None,
    echo: Echo = lambda _line: None,
) -> Report:
    """Judge the paths as `check` does, large ones in shares."""
    processes = processes or os.cpu_count() or 1
    shares = [share_count(path) for path in paths]
    apart = [spans_to_judge(path, how, processes) for path in paths]
    if all(count == 1 for count in shares) and not any(apart):
        return check(paths, how, echo)
    reports = []
    for path, count, pieces in zip(paths, shares, apart, strict=True):
        if count > 1:
            reports.append(check_in_shares(path, count, how, processes, echo))
        else:
            report = check_in_spans(path, pieces, how, processes, echo) if pieces else None
            reports.append(report or check([path], how, echo))
    return merge_reports(reports, how.explained)


def share_count(path: str | Path) -> int:
    """In how many shares the logs at a path are judged; 1 for anything else."""
    size = log_size(Path(path))
    return 1 if size < LARGE else -(-size // OF_A_SHARE)


def check_in_shares(
    path: str | Path, shares: int, how: CheckOptions, processes: int | None = None, echo: Echo = lambda _line: None
) -> Report:
    """The report on one path, from as many shares of its partitions."""
    begin, parts = time.perf_counter(), list[Report]()
    selection = replace(how.selection or Selection(), share=(0, shares))
    processes = processes or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="tidegauge-shares-") as folder, workers(processes) as pool:
        selection.apart = folder
        take_apart(logs_in(Path(path)), selection, how.layout, pool)
        echo(f"{path}: read")
        for part in pool(partial(_share, path, replace(how, selection=selection)), range(shares)):
            parts.append(part)
            echo(_so_far(path, parts, shares))
    return _as_one(parts, how, begin)


def _share(path: str | Path, how: CheckOptions, number: int) -> Report:
    selection = how.selection or Selection()
    selection = replace(selection, share=(number, selection.share[1]))
    return replace(check([path], replace(how, selection=selection)), judged=())


def spans_to_judge(path: str | Path, how: CheckOptions, processes: int) -> list[Span]:
    """Where an NDJSON file is cut between its traces; nowhere if that is not worth it, and for anything else."""
    place = Path(path)
    size = place.stat().st_size if place.is_file() else 0
    if size < LARGE or how.selection or how.layout or not is_ndjson(place):
        return []
    return spans(place, min(OF_A_SPAN, -(-size // processes)))


def check_in_spans(
    path: str | Path, pieces: Sequence[Span], how: CheckOptions, processes: int, echo: Echo = lambda _line: None
) -> Report | None:
    """The report on an NDJSON file, from its spans; None where one of them cannot stand alone: rule 3 of this file."""
    begin, parts = time.perf_counter(), list[Report]()
    try:
        with workers(processes) as pool:
            for part in pool(partial(_span, path, how), pieces):
                parts.append(part)
                echo(_so_far(path, parts, len(pieces)))
    except NotSeparableError:
        return None
    alone = all(not (part.failures or part.problems or part.notes) for part in parts)
    return _as_one(parts, how, begin) if alone else None


def _span(path: str | Path, how: CheckOptions, span: Span) -> Report:
    return replace(check([path], replace(how, span=span)), judged=())


def _so_far(path: str | Path, parts: Sequence[Report], shares: int) -> str:
    events = sum(one.events for one in parts)
    return f"{path}: {len(parts)} of {shares} shares, {events:,} events judged"


def _as_one(parts: Sequence[Report], how: CheckOptions, begin: float) -> Report:
    inputs, seconds = (merge_shares([part.inputs[0] for part in parts]),), time.perf_counter() - begin
    return replace(merge_reports(parts, how.explained), inputs=inputs, seconds=seconds)
