"""What surrounds real clusters, without one: shapes by seed, the truth, what is right, and logs cut down to a partition."""

import gzip
import json
import os
import zlib
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from tidegauge.story.losses import Loss
from tidegauge.story.state import StoryEntry
from tidegauge.story.story import Story
from tidegauge.traces.kafka_logs.capture import read, shipped
from tidegauge.traces.schema import Event
from tidegauge.traces.segments import batch_of, write
from validation.real_clusters.judgement import PACKED, Judgement, Rightness, contradictions, judged, pack, unpacked
from validation.real_clusters.nodes import STOCK_FILES, TWO_FILES, ClusterNode, log4j, log4j2
from validation.real_clusters.one_partition import fetched_partitions, lines_of, write_partitions
from validation.real_clusters.shapes import BY_SIZE, BY_TIME, INCIDENTS, ClusterShape, shape_of
from validation.real_clusters.truth import Acknowledged, ReadAgain, Truth, differences, truth_of

ONE_FETCHER = ("4.2.0/a-steady", "3.4.1/b-kill-leader", "4.3.1/l-ghost-elr", "3.9.1/m-lost-disk")


def what_happened(events: Sequence[Event]) -> list[tuple[object, ...]]:
    """Return all but the places of lines, which differ, and what checkpoint files say, which are no logs.

    Where a process ends without a word, the last line that was read stands for it: that may be one of the others.
    """
    left_out = ("Observe", "Stop", "Crash")
    return [(one.node, one.event, one.time, dict(one.fields)) for one in events if one.event not in left_out]


@pytest.mark.parametrize("name", ONE_FETCHER)
def test_the_cut_logs_of_a_partition_are_read_as_it_is_read_in_the_whole(name: str, tmp_path: Path) -> None:
    """Each event of it, in the same order, and nothing of the others; nothing is missing that was not."""
    source = shipped()[name]
    whole = read(source)
    for trace in whole.traces:
        write_partitions(source, tmp_path / trace.tp, [trace.tp])
        part = read(tmp_path / trace.tp)
        assert [one.tp for one in part.traces] == [trace.tp]
        assert what_happened(part.traces[0].events) == what_happened(trace.events)
        assert len(part.missing) <= len(whole.missing)


REQUEST = (
    '[2026-11-27 10:00:01,000000] DEBUG [data-plane-kafka-request-handler-1] Completed request:{"requestHeader":'
    '{"requestApiKey":1,"requestApiKeyName":"FETCH","clientId":"broker-2-fetcher-0"},"request":{"replicaState":{"replicaId":2},'
    '"sessionId":%d,"sessionEpoch":%d,"topics":[%s],"forgottenTopicsData":[]},"response":{"sessionId":%d,"responses":[%s]}} '
    "(kafka.request.logger)\n"
)
LINE = "[2026-11-27 10:00:00,000000] INFO [t] {} (x)\n"


def fetch(session: int, epoch: int, topics: str = "", responses: str = "", opened: int = 0) -> str:
    return REQUEST % (session, epoch, topics, opened or session, responses)


def entry(topic: str, *partitions: int) -> str:
    parts = ",".join(f'{{"partition":{n},"fetchOffset":0}}' for n in partitions)
    return f'{{"topic":"{topic}","partitions":[{parts}]}}'


def extracted(tmp_path: Path, files: dict[str, list[str]], *partitions: str) -> dict[str, list[str]]:
    for name, lines in files.items():
        path = tmp_path / "whole" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("".join(lines), encoding="utf-8")
    write_partitions(tmp_path / "whole", tmp_path / "cut", partitions)
    return {name: (tmp_path / "cut" / name).read_text(encoding="utf-8").splitlines(keepends=True) for name in files}


def test_a_session_that_asked_for_the_partition_keeps_its_empty_requests(tmp_path: Path) -> None:
    """Else its epochs would skip (KIP-227). A session that never did goes."""
    lines = [
        fetch(0, 0, f"{entry('a', 0, 1)},{entry('b', 0)}", opened=7),
        fetch(7, 1, entry("b", 0)),
        fetch(7, 2),
        fetch(0, 0, entry("b", 1), opened=8),
        fetch(8, 1),
    ]
    found = extracted(tmp_path, {"n1/request.log": lines}, "a-1")["n1/request.log"]
    assert found == [fetch(0, 0, entry("a", 1), opened=7), fetch(7, 1), fetch(7, 2)]


