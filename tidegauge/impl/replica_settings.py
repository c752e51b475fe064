"""The settings that the replica protocol reads: names, defaults, bounds.

Rules of this file

1. `SETTINGS` is the table: one row per setting, under the name a configuration file uses.
2. A default that changed has one row of `OLDER_DEFAULTS` per change. Where an article gives another default, `note` says so.
3. Source: org.apache.kafka.server.config.ReplicationConfigs, ServerLogConfigs, TopicConfig; KafkaConfig#validateValues.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.util.errors import UsageError

SettingValue = int | bool | str | None

FOR_EVER = (1 << 63) - 1
"""Java's Long.MAX_VALUE."""


class Setting(NamedTuple):
    """One row. `least` is the smallest value Kafka accepts; a str may be absent, so its default is None."""

    name: str
    default: SettingValue
    meaning: str
    least: int | None = None
    note: str = ""

    @property
    def kind(self) -> type:
        """The type of its values."""
        return str if self.default is None else type(self.default)


SETTINGS: Mapping[str, Setting] = MappingProxyType(
    {
        s.name: s
        for s in (
            Setting(
                "num.replica.fetchers",
                1,
                "fetcher threads per source broker",
                1,
                "an article has one thread per broker; it is this many",
            ),
            Setting("replica.fetch.min.bytes", 1, "a follower's fetch waits for so many bytes", 0),
            Setting("replica.fetch.max.bytes", 1 << 20, "most bytes of one partition; the first batch always fits", 0),
            Setting(
                "replica.fetch.response.max.bytes", 10 << 20, "most bytes of a response; the first batch always fits", 0
            ),
            Setting("replica.fetch.wait.max.ms", 500, "longest wait of a follower's fetch", 0),
            Setting(
                "replica.fetch.backoff.ms",
                1000,
                "how long a partition is left alone after an error",
                0,
                "an article says 1000 in one place and 100 in another; it is 1000 in every release",
            ),
            Setting(
                "replica.lag.time.max.ms", 30_000, "after so long behind, a replica leaves the ISR", 1, "10000 up to 2.4"
            ),
            Setting(
                "replica.high.watermark.checkpoint.interval.ms",
                5000,
                "how often high watermarks are written to disk",
                1,
                "an article says 500; it is 5000 in every release",
            ),
            Setting("replica.socket.timeout.ms", 30_000, "network timeout of a follower's request", 1),
            Setting("replica.socket.receive.buffer.bytes", 1 << 16, "socket buffer of a fetcher"),
            Setting("replica.selector.class", None, "how a consumer is sent to a nearer replica; absent: it never is"),
            Setting("follower.replication.throttled.rate", FOR_EVER, "bytes per second of throttled partitions", 0),
            Setting("min.insync.replicas", 1, "acks=all needs so many in the ISR; capped by the replicas since 3.7", 1),
            Setting("unclean.leader.election.enable", False, "whether a replica outside the ISR may lead"),
            Setting("default.replication.factor", 1, "replicas of a topic made without a number", 1),
            Setting("fetch.purgatory.purge.interval.requests", 1000, "purge after so many delayed fetches"),
            Setting("producer.purgatory.purge.interval.requests", 1000, "purge after so many delayed produces"),
            Setting("log.segment.bytes", 1 << 30, "size at which a segment rolls", 14),
            Setting("log.roll.ms", 7 * 24 * 3_600_000, "age at which a segment rolls", 1),
            Setting("log.retention.bytes", -1, "older segments go above this size; -1 never"),
            Setting("log.retention.ms", 7 * 24 * 3_600_000, "older segments go above this age; -1 never", -1),
            Setting("log.index.interval.bytes", 4096, "one index entry per so many bytes", 0),
            Setting("log.index.size.max.bytes", 10 << 20, "a segment rolls when its index is full", 4),
            Setting("message.max.bytes", (1 << 20) + 12, "largest batch a leader accepts", 0),
        )
    }
)

