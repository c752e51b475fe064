"""tidegauge bugs."""

import argparse

from tidegauge.cli.options import natural
from tidegauge.cli.terminal import aside, echo, silent
from tidegauge.util.errors import CONFORMS, FAILS

SEED = 1


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options."""
    parser.add_argument("name", nargs="*", help="known bugs to test (default: all, compared with the pinned result)")
    parser.add_argument("--seed", type=natural, default=SEED, help=f"seed of the walks (default {SEED})")
    parser.add_argument("--rewrite", action="store_true", help="pin the result as the expected one")


def run(args: argparse.Namespace) -> int:
    """Show which test catches which known bug: the judge on traces, the covers, or the walks of a driven broker."""
    from tidegauge.drive.broker.known_bugs import BUGS, bug_named
    from tidegauge.drive.kill_matrix import (
        ELSEWHERE,
        MATRIX_FILE,
        TO_EXERCISE,
        Killed,
        differences,
        expected,
        kill_all,
        text_of,
        to_json,
        wrong,
    )

    names, progress = [bug_named(name).name for name in args.name], silent if args.quiet else aside

    def report(killed: Killed) -> None:
        echo(text_of(killed.row, BUGS[killed.row.name].says))
        progress(f"{killed.row.name}: cover {killed.seconds[0]:.1f} s, walks {killed.seconds[1]:.1f} s")

    matrix = kill_all(args.seed, names, report)
    survive = sum(row.survives for row in matrix.rows)
    lines = (
        [f"{row.name} survives" for row in matrix.rows if row.survives] if names else wrong(matrix, TO_EXERCISE, ELSEWHERE)
    )
    # Only all bugs together can be pinned or compared; another seed takes other walks, so its numbers differ.
    if args.rewrite and not names:
        MATRIX_FILE.write_text(to_json(matrix), encoding="utf-8")
    elif not names and args.seed == SEED:
        lines += differences(expected(), matrix)
    for line in lines:
        echo(line)
    echo(f"seed {args.seed}; {len(matrix.rows)} bugs, {survive} survive")
    return FAILS if lines else CONFORMS
