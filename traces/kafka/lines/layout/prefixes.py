"""What other programs put around a line: containers, journals, terminals.

Rules of this file

1. A wrapper takes a line and gives back what the broker wrote, or None if the line is not wrapped so.
2. Containers split lines at 16 KiB: `whole` is false for a part that the next line of the same stream continues.
3. `source` is who wrote the line, where the wrapper says so: the lines of several brokers may stand in one file.
"""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tidegauge.traces.kafka.lines.layout.json_lines import document

_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_ANSI = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


class Inner(NamedTuple):
    """What is left of a line without its wrapper."""

    text: str
    whole: bool = True
    source: str = ""


class Wrapper(NamedTuple):
    """One way to wrap lines; `name` is said in the summary."""

    name: str
    unwrap: Callable[[str], Inner | None]


def _behind(regex: str) -> Callable[[str], Inner | None]:
    """A prefix; the group `source` says who wrote the line, `partial` that it goes on."""
    prefix = re.compile(regex)

    def unwrap(text: str) -> Inner | None:
        found = prefix.match(text)
        if found is None:
            return None
        groups = found.groupdict()
        return Inner(text[found.end() :], groups.get("partial") != "P", groups.get("source") or "")

    return unwrap


def _container(text: str) -> Inner | None:
    """Docker's json-file `{"log": ..}`, whose last part ends with a line break; journald's export `{"MESSAGE": ..}`."""
    found = document(text)
    if found is None:
        return None
    if isinstance(found.get("MESSAGE"), str):
        return Inner(found["MESSAGE"], True, str(found.get("_HOSTNAME", "")))
    if not isinstance(found.get("log"), str):
        return None
    return Inner(found["log"].removesuffix("\n"), found["log"].endswith("\n") or "stream" not in found)


def _plain(text: str) -> Inner | None:
    return Inner(_ANSI.sub("", text)) if "\x1b" in text else None


WRAPPERS = (
    Wrapper("ANSI colours", _plain),
    Wrapper("docker json-file", _container),
    Wrapper("kubernetes", _behind(rf"{_STAMP} (?:stdout|stderr) (?P<partial>[FP]) ?")),
    Wrapper(
        "journald",
        _behind(r"[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d(?:\.\d+)? (?P<source>[\w.\-]+) [A-Za-z_][^\s\[:]*(?:\[\d+\])?: ?"),
    ),
    Wrapper("journald", _behind(rf"{_STAMP} (?P<source>[\w.\-]+) [A-Za-z_][^\s\[:]*(?:\[\d+\])?: ?")),
    Wrapper("syslog", _behind(rf"(?:<\d+>)?1 {_STAMP} (?P<source>[\w.\-]+) \S+ \S+ \S+ (?:-|\[.*?\]) ?")),
    Wrapper("docker compose", _behind(r"(?P<source>[A-Za-z0-9][\w.\-]*) +\| ?")),
    Wrapper("kubectl --prefix", _behind(r"\[(?:pod/)?(?P<source>[\w.\-]+)/[\w.\-]+\] ")),
    Wrapper("time stamps", _behind(rf"{_STAMP} ")),
)
"""`time stamps` are those of `docker logs -t` and `kubectl logs --timestamps`; they come last, for others begin so too."""


def peel(texts: Sequence[str], wrappers: Sequence[Wrapper]) -> tuple[list[int], list[str], list[str]]:
    """Lines as the broker wrote them: the position each began at, its text, and who wrote it (nothing if no line says).

    A line a wrapper does not fit stays as it is: a terminal's colours stand in some lines only.
    """
    positions: list[int] = []
    inner: list[str] = []
    sources: list[str] = []
    open_at: dict[str, int] = {}
    for position, text in enumerate(texts):
        left, whole, source = text, True, ""
        for wrapper in wrappers:
            found = wrapper.unwrap(left)
            if found is not None:
                left, whole, source = found.text, whole and found.whole, found.source or source
        if source in open_at:
            inner[open_at[source]] += left
        else:
            open_at[source] = len(inner)
            positions.append(position)
            inner.append(left)
            sources.append(source)
        if whole:
            del open_at[source]
    return positions, inner, sources if any(sources) else []
