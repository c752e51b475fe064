"""What was measured, as docs/benchmarks.json keeps it: a report for each benchmark, the last one."""

import json
from collections.abc import Mapping
from pathlib import Path

from benchmarks.contents import NAMES
from benchmarks.measure import Report

KEPT = "benchmarks.json"


def kept_in(docs: Path) -> dict[str, Report]:
    """What was measured, by the name of the benchmark."""
    path = docs / KEPT
    said = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    return {name: Report.of_json(report) for name, report in said.items()}


def keep(docs: Path, kept: Mapping[str, Report]) -> None:
    """Write what was measured, in the order of the list."""
    said = {name: kept[name].as_json() for name in NAMES if name in kept}
    (docs / KEPT).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
