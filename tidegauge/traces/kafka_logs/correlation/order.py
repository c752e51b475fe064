"""The order of the steps of one replica within one process: one that threads, locks and values allow, if there is any.

A line is where its thread got to write it, not where the thing happened, up to 50 ms later. So each step has an interval:

    thread A    line ....... step ... line        it happened after the line before it of its thread was in the file, and
                 ^begins              ^ends       before its own line was stamped (a role: before the thread's next line)

    request     since .. completed                the request log counts back from a line that was written after the response
                                                  was sent; `since` is told by the line before it (request_log.py)

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
    SKIPPED,  # `Skipping update high watermark`: high watermark, pairs of replica and log end
    RESPONSE,  # high watermark, log end with its records
    READ,  # by a consumer: the offset that it must have been below
    ACKNOWLEDGED,  # log end with the records, error
    REFUSED,  # error, epoch of its request
    FETCH_SENT,  # epoch
    IDLE,
) = range(21)
"""Kinds of rows, with the values of each; those from SKIPPED on only observe."""
FITS, BREAKS_RULE, BREAKS_VALUE = range(3)
NO_ROLE, LEADS, FOLLOWS, ABSENT = range(4)

ACCEPTS = TAKES_RESPONSES - {"HandleFetchError"}
"""Steps that take a response over: only one to a request of their own leader epoch."""


class Replica(NamedTuple):
    """What a step finds and leaves; `counted` has the recorded log end of each broker.

    `cause` is the row that may have allowed a raise which has not come yet, -1 for none; `due` the high watermark that this
    raise must reach, UNKNOWN if it need not come. `min_isr` is the highest min.insync.replicas that its log has: below it
    nothing must be raised (KIP-966). `partition_epoch` is that of the ISR.
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
    """The brokers that the steps name: the position of the own one among them, and their number."""

    own: int
    number: int


class Row(NamedTuple):
    """A step in numbers; `values` are those of its kind (see `_row`), `follows` rows that come before it in any order."""

    kind: int
    values: tuple[int, ...]
    begins: int
    ends: int
    follows: tuple[int, ...]
    step: LoggedStep
    alike: int
    """A number that rows of one kind and the same values share, if they were made of the same fields."""
    response: int = -1
    """The row of the response that was sent at once, of a fetch that is counted."""


@dataclass
class Placement:
    """How many steps moved from their stamps, and the steps that fit no order, with what each breaks.

    Those `at_limit` of the search are among them: an order may be there.
    """

    moved: int = 0
    stuck: list[tuple[LoggedStep, int]] = field(default_factory=list)
    at_limit: list[LoggedStep] = field(default_factory=list)
    low_reads: list[tuple[LoggedStep, int]] = field(default_factory=list)
    """Reads that show less than the replica had at any time when they may have been made, with the least that it had."""
    checks: Counter[tuple[str, bool]] = field(default_factory=Counter)
    """By rule: those that hold in any order, and those that depend on it."""


def order_of_node(broker: LoggedBroker) -> Placement:
    """Order the steps of each replica of a broker; those of its controller, and those after its lines, stay in place."""
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
"""More than every ISR, so that no raise is due; and so few that any ISR will do."""


def order(
    steps: Sequence[LoggedStep], node: int, placement: Placement, min_isr: Sequence[MinIsrOfLog] = _SMALLEST_MIN_ISR
) -> list[LoggedStep]:
    """Order the steps of one replica in one process of `node`; return those that are events. `placement` notes moves."""
    peers = sorted(_peers(steps) | {node})
    rows = _rows(steps, {peer: at for at, peer in enumerate(peers)}, min_isr)
    search = _Search(rows, Brokers(peers.index(node), len(peers)), _min_isr_at(min_isr, steps[0].place, len(peers)))
    taken = search.run(placement)
    placement.moved += sum(1 for place, (row, _) in enumerate(taken) if place != row)
    placement.low_reads += _low_reads(rows, taken, search.begin)
    placement.checks.update((rule, depends) for _, rule, depends in checks_of(rows, taken, search))
    return _events(rows, taken, search.begin)


# From steps to rows


