"""Which paths a broker is taken through: ten steps, covers of graphs, random walks, scenarios; and how much that covers.

A case is a path of steps with the set-up it begins from. A source of cases adds a line about its coverage to the report. A
suspect is a bug that a broker may have; a path *tells* it if the reports of a broker with the bug differ there.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType

from tidegauge.drive.broker.contract import BROKER, EXTRAS, REPORTED, BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import opened
from tidegauge.drive.broker.steps import STEPS
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.drive.paths.graphs import USUAL, cover_of, graph_named
from tidegauge.drive.paths.scenarios import Named, named_scenarios, scenario_cases
from tidegauge.drive.paths.short_paths import (
    OUT_OF_REACH_IN_KAFKA,
    change_lines,
    changed_switches,
    refusals,
    telling_paths,
)
from tidegauge.drive.paths.unsafe_or_repaired import telling_cases
from tidegauge.drive.paths.walks import walks as draw_walks
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED

# Ten steps that show whether a driven program works at all: it leads, is fetched from, follows and truncates. A step is a
# name with its arguments, in the order of drive/broker/steps.py.


PEER = 2
TEN: Path = (
    ("metadata", BROKER, 0, 0, (BROKER, PEER)),
    ("append", 1),
    ("append", 1),
    ("fetch", PEER, 0, 0, UNDEFINED, True),
    ("fetch", PEER, 0, 1, 0, True),
    ("metadata", PEER, 1, 1, (BROKER, PEER)),
    ("fetch_response", PEER, NONE, 0, 0, (), (0, 1), None),
    ("fetch_response", PEER, NONE, 1, 0, ((1, 1, 1),), None, None),
    ("fetch_response", PEER, NONE, 2, 0, (), None, None),
    ("metadata", BROKER, 2, 2, (BROKER, PEER)),
)


def smoke_case(profile: Profile, capabilities: Capabilities) -> BrokerCase:
    """Return the path of those steps in TEN that a broker of this generation, with these capabilities, can be given."""
    state, path = opened(Opening(), profile), []
    for ten_step in TEN:
        # A generation before KIP-595 sends OffsetsForLeaderEpoch before it fetches, and must get the response first (epoch 0
        # ends at offset 1); to others that step is not possible.
        epoch_response: Step = ("offsets_for_leader_epoch_response", PEER, NONE, 0, 1)
        for step in (epoch_response, ten_step) if ten_step[0] == "fetch_response" else (ten_step,):
            if is_possible(state, step) and missing_capability(capabilities, state, step) is None:
                state, _ = take_step(state, step)
                path.append(step)
    return BrokerCase(Opening(), tuple(path))


def cases_for(
    capabilities: Capabilities,
    profile: Profile,
    *,
    graphs: Sequence[str] | None = None,
    walks: int = 0,
    seed: int = 1,
    smoke: bool = False,
    scenarios: Mapping[str, BrokerCase] = MappingProxyType({}),
    echo: Callable[[str], None] = lambda _: None,
) -> tuple[list[BrokerCase], list[str]]:
    """Return the cases from the sources that the arguments name, each case once, and lines about their coverage.

    `graphs`: names, None for the usual ones, empty for none. `walks`: how many random walks, drawn from `seed`. `smoke`: add
    the ten steps. `scenarios`: cases by scenario and broker, such as "020_forked_log@b1". `echo` is called with a line
    before the cover of each graph is made, which may take a minute.
    """
    cases, lines = [], list(_lacking(capabilities))
    if smoke:
        cases.append(smoke_case(profile, capabilities))
        lines.append(f"smoke: {len(cases[0].path)} steps")
    if scenarios:
        cases += scenarios.values()
        files = {name.partition("@")[0] for name in scenarios}
        lines.append(f"scenarios: {len(files)}, as {len(scenarios)} brokers see them")
    for name in USUAL if graphs is None else graphs:
        echo(f"graph {name}: {graph_named(name).says}")
        cover = cover_of(name, profile, capabilities)
        cases += cover.cases
        percent = 100 * cover.steps_taken / cover.local_steps if cover.local_steps else 0.0
        lines.append(
            f"graph {name}: {cover.transitions:,} transitions are {cover.local_steps:,} local steps; "
            f"{cover.steps_taken:,} of them ({percent:.0f} %) are taken, by {len(cover.cases):,} paths"
        )
    if walks:
        cases += draw_walks(seed, walks, profile, capabilities)
        lines.append(f"walks: {walks:,} with seed {seed}")
    return list(dict.fromkeys(cases)), lines


@dataclass(frozen=True)
class Choice:
    """The user's choice of paths. `smoke`: the ten steps; `walks`: a number; `scenarios`: all that are shipped.

    `graphs`: the usual ones of the transport, for a cover; `covered`: the graphs that the user named; `cover`: whether a
    cover is asked for as well as something else; `named`: names of scenarios.
    """

    graphs: Sequence[str] = USUAL
    covered: Sequence[str] = ()
    walks: int = 0
    seed: int = 1
    smoke: bool = False
    scenarios: bool = False
    named: Sequence[str] = ()
    cover: bool = False
    plays_telling_paths: bool = True
    """Whether the paths that tell the bugs of its generation from their repairs are among those of the run."""


@dataclass(frozen=True)
class ChosenPaths:
    """The paths that a broker is taken through, lines about their coverage, and scenarios.

    `scenarios`: the cases of all scenarios, by name; `named`: the scenarios that the user named.
    """

    cases: tuple[BrokerCase, ...]
    coverage: tuple[str, ...]
    scenarios: Mapping[str, BrokerCase]
    named: tuple[Named, ...]


def chosen_paths(
    choice: Choice, capabilities: Capabilities, profile: Profile, echo: Callable[[str], None] = lambda _: None
) -> ChosenPaths:
    """Choose the paths of a run: by default covers of the usual graphs and the paths beside them, else what the user chose.

    `echo` is called with lines about what is under way.
    """
    # Whoever chooses something else than graphs gets no graphs, unless he chooses them as well.
    others = choice.smoke or choice.walks or choice.scenarios or choice.named
    shipped = scenario_cases(profile, capabilities) if choice.scenarios else ()
    named = tuple(scenario for name in choice.named for scenario in named_scenarios(name, profile, capabilities))
    scenarios = {scenario.name: scenario.case for scenario in (*shipped, *named)}
    cases, coverage = cases_for(
        capabilities,
        profile,
        # Those that he named, else the usual ones of the transport.
        graphs=() if others and not (choice.cover or choice.covered) else choice.covered or choice.graphs,
        walks=choice.walks,
        seed=choice.seed,
        smoke=choice.smoke,
        scenarios=scenarios,
        echo=echo,
    )
    # Few other paths tell the bugs F2 and F3. The ten steps of a smoke test stay ten.
    if choice.plays_telling_paths and not choice.smoke:
        cases = [*telling_cases(profile, capabilities), *cases]
    # A cover shows neither all suspects nor refusals: add paths that do. So too for a profile with changed switches,
    # whatever was chosen: some of those paths show the change. The usual graphs are all covered where that is asked for, or
    # where nothing else is chosen.
    has_all_covers = choice.cover or not (others or choice.covered)
    if has_all_covers or (any(changed_switches(profile)) and not choice.smoke):
        beside, lines = cases_beside_covers(capabilities, profile, cases)
        cases, coverage = [*cases, *beside], [*coverage, *lines]
    return ChosenPaths(tuple(dict.fromkeys(cases)), tuple(coverage), scenarios, named)


def cases_beside_covers(
    capabilities: Capabilities, profile: Profile, cases: Sequence[BrokerCase]
) -> tuple[list[BrokerCase], list[str]]:
    """Return the paths that a run adds to `cases`, and lines for its report.

    A cover takes every step of a graph, but no step that is refused, and it does not look at state that only a later step
    shows. Paths for both are added. The lines count them, and name what no path of the run can see.
    """
    refusal_cases = refusals(profile, capabilities)
    telling = telling_paths(profile, capabilities, [*refusal_cases, *cases])
    counts = f"{len(telling.cases)} short paths tell {len(telling.by_suspect)} switches and known bugs from what is right"
    lines = [f"refusals and errors: {len(refusal_cases)} paths; {counts}"]
    lines += [f"not seen by this run: {', '.join(telling.unseen)}"] if telling.unseen else []
    lines += [f"not seen by this run: {', '.join(methods)}: {why}" for why, methods in OUT_OF_REACH_IN_KAFKA.items()]
    added = list(dict.fromkeys((*refusal_cases, *telling.cases)))
    return added, [*lines, *change_lines(profile, added, capabilities.reports)]


def _lacking(capabilities: Capabilities) -> list[str]:
    """Return a line with the steps and extras that a broker cannot be given, and one with the fields it does not report.

    Each if there are any: both cost coverage.
    """
    lines = []
    cannot = [name for name in (*STEPS, *EXTRAS) if name not in capabilities.can]
    if cannot:
        lines.append(f"cannot be given: {', '.join(cannot)}")
    unknown = [name for name in REPORTED if name not in capabilities.reports]
    if unknown:
        lines.append(f"does not report: {', '.join(unknown)}")
    return lines
