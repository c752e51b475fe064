"""Divide the nodes whose logs lie together by cluster: two clusters in one tree are two captures.

The *evidence* of a node, or a file, is the cluster ids and the topic ids that its lines name. A *group* is what is surely of
one cluster, by its evidence.

Rules of this file

1. A folder with the folders of several nodes is a cluster of its own.
2. Nodes that name a topic id in common are of one cluster: Kafka draws topic ids at random (KIP-516).
3. Nodes are of different clusters if they name different cluster ids, or different ids for one topic at the same time, or
   for two topics: any two clusters have `__consumer_offsets`. One id after the other is a topic that was created anew.
4. Everything else is one cluster, unless a node is there twice: then all nodes that have no topic in common are apart.
5. What may be of several clusters is left out, with a problem, and so is a second folder of the same node.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain, islice
from pathlib import Path
from typing import Generic, TypeVar

from tidegauge.traces.kafka_logs.discovery.files import FoundLogs, NodeFiles, find_nodes, leave_out
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.discovery.writers import NAMING_TOPICS, named_cluster, named_topic
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import parse_line
from tidegauge.traces.problems import Problem

T = TypeVar("T")


@dataclass
class ClusterEvidence:
    """What lines show of a cluster: its ids, and by topic each id with the time of the first and last line that names it."""

    clusters: set[str] = field(default_factory=set)
    topics: dict[str, dict[str, tuple[int, int]]] = field(default_factory=dict)

    def read(self, lines: Iterable[Line]) -> None:
        """Add the topic ids and cluster ids that lines name."""
        for line in lines:
            if line.logger not in NAMING_TOPICS:
                continue
            named = named_topic(line.message)
            if named is not None:
                self.name(*named, (line.time, line.time))
            elif (cluster := named_cluster(line)) is not None:
                self.clusters.add(cluster)

    def add(self, other: "ClusterEvidence") -> None:
        """Add the evidence of other lines."""
        self.clusters |= other.clusters
        for topic, by_id in other.topics.items():
            for topic_id, times in by_id.items():
                self.name(topic, topic_id, times)

    @property
    def ids(self) -> set[str]:
        """All topic ids."""
        return {topic_id for by_id in self.topics.values() for topic_id in by_id}

    def contradicts(self, other: "ClusterEvidence") -> bool:
        """Return whether both cannot be of one cluster (rule 3). They have no topic id in common, or were joined by it."""
        if self.clusters and other.clusters and not self.clusters & other.clusters:
            return True
        topics_with_other_ids = 0
        for topic in self.topics.keys() & other.topics.keys():
            own_ids, other_ids = self.topics[topic], other.topics[topic]
            topics_with_other_ids += 1
            # Two ids of one name at the same time: one cluster has one topic of a name.
            if any(
                first <= other_last and other_first <= last
                for first, last in own_ids.values()
                for other_first, other_last in other_ids.values()
            ):
                return True
        # One topic may have been made again between the two logs; two such topics are another cluster.
        return topics_with_other_ids > 1

    def name(self, topic: str, topic_id: str, times: tuple[int, int]) -> None:
        """Note that a line names a topic and its id, at these times."""
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
    """Find the nodes whose logs are in `path`, by cluster; one cluster without nodes if there are none.

    `layout` is a pattern of log4j2, `selection` the part of the logs that is read.
    """
    logs = find_nodes(path, layout, selection)
    own = separate(logs)
    nested = [
        replace(inner, name="/".join((folder.name, inner.name)).rstrip("/"))
        for folder in logs.nested
        for inner in find_clusters(folder, layout, selection)
    ]
    # A folder with nothing but folders of clusters is none itself.
    return [cluster for cluster in own if cluster.nodes or cluster.problems or not nested] + nested


@dataclass(eq=False)
class ClusterGroup(Generic[T]):
    """What is surely of one cluster: nodes, or files."""

    members: list[T]
    evidence: ClusterEvidence = field(default_factory=ClusterEvidence)

    def add(self, other: "ClusterGroup[T]") -> None:
        """Add the members and the evidence of another group."""
        self.members += other.members
        self.evidence.add(other.evidence)


def of_common_ids(groups: Iterable[ClusterGroup[T]], ids: Callable[[ClusterEvidence], set[str]]) -> list[ClusterGroup[T]]:
    """Join groups that have an id in common, and return what became of them; `ids` gets the ids of a group's evidence.

    Groups without ids are left out. The smaller group goes into the larger one: so the time is in proportion to the ids.
    """
    group_of: dict[str, ClusterGroup[T]] = {}
    for group in groups:
        joined = group
        for other in {id(group_of[key]): group_of[key] for key in ids(group.evidence) if key in group_of}.values():
            smaller, joined = sorted((joined, other), key=lambda group: len(group.members))
            joined.add(smaller)
            group_of.update(dict.fromkeys(ids(smaller.evidence), joined))
        group_of.update(dict.fromkeys(ids(group.evidence), joined))
    return list({id(group): group for group in group_of.values()}.values())


def apart(groups: Sequence[ClusterGroup[T]]) -> Iterator[ClusterGroup[T]]:
    """Yield the groups whose evidence contradicts that of another group, so that they are of different clusters."""
    # Only a group that names a cluster, too, or a topic of the same name, can contradict another.
    with_cluster = [group for group in groups if group.evidence.clusters]
    with_topic: dict[str, list[ClusterGroup[T]]] = defaultdict(list)
    for group in groups:
        for topic in group.evidence.topics:
            with_topic[topic].append(group)
    for group in groups:
        evidence = group.evidence
        others = chain(with_cluster if evidence.clusters else (), *(with_topic[topic] for topic in evidence.topics))
        if any(evidence.contradicts(other.evidence) for other in others if other is not group):
            yield group


def separate(logs: FoundLogs) -> list[FoundLogs]:
    """Divide the nodes in one folder into clusters; problems and skipped files belong to the first."""
    groups, without_evidence = _groups(logs.nodes)
    same_id_twice = len({node.id for node in logs.nodes}) < len(logs.nodes)
    if not same_id_twice and not any(apart(groups)):
        return [logs]
    clusters = [
        replace(logs, nodes=[]),
        *(FoundLogs(name=group.members[0].folder.name, selection=logs.selection) for group in groups[1:]),
    ]
    for cluster, group in zip(clusters, groups, strict=False):
        for node in group.members:
            _add(node, cluster)
    # A node that names no id contradicts nobody: it belongs to the only cluster without a node of its id, if there is one.
    for node in without_evidence:
        candidates = (cluster for cluster in clusters if all(other.id != node.id for other in cluster.nodes))
        first_two = list(islice(candidates, 2))
        # A node that hosted nothing may be counted to any.
        if len(first_two) == 1 or not _names_partitions(node):
            _add(node, first_two[0] if len(first_two) == 1 else clusters[0])
        else:
            do = "put the logs of each cluster into a folder of their own"
            leave_out(Problem(node.label, None, "lines that say of which cluster it is", "none", do), clusters[0])
    return clusters


def _groups(nodes: Iterable[NodeFiles]) -> tuple[list[ClusterGroup[NodeFiles]], list[NodeFiles]]:
    """Group the nodes that name a topic id in common, or the same cluster; return also the nodes that name neither."""
    of_one_node = [ClusterGroup([node], evidence_of(node)) for node in nodes]
    by_topic = of_common_ids((group for group in of_one_node if group.evidence.topics), lambda evidence: evidence.ids)
    without_evidence = [
        group.members[0] for group in of_one_node if not group.evidence.topics and not group.evidence.clusters
    ]
    groups: list[ClusterGroup[NodeFiles]] = []
    # Nodes without a topic in common may say that they are of one cluster.
    groups_of_cluster: dict[str, list[ClusterGroup[NodeFiles]]] = defaultdict(list)
    for group in [*by_topic, *(group for group in of_one_node if group.evidence.clusters and not group.evidence.topics)]:
        ids = {node.id for node in group.members}
        named = group.evidence.clusters
        candidates = {id(other): other for cluster in named for other in groups_of_cluster[cluster]}.values()
        # A cluster has each id once: two nodes of one id are of two clusters, whatever they say.
        same_cluster = [
            other
            for other in candidates
            if not ids & {node.id for node in other.members} and not other.evidence.contradicts(group.evidence)
        ]
        if same_cluster:
            same_cluster[0].add(group)
        else:
            groups.append(group)
        joined = same_cluster[0] if same_cluster else group
        for cluster in group.evidence.clusters:
            if joined not in groups_of_cluster[cluster]:
                groups_of_cluster[cluster].append(joined)
    for group in groups:
        group.members.sort(key=lambda node: node.id)
    return sorted(groups, key=lambda group: group.members[0].label), without_evidence


def _names_partitions(node: NodeFiles) -> bool:
    """Return whether some line of a node that the reader understands is about a partition."""
    lines = (parse_line(line) for stream in node.streams for line in stream)
    return any(line is not None and line.tp for line in lines)


def _add(node: NodeFiles, logs: FoundLogs) -> None:
    """Add a node to a cluster; a second one with the same id is left out, with a problem."""
    twin = next((other for other in logs.nodes if other.id == node.id), None)
    if twin is None:
        logs.nodes.append(node)
        return
    seen, do = f"node {node.id} again, as in {twin.label}", "put the logs of one node into one folder"
    # The problems of a node that is read are reported with it; of this one nobody else reports them.
    logs.problems += node.problems
    leave_out(Problem(node.label, None, "one folder per node", seen, do), logs)
