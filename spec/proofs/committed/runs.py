"""What each premise of the committed-data invariant is good for: a short run that loses committed data without it.

Rules of this file

1. A run is a list of steps of `plain_cluster.py`, by name and arguments. Brokers are counted from 0, a broker that comes
   back without its last records is a new one, with the next number.
2. The first step that the cluster refuses when it keeps the premise is the one that needs it.
3. Where an ISR member lacks committed data the run goes on to elect it: that is when a client would notice.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegauge.spec.proofs.committed.cluster import Premise
from tidegauge.spec.proofs.committed.plain_cluster import PlainCluster

Step = tuple[Any, ...]


@dataclass(frozen=True)
class Loss:
    """A premise, and the steps that lose committed data without it."""

    premise: str
    steps: tuple[Step, ...]

    @property
    def breach(self) -> int:
        """The index of the step that needs the premise. Raises ValueError when the premise forbids none."""
        guarded = PlainCluster()
        for number, (name, *arguments) in enumerate(self.steps):
            if not getattr(guarded, name)(*arguments):
                return number
        raise ValueError(f"expected a step that is impossible while {self.premise}; seen none in {self.steps}")


BOTH_LEARN: tuple[Step, ...] = (("learn", 0, 0), ("learn", 1, 0))
COMMITTED: tuple[Step, ...] = (*BOTH_LEARN, ("shrink", 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0))
"""Broker 2 leaves the ISR, and one record is committed on the two others."""

LOSSES: Mapping[str, Loss] = {
    "elected-outside-isr": Loss(Premise.ELECT_FROM_ISR, (*COMMITTED, ("elect", 2), ("learn", 2, 1))),
    "commit-alone": Loss(
        Premise.COMMIT_NEEDS_ALL, (("learn", 0, 0), ("append", 0), ("commit", 0), ("elect", 1), ("learn", 1, 1))
    ),
    # the controller has taken broker 2 into the ISR, and the leader has not heard of it
    "joiner-not-counted": Loss(
        Premise.COUNT_WHO_IS_TO_JOIN,
        (
            *BOTH_LEARN, ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("accept",),
            ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # the controller has not taken broker 2 out of the ISR, and never does
    "leaver-not-counted": Loss(
        Premise.COUNT_WHO_IS_TO_LEAVE,
        (
            *BOTH_LEARN, ("propose_shrink", 0, 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
            ("refuse", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    "join-below-high-watermark": Loss(
        Premise.JOIN_AT_HIGH_WATERMARK,
        (
            *BOTH_LEARN, ("shrink", 1), ("shrink", 2), ("fetch", 1, 0), ("append", 0), ("commit", 0), ("expand", 1),
            ("elect", 1), ("learn", 1, 1),
        ),
    ),
    # KAFKA-7128: the new leader's high watermark is behind what the old one committed, the returning follower with it
    "join-below-epoch-start": Loss(
        Premise.JOIN_AT_EPOCH_START,
        (
            *COMMITTED, ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("fetch", 2, 0), ("expand", 2), ("elect", 2),
            ("learn", 2, 2),
        ),
    ),
    # the request of a change that its leader has given up arrives late
    "late-isr-change": Loss(
        Premise.CHANGE_KNOWS_THE_LATEST,
        (
            ("learn", 0, 0), ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("remove", 1),
            ("hear_isr", 0), ("append", 0), ("commit", 0), ("accept_given_up", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # KIP-903: the leader proposes a follower by what it had fetched before it lost its disk
    "old-incarnation": Loss(
        Premise.NO_OLD_INCARNATION,
        (
            *COMMITTED, ("remove", 1), ("hear_isr", 0), ("lose_tail", 1, 0), ("propose_expand", 0, 1), ("accept",),
            ("elect", 3), ("learn", 3, 1),
        ),
    ),
    "lost-tail-in-isr": Loss(Premise.LEFT_ISR_FIRST, (*COMMITTED, ("lose_tail", 1, 0), ("elect", 3), ("learn", 3, 1))),
    # the leader comes back with an old checkpoint and lets a follower join that has not what it committed before
    "leader-restarts-in-epoch": Loss(
        Premise.RESTART_LEADS_LATER,
        (
            *BOTH_LEARN, ("learn", 2, 0), *COMMITTED[2:], ("restart", 0, 1), ("fetch", 2, 0), ("expand", 2), ("elect", 2),
            ("learn", 2, 1),
        ),
    ),
    # Kafka 4.3.1 as it is: broker 0 does not know that broker 2 led in between, and that broker 1 truncated its log
    "kept-log-ends": Loss(
        Premise.FORGET_LOG_ENDS,
        (
            *BOTH_LEARN, ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("elect", 2), ("learn", 2, 1), ("learn", 1, 1),
            ("truncate", 1, 0), ("elect", 0, (2,)), ("learn", 0, 2), ("commit", 2), ("elect", 1), ("learn", 1, 3),
        ),
    ),
    # a follower that begins at the leader's log start shows all below it
    "delete-above-high-watermark": Loss(
        Premise.DELETE_BELOW_HIGH_WATERMARK, (*BOTH_LEARN, ("append", 0), ("delete", 0, 1), ("reset", 1))
    ),
}  # fmt: skip
"""By the name under which `tidegauge prove --scenario` tells it."""
