"""Unmodified clusters of two brokers pass every check, and have the same topics afterwards, also after Ctrl-C."""

import random
import signal
import subprocess
import sys
import time

import pytest

from tests.drive.kafka_broker.test_kafka_broker import build
from tests.drive.kafka_process.test_process import soon
from tests.drive.probe.cluster import HOST, cluster
from tidegauge.drive.probe.connection import BrokerConnection, shipped_messages, tcp
from tidegauge.drive.probe.run import CheckVerdict, probe
from tidegauge.drive.wire.frames import WireRequest

pytestmark = pytest.mark.long

RELEASES = ("3.4.0", "3.9.1", "4.1.1", "4.3.1")
KILLS = 10


def topics(port: int) -> set[str]:
    """Of the whole cluster."""
    connection = BrokerConnection(shipped_messages(), tcp(10.0), HOST, port, lambda _: None)
    try:
        found = connection.request(WireRequest("Metadata", connection.versions["Metadata"].stop - 1, {"topics": None}))
        return {one["name"] for one in found["topics"]}
    finally:
        connection.close()


def create(port: int, name: str) -> None:
    """A topic of somebody else."""
    connection = BrokerConnection(shipped_messages(), tcp(10.0), HOST, port, lambda _: None)
    topic = {"name": name, "numPartitions": 1, "replicationFactor": 1, "assignments": [], "configs": []}
    body = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
    connection.request(WireRequest("CreateTopics", connection.versions["CreateTopics"].stop - 1, body))
    connection.close()


@pytest.mark.parametrize("release", RELEASES)
def test_a_release_passes_and_has_its_own_topics_only(release: str) -> None:
    """Ended at ten moments, too. What it does not offer is not supported; among two brokers nothing is undecided."""
    with cluster(build(release)) as ports:
        create(ports[0], "of-somebody-else")
        found = probe(tcp(30.0), (HOST, ports[0]), 1)
        assert [(one.check.id, one.says) for one in found.outcomes if one.verdict is CheckVerdict.FAIL] == []
        assert found.count(CheckVerdict.UNDECIDED) == 0
        assert found.left == {}
        assert soon(lambda: topics(ports[1]) == {"of-somebody-else"})
        rng, codes = random.Random(release), set()
        for _ in range(KILLS if release == RELEASES[-1] else 1):
            command = [sys.executable, "-m", "tidegauge", "probe", f"{HOST}:{ports[0]}"]
            probing = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.uniform(1.0, 9.0))
            probing.send_signal(rng.choice((signal.SIGINT, signal.SIGTERM)))
            codes.add(probing.wait(60))
            assert soon(lambda: topics(ports[0]) == {"of-somebody-else"})
        assert 130 in codes or release != RELEASES[-1]


def test_one_broker_alone_leaves_undecided_what_takes_two() -> None:
    with cluster(build(RELEASES[-1]), brokers=1) as (port,):
        found = probe(tcp(30.0), (HOST, port), 1)
    undecided = {one.check.id for one in found.outcomes if one.verdict is CheckVerdict.UNDECIDED}
    assert found.count(CheckVerdict.FAIL) == 0
    assert "divergence.every-epoch-and-offset" in undecided
    assert "isolation.nothing-above-the-high-watermark" in undecided
    assert found.count(CheckVerdict.PASS) + len(undecided) == len(found.outcomes)
