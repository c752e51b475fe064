"""What mail, exports and people do to a line: undone as far as the line needs to be read.

Rules of this file

1. The date of a line is the last one before its level: a container, a shipper or a person writes another one first. A time
   without a date is of the day of the line before it.
2. A writer is a pod or a host in JSON, or what stands before the date: a key that only says which lines are of one writer.
3. Lines are joined only where a text looks wrapped: many lines without a date, behind lines of the greatest length. Those of
   an exception stay lines.
"""

import html
import re
from collections.abc import Iterator, Sequence

from tidegauge.traces.kafka_logs.parsing.timestamps import DAY_FIRST, ISO, SLASHES, UNIX_PARTS, Dates

LONG = 3_000
"""Characters of a JSON document from which it may be many log lines in one line."""
DAY = 86_400 * 1_000_000

_KIBANA = Dates(
    r"(?P<month_name>[A-Z][a-z]{2}) (?P<day>\d\d?), (?P<year>\d{4}) @ "
    r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:\.(?P<fraction>\d{1,9}))?"
)
_DATES = tuple((dates, re.compile(rf"(?<!\d){dates.regex}")) for dates in (ISO, SLASHES, DAY_FIRST, _KIBANA))
_UNIX = re.compile(rf"(?<!\d){UNIX_PARTS.regex}(?!\d)")
_CREATED = re.compile(r"CreateTime: (\d{13})")
_TIME = re.compile(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(?![\d:])")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_POD = re.compile(
    r'"(?:pod_name|pod|host|hostname|source_host|container_name|instance)": ?(?:\{ ?"name": ?)?"([^"]{1,200})"'
)
_NO_WRITER = re.compile(r"CreateTime:|^\d|^std(?:out|err)\b")
_EXPORTED = re.compile(r'^[\["]*\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?[\s",]*')
"""The date that a log platform puts before what it names the writer by."""
_SYSLOG = re.compile(r"^\S{3} +\d+ \d\d:\d\d:\d\d ")
_ESCAPED = re.compile(r"\\u00([0-9a-fA-F]{2})")
_OBJECTS = re.compile(r"(?<=\}),\s*(?=\{)")
_EXCEPTION = re.compile(r"^[^\[\d]{0,80}?((?:[a-z]\w*+\.)++\w*(?:Exception|Error)\b.*)$")
_OF_AN_EXCEPTION = re.compile(r"^[ \t>|]*+(?:at |Caused by|\.\.\. \d+ more|(?:[a-z]\w*\.)+\w*(?:Exception|Error)\b)")
_QUOTES = " \t>|"

Dated = tuple[int, int, int | None]
"""Where the date of a line begins and ends, and its time in microseconds; (-1, -1, None) without one."""


def lines_within(text: str) -> Iterator[str]:
    """Yield the log lines that a line of a file is: one, or many of a JSON document; of each its own lines."""
    parts = _OBJECTS.split(text) if len(text) > LONG and text.lstrip()[:1] in ("{", "[") else (text,)
    for part in parts:
        yield from (plain(line) for line in part.split("\\n") if line)


def plain(text: str) -> str:
    """Undo the escapes of JSON, CSV and HTML that stand between a line and what Kafka printed."""
    if "\\" in text:
        text = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text).replace('\\"', '"')
    if '""' in text:
        text = text.replace('""', '"')
    return html.unescape(text) if "&" in text else text


def date_of(text: str, before: int = 0) -> Dated:
    """Return the date of a line; `before` is the time of the line before it, which gives the day where there is none."""
    head = text[:400]
    level = _LEVEL.search(head)
    for dates, pattern in _DATES:
        found = list(pattern.finditer(head, 0, level.start() if level else len(head))) or list(pattern.finditer(head))
        if found:
            last = found[-1] if level else found[0]
            time = dates.microseconds(last[0])
            if time is not None:
                return last.start(), last.end(), time
    found_unix = _CREATED.search(text) or _UNIX.search(head)
    if found_unix is not None:
        digits = found_unix[0].removeprefix("CreateTime: ")
        return found_unix.end() - len(digits), found_unix.end(), UNIX_PARTS.microseconds(digits)
    clock = _TIME.search(head, 0, level.start() if level else len(head))
    if clock is not None:
        hours, minutes, seconds = int(clock[1]), int(clock[2]), int(clock[3])
        time = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int((clock[4] or "").ljust(6, "0"))
        return clock.start(), clock.end(), before - before % DAY + time
    return -1, -1, None


def writer_of(text: str, begin: int) -> str:
    """Return a key of who wrote a line whose date begins there; empty if nothing says it."""
    if text[:1] == "{":
        pod = _POD.search(text)
        return pod[1] if pod else ""
    before = text[:begin] if begin >= 0 else text[:60] if "| " in text[:60] else ""
    prefix = _EXPORTED.sub("", _SYSLOG.sub("", before)).partition("|")[0].strip(" \t[>`*-\"'")
    return prefix if len(prefix) <= 120 and not _NO_WRITER.search(prefix) else ""


def exception_in(text: str) -> str | None:
    """Return the exception that a line without a date is of, behind a container's prefix (`kafka-1  | `)."""
    head, bar, rest = text.partition("| ")
    found = _EXCEPTION.match(rest if bar and len(head) < 60 and "[" not in head else text)
    return None if found is None else found[1]


def unwrapped(texts: Sequence[str]) -> list[tuple[int, str]] | None:
    """Join the lines of a text that was wrapped, each with the position of its first line; None for a text that was not."""
    longest = max(map(len, texts), default=0)
    begins = [date_of(text[:80])[0] >= 0 or not text.strip(_QUOTES) for text in texts]
    loose = [at for at, begin in enumerate(begins) if not begin and not _OF_AN_EXCEPTION.match(texts[at])]
    behind_a_full_line = sum(len(texts[at - 1]) > longest - 25 for at in loose if at > 0)
    if longest > 200 or len(loose) * 4 < len(texts) or behind_a_full_line * 2 < len(loose):
        return None
    # A terminal breaks every line where it is full, mail between words: some of its lines are as long as the longest, too.
    full = sum(len(texts[at - 1]) == longest for at in loose if at > 0)
    space = "" if full * 2 > len(loose) else " "
    joined: list[tuple[int, str]] = []
    at_loose = set(loose)
    for at, text in enumerate(texts):
        if at in at_loose and joined:
            joined[-1] = joined[-1][0], joined[-1][1].rstrip() + space + text.lstrip(_QUOTES)
        else:
            joined.append((at, text))
    return joined
