"""The groups of lemmas, and the sizes for which each lemma is proved.

A *lemma* is a Python function that states something about the rules of `impl.rules`. A bounded lemma is proved once per
*size*, a tuple of the lengths of its sequences (mostly epoch caches), up to `max_entries` each. A lemma about any length is
proved once. A *group* is lemmas that are proved together in one process. A *path* (`ProofPath`) is one run of a lemma, on
which it assumes premises and sets goals; `explore` runs it along every path and returns the tally of the goals.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

from tidegauge.spec.proofs.committed.steps import COMMITTED_DATA
from tidegauge.spec.proofs.eligible.steps import CLEAN_ELECTION
from tidegauge.spec.proofs.engine import loops
from tidegauge.spec.proofs.engine.loops import CONTRACTS
from tidegauge.spec.proofs.engine.paths import GoalResult, GoalTally, ProofPath, explore
from tidegauge.spec.proofs.lemmas import any_length, bounds, convergence, tables
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver


def no_size(max_entries: int) -> Iterator[tuple[int, ...]]:
    """Yield one size that means nothing: the lemma has no sequence, or sequences of any length."""
    del max_entries
    yield (0,)


def one_cache(max_entries: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of one sequence, from empty to `max_entries` members."""
    yield from ((n,) for n in range(max_entries + 1))


