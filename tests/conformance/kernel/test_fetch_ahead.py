"""What the automaton is compiled with besides its text: a row is fetched ahead, and no references are counted."""

from typing import Any

import numba
import numpy as np
import pytest
from numba import types

from tidegauge.conformance.kernel import transitions
from tidegauge.conformance.kernel.compiled import COLUMN, UNCOUNTED, jit, twins_of
from tidegauge.conformance.kernel.fetch_ahead import prefetch


def text_of(made: Any) -> str:
    (text,) = made.inspect_llvm().values()
    return str(text)


def test_a_row_is_fetched_and_stays_as_it_is() -> None:
    njit: Any = numba.njit

    def fetched(table: Any, row: int) -> None:
        prefetch(table, row)

    made = njit((types.int64[:, ::1], types.int64))(fetched)
    assert "llvm.prefetch" in text_of(made)
    table = np.arange(8).reshape(4, 2)
    for row in (0, 3, 1 << 40):  # far behind the last as well
        made(table, row)
    assert (table == np.arange(8).reshape(4, 2)).all()


def test_it_stands_where_the_text_says_nothing() -> None:
    twins = twins_of((transitions,), {"wanted_soon": prefetch})
    assert twins["wanted_soon"] is prefetch
    assert twins["home_of"] is not transitions.home_of


@pytest.mark.parametrize(("options", "counts"), [({}, True), (UNCOUNTED, False)])
def test_references_are_not_counted(options: dict[str, Any], counts: bool) -> None:
    """Of arrays that are taken out of a tuple."""

    def largest(columns: Any) -> int:
        found = columns[0]
        for column in columns:
            if column[0] > found[0]:
                found = column
        return int(found[0])

    made = jit(largest, (types.UniTuple(COLUMN, 3),), False, **options)  # type: ignore[no-untyped-call]
    assert ("NRT_incref" in text_of(made)) == counts
    columns = tuple(np.arange(3) + at for at in (1, 7, 2))
    for column in columns:
        column.flags.writeable = False
    assert made(columns) == 7
