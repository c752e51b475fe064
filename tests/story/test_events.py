"""What controllers, leaders and logs say beside elections and truncations, each line as an entry."""

import pytest

from tests.story.conftest import Telling, log, only
from tests.story.test_losses import SHRINK, UNCLEAN, leads
from tidegauge.story.sentences import headline
from tidegauge.story.story import happened

REJECTED = (
    "[QuorumController id=9] Rejecting AlterPartition request from node 1 for x-0 because it specified ineligible replicas "
    "[2 (fenced)] in the new ISR [1, 2]. (org.apache.kafka.controller.ReplicationControlManager)"
)
REFUSED = (
    "[Partition x-0 broker=1] Failed to alter partition to PendingExpandIsr(newInSyncReplicaId=2, "
    "sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=4, isr=List(1, 2), partitionEpoch=7)) since the controller "
    "rejected the request with INELIGIBLE_REPLICA. (kafka.cluster.Partition)"
)
RECOVERING = (
    "[Partition x-0 broker=2] The topic partition x-0 was marked as RECOVERING. Marking the topic partition as RECOVERED. "
    "(kafka.cluster.Partition)"
)
UUID = "HhPpDbsLQCqkVYGkSVHmWA"
STRAY = (
    f"Found stray log dir Log(dir=/d/x-0, topicId={UUID}, topic=x): the topicId {UUID} does not exist in the metadata image",
    "Log for partition x-0 is marked as stray and renamed to /d/x-0.6f2e1c0ad0b04d2b8c6c5ac1a0b7d5ce-stray (kafka.log)",
)


@pytest.mark.parametrize("lines", [(REJECTED,), (REJECTED, REFUSED), (REFUSED, REJECTED)])
def test_a_proposal_that_controller_and_leader_call_refused_is_one_entry(telling: Telling, lines: tuple[str, ...]) -> None:
    change = only(telling(log(*lines)), "isr_changed")
    assert (change["node"], change["to"], change["accepted"], change["times"]) == (1, [1, 2], False, 1)


def test_a_refusal_of_which_no_line_says_the_isr_is_told_without(telling: Telling) -> None:
    story = telling(log("[Partition x-0 broker=1] Cached zkVersion 54 not equal to that in zookeeper, skip updating ISR"))
    assert only(story, "isr_changed")["to"] is None
    assert any(
        line.endswith("broker 1 was refused a change of the ISR, for ZooKeeper has another version of it.")
        for line in headline(story)
    )


def test_a_leader_that_recovers_was_elected_uncleanly_for_the_epoch_of_its_leader_line(telling: Telling) -> None:
    story = telling(log(leads(1, 4, 500, 500, "1,2"), SHRINK, RECOVERING, leads(2, 5, 700, 700, "2")))
    assert (only(story, "elected")["leader_epoch"], only(story, "elected")["clean"]) == (5, False)
    whole = telling(log(leads(1, 4, 500, 500, "1,2"), SHRINK, UNCLEAN, RECOVERING, leads(2, 5, 700, 700, "2")))
    assert [(loss.first, loss.end, loss.why) for loss in story.losses] == [
        (loss.first, loss.end, loss.why) for loss in whole.losses
    ]


def test_a_log_that_the_metadata_do_not_give_to_the_broker_is_told_with_the_reason(telling: Telling) -> None:
    story = telling(log("[Broker id=3] Leader x-0 starts", *STRAY))
    assert only(story, "stray")["reason"] == f"the topicId {UUID} does not exist in the metadata image"
    assert any("took its log for a stray" in line for line in headline(story))


def test_what_a_client_had_deleted_is_told_and_retention_is_ordinary(telling: Telling) -> None:
    says = "[UnifiedLog partition=x-0, dir=/d] Incremented log start offset to {} due to {} (kafka.log.UnifiedLog)"
    retention = [says.format(to, "segment deletion") for to in (50, 60)]
    story = telling(log(*retention, says.format(70, "client delete records request")))
    assert [(entry.kind, entry.fields["to"], happened(entry)) for entry in story.entries] == [
        ("retention", 60, False),
        ("records_deleted", 70, True),
    ]
    assert "a broker removed the records below 60: they were older" in "\n".join(headline(telling(log(*retention))))


