"""What a run or a log has exercised of the model, and the shortest scenario of the model for what it has not.

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
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """What one broker does in a model: situations, steps that nobody logs, and rows of rules ("rule: row")."""

    profile: str
    situations: dict[Situation, Example]
    unlogged: dict[str, Example]
    rows: dict[str, Example]

    def guards(self) -> dict[Guard, Example]:
        """Return each outcome of a comparison that a local step has."""
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
    """Return the models that the package has, by the name of their profile."""
    text = files("tidegauge.drive").joinpath(_FILE).read_text(encoding="utf-8")

    def example(local_steps: int, opening: Any, path: Any) -> Example:
        return Example(local_steps, BrokerCase(Opening(*frozen(opening)), frozen(path)))

    return {
        name: CoveredModel(
            name,
            {Situation(action, tuple(outcomes)): example(*rest) for action, outcomes, *rest in model["situations"]},
            {step: example(*rest) for step, *rest in model["unlogged"]},
            {row: example(*rest) for row, *rest in model["rows"]},
        )
        for name, model in json.loads(text).items()
    }


# ---------------------------------------------------------------------------------------------------------------------
# The model


def explored(profile: Profile, graphs: Iterable[str] = COVERED) -> CoveredModel:
    """Compute the model of a profile from graphs."""
    model = CoveredModel(profile.name, {}, {}, {})
    # The same local step in another graph, or behind other requests, is one.
    seen: set[Any] = set()
    for name in graphs:
        steps = _steps_of_graph(name, profile, seen)
        for step, reached in zip(steps, situations_of([step.events for step in steps]), strict=True):
            for row in step.rows:
                model.rows[row] = nearer(model.rows.get(row), Example(1, step.case))
            # Consequences of a step are situations too; the local step is that of its action.
            for position, situation in enumerate(reached):
                example = Example(int(position == 0 < step.events.logged), step.case)
                model.situations[situation] = nearer(model.situations.get(situation), example)
            if not step.events.logged:
                name_ = step.case.path[-1][0]
                model.unlogged[name_] = nearer(model.unlogged.get(name_), Example(1, step.case))
    return model


class _LocalStep(NamedTuple):
    """A local step: the shortest case that ends with it, its events, the rows of rules that were applied."""

    case: BrokerCase
    events: StepEvents
    rows: Sequence[str]


def _steps_of_graph(name: str, profile: Profile, seen: set[Any]) -> list[_LocalStep]:
    """Return the local steps of a graph that are not in `seen`, and add them to it."""
    count: Count = Counter()
    # By number of a state, the state and the step that first led to it.
    parents: dict[int, tuple[int, Step]] = {}
    # Of each new local step: the state before it, the step, its events, the rows of rules that it applied.
    steps: list[tuple[int, Step, StepEvents, list[str]]] = []

    def watch(source: int, edge: Edge, state: ReferenceBroker, step: Step, outcome: StepTaken) -> None:
        """Note the first path to each state, and one example of each local step with the rules that it applied."""
        if edge.to:
            parents.setdefault(edge.to, (source, step))
        key = state.opening, edge.takes[:3]
        if key not in seen:
            seen.add(key)
            steps.append((source, step, events_of_step(state, step, outcome), rows_of(count)))
        count.clear()

    opening = every_step(GRAPHS[name].inputs(profile), profile, watch, counting(count))
    return [
        _LocalStep(BrokerCase(opening, (*_run(parents, source), step)), events, rows) for source, step, events, rows in steps
    ]


def _run(parents: Mapping[int, tuple[int, Step]], state: int) -> Steps:
    """Return the steps of a shortest run to a state."""
    steps = []
    while state in parents:
        state, step = parents[state]
        steps.append(step)
    return tuple(reversed(steps))


def rows_of(count: Count) -> list[str]:
    """Return the rows that were applied, each as a text."""
    return [": ".join(filter(None, applied)) for applied in count]


_CONFIG = Config(tuple(range(BROKER, BROKER + 4)))


def situations_of(steps: Sequence[StepEvents]) -> list[list[Situation]]:
    """Return the situations of the events of each step, all computed at once."""
    events = tuple(event for step in steps for event in step.events)
    codes, of_row = situation_codes(to_columns([Trace("", "", _CONFIG, events)], _CONFIG, counted=True))
    following = iter(of_row.tolist())
    return [[codes[next(following)] for _ in step.events] for step in steps]


def write_models(models: Iterable[CoveredModel], place: Path) -> None:
    """Write models, a line an example: what changes with a rule can be read in a diff."""
    parts = []
    for model in models:
        lists = ",\n".join(
            f'"{name}":[\n' + ",\n".join(json.dumps(row, separators=(",", ":")) for row in rows) + "\n]"
            for name, rows in _as_lists(model).items()
        )
        parts.append(f'"{model.profile}":{{{lists}}}')
    place.write_text("{" + ",\n".join(parts) + "}\n", encoding="utf-8")


def _as_lists(model: CoveredModel) -> dict[str, Any]:
    return {
        "situations": [[*situation, n, *case[:2]] for situation, (n, case) in sorted(model.situations.items())],
        "unlogged": [[step, n, *case[:2]] for step, (n, case) in sorted(model.unlogged.items())],
        "rows": [[row, n, *case[:2]] for row, (n, case) in sorted(model.rows.items())],
    }


FORMAT_VERSION = 1
SCENARIOS_SHOWN = 3
"""Scenarios that a text shows step by step; the JSON and the page have all."""


# ---------------------------------------------------------------------------------------------------------------------
# What was exercised


@dataclass
class Exercised:
    """What runs and logs have exercised: how often, and where first. `rules` are the judge's, by id."""

    model: str
    sources: list[str] = field(default_factory=list)
    situations: dict[Situation, Seen] = field(default_factory=dict)
    unlogged: dict[str, Seen] = field(default_factory=dict)
    rows: dict[str, Seen] = field(default_factory=dict)
    rules: dict[str, Seen] = field(default_factory=dict)
    driven: bool = False
    judged: bool = False

    def add(self, other: Self) -> None:
        """Add what another run or log has exercised. Raises UsageError for one held against another model."""
        if other.model != self.model:
            raise UsageError(
                f"coverage: expected runs that are held against the model {self.model}, seen one against {other.model}; sum "
                "up those of each by themselves"
            )
        self.sources += other.sources
        add(self.situations, other.situations)
        for mine, theirs in ((self.unlogged, other.unlogged), (self.rows, other.rows), (self.rules, other.rules)):
            add(mine, theirs)
        self.driven, self.judged = self.driven or other.driven, self.judged or other.judged


