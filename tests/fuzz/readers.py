"""Every reader of what somebody else writes: contents that it reads, and what it promises about any others.

Rules of this file

1. A reader returns, or raises what it promises; whatever else leaves `read` is a fault, an AssertionError among them.
2. What is not read is told: lines and rows are events or are counted as lost, and a fast way says what the slow one says.
"""

import bz2
import gzip
import io
import json
import lzma
import struct
import zlib
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import NamedTuple

import pyarrow.parquet as pq

from tests.fuzz.inputs import _disks, _logs, _tables, _traces
from tidegauge.conformance.play import scenario
from tidegauge.drive.broker.contract import VERSION
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.probe.connection import REQUESTS, shipped_messages
from tidegauge.drive.runner import transcript
from tidegauge.drive.runner.transcript import TranscriptError
from tidegauge.drive.transports.lines import DrivenProgramError, json_line, parse_handshake, parse_line, parse_report
from tidegauge.drive.wire.compiler import WireError
from tidegauge.drive.wire.frames import shared_versions
from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.storage.checkpoints import parse_epochs, parse_offsets
from tidegauge.spec.tlc.cfg import parse_cfg
from tidegauge.spec.tlc.graph import GraphReporter
from tidegauge.spec.tlc.output import read_transcript
from tidegauge.traces import segments
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.formats.ndjson_columns import read_at_once
from tidegauge.traces.kafka_logs.parsing import parsed_line
from tidegauge.traces.kafka_logs.parsing.layout import PATTERNS, WRAPPERS
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from tidegauge.traces.kafka_logs.parsing.request_log import RequestReader, is_request
from tidegauge.traces.problems import lost
from tidegauge.traces.segments import (
    CHECKED_FROM,
    CHECKSUM,
    HEADER,
    CorruptBatchError,
    batch_of,
    decode,
    encode,
)
from tidegauge.util.errors import SpecError, UsageError
from tidegauge.util.input_limits import UnpackingError, packing_of, unpacked_as
from tidegauge.util.junit import known_failures

ROOT = Path(__file__).parents[2]
LOG_LINES = ROOT / "tests" / "kafka_logs" / "lines.json"
SPEC = ROOT / "tidegauge" / "spec" / "models"
TIME = "[2026-11-21 08:28:48,840] INFO [thread] "


class Reader(NamedTuple):
    """A reader by what it reads and how; `read` gets a folder for the file if it reads one."""

    samples: Callable[[], Sequence[bytes]]
    read: Callable[[bytes, Path], object]


def _in_file(folder: Path, name: str, data: bytes) -> Path:
    path = folder / name
    path.write_bytes(data)
    return path


# ---------------------------------------------------------------------------------------------------------------------
# Traces


@cache
def _short_traces() -> list[bytes]:
    """Some lines of each trace, behind its Config."""
    short = []
    for at, trace in enumerate(_traces()):
        config, *events = trace.splitlines(keepends=True)
        begin = at % max(1, len(events) - 8)
        short += [config + b"".join(events[:6]), config + b"".join(events[begin : begin + 8])]
    return short


def _ndjson(data: bytes, _folder: Path) -> None:
    reader = ndjson.LineReader("t")
    reader.feed(data)
    reader.end()
    traces = reader.traces()
    events = sum(len(trace.events) for trace in traces)
    lines = sum(bool(line.strip()) for line in data.split(b"\n"))
    assert reader.stopped or events + len(traces) + lost(reader.problems) == lines
    batches = read_at_once(data)
    if batches is not None:
        assert (lost(reader.problems), reader.stopped) == (0, False)
        assert sum(len(batch.stored) for batch in batches) == events


@cache
def _parquet_files() -> list[bytes]:
    """Files of ours, and those of another writer: compressed, with texts as they are."""
    packed = []
    for table, codec in zip(_tables(), ("snappy", "zstd", "gzip", "lz4"), strict=False):
        out = io.BytesIO()
        pq.write_table(pq.read_table(io.BytesIO(table)), out, compression=codec, use_dictionary=codec == "zstd")
        packed.append(out.getvalue())
    return [*_tables(), *packed]


