"""Runs that TLC found, as traces and as scenarios."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.from_tlc.tlc_runs import (
    DIRECTORY,
    GENERATIONS,
    ExportError,
    export,
    file_stem,
    scenario_of,
    setting_of,
    simulated,
    trace_of,
    write,
)
from tidegauge.conformance.play.scenario import BROKEN, HOLDS, Played, read, run_scenario
from tidegauge.impl.profiles import PROFILES
from tidegauge.spec.tlc.graph import Behaviour, counterexample
from tidegauge.spec.tlc.models import Model, find_model, load_models
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.schema import Trace
from validation.controller_scenarios import scenario_path, shown

PLAYED = ("MCReplication", "MCLogStartMovement", "MCELR", "MCAcks")
UNCLEAN = ("ReachTruncationBelowStart", "ReachCommittedTruncation")
"""They take an unclean election: the first is no step of the reference, which has none without ELR; the second loses what
was committed, and the controller said that it might, so it neither conforms nor is anybody wrong."""

WITNESSES = [
    model
    for model in load_models()
    if model.module in PLAYED
    and (model.name.startswith("Reach") or model.name == "DeletedDiffers")
    and model.name not in UNCLEAN
]
LOSSES = [
    find_model(name)
    for name in ("HwOnly", "ThreadHwOnly", "Kip101", "Kip279", "ResponseEpochUnchecked", "MissedEpochFromInit")
]
"""The models whose runs are scenarios: every witness, and each loss of a committed record from the first state on."""


def failing(trace: Trace) -> set[str]:
    return {failure.rule for failure in judge(to_columns([trace], trace.config), trace.config).failures}


def path_of(model: Model) -> Path:
    return DIRECTORY / f"{file_stem(model)}.txt"


@pytest.fixture(scope="module")
def truncated() -> Behaviour:
    return counterexample(find_model("ReachTruncation"))


# ---------------------------------------------------------------------------------------------------------------------
# The scenarios that are shipped


def test_every_witness_and_every_loss_is_shipped() -> None:
    """A file for each, and no other."""
    of_controller = {scenario_path(model, DIRECTORY, repaired=repaired) for model, repaired in shown()}
    assert sorted(DIRECTORY.glob("*.txt")) == sorted({*map(path_of, [*WITNESSES, *LOSSES]), *of_controller})
    assert len(WITNESSES) > 20


@pytest.mark.parametrize("model", [*WITNESSES, *LOSSES], ids=lambda model: model.name)
def test_a_scenario_takes_as_many_steps_as_the_pinned_run(model: Model) -> None:
    """A command per step, what fails in the last state, and for a loss one election more where it takes one to show."""
    scenario = read(path_of(model))
    commands = [block.command for block in scenario.transcript.blocks]
    steps = commands[1 : commands.index("show")]
    assert model.length is not None
    assert len(steps) == model.length - 1
    assert f"Rule under test: {model.property} fails, {model.length} states." in path_of(model).read_text(encoding="utf-8")
    assert commands[len(steps) + 2 :][-2:] == ["check", "judge"]
    assert len(commands) - len(steps) - 4 == ("elect" in commands[-3])


@pytest.mark.parametrize("model", WITNESSES, ids=lambda model: model.name)
def test_a_witness_conforms(model: Model) -> None:
    """An interesting state is reached by right steps: no invariant fails and the judge accepts the run."""
    assert played(model).scenario.expected == HOLDS
    assert not failing(played(model).trace)


@pytest.mark.parametrize("model", LOSSES, ids=lambda model: model.name)
def test_a_loss_is_rejected(model: Model) -> None:
    """The record that is gone, or the step that will cost it."""
    one = played(model)
    assert one.scenario.expected == BROKEN
    assert failing(one.trace) & {"DATA-01", "DATA-02", "HW-08"}


def played(model: Model) -> Played:
    one = run_scenario(path_of(model))
    assert one.passed, one.diff
    return one


def test_the_erased_proposal_is_a_trace_that_loses_a_record() -> None:
    """F3, from a model of its own: the leader commits while its proposal is open; an election makes the loss visible."""
    (trace,) = ndjson.read(DIRECTORY / "equal-epoch.ndjson").traces
    assert trace.config.extra["spec"]["cfg"] == "MCAlterPartition/EqualEpoch.cfg"
    assert failing(trace) == {"DATA-01", "HW-02", "HW-03"}
    assert failing(replace(trace, events=trace.events[:-2])) == {"HW-02", "HW-03"}


# ---------------------------------------------------------------------------------------------------------------------
# How they are made


@pytest.mark.tlc
@pytest.mark.parametrize(
    "name",
    [
        "HwOnly",
        "ReachNoLeader",
        *(pytest.param(name, marks=pytest.mark.long) for name in ("ReachRowFive", "ReachLastKnown", "ReachLeaderStart")),
    ],
)
def test_the_command_writes_the_same_bytes_again(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is shipped is what TLC finds, and the trace beside it is of the same run, with where it came from."""
    model = find_model(name)
    assert main(["model", "--quiet", "--export", str(tmp_path), name]) == 0
    assert f"{name}: {model.property} fails after {model.length} states" in capsys.readouterr().out
    assert (tmp_path / path_of(model).name).read_bytes() == path_of(model).read_bytes()
    reading = ndjson.read(tmp_path / f"{file_stem(model)}.ndjson")
    assert not reading.problems
    spec = reading.traces[0].config.extra["spec"]
    assert (spec["module"], spec["cfg"], spec["property"]) == (model.module, model.cfg, model.property)
    assert spec["tlc"].startswith("TLC2 Version")
    events = (tmp_path / f"{file_stem(model)}.ndjson").read_text(encoding="utf-8").splitlines()[1:]
    again = list(ndjson.lines(played(model).trace))[1:]
    assert again[: len(events)] == events


