"""What the disk of a node has at the end, after its last line."""

from collections.abc import Iterator, Sequence

from tidegauge.traces.kafka.disks.disks import left_unread, read_disk
from tidegauge.traces.kafka.nodes.gaps import END as END_OF_LOG
from tidegauge.traces.kafka.nodes.gaps import EVERYTHING, WORDS, Gap, latest_epoch
from tidegauge.traces.kafka.nodes.node import Node
from tidegauge.traces.kafka.nodes.process import END
from tidegauge.traces.kafka.nodes.steps import LoggedStep
from tidegauge.traces.problems import Problem


def observe(node: Node, ends_early: bool) -> list[Problem]:
    """Add what the disk of a node that stopped in order has, as Observe steps; return the problems."""
    if not node.runs or not node.stopped:
        return left_unread(node.folder, node.label)
    if ends_early:
        return []
    found, problems = read_disk(node.folder, node.label, {tp: one.epochs for tp, one in node.broker.replicas.items()})
    run = node.runs[-1]
    place = (run.number, END, 1, run.last)
    for tp, observations in sorted(found.items()):
        if tp in node.broker.replicas:
            node.broker.steps += [
                LoggedStep(node.id, tp, "Observe", fields, at, run.last, place) for at, fields in observations
            ]
    return problems


def beyond_the_lines(node: Node, controller: Node | None) -> Iterator[Gap]:
    """Yield a gap if the disk of a node that stopped in order has more than its lines show: the last of them are missing.

    In 4.x they always are: a process that was told to stop goes on serving without logging.
    """
    place = (node.broker.run, node.broker.index)
    for step in node.broker.steps:
        if step.name != "Observe":
            continue
        replica = node.broker.replicas[step.tp]
        cache = step.fields.get("epochs")
        for what, known, found in (
            ("leo", replica.leo, step.fields.get("leo")),
            ("hw", replica.last_hw, step.fields.get("hw")),
            ("entry", latest_epoch(replica.epochs), latest_epoch(_longer(replica.epochs, cache))),
            ("entry", _acted_on(node, step.tp), _registered(node, controller, step.tp, latest_epoch(cache))),
        ):
            if known is not None and isinstance(found, int) and found > known:
                why = f"{WORDS[what]} {found} on disk, and no line goes beyond {known} ({step.at})"
                yield Gap(node.id, EVERYTHING, place, END_OF_LOG, (node.runs[-1].last, None), why)


def _acted_on(node: Node, tp: str) -> int | None:
    """Return the latest leader epoch in which a replica had a role: its cache has no later one."""
    return max((epoch for step, epoch in _epochs(node, tp) if step.name in ("BecomeLeader", "BecomeFollower")), default=None)


def _registered(node: Node, controller: Node | None, tp: str, epoch: int | None) -> int | None:
    """Return the epoch if the process may have learned of it after its last line, else None.

    One that the controller registered before that line was logged; one that it never registered is in no cache.
    """
    if controller is None:
        return epoch
    changes = (one for one in _epochs(controller, tp) if one[0].name == "ChangePartition")
    # Clocks of two nodes are compared here: nothing else orders these lines.
    return epoch if any(known == epoch and step.time > node.runs[-1].last for step, known in changes) else None


def _epochs(node: Node, tp: str) -> Iterator[tuple[LoggedStep, int]]:
    """Yield every step of a node about a partition that has a leader epoch."""
    for step in node.broker.steps:
        epoch = step.fields.get("leader_epoch")
        if step.tp == tp and isinstance(epoch, int):
            yield step, epoch


def _longer(known: Sequence[tuple[int, int]] | None, found: object) -> object:
    """Return the cache if it continues the known one; None if not."""
    begins = isinstance(found, list) and [tuple(entry) for entry in found[: len(known or ())]] == list(known or ())
    return found if begins else None
