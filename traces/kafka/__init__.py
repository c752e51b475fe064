"""Logs of real Kafka brokers -> traces. `read(directory)` is the way in."""

from tidegauge.traces.kafka.capture import Capture, Summary, read

__all__ = ["Capture", "Summary", "read"]
