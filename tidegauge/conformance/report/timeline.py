"""Turn stretches of traces into data for the HTML page: their events, and what the judge knew after each.

A timeline is the data of one stretch. Its events are numbered from 1 at the beginning of their trace. A state is a snapshot
of the judge (explain.replay) as plain data.

Rules of this file

1. The first state is complete, every other one holds what its event changed: templates/timeline.js puts them together again.
2. A page is bounded. A trace of up to WHOLE_TRACE events is there from end to end; of a longer one the events around a
   failure. What is left out is counted, by trace and by page.
3. An unknown value is null here.
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.conformance.checking.check import JudgedBatch
from tidegauge.conformance.explain.causes import history_of_rows
from tidegauge.conformance.explain.explain import Explanation, TraceRow
from tidegauge.conformance.explain.replay import IN_FLIGHT, ReplayedReplica, Snapshot, event_text, node_ids
from tidegauge.conformance.judge.rulebook import releases_of
from tidegauge.conformance.judge.state import LEADING
from tidegauge.traces.schema import Config, Event
from tidegauge.util.untrusted_text import visible

# The arrows of the page: which event caused which.
#
# 1. The cause of an event is the last one before it, at the other node, of a kind that can cause it and with the same values
#    in the fields that both have: of a handled fetch the sent one, of a response the handled one, of a role the
#    registration.
# 2. The arrows are a picture of the trace, not a verdict: a snapshot has what the judge knows to be in flight.


# Fields that an event has in common with its cause.
_FETCH = ("req_epoch", "req_offset", "req_last_epoch")
_ROLE = ("leader_epoch", "partition_epoch")


class _Causes(NamedTuple):
    """The kinds of events that can cause an event, and what both must have in common.

    They agree in `fields`; `paired`: each is at the node that the other names as its peer.
    """

    events: tuple[str, ...]
    fields: tuple[str, ...]
    paired: bool = True


CAUSES: Mapping[str, _Causes] = MappingProxyType(
    {
        "HandleFetch": _Causes(("SendFetch",), _FETCH),
        "AnswerFetch": _Causes(("HandleFetch",), (), paired=False),
        **{
            name: _Causes(("HandleFetch", "AnswerFetch"), _FETCH)
            for name in ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "HandleFetchError")
        },
        "HandleEpochRequest": _Causes(("SendEpochRequest",), ("req_epoch", "req_last_epoch")),
        "HandleEpochResponse": _Causes(("HandleEpochRequest",), ("req_epoch", "req_last_epoch")),
        "AlterPartition": _Causes(("ExpandIsr", "ShrinkIsr"), ("isr",), paired=False),
        "HandleAlterPartitionResponse": _Causes(("AlterPartition",), ("isr",), paired=False),
        "BecomeLeader": _Causes(("ChangePartition",), _ROLE, paired=False),
        "BecomeFollower": _Causes(("ChangePartition",), _ROLE, paired=False),
    }
)
LOOK_BACK = 2_000
"""Events before an event among which its cause is looked for."""


def causes(events: Sequence[Event]) -> list[int | None]:
    """Return for each event the index of its cause in `events`, None if it has none there."""
    indices: list[int | None] = []
    for here, event in enumerate(events):
        # Backwards from the event before; none for an event that nothing causes.
        before = range(here - 1, max(-1, here - LOOK_BACK), -1) if event.event in CAUSES else range(0)
        indices.append(next((at for at in before if _caused(events[at], event)), None))
    return indices


def _caused(cause: Event, event: Event) -> bool:
    """Return whether `cause` can have caused `event`, by kind, fields and nodes."""
    kinds, fields, paired = CAUSES[event.event]
    if cause.event not in kinds or not all(_alike(cause, event, field) for field in fields):
        return False
    # A request or response names the other node as its peer, on both sides.
    if paired:
        return cause.node == event.fields.get("peer") and cause.fields.get("peer") == event.node
    # A fetch that waited is answered by the node that handled it, perhaps after other fetches of the same peer.
    if event.event == "AnswerFetch":
        same = cause.node == event.node and cause.fields.get("peer") == event.fields.get("peer")
        return same and all(_alike(cause, event, field) for field in _FETCH)
    # The controller names the leader that proposes as its peer. An event that does not name the node may be of any: the
    # default of `get` is equal to what it is compared with.
    if event.event == "AlterPartition":
        return bool(event.fields.get("peer", cause.node) == cause.node)
    if event.event == "HandleAlterPartitionResponse":
        return bool(cause.fields.get("peer", event.node) == event.node)
    # A registration makes its leader lead, and any other broker follow.
    return event.event == "BecomeFollower" or cause.fields.get("leader", event.node) == event.node


def _alike(cause: Event, event: Event, field: str) -> bool:
    """Return whether two events agree in a field: sets of nodes in any order, a missing field with any value."""
    # A source that leaves a field out contradicts nothing.
    if field not in cause.fields or field not in event.fields:
        return True
    a, b = cause.fields[field], event.fields[field]
    return set(a) == set(b) if isinstance(a, Sequence) and isinstance(b, Sequence) else bool(a == b)


WHOLE_TRACE = 6_000
"""Events that a page has of one trace at most."""
AFTER_FAILURE = 1_500
"""How many of these come after the failure, at most."""
PAGE_IS_FULL = 12_000
"""Events on a page from which a failure adds only FULL_PAGE_STRETCH of them, and no trace without a failure is added."""
FULL_PAGE_STRETCH = 200


class Timelines:
    """The timelines of a page. Failures first, then other traces as long as there is room."""

    def __init__(self) -> None:
        """Begin with an empty page."""
        self.data: list[dict[str, Any]] = []
        """The timelines."""
        self.failures: list[dict[str, Any]] = []
        """Where each failure is on the page."""
        self.events = 0
        """Events on the page."""
        self.left_out = 0
        """Traces that are not on the page."""
        self._stretches: list[tuple[TraceRow, range]] = []
        """By timeline, a row of its trace, and the rows of that which it has."""

    def add_failure(self, failure: Explanation) -> int:
        """Add a failure and the events around it; return the index of its timeline in `data`."""
        timeline = self.add_stretch(failure.place)
        self.failures.append(_failure(failure, timeline))
        return timeline

    def event_numbers(self, timeline: int) -> range:
        """Return the numbers of the events in the timeline with this index, from 1 at the beginning of their trace."""
        place, rows = self._stretches[timeline]
        return range(rows.start - place.rows.start + 1, rows.stop - place.rows.start + 1)

    def add_stretch(self, place: TraceRow) -> int:
        """Add the events around `place`, a failure, unless a timeline has it already; return the timeline's index."""
        for timeline, (other, rows) in enumerate(self._stretches):
            if _in_same_trace(other, place) and place.row in rows:
                return timeline
        room = WHOLE_TRACE if self.events < PAGE_IS_FULL else FULL_PAGE_STRETCH
        rows = place.rows
        if len(rows) > room:
            # Mostly what led to the failure, a little of what came of it; at an end of the trace the other side gets more.
            end = min(rows.stop, place.row + 1 + min(AFTER_FAILURE, room // 2))
            begin = max(rows.start, end - room)
            rows = range(begin, min(rows.stop, begin + room))
        return self._add(place, rows)

    def add_trace(self, place: TraceRow) -> None:
        """Add the trace of `place`, unless it is there; if the page has no room, count it as left out."""
        if not place.rows or any(_in_same_trace(other, place) for other, _ in self._stretches):
            return
        if self.events + min(len(place.rows), WHOLE_TRACE) > PAGE_IS_FULL:
            self.left_out += 1
        else:
            self._add(place, place.rows[:WHOLE_TRACE])

    def _add(self, place: TraceRow, rows: range) -> int:
        """Add `rows` of the trace of `place` as a timeline; return its index."""
        timeline = _timeline(place, rows) | {"trace": visible(self._link_name(place))}
        self._stretches.append((place, rows))
        self.events += len(rows)
        self.data.append(timeline)
        return len(self.data) - 1

    def _link_name(self, place: TraceRow) -> str:
        """Return what links call the trace of `place`: its name, and a number if it is the second trace so named."""
        # Inputs that were checked together may use one name for different traces; a link must name one of them.
        # Of the timelines so far: one of the same trace has its link name already; those of other traces take the name.
        namesakes: list[TraceRow] = []
        for (other, _), timeline in zip(self._stretches, self.data, strict=True):
            if _in_same_trace(other, place):
                return str(timeline["trace"])
            if other.name == place.name and not any(_in_same_trace(other, namesake) for namesake in namesakes):
                namesakes.append(other)
        return f"{place.name} ({len(namesakes) + 1})" if namesakes else place.name


def _in_same_trace(a: TraceRow, b: TraceRow) -> bool:
    """Return whether two rows are of one trace of the same columns."""
    return a.columns is b.columns and a.trace == b.trace


def places(judged_batches: Sequence[JudgedBatch]) -> Iterator[TraceRow]:
    """Yield each judged trace whose events are in memory, as a TraceRow of it; the row does not matter."""
    for judged in judged_batches:
        batch = judged.batch
        # Columns read from Parquet, or from a large NDJSON file, have no events: only what failed in them is on the page.
        for trace in range(len(batch.columns.trace_starts) - 1 if batch.traces is not None else 0):
            yield TraceRow(batch.columns, batch.config, trace, row=0, traces=batch.traces, source=batch.source)


def _timeline(place: TraceRow, rows: range) -> dict[str, Any]:
    """Return `rows` of a trace as data: its nodes, the state before, and each event with what it changed.

    An event is [node, name, fields as text, where it was read, its time, what changed, index of its cause or null].
    """
    history = history_of_rows(place.columns, place.config, place.trace, rows.start, rows.stop, place.event)
    config = place.config
    states = [_state(snapshot, config) for snapshot in history.snapshots]  # before the first event, and after each
    first = rows.start - place.rows.start + 1  # the number of the first event in its trace
    return {
        "tp": visible(place.tp),
        "nodes": list(config.nodes),
        "controller": config.controller,
        "profile": visible(config.profile),
        "release": ", ".join(releases_of(config)),
        "first": first,
        "total": len(place.rows),
        "before": states[0],
        "events": [
            [
                event.node,
                event.event,
                visible(event_text(event).partition(f"{event.event} ")[2]),  # the fields, after the event's name
                visible(event.at or ""),
                visible(event.time or ""),
                changed(states[at], states[at + 1]),
                cause,
            ]
            for at, (event, cause) in enumerate(zip(history.events, causes(history.events), strict=True))
        ],
    }


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """Return the values of `after` that differ from `before`; of replicas, by their position, those of each that differ."""
    delta = {key: value for key, value in after.items() if key != "replicas" and value != before[key]}
    replicas = {
        at: {key: value for key, value in new.items() if value != old[key]}
        for at, (old, new) in enumerate(zip(before["replicas"], after["replicas"], strict=True))
        if new != old
    }
    return delta | ({"replicas": replicas} if replicas else {})


def _state(snapshot: Snapshot, config: Config) -> dict[str, Any]:
    """Return a snapshot as data: each replica, what the controller has registered, and the messages in flight."""
    nodes = config.nodes
    leader = snapshot.leader
    return {
        "replicas": [_replica(replica, config) for replica in snapshot.replicas],
        "leader": nodes[leader] if leader is not None and 0 <= leader < len(nodes) else None,
        "epoch": snapshot.leader_epoch,
        "isr": None if snapshot.isr is None else list(node_ids(snapshot.isr, config)),
        "flying": [[nodes[follower], nodes[to], IN_FLIGHT[kind]] for follower, to, kind in snapshot.flying],
    }


def _replica(replica: ReplayedReplica, config: Config) -> dict[str, Any]:
    """Return a replica as data; the ISR and the proposal only where it leads."""
    leads = replica.role == LEADING
    return {
        "up": replica.up,
        "role": replica.role,
        "epoch": replica.epoch,
        "leo": replica.leo,
        "hw": replica.hw,
        "start": replica.log_start,
        "epochs": None if replica.epochs is None else [list(pair) for pair in replica.epochs],
        "forked": list(replica.forked) if replica.forked[1] else None,
        "isr": list(node_ids(replica.isr, config)) if leads and replica.isr is not None else None,
        "proposed": list(node_ids(replica.proposed, config)) if leads and replica.proposed else None,
    }


def _failure(failure: Explanation, timeline: int) -> dict[str, Any]:
    """Return where a failure is on the page, `timeline` being an index, and which offsets to mark.

    Its sentences are in the page as text.
    """
    offsets = {"leo", "leo_before", "hw", "hw_before", "rec_base", "rec_end", "target", "remote_leo", "epoch_start"}
    # What was expected may be unknown, undefined (-1) or an epoch: then there is no stretch of the log to mark.
    defined = [value for value in failure.values if value is not None and value >= 0]
    return {
        "rule": failure.rule.id,
        "timeline": timeline,
        "event": failure.place.row - failure.place.rows.start + 1,
        "because": [cause.number for cause in failure.because],
        "between": sorted(defined) if failure.compared in offsets and len(defined) == 2 else None,
    }
