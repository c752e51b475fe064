"""Show that no proof is vacuous: without any one of its premises a lemma loses a goal, by a counter-model.

There are two kinds of removals. For every lemma, dropping any premise that it names must refute a goal: a premise that no
goal needs would be a hint that the lemma is empty. And each premise of convergence, as known from Kafka's history, costs the
goal of a loop; those counter-models are replayed.

Terms: a *removal* is a premise of convergence that is dropped, or a rule replaced by the one of an older Kafka. In *epoch
mode* the follower truncates by OffsetsForLeaderEpoch rounds (KIP-101, KIP-279), in *fetch mode* by diverging fetch responses
(KIP-595). A *scenario* is a counter-model of a loop lemma, replayed with plain numbers. A goal of this file is PROVED when
something is lost without the premise, and its counter-model shows what. A `SizedLemma` is a lemma with the sizes (numbers of
cache entries) for which it is proved; its `explore` proves it at one size, with the rules by name (`namespace`) and without
some premises, and returns a tally: `refuted` has a counter-model by the name of each goal that is lost.
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
"""Rounds after which a replay counts as endless; the logs of the counter-models have two cache entries."""


@dataclass(frozen=True)
class Round:
    """One exchange: the follower's log end and requested epoch, the response, and its truncation."""

    log_end: int
    requested: int
    """the epoch that the follower asked for"""
    response: tuple[int, int]
    """(epoch, end offset)"""
    row: int
    """of the follower's table, 1 to 5"""
    target: int
    """where it truncates"""

    def __str__(self) -> str:
        """Return the round as a counter-model prints it: the requested epoch, the response and the truncation."""
        epoch, end = self.response
        reported = f"told (epoch {epoch}, end {end})"
        return f"at LEO {self.log_end} with epoch {self.requested}: {reported}, row T{self.row}, truncated at {self.target}"


@dataclass(frozen=True)
class LossScenario:
    """Two logs, the rounds between them, and the actual and the expected end."""

    mode: str
    leader: LogValue
    follower: LogValue
    """as it was before the first round"""
    rounds: tuple[Round, ...]
    end: int
    """the follower's log end after the last round"""
    common_end: int
    """the end of the longest common prefix: where it should end"""
    outcome: str
    """DONE, OUT_OF_RANGE or ENDLESS"""

    @property
    def converged(self) -> bool:
        """Whether the follower's log ends at the common prefix.

        Below `low`, the higher of the two log starts, nothing can be compared: all offsets there are equally good.
        """
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
    """Return the epoch of the record at `offset`, UNDEFINED below the first entry. It shares no code with the rules."""
    epoch = rules.UNDEFINED
    for e, s in zip(log.epochs, log.starts, strict=True):
        if s <= offset:
            epoch = e
    return epoch


def common_end(leader: LogValue, follower: LogValue) -> int:
    """Return the end of the longest common prefix, by comparing the logs record by record."""
    end = min(leader.log_end, follower.log_end)
    for offset in range(max(leader.log_start, follower.log_start), end):
        if record_epoch(leader, offset) != record_epoch(follower, offset):
            return offset
    return end


def replay(leader: LogValue, follower: LogValue, mode: str = FETCH_MODE, kip_101: bool = False) -> LossScenario:
    """Run the truncation loop with the rules of `impl` until it ends, or for ROUND_LIMIT rounds.

    `mode` is EPOCH_MODE or FETCH_MODE. `kip_101`: the leader answers with the end offset only, and the follower takes it for
    the epoch it asked for.
    """
    # The follower's log, shorter after each round.
    now = follower
    rounds: list[Round] = []
    outcome = ENDLESS
    while outcome == ENDLESS and len(rounds) < ROUND_LIMIT:
        requested = rules.latest_epoch(now.epochs)
        if mode == FETCH_MODE:
            decision, *response = rules.fetch_decision(
                leader.epochs, leader.starts, leader.log_start, leader.log_end, now.log_end, requested
            )
            # The follower reads on, or is out of range: this fetch truncates nothing.
            if decision != rules.DIVERGING:
                outcome = DONE if decision == rules.READ else OUT_OF_RANGE
                break
            epoch, end = response
        else:
            epoch, end = rules.end_offset_for(leader.epochs, leader.starts, leader.log_end, requested)
        # The response of KIP-101 has no epoch (KIP-279 added it), so the follower takes the offset for its own epoch.
        if kip_101:
            epoch = requested
        # The log end is also the fetch offset. `done`: the follower asks for no further epoch.
        row, target, done = rules.truncation_target(now.epochs, now.starts, now.log_end, now.log_end, epoch, end)
        rounds.append(Round(now.log_end, requested, (epoch, end), row, target))
        now = truncated(now, target)
        # In fetch mode the follower always fetches again.
        if mode == EPOCH_MODE and done:
            outcome = DONE
    return LossScenario(mode, leader, follower, tuple(rounds), now.log_end, common_end(leader, follower), outcome)


