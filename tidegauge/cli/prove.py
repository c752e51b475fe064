"""tidegauge prove."""

import argparse

from tidegauge.cli.options import positive, seconds
from tidegauge.cli.terminal import echo
from tidegauge.util.errors import CONFORMS


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
    parser.add_argument("--list", action="store_true", help="list the groups and prove nothing")


def run(args: argparse.Namespace) -> int:
    """Prove the rules with z3."""
    if args.list:
        return _list()
    return _prove(args)


def _list() -> int:
    from tidegauge.spec.proofs.premises import all_groups

    for group in all_groups().values():
        echo(f"{group.name:<24} {group.title}")
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
