"""Assignments, eligible leader replicas, fencing, and replicas that lose their log: what is free, and what breaks a rule."""

from dataclasses import replace

import pytest

from tests.conformance.hand import (
    COPIED,
    OPENING,
    TWO,
    append,
    broken,
    change,
    follow,
    judged,
    lead,
    registered,
    reported,
    send,
    serve,
    start,
    without,
)
from tidegauge.traces.schema import Event

IN_SYNC = replace(TWO, min_isr=2)
ELR = replace(IN_SYNC, profile="elr")
REAL = replace(IN_SYNC, lag_rule=True)

ALONE = (
    start(1),
    change(1, 0, (1,), replicas=(1,), partition_epoch=0),
    lead(1, 0, (1,), partition_epoch=0),
    append(1, 0, 0, 0, 1),
)
"""min.insync.replicas is two, but there is one replica: its high watermark follows its log end."""

ELIGIBLE = (*OPENING, change(1, 0, (1, 2), elr=()), change(1, 0, (1,), elr=(2,)))
"""Broker 2 leaves an ISR that needs two members."""

DELETED = (
    *COPIED,
    change(1, 1, (1,), replicas=(1,), partition_epoch=1),
    lead(1, 1, (1,), leo=1, hw_before=1, hw=1, partition_epoch=1),
    reported(2, "DeleteReplica"),
    change(1, 1, (1,), replicas=(1, 2), adding=(2,), partition_epoch=2),
    start(2),
    follow(2, 1, 1),
)
"""Broker 2 is no replica any more, deletes its log, and is one again."""


def test_min_isr_counts_no_more_replicas_than_there_are() -> None:
    """HW-09 with one replica and with two; where the leader has not read of the second one yet, nobody can say."""
    assert broken(ALONE, IN_SYNC) == set()
    assert "HW-09" in broken((ALONE[0], change(1, 0, (1,), replicas=(1, 2)), *ALONE[2:]), IN_SYNC)
    grown = (*ALONE[:3], change(1, 0, (1,), replicas=(1, 2), adding=(2,), partition_epoch=1), ALONE[3])
    assert broken(grown, IN_SYNC) == set()
    assert broken(grown, REAL) == set()
    assert judged(grown, REAL).tallies["HW-09"].undecided == 1
    read = (*grown[:-1], lead(1, 0, (1,), partition_epoch=1), ALONE[3])
    assert "HW-09" in broken(read, IN_SYNC)
    assert "HW-09" in broken(read, REAL)


def test_an_append_that_waits_for_all_needs_no_more_than_there_are() -> None:
    """APPEND-03 counts as HW-09 does: one replica is enough where there is one, until the leader has read of the second."""

    def waits(events: tuple[Event, ...]) -> tuple[Event, ...]:
        return (*events[:-1], replace(events[-1], fields={**events[-1].fields, "acks": -1}))

    assert broken(waits(ALONE), IN_SYNC) == set()
    grown = (*ALONE[:3], change(1, 0, (1,), replicas=(1, 2), adding=(2,), partition_epoch=1), ALONE[3])
    assert broken(waits(grown), IN_SYNC) == set()
    assert "APPEND-03" in broken(waits((*grown[:-1], lead(1, 0, (1,), partition_epoch=1), ALONE[3])), IN_SYNC)


def test_a_replica_that_was_deleted_begins_a_life_of_its_own() -> None:
    """Without the event it would have lost its log, and started twice."""
    assert broken(DELETED, TWO) == set()
    kept = tuple(event for event in DELETED if event.event != "DeleteReplica")
    assert broken(kept, TWO) == {"LIFE-01", "LOAD-01"}


def test_a_leader_refuses_who_is_no_replica_as_far_as_it_knows() -> None:
    """FENCE-01: UNKNOWN_LEADER_EPOCH although the epochs are equal, until it has read the assignment."""
    refused = serve(1, 2, 1, 0, -1, res_hw=1, hw=1, leo=1, error=75)
    assert broken((*DELETED, send(2, 1, 1, 0, -1), refused), TWO) == set()
    read = (*DELETED, lead(1, 1, (1,), leo=1, hw_before=1, hw=1, partition_epoch=2), send(2, 1, 1, 0, -1), refused)
    assert broken(read, TWO) == {"FENCE-01"}


