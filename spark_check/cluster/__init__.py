"""A Spark cluster of processes, what befalls it (python -m tidegauge.spark_check.cluster)."""