MOST_REMEMBERED = 20_000
"""Steps of which the situations are computed at once."""


@dataclass
class _PlayedStep:
    """A step behind certain others, which several cases have: the first of them, the broker after it, its events."""

    place: str
    step: str
    state: ReferenceBroker
    events: StepEvents
    rows: Mapping[str, int]
    times: int = 0


def exercised_by_run(
    source: str, cases: Sequence[BrokerCase], ended: Mapping[BrokerCase, int], profile: Profile
) -> Exercised:
    """Return what a run has exercised; `ended`: the step at which a case differed, which shows nothing any more."""
    made, count = Exercised(model_of(profile).profile, [source], driven=True), Counter[tuple[str, str]]()
    played: dict[tuple[Any, ...], _PlayedStep] = {}
    for number, case in enumerate(cases, start=1):
        state = opened(case.opening, profile, counting(count))
        key: tuple[Any, ...] = (case.opening,)
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
                place, rows = (
                    f"{case.name or f'path {number:,}'}, step {at}",
                    dict(zip(rows_of(count), count.values(), strict=True)),
                )
                after = read_by_consumer(outcome.state)
                played[key] = _PlayedStep(place, step[0], after, events_of_step(state, step, outcome), rows)
            state = played[key].state
            played[key].times += 1
        if len(played) > MOST_REMEMBERED:
            _count(made, played.values())
            played = {}
    _count(made, played.values())
    return made


def _count(made: Exercised, played: Collection[_PlayedStep]) -> None:
    """Add the situations, unlogged steps and rows of rules of played steps to what was exercised."""
    for step, reached in zip(played, situations_of([step.events for step in played]), strict=True):
        seen = Seen(step.times, step.place)
        for situation in reached:
            add(made.situations, {situation: seen})
        if not step.events.logged:
            add(made.unlogged, {step.step: seen})
        add(made.rows, {row: Seen(often * step.times, step.place) for row, often in step.rows.items()})


def exercised_by_controller(
    source: str, cases: Sequence[ControllerCase], ended: Mapping[ControllerCase, int], profile: Profile
) -> Exercised:
    """Return what a run has exercised of a controller; `ended`: the step at which a case differed."""
    situations, responses = exercised_control(cases, ended, profile)
    return Exercised(model_of(profile).profile, [source], situations, responses, driven=True)


