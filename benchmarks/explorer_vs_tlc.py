"""The explorer of the implementation against TLC on one worker: the same bounded models, the same states."""

import sys
from typing import NamedTuple

from benchmarks.measure import Report, parser
from impl.explore import Bounds, explore
from spec.models import find_model
from spec.tlc import Outcome, Result, run_tlc


class Case(NamedTuple):
    """A model of spec/models.toml and the bounds that are the same."""

    model: str
    bounds: Bounds


CASES = (
    Case("Small", Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)),
    Case("Epochs", Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)),
)


def tlc(name: str) -> Result:
    model = find_model(name)
    result = run_tlc(model.module, model.config())
    if result.outcome is not Outcome.SUCCESS:
        raise SystemExit(f"TLC on {name}: {result.outcome.value}: {result.message}")
    return result


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--repetitions", type=int, default=3)
    arguments = options.parse_args()
    report = Report("The explorer against TLC on one worker")
    for name, bounds in CASES:
        states = len(explore(bounds).states)
        distinct = tlc(name).distinct
        if states != distinct:
            raise SystemExit(f"{name}: expected the same states, saw {states} explored and {distinct} in TLC")
        slow = report.time(f"{name}: TLC", states, "states", lambda name=name: tlc(name), arguments.repetitions)
        own = report.time(
            f"{name}: explorer", states, "states", lambda bounds=bounds: explore(bounds), arguments.repetitions
        )
        report.ratio(f"{name}: explorer's time, times TLC's", own.seconds / slow.seconds, 3, most=True)
    report.notes.append("TLC also checks the invariants of the model; its time includes the start of the JVM")
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
