"""The play of the Dockerfile: what it does without root, and what it refuses."""

from pathlib import Path

import pytest

from validation.dockerfile import ROOT, instructions, play


def test_every_instruction_of_our_dockerfile_is_known(tmp_path: Path) -> None:
    """Those that run nothing are played; a second stage takes from the first."""
    steps = instructions((ROOT / "Dockerfile").read_text(encoding="utf-8"))
    assert {name for name, _ in steps} == {"FROM", "COPY", "RUN", "ENV", "USER", "WORKDIR", "ENTRYPOINT", "CMD"}
    (tmp_path / "base" / "opt" / "tidegauge").mkdir(parents=True)
    image = play([step for step in steps if step[0] not in ("RUN", "CMD")], tmp_path / "base", tmp_path)
    assert (tmp_path / "build" / "source" / "pyproject.toml").exists()
    assert (tmp_path / "build" / "source" / "tidegauge" / "catalog.toml").exists()
    assert (image.root / "opt" / "tidegauge").is_dir()
    assert not (image.root / "source").exists()
    assert (image.user, image.folder, image.entry) == ("10001:10001", "/work", ["tidegauge"])
    assert image.environment["PATH"].startswith("/opt/tidegauge/bin:/usr/local/sbin:")


def test_an_instruction_that_is_not_known_is_refused(tmp_path: Path) -> None:
    steps = instructions("# a comment\nFROM debian\nHEALTHCHECK CMD \\\n  true\n")
    assert steps == [("FROM", "debian"), ("HEALTHCHECK", "CMD    true")]
    (tmp_path / "base").mkdir()
    with pytest.raises(SystemExit, match="seen HEALTHCHECK"):
        play(steps, tmp_path / "base", tmp_path)