def exercised_by_check(source: str, report: Report) -> Exercised:
    """Return what the traces of a report have exercised."""
    profiles = (name for checked in report.inputs for name in sorted(checked.profiles))
    made = Exercised(model_of(profile_named(next(profiles, SAFE.name))).profile, [source], judged=True)
    for checked in report.inputs:
        add(made.situations, checked.situations)
    made.rules = {
        rule.rule.id: Seen(rule.tally.held + rule.tally.failed, "")
        for rule in report.rules
        if rule.tally.held + rule.tally.failed
    }
    return made


# ---------------------------------------------------------------------------------------------------------------------
# Coverage


class Untouched(NamedTuple):
    """What nothing has exercised: in words, how many local steps of the model there are, the shortest case.

    `missing`: fields that no event of the action reports, and that would tell.
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
    """An action: how often, and where first; its exercised guards with the same, and how many of the model's they are."""

    action: str
    seen: Seen
    guards: Mapping[Guard, Seen]
    share: Share

    @property
    def beyond(self) -> int:
        """How many of the guards no step of the model has: what refused requests show."""
        return len(self.guards) - self.share.exercised


@dataclass(frozen=True)
class Coverage:
    """What was exercised of a model, and what was not, nearest first."""

    exercised: Exercised
    shares: Mapping[str, Share]
    actions: tuple[ActionShare, ...]
    untouched: tuple[Untouched, ...]

    @property
    def undecided_rules(self) -> list[str]:
        """The rules of the judge that no trace has decided, where traces were judged."""
        return [name for name in rulebook() if name not in self.exercised.rules] if self.exercised.judged else []


def coverage_of(exercised: Exercised) -> Coverage:
    """Hold what was exercised against the model."""
    model = _held_against(exercised)
    guards = model.guards()
    seen_guards: dict[Guard, Seen] = {}
    seen_actions: dict[str, Seen] = {}
    for situation, seen in exercised.situations.items():
        add(seen_actions, {situation.action: seen})
        add(seen_guards, dict.fromkeys(situation.guards(), seen))
    reported = {(guard.action, guard.left, guard.right) for guard in seen_guards}
    nearest: dict[str, Example] = {}
    for situation, example in model.situations.items():
        nearest[situation.action] = nearer(nearest.get(situation.action), example)
    untouched = [Untouched(name, "", example) for name, example in nearest.items() if name not in seen_actions]
    for guard, example in guards.items():
        if guard.action in seen_actions and guard not in seen_guards:
            is_reported = (guard.action, guard.left, guard.right) in reported
            missing = () if is_reported or not exercised.judged else tuple(filter(None, (guard.left, guard.right)))
            untouched.append(Untouched(guard.action, str(guard), example, missing))
    local = _local_steps(exercised, model)
    shares = {
        "actions": Share(len(seen_actions.keys() & nearest.keys()), len(nearest)),
        "guards": Share(len(seen_guards.keys() & guards.keys()), len(guards)),
        "local steps": local,
    }
    if exercised.judged:
        shares = {"rules of the judge": Share(len(exercised.rules), len(rulebook())), **shares}
    untouched += [
        Untouched("steps", name, example) for name, example in model.unlogged.items() if name not in exercised.unlogged
    ]
    if model.rows:
        names = {row.partition(":")[0] for row in model.rows}
        applied = with_callees({row.partition(":")[0] for row in exercised.rows})
        shares["rules of the reference"] = Share(len(applied & names), len(names))
        shares["rows of their tables"] = Share(len((exercised.rows.keys() | applied) & model.rows.keys()), len(model.rows))
        # A rule that is no table and that another calls was applied without being counted.
        rows = exercised.rows.keys() | applied
        untouched += [Untouched("rule", row, example) for row, example in model.rows.items() if row not in rows]
    untouched.sort(key=lambda item: (bool(item.missing), len(item.example.case.path), -item.example.local_steps, item[:2]))
    every = tuple(
        ActionShare(
            action,
            seen_actions[action],
            {guard: seen_guards[guard] for guard in sorted(seen_guards) if guard.action == action},
            Share(
                sum(guard.action == action for guard in seen_guards.keys() & guards.keys()),
                sum(guard.action == action for guard in guards),
            ),
        )
        for action in COMPARISONS
        if action in seen_actions
    )
    return Coverage(exercised, shares, every, tuple(untouched))


