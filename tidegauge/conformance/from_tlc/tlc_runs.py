"""Runs that TLC found, as traces of schema v1 and as scenarios.

A model is a TLA+ module with a cfg; a run (Behaviour) is the states, labels and failing property that TLC found for it. A
cfg puts in an operator by a substitution, `Name <- Operator`: that is how a model chooses its profile.

Rules of this file

1. The config of a trace names where it came from: module, cfg, the property that failed, bounds and seed if there are any,
   and the version of TLC.
2. A scenario plays the labels of the run on the reference. Each step must lead to the state that TLC found: a scenario that
   is written is also a path on which spec and implementation agree.
3. A profile is a set of operators that a cfg puts in; the cfgs of the generations say which. What a cfg puts in beyond a
   profile removes a guard: such a run becomes a trace, judged by the profile with the guard, and no scenario.
4. A run ends where a property fails. Where a member of the ISR lacks committed records then, a scenario goes on to elect it:
   until then no broker has reported anything wrong.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from textwrap import wrap
from typing import Any, NamedTuple

from tidegauge.conformance.engine.judge import judge
from tidegauge.conformance.play.arguments import action_text
from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import Transcript, played_block, render
from tidegauge.conformance.play.session import Session
from tidegauge.impl.cluster.cluster import Label, record_epochs
from tidegauge.impl.explorer.describe import broker_name, label_text, view_text
from tidegauge.impl.explorer.invariants import is_prefix
from tidegauge.impl.explorer.spec_view import view
from tidegauge.spec.tlc.graph import Behaviour, counterexample, failing_behaviour, simulate, view_of
from tidegauge.spec.tlc.models import Model, PinComparison, find_model
from tidegauge.spec.tlc.output import TlcStep
from tidegauge.spec.tlc.tlc import Limits, run_tlc
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson, parquet
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.from_model.impl_walks import bounds_of, mixed_profile_of
from tidegauge.traces.from_model.isr_changes import trace_of_isr_changes
from tidegauge.traces.from_model.views import View
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import SpecError, TidegaugeError

DIRECTORY = Path(__file__).parent.parent / "scenarios" / "models"

GENERATIONS = {
    "fetch-truncation": "Small",
    "repaired": "RepairedFromInit",
    "hw-only": "HwOnly",
    "kip101": "Kip101",
    "kip279": "Kip279",
    "kip320": "Kip320",
    "elr": "Kip966",
    "safe": "Safe",
}
"""The profiles of `impl.profiles` that the spec has, with a model that puts each in."""

BESIDE = {"MCLogStartMovement": "MovingStart", "MCAcks": "AcksAll", "MCKeeping": "KeepingSmall"}
"""By module, the model that puts in log starts that move, clients, or another network, and nothing else; the reference has
each."""

READ_BY_PROPERTIES = frozenset({"IsPrefix <- IsPrefixWhereKept"})
"""What a cfg puts in for its properties alone: no step depends on it."""

SWITCHES: Mapping[frozenset[str], str] = {frozenset({"Matches <- MatchesOffset"}): "response_epoch_checked"}
"""What a cfg may put in beyond its profile that is a switch of it turned off."""

IN_THREAD: tuple[tuple[frozenset[str], frozenset[str]], ...] = (
    (
        frozenset({"StartsTruncating <- EveryFollowerTruncates", "TruncatesAlone <- NobodyAsks"}),
        frozenset({"TruncateOnBecomeFollower <- MakeFollowerTruncates"}),
    ),
    (frozenset({"StartsTruncating <- EveryFollowerTruncates"}), frozenset({"StartsTruncating <- AsksForEpochEnd"})),
    (frozenset({"StartsTruncating <- HasNoEpoch"}), frozenset()),
)
"""What a cfg puts in where the fetcher thread truncates in a step of its own, and what its profile has instead."""

CLAIM_WIDTH = 100
"""Characters of a line of the claim in a scenario."""


class Exported(NamedTuple):
    """The property that failed, after how many states, the files that were written, and the rules that the trace breaks.

    `events` is the number of events of the trace; `scenario` is None for a run that cannot be played (rule 3).
    """

    property: str
    states: int
    trace: Path
    scenario: Path | None
    events: int
    broken: tuple[str, ...]


class ExportError(TidegaugeError):
    """A run that cannot be exported: what was expected, what was seen."""


@dataclass(frozen=True)
class ModelSetting:
    """What a model's cfg puts in: a profile, a switch of it that is `off` ("" for none), and what is `beyond` these."""

    profile: str
    off: str
    beyond: frozenset[str]


