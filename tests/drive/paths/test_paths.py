"""Covers take every local step, walks are drawn again the same, and the reference agrees with itself on all of them."""

from collections import Counter
from pathlib import Path

import pytest

from tidegauge.drive.broker.applied_rules import T_TABLE, counting, coverage_lines
from tidegauge.drive.broker.reference import is_possible, reference, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import ENDS, EVERYTHING
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths.cover import LONGEST, MOST_ENDS, _inputs_now, _local, cover
from tidegauge.drive.paths.graph_projection import Input
from tidegauge.drive.paths.graphs import GRAPHS, USUAL, DrivenGraph, cover_of, graph_named
from tidegauge.drive.paths.selection import Choice, cases_beside_covers, cases_for, chosen_paths
from tidegauge.drive.paths.walks import walk, walks
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.profiles import FETCH_TRUNCATION, Rules
from tidegauge.impl.releases import profile_named
from tidegauge.util.errors import UsageError

SMALL = GRAPHS["small"].inputs(FETCH_TRUNCATION)


def test_a_cover_takes_every_local_step_of_its_graph() -> None:
    """And knows of nothing that the graph gives a broker and the contract does not reach."""
    made = cover(SMALL, FETCH_TRUNCATION)
    assert (made.states, made.transitions) == (1848, 7329)
    assert (made.steps_taken, made.local_steps, made.unreached) == (382, 382, 0)
    assert max(len(case.path) for case in made.cases) <= LONGEST + 2


def test_a_path_ends_its_process_seldom_and_every_local_step_is_taken_all_the_same() -> None:
    """Only what is beyond the third end of a shortest run is taken behind more of them."""
    made = cover(GRAPHS["acks"].inputs(FETCH_TRUNCATION), FETCH_TRUNCATION)
    ends = [sum(step[0] in ENDS for step in case.path) for case in made.cases]
    assert made.steps_taken == made.local_steps
    assert max(ends) == MOST_ENDS


def test_the_paths_really_take_them() -> None:
    """Counted again, from what the reference holds at each step: no path leans on what the cover says."""
    taken = set()
    for case in cover(SMALL, FETCH_TRUNCATION).cases:
        state = opened(case.opening)
        for one in case.path:
            assert is_possible(state, one)
            given = [given for given in _inputs_now(SMALL, state, _local(SMALL, state)) if _same(given, one)]
            assert given
            taken.add((_local(SMALL, state), given[0].requested, given[0].step))
            state, _ = take_step(state, one)
    assert len(taken) == 382


def _same(given: Input, taken: tuple[object, ...]) -> bool:
    """But for the partition epoch, which a step of the graph leaves open."""
    at = {"metadata": 3, "alter_partition_response": 2}.get(str(taken[0]), 0)
    return [*given.step[:at], *given.step[at + 1 :]] == [*taken[:at], *taken[at + 1 :]]


def test_the_same_seed_gives_the_same_paths_and_another_one_others() -> None:
    first, again, other = (cover(SMALL, FETCH_TRUNCATION, seed=seed) for seed in (0, 0, 1))
    assert first == again
    assert first.cases != other.cases
    assert other.steps_taken == 382


def test_what_a_broker_cannot_be_given_costs_coverage() -> None:
    can = EVERYTHING.can - {"fetch", "lag"}
    made = cover(SMALL, FETCH_TRUNCATION, Capabilities("some", can, EVERYTHING.reports))
    assert made.local_steps == 382
    assert 0 < made.steps_taken < 300
    assert not {taken[0] for case in made.cases for taken in case.path} & {"fetch", "lag"}


@pytest.mark.parametrize(
    ("graph", "profile", "unreached"),
    [
        (GRAPHS["isr"], "fetch-truncation", 1),
        (DrivenGraph(Bounds(2, 1, 0, 0, max_start=1), "log starts"), "fetch-truncation", 0),
        (DrivenGraph(Bounds(2, 1, 1, 1, max_waiting=1, min_insync_replicas=2), "acks"), "release-3.4.0", 0),
        (DrivenGraph(Bounds(2, 1, 1, 0), "asks for epochs"), "kip320", 0),
        (DrivenGraph(Bounds(2, 1, 1, 1), "truncates alone"), "hw-only", 0),
    ],
)
def test_every_kind_of_graph_is_covered_for_other_generations_too(graph: DrivenGraph, profile: str, unreached: int) -> None:
    """And the reference of that generation agrees with itself on all of it."""
    switches = profile_named(profile)
    made = cover(graph.inputs(switches), switches)
    assert made.steps_taken == made.local_steps > 100
    assert made.unreached == unreached
    played = play(ReferenceNode(reference(switches)), made.cases, reference(switches))
    assert played.differences == ()


@pytest.mark.parametrize("release", ["release-3.4.0", "release-3.6.2"])
def test_a_late_response_reaches_a_follower_whose_thread_has_not_truncated(release: str) -> None:
    """It is dropped: the model's step of the fetcher thread, on a broker. The cover shows who takes it."""
    switches = profile_named(release)
    late = []
    for case in cover(GRAPHS["small"].inputs(switches), switches).cases:
        state = opened(case.opening, switches)
        for one in case.path:
            entry = state.broker.entry
            waits = one[0] == "fetch_response" and entry is not None and entry.truncating and one[1] == state.broker.source
            state, _ = take_step(state, one)
            if waits and one[5]:
                late.append((state.broker.partition.log.end, state.broker.entry and state.broker.entry.truncating))
    assert late
    assert set(late) == {(0, False)}


