# ruff: noqa: ARG001 - a wrong rule is often one that does not look at an argument
"""Wrong rules of fetches, fencing, truncation and epoch caches."""

from functools import partial

from tidegauge.impl import rules
from tidegauge.impl.explored.fault import EPOCH_BOUNDS, LOG_START_BOUNDS, Fault, RevealingModel, instead_of
from tidegauge.impl.rules import Ints

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
    return 5, min(leader_end, log_end), True


@_fetch_fault("truncation_target", says="a follower keeps one record too many", resembles="KAFKA-6361", breaks=None)
def _truncates_one_high(
    epochs: Ints, starts: Ints, log_end: int, fetch_offset: int, leader_epoch: int, leader_end: int
) -> tuple[int, int, bool]:
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
    if rules.assign_keeps(epochs, starts, epoch, start) == rules.UNDEFINED:
        return rules.UNDEFINED
    return len(epochs)


FETCH_FAULTS = tuple(_FETCH_FAULTS)
