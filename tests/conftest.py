"""Hypothesis profiles: `default` in every run, the same examples each time; `long` in `tox -e props`, others each time.

A failure prints the blob that replays it.
"""

import os
import sys
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
