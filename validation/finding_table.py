"""The evidence of each finding at the controller, a row for each of its models; an empty cell would show.

Rules of this file

1. Nothing is written here: a cell is read from spec/models.toml, the cfg, the switches of the profile, or the golden trace.
2. A finding is named by the first word of its model's claim: F4.
"""

import re
from pathlib import Path
from typing import NamedTuple

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.from_tlc.tlc_runs import file_stem
from tidegauge.spec.tlc.models import Model, find_model
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from validation import golden
from validation.controller_scenarios import UNSEEN, shown, switches_of

HEAD = """| finding | model as it is | repaired model | switch of the reference | scenario | the judge |
|---|---|---|---|---|---|
"""


class Row(NamedTuple):
    """A model that fails, what it is held against, and the rules that its trace breaks, as it is and repaired."""

    finding: str
    fails: Model
    holds: Model
    switches: tuple[str, ...]
    broken: tuple[str, ...]
    broken_repaired: tuple[str, ...]

    def __str__(self) -> str:
        """Return the row of the page."""
        stem = file_stem(self.fails)
        verdict = ", ".join(self.broken) or f"no rule: {UNSEEN[self.fails.name]}"
        cells = (
            self.finding,
            f"`{self.fails.name}`: {self.fails.property} fails, {self.fails.length} states",
            f"`{self.holds.name}`: holds, {self.holds.distinct or 0:,} states",
            ", ".join(f"`{switch}`" for switch in self.switches),
            f"`{stem}`",
            verdict + (f"; repaired: {', '.join(self.broken_repaired)}" if self.broken_repaired else ""),
        )
        return f"| {' | '.join(cells)} |"


def finding_of(model: Model) -> str:
    """Return F4 of "F4. Replicas that ..", "" where the claim names no finding."""
    named = re.match(r"F\d+\b", model.config().claim)
    return named[0] if named else ""


def rows(directory: Path = golden.DIRECTORY) -> tuple[Row, ...]:
    """Return a row for each model, in the order of the findings."""
    models = sorted({model.name: model for model, _ in shown() if finding_of(model)}.values(), key=_number)
    return tuple(
        Row(
            finding_of(model),
            model,
            find_model(model.repaired),
            switches_of(model),
            broken_by(directory, file_stem(model)),
            broken_by(directory, f"{file_stem(model)}-repaired"),
        )
        for model in models
    )


def table() -> str:
    """Return all rows, as docs/findings.md has them."""
    return HEAD + "\n".join(map(str, rows())) + "\n"


def broken_by(directory: Path, stem: str) -> tuple[str, ...]:
    """Return the rules that the golden trace of this scenario breaks; its name is fails-STEM where there are any."""
    # The name of a golden trace says whether a rule fails; exactly one of the two must exist.
    paths = [path for name in (f"fails-{stem}", stem) if (path := directory / f"{name}.ndjson").exists()]
    if len(paths) != 1:
        raise LookupError(f"{directory}: expected {stem}.ndjson or fails-{stem}.ndjson, seen {len(paths)} of them")
    (trace,) = ndjson.read(paths[0]).traces
    return tuple(sorted({failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}))


def _number(model: Model) -> int:
    return int(finding_of(model)[1:])
