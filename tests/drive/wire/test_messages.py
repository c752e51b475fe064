"""The codec against kafka-python's, another one over the same definitions: what one writes the other reads and writes."""

import importlib
import random
import uuid
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from tidegauge.drive.wire.compiler import Messages, WireError, versions_of

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # it reads its definitions in a way that Python has left behind
    for part in ("admin", "consumer", "metadata", "producer"):
        importlib.import_module(f"kafka.protocol.{part}")
    MESSAGE = importlib.import_module("kafka.protocol.api_message").ApiMessage

THEIRS = {found.name: found for found in MESSAGE.__subclasses__()}
OURS = Messages(found.json for found in THEIRS.values())
OPERATIONS = "has a type of kafka-python's own, a number that is a set of operations"
ODD = {
    "ApiVersionsResponse": "kafka-python reads every version of it as one that it can read for sure (KIP-511)",
    "DescribeClusterResponse": OPERATIONS,
    "DescribeGroupsResponse": OPERATIONS,
    "MetadataResponse": OPERATIONS,
}
WIDTH = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}


def drawn(rng: random.Random, definition: Mapping[str, Any], version: int) -> dict[str, Any]:
    """A message with any values; some of its fields are left out."""
    common = {one["name"]: one["fields"] for one in definition.get("commonStructs", ())}

    def struct(definitions: Any) -> dict[str, Any]:
        fields = [one for one in definitions if version in versions_of(one["versions"]) and rng.random() < 0.8]
        resolved = [{"fields": common.get(one["type"].removeprefix("[]")), **one} for one in fields]
        return {one["name"][0].lower() + one["name"][1:]: value(rng, one["type"], one, version, struct) for one in resolved}

    return struct(definition["fields"])


def value(rng: random.Random, kind: str, one: Mapping[str, Any], version: int, struct: Callable[[Any], Any]) -> Any:
    if version in versions_of(one.get("nullableVersions")) and rng.random() < 0.2:
        return None
    if kind.startswith("[]"):
        inner = {**one, "nullableVersions": "none"}
        return [value(rng, kind[2:], inner, version, struct) for _ in range(rng.choice((0, 1, 2)))]
    if kind in WIDTH:
        return rng.choice((0, -1, rng.randrange(-(1 << WIDTH[kind] - 1), 1 << WIDTH[kind] - 1)))
    match kind:
        case "bool":
            return rng.random() < 0.5
        case "uint16":
            return rng.randrange(1 << 16)
        case "float64":
            return rng.random()
        case "string":
            return rng.choice(("", "tide", "\u6f6e" * 50))
        case "uuid":
            return uuid.UUID(int=rng.getrandbits(128))
        case "bytes" | "records":
            return rng.randbytes(rng.choice((0, 1, 300)))
        case _:
            return struct(one["fields"])


@pytest.mark.parametrize("name", sorted(THEIRS.keys() - ODD.keys()))
def test_another_codec_reads_what_is_written_and_writes_the_same(name: str) -> None:
    theirs = THEIRS[name]
    for version in OURS.versions(name):
        rng = random.Random(f"{name}.{version}")
        for _ in range(4):
            message = drawn(rng, theirs.json, version)
            data = OURS.write(name, version, message)
            decoded = theirs.decode(data, version=version)
            decoded._header = None
            assert bytes(decoded.encode(version=version)) == data, (version, message)
            read, end = OURS.read(name, version, data)
            assert end == len(data)
            assert OURS.write(name, version, read) == data
            assert message.items() <= read.items() or any(isinstance(found, dict | list) for found in message.values())


def test_a_field_that_is_tagged_in_each_of_its_versions_need_not_say_them_twice() -> None:
    """As the fetch request of 3.5 does not, whose field kafka-python has with both."""
    whole = THEIRS["FetchRequest"].json
    short = [
        {key: said for key, said in one.items() if (one["name"], key) != ("ReplicaState", "versions")}
        for one in whole["fields"]
    ]
    assert short != whole["fields"]
    messages = Messages([{**whole, "fields": short}])
    for version, message in ((4, {"replicaId": 7}), (15, {}), (15, {"replicaState": {"replicaId": 7, "replicaEpoch": 3}})):
        data = OURS.write("FetchRequest", version, message)
        assert messages.write("FetchRequest", version, message) == data
        assert messages.read("FetchRequest", version, data) == OURS.read("FetchRequest", version, data)


def test_what_a_version_cannot_carry_is_refused_unless_it_says_nothing() -> None:
    """As Kafka's own codec does: an ignorable field, or one with its default, is let pass."""
    assert OURS.write("FetchRequest", 4, {"rackId": "a"}) == OURS.write("FetchRequest", 4, {})
    assert OURS.write("FetchRequest", 15, {"replicaId": -1}) == OURS.write("FetchRequest", 15, {})
    with pytest.raises(WireError, match="FetchRequest version 15: expected fields that it has; seen 'replicaId'"):
        OURS.write("FetchRequest", 15, {"replicaId": 2})
    with pytest.raises(WireError, match="seen 'nobody'"):
        OURS.write("FetchRequest", 15, {"nobody": 2})
    with pytest.raises(WireError, match="cannot be null"):
        OURS.write("FetchRequest", 15, {"topics": None})


@pytest.mark.parametrize(
    ("name", "version", "data", "says"),
    [
        ("FetchResponse", 12, b"\x00\x00", "FetchResponse version 12: expected its fields"),
        ("FetchResponse", 7, bytes(5), r"version 7: expected its fields; seen .* at byte 4$"),
        ("FetchResponse", 99, b"", "expected a version of"),
        ("NoSuchRequest", 0, b"", "expected one that this release has"),
        ("FetchResponse", 4, b"\x00\x00\x00\x01\x00\x00\x00\x01\x7f\xff", "promised|unpack|buffer"),
    ],
)
def test_bytes_that_are_no_message_are_refused_with_their_place(name: str, version: int, data: bytes, says: str) -> None:
    with pytest.raises(WireError, match=says):
        OURS.read(name, version, data)


def test_no_prefix_of_a_message_is_a_message() -> None:
    message = drawn(random.Random(7), THEIRS["FetchResponse"].json, 16)
    data = OURS.write("FetchResponse", 16, message)
    for size in range(0, len(data) - 1, max(1, len(data) // 200)):
        with pytest.raises(WireError):
            OURS.read("FetchResponse", 16, data[:size])


def test_numbers_and_versions() -> None:
    assert (OURS.api_key("Fetch"), OURS.api_name(18)) == (1, "ApiVersions")
    assert 3 in versions_of("3+")
    assert 3 not in versions_of("none")
    assert [version in versions_of("1-2") for version in range(4)] == [False, True, True, False]
    with pytest.raises(WireError, match="seen 999"):
        OURS.api_name(999)
