"""A run of impl.explored.isr_cluster as states of spec/AlterPartition.tla, from which traces are made as from TLC's runs.

The names of the fields are the variables of the specification; node ids are those of the traces, from 1.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explored.isr_cluster import LEADER, AlterPartitionExchange, IsrCluster
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.rules import NONE
from tidegauge.spec.checker.tlc import TlcStep


def steps_of(states: Sequence[IsrCluster], labels: Sequence[Label]) -> Iterator[TlcStep]:
    """Yield the initial state and the state after each label; `labels[i]` leads from `states[i]` to `states[i + 1]`."""
    yield TlcStep("", _state(states[0]))
    for label, state in zip(labels, states[1:], strict=True):
        yield TlcStep(label[0], _state(state))


def _state(state: IsrCluster) -> dict[str, Any]:
    leader, registration = state.leader, state.registration
    ends = {_node(f): end for f, end in enumerate(state.ends, start=1)}
    return {
        "end": {_node(LEADER): leader.log.end, **ends},
        "known": {_node(r.broker_id): r.log_end for r in leader.remotes},
        "view": _partition(leader.state.isr, leader.partition_epoch),
        "pending": _nodes(leader.state.proposed_isr if leader.state.is_inflight else ()),
        "hw": leader.log.hw,
        "committed": state.committed,
        "controller": _partition(registration.isr, registration.partition_epoch),
        "images": tuple(_partition(image.isr, image.partition_epoch) for image in state.images),
        "incarnation": {_node(b): broker.epoch for b, broker in state.control.brokers.items() if b != LEADER},
        "channel": _channel(state.exchange),
    }


def _channel(exchange: AlterPartitionExchange | None) -> dict[str, Any]:
    if exchange is None:
        return {"type": "nothing"}
    message = exchange.message
    if isinstance(message, AlterPartitionRequest):
        return {"type": "request", **_partition(message.isr, message.partition_epoch)}
    if message.error != NONE:
        return {"type": "refusal", "asked": _nodes(exchange.proposed.proposed_isr)}
    return {"type": "response", **_partition(message.isr, message.partition_epoch)}


def _partition(isr: Sequence[int], partition_epoch: int) -> dict[str, Any]:
    return {"isr": _nodes(isr), "partitionEpoch": partition_epoch}


def _nodes(brokers: Sequence[int]) -> frozenset[int]:
    return frozenset(map(_node, brokers))


def _node(broker: int) -> int:
    return broker + 1
