"""Four partitions, what a follower wants of them, what a leader reads, and both ends of a session."""

from collections.abc import Iterable
from typing import Any

from tidegauge.impl.fetch import fetch_session as s
from tidegauge.impl.fetch.fetch_session import Fetches, FetchSessionCache, FetchSessionHandler, Reads
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import Batch, FetchRequest, FetchResponse, PartitionFetch, PartitionRead
from tidegauge.impl.rules import NONE
from tidegauge.impl.topic_partition import TopicPartition

TPS = tuple(TopicPartition("t", number) for number in range(4))
A, B, C, D = TPS
DATA = (Batch(5, 9, 1),)


def fetch(offset: int, topic_id: str | None = "id-t") -> PartitionFetch:
    return PartitionFetch(FetchRequest(2, 3, offset, 1), topic_id=topic_id)


def wants(**offsets: int) -> Fetches:
    return FrozenMap((TPS["abcd".index(name)], fetch(offset)) for name, offset in offsets.items())


def read(hw: int = 5, **changed: Any) -> PartitionRead:
    return PartitionRead(FetchResponse(NONE, hw, 0)._replace(**changed))


def reads(tps: Iterable[TopicPartition], hw: int = 5) -> Reads:
    return FrozenMap((tp, read(hw)) for tp in tps)


def opened(wanted: Fetches, cache: FetchSessionCache | None = None) -> tuple[FetchSessionCache, FetchSessionHandler, int]:
    """Both ends after a full fetch, and the session's id."""
    handler, request = s.build_session_fetch(FetchSessionHandler(), wanted)
    assert request is not None
    cache, context = s.new_context(cache or FetchSessionCache(), request, 0)
    cache, response = s.update_and_generate_response(cache, context, reads(context.fetches), 0, is_follower=True)
    handler, taken = s.handle_response(handler, response)
    assert taken
    return cache, handler, response.session_id
