"""The loggers that a judgement needs, and the lines of a broker's logging configuration that switch them on.

In: a release of Kafka as a user names it ("4.x", "3.6.1"). Out: lines of text for its logging configuration.

Rules of this file

1. A row is a logger with every name it has had, its level, and what is lost without it (docs/kafka-logs.md, section 1). What
   Kafka's stock configuration logs at INFO is listed, too: somebody may have made it quieter.
2. The printed lines go into the stock files: config/log4j.properties up to 3.9, config/log4j2.yaml since 4.0 (KIP-653).
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

from tidegauge.util.errors import UsageError

LAYOUTS = {3: "[%d] %p [%t] %m (%c)%n", 4: "[%d{DEFAULT_MICROS}] %p [%t] %m (%c)%n"}
"""By major version, the conversion pattern: with the thread of each line. Log4j of 3.x has no microseconds."""


class Logger(NamedTuple):
    """A needed logger: its `names` by major version, its level, and what a judgement lacks `without` it.

    `appender` is its appender in the stock configuration, where that gives it a file of its own.
    """

    names: dict[int, tuple[str, ...]]
    level: str
    without: str
    appender: str = ""


def _same(*names: str) -> dict[int, tuple[str, ...]]:
    """Return names of a logger that both major versions have (Logger.names)."""
    return {3: names, 4: names}


_STORAGE = "org.apache.kafka.storage.internals"
NEEDED = (
    Logger(_same("state.change.logger"), "INFO", "roles", "stateChangeAppender"),
    Logger(_same("kafka.request.logger"), "DEBUG", "what was asked and answered", "requestAppender"),
    Logger(_same("org.apache.kafka.controller"), "DEBUG", "the order of leaders and ISRs", "controllerAppender"),
    Logger(_same("kafka.cluster.Partition"), "TRACE", "the leader's view"),
    Logger(_same("kafka.server.ReplicaFetcherThread"), "TRACE", "what a follower sent, received and truncated"),
    Logger(
        {3: ("kafka.log.UnifiedLog",), 4: (f"{_STORAGE}.log.UnifiedLog", "kafka.log.UnifiedLog")},
        "TRACE",
        "appends, high watermark of followers",
    ),
    Logger(
        {
            3: ("kafka.server.epoch.LeaderEpochFileCache", f"{_STORAGE}.epoch.LeaderEpochFileCache"),
            4: (f"{_STORAGE}.epoch.LeaderEpochFileCache",),
        },
        "DEBUG",
        "the epoch of every record",
    ),
    Logger(
        {
            3: ("kafka.server.DefaultAlterPartitionManager",),
            4: ("kafka.server.DefaultAlterPartitionManager", "org.apache.kafka.server.partition"),
        },
        "DEBUG",
        "answers to ISR proposals",
    ),
    Logger(_same("kafka.server.ReplicaFetcherManager"), "INFO", "which fetchers there are"),
    Logger({3: ("kafka.log.LogManager",), 4: ("kafka.log.LogManager", f"{_STORAGE}.log.LogManager")}, "INFO", "restarts"),
    Logger(
        {
            3: ("kafka.server.LogDirFailureChannel", f"{_STORAGE}.log.LogDirFailureChannel"),
            4: (f"{_STORAGE}.log.LogDirFailureChannel",),
        },
        "INFO",
        "appends that failed",
    ),
    Logger(
        # until 3.4 the second of them
        _same("kafka.server.metadata.DynamicConfigPublisher", "kafka.server.metadata.BrokerMetadataPublisher"),
        "INFO",
        "min.insync.replicas that changes",
    ),
    Logger(_same("org.apache.kafka.clients.FetchSessionHandler"), "INFO", "which fetches were lost"),
    Logger(
        _same(
            "org.apache.kafka.common.utils.LoggingSignalHandler",
            "org.apache.kafka.common.utils.AppInfoParser",
            "kafka.server.BrokerServer",
        ),
        "INFO",
        "where a process begins and ends, its release and status",
    ),
)


def major(release: str) -> int:
    """Return the major version, 3 or 4. Raises UsageError for a release whose logs are not read."""
    match = re.fullmatch(r"([34])(?:\.(?:x|\d+(?:\.(?:x|\d+))?))?", release)
    if match is None:
        raise UsageError(
            f"--logging: expected a release of Kafka 3.x or 4.x, such as 4.x or 3.6.1; seen {release!r}; name one of those"
        )
    return int(match[1])


def configuration(release: str) -> Iterator[str]:
    """Yield the lines of the logging configuration that switch the loggers on, for brokers and controllers of a release."""
    yield from _log4j() if major(release) == 3 else _log4j2()


def levels(release: str) -> Iterator[tuple[str, Logger]]:
    """Return each name of a needed logger in a release, with the logger."""
    version = major(release)
    return ((name, logger) for logger in NEEDED for name in logger.names[version])


def _log4j() -> Iterator[str]:
    """Yield the lines of log4j.properties (Kafka 3.x) that switch the needed loggers on."""
    yield "# config/log4j.properties of every broker and controller: in place of the lines of the same name, or added"
    for appender in ("stdout", "kafkaAppender", *(logger.appender for logger in NEEDED if logger.appender)):
        yield f"log4j.appender.{appender}.layout.ConversionPattern={LAYOUTS[3]}"
    for name, logger in levels("3.x"):
        yield f"# {logger.without}"
        yield f"log4j.logger.{name}={logger.level}" + (f", {logger.appender}" if logger.appender else "")


def _log4j2() -> Iterator[str]:
    """Yield the lines of log4j2.yaml (Kafka 4.x) that switch the needed loggers on."""
    yield "# config/log4j2.yaml of every broker and controller: in place of the entries of the same name, or added"
    yield "Configuration:"
    yield "  Properties:"
    yield "    Property:"
    yield '      - name: "logPattern"'
    yield f'        value: "{LAYOUTS[4]}"'
    yield "  Loggers:"
    yield "    Logger:"
    for name, logger in levels("4.x"):
        yield f"      # {logger.without}"
        yield f"      - name: {name}"
        yield f"        level: {logger.level}"
        # Its own file; with additivity it would write to the parent's, too.
        if logger.appender:
            yield "        additivity: false"
            yield "        AppenderRef:"
            yield f"          ref: {logger.appender[0].upper()}{logger.appender[1:]}"
