"""Find why a rule about data is broken: what that means in a sentence, and the steps of the trace that led there.

A record is its offset and its epoch. It is lost where a log that held it is known not to hold it any more. `past` is the
History around the failure (explain.causes): what the judge knew before and after each event, None where it did not know. A
row is a row of the columns, a broker a position in the config's nodes.

Rules of this package

1. Every sentence states an event of the trace, or what the judge knew after it (history). What it did not know is called
   unknown or is not mentioned, and where the steps cannot be told apart there is no chain.
2. Causes are in the order of the trace, and each names the row of its event.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tidegauge.conformance.engine.judge import Failure
from tidegauge.conformance.explain.causes import (
    CausalStep,
    History,
    RootCause,
    broker_set,
    explain_contradicted_log,
    explain_high_watermark,
    grouped,
    loses,
    name_of,
    records,
    root_cause,
    whereabouts,
    writes,
)
from tidegauge.impl.rules import NONE

# DATA-01 to DATA-03: the replicas that held a record, the leader that promised it, and the steps that lost it. To promise
# records is to commit them, by a high watermark above them, or to acknowledge them to a producer with acks=all.


ACKS_ALL = -1


class _Claim(NamedTuple):
    """A promise that a leader makes with the event in `row`: of the records from `offset` up to, without, `end`.

    `epoch` is that of the first of them, `term` the leader epoch in which they were promised; None if unknown.
    """

    row: int
    leader: int
    offset: int
    end: int
    epoch: int | None
    term: int | None


class _Loser(NamedTuple):
    """A replica that lacks the records of a claim, which it has to hold from `row` on: it leads, or is in the ISR."""

    row: int
    broker: int
    leads: bool


# ---------------------------------------------------------------------------------------------------------------------
# A record that was promised is gone


def explain_lost_records(past: History, failure: Failure, actual: int, end: int, tp: str) -> RootCause | None:
    """Explain DATA-01 or DATA-03: records up to `end` were promised, and a log is right only up to `actual`.

    `tp` is the partition. None if the history does not have the promise, or the replica that lacks the records.
    """
    pair = next(_pairs(past, failure, actual, end), None)
    if pair is None:
        return None
    claim, loser = pair
    # Whose log lacks the records, who promised them, and whether others are in their place or none.
    name, epoch = name_of(past, loser.broker), past.after(loser.row, loser.broker).epoch
    whose = f"leader of epoch {epoch}" if loser.leads else "a member of the ISR"
    promised = "acknowledged to producers" if failure.rule == "DATA-03" else f"committed by {name_of(past, claim.leader)}"
    if _replaced(past, claim, loser):
        other = past.after(loser.row, loser.broker).epoch_of(claim.offset)
        sentence = (
            f"{records(claim.offset, claim.offset + 1)} of {tp} was {promised}, but {name}, {whose}, has another one there"
            f" (epoch {other} instead of {claim.epoch})"
        )
    else:
        was, is_ = ("were", "are") if claim.end - claim.offset > 1 else ("was", "is")
        sentence = f"{records(claim.offset, claim.end)} of {tp} {was} {promised} and {is_} "
        sentence += f"gone after {name} became {whose}" if loser.leads else f"missing on {name}, {whose}"
    return root_cause(f"{sentence}.", list(_steps(past, claim, loser, failure.rule == "DATA-03")))


def _replaced(past: History, claim: _Claim, loser: _Loser) -> bool:
    """Return whether the log that lacks the record holds another one in its place: it ends after it."""
    return (past.after(loser.row, loser.broker).leo or 0) > claim.offset


def _pairs(past: History, failure: Failure, actual: int, end: int) -> Iterator[tuple[_Claim, _Loser]]:
    """Yield each promise of records up to `end` with a replica that breaks it, the nearest to the failure first.

    The replica's log is right only up to `actual`.
    """
    at = failure.row
    broker = past.broker(at)
    if broker is None:
        return
    event = past.event(at).event
    # The rules fail at either end of the story: where a replica that lacks the record begins to lead (or is observed), and
    # then the promise lies before; or where a deposed leader promises, and then the replica was elected before.
    #
    #     n1 commits 5 ---- n2, without 5, leads      fails at BecomeLeader: look back for the claim
    #     n2, without 5, leads ---- n1 commits 5      fails at n1's event:   look back for the election
    if event in ("BecomeLeader", "Observe"):
        loser = _Loser(at, broker, leads=event == "BecomeLeader")
        for row in reversed(past.upto(at - 1)):
            yield from _if_broken(past, _claim(past, row, failure.rule, actual, end), loser)
        return
    for row in reversed(past.upto(at)):
        elected = past.broker(row)
        if elected is not None and elected != broker and past.elects(row, elected):
            yield from _if_broken(past, _claim(past, at, failure.rule, actual, end), _Loser(row, elected, leads=True))


def _if_broken(past: History, claim: _Claim | None, loser: _Loser) -> Iterator[tuple[_Claim, _Loser]]:
    """Yield the pair if the promise, if any, binds the replica, and the replica is known to break it; else nothing."""
    if claim is None:
        return
    replica = past.after(loser.row, loser.broker)
    # A promise binds a member of the ISR, and a leader of a later epoch. One of the same or an earlier epoch was elected
    # before the promise.
    binds = not loser.leads or (claim.term is not None and replica.epoch is not None and claim.term < replica.epoch)
    if binds and replica.holds(claim.offset, claim.epoch) is False:
        yield claim, loser


def _claim(past: History, row: int, rule: str, actual: int, end: int) -> _Claim | None:
    """Return the promise that a leader makes with the event in `row`: of the records from `actual` up to `end`.

    For DATA-03 it is an acknowledgement, for DATA-01 a high watermark. None if the event makes no such promise.
    """
    leader = past.broker(row)
    if leader is None:
        return None
    after, fields = past.after(row, leader), past.event(row).fields
    # The first promised offset, the epoch of its record, None if it is not reported, and the epoch of the promise.
    offset, epoch, leader_epoch = actual, None, after.epoch
    if rule == "DATA-03":
        acknowledged = past.event(row).event == "ProduceAck" and fields.get("acks") == ACKS_ALL
        if not acknowledged or fields.get("rec_end") != end or fields.get("error", NONE) != NONE:
            return None
        # Only the records of this request are acknowledged; without its first offset, the last of them at least.
        base = fields.get("rec_base")
        offset = end - 1 if base is None else max(actual, base)
        epoch = fields.get("rec_epoch", _appended_in(past, row, leader, offset))
        # A leader may have lost its role, or lead a later epoch, by the time of its answer.
        leader_epoch = leader_epoch if epoch is None else epoch
    # A high watermark is a claim where it is raised to `end`, or taken over by a new leader.
    elif (
        not past.leads(row, leader)
        or after.hw != end
        or (past.before(row, leader).hw == end and past.before(row, leader).epoch == after.epoch)
    ):
        return None
    return _Claim(row, leader, offset, end, after.epoch_of(offset) if epoch is None else epoch, leader_epoch)


def _appended_in(past: History, row: int, leader: int, offset: int) -> int | None:
    """Return the leader epoch in which a broker last appended a record at `offset`, up to `row`; None if unknown."""

    def appends(at: int) -> bool:
        """Return whether this leader appended the record at `offset` with the event in row `at`."""
        event = past.event(at)
        base, end = (event.fields.get(name) for name in ("rec_base", "rec_end"))
        is_append = event.event == "LeaderAppend" and past.broker(at) == leader
        return is_append and isinstance(base, int) and isinstance(end, int) and base <= offset < end

    append = past.last(past.upto(row), appends)
    return None if append is None else past.after(append, leader).epoch_of(offset)


def _steps(past: History, claim: _Claim, loser: _Loser, acknowledged: bool) -> Iterator[CausalStep]:
    """Yield the story of the first record of a claim, as far as it is known.

    It is written, committed and, for DATA-03, acknowledged; logs lose it, brokers that hold it go down; a replica without
    it leads or is in the ISR; at last logs that still held it lose it.
    """
    offset, epoch, leader = claim.offset, claim.epoch, claim.leader
    end = max(claim.row, loser.row)  # where the rule fails
    written = past.got(past.upto(claim.row), leader, offset, epoch)
    if written is not None:
        yield CausalStep(writes(past, written, leader, offset, epoch), written)
    committed = past.last(past.upto(claim.row), lambda row: _commits(past, row, leader, offset))
    if committed is not None:
        high = past.after(committed, leader).hw
        yield CausalStep(
            f"{name_of(past, leader)}, leader of epoch {past.after(committed, leader).epoch}, raised its high watermark to "
            f"{grouped(high)}: {whereabouts(past, committed, offset, epoch)}.",
            committed,
        )
    if acknowledged:
        # If not said already, where it was committed.
        where = "" if committed is not None else f": {whereabouts(past, claim.row, offset, epoch)}"
        yield CausalStep(f"{name_of(past, leader)} acknowledged it to a producer with acks=all{where}.", claim.row)
    begin = written if written is not None else past.first
    for row, broker in past.losses(range(begin, end), offset, epoch):
        yield CausalStep(loses(past, row, broker, offset), row)
    # Of each broker that holds it and was down, the last time that it went down.
    for broker, holds in past.holders(loser.row, offset, epoch).items():
        if holds and past.after(loser.row, broker).up is False:
            down = next((row for row in reversed(range(begin, loser.row)) if past.goes_down(row, broker)), None)
            if down is not None:
                verb = "crashed" if past.event(down).event == "Crash" else "stopped"
                yield CausalStep(f"{name_of(past, broker)}, which holds it, {verb}.", down)
    if _replaced(past, claim, loser):
        other = past.after(loser.row, loser.broker).epoch_of(offset)
        got = past.got(past.upto(loser.row), loser.broker, offset, other)
        if got is not None:
            yield CausalStep(writes(past, got, loser.broker, offset, other), got)
    yield from _elected(past, loser, offset)
    # After the failure: the last copies go.
    for row, broker in past.losses(range(end + 1, past.rows.stop), offset, epoch):
        yield CausalStep(loses(past, row, broker, offset), row)


def _commits(past: History, row: int, leader: int, offset: int) -> bool:
    """Return whether the event in `row` commits the record at `offset`: the leader's high watermark passes it."""
    old_hw, new_hw = past.before(row, leader).hw, past.after(row, leader).hw
    return past.leads(row, leader) and new_hw is not None and new_hw > offset and old_hw is not None and old_hw <= offset


