"""The judge against every behaviour of tiny models, and the ways in which that can go wrong."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.judge.events import follower, leader, serving
from tidegauge.impl import rules
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Graph, explore
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.profiles import Rules
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import config_for, numbered
from tidegauge.traces.schema import Event, Trace
from validation.product.access_trace import noted, uncompiled
from validation.product.automaton import Automaton, automaton
from validation.product.client_events import is_right
from validation.product.executions import INTERPRETED
from validation.product.false_accepts import (
    BY_CLIENT,
    FalseAccepts,
    candidates_of,
    counts_of,
    differences,
    false_accepts,
    false_accepts_by_group,
    pin,
    pinned,
)
from validation.product.models import MODELS
from validation.product.reasons import REASONS
from validation.product.walk import Walked, walk
from validation.trace_language import Language

BOUNDS = Bounds(brokers=2, max_log=1, max_epoch=0, max_crashes=0)
"""One leader epoch, one record: small enough for the interpreted judge."""
CONFIG = config_for(2)
ROOM = 4


def graph_of(rules: Rules | None = None, bounds: Bounds = BOUNDS) -> Graph:
    return explore(bounds, rules_override=rules)


def automaton_of(graph: Graph) -> Automaton:
    return automaton(graph.states, graph.labels, graph.edges, "fetch-truncation")


@cache
def right() -> Automaton:
    return automaton_of(graph_of())


@cache
def walked() -> Walked:
    return walk(right(), CONFIG, ROOM, INTERPRETED)


def passed(found: tuple[FalseAccepts, ...]) -> int:
    return sum(one.open + one.passed for one in found)


@cache
def accepted_by_the_judge() -> tuple[FalseAccepts, ...]:
    return false_accepts(walked(), INTERPRETED, memories=8)


def paths(found: Automaton, steps: int, seed: int) -> Iterator[list[int]]:
    """Random words of the automaton."""
    rng = np.random.default_rng(seed)
    while True:
        state, word = 0, []
        for _ in range(steps):
            edges = np.arange(found.first[state], found.first[state + 1])
            if len(edges) == 0:
                break
            edge = rng.choice(edges)
            word.append(int(found.symbol[edge]))
            state = int(found.target[edge])
        yield word


def test_the_automaton_reads_the_language_of_the_graph() -> None:
    """What it reads the subset construction accepts, and an event that it has no transition for ends that."""
    graph, found = graph_of(), right()
    language = Language(graph.states, graph.labels, graph.edges, "fetch-truncation")
    for word, _ in zip(paths(found, 12, seed=1), range(20), strict=False):
        events = [*found.initial, *(found.events[symbol] for symbol in word)]
        assert language.holds(events)
        state = 0
        for symbol in word:
            edge = found.first[state] + np.flatnonzero(found.symbol[found.first[state] : found.first[state + 1]] == symbol)
            state = int(found.target[edge[0]])
        right_next = set(found.symbol[found.first[state] : found.first[state + 1]].tolist())
        for number, event in enumerate(found.events):
            assert language.holds([*events, event]) == (number in right_next)


def test_no_behaviour_raises_an_alarm() -> None:
    """Of any length: every pair of the product was walked, the judge came back to memories it had had."""
    assert walked().rules == ()
    assert len(walked().pairs) >= right().states
    assert walked().memories < len(walked().verdicts) < walked().transitions + 1
    assert set(walked().pairs[:, 0].tolist()) == set(range(right().states))


def test_the_walk_and_the_judge_say_the_same() -> None:
    """A trace that the walk calls broken is broken when it is judged in one piece."""
    wrong = walk(automaton_of(graph_of(FAULTS["hw-is-own-log-end"].rules)), CONFIG, ROOM, INTERPRETED)
    assert wrong.rules
    for broken in wrong.first:
        trace = Trace("", "", CONFIG, numbered(broken.events))
        found = judge(to_columns([trace], CONFIG), CONFIG).failures
        assert {failure.rule for failure in found if failure.row == len(broken.events) - 1} == set(broken.rules)


@pytest.mark.parametrize("fault", ["hw-is-own-log-end", "joins-at-epoch-start"])
def test_a_removed_guard_is_found(fault: str) -> None:
    """A graph that does what it must not tells traces that the judge rejects."""
    graph = graph_of(FAULTS[fault].rules)
    assert graph != graph_of()
    assert walk(automaton_of(graph), CONFIG, ROOM, INTERPRETED).rules


def test_what_is_let_pass_has_a_reason() -> None:
    """And most is rejected at once."""
    found = accepted_by_the_judge()
    assert sum(one.offered for one in found) > 1_000
    assert passed(found) < sum(one.offered for one in found) / 20
    assert [one for one in found if not one.explained] == []


def test_nothing_is_offered_that_is_right() -> None:
    """Of the events the model tells, those are offered that it cannot tell there."""
    own = [one for one in accepted_by_the_judge() if not one.field]
    asked = np.unique(walked().pairs[right().whole[walked().pairs[:, 0]], 1])
    everything = false_accepts(walked(), INTERPRETED, memories=len(asked) + 1)
    pairs = walked().pairs[right().whole[walked().pairs[:, 0]]]
    right_ones = int(np.diff(right().first)[pairs[:, 0]].sum())
    offers = len(pairs) * len(right().events)
    assert sum(one.offered for one in everything if not one.field) == offers - right_ones
    assert sum(one.offered for one in own) < offers


def test_a_weaker_judge_lets_more_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """The count rises where a check is gone, and the key that it rises under has no reason."""
    before = {(one.event, one.field): one.open + one.passed for one in accepted_by_the_judge()}
    monkeypatch.setattr(serving, "check_records", lambda *_: None)
    after = {(one.event, one.field): one.open + one.passed for one in false_accepts(walked(), INTERPRETED, memories=8)}
    assert after[("HandleFetch", "rec_base")] > before[("HandleFetch", "rec_base")]
    assert ("HandleFetch", "rec_base") not in REASONS


def test_a_judge_with_a_wrong_rule_fails_right_behaviours(monkeypatch: pytest.MonkeyPatch) -> None:
    """A rule that holds too much is seen by the walk, with the rule it fails."""
    right_rule = rules.may_join_isr
    monkeypatch.setattr(leader, "may_join_isr", lambda joins, hw, start: right_rule(joins, hw, start) and joins > 0)
    assert walk(right(), CONFIG, ROOM, INTERPRETED).rules == ("ISR-01",)
    monkeypatch.undo()
    monkeypatch.setattr(follower, "follower_high_watermark", lambda hw, _start, leo: min(hw, leo) + 1)
    assert "HW-05" in walk(right(), CONFIG, ROOM, INTERPRETED).rules


def test_changes_are_none_of_the_model_and_stand_once() -> None:
    """Each differs from an event of the model in one field."""
    offers = candidates_of(right().events, CONFIG)
    assert [offer.event for offer in offers[: len(right().events)]] == list(right().events)
    words = {(o.event.node, o.event.event, str(sorted(o.event.fields.items()))) for o in offers}
    assert len(words) == len(offers)
    for offer in [offer for offer in offers[len(right().events) :] if offer.field != BY_CLIENT]:
        near = [e for e in right().events if (e.node, e.event) == (offer.event.node, offer.event.event)]
        assert any({**e.fields, offer.field: offer.event.fields[offer.field]} == dict(offer.event.fields) for e in near)


def client_outcomes(found: tuple[FalseAccepts, ...]) -> dict[str, FalseAccepts]:
    return {one.event: one for one in found if one.field == BY_CLIENT}


def test_what_no_broker_may_tell_a_client_is_rejected() -> None:
    """A success before the high watermark, by a follower, of another epoch; a read above the high watermark."""
    outcomes = client_outcomes(accepted_by_the_judge())
    assert outcomes.keys() == {"ProduceAck", "Read"}
    assert all(one.rejected > 0 for one in outcomes.values())
    assert sum(one.open + one.passed for one in outcomes.values()) == 0


def test_a_judge_that_believes_acknowledgements_lets_them_pass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each check that such an event meets is needed."""
    monkeypatch.setattr(leader, "acknowledged_by_leader", lambda *_: None)
    outcomes = client_outcomes(false_accepts(walked(), INTERPRETED, memories=8))
    assert outcomes["ProduceAck"].passed > 0
    assert outcomes["Read"].passed == 0


