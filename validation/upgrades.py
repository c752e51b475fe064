"""`python -m validation.upgrades` makes docs/upgrades.md: what neighbouring releases do side by side in one cluster.

Rules of this file

1. Neighbours are releases of which transcripts are shipped; of two that do the same in a broker one is left out.
2. Each pair is looked at both ways: one broker of the later release among two of the earlier, and the other way round. The
   walks begin with the first broker as leader, which is the one that is alone.
3. A finding that both releases have is repaired in both here, so F2 always: what is left is the pair's.
4. A broken invariant is the mixture's own if neither release alone breaks it on as many walks of the same seed. So a release
   is walked alone where a mixture of it breaks something.
5. What differs may make no difference to the model: the brokers of such a pair are told apart in no state, and not walked.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.cluster.cluster_findings import finding_path, finding_text
from tidegauge.drive.cluster.cluster_run import ClusterMember, play_cluster
from tidegauge.drive.cluster.cluster_walks import MemberModel, cluster_walks
from tidegauge.drive.runner.player import ReferenceNode
from tidegauge.drive.runner.transcript import BROKER, releases
from tidegauge.impl.cluster.cluster import Bounds, initial, transitions_of
from tidegauge.impl.explorer.explore import find_violation
from tidegauge.impl.profiles import Profile, recording_reads, switch_text
from tidegauge.impl.releases import profile_named, profiles_named
from tidegauge.util.errors import UsageError
from tidegauge.util.workers import workers
from validation.rare_walks import STEPS, Broken, RareWalks

PAGE = Path(__file__).parents[1] / "docs" / "upgrades.md"
GRAPH = Bounds(brokers=2, max_log=1, max_epoch=2, max_crashes=0)
WALKED = Bounds(brokers=3, max_log=3, max_epoch=10, max_crashes=2, max_fetch=2, max_waiting=1, min_insync_replicas=2)
SEED = 1

BLOCK = 10_000
"""Walks that share ends to begin from. What a walker remembers of a block has to fit into memory."""

APART = 2_000
"""The states in which two releases are compared."""

REPAIRED_F1, REPAIRED_F2 = "+response_epoch_checked=on+batch_epoch_filter=on", "+keeps_remote_leo=off"

PLACES = {"F1": 2, "F2": 3, "F3": 3}
"""The brokers that a finding takes."""


class Pair(NamedTuple):
    """Two neighbours, and the switches in which their brokers differ: name, earlier value, later value."""

    earlier: str
    later: str
    differ: tuple[tuple[str, str, str], ...]


class Mix(NamedTuple):
    """The releases of a cluster's brokers, and what breaks in its graph, and on how many walks, None if it is not walked."""

    brokers: tuple[str, ...]
    graph: str
    walked: Mapping[str, int] | None


class Block(NamedTuple):
    """Walks that are made together: of a cluster, so many, by its number. Without walks it is the cluster's graph."""

    cluster: str
    walks: int
    number: int


def broker_switches() -> frozenset[str]:
    """Return the switches that brokers read on walks of a cluster, in any release; not those of its controller."""
    names: set[str] = set()
    for release in ("3.4.0", "3.9.0", "4.3.1"):
        profile, read = recording_reads(profile_named(release))
        cluster_walks([MemberModel(reference(profile), EVERYTHING)] * 3, profile_named(release), SEED, 60)
        names |= read
    return frozenset(names)


def pairs(names: Sequence[str], switches: frozenset[str]) -> list[Pair]:
    """Return the neighbours whose brokers differ; a release whose brokers do as the one before stands for it."""
    listed = []
    for earlier, later in pairwise(names):
        before, after = profile_named(earlier), profile_named(later)
        changed = [name for name in Profile._fields if name in switches and getattr(before, name) != getattr(after, name)]
        differ = tuple((name, switch_text(getattr(before, name)), switch_text(getattr(after, name))) for name in changed)
        if differ:
            listed.append(Pair(earlier, later, differ))
    return listed


def mixes(pair: Pair) -> Iterator[tuple[str, ...]]:
    """Yield each release alone, then both mixtures: the first broker is the one that is alone."""
    yield (pair.earlier,) * 3
    yield (pair.later,) * 3
    yield pair.later, pair.earlier, pair.earlier
    yield pair.earlier, pair.later, pair.later


def repaired(pair: Pair) -> str:
    """Return the switches by which both releases of a pair differ here from what was shipped."""
    ends_f1 = any(name == "response_epoch_checked" for name, *_ in pair.differ)
    return REPAIRED_F2 if ends_f1 else REPAIRED_F1 + REPAIRED_F2


def cluster_name(brokers: Sequence[str], switches: str) -> str:
    """Return the name of a cluster's profile; ELR is off as the metadata version is the earlier one's."""
    return ",".join(f"{node}={release}{switches}+elr=off" for node, release in enumerate(brokers, 1))


