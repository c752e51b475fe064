"""The labelled state graph of a model: every state, and every transition with the action that made it.

TLC's own dumps name actions without their arguments, and are large. So the model is run with a next-state relation that
begins with PrintSource, and with ReportStep replaced (MCReplication.tla): each state prints its view when TLC takes it up,
then each step prints its label and the view it leads to. Printing a view costs TLC more than the step itself, and this way a
step prints one view and not two. It works with one worker only.

A label is (action name, ints...). A view is nested tuples of ints, defined by MCReplication!View. Transitions are a set: TLC
tries a step once for each way a guard can hold, so the number of times it prints one means nothing.
"""

import json
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tidegauge.spec.tlc.cfg import Cfg
from tidegauge.spec.tlc.models import Model, specification_of
from tidegauge.spec.tlc.tlc import ONLY_RUN, Limits, TlcOutcome, TlcStart, run_tlc
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
    return tuple(map(_tuple, value)) if isinstance(value, list) else value


def _parse(text: str) -> tuple[Any, ...]:
    try:
        parsed = _tuple(json.loads(text.replace("<<", "[").replace(">>", "]")))
    except (ValueError, RecursionError):
        parsed = None
    if not isinstance(parsed, tuple):
        raise SpecError(f"expected a tuple in TLC's report of a step, seen {text[:80]!r}")
    return parsed


class GraphReporter:
    """Builds the graph from the lines that PrintSource with PrintTarget print, or PrintStep."""

    def __init__(self) -> None:
        self.graph = LabelledGraph()
        self._source: int | None = None
        self._states: dict[str, int] = {}
        self._labels: dict[str, int] = {}

    @staticmethod
    def _number(text: str, numbers: dict[str, int], values: list[tuple[Any, ...]]) -> int:
        # Parsing is what takes time, and each state is printed once for every step that leads to it.
        number = numbers.get(text)
        if number is None:
            number = numbers[text] = len(values)
            values.append(_parse(text))
        return number

    def take(self, line: str) -> tuple[int, int, int] | None:
        """Take one line: a state, or a transition, which is returned too."""
        # TLC prints a function on 1..0 as << >>, which is <<>>.
        text = line.strip('"').replace('\\"', '"').replace("<< >>", "<<>>")
        kind, _, rest = text[2:-2].partition(", ")
        if kind == '"from"':
            self._source = self._number(rest, self._states, self.graph.states)
            return None
        if kind != '"step"':
            raise SpecError(f"expected a reported state or step, seen {line[:80]!r}")
        label, _, states = rest.partition(', "to", ')
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
        super().__init__()
        self.steps: list[tuple[int, int, int]] = []

    def take(self, line: str) -> tuple[int, int, int] | None:
        """Take one line: a state, or a transition."""
        step = super().take(line)
        if step is not None:
            self.steps.append(step)
        return step


def reporting(config: Cfg, printed: str = "PrintStep") -> Cfg:
    """Return a cfg that checks nothing and prints each step by the operator `printed` of MCReplication.tla."""
    return config.without_properties().with_substitutions(ReportStep=printed)


def labelled_graph(model: Model, *, start: TlcStart = ONLY_RUN, **constants: int) -> LabelledGraph:
    """Return the whole graph of a model, under other bounds if given (MaxLog=1); `start` if it is one of several runs.

    Raises SpecError when TLC counted another number of states.
    """
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
