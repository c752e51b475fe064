"""Who leads the quorum of the controllers, and nodes that do not reach each other."""

import pytest

from tests.story.conftest import Telling, dated, only
from tidegauge.story.sentences import headline
from tidegauge.story.story import happened

RAFT = "INFO [RaftManager id={}] "
UNATTACHED = (
    "Completed transition to Unattached(epoch={}, voters=[0, 1, 2], electionTimeoutMs=631) from {} "
    "(org.apache.kafka.raft.QuorumState)"
)
CANDIDATE = (
    "Completed transition to CandidateState(localId=0, epoch={}, retries=1, voteStates={{0=GRANTED, 1=UNRECORDED}}, "
    "highWatermark=Optional[LogOffsetMetadata(offset=612, metadata=Optional.empty)], electionTimeoutMs=1401) from {} "
    "(org.apache.kafka.raft.QuorumState)"
)
FOLLOWER = "FollowerState(fetchTimeoutMs=2000, epoch={}, {}={}, voters=[0, 1, 2], highWatermark=Optional.empty)"
LEADER = (
    "Leader(localId=0, epoch={}, epochStartOffset=9, highWatermark=Optional.empty, voterStates={{0=ReplicaState(nodeId=0, "
    "endOffset=Optional.empty)}})"
)
TO = "Completed transition to {} from {} (org.apache.kafka.raft.QuorumState)"
REJECTED = "Insufficient remaining votes to become leader (rejected by {}). We will backoff before retrying election again"
UNSENT = "because the RPC got timed out before it could be sent. (kafka.server.BrokerLifecycleManager)"
TIMED_OUT = "Election has timed out, backing off for 1000ms before becoming a candidate again (x)"
UNREACHED = "Connection to node {} (c{}/10.0.0.9:9093) could not be established. Node may not be available. (x)"


def of_node(*lines: str, node: int = 0) -> str:
    return dated(*(RAFT.format(node) + line for line in lines))


@pytest.mark.parametrize("rejecting", ["[1, 2]", "[ReplicaKey(id=1, directoryId=<undefined>), ReplicaKey(id=2)]"])
def test_a_node_that_finds_no_leader_says_what_it_did_about_it(telling: Telling, rejecting: str) -> None:
    story = telling(
        of_node(
            CANDIDATE.format(48, FOLLOWER.format(47, "leaderId", 2)),
            REJECTED.format(rejecting),
            CANDIDATE.format(49, "CandidateState(localId=0, epoch=48, retries=1)"),
            UNREACHED.format(2, 2),
            TIMED_OUT,
            UNATTACHED.format(50, "CandidateState(localId=0, epoch=49, retries=2)"),
        )
    )
    (entry,) = [entry for entry in story.entries if entry.kind == "quorum"]
    assert (entry.node, entry.fields["leader"], entry.fields["elections"], happened(entry)) == (0, None, 2, True)
    assert (
        "node 0 knew no leader of the KRaft quorum in epochs 48 to 50, after node 2 led epoch 47: it stood for election, 2 "
        "times in a row, it did not reach nodes 2, it was rejected by nodes 1, 2, too few answered it."
    ) in headline(story)[1]
    assert "most of the voters run" in headline(story)[2]


@pytest.mark.parametrize("name", ["leaderId", "leader"])
def test_a_change_of_the_leader_that_ends_is_ordinary(telling: Telling, name: str) -> None:
    story = telling(
        of_node(
            UNATTACHED.format(6, "null"),
            TO.format(FOLLOWER.format(6, name, 2), "Unattached(epoch=6, voters=[0, 1, 2])"),
            CANDIDATE.format(7, FOLLOWER.format(6, name, 2)),
            TO.format(LEADER.format(7), "CandidateState(localId=0, epoch=7, retries=1)"),
        )
    )
    assert [(entry.fields["leader"], entry.fields["leader_epoch"]) for entry in story.entries] == [
        (None, None),
        (2, 6),
        (None, None),
        (0, 7),
    ]
    assert not any(map(happened, story.entries))
    assert "Nothing out of the ordinary" in headline(story)[0]
    assert any("node 0 became the leader of the KRaft quorum in epoch 7" in line for line in headline(story))


