"""Show that no proof is vacuous: without any one of its premises a lemma loses a goal, by a counter-model.

There are two kinds of removals. For every lemma, dropping any premise that it names must refute a goal: a premise that no
goal needs would be a hint that the lemma is empty. And each premise of convergence, as known from Kafka's history, costs the
goal of a loop; `replay.py` replays those counter-models.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import CounterModel, GoalResult, GoalTally, ProofVerdict
from tidegauge.spec.proofs.groups import BOUNDED, UNBOUNDED, Group, SizedLemma, two_full_caches
from tidegauge.spec.proofs.lemmas import convergence
from tidegauge.spec.proofs.lemmas.convergence import LEADER_NEWEST, ONE_PAST, RECORDS_MATCH
from tidegauge.spec.proofs.lemmas.logs import COVERING, INCREASING
from tidegauge.spec.proofs.replay import EPOCH_MODE, FETCH_MODE, LossScenario, replay
from tidegauge.util.errors import SpecError

SMALL = 2
"""Caches of two entries are enough to refute every goal that a premise carries."""

LOOP_GOALS = ("the loop ends at the common prefix", "out of range only when nothing is common")


@dataclass(frozen=True)
class PremiseRemoval:
    """A premise of convergence that is dropped, or a rule replaced by an older one."""

    name: str
    without: frozenset[str]
    kip_101: bool = False

    def lemma(self, mode: str) -> Callable[..., None]:
        """Return the loop lemma in that mode under this removal."""
        if mode == FETCH_MODE:
            return convergence.fetch_loop
        return (
            partial(convergence.epoch_loop, response=convergence.kip_101_response)
            if self.kip_101
            else convergence.epoch_loop
        )


REMOVALS: dict[str, PremiseRemoval] = {
    "two-pasts": PremiseRemoval("an epoch may have two pasts", frozenset({ONE_PAST, RECORDS_MATCH})),
    "records-match": PremiseRemoval("log matching on records only, as Raft has it", frozenset({ONE_PAST})),
    "leader-older": PremiseRemoval("the leader's latest epoch is below the follower's", frozenset({LEADER_NEWEST})),
    "not-increasing": PremiseRemoval("caches need not increase", frozenset({INCREASING})),
    "not-covering": PremiseRemoval("caches need not cover their logs", frozenset({COVERING})),
    "kip-101": PremiseRemoval("the leader answers as KIP-101 has it", frozenset(), kip_101=True),
}


def removal_named(name: str) -> PremiseRemoval:
    """Return the removal called `name`. Raises SpecError when there is none."""
    if name not in REMOVALS:
        raise SpecError(f"expected one of {', '.join(REMOVALS)}; seen {name}")
    return REMOVALS[name]


def modes_of(removal: str) -> tuple[str, ...]:
    """Return the modes in which a removal makes sense: KIP-101 has no truncation on fetch."""
    return (EPOCH_MODE,) if REMOVALS[removal].kip_101 else (EPOCH_MODE, FETCH_MODE)


def counter_model_of(removal: str, mode: str, namespace: Mapping[str, Any]) -> CounterModel | None:
    """Return two logs for which the loop does not end at the common prefix; None when there are none of this size."""
    chosen = REMOVALS[removal]
    lemma = SizedLemma(chosen.lemma(mode), two_full_caches)
    for size in lemma.sizes(SMALL):
        tally = lemma.explore(size, namespace, chosen.without)
        for goal in LOOP_GOALS:
            if goal in tally.refuted:
                return tally.refuted[goal]
    return None


def counter_model_scenario(removal: str = "kip-101", mode: str = EPOCH_MODE) -> LossScenario:
    """Return a counter-model as a run of the plain Python rules. Raises SpecError when there is none."""
    removal_named(removal)
    if mode not in modes_of(removal):
        raise SpecError(f"expected mode {' or '.join(modes_of(removal))} for {removal}; seen {mode}")
    counter_model = counter_model_of(removal, mode, vars(rules))
    if counter_model is None:
        raise SpecError(f"expected a counter-model for {removal} in {mode} mode; seen none: the loop holds without it")
    return replay(counter_model.values["leader"], counter_model.values["follower"], mode, REMOVALS[removal].kip_101)


def removals_refute(namespace: Mapping[str, Any], most: int) -> list[GoalResult]:
    """Show that each removal, in each mode, costs the loop goal."""
    del most
    results = []
    for removal, chosen in REMOVALS.items():
        for mode in modes_of(removal):
            counter_model = counter_model_of(removal, mode, namespace)
            name = f"{mode} mode: {chosen.name}"
            if counter_model is None:
                results.append(
                    GoalResult("without", name, ProofVerdict.NOT_PROVED, reason="no counter-model: nothing depends on it")
                )
                continue
            run = replay(counter_model.values["leader"], counter_model.values["follower"], mode, chosen.kip_101)
            shown = CounterModel(counter_model.goal, run.lines(), counter_model.values)
            results.append(GoalResult("without", name, ProofVerdict.PROVED, checks=1, counter_model=shown))
    return results


def no_premise_is_idle(lemma: SizedLemma, namespace: Mapping[str, Any]) -> list[GoalResult]:
    """Show that every premise the lemma names, dropped alone, costs it a goal."""
    sizes = list(lemma.sizes(SMALL))
    named: set[str] = set()
    for size in sizes:
        named |= lemma.explore(size, namespace).premises
    results = []
    for premise in sorted(named):
        tally = GoalTally()
        # A goal that is lost at one size is enough.
        for size in sizes:
            tally = lemma.explore(size, namespace, frozenset({premise}), stop_at_first=True)
            if tally.refuted:
                break
        name = f"needs that {premise}"
        if tally.refuted:
            counter_model = next(iter(tally.refuted.values()))
            shown = CounterModel(
                counter_model.goal, [f"loses: {counter_model.goal}", "; ".join(counter_model.lines)], counter_model.values
            )
            results.append(GoalResult(lemma.name, name, ProofVerdict.PROVED, checks=1, counter_model=shown))
        else:
            results.append(GoalResult(lemma.name, name, ProofVerdict.NOT_PROVED, reason="no goal is lost without it"))
    return results


def premise_groups(bounded: tuple[Group, ...]) -> tuple[Group, ...]:
    """Return the two groups of this file, over the bounded lemmas."""

    def idle(namespace: Mapping[str, Any], most: int) -> list[GoalResult]:
        del most
        lemmas = [lemma for group in bounded for lemma in group.lemmas]
        return [result for lemma in lemmas for result in no_premise_is_idle(lemma, namespace)]

    return (
        Group("needed", "every premise of every lemma is needed", (), "removal", weight=10, run=idle),
        Group("removals", "convergence fails without each of its premises", (), "removal", weight=10, run=removals_refute),
    )


def all_groups() -> dict[str, Group]:
    """Return the groups for bounded caches, for caches of any length, and those that show that every premise is needed."""
    return {group.name: group for group in (*BOUNDED, *UNBOUNDED, *premise_groups(BOUNDED))}
