"""The main job: steps in a fixed order, one line each while they run, one line with the verdict at the end.

A step is a function that returns a StepResult. A step that raises is a SUITE ERROR: the job goes on with the next step and
ends with exit code 2, since a suite that broke has shown nothing about a broker.
"""

import json
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.explain.explain import Explanation
from tidegauge.util.junit import JUnitCase, JUnitOutcome, JUnitSuite, write_junit_xml
from tidegauge.util.workers import Echo


@dataclass(frozen=True)
class JobCase:
    """One thing that a step checked: a model, a proof group, a capture, a fault."""

    name: str
    passed: bool
    says: str
    seconds: float = 0.0


@dataclass(frozen=True)
class StepResult:
    """What a step found. `figures` are the numbers it measured, for the JSON report."""

    says: str
    cases: tuple[JobCase, ...]
    figures: Mapping[str, Any] = field(default_factory=dict)
    explanations: tuple[Explanation, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether all cases passed; a step that checked nothing has not."""
        return bool(self.cases) and all(case.passed for case in self.cases)


@dataclass(frozen=True)
class JobStep:
    """A step by name; `run` may report its progress through the echo that it is given."""

    name: str
    run: Callable[[Echo], StepResult]


@dataclass(frozen=True)
class StepOutcome:
    """A step with its verdict (PASS, FAIL or SUITE ERROR) and how long it took."""

    step: str
    verdict: Verdict
    result: StepResult
    seconds: float


def run_job(steps: Sequence[JobStep], echo: Echo) -> tuple[StepOutcome, ...]:
    """Run every step, whatever the others found."""
    outcomes = []
    for number, step in enumerate(steps, 1):
        echo(f"[{number}/{len(steps)}] {step.name} ...")
        outcome = _run(step, echo)
        outcomes.append(outcome)
        echo(
            f"[{number}/{len(steps)}] {step.name}: {outcome.verdict.value}, {outcome.result.says} ({outcome.seconds:.1f} s)"
        )
        for case in outcome.result.cases:
            if not case.passed:
                echo(f"      {case.name}: {case.says}")
    return tuple(outcomes)


def _run(step: JobStep, echo: Echo) -> StepOutcome:
    begin = time.perf_counter()
    try:
        result = step.run(echo)
        verdict = Verdict.PASS if result.passed else Verdict.FAIL
    # Whatever it is: the other steps still have something to show.
    except Exception as error:
        cause = "".join(traceback.format_exception(error))
        result = StepResult(f"{type(error).__name__}: {error}", (JobCase(step.name, False, cause),))
        verdict = Verdict.SUITE_ERROR
    return StepOutcome(step.name, verdict, result, time.perf_counter() - begin)


def exit_code(outcomes: Sequence[StepOutcome]) -> int:
    """Return 0 if all steps passed, 1 if one failed, 2 if the suite itself broke."""
    verdicts = {outcome.verdict for outcome in outcomes}
    if Verdict.SUITE_ERROR in verdicts or not outcomes:
        return 2
    return 1 if Verdict.FAIL in verdicts else 0


def summary_table(outcomes: Sequence[StepOutcome]) -> str:
    """Return the steps as a table for the terminal."""
    rows = [(o.step, o.verdict.value, f"{o.seconds:.1f} s", o.result.says) for o in outcomes]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    return "\n".join(
        f"{step:<{widths[0]}}  {verdict:<{widths[1]}}  {seconds:>{widths[2]}}  {says}"
        for step, verdict, seconds, says in rows
    )


def write_json(outcomes: Sequence[StepOutcome], path: Path) -> None:
    """Write all results of the job as JSON."""
    document = {
        "verdict": "conforms" if exit_code(outcomes) == 0 else "does not conform",
        "steps": [
            {
                "step": o.step,
                "verdict": o.verdict.value,
                "seconds": round(o.seconds, 3),
                "says": o.result.says,
                "figures": dict(o.result.figures),
                "cases": [
                    {"name": c.name, "passed": c.passed, "says": c.says, "seconds": round(c.seconds, 3)}
                    for c in o.result.cases
                ],
            }
            for o in outcomes
        ],
    }
    path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")


def write_junit(outcomes: Sequence[StepOutcome], path: Path) -> None:
    """Write a JUnit suite per step, in it a case per case."""
    write_junit_xml(path, "tidegauge conformance", [_junit_suite(outcome) for outcome in outcomes])


def _junit_suite(outcome: StepOutcome) -> JUnitSuite:
    # A step that raised has shown nothing about a broker, so CI sees an error, not a failure.
    not_passed = JUnitOutcome.ERROR if outcome.verdict is Verdict.SUITE_ERROR else JUnitOutcome.FAILURE
    cases = [
        JUnitCase(outcome.step, case.name, seconds=case.seconds)
        if case.passed
        # The last line, since `says` of a case that raised is a traceback, whose last line names the error.
        else JUnitCase(outcome.step, case.name, not_passed, (case.says.splitlines() or [""])[-1], case.says, case.seconds)
        for case in outcome.result.cases
    ]
    return JUnitSuite(outcome.step, cases, seconds=outcome.seconds)
