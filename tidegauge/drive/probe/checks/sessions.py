"""Checks of fetch sessions (KIP-227): a response in a session has the partitions that changed, and no others.

A script yields an Expectation (a request and the fields that its response must have) and is sent the fields of the response.
A full fetch names all partitions and may open a session; an incremental fetch is a request in one. Of the fields expected,
REPORTED is the tuple of the partitions in the response; if it is a single one, all others are the fields of that partition.

A ProbePartition knows what its log must have: `start`, `end` (the log end), `batches` (a pair of base and last offset each);
`fetch` makes a fetch from an offset. `append_batch` writes one record to it, so that record is at `end - 1`. A ProbeSession
makes the requests of a session: `next` the next incremental fetch, which names the given fetches, by default nothing; `at`
the same with any session epoch; `closing` and `replaced` full fetches that end the session.

Rules of this file

1. A broker need not have sessions. Where it opens none, the checks of what happens in one are not supported.
2. A session begins at the log end and one batch is written at a time: no response leaves a batch for later (KIP-74).
3. A broker that does not refuse, or diverge, in a full fetch fails that check; whether it does so in a session is undecided.
"""

from collections.abc import Callable, Iterable
from typing import Any

from tidegauge.drive.probe.check import REPORTED, Check, Expectation, FailedError, Script, one_request, session_response
from tidegauge.drive.probe.fixtures import Fixtures, append_batch
from tidegauge.drive.probe.partition import BY_NAME, ProbePartition, ProbeSession
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.errors import error_text
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID, LARGEST_EPOCH
from tidegauge.impl.rules import end_offset_for, fetch_error

CONTEXT, LEFT_OUT = "FetchManager#newContext", "FetchSession.CachedPartition#maybeUpdateResponseData"
UPDATE, RESPONSE = "FetchSession#update", "FetchContext#updateAndGenerateResponseData"
NEEDS = {"Fetch": 7}
UNUSED_ID = 1_977_326_743
"""A session id that is not the probe's. A real session with it is not harmed: its next epoch would have to be the largest,
which takes 68 years."""

TURNS = 10
"""Responses in which two partitions must take turns: a broker that picks one at random passes in one of 512 runs only."""

NOT_THERE = 7
"""A partition that the topic does not have."""


def _expect_partitions(
    session: ProbeSession, *partitions: ProbePartition, call: WireRequest | None = None, **fields: Any
) -> Expectation:
    """Expect that an incremental fetch reports exactly these partitions, which may be none.

    `call`: the fetch, by default the next one of the session without changes; `fields`: more fields of the response.
    """
    call = session.next() if call is None else call
    return Expectation(session.connection, call, _session_fields(call, session.id, *partitions) | fields)


def _full(partition: ProbePartition, call: WireRequest, *partitions: ProbePartition) -> Expectation:
    """Expect that `call` gets a response outside of any session (session id 0) with exactly these partitions.

    The call is sent to the leader of `partition`.
    """
    return Expectation(partition.connection, call, _session_fields(call, INVALID_SESSION_ID, *partitions))


def _session_fields(call: WireRequest, session_id: int, *partitions: ProbePartition) -> WireMessage:
    """Return the fields of a response, without an error, to the fetch `call` that reports exactly these partitions."""
    reported = tuple(sorted(partition.place(call.version) for partition in partitions))
    return {"errorCode": errors.NONE, "sessionId": session_id, REPORTED: reported}


def _refused(session: ProbeSession, call: WireRequest, code: int) -> Expectation:
    """Expect that `call`, a fetch in the session, gets an error code and no partitions."""
    return Expectation(session.connection, call, {"errorCode": code, REPORTED: ()})


def _read_fields(partition: ProbePartition, offset: int) -> WireMessage:
    """Return the fields of a response that reports one partition, read from an offset on."""
    # From inside a batch the whole batch is returned.
    batches = [(base, last) for base, last in partition.batches if last >= offset]
    return {"highWatermark": partition.end, "logStartOffset": partition.start, "batches": batches}


