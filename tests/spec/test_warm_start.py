"""The archive of TLC's classes is made where the runtime can, is used, and changes no result."""

from pathlib import Path

import pytest

from tidegauge.spec.tlc.models import find_model, run_model
from tidegauge.spec.tlc.tlc import TlcStart, warm_start
from tidegauge.util.java import Java, find_java


@pytest.mark.tlc
def test_a_run_from_the_archive_gives_what_is_pinned(tmp_path: Path) -> None:
    """The classes are in a file, a later JVM takes it, and a model gives the same as without."""
    flags = warm_start(find_java(), tmp_path)
    assert all((tmp_path / "tlc.archive").is_file() for _ in flags)
    comparison = run_model(find_model("ReachDeposedLeader"), start=TlcStart(warm=flags))
    assert comparison.ok, str(comparison)


def test_a_runtime_that_makes_none_is_started_as_before(tmp_path: Path) -> None:
    """No archive, no flags."""
    path = tmp_path / "java"
    path.write_text("#!/bin/sh\nexit 1\n")
    path.chmod(0o755)
    assert warm_start(Java(path, 17, "test"), tmp_path) == ()


@pytest.mark.parametrize(
    ("version", "make", "use"), [(17, "ArchiveClassesAtExit", "SharedArchiveFile"), (25, "AOTCacheOutput", "AOTCache")]
)
def test_the_flags_are_those_of_the_runtime(tmp_path: Path, version: int, make: str, use: str) -> None:
    """One pair of flags up to Java 24, another from 25 on; a fake runtime writes what it is told to."""
    path = tmp_path / "java"
    path.write_text(f'#!/bin/sh\nfor a do case "$a" in -XX:{make}=*) echo made > "${{a#*=}}";; esac; done\n')
    path.chmod(0o755)
    assert warm_start(Java(path, version, "test"), tmp_path) == (f"-XX:{use}={tmp_path / 'tlc.archive'}",)
