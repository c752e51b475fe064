"""The committed-data invariant on concrete clusters: it holds where the steps lead, and it is not empty words."""

import copy
import random
from collections import Counter
from typing import Any

import pytest
import z3

from tests.proofs.committed_cluster import WEIGHTS, Cluster
from tidegauge.impl import rules
from tidegauge.spec.proofs.committed import invariant as symbolic
from tidegauge.spec.proofs.committed.invariant import COMMITTED_INVARIANT
from tidegauge.spec.proofs.committed.steps import COMMITTED_DATA
from tidegauge.spec.proofs.engine.loops import CONTRACTS
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.lemmas.any_length import quantified_solver

Run = list[tuple[Any, ...]]

# broker 2 leaves the ISR, epoch 0 commits without it, and it comes back in epoch 1
JOINED_LATER: Run = [
    ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
    ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("fetch", 2, 1), ("fetch", 2, 1), ("expand", 2),
]  # fmt: skip


def played(run: Run, cluster: Cluster | None = None) -> Cluster:
    """The cluster after a run whose steps are all possible."""
    cluster = cluster or Cluster()
    for name, *arguments in run:
        assert getattr(cluster, name)(*arguments), (name, arguments)
    return cluster


def test_the_invariant_holds_wherever_the_steps_lead() -> None:
    """On random runs every conjunct holds, and every step happens, also by deposed leaders."""
    happened: Counter[str] = Counter()
    for seed in range(300):
        choice, cluster = random.Random(seed), Cluster()
        for number in range(120):
            happened[cluster.random_step(choice)] += 1
            if number % 24 == 23:
                assert cluster.broken() == set(), f"seed {seed}, step {number}"
                assert not cluster.lost()
    deposed = {f"deposed {name}" for name in ("append", "commit", "serve", "propose_shrink", "propose_expand", "hear_isr")}
    for step in WEIGHTS.keys() | deposed:
        assert happened[step] >= 5, happened


def test_each_conjunct_can_fail() -> None:
    """Damaging one ghost or one log at a time breaks every conjunct somewhere: none is true of everything."""
    seen: set[str] = set()
    choice = random.Random(7)
    breakable = {conjunct.name for conjunct in COMMITTED_INVARIANT} - {
        "logs have ends"
    }  # a list is never shorter than nothing
    for seed in range(150):
        walk, cluster = random.Random(seed), played(JOINED_LATER) if seed % 2 else Cluster()
        for _ in range(60 * (1 - seed % 2)):
            cluster.random_step(walk)
        for _ in range(12):
            damaged = copy.deepcopy(cluster)
            damage(damaged, choice)
            seen |= damaged.broken()
    assert breakable - seen == set()


def damage(cluster: Cluster, choice: random.Random) -> None:
    """One thing that no step does."""
    e, b, value = choice.randint(0, cluster.current), choice.randrange(cluster.brokers), choice.randint(-2, 4)
    version = cluster.version[e]
    kind = choice.choice([
        "known", "isr", "leader", "log", "hist", "cap", "start", "hw", "origin", "committed", "remote", "asked", "shown",
        "shown_from", "end", "log_start", "deleted", "version", "known_version", "view", "proposed", "status", "image",
        "gone",
    ])  # fmt: skip
    if kind == "known":
        cluster.known[b] = choice.choice([cluster.current + 1, value])
    elif kind == "log" and cluster.log[b]:
        cluster.log[b][choice.randrange(len(cluster.log[b]))] = choice.randint(0, cluster.current)
    elif kind == "hist" and cluster.hist.get(e):
        cluster.hist[e][choice.randrange(len(cluster.hist[e]))] = choice.randint(0, cluster.current)
    elif kind == "cap":
        cluster.cap[e], cluster.witness[e] = value, b
    elif kind == "start" and e in cluster.start:
        cluster.start[e] = value
    elif kind == "end":
        del cluster.log[b][max(0, value) :]
    elif kind == "gone":
        cluster.gone[b] = b
    elif kind in ("isr", "view", "proposed"):
        getattr(cluster, kind)[e] ^= {b}
    elif kind == "image":
        cluster.image[e, choice.randint(0, version)] ^= {b}
    elif kind in ("leader", "origin", "hw", "log_start"):
        numbers = getattr(cluster, kind)
        numbers[e if kind == "leader" else b] = {"leader": b, "origin": e}.get(kind, value)
    elif kind in ("remote", "asked"):
        getattr(cluster, kind)[e, b] = value
    elif kind in ("committed", "shown", "shown_from", "deleted", "version", "known_version", "status"):
        getattr(cluster, kind)[e] = value


