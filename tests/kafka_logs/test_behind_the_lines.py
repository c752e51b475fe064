"""What happened behind the last line, beside another thread's line, or at a node that logged no requests."""
# ruff: noqa: E501, ISC004

import gzip
import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_logs.hand import (
    CREATED,
    FETCHER,
    FOLLOWS,
    LEADS,
    LOADED,
    LOG,
    REQUEST_HANDLER,
    RF,
    appended,
    broker,
    events,
    raised,
    recorded,
    request,
    sends,
)
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Event

STARTED = ("main", "LoggingSignalHandler", "Registered signal handlers for TERM, INT, HUP")
STOPPING = ("SIGTERM handler", "LoggingSignalHandler", "Terminating process due to signal SIGTERM")
CLEAN = ("main", "LogManager", "Skipping recovery of 1 logs from /d since clean shutdown file was found")


def failing(path: Path) -> set[str]:
    return {rule.rule.id for rule in check([path]).rules if rule.verdict is Verdict.FAIL}


def loaded_at(leo: int) -> tuple[tuple[str, str, str], ...]:
    return tuple((thread, logger, message.replace("40", str(leo))) for thread, logger, message in LOADED)


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_broker_that_serves_on_behind_its_last_line(role: str, tmp_path: Path) -> None:
    """4.x: nothing is logged between SIGTERM and the end; one record more is there at the restart. Nothing was lost."""
    takes_role = (*LEADS[:2], LEADS[2].format("1")) if role == "leader" else FOLLOWS
    capture = broker(tmp_path, STARTED, *LOADED, takes_role, STOPPING, STARTED, CLEAN, *loaded_at(41))
    (more,) = events(capture, "LeaderAppend", "HandleFetchResponse")
    assert more.event == ("LeaderAppend" if role == "leader" else "HandleFetchResponse")
    assert (more.fields["rec_base"], more.fields["rec_end"], more.fields["leo"]) == (40, 41, 41)
    assert [event.event for event in capture.traces[0].events][-3:] == [more.event, "Stop", "Start"]
    assert failing(tmp_path) == set()


RECOVERS = ("main", "LogManager", "Recovering 1 logs from /d since no clean shutdown file was found")
BEYOND = "is loaded, and no line goes beyond"


def with_more(leo: int) -> tuple[tuple[str, str, str], ...]:
    """The log is loaded with a log end; its high watermark is as it was."""
    return ((*LOADED[0][:2], LOADED[0][2].replace("logEndOffset=40", f"logEndOffset={leo}")), *LOADED[1:])


