"""Where the machine code of the judge is kept, and that nothing depends on it but time."""

import os
import subprocess
import sys
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

import numpy as np
import pytest
from numba import types

from tidegauge.conformance.engine import compiled, precompile
from tidegauge.conformance.judge import fields, state
from tidegauge.impl import rules


def test_the_machine_code_is_kept_in_the_users_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a directory of the user's own that is named after everything the code is made from."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    directory = compiled.cache_directory()
    assert directory is not None
    assert directory.parent == tmp_path / "tidegauge"
    assert directory.stat().st_mode & 0o077 == 0
    assert not compiled.is_ready()


def test_other_code_has_another_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Machine code made from another text of a rule is never loaded: its directory has another name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = compiled.cache_directory()
    swapped = FunctionType(
        (lambda follower_epoch, leader_epoch: follower_epoch <= leader_epoch).__code__, vars(rules), "other"
    )
    monkeypatch.setattr(rules, "check_leader_epoch", swapped)
    assert compiled.cache_directory() != before


@pytest.mark.parametrize(("module", "name"), [(state, "FINAL"), (fields, "ROLE")])
def test_another_constant_has_another_place(
    module: ModuleType, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Constants are compiled in, a module's own and those it names in another: they are part of the name."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    before = compiled.cache_directory()
    assert isinstance(getattr(module, name), int | tuple)
    monkeypatch.setattr(module, name, (1, 2) if name == "FINAL" else 77)
    assert compiled.cache_directory() != before


def fingerprint_elsewhere(**environment: str) -> str:
    code = "from tidegauge.conformance.engine.compiled import fingerprint; print(fingerprint())"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env={**os.environ, **environment}
    )
    return done.stdout.strip()


def test_another_process_gives_it_the_same_name() -> None:
    """Whatever its seed of hashes: what one process keeps another one finds."""
    assert fingerprint_elsewhere(PYTHONHASHSEED="1") == fingerprint_elsewhere(PYTHONHASHSEED="2") == compiled.fingerprint()


@pytest.mark.parametrize("setting", [{"NUMBA_CPU_NAME": "generic"}, {"NUMBA_CPU_FEATURES": "+sse2"}])
def test_another_processor_has_another_place(setting: dict[str, str]) -> None:
    assert fingerprint_elsewhere(**setting) != compiled.fingerprint()


def test_a_place_that_cannot_be_made_is_passed_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file where the directory should be: the next place is taken, or none."""
    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path))
    directory = compiled.cache_directory()
    assert directory is not None
    assert tmp_path / ".cache" in directory.parents


def test_every_function_of_the_kernel_has_types_the_compiler_knows() -> None:
    """A signature is read from the annotations: none may be missing."""
    for module in compiled.MODULES[1:]:
        for function in compiled.functions_of(module).values():
            assert len(compiled.signature(function)) == function.__code__.co_argcount


def test_functions_that_stay_calls_are_functions_of_the_kernel() -> None:
    """A name that stands for none any more would leave its successor inlined."""
    assert {name for module in compiled.MODULES for name in compiled.functions_of(module)} >= compiled.RARE


@pytest.fixture
def begun(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """The processes that are begun to compile into a cache that is empty."""
    processes: list[subprocess.Popen[bytes]] = []
    begin = subprocess.Popen

    def noted(*given: Any, **named: Any) -> subprocess.Popen[bytes]:
        processes.append(begin(*given, **named))
        return processes[-1]

    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(subprocess, "Popen", noted)
    return processes


def test_what_is_not_compiled_ahead_in_time_is_given_up(begun: list[subprocess.Popen[bytes]]) -> None:
    """Also where the rest fails: no process is left behind."""

    def fails() -> None:
        with precompile.compiled_ahead():
            assert begun[0].poll() is None
            raise OSError("no disk")

    with pytest.raises(OSError, match="no disk"):
        fails()
    assert begun[0].returncode != 0


def test_what_is_ready_is_not_compiled_ahead(begun: list[subprocess.Popen[bytes]]) -> None:
    """It is there for the next job too."""
    directory = compiled.cache_directory()
    assert directory is not None
    (directory / f"judge_kernel.{compiled.TOP}-kept.1.nbc").touch()
    with precompile.compiled_ahead():
        assert begun == []


@pytest.mark.parametrize(("options", "counts"), [({}, True), (compiled.UNCOUNTED, False)])
def test_references_are_not_counted(options: dict[str, Any], counts: bool) -> None:
    """Of arrays that are taken out of a tuple."""

    def largest(columns: Any) -> int:
        found = columns[0]
        for column in columns:
            if column[0] > found[0]:
                found = column
        return int(found[0])

    made: Any = compiled.jit(largest, (types.UniTuple(compiled.COLUMN, 3),), False, **options)  # type: ignore[no-untyped-call]
    (text,) = made.inspect_llvm().values()
    assert ("NRT_incref" in text) == counts
    columns = tuple(np.arange(3) + at for at in (1, 7, 2))
    for column in columns:
        column.flags.writeable = False
    assert made(columns) == 7
