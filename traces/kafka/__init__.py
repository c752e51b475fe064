"""Logs of real Kafka brokers -> traces. `read(directory)` is the way in."""

from tidegauge.traces.kafka.capture import Capture, Summary, read, read_all
from tidegauge.traces.kafka.lines.files import is_log

__all__ = ["Capture", "Summary", "is_log", "read", "read_all"]