def truncated(log: LogValue, target: int) -> LogValue:
    """Return the log after a truncation at `target`; one below the log start leaves an empty log."""
    # A target above the log end truncates nothing.
    end = min(target, log.log_end)
    keeps = rules.truncate_from_end_keeps(log.starts, end)
    return LogValue(log.epochs[:keeps], log.starts[:keeps], min(log.log_start, end), end)


SMALL = 2
"""Caches of two entries are enough to refute every goal that a premise carries."""

LOOP_GOALS = ("the loop ends at the common prefix", "out of range only when nothing is common")
"""The goals of `convergence.epoch_loop` and `convergence.fetch_loop` that say where the loop ends."""


@dataclass(frozen=True)
class PremiseRemoval:
    """A premise of convergence that is dropped, or a rule replaced by an older one."""

    name: str
    without: frozenset[str]
    """names of the dropped premises; ONE_PAST alone leaves the weaker RECORDS_MATCH in its place"""
    kip_101: bool = False
    """whether the leader answers as KIP-101 has it, with an end offset and no epoch"""

    def lemma(self, mode: str) -> Callable[..., None]:
        """Return the lemma about the truncation loop in that mode, with the leader's old rule if the removal is one."""
        if mode == FETCH_MODE:
            return convergence.fetch_loop
        if self.kip_101:
            return partial(convergence.epoch_loop, response=convergence.kip_101_response)
        return convergence.epoch_loop


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
    """Return two logs of up to SMALL entries for which the loop does not end at the common prefix; None when there are none.

    `namespace` has the rules by name.
    """
    chosen = REMOVALS[removal]
    lemma = SizedLemma(chosen.lemma(mode), two_full_caches)
    for size in lemma.sizes(SMALL):
        tally = lemma.explore(size, namespace, chosen.without)
        for goal in LOOP_GOALS:
            if goal in tally.refuted:
                return tally.refuted[goal]
    return None


def counter_model_scenario(removal: str = "kip-101", mode: str = EPOCH_MODE) -> LossScenario:
    """Return the counter-model under a removal (a key of REMOVALS), replayed with the plain Python rules.

    Raises SpecError for an unknown removal, for a mode it has not, and when there is no counter-model.
    """
    removal_named(removal)
    if mode not in modes_of(removal):
        raise SpecError(f"expected mode {' or '.join(modes_of(removal))} for {removal}; seen {mode}")
    counter_model = counter_model_of(removal, mode, vars(rules))
    if counter_model is None:
        raise SpecError(f"expected a counter-model for {removal} in {mode} mode; seen none: the loop holds without it")
    return replay(counter_model.values["leader"], counter_model.values["follower"], mode, REMOVALS[removal].kip_101)


def removals_refute(namespace: Mapping[str, Any], max_entries: int) -> list[GoalResult]:
    """Show that each removal, in each mode, costs the goal that the loop ends at the common prefix; replay each loss.

    `max_entries` is not used: two entries are always enough.
    """
    del max_entries
    # A goal is called by the lemma it belongs to, here "without", and by what is removed.
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
            # Shown as the rounds of the replay in place of the solver's values.
            shown = CounterModel(counter_model.goal, run.lines(), counter_model.values)
            results.append(GoalResult("without", name, ProofVerdict.PROVED, checks=1, counter_model=shown))
    return results


def no_premise_is_idle(lemma: SizedLemma, namespace: Mapping[str, Any]) -> list[GoalResult]:
    """Show that every premise the lemma names, dropped alone, costs it a goal; return a result for each premise."""
    sizes = list(lemma.sizes(SMALL))
    # A first run with all premises finds their names.
    premises: set[str] = set()
    for size in sizes:
        premises |= lemma.explore(size, namespace).premises
    results = []
    for premise in sorted(premises):
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
    """Return the two groups of this file; the first is about the lemmas of the `bounded` groups."""

    def no_premise_of_any_is_idle(namespace: Mapping[str, Any], max_entries: int) -> list[GoalResult]:
        """Return the results of `no_premise_is_idle` for all these lemmas."""
        del max_entries
        lemmas = [lemma for group in bounded for lemma in group.lemmas]
        return [result for lemma in lemmas for result in no_premise_is_idle(lemma, namespace)]

    # No lemmas of their own: `run` gives the results. The method, "removal", is only printed; heavy groups start first.
    return (
        Group("needed", "every premise of every lemma is needed", (), "removal", weight=10, run=no_premise_of_any_is_idle),
        Group("removals", "convergence fails without each of its premises", (), "removal", weight=10, run=removals_refute),
    )


def all_groups() -> dict[str, Group]:
    """Return the groups for bounded caches, for caches of any length, and those that show that every premise is needed."""
    return {group.name: group for group in (*BOUNDED, *UNBOUNDED, *premise_groups(BOUNDED))}
