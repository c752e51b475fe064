"""A process that ended in order leaves an archive of its classes, which later ones map; nothing else comes of it."""

import subprocess
from pathlib import Path

import pytest

from tidegauge.drive.processes.class_archive import ClassArchive
from tidegauge.drive.processes.process import RUNTIME
from tidegauge.spec.checker.java import Java, find_java


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    for name in ("java", "one.jar"):
        (tmp_path / name).write_text(name)
    return tmp_path


def of(place: Path, home: str, version: int = 17) -> ClassArchive:
    """That of a process in its own folder."""
    (place / home).mkdir(exist_ok=True)
    return ClassArchive(Java(place / "java", version, "test"), place, place / home)


def file_in(archive: ClassArchive, flag: str) -> Path:
    (given,) = archive.flags
    assert given.startswith(f"-XX:{flag}="), given
    return Path(given.partition("=")[2])


@pytest.mark.parametrize(
    ("version", "make", "use"), [(17, "ArchiveClassesAtExit", "SharedArchiveFile"), (25, "AOTCacheOutput", "AOTCache")]
)
def test_what_a_process_leaves_is_mapped_by_the_next_ones(place: Path, version: int, make: str, use: str) -> None:
    first = of(place, "first", version)
    file_in(first, make).write_bytes(b"classes")
    first.keep()
    for archive in (first, of(place, "second", version)):
        assert file_in(archive, use).read_bytes() == b"classes"
    assert not list((place / "first").iterdir())


def test_a_process_that_was_killed_leaves_none(place: Path) -> None:
    first = of(place, "first")
    first.keep()
    assert file_in(first, "ArchiveClassesAtExit").parent == place / "first"


@pytest.mark.parametrize("name", ["java", "one.jar", "two.jar"])
def test_other_jars_and_another_runtime_have_an_archive_of_their_own(place: Path, name: str) -> None:
    first = of(place, "first")
    file_in(first, "ArchiveClassesAtExit").write_bytes(b"classes")
    first.keep()
    (place / name).write_text("another")
    file_in(of(place, "second"), "ArchiveClassesAtExit")


def test_what_cannot_be_kept_is_made_again(place: Path) -> None:
    (place / "cache").write_text("a file where the cache should be")
    first = of(place, "first")
    file_in(first, "ArchiveClassesAtExit").write_bytes(b"classes")
    first.keep()
    file_in(first, "ArchiveClassesAtExit")


def test_without_a_runtime_that_is_there_nothing_is_asked_for(place: Path) -> None:
    (place / "java").unlink()
    assert of(place, "first").flags == ()


@pytest.mark.tlc
def test_a_runtime_starts_with_the_flags_that_make_an_archive_and_with_those_that_map_it(place: Path) -> None:
    """Beside those of every driven process. Java 25 refuses some of them together."""
    java = find_java()
    (place / "one.jar").unlink()
    given = []
    for home in ("first", "second"):
        (place / home).mkdir()
        archive = ClassArchive(java, place, place / home)
        given += archive.flags
        done = subprocess.run(
            [java.path, *RUNTIME, *archive.flags, "-version"], capture_output=True, text=True, timeout=120, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        archive.keep()
    flags = [flag.partition("=")[0] for flag in given]
    if flags[0] == flags[1]:
        pytest.skip("this runtime leaves no archive")
    assert flags == [f"-XX:{name}" for name in java.archive_flags]
