"""How lines are written: dates, patterns of log4j2, JSON, and what stands in front."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.parsing import layout
from tidegauge.traces.kafka_logs.parsing.layout import envelope, find
from tidegauge.traces.kafka_logs.parsing.lines import clock, read_lines
from tidegauge.traces.kafka_logs.parsing.timestamps import moment, of_java
from tidegauge.util.errors import UsageError

AT = 1_795_249_635_637_000
VERSION = "Kafka version: 4.2.0"
LOGGER = "org.apache.kafka.common.utils.AppInfoParser"


@pytest.mark.parametrize(
    "text",
    [
        "2026-11-21 08:27:15,637",
        "2026-11-21T08:27:15.637Z",
        "2026-11-21T08:27:15,637+0000",
        "2026-11-21T10:27:15.637+02:00",
        "2026-11-21 03:27:15.637000 -0500",
        "21 Nov 2026 08:27:15,637",
        "21/Nov/2026:08:27:15.637 +0000",
        "2026/11/21 08:27:15.637",
        "20261121T082715,637",
        "20261121082715637",
        "1795249635.637",
        "1795249635637",
        "1795249635637000000",
    ],
)
def test_a_date_in_every_way(text: str) -> None:
    """The same moment; a zone counts where there is one."""
    assert moment(text) == AT


@pytest.mark.parametrize(
    "text",
    [
        "2026-02-30 08:27:15,637",
        "08:27:15,637",
        "yesterday",
        "",
        True,
        None,
        12,
        "21 Xyz 2026 08:27:15",
        "2026-11-21 08:27:15,6²7",
    ],
)
def test_what_is_no_date(text: object) -> None:
    """Days that do not exist, times without a day."""
    assert moment(text) is None


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("dd.MM.yyyy HH:mm:ss.SSS", "21.11.2026 08:27:15.637"),
        ("yyyy-MM-dd'T'HH:mm:ss.SSSX", "2026-11-21T08:27:15.637Z"),
        ("EEE MMM d hh:mm:ss.SSS a yyyy", "Sat Nov 21 08:27:15.637 AM 2026"),
        ("yy/MM/dd HH:mm:ss,SSS", "26/11/21 08:27:15,637"),
        ("ISO8601", "2026-11-21T08:27:15,637"),
        ("UNIX_MILLIS", "1795249635637"),
    ],
)
def test_dates_of_java(pattern: str, text: str) -> None:
    """A pattern of java.time, or a name of log4j2."""
    assert of_java(pattern).microseconds(text) == AT


@pytest.mark.parametrize("pattern", ["ABSOLUTE", "HH:mm:ss,SSS", "yyyy-MM-dd", "yyyy-'W'ww HH:mm"])
def test_a_date_without_a_day_is_refused(pattern: str) -> None:
    """Lines could not be ordered beyond midnight."""
    with pytest.raises(UsageError, match="expected a date"):
        of_java(pattern)


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("[%d] %p [%t] %m (%c)%n", f"[2026-11-21 08:27:15,637] INFO [main] {VERSION} ({LOGGER})"),
        ("%d{ISO8601} %-5p [%t] %c{1}: %m%n", f"2026-11-21T08:27:15,637 INFO  [main] AppInfoParser: {VERSION}"),
        ("%date{yyyy-MM-dd HH:mm:ss.SSS}{UTC} %level %thread %logger{36} - %msg%n%ex",
         f"2026-11-21 08:27:15.637 INFO main {LOGGER} - {VERSION}"),
        ("%highlight{%d %p}{INFO=green} <%t> %X{broker} %m {%c}%n",
         f"2026-11-21 08:27:15,637 INFO <main> b-1 {VERSION} {{{LOGGER}}}"),
        ("%5.5p|%d|%tn|%c|%m%n", f" INFO|2026-11-21 08:27:15,637|main|{LOGGER}|{VERSION}"),
    ],
)  # fmt: skip
def test_patterns_of_log4j2(pattern: str, text: str) -> None:
    """Conversions by their short and long names, widths, options, nesting."""
    assert envelope(pattern).entry(text) == (AT, "main", VERSION, "AppInfoParser")


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("%p %m (%c)%n", "expected %d"),
        ("%d %p %c%n", "expected %m"),
        ("%d %p %m%n", "expected %c"),
        ("%d %d %m %c", "once"),
        ("%d{ISO8601 %m %c", "closing brace"),
        ("%d %m %c %!", "conversion"),
        ("%d %m %c %zzz", "conversion"),
    ],
)
def test_a_pattern_that_cannot_be_read_is_refused(pattern: str, said: str) -> None:
    """Exit 2 with a sentence, before any file is read."""
    with pytest.raises(UsageError, match=said):
        envelope(pattern)


def test_a_layout_that_is_named(tmp_path: Path) -> None:
    """Nobody would find it by looking."""
    (tmp_path / "server.log").write_text(f"main ~ INFO ~ 21.11.2026 08:27:15.637 ~ {LOGGER} ~ {VERSION}\n")
    assert "--layout" in str(read(tmp_path).problems[0])
    capture = read(tmp_path, "%t ~ %p ~ %d{dd.MM.yyyy HH:mm:ss.SSS} ~ %c ~ %m%n")
    assert (capture.summary.release, capture.problems) == ("4.2.0", [])


def test_thread_or_message() -> None:
    """`[Broker id=1]` begins a message; a file is one with threads if nearly all of its lines have one."""
    without = [
        "[2026-11-21 08:27:15,637] INFO [Broker id=1] Leader alpha-0 starts (state.change.logger)",
        "[2026-11-21 08:27:15,638] TRACE [LeaderEpochCache alpha-0] Cleared (x.LeaderEpochFileCache)",
        "[2026-11-21 08:27:15,639] INFO [GroupCoordinator 1] Starting up. (x.GroupCoordinator)",
    ]
    found = find(without)
    assert found is not None
    assert found.name == "[%d] %p %m (%c)%n"
    torn = "[2026-11-21 08:27:15,640] INFO torn (x.Y)"
    threads = [line.replace("INFO", "INFO [main]").replace("TRACE", "TRACE [main]") for line in without]
    found = find([*threads * 10, torn])
    assert found is not None
    assert found.name == "[%d] %p [%t] %m (%c)%n"


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1}',
        "[1]",
        "{",
        "null",
        '{"message": "m", "logger": "x.Y"}',
        '{"message": 1, "logger": "x.Y", "ts": 1795249635637}',
    ],
)
def test_json_that_is_no_log_line(text: str) -> None:
    """Time, message and logger are needed."""
    assert layout.entry(text) is None


@pytest.mark.parametrize("prefix", ["2026-11-21T08:27:15.637123456Z stdout F ", "broker-1  | "])
def test_a_log_that_begins_with_a_dump_of_its_configuration(prefix: str, tmp_path: Path) -> None:
    """Nine lines of ten have no date of the broker's, behind what a container writes in front of each."""
    entry = f"[2026-11-21 08:27:15,637] INFO [main] {VERSION} ({LOGGER})"
    dump = [f"\tlog.setting.{number} = {number}" for number in range(9)]
    lines = [prefix + text for _ in range(40) for text in (entry, *dump)]
    path = tmp_path / "server.log"
    path.write_text("\n".join(lines) + "\n")
    read_file = read_lines(path, "server.log")
    assert read_file.problems == []
    assert [line.message for line in read_file.lines] == [VERSION] * 40


