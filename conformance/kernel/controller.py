"""Events at the controller: the registration of the partition changes, a proposal is judged.

Rules of this file

1. Only the controller's own order counts here: who leads which epoch with which ISR, one change after the other.
2. An election from the ISR is clean. With an empty ISR the members that left it while it was below min ISR are eligible
   (KIP-966); also in the change that takes its last member away. One that is neither, or that nobody can call clean, ends
   every earlier claim about committed data.
3. Who is eligible is what the source reports; only where it reports no ELR is it reckoned from the ISRs.
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.elections import first_epoch
from tidegauge.conformance.kernel.eligible import assigned, becomes_eligible, elects_eligible, eligible, joins
from tidegauge.conformance.kernel.flight import fits
from tidegauge.conformance.kernel.groups import Assignment
from tidegauge.conformance.kernel.leader_hw import size_of
from tidegauge.conformance.kernel.registrations import joins_as_proposed, not_fenced
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.terms import one_leader, register
from tidegauge.traces.columns import UNKNOWN


def change_partition(
    st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, live: int, clean: int, to: Assignment
) -> None:
    """A PartitionRecord or PartitionChangeRecord: PartitionRegistration#merge."""
    old_epoch = st[s.WHOLE, s.C_EPOCH]
    if reported_again(st, leader, epoch, partition_epoch, isr):
        decide(st, RULE.CTRL_02, True, field.PARTITION_EPOCH, partition_epoch, partition_epoch)
    elif UNKNOWN not in (old_epoch, epoch):
        changed(st, leader, epoch, partition_epoch, isr, live, clean)
    elif epoch == UNKNOWN:
        undecided(st, RULE.CTRL_02, 1 << field.LEADER_EPOCH)
        elections_missed(st)
    elif clean != 1:
        st[s.WHOLE, s.UNCLEAN] = max(st[s.WHOLE, s.UNCLEAN], epoch)
    in_charge(st, leader, isr, live)
    if st[s.OPTION, s.ELR] == 0:
        somebody(st, isr)
    assigned(st, isr, to)
    becomes_eligible(st, partition_epoch, isr, to)
    joins(st, st[s.WHOLE, s.C_ISR], isr)
    eligible(st, isr, to)
    st[s.WHOLE, s.C_LEADER] = leader
    st[s.WHOLE, s.C_EPOCH] = epoch
    st[s.WHOLE, s.C_PARTITION_EPOCH] = partition_epoch
    st[s.WHOLE, s.C_ISR] = isr
    if epoch != UNKNOWN:
        first_epoch(st, epoch)
        if leader != UNKNOWN and epoch != old_epoch:
            one_leader(st, epoch, leader)
            # a proposal of an earlier leader epoch is refused (ReplicationControlManager#validateAlterPartitionData); in
            # logs nothing orders the controller's line before those of a broker that has not heard of the epoch yet
            # where the change before says no epoch either, the election may lie behind, and proposals in this epoch too
            for b in range(st[s.OPTION, s.BROKERS]):
                own = st[s.REPLICAS + b, s.EPOCH]
                earlier = own != epoch and not (own == UNKNOWN and old_epoch == UNKNOWN)
                if earlier and st[s.OPTION, s.LAG_RULE] == 0:
                    st[s.REPLICAS + b, s.PROPOSED] = 0
        register(st, epoch, leader, isr, partition_epoch, to.replicas)


def reported_again(st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int) -> bool:
    """Whether the registration stands as it was: a source may say it once more, when a broker is fenced or unfenced."""
    return bool(
        UNKNOWN not in (partition_epoch, st[s.WHOLE, s.C_PARTITION_EPOCH])
        and partition_epoch == st[s.WHOLE, s.C_PARTITION_EPOCH]
        and fits(leader, st[s.WHOLE, s.C_LEADER])
        and fits(epoch, st[s.WHOLE, s.C_EPOCH])
        and fits(isr, st[s.WHOLE, s.C_ISR])
    )


def elections_missed(st: s.State) -> None:
    """A registration that does not say its leader epoch may be an election, and an unclean one."""
    st[s.WHOLE, s.FIRST_EPOCH] = UNKNOWN
    st[s.WHOLE, s.COMPLETE_FROM] = 1
    st[s.WHOLE, s.ELECTIONS_UNSEEN] = 1


def changed(st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, live: int, clean: int) -> None:
    """CTRL-02 on the epochs, then an election or a change of the ISR."""
    old_leader, old_epoch, old_isr = st[s.WHOLE, s.C_LEADER], st[s.WHOLE, s.C_EPOCH], st[s.WHOLE, s.C_ISR]
    if leader == UNKNOWN or old_leader == UNKNOWN:
        undecided(st, RULE.CTRL_02, 1 << field.LEADER)
    elif leader != old_leader:
        decide(st, RULE.CTRL_02, epoch == old_epoch + 1, field.LEADER_EPOCH, old_epoch + 1, epoch)
    else:
        decide(st, RULE.CTRL_02, old_epoch <= epoch <= old_epoch + 1, field.LEADER_EPOCH, old_epoch, epoch)
    if partition_epoch != UNKNOWN and st[s.WHOLE, s.C_PARTITION_EPOCH] != UNKNOWN:
        expected = st[s.WHOLE, s.C_PARTITION_EPOCH] + 1
        as_expected(st, RULE.CTRL_02, field.PARTITION_EPOCH, expected, partition_epoch)
    if epoch != old_epoch:
        if leader >= 0:
            election(st, leader, epoch, old_isr, clean)
        elif leader == UNKNOWN and clean != 1:
            st[s.WHOLE, s.UNCLEAN] = epoch
        elif leader == -1 and UNKNOWN not in (isr, live):
            decide(st, RULE.CTRL_01, isr & live == 0, field.LIVE, live & ~isr, live)
    elif isr != UNKNOWN and old_isr != UNKNOWN:
        grown(st, leader, old_isr, isr, live)