def _parquet(data: bytes, folder: Path) -> None:
    with suppress(parquet.Unreadable), parquet.Reader(_in_file(folder, "t.parquet", data)) as reader:
        for group in reader.row_groups():
            with suppress(parquet.Unreadable):
                assert len(reader.read(group.index)) == group.rows


# ---------------------------------------------------------------------------------------------------------------------
# Logs and disks of brokers


@cache
def _log_lines() -> list[bytes]:
    """A line of each wording, and lines of each capture."""
    rows = json.loads(LOG_LINES.read_text())
    wordings = dict.fromkeys(f"{TIME}{row['line']} (kafka.x.{row['logger']})\n".encode() for row in rows)
    captured = (lines[at : at + 3] for log in _logs() for lines in log.values() for at in range(0, len(lines), 997))
    return [*wordings, *map(b"".join, captured)]


def _log(data: bytes, folder: Path) -> None:
    requests = RequestReader()
    for line in read_lines(_in_file(folder, "server.log", data), "server.log").lines:
        parsed_line.parse_line(line)
        if is_request(line):
            requests.read(line)


@cache
def _laid_out() -> list[bytes]:
    """Patterns, each with a line behind it."""
    return [f"{pattern}\n{TIME}x (kafka.x.Y)\n".encode() for pattern in (*PATTERNS, "%d{HH:mm:ss} %-5p [%t] %X{a} %m%n")]


def _layout(data: bytes, folder: Path) -> None:
    pattern, _, lines = data.partition(b"\n")
    with suppress(UsageError):
        read_lines(_in_file(folder, "server.log", lines), "server.log", pattern.decode("utf-8", "surrogateescape"))


@cache
def _wrapped() -> list[bytes]:
    """Lines as containers and collectors write them."""
    line = f"{TIME}x (kafka.x.Y)"
    around = (
        "2026-11-21T08:28:48.840Z stdout F {}",
        "2026-11-21T08:28:48.840Z stdout P {}",
        "\x1b[32m{}\x1b[0m",
        "broker-1  | {}",
        "[pod/kafka-0/kafka] {}",
        "Nov 21 08:28:48 host kafka[12]: {}",
    )
    documents: tuple[dict[str, object], ...] = (
        {"log": f"{line}\n", "stream": "stdout"},
        {
            "@timestamp": "2026-11-21T08:28:48.840Z",
            "level": "INFO",
            "thread": "t",
            "message": "x",
            "logger_name": "kafka.x.Y",
        },
        {"instant": {"epochSecond": 1763712735, "nanoOfSecond": 1}, "level": "INFO", "thread": "t", "message": "x"},
    )
    return [*(f"{one.format(line)}\n".encode() * 2 for one in around), *(json_line(one) * 2 for one in documents)]


def _wrapper(data: bytes, folder: Path) -> None:
    for text in data.decode("utf-8", "replace").split("\n"):
        for wrapper in WRAPPERS:
            wrapper.unwrap(text)
    read_lines(_in_file(folder, "kafka.log", data), "kafka.log")


@cache
def _packed() -> list[bytes]:
    text = f"{TIME}x (kafka.x.Y)\n".encode()
    packings: list[Callable[[bytes], bytes]] = [partial(gzip.compress, mtime=0), bz2.compress, lzma.compress]
    return [content for pack in packings for content in (pack(text * 9), pack(text) * 2, pack(bytes(1 << 16)))]


def _unpacked(data: bytes, _folder: Path) -> None:
    with suppress(UnpackingError):
        for _ in unpacked_as(packing_of(data) or "gzip", [data[:7], data[7:]]):
            pass


