"""The result of a check: it held, it failed, or it could not be decided.

Rules of this file

1. Every check of the judge ends in exactly one of `decide`, `same`, `as_expected` or `undecided`, so the tallies reconcile.
2. The first failure of a rule in a trace is kept with its row and the two values; later ones are only counted.
3. `st` is the judge's table (conformance.judge.state). `rule` is the number of the rule, `field` the position of the field
   that was compared (conformance.judge.fields), `expected` and `actual` its two values. `missing` is a bit mask of the
   fields that would have decided it. UNKNOWN: no event shows the value.
"""

from tidegauge.conformance.judge import state as s
from tidegauge.traces.columns import UNKNOWN


def decide(st: s.State, rule: int, ok: bool, field: int, expected: int, actual: int) -> None:
    """Count a check that could be decided: it held if `ok`, else it failed with the two values of `field`."""
    if ok:
        st[s.TALLIES + rule, s.HELD_COUNT] += 1
    else:
        failed(st, rule, field, expected, actual)


def failed(st: s.State, rule: int, field: int, expected: int, actual: int) -> None:
    """Count a failure, and keep it when it is the first of its rule in this trace."""
    st[s.TALLIES + rule, s.FAILED_COUNT] += 1
    # After its first failure a rule often fails again for the same reason: later ones only count.
    if st[s.PARTITION, s.FAILED] >> rule & 1:
        return
    st[s.PARTITION, s.FAILED] |= 1 << rule
    st[s.TALLIES + rule, s.FAILED_TRACES] += 1
    at = st[s.PARTITION, s.FAILURES]
    if at == st[s.PARTITION, s.FAILURES_ROOM]:  # the report counts how many it leaves out
        return
    st[s.PARTITION, s.FAILURES] = at + 1
    row = st[s.PARTITION, s.AT_FAILURES] + at
    st[row, s.F_TRACE] = st[s.PARTITION, s.TRACE]
    st[row, s.F_ROW] = st[s.PARTITION, s.NOW]
    st[row, s.F_RULE] = rule
    st[row, s.F_FIELD] = field
    st[row, s.F_EXPECTED] = expected
    st[row, s.F_ACTUAL] = actual


def undecided(st: s.State, rule: int, missing: int) -> None:
    """Count a check that lacked the fields in `missing`."""
    st[s.TALLIES + rule, s.UNDECIDED_COUNT] += 1
    st[s.TALLIES + rule, s.MISSING] |= missing


def same(st: s.State, rule: int, field: int, expected: int, actual: int, missing: int) -> None:
    """Check a reported value against the expected one; `missing`: the fields that an UNKNOWN expectation lacked."""
    if expected == UNKNOWN:
        undecided(st, rule, missing)
    else:
        as_expected(st, rule, field, expected, actual)


def as_expected(st: s.State, rule: int, field: int, expected: int, actual: int) -> None:
    """Check a value that may not be reported against an expected one that is known."""
    if actual == UNKNOWN:
        undecided(st, rule, 1 << field)
    else:
        decide(st, rule, expected == actual, field, expected, actual)


def counted_again(st: s.State, rule: int, times: int, held_before: int, failed_before: int, undecided_before: int) -> None:
    """Count the checks of a rule since the three counts `.._before` were read `times` more.

    A claim that was inherited is compared once and stands for those of several terms (conformance.judge.compaction).
    """
    row = s.TALLIES + rule
    st[row, s.HELD_COUNT] += times * (st[row, s.HELD_COUNT] - held_before)
    st[row, s.FAILED_COUNT] += times * (st[row, s.FAILED_COUNT] - failed_before)
    st[row, s.UNDECIDED_COUNT] += times * (st[row, s.UNDECIDED_COUNT] - undecided_before)
