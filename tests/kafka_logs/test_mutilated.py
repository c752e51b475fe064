"""Whatever is in the directory, reading ends with traces and problems, never with an exception."""

import gzip
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegauge.traces.columns import to_columns
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from tidegauge.traces.problems import Problem

SMALL = "4.2.0/k-epoch-jump"


def unpack(name: str, to: Path) -> Path:
    """A capture as plain files."""
    for path in shipped()[name].rglob("*"):
        if path.is_file():
            target = to / path.relative_to(shipped()[name])
            target.parent.mkdir(parents=True, exist_ok=True)
            if path.suffix == ".gz":
                target.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
            else:
                shutil.copy(path, target)
    return to


def said(problems: list[Problem], *parts: str) -> bool:
    """One problem contains all the parts."""
    return any(all(part in str(problem) for part in parts) for problem in problems)


def test_a_directory_that_is_not_there() -> None:
    """The path, what was expected, what to do."""
    capture = read("no/such/place")
    assert capture.traces == []
    assert said(capture.problems, "no/such/place: expected a directory with broker logs, seen nothing; name the directory")


def test_a_file_in_place_of_a_directory(tmp_path: Path) -> None:
    """One file alone is read; what is missing beside it is said."""
    (tmp_path / "server.log").write_text("")
    assert said(read(tmp_path / "server.log").problems, "server.log: expected log lines, seen an empty file")
    capture = read(unpack(SMALL, tmp_path) / "n1" / "server.log")
    assert capture.summary.nodes == (1,)
    assert capture.summary.lines > 0


def test_a_directory_without_logs(tmp_path: Path) -> None:
    """Nothing named *.log, here or one level down."""
    (tmp_path / "notes.txt").write_text("hello")
    (tmp_path / "n1").mkdir()
    capture = read(tmp_path)
    assert capture.traces == []
    assert said(capture.problems, "2 entries, no log among them", "docs/kafka-logs.md")


def test_the_lines_that_name_the_release_are_lost(tmp_path: Path) -> None:
    """A change that names the ELR shows that an empty ISR is no broken rule (CTRL-05)."""
    folder = unpack("4.2.0/b-kill-leader", tmp_path)
    for log in folder.glob("*/server.log"):
        kept = [line for line in log.read_bytes().splitlines(keepends=True) if b"AppInfoParser" not in line]
        log.write_bytes(b"".join(kept))
    capture = read(folder)
    assert capture.summary.release == ""
    assert {trace.config.profile for trace in capture.traces} == {"elr"}


def test_brokers_of_different_releases_have_their_own_profiles(tmp_path: Path) -> None:
    """Where the logs say so; a broker that was upgraded in its log is judged as today's, as it is where all are alike."""
    folder = unpack("3.4.0/b-kill-leader", tmp_path)
    line, later = (b"Kafka version: 3.4." + patch for patch in (b"0", b"1"))
    for log in (folder / "n2" / "server.log", folder / "n3" / "server.log"):
        log.write_bytes(log.read_bytes().replace(line, later))
    (one,) = {trace.config.profile for trace in read(folder).traces}
    assert one == "fetch-truncation,1=release-3.4.0,2=release-3.4.1,3=release-3.4.1"
    # This broker was restarted, so it has named its version twice.
    restarted = folder / "n1" / "server.log"
    before, version, after = restarted.read_bytes().rpartition(line)
    restarted.write_bytes(before + version.replace(line, later) + after)
    (one,) = {trace.config.profile for trace in read(folder).traces}
    assert one == "fetch-truncation"
    later_still = folder / "n3" / "server.log"
    later_still.write_bytes(later_still.read_bytes().replace(later, b"Kafka version: 3.5.1"))
    (one,) = {trace.config.profile for trace in read(folder).traces}
    assert one == "fetch-truncation,2=release-3.4.1,3=release-3.5.1"


def test_an_empty_log_is_passed_over_and_the_others_are_read(tmp_path: Path) -> None:
    """As a broker's controller.log is. What is wanted of it is named, the traces are there."""
    folder = unpack(SMALL, tmp_path)
    (folder / "n3" / "request.log").write_text("")
    capture = read(folder)
    assert "n3/request.log (empty)" in capture.summary.passed_over
    assert said(capture.problems, "n3/: expected lines of kafka.request.logger at DEBUG")
    assert len(capture.traces) == 3


