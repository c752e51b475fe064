"""Which events lie in a gap."""

import pytest

from tidegauge.traces.kafka.between.doubts import doubtful
from tidegauge.traces.kafka.nodes.gaps import LOG, REQUESTS, Gap
from tidegauge.traces.kafka.nodes.steps import LoggedStep

SEND = ("answered", 7)


def step(node: int, name: str, index: int, **fields: object) -> LoggedStep:
    return LoggedStep(node, "alpha-0", name, dict(fields), f"n{node}/server.log:{index}", index, (0, index, 0, index))


def gap(logger: str) -> Gap:
    """Behind the fourth line of node 2, and in front of the fifth."""
    return Gap(2, logger, (0, 4), (0, 5), (4, 5), "lost")


@pytest.mark.parametrize(("logger", "given", "rows"), [(REQUESTS, False, [3, 0]), (REQUESTS, True, [3]), (LOG, False, [3])])
def test_a_response_that_nobody_gives_lies_in_a_gap_of_its_leader(logger: str, given: bool, rows: list[int]) -> None:
    """Whatever the follower's clock says, which here puts it in front of everything: nothing else orders the two."""
    taken = step(1, "HandleDivergingResponse", 0, peer=2)
    taken.awaits.append(SEND)
    steps = [taken, *(step(2, "HandleFetch", index) for index in (1, 2, 3, 6))]
    if given:
        steps[-1].offers.append(SEND)
    assert [first for (first, _), _ in doubtful([gap(logger)], steps)] == rows
