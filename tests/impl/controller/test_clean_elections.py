"""Random histories of the controller over brokers with logs: a clean election loses nothing once F4, F9 and F10 are mended.

Rules of this file

1. A log is the committed records it holds. Brokers hear of everything at once, so what is lost is lost by the controller:
   F11 is not here.
2. A leader commits while its ISR is at min.insync.replicas, and proposes for the ISR whoever holds everything.
3. With ELR off the last member stays in the ISR, whatever becomes of its log: the hole that ELRs are there to close. Here it
   keeps its log.
"""

import random
from collections import Counter

import pytest

from tidegauge.impl.controller import brokers as brokers_
from tidegauge.impl.controller.configurations import ConfigChange, incremental_alter_configs, update_features
from tidegauge.impl.controller.features import ELR_VERSION, Features, FeatureUpdate
from tidegauge.impl.controller.partition_change import Election
from tidegauge.impl.controller.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.controller.records import TOPIC, ConfigResource, RegisterBrokerRecord
from tidegauge.impl.controller.replay import replay_records
from tidegauge.impl.controller.replication_control import (
    MIN_IN_SYNC_REPLICAS,
    AlterPartition,
    BrokerRegistration,
    Proposal,
    ReplicationControl,
    alter_partition,
    is_active,
    min_isr,
)
from tidegauge.impl.controller.requests import (
    DirectoryAssignment,
    Reassignment,
    alter_partition_reassignments,
    assign_replicas_to_dirs,
    elect_leader,
)
from tidegauge.impl.errors import IllegalStateError
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.profiles import ELR_REPAIRED, Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

BROKERS = (1, 2, 3)
ZERO, TP = TopicPartition("t", 0), TopicPartition("t", 1)


