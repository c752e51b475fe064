"""Checks of where a leader epoch ends, by OffsetsForLeaderEpoch and by a fetch that may diverge (KIP-101, KIP-279, KIP-595).

The expected responses are computed by `impl.rules.end_offset_for` and `fetch_decision` from what was written. A script
yields Expectations, each a request and the fields that its response must have. The checks share the partitions
`Fixtures.log` (one leader epoch), `moved` (records deleted) and `epochs` (four leader epochs).

A ProbePartition knows what its log must have: `start`, `end` (the log end), `batches` (a pair of base and last offset each),
`epoch` (its leader's), `entries` (the epoch cache: epochs, start offsets). Its methods make requests about it, in which
`last` is the last fetched epoch, `current` the current leader epoch.
"""

from collections.abc import Callable, Iterable

from tidegauge.drive.probe.check import Check, Expectation, ExpectedFields, Script, one_request
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.rules import DIVERGING, OUT_OF_RANGE, UNDEFINED, fetch_decision, request_error

TABLE, READ = "LeaderEpochFileCache#endOffsetFor", "Partition#readRecords"
OFFSETS, FETCH = {"OffsetForLeaderEpoch": 2}, {"Fetch": 12}

ChoosePartition = Callable[[Fixtures], ProbePartition]
"""Returns the partition that a check is about."""
ChooseEpochs = Callable[[ProbePartition], Iterable[int]]
"""Returns the leader epochs whose end a check asks for."""
ChooseFetches = Callable[[ProbePartition], Iterable[tuple[int, int]]]
"""Returns the (last fetched epoch, fetch offset) of each fetch of a check."""


def ends(choose_partition: ChoosePartition, choose_epochs: ChooseEpochs) -> Callable[[Fixtures], Script]:
    """Make a script of OffsetsForLeaderEpoch requests, for the ends of the epochs that `choose_epochs` returns."""

    def script(fixtures: Fixtures) -> Script:
        """Expect for each epoch the end that follows from what was written to the partition."""
        partition = choose_partition(fixtures)
        for epoch in choose_epochs(partition):
            # The leader may respond with an older epoch, the largest that it has up to the one in the request.
            epoch_in_response, end = partition.end_offset(epoch)
            expected = {"errorCode": errors.NONE, "leaderEpoch": epoch_in_response, "endOffset": end}
            yield Expectation(partition.connection, partition.offsets_for_leader_epoch(epoch), expected)

    return script


def diverges(choose_partition: ChoosePartition, choose_fetches: ChooseFetches) -> Callable[[Fixtures], Script]:
    """Make a script of fetches as a follower's, with each (last fetched epoch, offset) that `choose_fetches` returns.

    They read, diverge or are out of range: `expected_fetch`.
    """

    def script(fixtures: Fixtures) -> Script:
        """Expect for each fetch what follows from what was written to the partition."""
        partition = choose_partition(fixtures)
        for last_epoch, offset in choose_fetches(partition):
            expected = expected_fetch(partition, last_epoch, offset)
            yield Expectation(partition.connection, partition.fetch(offset, last=last_epoch), expected)

    return script


def expected_fetch(partition: ProbePartition, last_epoch: int, offset: int) -> ExpectedFields:
    """Return the fields that the response to a fetch with this last fetched epoch and fetch offset must have.

    They say that the offset is out of range, or where the epoch ends for the leader (a divergence), or give records.
    """
    decision, epoch, end = fetch_decision(*partition.entries, partition.start, partition.end, offset, last_epoch)
    if decision == OUT_OF_RANGE:
        return {"errorCode": errors.OFFSET_OUT_OF_RANGE, "divergingEpoch": None, "batches": []}
    if decision == DIVERGING:
        return {"errorCode": errors.NONE, "divergingEpoch": (epoch, end), "batches": []}
    batches = [(base, last) for base, last in partition.batches if last >= offset]
    return {"errorCode": errors.NONE, "divergingEpoch": None, "batches": batches}


def _all_epochs(partition: ProbePartition) -> Iterable[int]:
    """Return every epoch up to the leader's, and two that it does not know."""
    return range(partition.epoch + 3)


