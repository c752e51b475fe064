"""Events at the controller: brokers are registered and fenced, the registration of the partition changes.

`st` is the judge's table (conformance.judge.state): the columns C_.. of row PARTITION are the partition as the controller
has registered it last, row REPLICAS + b is broker b. A set of brokers (`isr`, `live`) is a bit mask. UNKNOWN: no event shows
the value; it is below every number. `decide(st, rule, ok, field, expected, actual)` counts a check as held or failed,
`undecided(st, rule, missing)` one that lacks the fields in the bit mask `missing`.

Rules of assignments and of replicas that are eligible to lead when the ISR is empty (ELR, KIP-966)

1. The ELR that a source reports (C_ELR) is judged, and its members may be elected; only where none is reported is it
   computed from the ISRs (C_ELIGIBLE has either). Where no event reports the assignment it is all brokers, all the time.
2. A replica is eligible because it left the ISR when that was too small to commit anything: as long as it keeps its log it
   has every committed record. One that was removed, lost its disk, or stopped without flushing may lack some (LOST).

       min.insync.replicas 2    ISR {1,2}   ELR {}
         b2 leaves              ISR {1}     ELR {2}      nothing is committed from here on
         b1 leaves              ISR {}      ELR {1,2}    so each of them has every committed record

Rules of events that concern a broker, not the partition: it registers, it is fenced or unfenced

1. A fencing changes the partition by an event of its own (ChangePartition), which may be missing from the trace. A
   RegisterBroker comes after the changes that it causes.
2. A source that reports none of these events leaves the state of the brokers unknown; so does one that reports fencing,
   but not the end of it.

Rules of changes of the registration, and of proposals that are accepted or refused

1. Only the controller's own order counts here: the leader, leader epoch and ISR of one change after the other.
2. An election from the ISR is clean. With an empty ISR, or in the change that removes its last member, the members that
   left it while it was below min.insync.replicas are eligible (KIP-966). Any other election, or one that may be another,
   ends every earlier claim about committed records (UNCLEAN is the latest such leader epoch).
"""

from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.elections import first_epoch, written_min_isr
from tidegauge.conformance.judge.events.leader_hw import size_of
from tidegauge.conformance.judge.field_groups import Assignment
from tidegauge.conformance.judge.fields import RULE
from tidegauge.conformance.judge.in_flight import agree_if_known
from tidegauge.conformance.judge.tally import as_expected, decide, same, undecided
from tidegauge.conformance.judge.terms import add_registration, check_one_leader
from tidegauge.impl.rules import under_min_isr
from tidegauge.traces.columns import UNKNOWN

# The assignment, and the eligible leader replicas.


def check_assignment(st: s.State, isr: int, assignment: Assignment) -> None:
    """Check CTRL-06 and CTRL-08: ISR and ELR are disjoint sets of replicas, and so are adding and removing replicas."""
    elr, replicas, adding, removing = assignment.elr, assignment.replicas, assignment.adding, assignment.removing
    if elr != UNKNOWN and isr != UNKNOWN:
        decide(st, RULE.CTRL_06, elr & isr == 0, field.ELR, elr & ~isr, elr)
    if adding != UNKNOWN and removing != UNKNOWN:
        decide(st, RULE.CTRL_08, adding & removing == 0, field.ADDING, adding & ~removing, adding)
    if replicas == UNKNOWN:
        # Without a reassignment every broker of the trace is a replica.
        if elr != UNKNOWN and st[s.OPTION, s.REASSIGNED] == 1:
            undecided(st, RULE.CTRL_06, 1 << field.REPLICAS)
        return
    if elr != UNKNOWN:
        decide(st, RULE.CTRL_06, elr & ~replicas == 0, field.ELR, elr & replicas, elr)
    if isr != UNKNOWN:
        decide(st, RULE.CTRL_08, isr & ~replicas == 0, field.ISR, isr & replicas, isr)
    if adding != UNKNOWN:
        decide(st, RULE.CTRL_08, adding & ~replicas == 0, field.ADDING, adding & replicas, adding)
    if removing != UNKNOWN:
        decide(st, RULE.CTRL_08, removing & ~replicas == 0, field.REMOVING, removing & replicas, removing)


