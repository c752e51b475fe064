"""Compiles exported tests against the jars of a release and Kafka's own test jars, and runs them by JUnit's launcher.

Maven's ordinary client fetches the test jars, JUnit and Mockito once, into the user's cache. What runs is the release as it
is, or with the agents of repairs.toml, which change classes when they are loaded.
"""

import hashlib
import os
import shutil
import subprocess
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as Xml

from tidegauge.drive.java_tests.export import JavaTest, write
from tidegauge.drive.kafka_process.builds import POM, build_of, find_maven, run_tool
from tidegauge.util.errors import UsageError
from tidegauge.util.files import cache
from tidegauge.util.java import find_java
from validation.kafka_mutants.agent import BYTE_BUDDY, built_agent

HERE = Path(__file__).parent
REPAIRS, AGENT = HERE / "repairs.toml", HERE / "agent"

OF_KAFKA = ("kafka_2.13", "kafka-clients", "kafka-metadata", "kafka-raft", "kafka-server-common", "kafka-storage")
"""Artifacts whose test jars the tests use."""

LIBRARIES = (
    ("org.junit.platform", "junit-platform-console", "1.13.1"),
    ("org.junit.jupiter", "junit-jupiter", "5.13.1"),
    ("org.mockito", "mockito-core", "5.20.0"),
)
DEPENDENCY = "<dependency><groupId>{}</groupId><artifactId>{}</artifactId><version>{}</version>{}</dependency>"
EVERYTHING = "<exclusion><groupId>*</groupId><artifactId>*</artifactId></exclusion>"
TEST_JAR = f"<classifier>test</classifier><exclusions>{EVERYTHING}</exclusions>"
LAUNCHER = "org.junit.platform.console.ConsoleLauncher"
RAN = (0, 1)
"""Exit codes of a run whose tests have passed, or failed."""
MINUTES = 5


class CompiledTests(NamedTuple):
    """The classes of some tests, and the class path that they need besides."""

    classes: Path
    class_path: str


def _fetched(name: str, dependencies: str) -> list[Path]:
    """Return the jars of some dependencies, fetched by Maven into the cache unless they are there."""
    folder = cache("test-jars") / f"{name}-{hashlib.sha256(dependencies.encode()).hexdigest()[:12]}"
    if not folder.is_dir():
        maven = find_maven()
        if maven is None:
            raise UsageError("kafka_tests: expected mvn on PATH; seen none; install Maven")
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(prefix=".jars-", dir=folder.parent) as temporary:
            work = Path(temporary).resolve()
            (work / "pom.xml").write_text(POM.format(dependencies), encoding="utf-8")
            goal = ("dependency:copy-dependencies", f"-DoutputDirectory={work / 'jars'}")
            run_tool(f"test jars of {name}", [maven, "-q", "-B", "-f", str(work / "pom.xml"), *goal], cwd=work)
            (work / "jars").rename(folder)
    return sorted(folder.glob("*.jar"))


def class_path(release: str) -> str:
    """Return the class path of Kafka's own tests of a release."""
    own = "".join(DEPENDENCY.format("org.apache.kafka", artifact, release, TEST_JAR) for artifact in OF_KAFKA)
    others = "".join(DEPENDENCY.format(*library, "") for library in LIBRARIES)
    jars = (*_fetched(release, own), *build_of(release).jars, *_fetched("junit", others))
    return os.pathsep.join(map(str, jars))


