"""Leaders in part: what they recorded of others, whom they served and how, what they proposed.

test_rules.py has one trace for and one against each rule; here are branches of a rule that those do not run, which mutants
of the judge slipped by (tests/mutation/kernel.py). Each trace is judged twice: nothing hangs on the order of the nodes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import (
    CONFIG,
    COPIED,
    OPENING,
    TWO,
    append,
    bent,
    broken,
    change,
    changed,
    either_way,
    follow,
    judged,
    lead,
    reported,
    reporting_all_but,
    send,
    serve,
    start,
    take,
)
from tests.conformance.judge.test_controller_cases import FETCHED, THREE
from tests.conformance.judge.test_rules import TWO_ROUNDS
from tidegauge.traces.schema import Config, Event

REPAIRED = replace(CONFIG, profile="repaired")
LAG = replace(TWO, lag_rule=True)
TWICE = replace(TWO, extra={"duplicates": True})
EPOCHS_TWICE = replace(TWICE, profile="kip279")
MOVING = replace(CONFIG, extra={"reassigned": True})
FETCHES_UNHEARD = reporting_all_but("HandleFetch")
STARTS = (start(1), start(2))


def expand(follower: int, isr: Sequence[int], **fields: Any) -> Event:
    return reported(1, "ExpandIsr", peer=follower, isr=tuple(isr), **fields)


def shrink(*isr: int, **fields: Any) -> Event:
    return reported(1, "ShrinkIsr", isr=isr, **fields)


def fetch(follower: int = 2, **fields: Any) -> Event:
    """A line of the leader about a fetch, told in part."""
    return reported(1, "HandleFetch", peer=follower, **fields)


def learns(node: int = 1, **fields: Any) -> Event:
    return reported(node, "HandleAlterPartitionResponse", **fields)


# What an elected leader kept of before (finding F2)
ELECTED_AGAIN = change(1, 2, (1, 2), THREE)
FORGOT = (*FETCHED, ELECTED_AGAIN, lead(1, 2, (1, 2), leo=1, hw_before=0, hw=0))
"""What broker 2 fetched counts, where it is kept; this leader has forgotten it."""
HELD_BACK = (
    *(start(node, leo=1, hw=1, epochs=((0, 0),)) for node in THREE),
    change(1, 1, THREE, THREE),
    lead(1, 1, THREE, leo=1, hw_before=1, hw=1),
    follow(2, 1, 1, leo=1, hw=1),
    follow(3, 1, 1, leo=1, hw=1),
    append(1, 1, 1, 1, 1),
    send(2, 1, 1, 1, 0),
    serve(1, 2, 1, 1, 0, res_hw=1, hw=1, leo=2),
    take(2, 1, 1, 1, res_hw=1, hw_before=1, hw=1),
    send(2, 1, 1, 2, 1),
    serve(1, 2, 1, 2, 1, res_hw=1, hw=1, leo=2),
    send(3, 1, 1, 1, 0),
    serve(1, 3, 1, 1, 0, res_hw=1, hw=1, leo=2),
    take(3, 1, 1, 1, res_hw=1, hw_before=1, hw=1),
)
"""Broker 2 has fetched both records, broker 3 has them and has not asked for more."""
KEPT_OF_TWO = (*HELD_BACK, change(1, 2, (1, 2), THREE), lead(1, 2, (1, 2), leo=2, hw_before=1, hw=2))
KEPT_OF_ONE = (
    *HELD_BACK,
    change(1, 2, THREE, THREE),
    lead(1, 2, THREE, leo=2, hw_before=1, hw=1),
    follow(3, 1, 2, leo=2, hw=1),
    send(3, 1, 2, 2, 1),
    serve(1, 3, 2, 2, 1, res_hw=1, hw=2, leo=2),
)
"""Broker 3 fetches in the new leader epoch, broker 2 does not."""
ADDS = (
    *FETCHED,
    follow(3, 1, 1),
    send(3, 1, 1, 0, 0),
    change(1, 2, (1, 3), THREE),
    lead(1, 2, (1, 3), leo=1, hw_before=0, hw=0),
)


def diverges(recorded: int | None, kept: int = 1) -> tuple[Event, ...]:
    """Broker 1 recorded what broker 2 fetched, broker 2 led and wrote, broker 1 leads again: its fetch diverges."""
    fetched = (*COPIED[:-1],) if kept == 1 else (*COPIED[:9],)
    hw = 1 if kept == 1 else 0
    return (
        *fetched,
        change(2, 1, (1, 2)),
        lead(2, 1, (1, 2), leo=1),
        append(2, 1, 1),
        change(1, 2, (1, 2)),
        lead(1, 2, (1, 2), leo=1, hw_before=hw, hw=hw),
        follow(2, 1, 2, leo=2),
        send(2, 1, 2, 2, 1),
        fetch(
            req_epoch=2, req_offset=2, req_last_epoch=1, error=0, div_epoch=0, div_end=1, hw=hw, leo=1, remote_leo=recorded
        ),
    )


ANOTHER_LEADER = (
    *FETCHED,
    change(3, 2, THREE, THREE),
    follow(1, 3, 2, leo=1),
    change(1, 3, (1, 2), THREE),
)
UNNAMED_EPOCH = reported(1, "BecomeLeader", isr=(1, 2), leo=1, hw=0)
IN_THE_MIDDLE = reported(1, "BecomeLeader", leader_epoch=0, isr=(1, 2), leo=1, hw=0)
SERVED_ONCE = (*OPENING, append(1, 0, 0), send(2, 1, 0, 0, -1), serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1))

# Proposals
ALONE = (*STARTS, change(1, 0, (1,)), lead(1, 0, (1,)), follow(2, 1, 0))
ASKS = send(2, 1, 0, 0, -1)
NOTHING = serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0)
SHRUNK = (
    *STARTS,
    change(1, 1, (1, 2)),
    lead(1, 1, (1, 2)),
    append(1, 1, 0),
    shrink(1, leo=1, hw=0),
    change(1, 1, (1,)),
    append(1, 1, 1, 0, 2),
)
"""In a log nothing says that the leader has heard of the ISR it proposed; its high watermark does."""
UNTOLD = (
    *STARTS,
    change(1, 0, (1, 2)),
    lead(1, 0, (1, 2)),
    append(1, 0, 0),
    shrink(1, leo=1, hw=0),
    changed(leader=1, leader_epoch=0),
    append(1, 0, 1, 0, 2),
)
"""The same where the controller's line does not say which ISR it is."""
NEWS = (*STARTS, change(1, 0, (1, 2), partition_epoch=3), lead(1, 0, (1, 2), partition_epoch=3))
OLDER_NEWS = lead(1, 0, (1, 2), partition_epoch=2)

