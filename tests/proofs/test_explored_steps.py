"""Every step of the reference is a step of the committed-data cluster, and every state it reaches keeps every conjunct."""

import random
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.proofs.committed_cluster import Cluster
from tidegauge.impl.explorer.explore import Bounds, Walker
from tidegauge.impl.explorer.spec_view import LEADER, NO_ROLE
from tidegauge.impl.profiles import FETCH_TRUNCATION, REPAIRED, Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.spec.proofs.committed.invariant import NONE, CommittedPremise

LOG, HW, UP, ROLE, EPOCH, ISR, PENDING, REMOTE, SLOTS = 0, 1, 3, 4, 5, 7, 8, 9, 10
REQUEST, DATA = 1, 2

View = Any


def members(mask: int) -> set[int]:
    return {b for b in range(mask.bit_length()) if mask >> b & 1}


class Follower:
    """The cluster of the proofs, led by the labels of the reference; what a guard forbids fails the test."""

    # ruff: noqa: ARG002  every label is followed with the same arguments

    def __init__(self, start: View, without: str = "") -> None:
        brokers = start[0]
        self.cluster = Cluster(without, len(brokers))
        self.happened: Counter[str] = Counter()
        self.old_hw: set[int] = set()
        """Leaders that crashed: the checkpoint counts when they learn of the next epoch."""
        self.unled: set[int] = set()
        """Brokers that heard of an epoch without a leader, in which the cluster has one that never begins."""
        for b in range(len(brokers)):
            self.must("learn", b, 0)
        self.asks((), brokers)
        self.compare(start)

    def must(self, step: str, *arguments: int) -> None:
        assert getattr(self.cluster, step)(*arguments), (step, arguments)
        self.happened[step] += 1

    def follow(self, before: View, label: Any, after: View) -> None:
        """One label."""
        name, *arguments = label
        step = getattr(self, f"on_{name}", None)
        if step is not None:
            step(before, after, *arguments)
        elif before[1] != after[1]:
            self.controller_changes(before[1], after[1])
        self.asks(before[0], after[0])
        self.compare(after)

    def asks(self, before: Any, after: Any) -> None:
        """A fetch that went out; one that will be answered as diverging asks for nothing."""
        for f, broker in enumerate(after):
            for leader, message in enumerate(broker[SLOTS]):
                new = message and message[0] == REQUEST and (not before or message != before[f][SLOTS][leader])
                if new and message[1] == self.cluster.known[f] and f not in self.unled:
                    self.happened["ask"] += self.cluster.ask(f)

    def asks_now(self, f: int, request: Any) -> None:
        """A fetch that went out before its leader began says what it would say now: the follower has waited for it."""
        if self.cluster.known[f] == request[1] and len(self.cluster.log[f]) == request[2]:
            self.cluster.ask(f)

    def commits(self, leader: int, after: View) -> None:
        """The high watermark, where the step raised it."""
        broker = after[0][leader]
        if broker[HW] > self.cluster.hw[leader]:
            self.must("commit", broker[EPOCH])

    def on_LeaderAppend(self, before: View, after: View, leader: int) -> None:  # noqa: N802  the label's name
        self.must("append", before[0][leader][EPOCH])
        self.commits(leader, after)

    def on_HandleFetch(self, before: View, after: View, leader: int, f: int, expand: int) -> None:  # noqa: N802
        request, response = before[0][f][SLOTS][leader], after[0][f][SLOTS][leader]
        if response and response[0] == DATA:
            self.asks_now(f, request)
            self.must("serve", before[0][leader][EPOCH], f, request[2])
            if expand:
                self.must("propose_expand", before[0][leader][EPOCH], f)
            self.commits(leader, after)

    def on_HandleFetchResponse(self, before: View, after: View, f: int, leader: int) -> None:  # noqa: N802
        old, new, response = before[0][f], after[0][f], before[0][f][SLOTS][leader]
        if old[LOG] != new[LOG] or old[HW] != new[HW]:
            self.must("take", f, len(new[LOG]), self.cluster.shown[self.cluster.known[f]] - response[3])

    def on_HandleDivergingResponse(self, before: View, after: View, f: int, leader: int) -> None:  # noqa: N802
        if len(after[0][f][LOG]) < len(before[0][f][LOG]):
            self.must("truncate", f, len(after[0][f][LOG]))

    on_HandleOutOfRange = on_HandleDivergingResponse  # noqa: N815

    def on_ShrinkIsr(self, before: View, after: View, leader: int, out: int) -> None:  # noqa: N802
        self.must("propose_shrink", before[0][leader][EPOCH], *members(out))

    def on_AlterPartition(self, before: View, after: View, leader: int) -> None:  # noqa: N802
        epoch, ours = before[0][leader][EPOCH], self.cluster
        if ours.known_version[epoch] < ours.version[epoch]:
            # The reference has no partition epoch: a change meets the ISR it was made from once more, and is as good as new.
            asked = set(ours.proposed[epoch])
            self.must("hear_isr", epoch)
            for joins in asked - ours.view[epoch]:
                self.must("propose_expand", epoch, joins)
            if out := ours.view[epoch] - asked:
                self.must("propose_shrink", epoch, *out)
        self.must("accept")

    def on_BecomeLeader(self, before: View, after: View, b: int) -> None:  # noqa: N802
        epoch = after[0][b][EPOCH]
        if epoch > self.cluster.known[b]:
            self.must("learn", b, epoch, self.cluster.hw[b] - before[0][b][HW])
            self.old_hw.discard(b)
            self.unled.discard(b)
        else:
            self.must("hear_isr", epoch)
        self.commits(b, after)

    def on_BecomeFollower(self, before: View, after: View, b: int) -> None:  # noqa: N802
        epoch = after[0][b][EPOCH]
        if epoch > self.cluster.known[b] and self.cluster.leader[epoch] == b:
            self.unled.add(b)
        elif epoch > self.cluster.known[b]:
            self.must("learn", b, epoch, self.cluster.hw[b] - before[0][b][HW])
            self.old_hw.discard(b)
            self.unled.discard(b)

    def on_Crash(self, before: View, after: View, b: int, hw: int, leo: int) -> None:  # noqa: N802
        if self.cluster.leader[self.cluster.known[b]] == b:
            self.old_hw.add(b)
        else:
            self.must("restart", b, self.cluster.hw[b] - hw)

    def controller_changes(self, before: Any, after: Any) -> None:
        """Fence, unfence, elect: whatever it was, a new epoch or a smaller ISR."""
        gone = members(before[2]) - members(after[2])
        if after[1] > before[1]:
            self.must("elect", after[0] if after[0] != UNDEFINED else min(members(after[2])), gone)  # type: ignore[arg-type]
        else:
            for b in gone:
                self.must("remove", b)

    def compare(self, view: View) -> None:
        """What the reference has, the cluster has."""
        brokers, controller = view[0], view[1]
        ours = self.cluster
        assert (controller[1], members(controller[2])) == (ours.current, ours.isr[ours.current])
        for b, broker in enumerate(brokers):
            if not broker[UP] or broker[ROLE] == NO_ROLE or b in self.unled:
                continue
            assert list(broker[LOG]) == ours.log[b]
            assert broker[HW] == ours.hw[b] or b in self.old_hw
            if broker[ROLE] == LEADER:
                e = broker[EPOCH]
                assert (ours.known[b], ours.leader[e]) == (e, b)
                assert members(broker[ISR]) == ours.view[e]
                assert members(broker[PENDING]) == (ours.proposed[e] if ours.status[e] != NONE else set())
                assert all(max(0, leo) == ours.remote[e, r] for r, leo in enumerate(broker[REMOTE]) if r != b)


