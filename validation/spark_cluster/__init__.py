"""A Spark cluster of processes, what befalls it (python -m validation.spark_cluster)."""
