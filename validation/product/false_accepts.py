"""Completeness: after every behaviour, which of all events that the model does not allow next does the judge accept?

Rules of this file

1. Every candidate is offered in every pair of the product; but not between two events of one step: a real node does in
   several steps what is one step of the model.
2. A wrong event is rejected at once, leaves a check open that right events of its kind decide, or is accepted. Whatever is
   not rejected has a reason by event and changed field (validation.product.reasons), or is a hole in the judge.
3. `false_accepts` judges everything after each memory; `false_accepts_by_group` judges once for all memories that the judge
   cannot distinguish, and counts the same.
4. The counts are pinned in false_accepts.toml, by model, event and changed field. A changed count, a missing one, one that
   is not met any more and any kind without a reason are differences. After a change of the judge `--pin` writes the file
   anew, and its difference is reviewed.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.engine.one_event import Judge, MemoryTable
from tidegauge.conformance.judge.state import Ints
from tidegauge.traces.schema import Config, Event
from validation.product.automaton import Automaton
from validation.product.client_events import client_events, is_right
from validation.product.executions import Machine, all_groups, judge_of, machine_for
from validation.product.machine import ASKED, MEMORY, OPEN, STATE
from validation.product.reasons import REASONS
from validation.product.walk import Walked
from validation.trace_language import key
from validation.trace_mutants import others

PATH = Path(__file__).with_name("false_accepts.toml")
BLOCK = 512
"""Memories that are asked about at a time."""

Counts = Mapping[str, tuple[int, int]]
"""How many were accepted and how many left a check open, by event and changed field."""


@dataclass(frozen=True)
class Candidate:
    """An event of the model, one of them whose `field` was changed, or one of a client; "" for the model's own."""

    event: Event
    field: str = ""


BY_CLIENT = "to a client"
"""What stands for a changed field where a model without clients is offered one of theirs."""


def candidates_of(events: Sequence[Event], config: Config) -> tuple[Candidate, ...]:
    """Return the model's events, in their order, then each change of one field that is none of them, once; then clients'."""
    seen = {key(event) for event in events}
    candidates = [Candidate(event) for event in events]
    for event in events:
        for name, value in event.fields.items():
            for other in others(name, value, config):
                changed = replace(event, fields={**event.fields, name: other})
                if key(changed) not in seen:
                    seen.add(key(changed))
                    candidates.append(Candidate(changed, name))
    candidates += [Candidate(event, BY_CLIENT) for event in client_events(events, config)]
    return tuple(candidates)


@dataclass(frozen=True)
class FalseAccepts:
    """What became of the wrong candidates of one event and changed field, "" where the event is the model's own."""

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
    def kind(self) -> str:
        """Event and field, as the file of pinned counts names them."""
        return f"{self.event} {self.field}".strip()

    @property
    def reason(self) -> str | None:
        """Why some may pass; None without a reason."""
        return REASONS.get((self.event, self.field))

    @property
    def explained(self) -> bool:
        """None of them passes, or there is a reason."""
        return self.open + self.passed == 0 or self.reason is not None


def false_accepts(
    walked: Walked, machine: Machine | None = None, *, memories: int = 0, seed: int = 0
) -> tuple[FalseAccepts, ...]:
    """Offer every candidate after all memories, or after so many drawn with the seed; most accepted kinds first."""
    candidates, judge, compiled = _ready(walked, machine)
    allowed, decided = _allowed(walked.automaton, candidates), _decided(walked, candidates)
    asked, pairs = _memories_and_pairs(walked, memories, seed)
    states = np.ascontiguousarray(pairs[:, STATE])
    begin = np.append(np.searchsorted(pairs[:, MEMORY], asked), len(pairs)).astype(np.int64)
    counts = np.zeros((len(candidates), 3), np.int64)
    for first in range(0, len(asked), BLOCK):
        block = asked[first : first + BLOCK]
        outcomes = np.zeros((len(block), len(candidates)), np.int64)
        compiled.offer(compiled.kernel[0], judge, walked.tables.spans, walked.tables.memory[block], outcomes)
        compiled.count_outcomes(outcomes, decided, states, begin[first : first + len(block) + 1], allowed, counts)
    return _by_kind(candidates, counts)


