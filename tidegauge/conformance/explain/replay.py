"""Judge a trace again, event by event, with a snapshot of what the judge knows after each; write events and values as text.

A broker is named by its position in the config's nodes; a set of brokers is a bit mask of positions. `st` is the judge's
table of integers (judge.state): a replica has a row in it, `s.HW` and the like are its columns. Rows of columns are events
(traces.columns).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tidegauge.conformance.engine.judge import (
    FAILURES_KEPT,
    PAST_AT_FIRST,
    ROOM_AT_FIRST,
    Failure,
    execution,
    frozen,
    frozen_inputs,
    more_room,
    none_if_unknown,
    options_of,
)
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.fields import AGREE, COMPARED, IN_SYNC
from tidegauge.conformance.judge.lineage import fork_end, fork_start
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.traces.columns import INT_FIELDS, Columns
from tidegauge.traces.schema import EVENTS, FIELDS, Config, Event, FieldKind

# Turns rows of columns into events, and events and their values into words.
#
# Rules of this part
#
# 1. `event_at` is the inverse of traces.columns.to_columns for one row, so that an event of Parquet reads like a line.
# 2. Values are words only here and in impl.explorer.describe: node ids, sets of nodes, error names, "undefined" for -1.


_NAMES = {event.code: name for name, event in EVENTS.items()}
"""The name of an event by its code in columns."""
IN_FLIGHT = (
    "nothing",
    "a request",
    "a recorded fetch whose response was not reported",
    "records",
    "a diverging response",
    "an out-of-range response",
    "an error",
    "an epoch request",
    "an epoch response",
    "a request whose leader went down",
    "one of several responses",
)
"""What is in flight between a follower and a leader, by the judge's kind (judge.state.NOTHING to AMBIGUOUS)."""
_ROLES = {s.NO_ROLE: "without a role", s.LEADING: "leader", s.FOLLOWING: "follower"}


BOUNDED = frozenset(
    {
        *(("ACK-01", "hw"), ("APPEND-02", "rec_base"), ("APPEND-02", "rec_epoch"), ("APPEND-03", COMPARED[IN_SYNC])),
        *(("CTRL-03", "leader_epoch"), ("CTRL-09", "broker_epoch"), ("DATA-01", "leo")),
        *(("DATA-01", COMPARED[AGREE]), ("DATA-02", COMPARED[AGREE]), ("DATA-03", "leo"), ("DATA-03", COMPARED[AGREE])),
        *(
            ("EPOCH-02", "epoch_start"),
            ("EPOCH-02", "leader_epoch"),
            ("EPOCH-02", "rec_epoch"),
            ("EPOCH-03", "leader_epoch"),
        ),
        *(("EPOCH-06", "partition_epoch"), ("FETCH-06", "rec_end"), ("FETCH-08", "res_hw"), ("HW-01", "hw")),
        *(("HW-02", "hw"), ("HW-04", "hw"), ("HW-10", "hw"), ("ISR-01", "remote_leo"), ("ISR-02", "remote_leo")),
        *(("LOAD-01", "hw"), ("LOAD-01", "leo"), ("LOG-01", "log_start"), ("LOG-02", "hw"), ("READ-01", "bound")),
        *(("READ-01", "rec_end"), ("TRUNC-02", "req_last_epoch"), ("TRUNC-04", "leo"), ("TRUNC-04", "leo_before")),
    }
)
"""Checks whose expected value is a bound, as (rule, what is compared)."""
MEMBERS = {
    ("CTRL-01", "elected leader"): "one of {expected}",
    ("CTRL-01", "isr"): "{expected}: {who} leads",
    ("CTRL-01", "live"): "{expected}: {who} leads",
    ("CTRL-03", "isr"): "one that was registered in this leader epoch; the latest is {expected}",
    ("CTRL-04", "isr"): "{expected}: {who} is fenced, or not live",
    ("CTRL-05", "isr"): "{expected}, or one of them",
    ("CTRL-06", "elr"): "{expected}: {who} is in the ISR, or no replica",
    ("CTRL-07", "elr"): "{expected}: {who} is not eligible, or no longer",
    ("CTRL-08", "adding"): "{expected}: {who} is no replica, or is removed as well",
    ("CTRL-08", "isr"): "{expected}: {who} is no replica",
    ("CTRL-08", "removing"): "{expected}: {who} is no replica",
    ("ISR-01", "isr"): "{expected}: the committed ISR and one new member",
    ("ISR-02", "isr"): "fewer of {expected}, with the leader",
    ("ISR-04", "isr"): "{expected}: what the leader proposed, if anything",
    ("ISR-04", "live"): "{expected}: {who} joins the ISR",
}
"""Checks of sets of brokers, as (rule, what is compared): what is expected; `who`: brokers that are in one set only."""