def check_elr(st: s.State, partition_epoch: int, isr: int, assignment: Assignment) -> None:
    """Check CTRL-07 on the ELR that a change reports, by the registration before it.

    A replica becomes eligible by leaving the ISR, and not when it has just been assigned; none is while the ISR is large
    enough.
    """
    if assignment.elr == UNKNOWN:
        return
    old_elr, old_isr, old_replicas = st[s.PARTITION, s.C_ELR], st[s.PARTITION, s.C_ISR], st[s.PARTITION, s.C_REPLICAS]
    before = st[s.PARTITION, s.C_PARTITION_EPOCH]
    # A change in between was not seen, and may have made any replica eligible.
    change_missed = UNKNOWN not in (before, partition_epoch) and partition_epoch != before + 1
    if UNKNOWN in (old_elr, old_isr) or change_missed:
        if st[s.PARTITION, s.C_EPOCH] != UNKNOWN:
            undecided(st, RULE.CTRL_07, 1 << field.ELR | 1 << field.ISR)
    else:
        # Members of the ISR and of the ELR before, as far as they are still replicas.
        eligible_before = old_elr | old_isr
        if old_replicas != UNKNOWN:
            eligible_before &= old_replicas
        decide(
            st,
            RULE.CTRL_07,
            assignment.elr & ~eligible_before == 0,
            field.ELR,
            assignment.elr & eligible_before,
            assignment.elr,
        )
    for b in range(st[s.OPTION, s.BROKERS]):
        # REGISTERED: it registered after an unclean shutdown, so the controller knows that it may lack records (KIP-966).
        if assignment.elr >> b & 1 == 1 and st[s.REPLICAS + b, s.LOST] == s.REGISTERED:
            decide(st, RULE.CTRL_07, False, field.ELR, assignment.elr & ~(1 << b), assignment.elr)
    # Once the ISR is large enough the ELR is empty. In a broker's log (LAG_RULE) min.insync.replicas may have been changed
    # before the first line.
    min_isr_known = st[s.OPTION, s.LAG_RULE] == 0 or st[s.PARTITION, s.C_MIN_ISR] != UNKNOWN
    if isr != UNKNOWN and min_isr_known and large_enough(st, isr, assignment.replicas):
        decide(st, RULE.CTRL_07, assignment.elr == 0, field.ELR, 0, assignment.elr)


def elects_eligible(st: s.State, leader: int) -> None:
    """Check CTRL-07: a leader elected from the ELR has kept the log with which it became eligible (LOST is 0)."""
    if (
        st[s.PARTITION, s.C_ELR] != UNKNOWN
        and st[s.PARTITION, s.C_ELR] >> leader & 1 == 1
        and st[s.REPLICAS + leader, s.LOST] != UNKNOWN
    ):
        elr_without_it = st[s.PARTITION, s.C_ELR] & ~(1 << leader)
        decide(st, RULE.CTRL_07, st[s.REPLICAS + leader, s.LOST] == 0, field.ELR, elr_without_it, st[s.PARTITION, s.C_ELR])


def members_joined(st: s.State, old_isr: int, isr: int) -> None:
    """Note that brokers in `isr` and not in `old_isr` have fetched what they may have lacked: LOST becomes 0."""
    for b in range(st[s.OPTION, s.BROKERS]):
        # The new ISR is unknown: this broker may have joined it.
        if isr == UNKNOWN:
            if st[s.REPLICAS + b, s.LOST] != 0:
                st[s.REPLICAS + b, s.LOST] = UNKNOWN
        elif isr >> b & 1 == 1 and (old_isr == UNKNOWN or old_isr >> b & 1 == 0):
            st[s.REPLICAS + b, s.LOST] = 0


