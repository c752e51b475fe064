"""The runner: every group is proved, and the three verdicts are three different answers."""

import inspect

import pytest

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import GroupResult, ProofVerdict, overall
from tidegauge.spec.proofs.premises import all_groups
from tidegauge.spec.proofs.prove import exit_code, prove, prove_group
from tidegauge.util.errors import SpecError

SOURCE = inspect.getsource(rules)


def broken(old: str, new: str) -> str:
    """The text of the rules with one place changed."""
    assert SOURCE.count(old) == 1, f"{old!r} stands {SOURCE.count(old)} times in impl/rules.py"
    return SOURCE.replace(old, new)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.long if name == "committed" else ()) for name in all_groups()]
)
def test_every_group_is_proved(name: str) -> None:
    """Each group holds for caches of up to two entries; `tidegauge prove` goes on to four."""
    result = prove_group(all_groups()[name], max_entries=2)
    assert result.verdict is ProofVerdict.PROVED, "\n".join(result.describe())
    assert all(goal.checks > 0 for goal in result.goals)


@pytest.mark.parametrize(
    ("old", "new", "group"),
    [
        ("values[n] <= bound", "values[n] < bound", "responses"),
        ("values[n] < bound", "values[n] <= bound", "cache"),
        ("epoch < last_fetched_epoch or", "epoch <= last_fetched_epoch or", "fetch"),
        ("end < fetch_offset:", "end <= fetch_offset:", "fetch-loop"),
        ("if leader_end < log_end", "if leader_end <= log_end", "fetch"),
        ("if requested < local", "if requested > local", "fencing"),
        ("values[i] < lowest", "values[i] > lowest", "high-watermark"),
        ("return leo >= hw and leo >= epoch_start", "return leo > hw and leo >= epoch_start", "isr"),
        ("return isr_size < min", "return isr_size <= min", "high-watermark"),
    ],
)
def test_a_comparison_swapped_by_hand_is_a_counter_model(old: str, new: str, group: str) -> None:
    """Swapping `<` and `<=` in a rule refutes a goal, with the values that show it."""
    result = prove_group(all_groups()[group], max_entries=2, source=broken(old, new), stop_at_first=True)
    assert result.verdict is ProofVerdict.COUNTER_MODEL
    model = result.failures[0].counter_model
    assert model is not None
    assert model.lines or "terminates" in model.goal


def test_processes_prove_what_one_process_proves() -> None:
    """Groups run in processes of their own, results come in the order asked for, and progress is told."""
    reported: list[tuple[str, bool]] = []
    results = prove(
        ["counting", "isr"], max_entries=2, progress=lambda name, result: reported.append((name, result is None))
    )
    assert [r.name for r in results] == ["counting", "isr"]
    assert exit_code(results) == 0
    assert sorted(reported) == [("counting", False), ("counting", True), ("isr", False), ("isr", True)]


def test_a_group_that_takes_too_long_is_not_proved() -> None:
    """The time limit gives NOT PROVED and exit code 3, not a counter-model."""
    results = prove(["fetch-loop"], max_entries=5, time_limit=0.2)
    assert results[0].verdict is ProofVerdict.NOT_PROVED
    assert "0.2 s" in results[0].reason
    assert exit_code(results) == 3


def test_a_broken_rule_exits_with_one() -> None:
    """A counter-model outweighs everything else."""
    results = prove(["counting"], max_entries=2, source=broken("values[n] <= bound", "values[n] < bound"))
    assert exit_code(results) == 1
    assert any("COUNTER-MODEL" in line for line in results[0].describe())


def test_an_unknown_group_is_named() -> None:
    """Asking for a group that does not exist says which ones do."""
    with pytest.raises(SpecError, match=r"expected groups among responses, .*; seen truth"):
        prove(["truth"])


def test_nothing_proved_is_undecided() -> None:
    """A run that proved nothing is not a success."""
    assert overall([]) is ProofVerdict.NOT_PROVED
    assert exit_code([]) == 3


def test_what_is_lost_without_a_premise_is_told_when_asked() -> None:
    """A group of removals is one line by default; its counter-models come with `verbose`."""
    result = prove_group(all_groups()["removals"], max_entries=2)
    assert len(result.describe()) == 1
    assert any("the common prefix ends at" in line for line in result.describe(verbose=True))


def test_a_result_is_told_in_lines() -> None:
    """The first line holds verdict, name, goals, method and time."""
    result = GroupResult("g", "a title", "bounded", ProofVerdict.PROVED, seconds=1.25)
    assert result.describe() == ["PROVED         g: a title (0 goals, 0 paths, bounded, 1.2 s)"]
