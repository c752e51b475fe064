"""A failure in a sentence and its causes, and the phrases that they share."""

from dataclasses import dataclass

from tidegauge.conformance.judging.because.history import History

TRUNCATES = ("HandleDivergingResponse", "HandleEpochResponse", "HandleOutOfRange", "TruncateToHighWatermark")


@dataclass(frozen=True)
class CausalStep:
    """A step that led to a failure, in words, and the row at which it happened."""

    says: str
    row: int


@dataclass(frozen=True)
class RootCause:
    """What is broken, in a sentence, and the steps that led there in the order of the trace."""

    says: str
    causes: tuple[CausalStep, ...] = ()


EMPTIES = {"LoseDisk": "lost the disk with its log", "DeleteReplica": "deleted its log as a replica no more"}


def root_cause(says: str, causes: list[CausalStep]) -> RootCause:
    """Return a sentence with its causes, sorted into the order of the trace."""
    return RootCause(says, tuple(sorted(causes, key=lambda cause: cause.row)))


def writes(past: History, row: int, broker: int, offset: int, epoch: int | None) -> str:
    """Describe how a log came to hold the record at `offset`."""
    # Any other event (a start, an observed log) only shows that the record is there, not when it was written.
    verb = {"LeaderAppend": "appended", "HandleFetchResponse": "copied"}.get(_event(past, row), "has")
    return f"{name_of(past, broker)} {verb} offset {offset:,}" + ("." if epoch is None else f" in epoch {epoch}.")


def loses(past: History, row: int, broker: int, offset: int) -> str:
    """Describe how a log lost the record at `offset`."""
    after = past.after(row, broker).leo
    if after is not None and after <= offset:
        return f"{shortens(past, row, broker)}: offset {offset:,} is gone there."
    return f"{name_of(past, broker)} has another record at offset {offset:,} than before ({_event(past, row)})."


def shortens(past: History, row: int, broker: int) -> str:
    """Describe how a log became shorter: it was truncated, loaded so, or seen so with the next event that has its end."""
    before, after = past.before(row, broker).leo, past.after(row, broker).leo
    event = _event(past, row)
    if event in TRUNCATES:
        return f"{name_of(past, broker)} truncated its log from {grouped(before)} to {grouped(after)} ({event})"
    if event in EMPTIES:
        return f"{name_of(past, broker)} {EMPTIES[event]}, which ended at {grouped(before)}"
    verb = {"Start": "came back with", "Observe": "is found with"}.get(event, f"has with {event}")
    return f"{name_of(past, broker)} {verb} the log end {grouped(after)} instead of {grouped(before)}"


def whereabouts(past: History, row: int, offset: int, epoch: int | None) -> str:
    """List the brokers that hold a record after an event, those that do not, and those of which nobody knows."""
    holders = past.holders(row, offset, epoch)
    groups = (
        f"{word} {', '.join(name_of(past, broker) for broker, holds in holders.items() if holds is value)}"
        for word, value in (("on", True), ("not on", False), ("unknown on", None))
        if value in holders.values()
    )
    return f"offset {offset:,} was then {'; '.join(groups)}"


def name_of(past: History, broker: int) -> str:
    """Name a broker by its node id."""
    return f"n{past.config.nodes[broker]}"


def broker_set(past: History, mask: int) -> str:
    """Name the brokers of a mask."""
    return "{" + ", ".join(name_of(past, broker) for broker in past.brokers() if mask >> broker & 1) + "}"


def records(offset: int, end: int) -> str:
    """Name the records from `offset` up to `end`, at the beginning of a sentence."""
    return f"The record at offset {offset:,}" if end - offset <= 1 else f"The records at offsets {offset:,} to {end - 1:,}"


def grouped(offset: int | None) -> str:
    """Format an offset; None is unknown."""
    return "unknown" if offset is None else f"{offset:,}"


def _event(past: History, row: int) -> str:
    return past.event(row).event
