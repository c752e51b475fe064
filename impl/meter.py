"""Meter: how often something happened, and how often per second of late.

Rules of this file

1. Every 5 s of the caller's clock, counted from the first mark, is a tick: what was marked since the last one becomes a
   rate, and the averages of one, five and fifteen minutes move towards it. What was marked later is in no average yet.
2. The first tick sets the averages to its rate; there is nothing to average it with.
3. Kafka starts the clock when the broker or topic is made; a value that has seen no time starts it with the first mark.
4. Source: com.yammer.metrics.core.Meter, com.yammer.metrics.stats.EWMA (metrics-core 2.2); per second, as
   KafkaMetricsGroup#newMeter makes them.
"""

from math import exp
from typing import NamedTuple

TICK_MS = 5_000
MINUTES = (1, 5, 15)
ALPHAS = tuple(1 - exp(-TICK_MS / 60_000 / minutes) for minutes in MINUTES)
"""What part of the way an average goes at a tick."""


class Meter(NamedTuple):
    """`total` is Meter#count. `recent`: marked since the tick at `ticked_ms`. `averages` are empty before the first tick."""

    total: int = 0
    recent: int = 0
    started_ms: int | None = None
    ticked_ms: int = 0
    averages: tuple[float, ...] = ()


def mark(meter: Meter, events: int, now: int) -> Meter:
    """`events` happened. Meter#mark."""
    if meter.started_ms is None:
        return Meter(events, events, now, now)
    meter = ticked(meter, now)
    return meter._replace(total=meter.total + events, recent=meter.recent + events)


def ticked(meter: Meter, now: int) -> Meter:
    """After every tick that is due. EWMA#tick; the ticks after the first find nothing new."""
    ticks = 0 if meter.started_ms is None else (now - meter.ticked_ms) // TICK_MS
    if ticks <= 0:
        return meter
    rate = meter.recent * 1000 / TICK_MS
    before = meter.averages or (rate,) * len(MINUTES)
    averages = tuple(
        (average + alpha * (rate - average)) * (1 - alpha) ** (ticks - 1)
        for average, alpha in zip(before, ALPHAS, strict=True)
    )
    return meter._replace(recent=0, ticked_ms=meter.ticked_ms + ticks * TICK_MS, averages=averages)


def rates(meter: Meter, now: int) -> tuple[float, ...]:
    """OneMinuteRate, FiveMinuteRate, FifteenMinuteRate, per second; zero before the first tick."""
    return ticked(meter, now).averages or (0.0,) * len(MINUTES)


def mean_rate(meter: Meter, now: int) -> float:
    """MeanRate: per second since the first mark."""
    if meter.started_ms is None or now <= meter.started_ms:
        return 0.0
    return meter.total * 1000 / (now - meter.started_ms)
