"""Parse the dates of log lines into microseconds since 1970: `date` here is a date with its time of day.

Rules of this file

1. A date names its day: lines that have the time only cannot be ordered beyond midnight.
2. A zone is used if there is one. Without it the time is local: it orders lines of one node only, as in the whole package.
3. `Dates` reads one date format. `WAYS` are the formats that are tried, the most common first; a pattern of Java
   (`yyyy-MM-dd'T'HH:mm:ss.SSSX`) or a name of log4j2 (`ISO8601`) makes one, too.
"""

import re
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from functools import lru_cache

from tidegauge.util.errors import UsageError

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
LAST = (datetime(9999, 12, 31, tzinfo=UTC) - EPOCH) // timedelta(microseconds=1)
MILLISECOND, SECOND = 1_000, 1_000_000
"""In microseconds."""
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_MONTH = "(?P<month_name>[A-Z][a-z]{2})[a-z]*"
_TIME = r"(?P<hour>\d\d):(?P<minute>\d\d):(?P<second>\d\d)(?:[.,:](?P<fraction>\d{1,9}))?"
_ZONE = r"(?: ?(?P<zone>Z|UTC|GMT|[+-]\d\d(?::?\d\d)?))?"


class Dates:
    """A date format: `regex` finds a date and has no groups, `microseconds` parses it."""

    def __init__(self, regex: str) -> None:
        """Make a format of an expression with the groups year, month, day, hour, .. (see `_LETTERS`)."""
        self._read = re.compile(regex)
        self.regex = re.sub(r"\(\?P<\w+>", "(?:", regex)

    def microseconds(self, text: str) -> int | None:
        """Parse a date; None if it has another format, or no such day exists."""
        # Kafka's own format first: nearly every line has it, and slicing is faster than a regular expression.
        if text[19:20] == "," and text[10] == " " and (fraction := text[20:]).isdecimal():
            seconds = _whole_seconds(text[:19])
            if seconds is not None:
                return seconds + (int(fraction) if len(fraction) == 6 else _fraction(fraction))
        match = self._read.fullmatch(text)
        if match is None:
            return None
        groups = match.groupdict()
        if groups.get("unix"):
            return int(groups["unix"]) * 1_000_000 + _fraction(groups.get("fraction"))
        if groups.get("unix_parts"):
            # 13 digits are milliseconds, 16 microseconds, 19 nanoseconds: all become 16.
            return int(groups["unix_parts"][:16].ljust(16, "0"))
        afternoon = (groups.get("half") or "").upper() == "PM"
        # `half` is AM or PM: 12 AM is midnight and 12 PM noon.
        hour = int(groups["hour"]) % 12 + 12 * afternoon if groups.get("half") else int(groups["hour"])
        try:
            month = groups.get("month") or str(_MONTHS.index(groups["month_name"].lower()) + 1)
            seconds = _seconds(groups["year"], month, groups["day"], hour, groups["minute"], groups.get("second") or "0")
        except ValueError:
            return None
        time = seconds + _fraction(groups.get("fraction")) - _offset(groups.get("zone"))
        return time if plausible(time) else None


def resolution(times: Iterable[int]) -> int:
    """Return the unit in which a clock counts, in microseconds: a second or a millisecond if all times are whole ones."""
    unit = SECOND
    for time in times:
        while time % unit:
            unit = MILLISECOND if unit == SECOND else 1
        if unit == 1:
            break
    return unit


def plausible(time: int) -> bool:
    """Return whether a time is between 1970 and 9999: with any zone it can be formatted as a date again."""
    return 0 <= time < LAST


@lru_cache(maxsize=1024)
def _seconds(year: str, month: str, day: str, hour: int, minute: str, second: str) -> int:
    """Return the microseconds since 1970 of a date and time in UTC, to the second."""
    full = int(year) if len(year) == 4 else 2000 + int(year)
    moment = datetime(full, int(month), int(day), hour, int(minute), int(second), tzinfo=UTC)
    return (moment - EPOCH) // timedelta(microseconds=1)


def _fraction(digits: str | None) -> int:
    """Return the microseconds of the digits behind a second, of any number; 0 without digits."""
    return int((digits or "").ljust(6, "0")[:6])