def _local_steps(exercised: Exercised, model: CoveredModel) -> Share:
    """Return how many local steps are in a situation that was exercised."""
    reached: set[Situation] = set()
    for situation in exercised.situations:
        # What the event of a driven step does not have is not there.
        if situation in model.situations and not exercised.judged:
            reached.add(situation)
            continue
        fitting = [other for other in model.situations if situation.fits(other)]
        # Rule 3: an event of which too little is reported may be any of several.
        if len(fitting) == 1:
            reached.update(fitting)
    done = sum(model.situations[situation].local_steps for situation in reached)
    total = sum(example.local_steps for example in model.situations.values())
    done += sum(example.local_steps for step, example in model.unlogged.items() if step in exercised.unlogged)
    total += sum(example.local_steps for example in model.unlogged.values())
    return Share(done, total)


def _held_against(exercised: Exercised) -> CoveredModel:
    """Return the part of the model that could have been exercised: of a broker, of a controller, or of both."""
    model, control = shipped_models()[exercised.model], shipped_control()
    actions_seen = {situation.action for situation in exercised.situations}
    drives_controller = not exercised.unlogged.keys().isdisjoint(control.responses)
    # A run of a controller alone says nothing of brokers, and logs without a controller nothing of that.
    has_broker = exercised.judged or bool(actions_seen - CONTROLLER_ACTIONS) or not drives_controller
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
    """Return the coverage as text: the shares, then what was not exercised, the nearest with their steps."""
    by = ", ".join(coverage.exercised.sources)
    lines = [f"coverage of the model {coverage.exercised.model}, suite {SUITE_VERSION}, by {by}"]
    lines += [f"  {name:<22} {share}" for name, share in coverage.shares.items()]
    if undecided := coverage.undecided_rules:
        lines.append(f"no decision on {', '.join(undecided)}")
    if coverage.untouched:
        lines.append("not exercised, the nearest first")
    for item in coverage.untouched[:SCENARIOS_SHOWN]:
        lines.append(f"  {_says(item)}:")
        lines += [f"    {at:>2}  {any_step_text(step)}" for at, step in enumerate(item.example.case.path, start=1)]
    for item in coverage.untouched[SCENARIOS_SHOWN : 4 * SCENARIOS_SHOWN]:
        lines.append(f"  {_says(item)}")
    more = len(coverage.untouched) - 4 * SCENARIOS_SHOWN
    if more > 0:
        lines.append(f"  and {more} more; --coverage FILE has all with their steps")
    return "\n".join(map(visible, lines))


def _says(item: Untouched) -> str:
    """Return the line of something that no run has exercised, with the length of the shortest path to it."""
    says = f"{item.action}: {item.says}" if item.says else item.action
    missing = f"; no event reports {' and '.join(item.missing)}" if item.missing else ""
    return f"{says}; {counted(len(item.example.case.path), 'step')}{missing}"


# ---------------------------------------------------------------------------------------------------------------------
# As JSON


def coverage_json(coverage: Coverage) -> str:
    """Return the coverage as JSON; `exercised` is what `tidegauge coverage` adds up."""
    return json.dumps(as_json(coverage), indent=1) + "\n"


