"""PartitionFetchState: one partition in one fetcher thread, and what makes it wait, fail or leave.

Rules of this file

1. An entry is Truncating or Fetching, and delayed or not. A failed partition has none: only new metadata adds it again.
2. A delay has no length here: the caller decides when back-off is over (`expire_delay`, impl.fetching.fetcher_thread).
3. Source: org.apache.kafka.server.PartitionFetchState, kafka.server.AbstractFetcherThread.
"""

from typing import NamedTuple

from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import UNDEFINED
from tidegauge.impl.storage.log import Log


class PartitionFetchState(NamedTuple):
    """One entry of a fetcher thread. `lag` None: not known yet."""

    fetch_offset: int
    current_leader_epoch: int
    last_fetched_epoch: int = UNDEFINED
    truncating: bool = False
    delayed: bool = False
    lag: int | None = None

    @property
    def ready_for_fetch(self) -> bool:
        """Fetching and not delayed."""
        return not self.truncating and not self.delayed


class TruncationCall(NamedTuple):
    """A truncation that the thread asked the log for; `completed` is None for a full one."""

    offset: int
    completed: bool | None


class Fetcher(NamedTuple):
    """One partition in one fetcher thread."""

    log: Log
    entry: PartitionFetchState | None = None
    failed: bool = False
    calls: tuple[TruncationCall, ...] = ()


def remove_partition(fetcher: Fetcher) -> Fetcher:
    """Take the partition out of the thread. AbstractFetcherThread#removePartitions."""
    return fetcher._replace(entry=None, failed=False)


def mark_failed(fetcher: Fetcher) -> Fetcher:
    """Drop the entry until new metadata adds it again. AbstractFetcherThread#markPartitionFailed (KIP-461)."""
    return fetcher._replace(entry=None, failed=True)


def delay(fetcher: Fetcher) -> Fetcher:
    """Back off for replica.fetch.backoff.ms. AbstractFetcherThread#delayPartitions."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=True))


def expire_delay(fetcher: Fetcher) -> Fetcher:
    """End the back-off; the caller decides when."""
    if fetcher.entry is None:
        return fetcher
    return fetcher._replace(entry=fetcher.entry._replace(delayed=False))


def mark_for_truncation(fetcher: Fetcher, offset: int) -> Fetcher:
    """Go back to Truncating, at most at `offset`. AbstractFetcherThread#markPartitionsForTruncation."""
    entry = fetcher.entry
    if entry is None:
        return fetcher
    return fetcher._replace(
        entry=entry._replace(fetch_offset=min(offset, entry.fetch_offset), truncating=True, last_fetched_epoch=UNDEFINED)
    )


def on_partition_fenced(setup: Setup, fetcher: Fetcher, request_epoch: int) -> tuple[Fetcher, bool]:
    """Handle FENCED_LEADER_EPOCH; also return whether the entry is in another epoch by now. #onPartitionFenced.

    A partition fenced in its current epoch is failed: only new metadata can help.
    """
    if fetcher.entry is None:
        return fetcher, False
    # A later epoch in the entry means that new metadata arrived while the request was under way: it may be retried (since
    # 2.5).
    if request_epoch == fetcher.entry.current_leader_epoch or not setup.profile.fences_by_epoch:
        return mark_failed(fetcher), False
    return fetcher, True