def test_who_is_eligible_is_a_replica_outside_the_isr() -> None:
    """CTRL-06, for each half of the sentence; an assignment nobody reports is all nodes."""
    assert broken(ELIGIBLE, ELR) == set()
    assert broken((*OPENING, change(1, 0, (1, 2), elr=(2,))), ELR) == {"CTRL-06", "CTRL-07"}
    assert broken((*OPENING, change(1, 0, (1,), replicas=(1,), elr=(2,))), ELR) == {"CTRL-06", "CTRL-07"}
    unknown = (*OPENING, change(1, 0, (1,), elr=(2,)))
    moved = replace(ELR, extra={"reassigned": True})
    assert judged(unknown, moved).tallies["CTRL-06"].undecided == 1
    assert broken(unknown, moved) == set()


def test_nobody_becomes_eligible_but_by_leaving_the_isr() -> None:
    """CTRL-07: not out of nowhere, not by being added again, and no longer than the ISR is too small."""
    three = replace(ELR, nodes=(1, 2, 3))
    assert broken((*ELIGIBLE, change(1, 0, (1,), elr=(2, 3))), three) == {"CTRL-07"}
    ghost = (
        *ELIGIBLE[:-1],
        change(1, 0, (1,), replicas=(1,), elr=()),
        change(1, 0, (1,), replicas=(1, 2), adding=(2,), elr=(2,)),
    )
    assert broken(ghost, ELR) == {"CTRL-07"}
    large = replace(TWO, profile="elr")
    assert broken(ELIGIBLE, large) == {"CTRL-07"}
    assert broken(ELIGIBLE, replace(large, lag_rule=True)) == set()  # min.insync.replicas may have changed


def test_a_missed_change_decides_nothing_about_the_next() -> None:
    """Whoever is eligible now may have joined and left the ISR in between."""
    first = change(1, 0, (1, 2), elr=(), partition_epoch=1)
    later = change(1, 0, (1,), elr=(3,), partition_epoch=4)
    seen = judged((*OPENING, first, later), replace(ELR, nodes=(1, 2, 3)))
    assert seen.tallies["CTRL-07"].failed == 0


def elected(*between: Event) -> tuple[Event, ...]:
    """Broker 1 dies alone in the ISR; broker 2 is elected from the ELR."""
    return (*ELIGIBLE, *between, reported(1, "Crash"), change(2, 1, (2,), (2,), elr=(1,)))


def test_an_eligible_leader_has_kept_its_log() -> None:
    """CTRL-07: it started cleanly, its disk is there, and it was not removed in between."""
    gone = reported(2, "Crash")
    assert broken(elected(), ELR) == set()
    assert broken(elected(gone, start(2)), ELR) == set()
    assert broken(elected(gone, start(2, clean=False)), ELR) == {"CTRL-07"}
    assert broken(elected(gone, reported(2, "LoseDisk"), start(2)), ELR) == {"CTRL-07"}
    assert broken(elected(gone, start(2, clean=False), registered(2, 5, clean=False)), ELR) == {"CTRL-07"}
    unclean = (
        *elected(gone, start(2, clean=False))[:-1],
        replace(elected()[-1], fields={**elected()[-1].fields, "clean": False}),
    )
    assert broken(unclean, ELR) == set()  # the last known leader, who may lack records


def test_one_that_lost_its_log_and_fetched_it_again_may_lead() -> None:
    """Whoever joins the ISR holds what is committed."""
    back = (
        *ELIGIBLE,
        lead(1, 0, (1,)),
        reported(2, "Crash"),
        start(2, clean=False),
        change(1, 0, (1,), elr=()),
        registered(2, 5, clean=False),
        follow(2, 1, 0),
        send(2, 1, 0, 0, -1),
        reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0),
        change(1, 0, (1, 2), elr=()),
        change(1, 0, (1,), elr=(2,)),
        change(2, 1, (2,), (2,), elr=(1,)),
    )
    assert broken(back, ELR) == set()


def test_a_proposal_is_of_the_incarnation_that_is_registered() -> None:
    """CTRL-09: KAFKA-15221, the replica that fetched is not the one that runs now."""
    alone = (*OPENING, change(1, 0, (1,)), lead(1, 0, (1,)), registered(2, 5), send(2, 1, 0, 0, -1))

    def joined(**epoch: int) -> set[str]:
        proposal = reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=0, **epoch)
        return broken((*alone, proposal, change(1, 0, (1, 2))), TWO)

    assert joined(broker_epoch=5) == set()
    assert joined() == set()
    assert joined(broker_epoch=4) == {"CTRL-09"}
    assert joined(broker_epoch=6) == set()  # of a registration that was not reported


