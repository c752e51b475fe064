"""Each reader, given a few changed contents; `./run hostile` goes on. Those that were wrong once; it can fail."""

import os
from pathlib import Path

import pytest

from tests.fuzz import search
from tests.fuzz.readers import READERS, Reader
from tests.fuzz.search import fault, wrong

WRONG_ONCE = {
    "a list of API keys that is null": ("response", b"\2\3" + bytes(30)),
    "a state that is no JSON": ("tlc", b'<<"from", <<1,, <<2>>>>>>'),
    "a number of commas": ("tlc", b"@!@!@STARTMSG 2199:0 @!@!@\n, states generated\n@!@!@ENDMSG 2199 @!@!@\n"),
    "a message without number": ("tlc", b"@!@!@STARTMSG 2194:0 @!@!@\nx\n@!@!@ENDMSG 2194 @!@!@\n"),
    "a number of ten thousand digits": (
        "tlc",
        b"@!@!@STARTMSG 2194:0 @!@!@\n" + b"1" * 10_000 + b"\n@!@!@ENDMSG 2194 @!@!@\n",
    ),
    "a set of sequences of records": (
        "tlc",
        b"@!@!@STARTMSG 2217:4 @!@!@\n1: <x>\n/\\ x = {<<[a |-> 1]>>}\n@!@!@ENDMSG 2217 @!@!@\n",
    ),
    "an interval of 10^12 numbers": (
        "tlc",
        b"@!@!@STARTMSG 2217:4 @!@!@\n1: <x>\n/\\ x = 1..1000000000000\n@!@!@ENDMSG 2217 @!@!@\n",
    ),
}


def test_readers_keep_their_promises(tmp_path: Path) -> None:
    assert [seen for number in range(1600) if (seen := wrong(0, number, tmp_path))] == []


@pytest.mark.parametrize("name", READERS)
def test_each_reads_its_samples(name: str, tmp_path: Path) -> None:
    assert READERS[name].samples()
    assert [seen for content in READERS[name].samples() if (seen := fault(name, content, tmp_path))] == []


@pytest.mark.parametrize("what", WRONG_ONCE)
def test_what_was_wrong_once_is_right(what: str, tmp_path: Path) -> None:
    assert fault(*WRONG_ONCE[what], tmp_path) == ""


def test_an_input_is_made_from_its_number_alone() -> None:
    assert search.made(3, 17) == search.made(3, 17) != search.made(4, 17)
    assert {search.made(3, number)[0] for number in range(len(READERS))} == set(READERS)


def _raises(_data: bytes, _folder: Path) -> None:
    raise ZeroDivisionError("of 1")


def _ends(_data: bytes, _folder: Path) -> None:
    os.abort()


def _never_ends(_data: bytes, _folder: Path) -> None:
    while True:
        pass


@pytest.mark.parametrize(
    ("read", "said"), [(_raises, "ZeroDivisionError"), (_ends, "the process ended: -6"), (_never_ends, "more than 0.1 s")]
)
def test_a_reader_that_breaks_its_promise_is_found(
    read: object, said: str, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check can fail, and goes on."""
    monkeypatch.setattr(search, "SECONDS", 0.1)
    monkeypatch.setattr(search, "_readers", lambda: {"one": Reader(lambda: [b"x"], read)})  # type: ignore[arg-type]
    assert search.run(["--inputs", "2"]) == 1
    seen = capfd.readouterr().out
    assert seen.count(said) == 2
    assert "seed 0: 2 inputs" in seen
