"""What has to be the same: a report on bytes that come in pieces, and the one of `check` on all of them."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any

from tests.conformance.hand import TWO
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.follow.loop import News, Publish
from tidegauge.conformance.follow.ndjson import NdjsonSource
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.schema import Config, Event, Trace
from validation.random_runs import CASES
from validation.trace_mutants import mutants

SEED = 2026


def text_of(*traces: Trace) -> bytes:
    return "".join(f"{line}\n" for trace in traces for line in ndjson.lines(trace)).encode()


def hand(events: Sequence[Event], config: Config = TWO, name: str = "hand") -> Trace:
    return Trace(name, "t-0", config, tuple(events))


class FedNdjson(NdjsonSource):
    """A source that has what it is fed."""

    def __init__(self, name: str, publish: Publish) -> None:
        super().__init__(name, CheckOptions(situations=True), publish)

    def poll(self) -> bool:
        return False


def follow(data: bytes, places: Sequence[int] = (), name: str = "f") -> tuple[Report, list[News]]:
    """The report on `data`, in those pieces, and what was news."""
    news = list[News]()
    one = FedNdjson(name, news.append)
    ends = [0, *sorted(place % (len(data) + 1) for place in places), len(data)]
    for begin, end in pairwise(ends):
        one.feed(data[begin:end])
    one.end()
    return one.report(), news


def said(report: Report) -> dict[str, Any]:
    """What a report says, but for the time it took, the name of its input, and what came behind a failure."""
    return {
        "verdict": (report.verdict, report.exit_code),
        "rules": [
            (one.rule.id, one.verdict, replace(one.tally, missing=()), set(one.tally.missing)) for one in report.rules
        ],
        "failures": (report.failures, sorted((e.rule.id, e.trace, e.expected, e.actual, e.at) for e in report.explanations)),
        "notes": sorted(report.notes),
        "problems": report.problems,
        "missing": report.missing,
        "read": (report.traces, report.events),
        # Where a situation was seen first: of traces that are mixed, the first one that came, or the first trace's.
        "exercised": [({key: one.situations[key].times for key in one.situations}, one.profiles) for one in report.inputs],
    }


@cache
def whole(data: bytes, folder: Path) -> Report:
    """What `check` says of the same bytes, called by the same name."""
    path = folder / "whole.ndjson"
    path.write_bytes(data)
    report = check([path], CheckOptions(situations=True))
    path.unlink()
    return report


def same(data: bytes, places: Sequence[int], folder: Path) -> list[News]:
    """The report must not depend on how the bytes came; the news, in the order of the report."""
    seen, news = follow(data, places, str(folder / "whole.ndjson"))
    assert said(seen) == said(whole(data, folder))
    return news


def some_runs() -> list[Trace]:
    """Runs of some generations, and wrong ones."""
    random = Random(SEED)
    found = []
    for number, case in enumerate(CASES[::4]):
        (run,) = impl_walks(1, bounds=case.bounds, profile=case.profile, steps=100, seed=SEED)
        run = replace(run, name=f"{number}", config=replace(run.config, source=f"{number}"), events=numbered(run.events))
        found += [run, *(replace(one.trace, name=f"{number}") for one in random.sample(list(mutants(run)), 3))]
    return found
