"""Proposals of a leader that was told to stop: in 4.x it goes on serving when it logs no more, and may propose an ISR.

Only the controller tells of such a proposal. It is the leader's if it was made in the epochs and on the ISR that the leader
had when its log ended; any other proposal without a line shows that lines are missing (unmatched.py).
"""

from collections.abc import Iterator, Sequence

from tidegauge.impl.rules import NONE
from tidegauge.traces.kafka_logs.nodes.node import Node
from tidegauge.traces.kafka_logs.nodes.process import AFTER_LINES
from tidegauge.traces.kafka_logs.nodes.steps import Fields, LoggedStep


def add_unlogged_proposals(nodes: Sequence[Node]) -> None:
    """Add the proposals that leaders made after their last line, as far as a controller judged them."""
    by_id: dict[object, Node] = {node.id: node for node in nodes if not node.silenced}
    offered = {key for node in nodes for step in node.broker.steps for key in step.provides}
    judged = [step for node in nodes for step in node.broker.steps if step.name == "AlterPartition"]
    for step in judged:
        keys = [key for key in step.depends_on if isinstance(key, tuple) and key[0] == "proposal" and key not in offered]
        leader = by_id.get(step.fields.get("peer"))
        if leader is None:
            continue
        for key in keys:
            made = next(_made(leader, step), None)
            if made is not None:
                made.provides += (key,)
                leader.broker.steps.append(made)
                offered.add(key)


def _made(leader: Node, judged: LoggedStep) -> Iterator[LoggedStep]:
    """Yield the proposal of each process that may have made it behind its last line."""
    for run in leader.runs:
        # A log that was closed has everything; a crash ends the process with its log.
        if not run.served_on:
            continue
        own = [step for step in leader.broker.steps if step.place[0] == run.number and step.tp == judged.tp]
        known: Fields = {}
        for step in sorted(own, key=lambda logged: logged.place):
            if step.name == "BecomeLeader" or (step.name, step.fields.get("error")) == (
                "HandleAlterPartitionResponse",
                NONE,
            ):
                known |= {
                    name: step.fields[name] for name in ("leader_epoch", "partition_epoch", "isr") if name in step.fields
                }
            elif step.name == "BecomeFollower":
                known = {}
        old, new = known.get("isr"), judged.fields.get("isr")
        same = all(known.get(name, ()) == judged.fields.get(name) for name in ("leader_epoch", "partition_epoch"))
        if not same or not isinstance(old, tuple) or not isinstance(new, tuple):
            continue
        fields: Fields = {"isr": new, "partition_epoch": known["partition_epoch"]}
        joins, leaves = set(new) - set(old), set(old) - set(new)
        place = (run.number, AFTER_LINES, 3, run.last)
        if len(joins) == 1 and not leaves:
            yield LoggedStep(leader.id, judged.tp, "ExpandIsr", {"peer": joins.pop(), **fields}, judged.at, run.last, place)
        elif leaves and not joins:
            yield LoggedStep(leader.id, judged.tp, "ShrinkIsr", fields, judged.at, run.last, place)
