"""Divide files by cluster: what happened to `orders-0` of one cluster is no part of the story of another's.

Rules of this file

1. The files of a folder that name one node at most are one unit; else each file is one.
2. Units that name a cluster id, or a topic id, in common are of one cluster: Kafka draws both at random.
3. Units are of different clusters if they name different cluster ids, or different ids for one topic at one time, or for two
   topics. One id after the other is a topic that was created anew.
4. What is not shown to be of another cluster is of the same, unless there are several that it could be of: then it is told
   by itself.

A *unit* is a group of files that are surely of one cluster, with the ids that they name (its `evidence`). `of_common_ids`
joins units that share an id (rule 2); evidence `contradicts` other evidence by rule 3; `apart` yields the groups that
contradict another one.
"""

from collections import defaultdict
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from tidegauge.story.reading import ReadFile
from tidegauge.traces.kafka_logs.discovery.clusters import ClusterEvidence, ClusterGroup, apart, of_common_ids


def files_by_cluster(files: Sequence[ReadFile]) -> list[list[ReadFile]]:
    """Return the files of each cluster: first those that are shown to differ, then what can be none of them."""
    units = _units(files)
    groups = of_common_ids((unit for unit in units if _ids(unit.evidence)), _ids)
    differing = list(apart(groups))
    clusters = list(differing)
    differing_ids = {id(group) for group in differing}
    for group in groups:
        if id(group) in differing_ids:
            continue
        # It contradicts no group: it is of the one cluster that it could be of. Two are enough to see that it has a choice.
        fitting = list(islice((cluster for cluster in clusters if not cluster.evidence.contradicts(group.evidence)), 2))
        if len(fitting) == 1:
            fitting[0].add(group)
        else:
            clusters.append(group)
    for unit in units:
        # One that names no id contradicts none and shares nothing. As there may be a hundred thousand, none is compared.
        if not _ids(unit.evidence) and len(clusters) == 1:
            clusters[0].add(unit)
        elif not _ids(unit.evidence):
            clusters.append(unit)
    return [cluster.members for cluster in clusters]


def _ids(evidence: ClusterEvidence) -> set[str]:
    """Return the cluster ids and topic ids that a unit names: random, so two units with one in common are of one cluster."""
    return evidence.clusters | evidence.ids


def _units(files: Sequence[ReadFile]) -> list[ClusterGroup[ReadFile]]:
    """Group files that are surely of one cluster: those of a folder, or each alone where the folder has several nodes."""
    folders: dict[Path, list[ReadFile]] = defaultdict(list)
    for file in files:
        folders[file.path.parent].append(file)
    units = []
    for inside in folders.values():
        nodes = {node for file in inside for node in file.nodes}
        # Files of several nodes in one folder need not be of one cluster (rule 1).
        units += [ClusterGroup(inside)] if len(nodes) < 2 else [ClusterGroup([file]) for file in inside]
    for unit in units:
        for file in unit.members:
            _read(file, unit.evidence)
    return units


def _read(file: ReadFile, evidence: ClusterEvidence) -> None:
    """Add to the evidence of a unit the cluster ids and topic ids that the lines of a file name, and when they do."""
    for line in file.sourced_lines:
        if "cluster" in line.fields:
            evidence.clusters.add(line.fields["cluster"])
        topic_id = line.fields.get("topic_id")
        if topic_id is not None and (line.partition is not None or "topic" in line.fields):
            topic = line.fields["topic"] if line.partition is None else line.partition.rpartition("-")[0]
            # The first and the last time at which it is named: here the one of this line.
            evidence.name(topic, topic_id, (line.order, line.order))
