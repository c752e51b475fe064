"""min.insync.replicas, which may change: as the controller has written it, and as each broker has read it.

Rules of this file

1. As long as no event reports a change it is that of the Config, for every node.
2. The controller fills the ELR by what it has written; a leader's high watermark waits for what it has read. After a change
   it is unknown which value a broker uses, until it reports that it has read the new one (ReadConfig).
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def set_min_isr(st: s.State, min_isr: int) -> None:
    """Note that the controller has written another value."""
    st[s.PARTITION, s.C_MIN_ISR] = min_isr if min_isr != UNKNOWN else -1
    for r in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + r, s.MIN_ISR_READ] != min_isr:
            st[s.REPLICAS + r, s.MIN_ISR_READ] = UNKNOWN


def read_config(st: s.State, b: int, min_isr: int) -> None:
    """Note that a broker has read a value."""
    st[s.REPLICAS + b, s.MIN_ISR_READ] = min_isr if min_isr != UNKNOWN else -1
    # A value that the controller was not seen to write: a SetMinIsr is missing, and others may have followed it.
    if st[s.PARTITION, s.C_MIN_ISR] == UNKNOWN and min_isr != UNKNOWN and min_isr != st[s.OPTION, s.MIN_ISR]:
        st[s.PARTITION, s.C_MIN_ISR] = -1


def written_min_isr(st: s.State) -> int:
    """Return the value that the controller uses; UNKNOWN where no event shows it."""
    value = st[s.PARTITION, s.C_MIN_ISR]
    if value == UNKNOWN:
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN


def read_min_isr(st: s.State, b: int) -> int:
    """Return the value that broker b uses; UNKNOWN where no event shows it."""
    value = st[s.REPLICAS + b, s.MIN_ISR_READ]
    if value == UNKNOWN and st[s.PARTITION, s.C_MIN_ISR] == UNKNOWN:
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN
