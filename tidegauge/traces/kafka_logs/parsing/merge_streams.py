"""Merge several logs of one process by their common clock, and remove lines that are there twice.

A *stream* is the lines of one log of a node (server.log with its rotated parts, state-change.log, ..), in its own order.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine, fetch_line, parse_line
from tidegauge.traces.kafka_logs.parsing.timestamps import SECOND, resolution
from tidegauge.traces.problems import Problem

# Duplicate lines: a file copied beside itself, a log shipper that tried again.
#
# 1. Lines are equal if their times, threads and messages are. In one file an equal line is a copy if it comes after later
#    lines of its thread, or reports what cannot happen twice within one tick of the clock.
# 2. A file is a copy if every line of it is in another file. A second copy of the very same lines is skipped while files are
#    found, before it can be mistaken for a rotated part of a log (`FileCopies`).


_ONCE = (
    "partition change for",
    "Sending fetch request",
    "starts at leader epoch",
    "Appended ",
    "Registered signal handlers",
    "Log loaded for",
    "Completed request",
)
"""Messages that cannot be printed twice: each has an offset, an epoch or a request of its own."""

_LineKey = tuple[int, str, str]


class FileCopies:
    """The files found so far, by their lines."""

    def __init__(self) -> None:
        """Begin with no file found."""
        self._labels: dict[tuple[int, int], str] = {}
        """By the number of lines and their hash, the first file that has them."""

    def copy_of(self, label: str, lines: Sequence[Line]) -> str | None:
        """Return the earlier file that has the very same lines as this one; None if there is none."""
        if not lines:
            return None
        first = self._labels.setdefault((len(lines), hash(tuple(map(_key, lines)))), label)
        return None if first == label else first


def without_copies(files: Sequence[Sequence[Line]]) -> tuple[list[list[Line]], list[Problem]]:
    """Return the files of one node without copies of lines and of files, in their order, and a problem for each copy."""
    # By file, the keys of its lines, and these without copies.
    files_once: list[tuple[set[_LineKey], list[Line]]] = []
    problems: list[Problem] = []
    # The longest first: of a file and a part of it the part is the copy.
    for lines in sorted(files, key=len, reverse=True):
        once, keys = _without_repetitions(lines)
        if keys and any(keys <= others for others, _ in files_once):
            problems.append(_problem(lines[0].file, None, "a copy of another file"))
            continue
        if len(once) < len(lines):
            problems.append(_problem(lines[0].file, None, f"{len(lines) - len(once):,} lines twice"))
        files_once.append((keys, once))
    order = {id(lines[0]): at for at, lines in enumerate(files) if lines}
    return sorted((lines for _, lines in files_once if lines), key=lambda lines: order[id(lines[0])]), problems


def _without_repetitions(lines: Sequence[Line]) -> tuple[list[Line], set[_LineKey]]:
    """Return the lines of a file without those that come a second time (rule 1), and the keys that a copy of it has, too."""
    keys: set[_LineKey] = set()
    lines_once: list[Line] = []
    latest: dict[str, int] = {}  # by thread: between two equal lines of one another thread may print a later one
    is_copy = False
    # What cannot happen twice within a millisecond may within a second.
    once = _ONCE if resolution(line.time for line in lines) < SECOND else ()
    for line in lines:
        key = (line.time, line.thread, line.message)
        # A logger may print the same text twice in one tick of a millisecond clock; such lines stay, except those of _ONCE.
        # An equal line right after a copy is of the same copied stretch.
        # Lines without their text (shards.py) look alike.
        is_copy = (
            line.message != ""
            and key in keys
            and (is_copy or line.time < latest.get(line.thread, 0) or any(words in line.message for words in once))
        )
        if not is_copy:
            keys.add(key)
            lines_once.append(line)
            if line.time > latest.get(line.thread, 0):
                latest[line.thread] = line.time
    # A summary stands for lines between, and a line without its text for any (shards.py): no copy need have them.
    if not all(line.message and not line.summarizes for line in lines_once):
        keys = {_key(line) for line in lines_once if line.message and not line.summarizes}
    return lines_once, keys


def _key(line: Line) -> _LineKey:
    """Return what two copies of a line have in common: time, thread and message."""
    return (line.time, line.thread, line.message)


def _problem(path: str, line: int | None, seen: str) -> Problem:
    """Return the problem of lines that are there twice: `seen` says which; `line` is a number, None for a whole file."""
    return Problem(path, line, "every line once", seen, "the lines are read once; leave copies out")


# Several logs of one process merged into one stream: by the clock that wrote them all, each log in its own order.
#
# 1. Kafka's stock configuration writes state changes to a file of their own, and 3.x has milliseconds only: lines of two
#    files with equal times have no order. Of the possible orders one is chosen that causality allows.
# 2. Whether a line belongs before or after a change of role is decided by the lines themselves: by offsets, leader epochs,
#    and by what only a leader or only a follower does. Other lines follow the order of the files.


_ROLES = frozenset({"leader", "leader-again", "follower", "follower-again"})
_LOADED = frozenset({"log-created", "log-completed", "log-loaded"})
_OF_A_LEADER = frozenset({"recorded", "leader-high-watermark-kept", "expand-isr", "shrink-isr", "shrinking", "isr-updated"})
_OF_A_FOLLOWER = frozenset(
    {"received", "after-append", "follower-high-watermark", "truncating", "truncating-to-high-watermark", "reset-done"}
)
BEFORE, OPEN, AFTER = -1, 0, 1
"""Where a line belongs in relation to a change of role."""

Stamped = tuple[int, int, Line]
"""The time by which a line is merged, the number of its stream, and the line."""


def merge_streams(streams: Sequence[list[Line]]) -> list[Line]:
    """Merge the lines of the files of one node by their times; lines of one instant keep the order of their files."""
    if len(streams) < 2:
        return streams[0] if streams else []
    # By partition, the role that the last line gave its replica: "leader" or "follower".
    roles: dict[str, str] = {}
    merged: list[Line] = []
    stamped = heapq.merge(*(_stamped(number, lines) for number, lines in enumerate(streams)), key=itemgetter(0))
    for _, at_once in groupby(stamped, key=itemgetter(0)):
        window = list(at_once)
        # Within an instant only what the lines say tells in which order two files were written.
        if len({number for _, number, _ in window}) > 1:
            window = _arranged(window, roles)
        for _, _, line in window:
            _note_role(line, roles)
            merged.append(line)
    return merged


def _stamped(number: int, lines: Sequence[Line]) -> Iterator[Stamped]:
    """Yield each line of stream `number` with a time that never goes back, so that the stream keeps its order."""
    latest = 0
    for line in lines:
        latest = max(latest, line.time)  # lines of other threads may be a little older
        yield latest, number, line


def _note_role(line: Line, roles: dict[str, str]) -> None:
    """Note in `roles`, by partition, whether the replica is "leader" or "follower" after this line, if it is about a role.

    A kind that ends in `-again` confirms the role that it had. `_arranged` needs it to order the lines of an instant.
    """
    # They are lines of `state.change.logger`: Line.logger has only the last part of that name.
    if line.logger == "logger" and (parsed := parse_line(line)) is not None and parsed.kind in _ROLES:
        roles[parsed.tp] = parsed.kind.removesuffix("-again")


def _arranged(window: list[Stamped], roles: dict[str, str]) -> list[Stamped]:
    """Arrange lines of one instant: put each change of role where it contradicts the fewest lines of the other files.

    `roles` has, by partition, the role before the instant; the changes are noted there.
    """
    # `state.change.logger`, whose last part is `logger`, writes the changes of roles to a file of its own.
    changes = [stamped for stamped in window if stamped[2].logger == "logger"]
    arranged = [stamped for stamped in window if stamped[2].logger != "logger"]
    parsed_lines = {id(line): parse_line(line) for _, _, line in window}
    # By stream, the position behind its last change that has a place.
    behind_last = dict.fromkeys((number for _, number, _ in window), 0)
    for change in changes:
        _, number, changing_line = change
        role = parsed_lines[id(changing_line)]
        # Within its own file the line keeps its place: after those before it, before those after it. So it stands at one of
        # the positions `first` to `last` of `arranged`.
        own = [index for index, (_, stream, _) in enumerate(window) if stream == number]
        place = next(at for at, index in enumerate(own) if window[index] is change)
        earlier = {id(window[index][2]) for index in own[:place]}
        first = max([behind_last[number], *(at + 1 for at, (_, _, line) in enumerate(arranged) if id(line) in earlier)])
        later = [at for at, (_, stream, line) in enumerate(arranged) if stream == number and id(line) not in earlier]
        last = min([len(arranged), *later])
        relations = [
            OPEN if role is None else _relation(role, parsed_lines[id(line)], roles.get(role.tp)) for _, _, line in arranged
        ]
        # The place with the fewest lines on the wrong side.
        at = min(range(first, last + 1), key=lambda at: relations[:at].count(AFTER) + relations[at:].count(BEFORE))
        arranged.insert(at, change)
        behind_last[number] = at + 1
        if role is not None and role.kind in _ROLES:
            roles[role.tp] = role.kind.removesuffix("-again")
    return arranged


def _relation(role: ParsedLine, other: ParsedLine | None, role_before: str | None) -> int:
    """Return where the line `other` belongs: BEFORE the change of role in the line `role`, AFTER it, or OPEN.

    `role_before` is the role until then, "leader" or "follower", None if it is unknown.
    """
    if other is None or role.kind not in _ROLES:
        return OPEN
    if other.kind == "sending":
        partition = fetch_line(other.text("request")).requested.get(role.tp)
        if partition is None:
            return OPEN
        # A broker fetches in an epoch only after it has become follower in it; a request of an earlier epoch was sent
        # before.
        return AFTER if role.kind.startswith("follower") and partition.epoch >= role.number("leader_epoch") else BEFORE
    if other.tp != role.tp or other.kind in _ROLES:
        return OPEN
    # Partition#makeLeader and #makeFollower make sure of the log before they print the role.
    if other.kind in _LOADED:
        return BEFORE
    if other.kind in ("registered", "changed"):
        return BEFORE  # a broker acts on metadata that the controller wrote before
    if other.kind == "epoch-entry":
        return BEFORE if other.number("epoch") < role.number("leader_epoch") else AFTER
    if other.kind == "appended" and "leo" in role.values:
        # The line of the role has the log end of that moment: records beyond it came later.
        return BEFORE if other.number("rec_end") <= role.number("leo") else AFTER
    if other.kind == "leader-high-watermark" and "hw" in role.values:
        return BEFORE if other.number("hw") <= role.number("hw") else AFTER
    # If the role stays what it was, a line of that role may be on either side.
    if other.kind in _OF_A_LEADER and role_before != role.kind.removesuffix("-again"):
        return AFTER if role.kind.startswith("leader") else BEFORE
    if other.kind in _OF_A_FOLLOWER and role_before != role.kind.removesuffix("-again"):
        return BEFORE if role.kind.startswith("leader") else AFTER
    return OPEN
