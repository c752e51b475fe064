"""Gaps: where lines are missing from the logs of a node, of which logger, and how that is known."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegauge.traces.kafka.lines.lines import clock

BEGIN, END = (-1, -1), (1 << 60, 1 << 60)
"""Before the first line of a node, and after its last one."""

Spot = tuple[int, int]
"""(process run, index of the line)."""

FETCHER, LOG, PARTITION, ROLES, CACHE, REQUESTS = (
    "ReplicaFetcherThread at TRACE",
    "UnifiedLog at TRACE",
    "kafka.cluster.Partition at TRACE",
    "state.change.logger at INFO",
    "LeaderEpochFileCache at DEBUG",
    "kafka.request.logger at DEBUG",
)
EVERYTHING = "every logger"
WORDS: Mapping[str, str] = {"leo": "log end", "hw": "high watermark", "entry": "epoch"}


@dataclass(frozen=True, slots=True)
class Gap:
    """Lines of `logger` are missing at `node`, somewhere after `begin` and before `end`."""

    node: int
    logger: str
    begin: Spot
    end: Spot
    times: tuple[int | None, int | None]
    why: str

    def __str__(self) -> str:
        first, last = (None if time is None else clock(time)[11:23] for time in self.times)
        if first is None:
            when = "all the time" if last is None else f"before {last}"
        else:
            when = f"after {first}" if last is None else f"{first} to {last}"
        return f"{self.logger} of node {self.node}, {when}: {self.why}"


def latest_epoch(epochs: object) -> int | None:
    """Return the epoch of the last entry of a cache, -1 if it is empty, None if the cache is unknown."""
    if not isinstance(epochs, list):
        return None
    return int(epochs[-1][0]) if epochs else -1
