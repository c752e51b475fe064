"""The graphs that a broker is taken through, and their covers.

Rule of this file: bounds are small on purpose. Half a million transitions of a cluster are a few thousand things that one
broker can do.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths.cover import Cover, cover
from tidegauge.drive.paths.cover_cache import cached_cover
from tidegauge.drive.paths.inputs import Inputs, of_cluster, of_isr_changes
from tidegauge.impl.cluster.transitions import Bounds
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.isr_cluster import IsrBounds
from tidegauge.impl.profiles import Profile


class DrivenGraph(NamedTuple):
    """Its bounds, and what of the contract it is for. `elr`: explored with eligible leader replicas, where brokers stop.
    `waits`: each fetch may also be one that waits. `sessions`: or one in a session.
    """

    bounds: Bounds | IsrBounds
    says: str
    elr: bool = False
    waits: bool = False
    sessions: bool = False

    def inputs(self, profile: Profile) -> Inputs:
        """What it gives one broker of a generation."""
        explored = profile._replace(elr=self.elr)
        if isinstance(self.bounds, IsrBounds):
            return of_isr_changes(self.bounds, explored)
        inputs = of_cluster(self.bounds._replace(thread_truncates=profile.truncates_in_thread), explored)
        return inputs._replace(waits=self.waits, sessions=self.sessions)


GRAPHS: Mapping[str, DrivenGraph] = MappingProxyType(
    {
        "small": DrivenGraph(Bounds(2, 1, 1, 0), "two brokers, one record, one election"),
        "two": DrivenGraph(Bounds(2, 2, 2, 0), "two brokers, two records, two elections"),
        "crash": DrivenGraph(Bounds(2, 2, 1, 1), "two brokers, two records, an election and a crash"),
        "starts": DrivenGraph(Bounds(2, 2, 1, 0, max_start=1), "two brokers whose log starts move"),
        "acks": DrivenGraph(
            Bounds(2, 1, 1, 1, max_waiting=1, min_insync_replicas=2), "producers that wait for two replicas"
        ),
        "waits": DrivenGraph(Bounds(2, 2, 1, 0, min_insync_replicas=2), "a peer whose fetches wait", waits=True),
        "both": DrivenGraph(Bounds(3, 1, 0, 0), "two peers whose fetches wait, without an election", waits=True),
        "sessions": DrivenGraph(Bounds(2, 1, 1, 1), "a peer that fetches in sessions", sessions=True),
        "session_starts": DrivenGraph(Bounds(2, 2, 0, 0, max_start=1), "sessions where log starts move", sessions=True),
        "session_waits": DrivenGraph(Bounds(2, 1, 1, 0), "a peer whose fetches wait in sessions", waits=True, sessions=True),
        "stops": DrivenGraph(
            Bounds(2, 1, 1, 1, loses_tails=True, min_insync_replicas=2),
            "clean stops, and crashes that lose the log's end",
            True,
        ),
        "isr": DrivenGraph(IsrBounds(1, 2, 3, 0), "ISR changes, where the response comes before the metadata or after it"),
        "three": DrivenGraph(Bounds(3, 1, 1, 0), "three brokers, one record, one election"),
    }
)

USUAL = ("two", "crash", "starts", "acks", "waits", "both", "sessions", "session_starts", "session_waits", "stops", "isr")
"""What --cover takes of a driven program unless it is told otherwise."""

ON_THE_WIRE = (*USUAL, "three")
"""The same for an unmodified broker of Kafka. `three` is explored for a minute and more, once for a release."""


def graph_named(name: str) -> DrivenGraph:
    """The graph of that name. Raises UsageError with the names there are."""
    if name not in GRAPHS:
        raise UsageError(f"graph: expected one of {', '.join(GRAPHS)}; seen {name!r}; choose one of those")
    return GRAPHS[name]


def cover_of(name: str, profile: Profile, capabilities: Capabilities = EVERYTHING, seed: int = 0) -> Cover:
    """The cover of a graph, from the cache if it is there."""
    graph = graph_named(name)

    def made(generation: Profile) -> Cover:
        return cover(graph.inputs(generation), generation, capabilities, seed)

    return cached_cover(name, (graph, sorted(capabilities.can), seed), profile, made)