def is_distinct(pair: Pair) -> bool:
    """Return whether some of the states that walks of the earlier release end in have other transitions in the later one."""
    names = [cluster_name((release,) * WALKED.brokers, repaired(pair)) for release in (pair.earlier, pair.later)]
    earlier, later = (profiles_named(name, range(1, WALKED.brokers + 1)) for name in names)
    # The controller stays: a mixture is one of brokers.
    setups = initial(WALKED, later).model.setups
    for cluster in RareWalks(WALKED, earlier, str(SEED)).ends(APART):
        other = cluster._replace(model=cluster.model._replace(setups=setups))
        if any(one != another for one, another in zip(transitions_of(cluster), transitions_of(other), strict=True)):
            return True
    return False


def blocks(clusters: Iterable[str], walks: int) -> list[Block]:
    """Return the blocks of all clusters, the first of each before the second of any: an unfinished campaign is even, too."""
    return [
        Block(cluster, min(BLOCK, walks - begun), number)
        for number, begun in enumerate(range(0, walks, BLOCK))
        for cluster in clusters
    ]


def broken_of(block: Block) -> list[Broken]:
    """Make the walks of a block, or search a graph to its first broken invariant."""
    brokers = block.cluster.count(",") + 1
    profile = profiles_named(block.cluster, range(1, brokers + 1))
    if block.walks:
        return list(RareWalks(WALKED, profile, f"{SEED}/{block.number}").broken_walks(block.walks))
    found = find_violation(GRAPH, profile)
    return [] if found is None else [Broken(found.violation.invariant, len(found.labels), found.labels)]


def campaign(
    wanted: Sequence[Block], spread: Callable[..., Iterable[list[Broken]]], kept_file: Path | None
) -> dict[str, Counter[str]]:
    """Return on how many walks each invariant breaks per cluster; blocks that `kept_file` has are not made again."""
    made: dict[Block, list[Broken]] = {}
    if kept_file is not None and kept_file.exists():
        for line in kept_file.read_text(encoding="utf-8").splitlines():
            cluster, walks, number, broken = json.loads(line)
            made[Block(cluster, walks, number)] = [Broken(*each) for each in broken]
    missing = [block for block in wanted if block not in made]
    for block, broken in zip(missing, spread(broken_of, missing), strict=True):
        made[block] = broken
        if kept_file is not None:
            with kept_file.open("a", encoding="utf-8") as file:
                file.write(json.dumps([*block, broken]) + "\n")
    counted: dict[str, Counter[str]] = {block.cluster: Counter() for block in wanted}
    for block in wanted:
        shown = (f" after {each.number} steps" if block.walks == 0 else "" for each in made[block])
        counted[block.cluster].update(each.invariant + how for each, how in zip(made[block], shown, strict=True))
    return counted


def measured(
    listed: Sequence[Pair], walks: int, spread: Callable[..., Iterable[list[Broken]]], kept_file: Path | None
) -> list[tuple[Pair, list[Mix]]]:
    """Search the graphs of clusters, walk the mixtures, and the releases alone of which a mixture broke something."""
    named = {pair: [cluster_name(brokers, repaired(pair)) for brokers in mixes(pair)] for pair in listed}
    graphs = {pair: [cluster_name(brokers[:2], repaired(pair)) for brokers in mixes(pair)] for pair in listed}
    counted = campaign(blocks([name for names in named.values() for name in names[2:]], walks), spread, kept_file)
    broken = [names for names in named.values() if any(counted[name] for name in names[2:])]
    counted |= campaign(blocks(dict.fromkeys(name for names in broken for name in names[:2]), walks), spread, kept_file)
    searched = campaign(
        [Block(name, 0, 0) for name in dict.fromkeys(name for names in graphs.values() for name in names)], spread, kept_file
    )
    return [
        (
            pair,
            [
                Mix(brokers, next(iter(searched[graph]), ""), counted.get(name))
                for name, graph, brokers in zip(named[pair], graphs[pair], mixes(pair), strict=True)
            ],
        )
        for pair in listed
    ]


def finding_rows(names: Iterable[str]) -> Iterator[str]:
    """Yield a row for each finding of brokers: in which releases a lone broker of that release loses the record."""
    names = tuple(names)
    for finding, brokers in PLACES.items():
        alone, first, others = [], [], []
        for release in names:
            other = "safe"
            alone += [release] if loses(finding, (release,) * brokers) else []
            first += [release] if loses(finding, (release, *(other,) * (brokers - 1))) else []
            others += [release] if loses(finding, (other, *(release,) * (brokers - 1))) else []
        yield f"| {finding} | {_span(alone, names)} | {_span(first, names)} | {_span(others, names)} |"


