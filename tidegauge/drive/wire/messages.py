"""Kafka's messages as bytes, compiled from the message definitions that a release carries in its own jars.

Rules of this file

1. A message is a plain dict with the protocol's own camelCase names. A missing field has its default; a field that the
   definition does not have, or that this version cannot carry, is refused.
2. Each version of a definition is compiled once, when it is first used. Nothing here knows any message by name.
3. Source: the *.json in kafka-clients.jar and kafka-metadata.jar, and the README of
   clients/src/main/resources/common/message in apache/kafka; KIP-482 for flexible versions and tagged fields.
"""

import json
import re
import struct
import zipfile
from collections.abc import Iterable
from pathlib import Path

from tidegauge.drive.wire.compiler import Codec, Compiler, Cursor, Definition, WireError, WireMessage, versions_of

_FOLDERS = ("common/message/", "common/metadata/")
_COMMENT = re.compile(r"^\s*//.*$", re.MULTILINE)


def definitions_in(jars: Iterable[Path]) -> list[Definition]:
    """Return every message definition in some jars. Raises WireError when there is none."""
    definitions = []
    for jar in sorted(jars):
        with zipfile.ZipFile(jar) as packed:
            for name in packed.namelist():
                if name.startswith(_FOLDERS) and name.endswith(".json"):
                    # Kafka's generator reads these with Jackson: comments are allowed, text after the value is ignored.
                    text = _COMMENT.sub("", packed.read(name).decode()).strip()
                    definitions.append(json.JSONDecoder().raw_decode(text)[0])
    if not definitions:
        raise WireError(
            "jars: expected message definitions in kafka-clients and kafka-metadata; seen none; check the folder"
        )
    return definitions


class Messages:
    """The messages of a release by name."""

    def __init__(self, definitions: Iterable[Definition]) -> None:
        self._definitions = {definition["name"]: definition for definition in definitions}
        self._requests = {
            definition["apiKey"]: definition["name"].removesuffix("Request")
            for definition in self._definitions.values()
            if definition["type"] == "request"
        }
        self._compiled: dict[tuple[str, int], Codec] = {}

    def __contains__(self, name: object) -> bool:
        return name in self._definitions

    def api_key(self, name: str) -> int:
        """Return the number of a request (its name without the word Request) or of a metadata record."""
        definition = self._definitions.get(f"{name}Request") or self._definition(name)
        return int(definition["apiKey"])

    def api_name(self, key: int) -> str:
        """Return the name of the request with this number, without the word Request. Raises WireError."""
        if key not in self._requests:
            raise WireError(f"request: expected an API key of this release; seen {key}")
        return str(self._requests[key])

    def metadata_records(self) -> list[str]:
        """Return the names of the records that a metadata log may hold."""
        return [name for name, definition in self._definitions.items() if definition["type"] == "metadata"]

    def versions(self, name: str) -> range:
        """Return the stable versions of a message."""
        definition = self._definition(name)
        lowest, highest = versions_of(definition["validVersions"])
        return range(lowest, int(highest) + (not definition.get("latestVersionUnstable", False)))

    def is_flexible(self, name: str, version: int) -> bool:
        """Return whether this version has compact lengths and tagged fields."""
        return version in versions_of(self._definition(name).get("flexibleVersions"))

    def write(self, name: str, version: int, message: WireMessage) -> bytes:
        """Encode a message. Raises WireError."""
        out = bytearray()
        self._codec(name, version).write(out, message)
        return bytes(out)

    def read(self, name: str, version: int, data: bytes, at: int = 0) -> tuple[WireMessage, int]:
        """Decode the message at position `at`; return it and the position where it ends. Raises WireError."""
        cursor = Cursor(data, at)
        try:
            return self._codec(name, version).read(cursor), cursor.at
        except (struct.error, IndexError, OverflowError, MemoryError, UnicodeDecodeError) as problem:
            raise WireError(f"{name} version {version}: expected its fields; seen {problem} at byte {cursor.at}") from None

    def _definition(self, name: str) -> Definition:
        if name not in self._definitions:
            raise WireError(f"message: expected one that this release has; seen {name!r}")
        return self._definitions[name]

    def _codec(self, name: str, version: int) -> Codec:
        """Return the codec of a message in a version, compiled once. Raises WireError for an unknown version."""
        if (name, version) not in self._compiled:
            definition = self._definition(name)
            if version not in versions_of(definition["validVersions"]):
                raise WireError(f"{name}: expected a version of {definition['validVersions']}; seen {version}")
            common = {struct["name"]: struct["fields"] for struct in definition.get("commonStructs", [])}
            compiler = Compiler(name, version, self.is_flexible(name, version), common)
            self._compiled[name, version] = compiler.struct(definition["fields"])
        return self._compiled[name, version]
