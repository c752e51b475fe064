"""What a run or a log has exercised of the model, and the shortest scenario of the model for what it has not.

A run drives a broker through cases and knows each step; a log is traces that were judged. A situation is an action with the
outcome of each of its comparisons (such as HandleFetch with the fetch offset above the log end); a guard is one comparison
with one outcome. A local step is a state of one broker and an input. A rule is a function of `impl.rules`; where it is a
table, its result names the row that applied. An unlogged step is one that no source of traces logs.

Borrowed: an Example is (number of local steps, shortest case that ends with one), and `nearer` makes one of two: the sum and
the shorter case. A Seen is (times, where first), and `add` adds such counts by key. An Edge of a graph has `to`, the number
of the state after it, and `takes`, the parts of its local step. StepEvents has `events`, those of the step itself and then
those of its consequences, and `logged`, how many are of the step itself, 0 if nobody logs it.

Rules of this file

1. Runs and logs are counted alike: a driven step becomes the events that a broker would log (drive/broker/as_events.py).
   Only a run knows which rules the reference applied, and takes steps that nobody logs; only a log has verdicts of rules.
2. The model is what one broker does in some graphs (`CoveredModel`) and, if there was a controller, driven or in the logs,
   what that does (drive/controller/coverage.py). A local step counts as exercised if something was in
   its situation: offsets of any size are held against a model of two records.
3. What an event does not report is not known, and exercises nothing. An event that may be several situations is counted in
   its action, and in those of its comparisons that are known.
"""

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any, NamedTuple, Self

from tidegauge.conformance.checking.check import Report
from tidegauge.conformance.checking.situations import (
    COMPARISONS,
    CONTROLLER_ACTIONS,
    Guard,
    Seen,
    Situation,
    add,
    situation_codes,
)
from tidegauge.conformance.judge.rulebook import actions, rulebook
from tidegauge.conformance.report.results import FAIL, NOT_EXERCISED, PASS, UNDECIDED, RuleCounts, RunResults
from tidegauge.conformance.report.timeline import Timelines
from tidegauge.drive.broker.applied_rules import Count, counting, with_callees
from tidegauge.drive.broker.as_events import StepEvents, events_of_step
from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import (
    SHOWN_BY_FIELDS,
    StepTaken,
    blamed,
    family_of,
    is_possible,
    read_by_consumer,
    step_text,
    take_step_unread,
)
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import action_of, step_json
from tidegauge.drive.contract import Path as Steps
from tidegauge.drive.contract import Step, frozen
from tidegauge.drive.controller.contract import ControllerCase
from tidegauge.drive.controller.coverage import Example, exercised_control, nearer, shipped_control, step_as_json
from tidegauge.drive.controller.steps import STEPS as REQUESTS
from tidegauge.drive.controller.steps import step_line
from tidegauge.drive.paths.cover import Edge, every_step
from tidegauge.drive.paths.graphs import GRAPHS
from tidegauge.drive.runner.differences import Difference
from tidegauge.drive.runner.run import DriveRun
from tidegauge.impl.profiles import KIP320, SAFE, Profile
from tidegauge.impl.releases import profile_named
from tidegauge.traces.columns import to_columns
from tidegauge.traces.problems import counted
from tidegauge.traces.schema import Config, Trace
from tidegauge.util.errors import CONFORMS, FAILS, TidegaugeError, UsageError
from tidegauge.util.files import replacing
from tidegauge.util.untrusted_text import visible
from tidegauge.util.version import PACKAGE_VERSION, SUITE_VERSION

# What one broker does in the graphs of the model, and the nearest case of each: situations, rows of rules, unlogged steps.
#
# situations.json has the models of two profiles; `python -m tidegauge.drive.coverage` makes it.


COVERED = ("two", "crash", "starts", "acks", "waits", "both", "stops", "isr")
"""The graphs of the model: those without fetch sessions, which change no situation."""
_FILE = "situations.json"


class CoveredModel(NamedTuple):
    """What one broker does in a model: situations, steps that nobody logs, and rows of rules ("rule: row").

    Each has as its Example the shortest case that ends with it, and how many local steps of the model are of that kind.
    """

    profile: str
    situations: dict[Situation, Example]
    unlogged: dict[str, Example]
    rows: dict[str, Example]

    def guards(self) -> dict[Guard, Example]:
        """Return every guard of the model's situations, each with the shortest case that shows it."""
        guards: dict[Guard, Example] = {}
        for situation, example in self.situations.items():
            for guard in situation.guards():
                guards[guard] = nearer(guards.get(guard), example)
        return guards


