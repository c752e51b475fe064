"""Compare spec and impl: the labelled graph that TLC finds and the one the explorer finds are the same set of transitions.

A graph has states and edges. A state is a view, nested tuples of ints, the same from both sides; an edge is (source, label,
target), its label the name of an action with its arguments. `spec` and `theirs` are of TLC, `impl` and `ours` of the
explorer.

Rules of this file

1. The whole bounded graph is compared, in both directions. A sample would say nothing about what it left out.
2. A difference is told where a reader can follow it: at the first state, in breadth-first order, from which the two sides
   do not take the same steps, with a shortest path to it.
3. Bounds are those of the model's cfg (traces.from_model.impl_walks).
4. Each module is explored by the system of impl that has its steps: impl.cluster.cluster, impl.explorer.isr_model for
   MCAlterPartition, impl.explorer.controller_model for MCController. The cfgs of that one say which switches of their
   profile are off.
5. A model that starts from a deep state is compared from there. MCSeeds says how a partition gets there from Init; the
   implementation goes the same way first.
"""

from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, TypeAlias

from tidegauge.conformance.from_tlc.tlc_runs import setting_of
from tidegauge.impl.cluster.cluster import Cluster, initial
from tidegauge.impl.cluster.transitions import bounded_model
from tidegauge.impl.explorer import controller_model, describe, isr_model
from tidegauge.impl.explorer.explore import Graph, Walker, as_profile, explore_from
from tidegauge.impl.profiles import ModelProfile, Profile, Rules
from tidegauge.impl.releases import profile_named
from tidegauge.spec.tlc.graph import LabelledGraph, labelled_graph, view_of
from tidegauge.spec.tlc.models import Model, OwnModel, find_model
from tidegauge.spec.tlc.tlc import ONLY_RUN, Limits, TlcStart, run_several, run_tlc
from tidegauge.traces.from_model.impl_walks import bounds_of, control_bounds_of, control_profile_of, isr_bounds_of
from tidegauge.util.errors import SpecError

View: TypeAlias = tuple[Any, ...]
Label: TypeAlias = tuple[Any, ...]
Edge: TypeAlias = tuple[View, Label, View]


@dataclass(frozen=True)
class Compared:
    """A model whose graph is compared, by name, and the profile by which the explorer explores it.

    `constants` are tighter bounds where the model's own are too wide. `seed` is the model of MCSeeds that leads to where
    this one starts, "" for one that starts in Init; `off` a switch of the profile that the model turns off, "" for none.
    """

    model: str
    profile: str
    constants: Mapping[str, int]
    seed: str = ""
    off: str = ""

    @property
    def switched(self) -> ModelProfile:
        """The profile with the switch `off` turned off; or one for each broker, where `profile` names several."""
        profile = as_profile(self.profile, self.profile.count(",") + 1)
        return profile.switched({self.off: False}) if self.off and isinstance(profile, Profile) else profile


