"""The judge as a whole: what it accepts, what it finds, and that it says the same compiled and uncompiled."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.conformance.hand import (
    COPIED,
    FORKED,
    TWO,
    append,
    broken,
    change,
    follow,
    judged,
    lead,
    reported,
    start,
    without,
)
from tidegauge.conformance.checking.verdicts import Verdict, verdict_of
from tidegauge.conformance.engine.compiled import compiled
from tidegauge.conformance.engine.judge import ROOM_AT_FIRST, Judgement, judge, judge_with
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.kill_matrix import Fate, kill
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.cluster.transitions import ANYBODY
from tidegauge.impl.explorer import faults
from tidegauge.impl.explorer.explore import Graph, explore
from tidegauge.traces.columns import UNKNOWN, Columns, to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.from_model.walks import EdgeTable, draw, edge_table
from tidegauge.traces.schema import EVENTS, Config, Trace
from validation.golden import DIRECTORY, STORIES, file_of, golden_traces, main

TINY = Bounds(brokers=2, max_log=1, max_epoch=1, max_crashes=1)
SMALL = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCHS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)

OPENING_AND_GROWTH = (
    *COPIED[:6],
    reported(1, "ShrinkIsr", isr=(1,), leo=1, hw=0),
    change(1, 0, (1,)),
    reported(1, "BecomeLeader", leader_epoch=0, isr=(1,), leo=1, hw_before=0, hw=1),
    *COPIED[6:7],
    reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=1),
    change(1, 0, (1, 2)),
)

SAME_WITHIN_BOUNDS = {
    "truncates-at-the-leaders-end",
    "joins-at-hw",
    "hw-survives-truncation",
    "acknowledges-at-once",
    "deposed-and-acknowledges",
}
"""Faults whose graph within their bounds is the right one: nothing there is to be seen. Longer logs show the first two, and
producers that wait show the last two (`Fault.shown`)."""


def walks(table: EdgeTable, seed: int, times: float = 2.0) -> Columns:
    """Free walks, and walks aimed at every edge of the graph."""
    count = int(len(table.target) * times)
    drawn = draw(table, count, 24, np.random.default_rng(seed))
    return table.distinct(drawn.edges, drawn.lengths).expanded()


def table_of(graph: Graph, profile: str = "fetch-truncation") -> EdgeTable:
    return edge_table(graph.states, graph.labels, graph.edges, profile)


def failing(judgement: Judgement) -> set[str]:
    return {rule for rule, tally in judgement.tallies.items() if tally.failed}


def golden() -> Iterator[Trace]:
    for path in sorted(DIRECTORY.glob("*.ndjson")):
        yield from ndjson.read(path).traces


UNREPORTED = {"EPOCH-06", "APPEND-03", "LOG-03"}
"""What rests on partition epochs, acks and log starts, which the model's events do not carry."""


def undecided(judgement: Judgement) -> set[str]:
    """The rules that are, be it once."""
    return {rule for rule, tally in judgement.tallies.items() if tally.undecided}


@pytest.mark.parametrize("bounds", [TINY, pytest.param(SMALL, marks=pytest.mark.long)])
def test_every_edge_of_the_graph_is_accepted(bounds: Bounds) -> None:
    """Walks that take each edge at least once break no rule, and every check that can be decided is."""
    table = table_of(explore(bounds))
    drawn = draw(table, 2 * len(table.target), 24, np.random.default_rng(11))
    assert len(np.unique(drawn.edges[drawn.edges < len(table.target)])) == len(table.target)
    seen = judge_with(compiled(), table.distinct(drawn.edges, drawn.lengths).expanded(), table.config)
    assert failing(seen) == set()
    assert undecided(seen) <= UNREPORTED | {"FETCH-04"}


@pytest.mark.parametrize(
    "bounds",
    [
        Bounds(2, 1, 1, 1, min_insync_replicas=2, loses_tails=True),
        Bounds(2, 0, 2, 2, min_insync_replicas=2, loses_tails=True, last_resort=ANYBODY),
    ],
)
def test_every_edge_with_elr_is_accepted(bounds: Bounds) -> None:
    """Lost tails, clean stops, an empty ISR, leaders from the ELR and as a last resort; and nothing is undecided."""
    table = table_of(explore(bounds, "elr"), "elr")
    drawn = draw(table, 2 * len(table.target), 24, np.random.default_rng(11))
    assert len(np.unique(drawn.edges[drawn.edges < len(table.target)])) == len(table.target)
    seen = judge_with(compiled(), table.distinct(drawn.edges, drawn.lengths).expanded(), replace(table.config, min_isr=2))
    assert failing(seen) == set()
    assert undecided(seen) <= UNREPORTED