def model_of(profile: Profile) -> CoveredModel:
    """Return the model that runs and logs of a profile are held against."""
    # Two generations differ in what a broker does at all: one truncates by fetch responses, one asks where epochs end.
    return shipped_models()[(SAFE if profile.truncation_on_fetch else KIP320).name]


@cache
def shipped_models() -> Mapping[str, CoveredModel]:
    """Read the models that are shipped with the package (situations.json), by the name of their profile."""
    text = files("tidegauge.drive").joinpath(_FILE).read_text(encoding="utf-8")

    def read_example(local_steps: int, opening: Any, path: Any) -> Example:
        """Read the last three columns of a line, which `_as_lists` has written."""
        return Example(local_steps, BrokerCase(Opening(*frozen(opening)), frozen(path)))

    return {
        name: CoveredModel(
            name,
            {Situation(action, tuple(outcomes)): read_example(*rest) for action, outcomes, *rest in model["situations"]},
            {step: read_example(*rest) for step, *rest in model["unlogged"]},
            {row: read_example(*rest) for row, *rest in model["rows"]},
        )
        for name, model in json.loads(text).items()
    }


# ---------------------------------------------------------------------------------------------------------------------
# The model


def explored(profile: Profile, graphs: Iterable[str] = COVERED) -> CoveredModel:
    """Compute the model of a profile from the graphs of these names."""
    model = CoveredModel(profile.name, {}, {}, {})
    # The same local step in another graph, or behind other requests, is counted once.
    counted_steps: set[Any] = set()
    for graph in graphs:
        local_steps = _steps_of_graph(graph, profile, counted_steps)
        all_situations = situations_of([local_step.events for local_step in local_steps])
        for (case, events, rows), situations in zip(local_steps, all_situations, strict=True):
            for row in rows:
                model.rows[row] = nearer(model.rows.get(row), Example(1, case))
            for position, situation in enumerate(situations):
                # The consequences of a step are situations, too; but the local step counts only for that of its action,
                # which comes first where it is logged.
                example = Example(int(position == 0 and events.logged > 0), case)
                model.situations[situation] = nearer(model.situations.get(situation), example)
            if not events.logged:
                step_name = case.path[-1][0]
                model.unlogged[step_name] = nearer(model.unlogged.get(step_name), Example(1, case))
    return model


class _LocalStep(NamedTuple):
    """A local step: the shortest case that ends with it, its events, the rows of rules that it applied ("rule: row")."""

    case: BrokerCase
    events: StepEvents
    rows: Sequence[str]


def _steps_of_graph(graph: str, profile: Profile, counted_steps: set[Any]) -> list[_LocalStep]:
    """Return the local steps of a graph whose keys are not in `counted_steps`, and add their keys to that set."""
    count: Count = Counter()
    # By number of a state, the state and the step that first led to it.
    parents: dict[int, tuple[int, Step]] = {}
    # Of each new local step: the state before it, the step, its events, the rows of rules that it applied.
    steps: list[tuple[int, Step, StepEvents, list[str]]] = []

    def watch(source: int, edge: Edge, state: ReferenceBroker, step: Step, outcome: StepTaken) -> None:
        """Note the first path to each state, and one example of each local step with the rules that it applied.

        `every_step` calls this for each step of the graph, breadth first; `source` is the number of the state before it.
        """
        # The first step that leads to a state is on a shortest path to it. State 0 is the start and has no parent.
        if edge.to:
            parents.setdefault(edge.to, (source, step))
        # Without the last part of a local step: what waits and what fetch sessions remember changes no situation. With the
        # opening: graphs differ in their peers and in min.insync.replicas.
        key = state.opening, edge.takes[:3]
        if key not in counted_steps:
            counted_steps.add(key)
            steps.append((source, step, events_of_step(state, step, outcome), rows_of(count)))
        # The next call must find the rules of its own step only.
        count.clear()

    opening = every_step(GRAPHS[graph].inputs(profile), profile, watch, counting(count))
    return [
        _LocalStep(BrokerCase(opening, (*_shortest_path(parents, source), step)), events, rows)
        for source, step, events, rows in steps
    ]


