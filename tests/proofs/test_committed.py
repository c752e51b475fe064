"""The committed-data invariant on concrete clusters: it holds where the steps lead, and it is not empty words."""

import copy
import random
import types
from collections import Counter
from itertools import product
from typing import Any

import pytest
import z3

from impl import rules
from spec.proofs import committed
from spec.proofs.any_length import quantified_solver
from spec.proofs.committed import (
    COMMIT_NEEDS_ALL,
    ELECT_FROM_ISR,
    INVARIANT,
    JOIN_AT_EPOCH_START,
    JOIN_AT_HIGH_WATERMARK,
    RESTART_LEADS_LATER,
    State,
)
from spec.proofs.committed_steps import STEPS, assume_invariant, commit, elect, expand, keeps, restart
from spec.proofs.loops import CONTRACTS
from spec.proofs.paths import Path, explore

BROKERS = 3


class Plain:
    """The connectives of z3 on plain values."""

    And = staticmethod(lambda *parts: all(parts))
    Or = staticmethod(lambda *parts: any(parts))
    Not = staticmethod(lambda part: not part)
    Implies = staticmethod(lambda left, right: not left or right)
    If = staticmethod(lambda test, yes, no: yes if test else no)


def plain_conjuncts() -> dict[str, tuple[int, Any]]:
    """Every conjunct's own code object, run on plain values."""
    overlay: dict[str, Any] = {"__builtins__": __builtins__, "z3": Plain, "lower": min}
    for name, value in vars(committed).items():
        if isinstance(value, types.FunctionType) and name.startswith("_"):
            overlay[name] = types.FunctionType(value.__code__, overlay)
    return {c.name: (len(c.variables.split()), types.FunctionType(c.holds.__code__, overlay)) for c in INVARIANT}


PLAIN = plain_conjuncts()


