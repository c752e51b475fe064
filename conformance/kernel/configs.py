"""min.insync.replicas, which may change: as the controller has written it, and as each broker has read it.

Rules of this file

1. As long as no event tells of a change it is that of the Config, for everybody.
2. The controller fills the ELR by what it has written; a leader's high watermark waits for what it has read. From the change
   on nobody can say what a broker goes by, until it says that it has read it.
"""

from tidegauge.conformance.kernel import state as s
from tidegauge.traces.columns import UNKNOWN


def set_min_isr(st: s.State, min_isr: int) -> None:
    """The controller has written another value."""
    st[s.WHOLE, s.C_MIN_ISR] = min_isr if min_isr != UNKNOWN else -1
    for r in range(st[s.OPTION, s.BROKERS]):
        if st[s.REPLICAS + r, s.MIN_ISR_READ] != min_isr:
            st[s.REPLICAS + r, s.MIN_ISR_READ] = UNKNOWN


def read_config(st: s.State, b: int, min_isr: int) -> None:
    """A broker has read it. A value that nobody told shows that a change is missing: written to what, nobody said."""
    st[s.REPLICAS + b, s.MIN_ISR_READ] = min_isr if min_isr != UNKNOWN else -1
    if st[s.WHOLE, s.C_MIN_ISR] == UNKNOWN and min_isr != UNKNOWN and min_isr != st[s.OPTION, s.MIN_ISR]:
        st[s.WHOLE, s.C_MIN_ISR] = -1


def written_min_isr(st: s.State) -> int:
    """What the controller goes by; UNKNOWN where nobody can say."""
    value = st[s.WHOLE, s.C_MIN_ISR]
    if value == UNKNOWN:
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN


def read_min_isr(st: s.State, b: int) -> int:
    """What broker b goes by; UNKNOWN where nobody can say."""
    value = st[s.REPLICAS + b, s.MIN_ISR_READ]
    if value == UNKNOWN and st[s.WHOLE, s.C_MIN_ISR] == UNKNOWN:
        return int(st[s.OPTION, s.MIN_ISR])
    return int(value) if value >= 0 else UNKNOWN
