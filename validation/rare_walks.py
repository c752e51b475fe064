"""Random walks that begin where few were: they see in seconds what blind ones of the same length do not see in hours.

Rules of this file

1. A step is one of impl.cluster.cluster. Its kind and its actor are drawn first, and only that is tried: most draws are in
   vain, which costs less than a look at all that is possible.
2. Each walk has weights of its own, and some kinds not at all: histories differ in who is slow or silent for a while.
3. A walk begins where an earlier one ended. Of each situation (`situations`) one end is kept, the one of the lowest epoch;
   of a few situations the one from which the fewest walks began is taken, so what is rare is walked from as often as what is
   common. One of `FRESH` walks begins with the new partition.
4. A block of walks depends on its seed and its number alone. Its longest run is as long as its walks lead.
"""

import random
from collections.abc import Iterator
from typing import Any, NamedTuple

from tidegauge.impl.cluster.cluster import FINDERS, Bounds, Cluster, Finder, Label, record_epochs
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.messages import (
    FetchRequest,
    FetchResponseInFlight,
    Message,
    OffsetsForLeaderEpochRequest,
    OffsetsForLeaderEpochResponse,
)
from tidegauge.impl.profiles import ModelProfile, Rules
from tidegauge.impl.rules import UNDEFINED

STEPS = 15
"""Of a walk, at most."""

FRESH, CHOICES, VAIN = 8, 4, 60
"""One of so many walks begins anew; so many situations are compared; after so many draws in vain a walk ends."""

WEIGHTS = {"append": 4, "shrink": 1, "stop": 1, "message": 16, "loss": 2, "metadata": 8, "answer": 8, "controller": 3}
FACTORS = (0, 1, 1, 4)
"""By one of these the weight of a kind and actor is multiplied for a walk."""

Path = tuple[Any, ...]
"""The labels of a run, as (path, labels): runs share how they begin."""

NEW: Path = ()


class End(NamedTuple):
    """Where a walk ended: `size` is the leader epoch and the longest log, the less the better."""

    size: tuple[int, int]
    cluster: Cluster
    path: Path


class Broken(NamedTuple):
    """A walk that broke an invariant: its number in its block, and the whole run from the new partition."""

    invariant: str
    number: int
    labels: tuple[Label, ...]


class RareWalks:
    """A block of walks of one cluster."""

    def __init__(
        self, bounds: Bounds, profile: ModelProfile, seed: str, rules: Rules | None = None, steps: int = STEPS
    ) -> None:
        """Begin with the new partition; `rules` replaces rules by wrong ones."""
        self._walker = Walker(bounds, profile, rules)
        self._draw = random.Random(seed).random
        self._steps = steps
        self._situated: dict[Any, int] = {}
        self._ends: list[End] = []
        self._begun: list[int] = []

    def broken_walks(self, count: int) -> Iterator[Broken]:
        """Yield each of so many walks that breaks an invariant."""
        for number in range(count):
            end, invariant = self._walk()
            if invariant is not None:
                yield Broken(invariant, number, labels_of(end.path))

    def ends(self, count: int) -> Iterator[Cluster]:
        """Yield the state that each of so many walks ends in."""
        for _ in range(count):
            end, _ = self._walk()
            yield end.cluster

    def _walk(self) -> tuple[End, str | None]:
        """Walk once, and keep the end to begin from unless an invariant breaks there."""
        draw, cluster, path = self._draw, self._walker.start, NEW
        if self._ends and draw() * FRESH >= 1:
            chosen = min((int(draw() * len(self._ends)) for _ in range(CHOICES)), key=self._begun.__getitem__)
            self._begun[chosen] += 1
            _, cluster, path = self._ends[chosen]
        cluster, labels, invariant = self._take_steps(cluster)
        size = cluster.controller.leader_epoch, max(broker.partition.log.end for broker in cluster.brokers)
        end = End(size, cluster, (path, labels))
        for situation in situations(cluster) if invariant is None else ():
            at = self._situated.setdefault(situation, len(self._ends))
            if at == len(self._ends):
                self._ends.append(end)
                self._begun.append(0)
            elif size < self._ends[at].size:
                self._ends[at] = end
        return end, invariant

    def _take_steps(self, cluster: Cluster) -> tuple[Cluster, tuple[Label, ...], str | None]:
        """Take steps until an invariant breaks, or nothing more is found."""
        walker, draw = self._walker, self._draw
        drawn = [
            (FINDERS[kind], actor)
            for kind, weight in WEIGHTS.items()
            for actor in range(len(cluster.brokers))
            for _ in range(weight * FACTORS[int(draw() * len(FACTORS))])
        ]
        labels: list[Label] = []
        vain = 0 if drawn else VAIN
        while len(labels) < self._steps and vain < VAIN:
            finders_of, actor = drawn[int(draw() * len(drawn))]
            finders: list[Finder] = finders_of(cluster, actor)
            found = walker.found_by(finders[int(draw() * len(finders))]) if finders else ()
            if not found:
                vain += 1
                continue
            vain = 0
            transition = found[int(draw() * len(found))]
            cluster = walker.take(cluster, transition)
            labels.append(transition.label)
            violation = walker.violation(cluster)
            if violation is not None:
                return cluster, tuple(labels), violation.invariant
        return cluster, tuple(labels), None


