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
    follow,
    judged,
    lead,
    reported,
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
}


@pytest.mark.parametrize("what", CASES)
def test_a_value_is_not_the_one_beside_it(what: str) -> None:
    events, config, failures = CASES[what]
    seen = {
        (failure.rule, failure.compared, failure.expected, failure.actual) for failure in judged(events, config).failures
    }
    assert seen == failures