def test_a_fetch_that_arrives_after_its_sender_moved_on_is_counted_and_harmless() -> None:
    """Broker 1 asks, is elected, and only then the deposed leader records the fetch and commits: broker 1 has the record."""
    cluster = played([
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("ask", 1), ("elect", 1),
        ("learn", 1, 1), ("serve", 0, 1, 1), ("commit", 0),
    ])  # fmt: skip
    assert cluster.committed[0] == 1
    assert cluster.remote[0, 1] == cluster.cap[0] == 1
    assert cluster.broken() == set()
    assert not cluster.lost()


def test_a_response_to_an_isr_change_may_come_after_the_next_election() -> None:
    """A shrink is taken, its leader deposed before it hears of it: it goes on counting the removed, hears, and commits."""
    cluster = played([
        ("learn", 0, 0), ("learn", 1, 0), ("propose_shrink", 0, 2), ("accept",), ("elect", 1), ("append", 0),
        ("fetch", 1, 1), ("ask", 1), ("serve", 0, 1, 1),
    ])  # fmt: skip
    assert not cluster.commit(0), "broker 2 still counts"
    played([("hear_isr", 0), ("commit", 0), ("learn", 1, 1)], cluster)
    assert cluster.hist[1] == [0]
    assert cluster.broken() == set()
    assert not cluster.lost()


def test_a_follower_below_the_leaders_log_start_begins_there() -> None:
    """What the leader has committed and deleted is not fetched any more; the follower joins the ISR all the same."""
    cluster = played([
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 1), ("shrink", 2), ("append", 0), ("append", 0), ("commit", 0),
        ("delete", 0, 1), ("reset", 1), ("fetch", 1, 2), ("fetch", 1, 2), ("expand", 1),
    ])  # fmt: skip
    assert (cluster.log_start[1], cluster.log[1], cluster.hw[1]) == (1, [0, 0], 2)
    assert cluster.broken() == set()
    assert not cluster.lost()


def test_a_broker_without_its_tail_comes_back_as_another() -> None:
    """The old incarnation's fetches say nothing of the new one, which joins when it has fetched again."""
    cluster = played([
        ("learn", 0, 0), ("learn", 1, 0), ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
        ("remove", 1), ("hear_isr", 0), ("lose_tail", 1, 0), ("propose_expand", 0, 1),
    ])  # fmt: skip
    assert not cluster.accept(), "the controller knows the new incarnation only"
    played([("refuse", 0), ("hear_refusal", 0)], cluster)
    assert not cluster.expand(3), "the new one has nothing yet"
    played([("fetch", 3, 1), ("fetch", 3, 1), ("expand", 3), ("elect", 3), ("learn", 3, 1)], cluster)
    assert cluster.hist[1] == [0]
    assert cluster.broken() == set()
    assert not cluster.lost()


def test_a_state_has_no_member_without_a_sort() -> None:
    """Every function of the state is declared with the arguments that its readers give it."""
    state = symbolic.any_cluster()
    for name, arity in symbolic.ARITY.items():
        assert getattr(state, name).arity() == arity
    for name in symbolic.TRUTHS:
        assert getattr(state, name).range() == z3.BoolSort()


@pytest.mark.parametrize("step", COMMITTED_DATA.steps)
def test_a_step_proves_nothing_false(step: Any) -> None:
    """Invariant and step together are not contradictory."""

    def lemma(path: ProofPath) -> None:
        step(path, COMMITTED_DATA.assumed(path))
        path.goal("falsehood", z3.BoolVal(False))

    tally = explore(lemma, vars(rules), make_solver=quantified_solver, contracts=CONTRACTS)
    assert tally.unknown
    assert not tally.proved
