"""Lines that were written late: from a capture another one that Kafka could have written while the same things happened.

    thread A   counts b2, [Recorded b2]  >>>>>>>>>>>  Recorded b2      its fetch waits: no response yet
    thread B              counts b3, Setting, updated, Recorded b3     b2's fetch is answered

Rules of this file

1. A line is stamped and placed later, or placed later with its stamp (log4j2 stamps before it waits for the file). Each
   thread keeps its order, and so do the lines under one lock: those of one log, of roles and of the ISR of one partition.
2. What its thread did after the line bounds it: its next line; the first response that its request may have had, by the
   request log and by the follower's fetcher; the end of its process. The next line of another request ends an interval that
   begins at this line, so the line stays BEFORE it; so does a request line, of which the next one of its network thread
   is counted back.
3. Evidence is taken at its earliest, so fewer lines move than could; none moves that could not.
"""

import json
import re
from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from random import Random

from validation.metamorphic.log_files import Files, node
from validation.metamorphic.tree import parts

EPOCH, MICROSECOND = datetime(1970, 1, 1, tzinfo=UTC), timedelta(microseconds=1)
LATEST = 50_000
"""How late a line of a real cluster was, in microseconds."""
BEFORE, REQUEST_BEFORE, BURST = 60_000, 150_000, 2_000
"""Microseconds between a line and the next one of its thread that is of another request; within one request."""

RECORDED, UPDATED, SKIPPING, PROGRESS, APPENDED, SETTING = (
    "recorded",
    "updated",
    "skipping",
    "progress",
    "appended",
    "setting",
)
_KINDS = (
    (RECORDED, re.compile(r"\[Partition (?P<tp>\S+) broker=\d+\] Recorded replica (?P<peer>\d+) log end offset")),
    (UPDATED, re.compile(r"\[Partition (?P<tp>\S+) broker=\d+\] High watermark updated from")),
    (SKIPPING, re.compile(r"\[Partition (?P<tp>\S+) broker=\d+\] Skipping update high watermark")),
    (PROGRESS, re.compile(r"\[Partition (?P<tp>\S+) broker=\d+\] Progress awaiting ISR acks")),
    (APPENDED, re.compile(r"\[(?:UnifiedLog|Log) partition=(?P<tp>[^,\]]+)[^\]]*\] Appended message set")),
    (SETTING, re.compile(r"\[(?:UnifiedLog|Log) partition=(?P<tp>[^,\]]+)[^\]]*\] Setting high watermark")),
    # Under leaderIsrUpdateLock, or the log's lock: lines that no line of their partition passes.
    ("locked", re.compile(r"\[(?:Partition|UnifiedLog partition=|Log partition=) ?(?P<tp>[^\s,\]]+)[^\]]*\] ")),
    ("locked", re.compile(r"\b(?:Leader|Follower|partition) (?P<tp>\S+-\d+) ")),
)
_OF_A_LOG, _OF_A_ROLE = frozenset((APPENDED, SETTING)), frozenset((UPDATED, SKIPPING, APPENDED, SETTING))
"""Printed in the log's lock; while the role is kept: with leaderIsrUpdateLock to read."""
_ONE_REQUEST = {
    APPENDED: frozenset((SETTING, SKIPPING, PROGRESS)),
    SETTING: frozenset((UPDATED,)),
    UPDATED: frozenset((PROGRESS, RECORDED)),
    SKIPPING: frozenset((PROGRESS, RECORDED)),
}
_FETCHER = re.compile(r"\[ReplicaFetcher replicaId=\d+, leaderId=(\d+),")
_JUDGED = frozenset(("FETCH", "PRODUCE", "OFFSET_FOR_LEADER_EPOCH", "ALTER_PARTITION", "LIST_OFFSETS"))


@dataclass
class _Entry:
    """A line, with the rest of its message, and where it goes: behind line `behind`, at `stamp` (microseconds)."""

    path: str
    at: int
    texts: list[str]
    stamp: int
    thread: str
    kind: str = ""
    tp: str = ""
    peer: int = -1
    api: str = ""
    connection: str = ""
    received: int = 0
    completed: int = 0
    behind: int = -1
    moved: bool = False

    @property
    def key(self) -> tuple[int, int]:
        return (self.behind, self.at) if self.moved else (self.at, -1)


