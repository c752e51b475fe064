"""The cases of hostile inputs: each ends, in bounded memory, with the rest judged, and what is printed is ours.

They are made of the capture 3.4.0/b-kill-leader.
"""

import gzip
import json
import os
import re
import shutil
import socket
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path

import pytest

from tests.hostile.conftest import CAPTURE, Run
from tidegauge.cli.main import main

LINE = b"[2026-11-21 08:28:48,840] INFO [EventHandler] x (kafka.cluster.Partition)\n"
EPOCHS = "alpha-0.leader-epoch-checkpoint"
SPARSE = 1 << 35
FORGED = "x]\x1b[2J\r\nPASS: 60 rules hold (1 traces, 5 events, 0.0 s)\n\x1b[8m"


def bomb(path: Path, total: int, chunk: bytes, head: bytes = b"") -> None:
    """Write a gzip file that unpacks to `total` bytes, of one member after the other: they need not be packed each."""
    path.parent.mkdir(parents=True, exist_ok=True)
    member = gzip.compress(chunk)
    with path.open("wb") as out:
        out.write(gzip.compress(head))
        for _ in range(total // len(chunk)):
            out.write(member)


def fifo(logs: Path) -> None:
    (logs / "n1" / EPOCHS).unlink()
    os.mkfifo(logs / "n1" / EPOCHS)


def device(logs: Path) -> None:
    (logs / "n1" / EPOCHS).unlink()
    (logs / "n1" / EPOCHS).symlink_to("/dev/zero")


def deep(logs: Path) -> None:
    """Make folders in folders, deeper than any path can be."""
    at = os.open(logs / "n1", os.O_RDONLY)
    for _ in range(200):
        os.mkdir("d" * 50, dir_fd=at)
        below = os.open("d" * 50, os.O_RDONLY, dir_fd=at)
        os.close(at)
        at = below
    os.close(at)


def unreadable(logs: Path) -> None:
    (logs / "n1" / "closed").mkdir(mode=0)


def holes(logs: Path) -> None:
    """Add a log and a trace of a terabyte each, of which nothing is on the disk."""
    for name in ("server.log.1", "x.ndjson"):
        (logs / "n1" / name).touch()
        os.truncate(logs / "n1" / name, 1 << 40)


def odd_things(logs: Path) -> None:
    """Put pipes and a socket under every name that is looked for."""
    (logs / "n1" / "alpha-0").mkdir()
    for name in ("controller.log", "kafka-request.log.gz", "x.ndjson", "meta.properties", "../server.log"):
        os.mkfifo(logs / "n1" / name)
    for name in ("00000000000000000000.log", "partition.metadata", "leader-epoch-checkpoint"):
        os.mkfifo(logs / "n1" / "alpha-0" / name)
    with socket.socket(socket.AF_UNIX) as bound, chdir(logs / "n1"):
        bound.bind("state-change.log")


def odd_names(logs: Path) -> None:
    """Name files as options, as lines of a report and as no text at all."""
    names = (
        b"-rf",
        b"--out",
        b"a\nPASS: 60 rules hold",
        b"\xff\xfe",
        "\u202egol".encode(),
        b"::error x",
        b"\x1b[2J",
        b"a" * 250,
    )
    for name in names:
        (logs / "n1" / os.fsdecode(name + b".log")).write_bytes(LINE)


HARMS: dict[str, tuple[Callable[[Path], object], str]] = {
    "fifo-epochs": (fifo, f"n1/{EPOCHS}"),
    "zero-epochs": (device, f"n1/{EPOCHS}"),
    "sparse-epochs": (lambda logs: os.truncate(logs / "n1" / EPOCHS, SPARSE), f"n1/{EPOCHS}"),
    "sparse-hw": (
        lambda logs: os.truncate(logs / "n1" / "replication-offset-checkpoint", SPARSE),
        "n1/replication-offset-checkpoint",
    ),
    "holes": (holes, "n1/server.log.1:1"),
    "link-up": (lambda logs: (logs / "n1" / "up").symlink_to(".."), "n1/up"),
    "link-out": (lambda logs: (logs / "n1" / "other.log").symlink_to("/etc/passwd"), "n1/other.log"),
    "unreadable-folder": (lambda logs: (logs / "n1" / "proc").symlink_to("/proc"), "n1/proc"),
    "closed-folder": (unreadable, "" if os.geteuid() == 0 else "n1/closed"),
    "deep": (deep, ""),
    "odd-things": (odd_things, "n1/alpha-0/leader-epoch-checkpoint"),
    "odd-names": (odd_names, ""),
    "escape-in-folder-name": (lambda logs: (logs / "n2").rename(logs / "n2\x1b[5m"), ""),
}


@pytest.fixture
def logs(tmp_path: Path) -> Path:
    shutil.copytree(CAPTURE, tmp_path / "logs")
    return tmp_path / "logs"


@pytest.fixture(scope="module")
def harmless(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What is said of the capture as it is: traces and events."""
    folder = tmp_path_factory.mktemp("harmless")
    main(["check", "--quiet", "--out", str(folder), str(CAPTURE)])
    report = json.loads((folder / "check.json").read_text())
    return f"{report['traces']} traces, {report['events']:,} events"


def assert_ours(text: str) -> None:
    """Nothing that a terminal obeys, and one line with a verdict."""
    assert not re.search(r"[^\n\x20-\x7e]", text)
    assert len(re.findall(r"^(?:PASS|FAIL|INCONCLUSIVE|SUITE ERROR): ", text, re.MULTILINE)) == 1


@pytest.mark.parametrize("name", HARMS)
def test_the_harm_is_a_problem_and_the_rest_is_judged(name: str, logs: Path, harmless: str, command: Run) -> None:
    harm, problem = HARMS[name]
    harm(logs)
    try:
        ended = command("check", logs, cwd=logs.parent)
    finally:
        shutil.rmtree(logs, ignore_errors=True)
    assert ended.returncode == 1, ended.stderr  # KAFKA-14704 is found, as without the harm
    assert harmless in ended.stdout
    assert f"  {problem}: expected " in ended.stdout or not problem
    assert "root:" not in ended.stdout
    assert_ours(ended.stdout)


def test_links_are_followed_for_who_asks(logs: Path, command: Run) -> None:
    """Logs that lie elsewhere, and a folder that links to itself."""
    elsewhere = logs.parent / "elsewhere"
    (logs / "n1").rename(elsewhere)
    (logs / "n1").symlink_to(elsewhere)
    (elsewhere / "loop").symlink_to(elsewhere)
    assert "no link that leads out" in command("check", logs, cwd=logs.parent).stdout
    followed = command("check", "--follow-links", logs, cwd=logs.parent)
    assert "no link that leads out" not in followed.stdout
    assert followed.returncode == 1


@pytest.mark.parametrize(
    ("path", "total", "chunk", "head"),
    [
        ("n1/alpha-0/00000000000000000000.log.gz", 1 << 31, b"\0" * (1 << 20), b""),
        ("n1/server.log.gz", 1 << 30, b"a" * (1 << 20), LINE * 3 + LINE[:45]),
        ("n1/server.log.gz", 1 << 30, LINE * 10_000, b""),
        ("n1/server.log.gz", 1 << 30, (LINE[:45] + b"\n") * 10_000, LINE * 3),
        ("n1/server.log.gz", 1 << 30, LINE.decode().encode("utf-16-le") * 10_000, LINE.decode().encode("utf-16")),
    ],
    ids=["gz-segment", "gz-one-line", "gz-lines", "gz-torn-lines", "gz-utf-16"],
)
def test_a_bomb_is_a_problem(path: str, total: int, chunk: bytes, head: bytes, tmp_path: Path, command: Run) -> None:
    bomb(tmp_path / "logs" / path, total, chunk, head)
    ended = command("check", "logs", cwd=tmp_path)
    assert ended.returncode == 2, ended.stderr
    # Behind 360,000 torn lines it is the one problem more, of which the text shows the first few.
    assert "unpacks to more than 100 times its size" in ended.stdout or " 360,001 problems" in ended.stdout
    assert_ours(ended.stdout)


def test_regex_registered(tmp_path: Path, command: Run) -> None:
    """B1: one line of 16 kB, of which the reader had no end."""
    again = " isr=[] removingReplicas=[], addingReplicas=[] leader=1, leaderEpoch=1"
    text = "Created partition a-0 with topic ID x and PartitionRegistration(replicas=[1]" + again * 240
    line = f"[2026-11-21 08:28:48,840] INFO [EventHandler] {text} (org.apache.kafka.controller.ReplicationControlManager)\n"
    (tmp_path / "server.log").write_text(line)
    assert command("check", "server.log", cwd=tmp_path).returncode == 2


def event(event_name: str, **fields: object) -> str:
    return json.dumps({"v": 1, "event": event_name, **fields}) + "\n"


def config(trace: str, **fields: object) -> str:
    given = {"tp": "o-0", "nodes": [1, 2], "controller": 100, "min_isr": 2, "profile": "repaired", **fields}
    return event("Config", trace=trace, **given)


def start(trace: str, epochs: int, **fields: object) -> str:
    given = {"node": 1, "clean": True, "leo": 5000, "hw": 0, "log_start": 0, "epochs": [[e, e] for e in range(epochs)]}
    return event("Start", trace=trace, **given, **fields)


def test_a_trace_that_cannot_be_judged_does_not_cost_the_others(tmp_path: Path, command: Run) -> None:
    """B7: 4,200 epochs."""
    (tmp_path / "t.ndjson").write_text(config("big") + start("big", 4200) + config("small") + start("small", 2))
    ended = command("check", "t.ndjson", cwd=tmp_path)
    assert ended.returncode == 2
    assert "t.ndjson: NDJSON, 1 trace, 1 event, 1 problem" in ended.stdout
    assert "big: expected a trace that can be judged" in ended.stdout


def test_terminal_forged_pass(tmp_path: Path, command: Run) -> None:
    """B11: control characters and lines of the sender's making, in every text of a trace."""
    lines = [config(f"t{FORGED}", tp=f"o{FORGED}", source=FORGED, missing=[FORGED])]
    lines.append(start(f"t{FORGED}", 0, at=FORGED, time=FORGED, corr=FORGED, hw_before=FORGED) + FORGED + "\n")
    lines.append(event("Append", trace=f"t{FORGED}", node=2, at=FORGED, leo_before=0, leo=7, epoch=1))
    (tmp_path / "t.ndjson").write_text("".join(lines))
    for options in ((), ("--all",), ("--out", "report")):
        assert_ours(command("check", *options, "t.ndjson", cwd=tmp_path).stdout.replace("reports: ", ""))
    for name in ("check.json", "check.xml", "index.html"):
        content = (tmp_path / "report" / name).read_text()
        assert "\x1b" not in content
        assert "\nPASS: 60" not in content


def test_a_line_of_a_gigabyte_is_passed_over(tmp_path: Path, command: Run) -> None:
    """B8, sparse: the events around it are judged; a hundred million line breaks are none."""
    path = tmp_path / "t.ndjson"
    with path.open("wb") as out:
        # What begins with zero bytes is a binary file.
        out.write((config("t") + start("t", 2)).encode() + b"{" + b" " * (1 << 20))
        out.seek(1 << 30, os.SEEK_CUR)
        out.write(b"}\n" + event("Crash", trace="t", node=1).encode())
    ended = command("check", path, cwd=tmp_path)
    assert ended.returncode == 2
    assert "t.ndjson:3: expected lines of at most 1,048,576 bytes" in ended.stdout
    assert "1 trace, 2 events, 1 problem" in ended.stdout
    path.write_bytes(config("t").encode() + b"\n" * 100_000_000)
    assert command("check", path, cwd=tmp_path).returncode == 2


def test_the_longest_line_is_an_option(tmp_path: Path, command: Run) -> None:
    (tmp_path / "t.ndjson").write_text(config("t") + start("t", 200))
    assert command("check", "--longest-line", "1000", "t.ndjson", cwd=tmp_path).returncode == 2
    assert command("check", "t.ndjson", cwd=tmp_path).returncode == 0


def test_nothing_is_written_through_a_link(tmp_path: Path, command: Run) -> None:
    """C2: report/check.json leads to a file of the user's."""
    (tmp_path / "t.ndjson").write_text(config("t") + start("t", 2))
    mine, report = tmp_path / "mine", tmp_path / "report"
    mine.write_text("mine")
    report.mkdir()
    (report / "check.json").symlink_to(mine)
    os.mkfifo(report / "index.html")
    assert command("check", "--out", "report", "t.ndjson", cwd=tmp_path).returncode == 0
    assert mine.read_text() == "mine"
    assert json.loads((report / "check.json").read_text())["verdict"] == "PASS"
    assert (report / "index.html").is_file()
