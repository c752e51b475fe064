"""Tidegauge tells whether a broker's high watermark can be trusted.

The command line: it parses arguments, calls a room, prints what the room returns. Exit codes: 0 conforms, 1 a rule fails,
2 bad usage or bad input, 3 nothing could be decided.
"""

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version

from impl.errors import TidegaugeError
from spec.errors import SpecError

CONFORMS, FAILS, BAD, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130


def echo(line: str = "") -> None:
    """One line to the terminal, at once: long work must be seen to move."""
    print(line, flush=True)


def model(args: argparse.Namespace) -> int:
    """Run TLC on the models and hold what it finds against what is pinned."""
    from spec import models

    chosen = [models.find_model(name) for name in args.name] or [
        one for one in models.load_models() if models.TIERS.index(one.tier) <= models.TIERS.index(args.tier)
    ]
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


def prove(args: argparse.Namespace) -> int:
    """Prove the rules with z3."""
    from spec.proofs.prove import exit_code
    from spec.proofs.prove import prove as prove_groups
    from spec.proofs.registry import all_groups
    from spec.proofs.verdicts import GroupResult

    if args.list:
        for group in all_groups().values():
            echo(f"{group.name:<24} {group.title}")
        return CONFORMS

    def progress(name: str, result: GroupResult | None) -> None:
        if result is not None:
            for line in result.describe():
                echo(line)
        elif not args.quiet:
            echo(f"{'...':13}  {name}")

    results = prove_groups(args.group or None, args.entries, args.processes, args.time_limit, progress=progress)
    code = exit_code(results)
    echo(
        {0: "PROVED: every goal", 1: "COUNTER-MODEL: a rule does not do what is claimed", 3: "NOT PROVED: undecided goals"}[
            code
        ]
    )
    return code


def doctor(_args: argparse.Namespace) -> int:
    """Say what this machine has of what Tidegauge needs."""
    from conformance.doctor import examine

    findings = examine()
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD


Command = Callable[[argparse.Namespace], int]


def parser() -> argparse.ArgumentParser:
    """Every command with its arguments."""
    top = argparse.ArgumentParser(
        prog="tidegauge",
        description="Tells whether a broker's high watermark can be trusted.",
        epilog="exit codes: 0 conforms, 1 a rule fails, 2 bad usage or bad input, 3 nothing could be decided",
    )
    top.add_argument("--version", action="version", version=f"tidegauge {_version()}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(run: Command, name: str | None = None) -> argparse.ArgumentParser:
        doc = (run.__doc__ or "").strip()
        added = commands.add_parser(name or run.__name__, help=doc.splitlines()[0].rstrip("."), description=doc)
        added.set_defaults(run=run)
        added.add_argument("--quiet", action="store_true", help="no progress, only results")
        return added

    one = add(model)
    one.add_argument("name", nargs="*", help="models to run, by name; default: a whole tier")
    one.add_argument("--tier", default="small", choices=("small", "medium", "large"), help="this tier and the cheaper ones")
    one.add_argument("--list", action="store_true", help="list the models, run nothing")
    one.add_argument("--record", action="store_true", help="pin what TLC finds in spec/models.toml")

    one = add(prove)
    one.add_argument("--group", action="append", help="prove only this group; may be repeated")
    one.add_argument("--entries", type=int, default=4, help="largest epoch cache of the bounded proofs (default 4)")
    one.add_argument("--processes", type=int, default=2, help="groups proved at once (default 2)")
    one.add_argument("--time-limit", type=float, default=300.0, metavar="SECONDS", help="per group (default 300)")
    one.add_argument("--list", action="store_true", help="list the groups, prove nothing")

    add(doctor)
    return top


def _version() -> str:
    try:
        return version("tidegauge")
    except PackageNotFoundError:
        return "from a checkout"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `tidegauge` command."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (TidegaugeError, SpecError) as problem:
        print(f"tidegauge: {problem}", file=sys.stderr)
        return BAD
    except ModuleNotFoundError as missing:
        extra = {"z3": "proofs", "pyspark": "spark", "pandas": "spark"}.get((missing.name or "").split(".")[0])
        if extra is None:
            raise
        print(
            f"tidegauge: expected package {missing.name}, seen none; run: pip install 'tidegauge[{extra}]'", file=sys.stderr
        )
        return BAD
    except KeyboardInterrupt:
        print("tidegauge: interrupted; what was printed so far stands, nothing else was decided", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CONFORMS


if __name__ == "__main__":
    sys.exit(main())
