"""The models give what models.toml says, and a difference is said clearly."""

import re
import time
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.spec import SPEC
from tidegauge.spec.tlc import models, tlc
from tidegauge.spec.tlc.models import (
    Model,
    PinComparison,
    compare_with_pins,
    find_model,
    in_tier,
    load_models,
    models_table,
    recorded,
    run_model,
)
from tidegauge.spec.tlc.tlc import TlcOutcome, TlcResult
from tidegauge.util.errors import SpecError

ROOM = SPEC / "models"
MODEL = Model("MCReplication", "Small", "exhaustive", "success", "small", distinct=7, depth=3)
FOUND = TlcResult(TlcOutcome.SUCCESS, "", 20, 7, 3, (), 1.0)

SEEDS = [model for model in load_models() if model.module == "MCSeeds"]
TRIED = [
    model
    for model in in_tier("small")
    if (model.expect != "success" and not model.name.startswith("Reach")) or model.name in {"Small", "SkipsEqual"}
]
OF_EACH_KIND = {"HwOnly", "NotRefined", "SkipsEqual", "OlderImageToo", "SeedInterleaved"}
"""A loss, a refinement that fails, a module that holds and fails, a way to a deep state: a second or two each."""


@pytest.mark.tlc
@pytest.mark.parametrize(
    "model",
    [
        pytest.param(model, id=model.name, marks=() if model.name in OF_EACH_KIND else pytest.mark.long)
        for model in (*TRIED, *SEEDS)
    ],
)
def test_a_model_gives_what_is_pinned(model: Model) -> None:
    """Outcome, property, length of the counterexample, states and depth are the pinned ones. (One of each kind; the long
    ones are each guard, profile and finding, and the way to each deep state. The main job runs the whole tier.)
    """
    comparison = run_model(model)
    assert comparison.ok, str(comparison)


@pytest.mark.parametrize("model", [m for m in load_models() if m.tier != "large"], ids=lambda m: m.name)
def test_everything_is_pinned(model: Model) -> None:
    """A model that holds pins states and depth; one that fails pins its property and the length of the run."""
    assert model.seconds is not None
    if model.expect == "success":
        assert model.distinct
        assert model.depth
    else:
        assert model.property
        assert model.length


@pytest.mark.parametrize("path", sorted(set(ROOM.rglob("*.cfg")) - {ROOM / "MCRules/MCRules.cfg"}), ids=lambda p: p.stem)
def test_a_cfg_opens_with_its_purpose_and_is_listed(path: Path) -> None:
    """Each cfg starts with a comment that ends in the expected result, and models.toml has it once."""
    model = find_model(path.stem)
    assert model.config().claim
    assert (model.property or "success") in model.config().expected


def test_a_model_that_holds_checks_every_property() -> None:
    """Where the protocol is expected to hold, all invariants and the action property are checked; only liveness and
    unclean elections, with specifications of their own, check others."""
    every = {
        *("TypeOK", "HwWithinLog", "LogMatchingBelowHw", "LeaderCompleteness", "IsrCompleteness", "NoFalseExposure"),
        *("IsrSuperset", "EpochsMonotone", "SameRecordSamePrefix", "CommittedStable"),
    }
    looked_at = 0
    for model in load_models():
        plain = model.config().specification in {"MCSpec", "AtomicSpec"}
        if model.expect == "success" and model.module in {"MCReplication", "MCAtomic"} and plain:
            assert every <= checked(model), model.cfg
            looked_at += 1
    assert looked_at > 10


def checked(model: Model) -> set[str]:
    return set(model.config().checked)


def test_what_is_checked_is_known_to_be_able_to_fail() -> None:
    """Each property of a model that holds fails in another one, but for these: types, why a guard is idle, and some
    liveness."""
    can_fail = {model.property for model in load_models() if model.expect != "success"}
    holds = {name for model in load_models() if model.expect == "success" for name in checked(model)}
    never_seen_to_fail = {
        *("TypeOK", "ElrTypeOK", "MoveTypeOK", "AcksTypeOK"),
        *("NoTruncationBelowHighWatermark", "NeverOutOfRange", "OnlyRowsFourAndFive", "OnlyLeadersKnow", "NoResponseIsOld"),
        *("CommittedReachesAll", "TruncationEnds", "ProposalsEnd", "OneWriter"),
    }
    assert holds - can_fail == never_seen_to_fail


