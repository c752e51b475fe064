"""The main job as one offline HTML page: the steps, their cases, and the failures that the captures must show."""

from collections.abc import Sequence
from html import escape
from pathlib import Path

from tidegauge.conformance.job.job import StepOutcome, exit_code
from tidegauge.conformance.judging.explain import Explanation
from tidegauge.conformance.judging.report.html import asset, broken, frame, judged_by
from tidegauge.conformance.judging.report.timeline import Timelines
from tidegauge.conformance.judging.verdicts import Verdict

TITLE = "Tidegauge conformance"


def write_job_page(outcomes: Sequence[StepOutcome], path: Path) -> None:
    """Write the page."""
    path.write_text(job_page(outcomes), encoding="utf-8")


def job_page(outcomes: Sequence[StepOutcome]) -> str:
    """The whole page."""
    code = exit_code(outcomes)
    verdict = {0: "PASS", 1: "FAIL"}.get(code, "SUITE ERROR")
    shown: list[Explanation] = [one for outcome in outcomes for one in outcome.result.explanations]
    cases = sum(len(outcome.result.cases) for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    lines = Timelines()
    main = asset("job.html").format(
        steps="".join(_step_row(outcome) for outcome in outcomes),
        layout="beside" if shown else "",
        hidden="" if shown else "hidden",
        failures=len(shown),
        said=broken(shown, lines),
        viewer=asset("viewer.html"),
        cases="".join(_cases(outcome) for outcome in outcomes),
    )
    summary = f"{len(outcomes)} steps, {cases} cases, {seconds:.0f} s"
    return frame(
        TITLE, (verdict, "pass" if code == 0 else "fail"), summary, judged_by(one.config for one in shown), main, lines
    )


def _step_row(outcome: StepOutcome) -> str:
    kind = "pass" if outcome.verdict is Verdict.PASS else "fail"
    return (
        f'<tr class="{kind}"><td>{escape(outcome.step)}</td><td class="verdict">{outcome.verdict.value}</td>'
        f"<td>{outcome.seconds:.1f}</td><td>{escape(outcome.result.says)}</td></tr>"
    )


def _cases(outcome: StepOutcome) -> str:
    rows = "".join(
        f'<tr class="{"pass" if case.passed else "fail"}"><td>{escape(case.name)}</td>'
        f'<td class="verdict">{"PASS" if case.passed else "FAIL"}</td><td>{escape(case.says)}</td></tr>'
        for case in outcome.result.cases
    )
    return (
        f"<section><h2>{escape(outcome.step)} <small>{len(outcome.result.cases)} cases</small></h2>"
        "<table><thead><tr><th>case</th><th>verdict</th><th>what was found</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )
