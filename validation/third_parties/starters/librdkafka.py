"""A cluster of two of librdkafka's mock brokers, which live in the process of a client: says where the first one listens."""

import signal
import sys

from confluent_kafka import Producer, libversion, version

BROKERS, SECONDS = 2, 30.0

if __name__ == "__main__":
    producer = Producer({"test.mock.num.brokers": BROKERS})
    brokers = producer.list_topics(timeout=SECONDS).brokers
    first = brokers[min(brokers)]
    sys.stdout.write(f"listens on {first.host}:{first.port}: librdkafka {libversion()[0]} in confluent-kafka {version()}\n")
    sys.stdout.flush()
    signal.pause()
