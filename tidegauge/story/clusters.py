"""Divide files by cluster: what happened to `orders-0` of one cluster is no part of the story of another's.

Rules of this file

1. The files of a folder that name one node at most are one unit; else each file is one.
2. Units that name a cluster id, or a topic id, in common are of one cluster: Kafka draws both at random.
3. Units are of different clusters if they name different cluster ids, or different ids for one topic at one time, or for two
   topics. One id after the other is a topic that was created anew.
4. What is not shown to be of another cluster is of the same, unless there are several that it could be of: then it is told
   by itself.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path

from tidegauge.story.reading import ReadFile


@dataclass(eq=False)
class _Unit:
    files: list[ReadFile]
    clusters: set[str] = field(default_factory=set)
    topics: dict[str, dict[str, tuple[int, int]]] = field(default_factory=lambda: defaultdict(dict))

    def read(self) -> None:
        """Note the ids that the lines name, and when."""
        for file in self.files:
            for line in file.found:
                if "cluster" in line.fields:
                    self.clusters.add(line.fields["cluster"])
                topic_id = line.fields.get("topic_id")
                if topic_id is not None and (line.partition is not None or "topic" in line.fields):
                    topic = line.fields["topic"] if line.partition is None else line.partition.rpartition("-")[0]
                    first, last = self.topics[topic].get(topic_id, (line.order, line.order))
                    self.topics[topic][topic_id] = min(first, line.order), max(last, line.order)

    @property
    def ids(self) -> set[str]:
        """The ids of clusters and topics that the lines name."""
        return self.clusters.union(*self.topics.values())

    def differs(self, other: "_Unit") -> bool:
        """Return whether the ids show two clusters."""
        if self.clusters and other.clusters:
            return not self.clusters & other.clusters
        apart = [
            topic
            for topic in self.topics.keys() & other.topics.keys()
            if not self.topics[topic].keys() & other.topics[topic].keys()
        ]
        at_once = [
            topic
            for topic in apart
            for first, last in self.topics[topic].values()
            for begin, end in other.topics[topic].values()
            if first <= end and begin <= last
        ]
        return bool(at_once) or len(apart) > 1

    def add(self, other: "_Unit") -> None:
        """Take over what another unit has."""
        self.files += other.files
        self.clusters |= other.clusters
        for topic, ids in other.topics.items():
            for topic_id, (begin, end) in ids.items():
                first, last = self.topics[topic].get(topic_id, (begin, end))
                self.topics[topic][topic_id] = min(first, begin), max(last, end)


def files_by_cluster(files: Sequence[ReadFile]) -> list[list[ReadFile]]:
    """Return the files of each cluster."""
    units = _units(files)
    groups = _of_common_ids([unit for unit in units if unit.ids])
    apart = {id(group) for group in _apart(groups)}
    clusters = [group for group in groups if id(group) in apart]
    for group in groups:
        if id(group) in apart:
            continue
        fitting = list(islice((cluster for cluster in clusters if not cluster.differs(group)), 2))
        if len(fitting) == 1:
            fitting[0].add(group)
        else:
            clusters.append(group)
    for unit in units:
        # One that names no id is like none and unlike none. There may be a hundred thousand.
        if not unit.ids and len(clusters) == 1:
            clusters[0].add(unit)
        elif not unit.ids:
            clusters.append(unit)
    return [cluster.files for cluster in clusters]


def _of_common_ids(units: Sequence[_Unit]) -> list[_Unit]:
    """Join units that name an id in common, in time in proportion to the ids: the smaller goes into the larger."""
    group_of: dict[str, _Unit] = {}
    for unit in units:
        joined = unit
        for group in {id(group_of[key]): group_of[key] for key in unit.ids if key in group_of}.values():
            smaller, joined = sorted((joined, group), key=lambda group: len(group.files))
            joined.add(smaller)
            group_of.update(dict.fromkeys(smaller.ids, joined))
        group_of.update(dict.fromkeys(unit.ids, joined))
    return list({id(group): group for group in group_of.values()}.values())


def _apart(groups: Sequence[_Unit]) -> Iterator[_Unit]:
    """Yield the groups that differ from another: only one that names a cluster, too, or a topic of the same name, can."""
    with_cluster = [group for group in groups if group.clusters]
    with_topic: dict[str, list[_Unit]] = defaultdict(list)
    for group in groups:
        for topic in group.topics:
            with_topic[topic].append(group)
    for group in groups:
        others = chain(with_cluster if group.clusters else (), *(with_topic[topic] for topic in group.topics))
        if any(group.differs(other) for other in others if other is not group):
            yield group


def _units(files: Sequence[ReadFile]) -> list[_Unit]:
    folders: dict[Path, list[ReadFile]] = defaultdict(list)
    for file in files:
        folders[file.path.parent].append(file)
    units = []
    for inside in folders.values():
        nodes = {node for file in inside for node in file.nodes}
        units += [_Unit(inside)] if len(nodes) < 2 else [_Unit([file]) for file in inside]
    for unit in units:
        unit.read()
    return units