def _begun(fixtures: Fixtures) -> tuple[ProbePartition, ProbeSession]:
    """Return a new partition with one record, and a new session that fetches it from its log end on."""
    partition = fixtures.fresh()
    append_batch(partition)
    return partition, fixtures.session(partition.connection, partition.fetch(partition.end))


# ---------------------------------------------------------------------------------------------------------------------
# How a session begins and ends


def _not_asked_for(fixtures: Fixtures) -> Expectation:
    """Expect that a full fetch with the final epoch, which asks for no session, reads and opens none."""
    partition = fixtures.log()
    return _full(partition, partition.fetch(0, epoch=FINAL_EPOCH), partition)


def _asked_for(fixtures: Fixtures) -> Script:
    """Expect that a full fetch that asks for a session reads; the broker may open one."""
    partition = fixtures.fresh()
    append_batch(partition)
    yield from _opens(fixtures, partition, partition.fetch(0, epoch=INITIAL_EPOCH))


def _opens(fixtures: Fixtures, partition: ProbePartition, call: WireRequest) -> Script:
    """Expect that `call`, a full fetch of one partition that asks for a session, reads; the broker may open a session."""
    offset = call.body["topics"][0]["partitions"][0]["fetchOffset"]
    expected = {"errorCode": errors.NONE, REPORTED: (partition.place(call.version),), **_read_fields(partition, offset)}
    response = yield Expectation(partition.connection, call, expected)
    # A session that the broker did open has to be closed at the end.
    if response["sessionId"] != INVALID_SESSION_ID:
        fixtures.opened(partition.connection, call, response)


def _closed(fixtures: Fixtures) -> Script:
    """Expect that a session is gone after a full fetch with the final epoch."""
    partition, session = _begun(fixtures)
    yield _full(partition, session.closing())  # names no partition
    yield _refused(session, session.next(), errors.FETCH_SESSION_ID_NOT_FOUND)


def _replaced(fixtures: Fixtures) -> Script:
    """Expect that a full fetch that names a session closes it, and may open another in its place."""
    partition, session = _begun(fixtures)
    yield from _opens(fixtures, partition, session.replaced())
    yield _refused(session, session.next(), errors.FETCH_SESSION_ID_NOT_FOUND)


def _gone(fixtures: Fixtures) -> Script:
    """Expect that a full fetch that names a session that is gone, to close or to replace it, is served all the same."""
    partition, session = _begun(fixtures)
    session.connection.request(session.closing())
    # Now that it is gone, the same request again.
    yield _full(partition, session.closing())
    yield from _opens(fixtures, partition, session.replaced())


def _empty(fixtures: Fixtures) -> Script:
    """Expect that a session ends when its last partition is forgotten."""
    partition, session = _begun(fixtures)
    # The response is in no session: none is left.
    yield _full(partition, session.next(forget=[partition]))
    yield _refused(session, session.next(), errors.FETCH_SESSION_ID_NOT_FOUND)
    session.is_open = False  # it need not be closed at the end


def _two(fixtures: Fixtures) -> Script:
    """Expect that two sessions on one connection have ids and states of their own."""
    partition, session = _begun(fixtures)
    second = fixtures.session(partition.connection, partition.fetch(partition.end))
    if session.id == second.id:
        raise FailedError(f"sessionId: expected another than {session.id}; seen {second.id}")
    append_batch(partition)
    record = _read_fields(partition, partition.end - 1)
    yield _expect_partitions(session, partition, **record)
    # The first session is one request ahead now: a broker with one epoch for both would refuse the second.
    session.connection.request(session.next())
    yield _expect_partitions(second, partition, **record)


# ---------------------------------------------------------------------------------------------------------------------
# Which session epochs are served


def _unknown(fixtures: Fixtures) -> Expectation:
    """Expect that a session id that was never given out is refused."""
    partition = fixtures.log()
    call = partition.fetch(partition.end, session=UNUSED_ID, epoch=LARGEST_EPOCH)
    return Expectation(partition.connection, call, {"errorCode": errors.FETCH_SESSION_ID_NOT_FOUND, REPORTED: ()})