def in_charge(st: s.State, leader: int, isr: int, live: int) -> None:
    """CTRL-01: a leader is a live member of the ISR. CTRL-04: the last member may be fenced, no other."""
    if leader >= 0 and isr != UNKNOWN:
        decide(st, RULE.CTRL_01, isr >> leader & 1 == 1, field.ISR, isr | 1 << leader, isr)
    may = not_fenced(st, live)
    if live == UNKNOWN and may == (1 << st[s.OPTION, s.BROKERS]) - 1:
        return
    if leader >= 0:
        decide(st, RULE.CTRL_01, may >> leader & 1 == 1, field.LIVE, may | 1 << leader, may)
    if isr != UNKNOWN:
        alone = size_of(isr, st[s.OPTION, s.BROKERS]) == 1
        decide(st, RULE.CTRL_04, alone or isr & ~may == 0, field.ISR, isr & may, isr)


def somebody(st: s.State, isr: int) -> None:
    """CTRL-05: the last member stays in the ISR."""
    if isr == UNKNOWN:
        undecided(st, RULE.CTRL_05, 1 << field.ISR)
    else:
        decide(st, RULE.CTRL_05, isr != 0, field.ISR, st[s.WHOLE, s.C_ISR], isr)


def election(st: s.State, leader: int, epoch: int, old_isr: int, clean: int) -> None:
    """CTRL-01: a clean leader was in sync."""
    candidates = old_isr
    last_member_left = (
        st[s.OPTION, s.ELR] == 1 and old_isr > 0 and old_isr & (old_isr - 1) == 0 and old_isr >> leader & 1 == 0
    )
    if old_isr == 0 or last_member_left:
        candidates = st[s.WHOLE, s.C_ELIGIBLE]
        if clean != 0:
            elects_eligible(st, leader)
    if old_isr == UNKNOWN or candidates == UNKNOWN:
        undecided(st, RULE.CTRL_01, 1 << field.ISR)
        if clean != 1:
            st[s.WHOLE, s.UNCLEAN] = epoch
    elif candidates >> leader & 1 == 1:
        decide(st, RULE.CTRL_01, True, field.LEADER, leader, leader)
        if clean == 0:
            st[s.WHOLE, s.UNCLEAN] = epoch
    elif clean == 1:
        decide(st, RULE.CTRL_01, False, field.ISR, candidates, 1 << leader)
    else:
        st[s.WHOLE, s.UNCLEAN] = epoch
        if clean == UNKNOWN:
            undecided(st, RULE.CTRL_01, 1 << field.CLEAN)


def grown(st: s.State, leader: int, old_isr: int, isr: int, live: int) -> None:
    """ISR-04: within a leader epoch the ISR grows only by what the leader proposed, and only by live brokers."""
    if isr | old_isr == old_isr:
        return
    if leader == UNKNOWN:
        undecided(st, RULE.ISR_04, 1 << field.LEADER)
        return
    if leader < 0:
        decide(st, RULE.ISR_04, False, field.ISR, old_isr, isr)
        return
    proposed = st[s.REPLICAS + leader, s.PROPOSED]
    if st[s.OPTION, s.REPORTS_ISR_PROPOSALS] == 0 or st[s.WHOLE, s.HEARD] >> leader & 1 == 0:
        proposed = UNKNOWN
    same(st, RULE.ISR_04, field.ISR, proposed, isr, 1 << field.ISR)
    joining = isr & ~old_isr
    may = not_fenced(st, live)
    if live != UNKNOWN or joining & ~may != 0:
        decide(st, RULE.ISR_04, joining & ~may == 0, field.LIVE, may | joining, may)
    if proposed == isr:
        for b in range(st[s.OPTION, s.BROKERS]):
            if joining == 1 << b:
                joins_as_proposed(st, b, st[s.REPLICAS + leader, s.PROPOSED_BROKER_EPOCH])


def alter_partition(st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, error: int) -> None:
    """ISR-04, CTRL-05: the controller accepts a proposal only from the leader, about the registration as it stands.

    Which brokers are live by now nobody has said: the change that follows does. That change may be reported first.
    """
    if error == UNKNOWN or st[s.WHOLE, s.C_EPOCH] == UNKNOWN:
        undecided(st, RULE.ISR_04, 1 << field.ERROR | 1 << field.LEADER_EPOCH)
    elif error == 0:
        somebody(st, isr)
        if epoch != UNKNOWN:
            as_expected(st, RULE.ISR_04, field.LEADER_EPOCH, st[s.WHOLE, s.C_EPOCH], epoch)
        if leader != UNKNOWN:
            same(st, RULE.ISR_04, field.PEER, st[s.WHOLE, s.C_LEADER], leader, 1 << field.LEADER)
        latest = st[s.WHOLE, s.C_PARTITION_EPOCH]
        if UNKNOWN in (partition_epoch, latest):
            undecided(st, RULE.ISR_04, 1 << field.PARTITION_EPOCH)
        else:
            made = partition_epoch == latest - 1 and fits(isr, st[s.WHOLE, s.C_ISR])
            decide(st, RULE.ISR_04, partition_epoch == latest or made, field.PARTITION_EPOCH, latest, partition_epoch)