@lru_cache(maxsize=64)
def _offset(zone: str | None) -> int:
    """Return what a time zone such as +01:00 or -0530 is ahead of UTC, in microseconds; 0 for UTC or a name."""
    if not zone or zone[0] not in "+-":
        return 0
    digits = zone[1:].replace(":", "").ljust(4, "0")
    minutes = int(digits[:2]) * 60 + int(digits[2:])
    return minutes * 60_000_000 * (-1 if zone[0] == "-" else 1)


def microseconds(text: str) -> int | None:
    """Parse `2026-11-21 08:27:15,637445` (4.x can print six digits, 3.x prints three), fast: nearly every line has it."""
    seconds = _whole_seconds(text[:19])
    return None if seconds is None else seconds + int(text[20:26].ljust(6, "0"))


@lru_cache(maxsize=1024)
def _whole_seconds(text: str) -> int | None:
    """Parse `2026-11-21 08:27:15` into microseconds since 1970; None if it is no such date."""
    try:
        moment = datetime.strptime(text, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    except ValueError:
        return None  # no such day
    return (moment - EPOCH) // timedelta(microseconds=1)


_DAY = r"(?P<year>\d{4})-(?P<month>\d\d)-(?P<day>\d\d)"
ISO = Dates(rf"{_DAY}[T ]{_TIME}{_ZONE}")
BASIC = Dates(
    r"(?P<year>\d{4})(?P<month>\d\d)(?P<day>\d\d)[T ]?(?P<hour>\d\d)(?P<minute>\d\d)(?P<second>\d\d)"
    r"[.,]?(?P<fraction>\d{3,9})?" + _ZONE
)
DAY_FIRST = Dates(rf"(?P<day>\d\d?)[ /\-]{_MONTH}[ /\-](?P<year>\d{{4}})[ :]{_TIME}{_ZONE}")
SLASHES = Dates(rf"(?P<year>\d{{4}})/(?P<month>\d\d)/(?P<day>\d\d)[T ]{_TIME}{_ZONE}")
UNIX = Dates(r"(?P<unix>\d{10})(?:[.,](?P<fraction>\d{1,9}))?")
UNIX_PARTS = Dates(r"(?P<unix_parts>\d{13}(?:\d{3}){0,2})")
WAYS = (ISO, DAY_FIRST, SLASHES, UNIX_PARTS, UNIX, BASIC)
_HOURS = _TIME.replace(r"<hour>\d\d", r"<hour>\d\d?") + "(?: (?P<half>[AaPp][Mm]))?"
_MONTH_FIRST = Dates(rf"{_MONTH} (?P<day>\d\d?), (?P<year>\d{{4}})(?: @|,)? {_HOURS}")
_DOTS = Dates(rf"(?P<day>\d\d?)\.(?P<month>\d\d?)\.(?P<year>\d{{4}}),? {_HOURS}")
_AMERICAN = Dates(rf"(?P<month>\d\d?)/(?P<day>\d\d?)/(?P<year>\d{{4}}),? {_HOURS}")
_BRITISH = Dates(rf"(?P<day>\d\d?)/(?P<month>\d\d?)/(?P<year>\d{{4}}),? {_HOURS}")
DATES = (
    *(
        (dates, re.compile(rf"(?<!\d){dates.regex}"))
        for dates in (ISO, SLASHES, DAY_FIRST, _MONTH_FIRST, _DOTS, _AMERICAN, _BRITISH)
    ),
    # Digits alone may be any number.
    (BASIC, re.compile(rf"(?<!\d)(?=\d{{8}}T\d{{6}}[.,]\d){BASIC.regex}")),
)
"""The formats that are looked for anywhere in a line; 03/04 is the fourth of March, unless that cannot be."""
_SINCE_1970 = re.compile(r"(?<![\d.])(?:\d{13}(?:\d{3}){0,2}|1\d{9}(?:\.\d{1,9})?)(?![\d.])")


def date_in(text: str, *, american: bool = True) -> int | None:
    """Return the first date in a text, in microseconds since 1970; None if it has none.

    `american`: in 03/04/2026 the month stands first.
    """
    # If the day stands first in 03/04, the British format is tried first: in Python's order False comes first.
    for dates, pattern in DATES if american else sorted(DATES, key=lambda pair: pair[0] is not _BRITISH):
        match = pattern.search(text)
        if match is not None and (time := dates.microseconds(match[0])) is not None:
            return time
    since = _SINCE_1970.search(text)
    return None if since is None else moment(since[0])


def iso(time: int) -> str:
    """Format microseconds since 1970 as Kafka does, to the millisecond."""
    return (EPOCH + timedelta(microseconds=time)).strftime("%Y-%m-%d %H:%M:%S,%f")[:-3]


_NAMED = {
    "": ISO,
    "DEFAULT": ISO,
    "DEFAULT_MICROS": ISO,
    "DEFAULT_NANOS": ISO,
    "DEFAULT_PERIOD": ISO,
    "ISO8601": ISO,  # log4j 1 has a space where log4j2 has a T
    "ISO8601_PERIOD": ISO,
    "ISO8601_PERIOD_MICROS": ISO,
    "ISO8601_OFFSET_DATE_TIME_HH": ISO,
    "ISO8601_OFFSET_DATE_TIME_HHMM": ISO,
    "ISO8601_OFFSET_DATE_TIME_HHCMM": ISO,
    "ISO8601_BASIC": BASIC,
    "ISO8601_BASIC_PERIOD": BASIC,
    "COMPACT": BASIC,
    "DATE": DAY_FIRST,
    "DATE_PERIOD": DAY_FIRST,
    "UNIX": UNIX,
    "UNIX_MILLIS": UNIX_PARTS,
}
_LETTERS = {
    "yyyy": r"(?P<year>\d{4})",
    "uuuu": r"(?P<year>\d{4})",
    "yy": r"(?P<year>\d\d)",
    "MMMM": "(?P<month_name>[A-Z][a-z]{2})[a-z]*",
    "MMM": "(?P<month_name>[A-Z][a-z]{2})",
    "MM": r"(?P<month>\d\d)",
    "M": r"(?P<month>\d\d?)",
    "dd": r"(?P<day>\d\d)",
    "d": r"(?P<day>\d\d?)",
    "HH": r"(?P<hour>\d\d)",
    "H": r"(?P<hour>\d\d?)",
    "hh": r"(?P<hour>\d\d)",
    "h": r"(?P<hour>\d\d?)",
    "mm": r"(?P<minute>\d\d)",
    "ss": r"(?P<second>\d\d)",
    "a": "(?P<half>[AaPp][Mm])",
    "EEE": "[A-Z][a-z]{2}",
    "EEEE": "[A-Z][a-z]+",
}
_TOKEN = re.compile(r"'((?:[^']|'')*)'|([A-Za-z])\2*|[^A-Za-z']+")


def of_java(pattern: str) -> Dates:
    """Return the format of a name of log4j2 or a pattern of java.time's DateTimeFormatter. Raises UsageError."""
    if pattern in _NAMED:
        return _NAMED[pattern]
    regex = ""
    for token in _TOKEN.finditer(pattern):
        text = token[0]
        if text[0] == "'":
            regex += re.escape(token[1].replace("''", "'") or "'")
        # A separator such as `-`.
        elif token[2] is None:
            regex += re.escape(text)
        # Fractions of a second.
        elif text[0] in "Sn":
            regex += r"(?P<fraction>\d{1,9})"
        elif text[0] in "XxZz":
            regex += r"(?P<zone>Z|[A-Z]{3,4}|[+-]\d\d(?::?\d\d)?)"
        elif text in _LETTERS:
            regex += _LETTERS[text]
        else:
            raise UsageError(
                f"expected a date of year, month, day and time in %d{{{pattern}}}, seen {text!r}; see docs/kafka-logs.md"
            )
    for needed in ("year", "month", "day", "hour", "minute"):
        if f"<{needed}" not in regex:
            raise UsageError(
                f"expected a date with its {needed} in %d{{{pattern}}}, seen none; lines cannot be ordered without it"
            )
    return Dates(regex)


def moment(value: object) -> int | None:
    """Parse a date in any of WAYS, as text or as a number of JSON, into microseconds since 1970; None if it is none."""
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    text = f"{value:.6f}" if isinstance(value, float) else str(value)
    return next((time for way in WAYS if (time := way.microseconds(text)) is not None), None)
