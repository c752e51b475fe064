"""Lines that are missing are noticed, named, and accuse nobody."""

import json
import re
import shutil
from collections.abc import Callable
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from xml.etree import ElementTree as Xml

import pytest

from benchmarks.cluster_logs import Cluster
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.report.html import page
from tidegauge.conformance.report.json_report import as_json
from tidegauge.conformance.report.junit import write_junit
from tidegauge.conformance.report.text import as_text
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.nodes.gap_detection import clock_set_back
from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.merge_streams import without_copies
from validation.metamorphic.cases import logs

HEALTHY, BROKEN = "4.2.0/k-epoch-jump-control", "4.2.0/k-epoch-jump"
Filter = Callable[[str, int, str], bool]


def copied(name: str, to: Path, keep: Filter = lambda _path, _number, _line: True) -> Path:
    """A capture of which only the lines `keep` wants are left; it is asked with file, number from 1, and line."""
    for path, lines in logs(shipped()[name]).items():
        kept = [line for number, line in enumerate(lines, 1) if keep(path, number, line)]
        if not kept:
            continue
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_text("".join(f"{line}\n" for line in kept))
    return to


def number_of(name: str, path: str, words: str, which: int = 0) -> int:
    """The number of the line that has these words."""
    return [number for number, line in enumerate(logs(shipped()[name])[path], 1) if words in line][which]


def without(name: str, to: Path, path: str, number: int) -> Report:
    """The report on a capture that lost one line."""
    return check([copied(name, to, lambda file, at, _line: (file, at) != (path, number))])


@pytest.mark.parametrize("name", [HEALTHY, BROKEN])
def test_whole_logs_have_no_gap(name: str) -> None:
    """Neither does a broken rule look like a missing line, nor anything a healthy broker does."""
    capture = read(shipped()[name])
    assert capture.gaps == ()
    assert capture.missing == ()
    assert all(life.share == 1 for life in capture.coverage)


@pytest.mark.parametrize(
    ("path", "words", "said"),
    [
        ("n1/server.log", "Sending fetch request", "ReplicaFetcherThread at TRACE of node 1"),
        ("n2/request.log", '"sessionEpoch":7,', "kafka.request.logger at DEBUG of node 2"),
        ("n1/server.log", "Appended message set", "UnifiedLog at TRACE of node 1"),
        ("n1/server.log", "Registered signal handlers", "every logger of node 1"),
        ("n3/server.log", "Completed load of Log", "no line says how far the log goes"),
        ("n1/server.log", "Terminating process", "every logger of node 1"),
        ("n2/server.log", "High watermark updated", "kafka.cluster.Partition at TRACE of node 2"),
    ],
)
def test_one_line_less_is_named_and_fails_nothing(path: str, words: str, said: str, tmp_path: Path) -> None:
    """Which logger of which node, and when."""
    report = without(HEALTHY, tmp_path, path, number_of(HEALTHY, path, words))
    assert report.verdict is Verdict.INCONCLUSIVE
    assert report.exit_code == 3
    assert any(said in line for line in report.missing), report.missing


def test_all_that_a_process_did_between_its_start_and_its_end(tmp_path: Path) -> None:
    """Its status changed meanwhile (BrokerServer#maybeChangeStatus): leaders that handled what no line sends are right."""
    name, path = "4.2.0/b-kill-leader", "n1/server.log"
    lost = number_of(name, path, "Transition from STARTING to STARTED", 1)
    signal = number_of(name, path, "Terminating process due to signal")
    folder = copied(name, tmp_path, lambda file, number, _line: file != path or number not in range(lost, signal))
    report = check([folder])
    assert any("the broker was STARTING, and is STARTED" in line for line in report.missing), report.missing
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


def test_the_last_lines_of_a_process_that_is_killed(tmp_path: Path) -> None:
    """What it had on disk beyond its lines, no rule holds against it (LOAD-01)."""
    name, path = "4.2.0/d-unclean", "n1/server.log"
    killed = number_of(name, path, "Registered signal handlers", 1)
    last = max(
        number
        for number, line in enumerate(logs(shipped()[name])[path][: killed - 1], 1)
        if "strict-0 broker=1] High watermark updated" in line
    )
    report = without(name, tmp_path, path, last)
    assert any("is loaded, and no line goes beyond" in line for line in report.missing), report.missing
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