def test_a_model_with_clients_tells_them_itself() -> None:
    """Nothing is offered twice."""
    events = (*right().events, Event(1, "ProduceAck", {"acks": -1, "rec_end": 1, "error": 0}))
    assert [offer for offer in candidates_of(events, CONFIG) if offer.field == BY_CLIENT] == []


def test_what_a_client_may_be_told_hangs_on_the_broker_alone() -> None:
    """Who leads, up to which record, and which record that is."""
    views = {view for views in right().inside for view in views}
    committed = next(view for view in views if view[0][0][1] == 1)
    ack = Event(1, "ProduceAck", {"acks": -1, "rec_end": 1, "error": 0})
    other = {**ack.fields, "rec_epoch": 1}
    assert is_right(ack, committed)
    assert not is_right(replace(ack, fields=other), committed)
    assert not is_right(replace(ack, node=2), committed)
    assert not is_right(ack, next(view for view in views if view[0][0][1] == 0))


def whole_row(st: list[int], row: int) -> int:
    return st[row]


def asked_by_group(kernel: Callable[..., None]) -> tuple[FalseAccepts, ...]:
    """What is let pass where all memories are asked about at once that this kernel reads the same of."""
    machine = INTERPRETED._replace(kernel=INTERPRETED.kernel._replace(judge=kernel))
    return false_accepts_by_group(walk(right(), CONFIG, ROOM, machine, notes=True), machine)


