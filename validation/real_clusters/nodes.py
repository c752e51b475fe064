"""A broker or controller as people run it: a process of its own, all loggers on, signals sent by hand.

Rules of this file

1. Whatever happens to this program, the process ends and its folder goes: `tidegauge.drive.kafka_process.process`.
2. Ports are chosen below the ephemeral ones: a broker that is down must find its own free when it comes back.
3. The logs of a node are kept with its own paths replaced by those that brokers have: /var/lib/kafka.
"""

import gzip
import os
import shutil
import signal
import socket
import time
import uuid
import zlib
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from random import SystemRandom

from tidegauge.drive.kafka_process.builds import build_of, run_tool
from tidegauge.drive.kafka_process.process import CLUSTER_ID, MAIN_CLASS, Guarded, base64_of
from tidegauge.traces.kafka_logs.loggers import LAYOUTS, levels, major
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache
from tidegauge.util.java import find_java
from validation.real_clusters.shapes import BY_SIZE, BY_TIME

PORTS = range(14000, 31000)
SERVER, REQUESTS, STATES, CONTROLLER = "server", "kafka-request", "state-change", "controller"
STOCK_FILES = {"kafka.request.logger": REQUESTS, "state.change.logger": STATES, "org.apache.kafka.controller": CONTROLLER}
TWO_FILES = {"kafka.request.logger": "request"}
"""Which loggers have a file of their own; the others write to server.log."""