def test_a_topic_that_was_deleted_needs_no_leader(telling: Telling) -> None:
    nobody = (
        "[QuorumController id=9] partition change for x-0: isr: [1] -> [1], leader: 1 -> -1, leaderEpoch: 4 -> 5, "
        "partitionEpoch: 5 -> 6"
    )
    deleted = "[QuorumController id=9] Replayed RemoveTopicRecord for topic x with ID HhPpDbsLQCqkVYGkSVHmWA. (kafka)"
    assert any("no leader was left" in line for line in headline(telling(log(nobody))))
    story = telling(log(nobody, deleted))
    assert not any("no leader was left" in line for line in headline(story))
    assert only(story, "topic_deleted")["topic"] == "x"


def test_a_broker_that_left_is_out_of_the_ordinary_only_if_its_session_timed_out(telling: Telling) -> None:
    story = telling(
        log(
            "[QuorumController id=9] Fencing broker 2 because its session has timed out. (kafka)",
            "[Controller id=9] Broker failure callback for 2,3 (kafka.controller.KafkaController)",
        )
    )
    assert [(entry.fields["broker"], happened(entry)) for entry in story.entries] == [(2, True), (2, False), (3, False)]


def test_a_change_of_the_controller_is_ordinary(telling: Telling) -> None:
    story = telling(
        log(
            "[QuorumController id=9] Becoming the active controller at epoch 7, next write offset 1200. (kafka)",
            # Every broker of ZooKeeper that stops prints it.
            "[Controller id=2] Resigned (kafka.controller.KafkaController)",
            "[Controller id=3] Ready to serve as the new controller with epoch 6 (kafka.controller.KafkaController)",
            "[Controller id=3] Resigned (kafka.controller.KafkaController)",
        )
    )
    assert [(entry.node, entry.fields["controller_epoch"], entry.fields["active"]) for entry in story.entries] == [
        (9, 7, True),
        (3, 6, True),
        (3, None, False),
    ]
    assert not any(map(happened, story.entries))


@pytest.mark.parametrize(
    "says",
    [
        "[Controller 9] maybeFence: failed with unknown server exception {} at epoch 9 in 187 us.  ",
        "[QuorumController id=9] maybeFence: event failed with {} (treated as UnknownServerException) at epoch 9 in 1 us. ",
    ],
    ids=["to 3.5", "since 3.6"],
)
def test_a_controller_that_an_error_ends_is_no_ordinary_change_of_the_controller(telling: Telling, says: str) -> None:
    """Another leader of the quorum ends it in the same words (QuorumController#handleEventException)."""
    renounced = says + "Renouncing leadership and reverting to the last committed offset 13094. (kafka)"
    story = telling(log(renounced.format("NullPointerException")))
    assert list(map(happened, story.entries)) == [True]
    assert any("ceased to be the active controller: maybeFence failed with NullPointer" in line for line in headline(story))
    assert any("keep the stack trace" in line for line in headline(story))
    assert not any(map(happened, telling(log(renounced.format("NotLeaderException"))).entries))


def test_what_a_controller_could_not_commit_for_long_is_told(telling: Telling) -> None:
    renounced = (
        "[Controller 3] maybeFence: failed with unknown server exception NotLeaderException at epoch 26 in 1913 us.  "
        "Renouncing leadership and reverting to the last committed offset 99. (org.apache.kafka.controller.QuorumController)"
    )
    given_up = "[Controller 3] writeNoOpRecord: failed with NotControllerException in {} us (kafka)"
    assert any("had waited 415 s" in line for line in headline(telling(log(renounced, given_up.format(415_741_179)))))
    assert not any(map(happened, telling(log(renounced, given_up.format(4_000))).entries))


def test_heartbeats_of_two_brokers_are_not_counted_as_one_brokers(telling: Telling) -> None:
    refused = (
        "[QuorumController id=0] processBrokerHeartbeat: event failed with StaleBrokerEpochException in 25 microseconds. "
        "Exception message: Expected broker epoch {}, but got broker epoch {} (kafka)"
    )
    story = telling(log(refused.format(57, 21), refused.format(55, 29), refused.format(57, 21)))
    assert [(entry.fields["expected"], entry.fields["times"]) for entry in story.entries] == [(57, 2), (55, 1)]


