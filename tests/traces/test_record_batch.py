"""Batches and segments as bytes: round trips, an independent reader and writer, and every way to be torn."""

import struct
import warnings
from pathlib import Path
from typing import Any

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.impl.messages import Batch
from tidegauge.impl.profiles import Setup
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.log import Log
from tidegauge.traces import segments
from tidegauge.traces.segments import (
    CONTROL,
    GZIP,
    HEADER,
    LOG_APPEND_TIME,
    LZ4,
    NAMES,
    NONE,
    SNAPPY,
    TRANSACTIONAL,
    ZSTD,
    CompressionError,
    CorruptBatchError,
    FileBytes,
    Record,
    RecordBatch,
    batch_of,
    compress,
    decode,
    decompress,
    encode,
    varint,
)

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the client package reads its schemas in an old way
    from kafka.record.memory_records import MemoryRecords, MemoryRecordsBuilder

CODECS = (NONE, GZIP, SNAPPY, LZ4, ZSTD)

datum = st.none() | st.binary(max_size=40)
header = st.tuples(st.text(max_size=8), datum)
moment = st.integers(0, 2**42)


@st.composite
def record_batches(draw: st.DrawFn, codecs: tuple[int, ...] = CODECS, first: int = 0) -> RecordBatch:
    """Any batch a broker may hold: compacted ones with gaps, empty ones, transactional and control batches."""
    base = first + draw(st.integers(0, 2**40))
    last = base + draw(st.integers(0, 12))
    offsets = sorted(draw(st.sets(st.integers(base, last))))
    begin = draw(moment)
    records = tuple(
        Record(offset, draw(moment), draw(datum), draw(datum), tuple(draw(st.lists(header, max_size=3))))
        for offset in offsets
    )
    flags = draw(st.sampled_from([0, LOG_APPEND_TIME, TRANSACTIONAL, TRANSACTIONAL | CONTROL]))
    producer = draw(st.sampled_from([(-1, -1, -1), (7, 0, 0), (2**40, 3, 2**31 - 1)]))
    codec = draw(st.sampled_from(codecs))
    return RecordBatch(base, last, draw(st.integers(-1, 2**31 - 1)), records, codec | flags, begin, draw(moment), *producer)


# ---------------------------------------------------------------------------------------------------------------------
# Round trips


@given(record_batches())
def test_a_batch_comes_back_from_its_bytes(batch: RecordBatch) -> None:
    """Values survive, and encoding them again gives the same bytes."""
    data = encode(batch)
    assert decode(data) == (batch, len(data))
    assert encode(decode(data)[0]) == data
    assert decode(b"xyz" + data, 3) == (batch, len(data) + 3)


@given(st.integers(-(2**63), 2**63 - 1))
def test_numbers_survive_their_encoding(number: int) -> None:
    """Zigzag keeps small magnitudes short, and every int64 fits in ten bytes."""
    batch = RecordBatch(0, 0, 0, (Record(0, number, None, None),))
    assert decode(encode(batch))[0].records[0].timestamp == number
    assert len(varint(number)) <= 10
    assert len(varint(number)) == 1 or abs(number) >= 64


@given(st.binary(max_size=200_000), st.sampled_from(CODECS))
def test_data_survives_its_codec(data: bytes, codec: int) -> None:
    """And the same data is the same bytes: traces must not depend on the hour."""
    assert decompress(codec, compress(codec, data)) == data
    assert compress(codec, data) == compress(codec, data)


def test_the_leader_epoch_is_not_under_the_checksum() -> None:
    """A leader stamps its epoch into a batch without computing the checksum again."""
    data = bytearray(encode(batch_of(5, 0, [b"a"])))
    struct.pack_into(">i", data, 12, 9)
    assert decode(bytes(data))[0] == batch_of(5, 9, [b"a"])


# ---------------------------------------------------------------------------------------------------------------------
# An independent reader and writer


def _as_theirs(record: Any) -> tuple[Any, ...]:
    return record.offset, record.timestamp, record.key, record.value, tuple(record.headers)


