"""The explorer of the implementation against TLC on one worker: the same bounded models, the same states."""

import sys
from functools import partial

from benchmarks.measure import Report, parser
from tidegauge.conformance.from_tlc.graph_comparison import system_of
from tidegauge.spec.tlc.models import find_model
from tidegauge.spec.tlc.tlc import TlcOutcome, TlcResult, run_tlc
from validation.graphs import WHOLE

LARGER = ("Epochs", "LaggingHw", "Kip966")
MODELS = tuple(compared for compared in WHOLE if find_model(compared.model).tier == "small" or compared.model in LARGER)
"""Every small model of the protocol that holds, and three that are larger."""


def tlc(name: str) -> TlcResult:
    model = find_model(name)
    result = run_tlc(model.module, model.config().text())
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SystemExit(f"TLC on {name}: {result.outcome.value}: {result.message}")
    return result


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--repetitions", type=int, default=3)
    arguments = options.parse_args()
    report = Report("The explorer against TLC on one worker")
    for compared in MODELS:
        name, system = compared.model, system_of(find_model(compared.model))
        explore = partial(system.explore, system.start(compared, None))
        states = len(set(explore().states))
        distinct = tlc(name).distinct
        if states != distinct:
            raise SystemExit(f"{name}: expected the same states, seen {states} explored and {distinct} in TLC")
        slow = report.time(f"{name}: TLC", states, "states", lambda name=name: tlc(name), arguments.repetitions)
        own = report.time(f"{name}: explorer", states, "states", explore, arguments.repetitions)
        report.ratio(f"{name}: explorer's time, times TLC's", own.seconds / slow.seconds, 3, most=True)
    report.notes.append("TLC also checks the invariants of the model; its time includes the start of the JVM")
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
