"""Checks of fetch sessions against the sessions of `impl`: they pass, and one thing wrong fails what is about it."""

from collections.abc import Callable

import pytest

from tests.drive.probe.keeping import Contexts, Keeping, Responses, answered
from tests.drive.probe.recorded import Recording
from tidegauge.drive.probe.run import CheckVerdict, ProbeRun, probe, select_checks
from tidegauge.impl.errors import FETCH_SESSION_ID_NOT_FOUND, INVALID_FETCH_SESSION_EPOCH
from tidegauge.impl.fetch import fetch_session as s
from tidegauge.impl.fetch.fetch_session import (
    FINAL_EPOCH,
    INVALID_SESSION_ID,
    CachedPartition,
    FetchContext,
    FetchSessionCache,
    Reads,
    SessionFetch,
    SessionKind,
    SessionResponse,
    next_session_epoch,
)
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import PartitionRead
from tidegauge.impl.rules import UNDEFINED

RIGHT = s.maybe_update_response_data
Context = tuple[FetchSessionCache, FetchContext]
Respond = tuple[FetchSessionCache, SessionResponse]
Reported = Callable[[CachedPartition, PartitionRead], bool]


@pytest.fixture
def broker(recording: Recording) -> Keeping:
    return Keeping(recording)


def probed(recording: Recording, broker: Keeping, *only: str) -> ProbeRun:
    return probe(broker.dial, recording.place, recording.seed, select_checks(only), pause=lambda _: None)


def that_are(found: ProbeRun, verdict: CheckVerdict) -> set[str]:
    return {one.check.id.removeprefix("sessions.") for one in found.outcomes if one.verdict is verdict}


def test_the_sessions_of_impl_pass(recording: Recording, broker: Keeping) -> None:
    found = probed(recording, broker, "sessions")
    assert [(one.check.id, one.says) for one in found.outcomes if one.verdict is not CheckVerdict.PASS] == []
    assert len(found.outcomes) > 20


def test_a_broker_that_keeps_no_sessions_fails_nothing(recording: Recording, broker: Keeping) -> None:
    """It serves full fetches, and refuses others."""
    broker.respond = without_sessions
    found = probed(recording, broker, "sessions")
    assert that_are(found, CheckVerdict.PASS) == {"not-asked-for", "asked-for", "unknown-id"}
    assert that_are(found, CheckVerdict.NOT_SUPPORTED) == {
        one.id.removeprefix("sessions.") for one in select_checks(["sessions"])
    } - {
        "not-asked-for",
        "asked-for",
        "unknown-id",
    }
    assert {one.says for one in found.outcomes} - {""} == {
        "a full fetch that asks for a session is given none, as it may: the session id is 0"
    }


def without_sessions(cache: FetchSessionCache, context: FetchContext, reads: Reads) -> Respond:
    cache, response = answered(cache, context, reads)
    return FetchSessionCache(), response._replace(session_id=INVALID_SESSION_ID)


