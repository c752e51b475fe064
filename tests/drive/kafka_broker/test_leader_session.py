"""The session that a peer opens for the broker's fetcher thread: with whatever follower keeps to KIP-227 it knows what that
fetches; one that does not is seen through. The follower is impl's, or one that is wrong in one respect."""

from collections.abc import Callable
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.drive.kafka_broker.peers import LeaderSession
from tidegauge.drive.wire.compiler import WireError, WireMessage
from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.fetch import fetch_session as handler_
from tidegauge.impl.fetch.fetch_session import (
    INITIAL,
    Fetches,
    FetchMetadata,
    FetchSessionHandler,
    SessionFetch,
    SessionResponse,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import FetchRequest, FetchResponse, PartitionFetch, PartitionRead
from tidegauge.impl.rules import NONE
from tidegauge.impl.topic_partition import TopicPartition

TOPICS = tuple(UUID(int=number) for number in range(3))
OTHERS: WireMessage = {"errorCode": 6}

Changes = Callable[[FetchSessionHandler, Fetches, SessionFetch], SessionFetch]
"""What a follower sends instead, by what its handler had, what it wants and what it should send."""


class Follower:
    """A fetcher thread and its handler, with a session of a peer."""

    def __init__(self, changes: Changes = lambda _handler, _wanted, request: request) -> None:
        self._changes, self._handler, self.session = changes, FetchSessionHandler(), LeaderSession(2)

    def asks(self, wanted: dict[UUID, int]) -> None:
        """The next request, with an offset for each partition that is wanted."""
        fetches = FrozenMap(
            (TopicPartition(str(topic), 0), PartitionFetch(FetchRequest(1, 0, at, 0))) for topic, at in wanted.items()
        )
        before = self._handler
        self._handler, request = handler_.build_session_fetch(before, fetches)
        assert request is not None
        self.session.receive(_body(self._changes(before, fetches, request)))

    def hears(self, response: WireMessage) -> bool:
        """The response; whether it is taken."""
        read = PartitionRead(FetchResponse(NONE, 0, 0))
        reads = FrozenMap((TopicPartition(str(one["topicId"]), 0), read) for one in response["responses"])
        found = SessionResponse(response["errorCode"], response["sessionId"], reads)
        self._handler, taken = handler_.handle_response(self._handler, found)
        return taken


def _body(request: SessionFetch) -> WireMessage:
    return {
        "sessionId": request.metadata.session_id,
        "sessionEpoch": request.metadata.epoch,
        "topics": [{"topicId": UUID(tp.topic), "partitions": [_partition(fetch)]} for tp, fetch in request.to_send.items()],
        "forgottenTopicsData": [{"topicId": UUID(tp.topic), "partitions": [0]} for tp, _ in request.to_forget],
    }


def _partition(fetch: PartitionFetch) -> WireMessage:
    request = fetch.request
    return {
        "currentLeaderEpoch": request.current_leader_epoch,
        "fetchOffset": request.fetch_offset,
        "lastFetchedEpoch": request.last_fetched_epoch,
        "logStartOffset": request.log_start,
        "partitionMaxBytes": fetch.max_bytes,
    }


WANTED = st.dictionaries(st.sampled_from(TOPICS), st.integers(0, 2), min_size=1)
ROUNDS = st.lists(st.tuples(WANTED, st.none() | st.sets(st.sampled_from(TOPICS))), max_size=12)
"""What the thread wants, and what the response is about; None: it gets lost."""


@given(ROUNDS)
def test_what_is_fetched_is_known_whatever_got_lost(rounds: list[tuple[dict[UUID, int], set[UUID] | None]]) -> None:
    """Whatever is meant, also what is not asked for now; a response is taken, and of one that gets lost nothing is."""
    follower = Follower()
    for wanted, named in rounds:
        follower.asks(wanted)
        found = {topic: follower.session.request_of(topic) for topic in TOPICS}
        assert {topic: one.fetch_offset for topic, one in found.items() if one is not None} == wanted
        if named is None:
            response = follower.session.lost()
            assert not (follower.hears(response) and response["responses"])
        else:
            assert follower.hears(follower.session.response({topic: {} for topic in named}, OTHERS))


def test_a_session_is_lost_in_every_way_in_turn() -> None:
    """After each the broker asks for the same."""
    follower, errors = Follower(), []
    for _ in range(6):
        follower.asks({TOPICS[0]: 1})
        follower.hears(follower.session.response({}, OTHERS))
        follower.asks({TOPICS[0]: 1})
        lost = follower.session.lost()
        errors.append(lost["errorCode"])
        follower.hears(lost)
    assert errors == 2 * [NONE, FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH]


def _names_all(_handler: FetchSessionHandler, wanted: Fetches, request: SessionFetch) -> SessionFetch:
    return request._replace(to_send=wanted)


def _names_only_what_is_new(handler: FetchSessionHandler, wanted: Fetches, request: SessionFetch) -> SessionFetch:
    new = FrozenMap((tp, fetch) for tp, fetch in request.to_send.items() if tp not in handler.partitions)
    return request if request.metadata.is_full else request._replace(to_send=new)


def _forgets_nothing(_handler: FetchSessionHandler, _wanted: Fetches, request: SessionFetch) -> SessionFetch:
    return request._replace(to_forget=())


def _stays_in_its_epoch(_handler: FetchSessionHandler, _wanted: Fetches, request: SessionFetch) -> SessionFetch:
    metadata = request.metadata
    return request._replace(metadata=metadata._replace(epoch=min(metadata.epoch, 1)))


def _never_closes_a_session(_handler: FetchSessionHandler, _wanted: Fetches, request: SessionFetch) -> SessionFetch:
    return request._replace(metadata=INITIAL) if request.metadata.is_full else request


def _starts_over_each_time(_handler: FetchSessionHandler, wanted: Fetches, request: SessionFetch) -> SessionFetch:
    return SessionFetch(INITIAL, wanted)


def _guesses_a_session(_handler: FetchSessionHandler, _wanted: Fetches, request: SessionFetch) -> SessionFetch:
    return request._replace(metadata=FetchMetadata(99, request.metadata.epoch))


REFUSED = (_names_all, _stays_in_its_epoch, _never_closes_a_session, _starts_over_each_time, _guesses_a_session)
MISUNDERSTOOD = (_names_only_what_is_new, _forgets_nothing)


SCRIPT = (
    ({TOPICS[0]: 0, TOPICS[1]: 0}, False),
    ({TOPICS[0]: 1, TOPICS[1]: 0}, False),
    ({TOPICS[0]: 1, TOPICS[1]: 0}, False),
    ({TOPICS[0]: 1}, False),
    *[({TOPICS[0]: 1}, True), ({TOPICS[0]: 1}, False)] * 3,
)
"""What is wanted, and whether the response to it gets lost."""


def misunderstood(follower: Follower) -> dict[UUID, int] | None:
    """The first wants of the script that are taken for something else; None if there are none."""
    for wanted, lost in SCRIPT:
        follower.asks(wanted)
        if {topic: one.fetch_offset for topic in TOPICS if (one := follower.session.request_of(topic))} != wanted:
            return wanted
        follower.hears(follower.session.lost() if lost else follower.session.response({}, OTHERS))
    return None


def test_a_follower_that_keeps_to_its_session_is_understood() -> None:
    assert misunderstood(Follower()) is None


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_request_that_is_not_of_its_session_is_refused(wrong: Changes) -> None:
    with pytest.raises(WireError, match=r"broker 2: expected SessionFetch.*; seen SessionFetch"):
        misunderstood(Follower(wrong))


@pytest.mark.parametrize("wrong", MISUNDERSTOOD)
def test_what_a_follower_keeps_to_itself_is_not_known(wrong: Changes) -> None:
    """A leader cannot know that an offset has changed: the broker under test differs from the reference, then."""
    assert misunderstood(Follower(wrong)) is not None
