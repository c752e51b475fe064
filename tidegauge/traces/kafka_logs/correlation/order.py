"""Find an order of the steps of one replica within one process that threads, locks and values allow, if there is any.

In: the LoggedSteps that the lines of one broker became (and requests of its request log). Out: those that are events, in an
order, with their `place` in it. A line is where its thread got to write it, not where the thing happened, up to 50 ms later.
So each step has an interval of times:

    thread A    line ....... step ... line        it happened after the line before it of its thread was in the file, and
                 ^begins              ^ends       before its own line was stamped (a role: before the thread's next line)

    request     since .. completed                the request log counts back from a line that was written after the response
                                                  was sent; `since` is told by the line before it (request_log.py)

Terms of this file

- A *row* is a step in numbers, a `Replica` what the rows so far have left of the replica. To *take* a row is to put it next
  in the order; it *fits*, or breaks a rule of the protocol, or names a value that the replica has not.
- A leader *counts* a fetch when it records its fetch offset as the log end of that follower.
- The *cause* of a raise of the high watermark is the row that allowed it. A raise is *due* when the rule leaves no choice.
- A row that only *observes* leaves the replica as it is: it shows what that has. (It ends the time in which a raise may
  still be credited to a row before it.)
- A broker's *column* is its position among the brokers that the steps name; sets of brokers are bit masks of columns.

Rules of this file

1. Step a comes before step b if a ended before b began, if one thread did both in that order, or if b is of the next request
   of the fetcher of a. What is left open is searched: an order in which each step finds what it says (high watermark before
   a raise, log end before an append, recorded log ends of a skipped update, high watermark of a response) and in which the
   rules of the leader hold. Wing and Gong's search as in Porcupine: depth first, nearest to the stamps first, never twice
   from the same state.
2. What only observes (a response, a read, an acknowledgement, a refusal) changes nothing: it is taken at its stamp, or
   before a step that would hide what it shows. No order is lost by that.
3. Kafka reads, counts, raises and answers in four steps; the trace has one event for count and raise. A raise is credited to
   the step that allowed it, whichever thread printed it, and nothing that shows the old value may come between the two.

       thread A   counts b2 at 7                                    prints `Recorded replica 2 .. 7`
       thread B                   appends 7..8, raises 6 to 7       prints `High watermark updated from 6 to 7`

   Such an append finds the old value, and its event shows the new one.

4. If no order fits, the step that blocks the others is given up: it stays at its stamp, and the judge sees it there. The
   search is bounded: for one step that is given up it takes back at most MOST_TAKEN_BACK steps, out of the last ROWS_BACK.
   Each time that is not enough, the limit is halved: stamps in whole seconds leave every step of a second open. After
   MOST_IN_ALL it is halved for each step that is given up: two brokers' lines that are taken for one broker's have no order.

| step | one or two | when, and under which lock | Kafka |
|---|---|---|---|
| append | append, then raise | log's lock; the raise in leaderIsrUpdateLock (read) | Partition#appendRecordsToLeader |
| fetch | read, count, expand, raise | four steps of one thread | Partition#fetchRecords, #updateFollowerFetchState |
| shrink | one | leaderIsrUpdateLock (write): no append between its values and the proposal | Partition#maybeShrinkIsr |
| role | one, about its line; raises to what is counted | leaderIsrUpdateLock (write) | Partition#makeLeader, #makeFollower |
| ISR response | one, after its line | leaderIsrUpdateLock (write) | Partition#handleAlterPartitionUpdate |
| response | read once more if it waited | any time until it is complete | DelayedFetch#onComplete |
"""

from bisect import bisect_left, bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import accumulate
from operator import attrgetter
from typing import NamedTuple

from tidegauge.impl.errors import OF_ANOTHER_TOPIC
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNKNOWN_LEADER_EPOCH,
    fetch_error,
    high_watermark_after_log_start,
)
from tidegauge.traces.columns import UNKNOWN
from tidegauge.traces.kafka_logs.nodes.logged_broker import (
    FORGOTTEN,
    KEPT,
    NO_REPLICA,
    OF_A_CONTROLLER,
    RAISED,
    TAKES_RESPONSES,
    Fields,
    LoggedBroker,
    LoggedStep,
    MinIsrOfLog,
    Place,
    beside,
)
from tidegauge.traces.kafka_logs.nodes.process import AFTER_LINES
from tidegauge.traces.kafka_logs.parsing.parsed_line import leos

MOST_TAKEN_BACK, LEAST_TAKEN_BACK, ROWS_BACK, ROWS_AHEAD = 4000, 10, 400, 96
"""Steps that are taken back for one that is stuck, at most and at least; rows back to which it goes at most; rows that are
looked at ahead."""
MOST_IN_ALL = 4_000
"""Steps that are taken back for all that are stuck, before fewer are for each."""

(
    OTHER,  # a step of a follower: log end, high watermark, epoch of its request
    START,  # log end, high watermark, min.insync.replicas
    LEAD,  # epoch, ISR, log end, high watermark before and after, partition epoch
    FOLLOW,  # epoch, log end, high watermark
    APPEND,  # first offset, offset after the last one
    COUNT,  # a fetch is counted: its replica, the log end of that, high watermark of its response, epoch of its request
    RAISE,  # high watermark before and after
    SHRINK,  # a proposal: ISR, log end, high watermark, partition epoch
    EXPAND,  # a proposal: ISR, partition epoch
    ISR,  # the response to one: ISR, high watermark before and after, partition epoch
    LOG_START,  # log start
    DELETED,
    FORGET,  # lines are missing
    UNNAMED,  # a raise of a replica that no line names: high watermark before and after
    SKIPPED,  # `Skipping update high watermark`: the new one, which was not higher, pairs of replica and log end
    RESPONSE,  # high watermark, log end with its records
    READ,  # by a consumer: the offset that it must have been below
    ACKNOWLEDGED,  # log end with the records, error
    REFUSED,  # error, epoch of its request
    FETCH_SENT,  # epoch
    IDLE,  # shows nothing of the replica
) = range(21)
"""Kinds of rows, with the values of each; those from SKIPPED on only observe."""
FITS, BREAKS_RULE, BREAKS_VALUE = range(3)
"""What a row does at a replica: it fits, or a rule forbids it there, or it names another value than the replica has."""
NO_ROLE, LEADS, FOLLOWS, ABSENT = range(4)
"""Roles of a replica; ABSENT: the broker has no such replica."""

ACCEPTS = TAKES_RESPONSES - {"HandleFetchError"}
"""Steps that take a response over: only one to a request of their own leader epoch."""


class Replica(NamedTuple):
    """The state of the replica between two rows; `counted` has the recorded log end of each broker, by column.

    `isr` and `pending` (the ISR of a proposal without a response, 0 for none) are bit masks of columns.
    `cause` is the row that may have allowed a raise which has not come yet, -1 for none; `due` the high watermark that this
    raise must reach, UNKNOWN if it need not come. `min_isr` is the highest min.insync.replicas that its log has: below it
    nothing need be raised (KIP-966). `partition_epoch` is that of the ISR.
    """

    leo: int = UNKNOWN
    hw: int = UNKNOWN
    epoch: int = UNKNOWN
    role: int = UNKNOWN
    isr: int = UNKNOWN
    pending: int = 0
    cause: int = -1
    due: int = UNKNOWN
    counted: tuple[int, ...] = ()
    min_isr: int = 1
    partition_epoch: int = UNKNOWN


Choice = tuple[int, Replica]
"""A row that is taken, or may be next, by its number, and what it leaves."""