@pytest.mark.parametrize(
    ("name", "path", "recorded"),
    [
        (
            "4.2.0/a-steady",
            "n1/server.log",
            "[Partition alpha-0 broker=1] Recorded replica 3 log end offset (LEO) position 120",
        ),
        (
            "4.2.0/a-steady",
            "n3/server.log",
            "[Partition beta-0 broker=3] Recorded replica 2 log end offset (LEO) position 150",
        ),
        (
            "4.3.1/m-lost-disk",
            "n2/server.log",
            "[Partition alpha-0 broker=2] Recorded replica 1 log end offset (LEO) position 55",
        ),
        (
            "3.4.1/b-kill-leader",
            "n2/server.log",
            "[Partition alpha-0 broker=2] Recorded replica 3 log end offset (LEO) position 96",
        ),
    ],
)
def test_one_of_several_fetches_of_one_offset_is_recorded_by_no_line(
    name: str, path: str, recorded: str, tmp_path: Path
) -> None:
    """Which one nobody knows: the lines of the later ones are taken for those in front of them (HW-02)."""
    report = without(name, tmp_path, path, number_of(name, path, recorded))
    assert sum(recorded in line for line in logs(shipped()[name])[path]) > 2
    assert "HW-02" not in {rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL}


def test_a_server_log_that_begins_behind_its_requests(tmp_path: Path) -> None:
    """Another process served them: that nobody heard it end breaks no rule (LIFE-01)."""
    name = "4.2.0/d-unclean"
    second = number_of(name, "n1/server.log", "Registered signal handlers", 1)
    folder = copied(name, tmp_path, lambda path, number, _line: path != "n1/server.log" or number >= second)
    report = check([folder])
    assert any("every logger of node 1, before" in line and "served" in line for line in report.missing), report.missing
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


def test_requests_lost_between_fetches_of_one_offset(tmp_path: Path) -> None:
    """The lines that record them are not taken for those of the requests that follow (FETCH-04)."""
    name, path = "4.2.0/d-unclean", "n1/request.log"
    first = number_of(name, path, '"sessionEpoch":38,') - 1
    gone = range(first, first + 9)
    report = check([copied(name, tmp_path, lambda file, number, _line: file != path or number not in gone)])
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


def test_the_requests_of_a_process_that_is_killed(tmp_path: Path) -> None:
    """Only the last one of each replica may stand nowhere: it was never finished."""
    path = "n1/request.log"
    folder = copied("3.4.1/b-kill-leader", tmp_path, lambda file, number, _line: file != path or not 1 < number < 197)
    assert any("kafka.request.logger at DEBUG of node 1" in line for line in check([folder]).missing)


def test_the_last_lines_of_a_leader_that_lost_its_disk(tmp_path: Path) -> None:
    """Nothing that is loaded tells of them; that a follower took a response does, to a request that no line records."""
    name, server = "4.1.1/m-lost-disk", "n1/server.log"
    first = number_of(name, server, "[UnifiedLog partition=alpha-0, dir=/var/lib/kafka/n1] Appended message set", 20)
    killed = number_of(name, server, "Registered signal handlers", 1)
    begin, end = (logs(shipped()[name])[server][number - 1][1:27] for number in (first, killed))
    of_n1 = (server, "n1/request.log")
    report = check([copied(name, tmp_path, lambda path, _at, line: path not in of_n1 or not begin <= line[1:27] < end)])
    assert any("every logger of node 1" in line and "that are not there" in line for line in report.missing), report.missing
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == []


def test_what_a_gap_does_not_touch_still_fails(tmp_path: Path) -> None:
    """A line lost at the end takes nothing from what was broken before."""
    lines = logs(shipped()[BROKEN])["n1/server.log"]
    report = without(BROKEN, tmp_path, "n1/server.log", len(lines) - 2)
    assert "HW-08" in {rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL}


def events_of(folder: Path) -> list[int]:
    """How many each trace has."""
    return [len(trace.events) for trace in read(folder).traces]


