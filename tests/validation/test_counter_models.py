"""Two logs that break a premise of convergence, as a trace: the judge rejects it, or nothing observable is wrong."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.spec.proofs.premises import EPOCH_MODE, FETCH_MODE, REMOVALS, common_end, modes_of, record_epoch
from tidegauge.traces.formats import ndjson
from validation.premises.__main__ import main as show
from validation.premises.counter_models import MENDED, NO_EPOCH, counter_model_trace

CASES = [(removal, mode) for removal in REMOVALS for mode in modes_of(removal)]

REJECTED_BY = {
    "two-pasts": "DATA-02",  # both high watermarks lie above a record that differs
    "records-match": "DATA-02",
    "leader-older": "CTRL-02",  # the controller named an older leader after a newer one
    "not-increasing": "EPOCH-02",
    "not-covering": "EPOCH-02",
    "kip-101": "EPOCH-05",  # the response's epoch is not the one of the end offset
}


@pytest.mark.parametrize(("removal", "mode"), CASES)
def test_the_judge_rejects_it_by_the_rule_of_the_premise(removal: str, mode: str) -> None:
    """Of several counter-models one may be harmless: then a later fetch mends it, or a record has no epoch to compare."""
    found = counter_model_trace(removal, mode)
    assert found.run.converged is False
    if found.broken:
        assert REJECTED_BY[removal] in found.broken
        assert REJECTED_BY[removal] in found.line()
    else:
        assert removal in ("records-match", "not-covering")
        assert found.accepted_because
        assert found.accepted_because in found.line()


@pytest.mark.parametrize("removal", sorted(REMOVALS.keys() - {"not-covering"}))
def test_a_removal_is_rejected_in_one_of_its_modes(removal: str) -> None:
    """Only caches that do not cover their logs may go unseen: records older than message format 2 have no epoch."""
    assert any(REJECTED_BY[removal] in counter_model_trace(removal, mode).broken for mode in modes_of(removal))


def test_an_accepted_trace_is_harmless() -> None:
    """MENDED means both logs ended the same; NO_EPOCH names a record that one cache says nothing about."""
    for removal, mode in CASES:
        found = counter_model_trace(removal, mode)
        if found.accepted_because == MENDED:
            leader, follower = found.judgement.final[0]
            assert leader.leo == follower.leo
        elif found.accepted_because:
            assert found.accepted_because in {NO_EPOCH.format(offset=o) for o in range(found.run.leader.log_end)}


def test_there_is_no_excuse_for_logs_that_differ() -> None:
    """A judge that overlooked the records would find no reason to accept them."""
    found = counter_model_trace("two-pasts", FETCH_MODE)
    assert found.broken
    overlooked = replace(found, judgement=replace(found.judgement, failures=()))
    offset = common_end(found.run.leader, found.run.follower)
    assert -1 not in (record_epoch(found.run.leader, offset), record_epoch(found.run.follower, offset))
    assert overlooked.accepted_because == ""


def test_the_trace_is_written_and_judged_again(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """`python -m validation.premises NAME --trace DIR` writes what `check` then rejects."""
    assert show(["kip-101", "--trace", str(tmp_path)]) == 0
    assert "the judge rejects the trace: EPOCH-05" in capsys.readouterr().out
    path = tmp_path / f"kip-101-{EPOCH_MODE}.ndjson"
    assert not ndjson.read(path).problems
    assert main(["check", "--quiet", str(path)]) == 1
    assert "EPOCH-05" in capsys.readouterr().out