@pytest.mark.parametrize(
    ("profile", "broken"), [("kip320", set()), ("fetch-truncation", set()), ("hw-only", {"DATA-01", "DATA-02"})]
)
def test_every_edge_where_the_fetcher_thread_truncates_is_accepted(profile: str, broken: set[str]) -> None:
    """TruncateToHighWatermark as a line of its own; a late response that is dropped before it is none."""
    table = table_of(explore(Bounds(2, 1, 1, 1, thread_truncates=True), profile), profile)
    drawn = draw(table, 2 * len(table.target), 24, np.random.default_rng(11))
    assert len(np.unique(drawn.edges[drawn.edges < len(table.target)])) == len(table.target)
    seen = judge_with(compiled(), table.distinct(drawn.edges, drawn.lengths).expanded(), table.config)
    assert failing(seen) <= broken


@pytest.mark.long
def test_many_leader_epochs_are_accepted() -> None:
    """Walks through the graph with four leader epochs break no rule, and nothing is left undecided."""
    table = table_of(explore(EPOCHS))
    seen = judge_with(compiled(), walks(table, 2, 0.2), table.config)
    assert failing(seen) == set()
    assert undecided(seen) <= UNREPORTED


def test_the_old_profile_loses_committed_data_and_the_judge_sees_it() -> None:
    """hw-only breaks the rules about data and no other: each step follows its own rules."""
    table = table_of(explore(SMALL, "hw-only"), "hw-only")
    assert failing(judge_with(compiled(), walks(table, 3), table.config)) == {"DATA-01", "DATA-02"}


LATE = {"hw-survives-truncation"}
"""Faults whose own bounds hold so many states that a quick test leaves them to `./run long` and the main job."""


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.long if name in LATE else ())
        for name in sorted(set(faults.FAULTS) - {"assign-never-evicts"})
    ],
)
def test_every_fault_is_found(name: str) -> None:
    """Each wrong rule of impl.explorer.faults makes some walk break a rule, in the smallest graph that shows it."""
    assert kill(faults.FAULTS[name], seed=5).judged.fate is Fate.CAUGHT


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(set(faults.FAULTS) - SAME_WITHIN_BOUNDS - {"assign-never-evicts"}))
def test_every_fault_is_found_within_its_bounds(name: str) -> None:
    """So it is where a search finds what the fault costs."""
    fault = faults.FAULTS[name]
    table = table_of(explore(fault.bounds, rules_override=fault.rules))
    assert failing(judge_with(compiled(), walks(table, 5, 0.2), table.config)) != set()


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(SAME_WITHIN_BOUNDS - LATE))
def test_a_fault_that_shows_nothing_within_its_bounds_has_the_right_graph(name: str) -> None:
    fault = faults.FAULTS[name]
    wrong, right = explore(fault.bounds, rules_override=fault.rules), explore(fault.bounds)
    assert (wrong.states, wrong.labels, wrong.edges) == (right.states, right.labels, right.edges)


@pytest.mark.parametrize(
    ("name", "rule", "count"), [("truncates-at-the-leaders-end", "TRUNC-01", 40), ("joins-at-hw", "ISR-01", 150)]
)
def test_faults_that_small_bounds_hide_are_found_on_longer_logs(name: str, rule: str, count: int) -> None:
    """Three brokers and twelve records show what two brokers and two records cannot."""
    traces = list(impl_walks(count, rules=faults.FAULTS[name].rules))
    assert rule in failing(judge(to_columns(traces, traces[0].config), traces[0].config, compile_from=1))


@pytest.mark.parametrize("count", [120, pytest.param(300, marks=pytest.mark.long)])
def test_walks_beyond_the_graph_break_nothing_but_the_finding(count: int) -> None:
    """Kafka as it is breaks HW-08 with three brokers (finding F2), and nothing else."""
    traces = list(impl_walks(count, seed=4))
    seen = judge(to_columns(traces, traces[0].config), traces[0].config, compile_from=1)
    assert failing(seen) == {"HW-08"}


def test_compiled_and_uncompiled_say_the_same() -> None:
    """The same tallies, failures and last states, on right and on wrong traces."""
    traces = [trace for trace in golden() if trace.config.profile == "fetch-truncation"]
    shared = replace(traces[0].config, extra={})
    columns = to_columns(traces, shared)
    one = judge_with(judge_traces, columns, shared, final=len(traces))
    two = judge_with(compiled(), columns, shared, final=len(traces))
    assert one == two
    assert one.failures
    assert len(one.final) == len(traces)


OF_SMALL = tuple(story for story in STORIES if (story.bounds, story.profile) == (SMALL, "fetch-truncation"))