def as_json(coverage: Coverage) -> dict[str, Any]:
    """Return the coverage as plain data."""
    made = coverage.exercised
    return {
        "coverage": FORMAT_VERSION,
        "tool": {"name": "tidegauge", "version": PACKAGE_VERSION, "suite": SUITE_VERSION},
        "model": made.model,
        "sources": made.sources,
        "shares": {name: share._asdict() for name, share in coverage.shares.items()},
        "exercised": {
            "driven": made.driven,
            "judged": made.judged,
            "situations": [
                {"action": action, "outcomes": [*outcomes], **seen._asdict()}
                for (action, outcomes), seen in sorted(made.situations.items())
            ],
            **{
                name: {key: seen._asdict() for key, seen in sorted(getattr(made, name).items())}
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
    """Write a step of the contract of a broker or of a controller."""
    return step_line(step) if step[0] in REQUESTS else step_text(step)


def any_step_json(step: Step) -> dict[str, Any]:
    """Return such a step as plain data."""
    return step_as_json(step) if step[0] in REQUESTS else step_json(step)


def step_words(step: Step) -> str:
    """Return what a step does, in the words of the catalog or of the controller's contract."""
    if step[0] in REQUESTS:
        return REQUESTS[step[0]].says
    action = actions().get(action_of(step))
    return step_text(step) if action is None else action.sentence


def read_exercised(place: Path) -> Exercised:
    """Read what a file of `--coverage` or `--results` says was exercised. Raises UsageError for what is none."""
    try:
        return _exercised(json.loads(place.read_text(encoding="utf-8")))
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as problem:
        raise UsageError(
            f"{visible(str(place))}: expected the JSON that --coverage or --results writes, seen {type(problem).__name__}: "
            f"{visible(str(problem))}; name such a file"
        ) from None


def _exercised(data: dict[str, Any]) -> Exercised:
    """Read what a report says was exercised. Raises ValueError or KeyError for what is no such report."""
    data = data["coverage"] if isinstance(data.get("coverage"), dict) else data
    if data["coverage"] != FORMAT_VERSION or data["model"] not in shipped_models():
        raise ValueError(f"version {data['coverage']!r}, model {data['model']!r}")
    made = data["exercised"]
    seen = {
        name: {str(key): Seen(int(value["times"]), str(value["first"])) for key, value in made[name].items()}
        for name in ("unlogged", "rows", "rules")
    }
    situations = {_situation(each): Seen(int(each["times"]), str(each["first"])) for each in made["situations"]}
    sources, driven, judged = [str(source) for source in data["sources"]], bool(made["driven"]), bool(made["judged"])
    return Exercised(data["model"], sources, situations, **seen, driven=driven, judged=judged)


def _situation(data: Mapping[str, Any]) -> Situation:
    """Read a situation: an action with the outcome of each of its comparisons. Raises ValueError."""
    action, outcomes = data["action"], tuple(map(str, data["outcomes"]))
    if len(outcomes) != len(COMPARISONS[action]):
        raise ValueError(f"{len(outcomes)} outcomes of {action}")
    return Situation(action, outcomes)


def results_of_run(run: DriveRun[BrokerCase], exercised: Exercised, profile: Profile, target: str) -> RunResults:
    """Return the results of a driven broker."""
    made = results_of_differences([each.shown for each in run.failures], run.exit_code, exercised, profile)
    return made._replace(target=target or run.name, failures=tuple(each.text for each in run.failures))


def results_of_controller(run: DriveRun[ControllerCase], exercised: Exercised, target: str) -> RunResults:
    """Return the results of a driven controller: a difference in a registration does not tell which rule is broken."""
    verdict = {CONFORMS: PASS, FAILS: FAIL}.get(run.exit_code, UNDECIDED)
    failures = tuple(each.text for each in run.failures)
    return RunResults("drive", target or run.name, verdict, run.exit_code, {}, failures, brief_json(exercised))


def results_of_differences(
    shown: Sequence[Difference[BrokerCase]], exit_code: int, exercised: Exercised, profile: Profile
) -> RunResults:
    """Return the verdicts on the rules of which the reference has a function: some fail by a difference."""
    failed = Counter(name for each in shown for name in blamed(each, profile))
    applied: Counter[str] = Counter()
    for row, seen in exercised.rows.items():
        # A rule that calls another has applied that one, too.
        for name in with_callees({row.partition(":")[0]}):
            applied[name] += seen.times
    rules, sharing = {}, Counter(rule.impl for rule in rulebook().values())
    for rule in rulebook().values():
        if rule.impl.startswith("impl.rules:") and family_of(rule.id) in SHOWN_BY_FIELDS:
            times = applied[rule.impl.partition(":")[2]]
            # Where several rules share a function, a difference does not tell which of them is broken.
            shared, times_failed = sharing[rule.impl] > 1, failed[rule.id]
            verdict = (UNDECIDED if shared else FAIL) if times_failed else PASS if times else NOT_EXERCISED
            rules[rule.id] = RuleCounts(verdict, times, *((0, times_failed) if shared else (times_failed, 0)))
    verdict = {CONFORMS: PASS, FAILS: FAIL}.get(exit_code, UNDECIDED)
    return RunResults("drive", "", verdict, exit_code, rules, coverage=brief_json(exercised))


def brief_json(exercised: Exercised) -> dict[str, Any]:
    """Return the coverage as plain data without scenarios, as results keep it."""
    return {name: value for name, value in as_json(coverage_of(exercised)).items() if name != "not_exercised"}


# ---------------------------------------------------------------------------------------------------------------------
# As a file


def write_coverage(coverage: Coverage, place: str | Path) -> None:
    """Write a page to a file that ends in .html, JSON to any other."""
    text = coverage_page(coverage) if str(place).endswith((".html", ".htm")) else coverage_json(coverage)
    with replacing(place) as beside:
        beside.write_text(text, encoding="utf-8", errors="backslashreplace")


def coverage_page(coverage: Coverage) -> str:
    """Return the coverage as one HTML page."""
    from tidegauge.conformance.report.html import PageHead, render_page  # noqa: PLC0415  Jinja takes a tenth of a second to load

    local = coverage.shares["local steps"]
    head = PageHead("Coverage", f"{local} local steps", "open", f"model {coverage.exercised.model}", ())
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
