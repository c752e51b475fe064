"""The clients of a cluster, by librdkafka: producers with and without transactions, consumers; and what was acknowledged."""

import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from random import Random
from threading import Lock, Thread

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from validation.real_clusters.truth import TRANSACTIONAL, Acknowledged, ReadAgain

SMALL, LARGE = (40, 200), (60_000, 140_000)
"""Bytes of a record, from and to."""

SEPARATOR = b"|"
"""Between the name of a record and its filling."""


class Load:
    """Clients that run until `stop`. `topics`, which may grow: topic -> partitions."""

    def __init__(self, bootstrap: str, seed: int, topics: Mapping[str, int], large_records: bool) -> None:
        self._bootstrap, self._seed, self._size = bootstrap, seed, LARGE if large_records else SMALL
        self.topics = dict(topics)
        self.acknowledged: list[Acknowledged] = []
        self.counts = {"acknowledged": 0, "failed": 0, "commits": 0, "aborts": 0, "consumed": 0}
        self._lock = Lock()
        self._runs = True
        self._threads: list[Thread] = []

    def produce(self, rate: float, acks: str, idempotent: bool) -> None:
        """Start a producer of about `rate` records a second."""
        self._start(lambda random, label: self._produce(random, label, rate, acks, idempotent), f"acks{acks}")

    def transact(self, rate: float, aborts: float) -> None:
        """Start a transactional producer of about `rate` transactions a second; a share of them is aborted."""
        self._start(lambda random, label: self._transact(random, label, rate, aborts), TRANSACTIONAL[:-1])

    def consume(self, kind: str) -> None:
        """Start a consumer: plain, committed (read_committed), or rack (which may read from a follower)."""
        self._start(lambda random, label: self._consume(random, label, kind), f"group-{kind}")

    def stop(self) -> None:
        """End all clients."""
        self._runs = False
        for thread in self._threads:
            thread.join(40)

    def _start(self, work: Callable[[Random, str], None], name: str) -> None:
        label = f"{name}-{len(self._threads)}"
        thread = Thread(target=work, args=(Random(f"client {self._seed} {label}"), label), daemon=True)
        self._threads.append(thread)
        thread.start()

    def _common(self, label: str) -> dict[str, object]:
        return {"bootstrap.servers": self._bootstrap, "client.id": label, "log_level": 0, "socket.timeout.ms": 6000}

    def _target(self, random: Random) -> tuple[str, int]:
        topics = dict(self.topics)
        topic = random.choice(sorted(topics))
        return topic, random.randrange(topics[topic])

    def _value(self, random: Random, name: str) -> bytes:
        return name.encode() + SEPARATOR + b"x" * random.randint(*self._size)

    def _count(self, what: str, more: int = 1) -> None:
        with self._lock:
            self.counts[what] += more

    def _took(self, records: list[Acknowledged]) -> None:
        with self._lock:
            self.acknowledged += records
            self.counts["acknowledged"] += len(records)

    def _produce(self, random: Random, label: str, rate: float, acks: str, idempotent: bool) -> None:
        config = {
            "acks": acks,
            "enable.idempotence": idempotent and acks == "all",
            "linger.ms": random.choice((0, 0, 20)),
            "compression.type": random.choice(("none", "none", "lz4")),
            "message.timeout.ms": 20_000,
            "message.max.bytes": 5_000_000,
        }
        producer = Producer({**self._common(label), **config})
        number = 0

        def delivered(name: str) -> Callable[[KafkaError | None, Message], None]:
            def done(error: KafkaError | None, message: Message) -> None:
                if error is None:
                    self._took([_acknowledged(message, name, acks)])
                else:
                    self._count("failed")

            return done

        while self._runs:
            topic, partition = self._target(random)
            name = f"{label}-{number}"
            number += 1
            try:
                producer.produce(topic, self._value(random, name), partition=partition, on_delivery=delivered(name))
            except BufferError:
                producer.poll(0.5)
            except KafkaException:
                self._count("failed")
            producer.poll(0)
            time.sleep(1 / rate)
        producer.flush(15)

    def _transact(self, random: Random, label: str, rate: float, aborts: float) -> None:
        producer = None
        number = 0
        while self._runs:
            try:
                if producer is None:
                    config = {"transactional.id": label, "message.timeout.ms": 15_000, "transaction.timeout.ms": 20_000}
                    producer = Producer({**self._common(label), **config, "linger.ms": 0, "message.max.bytes": 5_000_000})
                    producer.init_transactions(15)
                producer.begin_transaction()
                records: list[Acknowledged] = []

                def done(error: KafkaError | None, message: Message, records: list[Acknowledged] = records) -> None:
                    if error is None:
                        name = message.value().split(SEPARATOR)[0].decode()
                        records.append(_acknowledged(message, name, "all"))

                for _ in range(random.choice((1, 3, 5))):
                    topic, partition = self._target(random)
                    value = self._value(random, f"{label}-{number}")
                    producer.produce(topic, value, partition=partition, on_delivery=done)
                    number += 1
                if random.random() < aborts:
                    producer.flush(10)
                    producer.abort_transaction(10)
                    self._count("aborts")
                else:
                    producer.commit_transaction(10)
                    self._took(records)
                    self._count("commits")
            except KafkaException as error:
                self._count("failed")
                producer = self._aborted(producer, error)
            except BufferError:
                time.sleep(0.5)
            time.sleep(1 / rate)
        if producer is not None:
            producer.flush(5)

    def _aborted(self, producer: Producer | None, error: KafkaException) -> Producer | None:
        """Abort after an error that allows it; else a new producer begins, which fences the old one."""
        if producer is not None and error.args[0].txn_requires_abort():
            with suppress(KafkaException):
                producer.abort_transaction(10)
                self._count("aborts")
                return producer
        time.sleep(0.5)
        return None

    def _consume(self, random: Random, label: str, kind: str) -> None:
        config = {
            "group.id": label,
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed" if kind == "committed" else "read_uncommitted",
            "fetch.wait.max.ms": random.choice((100, 500)),
        }
        if kind == "rack":
            config["client.rack"] = f"r{random.randint(1, 3)}"
        consumer = Consumer({**self._common(label), **config})
        consumer.subscribe(sorted(self.topics))
        while self._runs:
            message = consumer.poll(0.5)
            if message is not None and message.error() is None:
                self._count("consumed")
        consumer.close()