class Cluster:
    """A small cluster with the ghosts of the invariant; a step that its guard forbids does nothing and says so."""

    def __init__(self, without: str = "") -> None:
        self.without = without
        self.current = 0
        self.leader = [0]
        self.isr = [set(range(BROKERS))]
        self.known = [-1] * BROKERS
        self.log: list[list[int]] = [[] for _ in range(BROKERS)]
        self.start: dict[int, int] = {}
        self.hist: dict[int, list[int]] = {}
        self.remote: Counter[tuple[int, int]] = Counter()
        self.committed: Counter[int] = Counter()
        self.cap: dict[int, int] = {}
        self.witness: dict[int, int] = {}
        self.hw = [0] * BROKERS
        self.origin = [0] * BROKERS
        self.asked: Counter[tuple[int, int]] = Counter()
        self.shown: Counter[int] = Counter()
        self.shown_from: Counter[int] = Counter()

    def leads(self, e: int) -> bool:
        return 0 <= e <= self.current and self.known[self.leader[e]] == e

    def elect(self, b: int, dropped: set[int] = frozenset()) -> bool:  # type: ignore[assignment]
        if self.without != ELECT_FROM_ISR and b not in self.isr[self.current]:
            return False
        self.isr.append((self.isr[self.current] - dropped) | {b})
        self.leader.append(b)
        self.current += 1
        return True

    def learn(self, b: int, e: int, lost: int = 0) -> bool:
        if not self.known[b] < e <= self.current:
            return False
        self.hw[b] = max(0, self.hw[b] - lost)
        if self.leader[e] == b:
            for x in range(e):
                if self.leader[x] == b:
                    self.cap[x], self.witness[x] = self.committed[x], b
                elif b in self.isr[x] and self.asked[x, b] <= self.cap.get(x, self.asked[x, b]):
                    self.cap[x], self.witness[x] = self.asked[x, b], b
            self.start[e], self.hist[e] = len(self.log[b]), list(self.log[b])
            self.shown[e], self.shown_from[e] = self.hw[b], self.origin[b]
        self.known[b] = e
        return True

    def append(self, e: int) -> bool:
        if not self.leads(e):
            return False
        self.log[self.leader[e]].append(e)
        self.hist[e].append(e)
        return True

    def cut(self, f: int, target: int) -> bool:
        e = self.known[f]
        if not self.follows(f) or not 0 <= target < len(self.log[f]):
            return False
        if target < len(self.hist[e]) and self.hist[e][target] == self.log[f][target]:
            return False
        del self.log[f][target:]
        self.hw[f] = rules.high_watermark_after_truncation(self.hw[f], target)
        return True

    def follows(self, f: int) -> bool:
        e = self.known[f]
        return e in self.hist and self.leader[e] != f

    def ask(self, f: int) -> bool:
        e, end = self.known[f], len(self.log[f])
        if not self.follows(f) or end > len(self.hist[e]) or (end and self.hist[e][end - 1] != self.log[f][end - 1]):
            return False
        self.asked[e, f] = max(self.asked[e, f], end)
        return True

    def serve(self, e: int, f: int, offset: int) -> bool:
        if not self.leads(e) or self.leader[e] == f or not 0 <= offset <= self.asked[e, f]:
            return False
        self.remote[e, f] = offset
        return True

    def take(self, f: int, new_end: int, late: int = 0) -> bool:
        e, end = self.known[f], len(self.log[f])
        if not self.follows(f) or end > self.asked[e, f] or not end <= new_end <= len(self.hist[e]):
            return False
        self.log[f] += self.hist[e][end:new_end]
        self.hw[f] = rules.follower_high_watermark(max(0, self.shown[e] - late), 0, new_end)
        self.origin[f] = self.shown_from[e]
        return True

    def fetch(self, f: int, new_end: int) -> bool:
        """Asked, served and taken at once."""
        e, end = self.known[f], len(self.log[f])
        if not self.leads(e) or not end <= new_end <= len(self.hist[e]):
            return False
        return self.ask(f) and self.serve(e, f, end) and self.take(f, new_end)

    def commit(self, e: int) -> bool:
        if not self.leads(e):
            return False
        leos = [self.remote[e, r] for r in range(BROKERS)]
        counted = [r in self.isr[e] and r != self.leader[e] for r in range(BROKERS)]
        if self.without == COMMIT_NEEDS_ALL:
            counted = [False] * BROKERS
        b = self.leader[e]
        hw = rules.leader_high_watermark(self.hw[b], len(self.hist[e]), leos, counted, False)
        if hw <= self.hw[b]:
            return False
        self.committed[e], self.hw[b], self.origin[b] = hw, hw, e
        self.shown[e], self.shown_from[e] = hw, e
        return True

    def restart(self, b: int, lost: int) -> bool:
        if self.without != RESTART_LEADS_LATER and self.leads(self.known[b]) and self.leader[self.known[b]] == b:
            return False
        self.hw[b] = max(0, self.hw[b] - lost)
        return True

    def shrink(self, r: int) -> bool:
        if not self.leads(self.current) or r == self.leader[self.current] or r not in self.isr[self.current]:
            return False
        self.isr[self.current].discard(r)
        return True

    def expand(self, r: int) -> bool:
        e = self.current
        if not self.leads(e) or r in self.isr[e]:
            return False
        hw = 0 if self.without == JOIN_AT_HIGH_WATERMARK else self.hw[self.leader[e]]
        start = 0 if self.without == JOIN_AT_EPOCH_START else self.start[e]
        if not rules.may_join_isr(self.remote[e, r], hw, start):
            return False
        self.isr[e].add(r)
        return True

    def random_step(self, choice: random.Random) -> str:
        b, e, size = choice.randrange(BROKERS), choice.randint(0, self.current), choice.randint(0, 4)
        names = ["elect", "learn", "append", "cut", "fetch", "commit", "shrink", "expand", "restart", "ask", "serve", "take"]
        name = choice.choices(names, weights=[1, 6, 8, 16, 20, 14, 1, 8, 1, 6, 6, 6])[0]
        if (name == "elect" and self.current >= 3) or (name == "append" and max(map(len, self.log)) >= 4):
            return ""
        two = {"learn": (b, e, size % 2), "cut": (b, size), "fetch": (b, size), "restart": (b, size)}
        flying = {"serve": (e, b, size), "take": (b, size, size % 2)}
        arguments = {"append": (e,), "commit": (e,), **two, **flying}.get(name, (b,))
        deposed = name in ("append", "commit", "serve") and e < self.current
        return ("deposed " if deposed else "") + name if getattr(self, name)(*arguments) else ""

    def state(self) -> State:
        """The cluster as the invariant sees it."""

        def record(b: int, o: int) -> int:
            return self.log[b][o] if 0 <= o < len(self.log[b]) else -9

        def hist(e: int, o: int) -> int:
            known = self.hist.get(e, [])
            return known[o] if 0 <= o < len(known) else -7

        return State(
            brokers=BROKERS,
            current=self.current,
            leader=lambda e: self.leader[e] if 0 <= e <= self.current else 0,
            isr=lambda e, b: 0 <= e <= self.current and b in self.isr[e],
            known=lambda b: self.known[b],
            log_end=lambda b: len(self.log[b]),
            record=record,
            begun=lambda e: e in self.hist,
            start=lambda e: self.start.get(e, 0),
            hist=hist,
            hist_end=lambda e: len(self.hist.get(e, [])),
            remote=lambda e, r: self.remote[e, r],
            committed=lambda e: self.committed[e],
            capped=lambda e: e in self.cap,
            cap=lambda e: self.cap.get(e, 0),
            witness=lambda e: self.witness.get(e, 0),
            hw=lambda b: self.hw[b],
            origin=lambda b: self.origin[b],
            asked=lambda e, r: self.asked[e, r],
            shown=lambda e: self.shown[e],
            shown_from=lambda e: self.shown_from[e],
        )

    def broken(self) -> set[str]:
        """The conjuncts that fail, over all small values of their variables."""
        s = self.state()
        size = {"b": range(BROKERS), "r": range(BROKERS), "e": range(-1, self.current + 2), "f": range(-1, self.current + 2)}
        failed = set()
        for conjunct in INVARIANT:
            _, holds = PLAIN[conjunct.name]
            values = product(*[size.get(v, range(6)) for v in conjunct.variables.split()])
            if not all(holds(s, *v) for v in values):
                failed.add(conjunct.name)
        return failed

    def lost(self) -> bool:
        """Committed data is missing from a later leader's past or from an ISR member."""
        for e, count in self.committed.items():
            data = self.hist.get(e, [])[:count]
            if any(f > e and past[: min(count, self.start[f])] != data for f, past in self.hist.items()):
                return True
            if any(self.log[r][:count] != data for r in self.isr[self.current]):
                return True
        return False


