"""The lines of all logs at a path, each with the node and the cluster that it is of: what a story is told from.

A line is read as for a verdict: in any layout, wrapper or export, each by what it says itself (writers.py). Its
node is None where nothing tells it.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from tidegauge.traces.kafka_logs.discovery.clusters import find_clusters
from tidegauge.traces.kafka_logs.discovery.files import FoundLogs
from tidegauge.traces.kafka_logs.parsing.lines import Line


class SourcedLine(NamedTuple):
    """A line with the id of its node, None if that cannot be told, and the name of its cluster, "" for the first one."""

    node: int | None
    cluster: str
    line: Line


def sourced_lines(path: str | Path, layout: str | None = None) -> Iterator[SourcedLine]:
    """Yield the lines below a path (a directory, or one file): each log in its own order, not merged."""
    yield from sourced_lines_of(find_clusters(Path(path), layout))


def sourced_lines_of(clusters: list[FoundLogs]) -> Iterator[SourcedLine]:
    """Yield the lines of logs that were found already."""
    for cluster in clusters:
        for node in cluster.nodes:
            for stream in node.streams:
                yield from (SourcedLine(None if cluster.nameless else node.id, cluster.name, line) for line in stream)
        yield from (SourcedLine(None, cluster.name, line) for line in cluster.unknown)
