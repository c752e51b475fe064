"""How often Python walks all that lives, in search of garbage that refers to itself.

What is explored, played and read here are values without a circle, by the hundred thousand: counting references frees them.
By its own thresholds Python walked them so often that it took half the time of holding a transcript against the reference,
a quarter of that of comparing a graph.
"""

import gc

THRESHOLDS = (100_000, 50, 100)
"""In the terms of gc.set_threshold: of what is new, of what was walked once, of the rest."""


def collect_garbage_rarely() -> None:
    """For this process."""
    gc.set_threshold(*THRESHOLDS)
