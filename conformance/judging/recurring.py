"""Judging what comes in piece after piece: by the kernel, and by a lazy automaton once that pays.

Rules of this file

1. Nothing depends on it but time: both count the same (conformance.judging.lazy_automaton).
2. It never costs more than about twice what the better of the two would have. Machine code is loaded, or made, when the
   kernel has judged for as long as that takes. From then on the automaton asks for no more transitions than the events that
   came pay for: finding them out takes no longer than the kernel would for all events. What leads beyond is left to the
   kernel, and that is no more than the transitions cost that are still to be found out.
3. It is given up when its memories are full and most events are left to the kernel all the same.
"""

import hashlib
from typing import TYPE_CHECKING

from tidegauge.conformance.judging.judge import COMPILE_FROM as KERNEL_COMPILE_FROM
from tidegauge.conformance.judging.judge import Judgement, judge
from tidegauge.traces.columns import Columns
from tidegauge.traces.files.distinct import Distinct
from tidegauge.traces.schema import Config

if TYPE_CHECKING:
    from tidegauge.conformance.judging.lazy_automaton import LazyAutomaton

BEGIN_FROM = 500_000
"""Events that the kernel judges in the time that the tables of an automaton are made in."""
LOAD_FROM = 2_000_000
"""The same where its machine code has to be loaded first,"""
COMPILE_FROM = 100_000_000
"""and where it has to be made."""
ASKING = 20
"""Events that the kernel judges in the time that one transition takes to be found out."""


class Recurring:
    """A judge that remembers what it was asked last; it begins with an automaton after so many events."""

    def __init__(self, begin_from: int = BEGIN_FROM, load_from: int = LOAD_FROM, compile_from: int = COMPILE_FROM) -> None:
        self._begin_from, self._load_from, self._compile_from = begin_from, load_from, compile_from
        self.automaton: LazyAutomaton | None = None
        self._of = ""
        self._judged = 0
        self._pays = True

    def judge(
        self, given: Columns | Distinct, config: Config, final: int = 0, compile_from: int = KERNEL_COMPILE_FROM
    ) -> Judgement:
        """What conformance.judging.judge.judge says of these traces."""
        if isinstance(given, Distinct) and not final and not len(given.missing):
            automaton = self._automaton_for(given, config)
            if automaton is not None:
                found = automaton.judge(given, self._judged // ASKING)
                self._pays = not (automaton.is_closed and 2 * automaton.left > len(given))
                self.automaton = automaton if self._pays else None
                return found
        return judge(given, config, final, compile_from)

    def _automaton_for(self, given: Distinct, config: Config) -> "LazyAutomaton | None":
        """None as long as it does not pay."""
        of = _name(given.table, config)
        if of != self._of:
            self._of, self._judged, self.automaton, self._pays = of, 0, None, True
        self._judged += len(given)
        if self.automaton is None and self._pays and self._judged > self._begin_from:
            from tidegauge.conformance.judging import lazy_automaton  # noqa: PLC0415  the compiler

            if (
                lazy_automaton.is_loaded()
                or (self._judged > self._load_from and lazy_automaton.is_ready())
                or self._judged > self._compile_from
            ):
                automaton = lazy_automaton.LazyAutomaton(given.table, config)
                self.automaton, self._pays = (automaton, True) if automaton.applies else (None, False)
        return self.automaton


def _name(table: Columns, config: Config) -> str:
    """Stands for the events of a table and the config they are judged by."""
    hashed = hashlib.sha256(repr((config, sorted(table.ints))).encode())
    for name in sorted(table.ints):
        hashed.update(table.ints[name].tobytes())
    hashed.update(table.epochs_reported.tobytes())
    for column in (table.event, table.node, table.epochs_at, table.epochs):
        hashed.update(column.tobytes())
    return hashed.hexdigest()
