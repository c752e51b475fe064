"""The order of a replica's steps: one that threads and values allow is found if there is any, and none is invented.

row:  thread, what, after (its thread's line before), by (its own line)
"""

from collections.abc import Iterator, Sequence
from itertools import permutations
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.processor_time import processor_time
from tidegauge.traces.columns import UNKNOWN
from tidegauge.traces.kafka_logs.correlation import order as search
from tidegauge.traces.kafka_logs.correlation.order import BREAKS_VALUE, FITS, Placement, Replica, order, take
from tidegauge.traces.kafka_logs.nodes.logged_broker import FORGOTTEN, KEPT, RAISED, LoggedBroker, LoggedStep
from tidegauge.traces.kafka_logs.parsing.lines import Line

LEADER = 1


def step(thread: str, name: str, after: int, by: int, **fields: object) -> LoggedStep:
    made = LoggedStep(LEADER, "alpha-0", name, dict(fields), f"n1:{by}", by, (0, by, 0, 0))
    made.begins, made.ends, made.key, made.thread = after, by, (by, by, 0), thread
    return made


def leads(leo: int, hw: int) -> list[LoggedStep]:
    return [
        step("metadata", "Start", 0, 1, leo=leo, hw=hw),
        step("metadata", "BecomeLeader", 1, 2, leader_epoch=1, isr=(1, 2, 3), leo=leo, hw_before=hw, hw=hw),
    ]


def counts(thread: str, after: int, by: int, peer: int, leo: int) -> LoggedStep:
    return step(thread, "HandleFetch", after, by, peer=peer, remote_leo=leo, req_epoch=1)


def raises(thread: str, after: int, by: int, before: int, hw: int) -> LoggedStep:
    return step(thread, RAISED, after, by, hw_before=before, hw=hw)


def appends(thread: str, after: int, by: int, base: int) -> LoggedStep:
    return step(thread, "LeaderAppend", after, by, rec_base=base, rec_end=base + 1)


def reads(after: int, by: int, bound: int) -> LoggedStep:
    return step("", "Read", after, by, bound=bound)


@pytest.mark.parametrize("count", [1, 20_000])
def test_low_reads_are_noted_in_time_that_grows_with_the_steps(count: int) -> None:
    """Each may have been made at any time since the start."""
    shown = [reads(2, 10 * count, 4) for _ in range(count)]
    for at, read in enumerate(shown):
        read.shown_hw, read.key, read.place = 4, (10 + at, 10 + at, 0), (0, 10 + at, 0, 0)
    placement = Placement()
    with processor_time(3):
        order([*leads(10, 5), *shown], LEADER, placement)
    assert [least for _, least in placement.low_reads] == [5] * count


@given(st.lists(st.integers(0, 9), min_size=1, max_size=40), st.data())
def test_the_lowest_of_a_part_is_that_of_its_values(values: list[int], data: st.DataObject) -> None:
    first = data.draw(st.integers(0, len(values) - 1))
    end = data.draw(st.integers(first + 1, len(values)))
    assert search._lowest_between(values)(first, end) == min(values[first:end])


def high_watermarks(events: Sequence[LoggedStep]) -> list[tuple[object, ...]]:
    return [
        (one.name, one.fields.get("peer"), one.fields.get("hw_before"), one.fields.get("hw"))
        for one in events
        if one.name not in ("Start", "BecomeLeader")
    ]


def test_a_fetch_that_another_thread_used_comes_before_what_it_raised() -> None:
    """Thread A counts b2 and prints late; thread B counts b3 and raises over both."""
    steps = [
        *leads(7, 6),
        counts("B", 3, 10, 3, 7),
        raises("B", 3, 10, 6, 7),
        counts("A", 4, 12, 2, 7),
    ]
    found = Placement()
    assert high_watermarks(order(steps, LEADER, found)) == [("HandleFetch", 3, 6, 6), ("HandleFetch", 2, 6, 7)]
    assert found.stuck == []


def test_a_raise_that_an_append_printed_is_credited_to_the_fetch_that_allowed_it() -> None:
    """An append raises nothing by itself: the thread looks after it, and sees what another thread has counted."""
    steps = [
        *leads(7, 6),
        counts("B", 2, 4, 3, 7),
        appends("C", 3, 9, 7),
        raises("C", 3, 9, 6, 7),
        counts("A", 4, 12, 2, 7),
    ]
    events = order(steps, LEADER, found := Placement())
    assert found.stuck == []
    assert ("HandleFetch", 2, 6, 7) in high_watermarks(events)
    (appended,) = (one for one in high_watermarks(events) if one[0] == "LeaderAppend")
    assert appended[2] == appended[3], "the append leaves the high watermark alone"


