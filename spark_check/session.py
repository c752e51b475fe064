"""A Spark session that works on a fresh machine: no ports to the outside, no noise, this interpreter, any Java.

Rules of this file

1. The environment of the JVM is set while it starts and put back afterwards; nothing global stays changed.
2. A local master listens on the loopback address only and shows no UI.
3. On a local master the workers import this project from where the driver has it; on any other the code is shipped, with
   the machine code of the judge (`spark_check.ship`). The daemon that forks the workers of an executor loads it before
   the first fork, or compiles it where it does not fit (`spark_check.daemon`).
4. JVM and workers talk over Unix domain sockets: over TCP a delayed acknowledgement costs 40 ms a task. Spark before 4.1
   does not know the setting and ignores it.
5. A task may run twice, even at the same time: it writes atomically, under a name that stands for its input. So slow tasks
   may be started a second time (speculation).
6. On a cluster its operator decides about Python, addresses and memory: PYSPARK_PYTHON, SPARK_LOCAL_IP, spark-defaults.conf
   and PYSPARK_SUBMIT_ARGS stay as they are.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tidegauge
from tidegauge.conformance.judging.recurring import prepare
from tidegauge.spark_check.errors import SparkUnavailable, failure_reason
from tidegauge.spark_check.ship import ZIP, project_zip
from tidegauge.spec.checker.java import find_java, spark_java_home
from tidegauge.spec.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(tidegauge.__file__).parent.parent


@contextmanager
def session(master: str = "local[2]") -> Iterator["SparkSession"]:
    """Provide a session on `master`, stopped at the end. Raises SparkUnavailable if PySpark, Java or it is missing."""
    try:
        from pyspark.sql import SparkSession  # noqa: PLC0415  optional: `import tidegauge.spark_check` works without
    except ImportError as error:
        raise SparkUnavailable(
            "expected PySpark, saw no module of that name; run: pip install 'tidegauge[spark]'"
        ) from error
    with tempfile.TemporaryDirectory(prefix="tidegauge-spark-") as scratch:
        try:
            java_home = spark_java_home(find_java(), Path(scratch))
        except SpecError as error:
            raise SparkUnavailable(str(error)) from error
        builder = SparkSession.builder.master(master).appName("tidegauge")
        for key, value in _settings(master, Path(scratch)).items():
            builder = builder.config(key, value)
        with _environment(master, java_home), _answering(master):
            spark = builder.getOrCreate()
        try:
            if not _is_local(master):
                prepare()
                spark.sparkContext.addPyFile(str(project_zip(Path(scratch))))
            yield spark
        finally:
            spark.stop()


@contextmanager
def _answering(master: str) -> Iterator[None]:
    from py4j.protocol import Py4JError  # noqa: PLC0415  optional, with PySpark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JError, PySparkException) as error:
        raise SparkUnavailable(
            f"expected a Spark master at {master}, seen none that takes work: {failure_reason(str(error))}"
        ) from error


def cores(spark: "SparkSession") -> int:
    """Return how many tasks run at a time."""
    return int(spark.sparkContext.defaultParallelism)


def _settings(master: str, scratch: Path) -> Mapping[str, str]:
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
    if _is_local(master):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    else:
        settings |= {"spark.executorEnv.PYTHONPATH": ZIP, "spark.speculation": "true"}
    return settings


def _is_local(master: str) -> bool:
    return master == "local" or master.startswith("local[")


@contextmanager
def _environment(master: str, java_home: Path) -> Iterator[None]:
    wanted = {"JAVA_HOME": str(java_home), "PYSPARK_DRIVER_PYTHON": sys.executable}
    if _is_local(master):
        wanted["PYSPARK_PYTHON"] = sys.executable
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
        wanted["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
    else:
        wanted["PYSPARK_PYTHON"] = os.environ.get("PYSPARK_PYTHON", sys.executable)
    before = {name: os.environ.get(name) for name in wanted}
    os.environ.update(wanted)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                del os.environ[name]
            else:
                os.environ[name] = value
