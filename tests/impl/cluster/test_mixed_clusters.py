"""Releases side by side in one cluster: the reference, its traces, and the judge, by broker."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from tests.conformance.checking.test_judge import failing, table_of
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.conformance.engine.judge import Judgement, judge, judge_with
from tidegauge.impl.cluster.transitions import Bounds
from tidegauge.impl.explorer.explore import Graph, explore
from tidegauge.impl.releases import profile_names, profile_of_node, profile_of_release, profiles_named
from tidegauge.impl.rules import FENCED_LEADER_EPOCH
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.from_model.walks import draw
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

TINY = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)
RAISED = "1=kip320,2=fetch-truncation"
WITHOUT_F2 = "+keeps_remote_leo=off"
MIXES = ("1=kip279,2=kip320,3=fetch-truncation", "1=kip101,2=kip279,3=fetch-truncation", "1=4.0.0,2=4.0.1,3=4.3.1")


@cache
def graph(profile: str) -> Graph:
    return explore(TINY, profile)


def edges(profile: str) -> set[tuple[Any, ...]]:
    whole = graph(profile)
    return {(whole.states[source], whole.labels[label], whole.states[target]) for source, label, target in whole.edges}


def test_brokers_with_one_profile_by_name_are_the_cluster_of_that_profile() -> None:
    """Naming the profile of each broker changes no state and no label."""
    assert edges("1=kip320,2=kip320") == edges("kip320")


@pytest.mark.parametrize("profile", list(profile_names(RAISED)))
def test_a_mixed_cluster_has_other_transitions_than_either_profile(profile: str) -> None:
    """Each has some that the other lacks."""
    assert edges(RAISED) - edges(profile)
    assert edges(profile) - edges(RAISED)


@pytest.mark.parametrize(("profile", "fenced"), [("1=kip320,2=kip279", False), ("1=kip279,2=kip320", True)])
def test_a_request_is_fenced_by_what_its_senders_protocol_puts_in(profile: str, fenced: bool) -> None:
    """A follower before KIP-320 names no leader epoch, whoever leads; a later one does."""
    errors = {
        event.fields["error"]
        for trace in impl_walks(40, bounds=Bounds(2, 3, 5, 1), profile=profile, steps=120, seed=3)
        for event in trace.events
        if event.event == "HandleFetch" and event.fields["peer"] == 2
    }
    assert (FENCED_LEADER_EPOCH in errors) == fenced


def judged_as(traces: list[Trace], profile: str) -> Judgement:
    config = replace(traces[0].config, profile=profile)
    return judge(to_columns([replace(trace, config=config) for trace in traces], config), config, compile_from=10**9)


def test_the_judge_accepts_every_edge_of_a_mixed_graph() -> None:
    """Walks that take each edge break no rule."""
    table = table_of(graph(RAISED), RAISED)
    drawn = draw(table, 2 * len(table.target), 24, np.random.default_rng(11))
    assert len(np.unique(drawn.edges[drawn.edges < len(table.target)])) == len(table.target)
    seen = judge_with(compiled(), table.distinct(drawn.edges, drawn.lengths).expanded(), table.config)
    assert failing(seen) == set()


@pytest.mark.parametrize("mix", MIXES)
def test_walks_of_three_releases_are_accepted_by_broker_alone(mix: str) -> None:
    """With F2 repaired, which breaks HW-08 in any of them; by the latest of the profiles, some are not."""
    profile = ",".join(f"{part}{WITHOUT_F2}" for part in mix.split(","))
    walks = list(impl_walks(40, profile=profile, seed=1))
    assert failing(judged_as(walks, profile)) == set()
    assert failing(judged_as(walks, f"fetch-truncation{WITHOUT_F2}"))


def test_a_wrong_switch_is_told_at_the_broker_that_has_it() -> None:
    """Broker 2 is said to be 4.0.1 and takes responses of another epoch: FETCH-09 fails there, and nowhere else."""
    walks = list(impl_walks(40, profile="1=4.0.1,2=4.0.0,3=4.0.0", seed=1))
    judgement = judged_as(walks, "1=4.0.1,2=4.0.1,3=4.0.0")
    failed = [failure for failure in judgement.failures if failure.rule == "FETCH-09"]
    columns = to_columns(walks, walks[0].config)
    assert {walks[0].config.nodes[columns.node[failure.row]] for failure in failed} == {2}


def test_the_name_of_a_cluster_gives_each_broker_its_profile() -> None:
    """One without an id is the controller's and that of the others; eligible leader replicas are the cluster's."""
    profiles = profiles_named("4.1.0,1=3.9.1", (1, 2))
    assert [own.name for own in profiles.brokers] == ["release-3.9.1", "release-4.1.0"]
    assert [own.elr for own in (*profiles.brokers, profiles.controller)] == [True] * 3
    assert [own.elr for own in profiles_named("2=4.1.0,1=3.9.1", (1, 2)).brokers] == [False] * 2
    assert profile_of_node("4.1.0,1=4.3.1+fencing=off", 1).fencing is False
    assert profiles_named("4.0.1", (1, 2)).brokers == (profile_of_release("4.0.1"),) * 2


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("1=3.9.1", "none for 2"),
        ("1=3.9.1,1=4.0.0", "seen two"),
        ("3.9.1,4.0.0", "seen two"),
        ("1=3.9.1,2=9.0", "release"),
        ("1=3.9.1,two=4.0.0", "profile"),
        ("", "profile"),
        (f"{'1' * 5000}=3.9.1", "write the release as numbers"),
    ],
)
def test_a_name_that_gives_a_broker_none_or_two_is_refused(name: str, says: str) -> None:
    """The message says which."""
    with pytest.raises(UsageError, match=says):
        profiles_named(name, (1, 2))
