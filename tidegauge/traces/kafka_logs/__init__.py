"""Logs of real Kafka brokers -> traces. `read(directory)` is the way in."""

from tidegauge.traces.kafka_logs.capture import Capture, Summary, read, read_all
from tidegauge.traces.kafka_logs.discovery.files import is_log

__all__ = ["Capture", "Summary", "is_log", "read", "read_all"]