@dataclass
class Late:
    """A capture with late lines: how many moved, and over how many lines of their files."""

    files: Files = field(default_factory=dict)
    moved: int = 0
    passed: int = 0


def late(random: Random, files: Files, share: float = 1.0, place_only: bool = False) -> Late:
    """Return a capture in which this share of the lines that can be late is late."""
    entries = {path: list(_entries(path, lines)) for path, lines in files.items()}
    nodes: dict[str, list[_Entry]] = {}
    for path, of_file in entries.items():
        nodes.setdefault(node(path), []).extend(of_file)
    answered = {name: _responses(of_node) for name, of_node in nodes.items()}
    fetched = {name: _fetcher_lines(of_node) for name, of_node in nodes.items()}
    for name, of_node in nodes.items():
        _delay(random, name, of_node, entries, answered[name], fetched, share)
    made = Late()
    for path, of_file in entries.items():
        moved = [entry for entry in of_file if entry.moved]
        made.moved += len(moved)
        made.passed += sum(entry.behind - entry.at for entry in moved)
        for entry in moved:
            if not place_only:
                entry.texts[0] = _stamped(entry.texts[0], entry.stamp)
        made.files[path] = [text for entry in sorted(of_file, key=lambda entry: entry.key) for text in entry.texts]
    return made


def _entries(path: str, lines: list[str]) -> Iterator[_Entry]:
    entry: _Entry | None = None
    at = 0
    for text in lines:
        found = parts(text)
        if found is None and entry is not None:
            entry.texts.append(text)
            continue
        if entry is not None:
            yield entry
        stamp = 0 if found is None else (found.time - EPOCH) // MICROSECOND
        entry = _Entry(path, at, [text], stamp, "" if found is None else found.thread)
        at += 1
        if found is not None:
            _read(entry, found.message)
    if entry is not None:
        yield entry


def _read(entry: _Entry, message: str) -> None:
    """Fill in what a message says."""
    if message.startswith("Completed request:{"):
        request = json.loads(message.removeprefix("Completed request:"))
        entry.api = request["requestHeader"]["requestApiKeyName"]
        entry.connection = request["connection"]
        state = request["request"]
        entry.peer = state.get("replicaId", state.get("replicaState", {}).get("replicaId", -1))
        entry.received = entry.stamp - int(1000 * request["totalTimeMs"])
        entry.completed = entry.stamp - int(1000 * (request["sendTimeMs"] + request["responseQueueTimeMs"]))
        return
    fetcher = _FETCHER.match(message)
    if fetcher is not None:
        entry.kind, entry.peer = "fetcher", int(fetcher[1])
        return
    if message.startswith(("Registered kafka:", "Registered `kafka:")):
        entry.kind = "start"
        return
    for kind, pattern in _KINDS:
        found = pattern.search(message)
        if found is not None and found["tp"].rpartition("-")[0] != "__cluster_metadata":
            entry.kind, entry.tp, entry.peer = kind, found["tp"], int(found.groupdict().get("peer") or -1)
            return


def _responses(entries: list[_Entry]) -> dict[int, list[int]]:
    """Return when responses were complete, by replica; -1: all of produce and fetch requests."""
    found: dict[int, list[int]] = {}
    for entry in entries:
        if entry.api in ("FETCH", "PRODUCE"):
            found.setdefault(-1, []).append(entry.completed)
            if entry.api == "FETCH" and entry.peer >= 0:
                found.setdefault(entry.peer, []).append(entry.completed)
    return {peer: sorted(times) for peer, times in found.items()}


def _fetcher_lines(entries: list[_Entry]) -> dict[int, list[int]]:
    """Return the stamps of what a follower's fetchers wrote, by leader."""
    found: dict[int, list[int]] = {}
    for entry in entries:
        if entry.kind == "fetcher":
            found.setdefault(entry.peer, []).append(entry.stamp)
    return {leader: sorted(stamps) for leader, stamps in found.items()}


def _first_from(times: list[int] | None, stamp: int) -> int:
    at = bisect_left(times or (), stamp)
    return times[at] if times is not None and at < len(times) else 1 << 62


