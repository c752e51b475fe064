"""Checks of the leader epoch in requests (KIP-320)."""

from collections.abc import Callable

from tidegauge.drive.probe.check import Check, Expectation, Script, one_request
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition
from tidegauge.drive.probe.topics import UndecidedError
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.rules import request_error

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
    error = request_error(current, partition.epoch, True, True)
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
        partition = fixtures.log() if fixtures.log().epoch > 0 else fixtures.epochs()
        if partition.epoch == 0:
            raise UndecidedError("no leader epoch is older than 0, and none was elected")
        for older in range(partition.epoch):
            yield _expect_error(partition, make_request, older)

    return script


def _diverging(fixtures: Fixtures) -> Expectation:
    partition = fixtures.log()
    call = partition.fetch(partition.end + 1, current=partition.epoch + 1, last=partition.epoch)
    return Expectation(partition.connection, call, {"errorCode": errors.UNKNOWN_LEADER_EPOCH, "divergingEpoch": None})


FENCING_CHECKS = _checks()