COMPARED = (
    Compared("Small", "fetch-truncation", {}),
    Compared("Epochs", "fetch-truncation", {"MaxEpoch": 2}),
    Compared("HwOnly", "hw-only", {"MaxEpoch": 1, "MaxCrash": 1}),
    Compared("Kip101", "kip101", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1}),
    Compared("Kip279", "kip279", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1}),
    Compared("Kip320", "kip320", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1}),
    Compared("ThreadHwOnly", "hw-only", {"MaxEpoch": 1, "MaxCrash": 1}),
    Compared("ThreadKip320", "kip320", {"MaxEpoch": 1, "MaxCrash": 1}),
    Compared("ThreadSmall", "fetch-truncation", {"MaxLog": 1, "MaxEpoch": 1, "MaxCrash": 1}),
    Compared("LaggingHw", "fetch-truncation", {}, "SeedLaggingHw"),
    Compared("MissedEpochRepaired", "repaired", {}, "SeedMissedEpoch"),
    Compared("KeepingSmall", "fetch-truncation", {"MaxCrash": 0}),
    Compared("MovingStart", "fetch-truncation", {"MaxCrash": 0}),
    Compared("AcksAll", "fetch-truncation", {"MaxLog": 1, "MinIsr": 2}),
    Compared("Kip966", "elr", {"MaxEpoch": 1}),
    Compared("EqualEpoch", "fetch-truncation", {"MaxPartitionEpoch": 2}),
    Compared("SkipsEqual", "skips-equal", {"MaxPartitionEpoch": 2}),
    Compared("GhostElr", "elr", {"MaxPartitionEpoch": 2, "MaxStops": 0}),
    Compared("StaleIndex", "elr", {"MaxPartitionEpoch": 2}),
    Compared("NeverCompletes", "elr", {"MaxPartitionEpoch": 2, "MaxLog": 0}),
    Compared("FailedDirectoryLeads", "elr", {"MaxLog": 0}),
    Compared("RaisedTooLate", "elr", {"MaxPartitionEpoch": 2, "MaxStops": 0}),
    Compared("RepairedMinIsr", "elr", {"MaxPartitionEpoch": 3, "MaxLog": 0}),
)
"""What the main job compares, a few seconds each; those of ISR changes and those from deep states with three brokers.

The tighter bounds (`constants`) are for the main job only.
"""


def compared_of(model: Model) -> Compared:
    """Return how a model is compared as it stands: with the profile that its cfg puts in, from where it starts.

    Raises SpecError for one that the implementation has no switch for.
    """
    # A model of models.toml is called by its name, a user's by its file.
    name = model.cfg if isinstance(model, OwnModel) else model.name
    listed = next((compared for compared in COMPARED if compared.model == name), None)
    if listed is not None:
        return replace(listed, constants={})  # the model's own bounds: tighter ones are for the main job only
    if model.module == "MCController":
        # Its switches are the model's own (control_profile_of).
        return Compared(name, "elr", constants={})
    if model.module == "MCAlterPartition":
        # ReadsNewerImage is the repair of F3: metadata of an equal partition epoch is skipped, as the profile skips-equal
        # does.
        repaired = model.config().substitutions.get("ReadsImage") == "ReadsNewerImage"
        return Compared(name, "skips-equal" if repaired else "fetch-truncation", constants={})
    # Its profile; `off`, the switch of the profile that the cfg turns off; `beyond`, the substitutions (`Name <- Operator`)
    # of the cfg that the profile does not have. Of these only one of Init, another start, can be compared.
    setting = setting_of(model)
    starts = {substitution for substitution in setting.beyond if substitution.startswith("Init <- ")}
    if setting.beyond - starts:
        raise SpecError(
            f"{model.cfg}: expected what a profile of the implementation has, seen besides what {setting.profile} puts in "
            f"{', '.join(sorted(setting.beyond - starts))}: these steps are the specification's alone; compare another model"
        )
    # `Init <- LaggingHwInit` starts where the model SeedLaggingHw ends.
    seed = "".join(f"Seed{substitution.removeprefix('Init <- ').removesuffix('Init')}" for substitution in starts)
    return Compared(name, setting.profile, constants={}, seed=seed, off=setting.off)


@dataclass(frozen=True)
class Equality:
    """How the two graphs of a model compare; `divergence` describes the first difference, None if they are the same.

    `states` and `transitions` are the size of TLC's graph.
    """

    model: str
    profile: str
    states: int
    transitions: int
    divergence: str | None

    @property
    def says(self) -> str:
        """The size of the graph if both are the same, else the first difference."""
        return self.divergence or f"{self.states:,} states, {self.transitions:,} transitions"


class System(NamedTuple):
    """The part of impl that has the steps of a module.

    `start` makes its start state for a model and, if given, wrong rules; `explore` its graph from there. The others write
    a label and a view as text.
    """

    start: Callable[[Compared, Rules | None], Any]
    explore: Callable[[Any], Graph]
    label_text: Callable[[Label], str]
    view_text: Callable[[View], str]


