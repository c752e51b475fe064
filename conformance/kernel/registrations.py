"""Events at the controller that concern a broker, not the partition: it registers, it is fenced or unfenced.

Rules of this file

1. A fencing changes the partition by an event of its own (ChangePartition), which may be missing from the trace. A
   RegisterBroker comes after the changes that it causes.
2. A source that reports none of these events leaves the state of the brokers unknown; so does one that reports fencing, but
   not the end of it.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import decide
from tidegauge.traces.columns import UNKNOWN


def register_broker(st: s.State, b: int, broker_epoch: int, clean: int) -> None:
    """Check CTRL-09: each incarnation has a higher broker epoch. After an unclean shutdown it is not eligible (CTRL-07)."""
    known = st[s.REPLICAS + b, s.BROKER_EPOCH]
    # A new incarnation registers fenced, and is unfenced when it has caught up with the metadata: where neither is reported,
    # its state is unknown.
    if broker_epoch != known:
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
    if UNKNOWN not in (broker_epoch, known):
        decide(st, RULE.CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
    st[s.REPLICAS + b, s.BROKER_EPOCH] = broker_epoch
    if clean == 0:
        st[s.REPLICAS + b, s.LOST] = s.REGISTERED
        elr = st[s.PARTITION, s.C_ELR]
        if elr != UNKNOWN:
            decide(st, RULE.CTRL_07, elr >> b & 1 == 0, field.ELR, elr & ~(1 << b), elr)


def fence_broker(st: s.State, b: int) -> None:
    """Note that a broker is fenced: it must not lead, nor be in an ISR except as the last member."""
    st[s.REPLICAS + b, s.FENCED] = 1


def unfence_broker(st: s.State, b: int) -> None:
    """Note that a broker is unfenced: it may lead, and join an ISR."""
    st[s.REPLICAS + b, s.FENCED] = 0


def unknown_broker(st: s.State, registered: int) -> None:
    """Make unknown what an event without a broker may have changed: it fences, unfences or registers any of them."""
    for b in range(st[s.OPTION, s.BROKERS]):
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
        if registered == 1:
            st[s.REPLICAS + b, s.BROKER_EPOCH] = UNKNOWN
            st[s.REPLICAS + b, s.LOST] = UNKNOWN


def not_fenced(st: s.State, live: int) -> int:
    """Return who may lead and join: `live` where a change reports it, else all but those known to be fenced."""
    if live != UNKNOWN:
        return live
    mask = (1 << st[s.OPTION, s.BROKERS]) - 1
    if st[s.OPTION, s.REPORTS_FENCING] == 1:
        for b in range(st[s.OPTION, s.BROKERS]):
            if st[s.REPLICAS + b, s.FENCED] == 1:
                mask &= ~(1 << b)
    return int(mask)


def joins_as_proposed(st: s.State, b: int, broker_epoch: int) -> None:
    """Check CTRL-09: a replica joins the ISR in the incarnation that its leader saw (KAFKA-15221)."""
    known = st[s.REPLICAS + b, s.BROKER_EPOCH]
    if broker_epoch >= 0 and known != UNKNOWN:
        decide(st, RULE.CTRL_09, broker_epoch >= known, field.BROKER_EPOCH, known, broker_epoch)