def event_at(columns: Columns, row: int, config: Config, at: str = "") -> Event:
    """Return the event in a row of columns; `at` is where it was read."""
    values = {name: none_if_unknown(int(columns.ints[name][row])) for name in INT_FIELDS if name in columns.ints}
    fields = {name: _decoded(name, value, config) for name, value in values.items() if value is not None}
    # An empty cache that was reported differs from one that was not: the pairs alone do not show it.
    if columns.epochs_reported[row]:
        # The pairs (epoch, start offset) of all rows follow each other flat.
        flat = columns.epochs[2 * columns.epochs_at[row] : 2 * columns.epochs_at[row + 1]].tolist()
        fields["epochs"] = tuple(zip(flat[::2], flat[1::2], strict=True))
    # A config need not name its controller, whose node is 0 then.
    return Event(_node(int(columns.node[row]), config) or 0, _NAMES[int(columns.event[row])], fields, at=at)


def _node(position: int, config: Config) -> int | None:
    """Return the node id at a position: a broker's, or after the last broker the controller's; None below 0."""
    if position < 0:
        return None
    return config.nodes[position] if position < len(config.nodes) else config.controller


def _decoded(name: str, value: int, config: Config) -> Any:
    """Return the value of a field as an event has it: node ids instead of positions and masks."""
    kind = FIELDS[name].kind
    if kind is FieldKind.NODE:
        return _node(value, config)
    if kind is FieldKind.NODES:
        return node_ids(value, config)
    if kind is FieldKind.BOOL:
        return bool(value)
    return value


def node_ids(mask: int, config: Config) -> tuple[int, ...]:
    """Return the node ids of the brokers in a bit mask of positions; none for a negative one, which is undefined."""
    return tuple(node for at, node in enumerate(config.nodes) if mask >= 0 and mask >> at & 1)


def value_text(compared: str, value: int | None, config: Config) -> str:
    """Write a value that a check compared as text; `compared` is the name of a field, or of a value of the judge's own.

    A `value` of a set of brokers is a bit mask of positions, one of a broker its position.
    """
    if value is None:
        return "unknown"
    if compared == "running":
        return "running" if value == 1 else "not running"
    if compared == "role":
        return _ROLES.get(value, str(value))
    if compared in ("in flight", "response"):
        return IN_FLIGHT[value]
    if compared in ("elected leader", "pending proposal"):
        return _set_text(value, config) if value else "none"
    if compared == "error":
        return f"{value} ({ERROR_NAMES[value]})" if value in ERROR_NAMES else str(value)
    # A field of the schema says what kind its values are; all other values of the judge are numbers.
    if compared in FIELDS:
        kind = FIELDS[compared].kind
        if kind is FieldKind.NODES:
            return _set_text(value, config)
        if kind is FieldKind.NODE:
            node = _node(value, config)
            return "none" if node is None else f"node {node}"
        if kind is FieldKind.BOOL:
            return "true" if value else "false"
    return "undefined (-1)" if value == -1 else str(value)


def _set_text(mask: int, config: Config) -> str:
    """Write a set of brokers, a bit mask, as {1, 2}."""
    return "{" + ", ".join(map(str, node_ids(mask, config))) + "}"