JVM_FLAGS = ("-Xms96m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
"""Small, since five share a machine (drive/kafka_process/process.py says why each)."""

MINUTES, PART_KB, MOST_PARTS = "yyyy-MM-dd-HH-mm", 1000, 300
"""Of rolled logs: Kafka's own configuration rolls them by the hour."""
GZIP, TRAILER = 31, 8
"""What zlib calls gzip, and the bytes that end its stream."""

PUBLIC_FOLDER = "/var/lib/kafka"
LOGS = "logs"
SHOWN_LINES = 8
START_SECONDS = 240.0
CONFIGURATION = "server.properties"


def free_port() -> int:
    """Return a port of the loopback where nothing listens: rule 2."""
    for port in SystemRandom().sample(PORTS, 200):
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError(f"ports: expected a free one in {PORTS}; seen none of 200")


def log4j2(folder: Path, files: Mapping[str, str], rolled: str = "", compressed: bool = False) -> Iterator[str]:
    """Yield the lines of a log4j2.properties with every logger that a judgement needs; `rolled` as in a shape."""
    ending = ".gz" if compressed else ""
    yield "status = warn"
    for name in (SERVER, *dict.fromkeys(files.values())):
        yield f"appender.{name}.type = {'RollingFile' if rolled else 'File'}"
        yield f"appender.{name}.name = {name}"
        yield f"appender.{name}.fileName = {folder}/{name}.log"
        if rolled == BY_TIME:
            # Without a number Log4j 2 may give two parts one name, and the first is gone: it rolls 23:38 as 23:37 again.
            yield f"appender.{name}.filePattern = {folder}/{name}.log.%d{{{MINUTES}}}-%i{ending}"
            yield f"appender.{name}.policy.type = TimeBasedTriggeringPolicy"
        elif rolled == BY_SIZE:
            # Here the newest part has the highest number, in Log4j 1 the lowest.
            yield f"appender.{name}.filePattern = {folder}/{name}.log.%i{ending}"
            yield f"appender.{name}.policy.type = SizeBasedTriggeringPolicy"
            yield f"appender.{name}.policy.size = {PART_KB}KB"
        if rolled:
            yield f"appender.{name}.strategy.type = DefaultRolloverStrategy"
            yield f"appender.{name}.strategy.max = {MOST_PARTS}"
        yield f"appender.{name}.layout.type = PatternLayout"
        yield f"appender.{name}.layout.pattern = {LAYOUTS[4]}"
    yield f"rootLogger.level = info\nrootLogger.appenderRef.root.ref = {SERVER}"
    for number, (name, logger) in enumerate(levels("4.x")):
        yield f"logger.l{number}.name = {name}\nlogger.l{number}.level = {logger.level}"
        if name in files:
            yield f"logger.l{number}.additivity = false\nlogger.l{number}.appenderRef.own.ref = {files[name]}"


def log4j(folder: Path, files: Mapping[str, str], rolled: str = "", _compressed: bool = False) -> Iterator[str]:
    """Yield those of a log4j.properties, for 3.x."""
    kind = {BY_TIME: "DailyRollingFileAppender", BY_SIZE: "RollingFileAppender"}.get(rolled, "FileAppender")
    yield f"log4j.rootLogger=INFO, {SERVER}"
    for name in (SERVER, *dict.fromkeys(files.values())):
        yield f"log4j.appender.{name}=org.apache.log4j.{kind}"
        if rolled == BY_TIME:
            yield f"log4j.appender.{name}.DatePattern='.'{MINUTES}"
        elif rolled == BY_SIZE:
            yield f"log4j.appender.{name}.MaxFileSize={PART_KB}KB"
            yield f"log4j.appender.{name}.MaxBackupIndex={MOST_PARTS}"
        yield f"log4j.appender.{name}.File={folder}/{name}.log"
        yield f"log4j.appender.{name}.layout=org.apache.log4j.PatternLayout"
        yield f"log4j.appender.{name}.layout.ConversionPattern={LAYOUTS[3]}"
    for name, logger in levels("3.x"):
        yield f"log4j.logger.{name}={logger.level}" + (
            f", {files[name]}\nlog4j.additivity.{name}=false" if name in files else ""
        )


class ClusterNode:
    """One process of a release. `properties`: its configuration but for its own port and directories."""

    def __init__(
        self,
        number: int,
        release: str,
        heap_mb: int,
        directories: int,
        files: Mapping[str, str],
        properties: Mapping[str, object],
        rolled: str = "",
        compressed: bool = False,
    ) -> None:
        self.number, self.port, self.release, self._heap_mb = number, free_port(), release, heap_mb
        self._files, self._rolled, self._compressed = files, rolled, compressed
        self._guarded = Guarded("tidegauge-cluster-")
        self.home = self._guarded.home
        self.logs = self.home / LOGS
        self.logs.mkdir()
        data = [self.home / "data"] if directories == 1 else [self.home / f"data-{n}" for n in range(directories)]
        self.directories = tuple(data)
        self.properties: dict[str, object] = {**properties, "node.id": number, "log.dirs": ",".join(map(str, data))}
        self.runs = False

    def format_broker(self) -> None:
        """Write what `kafka-storage.sh format` leaves on a broker, without another JVM."""
        for directory in self.directories:
            directory.mkdir()
            identity = {
                "version": 1,
                "cluster.id": CLUSTER_ID,
                "node.id": self.number,
                "directory.id": base64_of(uuid.uuid4()),
            }
            (directory / "meta.properties").write_text(_properties(identity), encoding="utf-8")

    def empty_directories(self, renamed: bool) -> None:
        """Delete what its directories hold but their identity, or that, too, and format them anew."""
        for directory in self.directories:
            identity = (directory / "meta.properties").read_bytes()
            shutil.rmtree(directory)
            if not renamed:
                directory.mkdir()
                (directory / "meta.properties").write_bytes(identity)
        if renamed:
            self.format_broker()

    def format_controller(self, bootstrap: Path | None) -> Path:
        """Do so on a controller, which also needs the first records of the metadata; return their file, for the others."""
        place = self.directories[0] / "bootstrap.checkpoint"
        if bootstrap is not None:
            self.format_broker()
            shutil.copy(bootstrap, place)
            return place
        self._write_configuration()
        quiet = self.home / "quiet.properties"
        quiet.write_text("status = off\nrootLogger.level = off\nlog4j.rootLogger=OFF\n", encoding="utf-8")
        settings = (f"-Dlog4j2.configurationFile={quiet}", f"-Dlog4j.configuration=file:{quiet}")
        tool = ("kafka.tools.StorageTool", "format", "-t", CLUSTER_ID, "-c", str(self.home / CONFIGURATION))
        run_tool("the first metadata of a cluster", [*self._java(settings), *tool])
        return place

    def start(self) -> None:
        """Start the process; `listens` is true when it is up."""
        self._write_configuration()
        settings = (
            f"-XX:SharedArchiveFile={class_archive(self.release)}",
            f"-Dlog4j2.configurationFile={self.home / 'log4j2.properties'}",
            f"-Dlog4j.configuration=file:{self.home / 'log4j.properties'}",
        )
        self._guarded.run([*self._java(settings), MAIN_CLASS, str(self.home / CONFIGURATION)])
        self.runs = True

    def listens(self) -> bool:
        """Return whether it accepts connections."""
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
        except OSError:
            return False
        return True

    def stop(self) -> None:
        """Let it shut down in order, and wait for its end."""
        self.runs = False
        self._guarded.end(signal.SIGTERM)

    def kill(self) -> None:
        """Kill it."""
        self.runs = False
        self._guarded.end(signal.SIGKILL)

    def pause(self) -> None:
        """Let it stand still, as a long collection of garbage or a stalled disk does."""
        os.killpg(self._guarded.pid, signal.SIGSTOP)

    def resume(self) -> None:
        """Let it go on."""
        os.killpg(self._guarded.pid, signal.SIGCONT)

    def keep_logs(self, target: Path) -> int:
        """Write its logs to a folder, with public paths; return their size in bytes."""
        target.mkdir(parents=True)
        size = 0
        public = f"{PUBLIC_FOLDER}/n{self.number}"
        paths = [(str(path).encode(), f"{public}{path.name.removeprefix('data')}".encode()) for path in self.directories]
        paths.append((str(self.home).encode(), public.encode()))
        for path in sorted(self.logs.iterdir()):
            content, packed = path.read_bytes(), path.suffix == ".gz"
            if packed:
                stream = zlib.decompressobj(GZIP)
                content = stream.decompress(content)
            for private, shown in paths:
                content = content.replace(private, shown)
            size += len(content)
            if packed:
                # A process that was killed while it compressed leaves the beginning of a stream, beside the file itself.
                content = gzip.compress(content, 1, mtime=0)[: None if stream.eof else -TRAILER]
            (target / path.name).write_bytes(content)
        return size

    def last_words(self) -> str:
        """Return the end of what it wrote to stdout, for a message about its end."""
        out = self._guarded.out
        text = out.read_text(encoding="utf-8", errors="backslashreplace") if out.is_file() else ""
        return "\n".join(text.splitlines()[-SHOWN_LINES:])

    def close(self) -> None:
        """End it and remove its folder."""
        self._guarded.close()

    def write_classes(self, archive: Path) -> None:
        """Start and stop the process; it writes the classes that it has loaded to a file."""
        self.format_broker()
        self._write_configuration()
        command = [*self._java((f"-XX:ArchiveClassesAtExit={archive}",)), MAIN_CLASS, str(self.home / CONFIGURATION)]
        self._guarded.run(command)
        deadline = time.monotonic() + START_SECONDS
        while not self.listens() and time.monotonic() < deadline:
            time.sleep(0.2)
        self._guarded.end(signal.SIGTERM)

    def _java(self, settings: tuple[str, ...]) -> list[str]:
        flags = (f"-Xmx{self._heap_mb}m", *JVM_FLAGS, *settings)
        return [str(find_java().path), *flags, "-cp", build_of(self.release).class_path]

    def _write_configuration(self) -> None:
        (self.home / CONFIGURATION).write_text(_properties(self.properties), encoding="utf-8")
        text = log4j2 if major(self.release) == 4 else log4j
        name = "log4j2.properties" if major(self.release) == 4 else "log4j.properties"
        lines = text(self.logs, self._files, self._rolled, self._compressed)
        (self.home / name).write_text("\n".join(lines) + "\n", encoding="utf-8")


def class_archive(release: str) -> Path:
    """Return the file with the classes of a release, with which it starts in half the time; made if need be (JEP 350).

    A Java that did not write it leaves it aside.
    """
    place = cache("classes") / f"{release}.jsa"
    if not place.is_file():
        place.parent.mkdir(parents=True, exist_ok=True)
        listeners = {"PLAINTEXT": free_port(), "CONTROLLER": free_port()}
        properties = {
            "process.roles": "broker,controller",
            "controller.quorum.voters": f"1@127.0.0.1:{listeners['CONTROLLER']}",
            "listeners": ",".join(f"{name}://127.0.0.1:{port}" for name, port in listeners.items()),
            "controller.listener.names": "CONTROLLER",
            "inter.broker.listener.name": "PLAINTEXT",
        }
        with closing(ClusterNode(1, release, 288, 1, TWO_FILES, properties)) as node:
            node.port = listeners["PLAINTEXT"]
            part = place.with_suffix(f".{os.getpid()}")
            node.write_classes(part)
            if not part.is_file():
                raise UsageError(f"the classes of Kafka {release}: expected {part}; seen none\n{node.last_words()}")
            part.rename(place)
    return place


def _properties(values: Mapping[str, object]) -> str:
    return "".join(f"{name}={value}\n" for name, value in values.items())