def test_a_binary_file_is_not_read(tmp_path: Path) -> None:
    """A segment that was renamed, say."""
    folder = unpack(SMALL, tmp_path)
    (folder / "n1" / "other.log").write_bytes(bytes(range(256)) * 4)
    capture = read(folder)
    assert said(capture.problems, "n1/other.log:1: expected a text log, seen a binary file")
    assert len(capture.traces) == 3


def test_record_segments_by_name_are_left_out(tmp_path: Path) -> None:
    """A log directory of a broker holds segments under twenty digits: not text, no problem."""
    (tmp_path / "00000000000000000000.log").write_bytes(b"\0" * 100)
    assert said(read(tmp_path).problems, "no log among them")


def test_a_half_written_line_is_named_and_left_out(tmp_path: Path) -> None:
    """File, line, what was expected, what was seen."""
    folder = unpack(SMALL, tmp_path)
    log = folder / "n1" / "server.log"
    lines = log.read_text().split("\n")
    torn = next(i for i, line in enumerate(lines) if "Recorded replica 2" in line)
    lines[torn] = lines[torn][:90]
    log.write_text("\n".join(lines))
    capture = read(folder)
    assert said(capture.problems, f"n1/server.log:{torn + 1}: expected [time] LEVEL [thread] message (logger), seen '[2026-")
    assert sum(problem.lost for problem in capture.problems) == 1


def test_stack_traces_and_dumps_of_many_lines_are_no_problem(tmp_path: Path) -> None:
    """Only the last line of such a message has the logger; line numbers stay those of the file."""
    log = tmp_path / "server.log"
    log.write_text(
        "[2026-11-21 08:27:15,637] INFO [main] KafkaConfig values: \n\tbroker.id = 1\n (kafka.server.KafkaConfig)\n"
        "[2026-11-21 08:27:15,638] INFO [main] Kafka version: 4.2.0 (org.apache.kafka.common.utils.AppInfoParser)\n"
    )
    file = read_lines(log, "server.log")
    assert file.problems == []
    assert [(line.number, line.logger) for line in file.lines] == [(4, "AppInfoParser")]


def test_a_layout_without_thread_is_read_as_one_thread(tmp_path: Path) -> None:
    """Kafka's default layout."""
    log = tmp_path / "server.log"
    log.write_text("[2026-11-21 08:27:15,637] INFO Kafka version: 4.2.0 (org.apache.kafka.common.utils.AppInfoParser)\n")
    file = read_lines(log, "server.log")
    (line,) = file.lines
    assert (line.thread, line.message, file.problems) == ("", "Kafka version: 4.2.0", [])


def test_another_layout_is_said(tmp_path: Path) -> None:
    """Text, but not one line of the envelope."""
    (tmp_path / "server.log").write_text("2026-11-21 08:27:15 INFO hello\n")
    assert said(
        read(tmp_path).problems, "server.log:1: expected [time] LEVEL [thread] message (logger)", "[%d] %p [%t] %m (%c)%n"
    )


def test_a_damaged_gzip_file_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    """A copy that was truncated."""
    whole = shipped()["4.2.0/b-kill-leader"] / "n1" / "server.log.gz"
    (tmp_path / "server.log.gz").write_bytes(whole.read_bytes()[:-5000])
    file = read_lines(tmp_path / "server.log.gz", "server.log")
    assert len(file.lines) > 300
    assert said(file.problems, "server.log: expected a complete gzip file, seen one that ends early or is damaged")


def test_two_folders_of_one_node(tmp_path: Path) -> None:
    """The lines say whose they are; the second folder is left out, and said."""
    folder = unpack(SMALL, tmp_path)
    shutil.copytree(folder / "n2", folder / "n2-copy")
    capture = read(folder)
    assert said(capture.problems, "n2-copy/: expected one folder per node, seen node 2 again, as in n2/")
    assert capture.summary.nodes == (1, 2, 3, 100)


@pytest.mark.parametrize(
    ("content", "seen"),
    [
        ("hello\n", ":1: expected a version"),
        ("0\n2\nalpha 0 5\n", ":2: expected 2 entries"),
        ("0\n1\nalpha 0 five\n", ":3: expected topic partition offset"),
        ("0\n3\nalpha 0 5", ":2: expected 3 entries"),
    ],
)
def test_a_damaged_checkpoint_is_said(tmp_path: Path, content: str, seen: str) -> None:
    """File, line and what to do; the trace is read without it."""
    folder = unpack(SMALL, tmp_path)
    (folder / "n2" / "replication-offset-checkpoint").write_text(content)
    capture = read(folder)
    assert said(capture.problems, "n2/replication-offset-checkpoint", seen)
    alpha = next(trace for trace in capture.traces if trace.tp == "alpha-0")
    assert [e.at for e in alpha.events if e.event == "Observe" and e.node == 2] == ["n2/alpha-0.leader-epoch-checkpoint"]


