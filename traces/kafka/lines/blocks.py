"""Read log files in blocks of whole lines, compressed or not: of a file of any size, one block is in memory.

Rules of this file

1. A block ends with a line break, except for the last one. What cannot be read, or unpacked, becomes a Problem; what came
   before it is read.
2. Most lines of a large file have no pattern for their logger. They are skipped as bytes, a block at a time. An incomplete
   line, and the one after it, are never skipped: they show that lines are missing.
"""

import re
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from tidegauge.traces.kafka.lines.patterns import TABLE
from tidegauge.traces.problems import Problem

BLOCK = 4 << 20
_GZIP = b"\x1f\x8b"
_KNOWN = "|".join(sorted({re.escape(logger) for _, logger, _ in TABLE}))


def blocks(path: Path, label: str, problems: list[Problem]) -> Iterator[bytes]:
    """Yield the content of a log file in blocks."""
    left = b""
    for piece in pieces(path, label, problems):
        content = left + piece
        end = content.rfind(b"\n") + 1
        left = content[end:]
        if end:
            yield content[:end]
    if left:
        yield left


def pieces(path: Path, label: str, problems: list[Problem]) -> Iterator[bytes]:
    """Yield the content, uncompressed, in pieces of any length."""
    try:
        with path.open("rb") as file:
            first = file.read(BLOCK)
            if not first.startswith(_GZIP):
                while first:
                    yield first
                    first = file.read(BLOCK)
                return
            unpack = zlib.decompressobj(wbits=31)
            raw = first
            while raw:
                yield from _unpacked(unpack, raw)
                while unpack.eof and (rest := unpack.unused_data.lstrip(b"\0")):
                    unpack = zlib.decompressobj(wbits=31)  # a file may consist of several gzip members
                    yield from _unpacked(unpack, rest)
                raw = file.read(BLOCK)
                if unpack.eof and raw:
                    unpack = zlib.decompressobj(wbits=31)
            if unpack.eof:
                return
    except OSError as error:
        problems.append(Problem(label, None, "a readable file", str(error.strerror), "check the path and its permissions"))
        return
    except zlib.error:
        pass
    seen, do = "one that ends early or is damaged", "copy it again; what could be unpacked is read"
    problems.append(Problem(label, None, "a whole gzip file", seen, do))


def _unpacked(unpack: "zlib._Decompress", raw: bytes) -> Iterator[bytes]:
    while raw and not unpack.eof:
        yield unpack.decompress(raw, BLOCK)
        raw = unpack.unconsumed_tail


def positions_read(block: bytes) -> tuple[Sequence[int], Sequence[int], Sequence[int]]:
    """Of the lines of a block that are not passed over: which they are, where they begin and where they end.

    The block is written in a layout of Kafka: `[time] .. (logger)`.
    """
    data = np.frombuffer(block, dtype=np.uint8)
    ends = np.flatnonzero(data == ord("\n"))
    if not block.endswith(b"\n"):
        ends = np.append(ends, len(data))
    begins = np.concatenate(([0], ends[:-1] + 1))
    offsets = np.append(begins, len(data)).astype(np.int32)
    lines = pa.Array.from_buffers(pa.binary(), len(begins), [None, pa.py_buffer(offsets), pa.py_buffer(block)])
    known = pc.match_substring_regex(lines, _KNOWN).to_numpy(zero_copy_only=False)
    last = data[np.maximum(ends - 1, 0)]
    last = np.where(last == ord("\r"), data[np.maximum(ends - 2, 0)], last)
    whole = (data[np.minimum(begins, len(data) - 1)] == ord("[")) & (last == ord(")"))
    read = known | ~whole
    read[1:] |= ~whole[:-1]
    kept = np.flatnonzero(read)
    return kept.tolist(), begins[kept].tolist(), ends[kept].tolist()
