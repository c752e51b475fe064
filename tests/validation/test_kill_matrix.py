"""The kill matrix tells a caught fault from one that survives and from one that shows nothing."""

import pytest

from tidegauge.conformance import kill_matrix
from tidegauge.conformance.engine.judge import Failure, Judgement, RuleTally
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.kill_matrix import Fate, judged_within, kill
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.faults import FAULTS, Fault, RevealingModel
from tidegauge.impl.profiles import Rules
from tidegauge.traces.columns import Distinct
from tidegauge.traces.schema import Config

HARMLESS = Fault("harmless", "nothing is wrong", "none", "count_at_most", Rules(), None, Bounds(2, 1, 1, 0))


def crying_wolf(given: Distinct, _config: Config) -> Judgement:
    """A rule fails at the first event of each trace, whatever it says."""
    failures = tuple(
        Failure(t, row, "HW-01", "", None, None) for t, row in enumerate(given.table.trace_starts[:-1].tolist())
    )
    tally = RuleTally(failed=len(failures), failed_traces=len(failures))
    return Judgement(len(given), len(failures), dict.fromkeys(RULE_IDS, tally), failures)


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kill_matrix, "GROWING", (Bounds(2, 1, 1, 0),))


def test_a_wrong_leader_rule_is_caught_by_the_rules_on_the_high_watermark() -> None:
    """And by what it costs: a later leader lacks what was committed."""
    found = kill(FAULTS["hw-is-own-log-end"])
    assert found.judged.fate is Fate.CAUGHT
    assert {"HW-02", "HW-03", "DATA-01"} <= set(found.judged.by_rule)


def test_a_fault_that_changes_nothing_shows_nothing() -> None:
    """The right rules under another name are no kill."""
    assert kill(HARMLESS).judged.fate is Fate.SHOWS_NOTHING


def test_a_fault_that_shows_elsewhere_names_where() -> None:
    """Below min.insync.replicas a leader's high watermark stays behind its epoch start: the guard has something to do."""
    found = kill(FAULTS["joins-at-hw"])
    assert found.judged.fate is Fate.CAUGHT
    assert found.judged.bounds.min_insync_replicas == 2
    assert "ISR-01" in found.judged.by_rule
    assert "ISR-01" in found.judged.exercised


def test_a_switch_is_judged_as_the_generation_that_has_it_right() -> None:
    """Without epochs a follower truncates at its high watermark: a loss, as KIP-101 tells it."""
    found = judged_within((RevealingModel(Bounds(2, 1, 1, 1), "kip101"),), Rules(), {"offsets_for_leader_epoch": False})
    assert found.fate is Fate.CAUGHT
    assert "TRUNC-04" in found.by_rule


def test_a_judge_that_sees_nothing_lets_a_fault_survive(monkeypatch: pytest.MonkeyPatch) -> None:
    """The matrix can fail: without failing rules the fault has survived."""
    blind = Judgement(events=1, traces=1, tallies={rule: RuleTally(held=1) for rule in RULE_IDS}, failures=())
    monkeypatch.setattr(kill_matrix, "judge", lambda *_args: blind)
    assert kill(FAULTS["hw-is-own-log-end"]).judged.fate is Fate.SURVIVED


@pytest.mark.parametrize(("fault", "fate"), [("hw-is-own-log-end", Fate.SURVIVED), ("harmless", Fate.SHOWS_NOTHING)])
def test_a_rule_that_fails_before_anything_wrong_was_done_catches_nothing(
    monkeypatch: pytest.MonkeyPatch, fault: str, fate: Fate
) -> None:
    """A false alarm is no kill, wherever the walk leads afterwards."""
    monkeypatch.setattr(kill_matrix, "judge", crying_wolf)
    assert kill(FAULTS.get(fault, HARMLESS)).judged.fate is fate


def test_a_replica_that_is_no_state_of_the_model_is_told_apart() -> None:
    """The implementation refuses its own state, and says which."""
    found = kill(FAULTS["assign-never-evicts"])
    assert found.judged.fate is Fate.REFUSED
    assert "epoch cache" in found.judged.says
