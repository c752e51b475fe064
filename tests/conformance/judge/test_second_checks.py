"""Second checks of a rule, its error branches, events told in part: each trace tells the judge from a small change of it.

The changes take one column, or one local name, for another, or forget a member of a tuple; a trace of the pinned corpus
(tests/mutation) seldom has the two values apart.
"""

from collections.abc import Sequence

import pytest

from tests.conformance.hand import (
    OPENING,
    TWO,
    broken,
    change,
    changed,
    either_way,
    follow,
    lead,
    registered,
    reported,
    send,
    start,
    takes,
)
from tidegauge.traces.schema import Event

AWAKE = reported(1, "ReadConfig", min_isr=1)
"""Broker 1 is observed, and nothing is known of it."""

DIVERGED = (
    AWAKE,
    send(2, 1, 0, 1, 0),
    reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=0, div_epoch=0, div_end=0),
)
"""A diverging response is in flight to a follower that was never seen to start."""

Case = tuple[Sequence[Event], str]

FAILS: dict[str, Case] = {
    "a fetch from an offset that is its last epoch": ((start(2, leo=1, epochs=((1, 0),)), send(2, 1, 1, 0, 1)), "FETCH-01"),
    "a fetch from the highest high watermark there was": (
        (
            start(2, leo=3, hw=2, epochs=()),
            takes(res_hw=1, res_log_start=0, hw_before=2, hw=1, leo=3, rec_base=3, rec_end=3, log_start=0),
            send(2, 1, 0, 2, -1),
        ),
        "FETCH-01",
    ),
    "a diverging response that raises a high watermark": (
        (reported(2, "HandleDivergingResponse", peer=1, hw_before=0, hw=1),),
        "HW-06",
    ),
    "records, or a high watermark, of a diverging response": ((*DIVERGED, takes(hw_before=0, hw=1)), "HW-06"),
    "a high watermark that moves before a truncation": (
        (takes(res_hw=1, hw_before=0, hw=1, leo=1), reported(2, "HandleDivergingResponse", peer=1, hw_before=1, hw=1)),
        "HW-06",
    ),
    "a proposal of two leader epochs ago": (
        (
            reported(2, "ExpandIsr", peer=1, isr=(1, 2), remote_leo=0),
            change(1, 0, (1, 2)),
            change(1, 1, (1, 2)),
            lead(2, 2, (2,)),
            change(2, 2, (2,)),
            change(2, 2, (1, 2)),
        ),
        "ISR-04",
    ),
    "out of range, and taken over as a divergence": (
        (
            AWAKE,
            send(2, 1, 0, 1, 0),
            reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=1, div_epoch=0, div_end=0),
            reported(2, "HandleDivergingResponse", peer=1, req_epoch=0, req_offset=1, div_epoch=0, div_end=0),
        ),
        "FETCH-10",
    ),
    "no epoch start, told again in the same leader epoch": (
        (*OPENING, lead(1, 0, (1, 2), epoch_start=None)),
        "EPOCH-01",
    ),
    "an old role that lowers a high watermark at the log end": (
        (
            reported(1, "Start", clean=False, leo=3, hw=3, log_start=0),
            change(2, 5, (2,)),
            reported(1, "BecomeLeader", leader_epoch=0, isr=(1,), leo=3, hw=2),
        ),
        "HW-04",
    ),
    "an entry of a lower epoch than the only one": (
        (start(1, leo=2, epochs=((3, 0),)), reported(1, "EpochCacheEntry", leader_epoch=0, epoch_start=0)),
        "EPOCH-02",
    ),
    "an ISR that was never registered, in a response": (
        (*OPENING, reported(1, "HandleAlterPartitionResponse", isr=(1,), error=0, hw_before=0, hw=0)),
        "CTRL-03",
    ),
}
"""Each breaks the rule, whatever else."""

HOLDS: dict[str, Case] = {
    "a first fetch without epochs, from the high watermark": (
        (start(1), start(2, leo=3, hw=2, epochs=()), follow(2, 1, 0, leo=3, hw=2), send(2, 1, 0, 2, -1)),
        "FETCH-01",
    ),
    "a registration without its broker epoch": ((registered(1, 5), reported(100, "RegisterBroker", peer=1)), "CTRL-09"),
    "an out-of-range reset of a log whose end is unknown": (
        (reported(2, "HandleOutOfRange", peer=1, leader_start=0, leader_end=3, target=3),),
        "OOR-01",
    ),
    "an old role that tells no high watermark": (
        (
            start(1, leo=3, hw=3, epochs=((0, 0),)),
            change(2, 5, (2,)),
            reported(1, "BecomeLeader", leader_epoch=0, isr=(1,), leo=3),
        ),
        "HW-04",
    ),
    "a shrink that does not say to what": ((*OPENING, reported(1, "ShrinkIsr")), "ISR-02"),
    "a proposal by a broker of an unknown role": (
        (
            reported(1, "HandleAlterPartitionResponse", isr=(1, 2), error=0),
            reported(1, "ShrinkIsr", isr=(1,)),
        ),
        "ISR-03",
    ),
    "a broker without a role refuses every epoch as unknown": (
        (start(1), reported(1, "HandleFetch", peer=2, req_epoch=0, error=75)),
        "FENCE-01",
    ),
    "a truncation by a response without an end": (
        (
            start(2, leo=1, epochs=((0, 0),)),
            reported(2, "HandleDivergingResponse", peer=1, req_offset=1, div_epoch=0, target=0),
        ),
        "TRUNC-01",
    ),
    "an unknown broker is unfenced": (
        (
            reported(100, "FenceBroker", peer=1),
            reported(100, "UnfenceBroker"),
            changed(leader=1, leader_epoch=0, isr=(1, 2)),
        ),
        "CTRL-01",
    ),
    "a fetch at a leader whose log end is unknown": (
        (
            reported(1, "Start", clean=True, log_start=0, epochs=((0, 0),)),
            reported(1, "HandleFetch", peer=2, req_offset=9, req_last_epoch=0, error=0, rec_base=9, rec_end=9),
        ),
        "FETCH-05",
    ),
    "an answer about another epoch than the follower's own": (
        (
            start(1, leo=1, epochs=((0, 0),)),
            start(2, leo=1, epochs=((0, 0),)),
            change(1, 3, (1, 2)),
            lead(1, 3, (1, 2), leo=1),
            follow(2, 1, 3, leo=1),
            reported(2, "SendEpochRequest", peer=1, req_epoch=3, req_last_epoch=0),
            reported(1, "HandleEpochRequest", peer=2, req_epoch=3, req_last_epoch=0, error=0, div_epoch=0, div_end=1),
            reported(2, "HandleEpochResponse", peer=1, req_epoch=3, req_last_epoch=0, error=0, div_epoch=0, div_end=1),
        ),
        "FETCH-10",
    ),
}
"""None breaks the rule: it holds, or what would decide it is not told."""


@pytest.mark.parametrize("case", FAILS)
def test_it_fails(case: str) -> None:
    """Whichever broker is counted first."""
    events, rule = FAILS[case]
    for config in either_way(TWO):
        assert rule in broken(events, config)


@pytest.mark.parametrize("case", HOLDS)
def test_it_accuses_nobody(case: str) -> None:
    """Whichever broker is counted first."""
    events, rule = HOLDS[case]
    for config in either_way(TWO):
        assert rule not in broken(events, config)
