"""Which paths a broker is taken through: ten steps, covers of graphs, random walks, scenarios; and how much that covers."""

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
from tidegauge.drive.paths.walks import walks as drawn
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import NONE, UNDEFINED

# Ten steps that show whether a driven program works at all: it leads, is fetched from, follows and truncates.


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
    """Return those of the ten that a broker of this generation can be given."""
    state, path = opened(Opening(), profile), []
    for wanted in TEN:
        # A generation before KIP-595 asks where its leader epoch ends before it fetches; for others that is not possible.
        epoch_end: Step = ("offsets_for_leader_epoch_response", PEER, NONE, 0, 1)
        for step in (epoch_end, wanted) if wanted[0] == "fetch_response" else (wanted,):
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
    """Return the cases from all sources, each once though two sources have it, and a line of coverage for each source.

    `graphs` None: the usual ones. `walks`: how many. `scenarios`: by name.
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
        share = 100 * cover.taken / cover.local_steps if cover.local_steps else 0.0
        lines.append(
            f"graph {name}: {cover.transitions:,} transitions are {cover.local_steps:,} local steps; {cover.taken:,} of "
            f"them ({share:.0f} %) are taken, by {len(cover.cases):,} paths"
        )
    if walks:
        cases += drawn(seed, walks, profile, capabilities)
        lines.append(f"walks: {walks:,} with seed {seed}")
    return list(dict.fromkeys(cases)), lines


@dataclass(frozen=True)
class Choice:
    """What a user asks for; `graphs` are the usual ones of the transport, `covered` those that were named."""

    graphs: Sequence[str] = USUAL
    covered: Sequence[str] = ()
    walks: int = 0
    seed: int = 1
    smoke: bool = False
    scenarios: bool = False
    named: Sequence[str] = ()
    cover: bool = False
    repairs: bool = True
    """Whether a node may be repaired: it is no release of Kafka, of which this is known."""


@dataclass(frozen=True)
class ChosenPaths:
    """The paths that a broker is taken through, lines of coverage, scenarios by name, and those that were named."""

    cases: tuple[BrokerCase, ...]
    coverage: tuple[str, ...]
    scenarios: Mapping[str, BrokerCase]
    named: tuple[Named, ...]


def chosen_paths(
    choice: Choice, capabilities: Capabilities, profile: Profile, echo: Callable[[str], None] = lambda _: None
) -> ChosenPaths:
    """Choose the paths of a run: a cover of the usual graphs and what stands beside it, or only what was asked for."""
    # A choice of something else alone leaves the graphs out, unless they are asked for as well.
    others = choice.smoke or choice.walks or choice.scenarios or choice.named
    shipped = scenario_cases(profile, capabilities) if choice.scenarios else ()
    named = tuple(scenario for name in choice.named for scenario in named_scenarios(name, profile, capabilities))
    scenarios = {scenario.name: scenario.case for scenario in (*shipped, *named)}
    cases, coverage = cases_for(
        capabilities,
        profile,
        graphs=() if others and not (choice.cover or choice.covered) else choice.covered or choice.graphs,
        walks=choice.walks,
        seed=choice.seed,
        smoke=choice.smoke,
        scenarios=scenarios,
        echo=echo,
    )
    # Few other paths tell F2 and F3 apart from what is right, and ten steps do not.
    if choice.repairs and not choice.smoke:
        cases = [*telling_cases(profile, capabilities), *cases]
    # A cover shows neither all suspects nor refusals. A profile with changed switches has paths on which the change shows.
    is_whole = choice.cover or not (others or choice.covered)
    if is_whole or (any(changed_switches(profile)) and not choice.smoke):
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
    refused = refusals(profile, capabilities)
    telling = telling_paths(profile, capabilities, [*refused, *cases])
    counts = f"{len(telling.cases)} short paths tell {len(telling.by_suspect)} switches and known bugs from what is right"
    lines = [f"refusals and errors: {len(refused)} paths; {counts}"]
    lines += [f"not seen by this run: {', '.join(telling.unseen)}"] if telling.unseen else []
    lines += [f"not seen by this run: {', '.join(methods)}: {why}" for why, methods in OUT_OF_REACH_IN_KAFKA.items()]
    more = list(dict.fromkeys((*refused, *telling.cases)))
    return more, [*lines, *change_lines(profile, more, capabilities.reports)]


def _lacking(capabilities: Capabilities) -> list[str]:
    """Return what a broker declared that it does not have, a line each: it costs coverage."""
    lines = []
    cannot = [name for name in (*STEPS, *EXTRAS) if name not in capabilities.can]
    if cannot:
        lines.append(f"cannot be given: {', '.join(cannot)}")
    unknown = [name for name in REPORTED if name not in capabilities.reports]
    if unknown:
        lines.append(f"does not report: {', '.join(unknown)}")
    return lines
