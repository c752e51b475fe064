"""Show that no proof is vacuous: without any one of its premises a lemma loses a goal, by a counter-model.

There are two kinds of removals. For every lemma, dropping any premise that it names must refute a goal: a premise that no
goal needs would be a hint that the lemma is empty. And each premise of convergence, as known from Kafka's history, costs the
goal of a loop; those counter-models are replayed.
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
from tidegauge.spec.proofs.lemmas.logs import COVERING, INCREASING, LogValue
from tidegauge.util.errors import SpecError

# Counter-models as runs: two concrete logs, replayed with the plain Python rules.
#
# A counter-model of a convergence lemma is a pair of logs. Replaying it in CPython, round by round, shows that the loop ends
# elsewhere than at the longest common prefix: there is no need to trust the solver.


EPOCH_MODE, FETCH_MODE = "epoch", "fetch"

DONE, OUT_OF_RANGE, ENDLESS = "the follower stops", "the leader says out of range", "no end, still truncating"

ROUND_LIMIT = 50


@dataclass(frozen=True)
class Round:
    """One exchange: the follower's log end and requested epoch, the response, and its truncation."""

    log_end: int
    asked: int
    response: tuple[int, int]
    row: int
    target: int

    def __str__(self) -> str:
        """Return the round as a counter-model prints it: the question, the response and the truncation."""
        epoch, end = self.response
        reported = f"told (epoch {epoch}, end {end})"
        return f"at LEO {self.log_end} with epoch {self.asked}: {reported}, row T{self.row}, truncated at {self.target}"


@dataclass(frozen=True)
class LossScenario:
    """Two logs, the rounds between them, and the actual and the expected end."""

    mode: str
    leader: LogValue
    follower: LogValue
    rounds: tuple[Round, ...]
    end: int
    common_end: int
    outcome: str

    @property
    def converged(self) -> bool:
        """Whether the follower's log ends at the common prefix; below the comparable part all offsets are equally good."""
        low = max(self.leader.log_start, self.follower.log_start)
        # Out of range is right where nothing is common.
        if self.outcome == OUT_OF_RANGE:
            return self.common_end <= low
        return self.outcome == DONE and max(self.end, low) == max(self.common_end, low)

    def lines(self) -> list[str]:
        """Return the run as text."""
        reported = [f"leader    {self.leader}", f"follower  {self.follower}", *[f"  {exchange}" for exchange in self.rounds]]
        return [*reported, f"  {self.outcome} at {self.end}; the common prefix ends at {self.common_end}"]


def record_epoch(log: LogValue, offset: int) -> int:
    """Return the epoch of the record at `offset`, by walking the cache from the start."""
    epoch = rules.UNDEFINED
    for e, s in zip(log.epochs, log.starts, strict=True):
        if s <= offset:
            epoch = e
    return epoch


def common_end(leader: LogValue, follower: LogValue) -> int:
    """Return the end of the longest common prefix, record by record."""
    end = min(leader.log_end, follower.log_end)
    for offset in range(max(leader.log_start, follower.log_start), end):
        if record_epoch(leader, offset) != record_epoch(follower, offset):
            return offset
    return end


def replay(leader: LogValue, follower: LogValue, mode: str = FETCH_MODE, kip_101: bool = False) -> LossScenario:
    """Run the truncation loop with the rules of `impl` until it ends.

    `kip_101`: the leader answers with the end offset only, and the follower takes it for the epoch it asked for.
    """
    now = follower
    rounds: list[Round] = []
    outcome = ENDLESS
    while outcome == ENDLESS and len(rounds) < ROUND_LIMIT:
        requested = rules.latest_epoch(now.epochs)
        if mode == FETCH_MODE:
            decision, *response = rules.fetch_decision(
                leader.epochs, leader.starts, leader.log_start, leader.log_end, now.log_end, requested
            )
            if decision != rules.DIVERGING:
                outcome = DONE if decision == rules.READ else OUT_OF_RANGE
                break
            epoch, end = response
        else:
            epoch, end = rules.end_offset_for(leader.epochs, leader.starts, leader.log_end, requested)
        # The response of KIP-101 has no epoch (KIP-279 added it), so the follower takes the offset for its own epoch.
        if kip_101:
            epoch = requested
        row, target, done = rules.truncation_target(now.epochs, now.starts, now.log_end, now.log_end, epoch, end)
        rounds.append(Round(now.log_end, requested, (epoch, end), row, target))
        now = truncated(now, target)
        if mode == EPOCH_MODE and done:
            outcome = DONE
    return LossScenario(mode, leader, follower, tuple(rounds), now.log_end, common_end(leader, follower), outcome)


def truncated(log: LogValue, target: int) -> LogValue:
    """Return the log after a truncation."""
    end = min(target, log.log_end)
    keeps = rules.truncate_from_end_keeps(log.starts, end)
    return LogValue(log.epochs[:keeps], log.starts[:keeps], min(log.log_start, end), end)


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
        """Return the goals that no premise of a lemma is idle: without each, some other goal is lost."""
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
