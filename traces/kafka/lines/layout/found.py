"""Which layout a file has: found by looking at its first thousand lines.

Rules of this file

1. What Kafka ships and what docs/kafka-logs.md asks for is tried first, and costs nothing beyond the look.
2. Wrappers are peeled off while most lines have them; what is left is JSON, or the pattern that most lines follow.
3. A pattern with the thread is taken if it reads nearly as many lines as one without it. `[Partition alpha-0 broker=1]`
   is no thread: messages of Kafka begin so.
"""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice

from tidegauge.traces.kafka.lines.layout import json_lines
from tidegauge.traces.kafka.lines.layout.dates import WAYS
from tidegauge.traces.kafka.lines.layout.pattern import Entry, Envelope, envelope
from tidegauge.traces.kafka.lines.layout.prefixes import WRAPPERS, Wrapper, peel

LOOKED_AT, LOOKED_AT_FIRST = 1000, 20
DOCUMENTED, KAFKAS = "[%d] %p [%t] %m (%c)%n", "[%d] %p %m (%c)%n"
PATTERNS = (
    DOCUMENTED,
    KAFKAS,
    "%d %p [%t] %m (%c)%n",
    "%d %p %m (%c) [%t]%n",
    "%d %p %m (%c)%n",
    "%d [%t] %p %c - %m%n",
    "%d [%t] %p %c: %m%n",
    "%d %p [%t] %c - %m%n",
    "%d %p [%t] %c: %m%n",
    "%d %p %c [%t] %m%n",
    "%d [%t] %p %c %m%n",
    "%d %p %c - %m%n",
    "%d %p %c: %m%n",
    "%d - %p [%t] %c - %m%n",
    "[%d][%p][%c][%t] %m%n",
    "[%d] [%p] [%t] [%c] %m%n",
    "[%d] [%p] [%c] [%t] %m%n",
    "[%d] [%t] %p %c - %m%n",
    "%d|%p|%t|%c|%m%n",
)
"""Ways of Kafka, its distributions (Strimzi's has the thread at the end), and log4j2's own examples."""

_NO_THREAD = re.compile(r"[^\]]*=|Partition |ReplicaFetcherManager on |LeaderEpochCache |Controller \d|GroupCoordinator \d")


@dataclass(frozen=True, slots=True)
class Layout:
    """How the lines of a file are written; `begins` says that a text is not the rest of the line before."""

    name: str
    wrappers: tuple[Wrapper, ...]
    entry: Callable[[str], Entry | None]
    begins: Callable[[str], object]


def of_envelope(found: Envelope, wrappers: tuple[Wrapper, ...] = ()) -> Layout:
    """The layout of a pattern."""
    return Layout(_named(found.pattern, wrappers), wrappers, found.entry, found.begins.match)


def find(texts: Sequence[str], given: str | None = None) -> Layout | None:
    """The layout of a file that begins with `texts`, None if it cannot be found; `given` is the pattern of --layout."""
    sample = list(islice((text for text in texts if text.strip()), LOOKED_AT))
    if given is None and any(_READY[1].entry(text) for text in sample[:LOOKED_AT_FIRST]):
        return (
            _READY[0]
            if 10 * sum(map(_has_thread, sample)) >= 9 * sum(_begins(text) is not None for text in sample)
            else _READY[1]
        )
    return _look(sample, given)


def _has_thread(text: str) -> bool:
    found = _THREAD.match(text)
    return found is not None and _NO_THREAD.match(found[1]) is None


def _look(sample: list[str], given: str | None) -> Layout | None:
    wrappers: tuple[Wrapper, ...] = ()
    while True:
        layout = _pattern(sample, wrappers, given) or (_json(sample, wrappers) if given is None else None)
        if layout is not None:
            return layout
        peeled = _peel(sample, wrappers)
        if peeled is None:
            return None
        wrapper, sample = peeled
        wrappers = (*wrappers, wrapper)


def _peel(sample: list[str], wrappers: tuple[Wrapper, ...]) -> tuple[Wrapper, list[str]] | None:
    """The wrapper that most lines have; a colour may stand in some lines only."""
    for wrapper in WRAPPERS:
        if wrapper in wrappers:
            continue
        enough = 1 if wrapper is WRAPPERS[0] else 0.8 * len(sample)
        if sample and sum(wrapper.unwrap(text) is not None for text in sample) >= enough:
            return wrapper, peel(sample, (wrapper,))[1]
    return None


def _json(sample: Sequence[str], wrappers: tuple[Wrapper, ...]) -> Layout | None:
    read = sum(json_lines.entry(text) is not None for text in sample)
    if not sample or read < 0.5 * len(sample):
        return None
    return Layout(_named("JSON", wrappers), wrappers, json_lines.entry, re.compile(r"\s*\{").match)


def _pattern(sample: Sequence[str], wrappers: tuple[Wrapper, ...], given: str | None) -> Layout | None:
    """The pattern that reads most lines: at least one in two of those that begin with a date."""
    best: tuple[float, Envelope] | None = None
    for one in (envelope(given),) if given is not None else _candidates(sample):
        read = [entry for text in sample if (entry := one.entry(text)) is not None]
        named = sum(_NO_THREAD.match(thread) is None for _, thread, _, _ in read)
        score = named * (1.1 if "%t" in one.pattern else 1.0)
        if score and (best is None or score > best[0]):
            best = score, one
    if best is None or (given is None and best[0] < 0.5 * sum(best[1].begins.match(text) is not None for text in sample)):
        return None
    return of_envelope(best[1], wrappers)


def _candidates(sample: Sequence[str]) -> Sequence[Envelope]:
    """The patterns with each way to write dates that the lines begin with."""
    ways = [way for way in WAYS if sum(re.match(rf"\[?{way.regex}", text) is not None for text in sample) * 3 > len(sample)]
    return [envelope(pattern, way) for way in ways[:2] for pattern in PATTERNS]


def _named(pattern: str, wrappers: tuple[Wrapper, ...]) -> str:
    return " behind ".join((pattern, *(wrapper.name for wrapper in reversed(wrappers))))


_READY = (of_envelope(envelope(DOCUMENTED)), of_envelope(envelope(KAFKAS)))
_begins = _READY[1].begins
_THREAD = re.compile(r"\[[^\]]*\] [A-Z]+ \[([^\]]*)\] ")
