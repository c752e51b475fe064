"""BrokerTopicStats: what clients and followers ask of a broker, per topic and in all.

What a follower appends counts in none of them. A fetch counts once for each of its partitions each time it is read, whoever
asks. Source: org.apache.kafka.storage.log.metrics.BrokerTopicStats, BrokerTopicMetrics.
"""

from typing import NamedTuple

from tidegauge.impl.meter import Meter, mark
from tidegauge.impl.table import Table


class TopicStats(NamedTuple):
    """TotalProduceRequestsPerSec, FailedProduceRequestsPerSec, BytesInPerSec, MessagesInPerSec, BytesRejectedPerSec,
    TotalFetchRequestsPerSec.
    """

    total_produce_requests: Meter = Meter()
    failed_produce_requests: Meter = Meter()
    bytes_in: Meter = Meter()
    messages_in: Meter = Meter()
    bytes_rejected: Meter = Meter()
    total_fetch_requests: Meter = Meter()


class BrokerTopicStats(NamedTuple):
    """All topics together, and each."""

    all_topics: TopicStats = TopicStats()
    topics: Table[str, TopicStats] = Table()


def marked(stats: BrokerTopicStats, topic: str, now: int, **events: int) -> BrokerTopicStats:
    """So many events of each kind happened to a topic: BrokerTopicStats#topicStats and #allTopicsStats are marked alike."""
    of_topic = stats.topics.get(topic) or TopicStats()
    return BrokerTopicStats(_marked(stats.all_topics, now, events), stats.topics.put(topic, _marked(of_topic, now, events)))


def _marked(stats: TopicStats, now: int, events: dict[str, int]) -> TopicStats:
    return stats._replace(**{name: mark(getattr(stats, name), number, now) for name, number in events.items()})