def test_a_hole_in_a_file_costs_only_the_lines_it_tore(tmp_path: Path) -> None:
    """NUL bytes: what stands before and behind them is read, what is lost is named."""
    line = f"[2026-11-21 08:27:15,637] INFO [main] {VERSION} ({LOGGER})\n"
    log = tmp_path / "server.log"
    log.write_bytes((line * 3 + line[:30] + "\0" * 100 + line * 2).encode())
    file = read_lines(log, "server.log")
    assert [one.number for one in file.lines] == [1, 2, 3, 4, 5]
    (problem,) = file.problems
    assert (problem.line, problem.lost) == (4, 1)


_PIECES = st.sampled_from(
    [
        "[2026-11-21 08:27:15,637] ",
        "2026-11-21T08:27:15.637Z ",
        "stdout F ",
        "stdout P ",
        "INFO ",
        "[main] ",
        "(a.B)",
        "\n",
        "\0",
        "\ufeff",
        "\x1b[32m",
        '{"log": "',
        '"}',
        '{"instant": {"epochSecond": 1e9}, "message": "m", "logger": "l"}',
        "kafka-1  | ",
        '{"@timestamp": 99999999999999999999, "message": "m", "logger": "l"}',
        '{"instant": {"epochSecond": 99999999999999999}}',
    ]
)


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.one_of(st.binary(max_size=200), st.lists(st.one_of(_PIECES, st.text(max_size=8)), max_size=30)))
def test_whatever_the_bytes_are(tmp_path: Path, content: bytes | list[str]) -> None:
    """Lines and problems, never an exception; every line can be shown with its time."""
    log = tmp_path / "server.log"
    log.write_bytes(content if isinstance(content, bytes) else "".join(content).encode(errors="replace"))
    file = read_lines(log, "server.log")
    assert all(clock(line.time) and line.number >= 1 for line in file.lines)
    assert all(problem.expected and problem.seen and problem.do for problem in file.problems)
