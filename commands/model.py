"""tidegauge model."""

import argparse

from commands.terminal import CONFORMS, FAILS, echo


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("name", nargs="*", help="models to run, by name; default: a whole tier")
    parser.add_argument(
        "--tier", default="small", choices=("small", "medium", "large"), help="this tier and the cheaper ones"
    )
    parser.add_argument("--list", action="store_true", help="list the models, run nothing")
    parser.add_argument("--record", action="store_true", help="pin what TLC finds in spec/models.toml")


def run(args: argparse.Namespace) -> int:
    """Run TLC on the models and hold what it finds against what is pinned."""
    from spec import models

    chosen = [models.find_model(name) for name in args.name] or models.in_tier(args.tier)
    if args.list:
        echo(models.table(chosen))
        return CONFORMS
    done = []
    for number, one in enumerate(chosen, 1):
        if not args.quiet:
            echo(f"[{number}/{len(chosen)}] {one.name} ...")
        done.append(models.run_model(one))
        echo(str(done[-1]))
    if args.record:
        echo(f"recorded in {models.record(done)}")
        return CONFORMS
    wrong = sum(not comparison.ok for comparison in done)
    echo(f"{len(done) - wrong} of {len(done)} models gave what is pinned")
    return FAILS if wrong else CONFORMS