@pytest.mark.tlc
def test_isr_changes_become_the_same_trace_again(tmp_path: Path) -> None:
    """F3 once more, its witnesses, which conform, and what happens without a guard, which is rejected."""
    assert main(["model", "--quiet", "--export", str(tmp_path), "EqualEpoch"]) == 0
    assert (tmp_path / "equal-epoch.ndjson").read_bytes() == (DIRECTORY / "equal-epoch.ndjson").read_bytes()
    assert export(find_model("ReachRefused"), tmp_path).broken == ()
    assert export(find_model("AnyIncarnation"), tmp_path).broken == ("DATA-01",)
    with pytest.raises(ExportError, match="expected a safety failure to show, seen success"):
        export(find_model("SkipsEqual"), tmp_path)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("name", "rule"),
    [
        ("NoDivergenceCheck", "FETCH-05"),
        pytest.param("NoMaximalIsr", "HW-02", marks=pytest.mark.long),
        pytest.param("NoHwClamp", "HW-05", marks=pytest.mark.long),
        pytest.param("AnybodyJoins", "ISR-01", marks=pytest.mark.long),
        ("PastHw", "HW-10"),
        pytest.param("ResetsToEnd", "OOR-01", marks=pytest.mark.long),
        pytest.param("NoMinIsr", "HW-03", marks=pytest.mark.long),
        pytest.param("StaysInIsr", "CTRL-04", marks=pytest.mark.long),
        ("FencedLastKnown", "CTRL-01"),
        ("UncleanStaysEligible", "CTRL-07"),
        pytest.param("NeverCleared", "CTRL-07", marks=pytest.mark.long),
        ("AckAtLogEnd", "ACK-01"),
        ("StillWaits", "DATA-03"),
    ],
)
def test_a_run_without_a_guard_is_a_trace_that_the_rule_of_that_guard_rejects(name: str, rule: str) -> None:
    """The spec without a guard, and the judge with it; such a run is no scenario, and says why."""
    model = find_model(name)
    run = counterexample(model)
    assert rule in failing(trace_of(run, model, name))
    with pytest.raises(ExportError, match="a run without a guard"):
        scenario_of(run, model)


@pytest.mark.tlc
def test_a_scenario_is_not_written_where_the_implementation_goes_another_way(truncated: Behaviour) -> None:
    """A state that differs in one number, and a step that cannot be taken, are told."""
    model = find_model("ReachTruncation")
    assert scenario_of(truncated, model) == path_of(model).read_text(encoding="utf-8")
    brokers, controller, committed, crashes = truncated.states[2]
    other = (*truncated.states[:2], (brokers, controller, committed, crashes + 1), *truncated.states[3:])
    with pytest.raises(ExportError, match=r"after .*: expected the state TLC found"):
        scenario_of(truncated._replace(states=other), model)
    with pytest.raises(ExportError, match="spec and implementation differ"):
        scenario_of(truncated._replace(labels=(("Restart", 0), *truncated.labels[1:])), model)


def test_a_start_that_no_node_tells_is_refused() -> None:
    """A deep state is where a model starts, not where a trace can."""
    model = find_model("MissedEpoch")
    with pytest.raises(ExportError, match="Init <- MissedEpochInit"):
        trace_of(Behaviour("", (), ()), model, "x")


def test_generations_are_told_by_what_their_cfgs_put_in() -> None:
    """Each profile of the spec is one of impl; a switch turned off is told apart from a guard taken away."""
    assert set(GENERATIONS) <= set(PROFILES)
    for profile, name in GENERATIONS.items():
        setting = setting_of(find_model(name))
        assert (setting.profile, setting.off, setting.beyond) == (profile, "", frozenset())
    assert setting_of(find_model("ResponseEpochUnchecked")).off == "response_epoch_checked"
    assert setting_of(find_model("NoMark")).beyond == {"MarkOfNewLeader <- NoMark"}


# ---------------------------------------------------------------------------------------------------------------------
# Simulated