def _elected(past: History, loser: _Loser, offset: int) -> Iterator[CausalStep]:
    """Yield the election, or else the ISR, by which the replica without the record at `offset` has to hold it."""
    after, name = past.after(loser.row, loser.broker), name_of(past, loser.broker)
    node = past.config.nodes[loser.broker]
    # A member of the ISR: there is no election to show.
    if not loser.leads:
        isr = past.snapshots[loser.row - past.first + 1].isr  # as the controller has registered it after the event
        member = "" if isr is None else f", a member of the ISR {broker_set(past, isr)}"
        yield CausalStep(f"{name}{member}, is found with log end {grouped(after.leo)}.", loser.row)
        return
    elections = (row for row in past.upto(loser.row) if _elects(past, row, node, after.epoch))
    election = next(elections, None)
    if election is not None:
        fields = past.event(election).fields
        kind = {True: " cleanly", False: " uncleanly", None: ""}[fields.get("clean")]
        isr = fields.get("isr")
        isr_text = "" if isr is None else f", with the ISR {{{', '.join(f'n{node_id}' for node_id in isr)}}}"
        yield CausalStep(f"The controller elected {name} for epoch {after.epoch}{kind}{isr_text}.", election)
    is_shorter = after.leo is not None and after.leo <= offset
    log_text = f"its log ends at {grouped(after.leo)}" if is_shorter else "it has another record there"
    yield CausalStep(f"{name} became leader of epoch {after.epoch}: {log_text}.", loser.row)


