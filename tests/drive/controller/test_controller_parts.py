"""What drives an unmodified controller: names, the image of its log, its observer. None is started."""

import asyncio
from typing import Any
from uuid import UUID, uuid4

import pytest

from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, empty
from tidegauge.drive.controller.findings import registers
from tidegauge.drive.controller.metadata_image import Image, Incarnations, LogRecord, Names, state_report
from tidegauge.drive.controller.node import ControllerNode, error_of
from tidegauge.drive.controller.process import ControllerProcess, Observer, free_port, leads_not, properties
from tidegauge.drive.kafka_broker.controller_stub import MetadataLog, MetadataRecord
from tidegauge.drive.kafka_process.builds import KafkaBuild
from tidegauge.drive.kafka_process.clock import MOVED_SESSION
from tidegauge.drive.wire.compiler import Messages, WireError
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.releases import profile_named

NAMES = Names(3)
TOPIC, OTHER = uuid4(), uuid4()


def image(*records: tuple[str, dict[str, Any]]) -> Image:
    made = Image(NAMES, empty(ClusterOpening(30), profile_named("release-4.3.1")))
    made.read(LogRecord(offset, name, body) for offset, (name, body) in enumerate(records))
    return made


def broker(number: int, epoch: int, *, lane: int = 3) -> tuple[str, dict[str, Any]]:
    body = {"brokerId": 16 * lane + number, "brokerEpoch": epoch, "incarnationId": uuid4(), "fenced": True}
    return "RegisterBrokerRecord", {**body, "inControlledShutdown": False, "logDirs": [NAMES.directory_id(f"{number}A")]}


CREATED = (
    ("TopicRecord", {"name": "t.3", "topicId": TOPIC}),
    ("TopicRecord", {"name": "t.4", "topicId": OTHER}),
    (
        "PartitionRecord",
        {
            "topicId": TOPIC,
            "partitionId": 0,
            "replicas": [49, 50],
            "isr": [49, 50],
            "leader": 49,
            "leaderEpoch": 0,
            "partitionEpoch": 0,
            "addingReplicas": [],
            "removingReplicas": [],
            "leaderRecoveryState": 0,
            "directories": [NAMES.directory_id("1A"), NAMES.directory_id("2A")],
        },
    ),
)


def change(**fields: Any) -> tuple[str, dict[str, Any]]:
    return "PartitionChangeRecord", {"topicId": TOPIC, "partitionId": 0, "leader": -2, "leaderRecoveryState": -1, **fields}


def test_names_of_a_path_are_its_own_and_come_back() -> None:
    assert [NAMES.broker(NAMES.id_of(number)) for number in (1, 8)] == [1, 8]
    assert NAMES.broker(Names(4).id_of(1)) is None
    assert NAMES.broker(Names(2).id_of(1)) is None
    assert NAMES.broker(-1) == -1
    assert NAMES.topic(NAMES.full("t")) == "t"
    assert NAMES.topic(Names(4).full("t")) is None
    assert NAMES.directory(NAMES.directory_id("2B")) == "2B"
    assert [NAMES.directory(UUID(int=number)) for number in range(3)] == ["MIGRATING", "UNASSIGNED", "LOST"]
    assert (NAMES.resource("BROKER", ""), NAMES.resource("BROKER", "1"), NAMES.resource("TOPIC", "t")) == ("", "49", "t.3")


def test_an_image_is_what_the_log_makes_of_one_paths_cluster() -> None:
    seen = image(
        broker(1, 100),
        broker(2, 101),
        broker(1, 102, lane=4),
        *CREATED,
        change(isr=[50], leader=50, eligibleLeaderReplicas=[49]),
        ("BrokerRegistrationChangeRecord", {"brokerId": 50, "brokerEpoch": 101, "fenced": -1, "inControlledShutdown": 0}),
        ("BrokerRegistrationChangeRecord", {"brokerId": 49, "brokerEpoch": 100, "fenced": 0, "inControlledShutdown": 1}),
        ("FeatureLevelRecord", {"name": "group.version", "featureLevel": 1}),
        ("FeatureLevelRecord", {"name": "eligible.leader.replicas.version", "featureLevel": 0}),
        ("NoOpRecord", {}),
    )
    report = state_report(seen.control, Incarnations())
    assert report == {
        "partitions": {
            "t-0": {
                "replicas": [1, 2],
                "leader": 2,
                "leader_epoch": 1,
                "partition_epoch": 1,
                "isr": [2],
                "elr": [1],
                "last_known_elr": [],
                "adding": [],
                "removing": [],
                "directories": ["1A", "2A"],
                "recovering": False,
            }
        },
        "brokers": {
            "1": {"incarnation": 0, "fenced": True, "in_controlled_shutdown": True, "directories": ["1A"]},
            "2": {"incarnation": 0, "fenced": False, "in_controlled_shutdown": False, "directories": ["2A"]},
        },
        "features": {"metadata.version": 30, "elr": 0},
    }
    assert seen.topic_ids == {"t": TOPIC}
    assert seen.changed_at == {2: 7, 1: 8}


