"""What this machine has of what Tidegauge needs, and what to do about the rest."""

import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

from tidegauge.spec.checker.java import find_java
from tidegauge.spec.checker.tla2tools import find_jar
from tidegauge.spec.errors import SpecError


@dataclass(frozen=True)
class Finding:
    """One thing looked for. `needed_for` says what does not work without it."""

    name: str
    found: bool
    says: str
    needed_for: str


def examine() -> tuple[Finding, ...]:
    """Python, the packages, Java, TLC with its digest, Spark."""
    return (
        Finding("Python", sys.version_info >= (3, 11), platform.python_version(), "everything; 3.11 or newer"),
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


def _package(name: str, needed_for: str) -> Finding:
    try:
        return Finding(name, True, version(name), needed_for)
    except PackageNotFoundError:
        return Finding(name, False, "not installed", needed_for)


def _java() -> str:
    java = find_java()
    return f"{java.version} from {java.origin}, {java.path}"


def _tlc() -> str:
    return f"{find_jar()}, sha256 checked"


def _try(name: str, look: Callable[[], str], needed_for: str) -> Finding:
    try:
        return Finding(name, True, look(), needed_for)
    except SpecError as problem:
        return Finding(name, False, str(problem), needed_for)
