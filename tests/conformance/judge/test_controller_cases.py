"""The controller's lines in part: what each may still show, and what it may not.

test_rules.py has one trace for and one against each rule; here are branches of a rule that those do not run, which mutants
of the judge slipped by (tests/mutation/kernel.py). Each trace is judged twice: nothing hangs on the order of the nodes.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import (
    CONFIG,
    OPENING,
    TWO,
    append,
    broken,
    change,
    changed,
    either_way,
    follow,
    judged,
    lead,
    registered,
    reported,
    reporting_all_but,
    send,
    serve,
    start,
    take,
)
from tidegauge.traces.schema import Config, Event

ELR = replace(TWO, profile="elr", min_isr=2)
MOVING = replace(TWO, extra={"reassigned": True})
LAG = replace(MOVING, lag_rule=True)
CLEAN = replace(TWO, extra={"unclean_elections": False})
THREE = (1, 2, 3)


def refused(epoch: int, offset: int, error: int, **fields: Any) -> Event:
    return reported(1, "HandleFetch", peer=2, req_epoch=epoch, req_offset=offset, req_last_epoch=-1, error=error, **fields)


STARTS = (start(1), start(2))
UNLIKE = (start(1, leo=1, hw=1, epochs=((0, 0),)), start(2, leo=1, hw=1, epochs=((1, 0),)), change(1, 2, (1, 2)))
"""The logs differ below both high watermarks, and no election was unclean."""
UNSAID = (*UNLIKE, changed(leader=1, isr=(1, 2), clean=True), change(1, 4, (1, 2)))
"""One registration does not say its leader epoch."""
FROM_THE_MIDDLE = (
    *STARTS,
    lead(1, 1, (1,)),
    follow(2, 1, 1),
    send(2, 1, 1, 0, -1),
    serve(1, 2, 1, 0, -1, res_hw=0, hw=0, leo=0),
    reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0),
    change(1, 1, (1,)),
    change(1, 1, (1, 2)),
)
"""The controller's first line comes behind the proposal that it is about to accept."""
NUMBERED = (*STARTS, change(1, 0, (1, 2), partition_epoch=0), lead(1, 0, (1, 2), partition_epoch=0))

# Leader epochs: who led which
FETCHED = (
    start(1),
    start(2),
    start(3),
    change(3, 0, THREE, THREE),
    lead(3, 0, THREE),
    change(1, 1, THREE, THREE),
    lead(1, 1, THREE),
    follow(2, 1, 1),
    append(1, 1, 0),
    send(2, 1, 1, 0, -1),
    serve(1, 2, 1, 0, -1, res_hw=0, hw=0, leo=1),
    take(2, 1, 1, 0, res_hw=0, hw_before=0, hw=0),
    send(2, 1, 1, 1, 1),
    serve(1, 2, 1, 1, 1, res_hw=0, hw=0, leo=1),
)
"""Broker 3 led before; broker 1 leads, and broker 2 has fetched all it has. Broker 3 holds the high watermark back."""
AGAIN = (change(1, 2, (1, 2), THREE), lead(1, 2, (1, 2), leo=1, hw_before=0, hw=1))
LEADERLESS = (
    changed(leader=None, leader_epoch=2, isr=(1, 2), clean=True),
    change(1, 3, (1, 2), THREE),
    lead(1, 3, (1, 2), leo=1, hw_before=0, hw=1),
)
UNCLEAN_BETWEEN = (
    *STARTS,
    change(1, 0, (1,)),
    lead(1, 0, (1,)),
    append(1, 0, 0, 0, 1),
    changed(leader=2, leader_epoch=1, isr=(2,), live=(1, 2), clean=False),
    lead(2, 1, (2,)),
    change(2, 2, (2,)),
    lead(2, 2, (2,)),
)
"""Broker 2 is elected unclean, without the record of broker 1, and once more."""

NOBODY_SAYS_WHO = (
    *UNCLEAN_BETWEEN[:5],
    changed(leader_epoch=1, isr=(2,), live=(1, 2), clean=False),
    change(2, 2, (2,)),
    change(2, 2, (2,)),
    lead(2, 2, (2,)),
)
"""The same where the unclean election is told without its leader."""
UNCLEAN_FIRST = (
    *STARTS,
    changed(leader_epoch=1, isr=(2,), live=(1, 2), clean=False),
    lead(1, 0, (1,)),
    append(1, 0, 0, 0, 1),
    change(2, 2, (2,)),
    lead(2, 2, (2,)),
)
"""It is the controller's first line; broker 1 has not heard of it yet."""

