"""Leader epochs that every broker is past are forgotten, and nothing is judged otherwise for it."""

from collections.abc import Callable, Sequence
from random import Random

import numpy as np
import pytest

from tests.conformance.hand import (
    OPENING,
    TWO,
    append,
    bent,
    broken,
    change,
    follow,
    judged,
    lead,
    reported,
    send,
    serve,
    start,
    take,
)
from tidegauge.conformance.engine import judge as judging
from tidegauge.conformance.engine.judge import PAST_AT_FIRST, Judgement, judge, judge_with
from tidegauge.conformance.judge import compaction, state, terms
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.state import MOST_PAST, State
from tidegauge.traces.columns import UNKNOWN, Columns, to_columns
from tidegauge.traces.from_model.impl_walks import impl_walks
from tidegauge.traces.schema import Config, Event, Trace
from validation.random_runs import CASES, RunCase
from validation.trace_mutants import mutants

MANY = 100_000
"""Leader epochs of a partition that is judged for years."""
FEW = 10
COMPARED = 80
"""More leader epochs than the table has room for."""
ALL_KEPT = 4096
LITTLE = 12
STEPS = 400
SEED = 2026


def reign(e: int) -> tuple[Event, ...]:
    """Leader epoch e: the brokers change roles, a record is written, copied and acknowledged, the one before is deleted."""
    leader, follower = (1, 2) if e % 2 == 0 else (2, 1)
    served = {"res_log_start": max(e - 1, 0)}
    taken = {**served, "log_start": max(e - 1, 0)}
    deleted = [reported(node, "LogStartMoved", log_start=e, hw=e + 1) for node in (leader, follower)]
    return (
        change(leader, e, (1, 2)),
        lead(leader, e, (1, 2), leo=e, hw_before=e, hw=e),
        follow(follower, leader, e, leo=e, hw=e),
        append(leader, e, e, e, e),
        send(follower, leader, e, e, e - 1),
        serve(leader, follower, e, e, e - 1, res_hw=e, hw=e, leo=e + 1, **served),
        take(follower, leader, e, e, res_hw=e, hw_before=e, hw=e, **taken),
        send(follower, leader, e, e + 1, e),
        serve(leader, follower, e, e + 1, e, res_hw=e, hw=e + 1, leo=e + 1, **served),
        take(follower, leader, e, e + 1, res_hw=e, hw_before=e, hw=e, count=0, **taken),
        reported(leader, "ProduceAck", acks=-1, rec_end=e + 1, error=0),
        send(follower, leader, e, e + 1, e),
        serve(leader, follower, e, e + 1, e, res_hw=e + 1, hw=e + 1, leo=e + 1, **served),
        take(follower, leader, e, e + 1, res_hw=e + 1, hw_before=e, hw=e + 1, count=0, **taken),
        *deleted,
    )


def reigns(count: int) -> tuple[Event, ...]:
    return (start(1), start(2), *(event for e in range(count) for event in reign(e)))


def columns_of(events: Sequence[Event], config: Config = TWO) -> Columns:
    return to_columns([Trace("", "", config, tuple(events))], config)


def going_on(count: int) -> Columns:
    """The columns of `reigns(count)`: two reigns are the two before them with all numbers moved by as much as those were."""
    begun = columns_of(reigns(6))
    two = 2 * len(reign(2))
    head = len(begun) - 2 * two
    times = (count - 4) // 2

    def grown(column: np.ndarray) -> np.ndarray:
        last, before = column[head + two :], column[head : head + two]
        moved = np.where(last == UNKNOWN, 0, last - before)
        rest = last[None, :] + np.arange(times)[:, None] * moved[None, :]
        return np.concatenate((column[: head + two], rest.ravel()))

    rows = head + two * (times + 1)
    return Columns(
        np.array([0, rows]),
        grown(begun.event),
        grown(begun.node),
        {name: grown(column) for name, column in begun.ints.items()},
        np.concatenate((begun.epochs_reported, np.zeros(rows - len(begun), np.bool_))),
        np.concatenate((begun.epochs_at, np.zeros(rows - len(begun), np.int64))),
        begun.epochs,
    )


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of the tables that the judge takes."""
    sizes: list[int] = []
    allocate = state.allocate

    def noted(*given: object) -> State:
        st: State = allocate(*given)
        sizes.append(st.nbytes)
        return st

    monkeypatch.setattr(state, "allocate", noted)
    return sizes


Judge = Callable[[Columns, Config], Judgement]


@pytest.fixture
def forgetting(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A judge with little room, that looks for terms to forget at every election."""

    def judged(columns: Columns, config: Config) -> Judgement:
        with monkeypatch.context() as patch:
            patch.setattr(judging, "PAST_AT_FIRST", LITTLE)
            patch.setattr(compaction, "TERMS_AT_ONCE", 1)
            return judge_with(judge_traces, columns, config)

    return judged


