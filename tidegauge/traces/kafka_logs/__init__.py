"""Logs of real Kafka brokers -> traces. `read(directory)` is the way in."""

from tidegauge.traces.kafka_logs.capture import Capture, Summary, read, read_all
from tidegauge.traces.kafka_logs.discovery.files import is_log
from tidegauge.traces.kafka_logs.discovery.identify import dump_kind

__all__ = ["Capture", "Summary", "dump_kind", "is_log", "read", "read_all"]
