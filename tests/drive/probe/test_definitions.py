"""The definitions that are shipped are those of the jars they name, and say what they are."""

import gzip
import json
import os
import re
from pathlib import Path

import pytest

from tidegauge.drive.kafka_process.builds import jar_cache
from tidegauge.drive.probe.connection import PACKED, REQUESTS, pack_definitions, shipped_messages


def test_they_say_where_they_come_from_and_under_which_licence() -> None:
    found = json.loads(gzip.decompress(PACKED.read_bytes()))
    assert re.search(r"kafka-clients-\d+\.\d+\.\d+\.jar", found["origin"])
    assert "Apache License 2.0" in found["licence"]


def test_every_version_of_a_request_has_a_response() -> None:
    for name in REQUESTS:
        assert set(shipped_messages().versions(f"{name}Request")) <= set(shipped_messages().versions(f"{name}Response"))


def test_the_jars_give_the_same_bytes() -> None:
    """Where the jars of that release are: in the cache, or in $TIDEGAUGE_JARS/RELEASE."""
    origin = json.loads(gzip.decompress(PACKED.read_bytes()))["origin"]
    (release,) = re.findall(r"\d+\.\d+\.\d+", origin)
    given = os.environ.get("TIDEGAUGE_JARS")
    jars = Path(given) / release if given else jar_cache(release)
    if not jars.is_dir():
        pytest.skip(f"no jars of Kafka {release} in {jars}")
    assert pack_definitions(jars) == PACKED.read_bytes()
