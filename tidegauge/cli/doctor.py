"""tidegauge doctor: what this machine has, and what to do about the rest.

A *finding* here is a program or package that was looked for: whether it is present, its version and place or what to do, and
what needs it.
"""

import argparse
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass

from tidegauge.cli.terminal import echo
from tidegauge.util.errors import BAD, CONFORMS, SpecError


@dataclass(frozen=True)
class MachineFinding:
    """A program or package that was looked for."""

    name: str
    present: bool
    says: str
    """version and place, or what to do about it"""
    needed_for: str
    """what does not work without it"""


def examine() -> tuple[MachineFinding, ...]:
    """Return a finding each on Python, the packages, Java and TLC (whose digest is checked)."""
    return (
        MachineFinding("Python", sys.version_info >= (3, 11), platform.python_version(), "everything; 3.11 or newer"),
        *(_package(name, needed_for) for name, needed_for in _PACKAGES),
        _try("Java", _java, "tidegauge model, tidegauge drive --kafka, the interleavings on Spark"),
        _try("TLC", _tlc, "tidegauge model"),
    )


_PACKAGES = (
    ("numpy", "everything"),
    ("numba", "the judge"),
    ("pyarrow", "Parquet"),
    ("msgspec", "large files of NDJSON"),
    ("z3-solver", "tidegauge prove; pip install 'tidegauge[proofs]'"),
    ("pyspark", "the interleavings on Spark; pip install 'tidegauge[spark]'"),
)


def _package(name: str, needed_for: str) -> MachineFinding:
    """Return the finding on a Python package, by its name on PyPI."""
    from importlib.metadata import PackageNotFoundError, version

    try:
        return MachineFinding(name, present=True, says=version(name), needed_for=needed_for)
    except PackageNotFoundError:
        return MachineFinding(name, present=False, says="not installed", needed_for=needed_for)


def _java() -> str:
    """Return version and place of the Java runtime that is used. Raises SpecError."""
    from tidegauge.util.java import find_java

    java = find_java()
    return f"{java.version} from {java.origin}, {java.path}"


def _tlc() -> str:
    """Return the place of the jar that holds TLC. Raises SpecError."""
    from tidegauge.spec.tlc.tlc import find_jar

    return f"{find_jar()}, sha256 checked"


def _try(name: str, look: Callable[[], str], needed_for: str) -> MachineFinding:
    """Return the finding on a program: present with what `look` returns, or missing with the message that it raises."""
    try:
        return MachineFinding(name, present=True, says=look(), needed_for=needed_for)
    except SpecError as problem:
        return MachineFinding(name, present=False, says=str(problem), needed_for=needed_for)


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge doctor` to its parser."""
    parser.add_argument(
        "--logging",
        metavar="RELEASE",
        help="instead: print the logging configuration that a cluster of this release needs, such as 4.x or 3.6.1",
    )


def run(args: argparse.Namespace) -> int:
    """Show which of the programs and packages that Tidegauge can use are on this machine."""
    if args.logging is not None:
        from tidegauge.traces.kafka_logs.loggers import configuration

        for line in configuration(args.logging):
            echo(line)
        return CONFORMS

    from tidegauge.drive.kafka_process.builds import find_maven

    maven = find_maven()
    maven_needed_for = "tidegauge drive --kafka without --jars: Maven fetches the jars of a release"
    compiler_needed_for = (
        "tidegauge drive --kafka, which cannot report lag times without it, and --controller, which otherwise waits in real "
        "time for everything that expires; install gcc or clang"
    )
    findings = (
        *examine(),
        # `find_maven` gives the path of mvn, None where there is none.
        MachineFinding("Maven", maven is not None, maven or "no mvn on PATH", maven_needed_for),
        # The compiled library is preloaded into a driven process, which works on Linux only.
        *([MachineFinding("C compiler", *_compiles(), compiler_needed_for)] if sys.platform == "linux" else []),
    )
    for finding in findings:
        echo(f"{'found  ' if finding.present else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.present:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.present for finding in findings) else BAD


def _compiles() -> tuple[bool, str]:
    """Return whether the library that moves the clock of a driven process is there or can be compiled, and a message."""
    from tidegauge.drive.kafka_process.clock import NoLibraryError, build_library

    try:
        return True, f"clock.c is compiled, {build_library()}"
    except NoLibraryError as problem:
        return False, str(problem)
