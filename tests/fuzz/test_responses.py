"""A few of the driven programs that `python -m tests.fuzz.responses` tries by the hundred thousand; it can fail."""

from collections.abc import Callable

import pytest

from tests.fuzz import responses
from tests.fuzz.responses import Garbled, batch, outcome


@pytest.mark.parametrize("inputs", [300, pytest.param(20_000, marks=pytest.mark.long)])
def test_a_program_that_writes_anything_is_blamed_or_compared(inputs: int) -> None:
    """It never ends in another error, and each end comes up."""
    ended, wrong = batch(2, range(inputs))
    assert wrong == []
    assert set(ended) == {"blamed", "differs", "conforms"}


def test_a_program_does_what_its_number_says() -> None:
    """The same twice, and others do something else."""
    assert [outcome(5, number) for number in range(20)] == [outcome(5, number) for number in range(20)]
    greetings = [Garbled(5, number).exchange(bytearray(b"{}\n"), 0.0) for number in range(40)]
    assert 1 < len(set(greetings)) < 40


@pytest.mark.parametrize(
    ("broken", "how", "says"),
    [
        (lambda *_: 1 // 0, "raised", "ZeroDivisionError"),
        (lambda *_: (_ for _ in ()).throw(responses.DrivenProgramError("no")), "blamed", "no"),
    ],
)
def test_it_can_fail(broken: Callable[..., object], how: str, says: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another error is found, and a blame that does not say what was expected and seen."""
    number = next(n for n in range(1, 99) if outcome(1, n)[0] == "conforms")
    monkeypatch.setattr(responses, "play", broken)
    ended, fault = outcome(1, number)
    assert ended == how
    assert says in fault
