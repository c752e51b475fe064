"""Events at the controller that concern a broker, not the partition: it registers, it is fenced, it is fenced no more.

Rules of this file

1. What a fencing makes of the partition is a change of its own, and judged there: one that is not there may only not have
   been reported. A registration says what it found, and stands behind the changes that this causes.
2. A source that reports none of this leaves it unknown; one that reports fencing but not its end shows nothing by it.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import decide
from tidegauge.traces.columns import UNKNOWN


def register_broker(st: s.State, b: int, broker_epoch: int, clean: int) -> None:
    """CTRL-09: each incarnation has a higher broker epoch. One that may lack what it had is eligible no more."""
    known = st[s.REPLICAS + b, s.BROKER_EPOCH]
    if broker_epoch != known:
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
    if UNKNOWN not in (broker_epoch, known):
        decide(st, RULE.CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
    st[s.REPLICAS + b, s.BROKER_EPOCH] = broker_epoch
    if clean == 0:
        st[s.REPLICAS + b, s.LOST] = s.REGISTERED
        elr = st[s.WHOLE, s.C_ELR]
        if elr != UNKNOWN:
            decide(st, RULE.CTRL_07, elr >> b & 1 == 0, field.ELR, elr & ~(1 << b), elr)


def fence_broker(st: s.State, b: int) -> None:
    """From here on it leads nothing, and is in no ISR but as the last member."""
    st[s.REPLICAS + b, s.FENCED] = 1


def unfence_broker(st: s.State, b: int) -> None:
    """From here on it may lead, and join an ISR."""
    st[s.REPLICAS + b, s.FENCED] = 0


def some_broker(st: s.State, registered: int) -> None:
    """One is fenced, or no more, or has registered, and nothing says which."""
    for b in range(st[s.OPTION, s.BROKERS]):
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
        if registered == 1:
            st[s.REPLICAS + b, s.BROKER_EPOCH] = UNKNOWN
            st[s.REPLICAS + b, s.LOST] = UNKNOWN


def not_fenced(st: s.State, live: int) -> int:
    """Who may lead and join: `live` where a change says it, else all but those who are known to be fenced."""
    if live != UNKNOWN:
        return live
    mask = (1 << st[s.OPTION, s.BROKERS]) - 1
    if st[s.OPTION, s.REPORTS_FENCING] == 1:
        for b in range(st[s.OPTION, s.BROKERS]):
            if st[s.REPLICAS + b, s.FENCED] == 1:
                mask &= ~(1 << b)
    return int(mask)


def joins_as_proposed(st: s.State, b: int, broker_epoch: int) -> None:
    """CTRL-09: a replica joins the ISR in the incarnation that its leader saw (KAFKA-15221)."""
    known = st[s.REPLICAS + b, s.BROKER_EPOCH]
    if broker_epoch >= 0 and known != UNKNOWN:
        decide(st, RULE.CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