class Brokers(NamedTuple):
    """The brokers that the steps name: the column of the one whose log this is, and their number."""

    own: int
    number: int


class Row(NamedTuple):
    """A step in numbers: it happened after `begins` and by `ends` (microseconds).

    `values` are those that the list of kinds above names, `follows` the numbers of rows that come before it in any order.
    """

    kind: int
    values: tuple[int, ...]
    begins: int
    ends: int
    follows: tuple[int, ...]
    step: LoggedStep
    alike: int
    """A number that rows of one kind and the same values share, if they were made of the same fields."""
    response: int = -1
    """Of a fetch that is counted: the row of its response, if that was sent at once; else -1."""


@dataclass
class Placement:
    """How the steps of a broker were ordered: how many `moved` from their stamps, and which are `stuck`: they fit nowhere.

    Stuck steps come with what each breaks. Those `at_limit` of the search are among them: an order may be there.
    """

    moved: int = 0
    stuck: list[tuple[LoggedStep, int]] = field(default_factory=list)
    at_limit: list[LoggedStep] = field(default_factory=list)
    low_reads: list[tuple[LoggedStep, int]] = field(default_factory=list)
    """Reads that show less than the replica had at any time when they may have been made, with the least that it had."""
    checks: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """Checks by rule of the judge, and whether they depend on the order (True) or hold in any (False)."""


def order_of_node(broker: LoggedBroker) -> Placement:
    """Order the steps of each replica of a broker in `broker.steps`; return what became of them.

    Steps of its controller, and those that were added after the last line of a process, are no part of the search.
    """
    placement = Placement()
    groups: dict[tuple[str, int], list[LoggedStep]] = {}
    ordered: list[LoggedStep] = []
    for step in broker.steps:
        if step.name in OF_A_CONTROLLER or step.line_index >= AFTER_LINES:
            ordered.append(step)
        else:
            groups.setdefault((step.tp, step.run), []).append(step)
    for steps in groups.values():
        ordered += order(steps, broker.node, placement, broker.min_isr_of_logs.get(steps[0].tp, _UNKNOWN_MIN_ISR))
    broker.steps = ordered
    return placement


_UNKNOWN_MIN_ISR, _SMALLEST_MIN_ISR = (MinIsrOfLog((-1, -1), None),), (MinIsrOfLog((-1, -1), 1),)
"""min.insync.replicas where no line names it, so that no raise is due; and one that any ISR reaches."""


def order(
    steps: Sequence[LoggedStep], node: int, placement: Placement, min_isr: Sequence[MinIsrOfLog] = _SMALLEST_MIN_ISR
) -> list[LoggedStep]:
    """Order the steps of one replica in one process of `node`; return those that are events, and add to `placement`.

    `min_isr` has the min.insync.replicas of each log that the replica had, the oldest first.
    """
    peers = sorted(_peers(steps) | {node})
    rows = _rows(steps, {peer: column for column, peer in enumerate(peers)}, min_isr)
    search = _Search(rows, Brokers(peers.index(node), len(peers)), _min_isr_at(min_isr, steps[0].place, len(peers)))
    sequence = search.run(placement)
    # Rows are numbered as their stamps put them.
    placement.moved += sum(1 for place, (row, _) in enumerate(sequence) if place != row)
    placement.low_reads += _low_reads(rows, sequence, search.begin)
    placement.checks.update((rule, depends) for _, rule, depends in checks_of(rows, sequence, search))
    return _events(rows, sequence, search.begin)


# From steps to rows


def _peers(steps: Sequence[LoggedStep]) -> set[int]:
    """Return the ids of all brokers that the steps name: they become columns of `counted` and bits of an ISR."""
    # Fetches that are alike share their fields: each dict is looked at once.
    distinct = {id(step.fields): step.fields for step in steps}.values()
    peers = {peer for peer in {fields["peer"] for fields in distinct if "peer" in fields} if isinstance(peer, int)}
    peers.update(*{isr for fields in distinct if "isr" in fields and isinstance(isr := fields["isr"], tuple)})
    # The line about a high watermark that was not raised lists log ends by broker.
    peers.update(*(leos(str(step.fields["leos"])) for step in steps if step.name == KEPT))
    return peers


def _min_isr_at(min_isr: Sequence[MinIsrOfLog], place: Place, peers: int) -> int:
    """Return the highest min.insync.replicas of the log that was there at a place; if unknown, one that no ISR reaches.

    `min_isr` has the logs in order, `peers` is the number of brokers.
    """
    highest = next((log.highest for log in reversed(min_isr) if log.begin <= place[:2]), min_isr[0].highest)
    return peers + 1 if highest is None else highest


def _rows(
    steps: Sequence[LoggedStep], peers: dict[int, int], min_isr: Sequence[MinIsrOfLog] = _SMALLEST_MIN_ISR
) -> list[Row]:
    """Return the steps as rows of the search, in the order of their keys; `peers` has the column of each broker id."""
    _follow_start(steps)
    in_order = _in_order(steps)
    number_of = dict(zip(in_order, range(len(in_order)), strict=True))
    last_of_thread: dict[str, int] = {}
    rows: list[Row] = []
    # Fetches ask and answer the same again and again, and their steps share their fields. By name and ids of the fields of a
    # step and of its response: a number for all that are alike, and (kind, values) of their rows.
    kinds_of_rows: dict[tuple[str, int, int], tuple[int, tuple[int, tuple[int, ...]]]] = {}
    for row, step in enumerate(in_order):
        follows: tuple[int, ...] = ()
        if step.follows:
            follows = tuple([at for cause in step.follows if (at := number_of.get(cause, row)) < row])
        # One thread writes its lines in the order in which it does things.
        if thread := step.thread:
            if thread in last_of_thread:
                follows += (last_of_thread[thread],)
            last_of_thread[thread] = row
        key = step.name, id(step.fields), 0 if step.response is None else id(step.response.fields)
        if (kind_of_row := kinds_of_rows.get(key)) is None:
            kind_of_row = kinds_of_rows[key] = len(kinds_of_rows), _row(step, peers)
        alike, (kind, values) = kind_of_row
        if kind == START:
            # The topic may be one that was deleted and made again, with another configuration.
            values = (*values, _min_isr_at(min_isr, step.place, len(peers)))
        (stamp, *_), begins, ends = step.key, step.begins, step.ends
        response = number_of.get(step.response, -1) if kind == COUNT and step.response is not None else -1
        # The interval contains the stamp, where the step goes if no order fits.
        begins, ends = begins if begins < stamp else stamp - 1, max(stamp, ends)
        rows.append(_new_row((kind, values, begins, ends, follows, step, alike, response)))
    return rows


def _follow_start(steps: Sequence[LoggedStep]) -> None:
    """Add the start of the replica to the `follows` of steps that belong behind it, whatever their stamps say.

    These are refusals from before its line, and what shows somebody a replica of a topic that was deleted and made again.
    """
    starts = [step for step in steps if step.name == "Start"]
    if not starts:
        return
    start = starts[0]
    for step in steps:
        # Metadata reaches clients before the broker has made the replica: it answers for a partition that it has not
        # (ReplicaManager#getPartitionOrError). The replica starts first all the same: without a role it answers so, too.
        is_early = step.ends < start.ends and step.name in ("HandleFetch", "HandleEpochRequest", "ProduceAck")
        if is_early and step.fields.get("error"):
            step.begins, step.ends, step.key = start.ends - 1, start.ends, (start.ends, start.line_index, 1)
            step.follows += (start,)
    # A topic that was deleted and made again is another one: nobody is shown its replica before it starts.
    if len({step.topic_id for step in steps}) > 1:
        start_of = {step.topic_id: step for step in starts}
        for step in steps:
            if step.name in _SHOWS and not step.fields.get("error") and step.topic_id in start_of:
                step.follows += (start_of[step.topic_id],)


