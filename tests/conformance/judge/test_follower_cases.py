"""Followers, and brokers that start and stop, told in part.

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
    either_way,
    follow,
    lead,
    reported,
    reporting_all_but,
    send,
    snapshot,
    start,
    take,
    takes,
)
from tests.conformance.judge.test_controller_cases import UNLIKE
from tests.conformance.judge.test_leader_cases import LOWER, ROUNDS
from tests.conformance.judge.test_rules import ASKED, TWO_ROUNDS
from tidegauge.traces.schema import Config, Event

KIP279 = replace(TWO, profile="kip279")
EPOCH_REQUESTS_UNHEARD = reporting_all_but("SendEpochRequest")

# Requests and responses
NO_EPOCHS = (
    start(1, leo=3),
    start(2, leo=3, hw=1),
    change(1, 1, (1,)),
    lead(1, 1, (1,), leo=3, hw=3),
    follow(2, 1, 1, leo=3, hw=1),
)
"""Broker 2 has three records and no epochs: it starts at its high watermark (ReplicaManager#initialFetchOffset)."""
NO_HW = bent(bent(NO_EPOCHS, 1, hw=...), 4, hw=...)
DIVERGED = (
    start(1, leo=1, hw=1, epochs=((0, 0),)),
    start(2, leo=2, hw=1, epochs=((0, 0), (1, 1))),
    change(1, 2, (1,)),
    lead(1, 2, (1,), leo=1, hw_before=1, hw=1),
    append(1, 2, 1, 1, 2),
    follow(2, 1, 2, leo=2, hw=1),
    send(2, 1, 2, 2, 1),
    reported(
        1, "HandleFetch", peer=2, req_epoch=2, req_offset=2, req_last_epoch=1, error=0, div_epoch=0, div_end=1, hw=2, leo=2
    ),
)
"""A diverging response is on its way."""
TRUNCATES = reported(
    2,
    "HandleDivergingResponse",
    peer=1,
    req_epoch=2,
    req_offset=2,
    div_epoch=0,
    div_end=1,
    target=1,
    completed=True,
    leo_before=2,
    hw_before=1,
    leo=1,
    hw=1,
)
UNKNOWN_HW = bent(bent(DIVERGED, 1, hw=...), 5, hw=...)
OF_LOG_START_1 = bent(DIVERGED, -1, res_log_start=1)
AT_2 = {"req_epoch": 2, "req_offset": 2, "error": 0}
LAST_ROUND = TWO_ROUNDS[:-1]
"""A truncation that needs another round."""
NO_NEW_RECORDS = takes(1, 2, req_epoch=3, req_offset=1, error=0, res_hw=0, rec_base=1, rec_end=1, leo=1, hw=0)
LEADER_UNHEARD = (start(2), follow(2, 1, 0), send(2, 1, 0, 0, -1))
EPOCHS_REPORTED = takes(req_epoch=0, req_offset=0, error=0, epochs=((0, 0),), leo=1, log_start=0)
LEO_UNHEARD = (
    reported(2, "Start", clean=True, hw=0, log_start=0, epochs=((0, 0),)),
    reported(2, "BecomeFollower", leader=1, leader_epoch=0),
    takes(req_epoch=0, error=0, log_start=0),
)
ENTRIES_REPORTED = (
    start(2),
    follow(2, 1, 0),
    reported(2, "EpochCacheEntry", leader_epoch=0, epoch_start=0),
    takes(req_epoch=0, req_offset=0, error=0, rec_base=0, rec_end=2, leo=2, log_start=0),
)
STARTS_AT_1 = (start(2, leo=1, hw=1, log_start=1), follow(2, 1, 0, leo=1, hw=1))

# Truncations
STARTS_BEHIND = (start(2, leo=3, hw=2, log_start=1, epochs=((0, 1),)), follow(2, 1, 1, leo=3, hw=2))
UNTOLD = reported(2, "HandleDivergingResponse", peer=1, req_epoch=1, req_offset=3)
RESET = (
    start(2, leo=3, hw=2, log_start=2),
    follow(2, 1, 1, leo=3, hw=2),
    reported(
        2,
        "HandleOutOfRange",
        peer=1,
        req_epoch=1,
        req_offset=3,
        leader_start=0,
        leader_end=1,
        target=1,
        leo=1,
        hw=1,
    ),
)
"""The leader ends below where the follower's log begins: all of it goes."""
ABOUT_EPOCHS = (
    start(2, leo=1, epochs=((0, 0),)),
    follow(2, 1, 1, leo=1),
    reported(2, "SendEpochRequest", peer=1, req_epoch=1, req_last_epoch=0),
)


def end(**fields: Any) -> Event:
    return reported(2, "HandleEpochResponse", peer=1, **fields)


FENCED = (
    *COPIED,
    change(1, 1, (1, 2)),
    lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1),
    reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0),
    reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=74, div_epoch=None, div_end=None),
)

