"""Walks: distinct, reproducible, real paths of the graph, and every edge of it."""

from pathlib import Path

import numpy as np
import pytest

from tidegauge.impl.explorer.explore import Bounds, Graph, Walker, explore
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import parquet
from tidegauge.traces.from_model.behaviour import events_of_step, initial_events
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.from_model.walks import EdgeTable, SeenHashes, Walks, draw, edge_table, generate
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

BOUNDS = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)


@pytest.fixture(scope="module")
def graph() -> Graph:
    return explore(BOUNDS)


@pytest.fixture(scope="module")
def table(graph: Graph) -> EdgeTable:
    return edge_table(graph.states, graph.labels, graph.edges, source="test")


def each(walks: Walks) -> list[list[int]]:
    return [edges.tolist() for edges in np.split(walks.edges, np.cumsum(walks.lengths)[:-1])]


def test_a_walk_is_a_path_of_the_graph(table: EdgeTable) -> None:
    for edges in each(draw(table, 500, 12, np.random.default_rng(1))):
        assert edges[0] == table.initial
        state = 0
        for edge in edges[1:]:
            assert table.source[edge] == state
            state = table.target[edge]


def test_a_walk_ends_at_its_length_or_where_nothing_is_enabled(table: EdgeTable) -> None:
    for edges in each(draw(table, 500, 12, np.random.default_rng(1))):
        stuck = len(edges) > 1 and np.diff(table.first_edge)[table.target[edges[-1]]] == 0
        assert len(edges) > 12 or stuck


def test_the_events_of_a_walk_are_those_of_its_steps(graph: Graph, table: EdgeTable) -> None:
    walks = draw(table, 50, 12, np.random.default_rng(2))
    traces = []
    for edges in each(walks):
        events = list(initial_events(graph.states[0]))
        for edge in edges[1:]:
            src, dst = graph.states[table.source[edge]], graph.states[table.target[edge]]
            events.extend(events_of_step(src, graph.labels[table.label_of[edge]], dst))
        traces.append(Trace("", "", table.config, tuple(events)))
    expected = to_columns(traces, table.config)
    found = table.distinct(walks.edges, walks.lengths).expanded()
    for name in ("trace_starts", "event", "node", "epochs_reported", "epochs_at", "epochs"):
        assert getattr(found, name).tolist() == getattr(expected, name).tolist(), name
    for name, column in expected.ints.items():
        assert found.ints[name].tolist() == column.tolist(), name


def test_the_labels_of_a_walk_replay_it_in_the_implementation(graph: Graph, table: EdgeTable) -> None:
    walker = Walker(BOUNDS)
    for edges in each(draw(table, 20, 12, np.random.default_rng(3))):
        cluster = walker.start
        for edge in edges:
            # That is the pseudo edge of the initial state, no step.
            if edge != table.initial:
                cluster = dict(walker.successors(cluster))[table.labels[table.label_of[edge]]]
        assert walker.view(cluster) == graph.states[table.target[edges[-1]]]


def test_generated_walks_are_distinct_and_counted(table: EdgeTable, tmp_path: Path) -> None:
    made = generate(table, tmp_path / "w.parquet", 30_000, steps=10, seed=5)
    groups = parquet.row_groups(made.path)
    assert made.traces == sum(g.traces for g in groups) == 30_000
    assert made.events == sum(g.rows for g in groups)
    assert made.duplicates > 0


def test_a_generation_ends_when_the_graph_has_no_more(tmp_path: Path) -> None:
    """One epoch and one record: few walks of one free step, or of six behind an aim."""
    small = explore(Bounds(brokers=2, max_log=1, max_epoch=0, max_crashes=0))
    made = generate(edge_table(small.states, small.labels, small.edges), tmp_path / "w.parquet", 10**9, steps=1)
    assert 1000 < made.traces < 10**7


def test_aimed_walks_take_every_edge(table: EdgeTable, tmp_path: Path) -> None:
    made = generate(table, tmp_path / "w.parquet", 2 * len(table.target), seed=1)
    assert made.edges_taken == made.edges == len(table.target)


def test_same_seed_same_bytes(table: EdgeTable, tmp_path: Path) -> None:
    for name, seed in (("a", 7), ("b", 7), ("c", 8)):
        generate(table, tmp_path / name, 5000, seed=seed)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a").read_bytes() != (tmp_path / "c").read_bytes()


def test_parts_share_no_walk(table: EdgeTable) -> None:
    by_part = [{tuple(w) for w in each(draw(table, 20_000, 6, np.random.default_rng(1), 0, part, 4))} for part in range(4)]
    assert all(by_part)
    assert len(set.union(*by_part)) == sum(map(len, by_part))


def test_a_walk_of_a_part_is_a_path_of_the_graph(table: EdgeTable) -> None:
    for edges in each(draw(table, 500, 12, np.random.default_rng(1), 0, 5, 8)):
        assert table.source[edges[1:]].tolist() == [0, *table.target[edges[1:-1]].tolist()][: len(edges) - 1]


@pytest.mark.parametrize("parts", [16, 64])
def test_a_part_of_many_keeps_a_good_deal_of_what_is_drawn(parts: int, table: EdgeTable) -> None:
    """Far more than one in so many."""
    kept = len(draw(table, 10_000, 24, np.random.default_rng(1), 0, parts - 1, parts).lengths)
    assert kept > 10_000 * 0.7 ** (parts.bit_length() - 1)


def test_every_walk_belongs_to_a_part(tmp_path: Path) -> None:
    """All walks of three steps of a small graph, whether they are found in one part or in four."""
    small = explore(Bounds(brokers=2, max_log=1, max_epoch=0, max_crashes=0))
    table = edge_table(small.states, small.labels, small.edges)
    found = {}
    for parts in (1, 4):
        many = [draw(table, 200_000, 3, np.random.default_rng(part), 0, part, parts) for part in range(parts)]
        found[parts] = {tuple(walk) for walks in many for walk in each(walks) if 0 < len(walk) <= 4}
    assert found[1] == found[4]


@pytest.mark.parametrize("parts", [0, 3, 2**17])
def test_parts_that_cannot_be_spelt_are_refused(parts: int, table: EdgeTable, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"a power of two up to 65,536, seen {parts:,}"):
        generate(table, tmp_path / "w.parquet", 10, steps=10, parts=parts)


def test_different_walks_have_different_hashes(table: EdgeTable) -> None:
    chunk = draw(table, 50_000, 10, np.random.default_rng(4))
    assert len({tuple(edges) for edges in each(chunk)}) == len(np.unique(chunk.hashes))


def test_seen_tells_what_is_new_within_and_across_calls() -> None:
    seen, known = SeenHashes(), set()
    rng = np.random.default_rng(0)
    for _ in range(50):
        hashes = rng.integers(0, 3000, size=100, dtype=np.uint64)
        expected = []
        for value in hashes.tolist():
            expected.append(value not in known)
            known.add(value)
        assert seen.add(hashes).tolist() == expected


def test_impl_walks_go_beyond_the_explored_bounds_and_repeat() -> None:
    one, other = (list(impl_walks(3, steps=80, seed=2)) for _ in range(2))
    assert one == other
    assert one[0].events != one[1].events
    assert max(event.fields.get("leo", 0) for trace in one for event in trace.events) > 2
    assert one[0].config.nodes == (1, 2, 3)