def _in_order(steps: Sequence[LoggedStep]) -> list[LoggedStep]:
    """Return the steps by their keys; a step gets a later key than those that it follows, whatever its stamp."""
    in_order = sorted(steps, key=_key)
    moved = False
    for step in in_order:
        for cause in step.follows:
            # 3.x prints milliseconds: two steps of one millisecond may have their stamps the wrong way round.
            if step.key <= cause.key:
                step.key, moved = beside(cause.key, 1), True
    return sorted(steps, key=_key) if moved else in_order


_VALUES = {
    "Start": (START, ("leo", "hw")),
    "BecomeLeader": (LEAD, ("leader_epoch", "isr", "leo", "hw_before", "hw", "partition_epoch")),
    "BecomeFollower": (FOLLOW, ("leader_epoch", "leo", "hw")),
    "LeaderAppend": (APPEND, ("rec_base", "rec_end")),
    RAISED: (RAISE, ("hw_before", "hw")),
    "ShrinkIsr": (SHRINK, ("isr", "leo", "hw", "partition_epoch")),
    "ExpandIsr": (EXPAND, ("isr", "partition_epoch")),
    "HandleAlterPartitionResponse": (ISR, ("isr", "hw_before", "hw", "partition_epoch")),
    "LogStartMoved": (LOG_START, ("log_start",)),
    "DeleteReplica": (DELETED, ()),
    "LoseDisk": (DELETED, ()),
    FORGOTTEN: (FORGET, ()),
    "Read": (READ, ("bound",)),
}
"""By step: the kind of its row, and the fields that are its values."""
_SHOWS = frozenset({"ProduceAck", "Read", "HandleFetch", "AnswerFetch", "HandleEpochRequest"})
"""Steps that show somebody what a replica has, if they have no error."""
_key = attrgetter("key")
_new_row: Callable[[tuple[object, ...]], Row] = partial(tuple.__new__, Row)
"""Makes a Row of the tuple of its fields, faster than Row(..): there is a row for each step."""


def _row(step: LoggedStep, peers: dict[int, int]) -> tuple[int, tuple[int, ...]]:
    """Return the kind of a step's row, and its values: those that the list of kinds names, UNKNOWN where a field is missing.

    `peers` has the column of each broker id.
    """
    name, fields = step.name, step.fields
    # The three kinds of steps of a fetch first: nearly every step is one of them.
    if name == "SendFetch":
        epoch = fields.get("req_epoch")
        return FETCH_SENT, (epoch if type(epoch) is int else UNKNOWN,)
    if name == "HandleFetch" and "remote_leo" in fields and fields.get("error", 0) == 0:
        shown = _number(step.response.fields, "res_hw") if step.response is not None else UNKNOWN
        peer = peers.get(_number(fields, "peer"), -1)
        return COUNT, (peer, _number(fields, "remote_leo"), shown, _number(fields, "req_epoch"))
    if name == "AnswerFetch":
        if fields.get("error", 0) != 0:
            return IDLE, ()
        return RESPONSE, (_number(fields, "res_hw"), _number(fields, "rec_end"))

    def number(name: str) -> int:
        """Return a field of the step as a number; a tuple of brokers becomes a bit mask of their columns."""
        value = fields.get(name)
        return sum(1 << peers[peer] for peer in value) if isinstance(value, tuple) else _number(fields, name)

    if name in _VALUES:
        kind, names = _VALUES[name]
        return kind, tuple(map(number, names))
    if name == "HandleFetch" and "hw_before" in fields:
        # It raised, and its process stopped logging before it printed of which replica it is.
        return UNNAMED, (number("hw_before"), number("hw"))
    if name == KEPT:
        ends = leos(str(fields["leos"]))
        # Up to 3.x the leader's own log end is among them: it gets -1 for a column.
        pairs = [value for peer, end in sorted(ends.items()) for value in (-1 if peer == step.node else peers[peer], end)]
        return SKIPPED, (number("hw"), *pairs)
    if name == "ProduceAck":
        acknowledged = fields.get("acks") == -1 and fields.get("error") == 0
        return ACKNOWLEDGED, (number("rec_end") if acknowledged else UNKNOWN, number("error"))
    if name in ("HandleFetch", "HandleEpochRequest") and "error" in fields:
        epoch = fields.get("req_epoch")
        return REFUSED, (number("error"), epoch if isinstance(epoch, int) else -1)
    # A response to a request of another leader epoch is not taken over (AbstractFetcherThread#processFetchRequest).
    return OTHER, (number("leo"), number("hw"), number("req_epoch") if name in ACCEPTS else UNKNOWN)


def _number(fields: Fields, name: str) -> int:
    """Return a field that is an int; UNKNOWN if it is missing or anything else."""
    value = fields.get(name)
    return value if type(value) is int else UNKNOWN  # a bool is no number


# What a step finds and leaves


def _lowest(replica: Replica, own: int, members: int) -> int:
    """Return the lowest of the leader's log end and the recorded log ends of `members` (a bit mask); UNKNOWN if one is.

    `own` is the column of the leader.
    """
    lowest = replica.leo
    for peer, end in enumerate(replica.counted):
        if peer != own and members >> peer & 1:
            lowest = min(lowest, end)  # UNKNOWN is below every number
    return lowest


def _may_be(value: int, expected: int) -> bool:
    """Return whether two values are equal, or may be, as one is UNKNOWN."""
    return value == expected or UNKNOWN in (value, expected)