def comparison_text(failure: Failure, config: Config) -> tuple[str, str]:
    """Return what a check has seen, and what it expected, as text.

    The latter is a value, a bound, or a set with what is wrong with its members.
    """
    key, expected, actual = (failure.rule, failure.compared), failure.expected, failure.actual
    seen_text, expected_text = (value_text(failure.compared, value, config) for value in (actual, expected))
    # The value fails, so a value below the bound shows that it is a lower bound, one above it an upper bound. An undefined
    # one (-1) is no bound.
    if key in BOUNDED and actual is not None and expected not in (None, -1, actual):
        expected_text += " or more" if expected is not None and actual < expected else " or less"
    elif key in MEMBERS:
        differing = node_ids((expected or 0) ^ (actual or 0), config)  # in one of the sets only
        who = " and ".join(f"n{node}" for node in differing) or "nobody"
        expected_text = MEMBERS[key].format(expected=expected_text, who=who)
    # No one broker is expected: any other than the one that is seen.
    elif failure.compared in ("peer", "leader") and expected is None:
        expected_text = "another broker"
    return seen_text, expected_text


def event_text(event: Event) -> str:
    """Write an event and its fields in one line, as in `n1 LeaderAppend leo=3`."""
    return f"n{event.node} {event.event}" + "".join(f" {name}={_plain(value)}" for name, value in event.fields.items())


def _plain(value: Any) -> str:
    """Write a value of an event in one word."""
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, Sequence) and not isinstance(value, str):
        return "[" + ",".join(_plain(part) for part in value) + "]"
    return str(value)


# A snapshot is drawn in text as a row per replica, with its log and its high watermark:
#
#     offset         0  1  2
#     n1 leader      0  0  1|  leo 3 hw 3 epoch 1 isr {1,2}
#     n2 follower    0  0|     leo 2 hw 2 epoch 1
#
# A cell holds the leader epoch of a record, the bar is at the high watermark. Long logs are written as runs of epochs.
#
# 1. The kernel itself runs, one row at a time: a snapshot is what the verdict came from.
# 2. Snapshots are plain data; text and HTML are made from them.


@dataclass(frozen=True)
class ReplayedReplica:
    """What the judge knows of one replica; None where it does not.

    `role` is NO_ROLE, LEADING or FOLLOWING of judge.state; `epochs` is the epoch cache, as (epoch, start offset); `isr` and
    `proposed` are bit masks, as this replica knows them while it leads.
    """

    up: bool | None
    role: int | None
    epoch: int | None
    leader: int | None
    leo: int | None
    hw: int | None
    log_start: int | None
    epochs: tuple[tuple[int, int], ...] | None
    isr: int | None
    proposed: int | None
    forked: tuple[int, int] = (0, 0)
    """The offsets of which `epochs` does not know the records: first, and one after the last (conformance.judge.lineage)."""

    def epoch_of(self, offset: int) -> int | None:
        """Return the epoch of the record at `offset`: of the last entry that starts at or before it.

        None if the cache is unknown, does not know the record there (`forked`), or begins after it.
        """
        if self.epochs is None or self.forked[0] <= offset < self.forked[1]:
            return None
        return next((epoch for epoch, start in reversed(self.epochs) if start <= offset), None)

    def holds(self, offset: int, epoch: int | None) -> bool | None:
        """Return whether the record of `epoch` at `offset` is in this log; None if that is not known."""
        if self.leo is not None and self.leo <= offset:
            return False
        own_epoch = self.epoch_of(offset)
        # Below the log start the record may have been deleted.
        if self.leo is None or own_epoch is None or epoch is None or (self.log_start or 0) > offset:
            return None
        return own_epoch == epoch


@dataclass(frozen=True)
class Snapshot:
    """What the judge knows after the event in a row: the replicas, and what the controller has registered.

    `flying` are the messages in flight, as (follower, leader, index in IN_FLIGHT).
    """

    row: int
    replicas: tuple[ReplayedReplica, ...]
    leader: int | None
    leader_epoch: int | None
    isr: int | None
    flying: tuple[tuple[int, int, int], ...]


