"""tidegauge bugs."""

import argparse

from tidegauge.commands.counts import natural
from tidegauge.commands.terminal import CONFORMS, FAILS, echo
from tidegauge.conformance.judging.progress import SEED


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--seed", type=natural, default=SEED, help=f"seed of the walks (default {SEED})")


def run(args: argparse.Namespace) -> int:
    """The kill matrix: which rule of the judge catches which faulty implementation."""
    from tidegauge.conformance.evidence.kill_matrix import Fate, kill_all

    survived = 0
    for kill in kill_all(args.seed):
        rules = ", ".join(f"{rule} ({traces:,})" for rule, traces in kill.by_rule.items()) or kill.says
        echo(f"{kill.fault.name:<30} {kill.fault.resembles:<24} {kill.fate.value}{': ' if rules else ''}{rules}")
        survived += kill.fate is Fate.SURVIVED
    echo(f"seed {args.seed}; {survived} survived")
    return FAILS if survived else CONFORMS
