"""Hypothesis profiles: `default` in every run, `long` in `tox -e props`. A failure prints the blob that replays it."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, print_blob=True, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("long", settings.get_profile("default"), max_examples=2000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--rewrite` writes what happens into the scenario files, and fails the tests of those it changed."""
    parser.addoption("--rewrite", action="store_true", help="write what happens into conformance/scenarios")