def _wrong_epoch(fixtures: Fixtures) -> Script:
    """Expect that session epochs other than 2, the next one, are refused: a used one, later ones, a negative one."""
    # Each epoch in a session of its own: what a refusal does to a session is another check.
    partition = fixtures.fresh()
    for epoch in (1, 3, LARGEST_EPOCH, -5):
        session = fixtures.session(partition.connection, partition.fetch(0))
        session.connection.request(session.next())  # has epoch 1
        yield _refused(session, session.at(epoch), errors.INVALID_FETCH_SESSION_EPOCH)


def _goes_on(fixtures: Fixtures) -> Script:
    """Expect that a session goes on, with the same next epoch, after a request with a wrong epoch was refused."""
    partition, session = _begun(fixtures)
    refusal = session.connection.request(session.at(session.epoch + 1))
    # That a wrong epoch is not refused is the failure of another check.
    if refusal["errorCode"] == errors.NONE:
        raise UndecidedError("a wrong session epoch is not refused: there is no refusal to go on from")
    append_batch(partition)
    yield _expect_partitions(session, partition, **_read_fields(partition, partition.end - 1))


def _by_name_or_by_id(fixtures: Fixtures) -> Script:
    """Expect that a session that began with topic ids refuses a fetch with topic names, and the other way round."""
    partition = fixtures.fresh()
    # Fetch names topics by id since version 13, by name up to BY_NAME.
    by_id, by_name = partition.version("Fetch", least=13), partition.version("Fetch", at_most=BY_NAME)
    for opening_version, other_version in ((by_id, by_name), (by_name, by_id)):
        session = fixtures.session(partition.connection, partition.fetch(0, version=opening_version))
        call = partition.fetch(0, session=session.id, epoch=session.epoch, version=other_version)
        yield _refused(session, call, errors.FETCH_SESSION_TOPIC_ID_ERROR)


# ---------------------------------------------------------------------------------------------------------------------
# Which partitions are in a response


def _unchanged(fixtures: Fixtures) -> Script:
    """Expect that a partition that has not changed is in no response, whether the request names it or not."""
    partition, session = _begun(fixtures)
    yield _expect_partitions(session)
    yield _expect_partitions(session, call=session.next(partition.fetch(partition.end)))
    yield _expect_partitions(session)


def _records(fixtures: Fixtures) -> Script:
    """Expect new records in each response, until a request names a later offset: the session keeps the last one named."""
    partition, session = _begun(fixtures)
    append_batch(partition)
    # Without `call` a fetch names nothing, so the session goes on at the offset before the new record.
    for _ in range(2):
        yield _expect_partitions(session, partition, **_read_fields(partition, partition.end - 1))
    yield _expect_partitions(session, call=session.next(partition.fetch(partition.end)))


def _high_watermark(fixtures: Fixtures) -> Script:
    """Expect that a session reports a new high watermark in one response only, without records."""
    partition, session = _begun(fixtures)
    for _ in range(2):
        append_batch(partition)
        # The fetch names the new log end, so that there are no records to report.
        call = session.next(partition.fetch(partition.end))
        yield _expect_partitions(session, partition, call=call, **_read_fields(partition, partition.end))
        yield _expect_partitions(session)


def _log_start(fixtures: Fixtures) -> Script:
    """Expect that a log start that has moved is reported in one response only, without records."""
    partition, session = _begun(fixtures)
    partition.connection.request(partition.delete_records(partition.end))
    partition.start = partition.end
    yield _expect_partitions(session, partition, **_read_fields(partition, partition.end))
    yield _expect_partitions(session)


def _others(fixtures: Fixtures) -> Script:
    """Expect that of two partitions in a session only the one that was written to is reported."""
    first, second = fixtures.pair()
    for changed in (first, second):
        session = fixtures.session(first.connection, first.fetch(first.end), second.fetch(second.end))
        append_batch(changed)
        yield _expect_partitions(session, changed, **_read_fields(changed, changed.end - 1))


