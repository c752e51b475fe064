"""`python -m tests.fuzz.readers [--seed S] [--inputs N] [--first F] [--only NUMBER]`: every reader, given changed bytes.

Rules of this file

1. A reader returns, or raises what it promises; each input has SECONDS of the processor, all of them MOST_BYTES of memory.
2. An input is made from a seed and its number, and from nothing else. One that is wrong is printed, and becomes a test.
"""

import argparse
import contextlib
import random
import resource
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from tests.fuzz.inputs import _logs, _tables, _traces, changed_bytes
from tidegauge.drive.probe.connection import shipped_messages
from tidegauge.drive.wire.compiler import WireError
from tidegauge.impl.errors import CheckpointError
from tidegauge.impl.storage.checkpoints import parse_epochs, parse_offsets
from tidegauge.spec.tlc.output import read_transcript
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.formats.ndjson_columns import read_at_once
from tidegauge.traces.kafka_logs.parsing.lines import read_lines
from tidegauge.traces.kafka_logs.parsing.parsed_line import parse_line
from tidegauge.traces.kafka_logs.parsing.request_log import RequestReader, is_request
from tidegauge.traces.segments import segment
from tidegauge.traces.segments.record_batch import CorruptBatchError, batch_of, decode, encode
from tidegauge.util.errors import SpecError

INPUTS = 10_000_000
SECONDS = 5
MOST_BYTES = 1 << 30
TLC = b"@!@!@STARTMSG 2262:0 @!@!@\nTLC2\n@!@!@ENDMSG 2262 @!@!@\n@!@!@STARTMSG 2217:4 @!@!@\n1: <Init>\n/\\ x = 0\n"
TLC += b"@!@!@ENDMSG 2217 @!@!@\n@!@!@STARTMSG 2193:0 @!@!@\nfine\n@!@!@ENDMSG 2193 @!@!@\n"
CHECKPOINT = b"0\n2\nalpha 0 12\nbeta 0 7\n"

Read = Callable[[bytes, Path], object]


def _segment(data: bytes, _folder: Path) -> None:
    read = segment.parse(data)
    assert read.valid_bytes <= len(data)
    with contextlib.suppress(CorruptBatchError):
        decode(data)


def _response(data: bytes, _folder: Path) -> None:
    messages = shipped_messages()
    for name in ("ApiVersionsResponse", "MetadataResponse", "FetchResponse", "ProduceResponse"):
        with contextlib.suppress(WireError):
            messages.read(name, messages.versions(name)[-1], data)


def _log(data: bytes, folder: Path) -> None:
    path = folder / "server.log"
    path.write_bytes(data)
    requests = RequestReader()
    for line in read_lines(path, "server.log").lines:
        parse_line(line)
        if is_request(line):
            requests.read(line)


def _trace(data: bytes, _folder: Path) -> None:
    ndjson.read_bytes(data, "t")
    read_at_once(data)


def _table(data: bytes, folder: Path) -> None:
    path = folder / "t.parquet"
    path.write_bytes(data)
    try:
        with parquet.Reader(path) as reader:
            for group in reader.row_groups():
                reader.read(group.index)
    except parquet.Unreadable:
        pass


def _checkpoint(data: bytes, _folder: Path) -> None:
    for parse in (parse_offsets, parse_epochs):
        with contextlib.suppress(CheckpointError):
            parse(data.decode("utf-8", "replace"))


def _tlc(data: bytes, _folder: Path) -> None:
    with contextlib.suppress(SpecError):
        read_transcript(data.decode("utf-8", "replace").splitlines(keepends=True), None)


def _seeds(chosen: random.Random) -> tuple[bytes, Read]:
    """Choose a reader, and content that it reads."""
    batches = encode(batch_of(0, 1, [b"a", b"b" * 40], codec=chosen.randrange(5))) + encode(batch_of(2, 2, [b"c"]))
    lines = chosen.choice(list(chosen.choice(_logs()).values()))
    at = chosen.randrange(max(1, len(lines)))
    return chosen.choice(
        (
            (batches, _segment),
            (chosen.randbytes(chosen.randrange(200)), _response),
            (b"".join(lines[at : at + 20]), _log),
            (chosen.choice(_traces()), _trace),
            (chosen.choice(_tables()), _table),
            (CHECKPOINT, _checkpoint),
            (TLC, _tlc),
        )
    )


def wrong(seed: int, number: int, folder: Path) -> str:
    """Try an input; return what is wrong with it, or nothing."""
    chosen = random.Random(f"{seed}/{number}/reader")
    content, read = _seeds(chosen)
    for _ in range(chosen.choice((1, 1, 2, 5))):
        content = changed_bytes(chosen, content)
    signal.setitimer(signal.ITIMER_VIRTUAL, SECONDS)
    try:
        read(content, folder)
    except Exception as raised:  # that is what is looked for
        return f"{read.__name__.strip('_')}: {type(raised).__name__}: {raised}"
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return ""


def _too_long(_number: int, _frame: object) -> None:
    raise TimeoutError(f"more than {SECONDS} s")


def run(arguments: Sequence[str]) -> int:
    """Try every input; 1 when one is wrong."""
    parser = argparse.ArgumentParser(description="every reader, given changed bytes")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", type=int, help="the number of one input")
    chosen = parser.parse_args(arguments)
    numbers = range(chosen.first, chosen.inputs) if chosen.only is None else [chosen.only]
    signal.signal(signal.SIGVTALRM, _too_long)
    faults, begun = 0, time.monotonic()
    with tempfile.TemporaryDirectory(prefix="tidegauge-fuzz-") as folder:
        for number in numbers:
            if fault := wrong(chosen.seed, number, Path(folder)):
                faults += 1
                print(f"input {number}: {fault}", flush=True)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    if peak > MOST_BYTES:
        faults += 1
        print(f"peak of memory: expected at most {MOST_BYTES:,} bytes, seen {peak:,}")
    seconds = time.monotonic() - begun
    print(f"seed {chosen.seed}: {len(numbers):,} inputs in {seconds:.0f} s, {faults} wrong; peak {peak:,} bytes")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
