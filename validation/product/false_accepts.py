"""Completeness: after every behaviour, what of all that the model cannot tell next does the judge let pass?

Rules of this file

1. In every pair of the product everything that validation.product.candidates makes is offered; but where a behaviour
   is between two events of one step nothing is: a real node does in several what is one step of the model.
2. What is not right is rejected at once, leaves a check open that right events of its kind decide, or passes. Whatever is
   not rejected has a reason by event and changed field (validation.product.reasons), or is a hole in the judge.
3. `let_pass` asks after each memory about everything; `exactly` asks once for all memories that the judge cannot tell apart,
   and counts the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.kernel.one_event import Judge, Table
from tidegauge.conformance.kernel.state import Ints
from validation.product.automaton import Automaton
from validation.product.candidates import Offer, offers_of
from validation.product.executions import Machine, all_groups, judge_of, machine_for
from validation.product.machine import ASKED, MEMORY, OPEN, STATE
from validation.product.reasons import REASONS
from validation.product.walk import Walked

BLOCK = 512
"""Memories that are asked about at a time."""


@dataclass(frozen=True)
class LetPass:
    """What became of the offers of one event and changed field, "" where the event is the model's own."""

    event: str
    field: str
    rejected: int
    open: int
    passed: int

    @property
    def offered(self) -> int:
        """All of them."""
        return self.rejected + self.open + self.passed

    @property
    def reason(self) -> str | None:
        """Why some may pass; None where nothing says so."""
        return REASONS.get((self.event, self.field))

    @property
    def explained(self) -> bool:
        """Nothing of it is let pass, or it says why."""
        return self.open + self.passed == 0 or self.reason is not None


def let_pass(walked: Walked, machine: Machine | None = None, *, memories: int = 0, seed: int = 0) -> tuple[LetPass, ...]:
    """Offer everything after all memories, or after so many of them; those with most let pass first."""
    offers, judge, made = _ready(walked, machine)
    allowed, decided = _allowed(walked.automaton, len(offers)), _decided(walked, offers)
    asked, pairs = _asked(walked, memories, seed)
    states = np.ascontiguousarray(pairs[:, STATE])
    begin = np.append(np.searchsorted(pairs[:, MEMORY], asked), len(pairs)).astype(np.int64)
    counts = np.zeros((len(offers), 3), np.int64)
    for first in range(0, len(asked), BLOCK):
        some = asked[first : first + BLOCK]
        into = np.zeros((len(some), len(offers)), np.int64)
        made.offer(made.kernel[0], judge, walked.tables.spans, walked.tables.memory[some], into)
        made.counted(into, decided, states, begin[first : first + len(some) + 1], allowed, counts)
    return _summed(offers, counts)


def exactly(walked: Walked, machine: Machine | None = None) -> tuple[LetPass, ...]:
    """What `let_pass` says of all memories, of a walk with notes."""
    offers, judge, made = _ready(walked, machine)
    decided = _decided(walked, offers)
    asked, pairs = _asked(walked)
    memory = np.ascontiguousarray(walked.tables.memory[asked])
    places = np.searchsorted(asked, pairs[:, MEMORY])
    weights = np.bincount(places, minlength=len(asked))
    right_at, right = _right(walked.automaton, places, pairs[:, STATE])
    counts = np.zeros((len(offers), 3), np.int64)
    kinds = sorted({(offer.event.event, offer.event.node) for offer in offers})
    for kind in kinds:
        numbers = np.array([x for x, offer in enumerate(offers) if (offer.event.event, offer.event.node) == kind], np.int64)
        groups = all_groups(made, judge, walked.tables.spans, memory, numbers, decided)
        of_group = np.bincount(groups.of, weights, len(groups.first)).astype(np.int64)
        for outcome in range(3):
            counts[numbers, outcome] = of_group @ (groups.outcome == outcome)
        local = np.searchsorted(numbers, right)
        here = (local < len(numbers)) & (numbers[np.minimum(local, len(numbers) - 1)] == right)
        outcomes = groups.outcome[groups.of[right_at[here]], local[here]]
        np.subtract.at(counts, (right[here], outcomes), 1)
    return _summed(offers, counts)


def _ready(walked: Walked, machine: Machine | None) -> tuple[tuple[Offer, ...], Judge, Machine]:
    offers = offers_of(walked.automaton.events, walked.config)
    judge = judge_of([offer.event for offer in offers], walked.config, walked.room, walked.notes)
    return offers, judge, machine or machine_for(judge, walked.tables, walked.notes)


def _asked(walked: Walked, memories: int = 0, seed: int = 0) -> tuple[Ints, Table]:
    """The memories to ask about, all or so many, and the pairs of each, none of them between two events of one step."""
    pairs = walked.pairs[walked.automaton.whole[walked.pairs[:, STATE]]]
    pairs = pairs[np.argsort(pairs[:, MEMORY], kind="stable")]
    asked = np.unique(pairs[:, MEMORY])
    if 0 < memories < len(asked):
        asked = np.sort(np.random.default_rng(seed).choice(asked, memories, replace=False))
        pairs = pairs[np.isin(pairs[:, MEMORY], asked)]
    return asked, pairs


def _right(automaton: Automaton, places: Ints, states: Ints) -> tuple[Ints, Ints]:
    """Every right next event: the place of the memory it comes after, and its number."""
    many = automaton.first[states + 1] - automaton.first[states]
    into = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)
    return np.repeat(places, many), automaton.symbol[np.repeat(automaton.first[states], many) + into]


def completeness(found: Sequence[LetPass]) -> str:
    """One line on what is none."""
    offered, passed, left = (sum(getattr(one, name) for one in found) for name in ("offered", "passed", "open"))
    unexplained = sum(one.passed + one.open for one in found if not one.explained)
    share = (passed + left) / max(offered, 1)
    return (
        f"{offered:,} wrong events offered: {offered - passed - left:,} rejected at once, {left:,} leave a check open, "
        f"{passed:,} pass ({share:.2%} not rejected), {unexplained:,} of them without a reason"
    )


def _summed(offers: tuple[Offer, ...], counts: NDArray[np.int64]) -> tuple[LetPass, ...]:
    return tuple(sorted(_by_kind(offers, counts), key=lambda one: (-one.open - one.passed, one.event, one.field)))


def _by_kind(offers: tuple[Offer, ...], counts: NDArray[np.int64]) -> Iterator[LetPass]:
    for event, field in sorted({(offer.event.event, offer.field) for offer in offers}):
        of = [at for at, offer in enumerate(offers) if (offer.event.event, offer.field) == (event, field)]
        yield LetPass(event, field, *counts[of].sum(axis=0).tolist())


def _decided(walked: Walked, offers: tuple[Offer, ...]) -> Ints:
    """For each offer the rules that a right event of its kind leaves decided somewhere."""
    always_open: dict[str, int] = {}
    for number, mask in zip(walked.verdicts[:, ASKED].tolist(), walked.verdicts[:, OPEN].tolist(), strict=True):
        kind = walked.automaton.events[number].event
        always_open[kind] = always_open.get(kind, -1) & mask
    return np.array([~always_open.get(offer.event.event, 0) for offer in offers], np.int64)


def _allowed(automaton: Automaton, offers: int) -> NDArray[np.bool_]:
    """Which events are right in which state."""
    allowed = np.zeros((automaton.states, offers), np.bool_)
    sources = np.repeat(np.arange(automaton.states), np.diff(automaton.first))
    allowed[sources, automaton.symbol] = True
    return allowed
