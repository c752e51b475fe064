# ruff: noqa: ARG001 - a wrong rule is often one that does not look at an argument
"""Wrong rules of high watermarks and of who joins the ISR."""

from collections.abc import Sequence
from functools import partial

from tidegauge.impl import rules
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.cluster.transitions import ANYBODY
from tidegauge.impl.explored.fault import Fault, RevealingModel, instead_of
from tidegauge.impl.rules import Ints

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
    says="the leader commits what more than half of the replicas hold",
    resembles="KAFKA-16530",
    breaks="IsrCompleteness",
)
def _hw_by_majority(hw: int, log_end: int, leos: Ints, counted: Sequence[bool], too_few: bool) -> int:
    ends = sorted([log_end, *leos], reverse=True)
    return max(hw, ends[len(ends) // 2 - (len(ends) + 1) % 2])


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
    return leo + 1 >= hw and leo + 1 >= epoch_start


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
