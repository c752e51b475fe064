"""A part of the logs: what is judged of it is what is judged of it in the whole, and what is left out leaves no gap."""

import bz2
import gzip
import lzma
import random
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from tests.kafka_logs.test_gaps import copied
from tidegauge.cli.main import main
from tidegauge.conformance.checking import sharded
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.checking.sharded import check_in_parallel, check_in_shares
from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs import Capture, read
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing import lines as blocks
from tidegauge.traces.kafka_logs.parsing.lines import Line, read_lines
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE
from tidegauge.traces.problems import Problem
from tidegauge.traces.schema import Trace
from tidegauge.util.input_limits import MOST_RATIO, PACKINGS, RATIO_FROM, UnpackingError, unpacked
from tidegauge.util.workers import workers

BROKEN, HEALTHY = "3.4.0/b-kill-leader", "4.2.0/d-unclean"


def events(trace: Trace) -> list[tuple[object, ...]]:
    """Events in their order, with their lines, times and fields."""
    return [(one.node, one.event, one.at, one.time, sorted(one.fields.items())) for one in trace.events]


@pytest.mark.parametrize("name", [BROKEN, HEALTHY, "4.2.0/k-epoch-jump", "4.3.1/l-ghost-elr"])
@pytest.mark.parametrize("share", [0, 1])
def test_a_share_has_the_events_of_the_whole(name: str, share: int, capture: Callable[[str], Capture]) -> None:
    """Of its partitions, every one; nothing more is missing, no logger seems to be off."""
    selection = Selection(shard=(share, 2))
    part, whole = read(shipped()[name], None, selection), capture(name)
    wanted = [trace for trace in whole.traces if selection.wants(trace.tp)]
    assert [(trace.tp, events(trace)) for trace in part.traces] == [(trace.tp, events(trace)) for trace in wanted]
    assert part.missing == whole.missing
    assert [str(problem) for problem in part.problems] == [str(problem) for problem in whole.problems]


def test_every_partition_is_of_one_share() -> None:
    """Whatever its name."""
    for name in ("alpha-0", "a.b_c-d-17", "x-0", "ü-3"):
        assert sum(Selection(shard=(share, 5)).wants(name) for share in range(5)) == 1


def said(report: Report) -> object:
    """What a report says, without its time and counts: lines that are left out may change the place of a request."""
    return (
        report.verdict,
        report.exit_code,
        [(rule.rule.id, rule.verdict) for rule in report.rules],
        [(one.rule.id, one.at, one.expected, one.actual) for one in report.explanations],
        [(one.path, one.verdict, one.traces, one.events, one.missing) for one in report.inputs],
    )


@pytest.mark.parametrize("name", [BROKEN, HEALTHY])
def test_shares_in_several_processes_give_the_same_report(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """However many there are; explanations too."""
    monkeypatch.setattr(sharded, "LARGE_BYTES", 1)
    monkeypatch.setattr(sharded, "OF_A_SHARE", 800_000)
    whole, progress = check([shipped()[name]]), list[str]()
    report = check_in_parallel([shipped()[name]], CheckOptions(), processes=2, echo=progress.append)
    assert said(report) == said(whole)
    shares = sharded.share_count(shipped()[name])
    of_reading, of_judging = progress[:-shares], progress[-shares:]
    assert re.fullmatch(r".*: (\d+) of \1 MB read", of_reading[-1])
    assert [f"{number} of {shares} shares" in line for number, line in enumerate(of_judging, 1)] == [True] * shares


def test_a_worker_that_raises_leaves_none_behind(tmp_path: Path) -> None:
    """What it raised is raised here."""
    (tmp_path / "t.ndjson").write_text("{}")
    with workers(1) as side_by_side, pytest.raises(Exception, match="expected broker logs to select topics"):
        check_in_shares(tmp_path / "t.ndjson", 2, CheckOptions(), side_by_side, str(tmp_path))


def test_small_logs_and_other_inputs_are_no_shares(tmp_path: Path) -> None:
    assert sharded.share_count(shipped()[BROKEN]) == 1
    assert sharded.share_count(tmp_path / "nothing") == 1


# ---------------------------------------------------------------------------------------------------------------------
# The command line


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--topic", "alpha"], 1, "1 trace, 1,079 events"),
        (["--partition", "beta-0"], 0, "1 trace, 519 events"),
        (["--partition", "beta-0", "--partition", "alpha-0"], 1, "2 traces, 1,598 events"),
        (["--topic", "gamma"], 2, "no event was judged"),
        (["--to", "2020-01-01T00:00:00"], 2, "no event was judged"),
        (["--from", "yesterday"], 2, "expected a day and a time"),
        (["--from", "2026-11-21T08:00:00", "--to", "2026-11-20T08:00:00"], 2, "expected a time after 2026-11-21T08:00:00"),
        (["--partition", "beta"], 2, "expected a topic and a number"),
    ],
)
def test_a_part_is_asked_for(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["check", "--quiet", str(shipped()[BROKEN]), *arguments]) == code
    printed = capsys.readouterr()
    assert words in printed.out + printed.err