def false_accepts_by_group(walked: Walked, machine: Machine | None = None) -> tuple[FalseAccepts, ...]:
    """Return what `false_accepts` returns for all memories, of a walk with notes."""
    candidates, judge, compiled = _ready(walked, machine)
    decided = _decided(walked, candidates)
    asked, pairs = _memories_and_pairs(walked)
    memory = np.ascontiguousarray(walked.tables.memory[asked])
    places = np.searchsorted(asked, pairs[:, MEMORY])
    weights = np.bincount(places, minlength=len(asked))
    right_at, right = _right_events(walked.automaton, places, pairs[:, STATE], candidates)
    counts = np.zeros((len(candidates), 3), np.int64)
    # By kind of event and node, which read the same few cells: over all candidates a group would hardly have two memories.
    kinds = sorted({(candidate.event.event, candidate.event.node) for candidate in candidates})
    for kind in kinds:
        of_kind = [x for x, candidate in enumerate(candidates) if (candidate.event.event, candidate.event.node) == kind]
        numbers = np.array(of_kind, np.int64)
        groups = all_groups(compiled, judge, walked.tables.spans, memory, numbers, decided)
        pairs_of_group = np.bincount(groups.group, weights, len(groups.first)).astype(np.int64)
        for outcome in range(3):
            counts[numbers, outcome] = pairs_of_group @ (groups.outcome == outcome)
        # The groups have judged right events too: subtract each from the outcome that it has there.
        local = np.searchsorted(numbers, right)
        here = (local < len(numbers)) & (numbers[np.minimum(local, len(numbers) - 1)] == right)
        outcomes = groups.outcome[groups.group[right_at[here]], local[here]]
        np.subtract.at(counts, (right[here], outcomes), 1)
    return _by_kind(candidates, counts)


def _ready(walked: Walked, machine: Machine | None) -> tuple[tuple[Candidate, ...], Judge, Machine]:
    candidates = candidates_of(walked.automaton.events, walked.config)
    judge = judge_of([candidate.event for candidate in candidates], walked.config, walked.room, walked.notes)
    return candidates, judge, machine or machine_for(judge, walked.tables, walked.notes)


def _memories_and_pairs(walked: Walked, memories: int = 0, seed: int = 0) -> tuple[Ints, MemoryTable]:
    """Return the memories to ask about, all or so many, and their pairs outside of steps, sorted by memory."""
    pairs = walked.pairs[walked.automaton.whole[walked.pairs[:, STATE]]]
    pairs = pairs[np.argsort(pairs[:, MEMORY], kind="stable")]
    asked = np.unique(pairs[:, MEMORY])
    if 0 < memories < len(asked):
        asked = np.sort(np.random.default_rng(seed).choice(asked, memories, replace=False))
        pairs = pairs[np.isin(pairs[:, MEMORY], asked)]
    return asked, pairs


def _right_events(automaton: Automaton, places: Ints, states: Ints, candidates: Sequence[Candidate]) -> tuple[Ints, Ints]:
    """Return every right next event: the place of the memory that it follows, and its number."""
    client_at, client = _right_to_clients(automaton, candidates)
    order = np.argsort(client_at, kind="stable")
    client_first = np.searchsorted(client_at[order], np.arange(automaton.states + 1))
    own_at, own = _following(automaton.first, automaton.symbol, places, states)
    to_clients_at, to_clients = _following(client_first, client[order], places, states)
    return np.concatenate((own_at, to_clients_at)), np.concatenate((own, to_clients))


def _following(first: Ints, symbol: Ints, places: Ints, states: Ints) -> tuple[Ints, Ints]:
    """Return each place once for each symbol of its state, with it; those of state s are first[s] to first[s + 1]."""
    many = first[states + 1] - first[states]
    within = np.arange(many.sum()) - np.repeat(np.cumsum(many) - many, many)  # 0, 1, .. anew for each state
    return np.repeat(places, many), symbol[np.repeat(first[states], many) + within]


def _decided(walked: Walked, candidates: tuple[Candidate, ...]) -> Ints:
    """Return for each candidate the rules that a right event of its kind leaves decided somewhere."""
    always_open: dict[str, int] = {}
    for number, mask in zip(walked.verdicts[:, ASKED].tolist(), walked.verdicts[:, OPEN].tolist(), strict=True):
        kind = walked.automaton.events[number].event
        always_open[kind] = always_open.get(kind, -1) & mask
    return np.array([~always_open.get(candidate.event.event, 0) for candidate in candidates], np.int64)


