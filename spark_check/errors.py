"""What can be missing before Spark starts."""


class SparkUnavailable(RuntimeError):  # noqa: N818  it says the state of things, as SystemExit does
    """PySpark or a Java runtime is missing; the message says which and how to get it."""