@pytest.mark.parametrize("after", [3, 10])
def test_a_fetch_that_brings_a_replica_up_comes_before_the_raise_if_it_may(after: int) -> None:
    """A replica outside the ISR that was caught up lately holds the high watermark back, which only the lag limit tells."""
    steps = [
        *leads(7, 6),
        counts("B", 2, 3, 2, 6),
        counts("A", 3, 8, 3, 7),
        raises("A", 3, 9, 6, 7),
        counts("C", after, 12, 2, 7),
    ]
    steps[1].fields["isr"] = (1, 3)
    events = order(steps, LEADER, found := Placement())
    assert found.stuck == []
    found_and_left = [(6, 6), (6, 7)] if after == 3 else [(6, 7), (7, 7)]
    assert [each[2:] for each in high_watermarks(events)[1:]] == found_and_left


@pytest.mark.parametrize(("recorded", "fits"), [(14, True), (9, False)])
def test_an_append_may_make_the_raise_of_a_fetch_whose_thread_proposes_first(recorded: int, fits: bool) -> None:
    """It proposes between count and raise, so the line of the proposal bounds the count, and `Recorded` the raise."""
    fetch = counts("A", 3, 8, 2, 7)
    fetch.time = recorded
    steps = [*leads(7, 6), counts("B", 2, 4, 3, 7), fetch, appends("C", 9, 10, 7), raises("C", 10, 11, 6, 7)]
    events = order(steps, LEADER, found := Placement())
    assert (found.stuck == []) == fits
    expected = [("HandleFetch", 3, 6, 6), ("HandleFetch", 2, 6, 7), ("LeaderAppend", None, 7, 7)]
    assert (high_watermarks(events) == expected) == fits


@pytest.mark.parametrize(
    ("after", "leo", "why"),
    [(11, 7, "its thread wrote another line when the raise was over"), (4, 6, "it does not reach the high watermark")],
)
def test_a_raise_that_nothing_allowed_stays_unexplained(after: int, leo: int, why: str) -> None:
    """What threads and values rule out is not put right."""
    steps = [*leads(7, 6), counts("B", 3, 10, 3, 7), raises("B", 3, 10, 6, 7), counts("A", after, 12, 2, leo)]
    order(steps, LEADER, found := Placement())
    assert [one.name for one, _ in found.stuck] != [], why


def test_a_read_comes_behind_the_raise_that_it_shows() -> None:
    """Its times are counted back from a line that its network thread wrote later."""
    steps = [
        *leads(7, 6),
        counts("A", 2, 4, 2, 7),
        reads(3, 9, 7),
        counts("B", 5, 10, 3, 7),
        raises("B", 5, 10, 6, 7),
    ]
    steps[2].key = (6, 1 << 60, 0)
    events = order(steps, LEADER, found := Placement())
    assert [name for name, *_ in high_watermarks(events)] == ["HandleFetch", "HandleFetch", "Read"]
    assert found.stuck == []


def test_the_first_line_of_a_thread_tells_no_time_but_that_its_process_runs() -> None:
    """Thread B wrote nothing before: lines of others in front of its own one bound nothing that it did."""
    broker = LoggedBroker(LEADER)
    broker.begin_process([100, 200, 300, 400])
    begins = []
    for index, (time, thread) in enumerate([(100, "A"), (200, "A"), (300, "B"), (400, "B")]):
        broker.read_line(Line("n1/server.log", index + 1, time, thread, "", "Partition"), index)
        begins.append(broker.begins)
    assert begins == [99, 100, 99, 300]


def test_a_raise_of_a_fetch_that_no_line_names_lacks_one_log_end_at_most() -> None:
    """Thread B raises, and its process stops logging before it prints for whom; thread A prints late that it counted b2."""
    unnamed = step("B", "HandleFetch", 3, 10, hw_before=6, hw=7)
    steps = [*leads(7, 6), unnamed, counts("A", 2, 12, 2, 7), counts("C", 11, 13, 3, 7)]
    events = order(steps, LEADER, found := Placement())
    assert [(peer, before, hw) for _, peer, before, hw in high_watermarks(events)] == [(2, 6, 6), (None, 6, 7), (3, 7, 7)]
    assert found.stuck == []


