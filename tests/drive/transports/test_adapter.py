"""The Python adapter over its toy broker conforms as far as it goes; the bug planted in it is found and named."""

import json
import sys
from pathlib import Path

import pytest

from tidegauge.cli.main import main

ADAPTER = Path(__file__).parents[3] / "tidegauge" / "drive" / "adapters" / "python" / "adapter.py"
DRIVE = ["drive", "--quiet", "--graph", "small", "--walks", "40"]


def test_an_adapter_is_no_more_than_sixty_lines() -> None:
    assert len(ADAPTER.read_text(encoding="utf-8").splitlines()) <= 60


def test_the_toy_broker_conforms_and_what_it_lacks_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """And what was recorded of it holds without it."""
    place = tmp_path / "toy.gz"
    code = main([*DRIVE, "--record", str(place), "--", sys.executable, str(ADAPTER)])
    said = capsys.readouterr().out
    assert code == 0, said
    assert "toy CONFORMS to safe: no step differs" in said
    fetches = "fetch_ineligible, fetch_and_wait, fetch_in_session, fetch_in_session_and_wait, fetch_others"
    assert f"cannot be given: {fetches}, list_offsets, delete_records" in said
    assert "does not report: produced, fetched, log_start" in said
    assert main(["recheck", "--quiet", str(place)]) == 0
    assert main(["recheck", "--quiet", str(place), "--release", "3.4.0"]) == 1


def test_the_planted_bug_is_told_with_its_name(capsys: pytest.CaptureFixture[str]) -> None:
    code = main([*DRIVE, "--", sys.executable, str(ADAPTER), "--bug"])
    said = capsys.readouterr().out
    assert code == 1
    assert "! hw" in said
    assert "HandleDivergingResponse: " in said
    assert "same as   applies_diverging=on" in said


def test_a_workflow_gets_annotations_and_a_badge(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An annotation is one line, whatever the story has in it; without a workflow there is none."""
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    place = tmp_path / "badge.json"
    smoke = ["drive", "--quiet", "--smoke", "--badge", str(place), "--", sys.executable, str(ADAPTER)]
    assert main([*smoke, "--bug"]) == 1
    (line,) = [line for line in capsys.readouterr().out.splitlines() if line.startswith("::error ")]
    assert line.startswith("::error title=toy DIFFERS after 5 steps%2C in hw::")
    assert "%0A  HandleDivergingResponse: " in line
    assert json.loads(place.read_text(encoding="utf-8")) == {
        "schemaVersion": 1, "label": "tidegauge", "message": "differs (safe, 8 steps)", "color": "red"
    }  # fmt: skip
    monkeypatch.delenv("GITHUB_ACTIONS")
    assert main(smoke) == 0
    assert "::error" not in capsys.readouterr().out
    assert json.loads(place.read_text(encoding="utf-8"))["color"] == "brightgreen"


def test_ten_steps_and_bad_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--quiet", "--smoke", "--", sys.executable, str(ADAPTER)]) == 0
    assert main(["drive", "--quiet", "--smoke", "--", "/no/such/program"]) == 2
    assert main(["drive", "--quiet", "--graph", "four", "--", sys.executable, str(ADAPTER)]) == 2
    assert main(["drive", "--quiet", "--smoke", "--record", str(ADAPTER.parent), "--", sys.executable, str(ADAPTER)]) == 2
    assert main(["recheck", "--quiet", str(ADAPTER)]) == 2
    assert "expected a gzipped transcript" in capsys.readouterr().err