def compare(compared: Compared, rules: Rules | None = None) -> Equality:
    """Compare TLC's graph of a model with the explorer's; `rules`, if given, are used instead of the implementation's."""
    return _equality(compared, _graph_of_tlc(compared), rules)


def compare_all(every: Sequence[Compared], on_done: Callable[[Equality], None]) -> tuple[Equality, ...]:
    """Compare the graphs of several models while TLC runs the next two; call `on_done` with each result, in their order."""
    done: list[Equality] = []
    with run_several(_graph_of_tlc, every) as graphs:
        for compared, theirs in zip(every, graphs, strict=True):
            done.append(_equality(compared, theirs))
            on_done(done[-1])
    return tuple(done)


def _graph_of_tlc(compared: Compared, start: TlcStart = ONLY_RUN) -> LabelledGraph:
    """Run TLC on a model; return its graph. `start` says how TLC is started beside others."""
    return labelled_graph(find_model(compared.model), start=start, **compared.constants)


def _equality(compared: Compared, theirs: LabelledGraph, rules: Rules | None = None) -> Equality:
    """Compare the graph of TLC (`theirs`) with the explorer's, which follows `rules` if they are given.

    Both number their states, state 0 the initial one; their edges have the numbers of states and labels.
    """
    system = system_of(find_model(compared.model))
    ours = system.explore(system.start(compared, rules))
    # Edges by their views, not by numbers: the two sides number their states in different orders.
    our_edges = {(ours.states[source], ours.labels[label], ours.states[target]) for source, label, target in ours.edges}
    their_edges = theirs.edges()
    divergence = None
    if theirs.states[0] != ours.states[0]:
        spec, impl = map(system.view_text, (theirs.states[0], ours.states[0]))
        divergence = f"the initial states differ\nspec:\n{spec}\nimpl:\n{impl}"
    elif our_edges != their_edges:
        divergence = first_divergence(theirs.states[0], their_edges, our_edges, system)
    return Equality(compared.model, compared.profile, len(theirs.states), len(their_edges), divergence)


def start_of(compared: Compared, rules: Rules | None = None) -> Cluster:
    """Return the state of impl.cluster that a model starts in: the initial one, or the deep one that its seed leads to."""
    bounds = bounds_of(find_model(compared.model), **compared.constants)
    start = initial(bounds, compared.switched, rules)
    if not compared.seed:
        return start
    # The run of a seed has other bounds, and says nothing of requests that were given up (`copies`): both are this model's.
    deep = _at_the_end_of(find_model(compared.seed))
    return deep._replace(model=bounded_model(bounds, compared.switched, rules), copies=start.copies)


def _at_the_end_of(seed: Model) -> Cluster:
    """Return the implementation's state after the run of a seed: the steps that TLC takes from Init to a deep state."""
    walker = Walker(bounds_of(seed))
    cluster = walker.start
    # The model fails, as it is meant to, in the deep state: the counterexample leads there.
    for step in run_tlc(seed.module, seed.config().text(), limits=Limits(brief=True)).counterexample[1:]:
        # The implementation may step elsewhere too; follow the step that leads to TLC's state.
        tlc_view = view_of(step.state)
        after = next((state for _, state in walker.successors(cluster) if walker.view(state) == tlc_view), None)
        if after is None:
            expected, seen = map(describe.view_text, (tlc_view, walker.view(cluster)))
            raise SpecError(f"{seed.cfg}: expected impl to step to\n{expected}\nseen no such step from\n{seen}")
        cluster = after
    return cluster


def isr_start_of(compared: Compared, rules: Rules | None = None) -> isr_model.IsrCluster:
    """Return the state of impl.explorer.isr_model that a model of MCAlterPartition starts in."""
    bounds = isr_bounds_of(find_model(compared.model), **compared.constants)
    return isr_model.initial_isr_cluster(bounds, profile_named(compared.profile), rules)