def loses(finding: str, brokers: Sequence[str]) -> bool:
    """Return whether such a cluster loses a record on the path of a finding."""
    members = [
        ClusterMember(name, ReferenceNode(reference(profile_named(name)), EVERYTHING), reference(profile_named(name)))
        for name in brokers
    ]
    try:
        path = finding_path(finding, [member.model for member in members], profile_named("4.3.1"))
    except UsageError:
        return False
    return "LOST" in finding_text(play_cluster(members, [path.path]))


def _span(some: Sequence[str], names: Sequence[str]) -> str:
    if len(some) in (0, len(names)):
        return "all" if some else "none"
    return ", ".join(some)


def page(measures: Sequence[tuple[Pair, Sequence[Mix]]], same: Sequence[Pair], findings: Sequence[str], walks: int) -> str:
    """Return the text of the page."""
    own = [name for pair, alike in measures for name in own_of(alike)]
    verdict = (
        "No mixture breaks what neither of its releases breaks alone."
        if not own
        else f"Of mixtures alone: {', '.join(own)}."
    )
    command = f"`python -m validation.upgrades --walks {walks}`"
    lines = [
        "# What an upgrade risks",
        "",
        f"Made by {command}.",
        verdict,
        "",
        "## Neighbouring releases",
        "",
        f"{walks:,} random walks of three brokers per mixture, {STEPS} steps each, from where an earlier one ended; and the",
        f"whole graph of two brokers, {GRAPH.max_epoch + 1} leader epochs, one record. F1, F2 are repaired if both have it.",
        "`-`: every invariant holds; `graph -`: there, not walked. Neither",
        "has batches of several records, clocks, incarnations, or the high watermark of a diverging response.",
        "",
        "| releases | brokers differ in | earlier alone | later alone | one later, two earlier | one earlier, two later |",
        "|---|---|---|---|---|---|",
    ]
    for pair, alike in measures:
        lines.append(f"| {pair.earlier}, {pair.later} | {_differ(pair)} | {' | '.join(map(_cell, alike))} |")
    lines += [
        "",
        f"Not walked, for what differs made no difference in {APART:,} states:",
        "",
        *(f"* {pair.earlier}, {pair.later}: {_differ(pair)}" for pair in same),
        "",
        "The brokers of all other neighbours do the same; [kafka-releases.md](kafka-releases.md) has what controllers do.",
        "",
        "## Findings of brokers",
        "",
        "The run of each finding: which releases lose the record alone, which as broker 1 of the run among repaired",
        "brokers, and which as all others beside a repaired one. On real brokers:",
        "`tidegauge drive --cluster 3.9.1 4.3.1 4.3.1 --finding F2`.",
        "",
        "| finding | all of the release | broker 1 alone is | all but broker 1 are |",
        "|---|---|---|---|",
        *findings,
        "",
        "So one broker with a finding is enough.",
    ]
    return "\n".join([*lines, ""])


def own_of(alike: Sequence[Mix]) -> list[str]:
    """Return what mixtures break and neither release alone does: the invariants, with the mixture."""
    earlier, later, *mixed = alike
    alone = _broken(earlier) | _broken(later)
    return [f"{name} in {' '.join(mix.brokers)}" for mix in mixed for name in sorted(_broken(mix) - alone)]


def _differ(pair: Pair) -> str:
    return ", ".join(f"`{name}` {before} -> {after}" for name, before, after in pair.differ)


def _broken(mix: Mix) -> set[str]:
    return {*(mix.walked or ()), *filter(None, [mix.graph.partition(" ")[0]])}


def _cell(mix: Mix) -> str:
    broken = [f"{name} on {count}" for name, count in sorted((mix.walked or {}).items())]
    return "; ".join([*broken, *([f"graph: {mix.graph}"] if mix.graph else [])]) or (
        "-" if mix.walked is not None else "graph -"
    )


def main(words: Sequence[str]) -> int:
    """Measure all pairs, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m validation.upgrades", description="make docs/upgrades.md")
    parser.add_argument("--walks", type=int, default=BLOCK, help="of each mixture")
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--kept", type=Path, help="a file of blocks of walks that are made, and with their runs that break")
    parser.add_argument("--print", action="store_true", help="print the page, and write nothing")
    args = parser.parse_args(words)
    names = releases(kind=BROKER)
    listed = pairs(names, broker_switches())
    apart = [pair for pair in listed if is_distinct(pair)]
    with workers(args.processes) as spread:
        measures = measured(apart, args.walks, spread, args.kept)
    text = page(measures, [pair for pair in listed if pair not in apart], list(finding_rows(names)), args.walks)
    if args.print:
        print(text, end="")
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