def test_the_invariant_holds_wherever_the_steps_lead() -> None:
    """On random runs every conjunct holds, and every step happens, also by deposed leaders."""
    happened: Counter[str] = Counter()
    for seed in range(400):
        choice, cluster = random.Random(seed), Cluster()
        for number in range(100):
            happened[cluster.random_step(choice)] += 1
            if number % 20 == 19:
                assert cluster.broken() == set(), f"seed {seed}, step {number}"
                assert not cluster.lost()
    for step in (
        "elect",
        "learn",
        "append",
        "cut",
        "fetch",
        "commit",
        "shrink",
        "expand",
        "restart",
        "ask",
        "serve",
        "take",
        "deposed append",
        "deposed commit",
        "deposed serve",
    ):
        assert happened[step] >= 5, happened


def test_each_conjunct_can_fail() -> None:
    """Damaging one ghost or one log at a time breaks every conjunct somewhere: none is true of everything."""
    seen: set[str] = set()
    choice = random.Random(7)
    breakable = set(PLAIN) - {"logs have ends"}  # a list is never shorter than nothing
    for seed in range(400):
        walk, cluster = random.Random(seed), Cluster()
        for name, *arguments in JOINED_LATER if seed % 2 else []:
            assert getattr(cluster, name)(*arguments), (name, arguments)
        for _ in range(60 * (1 - seed % 2)):
            cluster.random_step(walk)
        for _ in range(12):
            damaged = copy.deepcopy(cluster)
            damage(damaged, choice)
            seen |= damaged.broken()
    assert breakable - seen == set()


def damage(cluster: Cluster, choice: random.Random) -> None:
    """One thing that no step does."""
    e, b, value = choice.randint(0, cluster.current), choice.randrange(BROKERS), choice.randint(-2, 4)
    kind = choice.randrange(15)
    if kind == 0:
        cluster.known[b] = choice.choice([cluster.current + 1, value])
    elif kind == 1:
        cluster.isr[e] ^= {b}
    elif kind == 2:
        cluster.leader[e] = b
    elif kind == 3:
        cluster.committed[e] = value
    elif kind == 4:
        cluster.remote[e, b] = value
    elif kind == 5 and cluster.log[b]:
        cluster.log[b][choice.randrange(len(cluster.log[b]))] = choice.randint(0, cluster.current)
    elif kind == 6 and cluster.hist.get(e):
        cluster.hist[e][choice.randrange(len(cluster.hist[e]))] = choice.randint(0, cluster.current)
    elif kind == 7:
        cluster.cap[e], cluster.witness[e] = value, b
    elif kind == 8 and e in cluster.start:
        cluster.start[e] = value
    elif kind == 9:
        cluster.hw[b] = value
    elif kind == 10:
        cluster.origin[b] = e
    elif kind == 11:
        cluster.asked[e, b] = value
    elif kind == 12:
        cluster.shown[e] = value
    elif kind == 13:
        cluster.shown_from[e] = value
    elif kind == 14:
        del cluster.log[b][max(0, value) :]


