"""What a probe of Kafka recorded, to be answered again."""

import pytest

from tests.drive.probe.recorded import Recording


@pytest.fixture(scope="module")
def run_of_today() -> Recording:
    return Recording("4.1.1")


@pytest.fixture
def recording(run_of_today: Recording) -> Recording:
    return run_of_today.rewind()
