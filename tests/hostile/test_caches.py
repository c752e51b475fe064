"""What is kept between runs: machine code and results (A5 to A7)."""

import os
import shutil
from pathlib import Path

import pytest

from tests.hostile.conftest import ROOT, Run
from tidegauge.conformance.engine import machine_code
from tidegauge.conformance.engine.machine_code import numba
from tidegauge.util.files import private_directory

OTHER_USER = 1001
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can make files of another user")


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A directory that everybody may write to, as /tmp."""
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o1777)
    return folder


def test_a_private_directory_is_ours_alone(shared: Path) -> None:
    found = private_directory(shared, "cache-1", "tidegauge", "x")
    assert found == shared / "cache-1" / "tidegauge" / "x"
    assert [path.stat().st_mode & 0o777 for path in (found, *found.parents[:2])] == [0o700] * 3
    assert private_directory(shared, "cache-1", "tidegauge", "x") == found


def test_a_folder_that_others_could_only_read_is_closed(shared: Path) -> None:
    (shared / "cache-1").mkdir(mode=0o755)
    assert private_directory(shared, "cache-1", "x") is not None
    assert (shared / "cache-1").stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("planted", ["cache-1", "cache-1/tidegauge", "cache-1/tidegauge/x"])
def test_a_link_to_a_dropbox_of_the_victim_is_no_cache(planted: str, shared: Path, tmp_path: Path) -> None:
    """A5: the directory it leads to is the victim's, and others may write there."""
    dropbox = tmp_path / "dropbox"
    dropbox.mkdir()
    dropbox.chmod(0o777)
    link = shared / planted
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(dropbox)
    assert private_directory(shared, "cache-1", "tidegauge", "x") is None
    assert list(dropbox.iterdir()) == []


def test_a_folder_that_others_may_write_to_is_no_cache(shared: Path) -> None:
    """Ours or not: what lies in it may be theirs."""
    (shared / "cache-1").mkdir()
    (shared / "cache-1").chmod(0o777)
    assert private_directory(shared, "cache-1", "x") is None


def test_a_place_in_a_folder_that_others_may_write_to_is_none(tmp_path: Path) -> None:
    """Without the sticky bit they could put another folder in the place of ours between the check and the use."""
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    assert private_directory(tmp_path / "open", "x") is None
    assert private_directory(tmp_path / "open" / "below", "x") is None


@needs_root
@pytest.mark.parametrize("planted", ["cache-1", "cache-1/tidegauge", "cache-1/tidegauge/x"])
def test_a_folder_of_another_user_is_no_cache(planted: str, shared: Path) -> None:
    (shared / planted).mkdir(parents=True)
    os.chown(shared / planted, OTHER_USER, OTHER_USER)
    assert private_directory(shared, "cache-1", "tidegauge", "x") is None


@needs_root
def test_a_place_that_a_link_of_another_user_leads_to_is_none(shared: Path, tmp_path: Path) -> None:
    ours = tmp_path / "ours"
    ours.mkdir(mode=0o700)
    (shared / "link").symlink_to(ours)
    assert private_directory(shared / "link", "x") is not None
    os.lchown(shared / "link", OTHER_USER, OTHER_USER)
    assert private_directory(shared / "link", "x") is None


def three(x: int) -> int:
    return x + 3


def loaded(folder: Path) -> bool:
    """Compile a function, or load it from a folder; return whether it was loaded."""
    with machine_code.kept_in(folder):
        made = numba.njit((numba.types.int64,), cache=True)(three)
    assert made(4) == 7
    return sum(made.stats.cache_hits.values()) == 1


@pytest.mark.parametrize("kind", ["nbc", "nbi", "nbc.sha256"])
def test_machine_code_with_a_flipped_bit_is_made_anew(kind: str, tmp_path: Path) -> None:
    """A6: wherever the bit is."""
    folder = tmp_path / "kept"
    folder.mkdir()
    assert not loaded(folder)
    assert loaded(folder)
    for place in (0, 0.5, 1):
        (file,) = folder.glob(f"*.{kind}")
        content = bytearray(file.read_bytes())
        content[int(place * (len(content) - 1))] ^= 1
        file.write_bytes(content)
        assert not loaded(folder)
        assert loaded(folder)


def test_code_without_a_checksum_is_not_shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    folder = machine_code.directory("x")
    assert folder is not None
    (folder / "a.nbc").write_bytes(b"code")
    assert machine_code.files_of("x") == {}
    (folder / "a.nbc").unlink()
    machine_code.keep("x", {"a.nbc": b"code", "a.nbi": b"index"})
    assert machine_code.files_of("x") == {"a.nbc": b"code", "a.nbi": b"index"}


@pytest.mark.spark
@pytest.mark.long
def test_results_are_bound_to_the_content_they_judged(tmp_path: Path, command: Run) -> None:
    """A7: the file is damaged in place, with the same size and time of change."""
    golden = ROOT / "tidegauge" / "traces" / "golden" / "append.ndjson"
    file = tmp_path / "t.parquet"
    assert command("convert", golden, file, cwd=tmp_path).returncode == 0
    whole = file.read_bytes()
    check = ("check", "--spark", "local[1]", "--results", tmp_path / "results", file)
    assert command(*check, cwd=tmp_path).returncode == 0
    again = command(*check, cwd=tmp_path)
    assert "had been judged before" in again.stdout
    status = file.stat()
    file.write_bytes(whole[:4] + bytes(296) + whole[300:])
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    damaged = command(*check, cwd=tmp_path)
    assert "had been judged before" not in damaged.stdout
    assert damaged.returncode == 2
    shutil.rmtree(tmp_path / "results")
    assert command(*check, cwd=tmp_path).returncode == 2
