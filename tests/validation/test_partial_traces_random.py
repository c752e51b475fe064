"""Right interleavings with parts missing, by the thousands: no rule fails; lines that nobody says are missing are found."""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from tidegauge.impl.explorer.explore import Bounds
from validation.partial_traces_random import GRAPHS, chunk, judged, table_of

CHUNKS, TRACES = range(3), 2000


@pytest.mark.parametrize(("bounds", "profile"), GRAPHS, ids=[profile for _, profile in GRAPHS])
def test_no_rule_fails_where_parts_are_missing(bounds: Bounds, profile: str) -> None:
    """`./run absent` judges a million."""
    table = table_of(bounds, profile)
    failures = [(number, judged(chunk(table, number, seed, TRACES)).failures) for number, seed in product(CHUNKS, (0, 1))]
    assert [(number, of) for number, of in failures if of] == []


def test_lines_that_nobody_says_are_missing_are_found() -> None:
    """A judge that forgave whatever is absent would pass the test above."""
    one = chunk(table_of(*GRAPHS[0]), 0, 0, TRACES)
    silent = replace(one, events=replace(one.events, missing=np.zeros_like(one.events.missing)))
    assert judged(silent).failures
