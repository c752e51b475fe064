"""A model that fails otherwise than pinned is shown step by step."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.from_tlc.tlc_runs import failing_run
from tidegauge.spec.tlc import models
from tidegauge.spec.tlc.models import Model, compare_with_pins, find_model, run_model
from tidegauge.spec.tlc.tlc import TlcOutcome

pytestmark = pytest.mark.tlc


@pytest.fixture
def pinned(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Model]:
    """A model that fails, pinned as one that holds."""

    def otherwise(name: str) -> Model:
        model = replace(find_model(name), expect=TlcOutcome.SUCCESS.value, property="", length=None)
        monkeypatch.setattr(models, "find_model", lambda _: model)
        return model

    return otherwise


def test_the_steps_are_shown_in_words(pinned: Callable[[str], Model], capsys: pytest.CaptureFixture[str]) -> None:
    """Numbered, with their brokers, and below each what it changed; exit code 1."""
    model = pinned("ReachNoLeader")
    assert main(["model", model.name]) == 1
    printed = capsys.readouterr().out
    steps = [line.split() for line in printed.splitlines() if line[:4].strip().isdigit()]
    assert [step[0] for step in steps] == [str(number) for number in range(1, len(steps) + 1)]
    assert any(step[1] == "Crash" and step[2].startswith("b") for step in steps)
    assert "fails in the last state" in printed
    assert "0 of 1 models gave the pinned result" in printed


def test_a_model_that_is_as_pinned_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "ReachNoLeader"]) == 0
    assert "step by step" not in capsys.readouterr().out


def test_a_model_without_views_is_shown_by_its_variables(pinned: Callable[[str], Model]) -> None:
    """Those of MCAlterPartition are no replicas with logs."""
    name = next(one.name for one in models.load_models() if one.module == "MCAlterPartition" and one.length)
    found = run_model(pinned(name))
    assert found.result.outcome is TlcOutcome.SAFETY
    lines = list(failing_run(compare_with_pins(found.model, found.result)))
    assert sum(line[:4].strip().isdigit() for line in lines) == len(found.result.counterexample) - 1
    assert any(" = " in line for line in lines)
