"""The agent that changes a class of Kafka when it is loaded, compiled from agent/MutantAgent.java once, in the cache.

Byte Buddy, whose copy of ASM reads and writes the classes, comes from Maven by its ordinary client, in a pinned version.
"""

import hashlib
import os
import shutil
import tempfile
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tidegauge.drive.kafka_process.builds import DEPENDENCY, POM, find_maven, run_tool
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache

SOURCE = Path(__file__).with_name("agent") / "MutantAgent.java"
BYTE_BUDDY = ("net.bytebuddy", "byte-buddy", "1.17.6")
MAIN = "MutantAgent"
OPTIONS = "JAVA_TOOL_OPTIONS"
PATIENCE, NOTICED = 20.0, 0.01
"""Seconds."""


def built_agent() -> Path:
    """Return the agent's jar, built unless the cache has it; Byte Buddy's jar lies beside it."""
    folder = cache("mutant-agent") / hashlib.sha256(SOURCE.read_bytes() + repr(BYTE_BUDDY).encode()).hexdigest()[:20]
    if not folder.is_dir():
        _build(folder)
    return folder / "agent.jar"


def _build(folder: Path) -> None:
    maven, compiler = find_maven(), shutil.which("javac")
    if maven is None or compiler is None:
        raise UsageError("kafka_mutants: expected mvn and javac on PATH; seen not both; install Maven and a JDK")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".agent-", dir=folder.parent) as temporary:
        work = Path(temporary).resolve()
        made = work / "made"
        (work / "pom.xml").write_text(POM.format(DEPENDENCY.format(*BYTE_BUDDY)), encoding="utf-8")
        goal = ("dependency:copy-dependencies", f"-DoutputDirectory={made}")
        run_tool("Byte Buddy", [maven, "-q", "-B", "-f", str(work / "pom.xml"), *goal], cwd=work)
        library = next(made.glob("byte-buddy-*.jar"))
        classes = work / "classes"
        run_tool("the agent", [compiler, "--release", "17", "-cp", str(library), "-d", str(classes), str(SOURCE)], cwd=work)
        with zipfile.ZipFile(made / "agent.jar", "w") as jar:
            # Class-Path is looked up beside the jar.
            jar.writestr("META-INF/MANIFEST.MF", f"Premain-Class: {MAIN}\nMain-Class: {MAIN}\nClass-Path: {library.name}\n")
            for path in sorted(classes.glob("*.class")):
                jar.write(path, path.name)
        try:
            made.rename(folder)
        except OSError:
            # Another run may have built the same at the same time, and been faster.
            if not folder.is_dir():
                raise


class ChangedProcesses:
    """JVMs that are started meanwhile: each has all changes, numbered from 1 on, and one is in effect; 0 is none."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def _beside(self, name: str) -> Path:
        return self._file.with_name(f"{self._file.name}.{name}")

    def activate(self, number: int) -> None:
        """Let this change alone be in effect, in processes that run and in those that start later."""
        beside = self._beside("new")
        beside.write_text(str(number), encoding="utf-8")
        beside.replace(self._beside("active"))

    def is_active(self, number: int) -> bool:
        """Wait until the process that runs has taken notice; return whether it has in time."""
        for _ in range(round(PATIENCE / NOTICED)):
            now = self._beside("now")
            if now.is_file() and now.read_text(encoding="utf-8") == str(number):
                return True
            time.sleep(NOTICED)
        return False

    def applied(self) -> frozenset[int]:
        """Return the numbers of the changes whose class was loaded."""
        file = self._beside("applied")
        lines = file.read_text(encoding="utf-8").splitlines() if file.is_file() else []
        return frozenset(int(line.split()[0]) for line in lines)


@contextmanager
def in_each_jvm(changes: Sequence[str]) -> Iterator[ChangedProcesses]:
    """Change classes in every JVM that is started meanwhile; all changes are in effect until one is activated."""
    before = os.environ.get(OPTIONS)
    with tempfile.TemporaryDirectory(prefix="tidegauge-mutant-") as folder:
        file = Path(folder) / "changes"
        file.write_text("".join(f"{change}\n" for change in changes), encoding="utf-8")
        os.environ[OPTIONS] = f"-javaagent:{built_agent()}={file}"
        try:
            yield ChangedProcesses(file)
        finally:
            if before is None:
                del os.environ[OPTIONS]
            else:
                os.environ[OPTIONS] = before
