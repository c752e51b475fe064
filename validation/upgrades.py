"""`python -m validation.upgrades` makes docs/upgrades.md: what neighbouring releases do side by side in one cluster.

Rules of this file

1. Neighbours are releases of which transcripts are shipped; of two that do the same in a broker one is left out.
2. Each pair is looked at both ways: one broker of the later release among two of the earlier, and the other way round. The
   walks begin with the first broker as leader, which is the one that is alone.
3. F2 is in every release, so it is repaired in all of them here: what is left is the pair's.
4. A broken invariant is the mixture's own if neither release alone breaks it on as many walks of the same seed.
"""

import argparse
import random
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import partial
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
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Walker, find_violation
from tidegauge.impl.profiles import Profile, recording_reads, switch_text
from tidegauge.impl.releases import profile_named, profiles_named
from tidegauge.traces.from_model.impl_walks import OFTEN, RARE
from tidegauge.util.errors import UsageError
from tidegauge.util.workers import workers

PAGE = Path(__file__).parents[1] / "docs" / "upgrades.md"
GRAPH = Bounds(brokers=2, max_log=1, max_epoch=2, max_crashes=0)
WALKED = Bounds(brokers=3, max_log=8, max_epoch=8, max_crashes=2, max_fetch=2, max_waiting=2, min_insync_replicas=2)
WALKS, STEPS, SEED = 100, 120, 1
REPAIRED = "+keeps_remote_leo=off"
BLIND = "No release breaks one alone either, not even those with F1: so few steps do not see it. Its run below does."

FORGET = 1000
"""Walks after which the walker's cache of values is dropped."""

PLACES = {"F1": 2, "F2": 3, "F3": 3}
"""The brokers that a finding takes."""


class Pair(NamedTuple):
    """Two neighbours, and the switches in which their brokers differ: name, earlier value, later value."""

    earlier: str
    later: str
    differ: tuple[tuple[str, str, str], ...]


class Mix(NamedTuple):
    """The releases of a cluster's brokers, and what its walks and its graph broke: invariants, each on how many walks."""

    brokers: tuple[str, ...]
    walked: tuple[tuple[str, int], ...]
    graph: str


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


def cluster_name(brokers: Sequence[str]) -> str:
    """Return the name of a cluster's profile, with F2 repaired, and ELR off as the metadata version is the earlier one's."""
    return ",".join(f"{node}={release}{REPAIRED}+elr=off" for node, release in enumerate(brokers, 1))


def measured(brokers: tuple[str, ...], walks: int, seed: int) -> Mix:
    """Walk a cluster, and search the graph of its first two brokers."""
    walked = _walked(profiles_named(cluster_name(brokers), range(1, len(brokers) + 1)), walks, seed)
    two = profiles_named(cluster_name(brokers[:2]), (1, 2))
    counterexample = find_violation(GRAPH, two)
    graph = (
        "" if counterexample is None else f"{counterexample.violation.invariant} after {len(counterexample.labels)} steps"
    )
    return Mix(brokers, tuple(sorted(walked.items())), graph)


def _walked(profile: object, walks: int, seed: int) -> Counter[str]:
    """Return on how many walks each invariant breaks first."""
    broken: Counter[str] = Counter()
    walker: Walker | None = None
    for number in range(walks):
        if walker is None or number % FORGET == 0:
            walker = Walker(WALKED, profile)  # type: ignore[arg-type]
        rng, cluster = random.Random(f"{seed}/{number}"), walker.start
        for _ in range(STEPS):
            enabled = walker.transitions(cluster)
            if not enabled:
                break
            weights = [1 if transition.label[0] in RARE else OFTEN for transition in enabled]
            cluster = walker.take(cluster, rng.choices(enabled, weights)[0])
            violation = walker.violation(cluster)
            if violation is not None:
                broken[violation.invariant] += 1
                break
    return broken


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


def page(measures: Sequence[tuple[Pair, Sequence[Mix]]], findings: Sequence[str], walks: int, seed: int) -> str:
    """Return the text of the page."""
    own = [name for pair, alike in measures for name in own_of(alike)]
    verdict = (
        "No mixture breaks what neither of its releases breaks alone."
        if not own
        else f"Of mixtures alone: {', '.join(own)}."
    )
    blind = not any(mix.walked or mix.graph for _, alike in measures for mix in alike)
    command = f"`python -m validation.upgrades --walks {walks} --seed {seed}`"
    lines = [
        "# What an upgrade risks",
        "",
        f"Made by {command}. While a cluster is upgraded, brokers of two releases",
        f"share partitions. {verdict}",
        "",
        "## Neighbouring releases",
        "",
        f"{walks:,} random walks of three brokers, {STEPS} steps each, with F2 repaired, for every release has it; and the",
        f"whole graph of two brokers, {GRAPH.max_epoch + 1} leader epochs, one record. `-`: every invariant holds. Neither",
        "has batches of several records, clocks, incarnations, or the high watermark of a diverging response.",
        "",
        "| releases | brokers differ in | earlier alone | later alone | one later, two earlier | one earlier, two later |",
        "|---|---|---|---|---|---|",
    ]
    for pair, alike in measures:
        differ = ", ".join(f"`{name}` {before} -> {after}" for name, before, after in pair.differ)
        lines.append(f"| {pair.earlier}, {pair.later} | {differ} | {' | '.join(map(_cell, alike))} |")
    lines += [
        "",
        *([BLIND, ""] if blind else []),
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
        "So one broker that has a finding is enough, whatever the others are; it is gone with the last of them.",
    ]
    return "\n".join([*lines, ""])


def own_of(alike: Sequence[Mix]) -> list[str]:
    """Return what mixtures break and neither release alone does: the invariants, with the mixture."""
    earlier, later, *mixed = alike
    alone = {name for mix in (earlier, later) for name, _ in mix.walked} | {
        mix.graph.partition(" ")[0] for mix in (earlier, later)
    }
    return [
        f"{name} in {' '.join(mix.brokers)}"
        for mix in mixed
        for name in [*(name for name, _ in mix.walked), *filter(None, [mix.graph.partition(" ")[0]])]
        if name not in alone
    ]


def _cell(mix: Mix) -> str:
    walked = [f"{name} on {count}" for name, count in mix.walked]
    return "; ".join([*walked, *([f"graph: {mix.graph}"] if mix.graph else [])]) or "-"


def main(words: Sequence[str]) -> int:
    """Measure all pairs, and write the page."""
    parser = argparse.ArgumentParser(prog="python -m validation.upgrades", description="make docs/upgrades.md")
    parser.add_argument("--walks", type=int, default=WALKS)
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--processes", type=int, default=1)
    parser.add_argument("--print", action="store_true", help="print the page, and write nothing")
    args = parser.parse_args(words)
    names = releases(kind=BROKER)
    listed = pairs(names, broker_switches())
    clusters = list(dict.fromkeys(brokers for pair in listed for brokers in mixes(pair)))
    with workers(args.processes) as spread:
        done = spread(partial(measured, walks=args.walks, seed=args.seed), clusters)
        measures = dict(zip(clusters, done, strict=True))
    text = page(
        [(pair, [measures[brokers] for brokers in mixes(pair)]) for pair in listed],
        list(finding_rows(names)),
        args.walks,
        args.seed,
    )
    if args.print:
        print(text, end="")
    else:
        PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
