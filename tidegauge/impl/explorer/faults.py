# ruff: noqa: ARG001 - a wrong rule is often one that does not look at an argument
"""Faults: implementations that are wrong on purpose, each by one decision of impl.rules.

A wrong rule has the name of its fault, and the arguments and result of the right one, which impl.rules describes. The
decorator above it says which rule it replaces and what is wrong with it (`says`), which bug it resembles, and which
invariant a search finds violated first (`breaks`; None: none within the bounds). What is right of the decision is taken from
the right rule: a wrong one calls it with changed arguments, or changes its result. Log ends and high watermarks are
exclusive offsets.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from tidegauge.impl import rules
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.cluster.transitions import ANYBODY
from tidegauge.impl.profiles import Rules
from tidegauge.impl.rules import Ints
from tidegauge.util.errors import UsageError

# A fault: one decision of impl.rules replaced by a wrong one.
#
# Rules of this part
#
# 1. A fault is data: `Setup(rules=fault.rules)`, or `explore(bounds, profile, fault.rules)`. Nothing is patched.
# 2. Each resembles a bug that was shipped, or a slip one makes when writing the rule; `resembles` names it.
# 3. `breaks` is the invariant that a search within `bounds` finds violated first. None: no invariant fails there, because
#    another rule heals it, or because it only stops progress; a judge of single steps sees it. Both are tested.
# 4. A wrong rule has the signature of the right one, and calls it wherever only part of the decision is wrong. Its row
#    stands above it; its name is the fault's.


class RevealingModel(NamedTuple):
    """Bounds and a generation in which traces of a fault differ from correct ones."""

    bounds: Bounds
    profile: str = "fetch-truncation"


class Fault(NamedTuple):
    """One wrong rule. `shown` is the model that reveals it, where that is not the one that reveals most faults."""

    name: str
    says: str
    resembles: str
    rule: str
    rules: Rules
    breaks: str | None
    bounds: Bounds
    shown: RevealingModel | None = None


SMALL_BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCH_BOUNDS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)
LOG_START_BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=0, max_crashes=0, max_start=1)

RuleT = TypeVar("RuleT", bound=Callable[..., Any])


def instead_of(
    faults: list[Fault],
    rule: str,
    *,
    says: str,
    resembles: str,
    breaks: str | None,
    bounds: Bounds = SMALL_BOUNDS,
    shown: RevealingModel | None = None,
) -> Callable[[RuleT], RuleT]:
    """Return a decorator that appends the decorated wrong rule to `faults`, as a fault in place of the rule called `rule`.

    The fault is named after the function: `_hw_one_high` is hw-one-high. The other arguments are the fields of Fault.
    """

    def register(wrong: RuleT) -> RuleT:
        """Append the fault of a wrong rule, and return the wrong rule unchanged."""
        name = wrong.__name__.strip("_").replace("_", "-")
        faults.append(Fault(name, says, resembles, rule, Rules.with_rule(rule, wrong), breaks, bounds, shown))
        return wrong

    return register


# Wrong rules of fetches, fencing, truncation and epoch caches.


_FETCH_FAULTS: list[Fault] = []
_fetch_fault = partial(instead_of, _FETCH_FAULTS)


@_fetch_fault(
    "fetch_decision",
    says="a leader reads whatever offset is asked",
    resembles="KIP-101 scenario 2, KAFKA-6361",
    breaks="IsrCompleteness",
)
def _no_divergence_check(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    return rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, rules.UNDEFINED)


@_fetch_fault(
    "fetch_decision", says="the end offset of the epoch is not compared", resembles="KAFKA-6361", breaks="IsrCompleteness"
)
def _divergence_by_epoch_only(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    """Decide as the right rule, but read where only the end offset of the epoch says that the logs diverge."""
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    if decision == rules.DIVERGING and epoch == last_fetched_epoch and fetch_offset <= log_end:
        return rules.READ, rules.UNDEFINED, rules.UNDEFINED
    return decision, epoch, end


@_fetch_fault("fetch_decision", says="the diverging end offset is one too high", resembles="KAFKA-7415", breaks=None)
def _diverging_end_one_high(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, end + 1 if decision == rules.DIVERGING else end


@_fetch_fault(
    "fetch_decision", says="the diverging end offset is one too low", resembles="KAFKA-7897", breaks="IsrCompleteness"
)
def _diverging_end_one_low(
    epochs: Ints, starts: Ints, log_start: int, log_end: int, fetch_offset: int, last_fetched_epoch: int
) -> tuple[int, int, int]:
    decision, epoch, end = rules.fetch_decision(epochs, starts, log_start, log_end, fetch_offset, last_fetched_epoch)
    return decision, epoch, max(log_start, end - 1) if decision == rules.DIVERGING else end


@_fetch_fault(
    "accepts_fetch_response",
    says="a response requested in another epoch is taken over",
    resembles="KAFKA-18991",
    breaks="IsrCompleteness",
    bounds=EPOCH_BOUNDS,
)
def _response_of_any_epoch(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    # As a release in which the epoch is not compared.
    return rules.accepts_fetch_response(entry_offset, entry_epoch, ready, request_offset, request_epoch, False)


@_fetch_fault(
    "accepts_fetch_response",
    says="neither offset nor epoch of a response is compared",
    resembles="KAFKA-13207",
    breaks="IsrCompleteness",
    bounds=EPOCH_BOUNDS,
)
def _any_response(
    entry_offset: int, entry_epoch: int, ready: bool, request_offset: int, request_epoch: int, epoch_checked: bool
) -> bool:
    return ready


@_fetch_fault(
    "check_leader_epoch", says="a leader answers requests of any epoch", resembles="KAFKA-7395 (KIP-320)", breaks=None
)
def _never_fenced(requested: int, local: int) -> int:
    return rules.NONE


@_fetch_fault("check_leader_epoch", says="a leader answers requests of older epochs", resembles="KAFKA-9338", breaks=None)
def _older_epochs_pass(requested: int, local: int) -> int:
    return rules.NONE if requested < local else rules.check_leader_epoch(requested, local)


@_fetch_fault(
    "truncation_target",
    says="a follower does not look up its own end of the epoch",
    resembles="KAFKA-6361 (KIP-279)",
    breaks=None,
)
def _truncates_at_the_leaders_end(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    # Case T5, in which both logs have the epoch, without the follower's own end of it; the truncation is completed.
    return 5, min(leader_end, log_end), True


@_fetch_fault("truncation_target", says="a follower keeps one record too many", resembles="KAFKA-6361", breaks=None)
def _truncates_one_high(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
    # Wrong only in case T5, in which both logs have the epoch.
    row, offset, completed = rules.truncation_target(epochs, starts, log_end, fetch_offset, leader_epoch, leader_end)
    return (row, min(offset + 1, log_end), completed) if row == 5 else (row, offset, completed)


@_fetch_fault(
    "out_of_range_reset",
    says="a follower before the leader's log start goes on at the leader's end",
    resembles="a slip: the latest offset taken for the earliest",
    breaks="OnlyDeletedIsGone",
    bounds=LOG_START_BOUNDS,
    shown=RevealingModel(LOG_START_BOUNDS),
)
def _starts_at_the_leaders_end(leader_start: int, leader_end: int, log_end: int) -> tuple[int, int]:
    case, offset = rules.out_of_range_reset(leader_start, leader_end, log_end)
    return (case, leader_end) if case == rules.RESET_TO_LEADER_START else (case, offset)


@_fetch_fault(
    "truncate_from_end_keeps", says="a cache entry at the truncation is kept", resembles="KAFKA-10706", breaks=None
)
def _entry_at_the_truncation_stays(starts: Ints, end: int) -> int:
    return rules.count_at_most(starts, end)


@_fetch_fault(
    "assign_keeps",
    says="a new cache entry leaves conflicting ones in place",
    resembles="KAFKA-7415",
    breaks="EpochCacheWellFormed",
)
def _assign_never_evicts(epochs: Ints, starts: Ints, epoch: int, start: int) -> int:
    # UNDEFINED: the cache has the entry already, and nothing is appended.
    if rules.assign_keeps(epochs, starts, epoch, start) == rules.UNDEFINED:
        return rules.UNDEFINED
    return len(epochs)


FETCH_FAULTS = tuple(_FETCH_FAULTS)


# Wrong rules of high watermarks and of who joins the ISR.


_HW_FAULTS: list[Fault] = []
_hw_fault = partial(instead_of, _HW_FAULTS)

LOST_TAILS = RevealingModel(Bounds(2, 1, 2, 1, loses_tails=True, last_resort=ANYBODY), "elr")
"""A follower truncates below its high watermark only where its leader has lost records that were committed."""


@_hw_fault(
    "high_watermark_after_truncation",
    says="a truncation leaves the high watermark where it was",
    resembles="KAFKA-9491",
    breaks=None,
    shown=LOST_TAILS,
)
def _hw_survives_truncation(hw: int, target: int) -> int:
    return hw


@_hw_fault("leader_high_watermark", says="the leader waits for nobody", resembles="KAFKA-13141", breaks="IsrCompleteness")
def _hw_is_own_log_end(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return log_end


@_hw_fault(
    "leader_high_watermark",
    says="the leader's high watermark follows the lowest member down",
    resembles="KAFKA-2143",
    breaks="HwWithinLog",
)
def _hw_may_fall(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    return rules.lowest_counted(log_end, leos, counted)


@_hw_fault(
    "leader_high_watermark",
    says="the leader commits what at least half of the replicas hold",
    resembles="KAFKA-16530",
    breaks="IsrCompleteness",
)
def _hw_by_majority(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    ends = sorted([log_end, *leos], reverse=True)
    # The highest offset that at least half of the replicas have: of two one, of three two.
    return max(hw, ends[(len(ends) - 1) // 2])


@_hw_fault(
    "counts_for_high_watermark",
    says="an ISR member that lags no longer holds the high watermark back",
    resembles="KAFKA-13091",
    breaks="IsrCompleteness",
)
def _lagging_members_do_not_count(in_maximal_isr: bool, caught_up: bool, eligible: bool) -> bool:
    return caught_up and eligible


@_hw_fault(
    "follower_high_watermark",
    says="a follower's high watermark points beyond its log",
    resembles="KAFKA-3003",
    breaks="HwWithinLog",
)
def _hw_not_clamped(leader_hw: int, log_start: int, log_end: int) -> int:
    return leader_hw


@_hw_fault(
    "follower_high_watermark",
    says="a follower takes its log end for the high watermark",
    resembles="KAFKA-14704",
    breaks="NoFalseExposure",
)
def _follower_exposes_its_log(leader_hw: int, log_start: int, log_end: int) -> int:
    return log_end


@_hw_fault(
    "may_join_isr",
    says="a follower joins the ISR below the leader's epoch start",
    resembles="KAFKA-7128",
    breaks=None,
    shown=RevealingModel(Bounds(2, 1, 1, 1, min_insync_replicas=2)),
)
def _joins_at_hw(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= hw


@_hw_fault(
    "may_join_isr",
    says="a follower joins the ISR below the high watermark",
    resembles="KAFKA-7152",
    breaks="IsrCompleteness",
)
def _joins_at_epoch_start(leo: int, hw: int, epoch_start: int) -> bool:
    return leo >= epoch_start


@_hw_fault(
    "may_join_isr", says="a follower joins the ISR one record early", resembles="KAFKA-15221", breaks="IsrCompleteness"
)
def _joins_one_low(leo: int, hw: int, epoch_start: int) -> bool:
    # rules.may_join_isr with a log end that is one higher.
    return leo + 1 >= hw and leo + 1 >= epoch_start


@_hw_fault(
    "produce_response",
    says="a broker that was deposed acknowledges the records of producers that wait at it",
    resembles="a slip: who led when the records came is taken for who leads",
    breaks=None,
    shown=RevealingModel(Bounds(2, 1, 1, 0, max_waiting=1)),
)
def _deposed_and_acknowledges(hw: int, required: int, leads: bool, too_few: bool) -> tuple[bool, int]:
    # As if it still led. A follower knows no ISR, so it is not asked whether that is too small either.
    return rules.produce_response(hw, required, True, too_few and leads)


@_hw_fault(
    "produce_response",
    says="a leader acknowledges what it alone has appended",
    resembles="a slip: acks=all taken for acks=1",
    breaks=None,
    shown=RevealingModel(Bounds(2, 1, 0, 0, max_waiting=1)),
)
def _acknowledges_at_once(hw: int, required: int, leads: bool, too_few: bool) -> tuple[bool, int]:
    # As if the high watermark had passed the records.
    return rules.produce_response(max(hw, required), required, leads, too_few)


@_hw_fault(
    "proposal_after",
    says="a leader goes on waiting for a proposal that the controller has refused",
    resembles="a slip: INELIGIBLE_REPLICA taken for an error that metadata settles",
    breaks=None,
)
def _refused_and_still_pending(error: int) -> int:
    after = rules.proposal_after(error)
    return rules.WAITS_FOR_METADATA if after == rules.GIVEN_UP else after


@_hw_fault(
    "leader_high_watermark",
    says="the leader commits one record more than everybody has",
    resembles="KAFKA-12619",
    breaks="IsrCompleteness",
)
def _hw_one_high(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    right = rules.leader_high_watermark(hw, log_end, leos, counted, too_few)
    # With too few members in sync the high watermark stays, as in the right rule.
    return right if too_few else min(right + 1, log_end)


@_hw_fault(
    "follower_high_watermark",
    says="a high watermark outside the log becomes undefined",
    resembles="KAFKA-3978",
    breaks="HwWithinLog",
)
def _hw_outside_the_log_is_undefined(leader_hw: int, log_start: int, log_end: int) -> int:
    return leader_hw if log_start <= leader_hw <= log_end else rules.UNDEFINED


HIGH_WATERMARK_FAULTS = tuple(_HW_FAULTS)


# All faults by name.


FAULTS: Mapping[str, Fault] = MappingProxyType({fault.name: fault for fault in (*FETCH_FAULTS, *HIGH_WATERMARK_FAULTS)})


def fault_named(name: str) -> Fault:
    """Return the fault called `name`. Raises UsageError with the names there are."""
    if name not in FAULTS:
        raise UsageError(f"fault: expected one of {', '.join(FAULTS)}; seen {name!r}; choose one of those")
    return FAULTS[name]


__all__ = ["FAULTS", "Fault", "fault_named"]
