"""Which files are a node's, and in which order."""

import gzip
from pathlib import Path

import pytest

from tidegauge.traces.kafka_logs import is_log, read
from tidegauge.traces.kafka_logs.discovery.files import find_nodes
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from tidegauge.util.input_limits import pieces_on_disk


def line(second: int, message: str = "Kafka version: 4.2.0", node: int = 0) -> str:
    prefix = f"[BrokerServer id={node}] " if node else ""
    return f"[2026-11-21 08:27:{second:02d},000] INFO [main] {prefix}{message} (x.AppInfoParser)\n"


def order(folder: Path) -> list[str]:
    (node,) = find_nodes(folder).nodes
    (stream,) = node.streams
    return [line.message for line in stream]


@pytest.mark.parametrize(
    "names",
    [
        ["server.log.2025-12-31-23", "server.log.2026-01-01-00", "server.log"],
        ["server.log.3", "server.log.2.gz", "server.log.1", "server.log"],
        ["server.log.10.gz", "server.log.9.gz", "server.log.8.gz", "server.log"],
        ["server-2026-01-01-1.log.gz", "server-2026-01-01-2.log.gz", "server-2026-01-01-10.log.gz", "server.log"],
        ["server.log-20251231.gz", "server.log-20260101", "server.log"],
        ["server-3.log", "server-2.log", "server-1.log", "server.log"],
    ],
)
@pytest.mark.parametrize("same_time", [False, True])
def test_rotated_files_are_one_stream(names: list[str], same_time: bool, tmp_path: Path) -> None:
    """By the time of their first line; by name where that is equal; the current file last."""
    if same_time and names[0] == "server-3.log":
        pytest.skip("a number in the middle may count up or down: only the time says")
    for second, name in enumerate(names):
        text = line(30 if same_time else second, str(second)).encode()
        (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    assert order(tmp_path) == [str(second) for second in range(len(names))]


def test_the_current_file_is_the_youngest(tmp_path: Path) -> None:
    """Whatever its clock says: it stepped back."""
    (tmp_path / "server.log.1").write_text(line(30, "first"))
    (tmp_path / "server.log").write_text(line(10, "second"))
    assert order(tmp_path) == ["first", "second"]


def test_time_goes_before_the_name(tmp_path: Path) -> None:
    """log4j2 counts up unless it is told otherwise: its `.1` is the oldest."""
    for number in (1, 2, 3):
        (tmp_path / f"server.log.{number}").write_text(line(number, str(number)))
    assert order(tmp_path) == ["1", "2", "3"]


def test_logs_of_others_are_passed_over_and_counted(tmp_path: Path) -> None:
    """By name, or because a file is there twice."""
    (tmp_path / "server.log").write_text(line(1))
    (tmp_path / "server (copy).log").write_text(line(1))
    for name in ("kafkaServer-gc.log", "gc.log.0.current", "log-cleaner.log", "kafka-authorizer.log", "kafkaServer.out"):
        (tmp_path / name).write_text(line(1))
    capture = read(tmp_path)
    assert capture.summary.lines == 1
    assert len(capture.summary.passed_over) == 6
    assert any("6 files passed over" in note for note in capture.summary.notes())


def test_a_console_alone_is_read(tmp_path: Path) -> None:
    """kafkaServer.out repeats server.log, if there is one."""
    (tmp_path / "kafkaServer.out").write_text(line(1))
    assert read(tmp_path).summary.lines == 1


def test_a_file_that_nothing_assigns_is_refused(tmp_path: Path) -> None:
    """Two nodes in one folder: their server logs say whose they are, a request log does not."""
    (tmp_path / "a-server.log").write_text(line(1, node=1))
    (tmp_path / "b-server.log").write_text(line(2, node=2))
    (tmp_path / "broker2-request.log").write_text(line(3, "of two"))
    (tmp_path / "request.log").write_text(line(4, "of whom?"))
    found = find_nodes(tmp_path)
    assert [(node.id, sum(map(len, node.streams))) for node in found.nodes] == [(1, 1), (2, 2)]
    (problem,) = found.problems
    assert (problem.path, problem.lost) == ("request.log", 1)
    assert "n1-request.log" in problem.do


def test_a_folder_of_folders_of_nodes_is_a_cluster(tmp_path: Path) -> None:
    """It is read, whatever lies beside it, and says its name."""
    for node in (1, 2):
        (tmp_path / "incident" / f"n{node}").mkdir(parents=True)
        (tmp_path / "incident" / f"n{node}" / "server.log").write_text(line(node, node=node))
    capture = read(tmp_path)
    assert not capture.problems
    assert (capture.cluster, capture.summary.nodes) == ("incident", (1, 2))


def test_a_log_by_its_name_or_its_lines(tmp_path: Path) -> None:
    """What `tidegauge check FILE` takes for a broker's log: NDJSON of ours is none."""
    (tmp_path / "server.log").write_text("")
    (tmp_path / "console.txt").write_text(line(1))
    (tmp_path / "trace.ndjson").write_text('{"v": 1, "trace": "t", "event": "Start"}\n')
    assert [is_log(tmp_path / name) for name in ("server.log", "console.txt", "trace.ndjson", "none")] == [
        True,
        True,
        False,
        False,
    ]


def test_a_hole_costs_the_line_that_it_stands_in(tmp_path: Path) -> None:
    """A log that was emptied below its writer has a hole up to where the writer goes on."""
    with (tmp_path / "server.log").open("wb") as log:
        log.write((line(0, "first") + line(1, "second")).encode())
        log.seek(1 << 40)
        log.write((line(2) + line(3, "last")).encode())
        log.truncate(1 << 41)
    read_log = read_lines(tmp_path / "server.log", "server.log")
    assert [each.message for each in read_log.lines] == ["first", "second", "last"]
    assert [(problem.line, problem.lost) for problem in read_log.problems] == [(3, 1), (5, 1)]


def test_small_holes_are_read_as_they_are(tmp_path: Path) -> None:
    place = tmp_path / "holes"
    with place.open("wb") as file:
        for number in range(40):
            file.seek(number * 20_000)
            file.write(b"%d\n" % number)
        file.truncate(1_000_000)
    with place.open("rb") as file:
        assert b"".join(pieces_on_disk(file, 4096)) == place.read_bytes()
