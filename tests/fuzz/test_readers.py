"""Each reader, given a few thousand changed inputs; `./run hostile` goes on."""

from pathlib import Path

import pytest

from tests.fuzz import readers


def test_readers_raise_what_they_promise(tmp_path: Path) -> None:
    assert [fault for number in range(1500) if (fault := readers.wrong(0, number, tmp_path))] == []


def test_a_reader_that_raises_something_else_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The check can fail."""

    def broken(_data: bytes, _folder: Path) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(readers, "_seeds", lambda _chosen: (b"x", broken))
    assert readers.wrong(0, 0, tmp_path) == "broken: ZeroDivisionError: "
