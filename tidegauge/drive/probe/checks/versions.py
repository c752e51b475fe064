"""Checks that a broker supports the versions that it offers (KIP-35, KIP-511).

A script yields an Expectation (a request and the fields that its response must have) and is sent the fields of the response.
Most scripts here send one kind of request in each version; a VersionedRequest makes it, for a partition and a version.
A ProbePartition knows what its log must have (`start`, `end`: the log end, `batches`), and makes requests about it.
"""

from collections.abc import Callable

from tidegauge.drive.probe.check import CLOSED, Check, Expectation, ExpectedFields, FailedError, Script, one_request
from tidegauge.drive.probe.connection import api_versions_call, shipped_messages
from tidegauge.drive.probe.fixtures import Fixtures
from tidegauge.drive.probe.partition import LATEST, ProbePartition, next_batch
from tidegauge.drive.probe.topics import delete_topics_call, metadata_call
from tidegauge.drive.wire.frames import API_VERSIONS, WireRequest
from tidegauge.impl import errors

API_VERSIONS_KEY = 18
"""The API key of ApiVersions."""
FAR_VERSION = 30_000
"""A version that no request has."""

VersionedRequest = Callable[[ProbePartition, int], tuple[WireRequest, ExpectedFields]]
"""Makes a request about a partition in a version; returns it with the fields that its response must have."""


def _every_version(name: str, make_request: VersionedRequest) -> Callable[[Fixtures], Script]:
    """Make the script that sends a request in each version that the broker offers of it."""

    def script(fixtures: Fixtures) -> Script:
        """Send the request in each version, and expect its fields and no error."""
        # Other checks read the shared log, so nothing may be written to it.
        partition = fixtures.fresh() if name == "Produce" else fixtures.log()
        for version in partition.connection.versions[name]:
            call, expected = make_request(partition, version)
            yield Expectation(partition.connection, call, {"errorCode": errors.NONE, **expected})

    return script


def _fetch(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a fetch of the whole log."""
    return partition.fetch(0, version=version), {"batches": partition.batches, "highWatermark": partition.end}


def _list_offsets(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a request for the latest offset, which is the log end: all is committed."""
    return partition.list_offsets(LATEST, version=version), {"offset": partition.end}


def _offsets_for_leader_epoch(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a request for the end of the leader's own epoch, which is the log end."""
    return partition.offsets_for_leader_epoch(partition.epoch, version=version), {"endOffset": partition.end}


def _produce(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a Produce request, and count its record as written: it is appended at the log end."""
    base = partition.end
    call = partition.produce(next_batch(partition), version=version)
    partition.appended()
    return call, {"baseOffset": base}


# These change nothing: a topic that exists is not created, one that does not exist is not deleted. A broker that is not the
# controller may refuse with NOT_CONTROLLER instead.


def _metadata(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a request for the metadata of the partition's topic."""
    return metadata_call([partition.name], version), {"name": partition.name}


def _create_topics(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a CreateTopics request for a topic that exists: its refusal shows that the version is understood."""
    topic = {"name": partition.name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    refused = frozenset({errors.TOPIC_ALREADY_EXISTS, errors.NOT_CONTROLLER})
    return WireRequest("CreateTopics", version, body), {"errorCode": refused, "name": partition.name}


def _delete_topics(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a request to delete a topic that does not exist: its refusal shows that the version is understood."""
    call = delete_topics_call(f"{partition.name}-absent", version)
    return call, {"errorCode": frozenset({errors.UNKNOWN_TOPIC_OR_PARTITION, errors.NOT_CONTROLLER})}


def _delete_records(partition: ProbePartition, version: int) -> tuple[WireRequest, ExpectedFields]:
    """Return a deletion up to offset 0, which deletes nothing."""
    return partition.delete_records(0, version=version), {"lowWatermark": partition.start}


def _init_producer_ids(fixtures: Fixtures) -> Script:
    """Request a producer id in each version that the broker offers."""
    # This waits until the broker has loaded its coordinator; before that a request may be refused.
    fixtures.producer()
    for version in fixtures.first.versions["InitProducerId"]:
        call = WireRequest("InitProducerId", version, {"transactionalId": None, "transactionTimeoutMs": 60_000})
        yield Expectation(fixtures.first, call, {"errorCode": errors.NONE})


def _newer(fixtures: Fixtures) -> Script:
    """Expect that ApiVersions in a version that no broker has is refused, with the versions that this broker has.

    The response is in version 0 (KIP-511).
    """
    connection = fixtures.first
    # The response to ApiVersions need not list ApiVersions itself; every broker has version 0.
    own_versions = connection.versions.get(API_VERSIONS, range(1))
    # As a newer client would: with the header and the body that the newest version has.
    newest = api_versions_call(shipped_messages().versions(f"{API_VERSIONS}Request").stop - 1)
    fields = yield Expectation(connection, newest, {"errorCode": errors.UNSUPPORTED_VERSION}, claimed=FAR_VERSION)
    # The refusal has to say at least how high the broker goes in ApiVersions itself.
    listed = [api for api in fields["apiKeys"] if api["apiKey"] == API_VERSIONS_KEY]
    if not listed or listed[0]["maxVersion"] < own_versions.stop - 1:
        raise FailedError(f"apiKeys: expected the versions of {API_VERSIONS}; seen {fields['apiKeys']}")


def _offered(fixtures: Fixtures) -> Script:
    """Expect that the response to ApiVersions lists each request once, with a lowest and a highest version."""
    fields = yield Expectation(fixtures.first, api_versions_call(fixtures.first.own_version), {"errorCode": errors.NONE})
    keys = [api["apiKey"] for api in fields["apiKeys"]]
    if len(set(keys)) != len(keys):
        raise FailedError(f"apiKeys: expected each request once; seen {sorted(keys)}")
    wrong = [api for api in fields["apiKeys"] if not 0 <= api["minVersion"] <= api["maxVersion"]]
    if wrong:
        raise FailedError(f"apiKeys: expected a lowest and a highest version of each; seen {wrong}")


def _closed(fixtures: Fixtures) -> Expectation:
    """Expect that a ListOffsets request in a version that is not offered ends the connection."""
    partition = fixtures.log()
    return Expectation(partition.connection, partition.list_offsets(LATEST), CLOSED, claimed=FAR_VERSION)


def _row(name: str, make_request: VersionedRequest) -> Check:
    """Make the check of a request, called `name`, in each version that the broker offers."""
    return _row_of_script(name, _every_version(name, make_request))


def _row_of_script(name: str, script: Callable[[Fixtures], Script]) -> Check:
    """Make the check of a request in each version from a script that sends them all."""
    says = f"Every version of {name} that is offered is answered in that version, to the last byte."
    return Check(f"versions.{_hyphened(name)}", "", f"{name}Response#data", says, script, {name: 0})


def _hyphened(name: str) -> str:
    """Return the name of a request as a check's id has it: ListOffsets becomes list-offsets."""
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
