"""A topic that is deleted and created again under its name is another topic: its partitions are traces of their own.

Rules of this file

1. Topics are told apart by their ids (KIP-516), which brokers name as they create a partition and the controller as it
   registers one. What a node tells of a partition belongs to the topic that it named last.
2. Topics of one name come one after the other, in the order in which the node that names most of them does.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka.nodes.node import Node
from tidegauge.traces.kafka.nodes.steps import LoggedStep


class Generation(NamedTuple):
    """A partition of one of the topics that have had its name: `number` counts them, of `of`."""

    tp: str
    number: int
    of: int
    topic_id: str | None

    def __str__(self) -> str:
        return self.tp if self.of == 1 else f"{self.tp} (topic id {self.topic_id})"


def by_generation(nodes: Sequence[Node], tps: Iterable[str]) -> Mapping[Generation, list[LoggedStep]]:
    """The steps of all nodes by partition and topic, in order; those of other partitions are passed over."""
    tps = frozenset(tps)
    names = {node.id: node.broker.named for node in nodes}
    ids = {topic: max((_ids(named, topic) for named in names.values()), key=len) for topic in map(topic_of, tps)}
    found: dict[Generation, list[LoggedStep]] = {}
    for tp in sorted(tps):
        of = ids[topic_of(tp)]
        for number in range(max(1, len(of))):
            found[Generation(tp, number, max(1, len(of)), of[number] if of else None)] = []
    for node in nodes:
        for step in node.broker.steps:
            if step.tp not in tps:
                continue
            of = ids[topic_of(step.tp)]
            last = [topic_id for place, topic_id in names[node.id].get(topic_of(step.tp), ()) if place <= step.place[:2]]
            number = of.index(last[-1]) if last and last[-1] in of else 0
            found[Generation(step.tp, number, max(1, len(of)), of[number] if of else None)].append(step)
    return {generation: steps for generation, steps in found.items() if steps}


def topic_of(tp: str) -> str:
    """The topic of a partition."""
    return tp.rpartition("-")[0]


def _ids(named: Mapping[str, Sequence[tuple[tuple[int, int], str]]], topic: str) -> list[str]:
    return list(dict.fromkeys(topic_id for _, topic_id in named.get(topic, ())))
