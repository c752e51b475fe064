"""A new decision of impl.rules has a proof, a row of the catalog and a fault, or the suite says which of them it lacks."""

import re
import tomllib
from collections.abc import Collection, Mapping
from pathlib import Path

import tidegauge
from tidegauge.conformance.engine.compiled import functions_of
from tidegauge.impl import rules
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import Rules

ROOT = Path(tidegauge.__file__).parent
LOOPS = {"count_below", "count_at_most", "lowest_counted"}
"""Loops that rules share: each has a contract of its own in the proofs, and decides nothing."""

LACKING: Mapping[str, Collection[str]] = {
    "proof": (),
    "row": ("counts_for_high_watermark", "fetch_error", "last_caught_up_time", "accepts_epoch_response"),
    "fault": (
        *("latest_epoch", "end_offset_for", "epoch_for_offset", "truncate_from_start_covers", "batches_accepted"),
        *("request_error", "fetch_error", "accepts_epoch_response", "initial_fetch_offset", "forgets_log_ends"),
        *("high_watermark_after_log_start", "under_min_isr", "is_caught_up", "last_caught_up_time"),
    ),
}
"""What older rules lack: other rules' rows, or faults of their callers and switches of a profile, stand for them. These
lists may only shrink.
"""


def lacking(names: Collection[str]) -> dict[str, set[str]]:
    """Which of the rules have no proof that names them, no row, no wrong version."""
    catalog = tomllib.loads((ROOT / "catalog.toml").read_text(encoding="utf-8"))
    rows = {row.get("impl") for kind, kinds in catalog.items() if kind != "bug" for row in kinds.values()}
    proofs = "\n".join(path.read_text(encoding="utf-8") for path in (ROOT / "spec" / "proofs").rglob("*.py"))
    return {
        "proof": {name for name in names if not re.search(rf"\b{name}\b", proofs)},
        "row": {name for name in names if f"impl.rules:{name}" not in rows},
        "fault": set(names) - {fault.rule for fault in FAULTS.values()},
    }


def test_every_function_of_the_rules_is_a_decision_that_can_be_replaced() -> None:
    """Or a loop: else no fault, no switch and no mutant could reach it."""
    functions = functions_of(rules).keys()
    assert functions - LOOPS == set(Rules._fields)


def test_a_new_rule_has_a_proof_a_row_and_a_fault() -> None:
    """CONTRIBUTING, "A decision of the protocol", says where they go."""
    assert lacking(Rules._fields) == {what: set(names) for what, names in LACKING.items()}


def test_a_rule_that_has_none_of_them_is_noticed() -> None:
    assert lacking(["a_new_rule"]) == {"proof": {"a_new_rule"}, "row": {"a_new_rule"}, "fault": {"a_new_rule"}}
