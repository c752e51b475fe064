"""What becomes of ISR proposals at their leader: sent, refused before they are sent, ignored as metadata came first."""
# ruff: noqa: E501

import re
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_logs.hand import DELETED, LEADS, LOADED, PART, REQUEST_HANDLER, STARTED, broker, events, request
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from validation.metamorphic.cases import logs

LED = (*LEADS[:2], LEADS[2].format("1"))
COMMITTED = "CommittedPartitionState(isr=Set({}), leaderRecoveryState=RECOVERED)"
ANOTHER = "data-plane-kafka-request-handler-1"
ALTER = "alter-partition-channel-manager"
AHEAD = re.compile(r"^(\[2026-11-21 08:27:)(\d\d)")


def pending(peer: int) -> str:
    sent = f"sentLeaderAndIsr=LeaderAndIsr(leader=1, leaderEpoch=3, isr=List(1, {peer}), leaderRecoveryState=RECOVERED, partitionEpoch=6)"
    return f"PendingExpandIsr(newInSyncReplicaId={peer}, {sent}, leaderRecoveryState=RECOVERED, lastCommittedState={COMMITTED.format('1')})"


def submits(peer: int, thread: str = REQUEST_HANDLER) -> tuple[str, str, str]:
    return (thread, "Partition", f"{PART}Submitting ISR state change {pending(peer)}")


def fails(peer: int, error: str, thread: str = REQUEST_HANDLER) -> tuple[str, str, str]:
    says = f"since the controller rejected the request with {error}. Partition state has been reset to the latest committed state"
    return (thread, "Partition", f"{PART}Failed to alter partition to {pending(peer)} {says} {COMMITTED.format('1')}.")


def ignores(peer: int, state: str, thread: str = ALTER) -> tuple[str, str, str]:
    says = f"since we have already updated state to {state}"
    return (thread, "Partition", f"{PART}Ignoring failed ISR update to {pending(peer)} {says}")


def answered(peer: int, error: int = 0) -> tuple[str, str, str]:
    return (
        ALTER,
        "DefaultAlterPartitionManager",
        f"Controller successfully handled AlterPartition request for alpha-0: PartitionData(partitionIndex=0, errorCode={error}, leaderId=1, leaderEpoch=3, isr=[1, {peer}], leaderRecoveryState=0, partitionEpoch=7)",
    )


def shown(capture: Capture) -> list[tuple[str, object]]:
    kinds = events(capture, "ExpandIsr", "HandleAlterPartitionResponse")
    return [(event.event, event.fields.get("error", event.fields.get("peer"))) for event in kinds]


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ((submits(2), submits(2, ANOTHER), fails(2, "OPERATION_NOT_ATTEMPTED", ANOTHER)), [("ExpandIsr", 2)]),
        # Where no line names its thread, the last one may be another's than the one that is refused.
        ((submits(3), submits(2), fails(3, "OPERATION_NOT_ATTEMPTED")), [("ExpandIsr", 3), ("ExpandIsr", 2)]),
        # The line of the one that was sent may stand behind that of the one that was not.
        ((submits(3, ANOTHER), submits(2), ignores(3, pending(2), ANOTHER)), [("ExpandIsr", 2)]),
        ((submits(2), answered(2), ignores(2, COMMITTED.format("1"))), [("ExpandIsr", 2)]),
        ((submits(2), DELETED, answered(2, 100)), [("ExpandIsr", 2)]),
        ((submits(2), answered(2, 100), DELETED), [("ExpandIsr", 2), ("HandleAlterPartitionResponse", 100)]),
        ((submits(2), answered(2), ignores(2, COMMITTED.format("1")), submits(2)), [("ExpandIsr", 2)] * 2),
        (
            (submits(2), answered(2), ignores(2, COMMITTED.format("1")), submits(2), fails(2, "OPERATION_NOT_ATTEMPTED")),
            [("ExpandIsr", 2)],
        ),
        (
            (submits(2), answered(2, 107), fails(2, "INELIGIBLE_REPLICA", ALTER)),
            [("ExpandIsr", 2), ("HandleAlterPartitionResponse", 107)],
        ),
        # An error that may pass: the thread that took it sends the proposal once more.
        ((submits(2), answered(2, 7), submits(2, ALTER)), [("ExpandIsr", 2), ("HandleAlterPartitionResponse", 7)]),
    ],
)
def test_what_was_not_sent_is_no_proposal_and_what_is_ignored_no_response(
    lines: tuple[tuple[str, str, str], ...], expected: list[tuple[str, object]], tmp_path: Path
) -> None:
    """DefaultAlterPartitionManager#submit, Partition#submitAlterPartition."""
    assert shown(broker(tmp_path, *LOADED, LED, *lines)) == expected


def updated(members: str) -> tuple[str, str, str]:
    return (ALTER, "Partition", f"{PART}ISR updated to {members} and version updated to 7")


