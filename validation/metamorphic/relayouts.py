"""Lays out the same logs in other ways: rotated, split, prefixed, in another pattern, as JSON lines, zipped, moved.

A capture must get the same verdict for every rule however its logs are written: nothing is missing from them. `losses.py`
is for captures of which something is missing.

Rules of this file

1. `RELAYOUTS` keeps what a log reports. `COARSER` keeps every line and loses something else: digits of the time, the thread.
"""

import gzip
import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import partial

from validation.metamorphic.layouts import PREFIXES, WRITERS, in_parts_of_16_kib, written
from validation.metamorphic.rotations import ROTATIONS, one_console, rotated, split_as_stock
from validation.metamorphic.tree import Relayout, Tree, is_log, joined, lines, of_bytes, of_lines, of_names, time_of


def zipped(tree: Tree) -> Tree:
    """Gzip every log."""
    return {
        f"{name}.gz" if is_log(name) else name: gzip.compress(content, mtime=0) if is_log(name) else content
        for name, content in tree.items()
    }


def deeper(tree: Tree) -> Tree:
    """Rename to `n1/logs/server.log`."""
    return of_names(lambda name: "/logs/".join(name.rsplit("/", 1)), tree)


def one_folder(tree: Tree) -> Tree:
    """Rename to `n1-server.log`, all in one folder, without checkpoint files, which would have no node."""
    return {name.replace("/", "-"): content for name, content in tree.items() if is_log(name)}


def one_stream(tree: Tree) -> Tree:
    """Merge as `docker compose logs > cluster.log`: the lines of all nodes, each after its container's name."""
    consoles = one_console({name: content for name, content in tree.items() if is_log(name)})
    texts = [
        (max(time_of(text), datetime(1971, 1, 1, tzinfo=UTC)), name, number, text)
        for name, content in consoles.items()
        for number, text in enumerate(lines(content))
    ]
    return {"cluster.log": joined(f"{name.rpartition('/')[0]}  | {text}" for _, name, _, text in sorted(texts))}


def with_others(tree: Tree) -> Tree:
    """Add logs of other programs, and a second copy of each log."""
    done = dict(tree)
    for name, content in tree.items():
        if is_log(name):
            folder = name.rpartition("/")[0]
            done[f"{folder}/kafkaServer-gc.log"] = b"[0.005s][info][gc] Using G1\n"
            done[f"{folder}/kafkaServer-gc.log.0.current"] = b"[0.005s][info][gc] Using G1\n"
            # Empty files, output of the JVM and copies are in every real folder; none may count as a node's log.
            done[f"{folder}/log-cleaner.log"] = b""
            done[f"{folder}/kafkaServer.out"] = content
            done[f"{name.removesuffix('.log')} (copy).log"] = content
    return done


RELAYOUTS: Mapping[str, Relayout] = {
    "as-it-is": lambda tree: tree,
    **{f"rotated-{name}": partial(rotated, named, 4) for name, named in ROTATIONS.items()},
    "split-as-stock": split_as_stock,
    "split-and-rotated": lambda tree: rotated(ROTATIONS["log4j"], 3, split_as_stock(tree)),
    "one-console": one_console,
    **{f"written-{name}": partial(written, writer) for name, writer in WRITERS.items()},
    **{f"behind-{name}": partial(of_lines, prefix) for name, prefix in PREFIXES.items()},
    "behind-kubernetes-in-parts": in_parts_of_16_kib,
    "behind-kubernetes-as-json": lambda tree: of_lines(PREFIXES["kubernetes"], written(WRITERS["logstash"], tree)),
    "zipped": zipped,
    "deeper": deeper,
    "with-others": with_others,
    "byte-order-mark": partial(of_bytes, b"\xef\xbb\xbf".__add__),
    "utf-16": partial(of_bytes, lambda content: content.decode().encode("utf-16")),
    "carriage-returns": partial(of_bytes, lambda content: content.replace(b"\n", b"\r\n")),
    "hole-of-copytruncate": partial(of_bytes, lambda content: b"\0" * 5000 + content),
    "hole-at-the-end": partial(of_bytes, lambda content: content + b"\0" * 5000),
}
"""By name: the same lines with all their content."""

WITHOUT_CHECKPOINTS: Mapping[str, Relayout] = {
    "one-folder": one_folder,
    "one-folder-rotated": lambda tree: rotated(ROTATIONS["logrotate-zipped"], 3, one_folder(tree)),
    "one-stream": one_stream,
}
"""By name: the same lines; checkpoint files would have no node."""


def in_milliseconds(tree: Tree) -> Tree:
    """Write `%d` without microseconds."""
    return of_lines(lambda text: re.sub(r"^(\[[\d\-: ]+,\d{3})\d{3}\]", r"\1]", text), tree)


def without_thread(tree: Tree) -> Tree:
    """Write Kafka's default layout, which has no thread."""
    return of_lines(lambda text: re.sub(r"^(\[[\d\-: ,]+\] [A-Z]+) \[[^\]]*\]", r"\1", text), tree)


COARSER: Mapping[str, Relayout] = {
    "milliseconds": in_milliseconds,
    "milliseconds-split": lambda tree: split_as_stock(in_milliseconds(tree)),
    "without-thread": without_thread,
    "without-thread-in-milliseconds": lambda tree: without_thread(in_milliseconds(tree)),
    "without-thread-split": lambda tree: without_thread(split_as_stock(in_milliseconds(tree))),
}
"""By name: every line, with less in it. No rule may fail that did not; some may stay undecided."""