@pytest.fixture
def keeping(monkeypatch: pytest.MonkeyPatch) -> Judge:
    """A judge with room for all, that forgets no term."""

    def judged(columns: Columns, config: Config) -> Judgement:
        with monkeypatch.context() as patch:
            patch.setattr(judging, "PAST_AT_FIRST", ALL_KEPT)
            patch.setattr(terms, "room_for_a_term", lambda _st: None)
            return judge_with(judge_traces, columns, config)

    return judged


def test_the_columns_are_those_of_the_events() -> None:
    """Which the test below counts on."""
    made, seen = going_on(20), columns_of(reigns(20))
    assert made.ints.keys() == seen.ints.keys()
    assert all((made.ints[name] == seen.ints[name]).all() for name in seen.ints)
    assert (made.event == seen.event).all()
    assert (made.node == seen.node).all()
    assert (made.trace_starts == seen.trace_starts).all()


def test_what_is_forgotten_is_counted_all_the_same(forgetting: Judge, keeping: Judge) -> None:
    """A judge that forgets what it can decides each check that one that keeps all decides, and as often."""
    columns = columns_of(reigns(COMPARED))
    assert not forgetting(columns, TWO).failures
    assert forgetting(columns, TWO) == keeping(columns, TWO) == judge(columns, TWO)
    assert keeping(columns, TWO).tallies["DATA-01"].held == COMPARED * (COMPARED - 1) // 2
    assert keeping(columns, TWO).tallies["DATA-03"].held == COMPARED * (COMPARED - 1) // 2


@pytest.mark.parametrize("lost", [1, 2])
def test_a_leader_that_lacks_what_a_forgotten_one_claimed_is_found(lost: int, forgetting: Judge, keeping: Judge) -> None:
    """The claim was handed on: the failure is the same, at the same event."""
    events = reigns(COMPARED)
    short = COMPARED - lost
    elected = change(1, COMPARED, (1, 2)), lead(1, COMPARED, (1, 2), leo=short, hw_before=short, hw=short)
    columns = columns_of((*events, *elected))
    assert {"DATA-01", "DATA-03"} <= {failure.rule for failure in keeping(columns, TWO).failures}
    assert forgetting(columns, TWO).failures == keeping(columns, TWO).failures == judge(columns, TWO).failures


