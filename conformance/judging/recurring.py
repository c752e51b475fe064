"""Judging what comes in piece after piece: by the kernel, and by a lazy automaton once that pays.

Rules of this file

1. Nothing depends on it but time: both count the same (conformance.judging.lazy_automaton).
2. An automaton is begun when the kernel has judged as much of the same events as building one is worth, and given up when it
   has asked for more than all that came. So neither costs more than twice what the better of the two would have.
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

LOAD_FROM = 16_000_000
"""Events that the kernel judges in the time that an automaton of a model of 20,000 states is built in."""
COMPILE_FROM = 100_000_000
"""The same where its machine code has to be made first."""
ASKING = 40
"""Events that the kernel judges in the time that one transition takes to be found out."""


class Recurring:
    """A judge that remembers what it was asked last; it begins with an automaton after so many events."""

    def __init__(self, load_from: int = LOAD_FROM, compile_from: int = COMPILE_FROM) -> None:
        self._load_from, self._compile_from = load_from, compile_from
        self._of = ""
        self._judged = 0
        self._automaton: LazyAutomaton | None = None
        self._pays = True

    def judge(
        self, given: Columns | Distinct, config: Config, final: int = 0, compile_from: int = KERNEL_COMPILE_FROM
    ) -> Judgement:
        """What conformance.judging.judge.judge says of these traces."""
        if isinstance(given, Distinct) and not final and not len(given.missing):
            automaton = self._automaton_for(given, config)
            if automaton is not None:
                found = automaton.judge(given)
                self._pays = automaton.transitions * ASKING <= self._judged
                self._automaton = automaton if self._pays else None
                return found
        return judge(given, config, final, compile_from)

    def _automaton_for(self, given: Distinct, config: Config) -> "LazyAutomaton | None":
        """None as long as it does not pay."""
        of = _name(given.table, config)
        if of != self._of:
            self._of, self._judged, self._automaton, self._pays = of, 0, None, True
        self._judged += len(given)
        if self._automaton is None and self._pays and self._judged > self._load_from:
            from tidegauge.conformance.judging.lazy_automaton import LazyAutomaton, is_ready  # noqa: PLC0415  the compiler

            if self._judged > self._compile_from or is_ready():
                automaton = LazyAutomaton(given.table, config)
                self._automaton, self._pays = (automaton, True) if automaton.applies else (None, False)
        return self._automaton


def _name(table: Columns, config: Config) -> str:
    """Stands for the events of a table and the config they are judged by."""
    hashed = hashlib.sha256(repr((config, sorted(table.ints))).encode())
    for name in sorted(table.ints):
        hashed.update(table.ints[name].tobytes())
    hashed.update(table.epochs_reported.tobytes())
    for column in (table.event, table.node, table.epochs_at, table.epochs):
        hashed.update(column.tobytes())
    return hashed.hexdigest()
