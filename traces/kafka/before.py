"""What lines showed that are held no longer: logs that grow are read in windows (growth.py).

Rules of this file

1. It is what a reader may know without the lines: how topics are called, which release a broker is, which loggers were on.
   What they told of replicas is not kept: a window begins as a log does whose beginning is lost.
2. It grows with topics and nodes, not with the logs.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from tidegauge.traces.kafka.nodes.node import Node


@dataclass(frozen=True)
class Before:
    """`names` are topics by id; `heard` and `versions` are by node.

    `over`, by two nodes, is up to when on the clock of the first the second has been heard: its log was seen to go on behind
    what the first had logged by then, so it lacks nothing in front of that.
    """

    names: Mapping[str, str] = field(default_factory=dict)
    heard: Mapping[int, frozenset[str]] = field(default_factory=dict)
    versions: Mapping[int, str] = field(default_factory=dict)
    over: Mapping[tuple[int, int], int] = field(default_factory=dict)

    def and_(self, nodes: Iterable[Node], names: Mapping[str, str]) -> "Before":
        """With what the lines of these nodes showed."""
        nodes = list(nodes)
        return replace(
            self,
            names={**self.names, **names},
            heard={**self.heard, **{node.id: frozenset(node.heard) for node in nodes}},
            versions={**self.versions, **{node.id: node.broker.version for node in nodes}},
        )


NOTHING = Before()
"""Logs that are read from their beginning."""
