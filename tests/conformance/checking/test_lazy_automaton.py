"""The lazy automaton counts what the kernel counts, whatever it is given; and it asks for nothing twice."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.hand import COPIED, OPENING, TWO, append, follow, reported, reporting_all_but, start
from tests.conformance.judge.test_controller_cases import UNLIKE
from tests.conformance.judge.test_memory import flapping
from tests.conformance.judge.test_superseded import reigns
from tidegauge.conformance.checking.check import check
from tidegauge.conformance.engine import adaptive_judge, lazy_automaton, transitions
from tidegauge.conformance.engine.adaptive_judge import AdaptiveJudge
from tidegauge.conformance.engine.double_array import KnownTransitions, known_by_now
from tidegauge.conformance.engine.judge import Judgement, judge, judge_with
from tidegauge.conformance.engine.lazy_automaton import INTERPRETED, LazyAutomaton
from tidegauge.conformance.explain.explain import explanation_text
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import HELD_COUNT
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import explore
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.traces.columns import Columns, Distinct, Ints, to_columns, with_starts
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.impl_walks import BOUNDS, impl_walks
from tidegauge.traces.from_model.walks import EdgeTable, draw, edge_table
from tidegauge.traces.schema import MISSING_AHEAD, Config, Event, Trace

TINY = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0)
WALKS = 25
WRONG = "hw-is-own-log-end"
DISKS = BOUNDS._replace(max_lost_disks=3)


@cache
def table(fault: str = "") -> EdgeTable:
    """The graph of a tiny model, with one of the seeded faults."""
    graph = explore(TINY, rules_override=FAULTS[fault].rules if fault else None)
    return edge_table(graph.states, graph.labels, graph.edges)


def walks(seed: int, fault: str = "", steps: int = 14) -> Distinct:
    found = draw(table(fault), WALKS, steps, np.random.default_rng(seed))
    return table(fault).distinct(found.edges, found.lengths)


def distinct(traces: list[Trace]) -> Distinct:
    """Any traces, as one table of different events."""
    numbers: dict[str, int] = {}
    events: dict[int, Event] = {}
    rows = []
    for event in (event for trace in traces for event in trace.events):
        number = numbers.setdefault(repr((event.node, event.event, sorted(event.fields.items()))), len(numbers))
        events.setdefault(number, event)
        rows.append(number)
    config = traces[0].config
    starts = np.cumsum([0, *(len(trace.events) for trace in traces)])
    found = to_columns([Trace("", "", config, tuple(events.values()))], config)
    return Distinct(with_starts(found, starts), np.array(rows, np.int64))


def by_kernel(given: Distinct, config: Config) -> Judgement:
    return judge_with(judge_traces, given, config)


@pytest.fixture(autouse=True)
def _known_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was learnt is in the double array the next time."""
    monkeypatch.setattr(lazy_automaton, "WORTH", 0)


def by_automaton(given: Distinct, config: Config) -> Judgement:
    """What it says, and says again of what it knows by then."""
    automaton = LazyAutomaton(given.table, config, INTERPRETED)
    found = automaton.judge(given)
    assert automaton.judge(given) == found
    return found


@pytest.mark.parametrize("seed", range(3))
def test_right_walks(seed: int) -> None:
    found = by_automaton(walks(seed), table().config)
    assert found == by_kernel(walks(seed), table().config)
    assert sum(tally.held for tally in found.tallies.values()) > WALKS
    assert not found.failures


@pytest.mark.parametrize("fault", [WRONG, "follower-exposes-its-log"])
def test_walks_of_which_some_are_wrong(fault: str) -> None:
    """They are left to the kernel: the same failures of the same traces at the same rows."""
    found = by_automaton(walks(7, fault), table(fault).config)
    assert found.failures
    assert len({failure.trace for failure in found.failures}) < WALKS
    assert found == by_kernel(walks(7, fault), table(fault).config)


@pytest.mark.parametrize("field", ["hw", "leo", "clean", "isr", "epoch_start"])
def test_walks_that_lack_a_field(field: str) -> None:
    """What is undecided, and for want of what, is the same."""
    whole = walks(3)
    assert field in whole.table.ints
    ints = {name: column for name, column in whole.table.ints.items() if name != field}
    given = replace(whole, table=replace(whole.table, ints=ints))
    found = by_automaton(given, table().config)
    assert found == by_kernel(given, table().config)
    assert any(tally.missing for tally in found.tallies.values())


