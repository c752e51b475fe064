"""Processes that end with this one (the driver), however it ends, with scratch folders of their own; and Kafka's processes.

A *guard* (guard.py) is a small process beside this one: it makes the folder, starts the process, and removes both when this
one has gone. The folder is in memory where there is room, unless TMPDIR names a place: a broker creates and renames small
files all the time, and would wait for a disk.
"""

import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import Any

from tidegauge.drive.kafka_process import guard
from tidegauge.drive.wire.compiler import WireError
from tidegauge.util.java import find_java
from tidegauge.util.python_processes import bare_python_command
from tidegauge.util.untrusted_text import visible

OUT = "out"
"""The file in the folder for stdout and stderr of the process."""

IN_MEMORY, ROOM = Path("/dev/shm"), 2 << 30
"""Where Linux has files in memory, and the bytes that must be free: a broker that is driven for minutes logs 300 MB."""


def scratch_root() -> Path:
    """Return where the folders of processes are created: in memory where there is room, else where Python has its own."""
    with suppress(OSError):
        # The variables by which Python's tempfile lets the user name a place.
        is_named = any(os.environ.get(name) for name in ("TMPDIR", "TEMP", "TMP"))
        if not is_named and os.access(IN_MEMORY, os.W_OK | os.X_OK) and shutil.disk_usage(IN_MEMORY).free >= ROOM:
            return IN_MEMORY
    return Path(tempfile.gettempdir())


