"""Read `kafka-dump-log --cluster-metadata-decoder`: the records of the metadata log as the lines of a controller.

Rules of this file

1. A record becomes the line that a controller prints as it replays it (patterns.py), at its place in the dump: so a dump is
   read as a controller's log is, alone or with the logs of brokers. Its time is when the record was created, or that of a
   record before it if that is later.
2. A change record has the fields that change. A leader in it raises the leader epoch, also one that stays; every change
   raises the partition epoch (PartitionRegistration#merge).
3. The metadata log has no holes. Where offsets are missing, lines of the dump are, and a Problem says so; a change of a
   partition that no line before registers is left out.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tidegauge.traces.kafka_logs.parsing.lines import Line, LogFile, blocks
from tidegauge.traces.problems import Problem, note, shown

LAYOUT = "kafka-dump-log --cluster-metadata-decoder"
_BATCH = re.compile(r"(?:\| )?baseOffset: (?P<first>\d{1,19}) lastOffset: (?P<last>\d{1,19}) ")
_RECORD = re.compile(r"\| offset: \d{1,19} \w+: (?P<created_ms>-?\d{1,16}) ")
_PAYLOAD = " payload: "
_MIN_ISR = ("min.insync.replicas", 2)
"""The name of the configuration, and ConfigResource.Type.TOPIC."""
_UNCHANGED = -2
"""PartitionChangeRecord#leader: no change (KIP-631)."""
_LISTS = {"isr": "isr", "removingReplicas": "removingReplicas", "addingReplicas": "addingReplicas", "replicas": "replicas"}
_ELR = {"eligibleLeaderReplicas": "elr", "lastKnownElr": "lastKnownElr", "lastKnownELR": "lastKnownElr"}


@dataclass
class _Registered:
    """A partition as the records so far have it; `lists` are its replicas, ISR, .. by their names in a controller's line."""

    name: str
    topic_id: str
    leader: int
    leader_epoch: int
    partition_epoch: int
    lists: dict[str, list[int]] = field(default_factory=dict)