Run = list[tuple[Any, ...]]

# broker 2 leaves the ISR, epoch 0 commits without it, and it comes back in epoch 1
JOINED_LATER: Run = [
    ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
    ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("fetch", 2, 1), ("fetch", 2, 1), ("expand", 2),
]  # fmt: skip

LOSSES: dict[str, Run] = {
    ELECT_FROM_ISR: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("elect", 2), ("learn", 2, 1),
    ],
    COMMIT_NEEDS_ALL: [("learn", 0, 0), ("append", 0), ("commit", 0), ("elect", 1), ("learn", 1, 1)],
    JOIN_AT_HIGH_WATERMARK: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 1), ("shrink", 2), ("append", 0), ("commit", 0), ("expand", 1),
        ("elect", 1), ("learn", 1, 1),
    ],
    # the leader comes back with an old checkpoint and lets a follower join that has not what it committed before
    RESTART_LEADS_LATER: [
        ("learn", 0, 0), ("learn", 1, 0), ("learn", 2, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1),
        ("commit", 0), ("restart", 0, 1), ("expand", 2),
    ],
    # KAFKA-7128: the new leader's high watermark is behind what the old one committed, the returning follower with it
    JOIN_AT_EPOCH_START: [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("expand", 2), ("elect", 2), ("learn", 2, 2),
    ],
}  # fmt: skip


def test_a_fetch_that_arrives_after_its_sender_moved_on_is_counted_and_harmless() -> None:
    """Broker 1 asks, is elected, and only then the deposed leader records the fetch and commits: broker 1 has the record."""
    cluster = Cluster()
    run: Run = [
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("ask", 1), ("elect", 1),
        ("learn", 1, 1), ("serve", 0, 1, 1), ("commit", 0),
    ]  # fmt: skip
    for name, *arguments in run:
        assert getattr(cluster, name)(*arguments), (name, arguments)
    assert cluster.committed[0] == 1
    assert cluster.remote[0, 1] == cluster.cap[0] == 1
    assert cluster.broken() == set()
    assert not cluster.lost()


@pytest.mark.parametrize("guard", list(LOSSES))
def test_without_a_guard_committed_data_is_lost(guard: str) -> None:
    """Each guard, removed, allows a short run that loses committed data; with it, one of the steps is refused."""
    free, guarded = Cluster(without=guard), Cluster()
    for name, *arguments in LOSSES[guard]:
        assert getattr(free, name)(*arguments), (name, arguments)
    assert free.lost()
    assert free.broken()
    done = [getattr(guarded, name)(*arguments) for name, *arguments in LOSSES[guard]]
    assert not all(done)
    assert not guarded.lost()


@pytest.mark.parametrize(
    ("step", "guard"),
    [
        (elect, ELECT_FROM_ISR),
        (commit, COMMIT_NEEDS_ALL),
        (expand, JOIN_AT_HIGH_WATERMARK),
        (expand, JOIN_AT_EPOCH_START),
        (restart, RESTART_LEADS_LATER),
    ],
)
def test_without_a_guard_the_step_is_not_inductive(step: Any, guard: str) -> None:
    """The proof loses a conjunct, too."""
    tally = explore(
        lambda path: keeps(step)(path, 0),
        vars(rules),
        frozenset({guard}),
        make_solver=quantified_solver,
        contracts=CONTRACTS,
    )
    assert guard in tally.premises
    assert tally.unknown


@pytest.mark.parametrize("step", STEPS)
def test_a_step_proves_nothing_false(step: Any) -> None:
    """Invariant and step together are not contradictory."""

    def lemma(path: Path) -> None:
        before = committed.any_state()
        assume_invariant(path, before)
        step(path, before)
        path.goal("falsehood", z3.BoolVal(False))

    tally = explore(lemma, vars(rules), make_solver=quantified_solver, contracts=CONTRACTS)
    assert tally.unknown
    assert not tally.proved
