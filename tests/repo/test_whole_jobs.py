"""A whole job begins without what it is to make, and one that fails has no figure."""

import sys
from pathlib import Path

import pytest

from benchmarks import whole_jobs
from benchmarks.whole_jobs import JOBS, Job, main, without


def test_a_job_finds_all_of_the_cache_but_what_it_is_to_make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """And leaves the user's own as it was."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    mine = tmp_path / "tidegauge"
    for name in ("covers", "jars"):
        (mine / name).mkdir(parents=True)
        (mine / name / "file").write_text(name)
    with without(JOBS["kafka"].from_nothing) as environment:
        theirs = Path(environment["XDG_CACHE_HOME"]) / "tidegauge"
        assert [path.name for path in theirs.iterdir()] == ["jars"]
        assert (theirs / "jars" / "file").read_text() == "jars"
    assert not theirs.exists()
    assert sorted(path.parent.name for path in mine.glob("*/file")) == ["covers", "jars"]


def test_a_job_that_fails_has_no_figure(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(whole_jobs, "JOBS", {"conformance": Job(("no.such.module",), 5)})
    monkeypatch.setattr(sys, "argv", ["whole_jobs", "conformance"])
    with pytest.raises(SystemExit, match=r"expected that no\.such\.module passes; seen exit code 1"):
        main()
    assert "minutes" not in capsys.readouterr().out
