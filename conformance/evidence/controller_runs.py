"""`python -m tidegauge.conformance.evidence.controller_runs`: the shortest run of each finding at the controller, step by
step in docs/controller-runs.md, and message by message as scenarios.

Rules of this file

1. The run is the explorer's, over the real impl.control, with the switches and bounds of the model: as long as the one that
   TLC finds, or it is an error.
2. A model whose cfg puts in another operator has no run here: impl has no switch for that.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tidegauge.conformance.evidence import finding_table
from tidegauge.conformance.evidence.controller_scenarios import models, run_of, scenario_of, shown
from tidegauge.conformance.evidence.exported import DIRECTORY, file_stem
from tidegauge.impl.explored.control_cluster import view
from tidegauge.impl.explored.describe_control import run_text
from tidegauge.spec.checker.models import Model

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "controller-runs.md"
HEAD = """# Shortest runs of the findings at the controller

Written by `python -m tidegauge.conformance.evidence.controller_runs`. Each model of `spec/models/MCController` that must
fail, with the run in which it does: the reference's own controller, only the switches of that finding on, as many states as
TLC needs. A step shows its label and the lines that it changed. What the findings mean is in [findings.md](findings.md). The
same runs message by message, with what the judge says, are [scenarios](../conformance/scenarios/models).

What stands behind each finding; the bounds of a repaired model contain the run that fails:
"""


def section(model: Model) -> str:
    """The run of one model."""
    found = run_of(model)
    text = run_text([view(state) for state in found.states], found.labels)
    claim = model.config().claim
    return f"## {model.name}\n\n{claim} `{model.property}` fails in the last state.\n\n```\n{text}\n```\n"


def page() -> Iterator[str]:
    """All of it, a section at a time."""
    yield HEAD
    yield finding_table.table()
    yield from map(section, models())


def scenario_path(model: Model, directory: Path, *, repaired: bool) -> Path:
    """Where the scenario of a model is kept."""
    return directory / f"{file_stem(model)}{'-repaired' if repaired else ''}.txt"


def main(path: Path = PAGE, directory: Path = DIRECTORY) -> int:
    """Write it, and the scenarios."""
    path.write_text("\n".join(page()), encoding="utf-8")
    chosen = list(shown())
    for model, repaired in chosen:
        text = scenario_of(model, repaired=repaired)
        scenario_path(model, directory, repaired=repaired).write_text(text, encoding="utf-8")
    print(f"{path}: {len(models())} runs; {directory}: {len(chosen)} scenarios")
    return 0


if __name__ == "__main__":
    sys.exit(main())
