"""The process Spark forks its Python workers from, with the judge compiled before the first fork.

Compiling takes seconds and its result is memory that forks share. Spark starts this module by the setting
spark.python.daemon.module and talks to it through pyspark.daemon, which is unchanged.
"""

from pyspark.daemon import manager

from conformance.compiled import compiled

if __name__ == "__main__":
    compiled()
    manager()
