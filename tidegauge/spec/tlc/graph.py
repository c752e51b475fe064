"""The labelled state graph of a model: every state, and every transition with the action that made it.

TLC's own dumps name actions without their arguments, and are large. So the model is run with a next-state relation that
begins with PrintSource, and with ReportStep replaced (MCReplication.tla): each state prints its view when TLC takes it up,
then each step prints its label and the view it leads to. Printing a view costs TLC more than the step itself, and this way a
step prints one view and not two. It works with one worker only.

A label is (action name, ints...): a step of the spec with its arguments. A view is a state as nested tuples of ints, defined
by MCReplication!View; sets of brokers are bit masks in it. Transitions are a set: TLC tries a step once for each way a guard
can hold, so the number of times it prints one means nothing. A behaviour is a run: a sequence of views and of the labels
between.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from types import MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from tidegauge.spec.tlc.cfg import Cfg, named_brokers
from tidegauge.spec.tlc.models import Model, specification_of
from tidegauge.spec.tlc.output import ModelValue
from tidegauge.spec.tlc.tlc import ONLY_RUN, Limits, TlcOutcome, TlcResult, TlcStart, run_tlc
from tidegauge.util.errors import SpecError

View: TypeAlias = tuple[Any, ...]
Label: TypeAlias = tuple[Any, ...]


@dataclass
class LabelledGraph:
    """States and labels by number, transitions as (source, label, target) numbers; state 0 is the initial one."""

    states: list[View] = field(default_factory=list)
    labels: list[Label] = field(default_factory=list)
    transitions: set[tuple[int, int, int]] = field(default_factory=set)

    def edges(self) -> set[tuple[View, Label, View]]:
        """Return the transitions with their states and labels."""
        return {(self.states[source], self.labels[label], self.states[target]) for source, label, target in self.transitions}


def _tuple(value: Any) -> Any:
    """Return nested lists as nested tuples."""
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _parse(text: str) -> tuple[Any, ...]:
    """Parse a view or a label that TLC printed. Raises SpecError when it is no tuple."""
    try:
        # Tuples, ints and strings: but for the brackets, TLA+ prints them as JSON.
        parsed = _tuple(json.loads(text.replace("<<", "[").replace(">>", "]")))
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, tuple):
        raise SpecError(f"expected a tuple in TLC's report of a step, seen {text[:80]!r}")
    return parsed


class GraphReporter:
    """Builds the graph from the lines that PrintSource with PrintTarget print, or PrintStep (MCReplication.tla).

    PrintSource prints `"<<"from", view>>"`, and each PrintTarget after it `"<<"step", label, "to", view>>"`; PrintStep
    prints `"<<"step", label, "to", view, "from", view>>"`.
    """

    def __init__(self) -> None:
        """Begin with an empty graph."""
        self.graph = LabelledGraph()
        self._source: int | None = None
        self._states: dict[str, int] = {}
        self._labels: dict[str, int] = {}

    @staticmethod
    def _number(text: str, numbers: dict[str, int], values: list[tuple[Any, ...]]) -> int:
        """Return the number of a printed state or label; a new one is parsed and added to `numbers` and `values`.

        `numbers` has the numbers by the printed text, `values` the parsed values by number.
        """
        # Parsing is what takes time, and each state is printed once for every step that leads to it.
        number = numbers.get(text)
        if number is None:
            number = numbers[text] = len(values)
            values.append(_parse(text))
        return number

    def take(self, line: str) -> tuple[int, int, int] | None:
        """Add a printed line to the graph: a state, or a transition, which is returned as (source, label, target) too.

        None for a state: it is the source of the transitions in the lines after it. Raises SpecError for any other line.
        """
        # TLC prints a function on 1..0 as << >>, which is <<>>.
        text = line.strip('"').replace('\\"', '"').replace("<< >>", "<<>>")
        # Without the outer << and >>.
        kind, _, operands = text[2:-2].partition(", ")
        if kind == '"from"':
            self._source = self._number(operands, self._states, self.graph.states)
            return None
        if kind != '"step"':
            raise SpecError(f"expected a reported state or step, seen {line[:80]!r}")
        label, _, states = operands.partition(', "to", ')
        target, _, source = states.partition(', "from", ')
        # PrintStep prints the source with each step: a simulation takes up states without PrintSource.
        if source:
            self._source = self._number(source, self._states, self.graph.states)
        if self._source is None:
            raise SpecError(f"expected the state that a step starts from, seen none before {line[:80]!r}")
        step = (
            self._source,
            self._number(label, self._labels, self.graph.labels),
            self._number(target, self._states, self.graph.states),
        )
        self.graph.transitions.add(step)
        return step


class StepReporter(GraphReporter):
    """Keeps the transitions in the order they were tried, with repetitions, besides the graph."""

    def __init__(self) -> None:
        """Begin with an empty graph and no steps: (source, label, target) each, as numbers."""
        super().__init__()
        self.steps: list[tuple[int, int, int]] = []

    def take(self, line: str) -> tuple[int, int, int] | None:
        """Add a printed line: a state (returns None), or a transition, which is returned and kept in `steps` too."""
        step = super().take(line)
        if step is not None:
            self.steps.append(step)
        return step


def reporting(config: Cfg, printed: str = "PrintStep") -> Cfg:
    """Return a cfg that checks nothing and prints each step by the operator `printed` of MCReplication.tla."""
    return config.without_properties().with_substitutions(ReportStep=printed)


def labelled_graph(model: Model, *, start: TlcStart = ONLY_RUN, **constants: int) -> LabelledGraph:
    """Return the whole state graph of a model.

    `constants` are other bounds than in its cfg (MaxLog=1), `start` is that of one of several runs. Raises SpecError when
    TLC gives no verdict, or counted another number of states.
    """
    # The names of Init and Next of the model; the wrapper's Next prints each state that TLC takes up.
    init, following = specification_of(model)
    wrapper = f"---- MODULE Sources ----\nEXTENDS {model.module}\nSourcesNext == PrintSource \\/ {following}\n====\n"
    config = reporting(model.config(**constants), "PrintTarget")._replace(specification="", init=init, next="SourcesNext")
    reporter = GraphReporter()
    result = run_tlc(
        "Sources",
        config.text(),
        extra_modules={"Sources.tla": wrapper},
        on_line=reporter.take,
        **start.options(Limits(brief=True)),
    )
    if result.outcome is TlcOutcome.ERROR:
        raise SpecError(f"{model.cfg}: expected TLC to report its transitions, seen: {result.message}")
    graph = reporter.graph
    # TLC counts states by their fingerprint of all variables: another count means that the view merges or splits states.
    if len(graph.states) != result.distinct:
        raise SpecError(
            f"{model.cfg}: expected as many reported states as TLC found distinct ones, {result.distinct}, seen "
            f"{len(graph.states)}: the view of {model.module}.tla hides or invents a difference"
        )
    return graph


# ---------------------------------------------------------------------------------------------------------------------
# A counterexample or a simulated run of TLC as a sequence of labels and views, from which a trace can be made.
#
# Rules of this part
#
# 1. TLC names the actions of a counterexample without their arguments. So its states are walked once more with every step
#    reported (spec/tlc/graph.py), and the label is that of the step from one state to the next.
# 2. A simulation reports each step it tries. It tries one action at a time, in all its ways, and takes one of them: the
#    state from which it tries the next action shows which one.
# 3. A label or a state that was never reported would be a bug of ours and raises SpecError.


# The numbers of roles and messages in a view, as MCReplication!View gives them. A message is its number and these fields.
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
    """Return the view of a state that TLC printed in full, as MCReplication!View defines it: the two must agree.

    `state` is variable -> value, with the names and values of the specification. Brokers are the model values b1, b2, ... in
    that order; in a view they are 0, 1, ... The parts of a view are in the order of that operator; traces.from_model.views
    has names for them.
    """
    order = sorted(state["log"], key=lambda broker: int(broker.name.removeprefix("b")))

    def index(broker: ModelValue) -> int:
        """Return the number of a broker, -1 for none."""
        return -1 if broker == _NONE else order.index(broker)

    def mask(brokers: frozenset[ModelValue]) -> int:
        """Return a set of brokers as bits."""
        return sum(1 << index(broker) for broker in brokers)

    def slot(message: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return the message in flight between two brokers; () for none."""
        slot_parts = tuple(message[part] if isinstance(part, str) else part for part in _FIELDS[message["type"]])
        # As in MCReplication!View, a log start of 0, the last part, is left out: most models delete nothing.
        return slot_parts if message.get("logStart") != 0 else slot_parts[:-1]

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
    leader, epoch = index(controller["leader"]), controller["epoch"]
    registration: View = (leader, epoch, mask(controller["isr"]), mask(controller["live"]))
    if "elr" in state and "waiting" not in state:  # in models with clients the variables of ELR never change
        reborn = tuple(mask(state["reborn"][b]) for b in order)
        registration = (*registration, mask(state["elr"]), index(state["lastLeader"]), mask(state["clean"]), reborn)
    # Like a log start of 0: left out while nothing is deleted.
    deleted = (state["deleted"],) if state.get("deleted") else ()
    # Models with clients: the produced records that wait for an acknowledgement, by broker, and those acknowledged.
    clients: tuple[View, ...] = ()
    if "waiting" in state:
        waiting = tuple(tuple((produced["end"], produced["epoch"]) for produced in state["waiting"][b]) for b in order)
        acked = sorted((record["offset"], record["epoch"]) for record in state["acked"] if record["acks"] == "all")
        clients = (waiting, tuple(acked))
    return (brokers, registration, state["committed"], state["crashes"], *deleted, *clients)


