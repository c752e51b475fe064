"""Checks of where a leader epoch ends, by OffsetsForLeaderEpoch and by a fetch that may diverge (KIP-101, KIP-279, KIP-595).

The expected responses are computed by `impl.rules.end_offset_for` and `fetch_decision` from what was written.
"""

from collections.abc import Callable, Iterable

from tidegauge.drive.probe.check import Check, Expectation, ExpectedFields, Script, one_request
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.rules import DIVERGING, OUT_OF_RANGE, UNDEFINED, fetch_decision, request_error

TABLE, READ = "LeaderEpochFileCache#endOffsetFor", "Partition#readRecords"
OFFSETS, FETCH = {"OffsetForLeaderEpoch": 2}, {"Fetch": 12}

Where = Callable[[Fixtures], ProbePartition]
EpochsToAsk = Callable[[ProbePartition], Iterable[int]]
Pairs = Callable[[ProbePartition], Iterable[tuple[int, int]]]


def ends(where: Where, epochs: EpochsToAsk) -> Callable[[Fixtures], Script]:
    """Make a script that asks where some epochs end."""

    def script(fixtures: Fixtures) -> Script:
        partition = where(fixtures)
        for epoch in epochs(partition):
            epoch_found, end = partition.end_offset(epoch)
            expected = {"errorCode": errors.NONE, "leaderEpoch": epoch_found, "endOffset": end}
            yield Expectation(partition.connection, partition.offsets_for_leader_epoch(epoch), expected)

    return script


def diverges(where: Where, pairs: Pairs) -> Callable[[Fixtures], Script]:
    """Make a script of fetches with (last fetched epoch, offset)."""

    def script(fixtures: Fixtures) -> Script:
        partition = where(fixtures)
        for last, offset in pairs(partition):
            yield Expectation(
                partition.connection, partition.fetch(offset, last=last), expected_fetch(partition, last, offset)
            )

    return script


def expected_fetch(partition: ProbePartition, last: int, offset: int) -> ExpectedFields:
    """Return the fields of the response that a fetch must get."""
    decision, epoch, end = fetch_decision(*partition.entries, partition.start, partition.end, offset, last)
    if decision == OUT_OF_RANGE:
        return {"errorCode": errors.OFFSET_OUT_OF_RANGE, "divergingEpoch": None, "batches": []}
    if decision == DIVERGING:
        return {"errorCode": errors.NONE, "divergingEpoch": (epoch, end), "batches": []}
    records = [batch for batch in partition.batches if batch[1] >= offset]
    return {"errorCode": errors.NONE, "divergingEpoch": None, "batches": records}


def _all(partition: ProbePartition) -> Iterable[int]:
    return range(partition.epoch + 3)


def _everywhere(partition: ProbePartition) -> Iterable[tuple[int, int]]:
    """Return every pair of an epoch and an offset at which a fetch is answered in another way than at its neighbours."""
    # Each epoch at each offset where something begins or ends, and one offset before and after it.
    places = {0, partition.end, *partition.entries.starts, partition.start}
    offsets = sorted({place + step for place in places for step in (-1, 0, 1)} - {-1})
    return [(epoch, offset) for epoch in _all(partition) for offset in offsets]


