"""Every row of the table reads a real line of every release that prints it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import (
    PartitionRequest,
    changes,
    fetch_line,
    leos,
    needle_of,
    parse_line,
    proposal,
    row_of,
)
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE

ROWS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "lines.json").read_text())
MOVED = {"log-replacing", "log-replaced", "append-failed", "renounced"}
"""No shipped capture moves a replica between directories, and in none does a directory fail, or a controller of several."""
NOT_SEEN_IN = {
    # what no capture of a release showed, with the reason
    "3.4.0": {
        *MOVED,
        "isr-refused",  # two proposals at once: finding F3
        "clean-start",
        "log-start",
        "cut-all",
        "cut-below-high-watermark",
        "epochs-cut-at-end",
        "shrink-isr",
        "shrinking",
        "log-deleted",
        "broker-changed",  # the release does not say it
    }
    | {"fetch-error-74", "fetch-error-6", "fetch-error-100", "reset-to-leader-start", "reset-done"},
    "4.2.0": {
        "logs-closed",
        "log-deleted",
        "isr-refused",
        *MOVED,
    },  # 4.x stops logging at SIGTERM; no capture of it deletes a replica
}


def line(message: str, logger: str) -> Line:
    return Line("n1/server.log", 1, 0, "main", message, logger)


@pytest.mark.parametrize("row", ROWS, ids=[f"{row['release']}-{row['what']}-{i}" for i, row in enumerate(ROWS)])
def test_a_line_says_what_it_says(row: dict[str, Any]) -> None:
    """The row of the table and all of its groups."""
    parsed = parse_line(line(row["line"], row["logger"]))
    assert parsed is not None
    assert parsed.kind == row["what"]
    assert {name: list(v) if isinstance(v, tuple) else v for name, v in parsed.values.items()} == row["values"]


@pytest.mark.parametrize(
    ("pattern", "needle"),
    [
        (r"^Shutdown complete\.", "Shutdown complete."),
        (r"a (?P<one>long text in a group) b", "a "),
        (r"short (?:one|other) and longer", " and longer"),
        (r"one|another", ""),
        (r"ab+cd?e", "a"),
        (r"to \(offset=[^)]*\) or \d+", "to (offset="),
    ],
)
def test_the_needle_of_a_pattern_is_in_all_that_it_matches(pattern: str, needle: str) -> None:
    """Text in a group, a choice, or before a repetition may be missing: it is no needle."""
    assert needle_of(pattern) == needle


def test_a_line_without_the_needle_is_not_matched() -> None:
    """Of every row of the table the needle is in each of its lines, and the pattern needs it."""
    for row in ROWS:
        patterns = [pattern for kind, logger, pattern in TABLE if (kind, logger) == (row["what"], row["logger"])]
        matched = [pattern for pattern in patterns if row_of(row["what"], pattern).match(row["line"])]
        assert matched
        for needle in filter(None, map(needle_of, matched)):
            assert needle in row["line"]
            assert parse_line(line(row["line"].replace(needle, "~"), row["logger"])) is None


def test_every_row_of_the_table_has_a_line() -> None:
    """Each name of the table was seen, at least in Kafka's source."""
    assert {what for what, _, _ in TABLE} == {row["what"] for row in ROWS}


@pytest.mark.parametrize("release", sorted(NOT_SEEN_IN))
def test_a_release_has_every_line_but_those_listed(release: str) -> None:
    """What is missing for a release is written down, nothing else is."""
    seen = {row["what"] for row in ROWS if row["release"] == release}
    source = {row["what"] for row in ROWS if row["release"] == "source"}
    assert {what for what, _, _ in TABLE} - seen - source == NOT_SEEN_IN[release]


def test_another_logger_is_another_line() -> None:
    """The text alone does not make a line: LocalLog and UnifiedLog both say `Truncate and start at`."""
    row = next(row for row in ROWS if row["what"] == "cut-all")
    assert parse_line(line(row["line"], "LocalLog")) is None


def test_a_fetch_line_tells_what_is_asked_and_what_left_the_session() -> None:
    """fetchData, removed and metadata of one `Sending fetch request` line."""
    request = fetch_line(
        "(type=FetchRequest, replicaId=1, fetchData={my-topic-1-10=PartitionData(topicId=z9LxnEOsQPmytLVNMTP8tw, "
        "fetchOffset=20, logStartOffset=3, maxBytes=1048576, currentLeaderEpoch=Optional[4], "
        "lastFetchedEpoch=Optional.empty)}, "
        "isolationLevel=read_uncommitted, removed=W-T8BA0cSVmm0n3_tu1iwg:alpha-0, z9LxnEOsQPmytLVNMTP8tw:beta-0, replaced=, "
        "metadata=(sessionId=594434144, epoch=23), rackId=)"
    )
    assert request.requested == {"my-topic-1-10": PartitionRequest(20, 4, -1, 3)}
    assert request.removed == ("alpha-0", "beta-0")
    assert (request.session, request.session_epoch) == (594434144, 23)
    assert request.topic_ids == {"my-topic-1": "z9LxnEOsQPmytLVNMTP8tw"}


def test_a_proposal_reads_the_same_with_and_without_broker_epochs() -> None:
    """3.4 lists ids, later releases BrokerState entries."""
    old = "LeaderAndIsr(leader=2, leaderEpoch=1, isr=List(2, 3, 1), leaderRecoveryState=RECOVERED, partitionEpoch=5"
    new = (
        "LeaderAndIsr(leader=2, leaderEpoch=1, isrWithBrokerEpoch=[BrokerState(brokerId=2, brokerEpoch=9), "
        "BrokerState(brokerId=3, brokerEpoch=14), BrokerState(brokerId=1, brokerEpoch=52)], "
        "leaderRecoveryState=RECOVERED, partitionEpoch=5"
    )
    assert proposal(old) == proposal(new) == ((2, 3, 1), 1, 5)


def test_a_change_names_old_and_new() -> None:
    """Lists and numbers of a `partition change` line."""
    found = changes("isr: [1] -> [], leader: 1 -> -1, leaderEpoch: 1 -> 2, elr: [] -> [1], partitionEpoch: 4 -> 5")
    assert found["isr"] == ("[1]", "[]")
    assert found["leader"] == ("1", "-1")
    assert found["partitionEpoch"] == ("4", "5")


def test_the_dump_of_all_leos_is_read() -> None:
    """Both ways of printing offset metadata."""
    assert leos("replica 2: (offset=19 segment=[0:0]), replica 1: (offset=-1, segment=[-1:-1])") == {2: 19, 1: -1}
