"""Every behaviour of a tiny model with something left out of it: no rule fails, and a judge that guesses is seen."""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any

import pytest

from tests.validation.test_product import CONFIG, ROOM, graph_of, right
from tidegauge.conformance.from_tlc.graph_comparison import Compared
from tidegauge.conformance.judge import lineage
from tidegauge.conformance.judge.events import follower, leader
from tidegauge.traces.schema import Event
from validation.partial_traces import Omission, of_fields, of_kinds, of_nodes
from validation.product import __main__ as command
from validation.product.automaton import automaton
from validation.product.executions import INTERPRETED
from validation.product.models import Model
from validation.product.partial_traces import Less, walks
from validation.product.walk import Walked, walk

TINIEST = Model("tiniest", Compared("Small", "fetch-truncation", {"MaxLog": 1, "MaxEpoch": 0, "MaxCrash": 0}))


def whole() -> tuple[Event, ...]:
    return (*right().initial, *right().events)


def walked_without(omission: Omission, *, declared: bool = True) -> Walked:
    graph = graph_of()
    found = automaton(graph.states, graph.labels, graph.edges, "fetch-truncation", omission)
    return walk(found, omission.config(CONFIG) if declared else CONFIG, ROOM, INTERPRETED)


def broken(omissions: Iterator[tuple[str, Omission]]) -> dict[str, tuple[str, ...]]:
    found = {what: walked_without(omission).rules for what, omission in omissions}
    assert found
    return {what: rules for what, rules in found.items() if rules}


def test_no_behaviour_of_a_source_that_tells_less_raises_an_alarm() -> None:
    """Each kind of event and each node left out, the controller too."""
    assert broken(chain(of_kinds(whole()), of_nodes(whole()))) == {}


@pytest.mark.long
def test_no_field_that_is_left_out_raises_an_alarm() -> None:
    """Each, everywhere and in one kind of event."""
    assert broken(of_fields(whole())) == {}


def test_a_kind_that_is_left_out_undeclared_raises_one() -> None:
    """A judge that forgave everything would pass the tests above."""
    assert "FETCH-04" in walked_without(Omission(kinds={"SendFetch"}), declared=False).rules
    assert walked_without(Omission(kinds={"SendFetch"})).rules == ()


@pytest.mark.parametrize("module", [follower, leader, lineage])
def test_a_judge_that_takes_what_is_absent_for_a_value_is_seen(module: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where all is told it does nothing wrong."""
    monkeypatch.setattr(module, "UNKNOWN", 1 << 50)
    assert walk(right(), CONFIG, ROOM, INTERPRETED).rules == ()
    assert broken(of_kinds(whole()))


def test_each_thing_is_left_out_in_turn() -> None:
    """And nothing of it is left."""
    for less in islice(walks(TINIEST, INTERPRETED), 5):
        events = (*less.walked.automaton.initial, *less.walked.automaton.events)
        there = {(name, event.event) for event in events for name in event.fields}
        assert less.what not in {f"{name} of every {kind}" for name, kind in there}
        assert less.what not in {f"{name} everywhere" for name, _ in there}


def test_the_command_says_what_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was left out, and a shortest trace that an alarm was raised on."""
    undeclared = walked_without(Omission(kinds={"SendFetch"}), declared=False)
    less = [Less("nothing", walk(right(), CONFIG, ROOM, INTERPRETED)), Less("every SendFetch", undeclared)]
    monkeypatch.setattr(command, "walks", lambda _: less[:1])
    held = command._outcome_with_less(TINIEST)
    assert held.ok
    assert "each of 1 left out in turn, 240 pairs: no rule breaks" in held.lines[0]
    monkeypatch.setattr(command, "walks", lambda _: less)
    held = command._outcome_with_less(TINIEST)
    assert not held.ok
    assert held.lines[1] == "  without every SendFetch"
    assert "FETCH-04" in held.lines[2]
