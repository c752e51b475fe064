"""A Spark session that works on a fresh machine: no ports to the outside, no noise, this interpreter, any Java.

`session` gives one; the rules below say how it is set up. *Local* is a master such as local[2], which runs the tasks on this
machine; any other is a cluster. The *driver* is this process, whose JVM plans the work; *executors* run Python workers,
which judge. `prepare` compiles the judge's automaton, or loads it compiled; `project_zip` writes this package into a zip,
with the judge's machine code, for workers that do not have it.
"""

import atexit
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import TYPE_CHECKING

from tidegauge.conformance.engine.adaptive_judge import prepare
from tidegauge.spark_check.packaging import ZIP, project_zip
from tidegauge.util.errors import SpecError, TidegaugeError
from tidegauge.util.java import find_java, spark_java_home
from tidegauge.util.python_processes import PACKAGE_ROOT, SAFE_PATH_VARIABLE

# Errors of Spark itself: it is not installed, or one of its tasks failed for good.


class SparkUnavailable(TidegaugeError):  # noqa: N818  a state of things, as SystemExit is
    """PySpark, a Java runtime or the master is missing; the message says which and how to get it."""


class SparkFailed(TidegaugeError):  # noqa: N818
    """A task failed as often as Spark tries it; the message says with what, and that finished work is kept."""


@contextmanager
def task_failures(results: object) -> Iterator[None]:
    """Raise SparkFailed when the block's job fails for good; `results` is where finished tasks leave theirs, or None.

    The message names it: what is there is kept, and not done again.
    """
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  optional: it comes with PySpark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        do = "mend it and run the same again" + (f": what is in {results} is kept" if results else "")
        raise SparkFailed(
            f"Spark: expected every task to end, seen one that did not: {failure_reason(str(error))}; {do}"
        ) from error


def failure_reason(message: str) -> str:
    """Return the line of Spark's message that has the reason: the error of a Python traceback, else the first of Java's."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    traceback_at = next((number for number, line in enumerate(lines) if line.startswith("Traceback ")), None)
    # An error of Spark itself has no Python traceback.
    if traceback_at is None:
        reasons = [line for line in lines if line.startswith(("org.apache", "Caused by", "java."))]
    else:
        reasons = [line for line in lines[traceback_at:] if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (reasons or lines or ["no reason"])[0]


# The session.
#
# 1. The environment of the JVM is set while it starts and put back afterwards; nothing global stays changed.
# 2. A local master listens on the loopback address only and shows no UI.
# 3. On a local master the workers import this project from where the driver has it; on any other the code is shipped, with
#    the machine code of the judge (`spark_check.packaging`). The daemon that forks the workers of an executor loads it
#    before the first fork, or compiles it where it does not fit (`spark_check.daemon`).
# 4. JVM and workers talk over Unix domain sockets: over TCP a delayed acknowledgement costs 40 ms a task. Spark before 4.1
#    does not know the setting and ignores it.
# 5. A task may run twice, even at the same time: it writes atomically, under a name that stands for its input. So slow tasks
#    may be started a second time (speculation).
# 6. On a cluster its operator decides about Python, addresses and memory: PYSPARK_PYTHON, SPARK_LOCAL_IP,
#    spark-defaults.conf and PYSPARK_SUBMIT_ARGS stay as they are.


if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@contextmanager
def session(master: str = "local[2]") -> Iterator["SparkSession"]:
    """Give the block a Spark session: the active one, which stays as it is, or a new one on `master`, stopped at the end.

    Raises SparkUnavailable if PySpark, Java or the master is missing.
    """
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  optional: `import tidegauge.spark_check` works without
    except ImportError as error:
        raise SparkUnavailable(
            "expected PySpark, seen no module of that name; run: pip install 'tidegauge[spark]'"
        ) from error
    # A session of the user's, who also ends it.
    active = SparkSession.getActiveSession()
    if active is not None:
        _ship_to(active)
        yield active
        return
    with tempfile.TemporaryDirectory(prefix="tidegauge-spark-") as scratch:
        # Of a Java that lacks the module jdk.incubator.vector, with which PySpark starts it, a home is made in this folder:
        # a launcher that drops the flag.
        try:
            java_home = spark_java_home(find_java(), Path(scratch))
        except SpecError as error:
            raise SparkUnavailable(str(error)) from error
        # Spark starts its JVM by a script of bash; without it, its own message speaks of a gateway that exited.
        if os.name == "posix" and shutil.which("bash") is None:
            raise SparkUnavailable("expected bash, which Spark's start script runs in, seen none on PATH; install it")
        builder = SparkSession.builder.master(master).appName("tidegauge")
        for key, value in _settings(master, Path(scratch)).items():
            builder = builder.config(key, value)
        with _environment(master, java_home), _start_errors(master):
            spark = builder.getOrCreate()
        try:
            # Workers of a cluster have no Tidegauge: they get it, with the judge compiled before.
            if not is_local(master):
                prepare()
                spark.sparkContext.addPyFile(str(project_zip(Path(scratch))))
            yield spark
        finally:
            spark.stop()


SHIPPED = "tidegauge.shipped"
"""The local property of a Spark context by which a session is marked that has the package."""


def _ship_to(spark: "SparkSession") -> None:
    """Give the workers of a user's session this package, once, unless they import it from where it is installed."""
    context = spark.sparkContext
    # Workers on this machine that import the package as this interpreter does; or it was shipped before.
    installed = is_local(str(context.master)) and _is_installed()
    if installed or context.getLocalProperty(SHIPPED):
        return
    # Compiled first, so that the machine code goes into the zip.
    prepare()
    # Spark serves the file from its place while the session lives, and that is not ours to end: kept until this process
    # ends.
    folder = Path(tempfile.mkdtemp(prefix="tidegauge-shipped-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    context.addPyFile(str(project_zip(folder)))
    context.setLocalProperty(SHIPPED, "yes")


def _is_installed() -> bool:
    """Return whether this interpreter has Tidegauge as a package, rather than running it from a checkout."""
    try:
        distribution("tidegauge")
    except PackageNotFoundError:
        return False
    return True


@contextmanager
def _start_errors(master: str) -> Iterator[None]:
    """Raise SparkUnavailable for an error of Spark in the block, which starts a session on `master`."""
    from py4j.protocol import Py4JError  # noqa: PLC0415  optional, with PySpark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise SparkUnavailable(
            f"expected a Spark master at {master}, seen none that takes work: {failure_reason(str(error))}"
        ) from error


def cores(spark: "SparkSession") -> int:
    """Return how many tasks the session runs at a time."""
    return int(spark.sparkContext.defaultParallelism)


def _settings(master: str, scratch: Path) -> Mapping[str, str]:
    """Return the settings of a session: quiet, without a catalog on disk, with all its files in `scratch`.

    The rules above (2 to 5) say why those of a local master and of a cluster differ.
    """
    logging = Path(__file__).with_name("log4j2.properties")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.extraJavaOptions": f"-Dlog4j2.configurationFile={logging.as_uri()}",
        "spark.sql.catalogImplementation": "in-memory",
        "spark.sql.warehouse.dir": (scratch / "warehouse").as_uri(),
        "spark.local.dir": str(scratch / "local"),
        "spark.python.daemon.module": "tidegauge.spark_check.daemon",
        "spark.python.unix.domain.socket.enabled": "true",
    }
    if is_local(master):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    else:
        settings |= {"spark.executorEnv.PYTHONPATH": ZIP, "spark.speculation": "true"}
        settings |= {f"spark.executorEnv.{name}": value for name, value in SAFE_PATH_VARIABLE.items()}
    return settings