def _peers(steps: Sequence[LoggedStep]) -> set[int]:
    """Return the ids of all brokers that the steps name: they become columns of `counted` and bits of an ISR."""
    # Fetches that are alike share their fields: each is looked at once.
    distinct = {id(step.fields): step.fields for step in steps}.values()
    peers = {peer for peer in {fields["peer"] for fields in distinct if "peer" in fields} if isinstance(peer, int)}
    peers.update(*{isr for fields in distinct if "isr" in fields and isinstance(isr := fields["isr"], tuple)})
    peers.update(*(leos(str(step.fields["leos"])) for step in steps if step.name == KEPT))
    return peers


def _min_isr_at(min_isr: Sequence[MinIsrOfLog], place: Place, peers: int) -> int:
    """Return the min.insync.replicas of the log at a place; where it is unknown, one that no ISR reaches."""
    highest = next((log.highest for log in reversed(min_isr) if log.begin <= place[:2]), min_isr[0].highest)
    return peers + 1 if highest is None else highest


def _rows(
    steps: Sequence[LoggedStep], peers: dict[int, int], min_isr: Sequence[MinIsrOfLog] = _SMALLEST_MIN_ISR
) -> list[Row]:
    """Return the steps as rows of the search, in the order of their keys, each with the rows that it follows."""
    _follow_start(steps)
    in_order = _in_order(steps)
    # One thread writes its lines in the order in which it does things.
    position = dict(zip(in_order, range(len(in_order)), strict=True))
    last: dict[str, int] = {}
    rows: list[Row] = []
    # Fetches ask and answer the same again and again, and their steps share their fields. By name and ids of the fields of a
    # step and of its response: a number for all that are alike, and (kind, values) of their rows.
    made: dict[tuple[str, int, int], tuple[int, tuple[int, tuple[int, ...]]]] = {}
    for row, step in enumerate(in_order):
        follows: tuple[int, ...] = ()
        if step.follows:
            follows = tuple([at for cause in step.follows if (at := position.get(cause, row)) < row])
        if thread := step.thread:
            if thread in last:
                follows += (last[thread],)
            last[thread] = row
        key = step.name, id(step.fields), 0 if step.response is None else id(step.response.fields)
        if (known := made.get(key)) is None:
            known = made[key] = len(made), _row(step, peers)
        alike, (kind, values) = known
        if kind == START:
            # The topic may be one that was deleted and made again, with another configuration.
            values = (*values, _min_isr_at(min_isr, step.place, len(peers)))
        (stamp, *_), begins, ends = step.key, step.begins, step.ends
        response = position.get(step.response, -1) if kind == COUNT and step.response is not None else -1
        begins, ends = begins if begins < stamp else stamp - 1, max(stamp, ends)
        rows.append(_new_row((kind, values, begins, ends, follows, step, alike, response)))
    return rows


def _follow_start(steps: Sequence[LoggedStep]) -> None:
    """Let steps follow the start of the replica that are put before it by their stamps, or by an older topic of its name."""
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
            # 3.x prints milliseconds.
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


def _row(step: LoggedStep, peers: dict[int, int]) -> tuple[int, tuple[int, ...]]:
    """Return the kind of a step, and the values that it finds or leaves."""
    name, fields = step.name, step.fields
    # The three of a fetch first: nearly every step is one of them.
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
        # Up to 3.x the leader's own log end is among them.
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
    value = fields.get(name)
    return value if type(value) is int else UNKNOWN  # a bool is no number


# What a step finds and leaves


def _lowest(replica: Replica, own: int, members: int) -> int:
    """Return the lowest recorded log end of `members`, the leader's own among them; UNKNOWN if one is unknown."""
    lowest = replica.leo
    for peer, end in enumerate(replica.counted):
        if peer != own and members >> peer & 1:
            lowest = min(lowest, end)  # UNKNOWN is below every number
    return lowest


def _may_be(value: int, expected: int) -> bool:
    return value == expected or UNKNOWN in (value, expected)