OLDER_DEFAULTS: Mapping[str, tuple[tuple[tuple[int, ...], SettingValue], ...]] = MappingProxyType(
    {
        "replica.lag.time.max.ms": (((2, 5), 10_000),)  # KIP-537
    }
)
"""Name -> ((first release of the next default), the default before it), ascending."""


class ReplicaSettings:
    """Every setting with a value. `settings["replica.fetch.wait.max.ms"]`; ints through `number`."""

    __slots__ = ("_values",)

    def __init__(self, values: Mapping[str, SettingValue]) -> None:
        self._values = MappingProxyType(dict(values))

    def __getitem__(self, name: str) -> SettingValue:
        # Raises UsageError for an unknown name.
        setting_named(name)
        return self._values[name]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ReplicaSettings) and self._values == other._values

    def __hash__(self) -> int:
        return hash(tuple(self._values.items()))

    def number(self, name: str) -> int:
        """Return the value of a setting that is an int. Raises UsageError for any other, and for an unknown name."""
        value = self[name]
        if type(value) is not int:
            raise UsageError(f"{name}: expected a setting that is a number; seen {value!r}; read it with settings[name]")
        return value


def setting_named(name: str) -> Setting:
    """Return the row of the setting called `name`. Raises UsageError if there is none."""
    if name not in SETTINGS:
        raise UsageError(f"setting: expected one of {', '.join(SETTINGS)}; seen {name!r}; correct the name")
    return SETTINGS[name]


def default_of(setting: Setting, release: tuple[int, ...] | None = None) -> SettingValue:
    """Return the default of a setting in a release such as (2, 4); None is the newest release."""
    if release is not None:
        for changed_in, value in OLDER_DEFAULTS.get(setting.name, ()):
            if release < changed_in:
                return value
    return setting.default


def settings(overrides: Mapping[str, object] | None = None, release: tuple[int, ...] | None = None) -> ReplicaSettings:
    """Return every setting: a release's defaults with `overrides`, by name. Raises UsageError.

    Values are checked one by one, then against each other. One that is a text is parsed as Kafka parses a configuration
    file; `release` None is the newest.
    """
    values = {name: default_of(setting, release) for name, setting in SETTINGS.items()}
    for name, value in (overrides or {}).items():
        values[name] = _checked(setting_named(name), value)
    parsed = ReplicaSettings(values)
    _validate_values(parsed)
    return parsed


def _checked(setting: Setting, value: object) -> SettingValue:
    """Parse the value of a setting, and check its lower bound. Raises UsageError."""
    value = _parsed(setting, value)
    if setting.least is not None and isinstance(value, int) and value < setting.least:
        raise UsageError(f"{setting.name}: expected at least {setting.least}; seen {value}; raise it")
    return value


def _parsed(setting: Setting, value: object) -> SettingValue:
    """Return a value in its setting's type: unchanged, or parsed from a text. ConfigDef#parseType. Raises UsageError.

    A number is an optional minus and digits; true and false may be in any case.
    """
    if type(value) is setting.kind:
        return value  # type: ignore[return-value]
    text = value.strip() if isinstance(value, str) else ""
    if setting.kind is bool and text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if setting.kind is int and text.removeprefix("-").isdecimal() and text.isascii():
        return int(text)
    raise UsageError(f"{setting.name}: expected {setting.kind.__name__}; seen {value!r}; correct the value")


def _validate_values(parsed: ReplicaSettings) -> None:
    """Compare settings with each other. KafkaConfig#validateValues. Raises UsageError."""
    wait = parsed.number("replica.fetch.wait.max.ms")
    # A fetch that waits at the leader must neither time out nor count as lag.
    for name in ("replica.socket.timeout.ms", "replica.lag.time.max.ms"):
        if wait > parsed.number(name):
            raise UsageError(f"{name}: expected at least replica.fetch.wait.max.ms = {wait}; seen {parsed[name]}; raise it")


DEFAULTS = settings()
"""A broker without a configuration file."""
