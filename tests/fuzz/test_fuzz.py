"""A few of the inputs that `python -m tests.fuzz.run` tries by the million, and those that were wrong once; it can fail."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz import run as room
from tests.fuzz.inputs import KINDS, Input, made
from tests.fuzz.run import batch, outcome
from tidegauge.cli import main as command_line

SEED = 1
WRONG_ONCE = [
    (0, 1447),  # a node of which only requests are there has no lines to place a gap in
    (0, 1639),  # a request that took forever
    (0, 1994),  # a time beyond the year 9999
    (7, 119),  # a word in the place of an ISR
    (7, 939),  # an offset beyond 2^62
    (8, 2784),  # an epoch of a checkpoint beyond 2^62
    (8, 6229),  # a log without epochs, drawn
    (73, 31536),  # requests of a broker none of whose lines is chosen
    (82, 251679),  # a check of stdin that asks for no JSON: the fuzzer's own fault
    (73, 224639),  # a Parquet footer that says two types of a column: Arrow ended the process
]


def test_no_traceback_and_no_pass_without_a_check() -> None:
    """The first inputs of a seed; every exit code is among them."""
    codes, wrong = batch(0, seed=SEED, last=150)
    assert wrong == []
    assert {"0", "1", "2", "3"} <= set(codes)


@pytest.mark.parametrize(("seed", "number"), WRONG_ONCE)
def test_what_was_wrong_once_is_right(seed: int, number: int, tmp_path: Path) -> None:
    """Each was a traceback."""
    assert outcome(made(seed, number), tmp_path)[1] == ""


def test_an_input_is_made_from_its_number_alone() -> None:
    """The same bytes again, others for another number; every kind comes up."""
    assert made(3, 17) == made(3, 17)
    assert len({made(3, number).arguments + tuple(made(3, number).files.values()) for number in range(20)}) > 15
    assert len(KINDS) > 5


@pytest.mark.parametrize(
    ("broken", "said"), [(lambda *_: 7, "exit code 7"), (lambda *_: 1 // 0, "ZeroDivisionError")], ids=["code", "raises"]
)
def test_it_can_fail(broken: Callable[..., int], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command line that ends otherwise is found."""
    monkeypatch.setattr(room, "main", broken)
    assert said in outcome(Input(("check", "x"), {}), tmp_path)[1]


@pytest.mark.parametrize("arguments", [("check", "--json", "x"), ("check", "x")])
@pytest.mark.parametrize(
    "said", ["", "{}", '{"events": 0, "rules": [{"held": 1}]}', "PASS: 0 rules hold (1 trace, 8 events)"]
)
def test_a_pass_without_a_check_is_found(
    arguments: tuple[str, ...], said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether it says so as JSON or as text."""
    monkeypatch.setattr(room, "main", lambda _: print(said) or 0)
    assert "nothing was checked" in outcome(Input(arguments, {}), tmp_path)[1]


def test_a_run_that_was_broken_off_goes_on(capsys: pytest.CaptureFixture[str]) -> None:
    """From the input that is asked for."""
    assert room.run(["--seed", "4", "--first", "3", "--inputs", "5"]) == 0
    assert "seed 4: 2 inputs from 3 on" in capsys.readouterr().out


def test_a_fault_that_is_a_sentence_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last resort of `main` is none here."""
    broken = command_line.COMMANDS["doctor"]._replace(run=lambda _: [].pop())
    monkeypatch.setitem(command_line.COMMANDS, "doctor", broken)
    # The parser is made once: of the commands as they are then.
    monkeypatch.setattr(command_line, "parser", command_line.parser.__wrapped__)
    assert "IndexError" in outcome(Input(("doctor",), {}), tmp_path)[1]


def test_an_input_that_ends_the_process_is_named(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """There is nobody left to say so but its folder."""
    monkeypatch.setattr(room, "outcome", lambda *_: os._exit(9))
    assert room.run(["--seed", "4", "--inputs", "1"]) == 1
    assert "input 0: the process ended" in capsys.readouterr().out