def counterexample(model: Model, limits: Limits | None = None) -> Behaviour:
    """Run a model that fails and return its shortest failing run. Raises SpecError when it holds, or has no views."""
    # A run of a small model takes seconds: it is mostly start.
    limits = limits or Limits(brief=model.tier == "small")
    _groups(model)  # before TLC runs, perhaps for long: a model without views is refused
    return failing_behaviour(model, run_tlc(model.module, model.config().text(), limits=limits))


def failing_behaviour(model: Model, result: TlcResult) -> Behaviour:
    """Return the failing run of a result of TLC. Raises SpecError when the model holds, or has no views."""
    groups = _groups(model)
    if result.outcome is not TlcOutcome.SAFETY:
        seen = result.message or result.outcome.value
        raise SpecError(f"{model.cfg}: expected a safety failure to show, seen {seen}")
    states = tuple(view_of(step.state) for step in result.counterexample)
    # Without the first step, the initial state, which no action led to.
    actions = [step.action for step in result.counterexample[1:]]
    return Behaviour(result.property, states, tuple(_labels(model, groups, states, actions)), result.version)


def _groups(model: Model) -> tuple[str, ...]:
    """Return the actions of a model whose steps are reported under other names (SPECIFICATIONS).

    Raises SpecError for a model whose states have no view.
    """
    named = (model.module, model.config().specification or "none")
    if named not in SPECIFICATIONS:
        allowed = ", ".join(f"{specification} of {module}" for module, specification in SPECIFICATIONS)
        raise SpecError(
            f"{model.cfg}: expected SPECIFICATION {allowed}, whose states have a view, seen {named[1]} of {named[0]}; only "
            "those become traces"
        )
    return SPECIFICATIONS[named]