# Roles
RESTARTED = (
    start(1, leo=1, hw=1),
    change(1, 1, (1,)),
    reported(1, "BecomeLeader", leader_epoch=0, isr=(1,), leo=1, hw=1),
)
"""Broker 1 reads old metadata again."""
NO_EPOCH_NAMED = reported(1, "BecomeFollower", leader=2, leo=2, hw=0)
MOVED_HW = (*COPIED[:-1], append(1, 0, 1, 1, 1), take(2, 1, 0, 1, res_hw=1, hw_before=0, hw=1, count=0))

# Lives
DOWN = (*COPIED, reported(1, "Crash"))
EMPTIED = (*DOWN, reported(1, "LoseDisk"), start(1))
THREE_STARTS = (*COPIED, reported(1, "ProduceAck", acks=-1, rec_end=1, error=0))
STOPS_TWICE = (
    start(3),
    *THREE_STARTS,
    change(2, 1, (1, 2), (1, 2, 3)),
    lead(2, 1, (1, 2), leo=1),
    reported(3, "Stop"),
)
FIRST_LINES = (
    change(1, 2, (1, 2)),
    reported(1, "BecomeLeader", leader_epoch=2, isr=(1, 2), leo=1, hw=1),
    reported(2, "BecomeFollower", leader=1, leader_epoch=2, leo=1, hw=1),
    snapshot(1, log_start=0, epochs=((0, 0),)),
    snapshot(2, log_start=0, epochs=((1, 0),)),
)

