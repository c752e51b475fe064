"""The engine of the judge for traces that come piece after piece: the kernel, or a lazy automaton once that is faster.

The kernel checks every event anew. An automaton looks up the effect of an event in a state, which it has learnt by asking
the kernel once; it pays where traces are made of few different events (the table of a traces.columns.Distinct).

Other packages import the automaton from here only; its parts are private to it:

    AdaptiveJudge -> lazy_automaton -> transitions   a hash table of transitions, learnt one by one from the kernel
                                       one_event     its states: each distinct memory of the judge once, as bytes
                                       double_array  the transitions known so far as a double array, for speed

Rules of this file

1. The choice changes the time and nothing else: both engines count the same (conformance.engine.lazy_automaton).
2. It never takes more than about twice as long as the better of the two. Machine code is loaded, or compiled, when the
   kernel has judged for as long as that takes. From then on the automaton may ask the kernel for as many transitions as the
   events so far pay for (ASKING): asking takes no longer than the kernel would for all events. Traces that lead beyond are
   judged by the kernel, which takes no longer than the missing transitions would.
3. It is given up when its memories are full and most events are left to the kernel all the same.
"""

import hashlib
from typing import TYPE_CHECKING

from tidegauge.conformance.engine.judge import COMPILE_FROM as KERNEL_COMPILE_FROM
from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import Columns, Distinct
from tidegauge.traces.schema import Config

if TYPE_CHECKING:
    from tidegauge.conformance.engine.lazy_automaton import LazyAutomaton

# Each is the number of events that the kernel judges in the same time.
BEGIN_FROM = 500_000
"""Allocating the tables of an automaton, whose machine code is loaded."""
LOAD_FROM = 2_000_000
"""Loading the machine code of an automaton, too."""
COMPILE_FROM = 100_000_000
"""Compiling it, too."""
ASKING = 20
"""Learning one transition."""


class AdaptiveJudge:
    """A judge of traces over one table of events; it changes from the kernel to an automaton once that pays."""

    def __init__(self, begin_from: int = BEGIN_FROM, load_from: int = LOAD_FROM, compile_from: int = COMPILE_FROM) -> None:
        """Begin with the kernel.

        An automaton is begun after `begin_from` events of one table if its machine code is loaded, after `load_from` if
        the code is on disk, after `compile_from` if it has to be compiled.
        """
        self._begin_from, self._load_from, self._compile_from = begin_from, load_from, compile_from
        self.automaton: LazyAutomaton | None = None
        # Of the table and config that came last: their fingerprint, how many events came so far, and whether an automaton
        # was of no use (it does not apply, or it was full): then none is begun again.
        self._fingerprint = ""
        self._events = 0
        self._given_up = False

    def judge(
        self, stored: Columns | Distinct, config: Config, final: int = 0, compile_from: int = KERNEL_COMPILE_FROM
    ) -> Judgement:
        """Judge these traces; arguments and result are those of conformance.engine.judge.judge.

        `final` is the number of traces whose last states are wanted.
        """
        # An automaton does not keep last states, does not know of missing lines, and needs a table of distinct events.
        if isinstance(stored, Distinct) and not final and not len(stored.missing):
            automaton = self._automaton_for(stored, config)
            if automaton is not None:
                # It may learn as many transitions as the events so far pay for (rule 2).
                judgement = automaton.judge(stored, self._events // ASKING)
                # It learns no more, and left most events to the kernel all the same (rule 3).
                if automaton.is_closed and 2 * automaton.left > len(stored):
                    self.automaton, self._given_up = None, True
                return judgement
        return judge(stored, config, final, compile_from)

    def _automaton_for(self, stored: Distinct, config: Config) -> "LazyAutomaton | None":
        """Return the automaton of this table, made now if its events have paid for it; None while the kernel is faster."""
        fingerprint = _fingerprint(stored.table, config)
        if fingerprint != self._fingerprint:
            self._fingerprint, self._events, self.automaton, self._given_up = fingerprint, 0, None, False
        self._events += len(stored)
        if self.automaton is None and not self._given_up and self._events > self._begin_from:
            from tidegauge.conformance.engine import lazy_automaton  # noqa: PLC0415  the compiler

            # Code that is loaded costs nothing more; loading and compiling wait until the kernel has judged for as long.
            if (
                lazy_automaton.is_loaded()
                or (self._events > self._load_from and lazy_automaton.is_ready())
                or self._events > self._compile_from
            ):
                automaton = lazy_automaton.LazyAutomaton(stored.table, config)
                self.automaton, self._given_up = (automaton, False) if automaton.applies else (None, True)
        return self.automaton


def is_ready() -> bool:
    """Return whether the machine code of the automaton is compiled already, by this process or another."""
    from tidegauge.conformance.engine import lazy_automaton  # noqa: PLC0415  the compiler

    return lazy_automaton.is_ready()


def prepare() -> None:
    """Load the machine code of the automaton, or compile it."""
    from tidegauge.conformance.engine import lazy_automaton  # noqa: PLC0415  the compiler

    lazy_automaton.prepare()


def _fingerprint(table: Columns, config: Config) -> str:
    """Return a hash of the events of a table and the config by which they are judged: an automaton is for one of these."""
    hashed = hashlib.sha256(repr((config, sorted(table.ints))).encode())
    for name in sorted(table.ints):
        hashed.update(table.ints[name].tobytes())
    hashed.update(table.epochs_reported.tobytes())
    for column in (table.event, table.node, table.epochs_at, table.epochs):
        hashed.update(column.tobytes())
    return hashed.hexdigest()
