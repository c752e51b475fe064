"""A process whose own lines are missing shows in those of others; a replica that is deleted is given its role anew."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.kafka_logs.hand import LEADS, LOADED, STARTED, broker, recorded
from tests.kafka_logs.test_gaps import copied
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.capture import shipped
from validation.metamorphic.cases import logs

Shift = Callable[[str, str, int], Path]
LOST_DISK = "4.3.1/m-lost-disk"
BEGINS = "Registered signal"
STOPPING = ("SIGTERM handler", "LoggingSignalHandler", "Terminating process due to signal SIGTERM")
CLOSED = ("main", "LogManager", "Shutdown complete.")
UNHEARD = "no line begins that process"


def failing(path: Path) -> set[str]:
    return {rule.rule.id for rule in check([path]).rules if rule.verdict is Verdict.FAIL}


def starts(name: str, path: str) -> list[int]:
    """The numbers of the lines with which its processes begin."""
    return [number for number, line in enumerate(logs(shipped()[name])[path], 1) if BEGINS in line]


@pytest.mark.parametrize("name", sorted(shipped()))
def test_every_process_of_a_whole_capture_is_heard(name: str) -> None:
    assert not [gap for gap in read(shipped()[name]).gaps if UNHEARD in str(gap)]


@pytest.mark.parametrize(("name", "node"), [(LOST_DISK, "n1"), (LOST_DISK, "n2"), ("4.2.0/d-unclean", "n1")])
def test_the_lines_between_two_processes_are_lost(name: str, node: str, tmp_path: Path) -> None:
    """They look like one process then, in which its leader epoch and its log end go back."""
    path = f"{node}/server.log"
    begin = starts(name, path)[1]
    folder = copied(name, tmp_path, lambda file, at, _line: file != path or not begin - 10 <= at < begin + 40)
    capture = read(folder)
    assert any(UNHEARD in str(gap) and gap.node == int(node[1:]) for gap in capture.gaps), list(map(str, capture.gaps))
    assert failing(folder) == set()


def test_all_lines_of_a_process_but_its_first_ones_are_lost(tmp_path: Path) -> None:
    """The leader handled 66 fetches of it, none of which a line sends: they are no last fetches that nobody logged."""
    path = "n2/server.log"
    second = starts("4.2.0/d-unclean", path)[1]
    folder = copied("4.2.0/d-unclean", tmp_path, lambda file, at, _line: file != path or not 12 <= at < second)
    (gap,) = (gap for gap in read(folder).gaps if "no line sends one" in str(gap))
    assert "66 fetches of its broker epoch 14" in str(gap)
    assert (gap.node, check([folder]).verdict) == (2, Verdict.INCONCLUSIVE)


def test_a_log_that_ends_with_an_orderly_stop_of_a_broker_that_came_back(tmp_path: Path) -> None:
    """The disk is that of the process that nothing is left of."""
    name, path = "4.1.1/m-lost-disk", "n2/server.log"
    begin = starts(name, path)[1]
    folder = copied(name, tmp_path, lambda file, at, _line: file != path or at < begin)
    for checkpoint in shipped()[name].glob("*/*checkpoint"):
        shutil.copy(checkpoint, folder / checkpoint.parent.name)
    assert any(UNHEARD in str(gap) for gap in read(folder).gaps)
    assert failing(folder) == set()


@pytest.mark.parametrize("off", [r"\(state\.change\.logger\)$", r"\(kafka\.cluster\.Partition\)$", r"-3-metadata-loader-"])
def test_a_replica_that_is_deleted_and_created_without_the_lines_that_say_so(off: str, tmp_path: Path) -> None:
    """Neither its second life nor the first one is accused for want of the lines of a logger, or of a thread."""
    folder = copied(
        "4.3.1/l-ghost-elr-control", tmp_path, lambda file, _at, line: file != "n3/server.log" or not re.search(off, line)
    )
    assert failing(folder) == set()


def test_a_controller_that_answers_proposals_and_tells_no_change(tmp_path: Path) -> None:
    """The partition epochs in its responses are those of changes that it wrote at DEBUG."""
    folder = copied(
        "4.3.1/l-ghost-elr-control",
        tmp_path,
        lambda file, _at, line: file.startswith("n100/") and (" INFO " in line or "Completed request" in line),
    )
    assert any("elections and ISRs of the controller are not judged" in str(problem) for problem in read(folder).problems)
    assert failing(folder) == set()


def test_what_came_behind_the_last_line_came_behind_the_requests_of_that_process(shifted: Shift) -> None:
    """On whatever clock: the record that the next process finds is the response to one of them."""
    folder = shifted("4.1.1/m-lost-disk", "n1", 219_628_757)
    log = folder / "n100" / "request.log"
    lines = logs(shipped()["4.1.1/m-lost-disk"])["n100/request.log"]
    log.with_name("request.log.gz").unlink()
    log.write_text("".join(f"{line}\n" for line in (*lines[:292], *lines[314:])))
    assert failing(folder) == set()


def test_a_leader_that_appends_in_an_epoch_that_its_cache_lacks_shows_a_lost_line(tmp_path: Path) -> None:
    """Partition#makeLeader assigns it before: what its disk has more at the end breaks no rule (LOG-02)."""
    lost = "[LeaderEpochCache alpha-1] Appended new epoch entry EpochEntry[epoch=0,"
    folder = copied("4.3.1/l-ghost-elr-control", tmp_path, lambda _file, _at, line: lost not in line)
    for path in shipped()["4.3.1/l-ghost-elr-control"].glob("n1/*checkpoint"):
        shutil.copy(path, folder / "n1")
    assert any("LeaderEpochFileCache at DEBUG of node 1" in str(gap) for gap in read(folder).gaps)
    assert failing(folder) == set()


def test_a_follower_whose_end_is_recorded_beyond_the_leaders_shows_appends_without_a_line(tmp_path: Path) -> None:
    """A fetch from there is out of range, and recorded by nobody."""
    led = (*LEADS[:2], LEADS[2].format("1,2"))
    assert not broker(tmp_path / "whole", STARTED, *LOADED, led, recorded(2, 40), STOPPING, CLOSED).gaps
    (gap,) = broker(tmp_path / "lacks", STARTED, *LOADED, led, recorded(2, 41), STOPPING, CLOSED).gaps
    assert "UnifiedLog at TRACE of node 1" in str(gap)


def test_the_last_seconds_of_a_leader_that_was_killed(tmp_path: Path) -> None:
    """Its followers took responses to requests that are not there: what it did meanwhile is unknown, and no PASS."""
    lost = re.compile(r"^\[2026-11-21 10:30:5(6,[1-9]|7,)")
    folder = copied("4.2.0/k-epoch-jump", tmp_path, lambda file, _at, line: file[:3] != "n1/" or not lost.match(line))
    assert any("responses to requests that are not there" in str(gap) for gap in read(folder).gaps)
    assert check([folder]).verdict is Verdict.INCONCLUSIVE