@pytest.mark.parametrize("profile", ["fetch-truncation", "repaired", "kip101"])
def test_runs_beyond_what_a_memory_holds(profile: str) -> None:
    """More leader epochs than a memory has room for: those runs are the kernel's."""
    runs = list(impl_walks(6, profile=profile, steps=90, seed=5))
    given = distinct(runs)
    automaton = LazyAutomaton(given.table, runs[0].config, INTERPRETED)
    assert (
        automaton.judge(given) == by_kernel(given, runs[0].config) == judge(to_columns(runs, runs[0].config), runs[0].config)
    )
    assert automaton.memories < len(given)


def test_it_asks_for_nothing_twice() -> None:
    """The second time all transitions are there."""
    automaton = LazyAutomaton(walks(1).table, table().config, INTERPRETED)
    first = automaton.judge(walks(1))
    asked = automaton.transitions
    assert 0 < asked < len(walks(1)) + WALKS
    assert automaton.judge(walks(1)) == first
    assert automaton.transitions == asked


def test_an_array_is_made_anew_only_for_what_it_has_not(monkeypatch: pytest.MonkeyPatch) -> None:
    """Traces that fail are unknown each time, and no array would have them."""
    made = []

    def noted(*said: Any) -> KnownTransitions:
        made.append(known_by_now(*said))
        return made[-1]

    monkeypatch.setattr(lazy_automaton, "known_by_now", noted)
    automaton = LazyAutomaton(walks(7, WRONG).table, table(WRONG).config, INTERPRETED)
    for _ in range(3):
        assert automaton.judge(walks(7, WRONG)).failures
    assert [len(known.cells) > 0 for known in made] == [True]
    automaton.judge(walks(8, WRONG))
    assert len(made) == 2


def test_what_it_learnt_of_some_traces_serves_others() -> None:
    automaton = LazyAutomaton(walks(1).table, table().config, INTERPRETED)
    automaton.judge(walks(1))
    before = automaton.transitions
    assert automaton.judge(walks(2)) == by_kernel(walks(2), table().config)
    alone = LazyAutomaton(walks(2).table, table().config, INTERPRETED)
    alone.judge(walks(2))
    assert automaton.transitions - before < alone.transitions


