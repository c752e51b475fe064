"""Find the layout of a log file from its first thousand lines: a pattern of log4j2 or JSON, and the wrappers around it.

An *entry* is a line taken apart: time, thread, message, logger. An *envelope* is a pattern of log4j2 compiled to a regular
expression. A *wrapper* is what a container, a journal or a log platform adds around a line; the *writer* (source) of a
line is the host, pod or container that wrote it, where a wrapper names it. In: texts of lines. Out: a Layout, which makes
entries of them.

Rules of this file

1. The layouts that Kafka ships and that docs/kafka-logs.md asks for are tried first.
2. Wrappers are peeled off while most lines have them; what is left is JSON, or follows one of the patterns.
3. A pattern with the thread is preferred if it reads nearly as many lines as one without. `[Partition alpha-0 broker=1]`
   is no thread: messages of Kafka begin so.
"""

import csv
import html
import json
import re
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Any, NamedTuple

from tidegauge.traces.kafka_logs.parsing.timestamps import WAYS, Dates, moment, of_java, plausible
from tidegauge.util.errors import UsageError
from tidegauge.util.input_limits import longest_line

# A pattern of log4j2, such as `[%d] %p [%t] %m (%c)%n`, as a regular expression that takes a line apart.
#
# 1. A pattern must have the time, the message and the logger: messages of different loggers can look the same.
# 2. The thread may be missing; then the whole file counts as one thread.
# 3. Conversions without use here (%M, %L, %X, ..) match any short text.


Entry = tuple[int, str, str, str]
"""(time, thread, message, logger without its package)"""

