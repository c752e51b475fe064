"""Machine code that is kept: by name, whole, and never in the way."""

from pathlib import Path

import numba
import pytest

from tidegauge.conformance.engine import machine_code

FILES = {"f.nbi": b"index", "f.1.nbc": b"code"}


@pytest.fixture(autouse=True)
def _cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_what_is_kept_under_a_name_is_found_under_it_and_no_other() -> None:
    machine_code.keep("one", FILES)
    assert machine_code.files_of("one") == FILES
    assert machine_code.files_of("other") == {}


def test_what_this_machine_has_made_stays() -> None:
    machine_code.keep("one", FILES)
    machine_code.keep("one", {"f.nbi": b"x", "f.1.nbc": b"y"})
    assert machine_code.files_of("one") == FILES


def test_a_disk_that_is_full_keeps_nothing_and_raises_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(self: Path, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    machine_code.keep("one", FILES)
    monkeypatch.undo()
    assert machine_code.files_of("one") == {}


def test_numba_finds_what_it_kept_wherever_the_text_of_the_function_lies(tmp_path: Path) -> None:
    """The same text in two files, as in two checkouts or a zip: compiled once, loaded once."""
    hits = []
    for place in ("here", "there"):
        file = tmp_path / place / "text.py"
        file.parent.mkdir()
        file.write_text("def double(n):\n    return 2 * n\n", encoding="utf-8")
        space: dict[str, object] = {"__name__": "text"}
        exec(compile(file.read_text(encoding="utf-8"), str(file), "exec"), space)
        with machine_code.kept_in(tmp_path):
            double = numba.njit("int64(int64)", cache=True)(space["double"])  # type: ignore[no-untyped-call]
        assert double(21) == 42
        hits.append(sum(double.stats.cache_hits.values()))
    assert hits == [0, 1]
    settings: object = numba.config
    assert getattr(settings, "CACHE_DIR") != str(tmp_path)  # noqa: B009  mypy does not know it
