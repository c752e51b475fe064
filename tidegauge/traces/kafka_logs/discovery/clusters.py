"""Divide the nodes whose logs lie together by cluster: two clusters in one tree are two captures.

Rules of this file

1. A folder with the folders of several nodes is a cluster of its own.
2. Nodes that name a topic id in common are of one cluster: Kafka draws topic ids at random (KIP-516).
3. Nodes are of different clusters if they name different cluster ids, or different ids for one topic at the same time, or
   for two topics: any two clusters have `__consumer_offsets`. One id after the other is a topic that was created anew.
4. Everything else is one cluster, unless a node is there twice: then all nodes that have no topic in common are apart.
5. What may be of several clusters is left out, with a problem, and so is a second folder of the same node.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from pathlib import Path

from tidegauge.traces.kafka_logs.discovery.files import FoundLogs, NodeFiles, find_nodes, leave_out
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import parse_line
from tidegauge.traces.problems import Problem

_NAMING = frozenset(
    {"logger", "ReplicationControlManager", "LogManager", "KafkaServer", "BrokerLifecycleManager", "QuorumController"}
)
"""Loggers whose lines name topic ids or cluster ids."""
_WITH_ID = re.compile(r" with topic (?:id (?:Some\()?|ID )([A-Za-z0-9_\-]{22})(?![A-Za-z0-9_\-])")
_LOADED = re.compile(r"topicId=([A-Za-z0-9_\-]{22}), topic=([^,]{1,249}),")
_CLUSTER_ID = re.compile(r"(?:Cluster ID = |clusterId |in cluster )([A-Za-z0-9_\-]{22})(?![A-Za-z0-9_\-])")
_NO_ID = "A" * 22
"""Uuid.ZERO_UUID: a topic without an id, from before KIP-516."""
_LONGEST_NAME = 260
"""Characters of a topic and a partition."""


def named_topic(message: str) -> tuple[str, str] | None:
    """Return the topic that a message names with its id, and the id."""
    match = _WITH_ID.search(message)
    if match is not None:
        before = message[max(0, match.start() - _LONGEST_NAME - 8) : match.start()].split(" ")
        # `topic orders with topic ID ..` names the topic, everything else a partition.
        named = before[-1] if before[-2:-1] == ["topic"] else before[-1].rpartition("-")[0]
        return (named, match[1]) if named and match[1] != _NO_ID else None
    match = _LOADED.search(message)
    return (match[2], match[1]) if match is not None and match[1] != _NO_ID else None


@dataclass
class ClusterEvidence:
    """What lines show of a cluster: its ids, and by topic each id with the time of the first and last line that names it."""

    clusters: set[str] = field(default_factory=set)
    topics: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def read(self, lines: Iterable[Line]) -> None:
        """Add what lines name."""
        for line in lines:
            if line.logger not in _NAMING:
                continue
            named = named_topic(line.message)
            if named is not None:
                self._name(*named, (line.time, line.time))
            elif (match := _CLUSTER_ID.search(line.message)) is not None:
                self.clusters.add(match[1])

    def add(self, other: "ClusterEvidence") -> None:
        """Add what other lines showed."""
        self.clusters |= other.clusters
        for topic, by_id in other.topics.items():
            for topic_id, times in by_id.items():
                self._name(topic, topic_id, times)

    @property
    def ids(self) -> set[str]:
        """All topic ids."""
        return {topic_id for by_id in self.topics.values() for topic_id in by_id}

    def contradicts(self, other: "ClusterEvidence") -> bool:
        """Return whether both cannot be of one cluster (rule 3)."""
        if self.clusters and other.clusters and not self.clusters & other.clusters:
            return True
        apart = 0
        for topic in self.topics.keys() & other.topics.keys():
            mine, theirs = self.topics[topic], other.topics[topic]
            if mine.keys() & theirs.keys():
                return False
            apart += 1
            if any(a <= d and c <= b for a, b in mine.values() for c, d in theirs.values()):
                return True
        return apart > 1

    def _name(self, topic: str, topic_id: str, times: tuple[int, int]) -> None:
        by_id = self.topics.setdefault(topic, {})
        first, last = by_id.get(topic_id, times)
        by_id[topic_id] = (min(first, times[0]), max(last, times[1]))


def evidence_of(node: NodeFiles) -> ClusterEvidence:
    """Return what the lines of a node show of its cluster."""
    evidence = ClusterEvidence()
    for stream in node.streams:
        evidence.read(stream)
    return evidence


def find_clusters(path: Path, layout: str | None = None, selection: Selection | None = None) -> list[FoundLogs]:
    """Find the nodes whose logs are in `path`, by cluster; one cluster without nodes if there are none."""
    logs = find_nodes(path, layout, selection)
    own = separate(logs)
    nested = [
        replace(inner, name="/".join((folder.name, inner.name)).rstrip("/"))
        for folder in logs.nested
        for inner in find_clusters(folder, layout, selection)
    ]
    return [cluster for cluster in own if cluster.nodes or cluster.problems or not nested] + nested


@dataclass
class _Group:
    """Nodes that are surely of one cluster."""

    nodes: list[NodeFiles]
    evidence: ClusterEvidence


def separate(logs: FoundLogs) -> list[FoundLogs]:
    """Divide the nodes in one folder into clusters; problems and skipped files belong to the first."""
    groups, silent = _groups(logs.nodes)
    twins = len({node.id for node in logs.nodes}) < len(logs.nodes)
    if not twins and not any(a.evidence.contradicts(b.evidence) for a, b in combinations([*groups, *silent], 2)):
        return [logs]
    groups = groups or [_Group([], ClusterEvidence())]
    clusters = [
        replace(logs, nodes=[]),
        *(FoundLogs(name=group.nodes[0].folder.name, selection=logs.selection) for group in groups[1:]),
    ]
    for cluster, group in zip(clusters, groups, strict=True):
        for node in group.nodes:
            _add(node, cluster)
    for group in silent:
        node = group.nodes[0]
        fitting = [
            cluster
            for cluster, other in zip(clusters, groups, strict=True)
            if all(one.id != node.id for one in cluster.nodes) and not group.evidence.contradicts(other.evidence)
        ]
        # A node that hosted nothing may be counted to any.
        if len(fitting) == 1 or not _names_partitions(node):
            _add(node, fitting[0] if len(fitting) == 1 else clusters[0])
        else:
            do = "put the logs of each cluster into a folder of their own"
            leave_out(Problem(node.label, None, "lines that say of which cluster it is", "none", do), clusters[0])
    return clusters


def _groups(nodes: Sequence[NodeFiles]) -> tuple[list[_Group], list[_Group]]:
    """Group the nodes that name a topic id in common, or the same cluster; return apart those that name neither."""
    groups: list[_Group] = []
    silent: list[_Group] = []
    for node in nodes:
        group = _Group([node], evidence_of(node))
        if not group.evidence.topics and not group.evidence.clusters:
            silent.append(group)
            continue
        same = [other for other in groups if other.evidence.ids & group.evidence.ids]
        groups = [other for other in groups if other not in same]
        group.nodes = [*(member for other in same for member in other.nodes), node]
        for other in same:
            group.evidence.add(other.evidence)
        groups.append(group)
    # Nodes without a topic in common may say that they are of one cluster.
    for group in list(groups):
        same = [
            other
            for other in groups
            if other is not group
            and other.evidence.clusters & group.evidence.clusters
            and not other.evidence.contradicts(group.evidence)
            and not {node.id for node in other.nodes} & {node.id for node in group.nodes}
        ]
        if group in groups and same:
            same[0].nodes += group.nodes
            same[0].evidence.add(group.evidence)
            groups.remove(group)
    for group in groups:
        group.nodes.sort(key=lambda node: node.id)
    return sorted(groups, key=lambda group: group.nodes[0].label), silent


def _names_partitions(node: NodeFiles) -> bool:
    lines = (parse_line(line) for stream in node.streams for line in stream)
    return any(line is not None and line.tp for line in lines)


def _add(node: NodeFiles, logs: FoundLogs) -> None:
    twin = next((other for other in logs.nodes if other.id == node.id), None)
    if twin is None:
        logs.nodes.append(node)
        return
    seen, do = f"node {node.id} again, as in {twin.label}", "put the logs of one node into one folder"
    logs.problems += node.problems
    leave_out(Problem(node.label, None, "one folder per node", seen, do), logs)
