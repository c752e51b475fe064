"""Seeded faults: one thing that a line says is changed, or a line is taken out, or what it tells comes too early.

`FAULTS` are by name; each is None where a capture has no line for it.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from random import Random
from typing import NamedTuple

from validation.metamorphic.log_files import Files


class Site(NamedTuple):
    """A place in a line: `begin` to `end` of line `at` of a file."""

    path: str
    at: int
    begin: int
    end: int


Fault = Callable[[Random, Files], Files | None]

_HANDLER = r"\[data-plane-kafka-request-handler-\d+\] "
_RECORDED = re.compile(_HANDLER + r".*Recorded replica \d+ log end offset \(LEO\) position (\d+)")
_RAISED = re.compile(_HANDLER + r".*High watermark updated from .* to \(offset=(\d+)")
_APPENDED = re.compile(_HANDLER + r".*UnifiedLog partition=(?!__cluster).*Appended message set with .*next offset: (\d+)")
_SET = re.compile(_HANDLER + r".*Setting high watermark \(offset=(\d+)")
_FETCHED = re.compile(r"Follower received high watermark \d+ from the leader and updated replica high watermark to (\d+)")
_ENDS = re.compile(r"Follower has replica log end offset (\d+) after appending [1-9]")
_OF_REPLICA = re.compile(r'"requestApiKeyName":"FETCH".*"replicaId":\d+.*"highWatermark":(\d+)')
_OF_CLIENT = re.compile(
    r'"requestApiKeyName":"FETCH"(?!.*"replicaId":\d).*(?:"isolationLevel":0.*"highWatermark"|"isolationLevel":1.*"lastStableOffset"):(\d+)'
)
_THREAD = re.compile(r"^(\[[^\]]+\] [A-Z]+ )\[([^\]]+)\] \[(?:Partition|UnifiedLog partition=) ?([^\s,]+)")


def sites(files: Files, patterns: tuple[re.Pattern[str], ...]) -> list[Site]:
    """Return where a pattern is found, with its first group."""
    return [
        Site(path, at, *found.span(1))
        for path, lines in sorted(files.items())
        for at, line in enumerate(lines)
        for pattern in patterns
        if (found := pattern.search(line)) is not None
    ]


def _put(files: Files, changed: Mapping[tuple[str, int], list[str]]) -> Files:
    """Return files with other lines at some places."""
    paths = {path for path, _ in changed}
    return files | {
        path: [new for at, line in enumerate(files[path]) for new in changed.get((path, at), [line])] for path in paths
    }


def _by_one(patterns: tuple[re.Pattern[str], ...], random: Random, files: Files) -> Files | None:
    found = sites(files, patterns)
    if not found:
        return None
    path, at, begin, end = random.choice(found)
    line = files[path][at]
    value = int(line[begin:end])
    changed = value + random.choice((-1, 1)) if value > 0 else 1
    return _put(files, {(path, at): [f"{line[:begin]}{changed}{line[end:]}"]})


def _lost(pattern: re.Pattern[str], random: Random, files: Files) -> Files | None:
    found = sites(files, (pattern,))
    if not found:
        return None
    chosen = random.choice(found)
    return _put(files, {(chosen.path, chosen.at): []})


def _pairs(files: Files) -> Iterator[tuple[Site, Site, Site, Site]]:
    """Yield each raise by a fetch: the count of the other fetch before it, `Setting`, `updated`, and its own count."""
    for path, lines in sorted(files.items()):
        counts: dict[str, Site] = {}
        setting: Site | None = None
        raised: Site | None = None
        for at, line in enumerate(lines):
            for pattern in (_RECORDED, _SET, _RAISED):
                found = pattern.search(line)
                said = _THREAD.match(line)
                if found is None or said is None:
                    continue
                site = Site(path, at, *found.span(1))
                if pattern is _SET:
                    setting, raised = site, None
                elif pattern is _RAISED:
                    raised = site
                else:
                    before = counts.get(said[3])
                    if setting and raised and before and before.at < setting.at and _thread(lines, raised) == said[2]:
                        yield before, setting, raised, site
                        setting = raised = None
                    counts[said[3]] = site


def _thread(lines: list[str], site: Site) -> str:
    said = _THREAD.match(lines[site.at])
    return said[2] if said is not None else ""


def _lost_raise(random: Random, files: Files) -> Files | None:
    found = list(_pairs(files))
    if not found:
        return None
    _, setting, raised, _ = random.choice(found)
    return _put(files, {(setting.path, setting.at): [], (raised.path, raised.at): []})


def _exchanged(random: Random, files: Files) -> Files | None:
    """Exchange the log ends of the count that allowed a raise and of the one before it: the raise is a fetch too early."""

    def end(site: Site) -> str:
        return files[site.path][site.at][site.begin : site.end]

    found = [pair for pair in _pairs(files) if end(pair[0]) != end(pair[3])]
    if not found:
        return None
    before, _, _, count = random.choice(found)
    changed = {}
    for site, other in ((before, count), (count, before)):
        line = files[site.path][site.at]
        changed[site.path, site.at] = [f"{line[: site.begin]}{end(other)}{line[site.end :]}"]
    return _put(files, changed)


def _early(random: Random, files: Files) -> Files | None:
    """Let the thread of the count before it print a raise, with its time: the fetch that allowed it comes later."""
    found = list(_pairs(files))
    if not found:
        return None
    before, setting, raised, _ = random.choice(found)
    lines = files[before.path]
    said = _THREAD.match(lines[before.at])
    assert said is not None
    time = lines[before.at][: lines[before.at].index("]") + 1]
    early = [
        re.sub(r"^\[[^\]]+\] ([A-Z]+) \[[^\]]+\]", rf"{time} \1 [{said[2]}]", lines[one.at]) for one in (setting, raised)
    ]
    changed = {
        (setting.path, setting.at): [],
        (raised.path, raised.at): [],
        (before.path, before.at): [*early, lines[before.at]],
    }
    return _put(files, changed)


FAULTS: Mapping[str, Fault] = {
    "high watermark of the leader": partial(_by_one, (_RAISED,)),
    "high watermark of a follower": partial(_by_one, (_FETCHED,)),
    "log end of an append": partial(_by_one, (_APPENDED,)),
    "log end of a follower": partial(_by_one, (_ENDS,)),
    "log end that is recorded": partial(_by_one, (_RECORDED,)),
    "offset of a response": partial(_by_one, (_OF_REPLICA,)),
    "offset of a read": partial(_by_one, (_OF_CLIENT,)),
    "a count lost": partial(_lost, _RECORDED),
    "a raise lost": _lost_raise,
    "an append lost": partial(_lost, _APPENDED),
    "a response lost": partial(_lost, _OF_REPLICA),
    "two counts exchanged": _exchanged,
    "a raise one fetch too early": _early,
}
"""By name: a fault that is put into a capture."""