def _shortest_path(parents: Mapping[int, tuple[int, Step]], state: int) -> Steps:
    """Return the steps of a shortest path from the start to a state.

    `parents`: by the number of a state, the number of the one before it on that path, and the step between.
    """
    steps = []
    while state in parents:
        state, step = parents[state]
        steps.append(step)
    return tuple(reversed(steps))


def rows_of(count: Count) -> list[str]:
    """Return the rows that were applied as texts, "rule: row"; "rule" alone for a rule that is no table."""
    return [": ".join(filter(None, rule_and_row)) for rule_and_row in count]


_CONFIG = Config(tuple(range(BROKER, BROKER + 4)))
"""A trace needs the ids of its replicas: the driven broker and up to three peers."""


def situations_of(steps: Sequence[StepEvents]) -> list[list[Situation]]:
    """Return for each step the situations of its events, in their order; all are computed at once, as columns."""
    events = tuple(event for step in steps for event in step.events)
    # All events as one trace, which needs no name.
    distinct, index_of_row = situation_codes(to_columns([Trace("", "", _CONFIG, events)], _CONFIG, counted=True))
    # A row per event, in order: each step takes as many as it has events.
    following = iter(index_of_row.tolist())
    return [[distinct[next(following)] for _ in step.events] for step in steps]


def write_models(models: Iterable[CoveredModel], place: Path) -> None:
    """Write models to a JSON file with one line per example, so that a diff shows what changes with a rule."""
    parts = []
    for model in models:
        lists = ",\n".join(
            f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
            for name, rows in _as_lists(model).items()
        )
        parts.append(f'"{model.profile}":{{{lists}}}')
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _as_lists(model: CoveredModel) -> dict[str, Any]:
    """Return a model as lists, one per example: what it is an example of, the number of local steps, opening, path."""
    # case[:2]: the opening and the path, without the name of the case.
    return {
        "situations": [[*situation, count, *case[:2]] for situation, (count, case) in sorted(model.situations.items())],
        "unlogged": [[step, count, *case[:2]] for step, (count, case) in sorted(model.unlogged.items())],
        "rows": [[row, count, *case[:2]] for row, (count, case) in sorted(model.rows.items())],
    }


FORMAT_VERSION = 1
SCENARIOS_SHOWN, ITEMS_SHOWN = 3, 12
"""How much of what was not exercised a text lists: so much step by step, so much in all. The JSON and the page have all."""


# ---------------------------------------------------------------------------------------------------------------------
# What was exercised


@dataclass
class Exercised:
    """What runs and logs have exercised: how often, and where first.

    `model` is the name of the profile whose model they are held against, `sources` the names of the runs and logs. By
    name of the step: `unlogged`. By "rule: row": `rows`, the rules of the reference. By id: `rules`, those of the judge.
    `driven`: a run is among the sources; `judged`: a log is.
    """

    model: str
    sources: list[str] = field(default_factory=list)
    situations: dict[Situation, Seen] = field(default_factory=dict)
    unlogged: dict[str, Seen] = field(default_factory=dict)
    rows: dict[str, Seen] = field(default_factory=dict)
    rules: dict[str, Seen] = field(default_factory=dict)
    driven: bool = False
    judged: bool = False

    def add(self, other: Self) -> None:
        """Add what other sources have exercised to this. Raises UsageError if they are held against another model."""
        if other.model != self.model:
            raise UsageError(
                f"coverage: expected runs that are held against the model {self.model}, seen one against {other.model}; sum "
                "up those of each by themselves"
            )
        self.sources += other.sources
        add(self.situations, other.situations)
        add(self.unlogged, other.unlogged)
        add(self.rows, other.rows)
        add(self.rules, other.rules)
        self.driven, self.judged = self.driven or other.driven, self.judged or other.judged


MOST_REMEMBERED = 20_000
"""About how many steps are kept before their situations are computed, all at once, and added."""


@dataclass
class _PlayedStep:
    """A step after certain other steps, which all cases that begin alike share.

    `place` names the first such case and the step; `state` is the broker after it; `rows`: how often it applied each row
    of a rule; `times`: how many cases have taken it.
    """

    place: str
    step: str
    state: ReferenceBroker
    events: StepEvents
    rows: Mapping[str, int]
    times: int = 0


