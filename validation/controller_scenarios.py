"""`python -m validation.controller_scenarios`: runs of the controller's models, message by
message, written as scenarios; golden traces are made of the same runs.

Rules of this file

1. Each step of a run is one command or several, and must lead to the registration, the brokers and the logs that the model
   has: a scenario that is written is also a path on which the two agree.
2. Only the switches of the model's finding are on. The twin of a scenario is the same commands with all of them off, but for
   producers that are not answered any more.
3. A run that the judge accepts although an invariant fails is UNSEEN: no event of schema v1 shows what is wrong. Its opening
   gives the reason.
"""

import sys
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType

from tidegauge.conformance.from_tlc.tlc_runs import DIRECTORY, file_stem
from tidegauge.conformance.play.arguments import controller_action_text
from tidegauge.conformance.play.directives import Player
from tidegauge.conformance.play.scenario import Block, Transcript, played_block, render
from tidegauge.conformance.play.session import ControllerPlay
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explorer.controller_model import (
    ControlCluster,
    control_view,
    control_violation,
    initial_control_cluster,
    search_control,
)
from tidegauge.impl.explorer.describe import broker_name, control_label_text, control_view_text
from tidegauge.impl.explorer.search import Counterexample
from tidegauge.impl.rules import UNDEFINED
from tidegauge.spec.tlc.models import Model, load_models
from tidegauge.traces.from_model.impl_walks import CONTROLLER_SWITCHES, control_bounds_of, control_profile_of, switch_name
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import TidegaugeError

MOST_FETCHES = 4
"""Fetches after which a follower that has not caught up never will."""

UNSEEN: Mapping[str, str] = MappingProxyType(
    {
        "ForgottenElr": "nobody leads and nobody lost anything; that it stays so is no event",
        "StaleIndex": "the controller fails when the broker registers: that request has no event",
        "SwitchedOnLeaderless": "nobody leads and nobody lost anything; that it stays so is no event",
        "CompletesLate": "nothing is lost; a reassignment that stays under way is no event",
    }
)
"""The models whose runs break no rule of the judge, and why."""

PRODUCE_RESPONSE = "answer-produce "

ALL_AT_ONCE = frozenset({"KafkaElr"})

WIDTH = 110
WRITTEN_BY = "validation.controller_scenarios"


class ScenarioError(TidegaugeError):
    """A run that is not played as the model has it: what was expected, what was seen."""


def run_of(model: Model) -> Counterexample[ControlCluster]:
    """Return the shortest run in which the model's property fails; as long as the one that TLC finds, or ScenarioError."""
    start = initial_control_cluster(control_bounds_of(model), control_profile_of(model))
    found = search_control(start).first_violation(lambda state: control_violation(state, (model.property,)))
    if found is None or len(found.states) != model.length:
        seen = "none" if found is None else f"{len(found.states)} states"
        raise ScenarioError(f"{model.cfg}: expected {model.property} to fail after {model.length} states; seen {seen}")
    return found


def scenario_of(model: Model, *, repaired: bool = False) -> str:
    """Return the text of the scenario, or of its twin with the switches of the model off."""
    player, blocks = played(model, repaired=repaired)
    blocks += [played_block(player, command) for command in ("show", "check", "judge")]
    blocks[0] = replace(blocks[0], before=(*_header(model, blocks, repaired=repaired), ""))
    return render(Transcript(tuple(blocks)))


def trace_of(model: Model, *, repaired: bool = False) -> Trace:
    """Return the same as a trace: of the topic before its deletion, as every run of a model ends there."""
    player, _ = played(model, repaired=repaired)
    assert player.session is not None
    trace = player.session.traces(f"{file_stem(model)}-repaired" if repaired else file_stem(model))[0]
    extra = {**trace.config.extra, "spec": {"module": model.module, "cfg": model.cfg}}
    return replace(trace, config=replace(trace.config, extra=extra))


def played(model: Model, *, repaired: bool = False) -> tuple[Player, list[Block]]:
    """Play the run of a model, message by message; return the player at its end, and the transcript."""
    player = Player()
    # With a switch off the model takes another way: the twin gets the same commands, not the same states.
    if repaired:
        _, as_it_is = played(model)
        blocks = [played_block(player, _cluster(model, repaired=True))]
        blocks.extend(played_block(player, block.command) for block in as_it_is[1:] if _is_possible(player, block.command))
        return player, blocks
    found = run_of(model)
    blocks = [played_block(player, _cluster(model, repaired=False))]
    for label, state in zip(found.labels, found.states[1:], strict=True):
        blocks.extend(played_block(player, command) for command in _commands(player, label, state))
        _hold(model, label, state, cluster_of(player))
    if control_violation(cluster_of(player).controlled.control, (model.property,)) is None:
        raise ScenarioError(f"{model.cfg}: expected {model.property} to fail message by message, seen it hold")
    return player, blocks


def _is_possible(player: Player, command: str) -> bool:
    """Return whether a command can be run: a producer's response may differ in the twin."""
    return not command.startswith(PRODUCE_RESPONSE) or command in map(controller_action_text, cluster_of(player).enabled())


def cluster_of(player: Player) -> ControllerPlay:
    """Return the cluster that is played. Raises ScenarioError where it has another controller."""
    played_now = None if player.session is None else player.session.now
    if not isinstance(played_now, ControllerPlay):
        raise ScenarioError(f"expected a cluster under the whole controller, seen {played_now}")
    return played_now


def models() -> tuple[Model, ...]:
    """Return the models that must fail, and whose switches impl has."""
    failing = (model for model in load_models() if model.module == "MCController" and model.expect != "success")
    return tuple(model for model in failing if not model.config().substitutions)


