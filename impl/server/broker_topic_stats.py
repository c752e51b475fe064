"""BrokerTopicStats: what clients and followers ask of a broker, per topic and in all, as counts.

Rules of this file

1. Kafka keeps each as a meter with rates of one, five and fifteen minutes. Nothing in the protocol asks for a rate, and a
   count and a clock give any: what is kept is Meter#count.
2. What a follower appends counts in none of them. A fetch counts once for each of its partitions each time it is read,
   whoever asks.
3. Source: org.apache.kafka.storage.log.metrics.BrokerTopicStats, BrokerTopicMetrics.
"""

from typing import NamedTuple

from tidegauge.impl.table import Table


class TopicStats(NamedTuple):
    """TotalProduceRequestsPerSec, FailedProduceRequestsPerSec, BytesInPerSec, MessagesInPerSec, BytesRejectedPerSec,
    TotalFetchRequestsPerSec.
    """

    total_produce_requests: int = 0
    failed_produce_requests: int = 0
    bytes_in: int = 0
    messages_in: int = 0
    bytes_rejected: int = 0
    total_fetch_requests: int = 0


class BrokerTopicStats(NamedTuple):
    """All topics together, and each."""

    all_topics: TopicStats = TopicStats()
    topics: Table[str, TopicStats] = Table()


def mark_events(stats: BrokerTopicStats, topic: str, **events: int) -> BrokerTopicStats:
    """Count events of a topic, in its own meters and in those of all topics."""
    of_topic = stats.topics.get(topic) or TopicStats()
    return BrokerTopicStats(_marked(stats.all_topics, events), stats.topics.put(topic, _marked(of_topic, events)))


def _marked(stats: TopicStats, events: dict[str, int]) -> TopicStats:
    return stats._replace(**{name: getattr(stats, name) + number for name, number in events.items()})
