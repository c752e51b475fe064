"""Group nodes by cluster: two clusters in one tree are two captures.

Rules of this file

1. A folder with the folders of several nodes is a cluster of its own.
2. If two folders have logs of a node with the same id, topic ids distinguish the clusters: Kafka draws them at random, so
   nodes with one in common are of one cluster. A node without any is of the only cluster that lacks it, or of the first.
3. Everything else is one cluster; a second folder of the same node is left out, with a problem.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from tidegauge.traces.kafka.lines.files import FoundLogs, NodeFiles, find_nodes, leave_out
from tidegauge.traces.kafka.lines.selection import Selection
from tidegauge.traces.problems import Problem

_TOPIC_ID = re.compile(r"with topic (?:id Some\(|ID )([A-Za-z0-9_\-]{22})\b")


def find_clusters(path: Path, layout: str | None = None, selection: Selection | None = None) -> list[FoundLogs]:
    """Find the nodes whose logs are in `path`, by cluster; one cluster without nodes if there are none."""
    found = find_nodes(path, layout, selection)
    own = separate(found)
    nested = [
        replace(inner, name="/".join((folder.name, inner.name)).rstrip("/"))
        for folder in found.nested
        for inner in find_clusters(folder, layout, selection)
    ]
    return [one for one in own if one.nodes or one.problems or not nested] + nested


def separate(found: FoundLogs) -> list[FoundLogs]:
    """Divide the nodes in one folder into clusters; whatever else was found belongs to the first."""
    twins = len({node.id for node in found.nodes}) < len(found.nodes)
    groups, silent = _groups(found.nodes) if twins else ([found.nodes], [])
    clusters = [
        replace(found, nodes=[]),
        *(FoundLogs(name=group[0].folder.name, selection=found.selection) for group in groups[1:]),
    ]
    for cluster, group in zip(clusters, groups, strict=True):
        for node in group:
            _add(node, cluster)
    for node in silent:
        lacking = [one for one in clusters if all(other.id != node.id for other in one.nodes)]
        _add(node, lacking[0] if len(lacking) == 1 else clusters[0])
    return clusters


def _groups(nodes: Sequence[NodeFiles]) -> tuple[list[list[NodeFiles]], list[NodeFiles]]:
    """Group the nodes that name a topic id in common; return also those that name none."""
    groups: list[tuple[set[str], list[NodeFiles]]] = []
    silent: list[NodeFiles] = []
    for node in nodes:
        topics = set(_topic_ids(node))
        if not topics:
            silent.append(node)
            continue
        same = [group for group in groups if group[0] & topics]
        groups = [group for group in groups if group not in same]
        groups.append((topics.union(*(known for known, _ in same)), [one for _, of in same for one in of] + [node]))
    clusters = [sorted(of, key=lambda one: one.id) for _, of in groups] or [[]]
    return sorted(clusters, key=lambda of: of[0].label if of else ""), silent


def _topic_ids(node: NodeFiles) -> Iterator[str]:
    for stream in node.streams:
        for line in stream:
            yield from _TOPIC_ID.findall(line.message)


def _add(node: NodeFiles, found: FoundLogs) -> None:
    twin = next((other for other in found.nodes if other.id == node.id), None)
    if twin is None:
        found.nodes.append(node)
        return
    seen, do = f"node {node.id} again, as in {twin.label}", "put the logs of one node into one folder"
    found.problems += node.problems
    leave_out(Problem(node.label, None, "one folder per node", seen, do), found)
