# ruff: noqa: ARG001 - a wrong rule is often one that does not look at an argument
"""Implementations that are wrong on purpose: one decision of impl.rules replaced by a wrong one.

Rules of this file

1. A fault is data: `Setup(rules=fault.rules)`, or `explore(bounds, profile, fault.rules)`. Nothing is patched.
2. Each resembles a bug that was shipped, or a slip one makes when writing the rule; `resembles` names it.
3. `breaks` is the invariant that a search within `bounds` finds violated first. None: no invariant fails there, because
   another rule heals it, or because it only stops progress; a judge of single steps sees it. Both are tested.
4. A wrong rule has the signature of the right one, and calls it wherever only part of the decision is wrong.
"""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from impl import rules
from impl.cluster import Bounds
from impl.errors import UsageError
from impl.profiles import Rules
from impl.rules import Ints


class Fault(NamedTuple):
    """One wrong rule."""

    name: str
    says: str
    resembles: str
    rule: str
    rules: Rules
    breaks: str | None
    bounds: Bounds


def _no_divergence_check(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    return rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, rules.UNDEFINED)


def _divergence_by_epoch_only(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    if decision == rules.DIVERGING and epoch == last_fetched_epoch and fetch_offset <= log_end:
        return rules.READ, rules.UNDEFINED, rules.UNDEFINED
    return decision, epoch, end


def _diverging_end_one_high(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, end + 1 if decision == rules.DIVERGING else end


def _diverging_end_one_low(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, max(log_start, end - 1) if decision == rules.DIVERGING else end


def _answer_of_any_epoch(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    return rules.accepts_fetch_response(entry_offset, entry_epoch, ready, request_offset, request_epoch, False)


def _any_answer(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    return ready


def _never_fenced(requested: int, local: int) -> int:
    return rules.NONE


def _older_epochs_pass(requested: int, local: int) -> int:
    return rules.NONE if requested < local else rules.check_leader_epoch(requested, local)


def _cut_at_the_leaders_end(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    return 5, min(leader_end, log_end), True


def _cut_at_own_end(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    row, offset, completed = rules.truncation_target(epochs, starts, log_end, fetch_offset, leader_epoch, leader_end)
    return (row, min(offset + 1, log_end), completed) if row == 5 else (row, offset, completed)


def _hw_survives_truncation(hw: int, target: int) -> int:
    return hw


def _own_log_end(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return log_end


def _hw_may_fall(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return rules.lowest_counted(log_end, leos, counted)


def _majority(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    ends = sorted([log_end, *leos], reverse=True)
    return max(hw, ends[len(ends) // 2 - (len(ends) + 1) % 2])


def _only_caught_up_count(in_maximal_isr: bool, caught_up: bool, eligible: bool) -> bool:
    return caught_up and eligible


def _not_clamped(leader_hw: int, log_start: int, log_end: int) -> int:
    return leader_hw


def _follower_takes_its_log_end(leader_hw: int, log_start: int, log_end: int) -> int:
    return log_end


def _joins_at_hw(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= hw


def _joins_at_epoch_start(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= epoch_start


def _joins_below_hw(leo: int, hw: int, epoch_start: int) -> bool:
    return leo + 1 >= hw and leo + 1 >= epoch_start


def _entry_at_the_cut_stays(starts: Ints, end: int) -> int:
    return rules.count_at_most(starts, end)


def _assign_never_evicts(epochs: Ints, starts: Ints, epoch: int, start: int) -> int:
    if rules.assign_keeps(epochs, starts, epoch, start) == rules.UNDEFINED:
        return rules.UNDEFINED
    return len(epochs)


SMALL = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCHS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)

_ALL = (
    Fault(
        name="no-divergence-check",
        says="a leader reads whatever offset is asked",
        resembles="KIP-101 scenario 2, KAFKA-6361",
        rule="fetch_decision",
        rules=Rules(fetch_decision=_no_divergence_check),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="divergence-by-epoch-only",
        says="the end offset of the epoch is not compared",
        resembles="KAFKA-6361",
        rule="fetch_decision",
        rules=Rules(fetch_decision=_divergence_by_epoch_only),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="diverging-end-one-high",
        says="the diverging end offset is one too high",
        resembles="KAFKA-7415",
        rule="fetch_decision",
        rules=Rules(fetch_decision=_diverging_end_one_high),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="diverging-end-one-low",
        says="the diverging end offset is one too low",
        resembles="KAFKA-7897",
        rule="fetch_decision",
        rules=Rules(fetch_decision=_diverging_end_one_low),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="answer-of-any-epoch",
        says="an answer requested in another epoch is taken over",
        resembles="KAFKA-18991",
        rule="accepts_fetch_response",
        rules=Rules(accepts_fetch_response=_answer_of_any_epoch),
        breaks="IsrCompleteness",
        bounds=EPOCHS,
    ),
    Fault(
        name="any-answer",
        says="neither offset nor epoch of an answer is compared",
        resembles="KAFKA-13207",
        rule="accepts_fetch_response",
        rules=Rules(accepts_fetch_response=_any_answer),
        breaks="IsrCompleteness",
        bounds=EPOCHS,
    ),
    Fault(
        name="never-fenced",
        says="a leader answers requests of any epoch",
        resembles="KAFKA-7395 (KIP-320)",
        rule="check_leader_epoch",
        rules=Rules(check_leader_epoch=_never_fenced),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="older-epochs-pass",
        says="a leader answers requests of older epochs",
        resembles="KAFKA-9338",
        rule="check_leader_epoch",
        rules=Rules(check_leader_epoch=_older_epochs_pass),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="cut-at-the-leaders-end",
        says="a follower does not look up its own end of the epoch",
        resembles="KAFKA-6361 (KIP-279)",
        rule="truncation_target",
        rules=Rules(truncation_target=_cut_at_the_leaders_end),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="cut-one-high",
        says="a follower keeps one record too many",
        resembles="KAFKA-6361",
        rule="truncation_target",
        rules=Rules(truncation_target=_cut_at_own_end),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="hw-survives-truncation",
        says="a cut leaves the high watermark where it was",
        resembles="KAFKA-9491",
        rule="high_watermark_after_truncation",
        rules=Rules(high_watermark_after_truncation=_hw_survives_truncation),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="hw-is-own-log-end",
        says="the leader waits for nobody",
        resembles="KAFKA-13141",
        rule="leader_high_watermark",
        rules=Rules(leader_high_watermark=_own_log_end),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="hw-may-fall",
        says="the leader's high watermark follows the lowest member down",
        resembles="KAFKA-2143",
        rule="leader_high_watermark",
        rules=Rules(leader_high_watermark=_hw_may_fall),
        breaks="HwWithinLog",
        bounds=SMALL,
    ),
    Fault(
        name="hw-by-majority",
        says="the leader commits what more than half of the replicas hold",
        resembles="KAFKA-16530",
        rule="leader_high_watermark",
        rules=Rules(leader_high_watermark=_majority),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="lagging-members-do-not-count",
        says="an ISR member that lags no longer holds the high watermark back",
        resembles="KAFKA-13091",
        rule="counts_for_high_watermark",
        rules=Rules(counts_for_high_watermark=_only_caught_up_count),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="hw-not-clamped",
        says="a follower's high watermark points beyond its log",
        resembles="KAFKA-3978",
        rule="follower_high_watermark",
        rules=Rules(follower_high_watermark=_not_clamped),
        breaks="HwWithinLog",
        bounds=SMALL,
    ),
    Fault(
        name="follower-exposes-its-log",
        says="a follower takes its log end for the high watermark",
        resembles="KAFKA-14704",
        rule="follower_high_watermark",
        rules=Rules(follower_high_watermark=_follower_takes_its_log_end),
        breaks="NoFalseExposure",
        bounds=SMALL,
    ),
    Fault(
        name="joins-at-hw",
        says="a follower joins the ISR below the leader's epoch start",
        resembles="KAFKA-7128",
        rule="may_join_isr",
        rules=Rules(may_join_isr=_joins_at_hw),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="joins-at-epoch-start",
        says="a follower joins the ISR below the high watermark",
        resembles="KAFKA-7152",
        rule="may_join_isr",
        rules=Rules(may_join_isr=_joins_at_epoch_start),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="joins-one-low",
        says="a follower joins the ISR one record early",
        resembles="KAFKA-15221",
        rule="may_join_isr",
        rules=Rules(may_join_isr=_joins_below_hw),
        breaks="IsrCompleteness",
        bounds=SMALL,
    ),
    Fault(
        name="entry-at-the-cut-stays",
        says="a cache entry at the cut is kept",
        resembles="KAFKA-10706",
        rule="truncate_from_end_keeps",
        rules=Rules(truncate_from_end_keeps=_entry_at_the_cut_stays),
        breaks=None,
        bounds=SMALL,
    ),
    Fault(
        name="assign-never-evicts",
        says="a new cache entry leaves conflicting ones in place",
        resembles="KAFKA-7415",
        rule="assign_keeps",
        rules=Rules(assign_keeps=_assign_never_evicts),
        breaks="EpochCacheWellFormed",
        bounds=SMALL,
    ),
)

FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _ALL})


def fault_named(name: str) -> Fault:
    """The fault called `name`. Raises UsageError with the names there are."""
    if name not in FAULTS:
        raise UsageError(f"fault: expected one of {', '.join(FAULTS)}; seen {name!r}; choose one of those")
    return FAULTS[name]