def of_alpha_1(*lines: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [(thread, logger, message.replace("alpha-0", "alpha-1")) for thread, logger, message in lines]


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_an_append_in_which_a_process_was_killed(role: str, tmp_path: Path) -> None:
    """The records are in the log, and their line was not written."""
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    took = (led, recorded(2, 40)) if role == "leader" else (FOLLOWS, sends(40), takes(40)[0])
    capture = broker(tmp_path, STARTED, *LOADED, *took, STARTED, RECOVERS, *with_more(42))
    last = [event for event in capture.traces[0].events if event.event not in ("BecomeLeader", "BecomeFollower")][-3:]
    names = ["LeaderAppend" if role == "leader" else "HandleFetchResponse", "Crash", "Start"]
    assert [event.event for event in last] == names
    assert (last[0].fields["rec_base"], last[0].fields["rec_end"], last[0].fields["leo"]) == (40, 42, 42)
    assert [str(gap) for gap in capture.gaps if BEYOND in str(gap)] == []
    (note,) = [note for note in capture.summary.notes() if "without a line" in note]
    assert note.startswith("1 append")
    assert "alpha-0 40 to 42 (behind server.log:" in note
    assert failing(tmp_path) == set()


@pytest.mark.parametrize(
    ("role", "starts"),
    [("follower", (RECOVERS,)), ("leader", (CLEAN,)), ("leader", ())],
    ids=["a follower without a response", "a clean end", "no word of how it ended"],
)
def test_more_than_a_killed_process_may_have_appended(
    role: str, starts: tuple[tuple[str, str, str], ...], tmp_path: Path
) -> None:
    took = (*LEADS[:2], LEADS[2].format("1")) if role == "leader" else FOLLOWS
    capture = broker(tmp_path, STARTED, *LOADED, took, STARTED, *starts, *with_more(41))
    assert any(BEYOND in str(gap) for gap in capture.gaps), [str(gap) for gap in capture.gaps]


@pytest.mark.parametrize("threads", [1, 2])
def test_a_thread_of_a_killed_process_leaves_one_line_unwritten(threads: int, tmp_path: Path) -> None:
    """So logs that have more than their lines say are no more than its threads."""
    led = (*LEADS[:2], LEADS[2].format("1"))
    both = [*LOADED, led, appended(40)], of_alpha_1(*LOADED, led, appended(40))
    other = [(thread.replace("handler-0", f"handler-{threads - 1}"), logger, text) for thread, logger, text in both[1]]
    again = (*with_more(42), *of_alpha_1(*with_more(42)))
    capture = broker(tmp_path, STARTED, *both[0], *other, STARTED, RECOVERS, *again)
    assert any(BEYOND in str(gap) for gap in capture.gaps) is (threads == 1), [str(gap) for gap in capture.gaps]


@pytest.mark.parametrize("failed", [True, False])
def test_an_append_that_failed_may_have_written_its_records(failed: bool, tmp_path: Path) -> None:
    """What failed was the index of aborted transactions behind it; the process ended in order, and said so."""
    error = (REQUEST_HANDLER, "LogDirFailureChannel", "Error while appending records to alpha-0 in dir /d")
    lines = (STARTED, *LOADED, (*LEADS[:2], LEADS[2].format("1")), *((error,) if failed else ()), STOPPING, CLOSED)
    capture = broker(tmp_path, *lines, STARTED, CLEAN, *with_more(41), STOPPING, CLOSED)
    assert any(BEYOND in str(gap) for gap in capture.gaps) is not failed
    assert [event.fields["rec_end"] for event in events(capture, "LeaderAppend")] == ([41] if failed else [])
    assert failing(tmp_path) == set()


@pytest.mark.parametrize("role", ["leader", "follower"])
def test_a_high_watermark_that_moves_behind_the_last_line(role: str, tmp_path: Path) -> None:
    """As above, without a record: the checkpoint of the orderly end has a high watermark that no line told of."""
    takes_role = (*LEADS[:2], LEADS[2].format("1,2")) if role == "leader" else FOLLOWS
    lower = [(thread, logger, message.replace("offset=40", "offset=39")) for thread, logger, message in LOADED]
    first, second, third = (
        (*line[:2], line[2].replace("watermark 40", "watermark 39")) for line in (*lower[1:], takes_role)
    )
    closed = ("main", "LogManager", "Shutdown complete.")
    broker(tmp_path, STARTED, lower[0], first, second, third, STOPPING, STARTED, CLEAN, *LOADED, STOPPING, closed)
    assert failing(tmp_path) == set()


def test_a_follower_whose_fetch_raised_it_there_may_be_any(tmp_path: Path) -> None:
    """A request of a follower that no line of the leader records is not taken for the one behind the leader's last line."""
    lower = [
        (thread, logger, message.replace("offset=40", "offset=39").replace("watermark 40", "watermark 39"))
        for thread, logger, message in LOADED
    ]
    led = (*LEADS[:2], LEADS[2].format("1,2").replace("high watermark 40", "high watermark 39"))
    broker(tmp_path / "n1", STARTED, *lower, led, STOPPING, STARTED, CLEAN, *LOADED)
    other = [
        (
            thread.replace("-0-2", "-0-1"),
            logger,
            re.sub(r"(roker[ =](?:id=)?|replicaId=|dir=/n)1", r"\g<1>2", message)
            .replace("leader is 2", "leader is 1")
            .replace("leaderId=2", "leaderId=1"),
        )
        for thread, logger, message in (STARTED, *LOADED, FOLLOWS, sends(40), STOPPING)
    ]
    broker(tmp_path / "n2", *other)
    (trace,) = read(tmp_path).traces
    assert [event.event for event in trace.events if event.node == 1] == [
        "Start",
        "BecomeLeader",
        "HandleFetch",
        "Stop",
        "Start",
    ]
    assert failing(tmp_path) == set()


def test_a_process_that_served_on_and_whose_leader_a_lost_line_named(tmp_path: Path) -> None:
    """4.x: behind a gap nothing says what it did behind its last line, so what it has then is no broken rule."""
    looks = (
        FETCHER,
        "ReplicaFetcherThread",
        f"{RF}Follower has replica log end offset 41 for partition alpha-0. Received 0 bytes of messages and leader hw 40",
    )
    takes = (
        FETCHER,
        "ReplicaFetcherThread",
        f"{RF}Follower received high watermark 40 from the leader and updated replica high watermark to 40 for partition alpha-0",
    )
    loads = [
        (
            thread,
            logger,
            message.replace("offset=40", "offset=41")
            .replace("watermark 40", "watermark 41")
            .replace("Offset=40", "Offset=41"),
        )
        for thread, logger, message in LOADED
    ]
    lines = (STARTED, *LOADED, FOLLOWS, sends(41), looks, takes, STOPPING, STARTED, CLEAN, *loads, STOPPING)
    capture = broker(tmp_path, *lines)
    assert any("high watermark 41 is loaded, and no line goes beyond 40" in str(gap) for gap in capture.gaps)
    assert failing(tmp_path) == set()


@pytest.mark.parametrize("closed", [True, False])
def test_a_disk_that_has_more_than_the_last_line(closed: bool, tmp_path: Path) -> None:
    """A process that served on after SIGTERM (4.x), or the last lines are lost: the checkpoint is beyond them."""
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nalpha 0 41\n")
    end = (("main", "LogManager", "Shutdown complete."),) if closed else ()
    capture = broker(tmp_path, STARTED, *LOADED, FOLLOWS, STOPPING, *end)
    assert any("high watermark 41 on disk" in str(gap) for gap in capture.gaps)
    assert failing(tmp_path) == set()


def test_a_disk_that_has_less_than_the_last_line(tmp_path: Path) -> None:
    """No line that is lost explains it."""
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nalpha 0 39\n")
    broker(tmp_path, STARTED, *LOADED, FOLLOWS, STOPPING, ("main", "LogManager", "Shutdown complete."))
    assert failing(tmp_path) == {"LOG-02"}


def test_a_disk_with_an_epoch_in_which_the_replica_had_no_role(tmp_path: Path) -> None:
    """The lines of a later process are missing, which was told to cut its log: what it holds less is no broken rule."""
    (tmp_path / "replication-offset-checkpoint").write_text("0\n1\nalpha 0 8\n")
    (tmp_path / "alpha-0.leader-epoch-checkpoint").write_text("0\n1\n7 0\n")
    capture = broker(tmp_path, STARTED, *LOADED, FOLLOWS, STOPPING, ("main", "LogManager", "Shutdown complete."))
    assert any("epoch 7 on disk" in str(gap) for gap in capture.gaps), [str(gap) for gap in capture.gaps]
    assert failing(tmp_path) == set()


def test_a_log_that_is_created_where_one_is_loaded_lacks_lines(tmp_path: Path) -> None:
    """The end of a process and the beginning of the next one are missing, between which the disk was lost."""
    closed = ("main", "LogManager", "Shutdown complete.")
    capture = broker(tmp_path, STARTED, *LOADED, (*LEADS[:2], LEADS[2].format("1")), *CREATED, STOPPING, closed)
    assert any("a log is created" in str(gap) for gap in capture.gaps), [str(gap) for gap in capture.gaps]
    assert failing(tmp_path) == set()


def test_a_process_begins_with_the_first_line_of_kafkas_own_layout(tmp_path: Path) -> None:
    """It stands in front of the one that says that a process has started, also of the next process."""
    first = ("main", "Log4jControllerRegistration$", "Registered `kafka:type=kafka.Log4jController` MBean")
    led = (*LEADS[:2], LEADS[2].format("1"))
    closed = ("main", "LogManager", "Shutdown complete.")
    lines = (first, STARTED, *LOADED, led, STOPPING, closed, first, STARTED, CLEAN, *LOADED, STOPPING, closed)
    capture = broker(tmp_path, *lines)
    assert [str(gap) for gap in capture.gaps] == []
    assert [event.event for event in capture.traces[0].events] == ["Start", "BecomeLeader", "Stop", "Start", "Stop"]


def test_a_log_that_grew_while_it_was_shut_lacks_lines(tmp_path: Path) -> None:
    """A process that logged its end served no more: what is loaded beyond it was there, and the line that says so is lost."""
    closed = ("main", "LogManager", "Shutdown complete.")
    led = (*LEADS[:2], LEADS[2].format("1"))
    broker(tmp_path, STARTED, *LOADED, led, STOPPING, closed, STARTED, CLEAN, *loaded_at(41), STOPPING, closed)
    report = check([tmp_path])
    assert any("log end 41 is loaded, and no line goes beyond 40" in line for line in report.missing), report.missing
    assert not failing(tmp_path)


@pytest.mark.parametrize("said", [True, False])
def test_a_high_watermark_that_only_its_log_tells_of(said: bool, tmp_path: Path) -> None:
    """The leader's own line of it is lost: what rests on the high watermark is not judged."""
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    sets = (REQUEST_HANDLER, "UnifiedLog", f"{LOG}Setting high watermark (offset=41, segment=[0:0])")
    lines = (appended(40), sets, *((raised(41),) if said else ()), recorded(2, 41))
    capture = broker(tmp_path, STARTED, *LOADED, led, *lines, STOPPING)
    assert any("no line of its leader says so" in str(gap) for gap in capture.gaps) is not said
    assert failing(tmp_path) == set()


@pytest.mark.parametrize("closed", [True, False])
def test_a_process_that_logged_its_end_logged_what_came_before(closed: bool, tmp_path: Path) -> None:
    """A fetch of its last second that was recorded and is no request: a lost line, unless its log ended first (4.x)."""
    end = (("main", "LogManager", "Shutdown complete."),) if closed else ()
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    capture = broker(
        tmp_path, STARTED, *LOADED, led, recorded(2, 39), recorded(2, 40), STOPPING, *end, requests=(FETCHED_40,)
    )
    assert any("a fetch was recorded" in str(gap) for gap in capture.gaps) is closed, [str(gap) for gap in capture.gaps]


FETCHED_40 = request(
    1,
    {"replicaId": 1, "sessionId": 77, "sessionEpoch": 0, "topics": [{"topicId": "T", "partitions": [
        {"partition": 0, "currentLeaderEpoch": 3, "fetchOffset": 40, "lastFetchedEpoch": 2, "logStartOffset": 0}]}]},
    {"errorCode": 0, "sessionId": 77, "responses": [{"topicId": "T", "partitions": [
        {"partitionIndex": 0, "errorCode": 0, "highWatermark": 40, "logStartOffset": 0, "recordsSizeInBytes": 70}]}]},
)  # fmt: skip


def test_a_response_with_records_another_thread_appended_meanwhile(tmp_path: Path) -> None:
    """3.6.1: a fetch is counted, another thread appends, the fetch reads again and finds the record: it is two steps."""
    of_two = [
        (thread, logger, message.replace("Broker id=1", "Broker id=2").replace("broker=1", "broker=2"))
        for thread, logger, message in (*LOADED, (*LEADS[:2], LEADS[2].format("1,2")), recorded(1, 40), appended(40))
    ]
    broker(tmp_path / "n2", *of_two[:-1], ("other", *of_two[-1][1:]), requests=(FETCHED_40,))
    broker(
        tmp_path / "n1",
        *LOADED,
        FOLLOWS,
        sends(40),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Follower has replica log end offset 40 for partition alpha-0. Received 70 bytes of messages and leader hw 40"),
        (FETCHER, "UnifiedLog", appended(40)[2]),
        (FETCHER, "ReplicaFetcherThread", f"{RF}Follower has replica log end offset 41 after appending 70 bytes of messages for partition alpha-0"),
    )  # fmt: skip
    (trace,) = read(tmp_path).traces
    at_leader = [event.event for event in trace.events if event.node == 2]
    assert at_leader[-3:] == ["HandleFetch", "LeaderAppend", "AnswerFetch"]
    assert failing(tmp_path) == set()


def test_without_threads_a_fetch_that_raised_nothing_takes_no_raise(tmp_path: Path) -> None:
    """Kafka's default layout: replica 3's fetch raised the high watermark, replica 2's line came first, with its own excuse."""
    kept = (REQUEST_HANDLER, "Partition", "[Partition alpha-0 broker=1] Skipping update high watermark since new hw (offset=40, segment=[0:0]) is not larger "
            "than old value. All current LEOs are Set(replica 2: (offset=41, segment=[0:0]), replica 3: (offset=40, segment=[0:0]), replica 1: (offset=41, segment=[0:0]))")  # fmt: skip
    lines = (
        *LOADED,
        (*LEADS[:2], LEADS[2].format("1,2,3")),
        appended(40),
        kept,
        raised(41),
        kept,
        recorded(2, 41),
        recorded(3, 41),
    )
    broker(tmp_path, *lines)
    log = tmp_path / "server.log"
    log.write_text(re.sub(r"^(\[[^\]]*\] [A-Z]+) \[[^\]]*\]", r"\1", log.read_text(), flags=re.MULTILINE))
    fetches = {event.fields["peer"]: event for event in handled(read(tmp_path))}
    assert (fetches[2].fields["hw_before"], fetches[2].fields["hw"]) == (40, 40)
    assert (fetches[3].fields["hw_before"], fetches[3].fields["hw"]) == (40, 41)


CLOSED = ("main", "LogManager", "Shutdown complete.")


def of_node_2(*lines: tuple[str, str, str]) -> list[tuple[str, str, str]]:
    return [
        (thread, logger, re.sub(r"(roker[ =](?:id=)?|dir=/n)1", r"\g<1>2", message)) for thread, logger, message in lines
    ]


def takes(offset: int) -> tuple[tuple[str, str, str], ...]:
    """A record that a follower takes."""
    said = f"{RF}Follower has replica log end offset"
    return (
        (FETCHER, "ReplicaFetcherThread", f"{said} {offset} for partition alpha-0. Received 70 bytes of messages and leader hw 40"),
        (FETCHER, "UnifiedLog", appended(offset)[2]),
        (FETCHER, "ReplicaFetcherThread", f"{said} {offset + 1} after appending 70 bytes of messages for partition alpha-0"),
    )  # fmt: skip


@pytest.mark.parametrize("closed", [True, False])
def test_a_leader_that_answers_behind_its_last_line(closed: bool, tmp_path: Path) -> None:
    """4.x: only who takes the record tells of the response. A leader that logged its end logged its responses, too."""
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    lines = of_node_2(STARTED, *LOADED, led, recorded(1, 40), appended(40), STOPPING)
    broker(tmp_path / "n2", *lines, *((CLOSED,) if closed else ()), requests=(FETCHED_40,))
    broker(
        tmp_path / "n1",
        STARTED,
        *LOADED,
        FOLLOWS,
        sends(40),
        *takes(40),
        sends(41, session=1),
        *takes(41),
        sends(42, session=2),
    )
    capture = read(tmp_path)
    (trace,) = capture.traces
    assert any("took 1 responses to requests that are not there" in str(gap) for gap in capture.gaps) is closed
    last = [event for event in trace.events if event.node == 2][-2:]
    assert [(event.event, event.fields.get("req_offset")) for event in last][closed:] == [
        ("HandleFetch", None),
        ("Stop", None),
    ][closed:]
    assert failing(tmp_path) == set()


def test_a_follower_that_fetches_on_behind_its_last_line(tmp_path: Path) -> None:
    """4.x: between two of its fetches it took what the second one has more, and after the last one what its disk has more."""
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    serves = [recorded(1, 40), appended(40)]
    for to in (41, 42):
        sets = (REQUEST_HANDLER, "UnifiedLog", f"{LOG}Setting high watermark (offset={to}, segment=[0:0])")
        serves += [sets, raised(to), recorded(1, to), appended(to)]
    broker(tmp_path / "n2", *of_node_2(STARTED, *LOADED, led, *serves, STOPPING), requests=(FETCHED_40,))
    broker(tmp_path / "n1", STARTED, *LOADED, FOLLOWS, sends(40), STOPPING, STARTED, CLEAN, *loaded_at(43), STOPPING, CLOSED)
    (trace,) = read(tmp_path).traces
    fetched = [
        (event.event, event.fields.get("req_offset", event.fields.get("rec_end")))
        for event in trace.events
        if event.node == 1 and event.event in ("SendFetch", "HandleFetchResponse")
    ]
    assert fetched == [
        ("SendFetch", 40),
        ("HandleFetchResponse", 41),
        ("SendFetch", 41),
        ("HandleFetchResponse", 42),
        ("SendFetch", 42),
        ("HandleFetchResponse", 43),
    ]
    assert failing(tmp_path) == set()


def test_a_fetch_that_is_counted_and_then_refused_at_once(tmp_path: Path) -> None:
    """DelayedFetch#tryComplete finds that the replica has gone, in the thread that has counted the fetch."""
    refused = {"errorCode": 0, "sessionId": 77, "responses": [{"topicId": "T", "partitions": [
        {"partitionIndex": 0, "errorCode": 6, "highWatermark": -1, "logStartOffset": -1, "recordsSizeInBytes": 0}]}]}  # fmt: skip
    late = {"totalTimeMs": 900.0, "localTimeMs": 900.0}
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    lines = of_node_2(STARTED, *LOADED, led, recorded(1, 40), recorded(1, 40), STOPPING)
    capture = broker(tmp_path, *lines, requests=(FETCHED_40, {**FETCHED_40, "response": refused, **late}))
    assert not any("a fetch was recorded" in str(gap) for gap in capture.gaps), [str(gap) for gap in capture.gaps]
    served = [(event.event, event.fields.get("error")) for event in events(capture, "HandleFetch", "AnswerFetch")]
    assert ("AnswerFetch", 6) in served
    assert ("HandleFetch", 6) not in served


def handled(capture: Capture) -> list[Event]:
    return [event for trace in capture.traces for event in trace.events if event.event == "HandleFetch"]


@pytest.mark.parametrize("name", ["4.2.0/k-epoch-jump", "4.2.0/k-epoch-jump-control"])
def test_no_request_log_at_a_leader_for_a_moment(name: str, tmp_path: Path) -> None:
    """It gave one diverging response, which stands in its request log alone: undecided, and said."""
    for path in shipped()[name].glob("n*/*"):
        if path.parent.name == "n100" or not path.name.startswith("request.log"):
            copy = tmp_path / path.relative_to(shipped()[name])
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(path.read_bytes())
    report = check([tmp_path])
    assert "FETCH-10" not in {rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL}
    assert any("n3/: expected lines of kafka.request.logger at DEBUG" in str(problem) for problem in report.problems)


@pytest.mark.parametrize("restarted", [True, False])
def test_a_full_fetch_that_a_leader_handled_behind_its_last_line(restarted: bool, tmp_path: Path) -> None:
    """Not handled by the process after it: nothing is missing. Between two that one process handled, a line is."""

    def logged(offset: int) -> tuple[str, str, str]:
        document = json.loads(json.dumps(FETCHED_40).replace("40", str(offset)))
        return ("net", "kafka.request.logger", f"Completed request:{json.dumps(document)}")

    led = (*LEADS[:2], LEADS[2].format("1,2"))
    begins = (STARTED, *LOADED, led)
    again = (STOPPING, *begins) if restarted else ()
    lines = of_node_2(*begins, recorded(1, 40), logged(40), *again, recorded(1, 42), logged(42))
    broker(tmp_path / "n2", *lines)
    broker(tmp_path / "n1", STARTED, *LOADED, FOLLOWS, sends(40), *takes(40), sends(41), *takes(41), sends(42))
    assert any("sent a fetch that is not there" in str(gap) for gap in read(tmp_path).gaps) is not restarted


@pytest.mark.parametrize(("next_at", "missed"), [("08:00:20", False), ("08:00:03", True)])
def test_a_process_fetches_on_until_the_next_one_begins(next_at: str, missed: bool, tmp_path: Path) -> None:
    """Controlled shutdown takes as long as the controller needs (7 s here); a process that began before fetches itself."""
    again = FETCHED_40["request"] | {"sessionId": 77, "sessionEpoch": 1, "topics": []}
    late = FETCHED_40 | {"request": again, "response": FETCHED_40["response"] | {"responses": []}}
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    broker(tmp_path / "n2", *of_node_2(STARTED, *LOADED, led, recorded(1, 40)), requests=(FETCHED_40, late))
    log = tmp_path / "n2" / "request.log"
    log.write_text(log.read_text().replace("08:00:00,900001", "08:00:07,900001"))
    broker(tmp_path / "n1", STARTED, *LOADED, FOLLOWS, sends(40), STOPPING, STARTED, *LOADED)
    log = tmp_path / "n1" / "server.log"
    head, started, tail = log.read_text().rpartition("[2026-11-21 08:00:00,001007]")
    log.write_text(head + (started + tail).replace("08:00:00", next_at))
    assert any("fetched on for seconds" in str(gap) for gap in read(tmp_path).gaps) is missed


def test_a_replica_that_sends_behind_its_last_line_has_read_metadata_there(tmp_path: Path) -> None:
    """Its leader was stopped, too: its next one logs a fetch in an epoch that no line of the replica names."""
    shutil.copytree(shipped()["4.2.0/a-steady"], tmp_path / "logs")
    n2 = tmp_path / "logs" / "n2"
    for checkpoint in n2.glob("*checkpoint"):
        checkpoint.unlink()
    server, requests = (
        gzip.decompress((n2 / name).read_bytes()).decode().splitlines(keepends=True)
        for name in ("server.log.gz", "request.log.gz")
    )
    last = next(at for at, line in enumerate(server) if "Follower beta-0 starts at leader epoch 1" in line)
    stamp = server[last][: server[last].index("]")]
    signal = next(line for line in server if STOPPING[2] in line)
    for name, lines in (
        ("server", [*server[:last], stamp + signal[len(stamp) :]]),
        ("request", [line for line in requests if line < stamp]),
    ):
        (n2 / f"{name}.log.gz").write_bytes(gzip.compress("".join(lines).encode()))
    assert failing(tmp_path / "logs") == set()
    follows = [
        event for trace in read(tmp_path / "logs").traces for event in trace.events if event.event == "BecomeFollower"
    ]
    assert any((event.node, event.fields["leader"]) == (2, 1) and "leo" not in event.fields for event in follows)


def test_a_leader_from_which_every_log_diverges_has_recorded_none(tmp_path: Path) -> None:
    """Partition#fetchRecords counts no fetch that diverges: that no line records one shows no logger that was off."""
    broker(tmp_path / "n1", STARTED, *LOADED, (*LEADS[:2], LEADS[2].format("1,2")), requests=(diverges(0), diverges(1)))
    lines = (STARTED, *LOADED, FOLLOWS, sends(40), sends(39, session=1), sends(38, session=2))
    others = (("broker=1", "broker=2"), ("id=1", "id=2"), ("leader is 2", "leader is 1"), ("Id=1", "Id=X"), ("Id=2", "Id=1"))
    for was, now in (*others, ("Id=X", "Id=2")):
        lines = tuple(
            (thread.replace("-0-2", "-0-1"), logger, message.replace(was, now)) for thread, logger, message in lines
        )
    broker(tmp_path / "n2", *lines)
    assert [str(problem) for problem in read(tmp_path).problems if "Recorded replica" in str(problem)] == []


def diverges(session: int) -> dict[str, Any]:
    part = {"partition": 0, "currentLeaderEpoch": 3, "fetchOffset": 40 - session, "lastFetchedEpoch": 2, "logStartOffset": 0}
    response = {
        "partitionIndex": 0,
        "errorCode": 0,
        "highWatermark": 40,
        "divergingEpoch": {"epoch": 2, "endOffset": 39 - session},
    }
    return request(
        1,
        {
            "replicaState": {"replicaId": 2},
            "sessionId": 77 if session else 0,
            "sessionEpoch": session,
            "topics": [{"topicId": "T", "partitions": [part]}],
        },
        {"errorCode": 0, "sessionId": 77, "responses": [{"topicId": "T", "partitions": [response]}]},
    )
