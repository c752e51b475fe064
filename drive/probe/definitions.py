"""The message definitions of the probe's requests: a user who probes a broker has its address, not its jars.

They are those of one release of Kafka, packed beside this file without comments and explanations. Brokers of other releases
get a version that both sides have. `python -m tidegauge.drive.probe.definitions JARS` packs those of another release.
Why they are shipped: docs/decisions/0008-a-probe-ships-its-definitions.md.
"""

import gzip
import json
import sys
from functools import cache
from pathlib import Path
from typing import Any

from tidegauge.drive.kafka_process.jars import release_in
from tidegauge.drive.wire.messages import Messages, definitions_in

REQUESTS = (
    "AlterPartitionReassignments",
    "ApiVersions",
    "CreateTopics",
    "DeleteRecords",
    "DeleteTopics",
    "ElectLeaders",
    "Fetch",
    "InitProducerId",
    "ListOffsets",
    "Metadata",
    "OffsetForLeaderEpoch",
    "Produce",
)
PACKED = Path(__file__).with_name("definitions.json.gz")
LICENCE = "Apache License 2.0. Licensed to the Apache Software Foundation (ASF), see the NOTICE file of Apache Kafka."
EXPLANATIONS = frozenset({"about", "entityType"})


@cache
def shipped_messages() -> Messages:
    """Return the messages of REQUESTS and their responses."""
    return Messages(json.loads(gzip.decompress(PACKED.read_bytes()))["definitions"])


def pack_definitions(jars: Path) -> bytes:
    """Pack the definitions in the jars of a release; the same jars give the same bytes."""
    wanted = {f"{name}{side}" for name in REQUESTS for side in ("Request", "Response")}
    definitions = sorted(
        (one for one in definitions_in(jars.glob("kafka-clients-*.jar")) if one["name"] in wanted), key=_name
    )
    origin = f"common/message/*.json in kafka-clients-{release_in(jars)}.jar, without comments and explanations"
    text = json.dumps({"origin": origin, "licence": LICENCE, "definitions": _bare(definitions)}, separators=(",", ":"))
    return gzip.compress(text.encode(), mtime=0)


def _name(one: Any) -> str:
    return str(one["name"])


def _bare(value: Any) -> Any:
    match value:
        case dict():
            return {key: _bare(inner) for key, inner in value.items() if key not in EXPLANATIONS}
        case list():
            return [_bare(inner) for inner in value]
        case _:
            return value


if __name__ == "__main__":
    PACKED.write_bytes(pack_definitions(Path(sys.argv[1])))
