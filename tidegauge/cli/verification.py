"""tidegauge model, tidegauge prove, tidegauge bugs: the specification, the rules, and which test catches which known bug.

A *model* is a TLA+ module and a .cfg that TLC checks; its *pinned* result is the expected one, recorded in spec/models.toml.
"""

import argparse
from collections.abc import Sequence
from itertools import count
from typing import TYPE_CHECKING

from tidegauge.cli.options import natural, positive, seconds
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import CONFORMS, FAILS, SpecError

if TYPE_CHECKING:
    from tidegauge.spec.tlc.models import Model, PinComparison

BUGS_SEED = 1
"""Seed of the walks that the pinned result of `bugs` was made with."""


def model_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge model` to its parser."""
    parser.add_argument("name", nargs="*", help="models to run, or cfg files of your own (default: all of a tier)")
    parser.add_argument(
        "--tier",
        default="small",
        choices=("small", "medium", "large"),
        help="run this tier and the cheaper ones (default small)",
    )
    parser.add_argument("--list", action="store_true", help="list the models and run nothing")
    parser.add_argument(
        "--record", action="store_true", help="write the results of TLC to spec/models.toml as the expected ones"
    )
    parser.add_argument(
        "--compare",
        action="store_true",
        help="instead: compare TLC's whole graph of each named model with the implementation's, and show where they part",
    )
    parser.add_argument(
        "--export",
        metavar="DIR",
        help="instead: write counterexamples and witnesses to DIR, as NAME.ndjson and, if possible, as a scenario NAME.txt",
    )


def model_command(args: argparse.Namespace) -> int:
    """Run TLC on the models and compare its results with the pinned ones."""
    from tidegauge.spec.tlc import models

    chosen = [models.find_model(name) for name in args.name] or models.in_tier(args.tier)
    if args.list:
        echo(models.models_table(chosen))
        return CONFORMS
    if args.compare:
        return _compare(chosen, args)
    if args.export:
        return _export(chosen, args)
    numbers = count(1)

    def report(comparison: "PinComparison") -> None:
        """Print the result of a model, as soon as it has run."""
        echo(str(comparison) if args.quiet else f"[{next(numbers)}/{len(chosen)}] {comparison}")

    comparisons = models.run_models(chosen, on_done=report)
    if args.record:
        echo(f"recorded in {models.pin_results(comparisons)}")
        return CONFORMS
    wrong = sum(not comparison.ok for comparison in comparisons)
    for comparison in () if args.quiet else comparisons:
        if not comparison.ok:
            _show(comparison)
    # A user's own models have no pinned result: they are right if no property fails.
    own = all(isinstance(comparison.model, models.OwnModel) for comparison in comparisons)
    ok, outcome = len(comparisons) - wrong, "have no property that fails" if own else "gave the pinned result"
    echo(f"{ok} of {len(comparisons)} models {outcome}")
    return FAILS if wrong else CONFORMS


def _show(comparison: "PinComparison") -> None:
    """Print, step by step, the failing run of a model whose result is not as pinned; nothing if it has none."""
    from tidegauge.conformance.from_tlc.tlc_runs import failing_run

    for number, line in enumerate(failing_run(comparison)):
        if number == 0:
            echo(f"\n{comparison.model.cfg}, step by step:")
        echo(line)


def _compare(chosen: "Sequence[Model]", args: argparse.Namespace) -> int:
    """Compare the specification with the implementation, over the whole graph of each model."""
    from tidegauge.conformance.from_tlc.graph_comparison import compare, compared_of
    from tidegauge.util.errors import UsageError

    if not args.name or args.export or args.record:
        raise UsageError(
            "model: expected with --compare the names of models, and neither --export nor --record; seen otherwise; name "
            "one, such as Small"
        )
    # All first: a model that cannot be compared is refused before the first graph, which may take minutes. Each is the name
    # of a model, and the profile and bounds by which the implementation is explored.
    compared_models = [compared_of(model) for model in chosen]
    wrong = 0
    for compared in compared_models:
        comparison = compare(compared)
        wrong += comparison.divergence is not None
        outcome = "spec and impl differ" if comparison.divergence else "spec = impl"
        echo(f"{compared.model}, profile {compared.profile}: {outcome}: {comparison.says}")
    return FAILS if wrong else CONFORMS


def _export(chosen: "Sequence[Model]", args: argparse.Namespace) -> int:
    """Write the failing run of each model into the directory --export, as a trace and perhaps as a scenario.

    A model that has no run to write is skipped, or an error if the user named it. Returns FAILS if a run is not as pinned.
    """
    from tidegauge.conformance.from_tlc.tlc_runs import ExportError, export
    from tidegauge.util.files import directory

    folder = directory(args.export)
    wrong = 0
    for model in chosen:
        # Only a run that breaks an invariant (TLC's safety failure) ends in a state that a judge can be shown.
        if not args.name and model.expect != "safety failure":
            continue
        try:
            written = export(model, folder)
        except (ExportError, SpecError) as problem:
            if args.name:
                raise
            if not args.quiet:
                echo(f"{model.name}: nothing to write: {str(problem).splitlines()[0]}")
            continue
        files = f"{written.trace}" + (f", {written.scenario}" if written.scenario else "")
        judged = f"the judge rejects it: {', '.join(written.broken)}" if written.broken else "the judge accepts it"
        echo(f"{model.name}: {written.property} fails after {written.states} states; {files}; {judged}")
        if (written.property, written.states) != (model.property, model.length):
            echo(f"  expected {model.property} after {model.length} states, as pinned")
            wrong += 1
    return FAILS if wrong else CONFORMS


def prove_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge prove` to its parser."""
    parser.add_argument("--group", action="append", help="prove only this group; may be repeated")
    parser.add_argument(
        "--entries", type=positive, default=4, help="size of the largest epoch cache in the bounded proofs (default 4)"
    )
    parser.add_argument("--processes", type=positive, default=2, help="number of groups proved at once (default 2)")
    parser.add_argument(
        "--time-limit", type=seconds, default=300.0, metavar="SECONDS", help="time for each group (default 300)"
    )
    parser.add_argument("--verbose", action="store_true", help="also report what goes wrong without each premise")
    parser.add_argument("--list", action="store_true", help="list the groups and prove nothing")


def prove_command(args: argparse.Namespace) -> int:
    """Prove the rules with z3."""
    if args.list:
        return _list()
    return _prove(args)


def _list() -> int:
    """Print the names and titles of all groups."""
    from tidegauge.spec.proofs.premises import all_groups

    for group in all_groups().values():
        echo(f"{group.name:<24} {group.title}")
    return CONFORMS


def _prove(args: argparse.Namespace) -> int:
    """Prove the groups and print each result as it comes; return the exit code."""
    from tidegauge.spec.proofs.engine.paths import GroupResult
    from tidegauge.spec.proofs.prove import exit_code, prove

    def progress(name: str, result: GroupResult | None) -> None:
        """Print the result of a group, or that it has started (None)."""
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


def bugs_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge bugs` to its parser."""
    parser.add_argument("name", nargs="*", help="known bugs to test (default: all, compared with the pinned result)")
    parser.add_argument("--seed", type=natural, default=BUGS_SEED, help=f"seed of the walks (default {BUGS_SEED})")
    parser.add_argument("--rewrite", action="store_true", help="pin the result as the expected one")


