"""Requests and responses are held against each other: OffsetsForLeaderEpoch like Fetch, refused ones like served ones."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import COPIED, TWO, bent, broken, change, follow, judged, lead, reported, send, start
from tidegauge.traces.schema import EVENTS, Event

KIP320 = replace(TWO, profile="kip320")
KIP279 = replace(TWO, profile="kip279")

SEND_EPOCH_REQUEST = reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0)
ANSWERED = reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=1)
TAKEN = reported(
    2,
    "HandleEpochResponse",
    peer=1,
    req_epoch=0,
    req_last_epoch=0,
    error=0,
    div_epoch=0,
    div_end=1,
    target=1,
    completed=True,
    leo_before=1,
    hw_before=0,
    leo=1,
    hw=0,
)
ASKED = (*COPIED, SEND_EPOCH_REQUEST, ANSWERED, TAKEN)
"""A follower asks where its epoch ends, is answered, and truncates nothing."""


def test_a_request_about_an_epoch_that_nobody_sent_is_noticed() -> None:
    """Not sent at all, answered twice, of another epoch, about another epoch."""
    assert broken(ASKED, KIP320) == set()
    assert broken((*COPIED, ANSWERED), KIP320) == {"FETCH-04"}
    assert broken((*COPIED, SEND_EPOCH_REQUEST, ANSWERED, ANSWERED), KIP320) == {"FETCH-04"}
    for field in ("req_epoch", "req_last_epoch"):
        assert "FETCH-04" in broken(bent(ASKED, -2, **{field: 1}), KIP320)


@pytest.mark.parametrize("field", ["req_epoch", "req_last_epoch", "div_epoch", "div_end", "error"])
def test_a_response_is_taken_over_as_it_was_given(field: str) -> None:
    """And to the question it was given to."""
    value: Any = ASKED[-1].fields[field] + 1
    assert "FETCH-10" in broken(bent(ASKED, -1, **{field: value}), KIP320)


def test_a_response_nobody_gave_is_noticed() -> None:
    """The question is still on its way, or its response has been taken already, or it was refused."""
    assert broken((*COPIED, SEND_EPOCH_REQUEST, TAKEN), KIP320) == {"FETCH-10"}
    assert broken((*ASKED, TAKEN), KIP320) == {"FETCH-10"}
    refused = reported(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=1)
    assert broken((*COPIED, SEND_EPOCH_REQUEST, refused, TAKEN), KIP320) == {"FETCH-10"}
    error = reported(2, "HandleEpochResponse", peer=1, req_epoch=0, error=1)
    assert broken((*COPIED, SEND_EPOCH_REQUEST, refused, error), KIP320) == set()
    assert broken((*COPIED, SEND_EPOCH_REQUEST, refused, bent((error,), 0, error=74)[0]), KIP320) == {"FETCH-10"}


def test_a_request_that_a_fetch_overtook_may_be_answered_late() -> None:
    """Once."""
    late = (*COPIED, SEND_EPOCH_REQUEST, send(2, 1, 0, 1, 0), ANSWERED)
    assert broken(late, KIP320) == set()
    assert broken((*late, ANSWERED), KIP320) == {"FETCH-04"}


def test_a_source_that_reports_no_requests_or_no_responses_is_not_held_to_them() -> None:
    """A follower of Kafka logs no OffsetsForLeaderEpoch request; only its leader's request log has it."""

    def reporting(*events: str) -> Any:
        rounds = {"SendEpochRequest", "HandleEpochRequest"}
        return replace(KIP320, extra={"reports": [*(EVENTS.keys() - rounds), *events]})

    assert broken((*COPIED, ANSWERED), reporting("HandleEpochRequest")) == set()
    assert judged((*COPIED, ANSWERED), reporting("HandleEpochRequest")).tallies["FETCH-04"].undecided == 1
    assert broken((*COPIED, SEND_EPOCH_REQUEST, TAKEN), reporting("SendEpochRequest")) == set()
    assert broken((*COPIED, SEND_EPOCH_REQUEST, TAKEN), reporting("SendEpochRequest", "HandleEpochRequest")) == {"FETCH-10"}


def test_a_response_of_another_epoch_is_taken_over_before_kafka_7786_only() -> None:
    """FETCH-09: later a follower drops what was asked in an epoch it has left."""
    moved = (change(1, 1, (1, 2)), lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1), follow(2, 1, 1, leo=1))
    late = (*ASKED[:-1], *moved, TAKEN)
    assert broken(late, KIP279) == set()
    assert broken(late, KIP320) == {"FETCH-09"}
    elsewhere = (*ASKED[:-1], change(2, 1, (1, 2)), lead(2, 1, (1, 2), leo=1), TAKEN)
    assert broken(elsewhere, KIP279) == {"FETCH-09"}


def came_back(*events: Event) -> tuple[Event, ...]:
    """The leader went down with a request on its way, and its follower has moved on."""
    asked = send(2, 1, 0, 1, 0)
    gone = (reported(1, "Crash"), change(None, 1, (1,), (2,)), follow(2, None, 1, leo=1))
    loaded = start(1, clean=False, leo=1, hw=0, epochs=((0, 0),))
    return (*COPIED, asked, *gone, loaded, *events)


REFUSED = reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=6)


def test_a_request_that_outlives_its_leader_says_what_was_sent() -> None:
    """It may be refused by the process that came after, once; or it is gone."""
    assert broken(came_back()) == set()
    assert broken(came_back(REFUSED)) == set()
    assert broken(came_back(REFUSED, REFUSED)) == {"FETCH-04"}
    for field in ("req_epoch", "req_offset", "req_last_epoch"):
        other = replace(REFUSED, fields=dict(REFUSED.fields) | {field: 2})
        assert broken(came_back(other)) == {"FETCH-04"}


def test_what_a_request_to_a_leader_that_went_down_came_to_is_open() -> None:
    """It may have been answered without a line: LIFE-01 and FETCH-10 have nothing to say about that."""
    answered = bent(COPIED, -1)[-1]
    again = (*COPIED, send(2, 1, 0, 1, 0), reported(1, "Crash"), answered)
    assert broken(again) == set()
    assert judged(again).tallies["FETCH-10"].undecided == 1