# Processes of a follower
OF_PROCESS_3 = (*ALONE, ASKS, serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0, req_broker_epoch=3), ASKS)
LOADS = fetch(req_epoch=0, req_offset=0, req_last_epoch=-1, error=75)
REFUSED = fetch(req_epoch=0, req_offset=0, req_last_epoch=-1, error=6, req_broker_epoch=2)

REPLAYED = tuple(reported(1, "BecomeLeader", leader_epoch=epoch, isr=(1, 2), leo=0, hw=0) for epoch in (0, 1))
"""A broker that has been started reads metadata of epochs long past."""

# Requests that arrive more than once
ASKED_TWICE = (*ALONE, ASKS, ASKS)
SENT_THREE_TIMES = (*ASKED_TWICE, ASKS, NOTHING, NOTHING)
AT_LOG_START_1 = (
    *(start(node, leo=1, hw=1, log_start=1) for node in (1, 2)),
    change(1, 0, (1, 2)),
    lead(1, 0, (1, 2), leo=1, hw_before=1, hw=1),
    follow(2, 1, 0, leo=1, hw=1),
    send(2, 1, 0, 1, -1),
)
AT_1 = serve(1, 2, 0, 1, -1, res_hw=1, hw=1, leo=1)
ANSWERED_TWICE = (
    *ASKED_TWICE,
    NOTHING,
    NOTHING,
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0, count=0),
    ASKS,
)
"""Two requests with the same words; the same one is handled twice, so the other may still come."""
ROUNDS = (
    *TWO_ROUNDS[:5],
    reported(1, "SendEpochRequest", peer=2, req_epoch=3, req_last_epoch=2),
    reported(2, "HandleEpochRequest", peer=1, req_epoch=3, req_last_epoch=2, error=0, div_epoch=1, div_end=2),
)
LOWER = (
    reported(
        1,
        "HandleEpochResponse",
        peer=2,
        req_epoch=3,
        error=0,
        div_epoch=1,
        div_end=2,
        target=1,
        completed=False,
        leo=1,
        hw=0,
    ),
    reported(1, "SendEpochRequest", peer=2, req_epoch=3, req_last_epoch=0),
)
"""The follower does not know that epoch, and asks about a lower one."""
COPY = reported(2, "HandleEpochRequest", peer=1, req_epoch=3, error=0, div_epoch=1, div_end=2)
COPY_REFUSED = reported(2, "HandleEpochRequest", peer=1, req_epoch=3, error=74)

