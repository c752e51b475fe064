"""What is named on the command line: twice, apart, by a pipe; what cannot be entered, or names nobody."""

import errno
import gzip
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.story.sentences import story_text
from tidegauge.story.story import Story, story_of
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.selection import Selection

CAPTURE = shipped()["3.4.0/b-kill-leader"]
NODES = [CAPTURE / name for name in ("n1", "n2", "n3", "n100")]


def facts(story: Story) -> list[tuple[object, ...]]:
    return [(one.partition, one.first, one.end, one.why, one.copies) for one in story.losses]


@pytest.mark.parametrize(
    "paths",
    [
        [CAPTURE, CAPTURE],
        [CAPTURE, CAPTURE / "n1" / ".."],
        [CAPTURE / "n1/server.log.gz", CAPTURE],
        NODES,
        [*NODES, CAPTURE],
    ],
)
def test_what_is_named_twice_happened_once(paths: list[Path]) -> None:
    """Read twice, a broker looked like one that had lost its disk."""
    once, again = story_of([CAPTURE]).as_json(), story_of(paths).as_json()
    assert once["losses"]
    assert (again["losses"], again["story"]) == (once["losses"], once["story"])


def test_a_log_that_lies_beside_its_archive_happened_once(tmp_path: Path) -> None:
    shutil.copytree(CAPTURE, tmp_path / "logs")
    packed = tmp_path / "logs/n2/server.log.gz"
    (tmp_path / "logs/n2/server.log").write_bytes(gzip.decompress(packed.read_bytes()))
    assert facts(story_of([tmp_path / "logs"])) == facts(story_of([CAPTURE]))


def test_a_line_of_folders_that_are_named_apart_has_its_folder() -> None:
    assert story_of(NODES).losses[0].sources[0] == "n1/server.log:729"


def test_what_cannot_be_entered_is_a_problem(tmp_path: Path) -> None:
    (tmp_path / "n1").mkdir()
    (tmp_path / "n1/server.log").symlink_to(CAPTURE / "n1/server.log.gz")
    assert [problem.path for problem in story_of([tmp_path]).problems] == ["n1/server.log"]


def test_a_folder_that_cannot_be_read_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A story without one broker of three must not look like that of all."""
    shutil.copytree(CAPTURE, tmp_path / "logs")
    look = os.scandir

    def scandir(folder: Path) -> Iterator[os.DirEntry[str]]:
        if Path(folder).name == "n2":
            raise PermissionError(errno.EACCES, "Permission denied", str(folder))
        return look(folder)

    monkeypatch.setattr(os, "scandir", scandir)
    story = story_of([tmp_path / "logs"])
    assert story.entries
    (problem,) = story.problems
    assert str(problem).startswith("n2: expected a folder that can be read, seen Permission denied")
    assert "problem: n2" in story_text(story)


@pytest.mark.parametrize("named", [Selection(frozenset({"nope"})), Selection(frozenset(), frozenset({"alpha-7"}))])
def test_of_a_topic_that_nobody_has_nothing_is_told(named: Selection) -> None:
    story = story_of([CAPTURE], selection=named)
    assert (story.entries, story.losses) == ([], [])
    assert "check the name" in str(story.problems[-1])
    assert story_of([CAPTURE], selection=Selection(frozenset({"beta"}))).entries


def test_a_topic_that_nobody_has_is_said_to_be_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """In check, and there is no bundle of it: it would hold lines about all others."""
    assert main(["check", "--topic", "nope", str(CAPTURE)]) == 2
    assert "no line is about nope: check the name" in capsys.readouterr().out
    assert main(["check", "--topic", "beta", str(CAPTURE)]) == 0
    assert "check the name" not in capsys.readouterr().out
    for name, code in (
        ("--topic=nope", 2),
        ("--topic=alph", 2),
        ("--partition=alpha-7", 2),
        ("--topic=alpha", 0),
        ("--partition=beta-0", 0),
    ):
        place = tmp_path / "bundle.tar.gz"
        assert main(["bundle", name, "--out", str(place), str(CAPTURE)]) == code
        assert place.exists() == (code == 0)
        assert ("check the name" in capsys.readouterr().err) == (code == 2)
        place.unlink(missing_ok=True)


@pytest.mark.parametrize("command", ["story", "check"])
def test_a_pipe_is_read_as_standard_input_is(command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(tmp_path / "pipe")
    log = gzip.decompress((CAPTURE / "n1/server.log.gz").read_bytes())
    writer = threading.Thread(target=(tmp_path / "pipe").write_bytes, args=(log,), daemon=True)
    writer.start()
    assert main([command, str(tmp_path / "pipe")]) == (command == "check")
    assert "6 never committed records of alpha-0 (62 to 67)" in capsys.readouterr().out
