"""A Spark session that works on a fresh machine: no ports to the outside, no noise, this interpreter, any Java.

Rules of this file

1. The environment of the JVM is set while it starts and put back afterwards; nothing global stays changed.
2. A local master listens on the loopback address only and shows no UI.
3. On a local master the workers import this project from where the driver has it; on any other the code is shipped
   (`spark_check.ship`). The daemon that forks the workers compiles the judge first (`spark_check.daemon`), so it is
   compiled once per machine and not once per worker.
4. On a local master JVM and workers talk over Unix domain sockets: over TCP a delayed acknowledgement costs 40 ms a task.
   Spark before 4.1 does not know the setting and ignores it.
"""

import os
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import tidegauge
from tidegauge.spark_check.errors import SparkUnavailable
from tidegauge.spark_check.ship import project_zip
from tidegauge.spec.checker.java import find_java, spark_java_home
from tidegauge.spec.errors import SpecError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(tidegauge.__file__).parent.parent


@contextmanager
def session(master: str = "local[2]") -> Iterator["SparkSession"]:
    """A session on `master`, stopped at the end. Raises SparkUnavailable when PySpark or Java is missing."""
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
        with _environment(master, java_home):
            spark = builder.getOrCreate()
        try:
            if not master.startswith("local["):
                spark.sparkContext.addPyFile(str(project_zip(Path(scratch))))
            yield spark
        finally:
            spark.stop()


def cores(spark: "SparkSession") -> int:
    """How many tasks run at a time."""
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
    }
    if master.startswith("local"):
        settings |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    if master.startswith("local["):
        settings |= {
            "spark.python.daemon.module": "tidegauge.spark_check.daemon",
            "spark.python.unix.domain.socket.enabled": "true",
        }
    return settings


@contextmanager
def _environment(master: str, java_home: Path) -> Iterator[None]:
    wanted = {"JAVA_HOME": str(java_home), "PYSPARK_PYTHON": sys.executable, "PYSPARK_DRIVER_PYTHON": sys.executable}
    if master.startswith("local"):
        wanted["SPARK_LOCAL_IP"] = "127.0.0.1"
    if master.startswith("local["):
        wanted["PYTHONPATH"] = os.pathsep.join(filter(None, (str(ROOT), os.environ.get("PYTHONPATH"))))
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