def steps(walker: Walker, now: Any, choice: random.Random, length: int) -> Iterator[tuple[Any, Any]]:
    """A random walk, each action as likely as any other: labels with the states they lead to."""
    for _ in range(length):
        by_name: dict[str, list[Any]] = {}
        for label, after in walker.successors(now):
            by_name.setdefault(label[0], []).append((label, after))
        if not by_name:
            return
        label, now = choice.choice(by_name[choice.choice(sorted(by_name))])
        yield label, now


def walked(bounds: Bounds, profile: Profile, walks: int) -> tuple[Counter[str], int, set[str]]:
    """Random walks; which steps happened, how many states were looked at, and which conjuncts failed in one of them."""
    walker, happened, states, broken = Walker(bounds, profile), Counter[str](), 0, set[str]()
    for seed in range(walks):
        now = walker.start
        follower = Follower(walker.view(now))
        for number, (label, after) in enumerate(steps(walker, now, random.Random(seed), 80)):
            follower.follow(walker.view(now), label, walker.view(after))
            now = after
            if number % 10 == 9:
                states += 1
                broken |= follower.cluster.broken()
        happened += follower.happened
    return happened, states, broken


STEPS = {
    "learn", "append", "ask", "serve", "take", "truncate", "commit", "elect", "remove", "restart", "propose_shrink",
    "propose_expand", "accept", "hear_isr",
}  # fmt: skip
"""Whoever is fenced leaves the ISR at once, so a change with it is never refused for it: it is made from an older ISR."""


@pytest.mark.parametrize(("brokers", "walks"), [pytest.param(2, 60, marks=pytest.mark.long), (3, 80)])
def test_the_reference_takes_steps_of_the_proofs_and_keeps_the_invariant(brokers: int, walks: int) -> None:
    """Step by step both are the same; every step of the proofs that the reference has happens, ISR changes in flight too."""
    happened, states, broken = walked(Bounds(brokers, 3, 3, 2), REPAIRED, walks)
    assert broken == set()
    assert states > 300
    assert {step for step in STEPS if happened[step] < 5} == set(), happened


def test_a_leader_that_keeps_recorded_log_ends_breaks_a_conjunct() -> None:
    """Kafka as it is, followed by a cluster that keeps them too, reaches a state in which they are not real."""
    walker = Walker(Bounds(3, 2, 3, 0), FETCH_TRUNCATION)
    for seed in range(400):
        choice, now = random.Random(seed), walker.start
        follower = Follower(walker.view(now), CommittedPremise.FORGET_LOG_ENDS)
        for label, after in steps(walker, now, choice, 60):
            follower.follow(walker.view(now), label, walker.view(after))
            now = after
            if any(follower.cluster.remote[key] > follower.cluster.asked[key] for key in follower.cluster.remote):
                assert "a leader's recorded log ends are real" in follower.cluster.broken()
                return
    pytest.fail("no such state was reached")
