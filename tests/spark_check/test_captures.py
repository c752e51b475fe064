"""A directory of captures on Spark: the same report as without."""

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.spark_check.conftest import fails
from tests.spark_check.right_and_wrong import right_and_wrong
from tests.spark_check.test_work import damage
from tidegauge.cli.main import main
from tidegauge.conformance.checking import sharded
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.spark_check import check as spark_check
from tidegauge.spark_check.check import captures_in, check_on_spark
from tidegauge.traces.kafka_logs.capture import FOLDER, shipped
from tidegauge.traces.kafka_logs.discovery import shards
from tidegauge.traces.kafka_logs.parsing.lines import READABLE
from tidegauge.traces.problems import Problem
from tidegauge.util.input_limits import LONGEST_LINE_VARIABLE


@pytest.fixture
def small_shares(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every capture is large, and has several shares."""
    monkeypatch.setattr(sharded, "LARGE_BYTES", 1)
    monkeypatch.setattr(sharded, "OF_A_SHARE", 400_000)


def said(report: Report) -> object:
    return (
        report.verdict,
        report.exit_code,
        [(one.rule.id, one.verdict, one.tally) for one in report.rules],
        [(one.path, one.verdict, one.events, one.missing, one.situations, one.profiles) for one in report.inputs],
        sorted((one.path, one.rule.id, one.at) for one in report.explanations),
    )


@pytest.mark.spark
def test_captures_are_judged_as_without_spark() -> None:
    """One task per capture; a broken one among them."""
    paths = [FOLDER / "3.4.0", shipped()["4.2.0/k-epoch-jump-control"]]
    report = check_on_spark(paths, CheckOptions(), "local[2]")
    assert said(report) == said(check([shipped()["3.4.0/b-kill-leader"], paths[1]]))


@pytest.mark.spark
@pytest.mark.usefixtures("small_shares")
def test_a_large_capture_is_judged_in_shares(tmp_path: Path) -> None:
    """A task each, with the tally of every rule; those without a failure are not judged again.

    A damaged result is none, nor is one of files with another content.
    """
    paths = [tmp_path / "b-kill-leader", shipped()["4.2.0/a-steady"]]
    shutil.copytree(shipped()["3.4.0/b-kill-leader"], paths[0])
    counts, whole = [sharded.share_count(path) for path in paths], check(paths)
    assert min(counts) > 2
    results = tmp_path / "results"
    first = check_on_spark(paths, CheckOptions(), "local[2]", results)
    kept = sorted(results.glob("logs-*/*.share"))
    kept[0].write_bytes(b"no share")
    again = check_on_spark(paths, CheckOptions(), "local[2]", results)
    assert said(first) == said(whole) == said(again)
    before = [int(note.split(" ")[0]) for note in again.notes if "had been judged before" in note]
    assert sum(before) == len(kept) - 1 == sum(counts) - 1 - sum(1 for one in first.inputs if one.verdict is Verdict.FAIL)
    assert [path.name.split("-")[0] for path in results.iterdir()] == ["logs", "logs"]
    checkpoint = next(paths[0].glob("n1/replication-offset-checkpoint"))
    checkpoint.write_text(checkpoint.read_text().replace("alpha", "omega"))
    changed = check_on_spark(paths[:1], CheckOptions(), "local[2]", results)
    assert not [note for note in changed.notes if "judged before" in note]
    assert said(changed) == said(check(paths[:1]))


@pytest.mark.usefixtures("small_shares")
def test_a_run_that_failed_goes_on_with_what_it_split(
    tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """No range is read again but what was lost; nothing is left at the end, or where others could have written."""
    capture, results = shipped()["4.2.0/a-steady"], tmp_path / "results"
    split = list[str]()
    read_lines = shards.read_lines

    def reading(path: Path, *arguments: Any) -> Any:
        split.append(path.name)
        return read_lines(path, *arguments)

    def run() -> Report:
        split.clear()
        return check_on_spark([capture], CheckOptions(), "local[2]", results)

    def run_that_fails() -> list[Path]:
        with monkeypatch.context() as patch:
            patch.setattr(spark_check, "_check_and_keep", fails)
            with pytest.raises(OSError, match="connection lost"):
                run()
        return sorted(results.glob(f"logs-*/{spark_check.SPLIT}*"))

    monkeypatch.setattr(shards, "read_lines", reading)
    (folder,) = run_that_fails()
    logs = [*split]
    lost = next(folder.glob("*/0"))
    shutil.rmtree(lost)
    again = run()
    assert len(split) == 1 < len(logs)
    assert said(again) == said(check([capture]))
    assert not list(results.glob(f"logs-*/{spark_check.SPLIT}*"))
    shutil.rmtree(results)
    (folder,) = run_that_fails()
    folder.chmod(0o777)
    run()
    assert sorted(split) == sorted(logs), "others may have written there what would be executed"


@pytest.mark.spark
def test_parquet_is_judged_as_without_spark(tmp_path: Path) -> None:
    """Right walks, wrong ones that are explained, a damaged row group and a file that is none; by another profile, too."""
    right_and_wrong(tmp_path, 3000)
    (tmp_path / "hurt.parquet").write_bytes((tmp_path / "right.parquet").read_bytes())
    damage(str(tmp_path / "hurt.parquet"), group=0)
    (tmp_path / "none.parquet").write_bytes(b"PAR1 and no more")
    paths = sorted(tmp_path.glob("*.parquet"))
    for how in (CheckOptions(), CheckOptions(profile="hw-only")):
        assert said(check_on_spark([tmp_path], how, "local[2]")) == said(check(paths, how))


@pytest.mark.spark
def test_uris_of_files_are_taken_and_a_run_goes_on(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From generating to the verdict by file: URIs; the second time nothing is judged again."""
    walks, results = (tmp_path / "my walks").as_uri(), (tmp_path / "results").as_uri()
    assert main(["generate", "--spark=local[2]", "--traces", "2000", "--parts", "2", "--out", walks]) == 0
    assert "2,000 distinct interleavings" in capsys.readouterr().out
    command = ["check", "--spark=local[2]", "--results", results, "--json", walks]
    first, again = ((main(command), json.loads(capsys.readouterr().out)) for _ in range(2))
    assert (first[0], first[1]["traces"], first[1]["rules"]) == (again[0], 2000, again[1]["rules"])
    assert (first[1]["notes"], again[1]["notes"]) == ([], ["2 of 2 row groups had been judged before"])


def test_a_directory_of_captures_is_its_captures(tmp_path: Path) -> None:
    """However deep; a capture is one, whatever its nodes' folders are like; what is none stays what it is."""
    assert set(captures_in(FOLDER)[0]) == set(shipped().values())
    assert captures_in(FOLDER / "4.2.0" / "d-unclean") == ([FOLDER / "4.2.0" / "d-unclean"], [])
    (tmp_path / "a" / "n1" / "logs").mkdir(parents=True)
    (tmp_path / "a" / "n1" / "logs" / "server.log").write_text("x")
    assert captures_in(tmp_path) == ([tmp_path / "a"], [])
    assert captures_in(tmp_path / "nothing") == ([tmp_path / "nothing"], [])


def test_no_capture_of_a_directory_is_passed_over(tmp_path: Path, tasks_here: list[object]) -> None:
    """One whose logs are known by their content only, and one behind a link that leads out, which is not followed."""
    shutil.copytree(shipped()["4.2.0/a-steady"], tmp_path / "all" / "a")
    shutil.copytree(shipped()["4.2.0/k-epoch-jump"], tmp_path / "elsewhere")
    for log in (tmp_path / "elsewhere").rglob("*.log.gz"):
        (tmp_path / "all" / "b" / log.parent.name).mkdir(parents=True, exist_ok=True)
        text = gzip.decompress(log.read_bytes())
        (tmp_path / "all" / "b" / log.parent.name / f"{log.name.partition('.')[0]}.txt").write_bytes(text)
    report = check_on_spark([tmp_path / "all"], CheckOptions(), "local[2]")
    assert [one.verdict for one in report.inputs] == [Verdict.PASS, Verdict.FAIL]
    shutil.rmtree(tmp_path / "all" / "b")
    (tmp_path / "all" / "b").symlink_to(tmp_path / "elsewhere")
    report = check_on_spark([tmp_path / "all"], CheckOptions(), "local[2]")
    assert (report.exit_code, [problem.path for one in report.inputs for problem in one.problems]) == (2, ["b"])


@pytest.mark.usefixtures("small_shares")
def test_a_result_is_kept_only_for_what_would_be_read_again(
    tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not for another bound of lines, another reader, or a log that could not be read."""
    capture, results = shipped()["4.2.0/a-steady"], tmp_path / "results"

    def judged_before() -> bool:
        return any("judged before" in note for note in check_on_spark([capture], CheckOptions(), "local[2]", results).notes)

    def failing(path: Path, *arguments: Any) -> Any:
        file = read_lines(path, *arguments)
        if path.name != "server.log.gz":
            return file
        return file._replace(problems=[Problem("server.log", None, READABLE, "a stale handle", "try again")])

    read_lines = shards.read_lines
    with monkeypatch.context() as patch:
        patch.setattr(shards, "read_lines", failing)
        assert [judged_before(), judged_before()] == [False, False]
    assert [judged_before(), judged_before()] == [False, True]
    with monkeypatch.context() as patch:
        patch.setenv(LONGEST_LINE_VARIABLE, "600")
        assert not judged_before()
    assert judged_before()
    monkeypatch.setattr(spark_check, "_reader_text", lambda: "another")
    assert not judged_before()


@pytest.mark.usefixtures("small_shares")
def test_two_runs_over_one_directory_of_results_leave_each_other_alone(
    tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second splits into a folder of its own, and removes that one only."""
    capture, results = shipped()["4.2.0/a-steady"], tmp_path / "results"
    check_one = spark_check._check_and_keep
    others: list[Report] = []

    def judging(*arguments: Any, **named: Any) -> Report:
        if not others:
            monkeypatch.setattr(spark_check, "_check_and_keep", check_one)
            others.append(check_on_spark([capture], CheckOptions(), "local[2]", results))
        return check_one(*arguments, **named)

    monkeypatch.setattr(spark_check, "_check_and_keep", judging)
    report = check_on_spark([capture], CheckOptions(), "local[2]", results)
    assert said(report) == said(others[0]) == said(check([capture]))
    assert not list(results.glob(f"logs-*/{spark_check.SPLIT}*"))


@pytest.mark.usefixtures("small_shares")
def test_what_was_split_before_logs_grew_is_removed(
    tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    shutil.copytree(shipped()["4.2.0/a-steady"], tmp_path / "logs")

    with monkeypatch.context() as patch:
        patch.setattr(spark_check, "_check_and_keep", fails)
        with pytest.raises(OSError, match="connection lost"):
            check_on_spark([tmp_path / "logs"], CheckOptions(), "local[2]", tmp_path / "results")
    assert list(tmp_path.glob(f"results/logs-*/{spark_check.SPLIT}"))
    (tmp_path / "logs" / "n1" / "controller.log").write_text("[2025-01-01 00:00:00,000] INFO x (kafka.x.Y)\n")
    check_on_spark([tmp_path / "logs"], CheckOptions(), "local[2]", tmp_path / "results")
    assert not list(tmp_path.glob(f"results/logs-*/{spark_check.SPLIT}"))