def test_other_generations_differ_on_the_same_paths() -> None:
    """KAFKA-18991 shows on one record and one election."""
    played = play(
        ReferenceNode(reference(profile_named("release-3.4.0"))), cover(SMALL, FETCH_TRUNCATION).cases, reference()
    )
    assert played.differences


def test_a_cover_is_kept_and_one_that_cannot_be_read_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = cover_of("small", FETCH_TRUNCATION)
    (kept,) = tmp_path.rglob("small-*.json.gz")
    monkeypatch.setattr("tidegauge.drive.paths.graphs.cover", lambda *_: pytest.fail("made again"))
    assert cover_of("small", FETCH_TRUNCATION) == made
    monkeypatch.undo()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    kept.write_bytes(b"no gzip")
    assert cover_of("small", FETCH_TRUNCATION) == made


def test_generations_that_differ_in_nothing_that_was_read_share_a_cover(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    made = [cover_of("small", FETCH_TRUNCATION)]
    monkeypatch.setattr("tidegauge.drive.paths.graphs.cover", lambda *_: made.append(made[0]) or made[0])
    for name in ("amends_registration", "completes_by_adding"):
        cover_of("small", FETCH_TRUNCATION.switched({name: not getattr(FETCH_TRUNCATION, name)}))
    assert len(made) == 1, "a controller that reassigns reads them, and nobody here"
    for _ in range(2):
        cover_of("small", FETCH_TRUNCATION.switched({"keeps_remote_leo": False}))
        assert len(made) == 2, "it is read, so the cover is made again, and once"
    assert len(list(tmp_path.rglob("small-*.json.gz"))) == 2


def test_a_path_that_two_sources_have_is_played_once() -> None:
    once, _ = cases_for(EVERYTHING, FETCH_TRUNCATION, graphs=["small"], walks=3)
    twice, lines = cases_for(EVERYTHING, FETCH_TRUNCATION, graphs=["small", "small"], walks=3)
    assert once == twice
    assert sum(line.startswith("graph small") for line in lines) == 2


def test_the_whole_run_has_refusals_and_paths_that_tell_beside_the_cover() -> None:
    whole = chosen_paths(Choice(), EVERYTHING, FETCH_TRUNCATION)
    cover, _ = cases_for(EVERYTHING, FETCH_TRUNCATION)
    beside, lines = cases_beside_covers(EVERYTHING, FETCH_TRUNCATION, cover)
    assert beside
    assert set(whole.cases) >= {*cover, *beside}
    assert set(whole.coverage) >= set(lines)
    # Who names graphs or asks for walks gets these alone, and what tells the repairs of F2 and F3.
    for asked in (Choice(covered=["small"]), Choice(walks=3)):
        assert not set(chosen_paths(asked, EVERYTHING, FETCH_TRUNCATION).coverage) & set(lines)
    assert len(chosen_paths(Choice(smoke=True), EVERYTHING, FETCH_TRUNCATION).cases) == 1


def test_where_nothing_can_be_kept_the_cover_is_made_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    assert cover_of("small", FETCH_TRUNCATION).steps_taken == 382


def test_an_unknown_graph_is_refused_with_those_there_are() -> None:
    assert set(USUAL) < set(GRAPHS)
    with pytest.raises(UsageError, match=r"expected one of small, two, .* seen 'four'"):
        graph_named("four")


def test_walks_are_drawn_again_the_same_and_are_paths() -> None:
    """Whatever the generation: what would end its process is left out."""
    for profile in ("fetch-truncation", "kip320", "hw-only", "release-2.0.0"):
        drawn = walks(7, 8, profile_named(profile))
        assert drawn == tuple(walk(7, number, profile_named(profile)) for number in range(8))
        assert (
            play(ReferenceNode(reference(profile_named(profile))), drawn, reference(profile_named(profile))).differences
            == ()
        )
    assert walks(7, 3, FETCH_TRUNCATION) != walks(8, 3, FETCH_TRUNCATION)


def test_rules_and_rows_are_counted() -> None:
    """Walks go through the rows of the T-table that a leader of today can cause."""
    count: Counter[tuple[str, str]] = Counter()
    play(ReferenceNode(reference()), walks(1, 160, FETCH_TRUNCATION), reference(rules=counting(count)))
    rows = {row for rule, row in count if rule == "truncation_target"}
    assert rows == set(T_TABLE) - {"T1", "T2"}
    lines = coverage_lines(count)
    assert lines[0].startswith("rules applied: ")
    assert "not epoch_for_offset, accepts_epoch_response" in lines[0]
    assert coverage_lines(Counter()) == [f"rules applied: 0 of 28; not {', '.join(Rules._fields)}"]


@pytest.mark.long
@pytest.mark.parametrize("name", [*USUAL, "three"])
def test_the_graphs_that_are_shipped_are_covered(name: str) -> None:
    """Whole, as `tidegauge drive` takes them."""
    made = cover(GRAPHS[name].inputs(FETCH_TRUNCATION), FETCH_TRUNCATION)
    assert made.steps_taken == made.local_steps
    assert made.unreached == (name == "isr")
    assert play(ReferenceNode(reference()), made.cases, reference()).differences == ()
