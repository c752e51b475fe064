"""A run that loses committed data without one premise, as a trace: the judge rejects it where the premise is missing."""

from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.judge.rulebook import rulebook
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.util.errors import SpecError
from validation.premises import committed_traces
from validation.premises.__main__ import main as show
from validation.premises.committed import COMMITTED_LOSSES, PlainCluster
from validation.premises.committed_traces import Reporter, committed_run

FIRST_BROKEN = {
    "elected-outside-isr": "CTRL-01",
    "commit-alone": "HW-03",
    "joiner-not-counted": "HW-03",
    "leaver-not-counted": "HW-03",
    "join-below-high-watermark": "ISR-01",
    "join-below-epoch-start": "ISR-01",
    "late-isr-change": "DATA-01",
    "old-incarnation": "DATA-01",
    "lost-tail-in-isr": "DATA-01",
    "leader-restarts-in-epoch": "ISR-01",
    "kept-log-ends": "HW-08",
    "old-request": "FENCE-01",
    "old-response": "FETCH-09",
    "delete-above-high-watermark": "HW-10",
}
"""The rule that the judge finds broken first."""

SEEN_LATER = {"late-isr-change", "old-incarnation", "lost-tail-in-isr", "leader-restarts-in-epoch"}
"""The step itself has no event that is wrong: the judge sees what comes of it."""

NOT_A_LEADER = {"delete-above-high-watermark"}
"""Nobody is elected in this run: a follower shows what nobody has committed."""


def test_every_run_has_its_rule() -> None:
    """No premise is left out, and none is said to be beyond the schema."""
    assert FIRST_BROKEN.keys() == COMMITTED_LOSSES.keys()


def test_the_page_has_every_run() -> None:
    """docs/proofs.md: premise, name, first rule, and whether the judge sees the step itself; and how long a run is."""
    page = (Path(__file__).parents[2] / "docs" / "proofs.md").read_text(encoding="utf-8")
    late = {name: ", later" if name in SEEN_LATER else "" for name in COMMITTED_LOSSES}
    rows = [f"| {loss.premise} | `{name}` | {FIRST_BROKEN[name]}{late[name]} |" for name, loss in COMMITTED_LOSSES.items()]
    assert "\n".join(rows) in page
    assert max(len(loss.steps) for loss in COMMITTED_LOSSES.values()) == 18
    assert "at most eighteen steps" in page


@pytest.mark.parametrize("name", COMMITTED_LOSSES)
def test_the_judge_rejects_the_run_where_the_premise_is_missing(name: str) -> None:
    """The first rule to fail is a MUST, at the events of the step or later; then an elected leader lacks data."""
    found = committed_run(name)
    assert found.cluster.lost()
    assert found.broken[0] == FIRST_BROKEN[name]
    assert rulebook()[found.broken[0]].level == "MUST"
    row, breach = found.failures[0].row, found.rows[found.loss.breach]
    assert row > breach if name in SEEN_LATER else row == breach
    assert ("DATA-01" in found.broken) is (name not in NOT_A_LEADER)


@pytest.mark.parametrize("name", COMMITTED_LOSSES)
def test_the_trace_conforms_up_to_there(name: str) -> None:
    """Cut off before the step that needs the premise, the trace breaks no rule."""
    found = committed_run(name)
    before = replace(found.trace, events=found.trace.events[: found.rows[found.loss.breach]])
    said = judge(to_columns([before], before.config), before.config)
    assert said.events == found.rows[found.loss.breach] > 4
    assert said.failures == ()


@pytest.mark.parametrize("name", COMMITTED_LOSSES)
def test_with_the_premise_kept_nothing_is_lost_and_the_judge_accepts(name: str) -> None:
    """The steps that remain possible are told by the same code."""
    kept = committed_run(name, keep_premise=True)
    assert not kept.cluster.lost()
    assert kept.broken == ()
    assert kept.verdict() == "the judge accepts the trace"
    assert len(kept.trace.events) > 4


@pytest.mark.parametrize("name", COMMITTED_LOSSES)
def test_the_command_tells_the_run_and_writes_what_check_rejects(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """`python -m validation.premises NAME --trace DIR`: each step in words, the loss, the word of the judge."""
    assert show([name, "--trace", str(tmp_path)]) == 0
    reported = capsys.readouterr().out
    assert COMMITTED_LOSSES[name].premise in reported
    assert reported.count("<- needs the premise") == 1
    assert f"{len(COMMITTED_LOSSES[name].steps):>2}  " in reported
    assert "lost: broker" in reported
    assert f"the judge rejects the trace: {FIRST_BROKEN[name]}" in reported
    path = tmp_path / f"{name}.ndjson"
    assert not ndjson.read(path).problems
    assert main(["check", "--quiet", str(path)]) == 1
    assert FIRST_BROKEN[name] in capsys.readouterr().out


def test_the_runs_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    """--list names every run and its premise."""
    assert show(["--list"]) == 0
    listed = capsys.readouterr().out
    assert all(f"\n{name:<24} without: {loss.premise}\n" in listed for name, loss in COMMITTED_LOSSES.items())


def test_a_run_that_does_not_exist_is_refused() -> None:
    """The error names those that do."""
    with pytest.raises(SpecError, match=r"expected one of elected-outside-isr.* seen gravity"):
        committed_run("gravity")


def test_what_brokers_would_not_do_is_not_told() -> None:
    """A truncation elsewhere than the rules have it, and a high watermark that rises in no event, are errors, no traces."""
    reporter = Reporter(PlainCluster())
    steps = COMMITTED_LOSSES["kept-log-ends"].steps
    truncated = next(number for number, step in enumerate(steps) if step[0] == "truncate")
    for step in (*steps[:2], steps[2], steps[2], ("fetch", 1, 2), *steps[5:truncated]):
        assert reporter.step(step) is not None
    with pytest.raises(SpecError, match="expected a truncation at 1; seen 0"):
        reporter.step(("truncate", 1, 1))
    alone = Reporter(PlainCluster(without=COMMITTED_LOSSES["commit-alone"].premise))
    for step in (("learn", 0, 0), ("append", 0), ("propose_shrink", 0, 2)):
        assert alone.step(step) is not None
    with pytest.raises(SpecError, match=rf"in one of {committed_traces.RAISES[0]}.* seen ShrinkIsr"):
        alone.step(("commit", 0))