def exercised_by_run(
    source: str, cases: Sequence[BrokerCase], ended: Mapping[BrokerCase, int], profile: Profile
) -> Exercised:
    """Return what a run has exercised, by taking the reference through the same cases.

    `ended`: by case that differed, the number of the step (from 1) after which it did. That step and those after it are
    not counted: the broker did something else than the reference. `source` is the name of the run.
    """
    exercised, count = Exercised(model_of(profile).profile, [source], driven=True), Counter[tuple[str, str]]()
    played: dict[tuple[Any, ...], _PlayedStep] = {}
    for number, case in enumerate(cases, start=1):
        state = opened(case.opening, profile, counting(count))
        # A nested pair of the steps before and the last one: it names the beginning that cases share.
        key: tuple[Any, ...] = (case.opening,)
        # Of a case that differed the steps before the one that did; of any other all.
        for at, step in enumerate(case.path[: ended.get(case, len(case.path) + 1) - 1], start=1):
            key = (key, step)
            if key not in played:
                count.clear()
                # Where Kafka's code throws, the contract expects nothing.
                try:
                    outcome = take_step_unread(state, step) if is_possible(state, step) else None
                except TidegaugeError:
                    outcome = None
                if outcome is None:
                    break
                place = f"{case.name or f'path {number:,}'}, step {at}"
                rows = dict(zip(rows_of(count), count.values(), strict=True))
                after = read_by_consumer(outcome.state)
                played[key] = _PlayedStep(place, step[0], after, events_of_step(state, step, outcome), rows)
            state = played[key].state
            played[key].times += 1
        if len(played) > MOST_REMEMBERED:
            _add_played(exercised, played.values())
            played = {}
    _add_played(exercised, played.values())
    return exercised


def _add_played(exercised: Exercised, played: Collection[_PlayedStep]) -> None:
    """Add the situations, unlogged steps and rows of rules of played steps to `exercised`."""
    for step, situations in zip(played, situations_of([step.events for step in played]), strict=True):
        seen = Seen(step.times, step.place)
        for situation in situations:
            add(exercised.situations, {situation: seen})
        if not step.events.logged:
            add(exercised.unlogged, {step.step: seen})
        add(exercised.rows, {row: Seen(times * step.times, step.place) for row, times in step.rows.items()})


def exercised_by_controller(
    source: str, cases: Sequence[ControllerCase], ended: Mapping[ControllerCase, int], profile: Profile
) -> Exercised:
    """Return what a run has exercised of a controller; `source` and `ended` are as in `exercised_by_run`.

    `ended`: by case that differed, the number of the step (from 1) after which it did; from there on nothing counts.
    """
    situations, responses = exercised_control(cases, ended, profile)
    # The requests with their responses are what `unlogged` has of a controller.
    return Exercised(model_of(profile).profile, [source], situations, unlogged=responses, driven=True)


def exercised_by_check(source: str, report: Report) -> Exercised:
    """Return what the judged traces of a report have exercised, of the model of the first profile they were judged by."""
    profiles = (name for checked in report.inputs for name in sorted(checked.profiles))
    # Without any input it is the model of SAFE.
    exercised = Exercised(model_of(profile_named(next(profiles, SAFE.name))).profile, [source], judged=True)
    for checked in report.inputs:
        add(exercised.situations, checked.situations)
    # A rule is exercised where it was decided, one way or the other. The report does not say where first.
    decisions = {rule.rule.id: rule.tally.held + rule.tally.failed for rule in report.rules}
    exercised.rules = {rule: Seen(times, "") for rule, times in decisions.items() if times}
    return exercised


# ---------------------------------------------------------------------------------------------------------------------
# Coverage


class Untouched(NamedTuple):
    """Something of the model that nothing has exercised.

    `action` is the action, or "steps" or "rule"; `says` is the guard in words, the unlogged step or the row of a rule, ""
    where nothing of the action was exercised. `example`: the shortest case, and how many local steps of the model there
    are. `missing`: fields that no event of the action reports, so that a log could not show it.
    """

    action: str
    says: str
    example: Example
    missing: tuple[str, ...] = ()


class Share(NamedTuple):
    """How many there are of something, how many of them were exercised."""

    exercised: int
    total: int

    def __str__(self) -> str:
        return f"{self.exercised:,} of {self.total:,}"