def test_a_file_that_is_there_twice_is_read_once(tmp_path: Path) -> None:
    """A copy says nothing new."""
    folder = copied(HEALTHY, tmp_path)
    once = events_of(folder)
    (folder / "n1" / "server-old.log").write_bytes((folder / "n1" / "server.log").read_bytes())
    assert events_of(folder) == once
    assert any("server" in name for name in read(folder).summary.passed_over)


@pytest.mark.parametrize("name", ["server-old.log", "server.log.1"])
def test_lines_that_are_there_twice_are_read_once(name: str, tmp_path: Path) -> None:
    """An old copy of a log beside it, and a rotation that begins before the one in front of it ends."""
    folder = copied(HEALTHY, tmp_path)
    once = events_of(folder)
    lines = (folder / "n1" / "server.log").read_text().splitlines(keepends=True)
    (folder / "n1" / name).write_text("".join(lines[:200]))
    if name == "server.log.1":
        (folder / "n1" / "server.log").write_text("".join(lines[150:]))
    assert events_of(folder) == once
    assert any(problem.expected == "every line once" for problem in read(folder).problems)


def test_a_thread_may_print_a_line_twice_while_another_prints_a_later_one() -> None:
    """`Progress awaiting ISR acks` in 3.9; behind a later line of its own thread it is a copy."""
    lines = [
        Line("server.log", number, time, thread, message, "Partition")
        for number, (time, thread, message) in enumerate(
            [(1, "a", "awaiting"), (2, "b", "other"), (1, "a", "awaiting"), (3, "a", "later")], 1
        )
    ]
    assert without_copies([lines]) == ([lines], [])
    (once,), problems = without_copies([[*lines, lines[0]]])
    assert (once, [problem.seen for problem in problems]) == (lines, ["1 lines twice"])


def test_a_node_that_is_there_twice_is_no_pass(tmp_path: Path) -> None:
    """Which of the two folders is the right one, nobody can say."""
    folder = copied(HEALTHY, tmp_path)
    shutil.copytree(folder / "n1", folder / "n1-copy")
    report = check([folder])
    assert report.verdict is Verdict.INCONCLUSIVE
    assert any(line.startswith("n1-copy/: expected one folder per node") for line in report.missing)


@pytest.mark.parametrize("length", [10, 30, 100])
def test_a_torn_line_is_a_gap_in_whatever_layout(length: int, tmp_path: Path) -> None:
    """All nodes in one folder, too; broken off in its date, in its thread, in its message."""
    for path, lines in logs(shipped()[HEALTHY]).items():
        texts = [*lines[:200], lines[200][:length], *lines[201:]] if path == "n1/server.log" else lines
        (tmp_path / path.replace("/", "-")).write_text("".join(f"{line}\n" for line in texts))
    assert any("every logger of node 1" in line and ":201 cannot be read" in line for line in check([tmp_path]).missing)


def test_a_controller_alone_is_no_pass(tmp_path: Path) -> None:
    """It is said in every report what would have to be added."""
    report = check([copied(HEALTHY, tmp_path, lambda path, _number, _line: path.startswith("n100/"))])
    assert report.exit_code == 3
    words = "the data path: no rule about what a broker does with records could be decided"
    assert f"missing: {words}" in as_text(report)
    assert words in page(report)
    assert words in json.loads(json.dumps(as_json(report)))["parts"][0]["missing"]
    write_junit(report, tmp_path / "check.xml")
    whole = [case for case in Xml.parse(tmp_path / "check.xml").getroot().iter("testcase") if case.get("name") == "whole"]
    assert words in str(whole[0][0].get("message"))


def test_one_broker_of_three_is_no_pass(tmp_path: Path) -> None:
    """The others are named."""
    report = check([copied(HEALTHY, tmp_path, lambda path, _number, _line: path.startswith(("n1/", "n100/")))])
    assert report.exit_code == 3
    assert any("the logs of node 2" in line for line in report.missing)
    assert any("the logs of node 3" in line for line in report.missing)