def test_a_stretch_of_time_is_not_whole(capsys: pytest.CaptureFixture[str]) -> None:
    """What came before and behind is missing, and said: never a wrong FAIL, never a PASS."""
    first, last = "2026-11-21T08:32:20", "2026-11-21T08:32:25"
    assert main(["check", "--quiet", str(shipped()["4.2.0/a-steady"]), "--from", first, "--to", last]) == 3
    assert "its log does not begin with the start of a process" in capsys.readouterr().out


# ---------------------------------------------------------------------------------------------------------------------
# Blocks, and lines that are passed over


@pytest.fixture(scope="module")
def text() -> bytes:
    return gzip.decompress((shipped()[HEALTHY] / "n1" / "server.log.gz").read_bytes())


def lines_of(path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> tuple[list[Line], list[str]]:
    monkeypatch.setattr(blocks, "BLOCK", block)
    file = read_lines(path, "server.log")
    return file.lines, [str(problem) for problem in file.problems]


@pytest.mark.parametrize("block", [700, 4096, 100_000])
@pytest.mark.parametrize("packed", [False, True])
def test_the_size_of_a_block_changes_nothing(
    block: int, packed: bool, text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Torn lines and the rest of others among them, at the borders too; several gzip members."""
    chosen = random.Random(block)
    lines = text.splitlines(keepends=True)
    for at in chosen.sample(range(len(lines)), 60):
        lines[at] = lines[at][: chosen.randrange(60)] + chosen.choice((b"\n", b"\n\tat java.lang.Thread\n", b"\0\0\n"))
    torn = b"".join(lines)
    path = tmp_path / ("server.log.gz" if packed else "server.log")
    path.write_bytes(gzip.compress(torn[:70_001]) + gzip.compress(torn[70_001:]) if packed else torn)
    assert lines_of(path, monkeypatch, block) == lines_of(path, monkeypatch, 1 << 26)


def test_what_is_passed_over_says_nothing(text: bytes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The lines that are read are the same with and without; torn ones are found either way."""
    monkeypatch.setattr(blocks, "SKIPPED_FROM", 0)
    lines = text.splitlines(keepends=True)
    other = b"[2026-11-21 08:27:15,637445] INFO [x] hello (kafka.coordinator.group.GroupCoordinator)\n"
    woven = [one for at, line in enumerate(lines) for one in (line, *([other] if at % 3 else [other[:40] + b"\n", other]))]
    path = tmp_path / "server.log"
    path.write_bytes(b"".join(woven))
    fast = read_lines(path, "server.log", None, lambda line: line)
    slow = read_lines(path, "server.log")
    kept = set(fast.lines)
    passed_over = [line for line in slow.lines if line not in kept]
    assert len(passed_over) > len(lines) // 2
    assert not {line.logger for line in passed_over} & {logger for _, logger, _ in TABLE}
    assert [line for line in slow.lines if line in kept] == fast.lines
    assert [str(problem) for problem in fast.problems] == [str(problem) for problem in slow.problems]
    assert slow.problems


def packed(packing: str, content: bytes) -> bytes:
    """The content as tools of this name pack it."""
    if packing == "gzip":
        return gzip.compress(content)
    if packing == "xz":
        return lzma.compress(content)
    if packing == "bzip2":
        return bz2.compress(content)
    out = pa.BufferOutputStream()
    with pa.CompressedOutputStream(out, packing) as stream:
        stream.write(content)
    return out.getvalue().to_pybytes()


@pytest.mark.parametrize(("packing", "end"), [(packing, end) for packing, (_, end) in PACKINGS.items()])
def test_packed_logs_are_read_as_the_others(packing: str, end: str, tmp_path: Path) -> None:
    """By their content: the verdict and the places of failures are those of plain logs, and the story is told."""
    for folder, pack in (("plain", lambda text: text), ("packed", lambda text: packed(packing, text))):
        for node in shipped()[BROKEN].glob("n*"):
            shutil.copytree(node, tmp_path / folder / node.name)
        for path in (tmp_path / folder).rglob("*.log.gz"):
            content = pack(gzip.decompress(path.read_bytes()))
            path.unlink()
            path.with_suffix(end if folder == "packed" else "").write_bytes(content)
    reports = [check([tmp_path / folder]) for folder in ("plain", "packed")]
    one, other = ([(rule.rule.id, rule.tally) for rule in report.rules] for report in reports)
    assert one == other
    one, other = ([(failure.at, failure.expected) for failure in report.explanations] for report in reports)
    assert one == other != []
    losses, losses_of_packed = (story_of([tmp_path / folder]).losses for folder in ("plain", "packed"))
    assert [(loss.partition, loss.first, loss.end) for loss in losses] == [
        (loss.partition, loss.first, loss.end) for loss in losses_of_packed
    ]


@pytest.mark.parametrize(("packing", "end"), [(packing, end) for packing, (_, end) in PACKINGS.items()])
def test_a_packed_log_that_ends_early_or_unpacks_to_too_much(packing: str, end: str, text: bytes, tmp_path: Path) -> None:
    """What could be unpacked is read; the rest is a problem."""
    path = tmp_path / f"server.log{end}"
    content = packed(packing, text * 9)
    path.write_bytes(content[: len(content) * 2 // 3])
    file = read_lines(path, "server.log")
    assert file.lines
    assert [(problem.expected, problem.seen) for problem in file.problems if problem.line is None] == [
        (f"a complete {packing} file", "one that ends early or is damaged")
    ]
    path.write_bytes(packed(packing, text[:5_000] + b" " * (RATIO_FROM * 2)))
    (problem,) = (
        problem for problem in read_lines(path, "server.log").problems if problem.expected.startswith("a complete")
    )
    assert problem.seen == f"one that unpacks to more than {MOST_RATIO} times its size"


@pytest.mark.parametrize("packing", ["gzip", "bzip2", "xz"])
def test_several_packed_files_behind_each_other_are_one(packing: str) -> None:
    """As appending makes them, also with an empty one among them."""
    content = b"".join(packed(packing, text) for text in (b"", b"one ", b"", b"two ", b""))
    for size in (1, 7, 1000):
        pieces = [content[at : at + size] for at in range(0, len(content), size)]
        assert b"".join(unpacked(pieces, packing)) == b"one two "


def test_xz_of_several_streams_with_padding_and_one_that_asks_for_much_memory() -> None:
    """As xz -9 writes it, it is read; what asks for more is damaged."""
    streams = [lzma.compress(text * 50_000, preset=9) for text in (b"one ", b"another ")]
    content = b"".join((streams[0], bytes(8), streams[1]))
    pieces = [content[at : at + 7] for at in range(0, len(content), 7)]
    assert b"".join(unpacked(pieces, "xz")) == b"one " * 50_000 + b"another " * 50_000
    large = lzma.compress(b"x", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 30}])
    with pytest.raises(UnpackingError, match="damaged"):
        list(unpacked([large], "xz"))


def test_a_gzip_file_that_ends_early(text: bytes, tmp_path: Path) -> None:
    """As far as it goes, and a problem."""
    problems: list[Problem] = []
    path = tmp_path / "server.log.gz"
    path.write_bytes(gzip.compress(text)[:9000])
    read_so_far = b"".join(blocks.blocks(path, "server.log", problems))
    assert text.startswith(read_so_far)
    assert read_so_far
    assert [problem.expected for problem in problems] == ["a complete gzip file"]


def test_requests_of_a_broker_none_of_whose_lines_is_chosen(tmp_path: Path) -> None:
    """They are read, as they name topics by id; no step is made of them, and none is asked for."""
    begin = {"n1/server.log": "08:27:47,075", "n1/request.log": "08:27:47,090"}
    end = {"n1/server.log": "08:27:47,077", "n2/server.log": "08:27:47,050", "n3/server.log": "08:27:47,110"}
    first = "08:27:47,012"
    copied(HEALTHY, tmp_path, lambda path, _at, line: begin.get(path, first) <= line[12:24] < end.get(path, "08:27:48"))
    assert read(tmp_path).traces
    assert read(tmp_path, None, Selection(topics=frozenset({"none"}))).traces == []