class ActionShare(NamedTuple):
    """An exercised action: how often, and where first; its exercised guards with the same; its share of the model's."""

    action: str
    seen: Seen
    guards: Mapping[Guard, Seen]
    share: Share

    @property
    def beyond(self) -> int:
        """How many of the exercised guards no step of the model has; requests that are refused show such ones."""
        return len(self.guards) - self.share.exercised


@dataclass(frozen=True)
class Coverage:
    """What was exercised of a model, and what was not, that with the shortest case first.

    `shares`: by what is counted ("actions", "guards", ...), in the order in which a text lists them.
    """

    exercised: Exercised
    shares: Mapping[str, Share]
    actions: tuple[ActionShare, ...]
    untouched: tuple[Untouched, ...]

    @property
    def undecided_rules(self) -> list[str]:
        """The rules of the judge that no trace has decided, where traces were judged."""
        return [name for name in rulebook() if name not in self.exercised.rules] if self.exercised.judged else []


def coverage_of(exercised: Exercised) -> Coverage:
    """Compare what was exercised with the model: how much of each kind, and what of it was not exercised."""
    model = _model_for(exercised)
    model_guards = model.guards()
    model_actions: dict[str, Example] = {}
    for situation, example in model.situations.items():
        model_actions[situation.action] = nearer(model_actions.get(situation.action), example)
    # The same by guard and by action of what was exercised, with how often and where first.
    seen_guards: dict[Guard, Seen] = {}
    seen_actions: dict[str, Seen] = {}
    for situation, seen in exercised.situations.items():
        add(seen_actions, {situation.action: seen})
        add(seen_guards, dict.fromkeys(situation.guards(), seen))
    shares = {
        "actions": Share(len(seen_actions.keys() & model_actions.keys()), len(model_actions)),
        "guards": Share(len(seen_guards.keys() & model_guards.keys()), len(model_guards)),
        "local steps": _local_steps(exercised, model),
    }
    if exercised.judged:
        shares = {"rules of the judge": Share(len(exercised.rules), len(rulebook())), **shares}
    untouched = [Untouched(action, "", example) for action, example in model_actions.items() if action not in seen_actions]
    # An action that was not exercised stands in the list already: its guards are not listed besides.
    unseen_guards = {
        guard: example
        for guard, example in model_guards.items()
        if guard.action in seen_actions and guard not in seen_guards
    }
    untouched += _untouched_guards(unseen_guards, seen_guards, in_log=exercised.judged)
    untouched += [
        Untouched("steps", step, example) for step, example in model.unlogged.items() if step not in exercised.unlogged
    ]
    # Only a run of a broker can exercise rows (`_model_for`). A row is "rule: row", or the name of a rule that is no table.
    if model.rows:
        rules = {row.partition(":")[0] for row in model.rows}
        # The rules that were applied, and those that they call.
        applied = with_callees({row.partition(":")[0] for row in exercised.rows})
        # A rule that is no table and that another calls was applied without being counted.
        rows = exercised.rows.keys() | applied
        shares["rules of the reference"] = Share(len(applied & rules), len(rules))
        shares["rows of their tables"] = Share(len(rows & model.rows.keys()), len(model.rows))
        untouched += [Untouched("rule", row, example) for row, example in model.rows.items() if row not in rows]
    # First what a shorter case shows, then what stands for more local steps; last what the log could not have shown.
    untouched.sort(key=lambda item: (bool(item.missing), len(item.example.case.path), -item.example.local_steps, item[:2]))
    action_shares = tuple(
        _action_share(action, seen_actions[action], seen_guards, model_guards)
        for action in COMPARISONS
        if action in seen_actions
    )
    return Coverage(exercised, shares, action_shares, tuple(untouched))


def _untouched_guards(
    unseen_guards: Mapping[Guard, Example], seen_guards: Collection[Guard], *, in_log: bool
) -> Iterator[Untouched]:
    """Yield the guards that were not exercised.

    Where a comparison never had any outcome in a log (`in_log`), no event reports its fields: they are named as missing.
    """
    compared = {(guard.action, guard.left, guard.right) for guard in seen_guards}
    for guard, example in unseen_guards.items():
        lacks_fields = in_log and (guard.action, guard.left, guard.right) not in compared
        # `right` is "" where a field is compared with nothing (see Comparison).
        missing = tuple(filter(None, (guard.left, guard.right))) if lacks_fields else ()
        yield Untouched(guard.action, str(guard), example, missing)