def test_a_line_is_kept_that_names_the_partition_or_none(tmp_path: Path) -> None:
    """Names that begin alike are other partitions, and an id stands for its topic."""
    topic_id, other_id = "q" * 22, "r" * 22
    kept = [
        LINE.format("Registered signal handlers for TERM"),
        LINE.format(f"Creating new partition a-1 with topic id {topic_id}."),
        LINE.format("[Partition a-1 broker=1] Recorded replica 2"),
        LINE.format("Removed fetcher for partitions Set(b-0, a-1)"),
        LINE.format("Created log for partition a-1 in /var/lib/kafka/n1/a-1.0123-future with properties {}"),
        LINE.format(f"Replayed partition change PartitionChangeRecord(partitionId=1, topicId={topic_id}) for topic a"),
    ]
    others = [
        LINE.format(f"Creating new partition b-0 with topic id {other_id}."),
        LINE.format("[Partition a-10 broker=1] Recorded replica 2"),
        "[2026-11-27 10:00:00,000000] INFO [t] KafkaConfig values: \n",
        "\tlog.dirs = /var/lib/kafka\n",
        LINE.format(f"Replayed partition change PartitionChangeRecord(partitionId=2, topicId={topic_id}) for topic a"),
        LINE.format(f"Replayed partition change PartitionChangeRecord(partitionId=1, topicId={other_id}) for topic b"),
    ]
    lines = [line for pair in zip(kept, others, strict=True) for line in pair]
    assert extracted(tmp_path, {"n1/server.log": lines}, "a-1")["n1/server.log"] == kept


def sending(leader: int, session: str, parts: str, removed: str = "") -> str:
    return LINE.replace("[t]", f"[ReplicaFetcherThread-0-{leader}]").format(
        f"[ReplicaFetcher replicaId=2, leaderId={leader}, fetcherId=0] Sending fetch request (type=FetchRequest, "
        f"replicaId=2, fetchData={{{parts}}}, isolationLevel=READ_UNCOMMITTED, removed={removed}, replaced=, "
        f"metadata=(sessionId={session}, epoch=1), rackId=)"
    )


def test_a_fetch_that_is_sent_is_kept_with_its_session(tmp_path: Path) -> None:
    """A full fetch names no session: it is that of the fetch behind it, of the same thread."""
    part = "PartitionData(fetchOffset=0, lastFetchedEpoch=Optional.empty)"
    files = {
        "n1/request.log": [fetch(0, 0, entry("a", 1), opened=7), fetch(7, 1)],
        "n2/server.log": [
            sending(1, "INVALID", f"a-1={part}, b-0={part}"),
            sending(1, "7", "", removed="a-2, a-1"),
            sending(3, "INVALID", f"b-0={part}"),
            sending(3, "7", ""),
        ],
    }
    expected = [sending(1, "INVALID", f"a-1={part}"), sending(1, "7", "", removed="a-1")]
    assert [line for line in extracted(tmp_path, files, "a-1")["n2/server.log"] if "leaderId=3" not in line] == expected
    assert extracted(tmp_path, files, "a-1")["n2/server.log"] == expected


def test_a_session_goes_on_in_the_next_part_of_a_rolled_log(tmp_path: Path) -> None:
    """It asked for the partition behind all requests that its leader logged."""
    part = "PartitionData(fetchOffset=0, lastFetchedEpoch=Optional.empty)"
    files = {
        "n1/request.log": [fetch(0, 0, entry("b", 0), opened=7), fetch(7, 1), fetch(0, 0, entry("b", 1), opened=8)],
        "n2/server.log": [sending(1, "7", f"a-1={part}").replace(":00,0", ":01,0")],
        "n2/server.log.1": [sending(1, "INVALID", f"b-0={part}")],
    }
    found = extracted(tmp_path, files, "a-1")
    assert found["n1/request.log"] == [fetch(0, 0, opened=7), fetch(7, 1)]
    assert found["n2/server.log"] == files["n2/server.log"]
    assert found["n2/server.log.1"] == [sending(1, "INVALID", "")]


def test_the_partitions_of_a_fetch_are_those_that_it_names(tmp_path: Path) -> None:
    path = tmp_path / "request.log"
    path.write_text(
        LINE.format("x") + fetch(0, 0, f"{entry('a', 0, 1)},{entry('b', 2)}", opened=7) + fetch(7, 1), encoding="utf-8"
    )
    assert list(fetched_partitions(path, {})) == [(2, "broker-2-fetcher-0", ["a-0", "a-1", "b-2"])]


