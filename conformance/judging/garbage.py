"""Garbage collection that is rare enough for programs that keep millions of objects.

States, traces and reports are values without cycles: reference counts free them. With Python's own thresholds the collector
took half the time of comparing a transcript with the reference, and a quarter of that of comparing a graph.
"""

import gc

THRESHOLDS = (100_000, 50, 100)
"""Of gc.set_threshold, for the three generations."""


def collect_garbage_rarely() -> None:
    """Set the thresholds of this process."""
    gc.set_threshold(*THRESHOLDS)
