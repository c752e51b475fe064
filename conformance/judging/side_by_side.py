"""Logs that are too large for one process at once: their partitions in shares, judged side by side on all cores.

Rules of this file

1. A share is some of the partitions, judged from nothing but the logs: the same report comes out whatever the number of
   shares and processes. The logs are read once and taken apart into shares on disk (shares.py).
2. What was judged apart is one report: of one input if the parts are shares of it, of several if they are inputs.
"""

import os
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

from tidegauge.conformance.judging.check import EXPLAINED, How, Input, Report, check, of_all
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.progress import Echo
from tidegauge.conformance.judging.verdicts import RuleVerdict, added, rule_verdicts, run_verdict
from tidegauge.conformance.judging.workers import workers
from tidegauge.traces.kafka.lines.files import log_size, logs_in
from tidegauge.traces.kafka.lines.selection import Selection
from tidegauge.traces.kafka.lines.shares import take_apart

LARGE = 96_000_000
"""Bytes of logs from which they are judged in shares,"""

OF_A_SHARE = 16_000_000
"""of so many bytes each. In memory a share is some times as much, and one of it is there for each process."""

MANY = 1000
"""Notes and problems of one input that are kept when shares are put together."""


def check_all(
    paths: Sequence[str | Path],
    how: How,
    processes: int | None = None,
    echo: Echo = lambda _line: None,
) -> Report:
    """Judge the paths as `check` does, large logs in shares."""
    shares = [shares_of(path) for path in paths]
    if all(count == 1 for count in shares):
        return check(paths, how, echo)
    reports = []
    for path, count in zip(paths, shares, strict=True):
        if count == 1:
            reports.append(check([path], how, echo))
        else:
            reports.append(check_in_shares(path, count, how, processes, echo))
    return merged(reports, how.explained)


def shares_of(path: str | Path) -> int:
    """In how many shares the logs at a path are judged; 1 for anything else."""
    size = log_size(Path(path))
    return 1 if size < LARGE else -(-size // OF_A_SHARE)


def check_in_shares(
    path: str | Path, shares: int, how: How, processes: int | None = None, echo: Echo = lambda _line: None
) -> Report:
    """The report on one path, from as many shares of its partitions."""
    parts: list[Report] = []
    selection = replace(how.selection or Selection(), share=(0, shares))
    processes = processes or os.cpu_count() or 1
    with tempfile.TemporaryDirectory(prefix="tidegauge-shares-") as folder, workers(processes) as pool:
        selection.apart = folder
        take_apart(logs_in(Path(path)), selection, how.layout, pool)
        echo(f"{path}: read")
        for part in pool(partial(_share, path, replace(how, selection=selection)), range(shares)):
            parts.append(part)
            events = sum(one.events for one in parts)
            echo(f"{path}: {len(parts)} of {shares} shares, {events:,} events judged")
    return replace(merged(parts, how.explained), inputs=(_one_input([part.inputs[0] for part in parts]),))


def _share(path: str | Path, how: How, number: int) -> Report:
    selection = how.selection or Selection()
    selection = replace(selection, share=(number, selection.share[1]))
    return replace(check([path], replace(how, selection=selection)), judged=())


def merged(reports: Sequence[Report], explained: int = EXPLAINED) -> Report:
    """One report of several."""
    inputs = tuple(one for report in reports for one in report.inputs)
    return Report(
        inputs=inputs,
        verdict=of_all(inputs),
        rules=_rules([report.rules for report in reports]),
        explanations=_first_of_each_rule([one for report in reports for one in report.explanations])[:explained],
        failures=sum(report.failures for report in reports),
        seconds=max((report.seconds for report in reports), default=0.0),
        notes=tuple(dict.fromkeys(note for report in reports for note in report.notes)),
        judged=tuple(one for report in reports for one in report.judged),
    )


def _one_input(shares: Sequence[Input]) -> Input:
    """The input of which these are shares: what each found in the same files is said once."""
    rules = _rules([share.rules for share in shares])
    events = sum(share.events for share in shares)
    with_events = [share for share in shares if share.events] or list(shares)
    missing = tuple(dict.fromkeys(said for share in with_events for said in share.missing))
    covered = {said.rpartition(",")[0]: said for share in reversed(with_events) for said in share.covered}
    return Input(
        path=shares[0].path,
        kind=shares[0].kind,
        traces=sum(share.traces for share in shares),
        events=events,
        problems=tuple(dict.fromkeys(problem for share in shares for problem in share.problems))[:MANY],
        covered=tuple(sorted(covered.values())),
        missing=missing[:MANY],
        rules=rules,
        verdict=run_verdict(rules, events, whole=not missing),
    )


def _rules(parts: Sequence[Sequence[RuleVerdict]]) -> tuple[RuleVerdict, ...]:
    tallies = {one.rule.id: one.tally for one in parts[0]}
    for part in parts[1:]:
        tallies = {one.rule.id: added(tallies[one.rule.id], one.tally) for one in part}
    return rule_verdicts(tallies)


def _first_of_each_rule(explanations: Sequence[Explanation]) -> tuple[Explanation, ...]:
    firsts = list({one.rule.id: one for one in reversed(explanations)}.values())[::-1]
    return (*firsts, *(one for one in explanations if one not in firsts))
