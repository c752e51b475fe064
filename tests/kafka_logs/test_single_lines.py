"""Lines whose loss once failed a healthy capture: each kind of line is rare, and what is lost at random is a frequent one."""
# ruff: noqa: E501

from pathlib import Path

import pytest

from tests.kafka_logs.hand import (
    FETCHER,
    FOLLOWS,
    LEADS,
    LOADED,
    LOG,
    PART,
    REQUEST_HANDLER,
    RF,
    STARTED,
    appended,
    broker,
    events,
    recorded,
    sends,
    truncates,
)
from tests.kafka_logs.test_gaps import copied, number_of, without
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.capture import shipped
from validation.metamorphic.cases import logs

THREE = (*LEADS[:2], LEADS[2].format("1,2,3"))
RECEIVED = (
    FETCHER,
    "ReplicaFetcherThread",
    f"{RF}Follower has replica log end offset 40 for partition alpha-0. Received 0 bytes of messages and leader hw 40",
)
TAKEN = (
    FETCHER,
    "ReplicaFetcherThread",
    f"{RF}Follower received high watermark 40 from the leader but did not update replica high watermark for partition alpha-0",
)


@pytest.mark.parametrize(
    ("name", "path", "words", "says"),
    [
        ("3.4.1/b-kill-leader", "n1/server.log", "Truncating partition alpha-0", "no line says for what"),
        ("4.1.1/m-lost-disk", "n2/server.log", "Truncating partition alpha-0", "no line says for what"),
        ("3.4.1/b-kill-leader", "n1/server.log", "Truncating to offset 61", "no line says that the log did"),
        ("4.2.0/d-unclean", "n2/server.log", "Skipped the become-leader", "a leader looks at its high watermark"),
        (
            "4.3.1/m-lost-disk",
            "n1/server.log",
            "Skipped the become-leader",
            "a leader looks at its high watermark",
        ),
        (
            "4.2.0/k-epoch-jump-control",
            "n3/request.log",
            '"replicaId":2',
            "node 2 took 1 responses to requests that are not there",
        ),
    ],
)
def test_one_line_less_fails_nothing(name: str, path: str, words: str, says: str, tmp_path: Path) -> None:
    """What is left shows what is missing."""
    report = without(name, tmp_path, path, number_of(name, path, words))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert any(says in line for line in report.missing), report.missing


@pytest.mark.parametrize(
    ("name", "path", "numbers"),
    [
        ("4.1.1/m-lost-disk", "n3/server.log", (456, 464)),
        ("4.2.0/a-steady", "n1/server.log", (3184,)),
        ("4.2.0/b-kill-leader", "n1/server.log", (670, 679)),
        ("4.2.0/d-unclean", "n3/server.log", (581, 588)),
    ],
)
def test_the_last_sends_to_a_leader_that_is_followed_no_more(
    name: str, path: str, numbers: tuple[int, ...], tmp_path: Path
) -> None:
    """They were not sent behind the last line of the follower, which goes on under another leader."""
    lines = logs(shipped()[name])[path]
    assert all("Sending fetch request" in lines[number - 1] for number in numbers)
    folder = copied(name, tmp_path, lambda file, number, _line: file != path or number not in numbers)
    assert check([folder]).verdict is Verdict.INCONCLUSIVE


def test_a_role_takes_no_line_of_the_next_one(tmp_path: Path) -> None:
    """Its look at the high watermark is the last line of a role: a later one is of a role that no line gives."""
    looks = ("meta", "Partition", f"{PART}Skipping update high watermark since new hw (offset=40, segment=[0:0]) is not larger than old value. All current LEOs are Set(replica 1: (offset=41, segment=[0:0]))")  # fmt: skip
    raises = (
        "meta",
        "Partition",
        f"{PART}High watermark updated from (offset=40, segment=[0:0]) to (offset=41, segment=[0:0])",
    )
    capture = broker(tmp_path, STARTED, *LOADED, THREE, raises, recorded(2, 40), looks)
    assert [event.event for event in events(capture, "BecomeLeader", "HandleFetch")] == ["BecomeLeader", "HandleFetch"]
    assert any("a leader looks at its high watermark" in str(gap) for gap in capture.gaps)