def take(row: Row, at: int, replica: Replica, brokers: Brokers) -> tuple[int, Replica]:
    """Return what a row breaks at this replica, and what it leaves: a step that does not fit leaves what it says.

    `row.values` are those that `_row` gives its kind; `at` is the row's number.
    """
    kind, values = row.kind, row.values
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
        members = replica.isr if replica.isr == UNKNOWN else replica.isr | replica.pending
        lowest = UNKNOWN if members == UNKNOWN else _lowest(replica, brokers.own, members)
        # Only a leader looks (Partition#leaderLogIfLocal).
        if replica.cause < 0 or replica.role not in (LEADS, UNKNOWN) or (lowest != UNKNOWN and hw > lowest):
            broken = BREAKS_RULE
        after = replica._replace(hw=hw, cause=-1, due=UNKNOWN)
    elif kind == UNNAMED:
        hw_before, hw = values
        fits = _may_be(replica.hw, hw_before)
        # The log end of the replica that fetched is the only one that may be missing.
        members = 0 if replica.isr == UNKNOWN else (replica.isr | replica.pending) & ~(1 << brokers.own)
        short = [peer for peer, end in enumerate(replica.counted) if members >> peer & 1 and UNKNOWN != end < hw]
        if len(short) > 1:
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
        after = replica._replace(leo=leo, hw=hw, pending=max(isr, 0), cause=-1)
    elif kind == EXPAND:
        isr, partition_epoch = values
        broken = broken if _proposes(partition_epoch, replica) else BREAKS_RULE
        fits, after = True, replica._replace(pending=max(isr, 0))
    elif kind == LEAD:
        epoch, isr, leo, hw_before, hw, partition_epoch = values
        fits = _may_be(replica.leo, leo) and _may_be(replica.hw, hw_before)
        # Partition#makeLeader looks at the high watermark last, at what was counted in the same leader epoch.
        if (replica.role, replica.epoch) == (LEADS, epoch) and isr != UNKNOWN and hw > hw_before:
            broken = BREAKS_RULE if UNKNOWN != _lowest(replica, brokers.own, isr) < hw else broken
        # A leader that is elected again keeps the log ends that it recorded (finding F2); one that followed has none
        # (Replica#resetReplicaState).
        counted = (-1,) * len(replica.counted) if replica.role == FOLLOWS else replica.counted
        leo = leo if leo != UNKNOWN else replica.leo
        after = Replica(leo, hw, epoch, LEADS, isr, 0, -1, UNKNOWN, counted, replica.min_isr, partition_epoch)
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
        fits = True
        hw = UNKNOWN if UNKNOWN in (replica.hw, log_start) else high_watermark_after_log_start(replica.hw, log_start)
        after = replica._replace(hw=hw, cause=-1)
    elif kind == START:
        leo, hw, min_isr = values
        fits, after = True, Replica(leo, hw, -1, NO_ROLE, counted=(-1,) * len(replica.counted), min_isr=min_isr)
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
    """Return whether a change of role or ISR has the raise that a fetch left due whose thread has not looked yet."""
    return row.kind in (LEAD, ISR) and replica.cause >= 0 and _raise_of(row) == (replica.hw, replica.due)


def _raise_of(row: Row) -> tuple[int, ...]:
    """Return the high watermark before and after a raise, or a step that raises itself."""
    return row.values[3:5] if row.kind == LEAD else row.values[1:3] if row.kind == ISR else row.values[:2]


def _counts(values: tuple[int, ...], replica: Replica) -> int:
    """Return what a counted fetch breaks: it counts at a leader in its epoch, and its response shows no old value."""
    _, _, response_hw, request_epoch = values
    if replica.role not in (LEADS, UNKNOWN) or not _may_be(replica.epoch, request_epoch):
        return BREAKS_RULE
    # A response that is sent at once is read before the fetch is counted: the event has both, at the high watermark of the
    # response or before it.
    return BREAKS_VALUE if UNKNOWN not in (replica.hw, response_hw) and replica.hw > response_hw else FITS


