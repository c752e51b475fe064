"""Undo what mail, exports and people do to a line, as far as the line needs to be read; find its date, writer and exception.

Rules of this file

1. The date of a line is the last one before its level: a container, a shipper or a person writes another one first. A time
   without a date is of the day of the line before it.
2. A writer is a pod or a host in JSON, or what stands before the date: a key that only says which lines are of one writer.
3. A file that was wrapped or exported as a whole is restored before (exports.py of the reader of logs).

DATES has the forms of a date, each with its `microseconds(text)` (None: no date after all) and a compiled pattern.
"""

import html
import re
from collections.abc import Iterator

from tidegauge.traces.kafka_logs.parsing.layout import HEADING
from tidegauge.traces.kafka_logs.parsing.timestamps import DATES, UNIX_PARTS

LONG = 3_000
"""Characters of a JSON document from which it may be many log lines in one line."""
DAY = 86_400 * 1_000_000

_UNIX = re.compile(rf"(?<![\w.\-/\\]){UNIX_PARTS.regex}(?!\d)")
_INSTANT = re.compile(r'"epochSecond": ?(\d{10}), ?"nanoOfSecond": ?(\d{1,9})')
_SECONDS = re.compile(r"(?<![\w.])(1\d{9})\.(\d{1,9})(?![\w.])")
_CREATED = re.compile(r"CreateTime: (\d{13})")
_TIME = re.compile(r"(?<![\d:])(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,6}))?(?![\d:])")
_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_PODS = (
    *("pod_name", "podName", "PodName", "pod", "@logStream", "logStreamName", "hostname", "source_host", "host", "instance"),
    *("_HOSTNAME", "HOSTNAME", "container_name", HEADING),
)
"""Where shippers and platforms name the writer, the most precise first."""
_POD = re.compile(rf'"({"|".join(_PODS)})": ?(?:\{{ ?"name": ?)?"([^"]{{1,200}})"')
_LOGFMT, _OF_LOGFMT = (
    re.compile(r"(?:time|ts|t|level|lvl|host|pod)="),
    re.compile(r'\b(?:pod|host|hostname|instance)="?([^\s"]+)'),
)
_NO_WRITER = re.compile(r"CreateTime:|^\d|^std(?:out|err)\b")
_OF_ITS_OWN = re.compile(
    r"<\d{1,3}>\d? ?|^\S{3} +\d+ \d\d:\d\d:\d\d |\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?"
    r"|\[\d+\](?=:)|(?<![\w.\-])\d{4,}(?![\w.])|(?::\d+:|-\d+-)(?=[\s\[]*$)"
)
_EXPORTED_AT = re.compile(r'^[\s"]*[A-Z][a-z]{2} \d\d?, \d{4} @ [\d:.]+[\s",]*')
"""What each line has of its own before its date: the platform's date, numbers of lines, events and processes."""
_LAST_WORD = re.compile(r"^[^\s\])}]+")
_ESCAPED = re.compile(r"\\u00([0-9a-fA-F]{2})")
_BACKSLASH = re.compile(r"\\([\[\](){}_*\-|!+.#~])")
"""What Jira and Markdown write before a character that they would read else."""
_DRIVE = re.compile(r"\b[A-Za-z]:\\")
_BREAK = re.compile(r"(?i)<(?:br ?/?|/?(?:p|div|pre|li|ul|ol|tr|table|blockquote)(?: [^<>]{0,200})?)>")
_TAG = re.compile(r"(?i)</?(?:a|b|code|em|font|i|mark|span|strong|td|th|tt|u)(?: [^<>]{0,200})?>")
_OBJECTS = re.compile(r"(?<=\}),\s*(?=\{)")
_FRAME = " \t`|\N{BOX DRAWINGS LIGHT VERTICAL}"
"""What a terminal, or a person, draws around a line."""
_BEHIND = re.compile(r"[) ]((?:[a-z]\w*+\.)++\w*(?:Exception|Error): .*)$")
_TAG_OF_SYSLOG = re.compile(r"^ \S{1,200} [\w.\-/]{1,60}(?:\[\d+\])?: ")
"""Host and process, behind the date."""
_BAR, _BARS = re.compile(r" ?\|"), re.compile(r"^[^\[]{0,100}\| *(?=[a-zC])")
"""What a container (`kafka-1  | `) or a service wrapper (`INFO | jvm 1 | 2026/01/01 00:00:00 | `) writes before a line."""
_OF_A_TRACE = re.compile(r"\s*+(?:at |Caused by|(?:[a-z]\w*+\.)++\w*(?:Exception|Error)\b)")
_EXCEPTION = re.compile(r"^[^\[\d]{0,80}?((?:[a-z]\w*+\.)++\w*(?:Exception|Error)\b.*)$")

Dated = tuple[int, int, int | None]
"""Where the date of a line begins and ends in it, and its time in microseconds; (-1, -1, None) without one."""


def lines_within(text: str) -> Iterator[str]:
    """Yield the log lines in one line of a file, undone (plain): a JSON document, or HTML with breaks, has several."""
    # A long line of JSON may be many documents, an array of them.
    parts = _OBJECTS.split(text) if len(text) > LONG and text.lstrip()[:1] in ("{", "[") else (text,)
    for part in parts:
        # In JSON, `\n` divides lines; elsewhere it may be the name of a directory of Windows that begins with an n.
        for line in part.split("\\n") if '"' in part else (part,):
            yield from map(plain, _BREAK.split(line) if "<" in line and _BREAK.search(line) else (line,) if line else ())