@cache
def _batches() -> list[bytes]:
    small = [batch_of(0, 1, [b"a", b"b" * 40], codec=codec) for codec in range(5)]
    return [encode(one) + encode(batch_of(2, 2, [b"c"])) for one in small]


def _segment(data: bytes, folder: Path) -> None:
    for records in (True, False):
        read = segments.parse(data, records)
        assert (read.fault is None) == (read.valid_bytes == len(data))
    segments.read(_in_file(folder, segments.file_name(0), data))


def _batch(data: bytes, _folder: Path) -> None:
    """Decode a batch whose length and checksum are right, whatever else it says."""
    if len(data) < HEADER.size or CHECKSUM is None:
        return
    data = data[:8] + struct.pack(">i", len(data) - 12) + data[12:16] + b"\2" + data[17:]
    data = data[: CHECKED_FROM - 4] + struct.pack(">I", CHECKSUM(data[CHECKED_FROM:])) + data[CHECKED_FROM:]
    with suppress(CorruptBatchError):
        batch, end = decode(data)
        assert end == len(data)
        encode(batch)


@cache
def _files_of_disks() -> list[bytes]:
    texts = [content for content in _disks().values() if len(content) < 400]
    return [*texts, b"0\n2\nalpha 0 12\nbeta 0 7\n", b"0\n2\n0 0\n3 17\n"]


def _checkpoint(data: bytes, _folder: Path) -> None:
    for parse in (parse_offsets, parse_epochs):
        with suppress(CheckpointError):
            parse(data.decode("utf-8", "replace"))


# ---------------------------------------------------------------------------------------------------------------------
# Brokers and programs


@cache
def _responses() -> list[bytes]:
    """Of each response the empty one of each version: the number of the response, the version, the bytes."""
    messages = shipped_messages()
    named = ((number, messages.versions(f"{name}Response")) for number, name in enumerate(REQUESTS))
    some = [bytes((number, at)) + bytes(60) for number, versions in named for at in range(len(versions))]
    versions = {"errorCode": 0, "apiKeys": [{"apiKey": 1, "minVersion": 0, "maxVersion": 17}], "throttleTimeMs": 0}
    return [*some, bytes((REQUESTS.index("ApiVersions"), 1)) + messages.write("ApiVersionsResponse", 1, versions)]


def _response(data: bytes, _folder: Path) -> None:
    messages = shipped_messages()
    if len(data) < 2:
        return
    name = REQUESTS[data[0] % len(REQUESTS)]
    versions = messages.versions(f"{name}Response")
    with suppress(WireError):
        message, end = messages.read(f"{name}Response", versions[data[1] % len(versions)], data[2:])
        assert end <= len(data) - 2
        if name == "ApiVersions":
            shared_versions(messages, message)


@cache
def _said() -> list[bytes]:
    """What a driven program says."""
    fetch = {"current_leader_epoch": 1, "fetch_offset": 0, "last_fetched_epoch": 1, "log_start": 0}
    report: dict[str, object] = {
        "p": 1,
        "result": None,
        "requests": {"2": fetch},
        "proposal": {"isr": [1], "leader_epoch": 1, "partition_epoch": 2},
        "produced": [[1, 0]],
        "fetched": {"3": {"error": 0, "base": 0, "hw": 1, "log_start": 0, "records": [[0, 1, 2]], "diverging": None}},
        "leo": 3,
        "hw": 1,
        "log_start": 0,
        "ends": [[1, 3]],
    }
    hello = {"contract": VERSION, "name": "x", "can": sorted(EVERYTHING.can), "reports": sorted(EVERYTHING.reports)}
    return [json_line(hello), json_line(report), json_line({"p": 1, "unsupported": True})]


def _program(data: bytes, _folder: Path) -> None:
    with suppress(DrivenProgramError):
        assert parse_handshake(data, "").name.isprintable()
    with suppress(DrivenProgramError):
        parse_report(parse_line(data, ""), ("append", 1, 1), EVERYTHING, data, "")