def replay(
    columns: Columns, config: Config, trace: int, until: int, keep: int, begun: s.State | None = None
) -> list[Snapshot]:
    """Return snapshots: one after each of the last `keep` rows of a trace up to and including `until`, and one before them.

    There are fewer if the trace has fewer rows up to there.

    `trace` is its number in the columns. `begun` is the judge's table before the first row, if the columns are not the
    beginning of their trace.
    """
    if begun is not None:
        return _replayed(columns, config, trace, until, keep, begun.copy())
    room, past = ROOM_AT_FIRST, PAST_AT_FIRST
    while True:
        options = options_of(columns, config)
        # The rows come one by one: the end of such a piece is not the end of the trace.
        options[s.PIECEWISE] = 1
        st = s.allocate(options, room, FAILURES_KEPT, past)
        s.forget(st, trace)
        snapshots = _replayed(columns, config, trace, until, keep, st)
        # A table that was too small has lost something: everything is replayed with more room, as the judge does.
        if st[s.PARTITION, s.OVERFLOW] == 0:
            return snapshots
        room, past = more_room(st)


def _replayed(columns: Columns, config: Config, trace: int, until: int, keep: int, st: s.State) -> list[Snapshot]:
    """Run the kernel over a trace in table `st`, and return the snapshots of `replay`."""
    first = int(columns.trace_starts[trace])
    # All but the last, the starts of traces: these are given for each piece.
    inputs = frozen_inputs(columns, None, columns.missing)[:-1]
    no_states = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)  # the kernel's last states of traces
    begin = max(first, until + 1 - keep)
    # Up to the first snapshot in one go: only from there on there is one after each row.
    run: Any = execution(until + 1 - first)  # the kernel that is fastest for so many events
    run(st, *inputs, frozen(np.array([first, begin])), *no_states)
    snapshots = [_snapshot(st, begin - 1, len(config.nodes))]
    for row in range(begin, until + 1):
        run(st, *inputs, frozen(np.array([row, row + 1])), *no_states)
        snapshots.append(_snapshot(st, row, len(config.nodes)))
    return snapshots


def _snapshot(st: s.State, row: int, brokers: int) -> Snapshot:
    """Read a snapshot from the table after the event in a row; there are so many brokers."""
    return Snapshot(
        row,
        tuple(replica_of(st, b) for b in range(brokers)),
        none_if_unknown(st[s.PARTITION, s.C_LEADER]),
        none_if_unknown(st[s.PARTITION, s.C_EPOCH]),
        none_if_unknown(st[s.PARTITION, s.C_ISR]),
        tuple(_flying(st, brokers)),
    )


def _flying(st: s.State, brokers: int) -> Iterator[tuple[int, int, int]]:
    """Yield (follower, leader, kind) for each pair of brokers with a message in flight."""
    for follower in range(brokers):
        for leader in range(brokers):
            kind = int(st[s.pair(st, follower, leader), s.KIND])
            if follower != leader and kind > s.NOTHING:
                yield follower, leader, kind


def replica_of(st: s.State, b: int) -> ReplayedReplica:
    """Return what the judge knows of replica b, from its table."""
    row = st[s.REPLICAS + b]
    up, cached = none_if_unknown(row[s.UP]), none_if_unknown(row[s.CACHED])
    # None: the cache is unknown; an empty tuple: it is known to be empty.
    epochs = None
    if cached is not None:
        epochs = tuple(
            (int(epoch), int(start))
            for epoch, start in zip(
                s.entries(st, s.epochs_row(st, b), cached), s.entries(st, s.starts_row(st, b), cached), strict=True
            )
        )
    return ReplayedReplica(
        up=None if up is None else up == 1,
        role=none_if_unknown(row[s.ROLE]),
        epoch=none_if_unknown(row[s.EPOCH]),
        leader=none_if_unknown(row[s.LEADER]),
        leo=none_if_unknown(row[s.LEO]),
        hw=none_if_unknown(row[s.HW]),
        log_start=none_if_unknown(row[s.LOG_START]),
        epochs=epochs,
        isr=none_if_unknown(row[s.ISR]),
        proposed=none_if_unknown(row[s.PENDING]),
        forked=(fork_start(st, b), fork_end(st, b)),
    )


CELLS = 24
"""Logs up to this length are drawn to scale."""