def _elects(past: History, row: int, node: int, epoch: int | None) -> bool:
    """Return whether the controller makes a node leader of an epoch with the event in `row`, and not an ISR change in it."""
    event, epoch_before = past.event(row), past.snapshots[row - past.first].leader_epoch  # as registered before the event
    registers = event.event == "ChangePartition" and event.fields.get("leader") == node
    return registers and event.fields.get("leader_epoch") == epoch and epoch_before is not None and epoch_before != epoch


# ---------------------------------------------------------------------------------------------------------------------
# Two logs differ where both promise


def explain_differing_logs(past: History, row: int, offset: int, end: int, tp: str) -> RootCause | None:
    """Explain DATA-02: after the event in `row` two logs differ at `offset`, and both replicas promise records up to `end`.

    `tp` is the partition. None if the history does not show which two.
    """
    pairs = [
        (broker, other)
        for broker in past.brokers()
        for other in past.brokers()
        if broker < other and _disagree(past, row, broker, other, offset, end)
    ]
    if not pairs:
        return None
    causes, copies = [], []
    # Of each of the two: how it got its record, and how its high watermark came to promise it.
    for broker in pairs[0]:
        epoch = past.after(row, broker).epoch_of(offset)
        copies.append(f"{name_of(past, broker)} (epoch {epoch})")
        got = past.got(past.upto(row), broker, offset, epoch)
        if got is not None:
            causes.append(CausalStep(writes(past, got, broker, offset, epoch), got))
        promised = next((at for at in reversed(past.upto(row)) if _passes(past, at, broker, offset)), None)
        if promised is not None:
            high = past.after(promised, broker).hw
            causes.append(
                CausalStep(
                    f"{name_of(past, broker)} took the high watermark {grouped(high)}: it calls it committed.", promised
                )
            )
    sentence = (
        f"The record at offset {offset:,} of {tp} is not the same on {' and '.join(copies)}, and both call it committed."
    )
    return root_cause(sentence, causes)