def is_local(master: str) -> bool:
    """Return whether a master runs its tasks on this machine."""
    return master == "local" or master.startswith("local[")


def _spark_home() -> Path | None:
    """Return the directory of the Spark that came with PySpark, the value for SPARK_HOME; None where it is elsewhere."""
    import pyspark  # noqa: PLC0415  optional

    package = Path(pyspark.__file__).parent
    # Where distributions of PySpark have it: the last is a Spark that was unpacked, with PySpark in python/pyspark.
    homes = (package / "spark-distribution", package, package.parents[1])
    return next((home for home in homes if (home / "bin" / "spark-submit").is_file()), None)


@contextmanager
def _environment(master: str, java_home: Path) -> Iterator[None]:
    """Set the variables that the JVM inherits at its start, within the block, and restore them afterwards.

    On a cluster PYSPARK_PYTHON stays as its operator has set it (rule 6).
    """
    # SAFE_PATH_VARIABLE keeps the current directory off the path of Python's modules.
    variables = {"JAVA_HOME": str(java_home), "PYSPARK_DRIVER_PYTHON": sys.executable, **SAFE_PATH_VARIABLE}
    if is_local(master):
        variables["PYSPARK_PYTHON"] = sys.executable
        variables["SPARK_LOCAL_IP"] = "127.0.0.1"
        variables["PYTHONPATH"] = os.pathsep.join(filter(None, (str(PACKAGE_ROOT), os.environ.get("PYTHONPATH"))))
    else:
        variables["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    # Without SPARK_HOME PySpark would take the directory above the current one, if that has bin/spark-submit and jars
    # (find_spark_home).
    if "SPARK_HOME" not in os.environ and (home := _spark_home()) is not None:
        variables["SPARK_HOME"] = str(home)
    # The JVM inherits the environment when it starts; afterwards other programs of this process need it unchanged.
    before = {name: os.environ.get(name) for name in variables}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
