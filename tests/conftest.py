"""Hypothesis profiles: `default` in every run, the same examples each time; `long` in `tox -e props`, others each time.

A failure prints the blob that replays it.
"""

import os
import sys
from collections import Counter
from itertools import chain
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

sys.path.append(str(Path(__file__).parents[1]))  # benchmarks is no part of the package: behind what is installed

settings.register_profile(
    "default", deadline=None, derandomize=True, print_blob=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.register_profile("long", settings.get_profile("default"), derandomize=False, max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` writes what happens into the scenario files, and fails the tests of those it changed."""
    parser.addoption("--rewrite", action="store_true", help="write what happens into conformance/scenarios")


LONG = 60.0
"""Seconds from which a run prints where its time went."""


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the files of tests that took most of the time, of all processes together."""
    spent: Counter[str] = Counter()
    for report in chain.from_iterable(terminalreporter.stats.values()):
        if isinstance(report, pytest.TestReport):
            spent[report.location[0]] += report.duration  # type: ignore[assignment]
    total = sum(spent.values())
    if total >= LONG:
        terminalreporter.section(f"{total:,.0f} s in tests")
        for file, seconds in spent.most_common(15):
            terminalreporter.write_line(f"{seconds:8.1f} s {seconds / total:5.0%}  {file}")
