"""Which events lie in a gap."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.traces.kafka_logs import read
from tidegauge.traces.kafka_logs.correlation.log_coverage import MANY_GAPS, CaptureGaps, uncertain_intervals
from tidegauge.traces.kafka_logs.correlation.merge import SLACK_MICROSECONDS, WINDOW, ahead
from tidegauge.traces.kafka_logs.nodes.gap_detection import EVERYTHING, LOG, REQUESTS
from tidegauge.traces.kafka_logs.nodes.logged_broker import LoggedReplica, LoggedStep
from tidegauge.traces.kafka_logs.parsing.lines import AFTER_ALL_LINES, Gap

SEND = ("answered", 7)
SECOND = 1_000_000


def step(node: int, name: str, index: int, **fields: object) -> LoggedStep:
    return LoggedStep(node, "alpha-0", name, dict(fields), f"n{node}/server.log:{index}", index, (0, index, 0, index))


def gap(logger: str) -> Gap:
    """Behind the fourth line of node 2, and in front of the fifth."""
    return Gap(2, logger, (0, 4), (0, 5), (4, 5), "lost")


@pytest.mark.parametrize(("logger", "given", "rows"), [(REQUESTS, False, [3, 0]), (REQUESTS, True, [3]), (LOG, False, [3])])
def test_a_response_that_nobody_gives_lies_in_a_gap_of_its_leader(logger: str, given: bool, rows: list[int]) -> None:
    """Whatever the follower's clock says, which here puts it in front of everything: nothing else orders the two."""
    taken = step(1, "HandleDivergingResponse", 0, peer=2)
    taken.depends_on += (SEND,)
    steps = [taken, *(step(2, "HandleFetch", index) for index in (1, 2, 3, 6))]
    if given:
        steps[-1].provides += (SEND,)
    assert [first for (first, _), _ in uncertain_intervals(CaptureGaps([gap(logger)]), steps)] == rows


def tied(node: int, other: int, sent: int, handled: int) -> list[LoggedStep]:
    """A fetch of one node that another handles."""
    pair = [step(node, "SendFetch", sent), step(other, "HandleFetch", handled)]
    pair[0].provides += (("sent", sent),)
    pair[1].depends_on += (("sent", sent),)
    return pair


@given(offsets=st.tuples(st.integers(-SECOND, SECOND), st.integers(-SECOND, SECOND)), places=st.lists(st.integers(1, 9)))
def test_no_clock_is_further_ahead_than_it_is_said_to_be(offsets: tuple[int, int], places: list[int]) -> None:
    """Whatever messages there are: of three nodes, the first's clock is right."""
    wrong = (0, *offsets)
    steps = []
    for at, place in enumerate(places):
        node, other, sent = place % 3, (place + 1 + place % 2) % 3, SECOND * at
        steps += tied(node, other, sent + wrong[node], sent + place + wrong[other])
        steps[-2].provides = steps[-1].depends_on = (("sent", at),)
    for (node, other), bound in ahead(steps).items():
        assert bound >= wrong[other] - wrong[node] + SLACK_MICROSECONDS


def test_what_is_not_tied_both_ways_is_not_known() -> None:
    assert ahead(tied(1, 2, 0, 5)) == {}
    assert ahead([*tied(1, 2, 0, 5), *tied(2, 1, 10, 11)]) == {
        (1, 2): 5 + SLACK_MICROSECONDS,
        (2, 1): 1 + SLACK_MICROSECONDS,
    }


def test_what_clocks_were_long_ago_is_not_asked() -> None:
    """They drift: what two of them differed by, hours before, says less and less."""
    long_ago = [*tied(1, 2, 0, 5), *tied(2, 1, 10, 11)]
    late = [*tied(1, 2, 2 * WINDOW, 2 * WINDOW + 900), *tied(2, 1, 2 * WINDOW + 1000, 2 * WINDOW + 1001)]
    assert ahead([*long_ago, *late]) == ahead(late) == {(1, 2): 900 + SLACK_MICROSECONDS, (2, 1): 1 + SLACK_MICROSECONDS}


@pytest.mark.parametrize(
    ("bounds", "over", "first"),
    [({}, {}, 0), ({(1, 2): 4}, {}, 4), ({(1, 2): 40}, {}, 0), ({}, {(1, 2): 3}, 3), ({(1, 2): 2}, {(1, 2): 3}, 6)],
)
def test_a_log_that_goes_on_lacks_nothing_of_what_came_before(
    bounds: dict[tuple[int, int], int], over: dict[tuple[int, int], int], first: int
) -> None:
    """Node 2 says nothing of the partition behind its first line, and its log ends at time 8."""
    steps = [step(2, "ChangePartition", 0), *(step(1, "LeaderAppend", index) for index in range(1, 9))]
    ends = Gap(2, EVERYTHING, (0, 100), AFTER_ALL_LINES, (8, None), "its log ends while the process runs")
    assert uncertain_intervals(CaptureGaps([ends]), steps, bounds, over) == [((first, 8), ends)]


def test_of_many_gaps_between_the_same_steps_there_is_one_of_each_logger() -> None:
    """A node whose lines lack a logger has a gap at each line, and each may lie in thousands of partitions."""
    loggers = [LOG, REQUESTS] * MANY_GAPS
    gaps = [Gap(2, logger, (0, 4 + at), (0, 5 + at), (4, 5), str(at)) for at, logger in enumerate(loggers)]
    steps = [step(2, "HandleFetch", index) for index in (1, 2, 10_000)]
    assert uncertain_intervals(CaptureGaps(gaps), steps) == [((1, 2), gap) for gap in gaps[:2]]
    assert uncertain_intervals(CaptureGaps(gaps[:MANY_GAPS]), steps) == [((1, 2), gap) for gap in gaps[:MANY_GAPS]]


def test_what_is_forgotten_stays_so_until_a_line_speaks_of_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not a step for each partition at each line that cannot be: 5,000 partitions took gigabytes."""
    shrinks = (
        "Shrinking ISR from 1,2 to 1. Leader: (highWatermark: 1, endOffset: 3). "
        "Out of sync replicas: (brokerId: 2, endOffset: 1). (kafka.cluster.Partition)"
    )
    stamps = [f"[2026-11-28 08:00:{at // 50:02d},{at % 50 * 20:03d}]" for at in range(300)]
    texts = [f"{stamp} INFO [Partition a-{at} broker=1] {shrinks}" for at, stamp in enumerate(stamps)]
    log = tmp_path / "n1" / "server.log"
    log.parent.mkdir()
    log.write_text("\n".join([*texts, *texts]) + "\n")
    forgotten: list[LoggedReplica] = []

    def forget(replica: LoggedReplica) -> None:
        forgotten.append(replica)

    monkeypatch.setattr(LoggedReplica, "forget", forget)
    read(tmp_path)
    assert 0 < len(forgotten) <= 3 * len(texts)