def test_a_raise_of_a_fetch_that_no_line_names_is_told_if_two_log_ends_are_missing() -> None:
    """Nobody has counted b2 by then, whichever replica fetched."""
    steps = [*leads(7, 6), step("B", "HandleFetch", 3, 10, hw_before=6, hw=7), counts("A", 11, 12, 2, 7)]
    order(steps, LEADER, found := Placement())
    assert [one.fields.get("peer") for one, _ in found.stuck] == [None]


def test_a_step_that_no_order_fits_is_named_and_the_others_go_on() -> None:
    """A log end from nowhere: the append is told, what comes after it is ordered by what it left."""
    steps = [*leads(7, 6), appends("A", 3, 5, 9), appends("B", 6, 8, 10)]
    events = order(steps, LEADER, found := Placement())
    assert [(one.fields["rec_base"], broken) for one, broken in found.stuck] == [(9, BREAKS_VALUE)]
    assert [one.fields.get("rec_base") for one in events] == [None, None, 9, 10]


def test_a_search_without_end_is_cut_off_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """Twelve counts in any order, and a raise that none of them allows."""
    monkeypatch.setattr(search, "MOST_TAKEN_BACK", 50)
    steps = [*leads(9, 0), *(counts(f"T{at}", 3, 20 + at, 2, 1 + at) for at in range(12)), raises("R", 3, 40, 5, 9)]
    events = order(steps, LEADER, found := Placement())
    assert [one.at for one in found.at_limit] == [one.at for one, _ in found.stuck]
    assert len(events) >= 13, "a cut search loses no event"


