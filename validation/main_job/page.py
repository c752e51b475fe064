"""The main job as one offline HTML page: the steps, their cases, and the failures that the captures must show."""

from collections.abc import Sequence
from pathlib import Path

from tidegauge.conformance.report.html import PageHead, environment, failure_cards, judged_by, render_page
from tidegauge.conformance.report.timeline import Timelines
from validation.main_job.job import StepOutcome, exit_code

TEMPLATE = Path(__file__).with_name("page.html")


def write_job_page(outcomes: Sequence[StepOutcome], path: Path) -> None:
    """Write the page to a file."""
    path.write_text(job_page(outcomes), encoding="utf-8")


def job_page(outcomes: Sequence[StepOutcome]) -> str:
    """Return the page of a job's outcomes."""
    verdict, verdict_class = {0: ("PASS", "pass"), 1: ("FAIL", "fail")}.get(exit_code(outcomes), ("SUITE ERROR", "fail"))
    explanations = [explanation for outcome in outcomes for explanation in outcome.result.explanations]
    cases = sum(len(outcome.result.cases) for outcome in outcomes)
    seconds = sum(outcome.seconds for outcome in outcomes)
    summary = f"{len(outcomes)} steps, {cases} cases, {seconds:.0f} s"
    configs = judged_by(explanation.config for explanation in explanations)
    timelines = Timelines()
    return render_page(
        environment().from_string(TEMPLATE.read_text(encoding="utf-8")),
        PageHead("Tidegauge conformance", verdict, verdict_class, summary, configs),
        timelines,
        outcomes=outcomes,
        cards=failure_cards(explanations, timelines),
    )