@pytest.mark.parametrize("named", [True, False], ids=["threads", "no threads"])
def test_a_proposal_that_was_not_sent_takes_no_response_from_the_one_before(named: bool, tmp_path: Path) -> None:
    """Also where no line names its thread: the response before it was taken over."""
    lines = (*LOADED, LED, submits(2), answered(2), updated("1,2"), submits(3), ignores(3, pending(2), REQUEST_HANDLER))
    capture = broker(tmp_path, *lines)
    if not named:
        log = tmp_path / "server.log"
        log.write_text(re.sub(r"(?m)^(\[[^\]]+\] DEBUG) \[[^\]]+\]", r"\1", log.read_text()))
        capture = read(tmp_path)
    assert shown(capture) == [("ExpandIsr", 2), ("HandleAlterPartitionResponse", 0)]


def test_an_ignored_response_leaves_the_isr_as_it_was(tmp_path: Path) -> None:
    """Alone in the ISR, the leader raises the high watermark as it appends."""
    append = (
        REQUEST_HANDLER,
        "UnifiedLog",
        "[UnifiedLog partition=alpha-0, dir=/d] Appended message set with last offset: 40, first offset: 40, next offset: 41, x",
    )
    raised = (
        REQUEST_HANDLER,
        "Partition",
        f"{PART}High watermark updated from (offset=40, segment=[0:0]) to (offset=41, segment=[0:0])",
    )
    lines = (submits(2), answered(2), ignores(2, COMMITTED.format("1")), append, raised)
    (appended,) = events(broker(tmp_path, *LOADED, LED, *lines), "LeaderAppend")
    assert (appended.fields["hw_before"], appended.fields["hw"]) == (40, 41)


BROKER_STATES = "isrWithBrokerEpoch=[BrokerState(brokerId=1, brokerEpoch=5), BrokerState(brokerId=2, brokerEpoch={})]"
STOPS = ("sig", "LoggingSignalHandler", "Terminating process due to signal SIGTERM")
REGISTERED = (
    "q",
    "ReplicationControlManager",
    "[QuorumController id=100] Replayed PartitionRecord for new partition alpha-0 with topic ID T and PartitionRegistration(replicas=[1, 2], isr=[1], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=3, partitionEpoch=6).",
)

CHANGED = (
    "q",
    "ReplicationControlManager",
    "[QuorumController id=100] partition change for alpha-0 with topic ID T: isr: [1] -> [1, 2], partitionEpoch: 6 -> 7",
)


def proposed(isr: dict[int, int], partition_epoch: int, error: int) -> dict[str, Any]:
    """A proposal of broker 1 at the controller; `isr` has the broker epoch of each member."""
    members = [{"brokerId": member, "brokerEpoch": epoch} for member, epoch in isr.items()]
    part = {"partitionIndex": 0, "leaderEpoch": 3, "newIsrWithEpochs": members, "partitionEpoch": partition_epoch}
    return request(
        56,
        {"brokerId": 1, "topics": [{"topicId": "T", "partitions": [part]}]},
        {"errorCode": 0, "topics": [{"topicId": "T", "partitions": [{"partitionIndex": 0, "errorCode": error}]}]},
    )


@pytest.mark.parametrize(
    ("isr", "partition_epoch", "is_stopping", "made"),
    [
        ([1, 2], 6, True, "ExpandIsr"),
        ([1, 2], 6, False, None),
        ([1, 2], 5, True, None),
        ([2, 3], 6, True, None),
    ],
)
def test_a_leader_that_logs_no_more_may_propose(
    isr: list[int], partition_epoch: int, is_stopping: bool, made: str | None, tmp_path: Path
) -> None:
    """Behind SIGTERM in 4.x only the controller tells of it; a proposal in other epochs shows a gap as before."""
    broker(tmp_path / "n1", STARTED, *LOADED, LED, *(STOPS,) * is_stopping)
    broker(tmp_path / "n100", REGISTERED, requests=(proposed(dict.fromkeys(isr, 9), partition_epoch, 74),))
    capture = read(tmp_path)
    assert any("that no line makes" in str(gap) for gap in capture.gaps) == (made is None)
    names = [event.event for trace in capture.traces for event in trace.events]
    assert (made in names) == (made is not None)
    if made is not None:
        assert names.index(made) < names.index("AlterPartition")
        assert names.index(made) < names.index("Stop")