def test_a_replica_with_many_steps_that_no_order_fits_takes_back_ever_fewer(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stamps in whole seconds: every step of a second may come before every other, and raises lack their counts."""
    monkeypatch.setattr(search, "MOST_TAKEN_BACK", 400)
    steps, taken = leads(9, 0), 0
    for second in range(12):
        begins = 100 * second + 3
        steps += [counts(f"T{at}", begins, begins + 50, 2, 1 + at) for at in range(9)]
        steps.append(raises(f"R{second}", begins, begins + 60, 5, 9))
    take = search.take

    def counted(*arguments: Any) -> Any:
        nonlocal taken
        taken += 1
        return take(*arguments)

    monkeypatch.setattr(search, "take", counted)
    events = order(steps, LEADER, found := Placement())
    assert len(events) >= 12 * 9
    assert len(found.at_limit) > 5
    assert taken < MOST_TAKEN


def test_two_brokers_in_one_log_cost_little_for_each_step_that_no_order_fits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every few steps one has a value of another log; none alone needs as many orders as there may be for one."""
    monkeypatch.setattr(search, "MOST_TAKEN_BACK", 400)
    steps, limits = leads(9, 0), []
    for second in range(12):
        begins = 100 * second + 3
        steps += [counts(f"T{at}", begins, begins + 50, 2, 1 + at) for at in range(4)]
        steps.append(raises(f"R{second}", begins, begins + 60, 5, 9))
    for most in (20_000, 100):
        monkeypatch.setattr(search, "MOST_IN_ALL", most)
        order(steps, LEADER, found := Placement())
        limits.append(len(found.at_limit))
    assert limits[0] < limits[1]


MOST_TAKEN = 15_000
"""With MOST_TAKEN_BACK for each of them it is three times as many."""


# Brute force: every order of a few steps

values = st.integers(0, 3)


@st.composite
def small_windows(draw: st.DrawFn) -> list[LoggedStep]:
    """A few steps of two threads and the request log, with intervals that overlap, true or not."""
    steps = leads(draw(values), 0)
    last = {"A": 2, "B": 2}
    for by in range(3, 3 + draw(st.integers(1, 5))):
        thread = draw(st.sampled_from(("A", "B")))
        kind = draw(st.sampled_from(("append", "count", "raise", "read", "kept")))
        if kind == "append":
            made = appends(thread, last[thread], by, draw(values))
        elif kind == "count":
            made = counts(thread, last[thread], by, draw(st.sampled_from((2, 3))), draw(values))
        elif kind == "raise":
            before = draw(values)
            made = raises(thread, last[thread], by, before, before + 1)
        elif kind == "kept":
            ends = ", ".join(f"replica {peer}: (offset={draw(values)}, segment=[0:1])" for peer in (1, 2, 3))
            made = step(thread, KEPT, last[thread], by, leos=ends)
        else:
            made = reads(draw(st.integers(1, by - 1)), by, draw(values))
        if made.thread:
            last[thread] = by
        steps.append(made)
    return steps


def every_order(rows: Sequence[search.Row]) -> Iterator[tuple[int, ...]]:
    for one in permutations(range(len(rows))):
        place = {row: at for at, row in enumerate(one)}
        if all(
            place[first] < place[second]
            for second, row in enumerate(rows)
            for first, other in enumerate(rows)
            if first in row.follows or (first != second and other.ends <= row.begins)
        ):
            yield one


def fits(rows: Sequence[search.Row], one: Sequence[int], peers: int) -> bool:
    replica = Replica(role=search.ABSENT, counted=(UNKNOWN,) * peers)
    for at in one:
        due = replica.due != UNKNOWN and replica.due > replica.hw
        if due and rows[at].kind > search.SKIPPED:
            return False
        broken, replica = take(rows[at], at, replica, search.Brokers(0, peers))
        if broken != FITS:
            return False
    return True


@settings(max_examples=300, deadline=None)
@given(small_windows())
def test_an_order_is_found_exactly_if_there_is_one(steps: list[LoggedStep]) -> None:
    """Against all interleavings of small windows."""
    peers = sorted(search._peers(steps) | {LEADER})
    rows = search._rows(steps, {peer: at for at, peer in enumerate(peers)})
    there_is_one = any(fits(rows, one, len(peers)) for one in every_order(rows))
    order(steps, LEADER, found := Placement())
    assert (found.stuck == []) == there_is_one


@pytest.mark.parametrize(("of_raise", "after", "depends"), [("A", 4, 0), ("B", 4, 1), ("B", 10, 0)])
def test_a_raise_depends_on_the_order_if_its_count_may_come_later(of_raise: str, after: int, depends: int) -> None:
    """Thread A counts b2 at 7; before that the raise breaks HW-02. Its own thread counted before it raised."""
    steps = [
        *leads(7, 6),
        counts("A", 2, 9, 2, 7),
        counts("C", 2, 3, 3, 7),
        raises(of_raise, after, 11, 6, 7),
    ]
    order(steps, LEADER, found := Placement())
    assert found.stuck == []
    assert found.checks["HW-02", True] == depends
    assert found.checks["HW-02", False] == 1 - depends


@pytest.mark.parametrize(("after", "depends"), [(3, 1), (6, 0)])
def test_a_read_depends_on_the_order_if_the_raise_that_it_shows_may_come_later(after: int, depends: int) -> None:
    """It began before the raise was over."""
    steps = [*leads(7, 6), counts("B", 3, 4, 2, 7), counts("A", 2, 5, 3, 7), raises("A", 5, 6, 6, 7), reads(after, 9, 7)]
    order(steps, LEADER, found := Placement())
    assert found.stuck == []
    assert (found.checks["READ-01", True], found.checks["READ-01", False]) == (depends, 1 - depends)


@settings(max_examples=300, deadline=None)
@given(small_windows())
def test_what_breaks_in_another_order_depends_on_it(steps: list[LoggedStep]) -> None:
    """Against all interleavings in which the steps before a check fit: none that breaks it is left out."""
    peers = sorted(search._peers(steps) | {LEADER})
    rows = search._rows(steps, {peer: at for at, peer in enumerate(peers)})
    ordered = search._Search(rows, search.Brokers(0, len(peers)))
    taken = ordered.run(found := Placement())
    dependent = {at for at, _, depends in search.checks_of(rows, taken, ordered) if depends}
    broken = {at for one in every_order(rows) for at in _breaking(rows, one, len(peers))}
    assert found.stuck != [] or broken <= dependent


def _breaking(rows: Sequence[search.Row], one: Sequence[int], peers: int) -> Iterator[int]:
    """The first step that does not fit, if that is a rule or what a client is shown; the raise has a cause."""
    replica = Replica(role=search.ABSENT, counted=(UNKNOWN,) * peers)
    for at in one:
        broken, after = take(rows[at], at, replica._replace(cause=max(replica.cause, 0)), search.Brokers(0, peers))
        if broken != FITS:
            shown = rows[at].kind in (search.READ, search.ACKNOWLEDGED)
            if rows[at].kind in search.RULES and broken == (BREAKS_VALUE if shown else search.BREAKS_RULE):
                yield at
            return
        replica = after._replace(due=UNKNOWN)


def test_a_proposal_comes_behind_the_registration_that_it_names() -> None:
    """A shrink that proposes what was proposed before the registration was read: a fetch counted before both forbids it."""
    start, role = leads(0, 0)
    role.fields["partition_epoch"] = 0
    steps = [
        start,
        role,
        counts("a", 2, 10, 2, 0),
        counts("b", 2, 11, 3, 0),
        appends("c", 2, 20, 0),
        step("s1", "ShrinkIsr", 2, 30, isr=(1,), leo=1, hw=0, partition_epoch=0),
        counts("d", 2, 40, 3, 1),
        step("metadata", "BecomeLeader", 2, 50, leader_epoch=1, isr=(1, 2), leo=1, hw_before=0, hw=0, partition_epoch=1),
        step("s2", "ShrinkIsr", 2, 60, isr=(1,), leo=1, hw=0, partition_epoch=1),
    ]
    placement = Placement()
    assert [one.at for one in order(steps, LEADER, placement)] == [one.at for one in steps]
    assert placement.stuck == []


def test_a_leader_that_followed_has_recorded_no_log_end() -> None:
    """What it counted in the term before forbids no shrink (Replica#resetReplicaState)."""
    steps = [
        *leads(8, 8),
        counts("a", 2, 10, 2, 8),
        step("metadata", "BecomeFollower", 2, 20, leader_epoch=2, leo=8, hw=8),
        step("metadata", "BecomeLeader", 20, 30, leader_epoch=3, isr=(1, 2), leo=8, hw_before=8, hw=8),
        step("s1", "ShrinkIsr", 2, 40, isr=(1,), leo=8, hw=8),
        step("metadata", "BecomeLeader", 30, 50, leader_epoch=3, isr=(1,), leo=8, hw_before=8, hw=8),
    ]
    placement = Placement()
    assert [one.at for one in order(steps, LEADER, placement)] == [one.at for one in steps]
    assert placement.stuck == []


def test_a_follower_raises_nothing_that_it_raises_when_it_leads_again() -> None:
    """A thread that was silent for long may have raised since then; the response to an old proposal allows it nothing."""
    steps = [
        *leads(3, 0),
        step("s1", "ShrinkIsr", 2, 5, isr=(1,), leo=3, hw=0),
        step("metadata", "BecomeFollower", 2, 10, leader_epoch=2, leo=3, hw=0),
        step("alter", "HandleAlterPartitionResponse", 5, 20, error=74),
        step("fetcher", "HandleDivergingResponse", 15, 25, leo=3, hw=0, req_epoch=2),
        step("metadata", "BecomeLeader", 10, 30, leader_epoch=3, isr=(1, 2), leo=3, hw_before=0, hw=0),
        counts("A", 35, 40, 2, 3),
        raises("B", 2, 40, 0, 3),
    ]
    steps[-2].fields["req_epoch"] = 3
    placement = Placement()
    events = order(steps, LEADER, placement)
    assert [(one.name, one.fields["hw"]) for one in events if one.fields.get("hw") == 3] == [("HandleFetch", 3)]
    assert placement.stuck == []


def test_a_raise_whose_append_is_among_missing_lines_is_not_that_of_the_next_append() -> None:
    """Else the raise of that one would be left for the append after it, and so on."""
    steps = [
        *leads(4, 4),
        step("", FORGOTTEN, 3, 14),
        raises("A", 2, 12, 4, 5),
        appends("B", 2, 14, 5),
        raises("B", 14, 15, 5, 6),
        appends("A", 12, 16, 6),
        raises("A", 16, 17, 6, 7),
    ]
    placement = Placement()
    events = order(steps, LEADER, placement)
    assert [one.fields["hw"] for one in events if one.name == "LeaderAppend"] == [6, 7]
    assert placement.stuck == []


def test_a_log_start_moves_up_to_the_high_watermark_only() -> None:
    """UnifiedLog#maybeIncrementLogStartOffset: the fetch that raised it comes before, though its line is later."""
    steps = [
        step("metadata", "Start", 0, 1, leo=5, hw=5),
        step("metadata", "BecomeFollower", 1, 2, leader_epoch=1, leo=5, hw=5),
        step("deletes", "LogStartMoved", 2, 15, log_start=8),
        step("fetcher", "HandleFetchResponse", 10, 20, leo=9, hw=9, rec_base=5, rec_end=9, req_epoch=1),
    ]
    placement = Placement()
    assert [one.name for one in order(steps, LEADER, placement)][2:] == ["HandleFetchResponse", "LogStartMoved"]
    assert placement.stuck == []
