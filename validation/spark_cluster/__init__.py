"""A Spark cluster of processes, and its faults (python -m validation.spark_cluster)."""