def setting_of(model: Model) -> ModelSetting:
    """Return the setting of a model: the profile that explains most of its cfg's substitutions, and the others."""
    substitutions = _substitutions(model)
    # Brokers of several profiles: the model names them itself. Its cfgs share the substitutions of MixedTruncation.
    if model.module == "MCMixed":
        beyond = substitutions - _substitutions(find_model("MixedTruncation"))
        return ModelSetting(mixed_profile_of(model), off="", beyond=beyond)
    if model.module in BESIDE:
        # Log starts, clients and the network are features that every profile of the reference has: they choose none.
        substitutions -= _substitutions(find_model(BESIDE[model.module])) | READ_BY_PROPERTIES
    # That the fetcher thread truncates is no matter of the profile: compare what the cfg would put in otherwise.
    substitutions = next(
        (substitutions - in_thread | instead for in_thread, instead in IN_THREAD if in_thread <= substitutions),
        substitutions,
    )
    by_profile = {profile: _substitutions(find_model(name)) for profile, name in GENERATIONS.items()}
    candidates = [profile for profile, of_profile in by_profile.items() if of_profile <= substitutions]
    # A cfg of MCELR may also leave out one of the substitutions of its profile, which takes a guard away: then no profile,
    # or another one, would be found by them.
    if model.module == "MCELR":
        candidates = ["safe" if "ForgetsFollowers <- AlwaysForgets" in substitutions else "elr"]
    profile = max(candidates, key=lambda candidate: len(by_profile[candidate]))
    beyond = substitutions ^ by_profile[profile]  # put in besides the profile's, or left out of them
    off = SWITCHES.get(beyond, "")
    return ModelSetting(profile, off, frozenset() if off else beyond)


def _substitutions(model: Model) -> frozenset[str]:
    """Return what a model's cfg puts in, each as `Name <- Operator`."""
    return frozenset(f"{name} <- {operator}" for name, operator in model.config().substitutions.items())


def trace_of(run: Behaviour, model: Model, name: str, **how: Any) -> Trace:
    """Return the run as its nodes would have reported it; `how` it was found, such as a seed, goes into the config.

    Raises ExportError for a model that starts in another state than the initial one: no node reported how it got there.
    """
    setting = setting_of(model)
    start = next((substitution for substitution in setting.beyond if substitution.startswith("Init <- ")), None)
    if start is not None:
        raise ExportError(
            f"{model.cfg}: expected a model that begins with a new partition, seen {start}: no node reports how "
            "it got there; export a model that starts at the beginning"
        )
    min_isr = bounds_of(model).min_insync_replicas
    trace = trace_of_path(run.states, run.labels, name, setting.profile, f"TLC, {model.cfg}", min_isr=min_isr)
    return _from(model, trace, run.property, run.tlc, **how)


def _from(model: Model, trace: Trace, failed: str, tlc: str, **how: Any) -> Trace:
    """Return the trace with a config that names where it came from (rule 1).

    `failed` is the property that failed, "" for none; `tlc` the version of TLC; `how` what else there is to say.
    """
    spec = {"module": model.module, "cfg": model.cfg, **({"property": failed} if failed else {}), **how, "tlc": tlc}
    return replace(trace, config=replace(trace.config, extra={"spec": spec}))


