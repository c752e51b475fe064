"""What a cluster is and what happens to it, drawn from its seed.

Rules of this file

1. A seed fixes the shape. What Kafka's threads then do is not fixed, so the logs of two runs differ.
2. Four fetchers and transactions are drawn often: most of what went wrong on real clusters needed one of them.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from random import Random
from typing import Any

RELEASES = {"3.9.1": 4, "4.0.1": 2, "4.1.1": 3, "4.2.1": 3, "4.3.1": 5}
"""Release -> weight."""

PARTITIONS = {12: 5, 24: 8, 48: 5, 60: 3, 120: 2, 300: 0.7, 1000: 0.15}
INCIDENTS = {
    "kill": 4,
    "kill two": 1.5,
    "pause": 4,
    "long pause": 2,
    "stop": 2.5,
    "rolling restart": 3,
    "kill controller": 2.5,
    "stop controller": 2,
    "reassign": 4,
    "preferred election": 2,
    "unclean election": 2,
    "topics": 3,
    "more partitions": 1.5,
    "delete records": 2,
    "retention": 1.5,
    "min isr": 1.5,
    "directories": 3,
    "failed directory": 2,
    "upgrade": 2,
    "pause controller": 0,
    "recreate topic": 0,
    "empty directory": 0,
}
"""What may happen -> weight; `incidents.py` does it. Weight 0: only with `--incidents`."""

OF_TWO_DIRECTORIES = frozenset({"directories", "failed directory"})
BY_TIME, BY_SIZE = "by time", "by size"
"""How logs are rolled."""
LONG_LAG, SHORT_LAG = 6000, 2500
"""replica.lag.time.max.ms"""


@dataclass(frozen=True)
class ClusterShape:
    """`partitions` over `topics` topics; `upgrade_to` is another release, or "" where none is installed."""

    seed: int
    release: str
    upgrade_to: str
    partitions: int
    topics: int
    replication: int
    brokers: int
    controllers: int
    fetchers: int
    directories: int
    stock_files: bool
    min_isr: int
    acks: tuple[str, ...]
    idempotent: bool
    transactions: int
    consumers: tuple[str, ...]
    large_records: bool
    lag_ms: int
    rate: int
    incidents: tuple[str, ...]
    rolled: str = ""
    """`BY_TIME`, `BY_SIZE`, or "" where each log is one file."""
    compressed: bool = False
    """Whether Log4j 2 compresses what it has rolled; Log4j 1 cannot."""

    @property
    def words(self) -> str:
        """Describe the shape in a line."""
        clients = [f"acks {'+'.join(self.acks)}", *(["idempotent"] if self.idempotent else [])]
        clients += [f"{self.transactions} transactional"] if self.transactions else []
        return (
            f"{self.release}{' to ' + self.upgrade_to if self.upgrade_to else ''}, {self.partitions} partitions, "
            f"{self.brokers} brokers, {self.controllers} controllers, {self.fetchers} fetchers, {self.directories} dirs, "
            f"min ISR {self.min_isr}, {', '.join(clients)}, consumers {'/'.join(self.consumers) or 'none'}"
            f"{', large records' if self.large_records else ''}{', rolled ' + self.rolled if self.rolled else ''}"
            f"{', compressed' if self.rolled and self.compressed else ''}"
            f", lag {self.lag_ms} ms"
        )

    @classmethod
    def from_json(cls, fields: Mapping[str, Any]) -> "ClusterShape":
        """Make the shape of which `as_json` returned the fields; a file has lists for tuples."""
        values: dict[str, Any] = {name: tuple(value) if isinstance(value, list) else value for name, value in fields.items()}
        return cls(**values)

    def as_json(self) -> dict[str, Any]:
        """Return the fields, for a file."""
        return asdict(self)


def shape_of(
    seed: int,
    small: bool = False,
    release: str | None = None,
    fetchers: int | None = None,
    wanted: Sequence[str] | None = None,
) -> ClusterShape:
    """Draw the shape of a seed. With `small`, at most 24 partitions and two incidents: a run of half a minute.

    `release`, `fetchers` and the incidents that are `wanted` are in place of the drawn ones.
    """
    random = Random(f"real cluster {seed}")
    sizes = {size: weight for size, weight in PARTITIONS.items() if not small or size <= 24}
    partitions = _draw(random, sizes)
    drawn = _draw(random, RELEASES)
    release = release or str(drawn)
    count = random.choice((1, 1, 2, 2) if small else (1, 1, 2, 2, 3))
    incidents = () if random.random() < 0.04 else tuple(_draw(random, INCIDENTS) for _ in range(count))
    incidents = incidents if wanted is None else tuple(wanted)
    later = [name for name in RELEASES if name > release]
    upgrade_to = random.choice(later) if "upgrade" in incidents and later else ""
    incidents = tuple(name for name in incidents if name != "upgrade" or upgrade_to)
    replication = 2 if random.random() < 0.08 else 3
    min_isr = random.choice((1, 2, 2)) if replication > 2 else 1
    transactions = random.choice((1, 2)) if random.random() < 0.45 else 0
    consumers = [kind for kind, share in (("plain", 0.5), ("rack", 0.3)) if random.random() < share]
    if transactions and random.random() < 0.6:
        consumers.append("committed")
    return ClusterShape(
        seed=seed,
        release=release,
        upgrade_to=upgrade_to,
        partitions=partitions,
        topics=1 if partitions == 12 else 2 if partitions <= 48 else 3,
        replication=replication,
        brokers=4 if random.random() < 0.2 else 3,
        controllers=3 if random.random() < 0.3 else 1,
        fetchers=_instead(fetchers, random.choice((1, 1, 1, 2, 4, 4, 4))),
        directories=2 if OF_TWO_DIRECTORIES & set(incidents) or random.random() < 0.1 else 1,
        stock_files=random.random() < 0.5,
        min_isr=min_isr,
        acks=random.choice((("all",), ("all",), ("all", "1"), ("1",))),
        idempotent=random.random() < 0.5,
        transactions=transactions,
        consumers=tuple(consumers),
        large_records=random.random() < 0.12,
        lag_ms=random.choice((SHORT_LAG, LONG_LAG)),
        rate=random.choice((10, 20, 40)) if partitions <= 60 else 12,
        incidents=incidents,
        rolled=random.choice(("", "", BY_TIME, BY_SIZE)),
        compressed=random.random() < 0.5 and release > "4",
    )


def _instead(wanted: int | None, drawn: int) -> int:
    return drawn if wanted is None else wanted


def _draw(random: Random, weights: Any) -> Any:
    return random.choices(list(weights), list(weights.values()))[0]