def _allowed(automaton: Automaton, candidates: Sequence[Candidate]) -> NDArray[np.bool_]:
    """Return which events are right in which state. Candidates begin with the automaton's events, so numbers agree."""
    allowed = np.zeros((automaton.states, len(candidates)), np.bool_)
    sources = np.repeat(np.arange(automaton.states), np.diff(automaton.first))
    allowed[sources, automaton.symbol] = True
    states, numbers = _right_to_clients(automaton, candidates)
    allowed[states, numbers] = True
    return allowed


def _right_to_clients(automaton: Automaton, candidates: Sequence[Candidate]) -> tuple[Ints, Ints]:
    """Return where what clients are told is right: states of the automaton, and numbers of candidates."""
    found = [
        (state, number)
        for number, candidate in enumerate(candidates)
        if candidate.field == BY_CLIENT
        for state, views in enumerate(automaton.inside)
        if any(is_right(candidate.event, view) for view in views)
    ]
    pairs = np.array(found, np.int64).reshape(-1, 2)
    return pairs[:, 0], pairs[:, 1]


def _by_kind(candidates: tuple[Candidate, ...], counts: NDArray[np.int64]) -> tuple[FalseAccepts, ...]:
    def summed() -> Iterator[FalseAccepts]:
        for event, field in sorted({(candidate.event.event, candidate.field) for candidate in candidates}):
            rows = [at for at, each in enumerate(candidates) if (each.event.event, each.field) == (event, field)]
            yield FalseAccepts(event, field, *counts[rows].sum(axis=0).tolist())

    return tuple(sorted(summed(), key=lambda kind: (-kind.open - kind.passed, kind.event, kind.field)))


def completeness(kinds: Sequence[FalseAccepts]) -> str:
    """Return one line about wrong events."""
    offered, passed, left = (sum(getattr(kind, name) for kind in kinds) for name in ("offered", "passed", "open"))
    unexplained = sum(kind.passed + kind.open for kind in kinds if not kind.explained)
    share = (passed + left) / max(offered, 1)
    return (
        f"{offered:,} wrong events offered: {offered - passed - left:,} rejected at once, {left:,} leave a check open, "
        f"{passed:,} pass ({share:.2%} not rejected), {unexplained:,} of them without a reason"
    )


def counts_of(kinds: Sequence[FalseAccepts]) -> Counts:
    """Return the counts of the kinds that are not always rejected."""
    some = sorted((kind for kind in kinds if kind.passed + kind.open), key=lambda kind: (kind.event, kind.field))
    return {kind.kind: (kind.passed, kind.open) for kind in some}


def pinned(path: Path = PATH) -> dict[str, Counts]:
    """Return the pinned counts of each model that has some."""
    if not path.exists():
        return {}
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {model: {kind: (pair[0], pair[1]) for kind, pair in table.items()} for model, table in tables.items()}


def differences(kinds: Sequence[FalseAccepts], expected: Counts) -> list[str]:
    """Return a line for each kind that has no reason, or other counts than are pinned."""
    seen = counts_of(kinds)
    lines = [f"{kind.kind}: let pass without a reason" for kind in kinds if not kind.explained]
    for name in sorted(seen.keys() | expected.keys()):
        passed, left = expected.get(name, (0, 0))
        now_passed, now_left = seen.get(name, (0, 0))
        if (passed, left) != (now_passed, now_left):
            lines.append(f"{name}: expected {passed:,} passed and {left:,} open, seen {now_passed:,} and {now_left:,}")
    return lines


def pin(counts: Mapping[str, Counts], path: Path = PATH) -> None:
    """Write the counts, models in the given order."""
    lines = [
        "# What the judge lets pass: [passed, left open] by model, event and changed field. Reasons: reasons.py.",
        "# Made by `python -m validation.product --pin`.",
    ]
    for model, table in counts.items():
        lines += ["", f'["{model}"]', *(f'"{kind}" = [{passed}, {left}]' for kind, (passed, left) in table.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