def large_enough(st: s.State, isr: int, replicas: int) -> bool:
    """Return whether an ISR is known to have min.insync.replicas members, or as many as there are replicas.

    `replicas` is the assignment as a bit mask; UNKNOWN means all brokers.
    """
    n = st[s.OPTION, s.BROKERS]
    assigned = n if replicas == UNKNOWN else size_of(replicas, n)
    min_isr = written_min_isr(st)
    return min_isr != UNKNOWN and not under_min_isr(size_of(isr, n), min_isr, assigned)


def update_elr(st: s.State, isr: int, assignment: Assignment) -> None:
    """Set who is eligible after a change to `isr`: the ELR that it reports, or what follows from the ISRs.

    PartitionChangeBuilder#maybePopulateTargetElr.
    """
    old, old_isr = st[s.PARTITION, s.C_ELIGIBLE], st[s.PARTITION, s.C_ISR]
    if assignment.elr != UNKNOWN:
        st[s.PARTITION, s.C_ELIGIBLE] = assignment.elr
    elif isr == UNKNOWN or written_min_isr(st) == UNKNOWN:
        st[s.PARTITION, s.C_ELIGIBLE] = UNKNOWN
    elif large_enough(st, isr, assignment.replicas):
        st[s.PARTITION, s.C_ELIGIBLE] = 0
    elif UNKNOWN in (old, old_isr):
        st[s.PARTITION, s.C_ELIGIBLE] = UNKNOWN
    else:
        # Whoever leaves an ISR that becomes too small stays eligible.
        st[s.PARTITION, s.C_ELIGIBLE] = (old | old_isr) & ~isr
    st[s.PARTITION, s.C_ELR] = assignment.elr
    st[s.PARTITION, s.C_REPLICAS] = assignment.replicas


# Events that concern a broker.


def register_broker(st: s.State, b: int, broker_epoch: int, clean: int) -> None:
    """Check CTRL-09: each incarnation has a higher broker epoch. After an unclean shutdown it is not eligible (CTRL-07).

    `clean` is 0 where the broker registers after an unclean shutdown.
    """
    last_epoch = st[s.REPLICAS + b, s.BROKER_EPOCH]
    # A new incarnation registers fenced, and is unfenced when it has caught up with the metadata: where neither is reported,
    # its state is unknown.
    if broker_epoch != last_epoch:
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
    if UNKNOWN not in (broker_epoch, last_epoch):
        decide(st, RULE.CTRL_09, broker_epoch >= last_epoch, field.BROKER_EPOCH, last_epoch, broker_epoch)
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
    """Make unknown what an event that names no broker may have changed: it fences, unfences or registers any of them.

    `registered` is 1 where the event is a registration.
    """
    for b in range(st[s.OPTION, s.BROKERS]):
        st[s.REPLICAS + b, s.FENCED] = UNKNOWN
        if registered == 1:
            st[s.REPLICAS + b, s.BROKER_EPOCH] = UNKNOWN
            st[s.REPLICAS + b, s.LOST] = UNKNOWN


def not_fenced(st: s.State, live: int) -> int:
    """Return the bit mask of brokers that may lead and join an ISR.

    That is `live`, the unfenced brokers, where a change reports them, else all but those known to be fenced.
    """
    if live != UNKNOWN:
        return live
    mask = (1 << st[s.OPTION, s.BROKERS]) - 1
    if st[s.OPTION, s.REPORTS_FENCING] == 1:
        for b in range(st[s.OPTION, s.BROKERS]):
            if st[s.REPLICAS + b, s.FENCED] == 1:
                mask &= ~(1 << b)
    return int(mask)


def joins_as_proposed(st: s.State, b: int, broker_epoch: int) -> None:
    """Check CTRL-09: replica b joins the ISR in the incarnation that its leader saw (KAFKA-15221).

    `broker_epoch` is the one that the leader proposed; below 0 where it proposed none, or no event shows it.
    """
    last_epoch = st[s.REPLICAS + b, s.BROKER_EPOCH]
    if broker_epoch >= 0 and last_epoch != UNKNOWN:
        decide(st, RULE.CTRL_09, broker_epoch >= last_epoch, field.BROKER_EPOCH, last_epoch, broker_epoch)