@pytest.mark.tlc
@pytest.mark.parametrize("runs", [12, pytest.param(60, marks=pytest.mark.long)])
def test_simulated_runs_beyond_the_bounds_conform_once_repaired(runs: int, tmp_path: Path) -> None:
    """Three brokers, nine records, seven epochs: no rule fails; and their origin survives both ways of writing."""
    bounds = {"MaxLog": 9, "MaxEpoch": 7, "MaxCrash": 2}
    traces = simulated(find_model("RepairedFromInit"), runs, steps=60, seed=11, bounds=bounds)
    assert len({tuple(map(str, trace.events)) for trace in traces}) == runs
    assert set().union(*map(failing, traces)) == set()
    assert max(event.fields.get("leader_epoch") or 0 for trace in traces for event in trace.events) > 3
    origin = traces[0].config.extra["spec"]
    assert (origin["cfg"], origin["seed"], origin["bounds"]) == ("MCReplication/RepairedFromInit.cfg", 11, bounds)
    write(traces, tmp_path / "runs.ndjson")
    write(traces, tmp_path / "runs.parquet")
    assert [trace.config.extra["spec"] for trace in ndjson.read(tmp_path / "runs.ndjson").traces] == [origin] * runs
    with parquet.Reader(tmp_path / "runs.parquet") as reader:
        assert reader.config.extra["spec"] == origin


@pytest.mark.tlc
@pytest.mark.parametrize("runs", [20, pytest.param(150, marks=pytest.mark.long)])
def test_simulated_runs_of_kafka_as_it_is_conform_where_no_epoch_is_missed(runs: int) -> None:
    """None of these comes to finding F2; the walks that do must break HW-08 (tests/conformance/checking/test_judge.py)."""
    traces = simulated(find_model("Small"), runs, steps=60, seed=3, brokers=3, bounds={"MaxLog": 6, "MaxEpoch": 9})
    assert set().union(*map(failing, traces)) == set()


@pytest.mark.tlc
@pytest.mark.parametrize("runs", [12, pytest.param(60, marks=pytest.mark.long)])
def test_simulated_runs_with_log_starts_that_move_conform(runs: int) -> None:
    """Two brokers, eight records, five epochs, deletions anywhere: no rule fails, and followers do start again."""
    bounds = {"MaxLog": 8, "MaxEpoch": 5, "MaxStart": 8, "MaxCrash": 2}
    traces = simulated(find_model("MovingStart"), runs, steps=60, seed=5, bounds=bounds)
    assert set().union(*map(failing, traces)) == set()
    reported = {event.event for trace in traces for event in trace.events}
    assert {"LogStartMoved", "HandleOutOfRange"} <= reported


@pytest.mark.tlc
@pytest.mark.parametrize("name", ["Kip966", "LastKnownLoses"])
@pytest.mark.parametrize("runs", [12, pytest.param(60, marks=pytest.mark.long)])
def test_simulated_runs_with_elr_conform(name: str, runs: int) -> None:
    """Three brokers that lose the ends of their logs, four times a run; leaders from the ELR, and as a last resort."""
    bounds = {"MaxLog": 12, "MaxEpoch": 12, "MaxCrash": 4}
    traces = simulated(find_model(name), runs, steps=80, seed=3, brokers=3, bounds=bounds)
    assert {(trace.config.profile, trace.config.min_isr) for trace in traces} == {("elr", 2)}
    assert set().union(*map(failing, traces)) == set()
    elections = [event.fields for trace in traces for event in trace.events if event.event == "ChangePartition"]
    assert any(not fields["clean"] for fields in elections) == (name == "LastKnownLoses")
    assert any(fields["leader"] is None for fields in elections)


@pytest.mark.tlc
def test_generate_simulates(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same seed gives the same bytes, and what is written is judged like any other trace."""
    one, two = tmp_path / "one.ndjson", tmp_path / "two.ndjson"
    args = ["generate", "--quiet", "--simulate", "--traces", "5", "--steps", "20", "--seed", "4", "--bound", "MaxLog=5"]
    assert main([*args, "--out", str(one)]) == 0
    assert re.search(r"5 simulated runs, \d+ events, seed 4", capsys.readouterr().out)
    assert main([*args, "--out", str(two)]) == 0
    assert one.read_bytes() == two.read_bytes()
    assert main(["check", "--quiet", str(one)]) == 0


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["generate", "--out", "x", "--bound", "MaxLog=3"], "with --simulate"),
        (["generate", "--out", "x", "--simulate", "--fault", "hw-may-fall"], "without --fault"),
        (["generate", "--out", "x", "--simulate", "--release", "3.4.1"], "without --fault, --profile and --release"),
    ],
)
def test_options_that_do_not_go_together_are_refused(args: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Exit code 2 and what was expected."""
    assert main(args) == 2
    assert says in capsys.readouterr().err


def test_a_bound_is_a_name_and_a_number(capsys: pytest.CaptureFixture[str]) -> None:
    """argparse says what it saw."""
    with pytest.raises(SystemExit) as ended:
        main(["generate", "--out", "x", "--simulate", "--bound", "MaxLog"])
    assert ended.value.code == 2
    assert "MaxLog=12, seen 'MaxLog'" in capsys.readouterr().err
