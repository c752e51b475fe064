"""HW-01 to HW-10, a high watermark that is not where it must be: what its replica knew, and what the others held."""

from collections.abc import Iterator

from tidegauge.conformance.judging.because.causes import (
    CausalStep,
    RootCause,
    broker_set,
    grouped,
    name_of,
    records,
    root_cause,
    shortens,
    whereabouts,
)
from tidegauge.conformance.judging.because.history import History
from tidegauge.conformance.judging.judge import Failure
from tidegauge.impl.rules import NONE, UNDEFINED


def explain_high_watermark(past: History, failure: Failure, broker: int, expected: int, actual: int) -> RootCause | None:
    """Return what the high watermark is, what it may be, and the events that led to it."""
    if failure.compared not in ("hw", "hw_before"):
        return None
    after, row = past.after(failure.row, broker), failure.row
    epoch = "" if after.epoch is None or after.epoch < 0 else f" of epoch {after.epoch}"
    role = {1: f", leader{epoch},", 2: f", follower{epoch},"}.get(after.role or 0, "")
    # The judge expects -1 where the leader has recorded no log end of a member of the ISR: no offset is committed then.
    if expected == UNDEFINED:
        bound = "and has no log end recorded for a replica that counts"
    else:
        bound = (
            f"where the rules allow {expected:,} at most" if actual > expected else f"where the rules ask for {expected:,}"
        )
    says = f"{name_of(past, broker)}{role} has the high watermark {actual:,} {bound}."
    causes = list(_fetches(past, row, broker, failure.rule) if past.leads(row, broker) else _before(past, row, broker))
    # Too low a high watermark promises nothing: only too high a one asks who holds the last record below it.
    if actual > expected and (after.leo is None or actual <= after.leo):
        where = whereabouts(past, row, actual - 1, after.epoch_of(actual - 1))
        causes.append(CausalStep(f"{name_of(past, broker)} took the high watermark {actual:,}: {where}.", row))
    elif actual > expected:
        causes.append(
            CausalStep(
                f"{name_of(past, broker)} took the high watermark {actual:,}; its log ends at {grouped(after.leo)}.", row
            )
        )
    if failure.rule == "HW-09" and after.isr is not None:
        least = f"min.insync.replicas is {_min_isr(past, row, broker)}"
        causes.append(
            CausalStep(f"The ISR that {name_of(past, broker)} goes by is {broker_set(past, after.isr)}; {least}.", row)
        )
    if actual > expected:
        causes += _taken_back(past, row, broker, actual)
    return root_cause(says, causes)


def _min_isr(past: History, row: int, broker: int) -> int:
    """Return the min.insync.replicas that a broker has last read in this stretch, by default the config's."""
    reads = (past.event(at) for at in reversed(past.upto(row)) if past.broker(at) == broker)
    return next(
        (int(e.fields["min_isr"]) for e in reads if e.event == "ReadConfig" and "min_isr" in e.fields), past.config.min_isr
    )


def _fetches(past: History, row: int, leader: int, rule: str) -> Iterator[CausalStep]:
    """Yield the last fetch of each ISR member that the leader counted, and what became of that log since."""
    after = past.after(row, leader)
    # The maximal ISR, which a leader waits for: members, and those it has proposed (Partition#maximalIsr, KIP-497).
    counted = (after.isr or 0) | (after.proposed or 0)
    for broker in past.brokers():
        if broker == leader or not counted >> broker & 1:
            continue
        fetch = next((at for at in reversed(past.upto(row)) if _counts(past, at, leader, broker)), None)
        if fetch is None:
            continue
        fields = past.event(fetch).fields
        epoch = fields.get("req_epoch")
        request = f"offset {fields['req_offset']:,}" + ("" if epoch is None else f" in leader epoch {epoch}")
        yield CausalStep(
            f"The last fetch of {name_of(past, broker)} that {name_of(past, leader)} counted was for {request}.", fetch
        )
        since = range(fetch + 1, row + 1)
        yield from (CausalStep(f"{shortens(past, at, broker)}.", at) for at in since if past.shortens(at, broker))
        if rule == "HW-08":
            yield from _led(past, since, leader)


def _counts(past: History, row: int, leader: int, follower: int) -> bool:
    """Return whether the leader handles a fetch of the follower here, and neither refuses it nor finds it diverging."""
    event = past.event(row)
    fields = event.fields
    if event.event != "HandleFetch" or past.broker(row) != leader or fields.get("peer") != past.config.nodes[follower]:
        return False
    # Only a fetch that is served records a log end: Partition#updateFollowerFetchState comes after both checks.
    served = fields.get("error", NONE) == NONE and fields.get("div_epoch") is None
    return served and fields.get("req_offset") is not None


def _led(past: History, rows: range, leader: int) -> Iterator[CausalStep]:
    """Yield the other brokers that began to lead in `rows`."""
    for row in rows:
        broker = past.broker(row)
        if broker is not None and broker != leader and past.elects(row, broker):
            yield CausalStep(f"{name_of(past, broker)} became leader of epoch {past.after(row, broker).epoch}.", row)


def _before(past: History, row: int, broker: int) -> Iterator[CausalStep]:
    """Yield the high watermark that a follower had, and the one that it was sent."""
    last_change = past.last(past.upto(row - 1), lambda at: past.before(at, broker).hw != past.after(at, broker).hw)
    if last_change is not None and past.after(last_change, broker).hw is not None:
        event = past.event(last_change).event
        yield CausalStep(
            f"{name_of(past, broker)}'s high watermark became {grouped(past.after(last_change, broker).hw)} ({event}).",
            last_change,
        )
    sent = past.event(row).fields.get("res_hw")
    peer = past.event(row).fields.get("peer")
    if sent is not None and peer is not None:
        yield CausalStep(f"The response of n{peer} carried the high watermark {grouped(sent)}.", row)


def _taken_back(past: History, row: int, broker: int, high: int) -> Iterator[CausalStep]:
    """Yield the next truncation of records below the high watermark `high`."""
    for at in range(row + 1, past.rows.stop):
        end, before = past.after(at, broker).leo, past.before(at, broker).leo
        if past.shortens(at, broker) and end is not None and before is not None and end < high:
            gone = records(end, min(high, before))
            yield CausalStep(f"{shortens(past, at, broker)}. {gone} had been below its high watermark.", at)
            return