# Changes of the registration, and proposals.


def change_partition(
    st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, live: int, clean: int, assignment: Assignment
) -> None:
    """Judge a PartitionRecord or PartitionChangeRecord. PartitionRegistration#merge.

    `live` are the brokers that are not fenced; `clean` is 1 where an election is known to be clean, 0 where unclean.
    """
    old_epoch = st[s.PARTITION, s.C_EPOCH]
    if reported_again(st, leader, epoch, partition_epoch, isr):
        decide(st, RULE.CTRL_02, True, field.PARTITION_EPOCH, partition_epoch, partition_epoch)
    elif UNKNOWN not in (old_epoch, epoch):
        registration_changed(st, leader, epoch, partition_epoch, isr, live, clean)
    elif epoch == UNKNOWN:
        undecided(st, RULE.CTRL_02, 1 << field.LEADER_EPOCH)
        # A change without a leader epoch may be an election, and an unclean one. From FIRST_EPOCH on every election is
        # known: COMPLETE_FROM 1 excludes that of the leader epoch seen next.
        st[s.PARTITION, s.FIRST_EPOCH] = UNKNOWN
        st[s.PARTITION, s.COMPLETE_FROM] = 1
        st[s.PARTITION, s.ELECTIONS_UNOBSERVED] = 1
    elif clean != 1:
        # The first change in the trace, or the first after a gap: the election of its epoch may have been unclean.
        st[s.PARTITION, s.UNCLEAN] = max(st[s.PARTITION, s.UNCLEAN], epoch)
    check_leader_and_isr(st, leader, isr, live)
    # With eligible leader replicas the last member may leave the ISR (KIP-966).
    if st[s.OPTION, s.ELR] == 0:
        isr_not_empty(st, isr)
    # These compare with the registration before, so it is replaced only after them.
    check_assignment(st, isr, assignment)
    check_elr(st, partition_epoch, isr, assignment)
    members_joined(st, st[s.PARTITION, s.C_ISR], isr)
    update_elr(st, isr, assignment)
    st[s.PARTITION, s.C_LEADER] = leader
    st[s.PARTITION, s.C_EPOCH] = epoch
    st[s.PARTITION, s.C_PARTITION_EPOCH] = partition_epoch
    st[s.PARTITION, s.C_ISR] = isr
    if epoch != UNKNOWN:
        first_epoch(st, epoch)
        if leader != UNKNOWN and epoch != old_epoch:
            check_one_leader(st, epoch, leader)
            # A proposal of an earlier leader epoch is refused (ReplicationControlManager#validateAlterPartitionData), so it
            # cannot explain a later ISR. In brokers' logs (LAG_RULE) the controller's line may come before the proposal's.
            # If neither the broker's epoch nor the one of the last change is known, the proposal may be of this epoch.
            for b in range(st[s.OPTION, s.BROKERS]):
                own = st[s.REPLICAS + b, s.EPOCH]
                earlier = own != epoch and not (own == UNKNOWN and old_epoch == UNKNOWN)
                if earlier and st[s.OPTION, s.LAG_RULE] == 0:
                    st[s.REPLICAS + b, s.PROPOSED] = 0
        add_registration(st, epoch, leader, isr, partition_epoch, assignment.replicas)


def reported_again(st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int) -> bool:
    """Return whether a change reports the registration as it is, as a source may do when a broker is fenced or unfenced."""
    return bool(
        UNKNOWN not in (partition_epoch, st[s.PARTITION, s.C_PARTITION_EPOCH])
        and partition_epoch == st[s.PARTITION, s.C_PARTITION_EPOCH]
        and agree_if_known(leader, st[s.PARTITION, s.C_LEADER])
        and agree_if_known(epoch, st[s.PARTITION, s.C_EPOCH])
        and agree_if_known(isr, st[s.PARTITION, s.C_ISR])
    )