def _all_fetches(partition: ProbePartition) -> Iterable[tuple[int, int]]:
    """Return (last fetched epoch, offset) for each epoch, at each offset near which the response may change."""
    # Those are the offsets where the log or an epoch begins or ends, and one offset before and after each.
    bounds = {0, partition.end, *partition.entries.starts, partition.start}
    # But no negative offset: that is the one before 0.
    offsets = sorted({bound + step for bound in bounds for step in (-1, 0, 1)} - {-1})
    return [(epoch, offset) for epoch in _all_epochs(partition) for offset in offsets]


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
        ends(Fixtures.moved, _all_epochs),
        OFFSETS | {"DeleteRecords": 0},
    ),
    Check(
        "epochs.every-epoch",
        "EPOCH-05",
        TABLE,
        "An epoch that is over ends where the next one that the leader knows begins; one that it never had is answered with "
        "the largest below it.",
        ends(Fixtures.epochs, _all_epochs),
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
        diverges(Fixtures.epochs, _all_fetches),
        FETCH,
    ),
)


# ---------------------------------------------------------------------------------------------------------------------
# Checks of the leader epoch in requests (KIP-320).


RequestMaker = Callable[[ProbePartition, int], WireRequest]
"""Makes a request about a partition that carries a current leader epoch."""

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
"""Requests that are fenced: a name for check ids, the request, the first version that carries an epoch, the maker."""
KINDS = (
    ("equal", 0, "A request in the leader's own epoch is served."),
    ("newer", 1, "A request in an epoch that the leader does not know is refused with UNKNOWN_LEADER_EPOCH."),
    ("much-newer", 1 << 20, "A request in an epoch far ahead is refused with UNKNOWN_LEADER_EPOCH."),
)
"""Epochs that are not older than the leader's: a name, how much greater than the leader's, the sentence of the check."""


def _fencing_checks() -> tuple[Check, ...]:
    """Return the checks of each request of REQUESTS, in each of KINDS and with older epochs; and one of a fetch.

    A Check is (id, rule, Kafka's method, sentence, script, lowest versions that it needs).
    """
    checks = []
    for name, request, least_version, make_request in REQUESTS:
        needs = {request: least_version}
        for kind, distance, says in KINDS:
            checks.append(
                Check(
                    f"fencing.{name}-{kind}",
                    "FENCE-01",
                    FENCING,
                    says,
                    one_request(_above_leader_epoch(make_request, distance)),
                    needs,
                )
            )
        says = "A request of an older epoch is refused with FENCED_LEADER_EPOCH."
        checks.append(Check(f"fencing.{name}-older", "FENCE-01", FENCING, says, _older(make_request), needs))
    # One check about the order of two checks in the leader, which only a fetch has.
    says = "A fenced fetch is refused before the logs are compared."
    checks.append(
        Check("fencing.before-divergence", "FENCE-01", "Partition#readRecords", says, one_request(_diverging), {"Fetch": 12})
    )
    return tuple(checks)


def _expect_error(partition: ProbePartition, make_request: RequestMaker, epoch: int) -> Expectation:
    """Expect the error, or none, that a request with `epoch` as the current leader epoch must get."""
    # By the rule of `impl`: the replica leads (`serves`), and compares leader epochs (`fences`, KIP-320).
    error = request_error(epoch, partition.epoch, serves=True, fences=True)
    return Expectation(partition.connection, make_request(partition, epoch), {"errorCode": error})


def _above_leader_epoch(make_request: RequestMaker, distance: int) -> Callable[[Fixtures], Expectation]:
    """Return a function that makes a request whose leader epoch is `distance` above the leader's."""

    def expectation(fixtures: Fixtures) -> Expectation:
        """Expect of such a request on the shared log what its epoch deserves: an error, or none at distance 0."""
        partition = fixtures.log()
        return _expect_error(partition, make_request, partition.epoch + distance)

    return expectation


def _older(make_request: RequestMaker) -> Callable[[Fixtures], Script]:
    """Make the script of a request with each older leader epoch."""

    def script(fixtures: Fixtures) -> Script:
        """Expect that each leader epoch before the current one is refused."""
        # A leader in epoch 0 has no older epoch; the partition with elections takes two brokers, and raises UndecidedError
        # where nothing could be elected.
        partition = fixtures.log() if fixtures.log().epoch > 0 else fixtures.epochs()
        for older_epoch in range(partition.epoch):
            yield _expect_error(partition, make_request, older_epoch)

    return script


def _diverging(fixtures: Fixtures) -> Expectation:
    """Expect that a fetch beyond the log end, which would diverge, is refused for its newer leader epoch before that."""
    partition = fixtures.log()
    call = partition.fetch(partition.end + 1, current=partition.epoch + 1, last=partition.epoch)
    return Expectation(partition.connection, call, {"errorCode": errors.UNKNOWN_LEADER_EPOCH, "divergingEpoch": None})


FENCING_CHECKS = _fencing_checks()
