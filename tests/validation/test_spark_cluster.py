"""The job that disturbs a cluster: it notices what goes wrong, and a cluster does what local[2] does."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.conformance.engine.compiled import compiled, fingerprint
from tidegauge.conformance.engine.machine_code import FILES, files_of
from tidegauge.spark_check import Order, generate_on_spark, judge_on_spark
from tidegauge.spark_check.generation import write_part
from tidegauge.spark_check.worker import run_task, tasks_of
from tidegauge.traces.formats.parquet import row_groups
from validation.spark_cluster.commands import Checked
from validation.spark_cluster.faults import Scene, _outcome
from validation.spark_cluster.standalone import Cluster

ORDER = Order(walks=20_000, steps=10, parts=2)
RULE = {"rule": "HW-02", "verdict": "PASS", "held": 7, "failed": 0, "undecided": 0, "missing": [], "failed_traces": 0}
REPORT = {"traces": 3, "events": 9, "lost": 0, "rules": [RULE], "seconds": 1.0, "notes": []}
RIGHT = Checked(0, "", REPORT)


def outcome(found: Checked, results: Path, in_time: bool = True) -> str:
    scene = Scene(Cluster(results), results, RIGHT, ())
    return "; ".join(_outcome(scene, found, results, "", in_time).wrong)


def test_a_fault_that_changes_nothing_stands(tmp_path: Path) -> None:
    assert outcome(RIGHT, tmp_path) == ""


@pytest.mark.parametrize("field", ["held", "failed", "undecided", "failed_traces", "verdict"])
def test_another_tally_is_noticed(field: str, tmp_path: Path) -> None:
    assert "other totals" in outcome(replace(RIGHT, report=REPORT | {"rules": [RULE | {field: 8}]}), tmp_path)


@pytest.mark.parametrize("field", ["traces", "events", "lost"])
def test_lost_events_are_noticed(field: str, tmp_path: Path) -> None:
    assert "other totals" in outcome(replace(RIGHT, report=REPORT | {field: 1}), tmp_path)


def test_a_run_that_fails_or_came_too_early_is_noticed(tmp_path: Path) -> None:
    assert "ended with 2 instead of 0: why" in outcome(Checked(2, "why", None), tmp_path)
    assert "before anything happened" in outcome(RIGHT, tmp_path, in_time=False)


def test_results_that_stand_there_twice_are_noticed(tmp_path: Path) -> None:
    path = write_part(ORDER.table(), tmp_path, replace(ORDER, walks=100), 0).path
    results = tmp_path / "results"
    results.mkdir()
    (task,) = tasks_of("0123456789abcdef", row_groups(path), 10**9)
    list(run_task(task, str(results)))
    assert outcome(RIGHT, results) == ""
    shutil.copy(results / task.name, results / "again.parquet")
    assert "1 row groups are in the results twice" in outcome(RIGHT, results)


@pytest.mark.spark
@pytest.mark.long
def test_a_cluster_judges_as_local_and_compiles_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The machine code that a worker keeps is, byte for byte, what the driver made."""
    pytest.importorskip("pyspark")
    monkeypatch.setenv("SPARK_LOCAL_IP", "127.0.0.1")
    compiled()
    with Cluster(tmp_path / "cluster") as cluster:
        assert cluster.alive == 2
        generate_on_spark(tmp_path / "walks", ORDER, cluster.master)
        totals = judge_on_spark([tmp_path / "walks"], cluster.master)
    here = judge_on_spark([tmp_path / "walks"], "local[2]")
    assert (totals.rules, totals.events_judged, totals.reconciles) == (here.rules, here.events_judged, True)
    kept = [folder for folder in (tmp_path / "cluster").glob("worker-*/cache/tidegauge/*") if folder.is_dir()]
    assert {folder.name for folder in kept} == {fingerprint()}
    for folder in kept:
        assert {file.name: file.read_bytes() for file in folder.glob(FILES)} == files_of(fingerprint())
