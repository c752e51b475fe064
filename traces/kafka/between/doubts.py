"""Uncertain intervals: which steps of a partition lie in a gap. What is judged there is undecided (judging/partial.py).

Rules of this file

1. A gap lies between two steps of its own node. For a log that ends while its process runs that is too wide: a node logs
   nothing for days about a partition to which nothing happens, as a controller does while a leader stays. There the steps of
   other nodes that came before its last line, as far as that is known, do not lie in the gap either.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from tidegauge.traces.kafka.nodes.gaps import END, EVERYTHING, REQUESTS, Gap, Spot
from tidegauge.traces.kafka.nodes.steps import TAKES_RESPONSES, LoggedStep

BEHIND = END[1] - 2
"""From this index on a step comes after the last line of its process."""


def uncertain_intervals(
    gaps: Sequence[Gap],
    steps: Sequence[LoggedStep],
    ahead: Mapping[tuple[int, int], int] = {},
    seen_until: Mapping[tuple[int, int], int] = {},
) -> list[tuple[tuple[int, int], Gap]]:
    """Return each gap with the first and the last of `steps` between which it lies; nodes without steps have none.

    `ahead` bounds the difference of clocks (clocks.py); `seen_until` is until when a log was seen to go on (CarryOver).
    """
    rows: dict[int, list[tuple[int, Spot]]] = {}
    given = {key for step in steps for key in step.provides}
    unanswered: dict[object, list[int]] = {}
    for row, step in enumerate(steps):
        rows.setdefault(step.node, []).append((row, step.place[:2]))
        if step.name in TAKES_RESPONSES and not any(key in given for key in step.depends_on if _is_response(key)):
            unanswered.setdefault(step.fields.get("peer"), []).append(row)
    found = []
    for gap in gaps:
        own = rows.get(gap.node)
        if own:
            # Steps that were added after every line of a process (its end, unlogged sends) do not show how far its log goes.
            first = max((row for row, place in own if place < gap.begin and place[1] < BEHIND), default=0)
            if gap.end == END:
                first = max(first, _steps_before_gap(gap, steps, ahead, seen_until) - 1)
            last = min((row for row, place in own if place >= gap.end), default=len(steps) - 1)
            found.append(((min(first, last), max(first, last)), gap))
        # A response that no step gives lies in the gap of its leader: only clocks order it against the leader's steps.
        if gap.logger in (REQUESTS, EVERYTHING):
            found += [((row, row), gap) for row in unanswered.pop(gap.node, ())]
    return found


def _is_response(key: object) -> bool:
    return isinstance(key, tuple) and key[0] == "answered"


def _steps_before_gap(
    gap: Gap, steps: Sequence[LoggedStep], ahead: Mapping[tuple[int, int], int], seen_until: Mapping[tuple[int, int], int]
) -> int:
    """Count how many of the first steps came before the line after which a gap begins."""
    begin = gap.times[0]
    if begin is None:
        return 0

    def before(step: LoggedStep) -> bool:
        if step.node == gap.node:
            return step.place[:2] <= gap.begin
        if step.time <= seen_until.get((step.node, gap.node), step.time - 1):
            return True
        bound = ahead.get((step.node, gap.node))
        return bound is not None and step.time + bound <= begin

    return sum(1 for _ in takewhile(before, steps))
