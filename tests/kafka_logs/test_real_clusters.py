"""Whole logs of clusters as they are, cut down to a partition: nothing is wrong in any, and nothing is missing.

With a line less something is missing.
"""

import tarfile
from collections.abc import Sequence
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.sharded import check_in_shares
from tidegauge.traces.kafka_logs import read

WIDE = Path(__file__).parent / "wide"
BROKEN = Path(__file__).parent / "broken"
QUICK = frozenset({"delayed-fetch", "seed-1059-orders-7"})
"""Cases that are also compared in the quick tests: of the second, a share once failed."""
CLOCKS_DECIDE = frozenset({"delayed-fetch", "seed-1013-payments-2", "seed-1026-orders-7"})
"""Cases in which steps stand in another order in a share: it reads another controller, or fewer lines of a thread."""
CASES = sorted(path.name.removesuffix(".tar.xz") for path in WIDE.glob("*.tar.xz"))


def case(name: str, folder: Path, kept: Path = WIDE) -> Path:
    """A case, unpacked."""
    with tarfile.open(kept / f"{name}.tar.xz") as packed:
        packed.extractall(folder, filter="data")
    return folder / name


@pytest.mark.parametrize("name", CASES)
def test_nothing_is_wrong_and_nothing_is_missing(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The verdict is PASS: exit 0."""
    assert main(["check", str(case(name, tmp_path))]) == 0, capsys.readouterr().out


@pytest.mark.parametrize("name", [pytest.param(name, marks=() if name in QUICK else pytest.mark.long) for name in CASES])
def test_shares_have_the_tallies_of_one_process(name: str, tmp_path: Path) -> None:
    """Nothing fails, and the same is missing; where clocks decide, other checks may be called for."""
    folder = case(name, tmp_path)
    (tmp_path / "shares").mkdir()
    whole, report = check([folder]), check_in_shares(folder, 3, CheckOptions(), map, str(tmp_path / "shares"))
    assert (report.verdict, report.missing, report.problems) == (whole.verdict, whole.missing, whole.problems)
    assert [rule.tally.failed for rule in report.rules] == [rule.tally.failed for rule in whole.rules]
    same = [rule.tally for rule in report.rules] == [rule.tally for rule in whole.rules]
    assert same == (name not in CLOCKS_DECIDE)


def test_a_release_with_bugs_is_told_which(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """An unmodified 3.5.1: it prints offsets as no other release does, and two bugs were fixed in 3.7.0."""
    folder = case("seed-5001-orders-10", tmp_path, BROKEN)
    assert main(["check", str(folder)]) == 1
    out = capsys.readouterr().out
    assert "FAIL: broken: HW-09, FETCH-02" in out
    assert "looks like KAFKA-15583" in out
    assert "looks like KAFKA-15510" in out
    assert not read(folder).gaps


def test_a_proposal_that_is_made_again_is_not_the_one_that_was_accepted(tmp_path: Path) -> None:
    """The step of F3: the leader reads metadata that it knows, ignores the response, and proposes the same once more."""
    (trace,) = read(case("seed-1135-__transaction_state-0", tmp_path)).traces
    at = {event.at: place for place, event in enumerate(trace.events)}
    accepted, forgets, again = (at[line] for line in ("n100/server.log:836", "n2/server.log:1770", "n2/server.log:1789"))
    assert accepted < forgets < again


def _logs_on(line: str) -> bool:
    return "due to signal" in line or "KafkaRequestHandlerPool" in line


def test_a_proposal_behind_the_last_line_comes_before_who_learned_of_its_change(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In 4.x a leader that was told to stop proposes, and handles the next fetch of a replica that knows the new ISR."""
    folder = case("seed-1059-orders-7", tmp_path)
    last, again = "[2026-11-28 07:44:43,913557]", "[2026-11-28 07:44:50"
    for name in ("server.log", "request.log"):
        log = folder / "n1" / name
        lines = log.read_text().splitlines(keepends=True)
        log.write_text("".join(line for line in lines if not last <= line < again or _logs_on(line)))
    assert main(["check", str(folder)]) == 0, capsys.readouterr().out
    (trace,) = read(folder).traces
    names = [event.event for event in trace.events if event.fields.get("partition_epoch") == 3]
    assert names.index("ExpandIsr") < names.index("AlterPartition")


@pytest.mark.parametrize(
    ("name", "file", "line", "missing"),
    [
        ("four-fetchers", "n2/server.log", "18:02:05,918704] TRACE [ReplicaFetcherThread-0-1]", "no line sends it"),
        ("four-fetchers", "n1/kafka-request.log", "18:02:06,997068", "follows request None"),
        ("kill", "n1/server.log", "Submitting ISR state change PendingExpandIsr", "no line makes"),
        ("paused-leader", "n3/request.log", "18:09:52,655064", "of session"),
        ("paused-leader", "n3/server.log", "18:09:46,496869", "no line records it"),
        ("stop-leader", "n1/server.log", "18:12:53,141610", "no line records it"),
        ("stop-follower", "n3/request.log", "18:12:57,086923", "of session"),
        ("seed-2005-__consumer_offsets-2", "n1/server.log", "no clean shutdown file", "no line goes beyond 2"),
        ("seed-2005-__consumer_offsets-2", "n1/server.log", "next offset: 2,", "no line says for what"),
        ("seed-2002-orders-11", "n1/server.log", "next offset: 17,", "which no line brings about"),
        ("seed-4001-orders-6", "n2/server.log", "High watermark updated from (offset=4,", "was given high watermark 5"),
        ("seed-4001-orders-6", "n2/server.log", "High watermark updated from (offset=5,", "was given high watermark 6"),
        ("seed-7015-payments-1", "n2/server.log", "28:06,847] DEBUG", "no line records it"),
    ],
)
def test_a_line_that_is_lost_is_missed(name: str, file: str, line: str, missing: str, tmp_path: Path) -> None:
    """The first line with this text is taken out."""
    folder = case(name, tmp_path)
    lines = (folder / file).read_text().splitlines(keepends=True)
    at = next(number for number, text in enumerate(lines) if line in text)
    (folder / file).write_text("".join(lines[:at] + lines[at + 1 :]))
    assert any(missing in str(gap) for gap in read(folder).gaps)


@pytest.mark.parametrize("name", ["seed-2005-__consumer_offsets-2", "seed-2002-orders-11"])
def test_the_end_of_the_log_of_a_process_that_was_killed_is_missed(name: str, tmp_path: Path) -> None:
    """From its last append as a leader on: what the others sent it shows that it was more than an append in flight."""
    folder = case(name, tmp_path)
    log = folder / "n1" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    end = [at for at, line in enumerate(lines) if "Log4jController" in line][1]
    last = max(at for at in range(end) if "Appended message set" in lines[at] and "[ReplicaFetcher" not in lines[at])
    log.write_text("".join(lines[:last] + lines[end:]))
    requests = folder / "n1" / "request.log"
    kept = (line for line in requests.read_text().splitlines(keepends=True) if not lines[last] <= line < lines[end])
    requests.write_text("".join(kept))
    assert read(folder).gaps


@pytest.mark.parametrize(("name", "missed"), [("append-raises-hw", False), ("read-ms", True)])
def test_a_logger_that_ends_behind_the_signal_to_stop_leaves_no_gap(name: str, missed: bool, tmp_path: Path) -> None:
    """In 4.x loggers end one after the other while the broker serves; in 3.x they go on until the logs are closed."""
    folder = case(name, tmp_path)
    log = folder / "n1" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    signal = next(at for at, line in enumerate(lines) if "Terminating process due to signal" in line)
    *_, begin, _ = (at for at in range(signal) if "Appended message set" in lines[at] and "__cluster" not in lines[at])
    end = next((at for at in range(signal, len(lines)) if "Registered signal handlers" in lines[at]), len(lines))
    # Up to 3.x a process that logs no more behind the signal was killed then.
    behind = [line for line in lines[begin:end] if "UnifiedLog" not in line and "Shutdown complete." not in line]
    behind.remove(lines[signal])
    moved = lines[begin][: lines[begin].index("]")] + lines[signal][lines[signal].index("]") :]
    log.write_text("".join([*lines[:begin], moved, *behind, *lines[end:]]))
    assert bool(read(folder).gaps) is missed


def place_of(lines: Sequence[str], stamp: str) -> int:
    """The only line with this stamp."""
    (at,) = (at for at, line in enumerate(lines) if line.startswith(stamp))
    return at


def test_a_role_change_raises_to_what_a_fetch_counted_before_not_after(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A handler counts, and the metadata thread raises before it looks; one that is still elsewhere has not counted yet."""
    log = case("seed-4010-orders-0", tmp_path) / "n1" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    at = place_of(lines, "[2026-11-29 02:19:11,253611]")
    elsewhere = "[2026-11-29 02:19:11,240000] INFO [data-plane-kafka-request-handler-0] Elsewhere (kafka.server.KafkaApis)\n"
    log.write_text("".join([*lines[:at], elsewhere, *lines[at:]]))
    assert main(["check", str(log.parent.parent)]) == 1
    assert "FAIL: broken: HW-02 " in capsys.readouterr().out


def test_a_raise_before_a_kill_rests_on_a_fetch_that_was_sent(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Its handler had counted it and wrote nothing more. With the fetch asking for less, the raise has no reason."""
    folder = case("seed-6019-payments-0", tmp_path)
    log = folder / "n1" / "server.log"
    text = log.read_text()
    begin = text.index("[2026-11-29 07:01:50,028911] TRACE [ReplicaFetcherThread-1-2]")
    end = text.index("\n", begin)
    assert "fetchOffset=5" in text[begin:end]
    log.write_text(text[:begin] + text[begin:end].replace("fetchOffset=5", "fetchOffset=4") + text[end:])
    assert main(["check", str(folder)]) == 1
    assert "HW-02" in capsys.readouterr().out


def test_a_raise_that_nothing_allows_is_of_the_fetch_whose_thread_printed_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The thread raised at the fetch before the one that allowed it. No order fits; it is no fetch of an unknown replica."""
    log = case("seed-1026-orders-7", tmp_path) / "n3" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    count = place_of(lines, "[2026-11-28 00:17:41,125857]")
    raised = [place_of(lines, stamp) for stamp in ("[2026-11-28 00:17:41,891242]", "[2026-11-28 00:17:41,891437]")]
    early = [lines[count][: lines[count].index("]")] + lines[at][lines[at].index("]") :] for at in raised]
    kept = [line for at, line in enumerate(lines) if at not in raised]
    log.write_text("".join([*kept[:count], *early, *kept[count:]]))
    assert main(["check", str(log.parent.parent)]) == 1
    assert "has the high watermark 7 where the rules allow 5 at most" in capsys.readouterr().out


def test_a_read_below_every_high_watermark_of_its_time_contradicts_the_lines(tmp_path: Path) -> None:
    """It breaks no rule, and no order of the lines explains it."""
    folder = case("seed-4013-orders-3", tmp_path)
    log = folder / "n3" / "kafka-request.log"
    lines = log.read_text().splitlines(keepends=True)
    assert '"highWatermark":49' in lines[361]
    lines[361] = lines[361].replace('"highWatermark":49', '"highWatermark":48')
    log.write_text("".join(lines))
    assert [gap.why for gap in read(folder).gaps] == [
        "a consumer of orders-3 was shown 48 (n3/kafka-request.log:362) where the lines have 49 at least"
    ]


def test_a_response_behind_the_signal_to_stop_is_of_a_fetch_that_a_line_records(tmp_path: Path) -> None:
    """The process before it was killed and handled others of that fetcher; with no line at all one of them is missing."""
    folder = case("seed-7011-orders-1", tmp_path)
    log = folder / "n1" / "server.log"
    lines = log.read_text().splitlines(keepends=True)
    counted = ("[2026-11-29 11:30:30,940566]", "[2026-11-29 11:30:30,941394]")
    kept = [line for line in lines if not line.startswith(counted)]
    assert len(kept) == len(lines) - 2
    log.write_text("".join(kept))
    assert any("node 2 took 1 responses to requests that are not there" in gap.why for gap in read(folder).gaps)
