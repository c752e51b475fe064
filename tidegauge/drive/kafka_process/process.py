"""One unmodified Kafka process in a scratch folder of its own: how it is configured, started and ended, and what it logs.

Rules of this file

1. Whatever happens to the driver, the process ends and the folder is removed: guarded.py sees to both.
2. No port is chosen: the process listens on port 0, and its registration says which one it got.
3. Everything it logs is in one file, and is kept until the process is closed.
"""

import re
import signal
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

from tidegauge.drive.kafka_process.guarded import OUT, Guarded
from tidegauge.drive.wire.compiler import WireError
from tidegauge.util.foreign_text import visible
from tidegauge.util.java import find_java

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
"""Loggers with another level than INFO. The AlterPartition requests that repeat a proposal would fill the log."""

JVM_FLAGS = (
    # A small heap whose young generation is large: most of what a request allocates is soon garbage.
    "-Xmx448m",
    "-Xms256m",
    "-Xmn128m",
    # The threads of a concurrent collector would compete with those of the broker for a few cores.
    "-XX:+UseSerialGC",
    # A process lives for minutes: the second compiler costs more than it brings.
    "-XX:TieredStopAtLevel=1",
    # The JVM's file of performance counters is in /tmp, where a process that is killed leaves it.
    "-XX:-UsePerfData",
)

NO_METRICS: Mapping[str, object] = MappingProxyType(
    {"metrics.jmx.exclude": ".*", "metric.reporters": "", "auto.include.jmx.reporter": "false"}
)
"""Nobody reads the metrics, and each partition has a dozen (FilteringJmxReporter, KIP-544; JmxReporter, KIP-830)."""

MAIN_CLASS = "kafka.Kafka"
LAST_LINES = 12
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


def base64_of(number: uuid.UUID) -> str:
    """Encode a uuid as Kafka's configuration has it. org.apache.kafka.common.Uuid#toString."""
    return urlsafe_b64encode(number.bytes).decode().rstrip("=")


CLUSTER_ID = base64_of(uuid.UUID(int=0x71DE6A06E << 64 | 1))


class KafkaProcess:
    """A process with this class path, which can be started again after it was ended.

    `properties`: its configuration, with a node.id. `environment`: variables in addition to those of this process.
    """

    def __init__(
        self, class_path: str, properties: Mapping[str, object], environment: Mapping[str, str] = NO_ENVIRONMENT
    ) -> None:
        self._class_path, self._java, self._node = class_path, find_java(), properties["node.id"]
        self._environment = environment
        self._guarded = Guarded("tidegauge-kafka-")
        self.home = self._guarded.home
        self.log = self.home / "server.log"
        self._configuration = self.home / "server.properties"
        _write_properties(self._configuration, {**NO_METRICS, **properties, "log.dirs": self.data})
        # Kafka logs with reload4j up to 3.9 and with Log4j 2 since 4.0; each reads its own file and ignores the other.
        (self.home / "log4j2.properties").write_text(_log4j2(), encoding="utf-8")
        (self.home / "log4j.properties").write_text(_log4j1(), encoding="utf-8")
        # What `kafka-storage.sh format` writes, without starting another JVM for a second.
        self.data.mkdir()
        meta = {"version": 1, "cluster.id": CLUSTER_ID, "node.id": self._node, "directory.id": base64_of(uuid.uuid4())}
        _write_properties(self.data / "meta.properties", meta)

    @property
    def data(self) -> Path:
        """Its log directory."""
        return self.home / "data"

    def start(self) -> None:
        """Start the process. It is up when it has registered with its controller."""
        self._guarded.run(self._command())

    def stop(self) -> None:
        """Let the process shut down, and wait until it has ended."""
        self._guarded.end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the process, and wait until it has ended."""
        self._guarded.end(signal.SIGKILL)

    def close(self) -> None:
        """End the process and remove its folder."""
        self._guarded.close()

    def check_runs(self) -> None:
        """Check that the process has not ended. Raises WireError with its last words."""
        code = self._guarded.exit_code()
        if code is not None:
            words = self.last_words()
            raise WireError(f"{MAIN_CLASS}: expected its process to run; seen exit code {code}; its last words:\n{words}")

    def last_words(self) -> str:
        """Return the end of what the process wrote, which is the JVM's or an agent's, and the end of what it logged."""
        files = (path for name in (OUT, "server.log") if (path := self.home / name).is_file())
        return "\n".join(visible(line) for path in files for line in _lines(path)[-LAST_LINES:])

    def log_size(self) -> int:
        """Return how many bytes it has logged so far."""
        return self.log.stat().st_size if self.log.is_file() else 0

    def lines_about(self, words: Iterable[str], size: int) -> list[str]:
        """Return those of its first `size` logged bytes that are lines with one of the words."""
        if not self.log.is_file():
            return []
        pattern = re.compile("|".join(map(re.escape, words)))
        with self.log.open("rb") as log:
            lines = log.read(size).decode(errors="backslashreplace").splitlines()
        return [line for line in lines if pattern.search(line)]

    def _command(self) -> list[str]:
        settings = {
            "kafka.log": self.log,
            "log4j2.configurationFile": self.home / "log4j2.properties",
            "log4j.configuration": f"file:{self.home / 'log4j.properties'}",
            "java.awt.headless": "true",
        }
        system_properties = [f"-D{name}={value}" for name, value in settings.items()]
        # `env` sets the variables for the JVM only: the guard, which starts the command, does not need a preloaded clock.
        env = ["env", *(f"{name}={value}" for name, value in self._environment.items())] if self._environment else []
        java = [*env, str(self._java.path), *JVM_FLAGS, *system_properties]
        return [*java, "-cp", self._class_path, MAIN_CLASS, str(self._configuration)]


def _write_properties(path: Path, properties: Mapping[str, object]) -> None:
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")


def _lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8", errors="backslashreplace").splitlines()


def _log4j2() -> str:
    loggers = enumerate(LEVELS.items())
    return LOG4J2 + "".join(f"logger.l{n}.name = {name}\nlogger.l{n}.level = {level}\n" for n, (name, level) in loggers)


def _log4j1() -> str:
    return LOG4J1 + "".join(f"log4j.logger.{name}={level}\n" for name, level in LEVELS.items())