def test_tables_grow(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the middle of a trace, as often as it takes."""
    with_little_room(monkeypatch)
    given = walks(4)
    automaton = LazyAutomaton(given.table, table().config, INTERPRETED)
    before = automaton.bytes
    assert automaton.judge(given) == by_kernel(given, table().config)
    assert automaton.bytes > 4 * before
    assert not automaton.is_closed


def with_little_room(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FIRST_TRANSITIONS", "FIRST_MEMORIES", "FIRST_EFFECTS", "FIRST_WORDS"):
        monkeypatch.setattr(lazy_automaton, name, 2)


def test_memories_have_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever leads beyond is the kernel's."""
    with_little_room(monkeypatch)
    whole = LazyAutomaton(walks(4).table, table().config, INTERPRETED)
    whole.judge(walks(4))
    most = whole.bytes // 3
    small = LazyAutomaton(walks(4).table, table().config, INTERPRETED, most)
    assert small.judge(walks(4)) == by_kernel(walks(4), table().config)
    assert small.is_closed
    assert 0 < small.left < len(walks(4))
    assert small.bytes <= most
    assert small.memories < whole.memories
    asked_for = small.transitions
    assert small.judge(walks(5)) == by_kernel(walks(5), table().config)
    assert small.transitions == asked_for


def test_it_asks_for_no_more_than_it_may() -> None:
    """What leads beyond is the kernel's; the next time it may ask for more."""
    automaton = LazyAutomaton(walks(4).table, table().config, INTERPRETED)
    for allowed in (0, 7, 150):
        assert automaton.judge(walks(4), allowed) == by_kernel(walks(4), table().config)
        assert automaton.transitions == allowed
        assert automaton.left > 0
    assert automaton.judge(walks(4)) == by_kernel(walks(4), table().config)
    assert automaton.left == 0


def test_machine_code_says_the_same() -> None:
    """It keeps the same transitions and memories; runs that are wrong among them."""
    for given in (walks(1), walks(7, WRONG)):
        compiled, interpreted = (LazyAutomaton(given.table, table().config, how) for how in (None, INTERPRETED))
        for allowed in (50, lazy_automaton.ALL):
            assert compiled.judge(given, allowed) == interpreted.judge(given, allowed)
            assert compiled.transitions == interpreted.transitions
            assert compiled.memories == interpreted.memories
            assert compiled.bytes == interpreted.bytes
            assert compiled.left == interpreted.left
    assert lazy_automaton.is_loaded()
    assert lazy_automaton.is_ready()


def test_an_effect_that_is_lost_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    """These comparisons can fail: an automaton that counts something else is noticed."""
    monkeypatch.setattr(transitions, "COUNTED", (HELD_COUNT, HELD_COUNT, HELD_COUNT))
    assert by_automaton(walks(1), table().config) != by_kernel(walks(1), table().config)


def asked(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The lengths of what automata are given from now on."""
    given: list[int] = []

    class Noted(LazyAutomaton):
        def __init__(self, found: Columns, config: Config) -> None:
            super().__init__(found, config, INTERPRETED, lazy_automaton.MOST_BYTES)

        def judge(self, traces: Distinct, allowed: int = lazy_automaton.ALL) -> Judgement:
            given.append(len(traces))
            found = super().judge(traces, allowed)
            assert self.transitions <= allowed
            return found

    monkeypatch.setattr(lazy_automaton, "LazyAutomaton", Noted)
    monkeypatch.setattr(
        adaptive_judge, "judge", lambda traces, config, final, _: judge_with(judge_traces, traces, config, final)
    )
    return given


def test_what_recurs_goes_to_an_automaton_once_that_pays(monkeypatch: pytest.MonkeyPatch) -> None:
    given = asked(monkeypatch)
    judging = AdaptiveJudge(len(walks(1)) + 1, 0, 0)
    for seed in (1, 2, 3):
        assert judging.judge(walks(seed), table().config) == by_kernel(walks(seed), table().config)
    assert given == [len(walks(2)), len(walks(3))]


def test_what_asking_costs_the_events_that_came_pay_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """At no time more than the kernel would have taken for all of them; and no less, as long as something is to be asked."""
    given = asked(monkeypatch)
    judging, judged = AdaptiveJudge(0, 0, 0), 0
    for seed in range(4):
        assert judging.judge(walks(seed), table().config) == by_kernel(walks(seed), table().config)
        judged += len(walks(seed))
        assert judging.automaton is not None
        assert judging.automaton.transitions == judged // adaptive_judge.ASKING
    assert sum(given) == judged


def test_what_finds_no_room_goes_back_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """An automaton that is full, and leaves most events to the kernel, is given up; one that leaves few is not."""
    given = asked(monkeypatch)
    with_little_room(monkeypatch)
    monkeypatch.setattr(adaptive_judge, "ASKING", 1)
    for most, times in ((1 << 12, 1), (1 << 28, 3)):
        monkeypatch.setattr(lazy_automaton, "MOST_BYTES", most)
        given.clear()
        judging = AdaptiveJudge(0, 0, 0)
        for seed in (1, 2, 3):
            assert judging.judge(walks(seed), table().config) == by_kernel(walks(seed), table().config)
        assert len(given) == times


def test_when_it_begins(monkeypatch: pytest.MonkeyPatch) -> None:
    """At once where this process has the machine code, later where it is to be loaded, last where it is to be made."""
    given = asked(monkeypatch)
    for is_loaded, is_ready, begins in ((True, True, 1), (False, True, 2), (False, False, 3)):
        monkeypatch.setattr(lazy_automaton, "is_loaded", lambda said=is_loaded: said)
        monkeypatch.setattr(lazy_automaton, "is_ready", lambda said=is_ready: said)
        given.clear()
        judging = AdaptiveJudge(*(len(walks(1)) * times for times in (1, 2, 3)))
        for _ in range(5):
            judging.judge(walks(1), table().config)
        assert len(given) == 5 - begins


def test_other_events_begin_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A table that says something else, or another config, is judged from the beginning."""
    given = asked(monkeypatch)
    judging = AdaptiveJudge(len(walks(1)) + 1, 0, 0)
    other = replace(walks(1), table=replace(walks(1).table, ints=changed(walks(1).table.ints)))
    for traces, config in ((walks(1), table().config), (other, table().config), (other, replace(table().config, min_isr=2))):
        assert judging.judge(traces, config) == by_kernel(traces, config)
    assert not given


def changed(ints: dict[str, Ints]) -> dict[str, Ints]:
    return {name: column + (name == "hw") * (column >= 0) for name, column in ints.items()}


def test_check_says_the_same_of_both_layouts(tmp_path: Path) -> None:
    """Few different events or one row each: the same verdicts and the same failures, explained alike; disks lost as well."""
    runs = [*impl_walks(3, seed=2, steps=60, bounds=DISKS), *impl_walks(3, seed=2, steps=60, rules=FAULTS[WRONG].rules)]
    given = distinct(runs)
    with parquet.DistinctWriter(tmp_path / "few.parquet", runs[0].config, given.table) as out:
        out.write(given.rows, given.table.trace_starts)
    parquet.write(to_columns(runs, runs[0].config), runs[0].config, tmp_path / "wide.parquet")
    few, wide = (check([tmp_path / f"{name}.parquet"]) for name in ("few", "wide"))
    assert few.explanations
    assert any("lost its disk" in note for note in few.notes)
    assert few.rules == wide.rules
    assert [note.replace("few", "wide") for note in few.notes] == list(wide.notes)
    for one, two in zip(few.explanations, wide.explanations, strict=True):
        assert explanation_text(one).replace("few.parquet", "wide.parquet") == explanation_text(two)


def hand(*runs: Sequence[Event], config: Config = TWO) -> Distinct:
    return distinct([Trace(f"run-{at}", "", config, tuple(events)) for at, events in enumerate(runs)])


RESTARTED = reported(1, "Start", clean=False, leo=24, hw=24, log_start=23)
OLD_EPOCH = (reported(1, "Crash"), RESTARTED, follow(1, 2, 1, leo=24, hw=24))
"""Broker 1 starts again, and acts on what it was told of leader epoch 1."""
LONG = tuple((epoch, epoch) for epoch in range(12))


@pytest.mark.parametrize(
    ("runs", "rules"),
    [
        ((COPIED, UNLIKE, COPIED), {"DATA-02"}),
        ((COPIED, (*reigns(24), *OLD_EPOCH)), set()),
        ((COPIED, (start(1, leo=12, hw=12, epochs=LONG), start(2, leo=12, hw=12, epochs=LONG))), set()),
        (((*OPENING, append(1, 0, 1000)), COPIED), {"LOG-01"}),
    ],
    ids=["wrong at the end", "more epochs than a memory has room for", "a longer log", "numbers that are no bytes"],
)
def test_runs_that_are_the_kernels(runs: Sequence[Sequence[Event]], rules: set[str]) -> None:
    """What is wrong at its end, and what a memory does not hold."""
    found = by_automaton(hand(*runs), TWO)
    assert found == by_kernel(hand(*runs), TWO)
    assert {failure.rule for failure in found.failures} == rules


def test_a_judge_that_comes_back_to_where_it_was_asks_for_nothing_more() -> None:
    """Forty ISR changes to and fro lead to no other memories than four: what can no longer matter is forgotten."""
    asked_for = []
    for changes in (4, 40):
        automaton = LazyAutomaton(hand(flapping(changes)).table, TWO, INTERPRETED)
        automaton.judge(hand(flapping(changes)))
        asked_for.append(automaton.transitions)
    assert asked_for[0] == asked_for[1]


def test_what_can_no_longer_matter_makes_no_other_memory() -> None:
    """One that forgets nothing counts the same, and takes more memories for it."""
    keeping = INTERPRETED._replace(kernel=INTERPRETED.kernel._replace(forget=lambda _st: None))
    tidied, whole = (LazyAutomaton(walks(1).table, table().config, how) for how in (INTERPRETED, keeping))
    assert tidied.judge(walks(1)) == whole.judge(walks(1))
    assert tidied.memories < whole.memories


def test_what_an_automaton_does_not_take_in_goes_to_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    """Columns, traces with lines missing or events unreported, and who asks for the last states of the brokers."""
    given, judging = asked(monkeypatch), AdaptiveJudge(0, 0, 0)
    few = replace(TWO, extra=reporting_all_but("Crash", "Stop"))
    assert judging.judge(hand(COPIED, config=few), few) == by_kernel(hand(COPIED, config=few), few)
    holes = replace(hand(COPIED), missing=np.full(len(COPIED), MISSING_AHEAD, np.int64))
    assert judging.judge(holes, TWO) == by_kernel(holes, TWO) != by_kernel(hand(COPIED), TWO)
    assert judging.judge(hand(COPIED).expanded(), TWO) == by_kernel(hand(COPIED), TWO)
    assert judging.judge(hand(COPIED), TWO, final=1).final
    assert not given