# Who is a replica
ASSIGNED = (
    *(start(node) for node in THREE),
    change(1, 0, THREE, THREE, replicas=THREE, partition_epoch=0),
    lead(1, 0, THREE, partition_epoch=0),
    follow(2, 1, 0),
    follow(3, 1, 0),
    append(1, 0, 0),
    send(2, 1, 0, 0, -1),
    serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1),
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0),
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=0, hw=0, leo=1),
    send(3, 1, 0, 0, -1),
    serve(1, 3, 0, 0, -1, res_hw=0, hw=0, leo=1),
    change(1, 0, (1, 2), THREE, replicas=(1, 2), partition_epoch=1),
    lead(1, 0, (1, 2), leo=1, hw_before=0, hw=1, partition_epoch=1, epoch_start=0),
)
"""Broker 3 is a replica no more; the other one has fetched the record."""
BACK = (
    change(1, 0, THREE, THREE, replicas=THREE, partition_epoch=2),
    lead(1, 0, THREE, leo=1, hw_before=1, hw=1, partition_epoch=2, epoch_start=0),
)
STRANGER = (
    *(start(node, leo=1) for node in THREE),
    change(1, 0, (1, 3), THREE, replicas=(1, 2)),
    lead(1, 0, (1, 3), leo=1),
    lead(1, 0, (1, 3), leo=1, hw=1),
)
"""Broker 3 is in the ISR, and is no replica."""
SHORT = (
    *STARTS,
    change(1, 0, (1,), replicas=(1, 2)),
    lead(1, 0, (1,)),
    change(1, 0, (1,)),
    append(1, 0, 0, 0, 1),
)

