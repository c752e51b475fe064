"""Numbers of the command line: what is no number, or below what makes sense, is refused by argparse with exit code 2."""

import argparse
import math

LARGEST = 2**63 - 1
"""What numpy takes as a seed."""


def positive(text: str) -> int:
    """How many of something: 1 or more."""
    return _at_least(1, text)


def natural(text: str) -> int:
    """A number from 0 on: a seed."""
    return _at_least(0, text)


def seconds(text: str) -> float:
    """A time limit."""
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not 0 < found < math.inf:
        raise argparse.ArgumentTypeError(f"expected seconds, more than 0; seen {text!r}")
    return found


def _at_least(least: int, text: str) -> int:
    try:
        found = int(text)
    except ValueError:
        found = least - 1
    if not least <= found <= LARGEST:
        raise argparse.ArgumentTypeError(f"expected a whole number from {least} on, seen {text!r}")
    return found
