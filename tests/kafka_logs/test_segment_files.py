"""Segment files in a directory of broker logs, and alone: what replicas really hold."""

import gzip
import shutil
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.engine.judge import ReplicaState
from tidegauge.traces import segments
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.disks.segment_files import EpochRun, contradiction

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # the client package reads its schemas in an old way
    from kafka.record.memory_records import MemoryRecordsBuilder

Batches = Sequence[tuple[int, int, int]]
"""Base offset, records, epoch."""

EPOCH_AT = 12
OLD = [(0, 4, 0), (4, 3, 0), (7, 3, 0)]
NEW = [(0, 4, 0), (4, 3, 0), (7, 3, 2), (10, 2, 2)]


def batch(base: int, records: int, epoch: int, codec: int = 0) -> bytes:
    """A batch by an independent writer; base offset and epoch are stamped on it, as a broker does."""
    builder = MemoryRecordsBuilder(2, codec, 1 << 20)
    for number in range(records):
        assert builder.append(1_000 + number, b"k", b"value %d" % (base + number), []) is not None
    builder.close()
    data = bytes(builder.buffer())
    return base.to_bytes(8, "big") + data[8:EPOCH_AT] + epoch.to_bytes(4, "big") + data[EPOCH_AT + 4 :]


def replica(log_dir: Path, batches: Batches, hw: int, epochs: Sequence[tuple[int, int]] = (), tp: str = "alpha-0") -> Path:
    """A log directory with one replica in two segments, closed in order; its first segment file."""
    folder = log_dir / tp
    folder.mkdir(parents=True)
    half = max(1, len(batches) // 2)
    for part in (batches[:half], batches[half:]):
        data = b"".join(batch(*one, codec=number % 2) for number, one in enumerate(part))
        (folder / f"{part[0][0]:020}.log").write_bytes(data)
    topic, _, partition = tp.rpartition("-")
    (log_dir / "replication-offset-checkpoint").write_text(f"0\n1\n{topic} {partition} {hw}\n")
    (log_dir / "log-start-offset-checkpoint").write_text("0\n0\n")
    (log_dir / ".kafka_cleanshutdown").write_text("")
    if epochs:
        lines = "".join(f"{epoch} {start}\n" for epoch, start in epochs)
        (folder / "leader-epoch-checkpoint").write_text(f"0\n{len(epochs)}\n{lines}")
    return folder / f"{batches[0][0]:020}.log"


def verdict(report: Report, rule: str) -> Verdict:
    return next(one.verdict for one in report.rules if one.rule.id == rule)


# ---------------------------------------------------------------------------------------------------------------------
# Replicas held against each other, without any log


def test_replicas_that_agree_below_both_high_watermarks_pass(tmp_path: Path) -> None:
    """What is above the lower one may differ."""
    replica(tmp_path / "n1", OLD, hw=7)
    replica(tmp_path / "n2", NEW, hw=12)
    report = check([tmp_path])
    assert verdict(report, "DATA-02") is Verdict.PASS
    assert (report.exit_code, report.traces, report.problems) == (0, 1, ())


def test_replicas_that_differ_below_both_high_watermarks_fail(tmp_path: Path) -> None:
    """From offset 7 on one holds records of epoch 0, the other of epoch 2, and both call that committed."""
    replica(tmp_path / "n1", OLD, hw=10)
    replica(tmp_path / "n2", NEW, hw=12)
    report = check([tmp_path])
    assert report.exit_code == 1
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == ["DATA-02"]
    failure = report.judged[0].judgement.failures[0]
    assert (failure.expected, failure.actual) == (10, 7)
    assert "unclean_elections" in report.judged[0].batch.config.extra


def test_the_disks_of_real_brokers_agree() -> None:
    """Two Kafka 4.2.0 brokers: one killed and back, five codecs, records deleted up to 20 (see disks/README.md)."""
    report = check([Path(__file__).with_name("disks")])
    assert (report.exit_code, report.problems, verdict(report, "DATA-02")) == (0, (), Verdict.PASS)
    (one,) = report.judged
    assert {trace.tp: one.judgement.final[at] for at, trace in enumerate(one.batch.traces or ())} == {
        "alpha-0": (ReplicaState(60, 60, 0, ((0, 0), (1, 30))),) * 2,
        "beta-0": (ReplicaState(50, 50, 20, ((0, 20),)),) * 2,
    }


def test_no_high_watermark_no_verdict(tmp_path: Path) -> None:
    """Without the checkpoint nobody knows what is committed."""
    for name in ("n1", "n2"):
        replica(tmp_path / name, OLD, hw=10)
        (tmp_path / name / "replication-offset-checkpoint").unlink()
    report = check([tmp_path])
    (rule,) = (one for one in report.rules if one.rule.id == "DATA-02")
    assert (rule.verdict, rule.tally.missing) == (Verdict.INCONCLUSIVE, ("hw",))


def test_a_checkpoint_that_contradicts_the_records_fails_at_the_batch(tmp_path: Path) -> None:
    """One that says more than the records does not: epoch 3 has none yet."""
    replica(tmp_path / "n1", NEW, hw=12, epochs=[(0, 0), (2, 7), (3, 12)])
    replica(tmp_path / "n2", NEW, hw=12, epochs=[(0, 0), (2, 9)])
    report = check([tmp_path])
    assert [rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL] == ["LOG-02"]
    (one,) = report.judged
    assert one.batch.traces is not None
    event = one.batch.traces[0].events[one.judgement.failures[0].row]
    assert (event.node, event.at) == (2, "n2/alpha-0/00000000000000000007.log, byte 0")
    assert event.fields == {"leo": 12, "log_start": 0, "epochs": [[0, 0], [2, 7]]}


def test_a_log_that_was_not_closed_is_read_as_its_broker_would_load_it(tmp_path: Path) -> None:
    """The checkpoint of a running broker may be ahead of a copy of its segments: no false alarm."""
    replica(tmp_path / "n1", OLD, hw=12, epochs=[(0, 0), (2, 11)])
    replica(tmp_path / "n2", NEW[:2], hw=7)
    (tmp_path / "n1" / ".kafka_cleanshutdown").unlink()
    (trace,) = read(tmp_path).traces
    assert [(event.node, event.fields) for event in trace.events] == [
        (1, {"hw": 10, "epochs": [[0, 0]]}),
        (1, {"leo": 10, "log_start": 0}),
        (2, {"hw": 7}),
        (2, {"leo": 7, "log_start": 0, "epochs": [[0, 0]]}),
    ]
    assert check([tmp_path]).exit_code == 0


def test_nodes_are_known_by_meta_properties_and_several_log_directories_are_one_node(tmp_path: Path) -> None:
    """As with several log.dirs; the metadata log and other files are left alone."""
    replica(tmp_path / "left", OLD, hw=10)
    replica(tmp_path / "right", OLD, hw=10, tp="beta-1")
    for name in ("left", "right"):
        (tmp_path / name / "meta.properties").write_text("version=1\nnode.id=7\ncluster.id=x\n")
    (tmp_path / "left" / "__cluster_metadata-0").mkdir()
    (tmp_path / "left" / "__cluster_metadata-0" / f"{0:020}.log").write_bytes(b"no matter")
    capture = read(tmp_path)
    assert [(trace.tp, trace.config.nodes) for trace in capture.traces] == [("alpha-0", (7,)), ("beta-1", (7,))]
    assert capture.problems == []
    shutil.copytree(tmp_path / "left", tmp_path / "again")
    (problem,) = read(tmp_path).problems
    assert "expected one replica of alpha-0 per node, seen another one of node 7" in str(problem)


# ---------------------------------------------------------------------------------------------------------------------
# Beside the logs of the brokers that wrote them

SMALL = "4.2.0/k-epoch-jump-control"


@pytest.fixture
def with_segments(tmp_path: Path, capture: Callable[[str], object]) -> Path:
    """A capture with the segment files of broker 2, as final_log.json describes them."""
    shutil.copytree(shipped()[SMALL], tmp_path, dirs_exist_ok=True)
    return tmp_path


def on_disk(folder: Path, node: int, tp: str) -> list[dict[str, int]]:
    from tests.kafka_logs.test_final_state import on_disk as disks  # noqa: PLC0415

    return list(disks(folder)[str(node)]["partitions"][tp]["batches"])


def write(folder: Path, node: int, tp: str, epoch: Callable[[int], int] = lambda epoch: epoch, last: int = 0) -> None:
    batches = on_disk(folder, node, tp)
    data = b"".join(
        batch(one["base"], one["last"] - one["base"] + 1, epoch(one["epoch"])) for one in batches[: len(batches) + last]
    )
    (folder / f"n{node}" / f"{tp}.{batches[0]['base']:020}.log.gz").write_bytes(gzip.compress(data))


def test_segments_that_are_what_the_logs_tell_pass(with_segments: Path) -> None:
    """They are a further observation of each replica, and say the same."""
    for node in (1, 2, 3):
        write(with_segments, node, "alpha-0")
    report = check([with_segments])
    alpha = next(trace for one in report.judged for trace in one.batch.traces or () if trace.tp == "alpha-0")
    seen = [event.at for event in alpha.events if event.event == "Observe"]
    assert sum(".log" in at for at in seen) == 3
    assert (report.exit_code, report.problems) == (0, ())


@pytest.mark.parametrize(("epoch", "last", "compared"), [(lambda e: e + 1, 0, "leader_epoch"), (lambda e: e, -1, "leo")])
def test_segments_that_are_not_fail(with_segments: Path, epoch: Callable[[int], int], last: int, compared: str) -> None:
    """Another epoch in the batches, or a batch less than the log of the broker tells of."""
    write(with_segments, 2, "alpha-0", epoch, last)
    report = check([with_segments])
    assert verdict(report, "LOG-02") is Verdict.FAIL
    failure = next(f for one in report.judged for f in one.judgement.failures if f.rule == "LOG-02")
    assert failure.compared == compared


def test_a_broker_that_did_not_stop_in_order_is_not_held_to_its_segments(with_segments: Path) -> None:
    """Its disk and its log need not end at the same moment: that is said, and the rest is judged."""
    write(with_segments, 2, "alpha-0", lambda epoch: epoch + 1)
    log = with_segments / "n2" / "server.log"
    text = gzip.decompress((with_segments / "n2" / "server.log.gz").read_bytes()).decode()
    (with_segments / "n2" / "server.log.gz").unlink()
    log.write_text("\n".join(line for line in text.split("\n") if "Terminating process due to signal" not in line))
    report = check([with_segments])
    assert any(
        "segment files of a broker that was shut down cleanly, seen one that was not" in str(p) for p in report.problems
    )
    assert verdict(report, "LOG-02") is not Verdict.FAIL


# ---------------------------------------------------------------------------------------------------------------------
# Damage


@pytest.mark.parametrize("at", [10, -10])
def test_a_damaged_segment_is_said_and_what_stands_before_it_is_judged(tmp_path: Path, at: int) -> None:
    """File, byte, expected and seen. Later segments are not read: a recovering broker would not have them either."""
    replica(tmp_path / "n1", OLD, hw=10)
    path = replica(tmp_path / "n2", [(0, 4, 1), *NEW[1:]], hw=12)
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(bytes(content))
    report = check([tmp_path])
    (problem,) = report.problems
    assert str(problem).startswith("n2/alpha-0/00000000000000000000.log: expected at byte ")
    assert problem.lost == 1
    known = {10: Verdict.NOT_EXERCISED, -10: Verdict.FAIL}[at]
    assert (verdict(report, "DATA-02"), report.exit_code) == (known, {10: 2, -10: 1}[at])


def test_a_last_batch_that_is_torn_loses_nothing_else(tmp_path: Path) -> None:
    """What a killed broker leaves is no bad input."""
    replica(tmp_path / "n1", OLD, hw=10)
    path = replica(tmp_path / "n2", OLD, hw=10).with_name(f"{4:020}.log")
    path.write_bytes(path.read_bytes()[:-5])
    report = check([tmp_path])
    (problem,) = report.problems
    assert "after offset 6, a batch of" in str(problem)
    assert (problem.lost, report.exit_code, verdict(report, "DATA-02")) == (0, 0, Verdict.PASS)


def test_a_gzip_file_that_is_none_is_said(tmp_path: Path) -> None:
    """A Problem, no traceback."""
    path = replica(tmp_path / "n1", OLD, hw=10)
    path.with_name(f"{path.name}.gz").write_bytes(path.read_bytes())
    path.unlink()
    (problem,) = read(tmp_path).problems
    assert "expected at byte 0, after offset -1, a complete gzip file" in str(problem)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(st.data())
def test_whatever_bytes_stand_in_a_segment_reading_ends(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Flipped, truncate, or made up: traces and problems."""
    folder = tmp_path_factory.mktemp("damaged")
    path = replica(folder / "n1", OLD, hw=10)
    content = bytearray(path.read_bytes())
    for at in data.draw(st.lists(st.integers(0, len(content) - 1), max_size=4)):
        content[at] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(content[: data.draw(st.integers(0, len(content)))]) + data.draw(st.binary(max_size=80)))
    report = check([folder])
    assert report.traces == 1


def test_without_the_checksum_package_segments_are_read_and_that_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """google-crc32c is the extra `segments`."""
    replica(tmp_path / "n1", OLD, hw=10)
    monkeypatch.setattr(segments, "CHECKSUM", None)
    monkeypatch.setattr("tidegauge.traces.kafka_logs.disks.segment_files.CHECKSUM", None)
    capture = read(tmp_path)
    assert len(capture.traces) == 1
    (problem,) = capture.problems
    assert "pip install 'tidegauge[segments]'" in str(problem)
    with pytest.raises(ModuleNotFoundError, match="checksum"):
        segments.encode(segments.batch_of(0, 0, [b"a"]))


@pytest.mark.parametrize(
    ("runs", "cache", "differs"),
    [
        ([(0, 0, 5), (2, 5, 9)], [(0, 0), (2, 5)], None),
        ([(0, 0, 5), (2, 5, 9)], [(0, 0), (1, 5), (2, 6)], 1),
        ([(0, 0, 5), (2, 7, 9)], [(0, 0), (1, 5), (2, 6)], None),
        ([(0, 0, 5), (2, 5, 9)], [(0, 3), (2, 5), (4, 9)], None),
        ([(0, 0, 5), (2, 5, 9)], [(0, 0), (2, 4)], 0),
        ([(0, 0, 5)], [], 0),
        ([(-1, 0, 5), (2, 5, 9)], [(2, 5)], None),
    ],
)
def test_records_contradict_a_cache_where_it_gives_them_another_epoch(
    runs: list[tuple[int, int, int]], cache: list[tuple[int, int]], differs: int | None
) -> None:
    """Entries without records, compacted gaps and a first entry raised to the log start are no contradiction."""
    reported = [EpochRun(*run, "") for run in runs]
    assert contradiction(reported, cache) is (None if differs is None else reported[differs])