_SHORT_NAMES = {
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
_EMPTY_CONVERSIONS = frozenset(
    {"n", "ex", "exception", "throwable", "xEx", "xThrowable", "xException", "rEx", "rThrowable", "nopex"}
)
_WITH_PATTERN = frozenset({"highlight", "style", "clr", "notEmpty", "varsNotEmpty", "variablesNotEmpty"})
_CONVERSION = re.compile(r"%(?:%|(?P<width>-?0?\d*(?:\.-?\d+)?)(?P<word>[A-Za-z]+))")
"""Conversions in their short form; those that print nothing in a line; those whose first option is a pattern; any other."""
_WORDS = sorted(
    {
        *_SHORT_NAMES,
        *_EMPTY_CONVERSIONS,
        *_WITH_PATTERN,
        *"dptcmnxXMLFlrNKCuT",
        "pid",
        "processId",
        "sn",
        "tid",
        "threadId",
        "tp",
        "marker",
        "mdc",
    }
    | {"markerSimpleName", "class", "method", "line", "file", "location", "hostName", "uuid", "nano", "relative", "MDC"},
    key=len,
    reverse=True,
)


@dataclass(frozen=True, slots=True)
class Envelope:
    """A pattern as a regular expression for a `line` without its end; `begins` matches the part before the message."""

    pattern: str
    dates: Dates
    line: re.Pattern[str]
    begins: re.Pattern[str]
    has_thread: bool

    def entry(self, text: str) -> Entry | None:
        """Split a line into its parts; None if it does not match the pattern."""
        match = self.line.fullmatch(text)
        if match is None:
            return None
        date, message, logger = match.group("time", "message", "logger")
        time = self.dates.microseconds(date)
        if time is None:
            return None
        return time, match["thread"] if self.has_thread else "", message, logger.rpartition(".")[2]


# Cached: each file of a directory tries the same ones.
@lru_cache(1 << 8)
def envelope(pattern: str, dates: Dates | None = None) -> Envelope:
    """Compile a pattern; `dates` replaces the date format of its %d. Raises UsageError."""
    date_formats: list[Dates] = []
    regex = _linear(_regex(pattern, date_formats, dates))
    for group, conversion in (("time", "%d"), ("message", "%m"), ("logger", "%c")):
        if f"<{group}>" not in regex:
            raise UsageError(
                f"expected {conversion} in the layout {pattern!r}, seen none; "
                "write it as log4j2 does, such as '[%d] %p [%t] %m (%c)%n'"
            )
    try:
        line, begins = re.compile(regex + r"\s*+"), re.compile(regex[: regex.index("(?P<message>")].rstrip(" *+"))
    except re.error as error:
        raise UsageError(f"expected each conversion once in the layout {pattern!r}, seen one twice ({error})") from None
    return Envelope(pattern, date_formats[0], line, begins, "thread" in line.groupindex)


_SPACES = re.compile(r"(?: [*+])+")
_MAY_BE_EMPTY = re.compile(r"(?<= \+\+)(?:\\S\* \+\+)+")
_MESSAGE = "(?P<message>.*)"


def _linear(regex: str) -> str:
    """Return the expression of a layout, rewritten so that a long line is matched in linear time.

    Two parts with spaces between could divide several spaces in many ways, and each would be tried. So a run of spaces
    belongs to one part (possessive `++`), but for those before the message's end.
    """
    before, message, after = regex.partition(_MESSAGE)
    # The message takes all spaces but the last one.
    after = re.sub(rf"^{_SPACES.pattern}", lambda spaces: " " if "+" in spaces[0] else "", after)
    parts = (before, after) if message else (before,)
    spaced = (_SPACES.sub(lambda spaces: " ++" if "+" in spaces[0] else " *+", part) for part in parts)
    # What may be empty, such as %X, has spaces on both sides, of which one may be all there is.
    return message.join(_MAY_BE_EMPTY.sub(lambda words: r"(?:\S++ ++)?" * words[0].count("S"), part) for part in spaced)


def _regex(pattern: str, date_formats: list[Dates], dates: Dates | None) -> str:
    """Return the expression for lines of a log4j2 pattern. The formats of its dates are appended to `date_formats`.

    `dates`, if given, stands for the format of its dates.
    """
    regex, at = "", 0
    while at < len(pattern):
        conversion = _CONVERSION.match(pattern, at)
        if conversion is None:
            literal = pattern[at]
            if literal == "%":
                raise UsageError(f"expected a conversion of log4j2 in the layout {pattern!r}, seen {pattern[at : at + 2]}")
            # Levels may be padded (`%-5p`): a space of the pattern stands for several.
            regex += (" +" if not regex.endswith(" +") else "") if literal == " " else re.escape(literal)
            at += 1
            continue
        # `%%` is a percent sign.
        if conversion["word"] is None:
            regex, at = regex + "%", conversion.end()
            continue
        word = next((name for name in _WORDS if conversion["word"].startswith(name)), None)
        if word is None:
            raise UsageError(f"expected a conversion of log4j2 in the layout {pattern!r}, seen %{conversion['word']}")
        options, at = _options(pattern, conversion.start("word") + len(word))
        # A width such as that of `%-5p` pads with spaces on one side.
        padded = r" *{} *" if conversion["width"] else "{}"
        regex += padded.format(_part(_SHORT_NAMES.get(word, word), options, pattern[at : at + 1], date_formats, dates))
    return regex


def _options(pattern: str, at: int) -> tuple[list[str], int]:
    """Return the options `{..}{..}` of a conversion at position `at`, and the position after them; braces may nest."""
    options = []
    while pattern[at : at + 1] == "{":
        depth, end = 1, at + 1
        while depth and end < len(pattern):
            depth += {"{": 1, "}": -1}.get(pattern[end], 0)
            end += 1
        if depth:
            raise UsageError(f"expected a closing brace in the layout {pattern!r}, seen its end")
        options.append(pattern[at + 1 : end - 1])
        at = end
    return options, at


_LONGEST_NAME = 256
"""Characters of a thread, or of anything else that is neither the message nor the logger."""


def _part(word: str, options: list[str], following: str, date_formats: list[Dates], dates: Dates | None) -> str:
    """Return the expression for one conversion: `word` is its short name, `following` the next character of the pattern.

    For `date_formats` and `dates` see `_regex`.
    """
    if word == "d":
        date_formats.append(dates or of_java(options[0] if options else ""))
        return f"(?P<time>{date_formats[-1].regex})"
    if word in _EMPTY_CONVERSIONS:
        return ""
    if word in _WITH_PATTERN:
        return _regex(options[0] if options else "", date_formats, dates)
    # As long as the text that follows does not begin: a thread `SIGTERM handler` ends at its bracket. And not longer than
    # a name is: behind the message, each place where it may begin would else be tried to the end of the line.
    until = (rf"[^{re.escape(following)}]" if following not in ("", " ", "%") else r"\S") + f"{{0,{_LONGEST_NAME}}}"
    return {
        "p": "(?P<level>[A-Z]+|(?i:trace|debug|info|warn|warning|error|fatal))",
        "t": f"(?P<thread>{until})",
        "c": r"(?P<logger>[\w.$]+)",
        "m": _MESSAGE,
    }.get(word, until)


# JSON lines: those of log4j2's JsonLayout and JsonTemplateLayout (ECS, Logstash, GELF, Google Cloud) and of Logstash.
#
# A name with a dot is looked up as a key (`log.logger`) and as a path (`{"log": {"logger": ..}}`).


_TIMES = ("@timestamp", "timestamp", "timeMillis", "time", "ts", "date", "datetime", "eventTime", "asctime")
_LOGGERS = ("loggerName", "logger_name", "log.logger", "logger", "_logger", "category", "loggerFqn", "name")
_THREADS = ("thread", "thread_name", "threadName", "process.thread.name", "_thread", "thread.name")
_MESSAGES = ("message", "msg", "full_message", "short_message", "text")


def document(text: str) -> dict[str, Any] | None:
    """Parse a line as one JSON object; None if it is not one."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        parsed = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return parsed if isinstance(parsed, dict) else None


def entry(text: str) -> Entry | None:
    """Return the parts of a JSON line; None if time, message or logger are missing."""
    fields = document(text)
    if fields is None:
        return None
    logger, message, time = _first(fields, _LOGGERS), _first(fields, _MESSAGES), _time(fields)
    if not isinstance(logger, str) or not isinstance(message, str) or time is None:
        return None
    thread = _first(fields, _THREADS)
    return time, thread if isinstance(thread, str) else "", message, logger.rpartition(".")[2]


def _time(fields: dict[str, Any]) -> int | None:
    """Return the time of a JSON line, microseconds since 1970: log4j2's `instant`, or the first field that is a date."""
    instant = fields.get("instant")
    if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
        nanos = instant.get("nanoOfSecond", 0)
        since = int(instant["epochSecond"]) * 1_000_000 + (nanos // 1000 if isinstance(nanos, int) else 0)
        return since if plausible(since) else None
    return next((time for name in _TIMES if (time := moment(_get(fields, name))) is not None), None)


def _first(fields: dict[str, Any], names: tuple[str, ...]) -> object:
    """Return the first of the named fields that is a text; None if there is none."""
    return next((value for name in names if isinstance(value := _get(fields, name), str)), None)


def _get(fields: dict[str, Any], name: str) -> object:
    """Return a field by its name, or by its path such as `kubernetes.pod_name`; None if there is none."""
    if name in fields:
        return fields[name]
    value: object = fields
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


# Wrappers: what containers, journals and terminals add to a line.
#
# 1. A wrapper returns the part of a line that the broker wrote, or None if the line is not wrapped in this way.
# 2. Containers split lines at 16 KiB: `whole` is false for a part that the next line of the same stream continues.
# 3. `source` is the writer, if the wrapper names it: one file may have the lines of several brokers.


_STAMP = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)"
_ANSI = re.compile("\x1b\\[[0-9;]*[A-Za-z]")


class Inner(NamedTuple):
    """A line without its wrapper. `whole` unless the next line continues it; `source` is who wrote it, if that is known."""

    text: str
    whole: bool = True
    source: str = ""


class Wrapper(NamedTuple):
    """A kind of wrapper; the summary of a capture has its `name`."""

    name: str
    unwrap: Callable[[str], Inner | None]


def _behind(regex: str) -> Callable[[str], Inner | None]:
    """Return the unwrap function of the wrapper that puts a prefix before a line, which matches `regex`.

    Its group `source` is the writer; `partial` is CRI's mark, F for a whole line, P for a part that the next one continues.
    """
    prefix = re.compile(regex)

    def unwrap(text: str) -> Inner | None:
        """Take the prefix off; None for a line without it."""
        match = prefix.match(text)
        if match is None:
            return None
        groups = match.groupdict()
        return Inner(text[match.end() :], groups.get("partial") != "P", groups.get("source") or "")

    return unwrap


_PODS = ("kubernetes.pod_name", "kubernetes.pod.name", "pod_name", "pod", "container_name", "attrs.tag", "host")
"""Where shippers (fluent-bit, Filebeat, Promtail) put the name of the pod or the container, the most precise first."""


HEADING = "heading"
"""Where exports.py puts the heading that a line stands below."""


def _headed(text: str) -> Inner | None:
    """Unwrap a line below a heading, which names its writer (exports.py)."""
    fields = document(text) if text.startswith(f'{{"{HEADING}": ') else None
    return None if fields is None else Inner(str(fields.get("log", "")), source=str(fields[HEADING]))


def _container(text: str) -> Inner | None:
    """Unwrap Docker's `{"log": ..}`, whose last part ends with a line break, or journald's `{"MESSAGE": ..}`."""
    fields = document(text)
    if fields is None:
        return None
    if isinstance(fields.get("MESSAGE"), str):
        return Inner(fields["MESSAGE"], source=str(fields.get("_HOSTNAME", "")))
    if not isinstance(fields.get("log"), str):
        return None
    source = next((str(name) for key in _PODS if isinstance(name := _get(fields, key), str)), "")
    # Docker splits lines at 16 KB: a part that does not end with a line break goes on in the next document. One that names
    # no stream is not Docker's.
    return Inner(fields["log"].removesuffix("\n"), fields["log"].endswith("\n") or "stream" not in fields, source)


_EXPORTED = (
    *("_source.message", "_source.log", "_source.event.original", "fields.message", "textPayload", "jsonPayload.message"),
    *("jsonPayload.MESSAGE", "result._raw", "_raw", "line", "message", "msg", "body", "content", "@message", "MESSAGE"),
)
"""Where platforms put a line as it was printed: Elastic, Google Cloud, Splunk, Loki, CloudWatch."""
_EXPORTED_WRITERS = (
    *(f"_source.{name}" for name in _PODS),
    *("resource.labels.pod_name", "result.host", "labels.pod", "labels.host", "@logStream", "logStreamName", "host.name"),
    *("_source.host.name", "source_host", "hostname", "_HOSTNAME", "HOSTNAME", *_PODS),
)
"""Where they put who wrote it."""


WRITERS = ("pod", "host", "container", "instance", "logstream", "broker", "node", "source")
"""How platforms call who wrote a line, the most precise first: a part of the name of a field."""


def document_with_a_line(fields: dict[str, Any]) -> bool:
    """Return whether a JSON document has a text in a field where platforms and layouts put a log line."""
    return any(isinstance(_get(fields, key), str) for key in (*_EXPORTED, *_MESSAGES, "log"))


def is_of_a_log(fields: dict[str, Any]) -> bool:
    """Return whether a JSON document is of a log: a text of it has a time and a level, or a field of it is a level."""
    texts = [text for key in (*_EXPORTED, "log") if isinstance(text := _get(fields, key), str)]
    if any(map(_LOG_LINE.search, texts)) or any(_get(fields, key) for key in ("level", "log.level", "severity")):
        return True
    return bool(texts) and str(fields.get("status")).lower() in _STATUSES  # Datadog


def _exported(text: str) -> Inner | None:
    """Unwrap a JSON document of a log platform that has the line as a text."""
    # In a list of documents, one a line, a comma follows each.
    fields = document(text.rstrip(",")) if text.endswith(",") else document(text)
    if fields is None:
        return None
    line = next((line for key in _EXPORTED if isinstance(line := _get(fields, key), str) and _LOG_LINE.search(line)), None)
    if line is None:
        return None
    source = next((name for key in _EXPORTED_WRITERS if isinstance(name := _get(fields, key), str)), "")
    return Inner(line.rstrip("\n"), source=source)


_STATUSES = ("debug", "info", "ok", "warn", "warning", "error", "critical", "emergency")
_LOG_LINE = re.compile(r"\d\d:\d\d:\d\d\S{0,20} .{0,60}?\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_NAME = re.compile(r"[A-Za-z][\w.\-]{1,80}")


def _table(text: str) -> Inner | None:
    """Unwrap a row of a table (CSV of Kibana, Splunk, Athena): the field with a line; a name before it is the writer."""
    if '"' not in text and "," not in text:
        return None
    try:
        fields = next(csv.reader([text], strict=True), [])
    except csv.Error:
        return None
    column = next((column for column, field in enumerate(fields) if _LOG_LINE.search(field[:120])), None)
    # A line of a log may have commas, too: a row begins with a quote or with the digits of a time.
    if column is None or len(fields) == 1 or not text.startswith(('"', *"0123456789")):
        return None
    source = next((field for field in fields[:column] + fields[column + 1 :] if _NAME.fullmatch(field)), "")
    return Inner(fields[column], source=source)


_QUOTE = re.compile(r"(?:(?:>|&gt;) ?)+")


def _quoted(text: str) -> Inner | None:
    """Unwrap a line that mail or Markdown quotes (`> ..`, backticks), and undo HTML's escapes."""
    quote = _QUOTE.match(text)
    unquoted = text[quote.end() :] if quote is not None else text
    bare = unquoted.strip()
    in_backticks = len(bare) > 2 and bare[0] == bare[-1] == "`"
    # Nothing to take off: neither quoted, nor with an escape such as `&gt;`.
    if quote is None and not in_backticks and "&" not in text:
        return None
    return Inner(html.unescape(bare.strip("`") if in_backticks else unquoted))


_LABELS = re.compile(rf"{_STAMP} \{{([^}}]{{0,4000}})\}} ")
_LABEL = re.compile(r'\b(?:pod|pod_name|host|instance|container)="([^"]{1,200})"')


def _labelled(text: str) -> Inner | None:
    """Unwrap a line of logcli: a time and labels before it."""
    match = _LABELS.match(text)
    if match is None:
        return None
    label = _LABEL.search(match[1])
    return Inner(text[match.end() :], source="" if label is None else label[1])


_PREFIX = re.compile(r"([^\[]{1,80}?) ?(?=\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(?:,\d{3,6})?\] [A-Z]{4,5} )")
_NUMBERED = re.compile(r":\d{1,9}:?$|:$")
_WRITER = re.compile(
    r"/?(?=[^A-Za-z]{0,40}[A-Za-z])[\w.\-]{1,60}(?:/[\w.\-]{1,60}){0,9}|(?=\d{0,40}[A-Za-z])[\w.\-]{2,60} [\w.\-]{2,60}"
)
"""A name, a path of some folders, or two names, such as a pod and a container: with a letter in the first one."""
_FILE = re.compile(
    r"(?<=[^/])/(?:server|state-change|controller|kafka|kafka-request|kafka-authorizer|kafkaServer|log-cleaner|request)"
    r"\.(?:log|out)[\w.\-]{0,40}$"
)
"""The last part of a path if it is a file as Kafka calls it: its folder is the writer. Others may be one for each node."""


def _prefixed(text: str) -> Inner | None:
    """Unwrap a line behind a short text: a date that a console shows in its language, the file that `grep` found it in."""
    match = _PREFIX.match(text)
    if match is None:
        return None
    # `b1/server.log:17:` is a file and the number of a line, as grep prints them: files of one folder are of one node.
    name = _NUMBERED.sub("", match[1].strip())
    name = _FILE.sub("", name)
    return Inner(text[match.end() :], source=name if _WRITER.fullmatch(name) else "")


def _plain(text: str) -> Inner | None:
    """Unwrap a line with the colours of a terminal."""
    return Inner(_ANSI.sub("", text)) if "\x1b" in text else None


WRAPPERS = (
    Wrapper("ANSI colours", _plain),
    Wrapper("headings", _headed),
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
    Wrapper("export of a log platform", _exported),
    Wrapper("logcli", _labelled),
    Wrapper("CloudWatch", _behind(rf"{_STAMP} (?P<source>[A-Za-z][\w./\-]{{0,200}}) (?=\[?\d{{4}})")),
    Wrapper("CSV", _table),
    Wrapper("time stamps", _behind(rf"{_STAMP} ")),
    Wrapper("quoted", _quoted),
    Wrapper("a prefix", _prefixed),
)
"""`time stamps` are those of `docker logs -t` and `kubectl logs --timestamps`; they come late: others begin so, too."""


class Peeled(NamedTuple):
    """Lines without their wrappers: the position at which each began, its text, and its writer ("" where none is named)."""

    positions: Sequence[int] = ()
    texts: Sequence[str] = ()
    sources: Sequence[str] = ()


@dataclass(slots=True)
class _OpenLine:
    """A line that is put together from its parts; `whole` when its last part is there. Too long a line has no parts."""

    position: int
    source: str
    parts: list[str]
    size: int = 0
    whole: bool = False


class Peeler:
    """Unwraps lines that come in pieces.

    A line that a wrapper does not match stays as it is: only some lines have a terminal's colours. Of a line that gets
    longer than the longest length nothing is left; `dropped` has the numbers of such lines.
    """

    def __init__(self, wrappers: Sequence[Wrapper]) -> None:
        """Begin with no line under way."""
        self._wrappers = wrappers
        self._position = 0
        self._waiting: deque[_OpenLine] = deque()
        """Lines that were not returned yet, in the order in which they began."""
        self._open: dict[str, _OpenLine] = {}
        """By writer, the line whose next part is to come."""
        self._longest = longest_line()
        self.dropped: list[int] = []

    def feed(self, texts: Sequence[str]) -> Peeled:
        """Unwrap the next lines; return those that are complete, and have no incomplete one before them.

        Once more than MOST_WAITING wait, an incomplete one is returned, too.
        """
        for text in texts:
            inner, whole, source = text, True, ""
            for wrapper in self._wrappers:
                unwrapped = wrapper.unwrap(inner)
                if unwrapped is not None:
                    inner, whole, source = unwrapped.text, whole and unwrapped.whole, unwrapped.source or source
            # The parts of a long line of one writer may have lines of other writers between them.
            line = self._open.pop(source, None)
            if line is None:
                line = _OpenLine(self._position, source, [])
                self._waiting.append(line)
            self._position += 1
            line.size += len(inner)
            if line.size <= self._longest:
                line.parts.append(inner)
            else:
                line.parts.clear()
            line.whole = whole
            if not whole:
                self._open[source] = line
        return self._ready()

    def end(self) -> Peeled:
        """Return the lines that wait, complete or not."""
        for line in self._waiting:
            line.whole = True
        self._open.clear()
        return self._ready()

    def _ready(self) -> Peeled:
        """Return the lines that are whole, in order, and those that have waited too long for their next part."""
        ready: list[_OpenLine] = []
        while self._waiting and (self._waiting[0].whole or len(self._waiting) > MOST_WAITING):
            line = self._waiting.popleft()
            if not line.whole:
                del self._open[line.source]
            ready.append(line)
        self.dropped += [line.position + 1 for line in ready if line.size > self._longest]
        return Peeled(
            [line.position for line in ready], ["".join(line.parts) for line in ready], [line.source for line in ready]
        )


MOST_WAITING = 100_000
"""Lines that wait for one whose end does not come."""


LOOKED_AT, LOOKED_AT_FIRST = 1000, 20
"""Lines from which a layout is found, and those of which one has Kafka's own if the file has."""
DATED = 20
"""One line in so many has a date at least."""
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
    "[%d] %p [%t] %m (%c:%L)%n",
    "[%d] %p %m (%c:%L)%n",
    "%d %p [%c] [%t] [%x] [%X] %m%n",
)
"""The patterns of Kafka, of its distributions (Strimzi's has the thread at the end), and of log4j2's own examples."""

_NO_THREAD = re.compile(r"[^\]]*=|Partition |ReplicaFetcherManager on |LeaderEpochCache |Controller \d|GroupCoordinator \d")
"""What stands in brackets before a message of Kafka, and is no thread."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The layout of a file; `begins` matches the beginning of a line: other text continues the line before."""

    name: str
    wrappers: tuple[Wrapper, ...]
    entry: Callable[[str], Entry | None]
    begins: Callable[[str], object]


def of_envelope(pattern: Envelope, wrappers: tuple[Wrapper, ...] = ()) -> Layout:
    """Return the layout of lines of a pattern, within wrappers (the outermost first)."""
    return Layout(_layout_name(pattern.pattern, wrappers), wrappers, pattern.entry, pattern.begins.match)


def find(texts: Sequence[str], pattern: str | None = None) -> Layout | None:
    """Find the layout of a file that begins with `texts`; None if there is none. `pattern` is that of --layout."""
    sample = list(islice((text for text in texts if text.strip()), LOOKED_AT))
    if pattern is None and any(_KAFKAS_LAYOUT.entry(text) for text in sample[:LOOKED_AT_FIRST]):
        # KAFKAS reads lines of DOCUMENTED, too, with the thread as part of the message: so the thread decides between them.
        # Nine lines in ten must have one.
        begun = sum(_KAFKAS_LAYOUT.begins(text) is not None for text in sample)
        return _DOCUMENTED_LAYOUT if 10 * sum(map(_has_thread, sample)) >= 9 * begun else _KAFKAS_LAYOUT
    return _find_any(sample, pattern)


def _has_thread(text: str) -> bool:
    """Return whether a line of `[time] LEVEL ..` goes on with a thread in brackets, not with a message that begins so."""
    thread = _THREAD.match(text)
    return thread is not None and _NO_THREAD.match(thread[1]) is None


def _find_any(sample: list[str], given_pattern: str | None) -> Layout | None:
    """Find the layout of a sample, peeling off one wrapper after the other until the lines are Kafka's; None if never."""
    wrappers: tuple[Wrapper, ...] = ()
    while True:
        layout = _pattern(sample, wrappers, given_pattern) or (_json(sample, wrappers) if given_pattern is None else None)
        if layout is not None:
            return layout
        peeled = _peel(sample, wrappers)
        if peeled is None:
            return None
        wrapper, sample = peeled
        wrappers = (*wrappers, wrapper)


def unwrapped_texts(texts: Sequence[str], wrapper: Wrapper) -> list[str]:
    """Return lines without `wrapper`, which may have divided a long line: its parts are joined."""
    peeler = Peeler((wrapper,))
    return [*peeler.feed(texts).texts, *peeler.end().texts]


def _peel(sample: list[str], wrappers: tuple[Wrapper, ...]) -> tuple[Wrapper, list[str]] | None:
    """Find the next wrapper, beside `wrappers`, that most lines have; return it with the unwrapped lines."""
    for wrapper in WRAPPERS:
        if wrapper in wrappers:
            continue
        # A terminal colours warnings and errors only, so one line with a colour is enough.
        enough = 1 if wrapper is WRAPPERS[0] else 0.8 * len(sample)
        if sample and sum(wrapper.unwrap(text) is not None for text in sample) >= enough:
            return wrapper, unwrapped_texts(sample, wrapper)
    return None


def _json(sample: Sequence[str], wrappers: tuple[Wrapper, ...]) -> Layout | None:
    """Return the JSON layout if it reads at least half of the sample."""
    entries = sum(entry(text) is not None for text in sample)
    if not sample or entries < 0.5 * len(sample):
        return None
    return Layout(_layout_name("JSON", wrappers), wrappers, entry, re.compile(r"\s*\{").match)


def _pattern(sample: Sequence[str], wrappers: tuple[Wrapper, ...], given_pattern: str | None) -> Layout | None:
    """Find the pattern that reads most lines, and at least half of those that begin as it does; None if none does.

    `given_pattern` is the user's: no other is tried.
    """
    best: Envelope | None = None
    best_score = 0.0
    for candidate in (envelope(given_pattern),) if given_pattern is not None else _candidates(sample):
        entries = [entry for text in sample if (entry := candidate.entry(text)) is not None]
        # Entries whose thread is the beginning of a message do not count.
        right_thread = sum(_NO_THREAD.match(thread) is None for _, thread, _, _ in entries)
        # A line without its thread cannot be tied to the other lines of its request: prefer a pattern that has it.
        score = right_thread * (1.1 if "%t" in candidate.pattern else 1.0)
        if score > best_score:
            best, best_score = candidate, score
    if best is None:
        return None
    # A pattern that the user gave is taken if it reads anything.
    if given_pattern is None and best_score < 0.5 * sum(best.begins.match(text) is not None for text in sample):
        return None
    return of_envelope(best, wrappers)


def _candidates(sample: Sequence[str]) -> Sequence[Envelope]:
    """Return each pattern of PATTERNS with the two date formats that most lines begin with."""
    # Stack traces have no date, nor has the configuration that a broker prints as it starts: of the first thousand lines two
    # thirds and more. Any text may have a line that begins with a number.
    begun = {way: sum(re.match(rf"\[?{way.regex}", text) is not None for text in sample) for way in WAYS}
    ways = sorted((way for way in WAYS if begun[way] * DATED > len(sample)), key=lambda way: -begun[way])
    return [envelope(pattern, way) for way in ways[:2] for pattern in PATTERNS]


def _layout_name(pattern: str, wrappers: tuple[Wrapper, ...]) -> str:
    """Return the name of a layout as the summary has it: `JSON behind kubernetes`; the innermost wrapper first."""
    return " behind ".join((pattern, *(wrapper.name for wrapper in reversed(wrappers))))


_DOCUMENTED_LAYOUT, _KAFKAS_LAYOUT = of_envelope(envelope(DOCUMENTED)), of_envelope(envelope(KAFKAS))
_THREAD = re.compile(r"\[[^\]]*\] [A-Z]+ \[([^\]]*)\] ")
