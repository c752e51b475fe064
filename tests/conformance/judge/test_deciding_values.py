"""What the judge says where a second value decides: of the controller, of a node told in part, of a request overtaken."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.conformance.hand import (
    CONFIG,
    COPIED,
    FORKED,
    OPENING,
    TWO,
    ack,
    append,
    bent,
    change,
    changed,
    compared,
    follow,
    lead,
    registered,
    reported,
    send,
    serve,
    snapshot,
    start,
    take,
)
from tests.conformance.judge.test_values_beside import ALL, KIP320, UNTOLD_ISR
from tidegauge.traces.schema import Config, Event

TURNED = replace(TWO, nodes=(2, 1))
ELR = replace(TWO, profile="elr")
ASSIGNED = replace(CONFIG, extra={"reassigned": True})
BATCHES_UNFILTERED = replace(TWO, profile="repaired+batch_epoch_filter=off")
RESPONSES_UNCHECKED = replace(TWO, profile="repaired+response_epoch_checked=off")

TWO_NEEDED = (start(1), start(2), reported(100, "SetMinIsr", min_isr=2), change(1, 0, (1, 2)))
FENCED = (start(1), start(2), registered(2, 5, clean=True), reported(100, "FenceBroker", peer=2))
ELECTED = changed(leader=2, leader_epoch=2, isr=(2,))
"""An election of which nobody tells whether it was clean, or who was live."""
OLD_RESPONSE = (
    *OPENING,
    send(2, 1, 0, 0, -1),
    follow(2, 1, 1),
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0, count=0),
)
"""A follower takes over the response to a request of the leader epoch before."""
NEWER_RECORDS = (
    *OPENING,
    append(1, 0, 0),
    send(2, 1, 0, 0, -1),
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0, rec_epoch=3),
)
OVERTAKEN = (
    *OPENING,
    append(1, 0, 0),
    send(2, 1, 0, 0, -1),
    reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=-1),
    serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1),
)
"""A leader handles a fetch that an epoch request has overtaken."""


def reigns(*last: Event) -> Sequence[Event]:
    """Brokers lead in turn, each with all three records; what the first of them acknowledged is handed on."""
    logs = [start(node, leo=3, epochs=((0, 0),)) for node in (1, 2)]
    terms = [
        event
        for epoch, leader in ((5, 1), (6, 2), (7, 1), (8, 2), (9, 1), (10, 2))
        for event in (
            change(leader, epoch, (1, 2)),
            lead(leader, epoch, (1, 2), leo=3),
            follow(3 - leader, leader, epoch, leo=3),
            *([ack(end=3)] if epoch == 5 else []),
        )
    ]
    return (*logs, *terms, *last)


Case = tuple[Sequence[Event], Config, set[tuple[str, str, int | None, int]]]

CASES: dict[str, Case] = {
    "an epoch response of another than the leader": (
        (
            *(start(node) for node in ALL),
            change(1, 0, ALL, ALL),
            follow(2, 1, 0),
            reported(2, "HandleEpochResponse", peer=3, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=0),
        ),
        CONFIG,
        {("FETCH-09", "peer", 0, 2), ("FETCH-10", "response", 0, 8)},
    ),
    "a truncation of a log whose end is not told": (
        (
            reported(2, "Start", clean=True, hw=0, log_start=0, epochs=()),
            reported(2, "BecomeFollower", leader=1, leader_epoch=0),
            reported(
                2,
                "HandleDivergingResponse",
                peer=1,
                req_epoch=0,
                req_offset=1,
                div_epoch=0,
                div_end=0,
                target=5,
                completed=True,
            ),
        ),
        TWO,
        set(),
    ),
    "a leader that truncates, of a high watermark that is not told": (
        (
            reported(1, "Start", clean=True, leo=2, log_start=0, epochs=((0, 0),)),
            start(2),
            changed(leader=1, leader_epoch=0),
            reported(1, "BecomeLeader", leader_epoch=0, epoch_start=2, leo=2),
            reported(1, "TruncateToHighWatermark", target=0, leo=0),
        ),
        KIP320,
        {("TRUNC-05", "role", 2, 1)},
    ),
    "a broker that truncates, of a role that is not told": (
        (
            snapshot(2, leo=2, hw=1, log_start=0, epochs=((0, 0),)),
            reported(2, "TruncateToHighWatermark", target=1, leo=1, hw=1),
        ),
        KIP320,
        set(),
    ),
    "a refusal of a request whose epoch the follower does not tell": (
        (
            *COPIED,
            follow(2, 1, 1, leo=1),
            reported(2, "SendEpochRequest", peer=1, req_epoch=1, req_last_epoch=0),
            reported(1, "HandleEpochRequest", peer=2, req_epoch=1, req_last_epoch=0, error=75),
            follow(2, 1, 2, leo=1),
            reported(2, "HandleEpochResponse", peer=1),
        ),
        KIP320,
        {("CTRL-03", "leader_epoch", 0, 1), ("FETCH-09", "req_epoch", 2, 1)},
    ),
    "an epoch request that is handled after the fetch that it overtook": (
        (
            *OVERTAKEN,
            reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=-1, error=0, div_epoch=-1, div_end=-1),
        ),
        TWO,
        set(),
    ),
    "the end of an epoch, from a leader that died over the request": (
        (
            *COPIED,
            reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0),
            reported(1, "Crash"),
            reported(2, "HandleEpochResponse", peer=1, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=1),
        ),
        TWO,
        set(),
    ),
    "a fetch from the controller's node": ((*OPENING, send(2, 100, 0, 0, -1)), TWO, {("FETCH-03", "peer", None, 2)}),
    "a fetch by the controller's node": (
        (*OPENING, serve(1, 100, 0, 0, -1, res_hw=0, hw=0, leo=0)),
        TWO,
        {("FETCH-04", "peer", None, 2)},
    ),
    "a member's snapshot, where who is eligible is not known": (
        (
            *COPIED,
            take(2, 1, 0, 1, res_hw=0, hw_before=0, hw=0, count=0),
            ack(),
            reported(100, "SetMinIsr"),
            change(1, 0, (1, 2)),
            snapshot(2, leo=0, epochs=()),
        ),
        CONFIG,
        {("DATA-03", "leo", 1, 0), ("FETCH-10", "response", 0, 3), ("LOG-02", "leo", 1, 0)},
    ),
    "what leaders of long ago had acknowledged is not on a member": (
        reigns(snapshot(1, leo=1, epochs=((0, 0),))),
        TWO,
        {("ACK-01", "hw", 3, 0), ("DATA-03", "leo", 3, 1), ("LOG-02", "leo", 3, 1)},
    ),
    "a leader that proposed itself alone, and read the same metadata": (
        (
            *(start(node) for node in ALL),
            change(1, 0, ALL, ALL, partition_epoch=0),
            lead(1, 0, ALL, partition_epoch=0),
            follow(2, 1, 0),
            follow(3, 1, 0),
            reported(1, "ShrinkIsr", isr=(1,)),
            lead(1, 0, (2, 3), partition_epoch=0),
            reported(1, "ShrinkIsr", isr=(1, 2)),
        ),
        CONFIG,
        {("CTRL-03", "isr", 7, 6), ("ISR-02", "isr", 6, 3)},
    ),
    "a record from before an unclean election is acknowledged": (
        (
            *bent(bent(FORKED, 7, clean=False), 11, clean=False),
            serve(2, 1, 1, 0, -1, res_hw=1, hw=1, leo=1),
            take(1, 2, 1, 0, res_hw=1, hw_before=0, hw=1),
            ack(rec_epoch=0),
        ),
        TURNED,
        {("ACK-02", "role", 1, 2)},
    ),
    "who is eligible is not known, and the ISR shrinks": (
        (
            start(1),
            start(2),
            reported(100, "SetMinIsr"),
            change(1, 0, (1, 2)),
            reported(100, "SetMinIsr", min_isr=2),
            change(1, 0, (1,)),
            change(None, 1, ()),
            ELECTED,
        ),
        ELR,
        set(),
    ),
    "an ISR of null, then one of nobody": (
        (*TWO_NEEDED, UNTOLD_ISR, change(1, 0, (1,)), change(None, 1, ()), ELECTED),
        ELR,
        {("ISR-04", "isr", 0, -1)},
    ),
    "who lost its log is elected, after an ISR that is not told": (
        (
            *TWO_NEEDED[:-1],
            change(1, 0, (1, 2), elr=()),
            change(1, 0, (1,), elr=(2,)),
            registered(2, 7, clean=False),
            changed(leader=1, leader_epoch=0, elr=(2,)),
            change(None, 1, (), elr=(2,)),
            changed(leader=2, leader_epoch=2, isr=(2,), elr=()),
        ),
        ELR,
        {("CTRL-07", "elr", 0, 2)},
    ),
    "a fenced broker registers as the same, and is elected": (
        (*FENCED, registered(2, 5, clean=True), changed(leader=2, leader_epoch=0, isr=(2,))),
        TWO,
        {("CTRL-01", "live", 3, 1)},
    ),
    "a fenced broker registers anew, and is elected": (
        (
            *bent(FENCED, 2, broker_epoch=0),
            registered(2, 1, clean=True),
            changed(leader=2, leader_epoch=0, isr=(2,)),
        ),
        TWO,
        set(),
    ),
    "the same change twice, of an ISR that is not told": (
        (start(1), *(changed(leader=1, leader_epoch=0, partition_epoch=5) for _ in range(2))),
        TWO,
        set(),
    ),
    "an assignment that two changes agree on": (
        (
            *(start(node) for node in ALL),
            *(change(1, 0, (1, 2), (1, 2), replicas=(1, 2), partition_epoch=epoch) for epoch in (0, 1)),
            lead(1, 0, (1, 2)),
            follow(3, 1, 0),
            send(3, 1, 0, 0, -1),
            serve(1, 3, 0, 0, -1, res_hw=0, hw=0, leo=0),
        ),
        ASSIGNED,
        {("FENCE-01", "error", 75, 0)},
    ),
    "responses are checked, batches are not": (
        OLD_RESPONSE,
        BATCHES_UNFILTERED,
        {("CTRL-03", "leader_epoch", 0, 1), ("FETCH-09", "req_epoch", 1, 0), ("FETCH-10", "response", 1, 3)},
    ),
    "responses are not checked, batches are": (
        OLD_RESPONSE,
        RESPONSES_UNCHECKED,
        {("CTRL-03", "leader_epoch", 0, 1), ("FETCH-10", "response", 1, 3)},
    ),
    "batches are not filtered, responses are": (NEWER_RECORDS, BATCHES_UNFILTERED, {("FETCH-10", "response", 1, 3)}),
    "batches are filtered, responses are not": (
        NEWER_RECORDS,
        RESPONSES_UNCHECKED,
        {("APPEND-02", "rec_epoch", 0, 3), ("FETCH-10", "response", 1, 3)},
    ),
    "a failure is kept whatever its value": ((start(1), snapshot(1, leo=64)), TWO, {("LOG-02", "leo", 0, 64)}),
}


@pytest.mark.parametrize("what", CASES)
def test_the_second_value_decides(what: str) -> None:
    events, config, failures = CASES[what]
    assert compared(events, config) == failures