CASES: dict[str, tuple[Sequence[Event], Config, set[str]]] = {
    "without epochs a fetch starts at the high watermark": ((*NO_EPOCHS, send(2, 1, 1, 1, -1)), TWO, set()),
    "and nowhere else": ((*NO_EPOCHS, send(2, 1, 1, 2, -1)), TWO, {"FETCH-01"}),
    "which nobody knows": ((*NO_HW, send(2, 1, 1, 1, -1)), TWO, set()),
    "a diverging response moves no high watermark": ((*DIVERGED, takes(**AT_2, hw=1), TRUNCATES), TWO, set()),
    "nor an unknown one": ((*UNKNOWN_HW, takes(**AT_2, hw=1), TRUNCATES), TWO, set()),
    "nobody says whether it did": ((*DIVERGED, takes(**AT_2), TRUNCATES), TWO, set()),
    "it did": ((*DIVERGED, takes(**AT_2, res_hw=2, hw=2), *bent((TRUNCATES,), 0, hw_before=2)), TWO, {"HW-06"}),
    "it has no records": ((*DIVERGED, takes(**AT_2, hw=1, rec_base=None, rec_end=2, leo=2), TRUNCATES), TWO, set()),
    "another log start is taken over than it has": (
        (*OF_LOG_START_1, takes(**AT_2, hw=1, res_log_start=0, log_start=0), TRUNCATES),
        TWO,
        {"FETCH-08", "FETCH-10"},
    ),
    "records where another round was needed, twice": (
        (*LAST_ROUND, NO_NEW_RECORDS, NO_NEW_RECORDS),
        TWO,
        {"FETCH-10", "TRUNC-02"},
    ),
    "epochs of records that nobody counts": ((*LEADER_UNHEARD, EPOCHS_REPORTED, send(2, 1, 0, 1, 0)), TWO, set()),
    "and another one in the next fetch": ((*LEADER_UNHEARD, EPOCHS_REPORTED, send(2, 1, 0, 1, 5)), TWO, {"FETCH-02"}),
    "records behind an unknown log end": ((*LEO_UNHEARD, send(2, 1, 0, 2, 1)), TWO, set()),
    "the entries of the cache are told": ((*ENTRIES_REPORTED, send(2, 1, 0, 2, 0)), TWO, set()),
    "and nothing else changes them": ((*ENTRIES_REPORTED, send(2, 1, 0, 2, 7)), TWO, {"FETCH-02"}),
    "a high watermark below the log start, and no log end": (
        (*STARTS_AT_1, takes(req_epoch=0, req_offset=1, error=0, res_hw=0, hw=1)),
        TWO,
        set(),
    ),
    "a truncation to nobody knows where": ((*STARTS_BEHIND, UNTOLD, snapshot(2, log_start=0)), TWO, set()),
    "none": ((*STARTS_BEHIND, snapshot(2, log_start=0)), TWO, {"LOG-02"}),
    "a reset below the log start": ((*RESET, snapshot(2, log_start=1)), TWO, set()),
    "which is then another": ((*RESET, snapshot(2, log_start=2)), TWO, {"LOG-02"}),
    "a truncation that is called complete": (bent(LAST_ROUND, -1, completed=True), TWO, {"TRUNC-01"}),
    "an epoch that ends where the log begins": (
        (*ABOUT_EPOCHS, end(req_epoch=1, div_epoch=0, div_end=0, target=0, leo=0)),
        KIP279,
        set(),
    ),
    "and another target": (
        (*ABOUT_EPOCHS, end(req_epoch=1, div_epoch=0, div_end=0, target=1, leo=1)),
        KIP279,
        {"TRUNC-01"},
    ),
    "no end of an epoch, perhaps a refusal": (
        (*ABOUT_EPOCHS, end(req_epoch=1, div_epoch=None, div_end=None)),
        KIP279,
        set(),
    ),
    "a refusal": ((*FENCED, end(req_epoch=0)), TWO, set()),
    "a refusal with nothing in it": ((*FENCED, end(req_epoch=0, div_epoch=None, div_end=None)), TWO, set()),
    "a response about an epoch": ((*ASKED, end(req_epoch=0)), TWO, set()),
    "one that names no end": ((*ASKED, end(req_epoch=0, div_end=None)), TWO, {"FETCH-10"}),
    "an end of null, perhaps a refusal": (
        (*ASKED[:-1], reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, div_end=None)),
        TWO,
        set(),
    ),
    "a request about an epoch of which nobody saw that it left": (
        (
            *LAST_ROUND,
            reported(2, "HandleEpochRequest", peer=1, req_epoch=3, req_last_epoch=5, error=0),
            send(1, 2, 3, 1, 3),
        ),
        replace(TWO, extra={"duplicates": True, **EPOCH_REQUESTS_UNHEARD}),
        {"FETCH-02"},
    ),
    "rounds of which the requests are not told": (
        (*ROUNDS[:5], ROUNDS[-1], LOWER[0], send(1, 2, 3, 1, 0)),
        replace(KIP279, extra=EPOCH_REQUESTS_UNHEARD),
        set(),
    ),
    "metadata of the same epoch ends no round": ((*LAST_ROUND, follow(1, 2, 3, leo=1), TWO_ROUNDS[-1]), TWO, set()),
    "metadata of no epoch may": (
        (
            *TWO_ROUNDS[:4],
            NO_EPOCH_NAMED,
            *TWO_ROUNDS[5:-1],
            *bent((NO_EPOCH_NAMED,), 0, leo=1),
            TWO_ROUNDS[-1],
        ),
        TWO,
        set(),
    ),
    "a leader that fetches": (
        (*LAST_ROUND, change(1, 4, (1,)), lead(1, 4, (1,), leo=1, hw=1), send(1, 2, 4, 1, 4)),
        TWO,
        {"CTRL-01", "DATA-01", "FETCH-03"},
    ),
    "a leader that truncates": (
        (
            *MOVED_HW,
            change(2, 1, (1, 2)),
            lead(2, 1, (1, 2), leo=1, hw_before=1, hw=1),
            reported(
                2,
                "HandleDivergingResponse",
                peer=1,
                req_epoch=0,
                req_offset=1,
                div_epoch=0,
                div_end=1,
                target=1,
                completed=True,
                leo=1,
                hw=1,
            ),
        ),
        TWO,
        {"FETCH-09", "FETCH-10"},
    ),
    "a high watermark that moved before the request": (
        (
            *MOVED_HW,
            send(2, 1, 0, 1, 0),
            reported(2, "HandleDivergingResponse", peer=1, req_epoch=0, req_offset=1, leo=1, hw=1),
        ),
        TWO,
        {"FETCH-10"},
    ),
    "a request to the controller": (
        (*OPENING, reported(2, "SendFetch", peer=100, req_epoch=0, req_offset=0, req_last_epoch=-1)),
        TWO,
        {"FETCH-03"},
    ),
    "old metadata, and where that epoch began": ((*RESTARTED, lead(1, 0, (1,), leo=1, hw_before=1, hw=1)), TWO, set()),
    "and where it did not": (
        (*RESTARTED, lead(1, 0, (1,), leo=1, hw_before=1, hw=1, epoch_start=0)),
        TWO,
        {"EPOCH-01"},
    ),
    "old metadata lowers no high watermark": (bent(RESTARTED, -1, hw=0), TWO, {"HW-04"}),
    "nor one that nobody knows": (bent(bent(RESTARTED, 0, hw=...), -1, hw=1), TWO, set()),
    "who is seen first in the middle of an epoch, and a member from before": (
        (
            lead(1, 2, (1,), leo=3, epoch_start=1),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0),
        ),
        TWO,
        {"ISR-01"},
    ),
    "an elected one, and a member from before": (
        (
            start(1, leo=1),
            start(2),
            change(1, 1, (1,)),
            lead(1, 1, (1,), leo=1),
            reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0),
        ),
        replace(TWO, min_isr=2),
        {"ISR-01"},
    ),
    "an acknowledgement of one that follows by now": (
        (
            *COPIED,
            change(2, 1, (1, 2)),
            lead(2, 1, (1, 2), leo=1),
            follow(1, 2, 1, leo=1, hw=1),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
        ),
        TWO,
        {"ACK-02"},
    ),
    "an acknowledgement of one that has just started": (
        (
            *DOWN,
            start(1, clean=False, leo=1, hw=1, epochs=((0, 0),)),
            change(2, 1, (1, 2)),
            lead(2, 1, (1, 2), leo=1),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
        ),
        TWO,
        {"ACK-02"},
    ),
    "a fetch of one that has just started": (
        (
            *LAST_ROUND,
            reported(1, "Crash"),
            start(1, clean=False, leo=1, epochs=((0, 0),)),
            send(1, 2, 3, 1, 0),
        ),
        TWO,
        {"FETCH-03"},
    ),
    "a broker that stops twice": ((*STOPS_TWICE, reported(3, "Stop")), CONFIG, {"LIFE-01"}),
    "a broker that tells something while it is down": (
        (*STOPS_TWICE, reported(3, "HwCheckpoint", hw=0)),
        CONFIG,
        {"LIFE-01"},
    ),
    "a checkpoint from before the disk was lost": ((*EMPTIED, reported(1, "HwCheckpoint", hw=1)), TWO, {"HW-10"}),
    "a checkpoint of the life before": (
        (
            *COPIED,
            reported(1, "Stop"),
            start(1, leo=1, hw=0, epochs=((0, 0),)),
            reported(1, "HwCheckpoint", hw=1),
        ),
        TWO,
        set(),
    ),
    "a checkpoint that lags behind again": (
        (*COPIED, reported(1, "Stop"), start(1, leo=1, hw=1, epochs=((0, 0),)), snapshot(1, leo=1, hw=0)),
        TWO,
        set(),
    ),
    "a checkpoint of one that is down": ((*COPIED, reported(1, "Stop"), snapshot(1, leo=1, hw=0)), TWO, {"LOG-02"}),
    "a log that begins later when it is loaded": (
        (
            start(2, leo=2, hw=2, epochs=((0, 0), (1, 1))),
            reported(2, "Stop"),
            reported(2, "Start", clean=True, leo=2, hw=2, log_start=1),
            snapshot(2, epochs=((1, 1),)),
        ),
        TWO,
        set(),
    ),
    "an epoch that starts elsewhere": (
        (start(2, leo=3, epochs=((0, 0), (1, 1))), snapshot(2, epochs=((0, 0), (1, 2)))),
        TWO,
        {"LOG-02"},
    ),
    "an entry that starts at null": (
        (start(2), reported(2, "EpochCacheEntry", leader_epoch=0, epoch_start=None)),
        TWO,
        set(),
    ),
    "an entry of null, a crash, and a snapshot of more": (
        (
            start(2),
            reported(2, "EpochCacheEntry", leader_epoch=None, epoch_start=2),
            reported(2, "Crash"),
            reported(2, "Start", clean=False, leo=2, hw=0, log_start=0),
            snapshot(2, epochs=((5, 1),)),
        ),
        TWO,
        {"EPOCH-02", "LOAD-01", "LOG-02"},
    ),
    "logs that differ, a log start that is told later": (FIRST_LINES, TWO, {"DATA-02"}),
    "a leader that truncated all it had": (
        (
            *OPENING,
            append(1, 0, 0),
            reported(1, "TruncateToHighWatermark", target=0, leo=0, hw=0),
            snapshot(1, leo=0, epochs=()),
        ),
        TWO,
        {"TRUNC-05"},
    ),
    "a member of which no log end is known": (
        (
            start(1),
            reported(2, "Start", clean=True, hw=0, log_start=0, epochs=((0, 0),)),
            *OPENING[2:4],
            append(1, 0, 0),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
            snapshot(2, hw=0),
        ),
        TWO,
        {"ACK-01"},
    ),
    "logs that differ, where log starts move unseen": (
        (
            start(1),
            start(2, leo=1, epochs=((5, 0),)),
            *OPENING[2:4],
            append(1, 0, 0),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
            snapshot(1, log_start=0),
            snapshot(2, log_start=0),
        ),
        replace(TWO, extra=reporting_all_but("LogStartMoved")),
        set(),
    ),
    "an unknown log end of the later leader": (
        (
            *COPIED,
            takes(req_epoch=0, error=0),
            change(2, 1, (1, 2)),
            reported(2, "BecomeLeader", leader_epoch=1, isr=(1, 2)),
        ),
        TWO,
        {"FETCH-10"},
    ),
    "the same acknowledgement twice": (
        (
            *COPIED,
            change(2, 1, (1, 2)),
            lead(2, 1, (1, 2), leo=1),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
            reported(1, "ProduceAck", acks=-1, rec_end=1, error=0),
        ),
        TWO,
        set(),
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_follower_told_in_part(case: str) -> None:
    """The rules that fail."""
    events, config, rules = CASES[case]
    for counted in either_way(config):
        assert broken(events, counted) == rules


def test_logs_that_differ_where_a_line_is_missing() -> None:
    """The log start may have moved there, and back it does not show."""
    events = (
        *UNLIKE,
        reported(2, "HwCheckpoint", hw=1),
        snapshot(2, leo=1, hw=1, log_start=0, epochs=((1, 0),)),
    )
    for config in either_way(TWO):
        assert broken(events, config) == {"DATA-02"}
        assert broken(events, config, missing=(3,)) - {"SEQ-01"} == set()