def test_an_elr_is_forgotten_by_a_record_of_its_own_and_a_topic_goes_with_its_partitions() -> None:
    begun = (broker(1, 100), *CREATED, change(isr=[49], eligibleLeaderReplicas=[50], lastKnownElr=[], replicas=[49, 50]))

    def elr(cleared: str) -> tuple[int, ...]:
        (partition,) = image(*begun, ("ClearElrRecord", {"topicName": cleared})).control.partitions.values()
        return partition.elr

    assert [elr("t.4"), elr("t.3"), elr("")] == [(2,), (), ()]
    gone = image(*begun, ("RemoveTopicRecord", {"topicId": TOPIC}), change(isr=[50]))
    assert (len(gone.control.partitions), gone.topic_ids) == (0, {})


def test_a_configuration_is_that_of_the_path_or_of_the_cluster() -> None:
    def config(kind: int, resource: str, value: str | None) -> tuple[str, dict[str, Any]]:
        body = {"resourceType": kind, "resourceName": resource, "name": "min.insync.replicas", "value": value}
        return "ConfigRecord", body

    seen = image(
        config(2, "t.3", "2"), config(2, "t.4", "3"), config(4, "", "1"), config(4, "49", "4"), config(4, "65", "5")
    )
    assert {(*resource, *dict(configs.items()).values()) for resource, configs in seen.control.configs.items()} == {
        ("TOPIC", "t", "2"),
        ("BROKER", "", "1"),
        ("BROKER", "1", "4"),
    }
    assert len(image(config(2, "t.3", "2"), config(2, "t.3", None), config(4, "", None)).control.configs) == 0


def test_incarnations_are_counted_broker_by_broker() -> None:
    numbers = Incarnations()
    assert [numbers.ordinal(b, epoch) for b, epoch in ((1, 7), (2, 9), (1, 7), (1, 12), (2, 9))] == [0, 0, 0, 1, 0]


# ---------------------------------------------------------------------------------------------------------------------
# The observer

RECORD = {"type": "metadata", "apiKey": 2, "name": "TopicRecord", "validVersions": "0", "flexibleVersions": "0+",
          "fields": [{"name": "Name", "type": "string", "versions": "0+"},
                     {"name": "TopicId", "type": "uuid", "versions": "0+"}]}  # fmt: skip
MESSAGES = Messages([RECORD])


class Leader:
    """Answers fetches from a log, in one leader epoch; batches above the high watermark are there, and not committed."""

    def __init__(self, log: MetadataLog, high_watermark: int | None = None, error: int = 0) -> None:
        self._log, self._high_watermark, self._error = log, high_watermark, error
        self.closed, self.asked = False, 0

    async def request(self, _name: str, _version: int, body: Any) -> Any:
        self.asked += 1
        asked = body["topics"][0]["partitions"][0]
        part: dict[str, Any] = {"errorCode": self._error}
        if asked["currentLeaderEpoch"] != self._log.epoch:
            part = {"errorCode": 74, "currentLeader": {"leaderEpoch": self._log.epoch}}
        elif not self._error:
            high = self._log.end if self._high_watermark is None else self._high_watermark
            part = {"errorCode": 0, "records": self._log.read(asked["fetchOffset"]), "highWatermark": high}
        return {"errorCode": 0, "responses": [{"partitions": [part]}]}

    def close(self) -> None:
        self.closed = True


def log_of(*names: str, epoch: int = 1) -> MetadataLog:
    log = MetadataLog(MESSAGES, epoch)
    for name in names:
        log.append(MetadataRecord("TopicRecord", {"name": name, "topicId": TOPIC}))
    return log


def read_by(leader: Leader, times: int = 1) -> list[list[tuple[int, str]]]:
    observer = Observer(MESSAGES, leader, 17)  # type: ignore[arg-type]
    return [[(r.offset, r.body["name"]) for r in asyncio.run(observer.read())] for _ in range(times)]


