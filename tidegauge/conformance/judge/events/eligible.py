"""The assignment of the partition, and the replicas that are eligible to lead when the ISR is empty (ELR, KIP-966).

Rules of this file

1. The ELR that a source reports is judged, and its members may be elected; only where none is reported is it computed from
   the ISRs. Where no event reports the assignment it is all brokers, all the time.
2. A replica is eligible because it left the ISR when that was too small to commit anything: as long as it keeps its log it
   has every committed record. One that was removed, lost its disk, or stopped without flushing may lack some.

       min.insync.replicas 2    ISR {1,2}   ELR {}
         b2 leaves              ISR {1}     ELR {2}      nothing is committed from here on
         b1 leaves              ISR {}      ELR {1,2}    so each of them has every committed record
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import written_min_isr
from tidegauge.conformance.judge.event_groups import Assignment
from tidegauge.conformance.judge.events.leader_hw import size_of
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.tally import decide, undecided
from tidegauge.impl.rules import under_min_isr
from tidegauge.traces.columns import UNKNOWN


def check_assignment(st: s.State, isr: int, to: Assignment) -> None:
    """Check CTRL-06 and CTRL-08: ISR and ELR are disjoint sets of replicas, and so are adding and removing replicas."""
    if to.elr != UNKNOWN and isr != UNKNOWN:
        decide(st, RULE.CTRL_06, to.elr & isr == 0, field.ELR, to.elr & ~isr, to.elr)
    if to.adding != UNKNOWN and to.removing != UNKNOWN:
        decide(st, RULE.CTRL_08, to.adding & to.removing == 0, field.ADDING, to.adding & ~to.removing, to.adding)
    if to.replicas == UNKNOWN:
        if to.elr != UNKNOWN and st[s.OPTION, s.REASSIGNED] == 1:
            undecided(st, RULE.CTRL_06, 1 << field.REPLICAS)
        return
    if to.elr != UNKNOWN:
        decide(st, RULE.CTRL_06, to.elr & ~to.replicas == 0, field.ELR, to.elr & to.replicas, to.elr)
    if isr != UNKNOWN:
        decide(st, RULE.CTRL_08, isr & ~to.replicas == 0, field.ISR, isr & to.replicas, isr)
    if to.adding != UNKNOWN:
        decide(st, RULE.CTRL_08, to.adding & ~to.replicas == 0, field.ADDING, to.adding & to.replicas, to.adding)
    if to.removing != UNKNOWN:
        decide(st, RULE.CTRL_08, to.removing & ~to.replicas == 0, field.REMOVING, to.removing & to.replicas, to.removing)


def check_elr(st: s.State, partition_epoch: int, isr: int, to: Assignment) -> None:
    """Check CTRL-07: a replica becomes eligible by leaving the ISR, and not when it has just been assigned."""
    if to.elr == UNKNOWN:
        return
    old, old_isr, old_replicas = st[s.PARTITION, s.C_ELR], st[s.PARTITION, s.C_ISR], st[s.PARTITION, s.C_REPLICAS]
    before = st[s.PARTITION, s.C_PARTITION_EPOCH]
    missed = UNKNOWN not in (before, partition_epoch) and partition_epoch != before + 1
    if UNKNOWN in (old, old_isr) or missed:
        if st[s.PARTITION, s.C_EPOCH] != UNKNOWN:
            undecided(st, RULE.CTRL_07, 1 << field.ELR | 1 << field.ISR)
    else:
        # Members of the ISR and of the ELR before, as far as they are still replicas.
        were = old | old_isr
        if old_replicas != UNKNOWN:
            were &= old_replicas
        decide(st, RULE.CTRL_07, to.elr & ~were == 0, field.ELR, to.elr & were, to.elr)
    for b in range(st[s.OPTION, s.BROKERS]):
        if to.elr >> b & 1 == 1 and st[s.REPLICAS + b, s.LOST] == s.REGISTERED:
            decide(st, RULE.CTRL_07, False, field.ELR, to.elr & ~(1 << b), to.elr)
    # Once the ISR is large enough the ELR is empty. In a broker's log (LAG_RULE) min.insync.replicas may have been changed
    # before the first line.
    known = st[s.OPTION, s.LAG_RULE] == 0 or st[s.PARTITION, s.C_MIN_ISR] != UNKNOWN
    if isr != UNKNOWN and known and large_enough(st, isr, to.replicas):
        decide(st, RULE.CTRL_07, to.elr == 0, field.ELR, 0, to.elr)


def elects_eligible(st: s.State, leader: int) -> None:
    """Check CTRL-07: a leader elected from the ELR has kept the log with which it became eligible."""
    if (
        st[s.PARTITION, s.C_ELR] != UNKNOWN
        and st[s.PARTITION, s.C_ELR] >> leader & 1 == 1
        and st[s.REPLICAS + leader, s.LOST] != UNKNOWN
    ):
        without = st[s.PARTITION, s.C_ELR] & ~(1 << leader)
        decide(st, RULE.CTRL_07, st[s.REPLICAS + leader, s.LOST] == 0, field.ELR, without, st[s.PARTITION, s.C_ELR])


def members_joined(st: s.State, old_isr: int, isr: int) -> None:
    """Note that new members of the ISR have fetched what they lacked."""
    for b in range(st[s.OPTION, s.BROKERS]):
        if isr == UNKNOWN:
            if st[s.REPLICAS + b, s.LOST] != 0:
                st[s.REPLICAS + b, s.LOST] = UNKNOWN
        elif isr >> b & 1 == 1 and (old_isr == UNKNOWN or old_isr >> b & 1 == 0):
            st[s.REPLICAS + b, s.LOST] = 0


def large_enough(st: s.State, isr: int, replicas: int) -> bool:
    """Return whether an ISR is known to have min.insync.replicas members, or as many as there are replicas."""
    n = st[s.OPTION, s.BROKERS]
    assigned = n if replicas == UNKNOWN else size_of(replicas, n)
    least = written_min_isr(st)
    return least != UNKNOWN and not under_min_isr(size_of(isr, n), least, assigned)


def update_elr(st: s.State, isr: int, to: Assignment) -> None:
    """Note the eligible leader replicas. PartitionChangeBuilder#maybePopulateTargetElr."""
    old, old_isr = st[s.PARTITION, s.C_ELIGIBLE], st[s.PARTITION, s.C_ISR]
    if to.elr != UNKNOWN:
        st[s.PARTITION, s.C_ELIGIBLE] = to.elr
    elif isr == UNKNOWN or written_min_isr(st) == UNKNOWN:
        st[s.PARTITION, s.C_ELIGIBLE] = UNKNOWN
    elif large_enough(st, isr, to.replicas):
        st[s.PARTITION, s.C_ELIGIBLE] = 0
    elif UNKNOWN in (old, old_isr):
        st[s.PARTITION, s.C_ELIGIBLE] = UNKNOWN
    else:
        st[s.PARTITION, s.C_ELIGIBLE] = (old | old_isr) & ~isr
    st[s.PARTITION, s.C_ELR] = to.elr
    st[s.PARTITION, s.C_REPLICAS] = to.replicas