def test_a_leader_that_resigns_says_why(telling: Telling) -> None:
    alone = "Did not receive fetch request from the majority of the voters within 3000ms. Current fetched voters are [1]"
    resigned = "ResignedState(localId=0, epoch=7, voters=[0, 1, 2], electionTimeoutMs=1, unackedVoters=[1, 2])"
    story = telling(of_node(TO.format(resigned, LEADER.format(7))))
    assert (only(story, "quorum")["resigned"], happened(story.entries[0])) == (True, False)
    why = telling(of_node(alone, TO.format(resigned, LEADER.format(7))))
    assert "resigned as the leader of the KRaft quorum in epoch 7: no majority of the voters fetched" in headline(why)[1]
    # A node that led before it stopped begins so, and resigns from nothing.
    assert "knew no leader of the KRaft quorum in epoch 7" in headline(telling(of_node(TO.format(resigned, "null"))))[1]


def test_a_node_without_voters_says_so(telling: Telling) -> None:
    state = "UnattachedState(epoch=2, leaderId=OptionalInt.empty, votedKey=Optional.empty, voters=[], electionTimeoutMs=18)"
    assert "in epoch 2: it knew no voters." in headline(telling(of_node(TO.format(state, "null"))))[1]


def test_what_a_quorum_did_does_not_come_before_what_ended_a_process(telling: Telling) -> None:
    waiting = "ERROR [BrokerServer id=2] Received a fatal error while waiting for the controller to acknowledge (kafka.x)"
    story = telling(of_node(TIMED_OUT) + f"[2026-01-01 00:01:00,000] {waiting}\n")
    assert "broker 2 failed: it waited for the controller to acknowledge" in headline(story)[1]


@pytest.mark.parametrize(
    "line",
    [
        "Controller 1 epoch 2 fails to send request (type: X=, controllerId=1) to broker b:9092 (id: 2 rack: null). Reconn",
        "Controller 1 epoch 2 fails to send request Name:X;Version:0 to broker id:2,host:b,port:9092. Reconnecting to",
        "Controller 1 epoch 2 fails to send request {x=0} to broker Node(2, b, 9092). Reconnecting to broker.",
        "[Controller id=1, targetBrokerId=2] Connection to node 2 (b/10.0.0.2:9092) could not be established. Broker may",
    ],
)
def test_a_node_that_is_not_reached_is_ordinary_for_a_moment(telling: Telling, line: str) -> None:
    once = telling(dated(f"WARN {line} (x)"))
    assert (only(once, "unreachable")["node"], only(once, "unreachable")["peer"]) == (1, 2)
    assert "node 1 could not reach node 2. That passes while a broker restarts" in headline(once)[1]
    often = telling(dated(*[f"WARN {line} (x)"] * 5))
    assert [(entry.fields["times"], happened(entry)) for entry in often.entries] == [(5, True)]
    # Of a client's connection nothing is told.
    assert telling(dated(f"WARN [Producer clientId=p] {UNREACHED.format(2, 2)}")).entries == []


def test_a_host_without_an_address_and_a_controller_that_hears_nothing_are_out_of_reach(telling: Telling) -> None:
    story = telling(
        dated(
            "INFO [RaftManager id=1] Completed transition to CandidateState(localId=1, epoch=78, retries=13) (kafka)",
            "WARN [RaftManager id=1] Error connecting to node kafka02:9093 (id: 2 rack: null) (org.apache.kafka.clients)",
            *[f"INFO [BrokerLifecycleManager id=1] Unable to send a heartbeat {UNSENT}"] * 4,
        )
    )
    peers = [entry.fields["peer"] for entry in story.entries if entry.kind == "unreachable"]
    assert peers == [2, None]
    assert any("it did not reach nodes 2" in line for line in headline(story))
    assert any("node 1 could not reach the active controller, 4 times" in line for line in headline(story))
