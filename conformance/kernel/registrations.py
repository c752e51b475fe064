"""Events at the controller that concern a broker, not the partition: it registers, it is fenced, it is fenced no more.

Rules of this file

1. What a fencing makes of the partition is a change of its own, and judged there: one that is not there may only not have
   been reported. A registration says what it found, and stands behind the changes that this causes.
2. A source that reports none of this leaves it unknown; one that reports fencing but not its end shows nothing by it.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel.rule_ids import CTRL_07, CTRL_09
from tidegauge.conformance.kernel.state import (
    BROKER_EPOCH,
    BROKERS,
    C_ELR,
    FENCED,
    LOST,
    OPTION,
    REGISTERED,
    REPLICAS,
    REPORTS_FENCING,
    WHOLE,
    State,
)
from tidegauge.conformance.kernel.tally import decide
from tidegauge.traces.columns import UNKNOWN


def register_broker(st: State, b: int, broker_epoch: int, clean: int) -> None:
    """CTRL-09: each incarnation has a higher broker epoch. One that may lack what it had is eligible no more."""
    known = st[REPLICAS + b, BROKER_EPOCH]
    if broker_epoch != known:
        st[REPLICAS + b, FENCED] = UNKNOWN
    if UNKNOWN not in (broker_epoch, known):
        decide(st, CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
    st[REPLICAS + b, BROKER_EPOCH] = broker_epoch
    if clean == 0:
        st[REPLICAS + b, LOST] = REGISTERED
        elr = st[WHOLE, C_ELR]
        if elr != UNKNOWN:
            decide(st, CTRL_07, elr >> b & 1 == 0, field.ELR, elr & ~(1 << b), elr)


def fence_broker(st: State, b: int) -> None:
    """From here on it leads nothing, and is in no ISR but as the last member."""
    st[REPLICAS + b, FENCED] = 1


def unfence_broker(st: State, b: int) -> None:
    """From here on it may lead, and join an ISR."""
    st[REPLICAS + b, FENCED] = 0


def some_broker(st: State, registered: int) -> None:
    """One is fenced, or no more, or has registered, and nothing says which."""
    for b in range(st[OPTION, BROKERS]):
        st[REPLICAS + b, FENCED] = UNKNOWN
        if registered == 1:
            st[REPLICAS + b, BROKER_EPOCH] = UNKNOWN
            st[REPLICAS + b, LOST] = UNKNOWN


def not_fenced(st: State, live: int) -> int:
    """Who may lead and join: `live` where a change says it, else all but those who are known to be fenced."""
    if live != UNKNOWN:
        return live
    mask = (1 << st[OPTION, BROKERS]) - 1
    if st[OPTION, REPORTS_FENCING] == 1:
        for b in range(st[OPTION, BROKERS]):
            if st[REPLICAS + b, FENCED] == 1:
                mask &= ~(1 << b)
    return int(mask)


def joins_as_proposed(st: State, b: int, broker_epoch: int) -> None:
    """CTRL-09: a replica joins the ISR in the incarnation that its leader saw (KAFKA-15221)."""
    known = st[REPLICAS + b, BROKER_EPOCH]
    if broker_epoch >= 0 and known != UNKNOWN:
        decide(st, CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