def _labels(model: Model, groups: tuple[str, ...], states: Sequence[View], actions: Sequence[str]) -> Iterator[Label]:
    """Yield the label of the step from each state of a run to the next one.

    `actions` are the steps' actions as TLC named them, without arguments. TLC runs once more to report the labels. `groups`
    are actions whose steps are reported under other names. Raises SpecError when no reported step fits.
    """
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
    edges = steps.graph.edges()
    for action, (source, target) in zip(actions, pairwise(states), strict=True):
        # The labels of reported steps between these states whose action is TLC's, or one of `groups`. TLC names an action
        # that it cannot split (Crash) by the relation it is in, some Next: then any action fits.
        candidates = sorted(
            label
            for edge_source, label, edge_target in edges
            if (edge_source, edge_target) == (source, target) and (action in {label[0], *groups} or action.endswith("Next"))
        )
        if not candidates:
            raise SpecError(f"{model.cfg}: expected a reported {action} from {source} to {target}, seen none")
        # Several labels may lead to one state: in alphabetical order a response is handled rather than lost.
        yield candidates[0]


def _tla(value: Any) -> str:
    """Return a view, nested tuples of ints, as a TLA+ expression."""
    return "<<" + ", ".join(map(_tla, value)) + ">>" if isinstance(value, tuple) else str(value)


def simulate(
    model: Model, count: int, *, steps: int, seed: int, brokers: int | None = None, **constants: int
) -> list[Behaviour]:
    """Return `count` random runs of at most `steps` steps, also beyond bounds that can be explored (MaxLog=12).

    `brokers` and `constants` replace the number of brokers and other bounds of the cfg. The same model, bounds and seed give
    the same runs with the same version of TLC. Raises SpecError when TLC does not simulate.
    """
    _groups(model)  # refuses a model without views
    # Each tried step is printed with its source (PrintStep): the model's own Next is simulated, without PrintSource.
    config = reporting(model.config(**constants))
    if brokers is not None:
        config = config.with_constants(Broker=named_brokers(brokers))
    steps_tried = StepReporter()
    # Two more: TLC counts the initial state, and which step was taken shows only in the source of the next one (_runs).
    flags = ("-simulate", f"num={count}", "-depth", str(steps + 2), "-seed", str(seed))
    result = run_tlc(model.module, config.text(), flags=flags, limits=Limits(brief=True), on_line=steps_tried.take)
    if result.outcome is not TlcOutcome.SUCCESS:
        raise SpecError(f"{model.cfg}: expected TLC to simulate, seen {result.outcome.value}: {result.message}")
    runs = list(_runs(steps_tried, steps, result))
    if len(runs) != count:
        raise SpecError(f"{model.cfg}: expected {count} simulated runs, seen {len(runs)}")
    return runs


def _runs(tried: StepReporter, max_steps: int, result: TlcResult) -> Iterator[Behaviour]:
    """Split the steps that a simulation tried into its runs, each of at most `max_steps` steps.

    TLC tries all steps from a state, then takes one of them: the state from which it tries the next steps shows which one.
    """

    def run() -> Behaviour:
        """Return the run collected so far: `path` has the numbers of its states, `label_numbers` those of the labels."""
        states, labels = tried.graph.states, tried.graph.labels
        # TLC may have taken a step more than were asked for (simulate).
        return Behaviour(
            "",  # no property fails
            tuple(states[s] for s in path[: max_steps + 1]),
            tuple(labels[n] for n in label_numbers[:max_steps]),
            result.version,
        )

    path: list[int] = []
    label_numbers: list[int] = []
    # Target -> label of the steps tried from the state before.
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