def _action_share(
    action: str, seen: Seen, seen_guards: Mapping[Guard, Seen], model_guards: Collection[Guard]
) -> ActionShare:
    """Return an exercised action with its guards, those of all actions being given. `seen`: how often, and where first."""
    # A guard may be exercised that the model does not have, as in a request that only a wrong peer makes: the share counts
    # those of the model alone.
    own_guards = {guard: seen_guards[guard] for guard in sorted(seen_guards) if guard.action == action}
    own_model_guards = {guard for guard in model_guards if guard.action == action}
    return ActionShare(action, seen, own_guards, Share(len(own_guards.keys() & own_model_guards), len(own_model_guards)))


def _local_steps(exercised: Exercised, model: CoveredModel) -> Share:
    """Return how many local steps of the model are in a situation that was exercised, or are an unlogged step that was."""
    exercised_situations: set[Situation] = set()
    for situation in exercised.situations:
        # An event of a driven step has every field that the step has: its situation is that of the model, and no other.
        if situation in model.situations and not exercised.judged:
            exercised_situations.add(situation)
            continue
        fitting = [other for other in model.situations if situation.fits(other)]
        # Rule 3: an event of which too little is reported may be any of several.
        if len(fitting) == 1:
            exercised_situations.update(fitting)
    count = sum(model.situations[situation].local_steps for situation in exercised_situations)
    count += sum(example.local_steps for step, example in model.unlogged.items() if step in exercised.unlogged)
    total = sum(example.local_steps for example in (*model.situations.values(), *model.unlogged.values()))
    return Share(count, total)


def _model_for(exercised: Exercised) -> CoveredModel:
    """Return the part of the shipped models that these sources could have exercised: of a broker, a controller, or both."""
    model, control = shipped_models()[exercised.model], shipped_control()
    actions_seen = {situation.action for situation in exercised.situations}
    # Only a run of a controller counts requests with their responses (drive/controller/coverage.py, rule 1).
    drives_controller = not exercised.unlogged.keys().isdisjoint(control.responses)
    # A run of a controller alone says nothing of brokers, and logs without a controller nothing of that.
    has_broker = exercised.judged or bool(actions_seen - CONTROLLER_ACTIONS) or not drives_controller
    # Only a run of a broker applies rules of the reference, so their rows tell that there was one.
    drives_broker = exercised.driven and (bool(exercised.rows) or not drives_controller)
    situations: dict[Situation, Example] = {**model.situations} if has_broker else {}
    unlogged: dict[str, Example] = {**model.unlogged} if drives_broker else {}
    if drives_controller or actions_seen & CONTROLLER_ACTIONS:
        situations |= control.situations
    # A log cannot show the steps that nobody logs.
    if drives_controller:
        unlogged |= control.responses
    return CoveredModel(model.profile, situations, unlogged, model.rows if drives_broker else {})


def coverage_text(coverage: Coverage) -> str:
    """Return the coverage as text: the shares, then what was not exercised, that with the shortest case first.

    The first SCENARIOS_SHOWN have the steps of their case, the others up to ITEMS_SHOWN a line each.
    """
    sources = ", ".join(coverage.exercised.sources)
    lines = [f"coverage of the model {coverage.exercised.model}, suite {SUITE_VERSION}, by {sources}"]
    lines += [f"  {name:<22} {share}" for name, share in coverage.shares.items()]
    if undecided := coverage.undecided_rules:
        lines.append(f"no decision on {', '.join(undecided)}")
    if coverage.untouched:
        lines.append("not exercised, the nearest first")
    for item in coverage.untouched[:SCENARIOS_SHOWN]:
        lines.append(f"  {_untouched_text(item)}:")
        lines += [f"    {at:>2}  {any_step_text(step)}" for at, step in enumerate(item.example.case.path, start=1)]
    for item in coverage.untouched[SCENARIOS_SHOWN:ITEMS_SHOWN]:
        lines.append(f"  {_untouched_text(item)}")
    more = len(coverage.untouched) - ITEMS_SHOWN
    if more > 0:
        lines.append(f"  and {more} more; --coverage FILE has all with their steps")
    return "\n".join(map(visible, lines))


