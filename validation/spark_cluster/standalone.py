"""A standalone Spark cluster of processes on the loopback address: a master and workers that can be killed.

Rules of this file

1. Each worker is a machine of its own as far as one machine goes. It has a folder for what it writes, its cache too: it
   finds no code, and no machine code, but what is shipped to it. It has an address: Spark starts a task that lags a second
   time on another host only (TaskSetManager#dequeueTaskHelper).
2. Nothing is left behind: a worker is a group of processes, and all of it is ended, stopped ones too. The Python daemons of
   its executors end by themselves when nobody holds their standard input.
"""

import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil

from tidegauge import spark_check
from tidegauge.util.errors import TidegaugeError
from tidegauge.util.java import find_java, spark_java_home

HOST = "127.0.0.1"
NOT_INHERITED = ("PYTHONPATH", "SPARK_CONF_DIR", "SPARK_LOCAL_IP")
PATIENCE = 120
"""Seconds after which a master or worker that has not shown up never will."""

Process = subprocess.Popen[bytes]


@dataclass
class Cluster:
    """A master, and workers by number, each with `cores` and `memory`. A context manager: it runs inside."""

    folder: Path
    workers: int = 2
    cores: int = 1
    memory: str = "1g"
    running: dict[int, Process] = field(default_factory=dict)
    port: int = field(default_factory=lambda: free_port())  # noqa: PLW0108  defined below
    page: int = field(default_factory=lambda: free_port())  # noqa: PLW0108  defined below

    @property
    def master(self) -> str:
        """Its name, as --spark takes it."""
        return f"spark://{HOST}:{self.port}"

    @property
    def alive(self) -> int:
        """The number of workers that the master knows to be alive."""
        with urllib.request.urlopen(f"http://{HOST}:{self.page}/json/", timeout=10) as page:
            return int(json.load(page)["aliveworkers"])

    def __enter__(self) -> Self:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._java = spark_java_home(find_java(), self.folder)
        options = ("--host", HOST, "--port", str(self.port), "--webui-port", str(self.page))
        self._master = self._start("master", "master.Master", *options)
        try:
            for number in range(1, self.workers + 1):
                self.start(number)
        # Also for Ctrl-C: __exit__ is not called for a context that was never entered.
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._end()

    def start(self, number: int, environment: Mapping[str, str] | None = None) -> None:
        """Start a worker, and wait until the master has registered it."""
        before = self._count_alive()
        home = self.folder / f"worker-{number}"
        host = f"127.0.0.{number}" if sys.platform == "linux" else HOST
        options = ("--host", host, "--cores", str(self.cores), "--memory", self.memory, "--webui-port", "0")
        mine = {"XDG_CACHE_HOME": str(home / "cache"), "SPARK_LOCAL_DIRS": str(home / "local"), "SPARK_LOCAL_IP": host}
        started = self._start(
            home.name,
            "worker.Worker",
            *options,
            "--work-dir",
            str(home / "work"),
            self.master,
            **mine,
            **(environment or {}),
        )
        self.running[number] = started
        # The process runs long before the master knows it; only then does it get tasks.
        self._wait(lambda: self._count_alive() > before, started, home.name)

    def executors(self, number: int) -> list[int]:
        """Return the processes of the executors that a worker runs now, and of their Python workers."""
        return [child.pid for child in psutil.Process(self.running[number].pid).children(recursive=True)]

    def stop_executors(self, number: int) -> list[int]:
        """Stop the executors of a worker, as on a very slow machine."""
        return signalled(self.executors(number), signal.SIGSTOP)

    def kill(self, number: int) -> None:
        """Kill a worker and its executors at once."""
        _end_group(self.running.pop(number))

    def _count_alive(self) -> int:
        try:
            return self.alive
        except OSError:
            return 0

    def _start(self, name: str, what: str, *options: str, **environment: str) -> Process:
        import pyspark  # noqa: PLC0415  optional

        spark = Path(pyspark.__file__).parent
        (self.folder / name).mkdir(exist_ok=True)
        logging = Path(spark_check.__file__).with_name("log4j2.properties")
        own = {
            "SPARK_LOCAL_IP": HOST,
            **{key: value for key, value in os.environ.items() if key not in NOT_INHERITED},
            "SPARK_HOME": str(spark),
            "JAVA_HOME": str(self._java),
            "SPARK_DAEMON_MEMORY": "256m",
            "SPARK_DAEMON_JAVA_OPTS": f"-Dlog4j2.configurationFile={logging.as_uri()}",
            **environment,
        }
        with (self.folder / f"{name}.log").open("ab") as log:
            return subprocess.Popen(
                [str(spark / "bin" / "spark-class"), f"org.apache.spark.deploy.{what}", *options],
                cwd=self.folder / name,
                env=own,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def _wait(self, ready: Callable[[], bool], process: Process, name: str) -> None:
        until = time.monotonic() + PATIENCE
        while not ready():
            if process.poll() is not None or time.monotonic() > until:
                raise TidegaugeError(f"cluster: expected {name} to come up, seen none; see {self.folder / name}.log")
            time.sleep(0.2)

    def _end(self) -> None:
        for number in list(self.running):
            self.kill(number)
        _end_group(self._master)


def signalled(processes: Iterable[int], number: signal.Signals) -> list[int]:
    """Send a signal; return the processes that existed."""
    existing = []
    for pid in processes:
        with suppress(ProcessLookupError):
            os.kill(pid, number)
            existing.append(pid)
    return existing


def free_port() -> int:
    """Return a free port of the loopback address."""
    with socket.socket() as listening:
        listening.bind((HOST, 0))
        return int(listening.getsockname()[1])


def _end_group(process: Process) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