def test_what_a_fetcher_wants_to_truncate_its_log_need_not_cut(telling: Telling) -> None:
    """The line stands before the log looks whether there is anything behind that offset (AbstractFetcherThread)."""
    wants = (
        "[ReplicaFetcher replicaId=2, leaderId=1, fetcherId=0] Truncating partition x-0 to local high watermark 7 (kafka)"
    )
    assert any("was to truncate to its own high watermark 7; whether" in line for line in headline(telling(log(wants))))
    log_line = "[Log partition=x-0, dir=/d] Truncating to 7 has no effect as the largest offset in the log is 6 (kafka)"
    assert not any(map(happened, telling(log(wants, log_line)).entries))


@pytest.mark.parametrize(
    ("elr", "do"),
    [
        ("1\tLastKnownElr: 1", "start broker 1 again: an eligible"),
        ("\tLastKnownElr: 1", "start broker 1 again, which led last"),
    ],
)
def test_the_eligible_leader_of_a_partition_without_one_is_to_be_started(telling: Telling, elr: str, do: str) -> None:
    story = telling(f"\tTopic: x\tPartition: 0\tLeader: none\tReplicas: 1,2\tIsr: \tElr: {elr}\n")
    assert any(do in line for line in headline(story))


def test_an_election_that_a_person_laid_out_in_several_lines_is_read_whole(telling: Telling) -> None:
    story = telling(
        "```\n[QuorumController id=1] UNCLEAN partition change for x-0:\n  isr: [1] -> [2], leader: 1 -> 2,\n"
        "  leaderRecoveryState: RECOVERED -> RECOVERING, leaderEpoch: 2 -> 3, partitionEpoch: 5 -> 6\n```\n"
    )
    elected = only(story, "elected")
    assert (elected["leader"], elected["leader_epoch"], elected["clean"]) == (2, 3, False)


def test_a_log_from_before_epochs_that_had_nothing_to_truncate_is_one_entry(telling: Telling) -> None:
    story = telling(
        log(
            "Partition [x,0] on broker 1: Shrinking ISR for partition [x,0] from 1,2 to 1",
        )
        + "[2026-01-01 00:00:05,000] INFO Truncating log x-0 to offset 70. (kafka.log.Log)\n"
        "[2026-01-01 00:00:05,001] INFO Truncating x-0 to 70 has no effect as the largest offset in the log is 59. "
        "(kafka.log.Log)\n"
    )
    truncated = only(story, "truncated")
    assert (truncated["relation"], truncated["from"], truncated["to"]) == ("no effect", 60, 70)


def test_a_log_that_was_truncated_and_has_nothing_to_truncate_then_is_two_entries(telling: Telling) -> None:
    story = telling(
        "[2026-01-01 00:00:05,000] INFO Truncating log x-0 to offset 70. (kafka.log.Log)\n"
        "[2026-01-01 00:00:05,001] INFO Truncating x-0 to 70 has no effect as the largest offset in the log is 69. "
        "(kafka.log.Log)\n"
    )
    assert [entry.fields["relation"] for entry in story.entries] == ["unknown", "no effect"]


def test_an_election_that_calls_itself_unclean_is_told_with_what_it_says(telling: Telling) -> None:
    change = (
        "[Controller 0] UNCLEAN partition change for x-0 with topic ID HhPpDbsLQCqkVYGkSVHmWA: isr: [1] -> [0], leader: "
        "1 -> 0, leaderEpoch: 85 -> 86, partitionEpoch: 85 -> 86 (org.apache.kafka.controller.ReplicationControlManager)"
    )
    story = telling(log(change))
    assert only(story, "elected")["clean"] is None
    assert headline(story)[0].startswith("Whether data was lost, these lines do not tell")
    assert any("broker 0 was elected for epoch 86, which its line calls UNCLEAN" in line for line in headline(story))


def test_what_the_leader_caches_later_is_not_the_isr_of_its_election(telling: Telling) -> None:
    state = "(LeaderAndIsrInfo:(Leader:1,ISR:1,2,LeaderEpoch:0,ControllerEpoch:1),ReplicationFactor:3),AllReplicas:1,2,3)"
    behind = "for partition x-0 in response to UpdateMetadata request sent by controller 2 epoch 1 with correlation id 7"
    cached = telling(log(f"Broker 1 cached leader info {state} {behind}"))
    assert [entry.fields["isr"] for entry in cached.entries] == [None]
    received = (
        f"Broker 1 received LeaderAndIsr request {state} correlation id 7 from controller 2 epoch 1 for partition [x,0]"
    )
    assert [entry.fields["isr"] for entry in telling(log(received)).entries] == [[1, 2]]