# ---------------------------------------------------------------------------------------------------------------------
# TLC's output, and files that a user is given


TLC = b"@!@!@STARTMSG 2262:0 @!@!@\nTLC2\n@!@!@ENDMSG 2262 @!@!@\n@!@!@STARTMSG 2217:4 @!@!@\n1: <Init line 3>\n/\\ x = %b\n"
TLC += b"@!@!@ENDMSG 2217 @!@!@\n@!@!@STARTMSG 2199:0 @!@!@\n1 states generated, 2 distinct states found, 0 states left\n"
TLC += b"@!@!@ENDMSG 2199 @!@!@\n@!@!@STARTMSG 2193:0 @!@!@\nfine\n@!@!@ENDMSG 2193 @!@!@\n"
VALUES = (b"0", b'(1 :> [a |-> {b1, "x"}] @@ 2 :> <<TRUE, -1>>)', b"{1, {2}, <<>>, [b |-> {}]}", b"1 .. 3\n/\\ y = m1")
REPORTED = (
    b'<<"from", <<1, <<2>>>>>>\n<<"step", <<"A", 1>>, "to", <<2>>>>\n<<"step", <<"B">>, "to", << >>, "from", <<3>>>>\n'
)


def _tlc(data: bytes, _folder: Path) -> None:
    text = data.decode("utf-8", "replace")
    with suppress(SpecError):
        read_transcript(text.splitlines(keepends=True))
    reporter = GraphReporter()
    for line in text.splitlines():
        with suppress(SpecError):
            reporter.take(line)


def _cfg(data: bytes, _folder: Path) -> None:
    with suppress(SpecError):
        parse_cfg(data.decode("utf-8", "replace"))


@cache
def _transcripts() -> list[bytes]:
    """The beginning of a shipped transcript of each format, unpacked."""
    texts = [gzip.decompress(transcript.place_of("4.1.1", kind=kind).read_bytes()) for kind in ("kafka", "controller")]
    return [b"".join(text.splitlines(keepends=True)[:2])[:6000] for text in texts]


def _transcript(data: bytes, folder: Path) -> None:
    packed = zlib.compress(data, 1, 31) if data[:1] == b"{" else data
    with suppress(TranscriptError):
        transcript.read(_in_file(folder, "t.gz", packed), BROKER_FORMAT, CONTROLLER_FORMAT)


def _scenario(data: bytes, folder: Path) -> None:
    with suppress(scenario.ScenarioError):
        scenario.read(_in_file(folder, "s.txt", data))


def _expected(data: bytes, folder: Path) -> None:
    with suppress(UsageError):
        known_failures(_in_file(folder, "expected.txt", data), {"cover[1]", "rule[HW-06]"})


READERS: Mapping[str, Reader] = {
    "ndjson": Reader(_short_traces, _ndjson),
    "parquet": Reader(_parquet_files, _parquet),
    "log": Reader(_log_lines, _log),
    "layout": Reader(_laid_out, _layout),
    "wrapper": Reader(_wrapped, _wrapper),
    "packed": Reader(_packed, _unpacked),
    "segment": Reader(_batches, _segment),
    "batch": Reader(_batches, _batch),
    "checkpoint": Reader(_files_of_disks, _checkpoint),
    "response": Reader(_responses, _response),
    "program": Reader(_said, _program),
    "tlc": Reader(lambda: [*(TLC % value for value in VALUES), REPORTED], _tlc),
    "cfg": Reader(cache(lambda: [path.read_bytes() for path in sorted(SPEC.rglob("*.cfg"))[::8]]), _cfg),
    "transcript": Reader(_transcripts, _transcript),
    "scenario": Reader(cache(lambda: [path.read_bytes() for path in scenario.shipped()[::4]]), _scenario),
    "expected": Reader(lambda: [b"cover[1] # fails\nrule[HW-06]\n"], _expected),
}