def test_asking_once_counts_what_asking_always_does() -> None:
    """Memories that agree in what was read are judged alike; to a kernel that notes nothing all would be one."""
    everything = false_accepts(walked(), INTERPRETED)
    assert asked_by_group(uncompiled()) == everything
    assert asked_by_group(INTERPRETED.kernel[0]) != everything


def test_a_text_that_reads_the_table_in_another_way_is_refused() -> None:
    """What is read by other means than a cell or the first cells of a row would not be noted."""
    with pytest.raises(TypeError, match="a row and a column of the table, seen st"):
        noted(whole_row)  # type: ignore[arg-type]


def test_a_count_that_changes_is_a_difference(tmp_path: Path) -> None:
    """So is one that is not met any more, and a kind that has no reason."""
    found = (
        FalseAccepts("Crash", "", 10, 0, 5),
        FalseAccepts("HandleFetch", "rec_end", 7, 2, 1),
        FalseAccepts("SendFetch", "", 9, 0, 0),
    )
    pin({"one": counts_of(found)}, tmp_path / "counts.toml")
    known = pinned(tmp_path / "counts.toml")["one"]
    assert known == {"Crash": (5, 0), "HandleFetch rec_end": (1, 2)}
    assert differences(found, known) == []
    assert differences(found[1:], known) == ["Crash: expected 5 passed and 0 open, seen 0 and 0"]
    assert differences((*found, FalseAccepts("SendFetch", "peer", 0, 0, 1)), known) == [
        "SendFetch peer: let pass without a reason",
        "SendFetch peer: expected 0 passed and 0 open, seen 1 and 0",
    ]


def test_every_reason_is_needed_and_every_pinned_kind_has_one() -> None:
    """A kind that no model lets pass any more has no reason either, and every model is pinned."""
    counts = pinned()
    assert counts.keys() == {model.name for model in MODELS}
    kinds = {kind for of_model in counts.values() for kind in of_model}
    assert kinds == {f"{event} {field}".strip() for event, field in REASONS}
    assert all(passed + left > 0 for of_model in counts.values() for passed, left in of_model.values())