def _added(fixtures: Fixtures) -> Script:
    """Expect that a partition that is new to a session is reported once, although nothing about it has changed."""
    first, second = fixtures.pair()
    session = fixtures.session(first.connection, first.fetch(0))
    yield _expect_partitions(session, second, call=session.next(second.fetch(0)), **_read_fields(second, 0))
    yield _expect_partitions(session)


def _forgotten(fixtures: Fixtures) -> Script:
    """Expect that a partition that leaves the session is reported no more, and the other one still is."""
    first, second = fixtures.pair()
    session = fixtures.session(first.connection, first.fetch(0), second.fetch(0))
    append_batch(second)
    yield _expect_partitions(session, call=session.next(forget=[second]))
    append_batch(first)
    yield _expect_partitions(session, first, **_read_fields(first, 0))


def _each_time(
    make_fetch: Callable[[ProbePartition], WireRequest], expected_fields: Callable[[ProbePartition], WireMessage]
) -> Callable[[Fixtures], Script]:
    """Make a script in which every incremental fetch gets what the full fetch got: an error, or a divergence.

    `make_fetch` returns the full fetch, `expected_fields` the fields of its response; both are given the partition.
    """

    def script(fixtures: Fixtures) -> Script:
        """Open a session with the fetch, and expect the fields of the first response in two more, which name nothing."""
        partition = fixtures.log()
        session, wanted = fixtures.session(partition.connection, make_fetch(partition)), expected_fields(partition)
        to_full_fetch = session_response(session.opened)
        # Rule 3 of this file.
        if any(to_full_fetch.get(name) != value for name, value in wanted.items()):
            raise UndecidedError(f"a full fetch is answered otherwise: {error_text(to_full_fetch['errorCode'])}")
        for _ in range(2):
            call = session.next()
            reported = to_full_fetch[REPORTED]
            expected = {"errorCode": wanted["errorCode"], "sessionId": session.id, REPORTED: reported, **wanted}
            yield Expectation(session.connection, call, expected)

    return script


def _diverging(partition: ProbePartition) -> WireMessage:
    """Return the fields of a response to a fetch beyond the log end in the leader's own epoch: the end of that epoch."""
    epoch_and_end = end_offset_for(*partition.entries, partition.end, partition.epoch)
    return {"errorCode": errors.NONE, "divergingEpoch": epoch_and_end, "batches": []}


def _fenced(partition: ProbePartition) -> WireMessage:
    """Return the fields of a response to a fetch with a current leader epoch that the leader does not know yet."""
    # The epoch in the request, that of the leader; the replica leads, a consumer counts as assigned, epochs are compared.
    return {"errorCode": fetch_error(partition.epoch + 1, partition.epoch, serves=True, assigned=True, fences=True)}


def _turns(fixtures: Fixtures) -> Script:
    """Expect that two partitions with a batch each are reported in turn where max bytes has room for one batch."""
    first, second = fixtures.pair()
    for partition in (first, second):
        append_batch(partition)
    # One byte has room for no batch, but the first one is always returned (KIP-74).
    session = fixtures.session(first.connection, *(partition.fetch(0, max_bytes=1) for partition in (first, second)))
    call = session.next()
    # Values of REPORTED, each a tuple with one partition. Either may be first; from then on only the other may be next.
    both = {(partition.place(call.version),) for partition in (first, second)}
    allowed: Iterable[tuple[str]] = both
    for _ in range(TURNS):
        # Each partition has one record, at offset 0, and stays there: no fetch names a later offset.
        fields = yield _expect_partitions(session, call=call, **{REPORTED: frozenset(allowed)}, batches=[(0, 0)])
        allowed, call = both - {fields[REPORTED]}, session.next()


def _row(name: str, source: str, says: str, script: Callable[[Fixtures], Script], rule: str = "", **needs: int) -> Check:
    """Make a check of the group "sessions"; `needs`: lowest versions of requests, besides Fetch 7 for sessions."""
    return Check(f"sessions.{name}", rule, source, says, script, NEEDS | needs)


