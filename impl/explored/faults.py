# ruff: noqa: ARG001 - a wrong rule is often one that does not look at an argument
"""Implementations that are wrong on purpose: one decision of impl.rules replaced by a wrong one.

Rules of this file

1. A fault is data: `Setup(rules=fault.rules)`, or `explore(bounds, profile, fault.rules)`. Nothing is patched.
2. Each resembles a bug that was shipped, or a slip one makes when writing the rule; `resembles` names it.
3. `breaks` is the invariant that a search within `bounds` finds violated first. None: no invariant fails there, because
   another rule heals it, or because it only stops progress; a judge of single steps sees it. Both are tested.
4. A wrong rule has the signature of the right one, and calls it wherever only part of the decision is wrong. Its row stands
   above it; its name is the fault's.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tidegauge.impl import rules
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.errors import UsageError
from tidegauge.impl.profiles import Rules
from tidegauge.impl.rules import Ints


class Fault(NamedTuple):
    """One wrong rule."""

    name: str
    says: str
    resembles: str
    rule: str
    rules: Rules
    breaks: str | None
    bounds: Bounds


SMALL = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCHS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)
STARTS = Bounds(brokers=2, max_log=2, max_epoch=0, max_crashes=0, max_start=1)

_ALL: list[Fault] = []

Rule = TypeVar("Rule", bound=Callable[..., Any])


def _instead_of(
    rule: str, *, says: str, resembles: str, breaks: str | None, bounds: Bounds = SMALL
) -> Callable[[Rule], Rule]:
    """Make a fault of the wrong rule below: `_cut_one_high` is truncated-one-high."""

    def made(wrong: Rule) -> Rule:
        name = wrong.__name__.strip("_").replace("_", "-")
        _ALL.append(Fault(name, says, resembles, rule, Rules.with_rule(rule, wrong), breaks, bounds))
        return wrong

    return made


@_instead_of(
    "fetch_decision",
    says="a leader reads whatever offset is asked",
    resembles="KIP-101 scenario 2, KAFKA-6361",
    breaks="IsrCompleteness",
)
def _no_divergence_check(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    return rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, rules.UNDEFINED)


@_instead_of(
    "fetch_decision", says="the end offset of the epoch is not compared", resembles="KAFKA-6361", breaks="IsrCompleteness"
)
def _divergence_by_epoch_only(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    if decision == rules.DIVERGING and epoch == last_fetched_epoch and fetch_offset <= log_end:
        return rules.READ, rules.UNDEFINED, rules.UNDEFINED
    return decision, epoch, end


@_instead_of("fetch_decision", says="the diverging end offset is one too high", resembles="KAFKA-7415", breaks=None)
def _diverging_end_one_high(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, end + 1 if decision == rules.DIVERGING else end


@_instead_of(
    "fetch_decision", says="the diverging end offset is one too low", resembles="KAFKA-7897", breaks="IsrCompleteness"
)
def _diverging_end_one_low(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, max(log_start, end - 1) if decision == rules.DIVERGING else end


@_instead_of(
    "accepts_fetch_response",
    says="a response requested in another epoch is taken over",
    resembles="KAFKA-18991",
    breaks="IsrCompleteness",
    bounds=EPOCHS,
)
def _response_of_any_epoch(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    return rules.accepts_fetch_response(entry_offset, entry_epoch, ready, request_offset, request_epoch, False)


@_instead_of(
    "accepts_fetch_response",
    says="neither offset nor epoch of a response is compared",
    resembles="KAFKA-13207",
    breaks="IsrCompleteness",
    bounds=EPOCHS,
)
def _any_response(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    return ready


@_instead_of(
    "check_leader_epoch", says="a leader answers requests of any epoch", resembles="KAFKA-7395 (KIP-320)", breaks=None
)
def _never_fenced(requested: int, local: int) -> int:
    return rules.NONE


@_instead_of("check_leader_epoch", says="a leader answers requests of older epochs", resembles="KAFKA-9338", breaks=None)
def _older_epochs_pass(requested: int, local: int) -> int:
    return rules.NONE if requested < local else rules.check_leader_epoch(requested, local)


@_instead_of(
    "truncation_target",
    says="a follower does not look up its own end of the epoch",
    resembles="KAFKA-6361 (KIP-279)",
    breaks=None,
)
def _truncates_at_the_leaders_end(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    return 5, min(leader_end, log_end), True


@_instead_of("truncation_target", says="a follower keeps one record too many", resembles="KAFKA-6361", breaks=None)
def _truncates_one_high(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    row, offset, completed = rules.truncation_target(epochs, starts, log_end, fetch_offset, leader_epoch, leader_end)
    return (row, min(offset + 1, log_end), completed) if row == 5 else (row, offset, completed)


@_instead_of(
    "high_watermark_after_truncation",
    says="a truncation leaves the high watermark where it was",
    resembles="KAFKA-9491",
    breaks=None,
)
def _hw_survives_truncation(hw: int, target: int) -> int:
    return hw


@_instead_of("leader_high_watermark", says="the leader waits for nobody", resembles="KAFKA-13141", breaks="IsrCompleteness")
def _hw_is_own_log_end(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return log_end


@_instead_of(
    "leader_high_watermark",
    says="the leader's high watermark follows the lowest member down",
    resembles="KAFKA-2143",
    breaks="HwWithinLog",
)
def _hw_may_fall(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return rules.lowest_counted(log_end, leos, counted)


@_instead_of(
    "leader_high_watermark",
    says="the leader commits what more than half of the replicas hold",
    resembles="KAFKA-16530",
    breaks="IsrCompleteness",
)
def _hw_by_majority(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    ends = sorted([log_end, *leos], reverse=True)
    return max(hw, ends[len(ends) // 2 - (len(ends) + 1) % 2])


@_instead_of(
    "counts_for_high_watermark",
    says="an ISR member that lags no longer holds the high watermark back",
    resembles="KAFKA-13091",
    breaks="IsrCompleteness",
)
def _lagging_members_do_not_count(in_maximal_isr: bool, caught_up: bool, eligible: bool) -> bool:
    return caught_up and eligible


@_instead_of(
    "follower_high_watermark",
    says="a follower's high watermark points beyond its log",
    resembles="KAFKA-3978",
    breaks="HwWithinLog",
)
def _hw_not_clamped(leader_hw: int, log_start: int, log_end: int) -> int:
    return leader_hw


@_instead_of(
    "follower_high_watermark",
    says="a follower takes its log end for the high watermark",
    resembles="KAFKA-14704",
    breaks="NoFalseExposure",
)
def _follower_exposes_its_log(leader_hw: int, log_start: int, log_end: int) -> int:
    return log_end


@_instead_of(
    "out_of_range_reset",
    says="a follower before the leader's log start goes on at the leader's end",
    resembles="a slip: the latest offset taken for the earliest",
    breaks="OnlyDeletedIsGone",
    bounds=STARTS,
)
def _starts_at_the_leaders_end(leader_start: int, leader_end: int, log_end: int) -> tuple[int, int]:
    case, offset = rules.out_of_range_reset(leader_start, leader_end, log_end)
    return (case, leader_end) if case == rules.RESET_TO_LEADER_START else (case, offset)


@_instead_of(
    "may_join_isr", says="a follower joins the ISR below the leader's epoch start", resembles="KAFKA-7128", breaks=None
)
def _joins_at_hw(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= hw


@_instead_of(
    "may_join_isr",
    says="a follower joins the ISR below the high watermark",
    resembles="KAFKA-7152",
    breaks="IsrCompleteness",
)
def _joins_at_epoch_start(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= epoch_start


@_instead_of(
    "may_join_isr", says="a follower joins the ISR one record early", resembles="KAFKA-15221", breaks="IsrCompleteness"
)
def _joins_one_low(leo: int, hw: int, epoch_start: int) -> bool:
    return leo + 1 >= hw and leo + 1 >= epoch_start


@_instead_of(
    "proposal_after",
    says="a leader goes on waiting for a proposal that the controller has refused",
    resembles="a slip: INELIGIBLE_REPLICA taken for an error that metadata settles",
    breaks=None,
)
def _refused_and_still_pending(error: int) -> int:
    after = rules.proposal_after(error)
    return rules.WAITS_FOR_METADATA if after == rules.GIVEN_UP else after


@_instead_of("truncate_from_end_keeps", says="a cache entry at the truncation is kept", resembles="KAFKA-10706", breaks=None)
def _entry_at_the_truncation_stays(starts: Ints, end: int) -> int:
    return rules.count_at_most(starts, end)


@_instead_of(
    "assign_keeps",
    says="a new cache entry leaves conflicting ones in place",
    resembles="KAFKA-7415",
    breaks="EpochCacheWellFormed",
)
def _assign_never_evicts(epochs: Ints, starts: Ints, epoch: int, start: int) -> int:
    if rules.assign_keeps(epochs, starts, epoch, start) == rules.UNDEFINED:
        return rules.UNDEFINED
    return len(epochs)


FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in _ALL})


def fault_named(name: str) -> Fault:
    """The fault called `name`. Raises UsageError with the names there are."""
    if name not in FAULTS:
        raise UsageError(f"fault: expected one of {', '.join(FAULTS)}; seen {name!r}; choose one of those")
    return FAULTS[name]