@contextmanager
def compiled(tests: Sequence[JavaTest], release: str) -> Iterator[CompiledTests]:
    """Compile tests against a release. Raises UsageError with what javac says."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-tests-") as temporary:
        work, path = Path(temporary), class_path(release)
        files = write(tests, work / "sources")
        (work / "classes").mkdir()
        run_tool("the tests", [_javac(), "-cp", path, "-d", str(work / "classes"), *map(str, files)], cwd=work)
        yield CompiledTests(work / "classes", path)


def _javac() -> str:
    compiler = shutil.which("javac")
    if compiler is None:
        raise UsageError("kafka_tests: expected javac on PATH; seen none; install a JDK")
    return compiler


def failures(tests: CompiledTests, names: Sequence[str], options: Sequence[str] = ()) -> Mapping[str, str]:
    """Run tests by their full names in one JVM; return the message of each, empty for one that passes."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-reports-") as reports:
        selected = [f"--select-class={name}" for name in names]
        command = [
            str(find_java().path),
            *options,
            "-cp",
            f"{tests.classes}{os.pathsep}{tests.class_path}",
            LAUNCHER,
            "execute",
            *selected,
            f"--reports-dir={reports}",
            "--details=none",
            "--disable-banner",
        ]
        done = subprocess.run(command, cwd=reports, capture_output=True, text=True, timeout=60 * MINUTES, check=False)
        report = Path(reports) / "TEST-junit-jupiter.xml"
        if done.returncode not in RAN or not report.is_file():
            raise UsageError(
                f"kafka_tests: expected JUnit's launcher to end with 0 or 1 and to write a report; seen {done.returncode}\n"
                + "\n".join((done.stdout + done.stderr).splitlines()[-8:])
            )
        messages = {}
        for case in Xml.parse(report).getroot().iter("testcase"):
            problem = next((child for child in case if child.tag in {"failure", "error", "skipped"}), None)
            messages[case.attrib["classname"]] = "" if problem is None else _message(problem)
        if set(messages) != set(names):
            raise UsageError(f"kafka_tests: expected a result for {', '.join(names)}; seen {', '.join(messages) or 'none'}")
        return messages


def _message(problem: Xml.Element) -> str:
    """Return the message of a failure, and the causes that its stack trace names."""
    causes = [line.strip() for line in (problem.text or "").splitlines() if line.startswith("Caused by")]
    return "; ".join([problem.attrib.get("message", problem.tag), *causes])


# The agents.


@contextmanager
def repaired(finding: str, release: str) -> Iterator[list[str]]:
    """Give the options of a JVM in which a finding is repaired."""
    repair = tomllib.loads(REPAIRS.read_text(encoding="utf-8"))[finding]
    with tempfile.TemporaryDirectory(prefix="tidegauge-repair-") as folder:
        options = []
        if changes := repair.get("changes"):
            file = Path(folder) / "changes"
            file.write_text("".join(f"{change}\n" for change in changes), encoding="utf-8")
            options.append(f"-javaagent:{built_agent()}={file}")
        if advices := repair.get("advices"):
            options.append(f"-javaagent:{_repair_agent(release)}={';'.join(advices)}")
        yield options


def repairs() -> tuple[str, ...]:
    """Return the findings that have a repair."""
    return tuple(tomllib.loads(REPAIRS.read_text(encoding="utf-8")))


def _repair_agent(release: str) -> Path:
    """Return the jar of agent/, compiled against a release unless the cache has it; Byte Buddy's jar lies beside it."""
    sources = sorted(AGENT.rglob("*.java"))
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources) + release.encode()).hexdigest()[:20]
    folder = cache("repair-agent") / digest
    if folder.is_dir():
        return folder / "repairs.jar"
    library = built_agent().with_name(f"{BYTE_BUDDY[1]}-{BYTE_BUDDY[2]}.jar")
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".agent-", dir=folder.parent) as temporary:
        made, classes = Path(temporary).resolve() / "made", Path(temporary).resolve() / "classes"
        made.mkdir()
        path = f"{library}{os.pathsep}{build_of(release).class_path}"
        run_tool("the agent", [_javac(), "--release", "17", "-cp", path, "-d", str(classes), *map(str, sources)])
        shutil.copy(library, made)
        with zipfile.ZipFile(made / "repairs.jar", "w") as jar:
            # Class-Path is looked up beside the jar.
            jar.writestr("META-INF/MANIFEST.MF", f"Premain-Class: RepairAgent\nClass-Path: {library.name}\n")
            for path_of_class in sorted(classes.rglob("*.class")):
                jar.write(path_of_class, path_of_class.relative_to(classes).as_posix())
        made.rename(folder)
    return folder / "repairs.jar"
