"""--layout PATTERN: how the lines of broker logs are written, where it cannot be found by looking."""

import argparse

LAYOUT = "[%d] %p [%t] %m (%c)%n"


def layout_argument(parser: argparse.ArgumentParser) -> None:
    """Take a pattern of log4j2."""
    shown = LAYOUT.replace("%", "%%")
    parser.add_argument(
        "--layout",
        metavar="PATTERN",
        help=f"log4j2's pattern of the broker logs, such as '{shown}'; found by looking if left out",
    )
