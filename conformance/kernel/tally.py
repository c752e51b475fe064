"""How a check ends: it held, it failed, or it could not be decided.

Rules of this file

1. Every check of the judge ends in exactly one of `decide`, `same`, `as_expected` or `undecided`, so the tallies reconcile.
2. The first failure of a rule in a trace is kept with its row and the two values; later ones are only counted.
3. `missing` is a bit mask of the fields that would have decided it.
"""

from tidegauge.conformance.kernel.state import (
    AT_FAILURES,
    F_ACTUAL,
    F_EXPECTED,
    F_FIELD,
    F_ROW,
    F_RULE,
    F_TRACE,
    FAILED,
    FAILED_COUNT,
    FAILED_TRACES,
    FAILURES,
    FAILURES_ROOM,
    HELD_COUNT,
    MISSING,
    NOW,
    TALLIES,
    TRACE,
    UNDECIDED_COUNT,
    WHOLE,
    State,
)
from tidegauge.traces.columns import UNKNOWN


def decide(st: State, rule: int, ok: bool, field: int, expected: int, actual: int) -> None:
    """Count a check that could be decided; `field` is what was compared."""
    if ok:
        st[TALLIES + rule, HELD_COUNT] += 1
    else:
        failed(st, rule, field, expected, actual)


def failed(st: State, rule: int, field: int, expected: int, actual: int) -> None:
    """Count a failure, and keep it when it is the first of its rule in this trace."""
    st[TALLIES + rule, FAILED_COUNT] += 1
    if st[WHOLE, FAILED] >> rule & 1:
        return
    st[WHOLE, FAILED] |= 1 << rule
    st[TALLIES + rule, FAILED_TRACES] += 1
    at = st[WHOLE, FAILURES]
    if at == st[WHOLE, FAILURES_ROOM]:
        return
    st[WHOLE, FAILURES] = at + 1
    row = st[WHOLE, AT_FAILURES] + at
    st[row, F_TRACE] = st[WHOLE, TRACE]
    st[row, F_ROW] = st[WHOLE, NOW]
    st[row, F_RULE] = rule
    st[row, F_FIELD] = field
    st[row, F_EXPECTED] = expected
    st[row, F_ACTUAL] = actual


def undecided(st: State, rule: int, missing: int) -> None:
    """Count a check that lacked the fields in `missing`."""
    st[TALLIES + rule, UNDECIDED_COUNT] += 1
    st[TALLIES + rule, MISSING] |= missing


def same(st: State, rule: int, field: int, expected: int, actual: int, missing: int) -> None:
    """Check that what was told is what was expected; `missing` names what an unknown expectation lacked."""
    if expected == UNKNOWN:
        undecided(st, rule, missing)
    else:
        as_expected(st, rule, field, expected, actual)


def as_expected(st: State, rule: int, field: int, expected: int, actual: int) -> None:
    """Check that what was reported is what was expected, where that is known."""
    if actual == UNKNOWN:
        undecided(st, rule, 1 << field)
    else:
        decide(st, rule, expected == actual, field, expected, actual)


def counted_again(st: State, rule: int, times: int, held: int, failed_before: int, undecided_before: int) -> None:
    """What has been decided since the rule had these counts stands for so many checks more, which all end alike."""
    row = TALLIES + rule
    st[row, HELD_COUNT] += times * (st[row, HELD_COUNT] - held)
    st[row, FAILED_COUNT] += times * (st[row, FAILED_COUNT] - failed_before)
    st[row, UNDECIDED_COUNT] += times * (st[row, UNDECIDED_COUNT] - undecided_before)
