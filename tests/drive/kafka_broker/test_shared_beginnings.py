"""Paths that begin alike: what was seen after the same steps is known, and slots play paths that are no neighbours."""

import asyncio
import itertools
from typing import Any

import pytest

from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.kafka_broker import node
from tidegauge.drive.kafka_broker.node import KnownReports, PathRun, no_reports, spread
from tidegauge.drive.kafka_broker.partition import DrivenPartition
from tidegauge.drive.runner.player import PrefixTree

LEAD, APPEND, OTHER = ("metadata", 1, 0, 0, (1, 2)), ("append", 1), ("append", -1)
SEEN: Report = {"result": None, "requests": {}, "produced": [], "fetched": {}, "log_start": 3}

LOOKED: Report = {"looked": True}


def test_a_step_is_taken_once_for_all_paths_that_begin_with_it() -> None:
    taken: list[tuple[int, Step]] = []

    def longer(before: int, step: Step) -> int:
        taken.append((before, step))
        return before + 1

    beginning = PrefixTree(0, longer)
    ends = [beginning.after(LEAD).after(step) for step in (APPEND, OTHER, APPEND)]
    assert [end.value for end in ends] == [2, 2, 2]
    assert ends[0] is ends[2]
    assert taken == [(0, LEAD), (1, APPEND), (1, OTHER)]


class Given:
    """A partition that notes what it is given, and what is known of it then."""

    def __init__(self) -> None:
        self.given_to: list[tuple[Any, Report | None]] = []

    async def take(self, step: Any, known: Report | None = None) -> Report:
        self.given_to.append((step, known))
        return SEEN if known is None else known


def known_on(path: tuple[Any, ...], beginning: KnownReports) -> list[Report | None]:
    """What is known when each step of the path is taken."""
    partition: Any = Given()
    run = PathRun(0, BrokerCase(Opening((2,)), path), partition, beginning)
    for step in path:
        assert run.next_step() == step
        asyncio.run(run.take(step))
        assert run.log_start == SEEN["log_start"]
    return [known for _, known in partition.given_to]


def test_a_beginning_that_was_seen_is_known_on_the_next_path_but_for_its_last_step() -> None:
    beginning = no_reports()
    assert known_on((LEAD, APPEND, APPEND), beginning) == [None, None, None]
    assert known_on((LEAD, APPEND, OTHER), beginning) == [SEEN, SEEN, None], "the last one is another"
    assert known_on((LEAD, APPEND, OTHER), beginning) == [SEEN, SEEN, None], "the last one is looked at"
    assert known_on((APPEND, APPEND), beginning) == [None, None], "the same steps after others are no beginning"
    assert known_on((LEAD, APPEND), no_reports()) == [None, None], "who plays again looks again"


class Says(DrivenPartition):
    """A partition that says this by itself, and is looked at as that."""

    def __init__(self, result: Report | None, requests: dict[str, dict[str, int]]) -> None:
        self._result, self._in_flight = result, requests
        self._broker: Any = type("Broker", (), {"lag_check": None})

    async def _append(self, _acks: int) -> Report | None:
        return self._result

    def _requests(self) -> dict[str, dict[str, int]]:
        return self._in_flight

    async def report(self, result: Report | None = None) -> Report:
        assert result == self._result
        return LOOKED


@pytest.mark.parametrize(
    ("known", "looks"),
    [
        (SEEN, False),
        (None, True),
        ({**SEEN, "result": {"error": 6}}, True),
        ({**SEEN, "requests": {"2": {"fetch_offset": 1}}}, True),
        ({**SEEN, "produced": [[0, 0]]}, True),
        ({**SEEN, "fetched": {"2": None}}, True),
    ],
    ids=["same", "unknown", "another result", "another request", "a producer that waited", "a peer that waited"],
)
def test_what_is_known_is_taken_for_seen_where_the_partition_says_the_same(known: Report | None, looks: bool) -> None:
    found = asyncio.run(Says(None, {}).take(APPEND, known))
    assert (found is LOOKED) == looks
    assert found is (LOOKED if looks else known)


@pytest.mark.parametrize("paths", [0, 1, 15, 16, 17, 100, 1_000])
def test_paths_that_lie_side_by_side_are_not_played_at_a_time(paths: int) -> None:
    found = spread(paths, node.SLOTS)
    assert sorted(found) == list(range(paths)), "each once"
    stretch = -(-paths // node.SLOTS)
    assert all(found.index(path) < found.index(path + 1) for path in range(paths - 1) if (path + 1) % (stretch or 1))
    at_a_time = sorted(found[: -(-paths // stretch)] if stretch else [])
    assert all(other - one == stretch for one, other in itertools.pairwise(at_a_time))
