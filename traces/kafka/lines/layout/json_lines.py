"""JSON lines: those of log4j2's JsonLayout and JsonTemplateLayout (ECS, Logstash, GELF, Google Cloud) and of logstash.

A key is looked for under each of its names, as it stands (`log.logger`) and as a path (`{"log": {"logger": ..}}`).
"""

import json
from typing import Any

from tidegauge.traces.kafka.lines.layout.dates import moment, plausible
from tidegauge.traces.kafka.lines.layout.pattern import Entry

_TIMES = ("@timestamp", "timestamp", "timeMillis", "time", "ts", "date", "datetime", "eventTime", "asctime")
_LOGGERS = ("loggerName", "logger_name", "log.logger", "logger", "_logger", "category", "loggerFqn", "name")
_THREADS = ("thread", "thread_name", "threadName", "process.thread.name", "_thread", "thread.name")
_MESSAGES = ("message", "msg", "full_message", "short_message", "text")


def document(text: str) -> dict[str, Any] | None:
    """A line that is one JSON object."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def entry(text: str) -> Entry | None:
    """The parts of a line, None where time, message or logger are missing."""
    found = document(text)
    if found is None:
        return None
    logger, message, time = _first(found, _LOGGERS), _first(found, _MESSAGES), _time(found)
    if not isinstance(logger, str) or not isinstance(message, str) or time is None:
        return None
    thread = _first(found, _THREADS)
    return time, thread if isinstance(thread, str) else "", message, logger.rpartition(".")[2]


def _time(found: dict[str, Any]) -> int | None:
    instant = found.get("instant")
    if isinstance(instant, dict) and isinstance(instant.get("epochSecond"), int):
        nanos = instant.get("nanoOfSecond", 0)
        since = int(instant["epochSecond"]) * 1_000_000 + (nanos // 1000 if isinstance(nanos, int) else 0)
        return since if plausible(since) else None
    return next((time for name in _TIMES if (time := moment(_get(found, name))) is not None), None)


def _first(found: dict[str, Any], names: tuple[str, ...]) -> object:
    return next((value for name in names if isinstance(value := _get(found, name), str)), None)


def _get(found: dict[str, Any], name: str) -> object:
    if name in found:
        return found[name]
    value: object = found
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value