def test_what_the_proof_rests_on_is_checked() -> None:
    """Every invariant of CommittedInvariant.tla is checked in Small and Epochs."""
    text = (SPEC / "CommittedInvariant.tla").read_text()
    named = set(re.findall(r"^(\w+) ==", text, flags=re.MULTILINE))
    assert len(named) > 10
    assert named <= checked(find_model("Small"))
    assert named <= checked(find_model("Epochs"))


def test_every_deep_state_that_a_model_starts_from_is_reached_in_another() -> None:
    """A model whose Init is replaced has a script beside it that leads there from Init."""
    starts = {model.config().substitutions.get("Init", "Init") for model in load_models()} - {"Init"}
    assert starts == {model.name.removeprefix("Seed") + "Init" for model in SEEDS}


def test_a_tier_is_told_in_the_order_of_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs end in any order; they are reported in one, and all of them."""

    def ran(model: Model, **_: object) -> PinComparison:
        time.sleep(0.02 if model.name == "Small" else 0.0)
        return compare_with_pins(model, FOUND)

    monkeypatch.setattr(models, "run_model", ran)
    monkeypatch.setattr(tlc, "warm_start", lambda *_: ())
    reported: list[str] = []
    done = models.run_models(models.in_tier("small"), on_done=lambda comparison: reported.append(comparison.model.name))
    assert reported == [comparison.model.name for comparison in done] == [model.name for model in in_tier("small")]


def test_a_tier_holds_the_cheaper_ones_and_large_is_asked_for_by_name() -> None:
    """medium contains small; large is only what nobody runs without asking."""
    small, medium, large = (in_tier(tier) for tier in models.TIERS)
    assert set(small) < set(medium) < set(large) == set(load_models())
    assert {model.tier for model in medium} == {"small", "medium"}


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        (TlcResult(TlcOutcome.SUCCESS, "", 20, 8, 3, (), 1.0), "distinct states: expected 7, seen 8"),
        (TlcResult(TlcOutcome.SUCCESS, "", 20, 7, 4, (), 1.0), "depth: expected 3, seen 4"),
        (TlcResult(TlcOutcome.SAFETY, "TypeOK", 20, 7, 3, (), 1.0), "outcome: expected success, seen safety failure"),
        (TlcResult(TlcOutcome.ERROR, "", -1, -1, -1, (), 1.0, "Rules.tla:3:1: no"), "seen no verdict: Rules.tla:3:1: no"),
    ],
)
def test_a_difference_is_named(found: TlcResult, difference: str) -> None:
    """A result that is not the pinned one says which number or word differs, and which was expected."""
    comparison = compare_with_pins(MODEL, found)
    assert not comparison.ok
    assert difference in str(comparison)
    assert str(comparison).startswith("FAIL MCReplication/Small.cfg")


def test_the_wrong_property_failing_is_a_difference() -> None:
    """A model that must fail in one way is not right when it fails in another."""
    model = find_model("HwOnly")
    steps = ((),) * (model.length or 0)
    right = TlcResult(TlcOutcome.SAFETY, "LeaderCompleteness", 1, 1, 1, steps, 1.0)  # type: ignore[arg-type]
    wrong = TlcResult(TlcOutcome.SAFETY, "TypeOK", 1, 1, 1, steps, 1.0)  # type: ignore[arg-type]
    longer = TlcResult(TlcOutcome.SAFETY, "LeaderCompleteness", 1, 1, 1, (*steps, ()), 1.0)  # type: ignore[arg-type]
    assert compare_with_pins(model, right).ok
    assert "property: expected LeaderCompleteness, seen TypeOK" in str(compare_with_pins(model, wrong))
    assert "states of the counterexample: expected 11, seen 12" in str(compare_with_pins(model, longer))


def test_how_long_a_run_against_liveness_is_may_vary() -> None:
    """TLC takes any cycle it finds, so only the outcome and the property are compared."""
    model = find_model("NoMarkIsStuck")
    for length in (9, 12):
        found = TlcResult(TlcOutcome.LIVENESS, "", 1, 1, 1, ((),) * length, 1.0)  # type: ignore[arg-type]
        assert compare_with_pins(model, found).ok
    assert not compare_with_pins(model, TlcResult(TlcOutcome.SAFETY, "TypeOK", 1, 1, 1, (), 1.0)).ok


def test_a_match_is_said_in_one_line() -> None:
    """What agrees is one line with the counts."""
    assert str(compare_with_pins(MODEL, FOUND)) == "ok   MCReplication/Small.cfg: success, 7 states, depth 3 (1.0 s)"


def test_a_model_that_holds_otherwise_than_pinned_is_no_success() -> None:
    """It says what differs, not that it succeeded."""
    said = str(compare_with_pins(replace(MODEL, distinct=8), FOUND)).splitlines()[0]
    assert said == "FAIL MCReplication/Small.cfg: no property fails; the number of states changed, 7 states, depth 3 (1.0 s)"


def test_a_property_that_tlc_does_not_name_is_the_only_one_of_its_cfg() -> None:
    """Refuted temporal properties and those of another module come without a name."""
    model = find_model("NotRefined")
    steps = ((),) * (model.length or 0)
    unnamed = TlcResult(TlcOutcome.SAFETY, "", 1, 1, 1, steps, 1.0)  # type: ignore[arg-type]
    assert compare_with_pins(model, unnamed).ok
    assert not compare_with_pins(model, TlcResult(TlcOutcome.SAFETY, "TypeOK", 1, 1, 1, steps, 1.0)).ok  # type: ignore[arg-type]


@pytest.mark.tlc
def test_a_wrong_pin_is_found_by_running() -> None:
    """A real run against a wrong expectation fails for the right reason."""
    model = find_model("ReachTruncation")
    comparison = run_model(Model(**{**vars(model), "property": "OneRoundIsEnough"}))
    assert not comparison.ok
    assert "property: expected OneRoundIsEnough, seen NoRecordIsTruncated" in str(comparison)


ENTRY = """[[model]]
module = "MCReplication"
name = "Small"
mode = "exhaustive"
expect = "success"
tier = "small"
"""


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ENTRY + "distint = 3", r"model 1 \(Small\): expected only .*; seen distint"),
        (ENTRY.replace('tier = "small"\n', ""), "expected tier, seen none"),
        (ENTRY.replace('"small"', '"tiny"'), "one of small, medium, large; seen 'tiny'"),
        (ENTRY.replace('"success"', '"safety failure"'), "the property that must fail"),
        (
            ENTRY.replace('"success"', '"liveness failure"\nproperty = "CommittedReachesAll"'),
            "PROPERTY CommittedReachesAll and no other",
        ),
        (ENTRY.replace("Small", "Absent"), "expected the file models/MCReplication/Absent.cfg"),
        (ENTRY + ENTRY, "expected each name once"),
        ("[[model]\n", "expected TOML"),
    ],
)
def test_a_faulty_entry_is_refused(text: str, message: str) -> None:
    """models.toml is checked when it is read; the error names the entry and what is wrong with it."""
    with pytest.raises(SpecError, match=message):
        load_models(text)


def test_an_unknown_model_or_tier_is_answered_with_the_known_ones() -> None:
    """A misspelt name gets the list of names."""
    with pytest.raises(SpecError, match=r"a model such as Small, or a file that ends in \.cfg; seen 'Smal'"):
        find_model("Smal")
    with pytest.raises(SpecError, match="one of small, medium, large; seen 'huge'"):
        models.in_tier("huge")


def test_recording_pins_what_was_found_and_leaves_the_rest() -> None:
    """Numbers are replaced or added inside their entry; comments, order and other entries stay."""
    text = f"# models\n\n{ENTRY}distinct = 1\n\n# next\n\n{ENTRY.replace('Small', 'Epochs')}"
    new = recorded(text, [compare_with_pins(MODEL, FOUND)])
    assert new == f"# models\n\n{ENTRY}distinct = 7\nseconds = 1\ndepth = 3\n\n# next\n\n{ENTRY.replace('Small', 'Epochs')}"
    assert recorded(new, [compare_with_pins(MODEL, FOUND)]) == new


def test_an_error_is_never_recorded() -> None:
    """A run without a verdict pins nothing."""
    assert (
        recorded(ENTRY, [compare_with_pins(MODEL, TlcResult(TlcOutcome.ERROR, "", -1, -1, -1, (), 1.0, "broken"))]) == ENTRY
    )


def test_the_list_of_models_has_a_row_for_each() -> None:
    """`tidegauge model --list` prints what models.toml pins."""
    table = models_table(load_models())
    assert all(f"| {model.module} | {model.name} | {model.expect}" in table for model in load_models())