def test_golden_traces_are_what_the_reference_does() -> None:
    """Made again, those of the small graph are the committed files, byte for byte."""
    made = {
        file_of(trace): "".join(f"{line}\n" for line in ndjson.lines(trace))
        for trace in golden_traces(OF_SMALL, ("hw-is-own-log-end",), ("GhostElr",))
    }
    assert len(made) == len(OF_SMALL) + 4
    assert made == {path: path.read_text(encoding="utf-8") for path in made}


@pytest.mark.long
def test_the_command_writes_every_golden_trace(tmp_path: Path) -> None:
    """All of them, and no file is left over."""
    assert main([str(tmp_path)]) == 0
    made, kept = ({path.name: path.read_bytes() for path in folder.glob("*.ndjson")} for folder in (tmp_path, DIRECTORY))
    assert made == kept


def test_golden_traces_pass_or_break_what_they_say() -> None:
    """A trace that must fail names the rules it breaks; all others break none."""
    for trace in golden():
        broken_rules = sorted(broken(trace.events, trace.config))
        assert broken_rules == trace.config.extra.get("breaks", []), trace.name


NOT_GOLDEN = {
    "AnswerFetch": "a leader of the model responds when it handles; the captures have delayed fetches",
    "HandleFetchError": "the model loses a refusal with its response; the captures have those of real brokers",
    "LogStartMoved": "log starts move in a spec of their own: tests/traces/test_log_starts.py",
    "EpochCacheEntry": "the model assigns epochs with a role or with records; brokers log it",
    "HwCheckpoint": "a restart of the model tells what was in the checkpoint",
    "Observe": "nobody looks at a disk of the model; the captures end with their disks",
    "Read": "clients are in a spec of their own, Acks.tla: scenarios 140 and 141",
}
"""Events of the schema that no golden trace holds, and why."""


def test_golden_traces_take_every_event_or_it_is_said_why_not() -> None:
    """Between them they hold every event the reference tells in the graphs they come from."""
    events = {event.event for trace in golden() for event in trace.events}
    assert events.isdisjoint(NOT_GOLDEN)
    assert events | set(NOT_GOLDEN) == set(EVENTS)


# ---------------------------------------------------------------------------------------------------------------------
# What is absent is free


def test_what_is_absent_is_free() -> None:
    """A source that never tells a high watermark breaks no rule about it, and the fields it lacks are named."""
    tallies = judged(without(FORKED, "hw", "hw_before", "res_hw")).tallies
    assert not any(tally.failed for tally in tallies.values())
    assert verdict_of(tallies["HW-01"]) is Verdict.INCONCLUSIVE
    assert "hw" in tallies["HW-01"].missing


def test_an_epoch_cache_nobody_told_leaves_the_truncation_undecided() -> None:
    """Without the cache at start and the records' epochs the target cannot be computed; the report says `epochs`."""
    events = without(FORKED, "epochs", "rec_epoch", "leader_epoch", "epoch_start")
    tally = judged(events).tallies["TRUNC-01"]
    assert verdict_of(tally) is Verdict.INCONCLUSIVE
    assert tally.missing == ("epochs",)


def test_any_field_may_be_left_out() -> None:
    """Dropping a field everywhere turns checks undecided; it never makes a correct trace fail."""
    for events in (COPIED, FORKED):
        for name in sorted({name for event in events for name in event.fields}):
            assert broken(without(events, name)) == set(), name


def test_values_are_derived_where_the_rules_allow_it() -> None:
    """LEO, HW and cache at the end follow from the appends, fetches and truncates alone."""
    reported_least = without(FORKED, "leo", "hw", "leo_before", "hw_before", "target", "completed", "remote_leo")
    opening = [
        replace(e, fields={**e.fields, **f.fields}) if e.event == "Start" else e
        for e, f in zip(reported_least, FORKED, strict=True)
    ]
    assert judged(opening).final == judged(FORKED).final


def test_a_trace_of_which_nothing_is_known_is_not_judged() -> None:
    """Events without fields leave everything undecided or uncalled for."""
    names = {name for event in COPIED for name in event.fields} - {"peer"}
    tallies = judged(without(COPIED, *names)).tallies
    assert not any(tally.failed for tally in tallies.values())


# ---------------------------------------------------------------------------------------------------------------------
# Real sources


def test_a_restarting_broker_may_replay_old_metadata() -> None:
    """It logs itself as leader of an epoch long past: not a second leader, and no claim about committed data."""
    events = (
        *COPIED,
        reported(1, "Crash"),
        change(2, 1, (2,), (2,)),
        lead(2, 1, (2,), leo=1, hw_before=0, hw=1),
        append(2, 1, 1, 1, 2),
        start(1, clean=False, leo=1, hw=0, epochs=((0, 0),)),
        reported(1, "BecomeLeader", leader_epoch=0, isr=(1, 2), leo=1, hw=0),
        follow(1, 2, 1, leo=1, hw=0),
    )
    assert broken(events) == set()


