"""What mail, terminals and exports of log platforms do to a file is undone: each line is as it was logged, in place."""

import csv
import gzip
import io
import json
import quopri
import textwrap
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.parsing.exports import restored
from tidegauge.traces.kafka_logs.parsing.lines import blocks, read_lines

LOADED = (
    "[2026-01-01 16:00:{n:02},000] INFO [Log partition=x-{n}, dir=/var/lib/kafka/data] Completed load of log with 1 "
    "segments, log start offset 0 and log end offset {end} in 72 ms (kafka.log.Log)"
)
SHRUNK = (
    "[2026-01-01 16:00:{n:02},500] INFO [Partition x-{n} broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)"
)
LOGGED = [text.format(n=n, end=7**n) for n in range(12) for text in (LOADED, SHRUNK)]
DUMPED = [
    "Dumping /var/lib/kafka/data/payments-0/00000000000000000000.log",
    "Log starting offset: 0",
    *(
        f"baseOffset: {n}0 lastOffset: {n}9 count: 10 baseSequence: -1 lastSequence: -1 producerId: -1 producerEpoch: -1 "
        f"partitionLeaderEpoch: 0 isTransactional: false isControl: false deleteHorizonMs: OptionalLong.empty "
        f"position: {7**n} CreateTime: 1727139256030 size: 91 magic: 2 compresscodec: none crc: 11 isvalid: true"
        for n in range(9)
    ),
]
TRACE = [
    "\tat kafka.log.UnifiedLog.append(UnifiedLog.scala:911)",
    "\tat kafka.server.ReplicaManager.$anonfun$appendToLocalLog$6(ReplicaManager.scala:1210)",
]


def lines_of(content: bytes) -> list[str]:
    return [line.rstrip("\r") for line in restored(content).decode().split("\n") if line.strip()]


def wrapped(lines: list[str], width: int, quote: str = "") -> bytes:
    parts = [part for line in lines for part in textwrap.wrap(line, width, break_long_words=False, break_on_hyphens=False)]
    return "\n".join(quote + part for part in parts).encode()


def broken(lines: list[str], width: int, quote: str = "") -> bytes:
    return "\n".join(quote + line[at : at + width] for line in lines for at in range(0, len(line), width)).encode()


@pytest.mark.parametrize("width", [60, 72, 80, 120, 160])
@pytest.mark.parametrize("quote", ["", "> ", ">> ", "    "])
@pytest.mark.parametrize("lines", [LOGGED, DUMPED], ids=["log", "dump"])
@pytest.mark.parametrize("wrap", [wrapped, broken])
def test_wrapped_lines_are_joined(wrap: Callable[..., bytes], lines: list[str], quote: str, width: int) -> None:
    assert [line.removeprefix(quote) for line in lines_of(wrap(lines, width, quote))] == lines


@pytest.mark.parametrize("width", [80, 100, 132])
@pytest.mark.parametrize("quote", ["", "> "])
@pytest.mark.parametrize("wrap", [wrapped, broken])
def test_every_line_of_a_real_log_is_joined(wrap: Callable[..., bytes], quote: str, width: int) -> None:
    """One that is joined wrongly may look like a broken broker: `isr: [2] ->` in two lines is no quote."""
    for name in ("n1", "n2", "n3", "n100"):
        content = gzip.decompress((shipped()["3.4.0/b-kill-leader"] / name / "server.log.gz").read_bytes())
        lines = [line for line in content.decode().split("\n") if line.startswith("[20")]
        joined = [line.removeprefix(quote) for line in lines_of(wrap(lines, width, quote))]
        # Mail makes one space of several.
        assert [line.split() for line in joined] == [line.split() for line in lines]


@pytest.mark.parametrize("lines", [LOGGED, DUMPED, [LOGGED[0], *TRACE, LOGGED[1], *TRACE, *LOGGED[2:]]])
def test_what_was_not_wrapped_stays_as_it_is(lines: list[str]) -> None:
    for text in ("\n".join(lines), "\r\n".join(lines) + "\r\n", "\n".join(f"broker-1  | {line}" for line in lines)):
        assert restored(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "text",
    [
        "0\n3\n0 0\n1 62\n3 97\n",
        "0\n2\nalpha 0 97\nbeta 0 30\n",
        '{\n "version": 1,\n "brokers": [{"broker": 1, "logDirs": []}],\n "text": "none"\n}\n',
        "# what was seen\na,b\n1,2\n",
    ],
)
def test_what_is_no_log_stays_as_it_is(text: str) -> None:
    assert restored(text.encode()) == text.encode()


