"""Logs taken apart into shares: each has what it would read of the whole, and as little of the others as shows a gap."""

import gzip
import json
import os
import random
import re
import shutil
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.kafka_logs.test_selection import events
from tidegauge.conformance.checking.check import CheckOptions, Report, check, check_in_worker
from tidegauge.conformance.checking.sharded import check_in_shares
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery import shards
from tidegauge.traces.kafka_logs.discovery.files import logs_in
from tidegauge.traces.kafka_logs.discovery.selection import LATEST, Selection, SessionRequest, SessionSummaries
from tidegauge.traces.kafka_logs.discovery.shards import read_log, split_logs
from tidegauge.traces.kafka_logs.parsing import lines as line_reader
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, BEFORE_ALL_LINES, READABLE, Gap, Line
from validation.metamorphic.cases import logs
from validation.metamorphic.losses import LOSSES
from validation.metamorphic.mixtures import MIXTURES

SHARES = 64
MINE = "mine-0"
RAFT = "AAAAAAAAAAAAAAAAAAAAAQ"
SHARE = Selection(shard=(0, SHARES)).shard_of(MINE) or 0
"""Some share of so many, and a partition of it."""


def apart(folder: Path, kept: Path, share: int, shares: int) -> Selection:
    """The logs in a folder taken apart; what to read of them."""
    kept.mkdir()
    selection = Selection(shard=(share, shares), shard_dir=str(kept))
    split_logs(logs_in(folder), selection, None, map)
    return selection.fresh_copy()