def take(row: Row, at: int, replica: Replica, brokers: Brokers) -> tuple[int, Replica]:
    """Return FITS or what a row breaks if it is taken at this replica, and the replica behind it.

    A row that does not fit leaves the values that it names all the same. `at` is the row's number, `row.values` are those
    that the list of kinds names.
    """
    kind, values = row.kind, row.values
    # These only observe.
    if kind >= SKIPPED:
        # Rule 3: nothing that shows the old value comes between a raise and the step that allowed it.
        after = replica if replica.cause < 0 or kind == SKIPPED else replica._replace(cause=-1)
        return _observed(kind, values, replica), after
    # A raise that is due comes next: whatever else happens would find, or show, a high watermark that is too low.
    late = replica.due != UNKNOWN and replica.due > replica.hw and kind not in (RAISE, EXPAND, UNNAMED)
    broken = BREAKS_RULE if late and not _raises_due(row, replica) else FITS
    if kind == APPEND:
        base, end = values
        fits = _may_be(replica.leo, base)
        after = replica._replace(leo=end, cause=at)
    elif kind == COUNT:
        return max(broken, _counts(values, replica)), _counted(values, at, replica, brokers)
    elif kind == RAISE:
        hw_before, hw = values
        fits = _may_be(replica.hw, hw_before)
        maximal_isr = replica.isr if replica.isr == UNKNOWN else replica.isr | replica.pending
        lowest = UNKNOWN if maximal_isr == UNKNOWN else _lowest(replica, brokers.own, maximal_isr)
        # Only a leader raises (Partition#leaderLogIfLocal), only after a cause, and to no more than its maximal ISR has.
        if replica.cause < 0 or replica.role not in (LEADS, UNKNOWN) or (lowest != UNKNOWN and hw > lowest):
            broken = BREAKS_RULE
        after = replica._replace(hw=hw, cause=-1, due=UNKNOWN)
    elif kind == UNNAMED:
        hw_before, hw = values
        fits = _may_be(replica.hw, hw_before)
        # The log end of the replica that fetched is the only one that may be missing: its line was never written.
        followers = 0 if replica.isr == UNKNOWN else (replica.isr | replica.pending) & ~(1 << brokers.own)
        below_hw = [peer for peer, end in enumerate(replica.counted) if followers >> peer & 1 and UNKNOWN != end < hw]
        if len(below_hw) > 1:
            broken = BREAKS_RULE
        after = replica._replace(hw=hw, cause=-1, due=UNKNOWN)
    elif kind == SHRINK:
        isr, leo, hw, partition_epoch = values
        fits = _may_be(replica.leo, leo) and _may_be(replica.hw, hw)
        broken = broken if _proposes(partition_epoch, replica) else BREAKS_RULE
        if replica.isr != UNKNOWN and isr != UNKNOWN:
            # Whoever has the whole log is caught up, and is not removed (Partition#isFollowerOutOfSync).
            removed = replica.isr & ~isr
            if any(removed >> peer & 1 and end == replica.leo != UNKNOWN for peer, end in enumerate(replica.counted)):
                broken = BREAKS_RULE
        after = replica._replace(leo=leo, hw=hw, pending=max(isr, 0), cause=-1)  # UNKNOWN is below 0: no pending ISR
    elif kind == EXPAND:
        isr, partition_epoch = values
        broken = broken if _proposes(partition_epoch, replica) else BREAKS_RULE
        fits, after = True, replica._replace(pending=max(isr, 0))
    elif kind == LEAD:
        epoch, isr, leo, hw_before, hw, partition_epoch = values
        fits = _may_be(replica.leo, leo) and _may_be(replica.hw, hw_before)
        # Partition#makeLeader raises the high watermark last, to what was counted in the same leader epoch.
        if (replica.role, replica.epoch) == (LEADS, epoch) and isr != UNKNOWN and hw > hw_before:
            broken = BREAKS_RULE if UNKNOWN != _lowest(replica, brokers.own, isr) < hw else broken
        # A leader that is elected again keeps the log ends that it recorded (finding F2); one that followed has none
        # (Replica#resetReplicaState): -1.
        counted = (-1,) * len(replica.counted) if replica.role == FOLLOWS else replica.counted
        leo = leo if leo != UNKNOWN else replica.leo
        # No proposal is pending, and no raise due.
        after = Replica(
            leo, hw, epoch, LEADS, isr, counted=counted, min_isr=replica.min_isr, partition_epoch=partition_epoch
        )
    elif kind == FOLLOW:
        epoch, leo, hw = values
        fits = _may_be(replica.leo, leo) and _may_be(replica.hw, hw)
        after = replica._replace(
            leo=leo if leo != UNKNOWN else replica.leo,
            hw=hw if hw != UNKNOWN else replica.hw,
            epoch=epoch,
            role=FOLLOWS,
            isr=UNKNOWN,
            pending=0,
            cause=-1,
            due=UNKNOWN,
        )
    elif kind == ISR:
        isr, hw_before, hw, partition_epoch = values
        fits = _may_be(replica.hw, hw_before)
        after = replica._replace(
            isr=replica.isr if isr == UNKNOWN else isr,
            pending=0,
            hw=replica.hw if hw == UNKNOWN else hw,
            cause=at,
            due=UNKNOWN,
            partition_epoch=replica.partition_epoch if partition_epoch == UNKNOWN else partition_epoch,
        )
    elif kind == LOG_START:
        (log_start,) = values
        # UnifiedLog#maybeIncrementLogStartOffset raises it up to the high watermark only.
        fits = UNKNOWN in (replica.hw, log_start) or log_start <= replica.hw
        hw = UNKNOWN if UNKNOWN in (replica.hw, log_start) else high_watermark_after_log_start(replica.hw, log_start)
        after = replica._replace(hw=hw, cause=-1)
    elif kind == START:
        leo, hw, min_isr = values
        # Without a role its leader epoch is -1 (Partition#leaderEpoch), and no log end of a follower is recorded.
        none_recorded = (-1,) * len(replica.counted)
        fits, after = True, Replica(leo, hw, epoch=-1, role=NO_ROLE, counted=none_recorded, min_isr=min_isr)
    elif kind == FORGET:
        # The line of the step that allowed the next raise may be among those that are missing.
        unknown = (UNKNOWN,) * len(replica.counted)
        fits, broken, after = True, FITS, Replica(cause=at, counted=unknown, min_isr=replica.min_isr)
    elif kind == DELETED:
        fits, after = True, Replica(role=ABSENT, counted=(UNKNOWN,) * len(replica.counted), min_isr=replica.min_isr)
    else:  # OTHER
        leo, hw, request_epoch = values
        fits = True
        broken = broken if _may_be(replica.epoch, request_epoch) else BREAKS_RULE
        after = replica._replace(
            leo=replica.leo if leo == UNKNOWN else leo, hw=replica.hw if hw == UNKNOWN else hw, cause=-1
        )
    return (broken if fits else BREAKS_VALUE), after


def _proposes(partition_epoch: int, replica: Replica) -> bool:
    """Return whether a replica may propose an ISR in this partition epoch.

    A leader makes a proposal under the lock and prints it later (Partition#maybeExpandIsr): it belongs to the epoch that it
    names, whatever the partition has become when the line is written.
    """
    return replica.role in (LEADS, UNKNOWN) and _may_be(replica.partition_epoch, partition_epoch)


def _raises_due(row: Row, replica: Replica) -> bool:
    """Return whether a change of role or ISR makes the raise that is due after a fetch, before the fetch's thread does."""
    return row.kind in (LEAD, ISR) and replica.cause >= 0 and _raise_of(row) == (replica.hw, replica.due)


def _raise_of(row: Row) -> tuple[int, ...]:
    """Return the high watermark before and after a row that may raise it: a raise, or a change of role or ISR."""
    first = {LEAD: 3, ISR: 1}.get(row.kind, 0)  # where `hw_before` and `hw` begin among the values of the kind
    return row.values[first : first + 2]


def _counts(values: tuple[int, ...], replica: Replica) -> int:
    """Return FITS or what a counted fetch breaks; `values` are those of a COUNT.

    It needs a leader in the leader epoch of its request, whose high watermark is not above that in the response.
    """
    _, _, response_hw, request_epoch = values
    if replica.role not in (LEADS, UNKNOWN) or not _may_be(replica.epoch, request_epoch):
        return BREAKS_RULE
    # A response that is sent at once is read before the fetch is counted: the event has both, at the high watermark of the
    # response or before it.
    return BREAKS_VALUE if UNKNOWN not in (replica.hw, response_hw) and replica.hw > response_hw else FITS


def _counted(values: tuple[int, ...], at: int, replica: Replica, brokers: Brokers) -> Replica:
    """Return the replica behind a counted fetch, row `at`: with the follower's log end, and the high watermark due then.

    `values` are those of a COUNT.
    """
    peer, end, *_ = values
    # Nothing new was recorded: such a fetch allows no raise.
    if peer < 0 or replica.counted[peer] == end:
        return replica if replica.cause < 0 else replica._replace(cause=-1)
    counted = (*replica.counted[:peer], end, *replica.counted[peer + 1 :])
    after = replica._replace(counted=counted, cause=at)
    # If even the lowest log end of all brokers, not only of the ISR, is above the high watermark, the rule leaves no choice
    # (Partition#maybeIncrementLeaderHW).
    lowest = _lowest(after, brokers.own, (1 << len(counted)) - 1)
    too_few_in_sync = replica.isr == UNKNOWN or replica.isr.bit_count() < replica.min_isr
    return after._replace(due=UNKNOWN if too_few_in_sync or after.hw == UNKNOWN or lowest <= after.hw else lowest)