# Reassignments
ASSIGNED_ONE = (
    *STARTS,
    changed(leader_epoch=0, isr=(1,), replicas=(1,), live=(1, 2), clean=True),
    reported(1, "BecomeLeader", leader_epoch=0, epoch_start=0, leo=0, hw=0),
    follow(2, 1, 0),
    send(2, 1, 0, 0, -1),
)
"""The partition is broker 1's alone; who leads it the controller does not tell, nor the leader with which ISR."""
ASSIGNED_TWICE = (
    *STARTS,
    change(1, 0, (1, 2), replicas=(1, 2)),
    change(1, 0, (1,), replicas=(1,)),
    reported(1, "BecomeLeader", leader_epoch=0, isr=(1,), epoch_start=0, leo=0, hw=0),
    follow(2, 1, 0),
    send(2, 1, 0, 0, -1),
)
REMOVED = (
    *STARTS,
    change(1, 0, (1, 2), replicas=(1, 2)),
    lead(1, 0, (1, 2)),
    follow(2, 1, 0),
    change(1, 0, (1,), replicas=(1,)),
    send(2, 1, 0, 0, -1),
)
"""In a log the leader may have read by now that broker 2 is no replica, or not."""
SERVED = serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0)

# Eligible leader replicas
UNLIKELY = (*STARTS, change(1, 0, (1, 2), elr=()), registered(2, 1, clean=True))
LOST = (*UNLIKELY, registered(2, 2, clean=False))
"""Broker 2 registers as one that may lack what it had, and stays in the ISR all the same."""
LEAVES = change(1, 2, (1,), elr=(2,))
CRASHED = (*STARTS, change(1, 0, (1,), elr=(2,)), reported(2, "Crash"), start(2, clean=False))

# What a broker has read of min.insync.replicas
LEADS = (*STARTS, change(2, 0, (2,)), lead(2, 0, (2,)))
ACKS_ALL = (reported(2, "LeaderAppend", **append(2, 0, 0).fields, acks=-1),)

JOINS = (
    *STARTS,
    change(1, 0, (1,)),
    lead(1, 0, (1,)),
    follow(2, 1, 0),
    registered(2, 5),
    send(2, 1, 0, 0, -1),
    serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0),
)