def export(model: Model, directory: Path) -> Exported:
    """Write the run in which a model fails to `directory`: NAME.ndjson, and NAME.txt if it can be played.

    Raises SpecError when it does not fail, ExportError when its states are no trace.
    """
    scenario_text = ""
    # The states of this module have no view of the cluster: it is about ISR changes alone, and has a reporter of its own.
    if model.module == "MCAlterPartition":
        result = run_tlc(model.module, model.config().text(), limits=Limits(brief=True))
        failed, states = result.property, len(result.counterexample)
        if not result.counterexample:
            raise ExportError(f"{model.cfg}: expected a safety failure to show, seen {result.outcome.value}")
        reported = trace_of_isr_changes(result.counterexample, file_stem(model), f"TLC, {model.cfg}")
        trace = _from(model, reported, failed, result.version)
    else:
        run = counterexample(model)
        failed, states = run.property, len(run.states)
        trace = trace_of(run, model, file_stem(model))
        scenario_text = "" if setting_of(model).beyond else scenario_of(run, model)
    directory.mkdir(parents=True, exist_ok=True)
    trace_file, scenario_file = directory / f"{file_stem(model)}.ndjson", directory / f"{file_stem(model)}.txt"
    ndjson.write([trace], trace_file)
    # A run beyond a profile, or of ISR changes alone, has no scenario (rule 3).
    if scenario_text:
        scenario_file.write_text(scenario_text, encoding="utf-8")
    judgement = judge(to_columns([trace], trace.config), trace.config)
    broken = tuple(sorted({failure.rule for failure in judgement.failures}))
    return Exported(failed, states, trace_file, scenario_file if scenario_text else None, len(trace.events), broken)


def file_stem(model: Model) -> str:
    """Return the name of a model's files: reach-row-one for ReachRowOne."""
    return re.sub(r"(?<!^)(?=[A-Z])", "-", model.name).lower()


def simulated(
    model: Model, count: int, *, steps: int, seed: int, brokers: int | None = None, bounds: Mapping[str, int] | None = None
) -> list[Trace]:
    """Return `count` random runs of `steps` steps, simulated by TLC, as traces; `bounds` override those of the model."""
    runs = simulate(model, count, steps=steps, seed=seed, brokers=brokers, **(bounds or {}))
    how = {"seed": seed, **({"bounds": dict(bounds)} if bounds else {})}
    return [trace_of(run, model, f"{file_stem(model)}-{seed}-{number}", **how) for number, run in enumerate(runs)]


def write(traces: Sequence[Trace], path: Path) -> None:
    """Write traces to a file: as Parquet if it is called *.parquet, for which they must share a config, else as NDJSON."""
    if path.suffix == ".parquet" and traces:
        parquet.write(to_columns(traces, traces[0].config), traces[0].config, path)
    else:
        ndjson.write(traces, path)


# ---------------------------------------------------------------------------------------------------------------------
# Scenarios


def scenario_of(run: Behaviour, model: Model) -> str:
    """Return the text of a scenario with the steps of the run.

    Raises ExportError if the model is not one of a profile, or the reference cannot take the steps.
    """
    setting = setting_of(model)
    if setting.beyond:
        raise ExportError(
            f"{model.cfg}: expected the operators of a profile, seen {', '.join(sorted(setting.beyond))} besides those "
            f"of {setting.profile}: a run without a guard, or from another start, is exported as a trace only"
        )
    player = Player()
    # A state is a view, whose first part has an entry for each broker. A fetch of the specification takes one record.
    options = [f"brokers={len(run.states[0][0])}", f"profile={setting.profile}", "max_fetch=1", *_options(model)]
    blocks = [played_block(player, " ".join(["cluster", *options, *([f"{setting.off}=off"] if setting.off else [])]))]
    session = _session(player)
    _require_state(model, "at the start", run.states[0], session)
    for label, state in zip(run.labels, run.states[1:], strict=True):
        blocks.append(played_block(player, action_text(label)))
        _require_state(model, f"after {label_text(label)}", state, session)
    fails = f"# {run.property} of spec/models/{model.module}/{model.module}.tla fails here."
    blocks.append(replace(played_block(player, "show"), before=("", fails)))
    # TLC stops where the property fails; the loss shows to users, and to the judge, once such a replica leads (rule 4).
    lacking = _incomplete(session)
    if lacking is not None:
        comment = f"# {broker_name(lacking)} is in the ISR: elected, it leads without what was committed."
        elected = played_block(player, f"elect {broker_name(lacking)} told={broker_name(lacking)}")
        blocks.append(replace(elected, before=("", comment)))
    blocks += [played_block(player, "check"), played_block(player, "judge")]
    broken = blocks[-2].output != ("all invariants hold",)  # what `check` prints
    blocks[0] = replace(blocks[0], before=(*_header(model, run, broken), ""))
    return render(Transcript(tuple(blocks)))


