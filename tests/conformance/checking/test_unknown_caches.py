"""A truncation by a follower whose cache is unknown: some cache explains it and is told, or none does and TRUNC-01 fails."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from tidegauge.conformance.checking.check import check
from tidegauge.conformance.checking.rules_outside_kernel import (
    COMPARED,
    MOST_SEARCHED,
    UNKNOWN_CACHES_RULE,
    judge_unknown_caches,
    undecided_truncations,
)
from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.schema import Config, Event, Trace

CONFIG = Config(nodes=(1, 2), controller=100)


def truncate_at(target: int, log_start: int | None = None, latest: int | None = None, **fields: Any) -> list[Event]:
    """Follower 1, LEO 9 and cache unknown, is told (epoch 2, end 8) and truncates."""
    request = {"peer": 2, "req_epoch": 5, "req_offset": 9, **({} if latest is None else {"req_last_epoch": latest})}
    start = {"clean": True, "leo": 9, "hw": 0, **({} if log_start is None else {"log_start": log_start})}
    reported = {"div_epoch": 2, "div_end": 8, "target": target, "completed": False, "leo_before": 9, "leo": min(target, 9)}
    return [
        Event(1, "Start", start),
        Event(1, "BecomeFollower", {"leader": 2, "leader_epoch": 5}),
        Event(1, "SendFetch", request),
        Event(
            1,
            "HandleDivergingResponse",
            {"peer": 2, "req_epoch": 5, "req_offset": 9, **reported, **fields},
            at="server.log:7",
        ),
    ]


def judged(*runs: Sequence[Event]) -> Judgement:
    traces = [Trace(f"t{n}", "t-0", CONFIG, tuple(run)) for n, run in enumerate(runs)]
    columns = to_columns(traces, CONFIG)
    return judge_unknown_caches(judge(columns, CONFIG), traces, columns, CONFIG)


def test_a_cache_that_explains_the_truncation_is_told() -> None:
    """LEO 9, answer (2, 8), truncated to 7, asking again: an epoch above 2 begins at 7 and one below 2 ends there."""
    judgement = judged(truncate_at(7))
    tally = judgement.tallies[UNKNOWN_CACHES_RULE]
    assert (tally.held, tally.failed, tally.undecided) == (0, 0, 1)
    assert len(judgement.notes) == 1
    assert ", 7)], " in judgement.notes[0]
    assert judgement.notes[0].endswith(
        "would explain server.log:7: LEO 9, response (epoch 2, end 8), truncated at 7, asking again"
    )


@pytest.mark.parametrize(
    "run",
    [
        truncate_at(10),  # above the log end
        truncate_at(3, log_start=4),  # asks again below its own log start
        truncate_at(7, latest=2),  # asks again though it has the answered epoch
    ],
)
def test_a_truncation_that_no_cache_explains_is_a_failure(run: list[Event]) -> None:
    """TRUNC-01 fails at the truncation, whatever the follower had in its cache."""
    judgement = judged(run)
    tally = judgement.tallies[UNKNOWN_CACHES_RULE]
    assert (tally.failed, tally.undecided, tally.failed_traces) == (1, 0, 1)
    failure = next(f for f in judgement.failures if f.rule == UNKNOWN_CACHES_RULE)
    assert (failure.trace, failure.row, failure.compared) == (0, 3, COMPARED)
    assert judgement.notes[0].startswith(f"{UNKNOWN_CACHES_RULE}: no epoch cache explains server.log:7")


def test_the_epoch_that_somebody_else_asked_with_says_nothing() -> None:
    """A leader that is asked, and then follows: its own cache may have ended elsewhere (see the third case above)."""
    start, follow, _, truncated = truncate_at(7)
    lead = Event(1, "BecomeLeader", {"leader_epoch": 4})
    asked = Event(1, "HandleFetch", {"peer": 2, "req_epoch": 4, "req_offset": 9, "req_last_epoch": 2, "error": 0})
    assert judged([start, lead, asked, follow, truncated]).tallies[UNKNOWN_CACHES_RULE].failed == 0


@pytest.mark.parametrize("name", ["HandleFetchResponse", "EpochCacheEntry", "BecomeLeader"])
def test_a_cache_that_may_have_changed_ends_nobody_knows_where(name: str) -> None:
    """What was asked before says nothing of it; what was asked after does."""
    start, follow, send, truncated = truncate_at(7, latest=2)
    between = Event(1, name, {"peer": 2} if name == "HandleFetchResponse" else {})
    assert judged([start, follow, send, between, truncated]).tallies[UNKNOWN_CACHES_RULE].failed == 0
    assert judged([start, follow, send, between, send, truncated]).tallies[UNKNOWN_CACHES_RULE].failed == 1


def test_failures_of_several_traces_are_counted_apart() -> None:
    """One trace is explained, two are not."""
    judgement = judged(truncate_at(10), truncate_at(7), truncate_at(3, log_start=4))
    tally = judgement.tallies[UNKNOWN_CACHES_RULE]
    assert (tally.failed, tally.undecided, tally.failed_traces) == (2, 1, 2)
    assert [f.trace for f in judgement.failures if f.rule == UNKNOWN_CACHES_RULE] == [0, 2]
    assert len(judgement.notes) == 3


def test_a_known_cache_is_the_judges_own_business() -> None:
    """Where the cache is told, the rule is decided and nothing is searched."""
    run = truncate_at(7)
    run[0] = Event(1, "Start", {**run[0].fields, "log_start": 0, "epochs": ((1, 0), (3, 7))})
    judgement = judged(run)
    assert judgement.tallies[UNKNOWN_CACHES_RULE].held == 2
    assert judgement.notes == ()


def test_no_more_truncates_are_looked_at_than_pay() -> None:
    """A large input gets its notes for the first truncates, and says that there are more."""
    judgement = judged(*[truncate_at(7)] * (MOST_SEARCHED + 2))
    assert len(judgement.notes) == MOST_SEARCHED + 1
    assert judgement.notes[-1].endswith("there are more")
    assert judgement.tallies[UNKNOWN_CACHES_RULE].undecided == MOST_SEARCHED + 2


def test_without_z3_nothing_is_decided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The note says why."""
    monkeypatch.setitem(sys.modules, "tidegauge.spec.proofs.explaining_cache", None)
    judgement = judged(truncate_at(10))
    assert judgement.tallies[UNKNOWN_CACHES_RULE].failed == 0
    assert judgement.notes == (
        (
            f"{UNKNOWN_CACHES_RULE}: no epoch cache was searched for that explains the undecided truncations, "
            "because z3 is not installed"
        ),
    )


def test_check_reports_both(tmp_path: Path) -> None:
    """`tidegauge check` fails for the truncation that nothing explains, and explains the other."""
    runs = [truncate_at(7), truncate_at(10)]
    path = tmp_path / "truncates.ndjson"
    ndjson.write([Trace(f"t{n}", f"t-{n}", CONFIG, tuple(run)) for n, run in enumerate(runs)], path)
    report = check([path])
    assert not report.problems
    assert report.exit_code == 1
    assert len(report.notes) == 2
    assert any(
        e.rule.id == UNKNOWN_CACHES_RULE and e.compared == COMPARED and (e.expected, e.actual) == ("1", "0")
        for e in report.explanations
    )


def test_only_truncations_with_known_numbers_are_asked_about() -> None:
    """Without the response, the target or the log end there is nothing to search for."""
    for left_out in ("div_epoch", "target"):
        run = truncate_at(7)
        fields = {name: value for name, value in run[-1].fields.items() if name != left_out}
        trace = Trace("t", "t-0", CONFIG, (*run[:-1], Event(1, run[-1].event, fields)))
        assert not list(undecided_truncations([trace], to_columns([trace], CONFIG), CONFIG))
