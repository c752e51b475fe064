"""docs/benchmarks.md is made of what was measured and says what was missed; a benchmark that fails costs no other."""

import importlib
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import pytest

from benchmarks.cluster_logs import Cluster
from benchmarks.contents import NAMES
from benchmarks.measure import Point, Report
from benchmarks.page_text import page
from benchmarks.profiling import Function, spent
from benchmarks.results import keep, kept_in
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.verdicts import Verdict

ROOT = Path(__file__).parents[2]
MACHINE = {"processor": "abacus", "cores": "2", "Python": "3.11.1"}


@pytest.fixture
def maker() -> ModuleType:
    """What makes the page with its plots. tox has Matplotlib."""
    pytest.importorskip("matplotlib")
    return importlib.import_module("benchmarks.page")


def a_report(rate: float = 5_000_000, bar: float = 1) -> Report:
    """A timing on a curve, and a ratio of 2."""
    report = Report("A race", machine=MACHINE, day="2001-02-03", loads=[0.1, 0.2], options="--seed 7")
    report.add("a hare", int(rate), "events", [0.5, 1, 2], Point("events", "hares", 1_000_000))
    report.ratio("a hare, times a tortoise", 2, bar)
    return report


def test_the_committed_page_is_made_of_the_committed_numbers() -> None:
    """Else: ./run bench --render."""
    assert (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8") == page(kept_in(ROOT / "docs"))


def test_the_committed_plots_are_drawn_of_the_committed_numbers(maker: ModuleType) -> None:
    """All of them, and no other."""
    made = maker.rendered(kept_in(ROOT / "docs"))
    found = [ROOT / "docs" / "benchmarks.md", *(ROOT / "docs" / "benchmarks").iterdir()]
    assert {path.relative_to(ROOT / "docs").as_posix(): path.read_text(encoding="utf-8") for path in found} == made


def test_what_is_kept_is_of_a_benchmark_that_is_listed_and_is_there() -> None:
    """A benchmark that was renamed would leave its numbers behind."""
    assert not [name for name in NAMES if not (ROOT / "benchmarks" / f"{name}.py").is_file()]
    kept = list(kept_in(ROOT / "docs"))
    assert kept == [name for name in NAMES if name in kept]
    assert kept


def test_a_benchmark_that_nobody_measured_is_named() -> None:
    """A section that is missing says nothing."""
    assert f"Not measured yet: {', '.join(NAMES[1:])}." in page({NAMES[0]: a_report()})
    assert "Not measured yet" not in page({name: a_report() for name in NAMES})


def test_a_report_is_the_same_after_it_was_kept() -> None:
    """Points, too."""
    report = a_report()
    assert Report.of_json(json.loads(json.dumps(report.as_json()))) == report


def test_a_bar_that_was_missed_is_missed_on_the_page() -> None:
    """At the top, and in its row; one that was reached is not."""
    missed = page({NAMES[0]: a_report(bar=3), NAMES[1]: a_report()})
    assert "**1 of 2 bars are reached.**" in missed
    assert f"MISSED: a hare, times a tortoise ({NAMES[0]})." in missed
    assert "| a hare, times a tortoise | 2.00 | >= 3: **MISSED** |" in missed
    assert "| a hare, times a tortoise | 2.00 | >= 1: reached |" in missed
    assert "MISSED" not in page({NAMES[1]: a_report()})


def test_a_bar_that_is_a_most_is_missed_above_it() -> None:
    """Twice the time, where once is the most."""
    report = a_report()
    report.ratio("tortoises", 2, 1, most=True)
    assert "| tortoises | 2.00 | <= 1: **MISSED** |" in page({NAMES[0]: report})


def test_machines_that_differ_are_told_apart() -> None:
    """Else a rate would be read as that of another processor."""
    same = page({NAMES[0]: a_report(), NAMES[1]: a_report()})
    other = replace(a_report(), machine={**MACHINE, "processor": "slide rule"})
    two = page({NAMES[0]: a_report(), NAMES[1]: other})
    assert "| processor | abacus |" in same
    assert f"| the machine | {NAMES[0]} | {NAMES[1]} |" in two
    assert "| processor | abacus | slide rule |" in two


@pytest.mark.parametrize(("loads", "busy"), [([0.1, 3.9], False), ([5.0, 0.1], False), ([5.0, 4.5], True)])
def test_a_machine_that_others_kept_busy_is_said_to_be(loads: list[float], busy: bool) -> None:
    """Two cores: what the benchmark makes itself is no reason."""
    assert ("Others kept the machine busy" in page({NAMES[0]: replace(a_report(), loads=loads)})) is busy


@pytest.mark.parametrize(("bar", "said"), [(1, "reached"), (3, "**MISSED**")])
def test_a_busy_machine_decides_no_bar(bar: float, said: str) -> None:
    """Load once slowed TLC down five times and the judge twice: a bar seemed reached that a quiet machine misses."""
    busy = page({NAMES[0]: replace(a_report(bar=bar), loads=[9.9, 10.9])})
    assert "**0 of 1 bars are reached.** 1 are undecided: others kept the machine busy meanwhile." in busy
    assert f"| 2.00 | >= {bar}: {said}, but undecided on a busy machine |" in busy


def test_plots_are_the_same_bytes_for_the_same_numbers_and_others_for_others(maker: ModuleType) -> None:
    """Neither a date nor a random id."""
    (one,) = (maker.rendered({NAMES[0]: a_report()})[path] for path in ("benchmarks/events.svg",))
    assert maker.rendered({NAMES[0]: a_report()})["benchmarks/events.svg"] == one
    assert maker.rendered({NAMES[0]: a_report(rate=1_000_000)})["benchmarks/events.svg"] != one
    assert "hares" in one
    assert "on a busy machine" not in one
    assert "on a busy machine" in maker.rendered({NAMES[0]: replace(a_report(), loads=[9.9, 10.9])})["benchmarks/events.svg"]
    assert "date" not in one


def test_a_benchmark_that_fails_keeps_what_stood_there_and_costs_no_other(
    maker: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named, and the command ends with 2."""
    first, second = NAMES[:2]
    keep(tmp_path, {first: a_report(rate=1)})
    monkeypatch.setattr(maker, "measured", lambda one, _: None if one.name == first else a_report(rate=2))
    assert maker.main([first, second], tmp_path) == 2
    assert first in capsys.readouterr().err
    kept = kept_in(tmp_path)
    assert {name: report.timings[0].work for name, report in kept.items()} == {first: 1, second: 2}
    assert (tmp_path / "benchmarks.md").read_text(encoding="utf-8") == page(kept)


def test_a_missed_bar_is_an_exit_code_where_that_is_asked_for(maker: ModuleType, tmp_path: Path) -> None:
    """Without measuring, too."""
    keep(tmp_path, {NAMES[0]: a_report(bar=3)})
    assert maker.main(["--render"], tmp_path) == 0
    assert maker.main(["--render", "--strict"], tmp_path) == 1
    keep(tmp_path, {NAMES[0]: a_report()})
    assert maker.main(["--render", "--strict"], tmp_path) == 0
    keep(tmp_path, {NAMES[0]: replace(a_report(), loads=[9.9, 10.9])})
    assert maker.main(["--render", "--strict"], tmp_path) == 1


def test_a_benchmark_that_nobody_knows_is_bad_usage(maker: ModuleType, tmp_path: Path) -> None:
    """Nothing is measured."""
    with pytest.raises(SystemExit, match="2"):
        maker.main(["tortoise"], tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_stage_that_is_not_there_is_an_error() -> None:
    """A function that was renamed would take no time."""
    assert spent(a_report, {"adding": Function("measure.py", "add")})["adding"] > 0
    with pytest.raises(SystemExit, match="tortoise"):
        spent(a_report, {"racing": Function("measure.py", "tortoise")})


def test_made_logs_are_those_of_brokers_that_do_nothing_wrong(tmp_path: Path) -> None:
    """The same bytes for the same seed; the traces of all topics are judged at once, and conform."""
    for copy in ("one", "same"):
        Cluster(tmp_path / copy, partitions=8, seed=5).run(size=400_000, rate=300)
    files = [path.relative_to(tmp_path / "one") for path in sorted((tmp_path / "one").glob("n*/*.log"))]
    assert [(tmp_path / "one" / file).read_bytes() for file in files] == [
        (tmp_path / "same" / file).read_bytes() for file in files
    ]
    report = check([tmp_path / "one"])
    assert report.verdict is Verdict.PASS
    assert not report.missing
    assert len({trace.tp.rpartition("-")[0] for judged in report.judged for trace in judged.batch.traces or ()}) == 4
    assert len(report.judged) == 1