def control_start_of(compared: Compared, rules: Rules | None = None) -> controller_model.ControlCluster:
    """Return the state that a model of MCController starts in. Raises SpecError for other `rules`: it follows none."""
    if rules is not None:
        raise SpecError(f"{compared.model}: expected no other rules, seen some: impl.controller reads none of them")
    model = find_model(compared.model)
    return controller_model.initial_control_cluster(
        control_bounds_of(model, **compared.constants), control_profile_of(model)
    )


REPLICATION = System(start_of, explore_from, describe.label_text, describe.view_text)
ISR_CHANGES = System(isr_start_of, isr_model.explore_isr, describe.isr_label_text, describe.isr_view_text)


CONTROLLER = System(
    control_start_of, controller_model.explore_control, describe.control_label_text, describe.control_view_text
)
SYSTEMS = {"MCAlterPartition": ISR_CHANGES, "MCController": CONTROLLER}


def system_of(model: Model) -> System:
    """Return the part of impl whose graph is compared with a model's (rule 4)."""
    return SYSTEMS.get(model.module, REPLICATION)


def first_divergence(start: View, spec: set[Edge], impl: set[Edge], system: System = REPLICATION) -> str:
    """Describe the first state from which spec and impl do not take the same steps, and the way there from `start`.

    `spec` and `impl` are the edges of the two graphs.
    """
    their_steps, our_steps = _by_source(spec), _by_source(impl)
    path: dict[View, tuple[View, Label] | None] = {start: None}  # by state, the state and the label before it
    waiting = deque([start])
    while waiting:
        state = waiting.popleft()
        theirs, ours = their_steps[state], our_steps[state]
        # Breadth first over the steps that both take: the first difference is one of the nearest.
        if theirs != ours:
            return _divergence_text(system, state, path, theirs, ours)
        for label, target in sorted(theirs):
            if target not in path:
                path[target] = (state, label)
                waiting.append(target)
    raise ValueError("expected graphs that differ, seen two that agree wherever both can go")


def _by_source(edges: Iterable[Edge]) -> defaultdict[View, set[tuple[Label, View]]]:
    """Return by state the steps from it, as (label, target)."""
    steps: defaultdict[View, set[tuple[Label, View]]] = defaultdict(set)
    for source, label, target in edges:
        steps[source].add((label, target))
    return steps


def _divergence_text(
    system: System,
    state: View,
    path: Mapping[View, tuple[View, Label] | None],
    theirs: set[tuple[Label, View]],
    ours: set[tuple[Label, View]],
) -> str:
    """Describe the run to a state, and each label there whose targets differ on the two sides.

    `path` has for each state the state and the label before it, None for the start. `theirs` and `ours` are the steps from
    the state, as (label, target).
    """
    # The labels from the start to the state, found backwards.
    labels: list[Label] = []
    step_before = path[state]
    while step_before is not None:
        state_before, label = step_before
        labels.append(label)
        step_before = path[state_before]
    lines = [f"first divergence after {len(labels)} steps:"]
    lines += [f"  {number:>2}  {system.label_text(label)}" for number, label in enumerate(reversed(labels), 1)]
    lines += ["in this state:", system.view_text(state)]
    for label in sorted({label for label, _ in theirs ^ ours}):  # of the steps that only one side takes
        spec_targets = [target for step, target in theirs if step == label]
        impl_targets = [target for step, target in ours if step == label]
        lines.append(f"{system.label_text(label)}:")
        lines.append(f"  spec: {_outcome(system, spec_targets)}")
        lines.append(f"  impl: {_outcome(system, impl_targets)}")
    return "\n".join(lines)


def _outcome(system: System, targets: list[View]) -> str:
    """Describe what one side does with a label: the states that it leads to, or that it is not possible."""
    if not targets:
        return "not possible"
    return "\n   or:  ".join("\n        ".join(["leads to", *system.view_text(target).splitlines()]) for target in targets)