def test_what_a_look_at_the_high_watermark_tells_of_a_fetch(tmp_path: Path) -> None:
    """Its `Recorded` line is lost: who fetched is the one whose LEO is another one than was recorded."""

    def looks(second: int, third: int) -> tuple[str, str, str]:
        leos = f"replica 2: (offset={second}, segment=[0:0]), replica 3: (offset={third}, segment=[0:0]), replica 1: (offset=41, segment=[0:0])"
        return REQUEST_HANDLER, "Partition", f"{PART}Skipping update high watermark since new hw (offset=40, segment=[0:0]) is not larger than old value. All current LEOs are Set({leos})"  # fmt: skip

    capture = broker(
        tmp_path,
        STARTED,
        *LOADED,
        THREE,
        recorded(2, 40),
        recorded(3, 40),
        appended(40),
        looks(40, 40),  # the append's
        looks(40, 41),
        looks(41, 41),
        recorded(2, 41),
    )
    fetches = [(event.fields["peer"], event.fields["remote_leo"]) for event in events(capture, "HandleFetch")]
    assert fetches == [(2, 40), (3, 40), (3, 41), (2, 41)]


def test_a_shrink_says_how_far_the_log_goes(tmp_path: Path) -> None:
    """Appends that no line tells show there, also when those before them showed already."""
    shrinks = [("sched", "Partition", f"{PART}Shrinking ISR from 1,2,3 to 1,2. Leader: (highWatermark: 40, endOffset: {end}). Out of sync replicas: x.") for end in (42, 44)]  # fmt: skip
    capture = broker(tmp_path, STARTED, *LOADED, THREE, appended(40), *shrinks)
    assert [f"log end {end}, which no line brings about" in " ".join(map(str, capture.gaps)) for end in (42, 44)] == [
        True,
        True,
    ]


def test_a_second_response_to_one_request(tmp_path: Path) -> None:
    """The request in between is not there."""
    once = broker(tmp_path / "once", STARTED, *LOADED, FOLLOWS, sends(40), RECEIVED, TAKEN)
    twice = broker(tmp_path / "twice", STARTED, *LOADED, FOLLOWS, sends(40), RECEIVED, TAKEN, RECEIVED, TAKEN)
    assert not any("a second response" in str(gap) for gap in once.gaps)
    assert any("a second response" in str(gap) for gap in twice.gaps)


@pytest.mark.parametrize("said", [True, False])
def test_a_truncation_and_its_reason(said: bool, tmp_path: Path) -> None:
    """Neither stands alone."""
    truncates_to = (FETCHER, "UnifiedLog", f"{LOG}Truncating to offset 35")
    reason = truncates(35, True, 2, 35)
    whole = broker(tmp_path / "whole", STARTED, *LOADED, FOLLOWS, sends(40), reason, truncates_to, sends(35, session=1))
    half = broker(
        tmp_path / "half", STARTED, *LOADED, FOLLOWS, sends(40), reason if said else truncates_to, sends(35, session=1)
    )
    assert not any("truncate" in str(gap) for gap in whole.gaps), [str(gap) for gap in whole.gaps]
    assert any("truncate" in str(gap) for gap in half.gaps)


def test_a_handler_may_count_while_the_replica_becomes_a_follower(tmp_path: Path) -> None:
    """Its line comes behind that of the role, and the fetch in front; a thread that printed something since shows a gap."""
    led = (STARTED, *LOADED, (*LEADS[:2], LEADS[2].format("1,2,3")), recorded(3, 40))
    follows = (*FOLLOWS[:2], FOLLOWS[2].replace("leader epoch 3", "leader epoch 4"))
    gone = (
        REQUEST_HANDLER,
        "Partition",
        f"{PART}The replica state of replica ID:[3] doesn't exist in the leader node. It might",
    )
    capture = broker(tmp_path / "counts", *led, follows, gone, recorded(3, 40))
    assert not any("acts as a leader" in str(gap) for gap in capture.gaps)
    names = [event.event for trace in capture.traces for event in trace.events]
    assert names[-3:] == ["HandleFetch", "HandleFetch", "BecomeFollower"]
    capture = broker(tmp_path / "gap", *led, follows, (REQUEST_HANDLER, "KafkaApis", "x"), recorded(3, 40))
    assert any("acts as a leader" in str(gap) for gap in capture.gaps)
