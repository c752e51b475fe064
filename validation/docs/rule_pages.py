"""A page of the site for each rule: what it says, a trace that breaks it with what the judge says, and a scenario, played.

Rules of this file

1. The trace is the first shortest of the pinned corpus of which the judge, asked when the page is made, says that it breaks
   the rule; one that breaks nothing else is preferred. A rule without such a trace is an error.
2. The scenario is the first shortest that `shows:` the rule. `tidegauge scenario` and its tests play the same file.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path

import tidegauge as tg
from tests.mutation.kernel_corpus import PINS, traces
from tidegauge.conformance.judge.rulebook import Rule, rulebook
from tidegauge.traces.formats import ndjson

SCENARIOS = Path(__file__).resolve().parents[2] / "tidegauge" / "conformance" / "scenarios"
_SHOWS = re.compile(r"^# shows: (.*)$", re.MULTILINE)


def rule_page(rule: Rule) -> Iterator[str]:
    """Yield the lines of a rule's page."""
    trace = breaking_trace(rule.id)
    yield from (f"# {rule.id}", "", rule.sentence, "")
    yield from (f"If it is broken: {rule.means}", "") if rule.means else ()
    yield from (f"Level: {rule.level}." + (f" Kafka: `{rule.kafka}`." if rule.kafka else ""), "")
    failure = next((each for each in tg.check(trace).failures if each.rule == rule.id), None)
    if failure is None:
        raise SystemExit(f"{__name__}: expected that the trace {trace.name} breaks {rule.id}; seen no such failure")
    yield from ("## A trace that breaks it", "", "```json")
    yield from (re.sub(r',"at":"[^"]*"', "", line) for line in ndjson.lines(trace))
    yield from ("```", "", "What the judge says of it:", "", "```text", failure.means)
    yield from (f"  {cause.says}" for cause in failure.because)
    yield from ("```", "")
    scenario = scenarios().get(rule.id)
    if scenario is not None:
        yield from ("## A scenario, played", "", f"`tidegauge scenario tidegauge/conformance/scenarios/{scenario.name}`", "")
        yield from ("```text", scenario.read_text(encoding="utf-8").rstrip(), "```", "")


def breaking_trace(rule: str) -> tg.Trace:
    """Return the shortest trace of the corpus that breaks a rule."""
    broken = {name: rules for name, _, *rules in map(str.split, PINS.read_text(encoding="utf-8").splitlines())}
    if rule == "SEQ-01":
        # It is about the lines of a trace: one comes twice.
        trace = min(
            (trace for trace in traces() if broken[trace.name] == ["passes"] and (trace.events[-1].seq or 0) > 0),
            key=lambda trace: len(trace.events),
        )
        return replace(trace, events=(*trace.events, trace.events[-1]))
    candidates = [trace for trace in traces() if rule in broken[trace.name]]
    return min(candidates, key=lambda trace: (len(broken[trace.name]), len(trace.events)))


@cache
def scenarios() -> Mapping[str, Path]:
    """Return the scenario of each rule that has one."""
    by_rule: dict[str, Path] = {}
    for path in sorted(SCENARIOS.glob("*.txt"), key=lambda path: (path.stat().st_size, path.name)):
        for shown in _SHOWS.findall(path.read_text(encoding="utf-8")):
            for rule in re.split(r",\s*", shown.strip()):
                if rule in rulebook():
                    by_rule.setdefault(rule, path)
    return by_rule