def bugs_command(args: argparse.Namespace) -> int:
    """Show which test catches which known bug: the judge on traces, the covers, or the walks of a driven broker."""
    # `kill_all` tries the tests on each bug; a row of its matrix is a bug and the tests that catch it, or "survives".
    from tidegauge.drive.broker.known_bugs import BUGS, bug_named
    from tidegauge.drive.kill_matrix import (
        ELSEWHERE,
        MATRIX_FILE,
        TO_EXERCISE,
        Killed,
        build_failures,
        differences,
        expected,
        kill_all,
        text_of,
        to_json,
    )

    names, progress = [bug_named(name).name for name in args.name], silent if args.quiet else aside

    def report(killed: Killed) -> None:
        """Print which tests have caught a bug, as soon as all were tried."""
        echo(text_of(killed.row, BUGS[killed.row.name].says))
        progress(f"{killed.row.name}: cover {killed.seconds[0]:.1f} s, walks {killed.seconds[1]:.1f} s")

    matrix = kill_all(args.seed, names, report)
    survive = sum(row.survives for row in matrix.rows)
    # What is wrong: of named bugs each that survives; of all bugs, what the whole matrix promises and does not keep.
    lines = (
        [f"{row.name} survives" for row in matrix.rows if row.survives]
        if names
        else build_failures(matrix, TO_EXERCISE, ELSEWHERE)
    )
    # Only all bugs together can be pinned or compared; another seed takes other walks, so its numbers differ.
    if args.rewrite and not names:
        MATRIX_FILE.write_text(to_json(matrix), encoding="utf-8")
    elif not names and args.seed == BUGS_SEED:
        lines += differences(expected(), matrix)
    for line in lines:
        echo(line)
    echo(f"seed {args.seed}; {len(matrix.rows)} bugs, {survive} survive")
    return FAILS if lines else CONFORMS
