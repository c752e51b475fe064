"""Which steps of a partition lie in a gap: what is judged there is unknown (conformance.judging.partial).

Rules of this file

1. A gap lies between two steps of its own node. Where a log ends while its process runs, that is no good measure: of a
   partition that nothing happens to a node tells nothing for days, as a controller does of one whose leader stays. There
   the steps of others that its last line is known to be later than do not lie in the gap either.
"""

from collections.abc import Mapping, Sequence
from itertools import takewhile

from tidegauge.traces.kafka.nodes.gaps import END, EVERYTHING, REQUESTS, Gap, Spot
from tidegauge.traces.kafka.nodes.steps import TAKES_RESPONSES, LoggedStep

BEHIND = END[1] - 2
"""From this index on a step stands behind the last line of its process."""


def doubtful(
    gaps: Sequence[Gap],
    steps: Sequence[LoggedStep],
    ahead: Mapping[tuple[int, int], int] = {},
    over: Mapping[tuple[int, int], int] = {},
) -> list[tuple[tuple[int, int], Gap]]:
    """Each gap with the first and the last of `steps`, in their order, that it lies between; without those of nodes that
    tell nothing. A response that nobody gives lies in one of its leader's too: of the two only a clock tells the order."""
    rows: dict[int, list[tuple[int, Spot]]] = {}
    given = {key for step in steps for key in step.offers}
    unanswered: dict[object, list[int]] = {}
    for row, step in enumerate(steps):
        rows.setdefault(step.node, []).append((row, step.place[:2]))
        if step.name in TAKES_RESPONSES and not any(key in given for key in step.awaits if _is_response(key)):
            unanswered.setdefault(step.fields.get("peer"), []).append(row)
    found = []
    for gap in gaps:
        own = rows.get(gap.node)
        if own:
            # what was put behind every line of a process (its end, sends nobody logged) does not say how far its log goes
            first = max((row for row, place in own if place < gap.begin and place[1] < BEHIND), default=0)
            if gap.end == END:
                first = max(first, _heard_over(gap, steps, ahead, over) - 1)
            last = min((row for row, place in own if place >= gap.end), default=len(steps) - 1)
            found.append(((min(first, last), max(first, last)), gap))
        if gap.logger in (REQUESTS, EVERYTHING):
            found += [((row, row), gap) for row in unanswered.pop(gap.node, ())]
    return found


def _is_response(key: object) -> bool:
    return isinstance(key, tuple) and key[0] == "answered"


def _heard_over(
    gap: Gap, steps: Sequence[LoggedStep], ahead: Mapping[tuple[int, int], int], over: Mapping[tuple[int, int], int]
) -> int:
    """How many of the first steps were taken before the line that a gap begins with: clocks are known (clocks.py), or the
    log was seen to go on (before.py)."""
    begin = gap.times[0]
    if begin is None:
        return 0

    def before(step: LoggedStep) -> bool:
        if step.node == gap.node:
            return step.place[:2] <= gap.begin
        if step.time <= over.get((step.node, gap.node), step.time - 1):
            return True
        bound = ahead.get((step.node, gap.node))
        return bound is not None and step.time + bound <= begin

    return sum(1 for _ in takewhile(before, steps))