CASES: dict[str, tuple[Sequence[Event], Config, set[str]]] = {
    "a leader that forgot raises nothing": (FORGOT, CONFIG, set()),
    "and nothing lets it without a fetch": ((*FORGOT, append(1, 2, 1, 0, 1)), CONFIG, {"HW-02", "HW-03"}),
    "neither the old nor the new high watermark": (
        (*FETCHED, append(1, 1, 1), ELECTED_AGAIN, lead(1, 2, (1, 2), leo=2, hw_before=0, hw=2)),
        CONFIG,
        {"HW-02", "HW-03"},
    ),
    "what is kept lets the high watermark pass": (KEPT_OF_TWO, CONFIG, set()),
    "what was to be forgotten": (KEPT_OF_TWO, REPAIRED, {"HW-03", "HW-08"}),
    "what was to be forgotten of one, and was fetched by another": (KEPT_OF_ONE, REPAIRED, {"HW-03", "HW-08"}),
    "what may be forgotten of one that is proposed": (
        (
            *ADDS[:-2],
            serve(1, 3, 1, 0, 0, res_hw=0, hw=0, leo=1),
            take(3, 1, 1, 0, res_hw=0, hw_before=0, hw=0),
            *ADDS[-2:],
            follow(3, 1, 2, leo=1),
            expand(2, THREE),
            send(3, 1, 2, 1, 1),
            serve(1, 3, 2, 1, 1, res_hw=0, hw=0, leo=1),
        ),
        CONFIG,
        set(),
    ),
    "a member leaves that was at the log end in another epoch": (
        (*FETCHED, change(1, 2, THREE, THREE), lead(1, 2, THREE, leo=1), shrink(1, 3, leo=1, hw=0)),
        CONFIG,
        set(),
    ),
    "a member leaves that is at the log end": ((*FETCHED, shrink(1, 3, leo=1, hw=0)), CONFIG, {"ISR-02"}),
    "a diverging fetch of one that has fetched nothing since": (diverges(None), replace(TWO, profile="repaired"), set()),
    "what was recorded before": (diverges(1), replace(TWO, profile="repaired"), {"HW-08"}),
    "at offset 0": (diverges(0, 0), replace(TWO, profile="repaired"), {"HW-08"}),
    "what never was": (diverges(2), replace(TWO, profile="repaired"), {"FETCH-07"}),
    "what was recorded before, and is kept": (diverges(1), TWO, set()),
    "and then not": (diverges(None), TWO, set()),
    "and raises the high watermark all the same": (
        (*diverges(None), append(1, 2, 1, 1, 2)),
        TWO,
        {"HW-02", "HW-03"},
    ),
    "what was recorded before in place of what is": (
        (
            *diverges(None, 0),
            serve(1, 2, 2, 1, 0, res_hw=0, hw=1, leo=1),
            fetch(req_epoch=2, req_offset=9, req_last_epoch=0, error=1, hw=1, remote_leo=0),
        ),
        replace(TWO, profile="repaired"),
        {"FETCH-04", "FETCH-05", "FETCH-07"},
    ),
    "what it recorded before it followed another": (
        (*ANOTHER_LEADER, lead(1, 3, (1, 2), leo=1, hw_before=0, hw=1)),
        CONFIG,
        {"HW-02", "HW-03"},
    ),
    "a member of which nothing was recorded since": (
        (*ANOTHER_LEADER, lead(1, 3, (1, 2), leo=1), expand(3, THREE, remote_leo=None)),
        CONFIG,
        {"ISR-01"},
    ),
    "an epoch that nobody names, and then one seen in the middle": (
        (*SERVED_ONCE, UNNAMED_EPOCH, IN_THE_MIDDLE, append(1, 0, 1, 0, 1)),
        TWO,
        set(),
    ),
    "nothing is known to be kept from before it": (
        (
            *FORGOT[:-1],
            lead(1, 2, (1, 3), leo=1, hw_before=0, hw=0),
            bent((UNNAMED_EPOCH,), 0, isr=(1, 3))[0],
            bent((IN_THE_MIDDLE,), 0, isr=(1, 3), leader_epoch=2)[0],
            fetch(req_epoch=2, req_offset=0, req_last_epoch=-1, error=0, rec_base=0, rec_end=1, rec_epoch=1, remote_leo=0),
            expand(2, THREE, remote_leo=1),
        ),
        REPAIRED,
        {"CTRL-03", "FETCH-04", "ISR-01"},
    ),
    "a fetch of which little is told, and then less": (
        (
            start(1),
            change(1, 0, (1, 2)),
            lead(1, 0, (1, 2)),
            append(1, 0, 0),
            fetch(error=0, rec_base=0, rec_end=0),
            fetch(),
            append(1, 0, 1, 0, 1),
        ),
        TWO,
        set(),
    ),
    "what was recorded in another epoch, told again": (
        (
            *FETCHED,
            change(1, 2, THREE, THREE),
            lead(1, 2, THREE, leo=1),
            fetch(remote_leo=1),
            learns(isr=(1, 2), error=0, hw_before=0, hw=1),
        ),
        CONFIG,
        {"CTRL-03", "FETCH-04"},
    ),
    "what was recorded in this one": (
        (*FETCHED, fetch(remote_leo=1), learns(isr=(1, 2), error=0, hw_before=0, hw=1)),
        CONFIG,
        {"CTRL-03", "FETCH-04"},
    ),
    "fetches that nobody tells, and a high watermark that passed": (
        (
            *OPENING,
            append(1, 0, 0),
            change(1, 1, (1, 2)),
            lead(1, 1, (1, 2), leo=1, hw_before=0, hw=1),
        ),
        replace(TWO, profile="repaired", extra=FETCHES_UNHEARD),
        set(),
    ),
    "who follows proposes": (
        (*OPENING, reported(2, "ExpandIsr", peer=1, isr=(1, 2))),
        replace(TWO, extra=FETCHES_UNHEARD),
        {"ISR-01", "ISR-03"},
    ),
    "an ISR that is registered, and a proposal behind it": ((*SHRUNK, expand(2, (1, 2), remote_leo=2)), LAG, set()),
    "one of which the controller's line does not say the ISR": (UNTOLD, LAG, set()),
    "a registered ISR where nothing is recorded": (
        (lead(1, 0, (1, 2), leo=5, hw_before=3, hw=3, epoch_start=2), change(1, 0, (1,)), append(1, 0, 5, 3, 6)),
        LAG,
        set(),
    ),
    "a committed ISR without members": (
        (*OPENING, learns(isr=(), error=0, hw_before=0, hw=0), append(1, 0, 0, 0, 1)),
        TWO,
        {"CTRL-03", "HW-03", "HW-09"},
    ),
    "a committed ISR of null": ((*OPENING, learns(isr=None, error=0, hw_before=0, hw=0), append(1, 0, 0, 0, 1)), TWO, set()),
    "a response nobody knows": ((*NEWS, learns(hw_before=0, hw=0), OLDER_NEWS), TWO, set()),
    "older metadata": ((*NEWS, OLDER_NEWS), TWO, {"EPOCH-06"}),
    "a proposal, perhaps in flight": ((*NEWS, shrink(1, leo=0, hw=0), learns(hw=0), shrink(1, leo=0, hw=0)), TWO, set()),
    "a proposal that was committed": (
        (*OPENING, append(1, 0, 0), shrink(1, leo=1, hw=0), learns(isr=(1,), error=0, hw_before=0, hw=1), shrink(1)),
        TWO,
        {"CTRL-03", "ISR-02"},
    ),
    "a proposal that was given up": (
        (*OPENING, append(1, 0, 0), shrink(1), learns(error=55, hw_before=0, hw=0), shrink(1)),
        TWO,
        set(),
    ),
    "metadata of an unknown ISR, a proposal perhaps in flight": (
        (*NEWS, append(1, 0, 0), learns(hw=0), reported(1, "BecomeLeader", leader_epoch=0, leo=1, hw=0), shrink(1)),
        TWO,
        set(),
    ),
    "older fetches may arrive": ((*SENT_THREE_TIMES, expand(2, (1, 2), remote_leo=5)), TWO, set()),
    "none may": ((*ALONE, ASKS, NOTHING, expand(2, (1, 2), remote_leo=5)), TWO, {"ISR-01"}),
    "a copy may": ((*ALONE, ASKS, NOTHING, expand(2, (1, 2), remote_leo=5)), TWICE, set()),
    "a copy of two may": ((*ANSWERED_TWICE, expand(2, (1, 2), remote_leo=7)), TWICE, set()),
    "behind a request about an epoch": (
        (
            *ALONE,
            ASKS,
            NOTHING,
            take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0, count=0),
            reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=-1),
            expand(2, (1, 2), remote_leo=5),
        ),
        TWO,
        set(),
    ),
    "one of two requests is handled, nobody says which": (
        (*ASKED_TWICE, fetch(error=0, rec_base=0, rec_end=0), NOTHING, NOTHING),
        TWO,
        set(),
    ),
    "a request to nobody, and then an older one": (
        (*ASKED_TWICE, reported(2, "SendFetch"), send(2, 1, 0, 1, 0), NOTHING),
        TWO,
        set(),
    ),
    "a proposal of which nothing came, in a log": (
        (*ALONE, ASKS, NOTHING, expand(2, (1, 2), remote_leo=0), append(1, 0, 0, 0, 1)),
        LAG,
        set(),
    ),
    "a proposal, and an ISR that nobody says": (
        (
            *STARTS,
            change(1, 0, (1,), partition_epoch=3),
            lead(1, 0, (1,), partition_epoch=3),
            follow(2, 1, 0),
            ASKS,
            NOTHING,
            expand(2, (1, 2), remote_leo=0),
            reported(1, "BecomeLeader", leader_epoch=0, partition_epoch=3, epoch_start=0, leo=0, hw=0),
            append(1, 0, 0, 0, 1),
        ),
        LAG,
        set(),
    ),
    "what never was, and a high watermark that does not count it": (
        (*diverges(None), *bent(diverges(2)[-1:], 0), append(1, 2, 1, 1, 1)),
        TWO,
        {"FETCH-04", "FETCH-07", "HW-03"},
    ),
    "three of three": ((*ASKED_TWICE, ASKS, NOTHING, NOTHING, NOTHING), TWO, set()),
    "a fetch that nobody sent, behind a response with log start 1": (
        (*AT_LOG_START_1, AT_1, AT_1),
        TWO,
        {"FETCH-04"},
    ),
    "three of two": ((*ASKED_TWICE, NOTHING, NOTHING, NOTHING), TWO, {"FETCH-04"}),
    "a copy of a request about an epoch": ((*ROUNDS, COPY, *LOWER), EPOCHS_TWICE, set()),
    "a copy that is refused": ((*ROUNDS, COPY_REFUSED, *LOWER), EPOCHS_TWICE, {"FENCE-01"}),
    "an older process than the leader has heard of": (
        (*OF_PROCESS_3, serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0, req_broker_epoch=1), ASKS, REFUSED),
        TWO,
        set(),
    ),
    "an older process than one of which nobody says which": (
        (*OF_PROCESS_3, NOTHING, ASKS, REFUSED),
        TWO,
        {"FENCE-01"},
    ),
    "a fetch that was refused, and an end of an epoch that another error kept": (
        (
            *OPENING,
            ASKS,
            fetch(req_epoch=0, req_offset=0, req_last_epoch=-1, error=6),
            reported(2, "HandleEpochResponse", peer=1, req_epoch=0, error=74),
        ),
        replace(TWO, profile="kip279"),
        {"FENCE-01", "FETCH-10"},
    ),
    "a fetch that comes while the log is loaded": (
        (start(2), change(1, 0, (1, 2)), follow(2, 1, 0), ASKS, LOADS, start(1), lead(1, 0, (1, 2))),
        TWO,
        set(),
    ),
    "a fetch that comes while the broker is down": (
        (*OPENING, ASKS, reported(1, "Stop"), LOADS),
        TWO,
        {"LIFE-01"},
    ),
    "an offset of null behind one that was recorded": (
        (*SERVED_ONCE, fetch(req_offset=None, remote_leo=None)),
        TWO,
        {"FETCH-04"},
    ),
    "a high watermark of null, and a member that has fetched nothing": (
        (start(1, hw=None), start(2), change(1, 0, (1,)), lead(1, 0, (1,), hw=None, hw_before=None), expand(2, (1, 2))),
        replace(TWO, profile="hw-only"),
        {"HW-01", "HW-03"},
    ),
    "a member leaves that was at the log end in old metadata": (
        (
            *STARTS,
            change(1, 2, (1, 2)),
            *REPLAYED[:1],
            NOTHING,
            *REPLAYED[1:],
            shrink(1, leo=0, hw=0),
        ),
        replace(TWO, profile="repaired"),
        {"FETCH-04", "ISR-02"},
    ),
    "who is no replica has fetched nothing, as far as one knows": (
        STRANGER,
        replace(MOVING, extra={**MOVING.extra, **FETCHES_UNHEARD}),
        {"CTRL-08"},
    ),
    "an offset of null": ((*OPENING, fetch(req_offset=None, remote_leo=None)), TWO, {"FETCH-04"}),
    "a high watermark by those who are assigned": (ASSIGNED, MOVING, set()),
    "who is assigned again has fetched nothing": (
        (*ASSIGNED, *BACK, append(1, 0, 1, 1, 2)),
        MOVING,
        {"HW-02", "HW-03", "ISR-04"},
    ),
    "too few, by the replicas the leader knows": (
        SHORT,
        replace(TWO, lag_rule=True, min_isr=2, extra={"reassigned": True}),
        {"HW-09"},
    ),
    "a follower in no epoch learns of an ISR and leads": (
        (
            *STARTS,
            reported(2, "BecomeFollower", leader=1, leo=0, hw=0),
            learns(2, isr=(1, 2), error=0, hw_before=0, hw=0),
            append(2, 0, 0, 0, 1),
        ),
        TWO,
        {"APPEND-01", "HW-02", "HW-03"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_leader_told_in_part(case: str) -> None:
    """The rules that fail."""
    events, config, rules = CASES[case]
    for counted in either_way(config):
        assert broken(events, counted) == rules


NULLS: dict[str, tuple[dict[str, Any], str, int]] = {
    "nothing diverges, by the epoch": ({"error": 0, "div_epoch": None}, "FETCH-05", 1),
    "nothing diverges, by the end": ({"error": 0, "div_end": None}, "FETCH-05", 1),
    "nothing is told but that": ({"div_epoch": None}, "FETCH-05", 0),
    "or that": ({"div_end": None}, "FETCH-05", 0),
}


@pytest.mark.parametrize("case", NULLS)
def test_null_where_logs_diverge_is_a_read_of_a_fetch_that_was_served(case: str) -> None:
    """And nothing where nobody says that it was: a refusal has it too."""
    said, rule, held = NULLS[case]
    events = (*OPENING, append(1, 0, 0), ASKS, fetch(req_epoch=0, req_offset=0, req_last_epoch=-1, **said))
    for config in either_way(TWO):
        assert broken(events, config) == set()
        assert judged(events, config).tallies[rule].held == held


def taken(begins: int | None) -> Event:
    nothing = {"rec_base": 0, "rec_end": 0, "res_hw": 0}
    return reported(2, "HandleFetchResponse", peer=1, req_epoch=0, req_offset=0, error=0, res_log_start=begins, **nothing)


def test_the_log_start_of_a_response_is_what_the_follower_takes_over() -> None:
    """Also where nobody knows where the leader's log begins; null is none, and then it is the leader's."""
    unknown = (*bent(OPENING, 0, log_start=...), ASKS)
    for begins in (0, 1):
        said = serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0, res_log_start=begins)
        assert "FETCH-10" not in broken((*unknown, said, taken(begins)))
        assert "FETCH-10" in broken((*unknown, said, taken(1 - begins)))
    null = serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0, res_log_start=None)
    assert "FETCH-10" not in broken((*OPENING, ASKS, null, taken(0)))
    assert "FETCH-10" in broken((*OPENING, ASKS, null, taken(1)))


def test_so_is_that_of_a_diverging_response() -> None:
    """Before KAFKA-14704 a follower takes it over before it truncates."""
    asked = {"req_epoch": 0, "req_offset": 0, "req_last_epoch": -1}
    unknown = (*bent(OPENING, 0, log_start=...), ASKS)

    def said(begins: int | None) -> Event:
        return fetch(**asked, error=0, div_epoch=0, div_end=0, res_log_start=begins)

    def took(begins: int) -> Event:
        return reported(2, "HandleFetchResponse", peer=1, req_epoch=0, req_offset=0, error=0, res_log_start=begins)

    for begins in (0, 1):
        assert "FETCH-10" not in broken((*unknown, said(begins), took(begins)))
        assert "FETCH-10" in broken((*unknown, said(begins), took(1 - begins)))
    assert "FETCH-10" not in broken((*OPENING, ASKS, said(None), took(0)))
    assert "FETCH-10" in broken((*OPENING, ASKS, said(None), took(1)))