class Guarded:
    """A scratch folder, `home`, and at most one process at a time, whose output goes to the file `out` there.

    `pid`: of the latest process, 0 before the first.
    """

    def __init__(self, prefix: str) -> None:
        """Start the guard, which makes the folder, with a name that begins with `prefix`, and removes it at the end."""
        self._guard = subprocess.Popen(
            # The standard library alone, for the guard must be there fast.
            bare_python_command(guard.__file__, str(scratch_root() / prefix)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            # A session of its own: Ctrl-C in the terminal reaches the driver alone, which then ends the process in order.
            start_new_session=True,
        )
        self.home = Path(self._read_line()["folder"])
        self.out = self.home / OUT
        self.pid = 0

    def run(self, command: Sequence[str]) -> None:
        """Start a process. Raises WireError when the guard has gone."""
        self.pid = int(self._ask_guard(run=list(command), out=str(self.out))["pid"])

    def end(self, signal_number: int) -> None:
        """Send the process a signal, and wait until it has ended. Raises WireError when the guard has gone."""
        self._ask_guard(signal=signal_number)

    def exit_code(self) -> int | None:
        """Return the exit code of the process if it has ended by itself, else None. Raises WireError without a guard."""
        code: int | None = self._ask_guard(look=True)["code"]
        return code

    def close(self) -> None:
        """End the process and remove the folder."""
        # The guard ends, and cleans up, when its stdin ends.
        if self._guard.stdin is not None:
            self._guard.stdin.close()
        self._guard.wait()
        if self._guard.stdout is not None:
            self._guard.stdout.close()

    def _ask_guard(self, **command: Any) -> dict[str, Any]:
        """Send the guard a command (guard.py, rule 3), wait until it is done, and return the response. Raises WireError."""
        if self._guard.stdin is None or self._guard.poll() is not None:
            raise WireError("the guard of a process: expected it to run; seen that it has ended")
        self._guard.stdin.write(json.dumps(command).encode() + b"\n")
        self._guard.stdin.flush()
        return self._read_line()

    def _read_line(self) -> dict[str, Any]:
        """Return the guard's next line, a JSON object. Raises WireError if the guard has ended."""
        line = self._guard.stdout.readline() if self._guard.stdout is not None else b""
        if not line:
            raise WireError(f"the guard of a process: expected a report of what it did; seen exit code {self._guard.wait()}")
        response: dict[str, Any] = json.loads(line)
        return response


# ---------------------------------------------------------------------------------------------------------------------
# One unmodified Kafka process in a scratch folder of its own: how it is configured, started and ended, and what it logs.
#
# Rules of this part
#
# 1. Whatever happens to the driver, the process ends and the folder is removed: guard.py sees to both.
# 2. No port is chosen: the process listens on port 0, and its registration says which one it got.
# 3. Everything it logs is in one file, and is kept until the process is closed.


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
"""The logging configurations of Kafka up to 3.9 (LOG4J1) and since 4.0 (LOG4J2): all into one file."""
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
"""Lines at the end of a file that a message quotes."""
NO_ENVIRONMENT: Mapping[str, str] = MappingProxyType({})


def base64_of(number: uuid.UUID) -> str:
    """Encode a uuid as Kafka's configuration has it. org.apache.kafka.common.Uuid#toString."""
    return urlsafe_b64encode(number.bytes).decode().rstrip("=")


CLUSTER_ID = base64_of(uuid.UUID(int=0x71DE6A06E << 64 | 1))


class KafkaProcess:
    """A process of Kafka in a folder of its own, `home`. It can be started again after it was ended; its disk stays.

    `properties`: its configuration, with a node.id. `environment`: variables in addition to those of this process. `log`:
    the file that it logs to.
    """

    def __init__(
        self, class_path: str, properties: Mapping[str, object], environment: Mapping[str, str] = NO_ENVIRONMENT
    ) -> None:
        """Write the configuration and an empty data directory; nothing starts yet."""
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
        """The directory of its partitions' logs (log.dirs)."""
        return self.home / "data"

    def start(self) -> None:
        """Start the process, without waiting until it is up."""
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
        """Check that the process has not ended. Raises WireError with the end of its output."""
        code = self._guarded.exit_code()
        if code is not None:
            output = self.last_words()
            raise WireError(f"{MAIN_CLASS}: expected its process to run; seen exit code {code}; its last words:\n{output}")

    def last_words(self) -> str:
        """Return the last lines of its stdout and stderr, which the JVM or a Java agent wrote, and of its log."""
        files = (path for name in (OUT, "server.log") if (path := self.home / name).is_file())
        texts = (path.read_text(encoding="utf-8", errors="backslashreplace") for path in files)
        return "\n".join(visible(line) for text in texts for line in text.splitlines()[-LAST_LINES:])

    def log_size(self) -> int:
        """Return how many bytes it has logged so far."""
        return self.log.stat().st_size if self.log.is_file() else 0

    def lines_about(self, words: Iterable[str], size: int) -> list[str]:
        """Return the lines that have one of the words, among the first `size` bytes of its log."""
        if not self.log.is_file():
            return []
        pattern = re.compile("|".join(map(re.escape, words)))
        with self.log.open("rb") as log:
            lines = log.read(size).decode(errors="backslashreplace").splitlines()
        return [line for line in lines if pattern.search(line)]

    def _command(self) -> list[str]:
        """Return the command that starts Kafka."""
        settings = {
            "kafka.log": self.log,
            "log4j2.configurationFile": self.home / "log4j2.properties",
            "log4j.configuration": f"file:{self.home / 'log4j.properties'}",
            "java.awt.headless": "true",
        }
        system_properties = [f"-D{name}={value}" for name, value in settings.items()]
        # `env` sets the variables for the JVM only: the guard, which starts the command, does not need the clock (clock.py).
        env = ["env", *(f"{name}={value}" for name, value in self._environment.items())] if self._environment else []
        java = [*env, str(self._java.path), *JVM_FLAGS, *system_properties]
        return [*java, "-cp", self._class_path, MAIN_CLASS, str(self._configuration)]


def _write_properties(path: Path, properties: Mapping[str, object]) -> None:
    """Write a file of Java properties."""
    path.write_text("".join(f"{key}={value}\n" for key, value in properties.items()), encoding="utf-8")


def _log4j2() -> str:
    """Return the content of log4j2.properties, with a logger for each of LEVELS."""
    loggers = enumerate(LEVELS.items())
    return LOG4J2 + "".join(f"logger.l{n}.name = {name}\nlogger.l{n}.level = {level}\n" for n, (name, level) in loggers)


def _log4j1() -> str:
    """Return the content of log4j.properties, with a logger for each of LEVELS."""
    return LOG4J1 + "".join(f"log4j.logger.{name}={level}\n" for name, level in LEVELS.items())
