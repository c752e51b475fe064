"""Which fetch sessions are given up."""

import pytest

from tests.impl.fetch_session import TPS, fetch
from tidegauge.impl.fetch import fetch_session as c
from tidegauge.impl.fetch.fetch_session import INVALID_SESSION_ID, CachedPartition, FetchSessionCache
from tidegauge.impl.frozen_map import FrozenMap


def full(*sessions: tuple[bool, int, int, int]) -> FetchSessionCache:
    """A full cache of (privileged, partitions, created, last used)."""
    cache = FetchSessionCache(max_entries=len(sessions))
    for privileged, size, created, used in sessions:
        partitions = FrozenMap((tp, CachedPartition(fetch(0))) for tp in TPS[:size])
        cache, session_id = c.maybe_create_session(
            cache, created, privileged=privileged, uses_topic_ids=True, partitions=partitions
        )
        cache = c.touch_session(cache, cache.sessions[session_id], used)
    return cache


OLD, NOW = 0, 500_000
USED = NOW - 1000
NEW = USED - 120_000


@pytest.mark.parametrize(
    ("sessions", "privileged", "size", "victim"),
    [
        ([(True, 2, OLD, NOW - 120_001)], False, 1, 1),
        ([(True, 2, OLD, NOW - 120_000)], False, 1, None),
        ([(False, 1, NEW, USED)], False, 2, None),
        ([(False, 1, NEW - 1, USED)], False, 2, 1),
        ([(False, 2, OLD, USED)], False, 2, None),
        ([(False, 3, OLD, USED)], False, 2, None),
        ([(False, 3, NEW, USED)], True, 1, 1),
        ([(True, 1, NEW, USED)], True, 2, None),
        ([(True, 1, OLD, USED)], True, 2, 1),
        ([(True, 1, OLD, USED)], False, 4, None),
        ([(True, 1, OLD, USED), (False, 4, OLD, USED)], True, 1, 2),
        ([(False, 3, OLD, USED), (False, 2, OLD, USED)], True, 1, 2),
        ([(True, 1, OLD, 9), (True, 1, OLD, 7)], False, 1, 2),
        ([], True, 1, None),
    ],
)
def test_who_gives_up_a_slot(
    sessions: list[tuple[bool, int, int, int]], privileged: bool, size: int, victim: int | None
) -> None:
    """Unused for two minutes; else a consumer's for a follower's; else the smaller, if it grew two minutes old."""
    cache = full(*sessions)
    partitions = FrozenMap((tp, CachedPartition(fetch(0))) for tp in TPS[:size])
    after, session_id = c.maybe_create_session(cache, NOW, privileged=privileged, uses_topic_ids=True, partitions=partitions)
    if victim is None:
        assert (after, session_id) == (cache, INVALID_SESSION_ID)
    else:
        assert victim not in after.sessions
        assert (session_id, after.evictions) == (len(sessions) + 1, 1)
        assert c.num_incremental_fetch_sessions(after) == len(sessions)
        assert after.sessions[session_id].epoch == 1
