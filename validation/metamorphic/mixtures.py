"""Mixes logs as people do: brokers in one file, two clusters in one folder, other programs' logs, times without a fraction.

A healthy capture never fails in a mixture: a line that is taken for another node's, or another cluster's, would look like a
broken broker. Rules of this file: a mixture changes names, prefixes and times, and no message; a line may get a new place.
"""

import json
import random
import re
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta

from validation.metamorphic.log_files import Files, node
from validation.metamorphic.tree import parts, time_of

Mixture = Callable[[random.Random, Files], Files]

ONE_DIRECTORY = "/var/lib/kafka/data"
"""As containers call the log directory of each broker."""

_STAMP = re.compile(r"^\[(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d),(\d+)\]")
_DIRECTORY = re.compile(r"/var/lib/kafka/n\d+(?![\w.])")
_THREAD = re.compile(r"^(\[[\d\-: ,]+\] [A-Z]+) \[[^\]]*\]")


def entries(lines: Sequence[str]) -> list[str]:
    """Return the lines that are whole log lines: what `grep` and log platforms keep of a log."""
    return [line for line in lines if parts(line) is not None]


def time_line(files: Files) -> list[str]:
    """Return the lines of all files by time, as `cat | sort` makes it."""
    return sorted((line for lines in files.values() for line in entries(lines)), key=time_of)


def merged(_chosen: random.Random, files: Files) -> Files:
    """Merge everything into one file."""
    return {"timeline.log": time_line(files)}


def without_threads(chosen: random.Random, files: Files) -> Files:
    """Merge everything in Kafka's stock layout, which has no threads."""
    return {name: [_THREAD.sub(r"\1", line) for line in lines] for name, lines in merged(chosen, files).items()}


def one_directory(chosen: random.Random, files: Files) -> Files:
    """Merge brokers that call their log directory the same, as in containers."""
    return {name: [_DIRECTORY.sub(ONE_DIRECTORY, line) for line in lines] for name, lines in merged(chosen, files).items()}


def two_merged(chosen: random.Random, files: Files) -> Files:
    """Merge the logs of two nodes; the others keep their own."""
    nodes = sorted({node(name) for name in files})
    pair = set(chosen.sample(nodes, min(2, len(nodes))))
    together = {name: lines for name, lines in files.items() if node(name) in pair}
    return {**{name: lines for name, lines in files.items() if name not in together}, "both/server.log": time_line(together)}


def pods(_chosen: random.Random, files: Files) -> Files:
    """Merge as a log shipper exports: a JSON document per line with the pod's name, which is not the node's id."""
    names = {one: f"kafka-{letter}" for one, letter in zip(sorted({node(name) for name in files}), "abcdefgh", strict=False)}
    stamped = sorted(
        ((line, names[node(name)]) for name, lines in files.items() for line in entries(lines)),
        key=lambda entry: time_of(entry[0]),
    )
    documents = [
        json.dumps(
            {"log": f"{line}\n", "stream": "stdout", "kubernetes": {"pod_name": pod, "container_name": "kafka"}},
            sort_keys=True,
        )
        for line, pod in stamped
    ]
    return {"pods.log": documents}


FOREIGN: Mapping[str, Sequence[str]] = {
    "zookeeper.log": ("[{}] INFO [main] binding to port 0.0.0.0:2181 (org.apache.zookeeper.server.NIOServerCnxnFactory)",),
    "connect.log": (
        "[{}] INFO [main] Kafka version: 3.7.0 (org.apache.kafka.common.utils.AppInfoParser)",
        "[{}] INFO [main] Kafka Connect worker initializing ... (org.apache.kafka.connect.cli.AbstractConnectCli)",
        "[{}] INFO [main] [Worker clientId=connect-1, groupId=c] Started (org.apache.kafka.connect.runtime.Worker)",
    ),
    "app.log": ("{} ERROR checkout failed: timeout", "{} INFO retrying"),
    "access.log": ('10.0.0.7 - - [{}] "GET /health HTTP/1.1" 200 2',),
}


def foreign(chosen: random.Random, files: Files) -> Files:
    """Add logs of other programs, beside the nodes or among their files."""
    first = next((line for lines in files.values() for line in entries(lines)), "[2026-11-21 10:00:00,000]")
    stamp = first[1 : first.index("]")]
    folders = ["", "other/", *sorted({name.rpartition("/")[0] + "/" for name in files})]
    added = {f"{chosen.choice(folders)}{name}": [text.format(stamp) for text in texts] for name, texts in FOREIGN.items()}
    return {**files, **added}


def in_seconds(_chosen: random.Random, files: Files) -> Files:
    """Write times without a fraction."""
    return {name: [_STAMP.sub(r"[\1]", line) for line in lines] for name, lines in files.items()}


def halves(chosen: random.Random, files: Files, other: Files, prefix: str) -> Files:
    """Take some nodes of one cluster and other ids of a second one, at the same time or one after the other.

    No id is there twice: topics alone tell the two apart.
    """
    ids = sorted({_node_id(name) for name in (*files, *other)})
    first = set(chosen.sample(ids, chosen.randint(1, max(1, len(ids) - 1))))
    kept = {name: lines for name, lines in files.items() if _node_id(name) in first}
    rest = {name: lines for name, lines in other.items() if _node_id(name) not in first}
    if chosen.random() < 0.7:
        rest = moved(rest, files)
    return {**kept, **{f"{prefix}{name}": lines for name, lines in rest.items()}}


def _node_id(path: str) -> str:
    """Return the number of a node, which captures name `n1` or `broker-1`; the name of one without a number."""
    return re.sub(r"\D", "", node(path)) or node(path)


def moved(files: Files, to: Files) -> Files:
    """Move the times of files to when others begin."""
    begins = [min((time_of(line) for lines in one.values() for line in entries(lines)), default=None) for one in (files, to)]
    if begins[0] is None or begins[1] is None:
        return files
    return {name: [_later(line, begins[1] - begins[0]) for line in lines] for name, lines in files.items()}


def _later(line: str, delay: timedelta) -> str:
    found = _STAMP.match(line)
    if found is None:
        return line
    digits = len(found[2])
    return f"[{(time_of(line) + delay).strftime('%Y-%m-%d %H:%M:%S,%f')[: 20 + digits]}]{line[found.end() :]}"


MIXTURES: Mapping[str, Mixture] = {
    "mix: one file of all nodes": merged,
    "mix: one file, stock layout": without_threads,
    "mix: one file, one directory": one_directory,
    "mix: two nodes in one file": two_merged,
    "mix: pods in JSON": pods,
    "mix: logs of other programs": foreign,
    "mix: times in seconds": in_seconds,
}
"""By name; a second cluster is mixed in by `halves`."""
