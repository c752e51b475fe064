"""What is checked where little is known: each case leaves one thing open, and says which check that leaves undecided.

test_rules.py has one trace for and one against each rule; here are branches of a rule that those do not run, which mutants
of the judge slipped by (tests/mutation/kernel.py). Each trace is judged twice: nothing hangs on the order of the nodes.
"""

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
    broken,
    change,
    judged,
    lead,
    reported,
    start,
    take,
)
from tests.conformance.judge.test_responses import DELAYED, TAKEN
from tests.conformance.judge.test_rules import ASKED, MISSED_EPOCH, TWO_ELIGIBLE, TWO_ROUNDS
from tidegauge.traces.schema import Config, Event

LAG = replace(TWO, lag_rule=True)
MIDDLE = (lead(1, 0, (1, 2), leo=5, hw_before=3, hw=3, epoch_start=2),)
"""The first line of broker 1: it has led for a while."""
SHRUNK_UNHEARD = (*OPENING, append(1, 0, 0), change(1, 0, (1,)))
"""The controller has taken broker 2 out of the ISR; the leader's line that it heard so is missing."""
UNCERTAIN_START = (*bent(OPENING, 0, hw=...)[:3], *bent(OPENING, 3, hw=..., hw_before=...)[3:])
STOPPED = (*bent((start(1, leo=5),), 0, hw=...), reported(1, "Stop"), reported(1, "Observe", leo=5, hw=3))
"""The snapshot tells which high watermark is on the disk."""
ONE_ROUND = (*TWO_ROUNDS[:-1], take(1, 2, 3, 1, res_hw=0, hw_before=0, hw=0, count=0))
REFUSED = reported(1, "AnswerFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=6)
UNNAMED = bent((TAKEN,), 0, req_epoch=..., req_offset=...)
OTHER_EPOCH = (start(1, leo=1, hw=1, epochs=((0, 0),)), start(2, leo=1, hw=1, epochs=((1, 0),)))

CASES: dict[str, tuple[Sequence[Event], Config, set[str], dict[str, int]]] = {
    "a diverging response with an error": (bent(FORKED, -2, error=6), TWO, {"FETCH-10"}, {}),
    "records with an error": (bent(COPIED, 8, error=6), TWO, {"FETCH-10"}, {}),
    "an error, and then records": (
        (*DELAYED, REFUSED, reported(2, "HandleFetchError", peer=1), TAKEN),
        TWO,
        {"FETCH-10"},
        {},
    ),
    "a second round about nobody says what": (bent(TWO_ROUNDS, -1, req_last_epoch=...), TWO, set(), {"TRUNC-02": 1}),
    "nobody says whether a second round is needed": (bent(TWO_ROUNDS, -2, completed=...), TWO, set(), {"TRUNC-02": 0}),
    "that, and no lower epoch is asked about": (
        bent(bent(TWO_ROUNDS, -2, completed=...), -1, req_last_epoch=2),
        TWO,
        {"TRUNC-02", "FETCH-02"},
        {},
    ),
    "nobody says that no round is needed": (bent(FORKED, -2, completed=...), TWO, set(), {"TRUNC-02": 0}),
    "records where a second round was needed": (ONE_ROUND, TWO, {"TRUNC-02", "FETCH-10"}, {}),
    "an acknowledgement under an unknown high watermark": (
        (*UNCERTAIN_START, reported(1, "ProduceAck", acks=-1, rec_end=1, error=0)),
        TWO,
        set(),
        {"ACK-01": 1},
    ),
    "who led in between is not told": (bent(MISSED_EPOCH, 12, leader=...), CONFIG, set(), {"HW-08": 1}),
    "nor whether the election was clean": (bent(MISSED_EPOCH, 12, leader=..., clean=...), CONFIG, set(), {"HW-08": 1}),
    "a min.insync.replicas that nobody set": (
        (*OPENING, reported(1, "ReadConfig", min_isr=1), change(1, 0, (1,)), change(2, 1, (2,))),
        TWO_ELIGIBLE,
        set(),
        {"CTRL-01": 1},
    ),
    "a min.insync.replicas as in the Config": (
        (*OPENING, reported(1, "ReadConfig", min_isr=2), change(1, 0, (1,)), change(2, 1, (2,))),
        TWO_ELIGIBLE,
        set(),
        {"CTRL-01": 0},
    ),
    "an end of an epoch, perhaps with an error": (
        bent(ASKED, -1, error=..., div_epoch=..., div_end=...),
        TWO,
        set(),
        {"EPOCH-05": 1},
    ),
    "an end of an epoch from an unknown cache": (bent(ASKED, 0, epochs=...), TWO, set(), {"EPOCH-05": 1}),
    "the controller's ISR explains the high watermark": (
        (*SHRUNK_UNHEARD, append(1, 0, 1, hw_before=0, hw=2), append(1, 0, 2, hw_before=2, hw=3)),
        LAG,
        set(),
        {"HW-02": 0},
    ),
    "nothing explains the high watermark": (
        (*SHRUNK_UNHEARD[:-1], append(1, 0, 1, hw_before=0, hw=2)),
        LAG,
        {"HW-02"},
        {},
    ),
    "what is recorded is unknown": ((*MIDDLE, append(1, 0, 5, 3, 4)), TWO, set(), {"HW-02": 1, "HW-03": 2, "HW-08": 1}),
    "what is recorded is unknown, in logs": ((*MIDDLE, append(1, 0, 5, 3, 3)), LAG, set(), {"HW-03": 1}),
    "a delayed response of a leader that died": (
        (*DELAYED, reported(1, "Crash"), *UNNAMED),
        TWO,
        set(),
        {"FETCH-09": 1, "FETCH-10": 1},
    ),
    "a delayed response nobody saw": ((*DELAYED, *UNNAMED), TWO, set(), {"FETCH-09": 0, "FETCH-10": 1}),
    "a checkpoint that is read again": ((*STOPPED, start(1, leo=5, hw=3)), TWO, set(), {}),
    "a checkpoint above the one on the disk": ((*STOPPED, start(1, leo=5, hw=4)), TWO, {"LOAD-01"}, {}),
    "logs that differ where one may begin later": (
        (OTHER_EPOCH[0], *bent(OTHER_EPOCH[1:], 0, log_start=...), change(1, 2, (1, 2))),
        TWO,
        set(),
        {"DATA-02": 1},
    ),
    "logs that differ, and a third nobody heard of": (
        (*OTHER_EPOCH, change(1, 2, (1, 2))),
        CONFIG,
        set(),
        {"DATA-02": 1},
    ),
    "the first role with an ISR from before": (
        (change(1, 0, (1, 2)), lead(1, 0, (1,), leo=3, hw_before=3, hw=3, epoch_start=0)),
        TWO,
        set(),
        {"CTRL-03": 1},
    ),
    "a truncation by an unknown cache": (
        (
            *bent(OPENING, 1, epochs=...),
            reported(2, "TruncateToHighWatermark", target=0, leo_before=0, hw_before=0, leo=0, hw=0),
        ),
        TWO,
        set(),
        {"TRUNC-05": 1},
    ),
}


@pytest.mark.parametrize("turned", [False, True], ids=["", "turned round"])
@pytest.mark.parametrize("case", CASES)
def test_what_is_open_is_undecided_and_the_rest_is_not(case: str, turned: bool) -> None:
    """The rules that fail, and how many checks of a rule are open."""
    events, config, rules, undecided = CASES[case]
    config = replace(config, nodes=tuple(reversed(config.nodes))) if turned else config
    assert broken(events, config) == rules
    tallies = judged(events, config).tallies
    assert {rule: tallies[rule].undecided for rule in undecided} == undecided
