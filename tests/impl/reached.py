"""Where labels lead a cluster."""

from collections.abc import Iterable
from functools import reduce

from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, initial, step
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile

LEADERLESS: tuple[Label, ...] = (
    ("LeaderAppend", 0),
    ("SendFetch", 1),
    ("HandleFetch", 0, 1, 0),
    ("HandleFetchResponse", 1, 0),
    ("FenceBroker", 1, -1),
    ("BecomeLeader", 0),
    ("Crash", 0, 0, 1),
    ("FenceBroker", 0, -1),
    ("BecomeFollower", 1),
)
"""b2 holds the record of b1, which is down, and reads that nobody leads."""


def reached(bounds: Bounds, labels: Iterable[Label], profile: Profile = FETCH_TRUNCATION) -> Cluster:
    return reduce(step, labels, initial(bounds, profile))
