"""Which fetch sessions a broker keeps.

Rules of this file

1. There are max.incremental.fetch.session.cache.slots slots. When they are taken, a new session drives out one that was not
   used for two minutes; else the least of those it may drive out, if that is no better than itself.
2. A follower's session is better than a consumer's, then more partitions are better than fewer. A session is safe from its
   equals until it is used more than two minutes after it was made; a consumer's is never safe from a follower's.
3. Kafka draws session ids at random; here they rise, so that none comes back.
4. Source: org.apache.kafka.server.FetchSession.FetchSessionCacheShard (one shard), kafka.server.FetchSessionCache.
"""

from typing import NamedTuple

from tidegauge.impl.client_messages import PartitionFetch
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import INITIAL_EPOCH, INVALID_SESSION_ID, next_session_epoch
from tidegauge.impl.table import Table
from tidegauge.impl.topic_partition import TopicPartition

EVICTION_MS = 120_000
"""KafkaServer.MIN_INCREMENTAL_FETCH_SESSION_EVICTION_MS."""


class CachedPartition(NamedTuple):
    """The last request for a partition, and the high watermark and log start that were reported last."""

    fetch: PartitionFetch
    hw: int = UNDEFINED
    log_start: int = UNDEFINED


class FetchSession(NamedTuple):
    """`privileged`: a follower's. `epoch` is the one the next request has to carry."""

    id: int
    privileged: bool
    partitions: Table[TopicPartition, CachedPartition]
    uses_topic_ids: bool
    created_ms: int
    last_used_ms: int
    epoch: int = next_session_epoch(INITIAL_EPOCH)


class FetchSessionCache(NamedTuple):
    """`evictions` counts what IncrementalFetchSessionEvictionsPerSec marks."""

    max_entries: int = 1000
    eviction_ms: int = EVICTION_MS
    sessions: Table[int, FetchSession] = Table()
    next_id: int = INVALID_SESSION_ID + 1
    evictions: int = 0


EvictableKey = tuple[bool, int, int]


def evictable_key(session: FetchSession) -> EvictableKey:
    """Return the order of eviction, least first. EvictableKey#compareTo."""
    return session.privileged, len(session.partitions), session.id


def remove_session(cache: FetchSessionCache, session_id: int) -> FetchSessionCache:
    """Close a session; an absent one does not matter. FetchSessionCacheShard#remove."""
    return cache._replace(sessions=cache.sessions.without(session_id))


def touch_session(cache: FetchSessionCache, session: FetchSession, now: int) -> FetchSessionCache:
    """Store the session as used now. FetchSessionCacheShard#touch."""
    return cache._replace(sessions=cache.sessions.put(session.id, session._replace(last_used_ms=now)))


def maybe_create_session(
    cache: FetchSessionCache,
    now: int,
    *,
    privileged: bool,
    uses_topic_ids: bool,
    partitions: Table[TopicPartition, CachedPartition],
) -> tuple[FetchSessionCache, int]:
    """Open a session if there is room or can be made; its id, INVALID_SESSION_ID for none.

    FetchSessionCacheShard#maybeCreateSession.
    """
    if len(cache.sessions) >= cache.max_entries:
        victim = _victim(cache, now, privileged, len(partitions))
        if victim is None:
            return cache, INVALID_SESSION_ID
        cache = remove_session(cache, victim)._replace(evictions=cache.evictions + 1)
    session = FetchSession(cache.next_id, privileged, partitions, uses_topic_ids, now, now)
    return touch_session(cache._replace(next_id=session.id + 1), session, now), session.id


def _victim(cache: FetchSessionCache, now: int, privileged: bool, size: int) -> int | None:
    """Return the session to evict, None if all are worth more. FetchSessionCacheShard#tryEvict."""
    sessions = cache.sessions.values()
    oldest = min(sessions, key=lambda s: (s.last_used_ms, s.id), default=None)
    if oldest is None:
        return None
    # A session that is not used any more goes first, whoever opened it.
    if now - oldest.last_used_ms > cache.eviction_ms:
        return oldest.id
    candidates = [s for s in sessions if _is_evictable(cache, s, privileged)]
    least = min(map(evictable_key, candidates), default=None)
    return None if least is None or (privileged, size, INVALID_SESSION_ID) < least else least[2]


def _is_evictable(cache: FetchSessionCache, session: FetchSession, by_privileged: bool) -> bool:
    """Return whether a session may be evicted for a new one of equal rank, or by a follower's.

    This is decided when the session is used, not when a slot is needed: #touch fills the trees.
    """
    grown_up = session.last_used_ms - session.created_ms > cache.eviction_ms
    return grown_up or (by_privileged and not session.privileged)


# ---------------------------------------------------------------------------------------------------------------------
# Metrics


def num_incremental_fetch_sessions(cache: FetchSessionCache) -> int:
    """Return NumIncrementalFetchSessions."""
    return len(cache.sessions)


def num_incremental_fetch_partitions_cached(cache: FetchSessionCache) -> int:
    """Return NumIncrementalFetchPartitionsCached."""
    return sum(len(session.partitions) for session in cache.sessions.values())