def _disagree(past: History, row: int, broker_a: int, broker_b: int, offset: int, end: int) -> bool:
    """Return whether both replicas promise records up to `end` and are known to hold different ones at `offset`."""
    a, b = past.after(row, broker_a), past.after(row, broker_b)
    # Both promise the records below the lower one of their high watermarks.
    if a.hw is None or b.hw is None or min(a.hw, b.hw) != end:
        return False
    return None not in (a.epoch_of(offset), b.epoch_of(offset)) and a.epoch_of(offset) != b.epoch_of(offset)


def _passes(past: History, row: int, broker: int, offset: int) -> bool:
    """Return whether a replica's high watermark passes `offset` with the event in `row`; an unknown one may be below it."""
    old_hw, new_hw = past.before(row, broker).hw, past.after(row, broker).hw
    return new_hw is not None and new_hw > offset and (old_hw is None or old_hw <= offset)


__all__ = ["CausalStep", "RootCause", "find_root_cause", "has_root_cause"]

DATA = ("DATA-", "HW-", "LOG-")
"""Rules about data, by the beginning of their ids."""


def has_root_cause(rule: str) -> bool:
    """Return whether this package looks for the causes of a rule's failures."""
    return rule.startswith(DATA)


def find_root_cause(past: History, failure: Failure, tp: str) -> RootCause | None:
    """Return what a failure means for the partition `tp`, and its causes; None where the trace does not show enough."""
    expected, actual = failure.expected, failure.actual
    if expected is None or actual is None:
        return None
    # The rules about promised records expect a log to be right up to the end of the promise, and see where it goes wrong.
    if failure.rule in ("DATA-01", "DATA-03"):
        return explain_lost_records(past, failure, actual, expected, tp)
    if failure.rule == "DATA-02":
        return explain_differing_logs(past, failure.row, actual, expected, tp)
    broker = past.broker(failure.row)
    # An event of the controller has no log and no high watermark that could be wrong.
    if broker is None:
        return None
    if failure.rule.startswith("HW-"):
        return explain_high_watermark(past, failure, broker, expected, actual)
    return explain_contradicted_log(past, failure, broker, expected, actual)
