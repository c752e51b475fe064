"""The proofs without a bound: what they assume can hold, and they do not prove what is false."""

import inspect
from typing import Any

import pytest
import z3

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.loops import CONTRACTS, split
from tidegauge.spec.proofs.engine.paths import ProofPath, ProofVerdict, explore
from tidegauge.spec.proofs.lemmas import any_length
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver, two_any_logs
from tidegauge.spec.proofs.lemmas.convergence import LEADER_NEWEST, ONE_PAST
from tidegauge.spec.proofs.premises import all_groups
from tidegauge.spec.proofs.prove import namespace_of, prove_group

SOURCE = inspect.getsource(rules)


def concrete(path: ProofPath, log: Any, entries: list[tuple[int, int]], log_end: int) -> None:
    """Pins a log of any length to one log."""
    path.assume(log.size == len(entries))
    path.assume(log.log_start == (entries[0][1] if entries else log_end))
    path.assume(log.log_end == log_end)
    for i, (epoch, start) in enumerate(entries):
        path.assume(z3.And(log.epoch(i) == epoch, log.start(i) == start))
    for offset in range(log_end):
        held = [i for i, (_, start) in enumerate(entries) if start <= offset]
        if held:
            path.assume(log.index(offset) == held[-1])


@pytest.mark.parametrize(
    ("leader", "follower", "common"),
    [
        (([(0, 0), (2, 3)], 5), ([(0, 0), (1, 3)], 8), 3),
        (([(0, 0)], 4), ([(0, 0)], 9), 4),
        (([(1, 0), (4, 2)], 6), ([(1, 0), (2, 4)], 5), 2),
    ],
)
def test_the_premises_hold_for_real_logs(leader: Any, follower: Any, common: int) -> None:
    """Quantified premises are not contradictory: with two concrete logs nothing false follows, and the prefix is right."""

    def lemma(path: ProofPath) -> None:
        left, right, shared = two_any_logs(path)
        concrete(path, left, *leader)
        concrete(path, right, *follower)
        path.goal("the common prefix", shared.end == common)
        path.goal("falsehood", z3.BoolVal(False))

    tally = explore(lemma, vars(rules), make_solver=quantified_solver, contracts=CONTRACTS)
    assert "the common prefix" in tally.proved
    assert "falsehood" in tally.unknown


@pytest.mark.parametrize(
    ("old", "new", "group"),
    [
        ("values[n] <= bound", "values[n] < bound", "loops"),
        ("counted[i] and values[i] < lowest", "values[i] < lowest", "loops"),
        ("return epochs[known - 1], starts[known]  # L5", "return requested, starts[known]  # L5", "any-step"),
        pytest.param(
            "return 4, min(own_end, log_end), False",
            "return 4, min(own_end, log_end), True",
            "any-step",
            marks=pytest.mark.long,
        ),
        pytest.param(
            "epoch < last_fetched_epoch or end < fetch_offset", "end < fetch_offset", "any-step", marks=pytest.mark.long
        ),
        ("return requested, starts[0]  # L4", "return requested, starts[1]  # L4", "any-tables"),
    ],
)
def test_a_wrong_rule_is_not_proved(old: str, new: str, group: str) -> None:
    """Without a bound a wrong rule is NOT PROVED: no model is claimed where statements about all entries are involved."""
    assert SOURCE.count(old) == 1
    result = prove_group(all_groups()[group], source=SOURCE.replace(old, new))
    assert result.verdict in (ProofVerdict.NOT_PROVED, ProofVerdict.COUNTER_MODEL)
    assert result.verdict is ProofVerdict.NOT_PROVED or group == "loops"


@pytest.mark.parametrize("name", list(CONTRACTS))
def test_a_loop_is_truncated_out_of_the_code_that_runs(name: str) -> None:
    """The pieces, run one after the other in CPython, give what the helper gives."""
    loop = split(name, vars(rules))
    arguments: tuple[Any, ...] = ((1, 3, 3, 7), 3) if name != "lowest_counted" else (9, (4, 2, 8), (True, False, True))

    def plain(piece: Any) -> Any:
        return type(piece)(piece.__code__, {"__builtins__": __builtins__})

    state = plain(loop.before)(*arguments)
    for _ in range(10):
        entered, *after = plain(loop.turn)(*arguments, *state)
        state = tuple(after)
        if not entered:
            break
    assert plain(loop.after)(*arguments, *state) == getattr(rules, name)(*arguments)


def test_a_text_that_is_not_the_code_is_refused() -> None:
    """The loop cannot be cut out of a text other than the code object's own."""
    namespace = dict(namespace_of(SOURCE))
    namespace["__source__"] = SOURCE.replace("values[n] <= bound", "values[n] < bound")
    with pytest.raises(ValueError, match="expected the text of count_at_most to be its code"):
        split("count_at_most", namespace)
    namespace["__source__"] = SOURCE
    with pytest.raises(ValueError, match="one loop and a return"):
        split("latest_epoch", namespace)


@pytest.mark.parametrize("premise", [ONE_PAST, pytest.param(LEADER_NEWEST, marks=pytest.mark.long)])
def test_without_a_premise_the_step_is_not_proved(premise: str) -> None:
    """Dropping premise 2 or 3 costs the step at any length a goal, too."""
    tally = explore(
        lambda path: any_length.any_epoch_step(path, 0),
        vars(rules),
        frozenset({premise}),
        make_solver=quantified_solver,
        contracts=CONTRACTS,
    )
    assert tally.premises == {ONE_PAST, LEADER_NEWEST}
    assert tally.unknown


def test_every_index_is_proved_in_range() -> None:
    """Reading a cache of any length carries the obligation to stay inside, and it is met."""
    tally = explore(
        lambda path: any_length.any_response_table(path, 0), vars(rules), make_solver=quantified_solver, contracts=CONTRACTS
    )
    assert tally.proved["every index in range"] > 0