@given(st.lists(record_batches(), min_size=1, max_size=3))
def test_what_we_write_kafka_python_reads(batches: list[RecordBatch]) -> None:
    """Header by header and record by record; a control record's key must be one, so those are compared by header."""
    theirs = list(MemoryRecords(segments.segment_bytes(batches)))
    assert len(theirs) == len(batches)
    for batch, read in zip(batches, theirs, strict=True):
        assert read.validate_crc()
        assert (read.base_offset, read.last_offset, read.leader_epoch) == (batch.base, batch.last, batch.epoch)
        assert (read.attributes, read.first_timestamp, read.max_timestamp) == batch[4:7]
        assert (read.producer_id, read.producer_epoch, read.base_sequence) == batch[7:]
        assert (read.is_control_batch, read.is_transactional) == (batch.is_control, batch.is_transactional)
        if not batch.is_control:
            stamped = batch.attributes & LOG_APPEND_TIME
            ours = [r._replace(timestamp=batch.max_timestamp) if stamped else r for r in batch.records]
            assert [_as_theirs(record) for record in read] == [record[:5] for record in ours]


@given(
    st.lists(st.tuples(moment, datum, datum, st.lists(header, max_size=2)), min_size=1, max_size=8),
    st.sampled_from(CODECS),
    st.booleans(),
)
def test_what_kafka_python_writes_we_read(records: list[Any], codec: int, in_transaction: bool) -> None:
    """A producer's batch: offsets from 0, no leader epoch yet."""
    producer = (7, 2, 5) if in_transaction else (-1, -1, -1)
    builder = MemoryRecordsBuilder(2, codec, 1 << 20, 0, in_transaction, *producer)
    for timestamp, key, value, headers in records:
        assert builder.append(timestamp, key, value, headers) is not None
    builder.close()
    data = bytes(builder.buffer())
    batch, end = decode(data)
    assert end == len(data)
    assert batch.records == tuple(
        Record(n, timestamp, key, value, tuple(headers)) for n, (timestamp, key, value, headers) in enumerate(records)
    )
    assert (batch.base, batch.last, batch.epoch) == (0, len(records) - 1, 0)
    assert batch[7:] == producer
    assert batch.is_transactional is in_transaction
    assert batch.max_timestamp == max(timestamp for timestamp, *_ in records)


# ---------------------------------------------------------------------------------------------------------------------
# Segments


def _five_batches() -> list[RecordBatch]:
    return [
        batch_of(3, 0, [b"a", b"b"], 1000),
        batch_of(5, 0, [b"c"], 1001, GZIP),
        batch_of(6, 2, [b"d", b"e", b"f"], 1002),
        batch_of(12, 2, [b"g"], 1003),
        batch_of(13, 4, [b"h", b"i"], 1004),
    ]


def test_a_segment_file_comes_back(tmp_path: Path) -> None:
    """Named after its first offset; the protocol's view of it is batches and epochs."""
    path = segments.write(tmp_path, _five_batches())
    assert path.name == "00000000000000000003.log"
    read = segments.read(path)
    assert read.fault is None
    assert read.valid_bytes == path.stat().st_size
    assert list(read.batches) == _five_batches()
    assert [batch[:3] for batch in read.batches] == [(3, 4, 0), (5, 5, 0), (6, 8, 2), (12, 12, 2), (13, 14, 4)]
    assert read.epochs == ((0, 3), (2, 6), (4, 13))
    assert segments.read(segments.write(tmp_path, [], base=20)) == segments.Segment((), 0)


def test_a_torn_last_batch_is_found_wherever_it_is_torn() -> None:
    """Every truncation inside the last batch leaves the others and tells where it begins."""
    batches = _five_batches()
    whole = segments.segment_bytes(batches)
    begin = len(segments.segment_bytes(batches[:-1]))
    for at in range(begin + 1, len(whole)):
        read = segments.parse(whole[:at])
        assert list(read.batches) == batches[:-1]
        assert read.fault is not None
        assert read.valid_bytes == read.fault.position == begin
        assert read.fault.seen == f"the last {at - begin} bytes"
    assert segments.parse(whole[:begin]).fault is None