def _untouched_text(item: Untouched) -> str:
    """Return the line of something that nothing has exercised, with the length of the shortest path to it."""
    says = f"{item.action}: {item.says}" if item.says else item.action
    missing = f"; no event reports {' and '.join(item.missing)}" if item.missing else ""
    return f"{says}; {counted(len(item.example.case.path), 'step')}{missing}"


# ---------------------------------------------------------------------------------------------------------------------
# As JSON


def coverage_json(coverage: Coverage) -> str:
    """Return the coverage as the text of a JSON file, which `read_exercised` reads."""
    return json.dumps(as_json(coverage), indent=1) + "\n"


def as_json(coverage: Coverage) -> dict[str, Any]:
    """Return the coverage as plain data. Its value "exercised" is what `tidegauge coverage` reads back and adds up."""
    exercised = coverage.exercised
    return {
        "coverage": FORMAT_VERSION,
        "tool": {"name": "tidegauge", "version": PACKAGE_VERSION, "suite": SUITE_VERSION},
        "model": exercised.model,
        "sources": exercised.sources,
        "shares": {name: share._asdict() for name, share in coverage.shares.items()},
        "exercised": {
            "driven": exercised.driven,
            "judged": exercised.judged,
            "situations": [
                {"action": action, "outcomes": [*outcomes], **seen._asdict()}
                for (action, outcomes), seen in sorted(exercised.situations.items())
            ],
            **{
                name: {key: seen._asdict() for key, seen in sorted(getattr(exercised, name).items())}
                for name in ("unlogged", "rows", "rules")
            },
        },
        "undecided_rules": coverage.undecided_rules,
        "not_exercised": [
            {
                "action": item.action,
                "says": item.says,
                "missing": [*item.missing],
                "local_steps": item.example.local_steps,
                "opening": item.example.case.opening._asdict(),
                "steps": [any_step_json(step) for step in item.example.case.path],
                "words": [step_words(step) for step in item.example.case.path],
            }
            for item in coverage.untouched
        ],
    }


def any_step_text(step: Step) -> str:
    """Return a step of either contract, a controller's or a broker's, on one line. Their names tell them apart."""
    return step_line(step) if step[0] in REQUESTS else step_text(step)


def any_step_json(step: Step) -> dict[str, Any]:
    """Return a step of either contract, a controller's or a broker's, as plain data: its name and arguments by name."""
    return step_as_json(step) if step[0] in REQUESTS else step_json(step)


def step_words(step: Step) -> str:
    """Return in a sentence what a step of either contract does: as the controller's contract or the catalog of actions says.

    A broker's step that is no action of the catalog is returned as its line.
    """
    if step[0] in REQUESTS:
        return REQUESTS[step[0]].says
    action = actions().get(action_of(step))
    return step_text(step) if action is None else action.sentence


