"""Replaying the events of a capture gives what the brokers had on disk in the end."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_logs import hand
from tidegauge.traces.kafka_logs import Capture
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Event, Trace

CAPTURES = sorted(shipped())
NOT_ON_A_REPLICA = {"ChangePartition", "AlterPartition"}


class Replica:
    """A replica as small as can be: what an event says, it takes."""

    def __init__(self) -> None:
        self.leo: Any = None
        self.hw: Any = None
        self.log_start: Any = None
        self.epochs: list[list[int]] = []
        self.surprises: list[str] = []

    def take(self, event: Event) -> None:
        fields = event.fields
        for before, now in (("leo_before", self.leo), ("hw_before", self.hw)):
            if before in fields and now is not None and fields[before] != now:
                self.surprises.append(
                    f"{event.at} {event.event}: {before} is {fields[before]}, the events before it say {now}"
                )
        if event.event == "Observe":
            self.surprises += [
                f"{event.at}: {name} is {value}, the events say {getattr(self, name)}"
                for name, value in fields.items()
                if getattr(self, name) != value
            ]
            return
        if event.event == "Start":
            self.epochs = [list(entry) for entry in fields.get("epochs", [])]
        elif event.event in ("BecomeLeader", "EpochCacheEntry") and "epoch_start" in fields:
            self.assign(fields["leader_epoch"], fields["epoch_start"])
        elif event.event == "HandleFetchResponse":
            for epoch, start in fields.get("epochs", []):
                self.assign(epoch, start)
        if "leo" in fields and self.leo is not None and fields["leo"] < self.leo:
            self.epochs = [entry for entry in self.epochs if entry[1] < fields["leo"]]
        for name in ("leo", "hw", "log_start"):
            if name in fields:
                setattr(self, name, fields[name])

    def assign(self, epoch: int, start: int) -> None:
        if self.epochs and self.epochs[-1][0] == epoch:
            return
        self.epochs = [entry for entry in self.epochs if entry[0] < epoch and entry[1] < start]
        self.epochs.append([epoch, start])


def replay(trace: Trace) -> dict[int, Replica]:
    replicas: dict[int, Replica] = {}
    for event in trace.events:
        if event.event not in NOT_ON_A_REPLICA:
            replicas.setdefault(event.node, Replica()).take(event)
    return replicas


def on_disk(folder: Path) -> dict[str, Any]:
    zipped = folder / "final_log.json.gz"
    text = gzip.decompress(zipped.read_bytes()) if zipped.exists() else (folder / "final_log.json").read_bytes()
    return dict(json.loads(text)["brokers"])


@pytest.mark.parametrize("name", CAPTURES)
def test_the_events_end_where_the_disks_ended(name: str, capture: Callable[[str], Capture]) -> None:
    """LEO, epoch cache and the epoch of every batch, rebuilt from events alone, equal the segment files."""
    disks = on_disk(shipped()[name])
    compared = 0
    for trace in capture(name).traces:
        replicas = replay(trace)
        for broker, disk in disks.items():
            partition = disk["partitions"].get(trace.tp)
            if partition is None:
                continue
            replica = replicas[int(broker)]
            assert replica.epochs == partition["leader_epoch_checkpoint"], (trace.tp, broker)
            if partition["batches"]:
                assert replica.leo == partition["batches"][-1]["last"] + 1, (trace.tp, broker)
            for batch in partition["batches"]:
                epoch = [entry[0] for entry in replica.epochs if entry[1] <= batch["base"]][-1]
                assert epoch == batch["epoch"], (trace.tp, broker, batch)
            compared += 1
    assert compared >= 3


@pytest.mark.parametrize("name", CAPTURES)
def test_what_an_event_says_held_before_it_is_what_the_one_before_left(name: str, capture: Callable[[str], Capture]) -> None:
    """Every leo_before, hw_before and every final checkpoint agrees with the events before it."""
    observed = 0
    for trace in capture(name).traces:
        for replica in replay(trace).values():
            assert replica.surprises == []
        observed += sum(1 for event in trace.events if event.event == "Observe")
    assert observed >= 3


def test_the_replay_notices_a_changed_event(trace: Callable[[str, str], Trace]) -> None:
    """An append that claims one record more makes the next event disagree."""
    replica = Replica()
    reported = [event for event in trace("4.2.0/b-kill-leader", "alpha-0").events if event.node == 2]
    at = next(i for i, event in enumerate(reported) if event.event == "HandleFetchResponse" and event.fields["leo"] == 7)
    reported[at] = Event(2, "HandleFetchResponse", dict(reported[at].fields) | {"leo": 8})
    for event in reported:
        replica.take(event)
    assert any("leo_before is 7, the events before it say 8" in surprise for surprise in replica.surprises)


@pytest.mark.parametrize(
    ("version", "profile"),
    [
        ("4.2.0", "elr"), ("4.5.0", "elr"), ("4.2.0-SNAPSHOT", "elr"), ("4.1.1.redhat-00001", "elr"), ("8.1.0-ccs", "elr"),
        ("3.9.1", "fetch-truncation"), ("7.9.1-ccs", "fetch-truncation"),
    ],
)  # fmt: skip
def test_a_build_of_ones_own_is_of_the_generation_of_its_release(version: str, profile: str, tmp_path: Path) -> None:
    """Its eligible replicas, too, even if no line of a controller names them."""
    says = ("main", "AppInfoParser", f"Kafka version: {version}")
    assert {trace.config.profile for trace in hand.broker(tmp_path, says, *hand.LOADED, hand.LEADS).traces} == {profile}


def test_a_capture_says_which_generation_it_is_of_and_what_no_line_tells(capture: Callable[[str], Capture]) -> None:
    """Since 4.1 an ISR may be empty (KIP-966). OffsetsForLeaderEpoch requests leave no line at a follower."""
    profiles = {
        name: {one.config.profile for one in capture(name).traces} for name in CAPTURES if name.endswith("b-kill-leader")
    }
    old = {"fetch-truncation"}
    assert profiles == {"3.4.0/b-kill-leader": old, "3.4.1/b-kill-leader": old, "4.2.0/b-kill-leader": {"elr"}}
    reports = next(iter(capture("4.2.0/b-kill-leader").traces)).config.extra["reports"]
    assert "SendFetch" in reports
    assert "SendEpochRequest" not in reports
