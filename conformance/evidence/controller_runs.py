"""`python -m tidegauge.conformance.evidence.controller_runs`: docs/controller-runs.md, the shortest run of each finding at
the controller, step by step.

Rules of this file

1. The run is the explorer's, over the real impl.control, with the switches and bounds of the model: as long as the one that
   TLC finds, or it is an error.
2. A model whose cfg puts in another operator has no run here: impl has no switch for that.
"""

import sys
from collections.abc import Iterator
from pathlib import Path

from tidegauge.impl.errors import TidegaugeError
from tidegauge.impl.explored.control_cluster import initial, view, violated
from tidegauge.impl.explored.control_steps import search
from tidegauge.impl.explored.describe_control import run_text
from tidegauge.spec.checker.models import Model, load_models
from tidegauge.traces.model.bounds import control_bounds_of, control_profile_of

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "controller-runs.md"
HEAD = """# Shortest runs of the findings at the controller

Written by `python -m tidegauge.conformance.evidence.controller_runs`. Each model of `spec/models/MCController` that must
fail, with the run in which it does: the reference's own controller, only the switches of that finding on, as many states as
TLC needs. A step shows its label and the lines that it changed. What the findings mean is in [findings.md](findings.md).
"""


class RunError(TidegaugeError):
    """A run that is not the model's: what was expected, what was seen."""


def models() -> tuple[Model, ...]:
    """Those that must fail, and that impl has the switches of."""
    failing = (model for model in load_models() if model.module == "MCController" and model.expect != "success")
    return tuple(model for model in failing if not model.config().substitutions)


def section(model: Model) -> str:
    """The run of one model."""
    start = initial(control_bounds_of(model), control_profile_of(model))
    found = search(start).first_violation(lambda state: violated(state, (model.property,)))
    if found is None or len(found.states) != model.length:
        seen = "none" if found is None else f"{len(found.states)} states"
        raise RunError(f"{model.cfg}: expected {model.property} to fail after {model.length} states; seen {seen}")
    text = run_text([view(state) for state in found.states], found.labels)
    claim = model.config().claim
    return f"## {model.name}\n\n{claim} `{model.property}` fails in the last state.\n\n```\n{text}\n```\n"


def page() -> Iterator[str]:
    """All of it, a section at a time."""
    yield HEAD
    yield from map(section, models())


def main(path: Path = PAGE) -> int:
    """Write it."""
    path.write_text("\n".join(page()), encoding="utf-8")
    print(f"{path}: {len(models())} runs")
    return 0


if __name__ == "__main__":
    sys.exit(main())