def read_exercised(place: Path) -> Exercised:
    """Read what was exercised from a JSON file that --coverage or --results has written. Raises UsageError for any other."""
    try:
        return _exercised(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UsageError(
            f"{visible(str(place))}: expected the JSON that --coverage or --results writes, seen {type(problem).__name__}: "
            f"{visible(str(problem))}; name such a file"
        ) from None


def _exercised(data: dict[str, Any]) -> Exercised:
    """Read what was exercised from the JSON of `as_json`. Raises ValueError, KeyError or the like for any other."""
    # Results have the coverage as a value of that name; in a file of coverage the same name has the version of its format.
    data = data["coverage"] if isinstance(data.get("coverage"), dict) else data
    if data["coverage"] != FORMAT_VERSION or data["model"] not in shipped_models():
        raise ValueError(f"version {data['coverage']!r}, model {data['model']!r}")
    exercised = data["exercised"]
    by_kind = {
        kind: {str(key): Seen(int(value["times"]), str(value["first"])) for key, value in exercised[kind].items()}
        for kind in ("unlogged", "rows", "rules")
    }
    situations = {_situation(row): Seen(int(row["times"]), str(row["first"])) for row in exercised["situations"]}
    sources, driven, judged = list(map(str, data["sources"])), bool(exercised["driven"]), bool(exercised["judged"])
    return Exercised(data["model"], sources, situations, **by_kind, driven=driven, judged=judged)


def _situation(row: Mapping[str, Any]) -> Situation:
    """Read a situation from its "action" and "outcomes", one for each comparison of the action. Raises ValueError."""
    action, outcomes = row["action"], tuple(map(str, row["outcomes"]))
    if len(outcomes) != len(COMPARISONS[action]):
        raise ValueError(f"{len(outcomes)} outcomes of {action}")
    return Situation(action, outcomes)


def results_of_run(run: DriveRun[BrokerCase], exercised: Exercised, profile: Profile, target: str) -> RunResults:
    """Return the results of a driven broker. `target` is its name in the results, "" for the name that it declares."""
    shown = [failure.shown for failure in run.failures]
    results = results_of_differences(shown, run.exit_code, exercised, profile)
    return results._replace(target=target or run.name, failures=tuple(failure.text for failure in run.failures))


def results_of_controller(run: DriveRun[ControllerCase], exercised: Exercised, target: str) -> RunResults:
    """Return the results of a driven controller. `target` is its name in the results, "" for the name that it declares.

    They have no verdicts on rules: a difference in a registration does not tell which rule is broken.
    """
    verdict = {CONFORMS: PASS, FAILS: FAIL}.get(run.exit_code, UNDECIDED)
    failures = tuple(failure.text for failure in run.failures)
    return RunResults("drive", target or run.name, verdict, run.exit_code, {}, failures, brief_json(exercised))


def results_of_differences(
    shown: Sequence[Difference[BrokerCase]], exit_code: int, exercised: Exercised, profile: Profile
) -> RunResults:
    """Return the results of a driven broker without target and texts: verdicts on the rules that the reference implements.

    `shown` has a difference for each kind of failure. A rule fails if such a difference is blamed on it, and passes if the
    run has applied its function.
    """
    failed = Counter(rule for difference in shown for rule in blamed(difference, profile))
    applied: Counter[str] = Counter()
    for row, seen in exercised.rows.items():
        # A rule that calls another has applied that one, too.
        for function in with_callees({row.partition(":")[0]}):
            applied[function] += seen.times
    rules, sharing = {}, Counter(rule.impl for rule in rulebook().values())
    for rule in rulebook().values():
        # A rule of a family that no reported field shows could not fail here, so it has no verdict.
        if rule.impl.startswith("impl.rules:") and family_of(rule.id) in SHOWN_BY_FIELDS:
            times = applied[rule.impl.partition(":")[2]]
            # Where several rules share a function, a difference does not tell which of them is broken.
            shared, times_failed = sharing[rule.impl] > 1, failed[rule.id]
            verdict = (UNDECIDED if shared else FAIL) if times_failed else PASS if times else NOT_EXERCISED
            # The last two counts are those of FAIL and of UNDECIDED.
            rules[rule.id] = RuleCounts(verdict, times, *((0, times_failed) if shared else (times_failed, 0)))
    verdict = {CONFORMS: PASS, FAILS: FAIL}.get(exit_code, UNDECIDED)
    return RunResults("drive", "", verdict, exit_code, rules, coverage=brief_json(exercised))


def brief_json(exercised: Exercised) -> dict[str, Any]:
    """Return the coverage as plain data without what was not exercised: what the results of a run keep of it."""
    return {name: value for name, value in as_json(coverage_of(exercised)).items() if name != "not_exercised"}


# ---------------------------------------------------------------------------------------------------------------------
# As a file


def write_coverage(coverage: Coverage, place: str | Path) -> None:
    """Write the coverage to a file: a page of HTML if its name ends in .html or .htm, else JSON."""
    text = coverage_page(coverage) if str(place).endswith((".html", ".htm")) else coverage_json(coverage)
    with replacing(place) as beside:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")


def coverage_page(coverage: Coverage) -> str:
    """Return the coverage as one HTML page."""
    from tidegauge.conformance.report.html import PageHead, render_page  # noqa: PLC0415  Jinja takes a tenth of a second to load

    local = coverage.shares["local steps"]
    # A share is no verdict: the class "open" has the colour of what is neither passed nor failed.
    head = PageHead("Coverage", f"{local} local steps", "open", f"model {coverage.exercised.model}", judged_by=())
    return render_page(
        "coverage.html",
        head,
        Timelines(),
        coverage=coverage,
        step_text=any_step_text,
        step_words=step_words,
        rulebook=rulebook(),
    )


if __name__ == "__main__":
    write_models(map(explored, (SAFE, KIP320)), Path(__file__).with_name(_FILE))