def plain(text: str) -> str:
    """Undo the escapes of JSON, CSV, HTML, Jira and Markdown that stand between a line and what Kafka printed."""
    if "<" in text:
        text = _TAG.sub("", text)
    if "\\" in text:
        # A backslash in a path of Windows is none of an escape, whatever stands behind it.
        text = text if _DRIVE.search(text) else _BACKSLASH.sub(r"\1", text)
        text = _ESCAPED.sub(lambda escape: chr(int(escape[1], 16)), text).replace('\\"', '"')
    if '""' in text:
        text = text.replace('""', '"')
    return html.unescape(text) if "&" in text else text


def whole_part(text: str) -> str:
    """Return what a viewer left of a line that it trimmed: up to the last whole word, without the brackets left open."""
    text = text.removesuffix("…").removesuffix("...")
    # From behind: the word at the end may lack a part.
    text = _LAST_WORD.sub("", text[::-1], count=1)[::-1]
    opened: list[int] = []
    for at, character in enumerate(text):
        if character in "([{":
            opened.append(at)
        elif character in ")]}" and opened:
            opened.pop()
    return text[: opened[0]] if opened else text


def date_of(text: str, before: int = 0) -> Dated:
    """Return the date of a line (Dated); `before` is the time of the line before it, which gives a clock time its day.

    The forms are tried from the surest on: a date, milliseconds since 1970, seconds with a fraction, a time of day.
    """
    head = text[:400]
    level = _LEVEL.search(head)
    for dates, pattern in DATES:
        dates_found = list(pattern.finditer(head, 0, level.start() if level else len(head))) or list(pattern.finditer(head))
        # The last one before the level is the line's own (rule 1). Without a level the first is: others are in the message.
        if dates_found:
            last = dates_found[-1] if level else dates_found[0]
            time = dates.microseconds(last[0])
            if time is not None:
                return last.start(), last.end(), time
    # A dumped record has `CreateTime: ` before the milliseconds, anywhere in the line.
    found_unix = _CREATED.search(text) or _UNIX.search(head)
    if found_unix is not None:
        digits = found_unix[0].removeprefix("CreateTime: ")
        return found_unix.end() - len(digits), found_unix.end(), UNIX_PARTS.microseconds(digits)
    # log4j2's JSON has nanoseconds without zeros in front, a number of seconds has a fraction.
    since = _INSTANT.search(text) or _SECONDS.search(head)
    if since is not None:
        fraction = since[2].zfill(9) if since.re is _INSTANT else since[2]
        return since.start(1), since.end(), int(since[1]) * 1_000_000 + int(fraction[:6].ljust(6, "0"))
    # Before the level, or else right behind it.
    clock = _TIME.search(head, 0, level.start() if level else len(head)) or _TIME.match(
        head, level.end() + 1 if level else 0
    )
    if clock is not None:
        hours, minutes, seconds = int(clock[1]), int(clock[2]), int(clock[3])
        time = (hours * 3600 + minutes * 60 + seconds) * 1_000_000 + int((clock[4] or "").ljust(6, "0"))
        return clock.start(), clock.end(), before - before % DAY + time
    return -1, -1, None


def is_error(text: str) -> bool:
    """Return whether the level of a line is ERROR or FATAL."""
    level = _LEVEL.search(text[:400])
    return level is not None and level[0] in ("ERROR", "FATAL")


def is_message(text: str) -> bool:
    """Return whether a line begins a message of a log: it has a level, and is no part of an exception."""
    return _LEVEL.search(text[:400]) is not None and _OF_A_TRACE.match(text) is None


def writer_of(text: str, begin: int) -> str:
    """Return a key of who wrote a line whose date begins at `begin` (-1: no date); empty if nothing says it.

    In JSON that is the most precise name of a pod or host, in logfmt one too, else what stands before the date.
    """
    if text[:1] == "{":
        pods = {pod[1]: pod[2] for pod in reversed(list(_POD.finditer(text[:LONG])))}
        return next((pods[name] for name in _PODS if name in pods), "")
    if _LOGFMT.match(text) is not None:
        named = _OF_LOGFMT.search(text[:LONG].partition(" msg=")[0])
        return named[1] if named is not None else ""
    # Without a date only the prefix of a container (`kafka-1  | `) is one.
    before = text[:begin] if begin >= 0 else text[:60] if "| " in text[:60] else ""
    # The second part of a date in the language of a console (`@ 16:49`) is no writer either.
    before = "" if len(before) > 400 else _EXPORTED_AT.sub("", _OF_ITS_OWN.sub(" ", before))
    prefix = before.partition("|")[0].strip(" \t[>`*-\"',:;")
    if "|" not in before and _LEVEL.search(prefix) is not None:
        return ""  # a layout with the level, and the thread, before the date
    return prefix if len(prefix) <= 120 and not _NO_WRITER.search(prefix) else ""


def exception_behind(text: str) -> str:
    """Return the exception at the end of a line that says something else first, as where lines were joined; else ""."""
    match = _BEHIND.search(text)
    return "" if match is None else match[1].partition(" at ")[0].partition("`")[0].rstrip(_FRAME)


def exception_in(text: str, begin: int, end: int) -> str | None:
    """Return the exception that a line begins with, behind the prefix of a container and the date, if any; else None.

    The date stands from `begin` to before `end`, both -1 without one.
    """
    # A number in its message may look like a date: not dated if a container's prefix, or the exception, stands around it.
    dated = end >= 0 and _BAR.match(text, end) is None and _EXCEPTION.match(text[:begin]) is None
    # A dated line with a level is a log message, whatever exception it names.
    if dated:
        text = "" if _LEVEL.search(text[:400]) else _TAG_OF_SYSLOG.sub("", text[end:])
    match = _EXCEPTION.match(_BARS.sub("", text, count=1))
    return None if match is None else match[1].rstrip(_FRAME)