def _options(model: Model) -> list[str]:
    """Return the options of the command `cluster` that the model's bounds ask for, where they are not its defaults."""
    bounds = bounds_of(model)
    clients = ["clients=on"] if bounds.max_waiting else []
    min_isr = [f"min_isr={bounds.min_insync_replicas}"] if bounds.min_insync_replicas != 1 else []
    thread = ["thread_truncates=on"] if bounds.thread_truncates else []
    return [*clients, *min_isr, *thread, *([f"last_resort={bounds.last_resort}"] if bounds.last_resort else [])]


def _session(player: Player) -> Session:
    """Return the session of a player. Raises ExportError if its `cluster` command was refused."""
    if player.session is None:
        raise ExportError("expected a cluster to play with, seen none")
    return player.session


def _require_state(model: Model, when: str, state: View, session: Session) -> None:
    """Raise ExportError unless the session is in TLC's `state`; the message says `when`."""
    seen = view(session.cluster)
    if seen != state:
        raise ExportError(
            f"{model.cfg}: {when}: expected the state TLC found:\n{view_text(state)}\nseen at the reference:\n"
            f"{view_text(seen)}\nspec and implementation differ: tidegauge model --compare {model.name}"
        )


def _incomplete(session: Session) -> int | None:
    """Return a member of the ISR that lacks a committed record, could be elected and does not lead; None if none."""
    cluster = session.cluster
    for b, broker in enumerate(cluster.brokers):
        # Committed records below `deleted` may be gone.
        holds = is_prefix(cluster.committed, record_epochs(broker), cluster.deleted)
        # Enabled while somebody leads, for live members of the ISR: that is what "could be elected" means.
        elect: Label = ("ElectPreferred", b)
        if not holds and not broker.leads and elect in session.enabled():
            return b
    return None


def _header(model: Model, run: Behaviour, broken: bool) -> Sequence[str]:
    """Return the header of a scenario: the claim of the model, the rule, the source. `broken`: an invariant fails."""
    outcome = "BROKEN" if broken else "HOLDS"
    return [
        *(f"# {line}" for line in wrap(model.config().claim, CLAIM_WIDTH, break_long_words=False, break_on_hyphens=False)),
        "#",
        f"# Rule under test: {run.property} fails, {len(run.states)} states. Expected: {outcome}.",
        f"# Source: spec/models/{model.cfg}; written by `tidegauge model {model.name} --export DIR`.",
    ]


# The run in which a model fails, step by step: `tidegauge model` shows it when the failure is not the pinned one.


def failing_run(comparison: PinComparison) -> Iterator[str]:
    """Yield the lines of the run that TLC shows in a comparison with a model's pinned outcome; none if it shows no run.

    They are the first state, then each step with the lines of the state that it changed.
    """
    result = comparison.result
    if not result.counterexample:
        return
    # TLC names actions without their arguments. Where the states have views, walking them again finds the arguments.
    try:
        run = failing_behaviour(comparison.model, result)
    except SpecError:
        texts = [_text(step) for step in result.counterexample]
        # A step without an action: TLC shows that a run stays as it is, or goes back to an earlier state.
        yield from _steps(texts, [step.action or "goes on as before" for step in result.counterexample[1:]])
    else:
        yield from _steps([view_text(state) for state in run.states], [label_text(label) for label in run.labels])
    yield f"{result.property or result.outcome.value} fails in the last state"


def _steps(states: Sequence[str], labels: Sequence[str]) -> Iterator[str]:
    """Yield the first state, then each label with the lines of the state that it changed; `states` are texts of lines."""
    yield from (f"      {line}" for line in states[0].splitlines())
    for number, (label, (before, after)) in enumerate(zip(labels, pairwise(states), strict=True), 1):
        yield f"{number:>4}  {label}"
        old_lines = set(before.splitlines())
        yield from (f"      {line}" for line in after.splitlines() if line not in old_lines)


def _text(step: TlcStep) -> str:
    """Format a state as a view, or variable by variable where it has none."""
    # Modules without a cluster, such as those of the truncation table, have variables and no view.
    try:
        return view_text(view_of(step.state))
    except (KeyError, TypeError, ValueError, AttributeError):
        return "\n".join(f"{name} = {value}" for name, value in step.state.items())