def shown() -> Iterator[tuple[Model, bool]]:
    """Yield the models whose runs are scenarios and golden traces, as they are, and repaired (True) where that is possible.

    The model with all switches on has the run of another one.
    """
    for model in models():
        if model.name not in ALL_AT_ONCE:
            yield model, False
            if switches_of(model):
                yield model, True


def switches_of(model: Model) -> tuple[str, ...]:
    """Return the switches of a profile that the model has on."""
    profile = control_profile_of(model)
    return tuple(switch for switch in map(switch_name, CONTROLLER_SWITCHES) if getattr(profile, switch))


def _cluster(model: Model, *, repaired: bool) -> str:
    bounds = control_bounds_of(model)
    options = [f"brokers={bounds.brokers}", "control=on", "clients=on", "profile=elr-repaired", f"min_isr={bounds.min_isr}"]
    if len(bounds.replicas) != bounds.brokers:
        options.append("replicas=" + ",".join(map(broker_name, bounds.replicas)))
    options += [f"partition_zero={bounds.partition_zero}"] if bounds.partition_zero else []
    options += ["directories=2"] if bounds.disks_fail else []
    return " ".join(["cluster", *options, *([] if repaired else [f"{switch}=on" for switch in switches_of(model)])])


def _commands(player: Player, label: Label, state: ControlCluster) -> Iterator[str]:
    """Yield the commands that take the cluster to the next state of the model, each once the one before has run."""
    leader = cluster_of(player).cluster.controller.leader
    match label:
        case ("LeaderAppend",):
            yield f"write {broker_name(leader)}"
        case ("CatchUp", f):
            yield from _fetches(f, lambda: cluster_of(player).controlled.control.logs[f] == state.logs[f])
        case ("Acknowledge",):
            # Only a fetch that counts moves the high watermark.
            for f in cluster_of(player).cluster.controller.assignment:
                if f != leader:
                    how = "" if f in cluster_of(player).cluster.controller.isr else " lost=response join=no"
                    yield from _fetches(f, lambda: cluster_of(player).cluster.committed == state.committed, how)
            for end, _ in cluster_of(player).cluster.waiting[leader]:
                yield f"{PRODUCE_RESPONSE}{broker_name(leader)} {end} 0"
        case ("Expand", f):
            yield from _fetches(f, lambda: cluster_of(player).cluster.brokers[leader].partition.state.is_inflight)
            yield f"alter {broker_name(leader)}"
        case ("Shrink", f):
            yield f"shrink {broker_name(leader)} {broker_name(f)}"
            yield f"alter {broker_name(leader)}"
        case ("ReadConfig",):
            yield f"read-config {broker_name(leader)}"
        case ("SetMinIsr", _) if state.bounds.late_config:
            yield f"{controller_action_text(label)} told=nobody"
        case _:
            yield controller_action_text(label)


def _fetches(f: int, arrived: Callable[[], bool], how: str = "") -> Iterator[str]:
    """Yield fetches of one follower until `arrived`, MOST_FETCHES at most."""
    for _ in range(MOST_FETCHES):
        if arrived():
            return
        yield f"fetch {broker_name(f)}{how}"


def _hold(model: Model, label: Label, state: ControlCluster, played_cluster: ControllerPlay) -> None:
    """Raise ScenarioError unless the cluster is in the model's state."""
    seen, expected = played_cluster.controlled.control, state
    alike = seen._replace(committed=expected.committed, stops=expected.stops)
    if played_cluster.cluster.controller.leader == UNDEFINED:  # min.insync.replicas is the leader's to know
        alike = alike._replace(known_min_isr=expected.known_min_isr)
    if control_view(alike) != control_view(expected):
        raise ScenarioError(
            f"{model.cfg}: after {control_label_text(label)}: expected the state of the model:\n"
            f"{control_view_text(control_view(expected))}\n"
            f"seen message by message:\n{control_view_text(control_view(alike))}"
        )


def _header(model: Model, blocks: list[Block], *, repaired: bool) -> Iterator[str]:
    """Yield the header: the claim, the expected outcome, the source."""
    broken, rejected = blocks[-2].output != ("all invariants hold",), not blocks[-1].output[0].endswith("accepts this run")
    outcome = "HOLDS" if not broken else "BROKEN" if rejected else "UNSEEN"
    claim = model.config().claim
    yield from (f"# {line}" for line in textwrap.wrap(f"Repaired: {claim}" if repaired else claim, WIDTH))
    if outcome == "UNSEEN":
        yield from (f"# {line}" for line in textwrap.wrap(f"Why no rule is broken: {UNSEEN[model.name]}.", WIDTH))
    yield "#"
    yield f"# Rule under test: {model.property}. Expected: {outcome}."
    yield f"# Source: spec/models/{model.cfg}, docs/findings.md; written by `python -m {WRITTEN_BY}`."


def scenario_path(model: Model, directory: Path, *, repaired: bool) -> Path:
    """Return where the scenario of a model is kept."""
    return directory / f"{file_stem(model)}{'-repaired' if repaired else ''}.txt"


def main(directory: Path = DIRECTORY) -> int:
    """Write all scenarios of the controller's models."""
    chosen = list(shown())
    for model, repaired in chosen:
        path = scenario_path(model, directory, repaired=repaired)
        path.write_text(scenario_of(model, repaired=repaired), encoding="utf-8")
    print(f"{directory}: {len(chosen)} scenarios")
    return 0


if __name__ == "__main__":
    sys.exit(main())
