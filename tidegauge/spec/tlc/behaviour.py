"""A counterexample or a simulated run of TLC as a sequence of labels and views, from which a trace can be made.

Rules of this file

1. TLC names the actions of a counterexample without their arguments. So its states are walked once more with every step
   reported (spec/tlc/graph.py), and the label is that of the step from one state to the next.
2. A simulation reports each step it tries. It tries one action at a time, in all its ways, and takes one of them: the state
   from which it tries the next action shows which one.
3. A label or a state that was never reported would be a bug of ours and raises SpecError.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple

from tidegauge.spec.tlc.cfg import named_brokers
from tidegauge.spec.tlc.graph import Label, StepReporter, View, reporting
from tidegauge.spec.tlc.models import Model, specification_of
from tidegauge.spec.tlc.output import ModelValue
from tidegauge.spec.tlc.tlc import Limits, TlcOutcome, TlcResult, run_tlc
from tidegauge.util.errors import SpecError

_NONE = ModelValue("NoBroker")
_ROLES = {"none": 0, "leader": 1, "follower": 2, "truncating": 3}
_FIELDS = {
    "nothing": (),
    "request": (1, "epoch", "offset", "lastEpoch"),
    "data": (2, "epoch", "offset", "hw", "records", "logStart"),
    "diverging": (3, "epoch", "offset", "divEpoch", "divEnd"),
    "out of range": (4, "epoch", "offset", "leaderStart", "leaderEnd"),
    "epoch request": (5, "epoch", "lastEpoch"),
    "epoch end": (6, "epoch", "endEpoch", "endOffset"),
}


SPECIFICATIONS: Mapping[tuple[str, str], tuple[str, ...]] = MappingProxyType(
    {
        ("MCReplication", "MCSpec"): (),
        ("MCLogStartMovement", "MCMoveSpec"): (),
        ("MCAcks", "MCAcksSpec"): ("ClientStep", "Produce"),
        ("MCELR", "MCElrSpec"): (),
        ("MCELR", "MCLastKnownSpec"): (),
        ("MCELR", "MCAnybodySpec"): (),
    }
)
"""By module and SPECIFICATION, those whose states become traces: the actions whose steps are reported under other names."""


class Behaviour(NamedTuple):
    """A run: n states, n - 1 labels between them. `property` is what fails in the last state, "" if nothing was asked."""

    property: str
    states: tuple[View, ...]
    labels: tuple[Label, ...]
    tlc: str = ""
    """the version of TLC"""


def view_of(state: Mapping[str, Any]) -> View:
    """Return the view of a state that TLC printed in full. Brokers are b1, b2, ... in that order."""
    order = sorted(state["log"], key=lambda broker: int(broker.name.removeprefix("b")))

    def index(broker: ModelValue) -> int:
        return -1 if broker == _NONE else order.index(broker)

    def mask(brokers: frozenset[ModelValue]) -> int:
        return sum(1 << index(broker) for broker in brokers)

    def slot(message: Mapping[str, Any]) -> tuple[Any, ...]:
        reported = tuple(message[part] if isinstance(part, str) else part for part in _FIELDS[message["type"]])
        # As in MCReplication!View, a log start of 0 is left out: most models delete nothing.
        return reported if message.get("logStart") != 0 else reported[:-1]

    brokers = tuple(
        (
            *(state[name][b] for name in ("log", "hw", "mark")),
            int(state["up"][b]),
            _ROLES[state["role"][b]],
            state["epoch"][b],
            index(state["leader"][b]),
            mask(state["isr"][b]),
            mask(state["pending"][b]),
            tuple(state["remoteLeo"][b][r] for r in order),
            tuple(slot(state["net"][b][r]) for r in order),
        )
        for b in order
    )
    controller = state["controller"]
    reported: View = (index(controller["leader"]), controller["epoch"], mask(controller["isr"]), mask(controller["live"]))
    if "elr" in state and "waiting" not in state:  # in models with clients the variables of ELR never change
        reborn = tuple(mask(state["reborn"][b]) for b in order)
        reported = (*reported, mask(state["elr"]), index(state["lastLeader"]), mask(state["clean"]), reborn)
    deleted = (state["deleted"],) if state.get("deleted") else ()
    clients: tuple[View, ...] = ()
    if "waiting" in state:
        waiting = tuple(tuple((produced["end"], produced["epoch"]) for produced in state["waiting"][b]) for b in order)
        acked = sorted((record["offset"], record["epoch"]) for record in state["acked"] if record["acks"] == "all")
        clients = (waiting, tuple(acked))
    return (brokers, reported, state["committed"], state["crashes"], *deleted, *clients)


def counterexample(model: Model, limits: Limits | None = None) -> Behaviour:
    """Run a model that fails and return its shortest failing run. Raises SpecError when it holds, or has no views."""
    limits = limits or Limits(brief=model.tier == "small")
    _groups(model)
    return failing_behaviour(model, run_tlc(model.module, model.config().text(), limits=limits))


def failing_behaviour(model: Model, result: TlcResult) -> Behaviour:
    """Return the failing run of a result of TLC. Raises SpecError when the model holds, or has no views."""
    groups = _groups(model)
    if result.outcome is not TlcOutcome.SAFETY:
        seen = result.message or result.outcome.value
        raise SpecError(f"{model.cfg}: expected a safety failure to show, seen {seen}")
    states = tuple(view_of(step.state) for step in result.counterexample)
    actions = [step.action for step in result.counterexample[1:]]
    return Behaviour(result.property, states, tuple(_labels(model, groups, states, actions)), result.version)


def _groups(model: Model) -> tuple[str, ...]:
    """Return the actions of a model whose steps are reported under other names. Raises SpecError for one without views."""
    named = (model.module, model.config().specification or "none")
    if named not in SPECIFICATIONS:
        allowed = ", ".join(f"{specification} of {module}" for module, specification in SPECIFICATIONS)
        raise SpecError(
            f"{model.cfg}: expected SPECIFICATION {allowed}, whose states have a view, seen {named[1]} of {named[0]}; only "
            "those become traces"
        )
    return SPECIFICATIONS[named]


def _labels(model: Model, groups: tuple[str, ...], states: Sequence[View], actions: Sequence[str]) -> Iterator[Label]:
    """Yield the label of the step from each state to the next one."""
    init, following = specification_of(model)
    # The states of the run become a constant of a module: its next-state relation may only follow them, so TLC tries the
    # steps from each state of the run and from no other.
    path = ",\n  ".join(_tla(state) for state in states)
    along = (
        f"---- MODULE Along ----\nEXTENDS {model.module}\nVARIABLE along\nPath == <<\n  {path}\n>>\n"
        f"AlongInit == {init} /\\ along = 1\n"
        f"AlongNext == along < Len(Path) /\\ {following} /\\ View' = Path[along + 1] /\\ along' = along + 1\n====\n"
    )
    config = reporting(model.config())._replace(specification="", init="AlongInit", next="AlongNext")
    steps = StepReporter()
    run_tlc("Along", config.text(), extra_modules={"Along.tla": along}, limits=Limits(brief=True), on_line=steps.take)
    tried = steps.graph.edges()
    for action, (source, target) in zip(actions, pairwise(states), strict=True):
        # TLC names an action that it cannot split (Crash) by the relation it is in, some Next.
        candidates = sorted(
            label
            for seen, label, to in tried
            if (seen, to) == (source, target) and (action in {label[0], *groups} or action.endswith("Next"))
        )
        if not candidates:
            raise SpecError(f"{model.cfg}: expected a reported {action} from {source} to {target}, seen none")
        # Several labels may lead to one state: in alphabetical order a response is handled rather than lost.
        yield candidates[0]


def _tla(value: Any) -> str:
    return "<<" + ", ".join(map(_tla, value)) + ">>" if isinstance(value, tuple) else str(value)


def simulate(
    model: Model, count: int, *, steps: int, seed: int, brokers: int | None = None, **constants: int
) -> list[Behaviour]:
    """Return `count` random runs of at most `steps` steps, also beyond bounds that can be explored (MaxLog=12).

    The same model, bounds and seed give the same runs with the same version of TLC.
    """
    _groups(model)
    config = reporting(model.config(**constants))
    if brokers is not None:
        config = config.with_constants(Broker=named_brokers(brokers))
    steps_tried = StepReporter()
    # Two more: TLC counts the initial state, and the step taken shows only in the one after it.
    flags = ("-simulate", f"num={count}", "-depth", str(steps + 2), "-seed", str(seed))
    result = run_tlc(model.module, config.text(), flags=flags, limits=Limits(brief=True), on_line=steps_tried.take)
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SpecError(f"{model.cfg}: expected TLC to simulate, seen {result.outcome.value}: {result.message}")
    runs = list(_runs(steps_tried, steps, result))
    if len(runs) != count:
        raise SpecError(f"{model.cfg}: expected {count} simulated runs, seen {len(runs)}")
    return runs


def _runs(tried: StepReporter, most: int, result: TlcResult) -> Iterator[Behaviour]:
    """Split the steps of a simulation into runs of at most `most` steps."""

    def run() -> Behaviour:
        states, labels = tried.graph.states, tried.graph.labels
        return Behaviour(
            "", tuple(states[s] for s in path[: most + 1]), tuple(labels[n] for n in label_numbers[:most]), result.version
        )

    path: list[int] = []
    label_numbers: list[int] = []
    leads_to: dict[int, int] = {}
    for source, group in groupby(tried.steps, key=lambda step: step[0]):
        # No step leads back to the initial state, so a run begins where it is the source.
        if path and source == path[0]:
            yield run()
            path, label_numbers = [], []
        if path:
            if source not in leads_to:
                raise SpecError(f"expected a step of the simulation to lead to {tried.graph.states[source]}, seen none")
            label_numbers.append(leads_to[source])
        path.append(source)
        # Which of these the run took shows in the source of the next group; of the last group it is never known.
        leads_to = {target: label for _, label, target in group}
    if path:
        yield run()
