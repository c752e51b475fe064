"""What kafka-dump-log prints, and bare checkpoint files, judged as the files that they are of."""

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.kafka_logs.test_segment_files import NEW, OLD, Batches, replica
from tidegauge.conformance.checking.check import Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces import segments
from tidegauge.traces.kafka_logs import read

OTHER = [(0, 4, 0), (4, 3, 1), (7, 3, 2), (10, 2, 2)]


def dump(folder: Path, path: Path) -> str:
    """What kafka-dump-log prints of the segments in a folder, the headers of batches only."""
    lines = []
    for file in sorted(folder.glob("*.log")):
        lines += [f"Dumping {path}/{file.name}", f"Log starting offset: {int(file.stem)}"]
        for batch in segments.read(file, records=False).batches:
            lines.append(
                f"baseOffset: {batch.base} lastOffset: {batch.last} count: {batch.last - batch.base + 1} baseSequence: -1 "
                f"producerId: -1 partitionLeaderEpoch: {batch.epoch} isTransactional: false position: 0 CreateTime: 1 "
                "size: 91 magic: 2 compresscodec: none crc: 11 isvalid: true"
            )
    return "\n".join(lines) + "\n"


def failing(report: Report) -> list[str]:
    return [rule.rule.id for rule in report.rules if rule.tally.failed]


@pytest.mark.parametrize("other", [OLD, NEW, OTHER], ids=["behind", "same", "another"])
def test_a_dump_is_judged_as_its_segments_are(other: Batches, tmp_path: Path) -> None:
    """With the high watermark that its checkpoint has, under the names that people give."""
    for node, batches in ((1, NEW), (2, other)):
        end = min(batches[-1][0] + batches[-1][1], 10)
        folder = replica(tmp_path / "disks" / f"n{node}", batches, end).parent
        (tmp_path / "text").mkdir(exist_ok=True)
        (tmp_path / "text" / f"broker-{node}-dump.txt").write_text(dump(folder, Path("/data/alpha-0")))
        checkpoint = folder.parent / "replication-offset-checkpoint"
        (tmp_path / "text" / f"broker-{node}-{checkpoint.name}").write_text(checkpoint.read_text())
    of_segments, of_dumps = check([tmp_path / "disks"]), check([tmp_path / "text"])
    assert (failing(of_dumps), of_dumps.verdict) == (failing(of_segments), of_segments.verdict)
    assert ("DATA-02" in failing(of_dumps)) == (other is not NEW)


def test_a_dump_that_names_no_node_is_left_out(tmp_path: Path) -> None:
    """Two dumps of one broker at two times would look like two replicas."""
    text = dump(replica(tmp_path / "disks" / "n1", NEW, 10).parent, Path("/data/alpha-0"))
    (tmp_path / "dump.txt").write_text(text)
    report = check([tmp_path / "dump.txt"])
    (problem,) = report.problems
    assert (report.events, problem.lost) == (0, 1)
    assert "broker-1-dump.txt" in problem.do


def test_a_dump_is_read_up_to_a_batch_that_is_not_valid(tmp_path: Path) -> None:
    """As a broker that recovers would."""
    text = dump(replica(tmp_path / "disks" / "n1", NEW, 10).parent, Path("/data/alpha-0")).splitlines()
    text[-1] = text[-1].replace("isvalid: true", "isvalid: false")
    (tmp_path / "n1-dump.txt").write_text("\n".join(text))
    capture = read(tmp_path / "n1-dump.txt")
    assert [event.fields["leo"] for event in capture.traces[0].events] == [10]
    assert [problem.line for problem in capture.problems] == [len(text)]


def test_checkpoint_files_alone_are_compared(tmp_path: Path) -> None:
    """Two replicas whose epochs differ below both high watermarks; meta.properties says whose they are."""
    for node, epochs in ((1, "0 0\n3 20\n"), (2, "0 0\n2 10\n")):
        folder = tmp_path / f"copy-{'ab'[node - 1]}"
        (folder / "x-0").mkdir(parents=True)
        (folder / "meta.properties").write_text(f"version=1\nnode.id={node}\ncluster.id=abcdEFGHijklMNOPqrstUV\n")
        (folder / "replication-offset-checkpoint").write_text("0\n1\nx 0 30\n")
        (folder / "log-start-offset-checkpoint").write_text("0\n1\nx 0 0\n")
        (folder / "x-0" / "leader-epoch-checkpoint").write_text(f"0\n2\n{epochs}")
    assert failing(check([tmp_path])) == ["DATA-02"]


