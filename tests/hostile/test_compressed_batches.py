"""Compressed record batches that unpack to gigabytes, or are damaged: CorruptBatchError, in bounded memory (B16, C4)."""

import gzip
import resource
import struct
from collections.abc import Callable
from pathlib import Path

import google_crc32c
import pyarrow as pa
import pytest

from tidegauge.traces import segments
from tidegauge.traces.segments import CorruptBatchError, decode

BODY = struct.Struct(">hiqqqhii")
GIGABYTES = 8 << 30


def batch(codec: int, records: bytes) -> bytes:
    """Return a batch with a right checksum around compressed records."""
    body = BODY.pack(codec, 0, 0, 0, -1, -1, -1, 1) + records
    return struct.pack(">qiibI", 0, 9 + len(body), 0, 2, google_crc32c.value(body)) + body


def gzip_bomb() -> bytes:
    return gzip.compress(bytes(1 << 20)) * (GIGABYTES >> 20)


def zstd_bomb() -> bytes:
    return pa.Codec("zstd").compress(bytes(1 << 20), asbytes=True) * (GIGABYTES >> 20)


def snappy_bomb() -> bytes:
    """A gigabyte in blocks of one megabyte, each of which is small enough."""
    block = pa.Codec("snappy").compress(bytes(1 << 20), asbytes=True)
    return segments.compress(segments.SNAPPY, b"")[:16] + (struct.pack(">i", len(block)) + block) * (1 << 10)


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "snappy says 4 GB": (segments.SNAPPY, lambda: b"\xff\xff\xff\xff\x0f" + b"x" * 8),
    "snappy unpacks to 1 GB in blocks": (segments.SNAPPY, snappy_bomb),
    "gzip unpacks to 8 GB": (segments.GZIP, gzip_bomb),
    "zstd unpacks to 8 GB": (segments.ZSTD, zstd_bomb),
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_a_corrupt_batch(name: str) -> None:
    codec, records = BOMBS[name]
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CorruptBatchError, match="expected"):
        decode(batch(codec, records()))
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1 << 20, "a gigabyte, in kilobytes"


def address_space() -> int:
    """Return the bytes of this process's address space."""
    return int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0]) * resource.getpagesize()


@pytest.mark.parametrize("codec", [segments.LZ4, segments.ZSTD])
def test_damaged_batches_leave_nothing_behind(codec: int) -> None:
    """Each left 100 kB of address space: its stream was not closed."""
    records = bytearray(segments.compress(codec, bytes(range(256)) * 40))
    records[len(records) // 2] ^= 0xFF
    damaged = batch(codec, bytes(records[:-4]))

    def decode_some() -> None:
        for _ in range(1_000):
            with pytest.raises(CorruptBatchError):
                decode(damaged)

    decode_some()
    before = address_space()
    decode_some()
    assert address_space() - before < 32 << 20
