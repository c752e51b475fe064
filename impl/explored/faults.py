"""Implementations that are wrong on purpose, by name: what a fault is stands in fault.py."""

from collections.abc import Mapping
from types import MappingProxyType

from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.fault import Fault
from tidegauge.impl.explored.fetch_faults import FETCH_FAULTS
from tidegauge.impl.explored.high_watermark_faults import HIGH_WATERMARK_FAULTS

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in (*FETCH_FAULTS, *HIGH_WATERMARK_FAULTS)})


def fault_named(name: str) -> Fault:
    """Return the fault called `name`. Raises UsageError with the names there are."""
    if name not in FAULTS:
        raise UsageError(f"fault: expected one of {', '.join(FAULTS)}; seen {name!r}; choose one of those")
    return FAULTS[name]


__all__ = ["FAULTS", "Fault", "fault_named"]
