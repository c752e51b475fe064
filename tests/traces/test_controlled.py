"""Runs under the whole controller as traces: repaired the judge accepts all of them, a life of the topic each."""

import random
from collections import defaultdict

import pytest

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explorer.cluster_under_controller import (
    ControlledCluster,
    controlled_successors,
    initial_controlled_cluster,
    take_label,
)
from tidegauge.impl.explorer.controller_model import ControlBounds, control_violation
from tidegauge.impl.profiles import ELR, ELR_REPAIRED, Profile
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.whole_controller import traces_of_controlled
from tidegauge.traces.schema import Trace

TARGETS = ((0,), (0, 1), (0, 1, 2), (2, 1), (1, 2, 0))
DATA = frozenset({"LeaderAppend", "SendFetch", "HandleFetch", "HandleFetchResponse", "AnswerProduce", "AlterPartition"})
NEWS = frozenset({"BecomeLeader", "BecomeFollower", "DeleteReplica", "ReadConfig"})
STEPS = 60


def walked(seed: int, profile: Profile) -> tuple[list[ControlledCluster], list[Label]]:
    """A random run; brokers are busy, and hear most of what there is to hear."""
    rng = random.Random(seed)
    disks = seed % 3 == 0
    bounds = ControlBounds((0, 1, 2), 3, partition_zero=0 if disks else (0, 3)[seed % 2], disks_fail=disks)
    path, labels = [initial_controlled_cluster(bounds, profile, clients=seed % 2 == 0)], list[Label]()
    for _ in range(STEPS):
        kinds = defaultdict[str, list[tuple[Label, ControlledCluster]]](list)
        for label, after in controlled_successors(path[-1]):
            kinds[label[0]].append((label, after))
        for label in (*(("Reassign", target) for target in TARGETS if not disks), ("Create", (0, 1, 2)), ("SetMinIsr", 1)):
            after = take_label(path[-1], label)
            if after is not None:
                kinds[label[0]].append((label, after))
        if rng.random() < 0.8:
            kinds.pop("Delete", None)
        if disks:
            kinds.pop("Unregister", None)
        if not kinds:
            break
        names = sorted(kinds)
        weights = [6 if name in DATA | NEWS else 1 for name in names]
        label, state = rng.choice(kinds[rng.choices(names, weights)[0]])
        path.append(state)
        labels.append(label)
    return path, labels


def path_of(labels: list[Label]) -> list[ControlledCluster]:
    """The states that these labels lead through, from the first one of a partition of two replicas."""
    path = [initial_controlled_cluster(ControlBounds((0, 1), 2), ELR)]
    for label in labels:
        after = take_label(path[-1], label)
        assert after is not None
        path.append(after)
    return path


def broken(traces: list[Trace]) -> set[str]:
    return {failure.rule for one in traces for failure in judge(to_columns([one], one.config), one.config).failures}


@pytest.mark.parametrize("seed", range(12))
def test_repaired_no_run_loses_anything_and_the_judge_accepts_it(seed: int) -> None:
    """Reassigned, fenced, stopped, disks lost, min.insync.replicas lowered, topics deleted and created again."""
    path, labels = walked(seed, ELR_REPAIRED)
    assert not any(control_violation(state.control, ("LeaderCompleteness",)) for state in path)
    assert broken(traces_of_controlled(path, labels, f"walk-{seed}", "impl")) == set()


def test_as_kafka_is_the_judge_rejects_some_of_the_same_runs() -> None:
    """F4 and F7 in runs that nobody chose: ELR members that were removed, replicas that are added and removed."""
    seen = set()
    for seed in (19, 34):
        seen |= broken(traces_of_controlled(*walked(seed, ELR), f"walk-{seed}", "impl"))
    assert {"CTRL-06", "CTRL-08"} <= seen


def test_a_life_of_the_topic_is_a_trace() -> None:
    """What a broker still tells of the first stands there, though the second has begun."""
    labels: list[Label] = [
        *(("LeaderAppend", 0), ("Delete",), ("Create", (0, 1)), ("DeleteReplica", 1), ("BecomeFollower", 1)),
        *(("DeleteReplica", 0), ("BecomeLeader", 0), ("LeaderAppend", 0)),
    ]
    path = path_of(labels)
    first, second = traces_of_controlled(path, labels, "lives", "impl")
    assert (first.name, second.name, first.tp, second.tp) == ("lives", "lives-1", "model-0", "model-0.1")
    assert [(e.node, e.event) for e in first.events[-2:]] == [(2, "DeleteReplica"), (1, "DeleteReplica")]
    assert [(e.node, e.event) for e in second.events if e.event in {"ChangePartition", "Start", "DeleteReplica"}] == [
        *((100, "ChangePartition"), (2, "Start"), (1, "Start")),
    ]
    assert broken([first, second]) == set()


def test_what_a_broker_does_with_a_replica_of_a_deleted_topic_is_in_the_trace_of_that() -> None:
    """It has not read of the deletion yet: it appends, and another one dies."""
    labels: list[Label] = [("Delete",), ("Create", (0, 1)), ("LeaderAppend", 0), ("Die", 1, 1), ("DeleteReplica", 0)]
    path = path_of(labels)
    first, second = traces_of_controlled(path, labels, "late", "impl")
    last = [(1, "LeaderAppend"), (2, "Crash"), (1, "DeleteReplica")]
    assert [(event.node, event.event) for event in first.events[-3:]] == last
    assert [event.event for event in second.events] == ["ChangePartition"]
    assert broken([first, second]) == set()


def test_a_change_of_min_isr_is_told_by_who_wrote_it_and_by_who_read_it() -> None:
    """In front of the change that it causes; each broker with the new leader epoch in which it reads it."""
    labels: list[Label] = [("Fence", 1), ("SetMinIsr", 1), ("BecomeLeader", 0), ("ReadConfig", 0), ("Fence", 0)]
    path = path_of(labels)
    events = [(e.node, e.event) for e in traces_of_controlled(path, labels, "", "")[0].events]
    assert events[events.index((100, "SetMinIsr")) + 1] == (100, "ChangePartition")
    assert (1, "ReadConfig") in events