def _acknowledged(message: Message, name: str, acks: str) -> Acknowledged:
    offset = message.offset()
    return Acknowledged(message.topic(), message.partition(), -1 if offset is None else offset, name, acks)


READ_SECONDS = 30.0


def read_topics(
    bootstrap: str, topics: Mapping[str, int], seconds: float = READ_SECONDS
) -> tuple[dict[tuple[str, int], ReadAgain], list[str]]:
    """Read topics from their log starts to their ends; return that, and the partitions that could not be read."""
    unread = []
    config = {"bootstrap.servers": bootstrap, "group.id": "truth", "enable.auto.commit": False, "log_level": 0}
    # A record is replicated whatever becomes of its transaction.
    consumer = Consumer({**config, "isolation.level": "read_uncommitted"})
    try:
        bounds = {}
        for topic, partition in ((topic, n) for topic, count in topics.items() for n in range(count)):
            try:
                bounds[topic, partition] = consumer.get_watermark_offsets(TopicPartition(topic, partition), 8)
            except KafkaException as error:
                unread.append(f"{topic}-{partition}: {error}")
        names: dict[tuple[str, int], dict[int, str]] = {tp: {} for tp in bounds}
        waited = {tp for tp, (first, end) in bounds.items() if end > first}
        consumer.assign([TopicPartition(*tp, bounds[tp][0]) for tp in waited])
        deadline = time.monotonic() + seconds
        while waited and time.monotonic() < deadline:
            for message in consumer.consume(500, 0.5):
                if message.error() is None:
                    name = message.value().split(SEPARATOR)[0].decode()
                    names[message.topic(), message.partition()][message.offset()] = name
            # A position passes what is no record: the markers of transactions.
            for at in consumer.position([TopicPartition(*tp) for tp in waited]):
                if at.offset >= bounds[at.topic, at.partition][1]:
                    waited.discard((at.topic, at.partition))
    finally:
        consumer.close()
    unread += [f"{topic}-{partition}: not to the end" for topic, partition in sorted(waited)]
    return {tp: ReadAgain(bounds[tp][0], found) for tp, found in names.items() if tp not in waited}, unread
