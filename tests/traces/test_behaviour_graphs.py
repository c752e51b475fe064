"""What holds for every path of a model: its transitions as events of the schema."""

import pytest

from tidegauge.impl.explorer.explore import Bounds, Graph, explore
from tidegauge.traces.from_model.behaviour import LABELS, events_of_step
from tidegauge.traces.from_model.walks import edge_table
from tidegauge.traces.schema import EVENTS

THREAD = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1, thread_truncates=True)
GRAPHS = (
    ("fetch-truncation", Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)),
    ("hw-only", Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=0)),
    ("hw-only", THREAD),
    ("kip101", Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=0)),
    ("kip320", Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)),
    ("kip320", THREAD),
    ("elr", Bounds(2, 0, 2, 2, min_insync_replicas=2, loses_tails=True, last_resort="last-known")),
)


@pytest.fixture(scope="module", params=GRAPHS, ids=lambda shown: f"{shown[0]}{'-thread' * shown[1].thread_truncates}")
def graph(request: pytest.FixtureRequest) -> tuple[str, Graph]:
    profile, bounds = request.param
    return profile, explore(bounds, profile)


def test_every_transition_of_a_model_has_events_of_the_schema(graph: tuple[str, Graph]) -> None:
    profile, found = graph
    assert {label[0] for label in found.labels} <= set(LABELS)
    for src, label, dst in found.edges:
        for event in events_of_step(found.states[src], found.labels[label], found.states[dst], profile):
            assert set(event.fields) <= set(EVENTS[event.event].fields)


def test_only_a_lost_or_undelivered_message_is_no_event(graph: tuple[str, Graph]) -> None:
    """Every other transition shows at some node."""
    profile, found = graph
    silent = {
        found.labels[label][0]
        for src, label, dst in found.edges
        if not events_of_step(found.states[src], found.labels[label], found.states[dst], profile)
    }
    dropped = {"HandleFetchResponse", "HandleDivergingResponse", "HandleEpochResponse"}
    assert silent <= {"LoseResponse", "HandleFetch", "HandleEpochRequest", *dropped}


def test_the_order_in_which_edges_were_found_does_not_show(graph: tuple[str, Graph]) -> None:
    profile, found = graph
    one = edge_table(found.states, found.labels, found.edges, profile)
    other = edge_table(found.states, found.labels, reversed(found.edges), profile)
    assert (one.row_of.tolist(), one.target.tolist()) == (other.row_of.tolist(), other.target.tolist())