def test_json_of_another_shape_is_said(tmp_path: Path) -> None:
    """A request whose body lacks what Kafka writes."""
    folder = unpack(SMALL, tmp_path)
    log = folder / "n1" / "request.log"
    log.write_text(log.read_text().replace('"acks":-1', '"akcs":-1'))
    capture = read(folder)
    assert said(capture.problems, "expected a PRODUCE request and its response", "KeyError: 'acks'")
    assert len(capture.traces) == 3


def test_one_brokers_logs_in_the_directory_itself(tmp_path: Path, capture: Callable[[str], Capture]) -> None:
    """The same events of that broker, without folder in `at`; no controller, the replicas are those it names."""
    whole = capture(SMALL)
    folder = unpack(SMALL, tmp_path) / "n1"
    alone = read(folder)
    assert alone.summary.nodes == (1,)
    assert alone.summary.controller is None
    alpha = next(trace for trace in alone.traces if trace.tp == "alpha-0")
    assert alpha.config.nodes == (1, 2, 3)
    of_one = [e for e in next(t for t in whole.traces if t.tp == "alpha-0").events if e.node == 1]
    assert {(e.event, e.at) for e in alpha.events} == {
        (e.event, e.at.removeprefix("n1/")) for e in of_one if e.at.startswith("n1/")
    }
    to_columns([alpha], alpha.config)


def test_a_process_spread_over_several_files_is_woven_by_its_clock(
    tmp_path: Path, capture: Callable[[str], Capture]
) -> None:
    """Kafka's default layout puts state changes into a file of their own: the events are the same."""
    folder = unpack("4.2.0/b-kill-leader", tmp_path)
    log = folder / "n2" / "server.log"
    lines = log.read_text().split("\n")
    log.write_text("\n".join(line for line in lines if not line.endswith("(state.change.logger)")) + "\n")
    (folder / "n2" / "state-change.log").write_text(
        "\n".join(line for line in lines if line.endswith("(state.change.logger)")) + "\n"
    )
    for merged, whole in zip(read(folder).traces, capture("4.2.0/b-kill-leader").traces, strict=True):
        assert [(e.event, e.fields) for e in merged.events] == [(e.event, e.fields) for e in whole.events]


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_any_file_truncate_or_scrambled_anywhere(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    """Bytes dropped, repeated or overwritten in any file of a capture: traces and well-formed problems, no exception."""
    folder = unpack(SMALL, tmp_path_factory.mktemp("cut"))
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".json")
    for path in data.draw(st.lists(st.sampled_from(files), min_size=1, max_size=3, unique=True)):
        content = path.read_bytes()
        at = data.draw(st.integers(0, len(content)))
        length = data.draw(st.integers(0, 400))
        kind = data.draw(st.sampled_from(["cut", "drop", "repeat", "overwrite"]))
        middle = {
            "cut": b"",
            "drop": content[at + length :],
            "repeat": content[at : at + length] * 2 + content[at + length :],
            "overwrite": data.draw(st.binary(min_size=1, max_size=50)) + content[at + length :],
        }[kind]
        path.write_bytes(content[:at] + middle)
    capture = read(folder)
    for problem in capture.problems:
        assert problem.expected
        assert problem.seen
        assert problem.do
        assert "\n" not in str(problem)
    for trace in capture.traces:
        to_columns([trace], trace.config)


@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.randoms(use_true_random=False), st.sampled_from(["drop", "swap"]))
def test_lines_missing_or_out_of_order(tmp_path_factory: pytest.TempPathFactory, random: object, kind: str) -> None:
    """Whole lines dropped or swapped: still traces, and every event names its line."""
    folder = unpack(SMALL, tmp_path_factory.mktemp("lines"))
    for path in sorted(folder.rglob("*.log")):
        lines = path.read_text().split("\n")
        for _ in range(max(1, len(lines) // 10)):
            at = random.randrange(len(lines))  # type: ignore[attr-defined]
            if kind == "drop" and len(lines) > 1:
                del lines[at]
            else:
                lines[at - 1], lines[at] = lines[at], lines[at - 1]
        path.write_text("\n".join(lines))
    capture = read(folder)
    assert all(event.at for trace in capture.traces for event in trace.events)