def snapshot_grid(snapshot: Snapshot, config: Config) -> Iterator[str]:
    """Yield the lines that draw a snapshot: a replica each, then the controller and what is in flight."""
    longest = max((replica.leo or 0 for replica in snapshot.replicas), default=0)
    # A short log is drawn with a cell for each offset, a long one as its runs of records.
    to_scale = longest <= CELLS
    if to_scale and longest:
        yield "offset        " + " ".join(f"{offset:>2}" for offset in range(longest))
    for node, replica in zip(config.nodes, snapshot.replicas, strict=True):
        log = _cells(replica, longest) if to_scale else f" {_runs(replica)}"
        yield f"n{node:<3} {_role(replica):<9}{log}  {_facts(replica, config)}".rstrip()
    # Nothing is drawn of a controller of which nothing is known.
    if snapshot.leader_epoch is not None:
        leader = "none" if snapshot.leader in (None, -1) else f"n{config.nodes[snapshot.leader or 0]}"
        isr = "" if snapshot.isr is None else f" isr {_set(snapshot.isr, config)}"
        yield f"controller    leader {leader} epoch {snapshot.leader_epoch}{isr}"
    for follower, leader_at, kind in snapshot.flying:
        yield f"in flight     n{config.nodes[follower]} - n{config.nodes[leader_at]}: {IN_FLIGHT[kind]}"


def _role(replica: ReplayedReplica) -> str:
    """Return what a replica is doing, in a word; ? where its role is not known."""
    if replica.up is False:
        return "down"
    return {None: "?", s.NO_ROLE: "starting", s.LEADING: "leader", s.FOLLOWING: "follower"}[replica.role]


def _cells(replica: ReplayedReplica, longest: int) -> str:
    """Draw a log to scale: a cell for each offset up to `longest`, the longest log end, with a bar at the high watermark."""
    cells = []
    # The last offset has no cell: a high watermark may be at the longest log end.
    for offset in range(longest + 1):
        bar = "|" if replica.hw == offset else " "
        # Without a log end any offset may have a record.
        if replica.leo is None:
            cells.append(f"{bar} ?" if offset < longest else bar)
        elif offset < replica.leo and offset >= (replica.log_start or 0):
            epoch = replica.epoch_of(offset)
            cells.append(f"{bar}{'?' if epoch is None else epoch:>2}")
        else:
            cells.append(f"{bar}  " if offset < longest else bar)
    return "".join(cells)


def _runs(replica: ReplayedReplica) -> str:
    """Write a log as runs of records of one epoch; [?] for one that is not known."""
    if replica.epochs is None or replica.leo is None:
        return "[?]"
    # An empty cache does not say the epoch of any record.
    if not replica.epochs:
        return f"[{replica.log_start or 0},{replica.leo})"
    ends = [start for _, start in replica.epochs[1:]] + [replica.leo]
    return " ".join(f"[{start},{end}) epoch {epoch}" for (epoch, start), end in zip(replica.epochs, ends, strict=True))


def _set(mask: int, config: Config) -> str:
    """Write a set of brokers, a bit mask, as {1,2}."""
    return "{" + ",".join(map(str, node_ids(mask, config))) + "}"


def _facts(replica: ReplayedReplica, config: Config) -> str:
    """List what is known of a replica besides its records."""
    # Left out: what is not known, a log start of 0, an epoch of -1, which is undefined.
    facts = [("leo", replica.leo), ("hw", replica.hw), ("log start", replica.log_start or None), ("epoch", replica.epoch)]
    texts = [f"{name} {value}" for name, value in facts if value is not None and (name != "epoch" or value >= 0)]
    if replica.role == s.LEADING and replica.isr is not None:
        texts.append(f"isr {_set(replica.isr, config)}")
    if replica.role == s.LEADING and replica.proposed:
        texts.append(f"proposed {_set(replica.proposed, config)}")
    # A new leader's epoch has an entry before its first record: the drawing of the log cannot show that.
    last_entry = (replica.epochs or ())[-1:]  # none, or one
    for epoch, start in last_entry:
        if replica.leo is not None and start >= replica.leo:
            texts.append(f"cache ends with {(epoch, start)}")
    return " ".join(texts)
