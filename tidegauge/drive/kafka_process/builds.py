"""A build of Kafka: its jars, wherever they lie, its version, and the release that it is compared with.

A build is a folder with jars, of a release or of somebody's own branch. The suite *speaks* a release if it knows that
release's KRaft. The jars of a release are fetched by Maven into the user's cache.

Rules of this file

1. A folder may be a distribution, its `libs`, a Gradle checkout that was built, or a folder of jars: `LAYOUTS`.
2. A build is called what its kafka-clients jar is called. Its version may be any text: what has no number, or a later one
   than any release that is known, is compared with the newest (impl.releases).
3. Jars of tests, sources and documentation are left out, as bin/kafka-run-class.sh does.
"""

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.impl.releases import Release, parse_release, release_of_version
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache
from tidegauge.util.java import environment_with_java

FIRST_SPOKEN: Release = (3, 3)
"""The first release whose controller has feature levels (KIP-778), by which the suite speaks KRaft; 2.8.2 and 3.0.2 were
tried in vain."""

NEEDED: Mapping[str, re.Pattern[str]] = MappingProxyType(
    {
        "kafka-clients": re.compile(r"kafka-clients(?:-(.+))?\.jar"),
        "kafka-metadata": re.compile(r"kafka-metadata(?:-(.+))?\.jar"),
        "kafka_2.13": re.compile(r"kafka_2\.\d+(?:-(.+))?\.jar"),
    }
)
"""The jars without which no process starts or nothing can be sent to it, and patterns of their names with the version."""

NOT_RUN = ("-test", "-tests", "-test-fixtures", "-test-sources", "-sources", "-src", "-javadoc", "-scaladoc")
"""How the names of jars end that do not run in a broker: tests, sources, documentation."""

FAT_JAR_PROJECT = "jmh-benchmarks"
"""The project whose jar has copies of the classes of all others."""

VERSION_FILE = "kafka/kafka-version.properties"
"""In kafka-clients: the version that the build had. org.apache.kafka.common.utils.AppInfoParser."""

SHOWN_NAMES = 6
"""File names that a message lists at most."""


class KafkaBuild(NamedTuple):
    """A build: its version, the release that it is compared with, its jars in the order of a class path.

    `note` says why it is that release, where the version does not name one.
    """

    version: str
    release: str
    jars: tuple[Path, ...]
    note: str = ""

    @property
    def class_path(self) -> str:
        """Return the class path of its processes."""
        return os.pathsep.join(map(str, self.jars))

    @property
    def with_messages(self) -> list[Path]:
        """Return the jars that hold the definitions of Kafka's messages and of the records of its metadata log."""
        return [jar for jar in self.jars if jar.name.startswith(("kafka-clients", "kafka-metadata"))]


def build_of(named: str, jars: Path | None = None) -> KafkaBuild:
    """Return the build that `named`, the argument of --kafka, stands for: a folder with a build, or a release.

    The jars of a release are fetched by Maven, unless `jars` is a folder that has them. Raises UsageError for a folder
    without a build, jars of another version, and a release that the suite does not speak.
    """
    is_folder = os.sep in named or named in {".", "..", "~"} or Path(named).is_dir()
    if is_folder and jars is not None:
        raise UsageError(
            f"--jars: expected a release beside it, as in --kafka 4.3.1 --jars DIR; seen the folder {named}; leave one out"
        )
    if is_folder:
        return _spoken(find_build(Path(named).expanduser()))
    if not re.fullmatch(r"v?[0-9][\w.+-]*", named):
        raise UsageError(
            f"--kafka: expected a release such as 4.3.1 or a folder with a build; seen {named!r}, which is neither"
        )
    # Refuse a release that the suite does not speak before anything is fetched (so without jars as yet).
    _spoken(_build_of_version(named, jars=()))
    build = find_build(fetched_jars(named) if jars is None else jars)
    if build.version != named:
        raise UsageError(
            f"jars: expected kafka-clients-{named}.jar and the other jars of that release in {jars}; seen those of "
            f"{build.version}; leave --jars out and Maven fetches them, or drive what is there: --kafka {jars}"
        )
    return build


