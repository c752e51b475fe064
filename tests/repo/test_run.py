"""`./run ENV [ARGS]`, with a stand-in for tox that says what it is given."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    version = re.findall("^tox_version=(.*)$", (ROOT / "run").read_text(), re.MULTILINE)
    tox = tmp_path / ".venv" / "bin" / "tox"
    tox.parent.mkdir(parents=True)
    tox.write_text(f'#!/bin/sh\n[ "$1" = --version ] && echo {version[0]} || printf \'%s\\n\' "$@"\n')
    tox.chmod(0o755)
    shutil.copy(ROOT / "run", tmp_path)
    return tmp_path


def given(checkout: Path, *arguments: str) -> list[str]:
    run = [str(checkout / "run"), *arguments]
    return subprocess.run(run, check=True, capture_output=True, text=True).stdout.splitlines()


def test_an_environment_without_arguments_has_those_that_tox_ini_gives_it(checkout: Path) -> None:
    assert given(checkout, "models") == ["run", "--quiet", "-e", "models"]


def test_arguments_go_to_the_environment_as_they_stand(checkout: Path) -> None:
    assert given(checkout, "models", "large", "-k", "two words") == [
        *("run", "--quiet", "-e", "models"),
        *("--", "large", "-k", "two words"),
    ]
