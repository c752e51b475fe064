"""What is shipped to workers: the package, and machine code for those whose processor is the driver's."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tidegauge.conformance.engine import machine_code
from tidegauge.conformance.engine.compiled import fingerprint
from tidegauge.spark_check.packaging import ZIP, project_zip

MADE = {"f.nbi": b"index", "f.1.nbc": b"code"}


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A zip with machine code, alone in a directory, as an executor finds it."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "driver"))
    machine_code.keep(fingerprint(), MADE)
    (tmp_path / "executor").mkdir()
    return project_zip(tmp_path / "executor").parent


def taken(shipped: Path, **environment: str) -> dict[str, bytes]:
    """What a worker keeps that runs where the zip lies, with nothing but the zip on its path."""
    code = (
        "import sys; sys.path.remove('')\n"
        "import tidegauge; assert 'tidegauge.zip' in tidegauge.__file__, tidegauge.__file__\n"
        "from tidegauge.spark_check.packaging import take_machine_code; take_machine_code()"
    )
    cache = shipped / "cache"
    own = {**os.environ, "PYTHONPATH": ZIP, "XDG_CACHE_HOME": str(cache), **environment}
    subprocess.run([sys.executable, "-c", code], check=True, env=own, cwd=shipped)
    return {file.name: file.read_bytes() for file in cache.rglob("*.nb?")}


def test_a_worker_like_the_driver_takes_the_machine_code(shipped: Path) -> None:
    assert taken(shipped) == MADE


def test_a_worker_with_another_processor_takes_none_of_it(shipped: Path) -> None:
    """And so compiles its own."""
    assert taken(shipped, NUMBA_CPU_NAME="generic") == {}