def two_caches(max_entries: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of a leader's cache, which has entries, and a follower's, which may be empty."""
    yield from product(range(1, max_entries + 1), range(max_entries + 1))


def two_short_caches(max_entries: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of `two_caches` up to three entries: the lemma forks also by the entry at which each log starts."""
    yield from two_caches(min(max_entries, 3))


def two_full_caches(max_entries: int) -> Iterator[tuple[int, ...]]:
    """Yield the sizes of two caches with entries: in epoch mode the follower needs an epoch that it can ask for."""
    yield from product(range(1, max_entries + 1), range(1, max_entries + 1))


@dataclass(frozen=True)
class SizedLemma:
    """A lemma and the sizes for which it is proved."""

    body: Callable[..., None]
    """path, *size -> nothing; sets the goals on the path"""
    sizes: Callable[[int], Iterator[tuple[int, ...]]] = no_size
    """max_entries -> the sizes"""
    any_length: bool = False
    """Sequences without a bound: the helpers' contracts replace their loops."""

    @property
    def name(self) -> str:
        """The name of the function that states it, as words."""
        return getattr(self.body, "__name__", str(self.body)).replace("_", " ")

    def explore(
        self,
        size: tuple[int, ...],
        namespace: Mapping[str, Any],
        dropped: frozenset[str] = frozenset(),
        *,
        stop_at_first: bool = False,
    ) -> GoalTally:
        """Prove the lemma at one size, with the rules in `namespace` and without the `dropped` premises.

        `stop_at_first`: one counter-model is enough; lemmas about any length ignore it.
        """

        def at_size(path: ProofPath) -> None:
            """Run the lemma on a path, with the lengths of its sequences."""
            self.body(path, *size)

        if self.any_length:
            return explore(at_size, namespace, dropped, make_solver=quantified_solver, contracts=CONTRACTS)
        return explore(at_size, namespace, dropped, stop_at_first=stop_at_first)


@dataclass(frozen=True)
class Group:
    """Lemmas that are proved together, in a process of their own."""

    name: str
    title: str
    lemmas: tuple[SizedLemma, ...]
    method: str = "bounded"
    run: Callable[[Mapping[str, Any], int], list[GoalResult]] | None = None
    """Another way to get goals than by proving lemmas: rules by name, max_entries -> the results."""
    weight: int = 1
    """Heavier groups start first, so that two processes end together."""


def _lemmas(sizes: Callable[[int], Iterator[tuple[int, ...]]], *bodies: Callable[..., Any]) -> tuple[SizedLemma, ...]:
    """Return bounded lemmas that are proved at the same `sizes`, a function of max_entries; `bodies` state them."""
    return tuple(SizedLemma(body, sizes) for body in bodies)


BOUNDED: tuple[Group, ...] = (
    Group(
        "responses",
        "the response table of OffsetsForLeaderEpoch, L1 to L5, and its monotony",
        _lemmas(one_cache, tables.response_table, tables.response_monotony, tables.epoch_lookup),
    ),
    Group(
        "cache",
        "assign and truncate keep the epoch cache well formed",
        _lemmas(one_cache, tables.assign, tables.truncate_from_end, tables.truncate_from_start),
    ),
    Group(
        "truncation",
        "where a follower truncates, T1 to T5",
        _lemmas(one_cache, tables.truncation_table, tables.row_t2_is_redundant),
    ),
    Group(
        "fetch",
        "read, diverging or out of range; the out-of-range reset",
        (*_lemmas(one_cache, tables.divergence_table), *_lemmas(no_size, tables.out_of_range)),
    ),
    Group(
        "high-watermark",
        "the leader's rule, what it forgets and acknowledges, the follower's clamp, the truncation, the lift",
        (
            *_lemmas(one_cache, bounds.leader_rule, bounds.lowest_counted),
            *_lemmas(
                no_size, bounds.follower_clamp, bounds.truncated_high_watermark, bounds.minimum_isr, bounds.counted_replicas
            ),
            *_lemmas(no_size, bounds.lifted_high_watermark, bounds.forgotten_log_ends, bounds.acknowledgements),
        ),
    ),
    Group(
        "isr",
        "which replicas may join, which are caught up, and the outcome of a proposal",
        _lemmas(no_size, bounds.isr_admission, bounds.caught_up, bounds.proposals),
    ),
    Group(
        "fencing",
        "which requests, responses and batches are taken",
        (
            *_lemmas(no_size, bounds.fencing, bounds.responses_accepted),
            *_lemmas(no_size, bounds.refusals, bounds.fetch_refusals, bounds.epoch_responses),
            *_lemmas(one_cache, bounds.batches, bounds.first_fetch),
        ),
    ),
    Group("counting", "the counting loops, on any sequence", _lemmas(one_cache, bounds.counting)),
    Group(
        "epoch-step",
        "one OffsetsForLeaderEpoch round truncates nothing common and makes progress",
        _lemmas(two_full_caches, convergence.epoch_step),
        weight=20,
    ),
    Group(
        "fetch-step",
        "one fetch truncates nothing common and makes progress, or reads at the common prefix",
        _lemmas(two_caches, convergence.fetch_step),
        weight=20,
    ),
    Group(
        "deleted",
        "one fetch truncates nothing that the whole logs shared, whatever both have deleted",
        _lemmas(two_short_caches, convergence.fetch_step_with_deleted_records),
        weight=4,
    ),
    Group(
        "epoch-loop",
        "OffsetsForLeaderEpoch rounds end at the longest common prefix",
        _lemmas(two_full_caches, convergence.epoch_loop),
        weight=30,
    ),
    Group(
        "fetch-loop",
        "truncation on fetch ends at the longest common prefix",
        _lemmas(two_caches, convergence.fetch_loop),
        weight=40,
    ),
)


def _any_length(*bodies: Callable[..., Any]) -> tuple[SizedLemma, ...]:
    """Return lemmas about sequences of any length, each stated by one of `bodies`."""
    return tuple(SizedLemma(body, any_length=True) for body in bodies)


UNBOUNDED: tuple[Group, ...] = (
    Group(
        "loops",
        "the counting loops keep their contracts on any sequence",
        _any_length(loops.count_at_most_contract, loops.count_below_contract, loops.lowest_counted_contract),
        method="any length",
    ),
    Group(
        "any-tables",
        "the tables on caches of any length, the leader's rule over any number of replicas",
        _any_length(
            any_length.any_response_table,
            any_length.any_response_monotony,
            any_length.any_assign,
            any_length.any_truncate,
            any_length.any_truncation_table,
            any_length.any_divergence_table,
            any_length.any_leader_rule,
        ),
        method="any length",
        weight=3,
    ),
    Group(
        "any-step",
        "one round keeps premises and common prefix, makes progress or ends there, for caches of any length",
        _any_length(any_length.any_epoch_step, any_length.any_fetch_step),
        method="any length",
        weight=5,
    ),
    Group(
        "committed",
        "committed data lies in every later leader's past and on every ISR member, whatever deposed leaders do",
        _any_length(*COMMITTED_DATA.lemmas),
        method="any number of brokers and epochs",
        weight=15,
    ),
    Group(
        "eligible",
        "a leader elected from ISR or ELR holds everything committed, whatever leaders have not learned yet",
        _any_length(*CLEAN_ELECTION.lemmas),
        method="any number of brokers and epochs",
        weight=5,
    ),
)
