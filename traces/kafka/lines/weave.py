"""Several logs of one process as one: by the clock that wrote them all, each log in its own order.

Rules of this file

1. Kafka's stock config writes state changes into a file of their own, and 3.x stamps milliseconds: which line of two files
   came first is open where their times are equal. Of the orders that are left, one is taken that causality allows.
2. What must stand before or behind a change of role is what the lines themselves say: offsets, leader epochs, and what a
   leader or a follower alone does. Lines that say nothing about it go by the order of the files.
"""

import heapq
from collections.abc import Iterator, Sequence
from itertools import groupby
from operator import itemgetter

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.phrases import fetch_line
from tidegauge.traces.kafka.lines.said import Said, parse

_ROLES = frozenset({"leader", "leader-again", "follower", "follower-again"})
_LOADED = frozenset({"log-created", "log-completed", "log-loaded"})
_OF_A_LEADER = frozenset({"recorded", "leader-high-watermark-kept", "expand-isr", "shrink-isr", "shrinking", "isr-updated"})
_OF_A_FOLLOWER = frozenset(
    {"received", "after-append", "follower-high-watermark", "truncating", "truncating-to-high-watermark", "reset-done"}
)
BEFORE, OPEN, BEHIND = -1, 0, 1

Stamped = tuple[int, int, Line]


def weave(streams: Sequence[list[Line]]) -> list[Line]:
    """The lines of all `streams` in one order."""
    if len(streams) < 2:
        return streams[0] if streams else []
    roles: dict[str, str] = {}
    woven: list[Line] = []
    stamped = heapq.merge(*(_stamped(number, lines) for number, lines in enumerate(streams)), key=itemgetter(0))
    for _, at_once in groupby(stamped, key=itemgetter(0)):
        window = list(at_once)
        if len({number for _, number, _ in window}) > 1:
            window = _arranged(window, roles)
        for _, _, line in window:
            _learn(line, roles)
            woven.append(line)
    return woven


def _stamped(number: int, lines: Sequence[Line]) -> Iterator[Stamped]:
    latest = 0
    for line in lines:
        latest = max(latest, line.time)  # at most a few lines of other threads stand a little back
        yield latest, number, line


def _learn(line: Line, roles: dict[str, str]) -> None:
    if line.logger == "logger" and (said := parse(line)) is not None and said.what in _ROLES:
        roles[said.tp] = said.what.removesuffix("-again")


def _arranged(window: list[Stamped], roles: dict[str, str]) -> list[Stamped]:
    """Lines of one instant: each change of role is put where it contradicts the fewest lines of the other files."""
    changes = [one for one in window if one[2].logger == "logger"]
    arranged = [one for one in window if one[2].logger != "logger"]
    says = {id(one[2]): parse(one[2]) for one in window}
    position = dict.fromkeys((number for _, number, _ in window), 0)
    for change in changes:
        number, role = change[1], says[id(change[2])]
        own = [index for index, one in enumerate(window) if one[1] == number]
        mine = {id(window[index][2]) for index in own[: own.index(window.index(change))]}
        first = max([position[number], *(at + 1 for at, one in enumerate(arranged) if id(one[2]) in mine)])
        later = [at for at, one in enumerate(arranged) if one[1] == number and id(one[2]) not in mine]
        last = min([len(arranged), *later])
        wanted = [OPEN if role is None else _relation(role, says[id(one[2])], roles.get(role.tp)) for one in arranged]
        at = min(range(first, last + 1), key=lambda at: wanted[:at].count(BEHIND) + wanted[at:].count(BEFORE))
        arranged.insert(at, change)
        position[number] = at + 1
        if role is not None and role.what in _ROLES:
            roles[role.tp] = role.what.removesuffix("-again")
    return arranged


def _relation(role: Said, other: Said | None, was: str | None) -> int:
    """Where `other` belongs beside a change of role: BEFORE it, BEHIND it, or OPEN; `was` is the role until then."""
    if other is None or role.what not in _ROLES:
        return OPEN
    if other.what == "sending":
        asked = fetch_line(other.text("request")).asked.get(role.tp)
        if asked is None:
            return OPEN
        return BEHIND if role.what.startswith("follower") and asked.epoch >= role.number("leader_epoch") else BEFORE
    if other.tp != role.tp or other.what in _ROLES:
        return OPEN
    if other.what in _LOADED:
        return BEFORE
    if other.what in ("registered", "changed"):
        return BEFORE  # a broker acts on metadata the controller wrote before
    if other.what == "epoch-entry":
        return BEFORE if other.number("epoch") < role.number("leader_epoch") else BEHIND
    if other.what == "appended" and "leo" in role.values:
        return BEFORE if other.number("rec_end") <= role.number("leo") else BEHIND
    if other.what == "leader-high-watermark" and "hw" in role.values:
        return BEFORE if other.number("hw") <= role.number("hw") else BEHIND
    if other.what in _OF_A_LEADER and was != role.what.removesuffix("-again"):
        return BEHIND if role.what.startswith("leader") else BEFORE
    if other.what in _OF_A_FOLLOWER and was != role.what.removesuffix("-again"):
        return BEFORE if role.what.startswith("leader") else BEHIND
    return OPEN