@pytest.mark.parametrize(
    "form",
    [
        lambda text: quopri.encodestring(text.replace("dir=", "dir=3D").replace("=3D", "=").encode()),
        lambda text: text.replace("\n", "\r").encode(),
        lambda text: text.replace(" ", "\u00a0").encode(),
        lambda text: text.replace(" ", "&nbsp;").encode(),
        lambda text: text.encode("utf-16"),
        lambda text: text.encode("utf-16-le"),
        lambda text: text.encode("utf-16-be"),
    ],
)
def test_codes_of_mail_and_of_shells_are_undone(form: Callable[[str], bytes], tmp_path: Path) -> None:
    path = tmp_path / "server.log"
    path.write_bytes(form("\n".join(LOGGED)))
    assert b"".join(blocks(path, "server.log", [])).decode().split("\n") == LOGGED


def of_amazon(lines: list[str]) -> str:
    return json.dumps({"events": [{"logStreamName": "kafka-a", "message": line} for line in lines]}, indent=4)


def of_google(lines: list[str]) -> str:
    labels = {"labels": {"container_name": "kafka", "pod_name": "kafka-a"}}
    return json.dumps([{"textPayload": line, "resource": labels} for line in lines], indent=2)


def of_elastic(lines: list[str]) -> str:
    return json.dumps({"took": 3, "hits": {"hits": [{"_source": {"message": line, "pod": "kafka-a"}} for line in lines]}})


def of_loki(lines: list[str]) -> str:
    values = [["1767283200000000000", line] for line in lines]
    return json.dumps({"data": {"resultType": "streams", "result": [{"stream": {"pod": "kafka-a"}, "values": values}]}})


def table(head: list[str], row: Callable[[str], list[str]], delimiter: str = ",") -> Callable[[list[str]], str]:
    def written(lines: list[str]) -> str:
        out = io.StringIO()
        csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows([head, *map(row, lines)])
        return out.getvalue()

    return written


TABLES = {
    "splunk": table(["_raw", "_time", "host"], lambda line: [line, line[1:11] + "T" + line[12:20], "kafka-a"]),
    "kibana": table(
        ["@timestamp", "log.level", "kubernetes.pod.name", "message"],
        lambda line: [f"Jan 1, 2026 @ {line[12:20]}.{line[21:24]}", "INFO", "kafka-a", line[31:]],
    ),
    "german": table(
        ["Zeit", "Pod", "Meldung"], lambda line: [f"01.01.2026 {line[12:24]}", "kafka-a", line[26:]], delimiter=";"
    ),
    "american": table(
        ["TimeGenerated [UTC]", "PodName", "LogMessage"],
        lambda line: [f"1/1/2026, 4:00:{line[18:20]}.{line[21:24]} PM", "kafka-a", line[26:]],
    ),
    "grafana": table(["Time", "Line", "labels"], lambda line: [line[1:20], line, '{"pod":"kafka-a"}'], delimiter="\t"),
}


@pytest.mark.parametrize("export", [of_amazon, of_google, of_elastic, of_loki, *TABLES.values()])
def test_lines_of_an_export_are_read_with_their_writer(export: Callable[[list[str]], str], tmp_path: Path) -> None:
    path = tmp_path / "export.txt"
    path.write_text(export(LOGGED), encoding="utf-8")
    plain = tmp_path / "server.log"
    plain.write_text("\n".join(LOGGED), encoding="utf-8")
    wanted = [(line.time, line.message, line.logger) for line in read_lines(plain, "server.log").lines]
    read = read_lines(path, "export.txt")
    assert [(line.time, line.message, line.logger) for line in read.lines] == wanted
    assert len(wanted) == len(LOGGED)


def test_the_day_comes_first_in_a_table_that_has_a_thirteenth_month(tmp_path: Path) -> None:
    days = [*(f"0{day}/01/2026" for day in (2, 3, 4)), "13/01/2026"]
    path = tmp_path / "export.csv"
    messages = [f'"{day} 16:00:00.000","kafka-a","{line[26:]}"' for day, line in zip(days, LOGGED, strict=False)]
    path.write_text("\n".join(['"Time","Pod","Message"', *messages]), encoding="utf-8")
    read = [line.time for line in read_lines(path, "export.csv").lines]
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    assert [epoch + timedelta(microseconds=time) for time in read if time is not None] == [
        datetime(2026, 1, int(day[:2]), 16, tzinfo=UTC) for day in days
    ]


def test_a_line_keeps_its_number() -> None:
    text = of_google(LOGGED)
    at = [number for number, line in enumerate(text.split("\n")) if "textPayload" in line]
    out = restored(text.encode()).decode().split("\n")
    assert [number for number, line in enumerate(out) if line] == [number - 1 for number in at]
    joined = restored(wrapped(LOGGED, 72)).decode().split("\n")
    assert [number for number, line in enumerate(joined) if line] == [
        number for number, line in enumerate(wrapped(LOGGED, 72).decode().split("\n")) if line.startswith("[")
    ]
