"""One trace that grows: at any time the verdict that `check` gives on what has come so far.

Rules of this file

1. The events of a WINDOW are kept, and judged again when a later one shows that lines are missing among them. What shows
   later than that counts from there on: what was judged before it stands.
2. Where lines may be missing that no number shows, a node that was not heard of for a whole window is taken to have ended
   there: that decides less, and makes nothing fail.
3. A failure is news once. It is withdrawn when later lines show that it may be for want of lines that are missing.
"""

from collections.abc import Iterable
from dataclasses import replace

from tidegauge.conformance.judging.damage import undecide_after_loss
from tidegauge.conformance.judging.explain import Explanation, explain_at
from tidegauge.conformance.judging.judge import Failure, Judgement, judgement_of
from tidegauge.conformance.judging.sequence import Numbers, with_numbers
from tidegauge.conformance.judging.unknown_caches import (
    COMPARED,
    MOST,
    RULE,
    LatestEpochs,
    can_explain,
    find_explaining_cache,
    with_truncations,
)
from tidegauge.conformance.judging.window import NOTHING, Found, Kept, Window, failures_of, firsts, lost_behind
from tidegauge.conformance.kernel.state import BROKERS, NOW, OPTION, UNSEEN, WHOLE, State
from tidegauge.conformance.kernel.unseen import unseen
from tidegauge.conformance.kernel.whole import logs_agree
from tidegauge.traces.columns import Gaps
from tidegauge.traces.schema import MISSING_AHEAD, Event, Trace

WINDOW = 512
"""Events that are kept at least, and twice as many at most."""


class Followed:
    """One trace: `take` reads on, everything else asks."""

    def __init__(self, trace: Trace) -> None:
        self.name = trace.name
        self.damaged: int | None = None
        """The first event that came behind a lost line."""
        self.window = Window(trace)
        self._numbers = Numbers(trace.name)
        self._gaps = Gaps(trace.config)
        self._asked = LatestEpochs()
        self._known: set[tuple[str, int]] = set()

    @property
    def events(self) -> int:
        """Events so far."""
        return self.window.events

    def take(self, events: Iterable[Event]) -> tuple[list[Failure], list[tuple[str, int]]]:
        """Judge the events that come next: the failures that are news, and those withdrawn, by rule and row."""
        begun, again, new = self.events, False, list[Kept]()
        for row, event in enumerate(events, begun):
            self._numbers.take(row, event)
            lost, before = self._gaps.take(row, event)
            if lost and before is not None and before >= begun:
                new[before - begun] = lost_behind(new[before - begun])
            elif lost and before is not None:
                again = self.window.lose(before) or again
            new.append(Kept(event, MISSING_AHEAD if lost else 0, self._asked.latest(event)))
        self.window.take(new, again)
        stand = {(one.rule, one.row): one for one in self._standing()}
        news = [one for key, one in stand.items() if key not in self._known]
        gone = [key for key in sorted(self._known) if key not in stand and key[1] >= self.window.earlier]
        self._known = set(stand)
        return news, gone

    def forget(self) -> None:
        """Keep the last events only."""
        gone = len(self.window.kept) - WINDOW
        if gone <= WINDOW:
            return
        upto = self.window.earlier + gone
        ended = [self.window.lose(row) for row in self._gaps.ends() if row < upto]
        self.window.forget(gone)
        if any(ended):
            self.window.judge_again()

    def judgement(self) -> Judgement:
        """What every rule says if the trace ends here."""
        st, found = self._so_far()
        found = found.and_(Found(ended(st, self.events - 1), []))
        judgement = judgement_of(self.events, 1, st, *NOTHING)
        tallies = {rule: replace(one, failed_traces=min(one.failed, 1)) for rule, one in judgement.tallies.items()}
        judgement = replace(judgement, tallies=tallies, failures=tuple(firsts(found.failures)), failures_left_out=0)
        judgement = with_truncations(with_numbers(judgement, [self._numbers], [0]), found.truncations)
        return judgement if self.damaged is None else undecide_after_loss(judgement, self.damaged, self.name)

    def explained(self, failure: Failure) -> Explanation | None:
        """The explanation of a failure; None where its event is kept no longer."""
        placed = self.window.place(failure)
        return None if placed is None else explain_at(*placed)

    def at(self, failure: Failure) -> str:
        """Where the event of a failure was read."""
        row = failure.row - self.window.earlier
        return (self.window.kept[row].event.at if row >= 0 else "") or f"event {failure.row + 1}"

    def _so_far(self) -> tuple[State, Found]:
        """The table, and what came up, if nothing more is heard of any node."""
        window, ends = self.window, [row for row in self._gaps.ends() if row >= self.window.earlier]
        if not ends:
            return window.now.copy(), window.past.and_(window.recent)
        kept = [*window.kept]
        for row in ends:
            kept[row - window.earlier] = lost_behind(kept[row - window.earlier])
        st, found = window.anew(kept)
        return st, window.past.and_(found)

    def _standing(self) -> list[Failure]:
        """All failures that are known and may be told."""
        window, number = self.window, self._numbers.first
        found = self._so_far()[1] if window.recent.failures else window.past.and_(window.recent)
        failures = [*found.failures]
        if found.truncations and can_explain():
            unexplained = [one for one in found.truncations[:MOST] if find_explaining_cache(one) is None]
            failures += [Failure(0, one.row, RULE, COMPARED, 1, 0) for one in unexplained]
        if number is not None:
            failures.append(number)
        return [one for one in failures if self.damaged is None or one.row < self.damaged]


def ended(st: State, row: int) -> list[Failure]:
    """What fails when a trace ends behind this row, as in judge_traces (conformance.kernel.judge_kernel)."""
    st[WHOLE, NOW] = 0
    if st[OPTION, UNSEEN] != 0:
        for b in range(st[OPTION, BROKERS]):
            unseen(st, b)
    logs_agree(st)
    return failures_of(st, row)