def test_an_observer_reads_what_is_committed_once() -> None:
    assert read_by(Leader(log_of("a", "b")), 2) == [[(0, "a"), (1, "b")], []]
    assert read_by(Leader(log_of("a", "b"), high_watermark=1)) == [[(0, "a")]]


@pytest.mark.parametrize(("high_watermark", "asked"), [(None, 1), (1, 1), (3, 2)])
def test_an_observer_asks_again_while_more_is_committed_than_it_got(high_watermark: int | None, asked: int) -> None:
    leader = Leader(log_of("a", "b"), high_watermark)
    read_by(leader)
    assert leader.asked == asked


def test_an_observer_hears_of_another_leader_epoch_and_reads_on() -> None:
    assert read_by(Leader(log_of("a", epoch=4)), 2) == [[], [(0, "a")]]


def test_an_error_of_the_log_is_told() -> None:
    with pytest.raises(WireError, match="expected to read from offset 0; seen error 1"):
        read_by(Leader(log_of("a"), error=1))


def test_a_record_that_the_release_does_not_have_is_told() -> None:
    other = Messages([{**RECORD, "apiKey": 99}])
    observer = Observer(other, Leader(log_of("a")), 17)  # type: ignore[arg-type]
    with pytest.raises(WireError, match="expected a record of this release; seen API key 2"):
        asyncio.run(observer.read())


# ---------------------------------------------------------------------------------------------------------------------
# Responses, configuration, time


def test_the_error_of_a_response_is_found_where_it_lies() -> None:
    assert error_of({"errorCode": 42, "topics": []}) == 42
    assert error_of({"errorCode": 0, "responses": [{"name": "t", "partitions": [{"errorCode": 85}]}]}) == 85
    assert error_of({"throttleTimeMs": 0, "topics": [{"name": "t", "errorCode": 36, "configs": []}]}) == 36
    assert error_of({"errorCode": 0, "features": [{"name": "x"}], "results": []}) == 0


def test_a_controller_that_does_not_lead_says_so_in_the_whole_or_in_each_part() -> None:
    assert leads_not({"errorCode": 41})
    assert leads_not({"topics": [{"errorCode": 41}]})
    assert leads_not({"responses": [{"errorCode": 41}, {"errorCode": 41}]})
    assert not leads_not({"errorCode": 0, "topics": [{"errorCode": 36}]})
    assert not leads_not({"errorCode": 0, "responses": []})


def test_in_the_machines_time_no_session_is_over_without_being_noticed() -> None:
    """So such paths are left out where no library moves the clocks; who has not begun has the machine's time."""
    late = ("register_late", *registers(1)[1:])
    plain, with_late = (
        ControllerCase(ClusterOpening(30), (registers(1),)),
        ControllerCase(ClusterOpening(30), (registers(1), late)),
    )
    node = ControllerNode(KafkaBuild("4.3.1", "4.3.1", ()))
    assert node.time == "the machine's"
    assert node.possible((plain, with_late)) == (plain,)
    node.close()


def test_nothing_happens_by_the_clock_but_the_end_of_a_session() -> None:
    found = properties(free_port(), 20.0)
    assert found["broker.session.timeout.ms"] == 20_000
    assert found["auto.leader.rebalance.enable"] == "false"
    assert found["unclean.leader.election.interval.ms"] == 100_000_000
    longest = properties(free_port(), MOVED_SESSION)
    assert longest["unclean.leader.election.interval.ms"] < 1 << 31


class Ended:
    """A process, and a connection to it, that have ended."""

    async def exchange(self, *_calls: object) -> None:
        raise ConnectionResetError

    read = exchange

    def check_runs(self) -> None:
        raise WireError("expected its process to run; seen exit code 1")


def test_a_controller_that_has_ended_is_told_so_and_not_as_a_file_that_cannot_be_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = ControllerProcess.__new__(ControllerProcess)
    monkeypatch.setattr(ended, "_port", free_port(), raising=False)
    monkeypatch.setattr(ended, "_messages", Messages({}), raising=False)
    for name in ("connection", "process", "observer"):
        monkeypatch.setattr(ended, name, Ended(), raising=False)
    for work in (ended._called([WireRequest("AlterPartition", 3, {})]), ended.read()):
        with pytest.raises(WireError, match="seen exit code 1"):
            asyncio.run(work)