def _observed(kind: int, values: tuple[int, ...], replica: Replica) -> int:
    """Return FITS if a row that only observes shows what the replica has, else what it breaks."""
    # Requests and responses show the error of a replica that is not there; these two rows have none.
    if replica.role == ABSENT and kind not in (IDLE, SKIPPED):
        error = values[0] if kind == REFUSED else values[1] if kind == ACKNOWLEDGED else NONE
        return FITS if error in NO_REPLICA else BREAKS_RULE
    if kind == FETCH_SENT:
        (request_epoch,) = values
        return FITS if _may_be(replica.epoch, request_epoch) else BREAKS_RULE
    if kind == RESPONSE:
        hw, records_end = values
        has_records = UNKNOWN in (replica.leo, records_end) or replica.leo >= records_end
        return FITS if has_records and _may_be(replica.hw, hw) else BREAKS_VALUE
    # A reader was shown, and a producer was told, no more than is committed.
    if kind in (READ, ACKNOWLEDGED):
        bound = values[0]
        return FITS if UNKNOWN in (replica.hw, bound) or replica.hw >= bound else BREAKS_VALUE
    if kind == SKIPPED:
        hw, *pairs = values
        if UNKNOWN not in (replica.hw, hw) and replica.hw < hw:
            return BREAKS_VALUE
        # Pairs of column and log end, as the leader has recorded it; column -1 is the leader itself.
        for peer, end in zip(pairs[::2], pairs[1::2], strict=True):
            recorded = replica.counted[peer] if peer >= 0 else replica.leo
            if not _may_be(recorded, end):
                return BREAKS_VALUE
        return FITS
    if kind == REFUSED:
        error, request_epoch = values
        return FITS if _refuses(error, request_epoch, replica) else BREAKS_RULE
    return FITS


def _refuses(error: int, epoch: int, replica: Replica) -> bool:
    """Return whether this replica may answer a request in leader epoch `epoch` (-1: none named) with `error`."""
    if replica.role == UNKNOWN or replica.epoch == UNKNOWN:
        return True
    # Its leader epoch is -1 (Partition#leaderEpoch), so no request is too old for it, and none is served.
    if replica.role == NO_ROLE:
        return error not in (NONE, OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH)
    # The epochs come first: a fetch that is served, or out of range, was in the right one.
    expected = fetch_error(epoch, replica.epoch, serves=replica.role == LEADS, assigned=True, fences=epoch >= 0)
    if error in (NONE, OFFSET_OUT_OF_RANGE):
        return expected == NONE
    # Other errors (storage, topic ids) refuse for reasons that no line shows.
    return error == expected or error not in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)


# The search


class _Point(NamedTuple):
    """A state of the search: the rows before `first_open` and those `taken_ahead` are taken, and left the replica."""

    first_open: int
    taken_ahead: frozenset[int]
    replica: Replica


class _Node:
    """A point on the search's stack: `depth` rows are taken there; `choices` yields those that were not tried yet."""

    __slots__ = ("choices", "depth", "point")

    def __init__(self, point: _Point, depth: int, choices: Iterator[Choice]) -> None:
        """Note the point, and what may come next there."""
        # The choices must not refer to the node: that is a cycle, and no cycle is collected while logs are read.
        self.point, self.depth, self.choices = point, depth, choices


