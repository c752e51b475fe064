"""Promises broken on purpose: most are caught, each kind that passes has a reason, and the command can fail."""

import random
from dataclasses import replace

import pytest

from tests.conformance.hand import COPIED, TWO, change, follow, lead
from tidegauge.conformance.judge.events import leader
from tidegauge.traces.schema import Trace
from validation import broken_promises
from validation.broken_promises import (
    ALTERED,
    BREAKS,
    CASES,
    LET_PASS,
    Outcome,
    break_promises,
    broken_histories,
    main,
    wrong,
)

FEW, SHORT = 9, 50


def test_every_promise_that_is_broken_is_caught_or_has_a_reason() -> None:
    """In a few histories; `python -m validation.broken_promises` takes ten thousand."""
    outcomes = break_promises(FEW, seed=1, steps=SHORT)
    assert [line for line in wrong(outcomes) if "pass without a reason" in line] == []
    caught = {kind for kind, outcome in outcomes.items() if outcome.caught == outcome.offered}
    assert len(caught) >= len({*BREAKS, *ALTERED} - set(LET_PASS)) - 3


def test_a_history_is_right_up_to_its_wrong_event() -> None:
    """One event is added to it, or changed."""
    trace = next(CASES[0].walks(1, SHORT, 3))
    for one in broken_histories(trace, random.Random(1)):
        at = len(one.trace.events) - 1
        same = [(e.node, e.event, e.fields) for e in trace.events[:at]]
        assert [(e.node, e.event, e.fields) for e in one.trace.events[:at]] == same


def test_a_record_that_was_truncated_is_known_to_be_gone() -> None:
    """What the command knows of a broker: it appends, is deposed, and leads again with another record there."""
    events = (
        *COPIED,
        change(2, 1, (1, 2)),
        follow(1, 2, 1, leo=1, hw=1),
        change(1, 2, (1, 2)),
        lead(1, 2, (1, 2), leo=1, hw=1),
    )
    kinds = {one.kind for one in broken_histories(Trace("t", "t-0", TWO, events), random.Random(0))}
    assert "ProduceAck: of a surviving record, by a re-elected leader" in kinds
    assert "ProduceAck: of a truncated record, by a re-elected leader" not in kinds


def test_a_judge_that_believes_every_acknowledgement_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the check of who says it."""
    monkeypatch.setattr(leader, "acknowledged_by_leader", lambda *_: None)
    monkeypatch.setattr(leader, "acknowledge", lambda *_: None)
    found = wrong(break_promises(FEW, seed=1, steps=SHORT))
    assert any(line.startswith("ProduceAck: by a broker that was deposed: ") for line in found)


def test_what_is_not_needed_and_what_has_no_place_is_said() -> None:
    """A reason that nothing needs, a kind without a reason, a kind without a place."""
    all_caught = {kind: Outcome(offered=2, caught=2) for kind in (*BREAKS, *ALTERED)}
    assert wrong(all_caught) == [f"{kind}: has a reason to pass, and none does" for kind in LET_PASS]
    some = dict.fromkeys(LET_PASS, Outcome(offered=2, caught=1))
    kind = next(iter(ALTERED))
    passing = Outcome(offered=2, caught=1, first=Trace("walk-0-7", "t-0", replace(TWO), ()))
    assert f"{kind}: 1 pass without a reason, first walk-0-7" in wrong({**all_caught, **some, kind: passing})
    del all_caught[kind]
    assert f"{kind}: no history has a place for it" in wrong({**all_caught, **some})


def test_the_command_ends_with_one_where_something_passes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And with 0 where all is as listed."""
    right = {kind: Outcome(offered=2, caught=1 if kind in LET_PASS else 2) for kind in (*BREAKS, *ALTERED)}
    monkeypatch.setattr(broken_promises, "break_promises", lambda *_: right)
    assert main(["2"]) == 0
    assert "all as listed" in capsys.readouterr().out
    right[next(iter(ALTERED))] = Outcome(offered=2)
    assert main(["2"]) == 1
    assert "DIFFERS" in capsys.readouterr().out
