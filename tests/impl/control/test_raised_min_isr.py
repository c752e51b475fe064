"""F11: the controller makes an ELR by the min.insync.replicas it wrote, a leader commits by the one it has read."""

from tests.impl.control.controls import fence_broker
from tidegauge.impl.control.alter_partition import AlterPartition, Proposal, alter_partition
from tidegauge.impl.control.configurations import ConfigChange, incremental_alter_configs
from tidegauge.impl.control.partition_registration import PartitionRegistration, RecoveryState
from tidegauge.impl.control.records import TOPIC, ConfigResource
from tidegauge.impl.control.replay import replayed
from tidegauge.impl.control.replication_control import MIN_IN_SYNC_REPLICAS, BrokerRegistration, ReplicationControl
from tidegauge.impl.messages import BrokerState
from tidegauge.impl.profiles import ELR, Setup
from tidegauge.impl.records import Batch
from tidegauge.impl.replica import isr
from tidegauge.impl.replica.partition import make_leader
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE
from tidegauge.impl.storage.log import Log, append_as_follower
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

TP = TopicPartition("t", 0)
BROKERS = (1, 2)
METADATA = tuple(BrokerState(b, epoch=10 + b) for b in BROKERS)
NOW = 1_000_000


def high_watermark_and_election(known_min_isr: int) -> tuple[int, PartitionRegistration]:
    """Ten records that broker 2 has not fetched; min ISR is raised to 2, the leader proposes itself, and then stops."""
    setup = Setup(profile=ELR, min_insync_replicas=known_min_isr)
    log, _ = append_as_follower(setup, Log(), (Batch(0, 9, 0),), 0)
    leader, _ = make_leader(setup, Partition(1, log), 0, 0, BROKERS, BROKERS, METADATA, NOW)
    registered = Table((b, BrokerRegistration(10 + b)) for b in BROKERS)
    control = ReplicationControl(registered, Table([(TP, PartitionRegistration(BROKERS, BROKERS, 1))]), ELR, min_isr=1)

    raised = ConfigChange(ConfigResource(TOPIC, "t"), MIN_IN_SYNC_REPLICAS, "2")
    control = replayed(control, incremental_alter_configs(control, (raised,)).records)
    leader = isr.prepare_isr_shrink(leader, (2,))
    proposal = Proposal(TP, isr.alter_partition_request(leader, own_epoch=11))
    records, result = alter_partition(control, AlterPartition(1, 11, (proposal,)))
    assert result.responses[0].error == NONE
    leader, _ = isr.handle_alter_partition_response(setup, leader, leader.state, result.responses[0], METADATA, NOW)
    return leader.log.hw, fence_broker(replayed(control, records), 1).partitions[TP]


def test_f11_a_leader_that_has_not_heard_of_a_higher_min_isr_commits_what_an_elr_member_lacks() -> None:
    """Broker 2 is elected cleanly; the leader's high watermark went to its log end, or stayed if it knew."""
    committed, after = high_watermark_and_election(known_min_isr=1)
    assert (committed, after.leader, after.recovery) == (10, 2, RecoveryState.RECOVERED)
    assert high_watermark_and_election(known_min_isr=2)[0] == 0