@pytest.mark.parametrize("ranges", [False, True], ids=["files", "ranges"])
@pytest.mark.parametrize("name", sorted(shipped()))
def test_each_share_has_the_events_of_the_whole(
    name: str, ranges: bool, capture: Callable[[str], Capture], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And the same is missing, whatever share it is, also one without any partition; whole files are split, or ranges."""
    whole, folder = capture(name), shipped()[name]
    if ranges:
        monkeypatch.setattr(shards, "OF_A_RANGE", 20_000)
        monkeypatch.setattr(line_reader, "MOST_WRAPPED", 0)
        folder = unpacked(folder, tmp_path / name)
    found: list[tuple[str, object]] = []
    selection = apart(folder, tmp_path / "apart", 0, 3)
    assert ranges == any((tmp_path / "apart").glob("*/1"))
    for share in range(3):
        selection.shard = (share, 3)
        part = read(folder, None, selection.fresh_copy())
        found += [(trace.tp, events(trace)) for trace in part.traces]
        assert part.missing == whole.missing or not part.traces
        assert [str(problem) for problem in part.problems] == [str(problem) for problem in whole.problems]
    assert sorted(found, key=str) == sorted(((trace.tp, events(trace)) for trace in whole.traces), key=str)


def test_a_log_that_is_rotated_while_it_is_split_is_a_problem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut, replaced by a larger one, or gone: never a shorter log without a word."""
    monkeypatch.setattr(shards, "OF_A_RANGE", 20_000)
    monkeypatch.setattr(line_reader, "MOST_WRAPPED", 0)
    folder = unpacked(shipped()["4.2.0/a-steady"], tmp_path / "logs")
    log, text = folder / "n1" / "server.log", (folder / "n1" / "server.log").read_bytes()

    def truncated() -> None:
        log.write_bytes(b"")

    def replaced() -> None:
        log.rename(tmp_path / "old")
        log.write_bytes(text * 2)

    for number, rotate in enumerate((truncated, replaced, log.unlink)):
        log.write_bytes(text)

        def over(split: shards.SplitLog, parts: Sequence[Any], rotate: Callable[[], object] = rotate) -> Iterator[Any]:
            for at, part in enumerate(part for part in parts if part.path == log):
                if at == 2:
                    rotate()
                yield split(part)
            yield from (split(part) for part in parts if part.path != log)

        (tmp_path / f"apart-{number}").mkdir()
        selection = Selection(shard=(0, 3), shard_dir=str(tmp_path / f"apart-{number}"))
        split_logs(sorted(logs_in(folder), key=lambda path: path != log), selection, None, over)
        problems = read_log(log, "n1/server.log", None, selection.fresh_copy()).problems
        assert READABLE in {problem.expected for problem in problems}


def test_a_shard_that_lacks_rows_is_not_read(tmp_path: Path) -> None:
    """Removed meanwhile, by whoever cleans the directory."""
    folder = shipped()["4.2.0/a-steady"]
    selection = apart(folder, tmp_path / "apart", 0, 3)
    for rows in (tmp_path / "apart").glob("*/0/all"):
        rows.unlink()
    with pytest.raises(FileNotFoundError):
        read(folder, None, selection)


def test_a_range_that_cannot_take_its_place_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(_path: Path, _target: Path) -> None:
        raise OSError("quota")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.raises(OSError, match="quota"):
        apart(shipped()["4.2.0/a-steady"], tmp_path / "apart", 0, 3)


def test_a_name_that_is_no_utf_8_is_one_all_the_same(tmp_path: Path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    shutil.copytree(shipped()["4.2.0/a-steady"], folder)
    assert read(folder, None, apart(folder, tmp_path / "apart", 0, 1)).traces


def unpacked(folder: Path, target: Path) -> Path:
    """A copy whose logs are plain text."""
    shutil.copytree(folder, target)
    for path in target.rglob("*.log.gz"):
        path.with_suffix("").write_bytes(gzip.decompress(path.read_bytes()))
        path.unlink()
    return target


def gaps(capture: Capture) -> set[tuple[int, str, object, str]]:
    """What is missing where; of several requests that tell of it no matter which one is named."""
    return {(gap.node, gap.logger, gap.times, re.sub(r" \(.*?\)", "", gap.why)) for gap in capture.gaps}


@pytest.mark.parametrize("loss", ["drop a block", "drop 1 % of the lines", "duplicate lines"])
def test_a_share_knows_of_lines_that_only_others_lost(loss: str, tmp_path: Path) -> None:
    """Every gap that shows when the requests of all sessions are read, shows when they are only counted."""
    files = LOSSES[loss](random.Random(f"1/{loss}"), logs(shipped()["4.2.0/a-steady"]))
    for path, lines in files.items():
        (tmp_path / "logs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / path).write_text("".join(f"{line}\n" for line in lines))
    selection = apart(tmp_path / "logs", tmp_path / "apart", 0, 5)
    assert sum(1 for share in map(selection.shard_of, ("alpha-0", "alpha-1", "beta-0")) if share) == 2
    counted = read(tmp_path / "logs", None, selection)
    every = read(tmp_path / "logs", None, Selection(shard=(0, 5)))
    assert gaps(counted) == gaps(every)
    assert [(trace.tp, events(trace)) for trace in counted.traces] == [(trace.tp, events(trace)) for trace in every.traces]
    assert Counter(bool(line.summarizes) for line in counted_lines(tmp_path / "logs", selection))[True] > 20


def counted_lines(folder: Path, selection: Selection) -> list[Line]:
    return [line for path in logs_in(folder) for line in read_log(path, path.name, None, selection).lines]


# ---------------------------------------------------------------------------------------------------------------------
# The report on all shares


def tallies(report: Report) -> object:
    """What the report says of each input and rule."""
    inputs = [(one.path, one.verdict, one.events, sorted(one.covered), one.missing, one.problems) for one in report.inputs]
    return report.verdict, inputs, [(one.rule.id, one.tally.held, one.tally.failed) for one in report.rules]


def test_the_clusters_of_a_directory_stay_apart(tmp_path: Path) -> None:
    """Nodes 1 to 3 of two clusters, in folders side by side: only their lines tell which node is of which. One fails."""
    for name, prefix in (("4.2.0/a-steady", "n"), ("4.2.0/k-epoch-jump", "other-n")):
        for node in shipped()[name].glob("n*"):
            shutil.copytree(node, tmp_path / "logs" / f"{prefix}{node.name[1:]}")
    whole = check([tmp_path / "logs"])
    assert [one.verdict for one in whole.inputs] == [Verdict.PASS, Verdict.FAIL]
    (tmp_path / "shares").mkdir()
    report = check_in_shares(tmp_path / "logs", 3, CheckOptions(), map, str(tmp_path / "shares"))
    assert tallies(report) == tallies(whole)


def test_a_share_without_a_partition_keeps_no_verdict_from_passing(tmp_path: Path) -> None:
    """Three partitions in nine shares."""
    folder = shipped()["4.2.0/a-steady"]
    assert tallies(check_in_shares(folder, 9, CheckOptions(), map, str(tmp_path))) == tallies(check([folder]))


def test_a_gap_that_one_share_shows_makes_failures_of_others_undecided(tmp_path: Path) -> None:
    """Lines of a node are missing, of whatever partition they would have been."""
    folder, gap = (
        shipped()["3.4.0/b-kill-leader"],
        Gap(1, "a logger", BEFORE_ALL_LINES, AFTER_ALL_LINES, (None, None), "why"),
    )

    def with_a_gap(path: object, how: CheckOptions) -> Report:
        """The report of a share; of one without a failure there is a gap."""
        report = check_in_worker(folder, how)
        (one,) = report.inputs
        return report if report.failures else replace(report, inputs=(replace(one, gaps=(("", gap),)),))

    whole = check_in_shares(folder, 3, CheckOptions(), map, str(tmp_path), with_a_gap)
    assert (check([folder]).verdict, whole.verdict) == (Verdict.FAIL, Verdict.INCONCLUSIVE)


def test_lines_of_several_writers_are_divided_before_they_are_selected(tmp_path: Path) -> None:
    """The line that names a pod's node may be about a partition of another share."""
    files = MIXTURES["mix: pods in JSON"](random.Random("1"), logs(shipped()["4.2.0/k-epoch-jump"]))
    for path, texts in files.items():
        (tmp_path / "logs" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "logs" / path).write_text("".join(f"{text}\n" for text in texts))
    (tmp_path / "shares").mkdir()
    report = check_in_shares(tmp_path / "logs", 3, CheckOptions(), map, str(tmp_path / "shares"))
    assert tallies(report) == tallies(check([tmp_path / "logs"]))


# ---------------------------------------------------------------------------------------------------------------------
# What a share holds


def written(folder: Path, fetchers: Sequence[Sequence[str]], requests: int, lost: tuple[int, int] = (0, 0)) -> Path:
    """Node 1 follows node 2, each fetcher for some partitions with so many idle requests; a request of the last one is lost
    in the log of either. Both logs, a line a millisecond."""
    sent, handled = [], []
    for number, tps in enumerate(fetchers):
        for epoch in range(requests + 1):
            asked = ", ".join(
                f"{tp}=PartitionData(topicId=T, fetchOffset={epoch}, logStartOffset=0, maxBytes=1048576, "
                f"currentLeaderEpoch=Optional[3], lastFetchedEpoch=Optional[3])"
                for tp in (tps if epoch % 10 == 0 else ())
            )
            session = f"sessionId={1000 + number}, epoch={epoch}" if epoch else "sessionId=INVALID, epoch=INITIAL"
            topics = [
                {"topic": tp[:-2], "partitions": [{"partition": 0, "fetchOffset": epoch}]}
                for tp in (tps if epoch % 10 == 0 else ())
            ]
            text = (
                f"DEBUG [ReplicaFetcherThread-{number}-2] [ReplicaFetcher replicaId=1, leaderId=2, fetcherId={number}] "
                f"Sending fetch request (type=FetchRequest, replicaId=1, fetchData={{{asked}}}, removed=, replaced=, "
                f"metadata=({session}), rackId=) (kafka.server.ReplicaFetcherThread)"
            )
            body = {"replicaId": 1, "sessionId": 1000 + number if epoch else 0, "sessionEpoch": epoch, "topics": topics}
            response = {"errorCode": 0, "sessionId": 1000 + number, "responses": []}
            document = {
                "requestHeader": {"requestApiKey": 1, "clientId": f"broker-1-fetcher-{number}"},
                "request": body,
                "response": response,
            } | dict.fromkeys(("totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs"), 0.0)
            line = f"DEBUG [net] Completed request:{json.dumps(document, separators=(',', ':'))} (kafka.request.logger)"
            last = number == len(fetchers) - 1
            sent += [] if last and epoch == lost[0] > 0 else [(epoch, number, text)]
            handled += [] if last and epoch == lost[1] > 0 else [(epoch, number, line)]
    begins = "INFO [main] Registered signal handlers for TERM, INT, HUP (org.apache.kafka.common.utils.LoggingSignalHandler)"
    recorded = (
        f"TRACE [data-plane-kafka-request-handler-0] [Partition {MINE} broker=2] Recorded replica 1 log end offset (LEO) "
        "position 0 and log start offset 0. (kafka.cluster.Partition)"
    )
    for path, lines in (
        ("n1/server.log", sent),
        ("n2/server.log", [(0, 0, begins), (0, 1, recorded)]),
        ("n2/request.log", handled),
    ):
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        texts = [
            f"[2026-11-21 08:{at // 60_000:02d}:{at // 1000 % 60:02d},{at % 1000:03d}000] {line}"
            for at, (_, _, line) in enumerate(sorted(lines))
        ]
        (folder / path).write_text("\n".join(texts) + "\n")
    return folder


def held(folder: Path, fetchers: Sequence[Sequence[str]], requests: int) -> tuple[int, int]:
    """Lines that the share of MINE reads, and how long their texts are together."""
    selection = apart(written(folder / "logs", fetchers, requests), folder / "apart", SHARE, SHARES)
    lines = counted_lines(folder / "logs", selection)
    digits = re.compile(r"\d+")
    return len(lines), sum(len(digits.sub("", line.message)) for line in lines)


def others(count: int) -> list[str]:
    """Partitions of other shares."""
    shard_of = Selection(shard=(0, SHARES)).shard_of
    return [tp for tp in (f"other{'x' * at}-0" for at in range(2 * count + 20)) if shard_of(tp) != SHARE][:count]


def test_a_share_does_not_grow_with_the_fetches_of_others(tmp_path: Path) -> None:
    """Two fetchers of other partitions, ten times the requests: the same lines, and nothing of their partitions."""
    theirs = [[tp] for tp in others(2)]
    assert held(tmp_path / "a", theirs, 30) == held(tmp_path / "b", theirs, 300)


def test_a_share_does_not_grow_with_the_partitions_of_others(tmp_path: Path) -> None:
    """In the same requests as its own, or in those of another fetcher."""
    few = held(tmp_path / "a", [[MINE, *others(2)], others(3)], 30)
    assert held(tmp_path / "b", [[MINE, *others(40)], others(60)], 30) == few


def test_a_share_has_every_request_of_its_own_sessions(tmp_path: Path) -> None:
    """Also those that name none of its partitions: they stand for all of them."""
    lines, _ = held(tmp_path, [[MINE], others(1)], 30)
    its_own, counted, of_the_leader = 31, 1 + 1 + 1 + LATEST, 2  # counted: the full fetch, the first, one for all between
    names_the_follower = 1
    assert lines == 2 * (its_own + counted) + of_the_leader + names_the_follower


@pytest.mark.parametrize(("lost", "words"), [((17, 0), "request 18 of a session"), ((0, 17), "request 18 of session 1001")])
def test_one_lost_request_of_others_shows(lost: tuple[int, int], words: str, tmp_path: Path) -> None:
    """At its sender and at the leader: the count breaks there, and nowhere else."""
    folder = written(tmp_path / "logs", [[MINE], others(1)], 30, lost)
    found = read(folder, None, apart(folder, tmp_path / "apart", SHARE, SHARES))
    broken = [gap.why.partition(" (")[0] for gap in found.gaps if "follows request" in gap.why]
    assert broken == [f"{words} follows request 16"]


def test_a_session_that_names_topics_by_unknown_ids_may_ask_for_anything(tmp_path: Path) -> None:
    """Each share keeps all its requests: an id that no line explains may be that of its own topic."""
    folder = written(tmp_path / "logs", [others(1)], 30)
    log = folder / "n2" / "request.log"
    log.write_text(re.sub(r'"topic":"[^"]*"', '"topicId":"vqLrbFbFShK4Q1SaHryJaw"', log.read_text()))
    selection = apart(folder, tmp_path / "apart", SHARE, SHARES)
    assert len(read_log(log, "request.log", None, selection).lines) == 31


def test_fetches_of_the_metadata_log_are_of_no_share(tmp_path: Path) -> None:
    """They are Raft's (KIP-595), and many."""
    folder = written(tmp_path / "logs", [others(1)], 30)
    log = folder / "n2" / "request.log"
    log.write_text(
        re.sub(r'"topics":\[[^\]]*\][^\]]*\]|"topics":\[\]', f'"topics":[{{"topicId":"{RAFT}"}}]', log.read_text())
    )
    assert read_log(log, "request.log", None, apart(folder, tmp_path / "apart", SHARE, SHARES)).lines == []


def test_a_session_that_began_in_another_file_is_known(tmp_path: Path) -> None:
    """A log is rotated behind the request that names the partition: those in the next part ask for it all the same."""
    whole = written(tmp_path / "whole", [[MINE], others(1)], 8) / "n1" / "server.log"
    (tmp_path / "parts").mkdir()
    lines = whole.read_text().splitlines(keepends=True)
    (tmp_path / "parts" / "server.log").write_text("".join(lines[6:]))
    (tmp_path / "parts" / "server.log.2026-11-21-07").write_text("".join(lines[:6]))
    sent = []
    for folder, kept in ((whole.parent, "a"), (tmp_path / "parts", "b")):
        found = read(folder, None, apart(folder, tmp_path / kept, SHARE, SHARES))
        sent.append([event.event for trace in found.traces for event in trace.events])
    assert sent[0] == sent[1]
    assert sent[0].count("SendFetch") == 9


# ---------------------------------------------------------------------------------------------------------------------
# Counting


@pytest.mark.parametrize(
    ("epochs", "kept"),
    [
        ([*range(1, 11)], [(1, 1), (7, 6), (8, 1), (9, 1), (10, 1)]),
        ([1, 2, 3], [(1, 1), (2, 1), (3, 1)]),
        ([1, 2, 4, 5], [(1, 1), (2, 1), (4, 1), (5, 1)]),
        ([*range(1, 9), 3, 4, 5, 9, 10], [(1, 1), (7, 6), (8, 1), (9, 1), (10, 1)]),  # a block twice
        ([5, 6, 1, 2], [(5, 1), (6, 1), (1, 1), (2, 1)]),
    ],
)
def test_requests_are_counted(epochs: list[int], kept: list[tuple[int, int]]) -> None:
    """(epoch, how many it stands for): every break is there, nothing is counted twice."""
    chains, found = SessionSummaries(), list[Line]()
    for number, epoch in enumerate(epochs):
        found += chains.add(Line("f", number, number, "t", str(epoch), ""), SessionRequest(("t", "2"), 77, epoch))
    found += chains.end_all()
    assert [(int(row.message), row.summarizes) for row in found] == kept
    assert sum(row.summarizes for row in found) == len(set(epochs))