def find_build(folder: Path) -> KafkaBuild:
    """Return the build in a folder, laid out in one of LAYOUTS. Raises UsageError, with what is in the folder."""
    if not folder.is_dir():
        raise UsageError(f"--kafka: expected a release such as 4.3.1 or a folder with a build; seen no folder {folder}")
    for layout in LAYOUTS.values():
        jars = layout(folder)
        if any(NEEDED["kafka-clients"].fullmatch(jar.name) for jar in jars):
            return _build_of_jars(folder, jars)
    names = sorted(path.name for path in folder.iterdir())
    raise UsageError(
        f"--kafka: expected in {folder} a kafka-clients jar in one of {', '.join(LAYOUTS)}; seen "
        f"{_few(names) or 'nothing'}; build it first (./gradlew jar, or releaseTarGz and unpack that), or name the folder "
        "with its jars"
    )


def _build_of_jars(folder: Path, jars: Sequence[Path]) -> KafkaBuild:
    """Return the build with the jars of a folder. Raises UsageError unless all of NEEDED are there, each in one version."""
    needed_jars = {name: [jar for jar in jars if pattern.fullmatch(jar.name)] for name, pattern in NEEDED.items()}
    lacking = [name for name, matches in needed_jars.items() if not matches]
    if lacking:
        raise UsageError(
            f"--kafka: expected the jars {', '.join(NEEDED)} in {folder}; seen none of {', '.join(lacking)}, but "
            f"{_few([jar.name for jar in jars])}; build the whole project (./gradlew jar)"
        )
    for matches in needed_jars.values():
        if len(matches) > 1:
            raise UsageError(
                f"--kafka: expected jars of one version in {folder}; seen {_few([jar.name for jar in matches])}; remove the "
                "others, or build anew (./gradlew clean jar)"
            )
    clients = needed_jars["kafka-clients"][0]
    match = NEEDED["kafka-clients"].fullmatch(clients.name)
    # The name of the jar may have no version; then the jar itself may say it.
    return _build_of_version((match and match[1]) or _version_inside(clients) or "of no version", tuple(jars))


def _build_of_version(version: str, jars: tuple[Path, ...]) -> KafkaBuild:
    """Return a build of a version, with the release that it is compared with."""
    compared = release_of_version(version)
    return KafkaBuild(version, compared.release, jars, compared.note)


def _spoken(build: KafkaBuild) -> KafkaBuild:
    """Return a build. Raises UsageError if it is older than the releases that the suite speaks."""
    if parse_release(build.release) < FIRST_SPOKEN:
        raise UsageError(
            f"--kafka: expected a release from {'.'.join(map(str, FIRST_SPOKEN))} on, whose KRaft the suite speaks; seen "
            f"{build.version}; drive it by an adapter of your own, or judge its logs: "
            f"tidegauge check --release {build.release} DIR"
        )
    return build


def _version_inside(clients: Path) -> str:
    """Return the version in VERSION_FILE of a kafka-clients jar; empty if there is none."""
    with suppress(OSError, KeyError, zipfile.BadZipFile), zipfile.ZipFile(clients) as jar:
        lines = jar.read(VERSION_FILE).decode(errors="replace").splitlines()
        return next((line.removeprefix("version=").strip() for line in lines if line.startswith("version=")), "")
    return ""


# Layouts: each returns the jars that run, none if a folder is laid out otherwise.


def _flat(folder: Path) -> list[Path]:
    """Return the jars that lie in a folder itself, without those of tests, sources and documentation (rule 3)."""
    return [jar for jar in sorted(folder.glob("*.jar")) if not jar.stem.endswith(NOT_RUN)]


def _gradle(checkout: Path) -> list[Path]:
    """Return what bin/kafka-run-class.sh puts on the class path in a checkout: the projects' jars and their dependencies."""
    # Projects lie in the checkout itself or in a folder of several, such as connect.
    folders = [folder for depth in ("*", "*/*") for folder in sorted(checkout.glob(f"{depth}/build/libs"))]
    jars = [jar for folder in folders if checkout / FAT_JAR_PROJECT not in folder.parents for jar in _flat(folder)]
    scala_version = next((match[1] for jar in jars if (match := re.match(r"kafka_(2\.\d+)", jar.name))), "")
    # What core depends on is all that a broker runs, but for a logging backend, which is a dependency of tools. Copies of
    # the projects' own jars lie there as well, and may be old: leave them out.
    for project in ("core", "tools"):
        # Of several builds of Scala's minor version the last one.
        for folder in sorted(checkout.glob(f"{project}/build/dependant-libs-{scala_version}*"))[-1:]:
            artifacts = {_artifact(jar.name) for jar in jars}
            jars += [jar for jar in _flat(folder) if _artifact(jar.name) not in artifacts]
    return jars