def test_nobody_leads_or_joins_while_fenced() -> None:
    """CTRL-01, CTRL-04 and ISR-04 by events alone; who reports no unfencing shows nothing by fencing."""
    opening = without(OPENING, "live")
    away = (*opening, *without((change(2, 1, (2,)),), "live"), reported(100, "FenceBroker", peer=1))
    leads = without((change(1, 2, (2, 1)),), "live")
    assert broken((*away, *leads), TWO) == {"CTRL-01", "CTRL-04"}
    assert broken((*away, reported(100, "UnfenceBroker", peer=1), *leads), TWO) == {"CTRL-01"}  # it was not in the ISR
    assert "CTRL-04" not in broken((*away, registered(1, 9), *leads), TWO)
    partly = replace(TWO, extra={"reports": ["ChangePartition", "FenceBroker"]})
    assert "CTRL-04" not in broken((*away, *leads), partly)
    joins = (*away, *without((change(2, 1, (1, 2)),), "live"))
    assert "ISR-04" in broken(joins, TWO)


def test_a_lost_disk_breaks_no_rule_by_itself() -> None:
    """A log directory that comes back empty: the rules go on, and what was acknowledged is elsewhere."""
    lost = (*COPIED, reported(2, "Crash"), reported(2, "LoseDisk"), start(2))
    assert broken(lost, TWO) == set()
    assert broken((*lost[:-2], start(2)), TWO) == {"LOAD-01"}


def test_what_follows_from_a_lost_disk_counts() -> None:
    """KAFKA-14139: the last member of the ISR comes back empty, and leads."""
    acked = (*COPIED, reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=1, error=0))
    emptied = (
        *acked,
        reported(2, "Crash"),
        change(1, 0, (1,), (1,)),
        reported(1, "Crash"),
        change(None, 1, (1,), ()),
        reported(1, "LoseDisk"),
        start(1),
        change(1, 2, (1,), (1,)),
        lead(1, 2, (1,)),
    )
    assert broken(emptied, TWO) == {"DATA-01", "DATA-03"}


def test_what_is_not_reported_is_free() -> None:
    """Any of the new fields and events left out of the right traces above."""
    for events, config in ((ALONE, REAL), (ELIGIBLE, ELR), (elected(), ELR), (DELETED, TWO)):
        for name in ("elr", "adding", "removing", "partition_epoch", "live", "isr", "clean"):
            assert broken(without(events, name), config) == set(), (name, events)
    assert broken(without(DELETED, "replicas"), TWO) == set()
    moved = replace(REAL, extra={"reassigned": True})
    assert broken(without(ALONE, "replicas"), moved) == set()
    assert broken(without(ALONE, "replicas"), IN_SYNC) == {"HW-03", "HW-09"}  # there, the nodes are the replicas


# ---------------------------------------------------------------------------------------------------------------------
# min.insync.replicas changes


def config(node: int, min_isr: int | None = None) -> Event:
    event = "SetMinIsr" if node == 100 else "ReadConfig"
    return reported(node, event, **({} if min_isr is None else {"min_isr": min_isr}))


def test_the_elr_is_judged_by_the_min_isr_that_the_controller_has_written() -> None:
    """CTRL-07: one member is enough once min.insync.replicas is one, and not any more once it is two."""
    low = replace(ELR, min_isr=1)
    kept = (*OPENING, change(1, 0, (1, 2), elr=()), change(1, 0, (1,), elr=(2,)))
    assert broken(kept, low) == {"CTRL-07"}
    assert broken((*OPENING, config(100, 2), *kept[len(OPENING) :]), low) == set()
    assert broken((*ELIGIBLE, config(100, 1), change(1, 1, (1,), elr=())), ELR) == set()
    assert broken((*ELIGIBLE, config(100, 1), change(1, 1, (1,), elr=(2,))), ELR) == {"CTRL-07"}


def test_a_real_cluster_is_judged_by_min_isr_from_the_change_on() -> None:
    """Before it, the lines may have begun behind another one."""
    real = replace(ELR, lag_rule=True)
    kept = change(1, 1, (1,), elr=(2,))
    assert broken((*ELIGIBLE, kept), replace(real, min_isr=1)) == set()
    assert broken((*ELIGIBLE, config(100, 1), kept), real) == {"CTRL-07"}
    assert broken((*ELIGIBLE, config(100), kept), replace(real, min_isr=1)) == set()


