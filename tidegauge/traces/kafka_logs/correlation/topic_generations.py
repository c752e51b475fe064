"""A topic that is deleted and created again under the same name is another topic: its partitions are separate traces.

Rules of this file

1. Topics are distinguished by their ids (KIP-516), which brokers log as they create a partition and the controller as it
   registers one. A line about a partition belongs to the topic id that its node named last; a request names its own.
2. Topics of one name are ordered as in the log of the node that names most of them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.steps import LoggedStep


class Generation(NamedTuple):
    """A partition of the `number`-th of `of` topics with the same name."""

    tp: str
    number: int
    of: int
    topic_id: str | None

    def __str__(self) -> str:
        return self.tp if self.of == 1 else f"{self.tp} (topic id {self.topic_id})"


def by_generation(nodes: Sequence[Node], tps: Iterable[str]) -> Mapping[Generation, list[LoggedStep]]:
    """Group the steps of all nodes by partition and topic id, in order; other partitions are skipped."""
    tps = frozenset(tps)
    names = {node.id: node.broker.named for node in nodes}
    ids = {topic: _in_order([_ids(named, topic) for named in names.values()]) for topic in map(topic_of, tps)}
    steps_by_generation: dict[Generation, list[LoggedStep]] = {}
    for tp in sorted(tps):
        topic_ids = ids[topic_of(tp)]
        for number in range(max(1, len(topic_ids))):
            steps_by_generation[
                Generation(tp, number, max(1, len(topic_ids)), topic_ids[number] if topic_ids else None)
            ] = []
    # Of most topics there is one: then every step of a partition is of it.
    only = {one.tp: steps for one, steps in steps_by_generation.items() if one.of == 1}
    for node in nodes:
        for step in node.broker.steps:
            steps = only.get(step.tp)
            if steps is not None:
                steps.append(step)
                continue
            if step.tp not in tps:
                continue
            topic_ids = ids[topic_of(step.tp)]
            last = [topic_id for place, topic_id in names[node.id].get(topic_of(step.tp), ()) if place <= step.place[:2]]
            # Before its node names an id, a step belongs to the oldest topic.
            named = step.topic_id if step.topic_id in topic_ids else last[-1] if last else ""
            number = topic_ids.index(named) if named in topic_ids else 0
            steps_by_generation[
                Generation(step.tp, number, max(1, len(topic_ids)), topic_ids[number] if topic_ids else None)
            ].append(step)
    return {generation: steps for generation, steps in steps_by_generation.items() if steps}


def topic_of(tp: str) -> str:
    """Return the topic of a partition; topics may contain "-" themselves."""
    return tp.rpartition("-")[0]


def _in_order(by_node: Iterable[list[str]]) -> list[str]:
    """Return all ids of one topic, each once."""
    # The node that names most ids was there for every creation: its order is the order of the topics. An id that it does not
    # name is still another topic.
    return list(dict.fromkeys(topic_id for of_node in sorted(by_node, key=len, reverse=True) for topic_id in of_node))


def _ids(named: Mapping[str, Sequence[tuple[tuple[int, int], str]]], topic: str) -> list[str]:
    return list(dict.fromkeys(topic_id for _, topic_id in named.get(topic, ())))
