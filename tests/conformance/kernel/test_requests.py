"""Requests and answers are held against each other: questions about epochs like fetches, refused ones like served ones."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import COPIED, TWO, bent, broken, change, follow, judged, lead, send, start, told
from tidegauge.traces.schema import Event

KIP320 = replace(TWO, profile="kip320")
KIP279 = replace(TWO, profile="kip279")

QUESTION = told(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0)
ANSWERED = told(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=0, div_epoch=0, div_end=1)
TAKEN = told(
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
ASKED = (*COPIED, QUESTION, ANSWERED, TAKEN)
"""A follower asks where its epoch ends, is answered, and cuts nothing."""


def test_a_question_about_an_epoch_that_nobody_sent_is_noticed() -> None:
    """Not sent at all, answered twice, of another epoch, about another epoch."""
    assert broken(ASKED, KIP320) == set()
    assert broken((*COPIED, ANSWERED), KIP320) == {"FETCH-04"}
    assert broken((*COPIED, QUESTION, ANSWERED, ANSWERED), KIP320) == {"FETCH-04"}
    for field in ("req_epoch", "req_last_epoch"):
        assert "FETCH-04" in broken(bent(ASKED, -2, **{field: 1}), KIP320)


@pytest.mark.parametrize("field", ["req_epoch", "req_last_epoch", "div_epoch", "div_end", "error"])
def test_an_answer_is_taken_over_as_it_was_given(field: str) -> None:
    """And to the question it was given to."""
    value: Any = ASKED[-1].fields[field] + 1
    assert "FETCH-10" in broken(bent(ASKED, -1, **{field: value}), KIP320)


def test_an_answer_nobody_gave_is_noticed() -> None:
    """The question is still on its way, or its answer has been taken already, or it was refused."""
    assert broken((*COPIED, QUESTION, TAKEN), KIP320) == {"FETCH-10"}
    assert broken((*ASKED, TAKEN), KIP320) == {"FETCH-10"}
    refused = told(1, "HandleEpochRequest", peer=2, req_epoch=0, req_last_epoch=0, error=1)
    assert broken((*COPIED, QUESTION, refused, TAKEN), KIP320) == {"FETCH-10"}
    error = told(2, "HandleEpochResponse", peer=1, req_epoch=0, error=1)
    assert broken((*COPIED, QUESTION, refused, error), KIP320) == set()
    assert broken((*COPIED, QUESTION, refused, bent((error,), 0, error=74)[0]), KIP320) == {"FETCH-10"}


def test_a_question_that_a_fetch_overtook_may_be_answered_late() -> None:
    """Once."""
    late = (*COPIED, QUESTION, send(2, 1, 0, 1, 0), ANSWERED)
    assert broken(late, KIP320) == set()
    assert broken((*late, ANSWERED), KIP320) == {"FETCH-04"}


def test_a_source_that_tells_no_questions_or_no_answers_is_not_held_to_them() -> None:
    """A follower of Kafka logs no OffsetsForLeaderEpoch request; only its leader's request log has it."""

    def telling(*events: str) -> Any:
        return replace(KIP320, extra={"reports": ["SendFetch", "HandleFetch", *events]})

    assert broken((*COPIED, ANSWERED), telling("HandleEpochRequest")) == set()
    assert judged((*COPIED, ANSWERED), telling("HandleEpochRequest")).tallies["FETCH-04"].undecided == 1
    assert broken((*COPIED, QUESTION, TAKEN), telling("SendEpochRequest")) == set()
    assert broken((*COPIED, QUESTION, TAKEN), telling("SendEpochRequest", "HandleEpochRequest")) == {"FETCH-10"}


def test_an_answer_of_another_epoch_is_taken_over_before_kafka_7786_only() -> None:
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
    gone = (told(1, "Crash"), change(None, 1, (1,), (2,)), follow(2, None, 1, leo=1))
    loaded = start(1, clean=False, leo=1, hw=0, epochs=((0, 0),))
    return (*COPIED, asked, *gone, loaded, *events)


REFUSED = told(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=6)


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
    again = (*COPIED, send(2, 1, 0, 1, 0), told(1, "Crash"), answered)
    assert broken(again) == set()
    assert judged(again).tallies["FETCH-10"].undecided == 1
