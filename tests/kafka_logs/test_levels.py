"""A logger that was off is said, and nobody is accused because of it."""

import gzip
import re
from collections.abc import Callable
from pathlib import Path

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import Trace

NAME = "4.2.0/b-kill-leader"
Filter = Callable[[str], bool]


def kept(to: Path, keep: Filter, name: str = NAME, node: str = "n*") -> Capture:
    """A capture of which only the lines `keep` wants are left."""
    for path in shipped()[name].rglob("*"):
        if path.is_file():
            copy = to / path.relative_to(shipped()[name])
            copy.parent.mkdir(parents=True, exist_ok=True)
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            copy = copy.with_suffix("") if path.suffix == ".gz" else copy
            if ".log" in copy.name and copy.match(f"{node}/*"):
                content = "".join(line for line in content.decode().splitlines(keepends=True) if keep(line)).encode()
            copy.write_bytes(content)
    return read(to)


def broken(capture: Capture) -> set[str]:
    tallies = [judge(to_columns([trace], trace.config), trace.config).tallies for trace in capture.traces if trace.events]
    return {rule for one in tallies for rule, tally in one.items() if tally.failed}


def reported_by(capture: Capture, node: int) -> set[str]:
    return {event.event for trace in capture.traces for event in trace.events if event.node == node}


@pytest.mark.parametrize(
    ("logger", "said"),
    [
        ("(org.apache.kafka.storage.internals.log.UnifiedLog)", "lines of UnifiedLog at TRACE"),
        ("(kafka.server.ReplicaFetcherThread)", "lines of ReplicaFetcherThread at TRACE"),
        ("(org.apache.kafka.storage.internals.epoch.LeaderEpochFileCache)", "lines of LeaderEpochFileCache at DEBUG"),
        ("(kafka.request.logger)", "lines of kafka.request.logger at DEBUG"),
    ],
)
def test_a_logger_that_was_off_everywhere(logger: str, said: str, tmp_path: Path) -> None:
    """Every broker that should have had its lines is named and not judged; the controller still is."""
    capture = kept(tmp_path, lambda line: not line.rstrip().endswith(logger))
    named = {problem.path for problem in capture.problems if said in problem.expected}
    assert {"n1/", "n2/"} <= named
    for node in (1, 2):
        assert reported_by(capture, node) == set()
    assert "ChangePartition" in reported_by(capture, 100)
    assert all("docs/kafka-logs.md section 1" in p.do for p in capture.problems if said in p.expected)


def test_the_view_of_a_leader_that_was_off(tmp_path: Path) -> None:
    """kafka.cluster.Partition at INFO: brokers 1 and 2 led, broker 3 did not and is judged."""
    off = re.compile(r" (?:DEBUG|TRACE) .*\(kafka\.cluster\.Partition\)\s*$")
    capture = kept(tmp_path, lambda line: off.search(line) is None)
    assert {p.path for p in capture.problems if "kafka.cluster.Partition at DEBUG" in p.expected} == {"n1/", "n2/"}
    assert reported_by(capture, 1) == reported_by(capture, 2) == set()
    assert "HandleFetchResponse" in reported_by(capture, 3)


def test_a_follower_that_is_not_judged_gets_no_events(tmp_path: Path) -> None:
    """Only broker 3 lacks its fetcher's lines: what leaders tell of it stays theirs."""
    off = re.compile(r"\(kafka\.server\.ReplicaFetcherThread\)\s*$")
    capture = kept(tmp_path, lambda line: off.search(line) is None, node="n3")
    assert [p.path for p in capture.problems if "ReplicaFetcherThread at TRACE" in p.expected] == ["n3/"]
    assert reported_by(capture, 3) == set()
    peers = {e.fields.get("peer") for t in capture.traces for e in t.events if e.event == "HandleFetch"}
    assert peers == {1, 2, 3}


def test_everything_at_info(tmp_path: Path) -> None:
    """Kafka's default levels: nothing is judged, and every node says why."""
    capture = kept(tmp_path, lambda line: re.match(r"\[[^\]]*\] (?:TRACE|DEBUG) (?!.*kafka\.request\.logger)", line) is None)
    assert all(trace.events == () for trace in capture.traces)
    assert {problem.path for problem in capture.problems} >= {"n1/", "n2/", "n3/", "n100/"}


def test_a_controller_at_info(tmp_path: Path) -> None:
    """It tells new partitions and unclean elections only: brokers act on epochs it never told, so it is not judged."""
    off = re.compile(r"\] DEBUG .*\(org\.apache\.kafka\.controller\.")
    capture = kept(tmp_path, lambda line: off.search(line) is None, node="n100")
    assert any(p.path == "n100/" and "org.apache.kafka.controller at DEBUG" in p.expected for p in capture.problems)
    assert reported_by(capture, 100) == set()
    assert broken(capture) == set()


@pytest.mark.parametrize("name", ["3.4.0/b-kill-leader", "4.2.0/d-unclean", "4.2.0/a-steady"])
def test_partition_at_debug_is_enough(name: str, tmp_path: Path) -> None:
    """Without the lines of appends that moved no high watermark the verdict is the same."""
    trace_line = re.compile(r"\] TRACE .*\(kafka\.cluster\.Partition\)\s*$")
    capture = kept(tmp_path, lambda line: trace_line.search(line) is None, name)
    assert [p for p in capture.problems if p.lost] == []
    assert broken(capture) == ({"HW-06"} if name.startswith("3.4.0") else set())


@pytest.mark.parametrize("name", ["3.4.0/b-kill-leader", "4.2.0/k-epoch-jump"])
def test_the_layout_without_threads_is_enough(name: str, tmp_path: Path, capture: Callable[[str], Capture]) -> None:
    """The same events on every node, the same rules broken."""
    whole = capture(name)
    kept(tmp_path, lambda _: True, name)
    thread = re.compile(r"^(\[[^\]]*\] [A-Z]+ )\[[^\]]*\] ", re.MULTILINE)
    for path in tmp_path.glob("*/*.log"):
        path.write_text(thread.sub(r"\1", path.read_text()))
    bare = read(tmp_path)
    assert broken(bare) == broken(whole)
    for one, other in zip(bare.traces, whole.traces, strict=True):
        assert reported(one) == reported(other)


def reported(trace: Trace) -> list[tuple[str, str]]:
    """Lines and events; not whether a response is an event of its own: that hangs on whose fetch raised a high watermark."""
    return sorted((e.at, e.event) for e in trace.events if e.event != "AnswerFetch")


def test_a_broker_that_only_follows_is_not_asked_for_a_leaders_lines(capture: Callable[[str], Capture]) -> None:
    """Broker 3 of b-kill-leader never led: no `Recorded` lines, an empty request log, and no complaint."""
    assert [str(p) for p in capture(NAME).problems] == []
    assert "n3/request.log (empty)" in capture(NAME).summary.passed_over
