"""Shows what goes wrong without a premise of the proofs: a run in words, and as a trace that the judge rejects.

python -m validation.premises --list
python -m validation.premises kip-101 --trace DIR
"""

import argparse
import sys
from collections.abc import Sequence

from tidegauge.cli.main import guarded
from tidegauge.cli.terminal import echo
from tidegauge.spec.proofs.premises import REMOVALS, modes_of, removal_named
from tidegauge.traces.formats.ndjson import write
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import CONFORMS, SpecError
from tidegauge.util.files import directory
from validation.premises.committed import COMMITTED_LOSSES
from validation.premises.committed_traces import committed_run
from validation.premises.counter_models import counter_model_trace
from validation.premises.eligible import CLEAN_LOSSES, describe_clean_loss


def main(argv: Sequence[str] | None = None) -> int:
    """Print the run of a scenario, or list the scenarios."""
    parser = argparse.ArgumentParser(prog="python -m validation.premises", description=__doc__)
    parser.add_argument("scenario", nargs="?", help="its name in the list")
    parser.add_argument("--trace", metavar="DIR", help="also write that run to DIR as a trace")
    parser.add_argument("--list", action="store_true", help="list the scenarios and show nothing")
    args = parser.parse_args(argv)
    return guarded(lambda: _list() if args.list else _show(args.scenario, args.trace))


def _list() -> int:
    premises = {name: removal.name for name, removal in REMOVALS.items()}
    for losses in (COMMITTED_LOSSES, CLEAN_LOSSES):
        premises |= {name: f"without: {loss.premise}" for name, loss in losses.items()}
    for name, premise in premises.items():
        echo(f"{name:<24} {premise}")
    return CONFORMS


def _show(scenario: str, folder: str | None) -> int:
    # Three kinds of runs: of the committed-data proof, of two logs that do not converge, of the proof about elections.
    if scenario in COMMITTED_LOSSES:
        committed = committed_run(scenario)
        echo(f"Suppose this does not hold: {committed.loss.premise}")
        _print(committed.lines())
        _write(folder, committed.trace)
    elif scenario in REMOVALS:
        echo(f"Suppose: {removal_named(scenario).name}")
        for mode in modes_of(scenario):
            shown = counter_model_trace(scenario, mode)
            echo(f"\n{mode} mode")
            _print([*shown.run.lines(), shown.line()])
            _write(folder, shown.trace)
    elif scenario in CLEAN_LOSSES:
        if folder:
            raise SpecError(
                f"--trace: expected a scenario that has a trace; seen {scenario}, which has none; leave --trace out"
            )
        echo(f"Suppose this does not hold: {CLEAN_LOSSES[scenario].premise}")
        _print(describe_clean_loss(CLEAN_LOSSES[scenario]))
    else:
        names = ", ".join([*REMOVALS, *COMMITTED_LOSSES, *CLEAN_LOSSES])
        raise SpecError(f"expected one of {names}; seen {scenario!r}; choose one of those")
    return CONFORMS


def _print(lines: Sequence[str]) -> None:
    for line in lines:
        echo(f"  {line}")


def _write(folder: str | None, trace: Trace) -> None:
    if folder:
        write([trace], directory(folder) / f"{trace.name}.ndjson")


if __name__ == "__main__":
    sys.exit(main())