@given(st.data())
def test_a_flipped_bit_never_passes(data: st.DataObject) -> None:
    """Checksum, length, magic or order give it away; only base offset and leader epoch are under no checksum."""
    batches = _five_batches()
    whole = bytearray(segments.segment_bytes(batches))
    starts = [len(segments.segment_bytes(batches[:n])) for n in range(len(batches))]
    at = data.draw(st.integers(0, len(whole) - 1))
    hit = max(n for n, start in enumerate(starts) if start <= at)
    whole[at] ^= 1 << data.draw(st.integers(0, 7))
    read = segments.parse(bytes(whole))
    unchecked = at - starts[hit] < 8 or 12 <= at - starts[hit] < 16
    if unchecked:
        assert len(read.batches) >= hit
    else:
        assert read.fault is not None
        assert read.fault.position == starts[hit]
        assert list(read.batches) == batches[:hit]


def test_offsets_that_do_not_increase_end_a_segment() -> None:
    """As LogSegment#recover has it: what stands before stays."""
    read = segments.parse(segments.segment_bytes([batch_of(0, 0, [b"a", b"b"]), batch_of(1, 0, [b"c"])]))
    assert len(read.batches) == 1
    assert read.fault is not None
    assert (read.fault.expected, read.fault.seen) == ("a base offset above 1", "1")


