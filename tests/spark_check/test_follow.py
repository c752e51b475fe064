"""A directory in which Parquet files arrive: what is said as they do, and the report of `check --spark` at the end."""

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark_check.right_and_wrong import right_and_wrong
from tests.spark_check.test_captures import said
from tidegauge.cli.main import main
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.follow.loop import REPORT_BEGINS, follow, publisher
from tidegauge.spark_check import judge_on_spark
from tidegauge.spark_check.follow import ParquetArrivals, RunningTally, follow_on_spark
from tidegauge.spark_check.session import session
from tidegauge.spark_check.source import Arrivals, log_in
from tidegauge.spark_check.worker import Task, file_fingerprint, judge_fingerprint, run_task, unreadable_row
from tidegauge.traces.formats.parquet import row_groups
from tidegauge.traces.problems import Problem
from tidegauge.util.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

IDLE = 2.0
NO_MORE = CheckOptions()
BROKEN = b"PAR1, and no more"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right file, and a wrong one."""
    folder = tmp_path_factory.mktemp("made")
    right_and_wrong(folder, 500)
    return folder


@pytest.fixture(scope="module")
def spark() -> Iterator["SparkSession"]:
    pytest.importorskip("pyspark")
    with session("local[2]") as running:
        yield running


@dataclass
class Scene:
    """A directory, what is said, and what happens each time a batch was judged."""

    made: Path
    root: Path
    steps: list[Callable[[], object]] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.results.mkdir()

    @property
    def folder(self) -> Path:
        return self.root / "arriving"

    @property
    def results(self) -> Path:
        return self.root / "results"

    def arrive(self, what: str, name: str) -> None:
        shutil.copy(self.made / f"{what}.parquet", self.folder / ".unfinished")
        (self.folder / ".unfinished").replace(self.folder / f"{name}.parquet")

    def arrives(self, what: str, name: str) -> Callable[[], None]:
        return lambda: self.arrive(what, name)

    def note(self, line: str) -> None:
        self.notes.append(line)
        if "events judged" in line and self.steps:
            self.steps.pop(0)()

    def follow(self, spark: "SparkSession", how: CheckOptions = NO_MORE, idle: float | None = IDLE) -> Report:
        publish = publisher(self.failures.append, self.note)
        report = follow(ParquetArrivals(spark, self.folder, how, self.results, publish), idle)
        # The last line only parts what was said from the report.
        if self.failures and self.failures[-1] == str(REPORT_BEGINS):
            self.failures.pop()
        return report

    def stamps(self) -> dict[str, tuple[int, int]]:
        return {one.name: (one.stat().st_ino, one.stat().st_mtime_ns) for one in self.results.glob("*.parquet")}


@pytest.fixture
def scene(made: Path, tmp_path: Path) -> Scene:
    return Scene(made, tmp_path)


@pytest.mark.spark
@pytest.mark.parametrize(
    "how", [CheckOptions(), CheckOptions(profile="hw-only", situations=True)], ids=["as-named", "hw-only"]
)
def test_the_report_is_that_of_all_files_together(how: CheckOptions, scene: Scene, spark: "SparkSession") -> None:
    """Files that arrive one after the other, one broken and one right at first, which are replaced; one stays broken."""
    scene.arrive("right", "a")
    scene.arrive("right", "c")
    (scene.folder / "broken.parquet").write_bytes(BROKEN)
    (scene.folder / "never.parquet").write_bytes(BROKEN)
    scene.steps += [scene.arrives("wrong", "b"), scene.arrives("right", "broken"), scene.arrives("wrong", "c")]
    report = scene.follow(spark, how)
    assert scene.steps == []
    assert said(report) == said(check(sorted(scene.folder.glob("*.parquet")), how))
    assert report.notes[-1] == "4 of 4 row groups had been judged before", "they were judged as they came"


@pytest.mark.spark
def test_what_fails_is_said_as_it_comes(scene: Scene, spark: "SparkSession") -> None:
    """A rule in the words of a report, then in a line; a file that cannot be read; what was judged."""
    scene.arrive("wrong", "a")
    (scene.folder / "broken.parquet").write_bytes(BROKEN)
    scene.steps.append(scene.arrives("wrong", "b"))
    report = scene.follow(spark)
    broken = [rule.rule.id for rule in report.rules if rule.tally.failed]
    assert sorted(line.split()[0] for line in scene.failures) == sorted(2 * broken)
    assert all(f"{scene.folder}/a.parquet: row group 0" in line for line in scene.failures[: len(broken)])
    assert all(line.endswith(f"{scene.folder}/b.parquet: row group 0") for line in scene.failures[len(broken) :])
    problem, first, second = scene.notes
    assert f"{scene.folder}/broken.parquet: expected a Parquet file" in problem
    assert first.startswith("2 files, 500 traces")
    assert second.startswith("3 files, 1,000 traces")
    assert second.endswith(f"broken: {', '.join(sorted(broken))}")


@pytest.mark.spark
def test_who_dies_before_all_was_said_says_it_again(scene: Scene, spark: "SparkSession") -> None:
    """And judges nothing again."""

    def die() -> None:
        raise RuntimeError("killed")

    scene.arrive("wrong", "a")
    scene.steps.append(die)
    with pytest.raises(RuntimeError, match="killed"):
        scene.follow(spark)
    before, lines = scene.stamps(), list(scene.failures)
    scene.arrive("right", "b")
    scene.failures.clear()
    report = scene.follow(spark)
    assert before
    assert lines == scene.failures
    assert before.items() < scene.stamps().items()
    assert said(report) == said(check(sorted(scene.folder.glob("*.parquet"))))


@pytest.mark.spark
def test_a_signal_ends_it_with_what_was_looked_at(scene: Scene, spark: "SparkSession") -> None:
    scene.arrive("right", "a")
    scene.steps.append(lambda: (scene.arrive("wrong", "b"), os.kill(os.getpid(), signal.SIGINT)))
    report = scene.follow(spark, idle=None)
    marks = Arrivals(log_in(scene.results)).marks
    files = sorted(map(str, scene.folder.glob("*.parquet")))
    looked_at = [path for path in files if file_fingerprint(path, judge_fingerprint()) in marks]
    assert [one.path for one in report.inputs] == looked_at
    assert any("1 files came that were not judged" in note for note in report.notes) == (looked_at != files)
    again = scene.follow(spark)
    assert said(again) == said(check(files))


@pytest.mark.spark
def test_what_check_judged_before_is_not_judged_again(scene: Scene, spark: "SparkSession") -> None:
    scene.arrive("wrong", "a")
    judge_on_spark([scene.folder], results=scene.results, spark=spark)
    before = scene.stamps()
    scene.follow(spark)
    assert before
    assert scene.stamps() == before
    assert scene.failures


@pytest.mark.spark
@pytest.mark.long
def test_a_driver_that_is_killed_goes_on(scene: Scene) -> None:
    """With nothing lost and nothing judged twice; Ctrl-C ends it with the report."""
    command = [sys.executable, "-m", "tidegauge", "check", "--spark=local[1]", "--follow", "--results", str(scene.results)]
    scene.arrive("wrong", "a")
    with subprocess.Popen([*command, str(scene.folder)], stdout=subprocess.DEVNULL) as first:
        while not scene.stamps() and first.poll() is None:
            time.sleep(0.01)
        first.kill()
    before = scene.stamps()
    scene.arrive("right", "b")
    with subprocess.Popen([*command, "--json", str(scene.folder)], stdout=subprocess.PIPE, text=True) as second:
        while len(scene.stamps()) < 2 and second.poll() is None:
            time.sleep(0.01)
        second.send_signal(signal.SIGINT)
        assert second.stdout is not None
        out = second.stdout.read()
    assert second.returncode == 1
    assert before.items() < scene.stamps().items()
    assert f'"traces": {1000}' in out


def test_a_rule_is_explained_once_and_what_is_gone_is_not(made: Path, tmp_path: Path) -> None:
    """Without Spark: the rows of a worker."""
    path = str(shutil.copy(made / "wrong.parquet", tmp_path))
    rows = list(run_task(Task("mark", tuple(row_groups(path))), None))
    tallied = RunningTally(CheckOptions())
    first, second = list(map(str, tallied.take(rows))), list(map(str, tallied.take(rows)))
    assert len(first) == len(second) > 2
    assert all("\n  expected" in line for line in first[:-1])
    assert not any("\n" in line for line in second)
    Path(path).unlink()
    gone = list(map(str, RunningTally(CheckOptions()).take(rows)))
    assert gone[:-1] == second[:-1]
    assert list(tallied.take([])) == []


def test_a_file_without_row_groups_is_a_problem_and_counts_nothing() -> None:
    problem = Problem("a.parquet", None, "a Parquet file", "none", "write it anew")
    said_of, counted = RunningTally(CheckOptions()).take([unreadable_row("a.parquet", "mark", problem)])
    assert str(said_of) == str(problem)
    assert counted == "1 files, 0 traces, 0 events judged"


def refused(folder: Path, results: Path) -> str:
    with pytest.raises(UsageError) as error:
        follow_on_spark(folder, CheckOptions(), "local[1]", results, None, print, print)
    return str(error.value)


def test_what_cannot_be_followed_is_refused_with_what_to_do(tmp_path: Path) -> None:
    assert "seen nothing of that name" in refused(tmp_path / "none", tmp_path / "results")
    (tmp_path / "file").write_text("{}")
    assert "expected a directory that Parquet files are renamed into, seen a file" in refused(tmp_path / "file", tmp_path)
    assert "expected --results in another directory" in refused(tmp_path, tmp_path)
    (tmp_path / "file").rename(tmp_path / "a.ndjson")
    assert "seen a.ndjson; follow one file of NDJSON without --spark" in refused(tmp_path, tmp_path / "results")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["{}"], "expected --results DIR, seen none"),
        (["{}", "{}", "--results", "{}"], "expected one directory, seen 2 paths"),
        (["{}", "--results", "{}", "--topic", "orders"], "expected no --topic"),
    ],
)
def test_a_command_that_cannot_be_followed(
    arguments: list[str], says: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["check", "--follow", "--spark=local[1]", *(one.format(tmp_path) for one in arguments)]) == 2
    assert says in capsys.readouterr().err