def test_a_high_watermark_waits_for_the_min_isr_that_its_leader_has_read() -> None:
    """HW-09, APPEND-03: raised, the leader may go by either until it says that it has read the new one."""
    shrunk = (*OPENING, change(1, 0, (1,)), lead(1, 0, (1,)))
    low = replace(TWO, min_isr=1)
    grows, stays = append(1, 0, 0, 0, 1), append(1, 0, 0)
    grows = replace(grows, fields={**grows.fields, "acks": -1})
    assert broken((*shrunk, grows), low) == set()
    assert broken((*shrunk, stays), low) == {"HW-03"}
    for moved in (grows, stays):
        assert broken((*shrunk, config(100, 2), moved), low) == set()
    read = (*shrunk, config(100, 2), config(1, 2))
    assert broken((*read, stays), low) == set()
    assert broken((*read, grows), low) == {"HW-03", "HW-09", "APPEND-03"}
    undecided = judged((*shrunk, config(100, 2), grows), low).tallies["APPEND-03"]
    assert (undecided.undecided, undecided.missing) == (1, ("min_isr",))


def test_a_leader_goes_by_the_min_isr_that_it_has_read_whatever_lines_the_controller_lacks() -> None:
    """HW-03 of a leader in an ISR of one, whose high watermark stays: wrong if one is enough, right if two are needed."""
    low, lacks, lost = replace(TWO, min_isr=1), config(100, 2), len(OPENING)
    alone, stays = (change(1, 0, (1,)), lead(1, 0, (1,))), append(1, 0, 0)

    def broken_after(*events: Event) -> set[str]:
        """The line of the controller at `lost` is missing."""
        return broken((*OPENING, lacks, *alone, *events, stays), low, missing=(lost,))

    # Its own lines are there, and show no other value.
    assert broken_after() == broken_after(config(2, 1)) == {"HW-03"}
    # Somebody read another one: the leader may have, too.
    assert broken_after(config(2, 2)) == broken_after(config(1, 2)) == set()
    # Nor is a change forgotten behind missing lines.
    changed = (*OPENING, config(100, 2), config(100, 1), *alone, stays)
    assert broken(changed, low, missing=(lost + 1,)) == set()
    # The leader lacks a line: what it read is known where the controller wrote nothing else.
    read = (*OPENING, config(1, 2), *alone, stays)
    assert broken(read, low, missing=(lost,)) == {"HW-03"}
    assert broken((*OPENING, lacks, config(1, 2), *alone, stays), low, missing=(lost, lost + 1)) == set()


def test_a_fencing_of_nobody_knows_whom_leaves_open_who_may_lead() -> None:
    """CTRL-01, CTRL-09: what was known of each broker is free again; a named one is not."""
    fenced = (*OPENING, reported(100, "FenceBroker", peer=2))
    elected = change(2, 1, (2,))
    without_live = replace(elected, fields={name: value for name, value in elected.fields.items() if name != "live"})
    assert "CTRL-01" in broken((*fenced, without_live), TWO)
    assert "CTRL-01" not in broken((*fenced, reported(100, "UnfenceBroker"), without_live), TWO)
    again = (*OPENING, registered(2, 9), registered(2, 5))
    assert broken(again, TWO) == {"CTRL-09"}
    assert broken((*OPENING, registered(2, 9), reported(100, "RegisterBroker"), registered(2, 5)), TWO) == set()


ELECTED, LEADS = change(2, 3, (1, 2)), lead(2, 3, (1, 2), leo=1)


@pytest.mark.parametrize(
    ("before", "after"),
    [((ELECTED, LEADS), ()), ((ELECTED,), ()), ((LEADS,), (ELECTED,))],
    ids=["led", "elected", "late line"],
)
def test_a_leader_that_is_back_without_its_disk_was_elected_with_it(
    before: tuple[Event, ...], after: tuple[Event, ...]
) -> None:
    """It leads in its epoch, maybe for the first time, until the controller has heard of it; then comes an election without
    its log.
    """
    acked = (*COPIED, reported(1, "ProduceAck", acks=-1, rec_base=0, rec_end=1, error=0))
    elected_before = (change(1, 1, (1, 2)), change(1, 2, (1, 2)))
    emptied = (*acked, *elected_before, *before, reported(2, "Crash"), reported(2, "LoseDisk"), start(2), *after)
    leads_on = (*emptied, lead(2, 3, (1, 2)))
    unregistered = {"CTRL-03"} if after else set()
    assert broken(leads_on, TWO) == unregistered
    elected_again = (*leads_on, change(2, 4, (1, 2)), lead(2, 4, (1, 2)))
    assert broken(elected_again, TWO) == {"DATA-01", "DATA-03"} | unregistered
    # Lines of it that are missing do not make it an election without the log.
    assert broken((*emptied, config(2), lead(2, 3, (1, 2))), TWO, missing=(len(emptied),)) == unregistered