def registration_changed(
    st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, live: int, clean: int
) -> None:
    """Check CTRL-02 on the epochs of a change, then judge the election, or the change of the ISR within a leader epoch."""
    old_leader, old_epoch, old_isr = st[s.PARTITION, s.C_LEADER], st[s.PARTITION, s.C_EPOCH], st[s.PARTITION, s.C_ISR]
    if leader == UNKNOWN or old_leader == UNKNOWN:
        undecided(st, RULE.CTRL_02, 1 << field.LEADER)
    elif leader != old_leader:
        decide(st, RULE.CTRL_02, epoch == old_epoch + 1, field.LEADER_EPOCH, old_epoch + 1, epoch)
    else:
        # Some changes raise the epoch of a leader that stays, such as the removal of a replica.
        decide(st, RULE.CTRL_02, old_epoch <= epoch <= old_epoch + 1, field.LEADER_EPOCH, old_epoch, epoch)
    if partition_epoch != UNKNOWN and st[s.PARTITION, s.C_PARTITION_EPOCH] != UNKNOWN:
        expected = st[s.PARTITION, s.C_PARTITION_EPOCH] + 1
        as_expected(st, RULE.CTRL_02, field.PARTITION_EPOCH, expected, partition_epoch)
    if epoch != old_epoch:
        if leader >= 0:
            election(st, leader, epoch, old_isr, clean)
        # Whoever was elected may not have been in the ISR.
        elif leader == UNKNOWN and clean != 1:
            st[s.PARTITION, s.UNCLEAN] = epoch
        # Leaderless although a member of the ISR is live: it should have been elected.
        elif leader == -1 and UNKNOWN not in (isr, live):
            decide(st, RULE.CTRL_01, isr & live == 0, field.ELECTED, isr & live, 0)
    elif isr != UNKNOWN and old_isr != UNKNOWN:
        isr_grown(st, leader, old_isr, isr, live)


def check_leader_and_isr(st: s.State, leader: int, isr: int, live: int) -> None:
    """Check CTRL-01 and CTRL-04: a leader is a live member of the ISR; only its last member may be fenced."""
    if leader >= 0 and isr != UNKNOWN:
        decide(st, RULE.CTRL_01, isr >> leader & 1 == 1, field.ISR, isr | 1 << leader, isr)
    unfenced = not_fenced(st, live)
    # No broker is known to be fenced: nothing to compare with.
    if live == UNKNOWN and unfenced == (1 << st[s.OPTION, s.BROKERS]) - 1:
        return
    if leader >= 0:
        decide(st, RULE.CTRL_01, unfenced >> leader & 1 == 1, field.LIVE, unfenced | 1 << leader, unfenced)
    if isr != UNKNOWN:
        alone = size_of(isr, st[s.OPTION, s.BROKERS]) == 1
        decide(st, RULE.CTRL_04, alone or isr & ~unfenced == 0, field.ISR, isr & unfenced, isr)


def isr_not_empty(st: s.State, isr: int) -> None:
    """Check CTRL-05: the last member stays in the ISR."""
    if isr == UNKNOWN:
        undecided(st, RULE.CTRL_05, 1 << field.ISR)
    else:
        decide(st, RULE.CTRL_05, isr != 0, field.ISR, st[s.PARTITION, s.C_ISR], isr)


