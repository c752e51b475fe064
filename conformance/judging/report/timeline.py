"""A stretch of a trace as data for the page: its events, and what the judge knew behind each.

Rules of this file

1. The first state is whole, every other one is what an event changed: page/timeline.js puts them together again.
2. A page is bounded. A trace of up to WHOLE events is there from end to end; of a longer one the events around a failure.
   What is left out is counted, by trace and by page.
3. An unknown value is null here.
"""

from collections.abc import Iterator, Sequence
from typing import Any

from tidegauge.conformance.judging.because.history import stretch
from tidegauge.conformance.judging.events import IN_FLIGHT, event_words, members
from tidegauge.conformance.judging.explain import Explanation, Place
from tidegauge.conformance.judging.replay import ReplayedReplica, Snapshot
from tidegauge.conformance.judging.report.messages import causes
from tidegauge.conformance.judging.rulebook import releases_of
from tidegauge.traces.schema import Config

WHOLE = 6_000
"""Events of a trace up to which it is whole on a page; of a longer one so many."""
BEHIND = 1_500
"""Of these behind the failure."""
MOST = 12_000
"""Events on a page; once there are so many, a failure brings only AROUND of them, and no other trace is there."""
AROUND = 200


class Timelines:
    """The timelines of a page. Failures first, then other traces as long as there is room."""

    def __init__(self) -> None:
        self.data: list[dict[str, Any]] = []
        self.failures: list[dict[str, Any]] = []
        self.events = 0
        self.left_out = 0
        """Traces that are not on the page."""
        self._shown: list[tuple[Place, range]] = []

    def add_failure(self, one: Explanation) -> int:
        """Bring a failure and the events around it on the page; the number of its timeline."""
        at = self.of_failure(one.place)
        self.failures.append(_failure(one, at))
        return at

    def holds(self, timeline: int) -> range:
        """The numbers of the events that a timeline has."""
        place, rows = self._shown[timeline]
        return range(rows.start - place.rows.start + 1, rows.stop - place.rows.start + 1)

    def of_failure(self, place: Place) -> int:
        """The number of the timeline that a failure is on."""
        for at, (shown, rows) in enumerate(self._shown):
            if _same(shown, place) and place.row in rows:
                return at
        room = WHOLE if self.events < MOST else AROUND
        rows = place.rows
        if len(rows) > room:
            end = min(rows.stop, place.row + 1 + min(BEHIND, room // 2))
            begin = max(rows.start, end - room)
            rows = range(begin, min(rows.stop, begin + room))
        return self._add(place, rows)

    def of_trace(self, place: Place) -> None:
        """A trace without a failure that is explained, if there is room."""
        if not place.rows or any(_same(shown, place) for shown, _ in self._shown):
            return
        if self.events + min(len(place.rows), WHOLE) > MOST:
            self.left_out += 1
        else:
            self._add(place, place.rows[:WHOLE])

    def _add(self, place: Place, rows: range) -> int:
        line = _timeline(place, rows) | {"trace": self._name(place)}
        self._shown.append((place, rows))
        self.events += len(rows)
        self.data.append(line)
        return len(self.data) - 1

    def _name(self, place: Place) -> str:
        """What links call a trace: another one of that name has a number behind it."""
        others: list[Place] = []
        for (shown, _), line in zip(self._shown, self.data, strict=True):
            if _same(shown, place):
                return str(line["trace"])
            if shown.name == place.name and not any(_same(shown, other) for other in others):
                others.append(shown)
        return f"{place.name} ({len(others) + 1})" if others else place.name


def _same(one: Place, two: Place) -> bool:
    """Whether two places are in one trace."""
    return one.columns is two.columns and one.trace == two.trace


def places(judged: Sequence[Any]) -> Iterator[Place]:
    """The traces of what was judged, as far as it was kept."""
    for one in judged:
        batch = one.batch
        for trace in range(len(batch.columns.trace_starts) - 1 if batch.traces is not None else 0):
            yield Place(batch.columns, batch.config, trace, 0, batch.traces, batch.source)


def _timeline(place: Place, rows: range) -> dict[str, Any]:
    past = stretch(place.columns, place.config, place.trace, rows.start, rows.stop, place.event)
    config = place.config
    states = [_state(snapshot, config) for snapshot in past.snapshots]
    of = causes(past.events)
    first = rows.start - place.rows.start + 1
    return {
        "tp": place.tp,
        "nodes": list(config.nodes),
        "controller": config.controller,
        "profile": config.profile,
        "release": ", ".join(releases_of(config)),
        "first": first,
        "total": len(place.rows),
        "before": states[0],
        "events": [
            [
                event.node,
                event.event,
                event_words(event).partition(f"{event.event} ")[2],
                event.at,
                event.time or "",
                changed(states[at], states[at + 1]),
                cause,
            ]
            for at, (event, cause) in enumerate(zip(past.events, of, strict=True))
        ],
    }


def changed(before: dict[str, Any], after: dict[str, Any]) -> dict[str, Any]:
    """What differs between two states; of replicas by their position."""
    out = {key: value for key, value in after.items() if key != "replicas" and value != before[key]}
    replicas = {
        at: {key: value for key, value in one.items() if value != old[key]}
        for at, (old, one) in enumerate(zip(before["replicas"], after["replicas"], strict=True))
        if one != old
    }
    return out | ({"replicas": replicas} if replicas else {})


def _state(snapshot: Snapshot, config: Config) -> dict[str, Any]:
    nodes = config.nodes
    leader = snapshot.leader
    return {
        "replicas": [_replica(replica, config) for replica in snapshot.replicas],
        "leader": nodes[leader] if leader is not None and 0 <= leader < len(nodes) else None,
        "epoch": snapshot.leader_epoch,
        "isr": None if snapshot.isr is None else list(members(snapshot.isr, config)),
        "flying": [[nodes[f], nodes[to], IN_FLIGHT[kind]] for f, to, kind in snapshot.flying],
    }


def _replica(replica: ReplayedReplica, config: Config) -> dict[str, Any]:
    leads = replica.role == 1
    return {
        "up": replica.up,
        "role": replica.role,
        "epoch": replica.epoch,
        "leo": replica.leo,
        "hw": replica.hw,
        "start": replica.log_start,
        "epochs": None if replica.epochs is None else [list(pair) for pair in replica.epochs],
        "forked": list(replica.forked) if replica.forked[1] else None,
        "isr": list(members(replica.isr, config)) if leads and replica.isr is not None else None,
        "proposed": list(members(replica.proposed, config)) if leads and replica.proposed else None,
    }


def _failure(one: Explanation, timeline: int) -> dict[str, Any]:
    """A failure: where it is on the page, and what of its log is to be marked. Its words are in the page already."""
    compared = {"leo", "leo_before", "hw", "hw_before", "rec_base", "rec_end", "target", "remote_leo", "epoch_start"}
    return {
        "rule": one.rule.id,
        "timeline": timeline,
        "event": one.place.row - one.place.rows.start + 1,
        "because": [cause.number for cause in one.because],
        "between": sorted((int(one.expected), int(one.actual))) if one.compared in compared and _plain(one) else None,
    }


def _plain(one: Explanation) -> bool:
    return one.expected.isdecimal() and one.actual.isdecimal()