class Cluster:
    """A controller, and what each broker's replica of partition 1 holds."""

    def __init__(self, profile: Profile, seed: int) -> None:
        self.choice = random.Random(seed)
        self.directory = {b: f"{b}-0" for b in BROKERS}
        brokers = FrozenMap((b, BrokerRegistration(b, directories=(self.directory[b],))) for b in BROKERS)
        partition = PartitionRegistration(BROKERS, BROKERS, 1, directories=tuple(self.directory.values()))
        self.control = ReplicationControl(
            brokers, FrozenMap([(ZERO, partition), (TP, partition)]), profile, min_isr=2, features=Features(elr=1)
        )
        self.holds: dict[int, set[int]] = {b: set() for b in BROKERS}
        self.committed: set[int] = set()
        self.records = self.incarnations = 0
        self.clean_losses: list[int] = []
        self.happened: Counter[str] = Counter()

    @property
    def partition(self) -> PartitionRegistration:
        """The registration of partition 1."""
        return self.control.partitions[TP]

    def step(self) -> None:
        """Something happens, and whoever is elected by it is looked at."""
        name = self.choice.choice([
            "fence", "unfence", "unfence", "start", "replace_directory", "reassign", "reassign", "configure", "switch",
            "elect", "shrink", "expand", "expand", "fetch", "fetch", "commit", "commit", "commit",
        ])  # fmt: skip
        before = self.partition
        try:
            getattr(self, name)(self.choice.choice(BROKERS))
        except IllegalStateError:  # finding F6: nothing is written
            return
        for b in set(before.replicas) - set(self.partition.replicas):
            self.holds[b] = set()
        if self.partition.leader not in {before.leader, UNDEFINED}:
            self.look(before, self.partition)

    def look(self, before: PartitionRegistration, elected: PartitionRegistration) -> None:
        """An unclean election may lose records, and says so; a clean one may not."""
        lost = self.committed - self.holds[elected.leader]
        if elected.recovery is RecoveryState.RECOVERED:
            self.happened["from the ISR" if elected.leader in before.isr else "from the ELR"] += 1
            self.clean_losses += sorted(lost)
        else:
            self.propose(elected.isr)
        self.committed -= lost

    def apply(self, records: object) -> None:
        """The records of a request."""
        self.control = replay_records(self.control, records)  # type: ignore[arg-type]

    # -- brokers

    def fence(self, b: int) -> None:
        """Its session is over, or it stops."""
        if not self.control.brokers[b].fenced:
            self.apply(brokers_.broker_fenced(self.control, b))

    def unfence(self, b: int) -> None:
        """It has caught up with the metadata."""
        if self.control.brokers[b].fenced:
            self.apply(brokers_.broker_unfenced(self.control, b))

    def start(self, b: int, *, clean: bool | None = None) -> None:
        """Another incarnation; one that did not stop cleanly has lost its log."""
        self.fence(b)
        clean = self.choice.random() < 0.5 if clean is None else clean
        clean = clean or b in self.partition.isr
        self.incarnations += 1
        epoch = 100 + self.incarnations
        record = RegisterBrokerRecord(b, epoch, epoch, directories=(self.directory[b],))
        previous = self.control.brokers[b].epoch if clean else UNDEFINED
        self.apply(brokers_.broker_registered(self.control, record, previous))
        if not clean:
            self.holds[b] = set()

    def replace_directory(self, b: int) -> None:
        """It stops cleanly, and starts with another directory in place of the one its replica lies in."""
        self.fence(b)
        if b in self.partition.isr:
            return
        self.directory[b] = f"{b}-{self.incarnations + 1}"
        self.start(b, clean=True)
        self.holds[b] = set()
        epoch = self.control.brokers[b].epoch
        for tp in (ZERO, TP):
            self.apply(assign_replicas_to_dirs(self.control, DirectoryAssignment(b, epoch, self.directory[b], tp)).records)

    # -- administration

    def reassign(self, b: int) -> None:
        """Other replicas for one of the partitions, or what is under way is cancelled."""
        to = None if self.choice.random() < 0.2 else tuple(self.choice.sample(BROKERS, b))
        asked = Reassignment(self.choice.choice([ZERO, TP, TP]), to)
        self.apply(alter_partition_reassignments(self.control, (asked,)).records)

    def configure(self, b: int) -> None:
        """min.insync.replicas becomes 1, 2 or 3."""
        asked = ConfigChange(ConfigResource(TOPIC, "t"), MIN_IN_SYNC_REPLICAS, str(b))
        self.apply(incremental_alter_configs(self.control, (asked,)).records)

    def switch(self, b: int) -> None:
        """ELR is switched off or on."""
        del b
        level = 1 - self.control.features.elr
        update = FeatureUpdate(ELR_VERSION, level, upgrade=level > 0)
        self.apply(update_features(self.control, update, self.control.features.metadata_version).records)

    def elect(self, b: int) -> None:
        """A preferred election."""
        del b
        self.apply(elect_leader(self.control, TP, Election.PREFERRED).records)

    # -- the leader

    def propose(self, isr: tuple[int, ...]) -> None:
        """AlterPartition, which also ends a recovery."""
        now = self.partition
        request = AlterPartitionRequest(now.leader, now.leader_epoch, now.partition_epoch, isr)
        epoch = self.control.brokers[now.leader].epoch
        self.apply(alter_partition(self.control, AlterPartition(now.leader, epoch, (Proposal(TP, request),))).records)

    def shrink(self, b: int) -> None:
        """A follower lags."""
        if self.partition.leader not in {b, UNDEFINED} and b in self.partition.isr:
            self.propose(tuple(member for member in self.partition.isr if member != b))

    def expand(self, b: int) -> None:
        """A follower holds everything."""
        joins = b in self.partition.replicas and b not in self.partition.isr and self.holds[b] >= self.committed
        if self.partition.leader != UNDEFINED and joins and is_active(self.control, b):
            self.propose((*self.partition.isr, b))

    def fetch(self, b: int) -> None:
        """A follower has what its leader has, no more."""
        if self.partition.leader != UNDEFINED and b in self.partition.replicas and is_active(self.control, b):
            self.holds[b] = set(self.holds[self.partition.leader])

    def commit(self, b: int) -> None:
        """A record that the ISR has, and nobody else."""
        del b
        isr, replicas = self.partition.isr, self.partition.replicas
        if self.partition.leader != UNDEFINED and len(isr) >= min(min_isr(self.control, "t"), len(replicas)):
            self.records += 1
            self.committed.add(self.records)
            for member in isr:
                self.holds[member].add(self.records)


def walked(profile: Profile, seed: int, steps: int = 120) -> Cluster:
    """A cluster after a random history, until a clean election loses something."""
    cluster = Cluster(profile, seed)
    for _ in range(steps):
        cluster.step()
        if cluster.clean_losses:
            break
    return cluster


@pytest.mark.parametrize("seeds", [range(300), pytest.param(range(300, 5_000), marks=pytest.mark.long)])
def test_repaired_a_clean_election_loses_nothing(seeds: range) -> None:
    """Elections from ISR and ELR both happen."""
    happened: Counter[str] = Counter()
    for seed in seeds:
        cluster = walked(ELR_REPAIRED, seed)
        assert not cluster.clean_losses, f"seed {seed}"
        happened += cluster.happened
    assert min(happened["from the ISR"], happened["from the ELR"]) > len(seeds) // 4


@pytest.mark.parametrize(
    "switches",
    [
        {"elr_keeps_removed": True, "min_isr_by_partition_zero": True},
        {"neglects_elr_when_off": True},
        {"recreated_stays_eligible": True},
    ],
)
def test_with_a_finding_left_in_a_clean_election_loses_records(switches: dict[str, bool]) -> None:
    """F4, F9 and F10, each alone."""
    profile = ELR_REPAIRED.switched(switches)
    assert any(walked(profile, seed).clean_losses for seed in range(3_000))


def test_counting_the_replicas_of_partition_0_alone_loses_nothing() -> None:
    """As the proof has it: whatever caps min ISR, who is eligible and a replica holds everything."""
    profile = ELR_REPAIRED._replace(min_isr_by_partition_zero=True)
    assert not any(walked(profile, seed).clean_losses for seed in range(300))
