"""For each premise of the committed-data invariant, a short run that loses committed data without it.

Rules of this file

1. A run is a list of steps of `PlainCluster`. Brokers are counted from 0; a broker that comes back without its last records
   is a new one, with the next number.
2. Where an ISR member lacks committed data the run goes on to elect it: that is when a client would notice.
"""

from collections.abc import Mapping

from tidegauge.spec.proofs.committed.cluster import CommittedPremise
from tidegauge.spec.proofs.committed.concrete import PlainCluster
from tidegauge.spec.proofs.engine.induction import PlainStep, PremiseRun


class CommittedLoss(PremiseRun[PlainCluster]):
    """A run of three brokers that loses committed data."""

    def begin(self, without: str = "") -> PlainCluster:
        """Return the cluster before the first step."""
        return PlainCluster(without)


BOTH_LEARN: tuple[PlainStep, ...] = (("learn", 0, 0), ("learn", 1, 0))
ONE_COMMITTED: tuple[PlainStep, ...] = (
    *BOTH_LEARN,
    ("shrink", 2),
    ("append", 0),
    ("fetch", 1, 1),
    ("fetch", 1, 1),
    ("commit", 0),
)
"""Broker 2 leaves the ISR, and one record is committed on the two others."""

COMMITTED_LOSSES: Mapping[str, CommittedLoss] = {
    "elected-outside-isr": CommittedLoss(CommittedPremise.ELECT_FROM_ISR, (*ONE_COMMITTED, ("elect", 2), ("learn", 2, 1))),
    "commit-alone": CommittedLoss(
        CommittedPremise.COMMIT_NEEDS_ALL, (("learn", 0, 0), ("append", 0), ("commit", 0), ("elect", 1), ("learn", 1, 1))
    ),
    # the controller has taken broker 2 into the ISR, and the leader has not learned of it
    "joiner-not-counted": CommittedLoss(
        CommittedPremise.COUNT_WHO_IS_TO_JOIN,
        (
            *BOTH_LEARN, ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("accept",),
            ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # the controller has not taken broker 2 out of the ISR, and never does
    "leaver-not-counted": CommittedLoss(
        CommittedPremise.COUNT_WHO_IS_TO_LEAVE,
        (
            *BOTH_LEARN, ("propose_shrink", 0, 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
            ("refuse", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    "join-below-high-watermark": CommittedLoss(
        CommittedPremise.JOIN_AT_HIGH_WATERMARK,
        (
            *BOTH_LEARN, ("shrink", 1), ("shrink", 2), ("fetch", 1, 0), ("append", 0), ("commit", 0), ("expand", 1),
            ("elect", 1), ("learn", 1, 1),
        ),
    ),
    # KAFKA-7128: the new leader's high watermark is behind what the old one committed, the returning follower with it
    "join-below-epoch-start": CommittedLoss(
        CommittedPremise.JOIN_AT_EPOCH_START,
        (
            *ONE_COMMITTED, ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("fetch", 2, 0), ("expand", 2), ("elect", 2),
            ("learn", 2, 2),
        ),
    ),
    # the request of a change that its leader has given up arrives late
    "late-isr-change": CommittedLoss(
        CommittedPremise.CHANGE_KNOWS_THE_LATEST,
        (
            ("learn", 0, 0), ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("remove", 1),
            ("hear_isr", 0), ("append", 0), ("commit", 0), ("accept_given_up", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # KIP-903: the leader proposes a follower by what it had fetched before it lost its disk
    "old-incarnation": CommittedLoss(
        CommittedPremise.NO_OLD_INCARNATION,
        (
            *ONE_COMMITTED, ("remove", 1), ("hear_isr", 0), ("lose_tail", 1, 0), ("propose_expand", 0, 1), ("accept",),
            ("elect", 3), ("learn", 3, 1),
        ),
    ),
    "lost-tail-in-isr": CommittedLoss(
        CommittedPremise.LEFT_ISR_FIRST, (*ONE_COMMITTED, ("lose_tail", 1, 0), ("elect", 3), ("learn", 3, 1))
    ),
    # the leader comes back with an old checkpoint, and a follower joins that lacks what it committed before
    "leader-restarts-in-epoch": CommittedLoss(
        CommittedPremise.RESTART_LEADS_LATER,
        (
            *BOTH_LEARN, ("learn", 2, 0), *ONE_COMMITTED[2:], ("restart", 0, 1), ("fetch", 2, 0), ("expand", 2),
            ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # Kafka 4.3.1 as it is: broker 0 does not know that broker 2 led in between, and that broker 1 truncated its log
    "kept-log-ends": CommittedLoss(
        CommittedPremise.FORGET_LOG_ENDS,
        (
            *BOTH_LEARN, ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("elect", 2), ("learn", 2, 1), ("learn", 1, 1),
            ("truncate", 1, 0), ("elect", 0, (2,)), ("learn", 0, 2), ("commit", 2), ("elect", 1), ("learn", 1, 3),
        ),
    ),
    # broker 1 has asked from behind a record, and has truncated it since; broker 0 leads again and reads the old request
    "old-request": CommittedLoss(
        CommittedPremise.REQUEST_OF_ITS_EPOCH,
        (
            *BOTH_LEARN, ("append", 0), ("fetch", 1, 1), ("ask", 1), ("elect", 2), ("learn", 2, 1), ("learn", 1, 1),
            ("truncate", 1, 0), ("elect", 0, (2,)), ("learn", 0, 2), ("serve", 2, 1, 1, 0), ("commit", 2), ("elect", 1),
            ("learn", 1, 3),
        ),
    ),
    # F1, before 3.9.1 and 4.0.1: broker 1 said that the logs diverge when it led before; the record is committed since
    "old-response": CommittedLoss(
        CommittedPremise.RESPONSE_OF_ITS_EPOCH,
        (
            ("learn", 0, 0), ("append", 0), ("elect", 1, (2,)), ("learn", 1, 1), ("learn", 0, 1), ("diverge", 0),
            ("elect", 0), ("learn", 0, 2), ("learn", 1, 2), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 2), ("elect", 1),
            ("learn", 1, 3), ("learn", 0, 3), ("truncate", 0, 0, 1), ("elect", 0), ("learn", 0, 4),
        ),
    ),
    # a follower that begins at the leader's log start shows every record below it
    "delete-above-high-watermark": CommittedLoss(
        CommittedPremise.DELETE_BELOW_HIGH_WATERMARK, (*BOTH_LEARN, ("append", 0), ("delete", 0, 1), ("reset", 1))
    ),
}  # fmt: skip
"""By the name that `tidegauge prove --scenario` takes."""