@given(st.lists(st.integers(1, 4), min_size=1, max_size=6), st.data())
def test_a_crash_that_tears_the_file_is_what_the_loader_of_impl_sees(sizes: list[int], data: st.DataObject) -> None:
    """The log of `impl`, written as bytes and torn anywhere, loads as the log of the batches that stayed whole."""
    setup, log = Setup(), Log()
    for epoch, records in enumerate(sizes):
        log, _ = log_.append_as_leader(setup, log, records, epoch // 2)
    batches = [batch_of(b.base, b.epoch, [b"x"] * (b.last - b.base + 1)) for b in log.batches]
    whole = segments.segment_bytes(batches)
    read = segments.parse(whole[: data.draw(st.integers(0, len(whole)))])
    loaded = log_.load(setup, log._replace(batches=tuple(Batch(*batch[:3]) for batch in read.batches)))
    assert loaded.end == (read.batches[-1].last + 1 if read.batches else 0)
    assert loaded.cache.memory.pairs() == read.epochs


# ---------------------------------------------------------------------------------------------------------------------
# What is no batch


def _with_checksum(header: list[int], records: bytes) -> bytes:
    """A batch with a right length and checksum, whatever else is in it."""
    header[1] = HEADER.size - 12 + len(records)
    checked = (HEADER.pack(*header) + records)[21:]
    header[4] = google_crc32c.value(checked)
    return HEADER.pack(*header) + records


def _header(**changed: int) -> list[int]:
    names = (
        "base",
        "length",
        "epoch",
        "magic",
        "crc",
        "attributes",
        "delta",
        "ts",
        "max_ts",
        "pid",
        "pepoch",
        "seq",
        "count",
    )
    return [{"magic": 2, "pid": -1, "pepoch": -1, "seq": -1, "count": 1, **changed}.get(name, 0) for name in names]


RECORD = b"\x00\x00\x00\x01\x01\x00"
"""Attributes, timestamp delta, offset delta, no key, no value, no headers."""


@pytest.mark.parametrize(
    ("header", "records", "expected"),
    [
        ({"magic": 1}, b"\x0c" + RECORD, "magic 2"),
        ({"delta": -1}, b"\x0c" + RECORD, "a last offset at or above the base"),
        ({"count": 2}, b"\x0c" + RECORD, "1 bytes"),
        ({"count": 0}, b"\x0c" + RECORD, "0 records and nothing else"),
        ({"count": -1}, b"", "-1 records and nothing else"),
        ({}, b"\x0e" + RECORD, "a record of 7 bytes"),
        ({}, b"\x0c\x00\x00\x02\x01\x01\x00", "offsets in [0, 0]"),
        ({}, b"\x0c\x00\x00\x00\x20\x01\x00", "16 bytes"),
        ({}, b"\x0c\x00\x00\x00\x03\x01\x00", "-2 bytes"),
        ({}, b"\x0c\x00\x00\x00\x01\x01\x01", "a number of headers"),
        ({}, b"\x0e\x00\x00\x00\x01\x01\x02\x01", "a header with a key"),
        ({}, b"\x12\x00\x00\x00\x01\x01\x02\x02\xff\x01", "a header key in UTF-8"),
        ({}, b"\x80" * 11, "a number of at most ten bytes"),
        ({"attributes": 5}, b"", "records in the codec the batch names"),
        *[({"attributes": codec}, b"\x00\x01\x02", "records in the codec the batch names") for codec in (1, 3, 4)],
    ],
)
def test_a_sound_checksum_does_not_make_a_batch(header: dict[str, int], records: bytes, expected: str) -> None:
    """Whatever stands inside, the response is a CorruptBatchError with place, expected and seen."""
    with pytest.raises(CorruptBatchError) as raised:
        decode(_with_checksum(_header(**header), records))
    assert expected in str(raised.value)
    assert str(raised.value).startswith("byte 0: expected ")


def test_the_smallest_record_is_read() -> None:
    """The counterpart of the mistakes above: nothing else in them is wrong."""
    assert decode(_with_checksum(_header(), b"\x0c" + RECORD))[0].records == (Record(0, 0, None, None),)


@given(st.binary(max_size=120), st.integers(0, 5))
def test_no_bytes_raise_anything_else(records: bytes, attributes: int) -> None:
    """Random records under a right checksum: a batch, or a CorruptBatchError."""
    data = _with_checksum(_header(attributes=attributes, delta=3, count=2), records)
    read = segments.parse(data)
    assert (len(read.batches) == 1) is (read.fault is None)


@pytest.mark.parametrize("length", [48, -1, -(2**31)])
def test_a_length_that_cannot_be_is_told(length: int) -> None:
    """Before anything is read of it."""
    data = bytearray(encode(batch_of(0, 0, [b"a"])))
    struct.pack_into(">i", data, 8, length)
    read = segments.parse(bytes(data))
    assert read.fault == segments.SegmentProblem(0, "a batch length of at least 49", str(length))


@pytest.mark.parametrize(
    "batch",
    [
        batch_of(0, 0, [b"a"])._replace(base=5, last=9),
        batch_of(0, 2**31, [b"a"]),
        batch_of(0, 0, [b"a"])._replace(producer_epoch=2**15),
    ],
)
def test_what_does_not_fit_is_not_written(batch: RecordBatch) -> None:
    """Offsets outside the batch, numbers outside their width."""
    with pytest.raises(CorruptBatchError, match="expected"):
        encode(batch)


def test_an_unknown_codec_is_told() -> None:
    """Both ways."""
    for act in (compress, decompress):
        with pytest.raises(CompressionError, match=r"expected 0 to 4 \(none, gzip, snappy, lz4, zstd\), seen 6"):
            act(6, b"")
    with pytest.raises(CorruptBatchError, match="codec"):
        decode(_with_checksum(_header(attributes=7), b""))


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xff\xff\xff\xff\xff", b"\x82SNAPPY\x00\x00\x00\x00\x01\x00\x00\x00\x01\x00\x00\x00\x09ab"]
)
def test_broken_snappy_is_told(data: bytes) -> None:
    """No length in front, a length without end, a block that is truncated."""
    with pytest.raises(CompressionError, match=f"expected {NAMES[SNAPPY]} data"):
        decompress(SNAPPY, data)


def test_a_raw_snappy_block_is_read_too() -> None:
    """As some clients write it: without the stream header."""
    framed = compress(SNAPPY, b"abc" * 100)
    assert decompress(SNAPPY, framed[20:]) == b"abc" * 100


def test_a_file_that_becomes_shorter_while_it_is_read_is_torn(tmp_path: Path) -> None:
    """A broker truncates its log; what was read before counts. Windows end in the middle of batches."""
    batches = [batch_of(base, 1, [b"x" * 300_000]) for base in range(9)]
    path = segments.write(tmp_path, batches)
    assert segments.read(path).batches == tuple(batches)
    with path.open("rb") as file:
        data = FileBytes(file)
        path.write_bytes(b"".join(map(encode, batches[:5])))
        read = segments.parse(data)
    assert read.batches == tuple(batches[:5])
    assert read.fault is not None
    assert read.fault.torn
    assert read.fault.seen == "a file that has become shorter"
