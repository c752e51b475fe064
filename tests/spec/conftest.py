"""What several tests of the spec look at and TLC should find only once."""

import pytest

from tidegauge.spec.tlc.graph import Behaviour, counterexample
from tidegauge.spec.tlc.models import find_model


@pytest.fixture(scope="session")
def hw_only_loss() -> Behaviour:
    """The shortest run in which hw-only loses a committed record."""
    return counterexample(find_model("HwOnly"))
