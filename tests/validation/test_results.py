"""Artefacts of --results, and the page that is made of many: the same files in any order give the same bytes."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from tidegauge import EXAMPLES
from tidegauge.cli.main import main
from tidegauge.conformance.report.results import FAIL, NOT_SUPPORTED, PASS, UNDECIDED, counts_of, results_schema
from tidegauge.drive.coverage import read_exercised
from tidegauge.util.errors import UsageError
from validation.results.matrix import histories, matrix_page, read_artefacts
from validation.results.own_results import RUNS, of_third_party
from validation.third_parties.results import CheckResult, ThirdPartyResult, read_results

SERVE = (sys.executable, "-m", "tidegauge.drive.transports.serve")


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run a command with --results; return its exit code and the artefact."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")

    def run(*command: str, name: str = "r.json") -> tuple[int, dict[str, Any]]:
        file = tmp_path / name
        code = main([command[0], "--quiet", "--results", str(file), *command[1:]])
        return code, json.loads(file.read_text(encoding="utf-8"))

    return run


def artefact(name: str, version: str, date: str, **rules: str) -> dict[str, Any]:
    """Return an artefact with these verdicts, FENCE_01 for FENCE-01."""
    return {
        "results": 1,
        "tool": {"name": "tidegauge", "version": "1.0.0", "suite": "2026.12"},
        "command": "probe",
        "target": {"name": name, "version": version},
        "date": date,
        "environment": {"python": "3.11.7", "system": "Linux", "machine": "x86_64"},
        "verdict": "fail" if FAIL in rules.values() else "pass",
        "exit_code": int(FAIL in rules.values()),
        "rules": {key.replace("_", "-"): counts_of([verdict])._asdict() for key, verdict in rules.items()},
        "failures": [],
        "coverage": None,
    }


def test_a_check_and_a_drive_write_the_same_keys(results: Any) -> None:
    """By the schema; the date is that of SOURCE_DATE_EPOCH, and the same run gives the same artefact."""
    code, checked = results("check", str(EXAMPLES / "golden/fails-hw-not-clamped.ndjson"), "--target", "mine@1.2")
    assert code == checked["exit_code"] == 1
    assert checked["target"] == {"name": "mine", "version": "1.2"}
    assert checked["rules"]["HW-05"]["verdict"] == FAIL
    assert checked["rules"]["HW-05"]["failed"] == 1
    assert checked["verdict"] == FAIL
    code, driven = results("drive", "--smoke", "--", *SERVE, "--profile", "safe")
    assert (code, driven["verdict"], driven["date"]) == (0, PASS, "1970-01-02")
    assert driven["rules"]["HW-05"]["verdict"] == PASS
    assert driven.keys() == checked.keys() == set(results_schema()["required"])
    for data in (checked, driven):
        jsonschema.validate(data, results_schema())
    assert results("drive", "--smoke", "--", *SERVE, "--profile", "safe")[1] == driven


def test_a_wrong_broker_fails_the_rule_that_decides_there(results: Any, tmp_path: Path) -> None:
    """And what it exercised up to there can be added up."""
    code, wrong = results("drive", "--graph", "small", "--", *SERVE, "--fault", "hw-not-clamped")
    assert code == 1
    assert {
        rule.partition("-")[0] for rule, counts in wrong["rules"].items() if counts["failed"] or counts["undecided"]
    } == {"HW"}
    assert wrong["rules"]["FENCE-01"]["verdict"] == PASS
    assert wrong["failures"][0].startswith("DIFFERS after 4 steps, in hw\n")
    assert read_exercised(tmp_path / "r.json").situations


def test_a_broker_that_fences_nobody_passes_no_rule_about_fencing(results: Any) -> None:
    """The function that decides there has no rule of its own: it stands for the one that it calls."""
    code, wrong = results("drive", "--graph", "small", "--", *SERVE, "--fault", "never-fenced")
    assert code == 1
    assert {rule for rule, counts in wrong["rules"].items() if counts["undecided"]} >= {"FENCE-01", "FENCE-02"}


def test_the_worst_verdict_on_a_rule_counts() -> None:
    """What passes says more than what the target does not offer."""
    assert counts_of([PASS, FAIL, UNDECIDED]) == (FAIL, 1, 1, 1)
    assert counts_of([NOT_SUPPORTED, PASS]).verdict == PASS
    assert counts_of([NOT_SUPPORTED]).verdict == NOT_SUPPORTED


def test_checks_about_no_rule_count_for_their_group() -> None:
    """As `probe.versions`."""
    checks = (CheckResult("versions.fetch", "", FAIL, "no"), CheckResult("fencing.fetch-equal", "FENCE-01", PASS, ""))
    made = of_third_party(ThirdPartyResult("kfake", "kfake v1 with x", "2026-01-02", 1, checks))
    jsonschema.validate(made, results_schema())
    assert made["target"] == {"name": "franz-go's kfake", "version": "v1"}
    assert made["date"] == "2026-01-02"
    assert {name: counts["verdict"] for name, counts in made["rules"].items()} == {"probe.versions": FAIL, "FENCE-01": PASS}


def test_the_last_run_is_the_column_and_the_others_are_history() -> None:
    """Versions are ordered as numbers, whatever the order of the files; a rule that changed between runs is named."""
    old = artefact("b", "1.9", "2026-01-01", FENCE_01=PASS, HW_01=PASS)
    new = artefact("b", "1.10", "2026-01-01", FENCE_01=FAIL, HW_01=PASS)
    (target,) = histories([new, old])
    assert [run.version for run in target.runs] == ["1.9", "1.10"]
    assert target.last.changed == ["FENCE-01"]
    assert target.unsteady() == ["FENCE-01"]
    page = matrix_page([new, old])
    assert page == matrix_page([old, new])
    cells = re.findall(r"<td class=.cell[^>]*>", page)
    assert len(cells) > 1
    assert all("data-head=" in cell for cell in cells), "on a phone each cell is a line, without the row of names"


def test_foreign_texts_are_no_html() -> None:
    """Anybody may send an artefact."""
    page = matrix_page([artefact("<script>x</script>", "1", "2026-01-01", FENCE_01=PASS)])
    assert "<script>x" not in page
    assert "&lt;script&gt;x" in page


def test_what_is_no_artefact_is_refused(tmp_path: Path) -> None:
    """With the file and the place in it."""
    file = tmp_path / "x.json"
    for text, seen in (
        ("{", "seen"),
        ("[]", "at the whole"),
        (json.dumps({**artefact("b", "1", "x"), "rules": 7}), "at rules"),
    ):
        file.write_text(text, encoding="utf-8")
        with pytest.raises(UsageError, match=seen):
            read_artefacts([file])
    with pytest.raises(UsageError, match="seen none"):
        read_artefacts([])


def test_ours_are_shown() -> None:
    """Each third party that was probed, those not looked up in their sources too; every file is by the schema."""
    artefacts = read_artefacts([RUNS])
    probed = {result.party for result in read_results()}
    targets = histories(artefacts)
    assert sum(target.command == "probe" for target in targets) == len(probed | {"krafka", "noida-db", "rivine"})
    page = matrix_page(artefacts)
    assert all(run.version in page for target in targets for run in target.runs)