def _artifact(jar: str) -> str:
    """Return the file name of a jar without its version: kafka-clients of kafka-clients-4.3.1.jar."""
    return re.split(r"-\d", jar, maxsplit=1)[0].removesuffix(".jar")


LAYOUTS: Mapping[str, Callable[[Path], list[Path]]] = MappingProxyType(
    {
        "a folder of jars": _flat,
        "a distribution (libs)": lambda folder: _flat(folder / "libs"),
        "a package (share/java/kafka)": lambda folder: _flat(folder / "share" / "java" / "kafka"),
        "a Gradle checkout (core/build/libs, clients/build/libs, core/build/dependant-libs-*)": _gradle,
    }
)
"""How a folder may be laid out, in the order in which they are tried."""


def _few(names: Sequence[str]) -> str:
    """Return the first names as a list in a message, and the number of the others."""
    others = f" and {len(names) - SHOWN_NAMES} more" if len(names) > SHOWN_NAMES else ""
    return ", ".join(names[:SHOWN_NAMES]) + others


# The jars of a release of Kafka, fetched by Maven's ordinary client into the user's cache.
#
# Rules of this part
#
# 1. Maven is called with a pom and nothing else: where it fetches from is the user's configuration.
# 2. A folder in the cache is complete or not there: it is filled beside its place and moved when Maven is done.
# 3. Maven is a program of Java: where the user has none it gets the one that a broker would run on.

TOOL_MINUTES = 10
SHOWN_LINES = 5
"""Lines at the end of a tool's output that a message quotes."""


def run_tool(
    what: str, command: Sequence[str], hint: str = "", *, cwd: Path | None = None, env: Mapping[str, str] | None = None
) -> None:
    """Run a program of this machine, which may take minutes, to its end.

    `what`: what the program makes, for messages; `hint`: the end of the message if it fails. Raises UsageError with the last
    lines of its output when it fails, or without them when it takes too long.
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
LOG4J_2 = (("org.apache.logging.log4j", "log4j-slf4j-impl", "2.24.3"), ("org.apache.logging.log4j", "log4j-core", "2.24.3"))

SNAPSHOT = "-SNAPSHOT"
"""How the version of a build that is no release ends (Maven)."""


def pom(release: str) -> str:
    """Return a Maven project that depends on a broker of this release, with the logging backend of its distribution."""
    # Only the release that a version is compared with has a number that can be compared.
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


def _fetch(release: str, folder: Path) -> None:
    """Have Maven fetch the jars of a release into `folder`, which comes to exist with all of them. Raises UsageError."""
    maven = find_maven()
    if maven is None:
        raise UsageError(
            f"jars of Kafka {release}: expected Maven's client mvn on the PATH, since they are not in {folder}; seen none; "
            "install Maven, or name a folder: --kafka FOLDER"
        )
    folder.parent.mkdir(parents=True, exist_ok=True)
    # In the same file system, so that the jars can be moved by a rename (rule 2 of this part).
    with tempfile.TemporaryDirectory(prefix=f".{release}-", dir=folder.parent) as work:
        project, jars = Path(work).resolve() / "pom.xml", Path(work).resolve() / "jars"
        project.write_text(pom(release), encoding="utf-8")
        goal = ("dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={jars}")
        hint = "; is there such a release, and a repository within reach?"
        command = [maven, "-q", "-B", "-f", str(project), *goal]
        run_tool(f"jars of Kafka {release}", command, hint, cwd=Path(work), env=environment_with_java())
        if not jars.is_dir():
            raise UsageError(f"jars of Kafka {release}: expected {maven} to fetch them; seen none{hint}")
        try:
            jars.rename(folder)
        except OSError:
            # Another run may have fetched the same at the same time, and been faster.
            if not folder.is_dir():
                raise