def test_no_numbers_are_judged_that_the_reader_gave(tmp_path: Path) -> None:
    """SEQ-01 is about numbers that a source tells."""
    report = check([copied(HEALTHY, tmp_path)])
    assert next(rule for rule in report.rules if rule.rule.id == "SEQ-01").verdict is Verdict.NOT_EXERCISED


def set_back(name: str, to: Path, share: float, seconds: float, nodes: str) -> Report:
    """The report on a capture in which the clocks of nodes were set back after a share of its lines."""
    time_of = re.compile(r"\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)")
    files = logs(shipped()[name])
    times = sorted(match[1] for lines in files.values() for line in lines if (match := time_of.match(line)))
    since = times[int(len(times) * share)]

    def shifted(match: re.Match[str]) -> str:
        return f"[{datetime.fromisoformat(match[1]) + timedelta(seconds=seconds):%Y-%m-%d %H:%M:%S}"

    for path, lines in files.items():
        first = next(
            (at for at, line in enumerate(lines) if (match := time_of.match(line)) and match[1] >= since), len(lines)
        )
        if not re.match(nodes, path):
            first = len(lines)
        (to / path).parent.mkdir(parents=True, exist_ok=True)
        (to / path).write_text(
            "".join(f"{line}\n" for line in lines[:first] + [time_of.sub(shifted, line) for line in lines[first:]])
        )
    return check([to])


@pytest.mark.parametrize(
    ("share", "seconds", "nodes"),
    [(0.1, -7, "n"), (0.3, -2, "n"), (0.5, -5, "n"), (0.5, -3600, "n"), (0.5, -4, "n[12]/"), (0.3, -3, "n2/")],
)
def test_a_clock_that_was_set_back_accuses_nobody(share: float, seconds: float, nodes: str, tmp_path: Path) -> None:
    """NTP set it, or local time ended its summer: no time orders what is after it against other files and nodes."""
    report = set_back(HEALTHY, tmp_path, share, seconds, nodes)
    assert report.verdict is Verdict.INCONCLUSIVE
    assert any("its clock was set back by" in said for said in report.missing)


def test_what_is_broken_before_a_clock_is_set_back_is_broken(tmp_path: Path) -> None:
    report = set_back(BROKEN, tmp_path, 0.95, -5, "n")
    assert {rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL} >= {"DATA-01", "DATA-03"}


@pytest.mark.parametrize(("thread", "back"), [("main", True), ("", False)])
def test_one_line_that_is_written_late_sets_no_clock_back(thread: str, back: bool) -> None:
    """A process that stood still writes it with the time from before; with threads none of a thread's lines is late."""
    times = (0, 5_000_000, 1_000_000, 6_000_000)
    lines = [Line("server.log", at, time, thread, "x", "Partition") for at, time in enumerate(times, 1)]
    assert any(clock_set_back(1, [lines])) is back
    assert any(clock_set_back(1, [[*lines[:3], replace(lines[3], time=2_000_000)]]))


def test_a_broker_that_ended_before_it_answered_has_no_request_in_its_log(tmp_path: Path) -> None:
    """Its logger was off if a fetcher sent the next request: it had the response to the one before."""
    Cluster(tmp_path, 40, 658461572).run(322_104, 50)
    assert not (tmp_path / "n2" / "request.log").read_text()
    assert check([tmp_path]).verdict is Verdict.PASS
    log = tmp_path / "n3" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    at = next(at for at, line in enumerate(lines) if "leaderId=2, fetcherId=0] Sending fetch request" in line)
    log.write_text("".join([*lines[: at + 1], lines[at], *lines[at + 1 :]]).replace(",046019] TRACE", ",046018] TRACE", 1))
    assert any("it logged no request" in said for said in check([tmp_path]).missing)


def test_a_node_that_no_line_names_is_called_by_no_id(tmp_path: Path) -> None:
    loaded = "[2026-01-01 00:00:00,000] INFO [Log partition=x-0, dir=/d] Truncating to offset 5 (kafka.log.Log)\n"
    (tmp_path / "server.log").write_text(loaded)
    missing = read(tmp_path).missing
    assert any("every logger of the node, whose id no line says, before" in line for line in missing)
    assert not any("node 0" in line for line in missing)
