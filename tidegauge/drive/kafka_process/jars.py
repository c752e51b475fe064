"""The jars of a release of Kafka, fetched by Maven's ordinary client into the user's cache.

Rules of this file

1. Maven is called with a pom and nothing else: where it fetches from is the user's configuration.
2. A folder in the cache is complete or not there: it is filled beside its place and moved when Maven is done.
"""

import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tidegauge.impl.releases import parse_release, release_of_version
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache

# Run a tool of this machine that may take minutes: Maven fetches, Go builds.


TOOL_MINUTES = 10
SHOWN_LINES = 5


def run_tool(
    what: str, command: Sequence[str], hint: str = "", *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a command to its end. `what` it makes and the `hint` go into the message.

    Raises UsageError with the last lines of its output when it fails or takes too long.
    """
    tool = command[0]
    try:
        done = subprocess.run(
            command,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60 * TOOL_MINUTES,
            check=False,
        )
    except subprocess.TimeoutExpired:
        raise UsageError(
            f"{what}: expected {tool} to end within {TOOL_MINUTES} minutes; seen that it runs still; try again"
        ) from None
    if done.returncode:
        output = "\n".join((done.stdout + done.stderr).strip().splitlines()[-SHOWN_LINES:])
        raise UsageError(f"{what}: expected {tool} to succeed; seen exit code {done.returncode}{hint}\n{output}")


POM = """<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>tidegauge</groupId> <artifactId>jars</artifactId> <version>1</version> <packaging>pom</packaging>
  <dependencies>{}
  </dependencies>
</project>
"""
DEPENDENCY = """
    <dependency><groupId>{}</groupId> <artifactId>{}</artifactId> <version>{}</version></dependency>"""

# Kafka's artifact depends on no logging backend: the distribution adds reload4j up to 3.9, Log4j 2 since 4.0.
RELOAD4J = (("org.slf4j", "slf4j-reload4j", "1.7.36"),)
LOG4J_2 = (
    ("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"),
    ("org.apache.logging.log4j", "log4j-core", "2.24.3"),
)

SNAPSHOT = "-SNAPSHOT"
"""How the version of a build that is no release ends (Maven)."""


def pom(release: str) -> str:
    """Make a Maven project that depends on a broker of this release."""
    logging = LOG4J_2 if parse_release(release_of_version(release).release) >= (4,) else RELOAD4J
    artifacts = (("org.apache.kafka", "kafka_2.13", release), *logging)
    return POM.format("".join(DEPENDENCY.format(*artifact) for artifact in artifacts))


def jar_cache(release: str) -> Path:
    """Return the folder in the user's cache for the jars of a release."""
    return cache("jars") / release


def fetched_jars(version: str) -> Path:
    """Return the folder in the user's cache with the jars of a version, fetched if need be. Raises UsageError."""
    folder = jar_cache(version)
    # A snapshot is another one the next day, so it is never taken from this cache: Maven has one of its own.
    if version.endswith(SNAPSHOT):
        shutil.rmtree(folder, ignore_errors=True)
    if not folder.is_dir():
        _fetch(version, folder)
    return folder


def find_maven() -> str | None:
    """Return the path of Maven's client, None without one."""
    return shutil.which("mvn")


def _fetch(release: str, place: Path) -> None:
    """Have Maven fetch the jars of a release into `place`: all of them, or none."""
    maven = find_maven()
    if maven is None:
        raise UsageError(
            f"jars of Kafka {release}: expected Maven's client mvn on the PATH, since they are not in {place}; seen none; "
            "install Maven, or name a folder: --kafka FOLDER"
        )
    place.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=f".{release}-", dir=place.parent) as work:
        project, beside = Path(work).resolve() / "pom.xml", Path(work).resolve() / "jars"
        project.write_text(pom(release), encoding="utf-8")
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={beside}")
        hint = "; is there such a release, and a repository within reach?"
        run_tool(f"jars of Kafka {release}", [maven, "-q", "-B", "-f", str(project), *goal], hint, cwd=Path(work))
        if not beside.is_dir():
            raise UsageError(f"jars of Kafka {release}: expected {maven} to fetch them; seen none{hint}")
        try:
            beside.rename(place)
        except OSError:
            # Another run may have fetched the same at the same time, and been faster.
            if not place.is_dir():
                raise
