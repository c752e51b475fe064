"""tidegauge prove."""

import argparse
from typing import TYPE_CHECKING

from tidegauge.cli.options import positive, seconds
from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS, SpecError

if TYPE_CHECKING:
    from tidegauge.traces.schema import Trace


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("--group", action="append", help="prove only this group; may be repeated")
    parser.add_argument(
        "--entries", type=positive, default=4, help="size of the largest epoch cache in the bounded proofs (default 4)"
    )
    parser.add_argument("--processes", type=positive, default=2, help="number of groups proved at once (default 2)")
    parser.add_argument(
        "--time-limit", type=seconds, default=300.0, metavar="SECONDS", help="time for each group (default 300)"
    )
    parser.add_argument("--verbose", action="store_true", help="also report what goes wrong without each premise")
    parser.add_argument("--scenario", metavar="NAME", help="instead: show what goes wrong without a premise")
    parser.add_argument("--trace", metavar="DIR", help="with --scenario: also write that run to DIR as a trace")
    parser.add_argument("--list", action="store_true", help="list the groups and scenarios and prove nothing")


def run(args: argparse.Namespace) -> int:
    """Prove the rules with z3."""
    if args.list:
        return _list()
    if args.scenario:
        return _counter_model(args)
    return _prove(args)


def _list() -> int:
    from tidegauge.spec.proofs.committed.concrete import COMMITTED_LOSSES
    from tidegauge.spec.proofs.eligible.concrete import CLEAN_LOSSES
    from tidegauge.spec.proofs.premises import REMOVALS, all_groups

    for group in all_groups().values():
        echo(f"{group.name:<24} {group.title}")
    echo("scenarios (--scenario NAME): what happens without a premise")
    for name, removal in REMOVALS.items():
        echo(f"{name:<24} {removal.name}")
    premises = {name: loss.premise for name, loss in COMMITTED_LOSSES.items()}
    premises |= {name: loss.premise for name, loss in CLEAN_LOSSES.items()}
    for name, premise in premises.items():
        echo(f"{name:<24} without: {premise}")
    return CONFORMS


def _prove(args: argparse.Namespace) -> int:
    """Prove the groups and print each result as it comes; return the exit code."""
    from tidegauge.spec.proofs.engine.paths import GroupResult
    from tidegauge.spec.proofs.prove import exit_code, prove

    def progress(name: str, result: GroupResult | None) -> None:
        if result is not None:
            for line in result.describe(args.verbose):
                echo(line)
        elif not args.quiet:
            echo(f"{'...':13}  {name}")

    results = prove(args.group or None, args.entries, args.processes, args.time_limit, progress=progress)
    code = exit_code(results)
    echo(
        {
            0: "PROVED: every goal",
            1: "COUNTER-MODEL: a claim about a rule is false",
            3: "NOT PROVED: some goals are undecided",
        }[code]
    )
    return code


def _counter_model(args: argparse.Namespace) -> int:
    """Print the run that --scenario names."""
    from tidegauge.spec.proofs.committed.concrete import COMMITTED_LOSSES
    from tidegauge.spec.proofs.eligible.concrete import CLEAN_LOSSES
    from tidegauge.spec.proofs.premises import REMOVALS

    # Three kinds of runs: of the committed-data proof, of two logs that do not converge, of the proof about elections.
    if args.scenario in COMMITTED_LOSSES:
        return _committed_run(args)
    if args.scenario in REMOVALS:
        return _two_logs(args)
    if args.scenario in CLEAN_LOSSES:
        return _clean_loss(args)
    raise SpecError(
        f"--scenario: expected one of {', '.join([*REMOVALS, *COMMITTED_LOSSES, *CLEAN_LOSSES])}; "
        f"seen {args.scenario!r}; choose one of those"
    )


def _two_logs(args: argparse.Namespace) -> int:
    from tidegauge.conformance.counterexamples.counter_models import counter_model_trace
    from tidegauge.spec.proofs.premises import modes_of, removal_named

    echo(f"Suppose: {removal_named(args.scenario).name}")
    for mode in modes_of(args.scenario):
        shown = counter_model_trace(args.scenario, mode)
        echo(f"\n{mode} mode")
        for line in (*shown.run.lines(), shown.line()):
            echo(f"  {line}")
        _write(args, shown.trace)
    return CONFORMS


def _committed_run(args: argparse.Namespace) -> int:
    from tidegauge.conformance.counterexamples.proof_runs import committed_run

    committed = committed_run(args.scenario)
    echo(f"Suppose this does not hold: {committed.loss.premise}")
    for line in committed.lines():
        echo(f"  {line}")
    _write(args, committed.trace)
    return CONFORMS


def _clean_loss(args: argparse.Namespace) -> int:
    from tidegauge.spec.proofs.eligible.concrete import CLEAN_LOSSES, describe_clean_loss

    loss = CLEAN_LOSSES[args.scenario]
    if args.trace:
        raise SpecError(
            f"--trace: expected a scenario that has a trace; seen {args.scenario}, which has none; leave --trace out"
        )
    echo(f"Suppose this does not hold: {loss.premise}")
    for line in describe_clean_loss(loss):
        echo(f"  {line}")
    return CONFORMS


def _write(args: argparse.Namespace, trace: "Trace") -> None:
    from tidegauge.traces.formats.ndjson import write
    from tidegauge.util.files import directory

    if args.trace:
        write([trace], directory(args.trace) / f"{trace.name}.ndjson")