def labels_of(path: Path) -> tuple[Label, ...]:
    """Return the labels of a run in order."""
    parts = []
    while path:
        path, labels = path
        parts.append(labels)
    return tuple(label for labels in reversed(parts) for label in labels)


def situations(cluster: Cluster) -> Iterator[tuple[Any, ...]]:
    """Yield for each broker how what it believes and holds differs from what the controller and the others do.

    Offsets and epochs count by comparison only, so there are some hundreds.
    """
    model, image, committed = cluster.model, cluster.controller, cluster.committed
    logs = [record_epochs(broker) for broker in cluster.brokers]
    leading = logs[image.leader] if image.leader != UNDEFINED else committed
    for b, broker in enumerate(cluster.brokers):
        partition, log = broker.partition, logs[b]
        shared = min(len(log), len(leading))
        in_flight = sorted(
            (*_message(message, image.leader_epoch), leader == broker.source, leader == image.leader)
            for leader, message in enumerate(cluster.network[b])
            if message is not None
        )
        recorded = sorted(
            (remote.log_end > len(logs[remote.broker_id])) - (remote.log_end < len(logs[remote.broker_id]))
            for remote in (partition.remotes if broker.leads else ())
            if remote.log_end != UNDEFINED
        )
        yield (
            model.setup_of(b).profile.name,
            broker.up,
            partition.is_leader,
            b == image.leader,
            b in image.isr,
            _behind(partition.leader_epoch, image.leader_epoch),
            partition.state.is_inflight,
            log[: len(committed)] == committed,
            len(log) > len(leading),
            log[:shared] == leading[:shared],
            broker.source != UNDEFINED,
            broker.source == image.leader,
            tuple(in_flight),
            tuple(recorded),
        )


def _behind(epoch: int, latest: int) -> int:
    """Return by how many elections: 0, 1, or more."""
    return min(2, latest - epoch)


def _message(message: Message, epoch: int) -> tuple[str, int]:
    if isinstance(message, FetchRequest | OffsetsForLeaderEpochRequest):
        return type(message).__name__, _behind(message.current_leader_epoch, epoch)
    if isinstance(message, FetchResponseInFlight):
        response = message.response
        kind = "diverging" if response.is_diverging else "records" if response.records else f"error {response.error}"
        return kind, _behind(message.request_epoch, epoch)
    assert isinstance(message, OffsetsForLeaderEpochResponse)
    return "epoch", _behind(message.request_epoch, epoch)