CASES: dict[str, tuple[Sequence[Event], Config, set[str]]] = {
    "a proposal of an epoch of which the controller is heard later": (FROM_THE_MIDDLE, TWO, set()),
    "another leader under one partition epoch": ((*NUMBERED, change(2, 0, (1, 2), partition_epoch=0)), TWO, {"CTRL-02"}),
    "another leader epoch under it": ((*NUMBERED, change(1, 1, (1, 2), partition_epoch=0)), TWO, {"CTRL-02"}),
    "the same once more": ((*NUMBERED, change(1, 0, (1, 2), partition_epoch=0)), TWO, set()),
    "logs that differ": (UNLIKE, TWO, {"DATA-02"}),
    "logs that differ behind an election that may have been unclean": (UNSAID, TWO, set()),
    "logs that differ where none was": (UNSAID, CLEAN, {"DATA-02"}),
    "an eligible replica while the ISR has two": (
        (
            *(start(node) for node in THREE),
            change(1, 0, (1, 2), THREE, elr=(3,)),
            change(3, 1, (3,), THREE, elr=()),
        ),
        replace(CONFIG, profile="elr", min_isr=3),
        {"CTRL-01"},
    ),
    "an eligible replica in place of the last member": (
        (*(start(node) for node in THREE), change(1, 0, (1,), THREE, elr=(3,)), change(3, 1, (3,), THREE, elr=())),
        replace(CONFIG, profile="elr", min_isr=3),
        set(),
    ),
    "an ISR that grows behind an election where proposals are not told": (
        (*OPENING, change(1, 1, (1,)), change(1, 1, (1, 2))),
        replace(TWO, extra=reporting_all_but("ExpandIsr")),
        set(),
    ),
    "an ISR that grows where they are": ((*OPENING, change(1, 1, (1,)), change(1, 1, (1, 2))), TWO, {"ISR-04"}),
    "who led before the fetch was recorded": ((*FETCHED, *AGAIN), CONFIG, set()),
    "an epoch without a leader in between": ((*FETCHED, *LEADERLESS), CONFIG, set()),
    "an unclean election two elections ago": (UNCLEAN_BETWEEN, TWO, set()),
    "one of which nobody says who won it": (NOBODY_SAYS_WHO, TWO, set()),
    "one that is told first": (UNCLEAN_FIRST, TWO, set()),
    "no replica is served": ((*ASSIGNED_ONE, SERVED), MOVING, {"FENCE-01"}),
    "nor by a leader that read of it in this ISR": ((*ASSIGNED_TWICE, SERVED), MOVING, {"FENCE-01"}),
    "a replica that is removed is served": ((*REMOVED, SERVED), LAG, set()),
    "or is not": ((*REMOVED, refused(0, 0, 6)), LAG, set()),
    "who was assigned last is not told": ((*REMOVED, change(1, 0, (1,)), refused(0, 0, 6)), LAG, {"FENCE-01"}),
    "eligible though it lost what it had": ((*LOST, change(1, 1, (1, 2), elr=()), LEAVES), ELR, {"CTRL-07"}),
    "eligible, and it lost nothing": ((*UNLIKELY, change(1, 1, (1, 2), elr=()), LEAVES), ELR, set()),
    "eligible behind an ISR that is not told": (
        (*LOST, changed(leader=1, leader_epoch=1, elr=(), clean=True), LEAVES),
        ELR,
        set(),
    ),
    "eligible until its controller hears of the crash": ((*CRASHED, change(1, 1, (1,), elr=(2,))), ELR, set()),
    "an ISR of which no size is known": (
        (*STARTS, reported(100, "SetMinIsr", min_isr=0), changed(leader=1, leader_epoch=0, elr=(2,), clean=True)),
        ELR,
        set(),
    ),
    "acks=all under a min.insync.replicas that was read ahead of its line": (
        (*LEADS, reported(2, "ReadConfig", min_isr=2), reported(100, "SetMinIsr", min_isr=2), *ACKS_ALL),
        TWO,
        {"APPEND-03"},
    ),
    "acks=all by a broker that may not have read of it": (
        (*LEADS, reported(2, "ReadConfig", min_isr=1), reported(100, "SetMinIsr", min_isr=2), *ACKS_ALL),
        TWO,
        set(),
    ),
    "an incarnation that is said twice": ((*STARTS, registered(2, 5), registered(2, 5)), TWO, set()),
    "a lower one": ((*STARTS, registered(2, 5), registered(2, 4)), TWO, {"CTRL-09"}),
    "another incarnation, of which nobody says that it is fenced": (
        (
            *OPENING,
            reported(100, "FenceBroker", peer=2),
            registered(2, 6),
            changed(leader=2, leader_epoch=1, isr=(2,), clean=True),
        ),
        TWO,
        set(),
    ),
    "the same incarnation, which is fenced": (
        (
            *OPENING,
            registered(2, 6),
            reported(100, "FenceBroker", peer=2),
            changed(leader=2, leader_epoch=1, isr=(2,), clean=True),
        ),
        TWO,
        {"CTRL-01"},
    ),
    "a proposal without a broker epoch": (
        (*JOINS, reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0, broker_epoch=None), change(1, 0, (1, 2))),
        TWO,
        set(),
    ),
    "a proposal of an older incarnation": (
        (*JOINS, reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0, broker_epoch=4), change(1, 0, (1, 2))),
        TWO,
        {"CTRL-09"},
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_a_registration_told_in_part(case: str) -> None:
    """The rules that fail."""
    events, config, rules = CASES[case]
    for counted in either_way(config):
        assert broken(events, counted) == rules


def test_of_which_epoch_on_all_registrations_are_known() -> None:
    """Behind one that does not say its epoch the next shows only its own: who acts on an older one may be right."""
    events = (*STARTS, changed(leader=1, isr=(1,), clean=True), change(1, 3, (1,)), change(1, 3, (1,)))
    assert judged((*events, follow(2, 1, 2))).tallies["CTRL-03"].undecided == 1
    assert judged((*events, follow(2, 1, 3))).tallies["CTRL-03"].held == 1


BEFORE = changed(leader=1, leader_epoch=3, isr=(1, 2), live=(1, 2), clean=True)
"""A line of the controller that is missing."""
MISSING: dict[str, tuple[Sequence[Event], int, Config, set[str]]] = {
    "logs that differ": ((*UNLIKE, BEFORE, change(1, 4, (1, 2))), 3, TWO, set()),
    "who is eligible by a min.insync.replicas that may be another": (
        (*STARTS, change(1, 0, (1, 2), elr=()), reported(100, "SetMinIsr", min_isr=2), BEFORE, change(1, 4, (1,), elr=(2,))),
        4,
        ELR,
        set(),
    ),
    "who leads may have been unfenced": (
        (
            *OPENING,
            reported(100, "FenceBroker", peer=2),
            reported(100, "UnfenceBroker", peer=2),
            changed(leader=2, leader_epoch=1, isr=(2,), clean=True),
        ),
        6,
        TWO,
        set(),
    ),
    "who is eligible may have joined since": (
        (*LOST, BEFORE, change(1, 4, (1,), elr=(2,))),
        5,
        ELR,
        set(),
    ),
}


@pytest.mark.parametrize("case", MISSING)
def test_a_registration_that_is_missing(case: str) -> None:
    """Any change may have been there."""
    events, at, config, rules = MISSING[case]
    for counted in either_way(config):
        assert broken(events, counted, missing=(at,)) - {"SEQ-01"} == rules
