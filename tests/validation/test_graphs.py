"""The command that compares whole graphs: what it says, and when it ends with 1."""

import pytest

from tidegauge.conformance.from_tlc.graph_comparison import Compared
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.impl.releases import names_brokers, profile_named
from tidegauge.spec.tlc.models import find_model
from validation import graphs
from validation.graphs import WHOLE, main


@pytest.mark.tlc
def test_a_model_that_is_the_same_is_told_with_its_size(capsys: pytest.CaptureFixture[str]) -> None:
    """By name, with the counts; the sum stands at the end."""
    assert main(["Interleaved"]) == 0
    reported = capsys.readouterr().out.splitlines()
    assert reported[0].startswith("Interleaved, kip320: the same 259 states, 818 transitions")
    assert reported[1] == "818 transitions of 259 states; different: none"


@pytest.mark.tlc
def test_a_model_that_differs_is_told_and_ends_with_1(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another generation than the model's: the first divergence is printed. So is a number of states that is not pinned."""
    monkeypatch.setattr(graphs, "WHOLE", (Compared("Interleaved", "kip101", {}, "SeedInterleaved"),))
    assert main([]) == 1
    reported = capsys.readouterr().out
    assert "first divergence after" in reported
    assert "different: Interleaved" in reported
    monkeypatch.setattr(graphs, "WHOLE", (Compared("Interleaved", "kip320", {"MaxLog": 2}, "SeedInterleaved"),))
    assert main([]) == 1
    assert "expected 259 states, as models.toml has it; seen" in capsys.readouterr().out


def test_an_unknown_model_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """With the names there are; nothing is run."""
    assert main(["Smal"]) == 2
    assert "expected some of Small, Refines" in capsys.readouterr().err


def test_what_is_compared_must_hold() -> None:
    """A model that must fail has no whole graph to compare."""
    assert all(find_model(compared.model).distinct for compared in WHOLE)


def test_a_model_that_turns_a_switch_off_is_compared_without_it() -> None:
    """Divergence before the log start is Kafka before KAFKA-12996; every other model runs its profile as it is."""
    without = {compared.model: compared.switched for compared in WHOLE if compared.off}
    assert without == {"DivergenceFirst": FETCH_TRUNCATION._replace(out_of_range_first=False)}
    as_named = [compared for compared in WHOLE if not compared.off and not names_brokers(compared.profile)]
    assert all(compared.switched == profile_named(compared.profile) for compared in as_named)
    assert len({compared.model for compared in WHOLE}) == len(WHOLE)