TOPIC_ID = "e4rNbTcjT_elpYRxU0Jgtw"


def record(offset: int, kind: str, **data: object) -> str:
    header = (
        f"baseOffset: {offset} lastOffset: {offset} count: 1 partitionLeaderEpoch: 1 position: 0 CreateTime: 1 isvalid: true"
    )
    payload = json.dumps({"type": kind, "version": 0, "data": data}, separators=(",", ":"))
    return f"{header}\n| offset: {offset} CreateTime: {1747299890000 + offset} keySize: -1 payload: {payload}\n"


def of_partition(**data: object) -> dict[str, object]:
    return {"partitionId": 0, "topicId": TOPIC_ID, **data}


CREATED = (
    record(0, "TOPIC_RECORD", name="payments", topicId=TOPIC_ID),
    record(
        1,
        "PARTITION_RECORD",
        **of_partition(replicas=[1, 2], isr=[1, 2], removingReplicas=[], addingReplicas=[], leader=1),
        leaderEpoch=0,
        partitionEpoch=0,
    ),
)


@pytest.mark.parametrize(
    ("changes", "rules"),
    [
        ([{"isr": [1]}, {"isr": [2], "leader": 2, "leaderRecoveryState": 1}], []),
        ([{"isr": [1, 3]}, *({"isr": isr} for isr in ([1], [1, 2]) * 40)], ["CTRL-08"]),
    ],
    ids=["unclean", "no-replica"],
)
def test_a_dump_of_the_metadata_log_is_the_controllers_log(
    changes: Sequence[dict[str, object]], rules: list[str], tmp_path: Path
) -> None:
    """An unclean election is allowed; an ISR with somebody who is no replica is not."""
    records = [record(at, "PARTITION_CHANGE_RECORD", **of_partition(**change)) for at, change in enumerate(changes, 2)]
    (tmp_path / "metadata.txt").write_text("Dumping /d/__cluster_metadata-0/0.log\n" + "".join([*CREATED, *records]))
    report = check([tmp_path])
    assert failing(report) == rules
    (trace,) = read(tmp_path).traces
    last = trace.events[-1]
    assert (last.event, last.fields["leader_epoch"], last.fields["partition_epoch"]) == (
        "ChangePartition",
        int("leader" in changes[-1]),
        len(changes),
    )
    assert last.at.startswith("metadata.txt:")


def test_a_dump_without_the_offsets_of_its_records_says_the_same(tmp_path: Path) -> None:
    """As `--skip-record-metadata` prints it: a line that is shorter than the one before it was not wrapped."""
    text = "Dumping /d/__cluster_metadata-0/0.log\n" + "".join(CREATED)
    (tmp_path / "whole.txt").write_text(text)
    (tmp_path / "skipped.txt").write_text(
        re.sub(r"\| offset: .*? payload", "| payload", text.replace(" isvalid", " " * 170 + "isvalid"))
    )
    whole, skipped = (read(tmp_path / name).traces[0].events for name in ("whole.txt", "skipped.txt"))
    assert [(event.event, event.fields) for event in skipped] == [(event.event, event.fields) for event in whole] != []


def test_what_lies_in_a_hole_of_a_dump_is_unknown(tmp_path: Path) -> None:
    """The output of grep: a change is missing, and nothing is broken because of it."""
    changes = [
        record(at, "PARTITION_CHANGE_RECORD", **of_partition(isr=isr))
        for at, isr in enumerate([[1, 3], *([1], [1, 2]) * 2], 7)
    ]
    (tmp_path / "metadata.txt").write_text("".join([*CREATED, *changes]))
    report = check([tmp_path])
    assert report.verdict is not Verdict.FAIL
    assert "without a hole" in str(report.problems[0])