class _Search:
    """The depth-first search for an order of rows (rule 1): each node of its stack has a point and the choices left there.

    `given_up` are rows that fit nowhere: they are taken as if they fitted. `begin` is the replica before any row.
    """

    def __init__(self, rows: Sequence[Row], brokers: Brokers, min_isr: int = 1) -> None:
        """Begin with nothing known of the replica, but for the `min_isr` of its log.

        `least_begin[i]` and `least_end[i]` are the earliest begin and the earliest end of the rows from i on.
        """
        self.rows, self.brokers = rows, brokers
        self.given_up: set[int] = set()
        # A process that makes the replica has none before.
        role = ABSENT if any(row.kind == START for row in rows) else UNKNOWN
        self.begin = Replica(role=role, counted=(UNKNOWN,) * brokers.number, min_isr=min_isr)
        self.begins, self.ends = [row.begins for row in rows], [row.ends for row in rows]
        self.least_begin, self.least_end = (
            list(accumulate(reversed(times), min, initial=1 << 62))[::-1] for times in (self.begins, self.ends)
        )

    def run(self, placement: Placement) -> list[Choice]:
        """Return all rows in the order that was found, each with the replica behind it; note stuck steps in `placement`."""
        sequence: list[Choice] = []
        begin = _Point(0, frozenset(), self.begin)
        stack = [_Node(begin, 0, self._choices(begin))]
        # Points that were left without a choice: from there no order leads to the end.
        dead: set[_Point] = set()
        # The most rows that were taken before the search had to go back, and the node where that was.
        furthest, stuck = -1, stack[0]
        # Steps that were taken back since one was last given up, and in all (rule 4).
        taken_back, taken_back_in_all, limit = 0, 0, MOST_TAKEN_BACK
        while stack[-1].point.first_open < len(self.rows):
            node = stack[-1]
            choice = next(node.choices, None)
            if choice is not None:
                sequence.append(choice)
                point = self._after(node.point, *choice, sequence)
                if dead and point in dead:
                    del sequence[node.depth :]
                    continue
                stack.append(_Node(point, len(sequence), self._choices(point)))
                # The search goes back ROWS_BACK rows at most: what was taken before them stays.
                if len(sequence) - stack[0].depth > 2 * ROWS_BACK:
                    stack = [recent for recent in stack if len(sequence) - recent.depth <= ROWS_BACK]
                    dead.clear()
                    furthest, taken_back = -1, 0
                continue
            # No choice is left here: the search goes back by one node.
            if len(sequence) > furthest:
                furthest, stuck = len(sequence), node
            dead.add(node.point)
            taken_back += 1
            if len(stack) > 1 and taken_back <= limit:
                stack.pop()
                del sequence[stack[-1].depth :]
                continue
            # No order fits, or none was found within the limit. One step is given up: it goes where its stamp puts it.
            at, broken = self._blocking(stuck.point)
            taken_back_in_all += taken_back
            if taken_back > limit:
                placement.at_limit.append(self.rows[at].step)
            if taken_back > limit or taken_back_in_all > MOST_IN_ALL:
                limit = max(limit // 2, LEAST_TAKEN_BACK)
            self.given_up.add(at)
            placement.stuck.append((self.rows[at].step, broken))
            del sequence[stack[0].depth :]
            stack = [_Node(stack[0].point, stack[0].depth, self._choices(stack[0].point))]
            dead.clear()
            furthest, taken_back = -1, 0
        return sequence

    def _after(self, point: _Point, at: int, replica: Replica, sequence: list[Choice]) -> _Point:
        """Return a point behind row `at`, which was taken at `point` and left `replica`.

        Rows that must come next anyway are taken at once, up to a limit, and added to `sequence`.
        """
        if at != point.first_open:
            return _Point(point.first_open, point.taken_ahead | {at}, replica)
        first_open = at + 1
        while first_open in point.taken_ahead:
            first_open += 1
        taken_ahead = point.taken_ahead and frozenset(row for row in point.taken_ahead if row > first_open)
        # While rows are taken ahead there is a choice to be made; and a stretch without a choice must not outgrow ROWS_BACK.
        end = first_open if taken_ahead else min(len(self.rows), first_open + ROWS_BACK // 8)
        # Rows alike to these need no second look: such a row changed nothing at this replica.
        idle: set[int] = set()
        while first_open < end:
            alike = self.rows[first_open].alike
            if alike not in idle:
                after = self._forced(first_open, taken_ahead, replica)
                if after is None:
                    break
                if after is not replica:
                    replica = after
                    idle.clear()
                elif replica.cause < 0 and first_open not in self.given_up:
                    idle.add(alike)
            sequence.append((first_open, replica))
            first_open += 1
        return _Point(first_open, taken_ahead, replica)

    def _forced(self, first_open: int, taken_ahead: frozenset[int], replica: Replica) -> Replica | None:
        """Return the replica behind the first open row if that must be taken now, or can be without losing an order.

        Return None if there is a choice, or the row does not fit.
        """
        row = self.rows[first_open]
        # It only observes, and no raise is awaited that it would part from its cause (rule 3).
        if row.kind > SKIPPED and replica.cause < 0:
            fits = _observed(row.kind, row.values, replica) == FITS or first_open in self.given_up
            return replica if fits else None
        due = replica.due != UNKNOWN and replica.due > replica.hw
        # No other open row begins before it has ended.
        alone = not due and not taken_ahead and self.least_begin[first_open + 1] >= row.ends
        # The raise that the cause allowed may come first.
        if not alone and replica.cause >= 0:
            return None
        broken, after = take(row, first_open, replica, self.brokers)
        if broken != FITS and first_open not in self.given_up:
            return None
        # What changes nothing and comes first by its stamp is taken: no other order has more.
        return after if alone or row.kind >= SKIPPED or (not due and after == replica) else None

    def _open(self, point: _Point) -> list[int]:
        """Return the rows that may come next, as far as intervals, threads and sessions go, in the order of their stamps.

        Such a row begins before every other open row has ended.
        """
        begins, ends, first_open, taken_ahead = self.begins, self.ends, point.first_open, point.taken_ahead
        last = max(taken_ahead, default=first_open)
        # The two earliest ends of open rows: a row does not wait for itself, so the one that ends first has the second.
        earliest = next_earliest = self.least_end[last + 1]
        for at in range(first_open, last + 1):
            if at not in taken_ahead:
                end = ends[at]
                if end <= earliest:
                    earliest, next_earliest = end, earliest
                elif end < next_earliest:
                    next_earliest = end
        may_come = []
        for at in range(first_open, min(len(ends), first_open + ROWS_AHEAD)):
            # No row from here on begins before the earliest end.
            if at > last and self.least_begin[at] >= earliest:
                break
            if at in taken_ahead or begins[at] >= (next_earliest if ends[at] == earliest else earliest):
                continue
            # It may come if every row that it follows is taken.
            for cause in self.rows[at].follows:
                if cause >= first_open and cause not in taken_ahead:
                    break
            else:
                may_come.append(at)
        return may_come

    def _choices(self, point: _Point) -> Iterator[Choice]:
        """Yield the rows to try next at a point, the most likely first, each with the replica behind it.

        Right after a cause that is its raise; else the first row by stamp, but an observing row before one that would hide
        what it shows (rule 2).
        """
        rows, replica = self.rows, point.replica
        forced = self._forced(*point)
        if forced is not None:
            yield point.first_open, forced
            return
        due = replica.due != UNKNOWN and replica.due > replica.hw
        changing, observing, last_resort, before_due_raise = self._fitting(point, due)
        if replica.cause >= 0:
            raises = [choice for choice in changing if rows[choice[0]].kind == RAISE]
            for choice in raises:
                # A replica that was caught up lately holds the raise back, in the ISR or not: its fetch comes before it.
                if rows[replica.cause].kind == COUNT:
                    _, raised_hw = rows[choice[0]].values
                    yield from (fetch for fetch in changing if self._reaches(fetch[0], raised_hw, replica))
                yield choice
            changing = [choice for choice in changing if rows[choice[0]].kind != RAISE]
        if observing and (not changing or observing[0][0] < changing[0][0]):
            yield observing[0]
            return
        for at, after in changing:
            # What would show something else after this step, or after the raise that is due then, is taken before it.
            raised = after if after.due == UNKNOWN else after._replace(hw=after.due, due=UNKNOWN)
            hidden = next((choice for choice in observing if self._take(choice[0], raised)[0] != FITS), None)
            if hidden is not None:
                yield hidden
            yield at, after
        yield from observing[:1]
        yield from before_due_raise if due else last_resort

    def _fitting(self, point: _Point, due: bool) -> tuple[list[Choice], ...]:
        """Return the rows that may come next, in four lists of choices.

        They are rows that fit and change the replica; rows that fit and only observe it; of those that do not fit the last
        resort, for where nothing else leads on; and rows that may stand between a fetch and the raise that it left `due`
        (whether there is one now).
        """
        rows, replica = self.rows, point.replica
        changing: list[Choice] = []
        observing: list[Choice] = []
        last_resort: list[Choice] = []
        before_due_raise: list[Choice] = []
        for at in self._open(point):
            row = rows[at]
            # Most of what is open shows another high watermark than there is now.
            if row.kind >= SKIPPED and at not in self.given_up and _observed(row.kind, row.values, replica) != FITS:
                continue
            broken, after = self._take(at, replica)
            # Its response was read, then another thread raised, then the fetch was counted: there is no event for a count at
            # a later high watermark than that of its response, so this comes last.
            if broken == BREAKS_VALUE and row.kind == COUNT:
                response_taken = 0 <= row.response < point.first_open or row.response in point.taken_ahead
                if response_taken:
                    last_resort.append((at, after))
            # Its line names the log end and high watermark before its fetcher was removed, which may have gone on.
            if broken == BREAKS_VALUE and row.kind == FOLLOW and replica.role == FOLLOWS:
                last_resort.append((at, after._replace(leo=replica.leo, hw=replica.hw)))
            if broken == BREAKS_RULE and due and row.kind in (APPEND, COUNT) and self._has_raise_of_another(at, replica):
                before_due_raise.append((at, replica._replace(leo=after.leo, counted=after.counted)))
            if broken == FITS:
                # A fetch at the offset that was counted before changes nothing either.
                if row.kind < SKIPPED and after != replica:
                    changing.append((at, after))
                # Before a raise that is due nothing may be shown. A SKIPPED line is the broker's own: it shows nobody
                # anything. A raise that need not come is given up by what shows the old value (`take`).
                elif not due or row.kind == SKIPPED or at in self.given_up:
                    observing.append((at, after))
        return changing, observing, last_resort, before_due_raise

    def _has_raise_of_another(self, at: int, replica: Replica) -> bool:
        """Return whether a row's thread made the raise that another thread's counted fetch left due.

        That thread may do so before the other one has come to look: so the row stands between the fetch and the raise.
        """
        row, cause = self.rows[at], self.rows[replica.cause]
        # Those that follow the row are its thread's.
        raises = (other for other in self.rows[at + 1 : at + ROWS_AHEAD] if other.kind == RAISE and at in other.follows)
        return (
            replica.cause >= 0
            and cause.kind == COUNT
            and cause.step.thread not in ("", row.step.thread)
            and row.begins < cause.step.time
            and (row.kind == APPEND or _counts(row.values, replica) == FITS)
            and next((other.values for other in raises), ()) == (replica.hw, replica.due)
        )

    def _reaches(self, at: int, hw: int, replica: Replica) -> bool:
        """Return whether a row counts a fetch that brings its follower from below a high watermark up to it."""
        row = self.rows[at]
        if row.kind != COUNT:
            return False
        peer, end, *_ = row.values
        return peer >= 0 and UNKNOWN != replica.counted[peer] < hw <= end

    def _take(self, at: int, replica: Replica) -> tuple[int, Replica]:
        """Return FITS or what row `at` breaks, and the replica behind it; a row that was given up fits anywhere."""
        broken, after = take(self.rows[at], at, replica, self.brokers)
        return FITS if at in self.given_up else broken, after

    def _blocking(self, point: _Point) -> tuple[int, int]:
        """Return the row that blocks the others (of those that do not fit, the first to end), and what it breaks."""
        waiting = [at for at in self._open(point) if at not in self.given_up] or [point.first_open]
        at = min(waiting, key=lambda row: (self._take(row, point.replica)[0] == FITS, self.rows[row].ends, row))
        return at, take(self.rows[at], at, point.replica, self.brokers)[0]


# Checks of the judge that depend on the order: another row may stand on the other side of the row that is checked, and would
# break the check there. Of the two lines in rule 3 the search takes the count first, for before it the raise breaks HW-02;
# threads and times allow both. It is not asked whether every other row fits then: at most so many checks depend on order.

RULES = {
    RAISE: ("HW-02", (APPEND, COUNT, EXPAND, ISR)),
    SHRINK: ("ISR-02", (COUNT,)),
    READ: ("READ-01", (RAISE, ISR)),
    ACKNOWLEDGED: ("ACK-01", (RAISE, ISR)),
    COUNT: ("FENCE-01", (LEAD, FOLLOW)),
    REFUSED: ("FENCE-01", (LEAD, FOLLOW)),
}
"""By kind of row: the rule that is checked there, and the kinds of rows on which it rests."""
_LEAVES = {
    APPEND: ("leo",),
    EXPAND: ("pending",),
    ISR: ("isr", "pending", "hw"),
    RAISE: ("hw",),
    LEAD: ("epoch", "role"),
    FOLLOW: ("epoch", "role"),
}
"""By kind of row: the fields of Replica that it changes and a check may rest on. A COUNT changes one entry of `counted`."""


def checks_of(rows: Sequence[Row], sequence: Sequence[Choice], search: _Search) -> Iterator[tuple[int, str, bool]]:
    """Yield the row and the rule of each check of a leader, and whether it depends on the order of the rows.

    `sequence` has the rows in the order that was found, each with the replica behind it.
    """
    # The replica before each place of the sequence.
    brokers, states = search.brokers, [search.begin, *(after for _, after in sequence)]
    # By place, the latest end of the rows up to it, and the earliest begin of those from it on: what ends before a row
    # begins comes before it, and what begins after its end comes after it.
    ends = list(accumulate((rows[at].ends for at, _ in sequence), max))
    begins = list(accumulate((rows[at].begins for at, _ in reversed(sequence)), min))[::-1]
    places: dict[int, list[int]] = {kind: [] for kind in (COUNT, *_LEAVES)}
    for place, (at, _) in enumerate(sequence):
        if rows[at].kind in places:
            places[rows[at].kind].append(place)
    places_of_rule = {
        checked: sorted(place for kind in kinds for place in places[kind]) for checked, (_, kinds) in RULES.items()
    }
    for checked_place, (at, _) in enumerate(sequence):
        row, replica = rows[at], states[checked_place]
        if row.kind not in RULES or replica.role not in (LEADS, UNKNOWN):
            continue
        rule, kinds = RULES[row.kind]
        # Nearly always both neighbours of the kinds on which the check rests are out of reach.
        basis = places_of_rule[row.kind]
        following = bisect_left(basis, checked_place)
        none_before = following == 0 or ends[basis[following - 1]] <= row.begins
        if none_before and (following == len(basis) or begins[basis[following]] >= row.ends):
            yield at, rule, False
            continue
        # The places whose rows may stand on the other side of this one; and what it breaks there if its check fails.
        first, last = bisect_right(ends, row.begins), bisect_left(begins, row.ends, checked_place)
        breaks = BREAKS_VALUE if row.kind >= SKIPPED and row.kind != REFUSED else BREAKS_RULE
        alternatives: list[Replica] = []
        for kind in kinds:
            of_kind = places[kind]
            near = of_kind[bisect_left(of_kind, first) : bisect_left(of_kind, last)]
            if near:
                before = [(sequence[place][0], states[place]) for place in near if place < checked_place]
                after = [sequence[place][0] for place in near if place >= checked_place]
                alternatives += [*_later(rows, at, before[::-1], replica), *_earlier(rows, at, after, replica, brokers)]
        depends = any(take(row, at, alternative, brokers)[0] == breaks for alternative in alternatives)
        yield at, rule, depends and take(row, at, replica, brokers)[0] == FITS


def _low_reads(rows: Sequence[Row], sequence: Sequence[Choice], begin: Replica) -> Iterator[tuple[LoggedStep, int]]:
    """Yield each consumer's read that shows less than the replica had at any time when it may have been made, and the least.

    The high watermark is meant: Partition#readRecords takes it from the log, once; a fetch that waited is read again before
    it is answered. A lower one breaks no rule, but the lines contradict each other: one is not what the broker wrote.
    """
    # By place in the sequence, the high watermark before the row there.
    hws = [begin.hw, *(after.hw for _, after in sequence)]
    reads = [(place, at, rows[at].step.shown_hw) for place, (at, _) in enumerate(sequence) if rows[at].kind == READ]
    low = [(place, at, hw) for place, at, hw in reads if hw is not None and UNKNOWN != hws[place] > hw]
    # Nearly always there is none.
    if not low:
        return
    ends = list(accumulate((rows[at].ends for at, _ in sequence), max))
    begins = list(accumulate((rows[at].begins for at, _ in reversed(sequence)), min))[::-1]
    lowest = _lowest_between(hws)
    for place, at, hw in low:
        row = rows[at]
        # What ended before it began came before it; what began after its end came after it.
        first, last = min(bisect_right(ends, row.begins), place), max(bisect_left(begins, row.ends, place), place)
        least = lowest(first, last + 1)  # UNKNOWN is below every number
        if UNKNOWN != least > hw:
            yield row.step, least


def _lowest_between(values: Sequence[int]) -> Callable[[int, int], int]:
    """Return a function (first, end) -> min(values[first:end]) that takes constant time: a sparse table.

    A read may be as long as all steps together.
    """
    # table[k][i] is the least of the 2^k values from i on.
    table = [list(values)]
    for k in range(len(values).bit_length() - 1):
        table.append([*map(min, table[k], table[k][1 << k :])])

    def least(first: int, end: int) -> int:
        """Return the least of values[first:end], which two stretches of 2^k values cover."""
        k = (end - first).bit_length() - 1
        return min(table[k][first], table[k][end - (1 << k)])

    return least


def _later(rows: Sequence[Row], at: int, before: Sequence[Choice], replica: Replica) -> Iterator[Replica]:
    """Yield the replicas that row `at` would find if rows before it came after it: the last one, the last two, and so on.

    `before` has those rows, all of one kind, the last one first, each with the replica that it found; `replica` is the one
    that row `at` finds now. Of counts only the log end of their follower is taken back: each follower has its own.
    """
    # Followers (-1: all rows that are no counts) of which a row cannot come later, so those before it cannot, either.
    fixed: set[int] = set()
    for other, state in before:
        row = rows[other]
        peer = row.values[0] if row.kind == COUNT else -1
        if peer in fixed:
            continue
        if row.ends <= rows[at].begins or _leads_to(rows, other, at):
            fixed.add(peer)
        elif row.kind != COUNT:
            replica = replica._replace(**{name: getattr(state, name) for name in _LEAVES[row.kind]})
            yield replica
        elif peer >= 0:
            yield replica._replace(counted=(*replica.counted[:peer], state.counted[peer], *replica.counted[peer + 1 :]))


def _earlier(rows: Sequence[Row], at: int, after: Sequence[int], replica: Replica, brokers: Brokers) -> Iterator[Replica]:
    """Yield the replica that row `at` would find if one of the rows `after` it came before it, for each that may."""
    for other in after:
        if other != at and rows[other].begins < rows[at].ends and not _leads_to(rows, at, other):
            yield take(rows[other], other, replica, brokers)[1]._replace(cause=replica.cause)


def _leads_to(rows: Sequence[Row], first: int, second: int) -> bool:
    """Return whether threads and sessions put row `first` before row `second`: along `follows`, over any number of rows."""
    to_visit, visited = [second], {second}
    while to_visit:
        for earlier in rows[to_visit.pop()].follows:
            if earlier == first:
                return True
            # A row follows only rows with smaller numbers: below `first` none leads back to it.
            if earlier > first and earlier not in visited:
                visited.add(earlier)
                to_visit.append(earlier)
    return False


# From rows back to events


def _events(rows: Sequence[Row], sequence: Sequence[Choice], begin: Replica) -> list[LoggedStep]:
    """Return the steps that are events, in order, each with its place and the high watermark that it found and left.

    `sequence` has the rows in order, each with the replica behind it; `begin` is the replica before the first.
    """
    states = [begin, *(after for _, after in sequence)]
    credited = _credited(rows, sequence, states)
    raising = set(credited.values())
    # The numbers in the sequence of the fetches that a response may become part of.
    joined = {id(row.step.joins) for row in rows if row.step.joins is not None}
    number_of_joined = (
        {id(rows[at].step): number for number, (at, _) in enumerate(sequence) if id(rows[at].step) in joined}
        if joined
        else {}
    )
    # The line that a step stands at: never one behind that of a later step.
    lines = list(accumulate((rows[at].step.line_index for at, _ in reversed(sequence)), min))[::-1]
    events: list[LoggedStep] = []
    filled: Filled = {}
    for number, (at, after) in enumerate(sequence):
        row, state = rows[at], states[number]
        step = row.step
        # It only shows something, so it has no high watermark to fill in. In a place, 0 and 1 are for steps that are not
        # ordered here: so `number + 2`.
        if row.kind >= RESPONSE and row.kind != REFUSED and step.joins is None:
            step.place = (step.run, lines[number], number + 2, step.time)
            events.append(step)
            continue
        # A raise is part of the event of the step that is credited with it.
        if step.name in (KEPT, FORGOTTEN) or (row.kind == RAISE and at in raising):
            continue
        # The replica was deleted after its proposal: nobody takes the response.
        if row.kind == ISR and state.role == ABSENT and step.fields.get("error"):
            continue
        # A response that was read before its fetch was counted is part of the event of the fetch.
        if step.joins is not None and number < number_of_joined.get(id(step.joins), -1):
            _join(row, states[number_of_joined[id(step.joins)]].hw)
            continue
        if step.name == RAISED:
            step.name = "HandleFetch"  # of an unknown replica: its process stopped logging before it printed which
        if step.name == "BecomeFollower":
            # Its fetcher had gone on after the line took the values (see `_fitting`): at this place they are wrong.
            _, leo, hw = row.values
            if not (_may_be(state.leo, leo) and _may_be(state.hw, hw)):
                step.fields.pop("leo", None)
                step.fields.pop("hw", None)
        if step.name in _CHANGES_HIGH_WATERMARK:
            raised = rows[credited[at]] if at in credited else None
            # An append or fetch between a fetch and the raise that it allowed finds that high watermark.
            before = state.due if state.cause == after.cause >= 0 and row.kind in (APPEND, COUNT) else state.hw
            if raised is not None or not step.in_flight:
                _fill_high_watermark(step, before, after.hw, None if raised is None else _raise_of(raised), filled)
        # Its raise is in the event of the step that is credited with it: here the high watermark does not change any more.
        if at in raising:
            step.fields = step.fields | {"hw_before": after.hw, "hw": after.hw}
        step.place = (step.run, lines[number], number + 2, step.time)
        events.append(step)
    return events


def _credited(rows: Sequence[Row], sequence: Sequence[Choice], states: Sequence[Replica]) -> dict[int, int]:
    """Return, by the number of each row that is credited with a raise (rule 3), that of the row which has the raise.

    `states` are the replicas before each row of the sequence, and the last one.
    """
    credited: dict[int, int] = {}
    for (at, _), state in zip(sequence, states, strict=False):
        row = rows[at]
        if state.cause >= 0 and (row.kind == RAISE or _raises_due(row, state)):
            credited.setdefault(state.cause, at)
        elif row.kind == RAISE and row.step.follows:
            # Nothing allowed it, so it is of the step whose thread printed it: the judge says what that lacked.
            credited.update((cause, at) for cause in row.follows if rows[cause].step in row.step.follows)
    return credited


def _join(response: Row, counted_hw: int) -> None:
    """Join a response that was read before its fetch was counted to the step of that fetch.

    `counted_hw` is the high watermark when the fetch was counted.
    """
    step, fetch = response.step, response.step.joins
    assert fetch is not None, step.at
    fetch.fields = fetch.fields | step.fields
    fetch.provides += step.provides
    # The leader had one high watermark when it read, and another one when it counted: the event has one only.
    if UNKNOWN != counted_hw > response.values[0] != UNKNOWN:
        del fetch.fields["res_hw"]


Filled = dict[tuple[int, int], tuple[Fields, Fields]]
"""By id() of a step's fields and the high watermark: these fields, and what they became with it."""
_SHOWS_HIGH_WATERMARK = frozenset({"HandleFetch", "LeaderAppend", "HandleAlterPartitionResponse"})
_CHANGES_HIGH_WATERMARK = _SHOWS_HIGH_WATERMARK | {"LogStartMoved"}


def _fill_high_watermark(step: LoggedStep, before: int, after: int, raised: tuple[int, ...] | None, filled: Filled) -> None:
    """Give a step of a leader the high watermark `before` and `after` it: lines name it only where it changes.

    `raised` has both if the step is credited with a raise. Steps that share their fields still do: `filled` keeps them.
    """
    fields = step.fields
    if raised is not None:
        hw_before, hw = raised
        has_own = step.name == "HandleAlterPartitionResponse" and "hw_before" in fields
        step.fields = fields | ({} if has_own else {"hw_before": hw_before}) | {"hw": hw}
    elif step.name in _SHOWS_HIGH_WATERMARK and before != UNKNOWN:
        key = id(fields), before
        if key not in filled:
            # A request for another topic of this name shows nothing of this replica.
            of_another_topic = fields.get("error") in OF_ANOTHER_TOPIC
            filled[key] = fields, fields if of_another_topic else fields | {"hw_before": before, "hw": before} | fields
        step.fields = filled[key][1]
    elif step.name == "LogStartMoved" and after != UNKNOWN:
        step.fields["hw"] = after