def _counted(values: tuple[int, ...], at: int, replica: Replica, brokers: Brokers) -> Replica:
    """Return what a counted fetch leaves: the log end of its replica, and the high watermark that is due then."""
    peer, end, *_ = values
    # Nothing new was recorded: such a fetch allows no raise.
    if peer < 0 or replica.counted[peer] == end:
        return replica if replica.cause < 0 else replica._replace(cause=-1)
    counted = (*replica.counted[:peer], end, *replica.counted[peer + 1 :])
    after = replica._replace(counted=counted, cause=at)
    # With every log end known, those outside the ISR among them, the rule leaves no choice.
    # Partition#maybeIncrementLeaderHW
    lowest = _lowest(after, brokers.own, (1 << len(counted)) - 1)
    too_few_in_sync = replica.isr == UNKNOWN or replica.isr.bit_count() < replica.min_isr
    return after._replace(due=UNKNOWN if too_few_in_sync or after.hw == UNKNOWN or lowest <= after.hw else lowest)


def _observed(kind: int, values: tuple[int, ...], replica: Replica) -> int:
    """Return whether what a step shows is what there is."""
    if replica.role == ABSENT and kind not in (IDLE, SKIPPED):
        error = values[0] if kind == REFUSED else values[1] if kind == ACKNOWLEDGED else NONE
        return FITS if error in NO_REPLICA else BREAKS_RULE
    if kind == FETCH_SENT:
        (request_epoch,) = values
        return FITS if _may_be(replica.epoch, request_epoch) else BREAKS_RULE
    if kind == RESPONSE:
        hw, records_end = values
        there = UNKNOWN in (replica.leo, records_end) or replica.leo >= records_end
        return FITS if there and _may_be(replica.hw, hw) else BREAKS_VALUE
    # A reader was shown, and a producer was told, no more than is committed.
    if kind in (READ, ACKNOWLEDGED):
        bound = values[0]
        return FITS if UNKNOWN in (replica.hw, bound) or replica.hw >= bound else BREAKS_VALUE
    if kind == SKIPPED:
        hw, *pairs = values
        if UNKNOWN not in (replica.hw, hw) and replica.hw < hw:
            return BREAKS_VALUE
        # The line lists the log ends that the leader has recorded; peer -1 is the leader itself.
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
    """Return whether a request in `epoch` gets this response."""
    if replica.role == UNKNOWN or replica.epoch == UNKNOWN:
        return True
    # Its leader epoch is -1 (Partition#leaderEpoch), so no request is too old for it, and none is served.
    if replica.role == NO_ROLE:
        return error not in (NONE, OFFSET_OUT_OF_RANGE, FENCED_LEADER_EPOCH)
    expected = fetch_error(epoch, replica.epoch, replica.role == LEADS, True, epoch >= 0)
    if error in (NONE, OFFSET_OUT_OF_RANGE):
        return expected == NONE
    # Other errors (storage, topic ids) refuse for reasons that no line shows.
    return error == expected or error not in (NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)


# The search


class _Point(NamedTuple):
    """Which rows are taken, those before `first_open` and those `taken_ahead`, and what they left."""

    first_open: int
    taken_ahead: frozenset[int]
    replica: Replica


class _Node:
    """A point of the search at which `depth` rows are taken, and what is left of the choices there."""

    __slots__ = ("choices", "depth", "point")

    def __init__(self, point: _Point, depth: int, choices: Iterator[Choice]) -> None:
        # The choices must not refer to the node: that is a cycle, and no cycle is collected while logs are read.
        self.point, self.depth, self.choices = point, depth, choices