EPOCH_CHECKS = (
    Check(
        "epochs.undefined",
        "EPOCH-05",
        TABLE,
        "The undefined epoch has no end: epoch -1, offset -1.",
        ends(Fixtures.log, lambda _: (UNDEFINED,)),
        OFFSETS,
    ),
    Check(
        "epochs.current",
        "EPOCH-05",
        TABLE,
        "The leader's own epoch ends at its log end.",
        ends(Fixtures.log, lambda p: (p.epoch,)),
        OFFSETS,
    ),
    Check(
        "epochs.not-begun",
        "EPOCH-05",
        TABLE,
        "An epoch that the leader does not know has no end.",
        ends(Fixtures.log, lambda p: (p.epoch + 1, p.epoch + 2, p.epoch + 1000)),
        OFFSETS,
    ),
    Check(
        "epochs.empty-log",
        "EPOCH-05",
        TABLE,
        "An epoch without records ends where it began.",
        ends(Fixtures.fresh, lambda p: (p.epoch, p.epoch + 1)),
        OFFSETS,
    ),
    Check(
        "epochs.after-delete-records",
        "EPOCH-05",
        TABLE,
        "A log start that moved changes no epoch's end.",
        ends(Fixtures.moved, _all),
        OFFSETS | {"DeleteRecords": 0},
    ),
    Check(
        "epochs.every-epoch",
        "EPOCH-05",
        TABLE,
        "An epoch that is over ends where the next one that the leader knows begins; one that it never had is answered with "
        "the largest below it.",
        ends(Fixtures.epochs, _all),
        OFFSETS,
    ),
    Check(
        "divergence.same-epoch-below-the-end",
        "FETCH-05",
        READ,
        "A fetch with the leader's epoch, from within its log, reads.",
        diverges(Fixtures.log, lambda p: [(p.epoch, offset) for offset in range(p.end)]),
        FETCH,
    ),
    Check(
        "divergence.same-epoch-at-the-end",
        "FETCH-05",
        READ,
        "A fetch with the leader's epoch, at its log end, reads nothing and does not diverge.",
        diverges(Fixtures.log, lambda p: [(p.epoch, p.end)]),
        FETCH,
    ),
    Check(
        "divergence.same-epoch-beyond-the-end",
        "FETCH-05",
        READ,
        "A fetch with the leader's epoch, beyond its log end, gets the epoch's end: not OFFSET_OUT_OF_RANGE.",
        diverges(Fixtures.log, lambda p: [(p.epoch, p.end + 1), (p.epoch, p.end + 1000)]),
        FETCH,
    ),
    Check(
        "divergence.epoch-not-begun",
        "FETCH-05",
        READ,
        "A fetch with an epoch that the leader does not know is out of range.",
        diverges(Fixtures.log, lambda p: [(p.epoch + 1, offset) for offset in (0, p.end)]),
        FETCH,
    ),
    Check(
        "divergence.without-an-epoch",
        "FETCH-05",
        READ,
        "A fetch without an epoch, beyond the log end, is out of range and never diverges.",
        diverges(Fixtures.log, lambda p: [(UNDEFINED, p.end + 1), (UNDEFINED, p.end)]),
        FETCH,
    ),
    Check(
        "divergence.below-the-log-start",
        "FETCH-05",
        READ,
        "Below the log start a fetch is out of range, whatever epoch it carries (KAFKA-12996).",
        diverges(Fixtures.moved, lambda p: [(p.epoch, offset) for offset in range(p.start)]),
        FETCH | {"DeleteRecords": 0},
    ),
    Check(
        "divergence.every-epoch-and-offset",
        "FETCH-05",
        READ,
        "With any epoch, at any offset, a fetch reads, diverges or is out of range as the leader's epochs say.",
        diverges(Fixtures.epochs, _everywhere),
        FETCH,
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# Checks of the leader epoch in requests (KIP-320).


RequestMaker = Callable[[ProbePartition, int], WireRequest]

FENCING = "Partition#checkCurrentLeaderEpoch"
REQUESTS: tuple[tuple[str, str, int, RequestMaker], ...] = (
    ("fetch", "Fetch", 9, lambda p, current: p.fetch(0, current=current)),
    ("list-offsets", "ListOffsets", 4, lambda p, current: p.list_offsets(LATEST, current=current)),
    (
        "offsets-for-leader-epoch",
        "OffsetForLeaderEpoch",
        2,
        lambda p, current: p.offsets_for_leader_epoch(p.epoch, current=current),
    ),
)
KINDS = (
    ("equal", 0, "A request in the leader's own epoch is served."),
    ("newer", 1, "A request in an epoch that the leader does not know is refused with UNKNOWN_LEADER_EPOCH."),
    ("much-newer", 1 << 20, "A request in an epoch far ahead is refused with UNKNOWN_LEADER_EPOCH."),
)


def _checks() -> tuple[Check, ...]:
    """Return the checks of each kind of request in each relation of epochs."""
    checks = []
    for name, request, least, make_request in REQUESTS:
        needs = {request: least}
        for kind, more, says in KINDS:
            checks.append(
                Check(
                    f"fencing.{name}-{kind}",
                    "FENCE-01",
                    FENCING,
                    says,
                    one_request(_above_leader_epoch(make_request, more)),
                    needs,
                )
            )
        says = "A request of an older epoch is refused with FENCED_LEADER_EPOCH."
        checks.append(Check(f"fencing.{name}-older", "FENCE-01", FENCING, says, _older(make_request), needs))
    says = "A fenced fetch is refused before the logs are compared."
    checks.append(
        Check("fencing.before-divergence", "FENCE-01", "Partition#readRecords", says, one_request(_diverging), {"Fetch": 12})
    )
    return tuple(checks)


def _expect_error(partition: ProbePartition, make_request: RequestMaker, current: int) -> Expectation:
    error = request_error(current, partition.epoch, serves=True, fences=True)
    return Expectation(partition.connection, make_request(partition, current), {"errorCode": error})


def _above_leader_epoch(make_request: RequestMaker, more: int) -> Callable[[Fixtures], Expectation]:
    """Make the check of a request whose leader epoch is `more` above the leader's."""

    def expectation(fixtures: Fixtures) -> Expectation:
        partition = fixtures.log()
        return _expect_error(partition, make_request, partition.epoch + more)

    return expectation


def _older(make_request: RequestMaker) -> Callable[[Fixtures], Script]:
    """Make the check of a request with each older leader epoch."""

    def script(fixtures: Fixtures) -> Script:
        """Expect that each leader epoch before the current one is refused."""
        partition = fixtures.log() if fixtures.log().epoch > 0 else fixtures.epochs()
        if partition.epoch == 0:
            raise UndecidedError("no leader epoch is older than 0, and none was elected")
        for older in range(partition.epoch):
            yield _expect_error(partition, make_request, older)

    return script


def _diverging(fixtures: Fixtures) -> Expectation:
    """Expect that a newer leader epoch is refused, although the fetch would diverge: fencing comes first."""
    partition = fixtures.log()
    call = partition.fetch(partition.end + 1, current=partition.epoch + 1, last=partition.epoch)
    return Expectation(partition.connection, call, {"errorCode": errors.UNKNOWN_LEADER_EPOCH, "divergingEpoch": None})


FENCING_CHECKS = _checks()