def election(st: s.State, leader: int, epoch: int, old_isr: int, clean: int) -> None:
    """Check CTRL-01: the leader of a clean election was in the ISR, or eligible; note an unclean one.

    `old_isr` is the ISR before the change; `clean` is what the event says: 1, 0 or UNKNOWN.
    """
    candidates = old_isr
    # With ELR the last member may leave the ISR in the change that elects another: who was eligible decides then.
    # One bit is set in a mask m above 0 if m & (m - 1) is 0.
    last_member_left = (
        st[s.OPTION, s.ELR] == 1 and old_isr > 0 and old_isr & (old_isr - 1) == 0 and old_isr >> leader & 1 == 0
    )
    if old_isr == 0 or last_member_left:
        candidates = st[s.PARTITION, s.C_ELIGIBLE]
        if clean != 0:
            elects_eligible(st, leader)
    # An election that is not reported as clean counts as unclean where the leader was no candidate, or may have been none:
    # every comparison with earlier terms then ends there (terms.check_claim).
    if old_isr == UNKNOWN or candidates == UNKNOWN:
        undecided(st, RULE.CTRL_01, 1 << field.ISR)
        if clean != 1:
            st[s.PARTITION, s.UNCLEAN] = epoch
    elif candidates >> leader & 1 == 1:
        decide(st, RULE.CTRL_01, True, field.LEADER, leader, leader)
        if clean == 0:
            st[s.PARTITION, s.UNCLEAN] = epoch
    elif clean == 1:
        decide(st, RULE.CTRL_01, False, field.ELECTED, candidates, 1 << leader)
    else:
        st[s.PARTITION, s.UNCLEAN] = epoch
        if clean == UNKNOWN:
            undecided(st, RULE.CTRL_01, 1 << field.CLEAN)


def isr_grown(st: s.State, leader: int, old_isr: int, isr: int, live: int) -> None:
    """Check ISR-04: within a leader epoch the ISR grows only by what the leader proposed, and only by live brokers."""
    # No member was added.
    if isr | old_isr == old_isr:
        return
    if leader == UNKNOWN:
        undecided(st, RULE.ISR_04, 1 << field.LEADER)
        return
    if leader < 0:  # without a leader nobody proposes
        decide(st, RULE.ISR_04, False, field.ISR, old_isr, isr)
        return
    proposed = st[s.REPLICAS + leader, s.PROPOSED]
    if st[s.OPTION, s.REPORTS_ISR_PROPOSALS] == 0 or st[s.PARTITION, s.OBSERVED] >> leader & 1 == 0:
        proposed = UNKNOWN
    same(st, RULE.ISR_04, field.ISR, proposed, isr, 1 << field.ISR)
    # Without a list of live brokers only a member that is known to be fenced can be refused.
    joining = isr & ~old_isr
    unfenced = not_fenced(st, live)
    if live != UNKNOWN or joining & ~unfenced != 0:
        decide(st, RULE.ISR_04, joining & ~unfenced == 0, field.LIVE, unfenced | joining, unfenced)
    if proposed == isr:
        for b in range(st[s.OPTION, s.BROKERS]):
            if joining == 1 << b:
                joins_as_proposed(st, b, st[s.REPLICAS + leader, s.PROPOSED_BROKER_EPOCH])


def alter_partition(st: s.State, leader: int, epoch: int, partition_epoch: int, isr: int, error: int) -> None:
    """Check ISR-04 and CTRL-05: the controller accepts a proposal only from the leader, about the current registration.

    Which brokers are live is reported by the change that follows (isr_grown).
    """
    if error == UNKNOWN or st[s.PARTITION, s.C_EPOCH] == UNKNOWN:
        undecided(st, RULE.ISR_04, 1 << field.ERROR | 1 << field.LEADER_EPOCH)
    elif error == 0:
        isr_not_empty(st, isr)
        if epoch != UNKNOWN:
            as_expected(st, RULE.ISR_04, field.LEADER_EPOCH, st[s.PARTITION, s.C_EPOCH], epoch)
        if leader != UNKNOWN:
            same(st, RULE.ISR_04, field.PEER, st[s.PARTITION, s.C_LEADER], leader, 1 << field.LEADER)
        latest = st[s.PARTITION, s.C_PARTITION_EPOCH]
        if UNKNOWN in (partition_epoch, latest):
            undecided(st, RULE.ISR_04, 1 << field.PARTITION_EPOCH)
        else:
            # The change that accepts the proposal may be reported before this event: then it is one partition epoch further.
            is_applied = partition_epoch == latest - 1 and agree_if_known(isr, st[s.PARTITION, s.C_ISR])
            decide(st, RULE.ISR_04, partition_epoch == latest or is_applied, field.PARTITION_EPOCH, latest, partition_epoch)
