"""The bounded lemmas once more, as contracts for CrossHair: another symbolic execution, another reading of the rules.

Rules of this file

1. Nothing of `spec.proofs` is used: what a log, a common prefix or a premise is, is written down a second time, in plain
   Python. A mistake in `symbolic.py`, `logs.py` or a lemma there does not repeat itself here.
2. A lemma's arguments are ints, its `pre` says what is assumed, its `post` is that it returns True. Caches have two
   entries, a follower's three in the loops.
"""

from collections.abc import Sequence

from tidegauge.impl.rules import (
    DIVERGING,
    FENCED_LEADER_EPOCH,
    NONE,
    OUT_OF_RANGE,
    READ,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
    assign_keeps,
    check_leader_epoch,
    end_offset_for,
    fetch_decision,
    follower_high_watermark,
    latest_epoch,
    leader_high_watermark,
    may_join_isr,
    truncate_from_end_keeps,
    truncation_target,
)

Cache = tuple[Sequence[int], Sequence[int], int]
"""Epochs, starts, log end; the log starts at offset 0."""


def epoch_at(log: Cache, offset: int) -> int:
    """Epoch of the record at `offset`."""
    epoch = UNDEFINED
    for e, s in zip(log[0], log[1], strict=True):
        if s <= offset:
            epoch = e
    return epoch


def agree_below(a: Cache, b: Cache, end: int) -> bool:
    """Both logs hold the same epochs in [0, end): epochs change only where an entry starts."""
    return all(o >= end or epoch_at(a, o) == epoch_at(b, o) for o in [0, *a[1], *b[1]])


def common_end(a: Cache, b: Cache) -> int:
    """End of the longest common prefix."""
    end = min(a[2], b[2])
    for o in [0, *a[1], *b[1]]:
        if o < end and epoch_at(a, o) != epoch_at(b, o):
            end = o
    return end


def one_past(a: Cache, b: Cache) -> bool:
    """An epoch in both caches has one start, and the logs agree below it."""
    for ea, sa in zip(a[0], a[1], strict=True):
        for eb, sb in zip(b[0], b[1], strict=True):
            if ea == eb and not (sa == sb and agree_below(a, b, sa)):
                return False
    return True


def truncated(log: Cache, target: int) -> Cache:
    """The log after a truncation."""
    end = min(target, log[2])
    keeps = truncate_from_end_keeps(log[1], end)
    return log[0][:keeps], log[1][:keeps], end


def response_is_where_later_epochs_begin(e0: int, e1: int, s1: int, end: int, asked: int, offset: int) -> bool:
    """A record lies below the answered end exactly when its epoch is not above the asked one.

    pre: 0 <= e0 < e1 and 0 < s1 <= end and 0 <= offset < end and 0 <= asked <= e1
    post: _
    """
    log = ((e0, e1), (0, s1), end)
    _, answered = end_offset_for(*log, asked)
    return (offset < answered) == (epoch_at(log, offset) <= asked)


def later_epochs_get_no_earlier_responses(e0: int, e1: int, s1: int, end: int, asked: int, later: int) -> bool:
    """Answers are monotone in the asked epoch.

    pre: 0 <= e0 < e1 and 0 < s1 <= end and 0 <= asked <= later <= e1
    post: _
    """
    log = ((e0, e1), (0, s1), end)
    epoch, answered = end_offset_for(*log, asked)
    later_epoch, later_answered = end_offset_for(*log, later)
    return epoch <= later_epoch and answered <= later_answered


def assign_keeps_the_cache_increasing(e0: int, e1: int, s1: int, epoch: int, start: int) -> bool:
    """After an entry is assigned, epochs and starts still strictly increase, and the entry is the last.

    pre: 0 <= e0 < e1 and 0 < s1 and 0 <= epoch and 0 <= start
    post: _
    """
    epochs, starts = (e0, e1), (0, s1)
    keeps = assign_keeps(epochs, starts, epoch, start)
    if keeps == UNDEFINED:
        return epoch == e1 and start >= s1
    left_epochs, left_starts = epochs[:keeps], starts[:keeps]
    return all(e < epoch for e in left_epochs) and all(s < start for s in left_starts)


def the_truncation_is_inside_the_log(e0: int, e1: int, s1: int, end: int, epoch: int, answered: int) -> bool:
    """A truncation offset is never above the log end, whatever the leader answers.

    pre: 0 <= e0 < e1 and 0 < s1 <= end and epoch >= 0 and answered >= 0
    post: _
    """
    row, target, done = truncation_target((e0, e1), (0, s1), end, end, epoch, answered)
    return target <= end and done == (row != 4)


def one_epoch_round(l0: int, l1: int, t1: int, leader_end: int, f0: int, f1: int, s1: int, follower_end: int) -> bool:
    """One OffsetsForLeaderEpoch round truncates nothing common, is done exactly at the common prefix, else takes an entry
    away.

    pre: 0 <= l0 < l1 and 0 < t1 <= leader_end and 0 <= f0 < f1 and 0 < s1 <= follower_end and f1 <= l1
    pre: one_past(((l0, l1), (0, t1), leader_end), ((f0, f1), (0, s1), follower_end))
    post: _
    """
    leader, follower = ((l0, l1), (0, t1), leader_end), ((f0, f1), (0, s1), follower_end)
    common = common_end(leader, follower)
    epoch, end = end_offset_for(*leader, latest_epoch(follower[0]))
    _, target, done = truncation_target(*follower, follower_end, epoch, end)
    after = truncated(follower, target)
    if done:
        return target == common or (common == 0 and target <= 0)
    return (target >= common or common == 0) and 0 < len(after[0]) < 2 and one_past(leader, after)