def _delay(
    random: Random,
    name: str,
    entries: list[_Entry],
    of_files: dict[str, list[_Entry]],
    answered: dict[int, list[int]],
    fetched: dict[str, dict[int, list[int]]],
    share: float,
) -> None:
    """Move lines of one node, last ones first: what bounds a line is then where it stays."""
    number = int(re.sub(r"\D", "", name) or -1)
    next_of_thread: dict[str, _Entry] = {}
    next_in_log: dict[str, _Entry] = {}
    next_of_role: dict[str, _Entry] = {}
    next_of_connection: dict[str, _Entry] = {}
    next_handled: dict[int, int] = {}
    end = 1 << 62
    # With milliseconds (Log4j 1), what has the same stamp may have come after.
    tick = 999 if all(entry.stamp % 1000 == 0 for entry in entries) else 0
    for entry in sorted(entries, key=lambda entry: (entry.stamp, entry.at), reverse=True):
        at_first = entry.stamp
        end = entry.stamp if end == 1 << 62 else end
        after = next_of_thread.get(entry.thread)
        bound = min(entry.stamp + LATEST, end, after.stamp if after is not None else 1 << 62)
        follower = [after] if after is not None and after.path == entry.path else []
        if entry.kind in (RECORDED, UPDATED, SKIPPING, PROGRESS, APPENDED, SETTING) and "request-handler" in entry.thread:
            together = after is not None and after.tp == entry.tp and after.stamp - entry.stamp <= BURST
            if after is not None and not (together and after.kind in _ONE_REQUEST.get(entry.kind, ())):
                bound = min(bound, after.stamp - BEFORE)
            bound = min(bound, _first_from(answered.get(entry.peer if entry.kind == RECORDED else -1), entry.stamp - tick))
            for who, lines in fetched.items():
                if entry.kind != RECORDED or who == f"n{entry.peer}":
                    bound = min(bound, _first_from(lines.get(number), entry.stamp - tick))
            for held, following in ((_OF_A_LOG, next_in_log), (_OF_A_ROLE, next_of_role)):
                if entry.kind in held and entry.tp in following:
                    bound = min(bound, following[entry.tp].stamp)
                    follower.append(following[entry.tp])
        elif entry.api:
            if after is not None and after.api in _JUDGED:
                bound = min(bound, after.stamp - REQUEST_BEFORE)
            if entry.connection in next_of_connection:
                bound = min(bound, next_of_connection[entry.connection].received - REQUEST_BEFORE)
            # A connection is read again after this line: the next request's count or append is seen in any case.
            # SocketServer#processCompletedSends
            if entry.api in ("FETCH", "PRODUCE"):
                bound = min(bound, next_handled.get(entry.peer if entry.api == "FETCH" else -1, 1 << 62) - BEFORE)
        else:
            bound = entry.stamp
        if bound > entry.stamp and random.random() < share:
            _place(entry, random.randint(entry.stamp, bound), of_files[entry.path], follower)
        next_of_thread[entry.thread] = entry
        if entry.kind in (RECORDED, APPENDED) and "request-handler" in entry.thread:
            next_handled[entry.peer] = at_first
        if entry.api:
            next_of_connection[entry.connection] = entry
        if entry.kind == "locked" or entry.kind in _OF_A_LOG:
            next_in_log[entry.tp] = entry
        if entry.kind == "locked":
            next_of_role[entry.tp] = entry
        if entry.kind == "start":
            # What comes before is of another process: its threads share names only.
            end = 1 << 62
            next_of_thread.clear()


def _place(entry: _Entry, stamp: int, of_file: list[_Entry], followers: list[_Entry]) -> None:
    """Put a line behind those of its file that were written by then, but in front of those that must follow it."""
    behind = entry.at
    while behind + 1 < len(of_file) and of_file[behind + 1].stamp <= stamp:
        behind += 1
    for follower in followers:
        if follower.path == entry.path:
            behind = min(behind, follower.behind if follower.moved else follower.at - 1)
    if behind >= entry.at:
        entry.behind, entry.stamp, entry.moved = behind, stamp, True


def _stamped(text: str, stamp: int) -> str:
    """Return a line with another stamp, with as many digits."""
    end = text.index("]")
    digits = end - text.index(",") - 1
    when = EPOCH + stamp * MICROSECOND
    return f"[{when:%Y-%m-%d %H:%M:%S},{when.microsecond:06d}"[: 21 + digits] + text[end:]