def test_the_lines_of_a_stream_that_was_cut_are_those_that_are_there(tmp_path: Path) -> None:
    lines = [LINE.format(f"line {number}") for number in range(2000)]
    whole = gzip.compress("".join(lines).encode())
    for end in (len(whole), len(whole) // 2):
        (tmp_path / "server.log.1.gz").write_bytes(whole[:end])
        found = list(lines_of(tmp_path / "server.log.1.gz"))
        assert found[:100] == lines[:100]
        assert (found == lines) is (end == len(whole))


def test_a_seed_draws_the_same_shape_and_seeds_draw_all_incidents() -> None:
    shapes = [shape_of(seed) for seed in range(300)]
    assert shapes == [shape_of(seed) for seed in range(300)]
    assert {name for shape in shapes for name in shape.incidents} == {name for name, weight in INCIDENTS.items() if weight}
    assert {shape.rolled for shape in shapes} == {"", BY_TIME, BY_SIZE}
    assert all(ClusterShape.from_json(json.loads(json.dumps(shape.as_json()))) == shape for shape in shapes)
    assert sum(shape.fetchers == 4 for shape in shapes) >= 60
    assert sum(shape.transactions > 0 for shape in shapes) >= 40


@pytest.mark.parametrize("files", [STOCK_FILES, TWO_FILES])
def test_each_file_of_the_logging_configuration_has_its_own_loggers(files: dict[str, str]) -> None:
    for text in (log4j, log4j2):
        lines = "\n".join(text(Path("/logs"), files))
        assert all(f"/logs/{name}.log" in lines for name in ("server", *files.values()))
        assert "Rolling" not in lines
        for rolled, how in ((BY_TIME, "yyyy-MM-dd"), (BY_SIZE, "KB")):
            lines = "\n".join(text(Path("/logs"), files, rolled))
            assert lines.count("RollingFile") == lines.count(how) == len({"server", *files.values()})
            assert not any(line.endswith(".gz") for line in text(Path("/logs"), files, rolled))
    for rolled in (BY_TIME, BY_SIZE):
        lines = "\n".join(log4j2(Path("/logs"), files, rolled, compressed=True))
        assert lines.count(".gz\n") == lines.count("RollingFile")


def test_the_logs_of_a_node_are_kept_with_public_paths_and_a_stream_that_was_cut_stays_cut(tmp_path: Path) -> None:
    """A process that is killed while it compresses what it has rolled leaves the beginning of a stream."""
    with closing(ClusterNode(7, "4.3.1", 288, 1, TWO_FILES, {}, BY_SIZE, compressed=True)) as node:
        text = f"Log loaded in {node.home}/data/a-0\n".encode() * 400
        (node.logs / "server.log").write_bytes(text)
        (node.logs / "server.log.2.gz").write_bytes(gzip.compress(text))
        (node.logs / "server.log.1.gz").write_bytes(gzip.compress(text)[:-20])
        node.keep_logs(tmp_path / "n7")
    kept = b"Log loaded in /var/lib/kafka/n7/a-0\n"
    assert (tmp_path / "n7" / "server.log").read_bytes() == kept * 400
    assert gzip.decompress((tmp_path / "n7" / "server.log.2.gz").read_bytes()) == kept * 400
    begun = (tmp_path / "n7" / "server.log.1.gz").read_bytes()
    assert zlib.decompressobj(31).decompress(begun).startswith(kept)
    with pytest.raises(EOFError):
        gzip.decompress(begun)


def test_what_is_asked_for_is_in_place_of_what_the_seed_draws() -> None:
    """All else stays."""
    drawn = shape_of(1)
    asked = shape_of(1, release="4.0.1", fetchers=4, wanted=["pause controller"])
    assert (asked.release, asked.fetchers, asked.incidents) == ("4.0.1", 4, ("pause controller",))
    assert (asked.partitions, asked.acks, asked.rolled) == (drawn.partitions, drawn.acks, drawn.rolled)


def test_a_record_that_is_nowhere_is_lost() -> None:
    """One below the log start is not, nor one that a retry has put elsewhere, nor one that may have been below."""
    there = ReadAgain(2, {2: "c", 3: "d", 4: "e"})
    acknowledged = [Acknowledged("a", 0, offset, name, "all") for offset, name in enumerate("abcxd")]
    acknowledged += [Acknowledged("a", 0, -1, name, "all") for name in "ey"]
    truth = truth_of(acknowledged, {("a", 0): there})
    assert (truth.expired, [one.name for one in truth.lost], truth.elsewhere) == (3, ["x"], 1)
    assert truth.forbidden == ["lost a-0 offset 3 (x)"]
    truth.unclean = True
    assert truth.forbidden == []


@pytest.mark.parametrize(
    ("name", "there", "lost"),
    [
        ("tx-3-228", "tx-3-201", 0),
        ("tx-3-228", "tx-3-230", 1),
        ("tx-3-228", "tx-4-201", 1),
        ("acksall-3-228", "acksall-3-201", 1),
    ],
)
def test_a_record_that_was_answered_as_a_duplicate_was_never_there(name: str, there: str, lost: int) -> None:
    """The broker answers with the offset of the earlier record whose sequence number its producer used again."""
    truth = truth_of([Acknowledged("a", 0, 7, name, "all")], {("a", 0): ReadAgain(0, {7: there})})
    assert (len(truth.lost), truth.duplicates) == (lost, 1 - lost)


def test_a_loss_without_acks_is_allowed() -> None:
    assert truth_of([Acknowledged("a", 0, 0, "a", "1")], {("a", 0): ReadAgain(0, {})}).forbidden == []


def test_replicas_differ_where_both_have_the_offset(tmp_path: Path) -> None:
    logs = {1: [(0, b"a"), (1, b"b"), (2, b"c")], 2: [(1, b"b"), (2, b"x")], 3: [(2, b"c"), (3, b"d")]}
    for broker, records in logs.items():
        folder = tmp_path / str(broker) / "a-0"
        folder.mkdir(parents=True)
        write(folder, [batch_of(offset, 1, [value]) for offset, value in records])
    directories = {broker: [tmp_path / str(broker)] for broker in logs}
    expected = [f"a-0: brokers {one} and {other} differ at offset 2" for one, other in ((1, 2), (2, 3))]
    assert differences(directories) == expected
    assert Truth(differ=expected).forbidden == expected


@pytest.mark.parametrize(
    ("verdict", "right"),
    [
        ("PASS", Rightness.RIGHT),
        ("FAIL", Rightness.WRONG_FAIL),
        ("INCONCLUSIVE", Rightness.UNTRUE_GAP),
        ("EXIT 2", Rightness.BAD),
    ],
)
def test_only_a_pass_is_right_where_nothing_was_lost(verdict: str, right: Rightness) -> None:
    assert Judgement(verdict, {}).rightness([]) == right
    assert Judgement(verdict, {}).rightness(["lost a-0 offset 3 (x)"]) == Rightness.UNKNOWN


@pytest.mark.parametrize(("bug", "right"), [("KAFKA-15583", Rightness.KNOWN_BUG), ("F3", Rightness.WRONG_FAIL)])
def test_a_failure_that_looks_like_a_mended_bug_of_kafka_is_to_be_looked_at(bug: str, right: Rightness) -> None:
    report = {
        "rules": [{"rule": "HW-09", "failed": 2, "undecided": 0}],
        "explanations": [{"rule": "HW-09", "looks_like": [{"bug": bug, "says": ""}]}],
    }
    assert Judgement("FAIL", report).rightness([]) == right
    report["rules"].append({"rule": "ACK-01", "failed": 1, "undecided": 0})
    assert Judgement("FAIL", report).rightness([]) == Rightness.WRONG_FAIL


def test_a_broken_capture_is_judged_broken_from_its_archive(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Kept logs are judged as the logs were."""
    monkeypatch.setenv("PYTHONPATH", os.fspath(Path(__file__).parents[2]))
    pack(shipped()["3.4.0/b-kill-leader"], tmp_path / PACKED)
    with unpacked(tmp_path / PACKED) as logs:
        judgement = judged(logs)
    assert judgement.verdict == "FAIL"
    assert "HW-06" in judgement.signature


def loss(partition: str = "a-0", first: int | None = 3, end: int | None = 5, committed: str = "no") -> Loss:
    return Loss(partition, 1, first, end, committed, "truncated", None, 1, [], "", 0, 0)


@pytest.mark.parametrize(
    ("losses", "lost", "differs"),
    [
        ([loss()], [("a-0", 3), ("a-0", 4)], 0),
        ([loss()], [], 0),
        ([loss()], [("a-0", 5)], 1),
        ([loss()], [("a-1", 3)], 1),
        ([loss(first=None, end=None)], [("a-0", 7)], 0),
        ([loss(committed="yes")], [("a-0", 3)], 0),
        ([loss(committed="yes")], [("a-1", 3)], 2),
        ([], [("a-0", 3), ("a-0", 3)], 1),
    ],
)
def test_a_story_tells_what_clients_lost_and_nothing_committed_beyond(
    losses: list[Loss], lost: list[tuple[str, int]], differs: int
) -> None:
    assert len(list(contradictions(Story(losses=losses), lost))) == differs


@pytest.mark.parametrize(("isr", "differs"), [([1], 0), ([1, 2], 1)])
def test_a_record_on_a_lost_disk_is_left_open_only_where_no_other_replica_was_in_sync(isr: list[int], differs: int) -> None:
    shrunk = StoryEntry("isr_changed", "a-0", 1, "", ["a:1"], 1, {"from": None, "to": isr, "accepted": True})
    emptied = StoryEntry("replica_lost", "a-0", 1, "", ["a:2"], 2, {"directory": "/d"})
    assert len(list(contradictions(Story(entries=[shrunk, emptied]), [("a-0", 3)]))) == differs