def one_fetch(l0: int, l1: int, t1: int, leader_end: int, f0: int, f1: int, s1: int, follower_end: int) -> bool:
    """One fetch reads exactly at the common prefix, or truncates nothing common and takes something away.

    pre: 0 <= l0 < l1 and 0 < t1 <= leader_end and 0 <= f0 < f1 and 0 < s1 <= follower_end and f1 <= l1
    pre: one_past(((l0, l1), (0, t1), leader_end), ((f0, f1), (0, s1), follower_end))
    post: _
    """
    leader, follower = ((l0, l1), (0, t1), leader_end), ((f0, f1), (0, s1), follower_end)
    common = common_end(leader, follower)
    decision, epoch, end = fetch_decision(leader[0], leader[1], 0, leader_end, follower_end, f1)
    if decision == READ:
        return follower_end == common
    if decision == OUT_OF_RANGE:
        return False
    _, target, _ = truncation_target(*follower, follower_end, epoch, end)
    after = truncated(follower, target)
    less = len(after[0]) < 2 or after[2] < follower_end
    return decision == DIVERGING and (target >= common or common == 0) and less and one_past(leader, after)


def epoch_rounds_end_at_the_common_prefix(
    l0: int, l1: int, t1: int, leader_end: int, f0: int, f1: int, f2: int, s1: int, s2: int, follower_end: int
) -> bool:
    """Rounds of OffsetsForLeaderEpoch end at the common prefix, in one round per follower entry at most.

    pre: 0 <= l0 < l1 and 0 < t1 <= leader_end and 0 <= f0 < f1 < f2 <= l1 and 0 < s1 < s2 <= follower_end
    pre: one_past(((l0, l1), (0, t1), leader_end), ((f0, f1, f2), (0, s1, s2), follower_end))
    post: _
    """
    leader: Cache = ((l0, l1), (0, t1), leader_end)
    now: Cache = ((f0, f1, f2), (0, s1, s2), follower_end)
    common = common_end(leader, now)
    for _ in range(3):
        epoch, end = end_offset_for(*leader, latest_epoch(now[0]))
        _, target, done = truncation_target(*now, now[2], epoch, end)
        now = truncated(now, target)
        if done:
            return now[2] == common
    return False


def the_leader_waits_for_everybody_counted(hw: int, end: int, a: int, b: int, count_a: bool, count_b: bool) -> bool:
    """The leader's high watermark never goes down, and never above a counted log end unless it was there.

    pre: 0 <= hw <= end and a >= -1 and b >= -1
    post: _
    """
    raised = leader_high_watermark(hw, end, (a, b), (count_a, count_b), False)
    lowest = min([end] + [leo for leo, counts in ((a, count_a), (b, count_b)) if counts])
    return raised == max(hw, lowest)


def the_follower_stays_inside_its_log(leader_hw: int, start: int, end: int) -> bool:
    """The follower's high watermark lies in its log, and is the leader's where it can be.

    pre: 0 <= start <= end
    post: _
    """
    hw = follower_high_watermark(leader_hw, start, end)
    return start <= hw <= end and (hw == leader_hw or not start <= leader_hw <= end)


def only_the_same_epoch_is_served(requested: int, local: int) -> bool:
    """A request that names an epoch is served in that epoch only; an older one is fenced, a newer one unknown.

    pre: requested >= -1 and local >= 0
    post: _
    """
    error = check_leader_epoch(requested, local)
    if requested in (UNDEFINED, local):
        return error == NONE
    return error == (FENCED_LEADER_EPOCH if requested < local else UNKNOWN_LEADER_EPOCH)


def who_joins_has_both(leo: int, hw: int, epoch_start: int) -> bool:
    """Who joins the ISR has reached the high watermark and the epoch start.

    post: _
    """
    return may_join_isr(leo, hw, epoch_start) == (min(leo - hw, leo - epoch_start) >= 0)


def fetches_end_at_the_common_prefix(
    l0: int, l1: int, t1: int, leader_end: int, f0: int, f1: int, f2: int, s1: int, s2: int, follower_end: int
) -> bool:
    """Truncation on fetch ends at the common prefix, in two fetches more than follower entries at most.

    pre: 0 <= l0 < l1 and 0 < t1 <= leader_end and 0 <= f0 < f1 < f2 <= l1 and 0 < s1 < s2 <= follower_end
    pre: one_past(((l0, l1), (0, t1), leader_end), ((f0, f1, f2), (0, s1, s2), follower_end))
    post: _
    """
    leader: Cache = ((l0, l1), (0, t1), leader_end)
    now: Cache = ((f0, f1, f2), (0, s1, s2), follower_end)
    common = common_end(leader, now)
    for _ in range(5):
        decision, epoch, end = fetch_decision(leader[0], leader[1], 0, leader_end, now[2], latest_epoch(now[0]))
        if decision == READ:
            return now[2] == common
        if decision == OUT_OF_RANGE:
            return common == 0
        _, target, _ = truncation_target(*now, now[2], epoch, end)
        now = truncated(now, target)
    return False


LEMMAS = (
    response_is_where_later_epochs_begin,
    later_epochs_get_no_earlier_responses,
    assign_keeps_the_cache_increasing,
    the_truncation_is_inside_the_log,
    one_epoch_round,
    one_fetch,
    epoch_rounds_end_at_the_common_prefix,
    fetches_end_at_the_common_prefix,
    the_leader_waits_for_everybody_counted,
    the_follower_stays_inside_its_log,
    only_the_same_epoch_is_served,
    who_joins_has_both,
)
