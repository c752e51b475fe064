"""A cfg of a user's: its module is found, TLC runs it, and its graph is compared with the implementation's."""

from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.from_tlc.graph_comparison import compared_of
from tidegauge.spec import SPEC
from tidegauge.spec.tlc.models import OwnModel, find_model, load_models, own_model
from tidegauge.util.errors import SpecError


def cfg(folder: Path, name: str, old: str = "", new: str = "") -> Path:
    """A changed copy of a shipped cfg, in a directory whose name tells nothing."""
    text = find_model(name).config().text()
    assert old in text
    place = folder / f"{name}.cfg"
    place.write_text(text.replace(old, new) if old else text, encoding="utf-8")
    return place


def test_the_module_of_every_shipped_cfg_is_found_wherever_it_lies(tmp_path: Path) -> None:
    place = tmp_path / "own.cfg"
    for model in load_models():
        # A model of MCSeeds checks what MCReplication defines under the same name.
        if model.module != "MCSeeds":
            place.write_text(model.config().text(), encoding="utf-8")
            assert own_model(place).module == model.module, model.cfg


def test_a_cfg_that_no_module_fits_is_refused_with_what_to_do(tmp_path: Path) -> None:
    place = cfg(tmp_path, "Small", "INVARIANT TypeOK", "INVARIANT NoSuchInvariant")
    with pytest.raises(SpecError, match=r"NoSuchInvariant.*called after its module"):
        find_model(str(place))
    with pytest.raises(SpecError, match="a file that ends in"):
        find_model(str(tmp_path / "none.cfg"))


def test_the_path_of_a_shipped_cfg_is_that_model() -> None:
    assert not isinstance(find_model(str(SPEC / "models" / "MCReplication" / "Small.cfg")), OwnModel)


def test_what_the_implementation_has_no_switch_for_is_not_compared() -> None:
    with pytest.raises(SpecError, match="NobodyIsFenced"):
        compared_of(find_model("NoFencing"))
    assert compared_of(find_model("LaggingHw")).seed == "SeedLaggingHw"
    assert compared_of(find_model("Kip320")).profile == "kip320"
    assert compared_of(find_model("ProposalsEnd")).profile == "skips-equal"


@pytest.mark.tlc
def test_a_cfg_of_ones_own_is_run_and_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    holds = cfg(tmp_path, "Small", "MaxEpoch = 1", "MaxEpoch = 0")
    assert main(["model", str(holds)]) == 0
    assert "1 of 1 models have no property that fails" in capsys.readouterr().out
    assert main(["model", "--compare", str(holds)]) == 0
    assert "profile fetch-truncation: spec = impl: 1,151 states, 3,884 transitions" in capsys.readouterr().out


@pytest.mark.tlc
def test_one_that_fails_is_shown_step_by_step(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fails = cfg(tmp_path, "EqualEpoch")
    assert main(["model", str(fails)]) == 1
    said = capsys.readouterr().out
    assert "step by step" in said
    assert "IsrCompleteness fails in the last state" in said


@pytest.mark.tlc
def test_a_specification_that_differs_is_told_by_its_first_divergence(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As if F3 had been repaired in the implementation alone."""
    place = cfg(tmp_path, "EqualEpoch", "MaxPartitionEpoch = 3", "MaxPartitionEpoch = 2")
    name = "tidegauge.conformance.from_tlc.graph_comparison.compared_of"
    monkeypatch.setattr(name, lambda model: compared_of(model).__class__(str(place), "skips-equal", {}))
    assert main(["model", "--compare", str(place)]) == 1
    said = capsys.readouterr().out
    assert "spec and impl differ: first divergence after" in said
    assert "ReadMetadata" in said


def test_compare_needs_a_name(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["model", "--compare"]) == 2
    assert "expected with --compare the names of models" in capsys.readouterr().err
