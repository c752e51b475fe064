"""The main job: every step runs, whatever the others found, and the exit code says the worst."""

import json
from pathlib import Path
from xml.etree import ElementTree

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.util.workers import Echo
from validation.main_job.job import JobCase, JobStep, StepResult, exit_code, run_job, summary_table, write_json, write_junit
from validation.main_job.page import job_page


def passing(_echo: Echo) -> StepResult:
    return StepResult("all well", (JobCase("one", True, "fine"),), {"events": 7})


def failing(_echo: Echo) -> StepResult:
    return StepResult("not well", (JobCase("one", True, "fine"), JobCase("<two>", False, "expected 1, seen 2")))


def nothing(_echo: Echo) -> StepResult:
    return StepResult("nothing to check", ())


def breaking(_echo: Echo) -> StepResult:
    raise RuntimeError("no such jar")


def quiet(_line: str) -> None:
    pass


def test_exit_codes_say_the_worst() -> None:
    """0 all pass, 1 a step fails, 2 the suite broke or nothing ran."""
    assert exit_code(run_job([JobStep("a", passing)], quiet)) == 0
    assert exit_code(run_job([JobStep("a", passing), JobStep("b", failing)], quiet)) == 1
    assert exit_code(run_job([JobStep("a", breaking), JobStep("b", failing)], quiet)) == 2
    assert exit_code(()) == 2


def test_a_step_that_checked_nothing_has_not_passed() -> None:
    """No case is no evidence."""
    assert run_job([JobStep("a", nothing)], quiet)[0].verdict is Verdict.FAIL


def test_a_step_that_breaks_does_not_stop_the_others() -> None:
    """What the others find is still found, and the cause is told."""
    said: list[str] = []
    outcomes = run_job([JobStep("a", breaking), JobStep("b", passing)], said.append)
    assert [one.verdict for one in outcomes] == [Verdict.SUITE_ERROR, Verdict.PASS]
    assert any("RuntimeError: no such jar" in line for line in said)
    assert "all well" in summary_table(outcomes)


def test_reports_hold_every_case(tmp_path: Path) -> None:
    """JSON, JUnit and the page name each case; what a case says cannot break the markup."""
    outcomes = run_job([JobStep("good", passing), JobStep("bad", failing)], quiet)
    write_json(outcomes, tmp_path / "job.json")
    reported = json.loads((tmp_path / "job.json").read_text(encoding="utf-8"))
    assert reported["verdict"] == "does not conform"
    assert reported["steps"][0]["figures"] == {"events": 7}
    write_junit(outcomes, tmp_path / "job.xml")
    suites = ElementTree.parse(tmp_path / "job.xml").getroot()
    assert [suite.get("failures") for suite in suites] == ["0", "1"]
    page = job_page(outcomes)
    assert "&lt;two&gt;" in page
    assert "<two>" not in page
    assert "http" not in page.split("</style>")[1].split("<script")[0]
