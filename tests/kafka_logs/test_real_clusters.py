"""Whole logs of clusters as they are, cut down to a partition: nothing is wrong in any, and nothing is missing."""

import tarfile
from pathlib import Path

import pytest

from tidegauge.cli.main import main

WIDE = Path(__file__).parent / "wide"
CASES = sorted(path.name.removesuffix(".tar.xz") for path in WIDE.glob("*.tar.xz"))
OPEN = frozenset({"four-fetchers", "paused-leader", "refused-after-count", "stop-follower", "stop-leader"})
"""Cases that `check` gets wrong today; remove one that it gets right."""


def case(name: str, folder: Path) -> Path:
    """A case, unpacked."""
    with tarfile.open(WIDE / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / name


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.xfail(strict=True, reason="not right yet") if name in OPEN else ())
        for name in CASES
    ],
)
def test_nothing_is_wrong_and_nothing_is_missing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict is PASS: exit 0."""
    assert main(["check", str(case(name, tmp_path))]) == 0, capsys.readouterr().out