def test_an_unclean_election_ends_the_claim() -> None:
    """After it nobody owes what was committed before; a clean one with the same log does."""
    lost = (
        *COPIED,
        reported(1, "Crash"),
        reported(2, "Crash"),
        start(2, clean=False),
        change(2, 1, (2,), (2,)),
        lead(2, 1, (2,)),
    )
    unclean = (*lost[:-2], replace(lost[-2], fields={**lost[-2].fields, "clean": False}), lost[-1])
    assert "DATA-01" in broken(lost)
    assert "DATA-01" not in broken(unclean)


def test_the_order_in_which_two_brokers_tell_concurrent_events_does_not_matter() -> None:
    """The old leader's commit may stand before or after the new leader's election: the loss is found either way."""
    election = (reported(2, "Crash"), start(2, clean=False), change(2, 1, (2,), (1, 2)), lead(2, 1, (2,)))
    commit = COPIED[10]
    after = (*COPIED[:11], *election)
    before = (*COPIED[:10], *election, commit)
    assert "DATA-01" in broken(after)
    assert "DATA-01" in broken(before)


def test_a_delayed_response_carries_a_high_watermark_from_its_wait() -> None:
    """Not below the one at recording, not above the one when the response leaves."""
    recorded = without(COPIED[10:11], "error", "res_hw", "rec_base", "rec_end")
    for value, rules in ((0, set()), (1, set()), (2, {"FETCH-08"})):
        response = reported(
            1, "AnswerFetch", peer=2, req_epoch=0, req_offset=1, error=0, res_hw=value, rec_base=1, rec_end=1
        )
        assert broken((*COPIED[:10], *recorded, response)) == rules


def test_a_logs_epochs_outgrow_the_room_and_nothing_is_lost() -> None:
    """More leader epochs than the judge begins with only make it begin again with more room."""
    events = [start(1), start(2)]
    for epoch in range(ROOM_AT_FIRST + 4):
        events.append(change(1, epoch, (1,)))
        events.append(lead(1, epoch, (1,), leo=epoch, hw_before=epoch, hw=epoch))
        events.append(append(1, epoch, epoch, epoch, epoch + 1))
    seen = judged(events)
    assert not seen.failures
    assert seen.final[0][0].epochs == tuple((epoch, epoch) for epoch in range(ROOM_AT_FIRST + 4))


def test_many_traces_are_judged_as_each_of_them_alone() -> None:
    """Nothing of a trace is left when the next begins."""
    traces = [trace for trace in golden() if trace.config.profile == "fetch-truncation"]
    config = replace(traces[0].config, extra={})
    together = judge(to_columns(traces, config), config, final=len(traces))
    for number, trace in enumerate(traces):
        alone = judge(to_columns([trace], config), config, final=1)
        assert together.final[number] == alone.final[0]
        assert [f.rule for f in together.failures if f.trace == number] == [f.rule for f in alone.failures]


def test_an_empty_input_holds_nothing() -> None:
    """No trace, no event, no verdict."""
    config = Config(nodes=(1, 2))
    seen = judge(to_columns([], config), config)
    assert (seen.traces, seen.events) == (0, 0)
    assert not any(t.held or t.failed or t.undecided for t in seen.tallies.values())
    assert UNKNOWN < -1
    assert TWO.nodes == config.nodes


@pytest.mark.parametrize(
    ("left_out", "rule"),
    [("SendFetch", "FETCH-04"), ("HandleFetch", "FETCH-10"), ("Crash", "LIFE-01"), ("ExpandIsr", "ISR-04")],
)
def test_a_source_may_say_which_events_it_cannot_report(left_out: str, rule: str) -> None:
    """Without the declaration their absence is a fault; with it the rules that need them are undecided."""
    grown = (*OPENING_AND_GROWTH,) if rule == "ISR-04" else FORKED if rule == "LIFE-01" else COPIED
    events = tuple(event for event in grown if event.event != left_out)
    reports = sorted(EVENTS.keys() - {left_out})
    assert rule in broken(events)
    assert broken(events, replace(TWO, extra={"reports": reports})) == set()


def test_a_broker_that_tells_nothing_is_not_blamed() -> None:
    """The log of one broker alone: what the other sent or answered is unknown, what the leader recorded is not."""
    alone = tuple(event for event in COPIED if event.node != 2)
    assert broken(alone) == set()
    assert judged(alone).tallies["HW-02"].held == 1
    other = tuple(event for event in COPIED if event.node != 1)
    assert broken(other) == set()
