"""What the judge says where one value could be taken for the one beside it: another column, another local, a member less."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conformance.hand import (
    CONFIG,
    COPIED,
    FORKED,
    OPENING,
    TWO,
    append,
    bent,
    change,
    compared,
    follow,
    lead,
    reported,
    reporting_all_but,
    send,
    serve,
    snapshot,
    start,
    take,
)
from tests.conformance.judge.test_delayed_responses import ONE_RECORD, WAITS, response
from tests.conformance.judge.test_rules import LEARNED, TWO_ELIGIBLE, TWO_ROUNDS
from tidegauge.traces.schema import Config, Event

ALL = (1, 2, 3)
THREE_LEAD = (
    *(start(node) for node in ALL),
    change(1, 0, ALL, ALL),
    lead(1, 0, ALL),
    follow(2, 1, 0),
    follow(3, 1, 0),
)
KIP320 = replace(TWO, profile="kip320")
KEEPS = replace(CONFIG, profile="fetch-truncation")
ELIGIBLE = replace(CONFIG, profile="elr")
UNTOLD_ISR = reported(100, "ChangePartition", leader=1, leader_epoch=0, isr=None)
NO_FOLLOWERS = replace(TWO, extra=reporting_all_but("BecomeFollower"))
LOADED = (start(1, leo=4, hw=3, epochs=((0, 0), (1, 2))), start(2), reported(1, "Crash"))
"""Broker 1 had the high watermark 3."""
DELAYED = (
    *OPENING,
    send(2, 1, 0, 0, -1),
    reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=0, req_last_epoch=-1, error=0, remote_leo=0, hw=0, leo=0),
)
"""The fetch of broker 2 waits at broker 1."""
AGAIN = (*COPIED, change(1, 1, (1, 2)), lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1))
"""Broker 1 is elected again, and knows of old where broker 2 stood."""


def erased(leader: int, joins: int, other: int) -> Sequence[Event]:
    """A leader has proposed that one joins, and has read metadata of the same partition epoch since (F3)."""
    fetches = [
        event
        for node in (joins, other)
        for event in (
            send(node, leader, 0, 0, -1),
            serve(leader, node, 0, 0, -1, res_hw=0, hw=0, leo=0),
            take(node, leader, 0, 0, res_hw=0, hw_before=0, hw=0, count=0),
        )
    ]
    return (
        *(start(node) for node in ALL),
        change(leader, 0, (leader,), ALL, partition_epoch=0),
        lead(leader, 0, (leader,), partition_epoch=0),
        follow(joins, leader, 0),
        follow(other, leader, 0),
        *fetches,
        reported(leader, "ExpandIsr", peer=joins, isr=tuple(sorted((leader, joins))), remote_leo=0),
        lead(leader, 0, (leader,), partition_epoch=0),
    )


def many_epochs(lags: bool) -> Sequence[Event]:
    """Broker 1 leads epoch after epoch, and the ISR changes in each; broker 2 follows in the first only, or in all."""
    return (
        *COPIED,
        *(
            event
            for epoch in range(1, 24)
            for event in (
                change(1, epoch, (1, 2), partition_epoch=2 * epoch),
                lead(1, epoch, (1, 2), leo=1, hw_before=1, hw=1, partition_epoch=2 * epoch),
                change(1, epoch, (1,), partition_epoch=2 * epoch + 1),
                lead(1, epoch, (1,), leo=1, hw_before=1, hw=1, partition_epoch=2 * epoch + 1),
                *(() if lags else (follow(2, 1, epoch, leo=1, hw=0),)),
            )
        ),
        lead(2, 3, (1, 2), leo=1, hw_before=0, hw=1),
        reported(1, "ProduceAck", acks=-1, rec_end=1, rec_epoch=0, error=0),
    )


CASES: dict[str, tuple[Sequence[Event], Config, set[tuple[str, str, int, int]]]] = {
    "a snapshot of a replica that nothing was heard of shows its high watermark": (
        (snapshot(1, hw=0), snapshot(1, hw=1)),
        TWO,
        set(),
    ),
    "a snapshot may show the highest one a replica had": (
        (
            *COPIED,
            append(1, 0, 1, 1, 1),
            send(2, 1, 0, 1, 0),
            serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=2),
            take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1),
            reported(2, "Crash"),
            start(2, clean=False, leo=2, hw=0, epochs=((0, 0),)),
            snapshot(2, hw=1),
        ),
        TWO,
        set(),
    ),
    "another round asks about a lower epoch, not a higher one": (
        bent(TWO_ROUNDS, -1, req_last_epoch=3),
        TWO,
        {("FETCH-02", "req_last_epoch", 0, 3), ("TRUNC-02", "req_last_epoch", 1, 3)},
    ),
    "two of three in sync are too few for three": (
        (
            *THREE_LEAD,
            change(1, 0, (1, 2), ALL),
            lead(1, 0, (1, 2)),
            *bent((append(1, 0, 0),), 0, acks=-1),
        ),
        replace(CONFIG, min_isr=3),
        {("APPEND-03", "size of the ISR (min.insync.replicas)", 3, 2)},
    ),
    "a delayed response has a high watermark from between": (
        (
            *WAITS,
            change(1, 0, (1,)),
            lead(1, 0, (1,), leo=2, hw_before=1, hw=2, epoch_start=0),
            append(1, 0, 2, 2, 3),
            response(error=0, res_hw=2, **ONE_RECORD),
        ),
        TWO,
        set(),
    ),
    "a delayed response diverges with another epoch than end": (
        (
            start(1, leo=1, epochs=((3, 0),)),
            start(2, leo=1, epochs=((4, 0),)),
            change(2, 5, (2,)),
            lead(2, 5, (2,), leo=1, hw=1),
            follow(1, 2, 5, leo=1),
            send(1, 2, 5, 1, 3),
            *bent(
                (reported(2, "AnswerFetch", peer=1, req_epoch=5, req_offset=1, req_last_epoch=3, error=0),),
                0,
                div_epoch=-1,
                div_end=0,
            ),
            *bent(FORKED[-2:-1], 0, req_epoch=5, div_epoch=-1),
        ),
        TWO,
        {("FETCH-05", "div_epoch", 3, -1)},
    ),
    "the high watermark moved with a response before the diverging one": (
        (
            *LEARNED,
            replace(bent(FORKED[-2:-1], 0, peer=1, req_epoch=0, div_end=1, target=1, leo=1, hw_before=1, hw=1)[0], node=2),
        ),
        TWO,
        {("FETCH-10", "response", 0, 4), ("HW-06", "hw", 0, 1)},
    ),
    "a diverging end that nobody told": (bent(bent(FORKED, -3, div_end=...), -2, div_end=...), TWO, set()),
    "roles of the past are replayed": (
        (
            start(1, leo=1, epochs=((0, 0),)),
            change(3, 0, ALL, ALL),
            change(1, 1, ALL, ALL),
            change(2, 2, ALL, ALL),
            reported(1, "BecomeFollower", leader=3, leader_epoch=0, leo=1, hw=0),
            reported(1, "BecomeLeader", leader_epoch=1, isr=ALL, leo=1, hw=0),
        ),
        CONFIG,
        set(),
    ),
    "a second proposal replaces the first": (
        (
            *THREE_LEAD,
            append(1, 0, 0),
            reported(1, "ShrinkIsr", isr=(1, 2), leo=1, hw=0),
            reported(1, "ShrinkIsr", isr=(1,), leo=1, hw=0),
            reported(1, "HandleAlterPartitionResponse", isr=(1, 2), error=6, hw_before=0, hw=0),
        ),
        CONFIG,
        {("ISR-03", "pending proposal", 0, 3)},
    ),
    "members of the ISR agree after an unclean election, whoever is eligible": (
        (
            *OPENING,
            append(1, 0, 0),
            reported(1, "Crash"),
            reported(100, "ChangePartition", leader=2, leader_epoch=1, isr=(2,), live=(2,), clean=False),
            lead(2, 1, (2,)),
            append(2, 1, 0, 0, 1),
            reported(100, "SetMinIsr"),
            start(1, clean=False, leo=1, hw=1, epochs=((0, 0),)),
            change(2, 1, (1, 2)),
            follow(1, 2, 1, leo=1, hw=1),
        ),
        TWO,
        {
            ("DATA-02", "offset up to which the logs agree", 1, 0),
            ("ISR-04", "isr", 0, 3),
            ("LOAD-01", "hw", 0, 1),
        },
    ),
    "who left the ISR before the last member stays eligible": (
        (start(1), start(2), change(1, 0, (1, 2)), change(1, 0, (1,)), change(None, 1, ()), change(2, 2, (2,))),
        TWO_ELIGIBLE,
        set(),
    ),
    "a fetch without epochs begins at the high watermark that is, not the highest that was": (
        (
            start(1),
            start(2, leo=2, hw=2),
            reported(2, "Crash"),
            start(2, clean=False, leo=2, hw=1),
            change(1, 0, (1, 2)),
            lead(1, 0, (1, 2)),
            follow(2, 1, 0, leo=2, hw=1),
            send(2, 1, 0, 1, -1),
        ),
        TWO,
        set(),
    ),
    "elections up to the epoch of the record that is there are reported, those after it are not": (
        (
            start(1, leo=3, hw=3, epochs=((0, 0), (1, 1), (2, 2))),
            start(2),
            change(1, 2, (1,)),
            lead(1, 2, (1,), leo=3, hw_before=3, hw=3),
            reported(1, "ProduceAck", acks=-1, rec_base=2, rec_end=3, rec_epoch=3, error=0),
        ),
        TWO,
        {("DATA-03", "rec_epoch", 3, 2)},
    ),
    "more is loaded than the high watermark ever was": (
        (
            *COPIED,
            append(1, 0, 1, 1, 1),
            append(1, 0, 2, 1, 1),
            reported(1, "Crash"),
            start(1, clean=False, leo=3, hw=2, epochs=((0, 0),)),
        ),
        TWO,
        {("LOAD-01", "hw", 1, 2)},
    ),
    "a replayed role may leave the high watermark below the highest one that was": (
        (
            *LOADED,
            start(1, clean=False, leo=4, hw=1, epochs=((0, 0), (1, 2))),
            change(2, 5, (1, 2)),
            reported(1, "BecomeLeader", leader_epoch=1, isr=(1, 2), leo=4, hw_before=1, hw=2),
        ),
        TWO,
        set(),
    ),
    "a replayed role lowers nothing": (
        (
            *LOADED,
            start(1, clean=False, leo=4, hw=2, epochs=((0, 0), (1, 2))),
            change(2, 5, (1, 2)),
            reported(1, "BecomeLeader", leader_epoch=1, isr=(1, 2), leo=4, hw_before=2, hw=1),
        ),
        TWO,
        {("HW-04", "hw", 2, 1)},
    ),
    "an unclean election ends the claims of before, however much is deleted": (
        (
            start(1, leo=6, hw=6, log_start=5, epochs=((0, 5),)),
            start(2, leo=6, hw=5, log_start=5, epochs=((0, 5),)),
            reported(100, "ChangePartition", leader=1, leader_epoch=1, isr=(1,), live=(1, 2), clean=False),
            lead(1, 1, (1,), leo=6, hw_before=6, hw=6),
            change(1, 2, (1,)),
            lead(1, 2, (1,), leo=6, hw_before=6, hw=6),
            append(1, 2, 6, 6, 7),
            reported(1, "ProduceAck", acks=-1, rec_base=6, rec_end=7, error=0),
            change(1, 2, (1, 2)),
            snapshot(2, leo=6, hw=5, log_start=5, epochs=((0, 5),)),
            change(2, 3, (1, 2)),
            lead(2, 3, (1, 2), leo=6, hw_before=5, hw=5),
        ),
        TWO,
        {("ISR-04", "isr", 0, 3), ("DATA-03", "leo", 7, 6), ("DATA-01", "leo", 7, 6)},
    ),
    "the last of three that may lack what it had is not eligible": (
        (
            *THREE_LEAD[:3],
            change(1, 0, ALL, ALL, elr=()),
            reported(100, "RegisterBroker", peer=3, broker_epoch=5, clean=False),
            change(1, 0, (1,), ALL, elr=(3,)),
        ),
        replace(ELIGIBLE, min_isr=2),
        {("CTRL-07", "elr", 0, 4)},
    ),
    "who left first of three stays eligible": (
        (
            *THREE_LEAD[:3],
            *(change(1, 0, isr, ALL) for isr in (ALL, (1, 2), (1,), (1,))),
            change(None, 1, (), (3,)),
            change(3, 2, (3,), ALL),
        ),
        replace(ELIGIBLE, min_isr=3),
        set(),
    ),
    "who leaves an ISR that nobody told, and joins, lacks what it lacked": (
        (
            *THREE_LEAD[:3],
            change(1, 0, (1, 2), ALL, elr=()),
            reported(100, "RegisterBroker", peer=2, broker_epoch=5, clean=False),
            UNTOLD_ISR,
            change(1, 0, (1, 2), ALL, elr=()),
            change(1, 0, (1,), ALL, elr=(2,)),
        ),
        replace(ELIGIBLE, min_isr=2),
        {("ISR-04", "isr", 0, -1), ("CTRL-07", "elr", 0, 2)},
    ),
    "the assignment is that of the controller, though a replica named the epoch first": (
        (
            *THREE_LEAD[:3],
            change(2, 0, (1, 2), ALL, partition_epoch=0, replicas=ALL),
            lead(1, 1, (1, 2)),
            change(1, 1, (1, 2), ALL, partition_epoch=1, replicas=(1, 2)),
            reported(1, "BecomeLeader", leader_epoch=1, epoch_start=0, leo=0, hw_before=0, hw=0),
            serve(1, 3, 1, 0, -1, res_hw=0, hw=0, leo=0),
        ),
        CONFIG,
        {("FETCH-04", "in flight", 1, 0), ("CTRL-03", "leader_epoch", 0, 1), ("FENCE-01", "error", 75, 0)},
    ),
    "two leaders are registered in an epoch": (
        (start(1), start(2), change(1, 0, (1, 2)), change(2, 0, (1, 2)), lead(2, 0, (1, 2)), lead(1, 0, (1, 2))),
        TWO,
        {("CTRL-02", "leader_epoch", 1, 0), ("EPOCH-04", "leader", 0, 1)},
    ),
    "of elections before the first that is reported nothing is known": (
        (
            start(1, leo=3, hw=3, epochs=((3, 0),)),
            start(2),
            change(1, 3, (1,)),
            lead(1, 3, (1,), leo=3, hw_before=3, hw=3),
            reported(1, "ProduceAck", acks=-1, rec_base=1, rec_end=2, rec_epoch=1, error=0),
        ),
        TWO,
        set(),
    ),
    "an unclean election of a higher epoch than the latest unclean one": (
        (
            start(1, leo=2, hw=2, epochs=((0, 0),)),
            start(2, leo=2, hw=0, epochs=((0, 0),)),
            change(1, 2, (1, 2)),
            reported(100, "ChangePartition", leader=1, leader_epoch=5, isr=(1,), live=(1, 2), clean=False),
            lead(1, 5, (1,), leo=2, hw_before=2, hw=2),
            reported(100, "ChangePartition", leader=2, leader_epoch=3, isr=(2,), live=(1, 2), clean=False),
            lead(2, 3, (2,), leo=2, hw_before=0, hw=2),
            append(2, 3, 2, 2, 3),
            snapshot(1, leo=2, hw=2, epochs=((0, 0), (5, 2))),
        ),
        TWO,
        {("CTRL-02", "leader_epoch", 2, 5)},
    ),
    "a log start that its leader did not answer drops entries": (
        (
            start(1, leo=6, hw=6, epochs=((0, 0), (1, 2))),
            start(2, leo=6, hw=6, epochs=((0, 0), (1, 2))),
            change(1, 2, (1, 2)),
            lead(1, 2, (1, 2), leo=6, hw_before=6, hw=6),
            follow(2, 1, 2, leo=6, hw=6),
            send(2, 1, 2, 6, 1),
            serve(1, 2, 2, 6, 1, res_hw=6, hw=6, leo=6, res_log_start=0),
            take(2, 1, 2, 6, res_hw=6, hw_before=6, hw=6, count=0, res_log_start=0, log_start=3),
            send(2, 1, 2, 6, 1),
        ),
        TWO,
        {("LOG-03", "log_start", 0, 3)},
    ),
    "a fetch of another epoch is refused, so nobody joins by it": (
        (
            start(1),
            start(2),
            change(1, 0, (1,)),
            lead(1, 0, (1,)),
            follow(2, 1, 0),
            append(1, 0, 0, 0, 1),
            send(2, 1, 0, 0, -1),
            serve(1, 2, 0, 0, -1, res_hw=1, hw=1, leo=1),
            take(2, 1, 0, 0, res_hw=1, hw_before=0, hw=1),
            change(1, 1, (1,)),
            follow(2, 1, 1, leo=1, hw=1),
            send(2, 1, 1, 1, 0),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=1),
        ),
        KIP320,
        {("ISR-01", "remote_leo", 0, 1)},
    ),
    **{
        f"broker {leader} has another proposal while the controller may commit the first": (
            (
                *erased(leader, joins, other),
                *(
                    reported(leader, "ExpandIsr", peer=node, isr=tuple(sorted((leader, node))), remote_leo=0)
                    for node in (other, joins)
                ),
            ),
            KEEPS,
            {("ISR-03", "pending proposal", 0, 7)},
        )
        for leader, joins, other in ((1, 2, 3), (2, 3, 1), (3, 1, 2))
    },
    **{
        f"broker {leader} gets the refusal of an ISR that it never proposed": (
            (
                *erased(leader, joins, other),
                reported(leader, "ShrinkIsr", isr=(leader,)),
                reported(leader, "HandleAlterPartitionResponse", isr=tuple(sorted((leader, other))), error=42),
            ),
            KEEPS,
            {
                ("ISR-03", "isr", 1 << leader - 1 | 1 << joins - 1, 1 << leader - 1 | 1 << other - 1),
                ("ISR-02", "isr", 1 << leader - 1, 1 << leader - 1),
            },
        )
        for leader, joins, other in ((1, 2, 3), (2, 3, 1), (3, 1, 2))
    },
    "a proposal of which nobody told the members, after one that is forgotten": (
        (
            *erased(1, 2, 3),
            reported(1, "ShrinkIsr"),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0),
            append(1, 0, 0, 0, 0),
        ),
        KEEPS,
        set(),
    ),
    "what is forgotten holds the high watermark back": (
        (*erased(2, 3, 1), append(2, 0, 0, 0, 0), reported(2, "ProduceAck", acks=-1, rec_end=1, error=0)),
        KEEPS,
        {("ACK-01", "hw", 1, 0)},
    ),
    "nobody told the high watermark of who is elected again": (
        (
            *AGAIN,
            reported(1, "LeaderAppend", leader_epoch=1, rec_base=1, rec_end=2, rec_epoch=1, leo_before=1, leo=2),
            reported(1, "ShrinkIsr", isr=(1,)),
            reported(1, "HandleAlterPartitionResponse", isr=(1,), error=0),
        ),
        replace(TWO, profile="fetch-truncation"),
        {("CTRL-03", "isr", 3, 1)},
    ),
    "who waits at a broker that dies may have its response, and asks again": (
        (
            *DELAYED,
            reported(1, "Crash"),
            start(1, clean=False),
            reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=0, req_last_epoch=-1, error=75),
        ),
        TWO,
        set(),
    ),
    "a broker that is back answers what it was asked before": (
        (
            *OPENING,
            send(2, 1, 0, 0, -1),
            reported(1, "Crash"),
            start(1, clean=False),
            reported(1, "AnswerFetch", peer=2, req_epoch=0, req_offset=0, error=0, res_hw=0, rec_base=0, rec_end=0),
            take(2, 1, 0, 0, res_hw=1, hw_before=0, hw=0, count=0),
        ),
        TWO,
        {("FETCH-10", "res_hw", 0, 1)},
    ),
    "the request of a delayed response is the one that is recorded": (
        (
            *FORKED[:-3],
            bent(FORKED[-3:-2], 0, div_epoch=..., div_end=..., rec_base=1, rec_end=1)[0],
            bent(FORKED[-2:-1], 0, req_epoch=..., req_offset=...)[0],
        ),
        TWO,
        {("FETCH-05", "response", 4, 3)},
    ),
    "who replays a role has an unknown log end": (
        (
            start(2),
            change(2, 2, (1, 2)),
            reported(1, "Start", clean=True, hw=0, log_start=0, epochs=((0, 0), (1, 2))),
            reported(1, "BecomeLeader", leader_epoch=1, isr=(1, 2)),
            replace(bent(FORKED[-3:-2], 0, peer=2, req_offset=3, div_end=2, hw=...)[0], node=1),
        ),
        TWO,
        {("FETCH-04", "in flight", 1, 0)},
    ),
    "a leader that was told no broker epoch knows none": (
        (
            *COPIED,
            reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, req_broker_epoch=0, error=6),
        ),
        TWO,
        {("FETCH-04", "in flight", 1, 0), ("FENCE-01", "error", 0, 6)},
    ),
    "who follows in the controller's epoch replays no more": (
        (
            *THREE_LEAD[:3],
            change(1, 1, ALL, ALL),
            reported(2, "Crash"),
            start(2, clean=False),
            follow(2, 1, 1),
            change(1, 3, ALL, ALL),
            reported(2, "BecomeLeader", leader_epoch=2, isr=ALL, leo=0, hw=0),
        ),
        CONFIG,
        {("CTRL-02", "leader_epoch", 1, 3), ("CTRL-03", "isr", 7, 7)},
    ),
    "what is acknowledged where roles are unseen is nobody's claim": (
        (
            *OPENING[:-1],
            append(1, 0, 0),
            reported(1, "ProduceAck", acks=-1, rec_end=1, rec_epoch=0, error=0),
            change(2, 1, (2,)),
            lead(2, 1, (2,)),
        ),
        NO_FOLLOWERS,
        set(),
    ),
    "a claim is that of the last term whose log may have the record": (
        (
            *OPENING[:-1],
            append(1, 0, 0),
            change(2, 1, (1, 2)),
            lead(2, 1, (1, 2)),
            reported(1, "BecomeFollower", leader=2, leader_epoch=1),
            reported(1, "Crash"),
            reported(1, "Start", clean=False),
            change(1, 2, (1, 2)),
            reported(1, "BecomeLeader", leader_epoch=2, isr=(1, 2)),
            reported(1, "ProduceAck", acks=-1, rec_end=1, rec_epoch=0, error=0),
        ),
        TWO,
        set(),
    ),
    "who has no replica any more keeps no term": (
        (
            *COPIED,
            reported(2, "DeleteReplica"),
            *(
                event
                for epoch in range(1, 6)
                for event in (change(1, epoch, (1,), (1,)), lead(1, epoch, (1,), leo=1, hw_before=1, hw=1))
            ),
        ),
        TWO,
        set(),
    ),
    "a leader of no epoch": (
        (
            start(1, leo=1, epochs=((-1, 0),)),
            start(2),
            reported(1, "BecomeLeader", leader_epoch=None, isr=(1, 2)),
            snapshot(1, leo=1, hw=0, epochs=((0, 0),)),
        ),
        TWO,
        {("EPOCH-01", "leader_epoch", -1, 0)},
    ),
    "whoever is elected after an ISR that is null was in it": (
        (start(1), start(2), change(1, 0, (1,)), UNTOLD_ISR, change(2, 1, (2,))),
        TWO,
        {("ISR-04", "isr", 0, -1)},
    ),
    "logs agree after an unclean election, in an ISR that is null": (
        (
            start(1, leo=1, hw=1, epochs=((0, 0),)),
            start(2, leo=1, hw=1, epochs=((1, 0),)),
            reported(100, "ChangePartition", leader=1, leader_epoch=0, isr=(1,), live=(1, 2), clean=False),
            UNTOLD_ISR,
        ),
        TWO,
        {("DATA-02", "offset up to which the logs agree", 1, 0), ("ISR-04", "isr", 0, -1)},
    ),
    "records of a diverging response of which nobody told the end": (
        (*FORKED[:-2], reported(1, "HandleFetchResponse", peer=2, rec_base=1)),
        TWO,
        set(),
    ),
    "a log start above the high watermark is not followed": (
        (
            start(1, leo=6, hw=6, log_start=5, epochs=((0, 5),)),
            start(2, leo=6, hw=3, log_start=1, epochs=((0, 1),)),
            change(1, 2, (1, 2)),
            lead(1, 2, (1, 2), leo=6, hw_before=6, hw=6),
            follow(2, 1, 2, leo=6, hw=3),
            send(2, 1, 2, 6, 0),
            take(2, 1, 2, 6, res_hw=4, hw_before=3, hw=4, count=0, res_log_start=5, log_start=1),
        ),
        TWO,
        {("FETCH-10", "response", 1, 3)},
    ),
    **{
        f"a copy of a request that was answered with {what} is answered again": (
            (
                *COPIED,
                send(2, 1, 0, 1, 0),
                reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, **served),
                reported(
                    1,
                    "HandleFetch",
                    peer=2,
                    req_epoch=0,
                    req_offset=1,
                    req_last_epoch=0,
                    error=0,
                    res_hw=1,
                    rec_base=1,
                    rec_end=1,
                ),
                take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0),
            ),
            replace(TWO, extra={"duplicates": True}),
            failures,
        )
        for what, served, failures in (
            ("out of range", {"error": 1}, {("FETCH-05", "error", 0, 1)}),
            ("a divergence", {"error": 0, "div_epoch": 0, "div_end": 0}, {("FETCH-05", "response", 3, 4)}),
        )
    },
    "a broker that follows nobody gets the end of an epoch": (
        (
            *OPENING[:-1],
            send(2, 1, 0, 0, -1),
            reported(2, "HandleEpochResponse", peer=1, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=0),
        ),
        KIP320,
        {("FETCH-03", "role", 2, 0), ("FETCH-09", "role", 2, 0), ("FETCH-10", "response", 1, 8)},
    ),
    "the refusal of one of several proposals that count": (
        (
            *erased(1, 2, 3),
            reported(1, "ShrinkIsr", isr=(1,)),
            reported(1, "HandleAlterPartitionResponse", isr=(1,), error=42),
        ),
        KEEPS,
        {("ISR-02", "isr", 1, 1)},
    ),
    "who joins has fetched from elsewhere": (
        (
            start(1),
            start(2),
            change(1, 0, (1,)),
            lead(1, 0, (1,)),
            follow(2, 1, 0),
            append(1, 0, 0, 0, 1),
            send(2, 1, 0, 0, -1),
            serve(1, 2, 0, 0, -1, res_hw=1, hw=1, leo=1),
            take(2, 1, 0, 0, res_hw=1, hw_before=0, hw=1),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=2),
        ),
        TWO,
        {("ISR-01", "remote_leo", 0, 2)},
    ),
    **{
        f"a leader epoch of long ago, {'which all are past' if not lags else 'in which one broker still is'}": (
            many_epochs(lags),
            TWO,
            {
                *(() if lags else (("EPOCH-03", "leader_epoch", 23, 3),)),
                ("EPOCH-04", "leader", 0, 1),
                ("HW-02", "hw", -1, 1),
                ("HW-03", "hw", 0, 1),
            },
        )
        for lags in (False, True)
    },
    "the last record that was deleted is not compared": (
        (
            start(1, leo=4, hw=4, log_start=2, epochs=((1, 2),)),
            start(2),
            change(1, 0, (1,)),
            change(1, 1, (1,)),
            lead(1, 1, (1,), leo=4, hw_before=4, hw=4),
            reported(1, "ProduceAck", acks=-1, rec_base=1, rec_end=2, rec_epoch=0, error=0),
            reported(1, "ProduceAck", acks=-1, rec_base=2, rec_end=3, rec_epoch=0, error=0),
        ),
        TWO,
        {("DATA-03", "rec_epoch", 0, 1)},
    ),
    "a copy of a request that waits": (
        (
            *COPIED,
            send(2, 1, 0, 1, 0),
            reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=0, remote_leo=1),
            serve(1, 2, 0, 1, 0, res_hw=1, hw=1, leo=1),
            take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0),
        ),
        replace(TWO, extra={"duplicates": True}),
        set(),
    ),
    "one of two that are live joins in an earlier incarnation": (
        (
            *THREE_LEAD[:3],
            reported(100, "RegisterBroker", peer=2, broker_epoch=7),
            change(1, 0, (1,), ALL),
            lead(1, 0, (1,)),
            follow(2, 1, 0),
            send(2, 1, 0, 0, -1),
            serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0, broker_epoch=5),
            change(1, 0, (1, 2), ALL),
        ),
        CONFIG,
        {("CTRL-09", "broker_epoch", 7, 5)},
    ),
    "a response leaves the high watermark, which once was higher, where it is": (
        (
            start(1, leo=2, hw=2, epochs=((0, 0), (2, 1))),
            start(2, leo=2, hw=2, epochs=((0, 0), (1, 1))),
            reported(2, "Crash"),
            start(2, clean=False, leo=2, hw=1, epochs=((0, 0), (1, 1))),
            change(1, 3, (1, 2)),
            lead(1, 3, (1, 2), leo=2, hw_before=2, hw=2),
            follow(2, 1, 3, leo=2, hw=1),
            send(2, 1, 3, 2, 1),
            reported(1, "HandleFetch", peer=2, req_epoch=3, req_offset=2, req_last_epoch=1, error=0, div_epoch=0, div_end=1),
            take(2, 1, 3, 2, res_hw=1, hw_before=1, hw=1, count=0),
            replace(
                bent(
                    FORKED[-2:-1],
                    0,
                    peer=1,
                    req_epoch=3,
                    req_offset=2,
                    div_end=1,
                    target=1,
                    leo_before=2,
                    leo=1,
                    hw_before=1,
                    hw=1,
                )[0],
                node=2,
            ),
        ),
        TWO,
        set(),
    ),
}


@pytest.mark.parametrize("what", CASES)
def test_a_value_is_not_the_one_beside_it(what: str) -> None:
    events, config, failures = CASES[what]
    assert compared(events, config) == failures