def test_every_session_is_closed_in_the_end(recording: Recording, broker: Keeping) -> None:
    """Whatever the checks did with it; what is closed is not closed again."""
    kept: list[int] = []
    twice: list[int] = []

    def closing(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
        wanted = request.metadata.session_id
        if request.metadata.epoch == FINAL_EPOCH and not request.to_send and wanted not in cache.sessions:
            twice.append(wanted)
        after, context = s.new_context(cache, request, now)
        return after, context

    def noting(cache: FetchSessionCache, context: FetchContext, reads: Reads) -> Respond:
        after, response = answered(cache, context, reads)
        kept[:] = after.sessions
        return after, response

    broker.contexts, broker.respond = closing, noting
    probed(recording, broker, "sessions")
    assert kept == []
    assert len(twice) == 1, "by the check that asks what comes of it"


# ---------------------------------------------------------------------------------------------------------------------
# One thing that is wrong


def epochs_do_not_matter(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    session = cache.sessions.get(request.metadata.session_id)
    if session is None or request.metadata.is_full:
        return s.new_context(cache, request, now)
    return s.new_context(cache, request._replace(metadata=request.metadata._replace(epoch=session.epoch)), now)


def a_refusal_ends_it(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    if context.error == INVALID_FETCH_SESSION_EPOCH:
        after = after._replace(sessions=after.sessions.without(request.metadata.session_id))
    return after, context


def a_refusal_counts(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    if context.error == INVALID_FETCH_SESSION_EPOCH:
        session = cache.sessions[request.metadata.session_id]
        after = after._replace(
            sessions=after.sessions.put(session.id, session._replace(epoch=next_session_epoch(session.epoch)))
        )
    return after, context


def nothing_is_forgotten(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    return s.new_context(cache, request._replace(to_forget=()), now)


def nothing_is_added(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    session = cache.sessions.get(request.metadata.session_id)
    if session is None or request.metadata.is_full:
        return s.new_context(cache, request, now)
    known = FrozenMap((tp, fetch) for tp, fetch in request.to_send.items() if tp in session.partitions)
    return s.new_context(cache, request._replace(to_send=known), now)


def nothing_is_changed(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    session = cache.sessions.get(request.metadata.session_id)
    if session is None or request.metadata.is_full:
        return s.new_context(cache, request, now)
    new = FrozenMap((tp, fetch) for tp, fetch in request.to_send.items() if tp not in session.partitions)
    return s.new_context(cache, request._replace(to_send=new), now)


def nobody_closes(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    return cache if request.metadata.epoch == FINAL_EPOCH else after, context


def nobody_replaces(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    return cache if request.metadata.epoch == 0 else after, context


def an_empty_one_stays(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    session = cache.sessions.get(request.metadata.session_id)
    if session is None or context.kind is not SessionKind.SESSIONLESS or request.metadata.is_full:
        return after, context
    empty = session._replace(partitions=FrozenMap(), epoch=next_session_epoch(session.epoch))
    kept = cache._replace(sessions=cache.sessions.put(session.id, empty))
    return kept, FetchContext(SessionKind.INCREMENTAL, session=empty)


def an_unknown_one_is_served(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    after, context = s.new_context(cache, request, now)
    if context.error == FETCH_SESSION_ID_NOT_FOUND:
        context = FetchContext(SessionKind.SESSIONLESS, request.to_send)
    return after, context


def one_that_is_gone_is_refused(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    if request.metadata.session_id not in (INVALID_SESSION_ID, *cache.sessions):
        return cache, FetchContext(SessionKind.SESSION_ERROR, error=FETCH_SESSION_ID_NOT_FOUND)
    return s.new_context(cache, request, now)


def names_and_ids_are_mixed(cache: FetchSessionCache, request: SessionFetch, now: int) -> Context:
    session = cache.sessions.get(request.metadata.session_id)
    mixed = request.uses_topic_ids if session is None else session.uses_topic_ids
    return s.new_context(cache, request._replace(uses_topic_ids=mixed), now)


def all_have_one_id(cache: FetchSessionCache, context: FetchContext, reads: Reads) -> Respond:
    return answered(cache._replace(next_id=1), context, reads)


def nobody_takes_turns(cache: FetchSessionCache, context: FetchContext, reads: Reads) -> Respond:
    after, response = answered(cache, context, reads)
    if context.session is not None and (session := after.sessions.get(context.session.id)) is not None:
        before = context.session.partitions
        order = FrozenMap((tp, session.partitions[tp]) for tp in before)
        after = after._replace(sessions=after.sessions.put(session.id, session._replace(partitions=order)))
    return after, response


def telling(reported: Reported) -> Callable[[CachedPartition, PartitionRead], tuple[CachedPartition, bool]]:
    """A partition is told when so decided; what was told last is kept as it is."""
    return lambda cached, read: (RIGHT(cached, read)[0], reported(cached, read))


def is_other(cached: CachedPartition, read: PartitionRead) -> bool:
    """Than was told last."""
    return (read.response.hw, read.response.log_start) != (cached.hw, cached.log_start)


def without_records(read: PartitionRead) -> PartitionRead:
    return read._replace(response=read.response._replace(records=()))


def is_reported(cached: CachedPartition, read: PartitionRead) -> bool:
    return RIGHT(cached, read)[1]


CONTEXTS = [
    (epochs_do_not_matter, {"wrong-epoch"}),
    (a_refusal_ends_it, {"goes-on-after-a-refusal"}),
    (a_refusal_counts, {"goes-on-after-a-refusal"}),
    (names_and_ids_are_mixed, {"by-name-or-by-id"}),
    (nobody_closes, {"closed"}),
    (nobody_replaces, {"replaced"}),
    (an_unknown_one_is_served, {"unknown-id", "closed", "replaced", "empty"}),
    (one_that_is_gone_is_refused, {"gone"}),
    (an_empty_one_stays, {"empty"}),
    (nothing_is_forgotten, {"forgotten", "empty"}),
    (nothing_is_added, {"added"}),
    (nothing_is_changed, {"records", "high-watermark"}),
]
RESPONSES = [(all_have_one_id, {"two", "replaced"}), (nobody_takes_turns, {"turns"})]
LEAVES_OUT = {"unchanged", "records", "high-watermark", "log-start", "others", "added", "forgotten", "turns"}
TELLINGS: list[tuple[str, Reported, set[str]]] = [
    ("everything", lambda _cached, _read: True, LEAVES_OUT),
    ("no high watermark", lambda cached, read: is_reported(cached._replace(hw=read.response.hw), read), {"high-watermark"}),
    (
        "no log start",
        lambda cached, read: is_reported(cached._replace(log_start=read.response.log_start), read),
        {"log-start"},
    ),
    (
        "an error once",
        lambda cached, read: is_reported(cached, read) if not read.response.error else is_other(cached, read),
        {"error-each-time", "fenced-each-time"},
    ),
    (
        "no divergence",
        lambda cached, read: is_other(cached, read) if read.response.is_diverging else is_reported(cached, read),
        {"divergence-each-time"},
    ),
    ("no records", lambda cached, read: is_reported(cached, without_records(read)), {"records", "turns"}),
]


@pytest.mark.parametrize(("wrong", "fails"), CONTEXTS)
def test_a_request_that_is_taken_wrong_fails_what_is_about_it(
    recording: Recording, broker: Keeping, wrong: Contexts, fails: set[str]
) -> None:
    broker.contexts = wrong
    assert that_are(probed(recording, broker, "sessions"), CheckVerdict.FAIL) == fails


@pytest.mark.parametrize(("wrong", "fails"), RESPONSES)
def test_a_session_that_is_kept_wrong_fails_what_is_about_it(
    recording: Recording, broker: Keeping, wrong: Responses, fails: set[str]
) -> None:
    broker.respond = wrong
    assert that_are(probed(recording, broker, "sessions"), CheckVerdict.FAIL) == fails


@pytest.mark.parametrize(("reported", "fails"), [one[1:] for one in TELLINGS], ids=[one[0] for one in TELLINGS])
def test_what_is_told_wrong_fails_what_is_about_it(
    recording: Recording, broker: Keeping, monkeypatch: pytest.MonkeyPatch, reported: Reported, fails: set[str]
) -> None:
    monkeypatch.setattr(s, "maybe_update_response_data", telling(reported))
    assert that_are(probed(recording, broker, "sessions"), CheckVerdict.FAIL) == fails


@pytest.mark.parametrize(
    ("forgets", "fails"),
    [
        ({"current_leader_epoch": UNDEFINED}, {"fenced-each-time"}),
        ({"last_fetched_epoch": UNDEFINED}, {"divergence-each-time"}),
    ],
)
def test_an_epoch_that_a_session_forgets_fails_what_is_about_it(
    recording: Recording, broker: Keeping, forgets: dict[str, int], fails: set[str]
) -> None:
    """As KAFKA-9338."""
    broker.recalls = lambda request: request._replace(**forgets)
    assert that_are(probed(recording, broker, "sessions"), CheckVerdict.FAIL) == fails
