"""Errors of Spark itself: it is not installed, or one of its tasks failed for good."""

from collections.abc import Iterator
from contextlib import contextmanager

from tidegauge.impl.errors import TidegaugeError


class SparkUnavailable(TidegaugeError):  # noqa: N818  a state of things, as SystemExit is
    """PySpark, a Java runtime or the master is missing; the message says which and how to get it."""


class SparkFailed(TidegaugeError):  # noqa: N818
    """A task failed as often as Spark tries it; the message says with what, and that finished work is kept."""


@contextmanager
def task_failures(kept: object) -> Iterator[None]:
    """Raise SparkFailed for what Spark gives up on; `kept` is where finished tasks leave their results."""
    from py4j.protocol import Py4JJavaError  # noqa: PLC0415  optional: it comes with PySpark
    from pyspark.errors import PySparkException  # noqa: PLC0415

    try:
        yield
    except (Py4JJavaError, PySparkException) as error:
        do = "mend it and run the same again" + (f": what is in {kept} is kept" if kept else "")
        raise SparkFailed(
            f"Spark: expected every task to end, seen one that did not: {failure_reason(str(error))}; {do}"
        ) from error


def failure_reason(message: str) -> str:
    """Return the line of Spark's message that has the reason: the error of a Python traceback, else the first of Java's."""
    lines = [line.strip() for line in message.splitlines() if line.strip()]
    at = next((number for number, line in enumerate(lines) if line.startswith("Traceback ")), None)
    if at is None:
        wanted = [line for line in lines if line.startswith(("org.apache", "Caused by", "java."))]
    else:
        wanted = [line for line in lines[at:] if line.partition(":")[0].endswith(("Error", "Exception"))]
    return (wanted or lines or ["no reason"])[0]