@pytest.mark.parametrize(
    ("changed", "isr", "partition_epoch", "made"),
    [
        ("", [1], 7, True),
        ("", [1], 8, False),
        ("leaderEpoch: 3 -> 4, ", [1], 7, False),
        ("leader: 1 -> 2, leaderEpoch: 3 -> 4, ", [1], 7, False),
        ("", [1, 2], 7, False),
    ],
)
def test_a_leader_that_logs_no_more_may_propose_what_its_last_response_led_to(
    changed: str, isr: list[int], partition_epoch: int, made: bool, tmp_path: Path
) -> None:
    """Its proposal was accepted, or metadata came, behind its last line: the next one has that partition epoch."""
    broker(tmp_path / "n1", STARTED, *LOADED, LED, STOPS)
    change = (*CHANGED[:2], CHANGED[2].replace("partitionEpoch", f"{changed}partitionEpoch"))
    requests = (proposed({1: 5, 2: 9}, 6, 0), proposed(dict.fromkeys(isr, 9), partition_epoch, 74))
    broker(tmp_path / "n100", REGISTERED, change, requests=requests)
    capture = read(tmp_path)
    assert any("that no line makes" in str(gap) for gap in capture.gaps) is not made
    names = [event.event for trace in capture.traces for event in trace.events if event.node == 1]
    assert names == ["Start", "BecomeLeader", "ExpandIsr", *(("BecomeLeader", "ShrinkIsr") if made else ()), "Stop"]


@pytest.mark.parametrize(("second", "epochs"), [(12, [9, 12]), (9, [9])])
def test_a_proposal_behind_the_lines_is_told_from_a_refused_one_by_broker_epochs(
    second: int, epochs: list[int], tmp_path: Path
) -> None:
    """The replica restarted after the refusal, and its leader proposes it in its new incarnation; else it was sent again."""
    (thread, logger, message), refused = submits(2), fails(2, "INELIGIBLE_REPLICA", ALTER)
    text = message.replace("isr=List(1, 2)", BROKER_STATES.format(9))
    broker(tmp_path / "n1", STARTED, *LOADED, LED, (thread, logger, text), answered(2, 107), refused, STOPS)
    requests = (proposed({1: 5, 2: 9}, 6, 107), proposed({1: 5, 2: second}, 6, 0))
    broker(tmp_path / "n100", REGISTERED, requests=requests)
    capture = read(tmp_path)
    assert not any("that no line makes" in str(gap) for gap in capture.gaps)
    made = [event for trace in capture.traces for event in trace.events if event.event in ("ExpandIsr", "AlterPartition")]
    assert [event.fields["broker_epoch"] for event in made if event.event == "ExpandIsr"] == epochs
    assert made[-1].event == "AlterPartition"


@pytest.mark.parametrize("shows", ["response", "metadata"])
def test_a_proposal_is_free_if_only_what_became_of_it_has_a_line(shows: str, tmp_path: Path) -> None:
    """Behind SIGTERM one logger ends after the other: that of Partition before that of what it waits for."""
    registration = "PartitionRegistration(replicas=[1, 2], isr=[1, 2], leader=1, leaderRecoveryState=RECOVERED, leaderEpoch=3, partitionEpoch=7)"
    again = "since it is already the leader with leader epoch 3. Current high watermark 40"
    skips = f"[Broker id=1] Skipped the become-leader state change for alpha-0 with topic id Some(T), partition registration {registration} {again}"
    learns = ("meta", "logger", skips)
    broker(tmp_path / "n1", STARTED, *LOADED, LED, STOPS, answered(2) if shows == "response" else learns)
    broker(tmp_path / "n100", REGISTERED, CHANGED, requests=(proposed({1: 5, 2: 9}, 6, 0),))
    capture = read(tmp_path)
    assert not any("that no line makes" in str(gap) for gap in capture.gaps)
    names = [event.event for trace in capture.traces for event in trace.events if event.node == 1]
    assert names == ["Start", "BecomeLeader", "ExpandIsr", "Stop"]


def test_the_signal_to_stop_may_come_between_two_lines_of_a_thread(tmp_path: Path) -> None:
    """The log set a high watermark, and Partition did not say so before its logger ended: it did behind the signal, or never."""
    sets = (
        REQUEST_HANDLER,
        "UnifiedLog",
        "[UnifiedLog partition=alpha-0, dir=/d] Setting high watermark (offset=41, segment=[0:0])",
    )
    capture = broker(tmp_path, STARTED, *LOADED, LED, sets, STOPS)
    assert [event.event for trace in capture.traces for event in trace.events] == ["Start", "BecomeLeader", "Stop"]


def test_a_change_comes_behind_its_proposal_without_the_controllers_requests(tmp_path: Path) -> None:
    """The clock of the leader is ahead, so that only the partition epochs tell (ISR-04)."""
    for path, lines in logs(shipped()["4.2.0/b-kill-leader"]).items():
        if path != "n100/request.log":
            (tmp_path / path).parent.mkdir(exist_ok=True)
            later = [AHEAD.sub(lambda found: f"{found[1]}{int(found[2]) + 5:02}", line) for line in lines]
            (tmp_path / path).write_text("\n".join(later if path.startswith("n2/") else lines) + "\n")
    (trace,) = (trace for trace in read(tmp_path).traces if trace.tp == "alpha-0")
    order = [event.event for event in trace.events if event.event in ("ExpandIsr", "AlterPartition")]
    assert order == ["ExpandIsr", "AlterPartition"]
