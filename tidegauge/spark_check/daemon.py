"""The process that Spark forks its Python workers from, with the judge compiled before the first fork.

Compiling takes a minute, loading machine code that was shipped less than a second, and the result is memory that forks
share. Spark starts this module by the setting spark.python.daemon.module and talks to it through pyspark.daemon, which is
unchanged.

A worker of pyspark.daemon collects garbage after each task. What the compiler leaves is a heap of objects that never
become garbage; walking it took over 80 ms a task, half as long as judging what was in it. Frozen, it is not walked.

The module has no functions: run as a program, it prepares the process and hands it to pyspark.daemon.
"""

import gc

from pyspark.daemon import manager

from tidegauge.conformance.engine.adaptive_judge import is_ready, prepare
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.spark_check.packaging import take_machine_code

if __name__ == "__main__":
    take_machine_code()
    compiled()
    # The automaton only if its machine code is on disk: else a worker compiles it once its events have paid for that.
    if is_ready():
        prepare()
    gc.collect()
    gc.freeze()
    manager()
