"""Checks that a broker supports the versions that it offers (KIP-35, KIP-511)."""

from collections.abc import Callable

from tidegauge.drive.probe.check import CLOSED, Check, Expectation, ExpectedFields, FailedError, Script, one_request
from tidegauge.drive.probe.connection import api_versions_call, shipped_messages
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition, next_batch
from tidegauge.drive.probe.topics import delete_topics_call, metadata_call
from tidegauge.drive.wire.frames import API_VERSIONS, WireRequest
from tidegauge.impl import errors

API_VERSIONS_KEY = 18
NOBODY_HAS = 30_000

VersionedRequest = Callable[[ProbePartition, int], tuple[WireRequest, ExpectedFields]]


def _every_version(name: str, make_request: VersionedRequest) -> Callable[[Fixtures], Script]:
    """Make the check of a request in each version that the broker offers."""

    def script(fixtures: Fixtures) -> Script:
        partition = fixtures.fresh() if name == "Produce" else fixtures.log()
        for version in partition.connection.versions[name]:
            call, expected = make_request(partition, version)
            yield Expectation(partition.connection, call, {"errorCode": errors.NONE, **expected})

    return script


def _fetch(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    return partition.fetch(0, version=version), {"batches": partition.batches, "highWatermark": partition.end}


def _list_offsets(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    return partition.list_offsets(LATEST, version=version), {"offset": partition.end}


def _offsets_for_leader_epoch(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    return partition.offsets_for_leader_epoch(partition.epoch, version=version), {"endOffset": partition.end}


def _produce(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a Produce request in this version, and what its response must say."""
    base = partition.end
    call = partition.produce(next_batch(partition), version=version)
    partition.appended()
    return call, {"baseOffset": base}


# These change nothing: a topic that is there is not created, one that is not there is not deleted. A broker that is not the
# controller may say that instead.


def _metadata(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    return metadata_call([partition.name], version), {"name": partition.name}


def _create_topics(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a CreateTopics request for a topic that exists: its refusal shows that the version is understood."""
    topic = {"name": partition.name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    refused = frozenset({errors.TOPIC_ALREADY_EXISTS, errors.NOT_CONTROLLER})
    return WireRequest("CreateTopics", version, body), {"errorCode": refused, "name": partition.name}


def _delete_topics(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    call = delete_topics_call(f"{partition.name}-absent", version)
    return call, {"errorCode": frozenset({errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_CONTROLLER})}


def _delete_records(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    return partition.delete_records(0, version=version), {"lowWatermark": partition.start}


def _init_producer_ids(fixtures: Fixtures) -> Script:
    # The first one waits until the coordinator is loaded.
    fixtures.producer()
    for version in fixtures.first.versions["InitProducerId"]:
        call = WireRequest("InitProducerId", version, {"transactionalId": None, "transactionTimeoutMs": 60_000})
        yield Expectation(fixtures.first, call, {"errorCode": errors.NONE})


def _newer(fixtures: Fixtures) -> Script:
    """Expect that a version of ApiVersions that nobody has is answered with those that the broker has."""
    # The response to a version that the broker does not have is in version 0 (KIP-511).
    connection = fixtures.first
    # A broker need not list the request that it lists all others in.
    own = connection.versions.get(API_VERSIONS, range(1))
    # Of a newer client: the header of all since version 3.
    newest = api_versions_call(shipped_messages().versions(f"{API_VERSIONS}Request").stop - 1)
    seen = yield Expectation(connection, newest, {"errorCode": errors.UNSUPPORTED_VERSION}, NOBODY_HAS)
    listed = [api for api in seen["apiKeys"] if api["apiKey"] == API_VERSIONS_KEY]
    if not listed or listed[0]["maxVersion"] < own.stop - 1:
        raise FailedError(f"apiKeys: expected the versions of {API_VERSIONS}; seen {seen['apiKeys']}")


def _offered(fixtures: Fixtures) -> Script:
    """Expect that each request is offered once, with a lowest and a highest version."""
    seen = yield Expectation(fixtures.first, api_versions_call(fixtures.first.own_version), {"errorCode": errors.NONE})
    keys = [api["apiKey"] for api in seen["apiKeys"]]
    if len(set(keys)) != len(keys):
        raise FailedError(f"apiKeys: expected each request once; seen {sorted(keys)}")
    wrong = [api for api in seen["apiKeys"] if not 0 <= api["minVersion"] <= api["maxVersion"]]
    if wrong:
        raise FailedError(f"apiKeys: expected a lowest and a highest version of each; seen {wrong}")


def _closed(fixtures: Fixtures) -> Expectation:
    partition = fixtures.log()
    return Expectation(partition.connection, partition.list_offsets(LATEST), CLOSED, NOBODY_HAS)


def _row(name: str, make_request: VersionedRequest) -> Check:
    return _row_of_script(name, _every_version(name, make_request))


def _row_of_script(name: str, script: Callable[[Fixtures], Script]) -> Check:
    says = f"Every version of {name} that is offered is answered in that version, to the last byte."
    return Check(f"versions.{_hyphened(name)}", "", f"{name}Response#data", says, script, {name: 0})


def _hyphened(name: str) -> str:
    return "".join(f"-{letter.lower()}" if letter.isupper() else letter for letter in name).lstrip("-")


VERSION_CHECKS = (
    Check(
        "versions.offered",
        "",
        "ApiVersionManager#apiVersionResponse",
        "Each request is offered once, with a lowest and a highest version.",
        _offered,
    ),
    Check(
        "versions.oldest-api-versions",
        "",
        "ApiVersionsResponse#parse",
        "ApiVersions in version 0 is answered in version 0: a client that knows nothing of the broker can read no other.",
        one_request(
            lambda fixtures: Expectation(fixtures.first, WireRequest(API_VERSIONS, 0, {}), {"errorCode": errors.NONE})
        ),
    ),
    Check(
        "versions.newer-api-versions",
        "",
        "KafkaApis#handleApiVersionsRequest",
        "ApiVersions in an unknown version is answered with UNSUPPORTED_VERSION and the versions that the broker has.",
        _newer,
    ),
    Check(
        "versions.not-offered",
        "",
        "RequestContext#parseRequest",
        "A request in a version that is not offered ends the connection.",
        one_request(_closed),
    ),
    _row("Fetch", _fetch),
    _row("ListOffsets", _list_offsets),
    _row("OffsetForLeaderEpoch", _offsets_for_leader_epoch),
    _row("Produce", _produce),
    _row("Metadata", _metadata),
    _row("CreateTopics", _create_topics),
    _row("DeleteTopics", _delete_topics),
    _row("DeleteRecords", _delete_records),
    _row_of_script("InitProducerId", _init_producer_ids),
)