class _Replay:
    """The state of topics and partitions while the records of a dump are applied to it, in order."""

    def __init__(self) -> None:
        """Begin with no topic: the dump has the whole metadata log, or a snapshot."""
        self.topics: dict[str, str] = {}
        """Topic names by id."""
        self.partitions: dict[tuple[str, int], _Registered] = {}
        """By topic id and number of the partition."""
        self.nodes: set[int] = set()
        """The brokers that registrations of brokers and partitions name."""

    def lines(self, record: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Apply a record of type `record` with the fields `data`; yield the lines that a controller prints as it replays it.

        Each is (logger, message).
        """
        if record == "TOPIC_RECORD":
            self.topics[str(data["topicId"])] = str(data["name"])
        elif record == "PARTITION_RECORD":
            yield "ReplicationControlManager", self._register(data)
        elif record == "PARTITION_CHANGE_RECORD":
            change = self._change(data)
            if change:
                yield "ReplicationControlManager", change
        elif record == "REGISTER_BROKER_RECORD":
            self.nodes.add(int(data["brokerId"]))
            fields = f"brokerId={int(data['brokerId'])}, brokerEpoch={int(data['brokerEpoch'])}"
            yield "ClusterControlManager", f"Replayed initial RegisterBrokerRecord: RegisterBrokerRecord({fields})"
        elif record in ("BROKER_REGISTRATION_CHANGE_RECORD", "FENCE_BROKER_RECORD", "UNFENCE_BROKER_RECORD"):
            yield from self._fencing(record, data)
        elif record == "CONFIG_RECORD" and (data.get("name"), data.get("resourceType")) == _MIN_ISR:
            value = "null" if data.get("value") is None else int(data["value"])
            resource = f"ConfigResource(type=TOPIC, name='{data['resourceName']}')"
            message = f"Replayed ConfigRecord for {resource} which set configuration min.insync.replicas to {value}"
            yield "ConfigurationControlManager", message

    def _register(self, data: dict[str, Any]) -> str:
        """Apply a PartitionRecord; return the message that a controller would have logged for it."""
        topic_id, number = str(data["topicId"]), int(data["partitionId"])
        names = {**_LISTS, **_ELR}
        lists = {names[key]: [int(broker) for broker in data[key] or ()] for key in names if key in data}
        name = f"{self.topics[topic_id]}-{number}"
        partition = _Registered(
            name, topic_id, int(data["leader"]), int(data["leaderEpoch"]), int(data["partitionEpoch"]), lists
        )
        self.partitions[topic_id, number] = partition
        self.nodes.update(lists.get("replicas", ()))
        shown_lists = ", ".join(f"{key}={lists.get(key, [])}" for key in ("isr", "removingReplicas", "addingReplicas"))
        elr = f", elr={lists.get('elr', [])}, lastKnownElr={lists.get('lastKnownElr', [])}" if "elr" in lists else ""
        return (
            f"Replayed PartitionRecord for new partition {name} with topic ID {topic_id} and PartitionRegistration("
            f"replicas={lists.get('replicas', [])}, {shown_lists}{elr}, leader={partition.leader}, "
            f"leaderEpoch={partition.leader_epoch}, partitionEpoch={partition.partition_epoch})"
        )

    def _change(self, data: dict[str, Any]) -> str:
        """Apply a PartitionChangeRecord; return the message that a controller would have logged for it.

        "" for a partition that no record registered.
        """
        partition = self.partitions.get((str(data["topicId"]), int(data["partitionId"])))
        if partition is None:
            return ""
        changes = []
        for key, name in {**_LISTS, **_ELR}.items():
            if data.get(key) is not None:
                after = [int(broker) for broker in data[key]]
                changes.append(f"{name}: {partition.lists.get(name, [])} -> {after}")
                partition.lists[name] = after
        leader = int(data.get("leader", _UNCHANGED))
        # A record that names a leader raises the leader epoch, even if the leader stays.
        if leader != _UNCHANGED:
            if leader != partition.leader:
                changes.append(f"leader: {partition.leader} -> {leader}")
            changes.append(f"leaderEpoch: {partition.leader_epoch} -> {partition.leader_epoch + 1}")
            partition.leader, partition.leader_epoch = leader, partition.leader_epoch + 1
        changes.append(f"partitionEpoch: {partition.partition_epoch} -> {partition.partition_epoch + 1}")
        partition.partition_epoch += 1
        return f"partition change for {partition.name} with topic ID {partition.topic_id}: {', '.join(changes)}"

    def _fencing(self, record: str, data: dict[str, Any]) -> Iterator[tuple[str, str]]:
        """Yield the logger and message of a record that fences a broker (1), unfences it (-1), or does neither (0)."""
        fenced = {"FENCE_BROKER_RECORD": 1, "UNFENCE_BROKER_RECORD": -1}.get(record, data.get("fenced", 0))
        node, epoch = int(data.get("brokerId", data.get("id", -1))), int(data.get("brokerEpoch", data.get("epoch", -1)))
        fields = f"brokerId={node}, brokerEpoch={epoch}, fenced={int(fenced)}"
        yield "ClusterControlManager", f"Replayed BrokerRegistrationChangeRecord({fields})"


def read_metadata_dump(path: Path, label: str) -> tuple[LogFile, frozenset[int]]:
    """Read a dump as the log of a controller; return also the ids of the brokers that its records name."""
    problems: list[Problem] = []
    lines: list[Line] = []
    replay = _Replay()
    number = time = 0
    # The offset after the last batch; and whether offset 0 was there.
    next_offset: int | None = None
    from_the_beginning = False
    for block in blocks(path, label, problems):
        for text in block.decode("utf-8", "replace").removesuffix("\n").split("\n"):
            number += 1
            batch = _BATCH.match(text)
            # The line of a batch has its offsets; the lines of its records follow.
            if batch is not None:
                first = int(batch["first"])
                if next_offset is not None and first > next_offset:
                    do = "dump the whole log; what happened between is unknown"
                    seen = f"offset {first} after {next_offset - 1}"
                    note(Problem(label, number, "records without a hole", seen, do, lost=1), problems)
                from_the_beginning = from_the_beginning or first == 0
                next_offset = int(batch["last"]) + 1
                continue
            at = text.find(_PAYLOAD)
            if at < 0:
                continue
            # Records may be created in another order than they are written: time never goes back.
            record_line = _RECORD.match(text)
            time = time if record_line is None else max(time, int(record_line["created_ms"]) * 1000)
            try:
                record = json.loads(text[at + len(_PAYLOAD) :])
                for logger, message in replay.lines(record["type"], record["data"]):
                    lines.append(Line(label, number, time, "", message, logger))
            except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
                expected, do = "a record as kafka-dump-log prints it", "the record is left out"
                seen = f"{shown(text[at:])} ({type(error).__name__})"
                note(Problem(label, number, expected, seen, do, lost=1), problems)
    # Before the first record of the metadata log nothing was: that is what the first line of a process says to the reader.
    if from_the_beginning and lines:
        lines.insert(
            0, Line(label, lines[0].number, lines[0].time, "", "Registered signal handlers", "LoggingSignalHandler")
        )
    return LogFile(label, lines, problems, LAYOUT), frozenset(replay.nodes)
