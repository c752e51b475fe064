"""Fetch sessions (KIP-227): what travels, what both ends remember, and which sessions are given up."""

import pytest

from tests.impl.fetch_session import DATA, A, B, C, D, fetch, opened, read, reads, wants
from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, FETCH_SESSION_TOPIC_ID_ERROR, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.fetch import fetch_session as c
from tidegauge.impl.fetch.fetch_session import (
    FINAL_EPOCH,
    INITIAL,
    INVALID_SESSION_ID,
    LARGEST_EPOCH,
    LEGACY,
    CachedPartition,
    FetchMetadata,
    FetchSessionCache,
    FetchSessionHandler,
    SessionFetch,
    SessionKind,
    SessionResponse,
    next_session_epoch,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import PartitionRead
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED

# Requests


def test_an_incremental_request_names_what_is_new_or_changed() -> None:
    """New ones first, then changed ones in the session's order; the leader reads the whole session, in its own order."""
    cache, handler, session_id = opened(wants(a=1, b=2, c=3))
    handler, request = c.build_session_fetch(handler, wants(b=2, d=4, a=7))
    assert request == SessionFetch(FetchMetadata(session_id, 1), wants(d=4, a=7), ((C, "id-t"),))
    assert tuple(handler.partitions) == (A, B, D)
    _, context = c.new_context(cache, request, 10)
    assert (context.kind, context.fetches) == (SessionKind.INCREMENTAL, wants(a=7, b=2, d=4))


def test_an_unchanged_session_is_asked_for_without_a_name() -> None:
    """The request is empty but sent; with no partition at all there is none."""
    _, handler, _ = opened(wants(a=1))
    _, request = c.build_session_fetch(handler, wants(a=1))
    assert request is not None
    assert (request.to_send, request.to_forget) == (FrozenMap(), ())
    assert c.build_session_fetch(FetchSessionHandler(), FrozenMap())[1] is None
    emptied, last = c.build_session_fetch(handler, FrozenMap())
    assert last is not None
    assert last.to_forget == ((A, "id-t"),)
    assert c.build_session_fetch(emptied, FrozenMap())[1] is None


def test_a_topic_that_was_made_anew_is_another_partition() -> None:
    """Its old id is forgotten, and the leader tells everything about the new one (KIP-516). A missing id replaces none."""
    cache, handler, _ = opened(wants(a=1, b=2))
    handler, request = c.build_session_fetch(handler, FrozenMap([(A, fetch(1, "id-new")), (B, fetch(2))]))
    assert request is not None
    assert request.to_forget == ((A, "id-t"),)
    cache, context = c.new_context(cache, request, 0)
    assert tuple(context.fetches) == (B, A)
    _, response = c.update_and_generate_response(cache, context, reads((A, B)), 0, is_follower=True)
    assert tuple(response.reads) == (A,)
    unnamed = c.FetchSessionHandler(FetchMetadata(1, 1), FrozenMap([(A, fetch(1, None))]))
    _, named = c.build_session_fetch(unnamed, wants(a=1))
    assert named == SessionFetch(FetchMetadata(1, 1), wants(a=1))
    _, later = c.build_session_fetch(handler, FrozenMap([(A, fetch(1, None)), (B, fetch(2))]))
    assert later is not None
    assert later.to_forget == ()


def test_forgetting_what_is_not_in_the_session_changes_nothing() -> None:
    """Neither an unknown partition nor one under another topic id."""
    cache, _, session_id = opened(wants(a=1))
    request = SessionFetch(FetchMetadata(session_id, 1), FrozenMap(), ((B, "id-t"), (A, "id-old")))
    assert c.new_context(cache, request, 0)[1].fetches == wants(a=1)


def test_a_session_without_partitions_ends() -> None:
    """When all are forgotten the leader closes it and answers without one; the follower starts again in full."""
    cache, handler, session_id = opened(wants(a=1))
    handler, request = c.build_session_fetch(handler, FrozenMap())
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    assert (context.kind, session_id in cache.sessions) == (SessionKind.SESSIONLESS, False)
    cache, response = c.update_and_generate_response(cache, context, FrozenMap(), 0, is_follower=True)
    handler, taken = c.handle_response(handler, response)
    assert (taken, handler.next_metadata) == (True, INITIAL)


def test_a_full_request_closes_the_session_it_names() -> None:
    """And opens another, unless its epoch is the final one."""
    cache, _, session_id = opened(wants(a=1))
    for epoch, kind in ((0, SessionKind.FULL), (FINAL_EPOCH, SessionKind.SESSIONLESS)):
        closed, context = c.new_context(cache, SessionFetch(FetchMetadata(session_id, epoch), wants(a=1)), 0)
        assert (context.kind, len(closed.sessions)) == (kind, 0)
        closed, response = c.update_and_generate_response(closed, context, reads([A]), 0, is_follower=True)
        assert (response.session_id == INVALID_SESSION_ID) is (kind is SessionKind.SESSIONLESS)
        assert tuple(response.reads) == (A,)
    _, legacy = c.new_context(cache, SessionFetch(LEGACY, wants(a=1)), 0)
    assert legacy.kind is SessionKind.SESSIONLESS


@pytest.mark.parametrize(
    ("metadata", "uses_topic_ids", "error", "following"),
    [
        ((99, 1), True, FETCH_SESSION_ID_NOT_FOUND, INITIAL),
        ((1, 2), True, INVALID_FETCH_SESSION_EPOCH, FetchMetadata(1, 0)),
        ((1, 1), False, FETCH_SESSION_TOPIC_ID_ERROR, FetchMetadata(1, 0)),
    ],
)
def test_a_session_error_is_answered_with_nothing_else(
    metadata: tuple[int, int], uses_topic_ids: bool, error: int, following: FetchMetadata
) -> None:
    """Nothing is read and the session stays; the follower asks in full, closing the session if it may still be there."""
    cache, handler, _ = opened(wants(a=1))
    request = SessionFetch(FetchMetadata(*metadata), wants(a=2), uses_topic_ids=uses_topic_ids)
    after, context = c.new_context(cache, request, 0)
    assert (after, context.kind, context.fetches) == (cache, SessionKind.SESSION_ERROR, FrozenMap())
    after, response = c.update_and_generate_response(after, context, FrozenMap(), 0, is_follower=True)
    assert (after, response) == (cache, SessionResponse(error))
    handler, taken = c.handle_response(handler._replace(next_metadata=FetchMetadata(*metadata)), response)
    assert (taken, handler.next_metadata) == (False, following)


def test_session_epochs_skip_zero() -> None:
    """0 would be a full request; the final epoch stays final."""
    assert [next_session_epoch(e) for e in (0, 1, LARGEST_EPOCH, FINAL_EPOCH)] == [1, 2, 1, FINAL_EPOCH]


# Answers


@pytest.mark.parametrize(
    ("reported", "is_reported"),
    [
        (read(), False),
        (read(6), True),
        (read(log_start=1), True),
        (read(records=DATA), True),
        (read(error=OFFSET_OUT_OF_RANGE), True),
        (read(diverging_epoch=0, diverging_end=3), True),
        (read()._replace(preferred_read_replica=3), True),
    ],
)
def test_a_partition_with_nothing_new_is_left_out(reported: PartitionRead, is_reported: bool) -> None:
    """Same high watermark and log start as last told, no records, error, divergence or preferred replica."""
    cache, handler, _ = opened(wants(a=1, b=2))
    handler, request = c.build_session_fetch(handler, wants(a=1, b=2))
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    _, response = c.update_and_generate_response(
        cache, context, FrozenMap([(A, reported), (B, read())]), 0, is_follower=True
    )
    assert tuple(response.reads) == ((A,) if is_reported else ())
    assert c.handle_response(handler, response)[1]


def test_after_an_error_the_partition_is_told_again() -> None:
    """The high watermark that was told counts as unknown."""
    cached = CachedPartition(fetch(1), 5, 0)
    cached, _ = c.maybe_update_response_data(cached, read(error=OFFSET_OUT_OF_RANGE))
    assert cached.hw == UNDEFINED
    assert c.maybe_update_response_data(cached, read()) == (CachedPartition(fetch(1), 5, 0), True)


def test_a_diverging_response_counts_as_having_told_its_high_watermark() -> None:
    """The follower ignores it there, and hears of it only when it changes."""
    cached, _ = c.maybe_update_response_data(CachedPartition(fetch(1), 5, 0), read(8, diverging_epoch=0, diverging_end=3))
    assert c.maybe_update_response_data(cached, read(8)) == (cached, False)


def test_what_got_records_goes_to_the_end_of_the_session() -> None:
    """Then others come first under the byte limit; a changed high watermark alone keeps the place."""
    cache, handler, session_id = opened(wants(a=1, b=2, c=3))
    _, request = c.build_session_fetch(handler, wants(a=1, b=2, c=3))
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    given = FrozenMap([(A, read(records=DATA)), (B, read(7)), (C, read())])
    cache, _ = c.update_and_generate_response(cache, context, given, 0, is_follower=True)
    assert tuple(cache.sessions[session_id].partitions) == (B, C, A)


def test_a_request_that_comes_twice_is_noticed() -> None:
    """By its epoch; and a response that another request overtook is an error, too."""
    cache, handler, session_id = opened(wants(a=1))
    handler, request = c.build_session_fetch(handler, wants(a=1))
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    assert c.new_context(cache, request, 0)[1].error == INVALID_FETCH_SESSION_EPOCH
    overtaken, _ = c.new_context(cache, SessionFetch(FetchMetadata(session_id, 2), FrozenMap()), 0)
    assert c.update_and_generate_response(overtaken, context, reads([A]), 0, is_follower=True)[1] == SessionResponse(
        INVALID_FETCH_SESSION_EPOCH, session_id
    )
    assert c.throttled_response(overtaken, context, 9) == SessionResponse(
        INVALID_FETCH_SESSION_EPOCH, session_id, throttle_ms=9
    )
    assert c.throttled_response(cache, context, 9) == SessionResponse(NONE, session_id, throttle_ms=9)


def test_a_session_that_was_driven_out_still_answers() -> None:
    """The next request then finds none."""
    cache, handler, session_id = opened(wants(a=1))
    _, request = c.build_session_fetch(handler, wants(a=1))
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    gone, response = c.update_and_generate_response(
        c.remove_session(cache, session_id), context, reads([A], 6), 0, is_follower=True
    )
    assert (gone.sessions, response.session_id, tuple(response.reads)) == (FrozenMap(), session_id, (A,))
    assert c.throttled_response(gone, context, 9) == SessionResponse(NONE, session_id, throttle_ms=9)


def test_a_session_that_had_gone_on_before_it_was_driven_out_does_not() -> None:
    """Seen on 4.3.1: a context has the session itself, whatever the cache does. FetchContext.IncrementalFetchContext."""
    cache, handler, session_id = opened(wants(a=1))
    _, request = c.build_session_fetch(handler, wants(a=1))
    assert request is not None
    cache, context = c.new_context(cache, request, 0)
    cache, _ = c.new_context(cache, SessionFetch(FetchMetadata(session_id, 2), FrozenMap()), 0)
    context, cache = c.refresh_context(cache, context), c.remove_session(cache, session_id)
    refused = SessionResponse(INVALID_FETCH_SESSION_EPOCH, session_id)
    assert c.refresh_context(cache, context) == context
    assert c.update_and_generate_response(cache, context, reads([A], 6), 0, is_follower=True) == (cache, refused)
    assert c.throttled_response(cache, context, 9) == refused._replace(throttle_ms=9)


def test_a_request_without_a_session_has_nothing_to_keep() -> None:
    cache, context = c.new_context(FetchSessionCache(), SessionFetch(INITIAL, wants(a=1)), 0)
    assert c.refresh_context(cache, context) == context


def test_a_full_response_has_to_name_what_was_asked() -> None:
    """More or less is not taken; throttled it is empty (KIP-219) and asked again; without an id there is no session."""
    handler, request = c.build_session_fetch(FetchSessionHandler(), wants(a=1, b=2))
    assert request is not None
    _, full = c.new_context(FetchSessionCache(), request, 0)
    for response in (
        SessionResponse(reads=reads([A])),
        SessionResponse(reads=reads([A, B, C])),
        c.throttled_response(c.FetchSessionCache(), full, 5),
    ):
        assert c.handle_response(handler, response) == (handler, False)
    assert c.handle_response(handler, SessionResponse(NONE, INVALID_SESSION_ID, reads([A, B]))) == (handler, True)
    after, taken = c.handle_response(handler, SessionResponse(NONE, 7, reads([A, B])))
    assert (taken, after.next_metadata) == (True, FetchMetadata(7, 1))


def test_an_incremental_response_names_nothing_but_the_session() -> None:
    """Something else closes the session; without an id the leader has closed it; otherwise it goes on."""
    _, handler, session_id = opened(wants(a=1))
    wrong, taken = c.handle_response(handler, SessionResponse(NONE, session_id, reads([B])))
    assert (taken, wrong.next_metadata) == (False, FetchMetadata(session_id, 0))
    closed, taken = c.handle_response(handler, SessionResponse())
    assert (taken, closed.next_metadata) == (True, INITIAL)
    after, taken = c.handle_response(handler, SessionResponse(NONE, session_id))
    assert (taken, after.next_metadata) == (True, FetchMetadata(session_id, 2))
    assert c.handle_error(after).next_metadata == FetchMetadata(session_id, 0)
