"""One unmodified Kafka process in a scratch folder of its own: how it is configured, started, ended, and what it logs.

Rules of this file

1. Whatever happens to us, the process ends and the folder goes: guarded.py holds both.
2. No port is chosen: the process listens on port 0 and says in its registration which one it got.
3. Everything it logs lies in one file, and is kept until the process is closed.
"""

import os
import re
import signal
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

from tidegauge.drive.kafka_process.guarded import OUT, Guarded
from tidegauge.spec.checker.java import find_java

LOG4J2 = """status = warn
shutdownHook = disable
appender.f.type = File
appender.f.name = F
appender.f.fileName = ${sys:kafka.log}
appender.f.layout.type = PatternLayout
appender.f.layout.pattern = [%d{ISO8601}] %p [%t] %m (%c)%n
rootLogger.level = info
rootLogger.appenderRef.f.ref = F
"""
LOG4J1 = """log4j.rootLogger=INFO, F
log4j.appender.F=org.apache.log4j.FileAppender
log4j.appender.F.File=${kafka.log}
log4j.appender.F.layout=org.apache.log4j.PatternLayout
log4j.appender.F.layout.ConversionPattern=[%d] %p [%t] %m (%c)%n
"""
LEVELS: Mapping[str, str] = {
    "kafka.cluster.Partition": "DEBUG",
    "kafka.server.DefaultAlterPartitionManager": "ERROR",
    "org.apache.kafka.server.partition.DefaultAlterPartitionManager": "ERROR",
}
"""Loggers that say more or less than INFO. An AlterPartition request that is sent again each time would fill the log."""

RUNTIME = ("-Xmx448m", "-Xms256m", "-Xmn128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""A small heap whose youngest part is large, for most of what a request makes is soon gone; a process lives for minutes, too
short for the second compiler; and no file of its counters that one which is killed would leave."""

UNWATCHED: Mapping[str, object] = MappingProxyType(
    {"metrics.jmx.exclude": ".*", "metric.reporters": "", "auto.include.jmx.reporter": "false"}
)
"""Nobody reads a process's metrics, and each partition has a dozen (FilteringJmxReporter, KIP-544; JmxReporter, KIP-830)."""

SERVER = "kafka.Kafka"
LAST_WORDS = 12
NOTHING: Mapping[str, str] = MappingProxyType({})


def base64_of(number: uuid.UUID) -> str:
    """A uuid as Kafka's configuration has it. org.apache.kafka.common.Uuid#toString."""
    return urlsafe_b64encode(number.bytes).decode().rstrip("=")


CLUSTER_ID = base64_of(uuid.UUID(int=0x71DE6A06E << 64 | 1))


class KafkaProcess:
    """A process of the release whose jars lie in `jars`; `properties` are those of its configuration, with a node.id.

    It is started with `start`, as often as it was ended, with `environment` beside ours.
    """

    def __init__(self, jars: Path, properties: Mapping[str, object], environment: Mapping[str, str] = NOTHING) -> None:
        self._jars, self._java, self._node = jars, find_java(), properties["node.id"]
        self._environment = environment
        self._guarded = Guarded("tidegauge-kafka-")
        self.home = self._guarded.home
        self.log = self.home / "server.log"
        self._configuration = self.home / "server.properties"
        found = {**UNWATCHED, **properties, "log.dirs": self.data}
        self._configuration.write_text("".join(f"{key}={value}\n" for key, value in found.items()), encoding="utf-8")
        (self.home / "log4j2.properties").write_text(_log4j2(), encoding="utf-8")
        (self.home / "log4j.properties").write_text(_log4j1(), encoding="utf-8")
        self._format()

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.home / "data"

    def start(self) -> None:
        """Start the process; that it is up is seen when it registers."""
        self._guarded.run(self._command())

    def stop(self) -> None:
        """End it in order, and wait."""
        self._guarded.end(signal.SIGTERM)

    def kill(self) -> None:
        """End it at once."""
        self._guarded.end(signal.SIGKILL)

    def close(self) -> None:
        """End it and take its folder away."""
        self._guarded.close()

    def last_words(self) -> str:
        """What it wrote last, for a message about its end."""
        said = [line for name in (OUT, "server.log") if (path := self.home / name).is_file() for line in _lines(path)]
        return "\n".join(said[-LAST_WORDS:])

    def lines_about(self, *words: str) -> list[str]:
        """What it has logged about a partition, by words that stand in those lines."""
        about = re.compile("|".join(map(re.escape, words)))
        return [line for line in _lines(self.log) if about.search(line)] if self.log.is_file() else []

    def _format(self) -> None:
        """What Kafka's storage tool writes, a second faster."""
        self.data.mkdir()
        found = {"version": 1, "cluster.id": CLUSTER_ID, "node.id": self._node, "directory.id": base64_of(uuid.uuid4())}
        text = "".join(f"{key}={value}\n" for key, value in found.items())
        (self.data / "meta.properties").write_text(text, encoding="utf-8")

    def _command(self) -> list[str]:
        settings = {
            "kafka.log": self.log,
            "log4j2.configurationFile": self.home / "log4j2.properties",
            "log4j.configuration": f"file:{self.home / 'log4j.properties'}",
            "java.awt.headless": "true",
        }
        given = [f"-D{name}={value}" for name, value in settings.items()]
        around = ["env", *(f"{name}={value}" for name, value in self._environment.items())] if self._environment else []
        return [
            *around,
            str(self._java.path),
            *RUNTIME,
            *given,
            "-cp",
            f"{self._jars}{os.sep}*",
            SERVER,
            str(self._configuration),
        ]


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="backslashreplace").splitlines()


def _log4j2() -> str:
    named = (f"logger.l{n}.name = {name}\nlogger.l{n}.level = {level}\n" for n, (name, level) in enumerate(LEVELS.items()))
    return LOG4J2 + "".join(named)


def _log4j1() -> str:
    return LOG4J1 + "".join(f"log4j.logger.{name}={level}\n" for name, level in LEVELS.items())
