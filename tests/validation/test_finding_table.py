"""What stands behind each finding at the controller: every cell is filled, and is what it says."""

import re
from pathlib import Path

import pytest

from tidegauge.conformance.from_tlc.tlc_runs import DIRECTORY, file_stem
from tidegauge.impl.explorer.controller_model import (
    control_successors,
    control_view,
    control_violation,
    initial_control_cluster,
)
from tidegauge.impl.profiles import ELR, ELR_REPAIRED
from tidegauge.spec.tlc.models import Model, find_model
from tidegauge.traces.from_model.impl_walks import control_bounds_of, control_profile_of
from validation.controller_scenarios import UNSEEN, models, run_of
from validation.finding_table import Row, broken_by, finding_of, rows, table

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
FINDINGS = tuple(f"F{number}" for number in range(4, 14))
ROWS = rows()
SLOW = frozenset({"GhostElrAlone", "EmptyDirectoryLeads"})


def test_every_finding_of_the_page_has_a_row_and_every_row_a_section() -> None:
    """In docs/findings.md under its number, and the other way round."""
    sections = re.findall(r"^## (F\d+)\. ", (DOCS / "findings.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert tuple(name for name in sections if name not in {"F1", "F2", "F3"}) == FINDINGS
    assert tuple(dict.fromkeys(row.finding for row in ROWS)) == FINDINGS
    assert {model.name for model in models() if finding_of(model)} == {row.fails.name for row in ROWS}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.fails.name)
def test_no_cell_is_empty(row: Row) -> None:
    """A model that fails, one that holds, a switch, scenarios and traces of both, and a verdict or why there is none."""
    assert row.fails.expect == "safety failure"
    assert row.fails.length
    assert row.holds.expect == "success"
    assert row.holds.distinct
    assert control_profile_of(row.holds) == ELR_REPAIRED._replace(name="elr")
    assert row.fails.property in row.holds.config().checked
    assert row.switches
    assert all(getattr(ELR, switch) and not getattr(ELR_REPAIRED, switch) for switch in row.switches)
    for stem in (file_stem(row.fails), f"{file_stem(row.fails)}-repaired"):
        assert (DIRECTORY / f"{stem}.txt").exists()
    assert bool(row.broken) != (row.fails.name in UNSEEN)
    assert not row.broken_repaired


def test_the_switches_of_all_findings_are_those_that_the_repaired_profile_turns_off() -> None:
    """No repair is without a finding."""
    off = {name for name in ELR._fields if name != "name" and getattr(ELR, name) != getattr(ELR_REPAIRED, name)}
    assert {switch for row in ROWS for switch in row.switches} == off


@pytest.mark.parametrize("finding", FINDINGS)
def test_the_reference_replays_each_finding_with_its_switch_on_and_off(finding: str) -> None:
    """In tests/impl/controller, by the test's name."""
    text = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests" / "impl" / "controller").glob("test_*.py"))
    assert f"def test_{finding.lower()}_" in text


@pytest.mark.parametrize(
    "row",
    [pytest.param(row, marks=pytest.mark.long if row.fails.name in SLOW else (), id=row.fails.name) for row in ROWS],
)
def test_the_bounds_of_the_repaired_model_contain_the_run_that_fails(row: Row) -> None:
    """Step by step, with the finding's switch on: that the repaired one holds is not because it stops short of it."""
    assert is_within(row.fails, row.holds)


def test_bounds_that_are_too_narrow_are_told_apart() -> None:
    """F9's repaired model has no process that dies, which F13's run needs."""
    assert not is_within(find_model("SwitchedOnLeaderless"), find_model("RepairedFeature"))


def is_within(failing: Model, repaired: Model) -> bool:
    """Whether the run of one can be taken within the bounds of the other, to a state in which the property fails."""
    found = run_of(failing)
    state = initial_control_cluster(control_bounds_of(repaired), control_profile_of(failing))
    for label, expected in zip(found.labels, found.states[1:], strict=True):
        after = next((after for taken, after in control_successors(state) if taken == label), None)
        if after is None or control_view(after) != control_view(expected):
            return False
        state = after
    return control_violation(state, (failing.property,)) is not None


def test_a_trace_that_is_missing_is_an_error(tmp_path: Path) -> None:
    """So is one that is kept under both names."""
    with pytest.raises(LookupError, match=r"expected ghost-elr.ndjson or fails-ghost-elr.ndjson, seen 0 of them"):
        broken_by(tmp_path, "ghost-elr")


def test_the_table_is_on_the_page() -> None:
    """As it is made from what is kept."""
    assert table() in (DOCS / "findings.md").read_text(encoding="utf-8")
