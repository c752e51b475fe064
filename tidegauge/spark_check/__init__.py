"""The judge over millions of traces on Spark, and their generation. Importing this needs no Spark: its functions do.

`judge_on_spark(paths)` and `generate_on_spark(directory, order)` are what others call; `spark_check.source` is the same as a
Spark data source.
"""

from tidegauge.spark_check.generation import Order, generate_on_spark
from tidegauge.spark_check.judging import Totals, judge_on_spark
from tidegauge.spark_check.session import SparkUnavailable

__all__ = ["Order", "SparkUnavailable", "Totals", "generate_on_spark", "judge_on_spark"]