def test_an_unclean_election_ends_what_forgotten_terms_claimed(forgetting: Judge, keeping: Judge) -> None:
    """Nobody is asked any more for what was committed before it."""
    events = [*reigns(COMPARED // 2)]
    at = len(events)
    events += [event for e in range(COMPARED // 2, COMPARED) for event in reign(e)]
    unclean = bent(events, at, clean=False)
    columns = columns_of(unclean)
    clean = keeping(columns_of(events), TWO).tallies["DATA-01"].held
    assert forgetting(columns, TWO) == keeping(columns, TWO)
    assert keeping(columns, TWO).tallies["DATA-01"].held < clean


def alike(one: Judgement, two: Judgement) -> bool:
    """The same failures and tallies; after a loss only how many of the earlier terms lost something may differ."""

    def counted(judgement: Judgement, rule: str) -> object:
        tally = judgement.tallies[rule]
        if rule in ("DATA-01", "DATA-03") and tally.failed:
            return tally.held + tally.failed, tally.undecided, tally.failed_traces
        return tally

    return one.failures == two.failures and all(counted(one, rule) == counted(two, rule) for rule in one.tallies)


def run_of(case: RunCase, steps: int = STEPS) -> Trace:
    bounds = case.bounds._replace(max_epoch=STEPS, max_crashes=30, max_log=60)
    (trace,) = impl_walks(1, bounds=bounds, profile=case.profile, steps=steps, seed=SEED)
    return trace


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_runs_of_every_generation_are_judged_the_same(case: RunCase, forgetting: Judge, keeping: Judge) -> None:
    """Crashes, losses, leaders that lag behind: forgetting at every election changes no tally and no failure."""
    trace = run_of(case)
    columns = columns_of(trace.events, trace.config)
    assert alike(forgetting(columns, trace.config), keeping(columns, trace.config))


@pytest.mark.parametrize("case", CASES[:2], ids=lambda case: case.name)
def test_wrong_events_are_found_the_same(case: RunCase, forgetting: Judge, keeping: Judge) -> None:
    """One thing is changed somewhere in a run: the same rule fails at the same event."""
    made = list(mutants(run_of(case, STEPS // 2)))
    drawn = [mutant.trace for mutant in Random(SEED).sample(made, 30)]
    columns, config = to_columns(drawn, drawn[0].config), drawn[0].config
    assert keeping(columns, config).failures
    assert alike(forgetting(columns, config), keeping(columns, config))


def test_terms_are_forgotten_in_those_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Or the test above would show nothing."""
    gone: list[int] = []
    remove = compaction.remove_term
    monkeypatch.setattr(compaction, "TERMS_AT_ONCE", 1)
    monkeypatch.setattr(compaction, "remove_term", lambda st, t: (gone.append(t), remove(st, t)))
    trace = run_of(CASES[0])
    judge_with(judge_traces, columns_of(trace.events, trace.config), trace.config)
    assert len(gone) > FEW


def unheard(events: Sequence[Event]) -> list[Event]:
    """The events as a source tells them that does not hear the controller."""
    return [event for event in events if event.event != "ChangePartition"]


def test_what_cannot_be_handed_on_is_kept(tables: list[int]) -> None:
    """Where no controller is heard any election may have been unclean: the table grows, each pair counts as undecided."""
    seen = judge(columns_of(unheard(reigns(COMPARED))), TWO)
    assert len(tables) > 1
    assert not seen.failures
    assert seen.tallies["DATA-01"].undecided == COMPARED * (COMPARED - 1) // 2


def test_the_oldest_goes_where_nothing_can_be_handed_on(tables: list[int]) -> None:
    """Then for ever: the table stops growing, and nothing fails."""
    assert not judge(columns_of(unheard(reigns(2 * MOST_PAST))), TWO).failures
    assert len(set(tables)) == len((PAST_AT_FIRST, 2 * PAST_AT_FIRST, MOST_PAST))


@pytest.mark.parametrize(("epoch", "undecided"), [(0, 1), (COMPARED - 2, 0)])
def test_what_a_restarted_broker_says_of_a_forgotten_epoch_is_undecided(epoch: int, undecided: int) -> None:
    """It may act on old metadata again. Who led then is known for the latest epochs only."""
    restarted = reported(1, "Start", clean=False, leo=COMPARED, hw=COMPARED, log_start=COMPARED - 1)
    again = reported(1, "Crash"), restarted, follow(1, 2 - epoch % 2, epoch, leo=COMPARED, hw=COMPARED)
    seen = judge(columns_of((*reigns(COMPARED), *again)), TWO).tallies
    assert seen["EPOCH-04"].undecided == seen["CTRL-03"].undecided == undecided
    assert seen["CTRL-03"].failed == 0


def test_a_leader_epoch_of_many_partition_epochs_takes_no_room(tables: list[int], keeping: Judge) -> None:
    """The ISR changes to and fro, and each change has a number of its own: what its leader has gone on from is forgotten."""
    events = [*reigns(1)]
    for number in range(4 * MOST_PAST):
        isr = (1,) if number % 2 == 0 else (1, 2)
        events.append(change(1, 0, isr, partition_epoch=number + 1))
        events.append(lead(1, 0, isr, leo=1, hw_before=1, hw=1, epoch_start=0, partition_epoch=number + 1))
    columns = columns_of(events)
    assert judge(columns, TWO) == keeping(columns, TWO)
    assert len(tables) == 2


def test_a_broker_that_lags_while_the_table_is_filled_takes_no_room(tables: list[int]) -> None:
    """What can be forgotten is forgotten before the table is full: just then a broker may not have heard most of it."""
    events = [start(1), start(2)]
    for e in range(PAST_AT_FIRST):  # two registrations each
        events += [change(1, e, (1,)), lead(1, e, (1,))]
        events += [] if PAST_AT_FIRST // 8 <= e <= PAST_AT_FIRST // 2 else [follow(2, 1, e)]
    assert not judge(columns_of(events), TWO).failures
    assert len(tables) == 1


@pytest.mark.long
def test_a_hundred_thousand_leader_epochs_take_the_memory_of_ten(tables: list[int]) -> None:
    """And every pair of terms is counted."""
    few, many = judge(going_on(FEW), TWO), judge(going_on(MANY), TWO)
    assert not few.failures
    assert not many.failures
    assert tables[0] == tables[1]
    assert many.tallies["DATA-01"].held == MANY * (MANY - 1) // 2
    assert many.tallies["DATA-03"].held == MANY * (MANY - 1) // 2
    assert {rule for rule, tally in many.tallies.items() if tally.undecided} == {
        rule for rule, tally in few.tallies.items() if tally.undecided
    }


def test_a_leader_that_starts_again_in_one_epoch_is_held_to_nothing_that_it_claimed_there() -> None:
    """Each time it is a term of its own: an epoch is not above itself. One with all of it leads the next."""
    back = reported(1, "Start", clean=True, leo=1, hw=1, log_start=0, epochs=((0, 0),))
    leads = lead(1, 0, (1,), leo=1, hw_before=1, hw=1)
    again = (reported(1, "Stop"), back, leads, reported(1, "ProduceAck", acks=-1, rec_end=1, error=0))
    first = (*OPENING[:2], change(1, 0, (1,)), lead(1, 0, (1,)), append(1, 0, 0, 0, 1))
    events = (*first, *again * 5, change(1, 1, (1,)), lead(1, 1, (1,), leo=1, hw_before=1, hw=1))
    assert broken(events) == set()
    assert judged(events).tallies["DATA-01"].held == 6
    assert judged(events).tallies["DATA-03"].held == 5