class _Search:
    def __init__(self, rows: Sequence[Row], brokers: Brokers, min_isr: int = 1) -> None:
        """Begin with nothing known of the replica. `least_end[i]`: the earliest end of the rows from i on."""
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
        """Return the rows in the order that was found, each with what it left."""
        taken: list[Choice] = []
        begin = _Point(0, frozenset(), self.begin)
        stack = [_Node(begin, 0, self._choices(begin))]
        dead: set[_Point] = set()
        # How far the search came before it had to go back, and where it was then.
        furthest, stuck = -1, stack[0]
        taken_back, in_all, limit = 0, 0, MOST_TAKEN_BACK
        while stack[-1].point.first_open < len(self.rows):
            node = stack[-1]
            choice = next(node.choices, None)
            if choice is not None:
                taken.append(choice)
                point = self._after(node.point, *choice, taken)
                if dead and point in dead:
                    del taken[node.depth :]
                    continue
                stack.append(_Node(point, len(taken), self._choices(point)))
                # The search goes back ROWS_BACK rows at most: what was taken before them stays.
                if len(taken) - stack[0].depth > 2 * ROWS_BACK:
                    stack = [one for one in stack if len(taken) - one.depth <= ROWS_BACK]
                    dead.clear()
                    furthest, taken_back = -1, 0
                continue
            if len(taken) > furthest:
                furthest, stuck = len(taken), node
            dead.add(node.point)
            taken_back += 1
            if len(stack) > 1 and taken_back <= limit:
                stack.pop()
                del taken[stack[-1].depth :]
                continue
            # No order fits, or none was found within the limit. One step is given up: it goes where its stamp puts it.
            at, broken = self._blocking(stuck.point)
            in_all += taken_back
            if taken_back > limit:
                placement.at_limit.append(self.rows[at].step)
            if taken_back > limit or in_all > MOST_IN_ALL:
                limit = max(limit // 2, LEAST_TAKEN_BACK)
            self.given_up.add(at)
            placement.stuck.append((self.rows[at].step, broken))
            del taken[stack[0].depth :]
            stack = [_Node(stack[0].point, stack[0].depth, self._choices(stack[0].point))]
            dead.clear()
            furthest, taken_back = -1, 0
        return taken

    def _after(self, point: _Point, at: int, replica: Replica, sequence: list[Choice]) -> _Point:
        """Return the next point with a choice, or one not far behind; add to `sequence` what is taken until then."""
        if at != point.first_open:
            return _Point(point.first_open, point.taken_ahead | {at}, replica)
        first_open = at + 1
        while first_open in point.taken_ahead:
            first_open += 1
        taken_ahead = point.taken_ahead and frozenset(row for row in point.taken_ahead if row > first_open)
        end = first_open if taken_ahead else min(len(self.rows), first_open + ROWS_BACK // 8)
        # What changed nothing, and was free to, does so again at the same replica.
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
        """Return what the first row leaves if it must be taken now, or can be without losing an order; else None."""
        row = self.rows[first_open]
        if row.kind > SKIPPED and replica.cause < 0:
            fits = _observed(row.kind, row.values, replica) == FITS or first_open in self.given_up
            return replica if fits else None
        due = replica.due != UNKNOWN and replica.due > replica.hw
        alone = not due and not taken_ahead and self.least_begin[first_open + 1] >= row.ends
        if not alone and replica.cause >= 0:
            return None
        broken, after = take(row, first_open, replica, self.brokers)
        if broken != FITS and first_open not in self.given_up:
            return None
        # What changes nothing and comes first by its stamp is taken: no other order has more.
        return after if alone or row.kind >= SKIPPED or (not due and after == replica) else None

    def _open(self, point: _Point) -> list[int]:
        """Return the rows that may come next, as far as intervals, threads and sessions go, in the order of their stamps."""
        begins, ends, first_open, taken_ahead = self.begins, self.ends, point.first_open, point.taken_ahead
        last = max(taken_ahead, default=first_open)
        # The two earliest ends: a row does not wait for itself.
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
            if at > last and self.least_begin[at] >= earliest:
                break
            if at in taken_ahead or begins[at] >= (next_earliest if ends[at] == earliest else earliest):
                continue
            for one in self.rows[at].follows:
                if one >= first_open and one not in taken_ahead:
                    break
            else:
                may_come.append(at)
        return may_come

    def _choices(self, point: _Point) -> Iterator[Choice]:
        """Yield what may come next and fits: observers first, then by stamp; right after a cause, the raise."""
        rows, replica = self.rows, point.replica
        forced = self._forced(*point)
        if forced is not None:
            yield point.first_open, forced
            return
        due = replica.due != UNKNOWN and replica.due > replica.hw
        changing, observing, last_resort, before_due_raise = self._fitting(point, due)
        if replica.cause >= 0:
            for choice in (choice for choice in changing if rows[choice[0]].kind == RAISE):
                # A replica that was caught up lately holds the raise back, in the ISR or not: its fetch comes before it.
                if rows[replica.cause].kind == COUNT:
                    yield from (one for one in changing if self._reaches(one[0], rows[choice[0]].values[1], replica))
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
        """Return what may come next: rows that change the replica, rows that observe it, and two exceptions.

        One is for where nothing else leads on; the other stands between a fetch and the raise that it left `due`.
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
            # Read, then another thread raised, then counted: there is no event for a count at a later high watermark than
            # that of its response, so this comes last.
            read = row.response
            if broken == BREAKS_VALUE and row.kind == COUNT and (0 <= read < point.first_open or read in point.taken_ahead):
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
                # Between a cause and its raise nothing may be shown.
                elif not due or row.kind == SKIPPED or at in self.given_up:
                    observing.append((at, after))
        return changing, observing, last_resort, before_due_raise

    def _has_raise_of_another(self, at: int, replica: Replica) -> bool:
        """Return whether a row's thread printed the raise that another thread's fetch left due, before that one was done."""
        row, cause = self.rows[at], self.rows[replica.cause]
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
        """Return whether a fetch is counted in this row that brings its replica up to a high watermark."""
        row = self.rows[at]
        return row.kind == COUNT and row.values[0] >= 0 and UNKNOWN != replica.counted[row.values[0]] < hw <= row.values[1]

    def _take(self, at: int, replica: Replica) -> tuple[int, Replica]:
        broken, after = take(self.rows[at], at, replica, self.brokers)
        return FITS if at in self.given_up else broken, after

    def _blocking(self, point: _Point) -> tuple[int, int]:
        """Return the step that blocks the others, as it ends first, and what it breaks."""
        waiting = [at for at in self._open(point) if at not in self.given_up] or [point.first_open]
        at = min(waiting, key=lambda row: (self._take(row, point.replica)[0] == FITS, self.rows[row].ends, row))
        return at, take(self.rows[at], at, point.replica, self.brokers)[0]


# Checks that depend on the order: another step may stand on the other side of them, and would break them there. Of the two
# lines in rule 3 the search takes the count first, for before it the raise breaks HW-02; threads and times allow both. It is
# not asked whether every other step finds what it says then: at most so many checks depend on the order.

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
"""What a row leaves that a check may rest on."""


def checks_of(rows: Sequence[Row], sequence: Sequence[Choice], search: _Search) -> Iterator[tuple[int, str, bool]]:
    """Yield the row and the rule of each check of a leader, and whether it depends on the order of the rows."""
    brokers, states = search.brokers, [search.begin, *(after for _, after in sequence)]
    # What ends before a row begins comes before it, and what begins after its end comes after it.
    ends = list(accumulate((rows[at].ends for at, _ in sequence), max))
    begins = list(accumulate((rows[at].begins for at, _ in reversed(sequence)), min))[::-1]
    places: dict[int, list[int]] = {kind: [] for kind in (COUNT, *_LEAVES)}
    for place, (at, _) in enumerate(sequence):
        if rows[at].kind in places:
            places[rows[at].kind].append(place)
    of_rule = {kind: sorted(place for one in kinds for place in places[one]) for kind, (_, kinds) in RULES.items()}
    for number, (at, _) in enumerate(sequence):
        row, found = rows[at], states[number]
        if row.kind not in RULES or found.role not in (LEADS, UNKNOWN):
            continue
        rule, kinds = RULES[row.kind]
        # Nearly always nothing is near on which the check rests.
        nearest = of_rule[row.kind]
        behind = bisect_left(nearest, number)
        if (not behind or ends[nearest[behind - 1]] <= row.begins) and (
            behind == len(nearest) or begins[nearest[behind]] >= row.ends
        ):
            yield at, rule, False
            continue
        first, last = bisect_right(ends, row.begins), bisect_left(begins, row.ends, number)
        breaks = BREAKS_VALUE if row.kind >= SKIPPED and row.kind != REFUSED else BREAKS_RULE
        others: list[Replica] = []
        for kind in kinds:
            of_kind = places[kind]
            near = of_kind[bisect_left(of_kind, first) : bisect_left(of_kind, last)]
            if near:
                before = [(sequence[place][0], states[place]) for place in near if place < number]
                after = [sequence[place][0] for place in near if place >= number]
                others += [*_later(rows, at, before[::-1], found), *_earlier(rows, at, after, found, brokers)]
        depends = any(take(row, at, other, brokers)[0] == breaks for other in others)
        yield at, rule, depends and take(row, at, found, brokers)[0] == FITS


def _low_reads(rows: Sequence[Row], sequence: Sequence[Choice], begin: Replica) -> Iterator[tuple[LoggedStep, int]]:
    """Yield each read that shows a lower high watermark than any that the replica had while it may have been made.

    Partition#readRecords takes it from the log, once; one that waited is read again before it is answered. A lower one
    breaks no rule, but the lines that say it contradict each other: one is not what the broker wrote.
    """
    had = [begin.hw, *(after.hw for _, after in sequence)]
    shown = [(number, at, rows[at].step.shown_hw) for number, (at, _) in enumerate(sequence) if rows[at].kind == READ]
    low = [(number, at, hw) for number, at, hw in shown if hw is not None and UNKNOWN != had[number] > hw]
    # Nearly always there is none.
    if not low:
        return
    ends = list(accumulate((rows[at].ends for at, _ in sequence), max))
    begins = list(accumulate((rows[at].begins for at, _ in reversed(sequence)), min))[::-1]
    lowest = _lowest_between(had)
    for number, at, hw in low:
        row = rows[at]
        # What ended before it began came before it; what began after its end came after it.
        first, last = min(bisect_right(ends, row.begins), number), max(bisect_left(begins, row.ends, number), number)
        least = lowest(first, last + 1)  # UNKNOWN is below every number
        if UNKNOWN != least > hw:
            yield row.step, least


def _lowest_between(values: Sequence[int]) -> Callable[[int, int], int]:
    """Return what gives the least of values[first:end] at once: a read may be as long as all steps together."""
    # of[k][i] is the least of the 2^k values from i on.
    of = [list(values)]
    for k in range(len(values).bit_length() - 1):
        of.append([*map(min, of[k], of[k][1 << k :])])

    def least(first: int, end: int) -> int:
        k = (end - first).bit_length() - 1
        return min(of[k][first], of[k][end - (1 << k)])

    return least


def _later(rows: Sequence[Row], at: int, before: Sequence[Choice], replica: Replica) -> Iterator[Replica]:
    """Yield what a row finds if rows before it, each with what it found, come after it: the last, the last two, .."""
    stay: set[int] = set()
    for other, found in before:
        row = rows[other]
        peer = row.values[0] if row.kind == COUNT else -1
        if peer in stay:
            continue
        if row.ends <= rows[at].begins or _leads_to(rows, other, at):
            stay.add(peer)
        elif row.kind != COUNT:
            replica = replica._replace(**{name: getattr(found, name) for name in _LEAVES[row.kind]})
            yield replica
        elif peer >= 0:
            yield replica._replace(counted=(*replica.counted[:peer], found.counted[peer], *replica.counted[peer + 1 :]))


def _earlier(rows: Sequence[Row], at: int, after: Sequence[int], replica: Replica, brokers: Brokers) -> Iterator[Replica]:
    """Yield what a row finds if one of the rows after it comes before it."""
    for other in after:
        if other != at and rows[other].begins < rows[at].ends and not _leads_to(rows, at, other):
            yield take(rows[other], other, replica, brokers)[1]._replace(cause=replica.cause)


def _leads_to(rows: Sequence[Row], first: int, second: int) -> bool:
    """Return whether threads and sessions put a row before another."""
    waiting, seen = [second], {second}
    while waiting:
        for earlier in rows[waiting.pop()].follows:
            if earlier == first:
                return True
            if earlier > first and earlier not in seen:
                seen.add(earlier)
                waiting.append(earlier)
    return False


# From rows back to events


def _events(rows: Sequence[Row], sequence: Sequence[Choice], begin: Replica) -> list[LoggedStep]:
    """Return the events in order, each with its place and the high watermark that it found and left.

    `sequence` has the rows in order, each with what it left.
    """
    states = [begin, *(after for _, after in sequence)]
    credited = _credited(rows, sequence, states)
    raising = set(credited.values())
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
        row = rows[at]
        step = row.step
        if row.kind >= RESPONSE and row.kind != REFUSED and step.joins is None:
            step.place = (step.run, lines[number], number + 2, step.time)
            events.append(step)
            continue
        # A raise is part of the event of the step that is credited with it.
        if step.name in (KEPT, FORGOTTEN) or (row.kind == RAISE and at in raising):
            continue
        # The replica was deleted after its proposal: nobody takes the response.
        if row.kind == ISR and states[number].role == ABSENT and step.fields.get("error"):
            continue
        if step.joins is not None and number < number_of_joined.get(id(step.joins), -1):
            _join(row, states[number_of_joined[id(step.joins)]].hw)
            continue
        if step.name == RAISED:
            step.name = "HandleFetch"  # of an unknown replica: its process stopped logging before it printed which
        if step.name == "BecomeFollower":
            _, leo, hw = row.values
            if not (_may_be(states[number].leo, leo) and _may_be(states[number].hw, hw)):
                step.fields.pop("leo", None)
                step.fields.pop("hw", None)
        if step.name in _CHANGES_HIGH_WATERMARK:
            raised = rows[credited[at]] if at in credited else None
            found = states[number]
            # An append or fetch between a fetch and the raise that it allowed finds that high watermark.
            before = found.due if found.cause == after.cause >= 0 and row.kind in (APPEND, COUNT) else found.hw
            if raised is not None or not step.in_flight:
                _fill_high_watermark(step, before, after.hw, None if raised is None else _raise_of(raised), filled)
        if at in raising:
            step.fields = step.fields | {"hw_before": after.hw, "hw": after.hw}
        step.place = (step.run, lines[number], number + 2, step.time)
        events.append(step)
    return events


def _credited(rows: Sequence[Row], sequence: Sequence[Choice], states: Sequence[Replica]) -> dict[int, int]:
    """Return each row that is credited with a raise (rule 3), with the row that has the raise."""
    credited: dict[int, int] = {}
    for (at, _), found in zip(sequence, states, strict=False):
        row = rows[at]
        if found.cause >= 0 and (row.kind == RAISE or _raises_due(row, found)):
            credited.setdefault(found.cause, at)
        elif row.kind == RAISE and row.step.follows:
            # Nothing allowed it, so it is of the step whose thread printed it: the judge says what that lacked.
            credited.update((one, at) for one in row.follows if rows[one].step in row.step.follows)
    return credited


def _join(response: Row, counted_hw: int) -> None:
    """Join a response that was read before its fetch was counted to that fetch, which found the high watermark given."""
    step, fetch = response.step, response.step.joins
    assert fetch is not None, step.at
    fetch.fields = fetch.fields | step.fields
    fetch.provides += step.provides
    # The leader had one high watermark when it read, and another one when it counted: the event has one only.
    if UNKNOWN != counted_hw > response.values[0] != UNKNOWN:
        del fetch.fields["res_hw"]


Filled = dict[tuple[int, int], tuple[Fields, Fields]]
_SHOWS_HIGH_WATERMARK = frozenset({"HandleFetch", "LeaderAppend", "HandleAlterPartitionResponse"})
_CHANGES_HIGH_WATERMARK = _SHOWS_HIGH_WATERMARK | {"LogStartMoved"}


def _fill_high_watermark(step: LoggedStep, before: int, after: int, raised: tuple[int, ...] | None, filled: Filled) -> None:
    """Give a step of a leader the high watermark that it found and left: lines tell only those that change it.

    `filled` has, by fields and high watermark, these fields and what they became: steps that share them still do.
    """
    fields = step.fields
    if raised is not None:
        keeps = step.name == "HandleAlterPartitionResponse" and "hw_before" in fields
        step.fields = fields | ({} if keeps else {"hw_before": raised[0]}) | {"hw": raised[1]}
    elif step.name in _SHOWS_HIGH_WATERMARK and before != UNKNOWN:
        key = id(fields), before
        if key not in filled:
            others = fields.get("error") in OF_ANOTHER_TOPIC
            filled[key] = fields, fields if others else fields | {"hw_before": before, "hw": before} | fields
        step.fields = filled[key][1]
    elif step.name == "LogStartMoved" and after != UNKNOWN:
        step.fields["hw"] = after
