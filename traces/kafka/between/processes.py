"""Processes of a node that only other nodes logged: its own lines about them are missing.

Rules of this file

1. A broker registers each time it starts (KIP-631), so every broker epoch is a process of its own. Leaders log it with
   fetches (KIP-903), the controller when it registers the broker. A higher epoch is a later process.
2. A process is known by the fetches that its own lines send. Two epochs in the lines of one process, or more epochs than
   processes between two known ones, show that the beginning of a process is missing there.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka.between.unmatched import spot
from tidegauge.traces.kafka.lines.requests import Fetch
from tidegauge.traces.kafka.nodes.gaps import BEGIN, END, EVERYTHING, Gap
from tidegauge.traces.kafka.nodes.node import Node
from tidegauge.traces.kafka.nodes.steps import Send


class _Known(NamedTuple):
    """A process with its broker epoch: its number in the lines of its node, and when it first and last sent a fetch."""

    epoch: int
    run: int
    first: int
    last: int


def unlogged_processes(
    nodes: Sequence[Node], fetches: Mapping[int, Sequence[Fetch]], matched: Mapping[int, Send]
) -> Iterator[Gap]:
    """Yield a gap for each process of a node that other nodes name and that no line of its own begins."""
    every = [fetch for of in fetches.values() for fetch in of if fetch.broker_epoch is not None and fetch.broker_epoch >= 0]
    for node in nodes:
        if not node.runs or node.silenced:
            continue
        own = [fetch for fetch in every if fetch.replica == node.id]
        epochs = {fetch.broker_epoch or 0 for fetch in own}
        epochs.update(*(other.controller.broker_epochs.get(node.id, ()) for other in nodes))
        yield from _between(node, sorted(epochs), _known(own, matched))


def _known(fetches: Sequence[Fetch], matched: Mapping[int, Send]) -> list[_Known]:
    """Return the known processes in order."""
    sends: dict[tuple[int, int], list[int]] = {}
    for fetch in fetches:
        send = matched.get(id(fetch))
        if send is not None and fetch.broker_epoch is not None:
            sends.setdefault((fetch.broker_epoch, send.run), []).append(send.time)
    return [_Known(epoch, run, min(times), max(times)) for (epoch, run), times in sorted(sends.items())]


def _between(node: Node, epochs: Sequence[int], known: Sequence[_Known]) -> Iterator[Gap]:
    """Yield the gaps before, between and after the known processes; `epochs` are all that are named."""
    for before, after in zip((None, *known), (*known, None), strict=True):
        first = -1 if before is None else before.run
        last = len(node.runs) if after is None else after.run
        unknown = [epoch for epoch in epochs if (not before or epoch > before.epoch) and (not after or epoch < after.epoch)]
        restarted = before is not None and after is not None and before.epoch != after.epoch and first == last
        if not restarted and len(unknown) <= max(0, last - first - 1):
            continue
        begin = BEGIN if before is None else spot(node, before.last)
        run, index = END if after is None else spot(node, after.first)
        epoch = unknown[0] if unknown else after.epoch if after is not None else None
        why = f"others name its broker epoch {epoch}, and no line begins that process"
        times = (None if before is None else before.last, None if after is None else after.first)
        yield Gap(node.id, EVERYTHING, begin, END if after is None else (run, index + 1), times, why)
