"""log4j2's pattern language, backwards: from `[%d] %p [%t] %m (%c)%n` to the parts of a line.

Rules of this file

1. A pattern must tell the time, the message and the logger: without the logger a line cannot be told from its like.
2. The thread may be missing; then the whole file counts as one thread.
3. What Kafka's lines never have and conversions of no use (%M, %L, %X, ..) match anything that is short.
"""

import re
from dataclasses import dataclass

from tidegauge.impl.errors import UsageError
from tidegauge.traces.kafka.lines.layout.dates import Dates, of_java

Entry = tuple[int, str, str, str]
"""(time, thread, message, logger without its package)"""

_LONG = {
    "date": "d",
    "level": "p",
    "le": "p",
    "thread": "t",
    "tn": "t",
    "threadName": "t",
    "logger": "c",
    "lo": "c",
    "message": "m",
    "msg": "m",
}
_NOTHING = frozenset({"n", "ex", "exception", "throwable", "xEx", "xThrowable", "xException", "rEx", "rThrowable", "nopex"})
_NESTED = frozenset({"highlight", "style", "clr", "notEmpty", "varsNotEmpty", "variablesNotEmpty"})
_CONVERSION = re.compile(r"%(?:%|(?P<width>-?0?\d*(?:\.-?\d+)?)(?P<word>[A-Za-z]+))")
_WORDS = sorted(
    {*_LONG, *_NOTHING, *_NESTED, *"dptcmnxXMLFlrNKCuT", "pid", "processId", "sn", "tid", "threadId", "tp", "marker", "mdc"}
    | {"markerSimpleName", "class", "method", "line", "file", "location", "hostName", "uuid", "nano", "relative", "MDC"},
    key=len,
    reverse=True,
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A pattern as a regular expression; `begins` matches what stands before the message."""

    pattern: str
    dates: Dates
    line: re.Pattern[str]
    begins: re.Pattern[str]

    def entry(self, text: str) -> Entry | None:
        """The parts of a line, None if it is not written so."""
        found = self.line.fullmatch(text)
        if found is None:
            return None
        time = self.dates.microseconds(found["time"])
        if time is None:
            return None
        thread = found["thread"] if "thread" in self.line.groupindex else ""
        return time, thread, found["message"], found["logger"].rpartition(".")[2]


def envelope(pattern: str, dates: Dates | None = None) -> Envelope:
    """The pattern of a layout; `dates` replaces the way its %d is written."""
    found: list[Dates] = []
    regex = _regex(pattern, found, dates)
    for group, conversion in (("time", "%d"), ("message", "%m"), ("logger", "%c")):
        if f"<{group}>" not in regex:
            raise UsageError(
                f"expected {conversion} in the layout {pattern!r}, saw none; "
                "name it as log4j2 has it, such as '[%d] %p [%t] %m (%c)%n'"
            )
    try:
        line, begins = re.compile(regex + r"\s*"), re.compile(regex[: regex.index("(?P<message>")].rstrip(" +"))
    except re.error as error:
        raise UsageError(f"expected each conversion once in the layout {pattern!r}, saw one twice ({error})") from None
    return Envelope(pattern, found[0], line, begins)


def _regex(pattern: str, found: list[Dates], dates: Dates | None) -> str:
    regex, at = "", 0
    while at < len(pattern):
        conversion = _CONVERSION.match(pattern, at)
        if conversion is None:
            literal = pattern[at]
            if literal == "%":
                raise UsageError(f"expected a conversion of log4j2 in the layout {pattern!r}, saw {pattern[at : at + 2]}")
            regex += (" +" if not regex.endswith(" +") else "") if literal == " " else re.escape(literal)
            at += 1
            continue
        if conversion["word"] is None:
            regex, at = regex + "%", conversion.end()
            continue
        word = next((known for known in _WORDS if conversion["word"].startswith(known)), None)
        if word is None:
            raise UsageError(f"expected a conversion of log4j2 in the layout {pattern!r}, saw %{conversion['word']}")
        options, at = _options(pattern, conversion.start("word") + len(word))
        padded = r" *{} *" if conversion["width"] else "{}"
        regex += padded.format(_part(_LONG.get(word, word), options, pattern[at : at + 1], found, dates))
    return regex


def _options(pattern: str, at: int) -> tuple[list[str], int]:
    """The `{..}{..}` behind a conversion; braces nest."""
    options = []
    while pattern[at : at + 1] == "{":
        depth, end = 1, at + 1
        while depth and end < len(pattern):
            depth += {"{": 1, "}": -1}.get(pattern[end], 0)
            end += 1
        if depth:
            raise UsageError(f"expected a closing brace in the layout {pattern!r}, saw its end")
        options.append(pattern[at + 1 : end - 1])
        at = end
    return options, at


def _part(word: str, options: list[str], following: str, found: list[Dates], dates: Dates | None) -> str:
    if word == "d":
        found.append(dates or of_java(options[0] if options else ""))
        return f"(?P<time>{found[-1].regex})"
    if word in _NOTHING:
        return ""
    if word in _NESTED:
        return _regex(options[0] if options else "", found, dates)
    # as long as the text that follows does not begin: a thread `SIGTERM handler` ends at its bracket
    until = f"[^{re.escape(following)}]*" if following not in ("", " ", "%") else r"\S*"
    return {
        "p": "(?P<level>[A-Z]+|(?i:trace|debug|info|warn|warning|error|fatal))",
        "t": f"(?P<thread>{until})",
        "c": r"(?P<logger>[\w.$]+)",
        "m": "(?P<message>.*)",
    }.get(word, until)