SESSION_CHECKS = (
    _row(
        "not-asked-for",
        CONTEXT,
        "A full fetch with session epoch -1 opens no session: session id 0.",
        one_request(_not_asked_for),
    ),
    _row(
        "asked-for",
        "FullFetchContext#updateAndGenerateResponseData",
        "A full fetch with session epoch 0 is served like any other, whether it opens a session or not.",
        _asked_for,
        "FETCH-06",
    ),
    _row(
        "unknown-id",
        CONTEXT,
        "An incremental fetch with an unknown session id is refused with FETCH_SESSION_ID_NOT_FOUND, also by a "
        "broker that keeps no sessions.",
        one_request(_unknown),
    ),
    _row(
        "wrong-epoch",
        CONTEXT,
        "Another session epoch than the next one is refused with INVALID_FETCH_SESSION_EPOCH.",
        _wrong_epoch,
    ),
    _row("goes-on-after-a-refusal", CONTEXT, "A refusal changes nothing: the next epoch stays the next.", _goes_on),
    _row(
        "by-name-or-by-id",
        CONTEXT,
        "A session goes by topic ids or by names as it began; else FETCH_SESSION_TOPIC_ID_ERROR (KIP-516).",
        _by_name_or_by_id,
        Fetch=13,
    ),
    _row("closed", CONTEXT, "Session epoch -1 closes the session: FETCH_SESSION_ID_NOT_FOUND from then on.", _closed),
    _row("replaced", CONTEXT, "A full fetch closes the session that it names.", _replaced),
    _row("gone", CONTEXT, "A full fetch is served even if it names an unknown session.", _gone),
    _row("two", RESPONSE, "Two sessions have two ids; each has its own epochs and its own responses.", _two),
    _row("unchanged", LEFT_OUT, "An incremental fetch does not return a partition that has not changed.", _unchanged),
    _row(
        "records",
        LEFT_OUT,
        "An incremental fetch returns the records from the offset on that was named last.",
        _records,
        "FETCH-06",
    ),
    _row(
        "high-watermark",
        LEFT_OUT,
        "An incremental fetch returns a high watermark that moved, also without records.",
        _high_watermark,
        "FETCH-08",
    ),
    _row(
        "log-start",
        LEFT_OUT,
        "An incremental fetch returns a log start that moved, also without records.",
        _log_start,
        "FETCH-08",
        DeleteRecords=0,
    ),
    _row(
        "error-each-time",
        LEFT_OUT,
        "An error is returned in every response, though it is the same.",
        _each_time(lambda p: p.fetch(0, index=NOT_THERE), lambda _: {"errorCode": errors.UNKNOWN_TOPIC_OR_PARTITION}),
    ),
    _row(
        "fenced-each-time",
        UPDATE,
        "A session keeps the leader epoch of the request: each fetch in it is fenced (KAFKA-9338).",
        _each_time(lambda p: p.fetch(0, current=p.epoch + 1), _fenced),
        "FENCE-01",
        Fetch=9,
    ),
    _row(
        "divergence-each-time",
        LEFT_OUT,
        "A session keeps the last fetched epoch, and a divergence is returned in every response (KAFKA-9434).",
        _each_time(lambda p: p.fetch(p.end + 1, last=p.epoch), _diverging),
        "FETCH-05",
        Fetch=12,
    ),
    _row("others", LEFT_OUT, "Of two partitions, the one that changed is returned.", _others),
    _row("added", UPDATE, "An incremental fetch adds the partitions that it names.", _added),
    _row("forgotten", UPDATE, "A partition that a fetch forgets is no longer in the session.", _forgotten),
    _row(
        "empty",
        CONTEXT,
        "A session ends when its last partition is forgotten: session id 0, then FETCH_SESSION_ID_NOT_FOUND.",
        _empty,
    ),
    _row(
        "turns",
        "IncrementalFetchContext.PartitionIterator#next",
        "A partition that returned records comes last in the next response, so that others get their turn under max bytes.",
        _turns,
    ),
)
