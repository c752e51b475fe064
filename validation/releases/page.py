"""`python -m validation.releases.page` makes docs/kafka-releases.md, which release shows which bug, from the shipped
transcripts; with releases named it first plays those, on unmodified brokers and controllers, and records them anew.

Rules of this file

1. A release shows a bug on a path where the reference without that bug does something else than the broker did.
2. Where the reference reads none of a bug's switches, it does the same without it: such a path is not played.
3. A release must do what its profile says, on all of its paths. Otherwise the command fails.
4. Where releases are named, the columns of transcripts that come out unchanged are kept. Without a name every column is
   made anew, as it has to be when the reference has changed.
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from operator import call
from pathlib import Path

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.known_bugs import broker_findings
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_process.builds import build_of
from tidegauge.drive.paths.scenarios import ROUNDED, named_scenarios
from tidegauge.drive.paths.selection import cases_for
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.reference_interface import Finding
from tidegauge.drive.runner.run import run, text_of
from tidegauge.drive.runner.transcript import (
    BROKER,
    CONTROLLER,
    FOLDER,
    Recorder,
    TranscriptNode,
    place_of,
    places,
    profile_of,
    read,
    releases,
    write,
)
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, parse_release, profile_named
from tidegauge.util.errors import TidegaugeError
from tidegauge.util.workers import workers
from validation.releases import controllers
from validation.releases.columns import Column, Columns, rows, table, tables
from validation.releases.switches_read import switches_read

GRAPHS = ("two", "crash", "starts", "acks", "waits", "both", "sessions", "session_starts", "session_waits", "isr", "three")
SCENARIOS = ("F1", "F2", "F3", ROUNDED)
WALKS, SEED = 200, 1
PARTS = (*GRAPHS, "walks", "scenarios")
"""The parts that a release is taken through: all, unless some are named."""

PAGE = Path(__file__).resolve().parents[2] / "docs" / "kafka-releases.md"
HEAD = """# The bugs of each release of Kafka

The suite [drove](drive.md#an-unmodified-kafka-broker) an unmodified broker of each release through the local steps of the
graphs {graphs}, through {walks} walks (seed {seed}), and through the scenarios {scenarios} ([findings](findings.md)). Each
release has the graphs of its own profile, so the numbers of paths differ. `./run conformance` compares the
[recordings](../tidegauge/drive/transcripts) with the reference; `./run kafka` records them anew, and
`python -m validation.releases.page` makes this page from them.

A number counts the paths on which a release shows a bug: the reference without the bug reports something else there. An
empty field means that the release does not have the bug, by its profile and on all paths.
"""
CONTROLLERS = """## Their controllers

The suite [drove](drive.md#an-unmodified-kafka-controller) each controller through the scenarios of
[F4 to F13](findings.md#the-controller-f4-to-f13), through every step of the graphs {graphs}, and through {walks} walks (seed
{seed}). F11 has no scenario here, because it needs brokers with logs; its row counts the paths on which min.insync.replicas
was raised and the leader kept its epoch.

A number counts the paths on which a controller differs from the reference without the finding. A finding with a scenario is
counted if its scenario shows it: before 4.3 a reversed reassignment (F7) leaves the same lists, and completes.
"""


def paths_that_show(finding: Finding, node: TranscriptNode[BrokerCase], reads: Mapping[BrokerCase, frozenset[str]]) -> int:
    """Return on how many paths a broker differs from the reference without a bug. `reads`: the switches read on each."""
    without = profile_of(node).switched(finding.right)
    # On all other paths the reference does the same with and without the bug (rule 2).
    cases = [case for case in node.cases if reads[case] & finding.right.keys()]
    return len(play(node, cases, reference(without)).differences)


def column(place: Path) -> Column:
    """Return a broker's column."""
    node = read(place, BROKER_FORMAT)
    profile, played = profile_of(node), play(node, node.cases, reference(profile_of(node)))
    reads = dict(zip(node.cases, switches_read(node.cases, profile), strict=True))
    return {
        "paths": f"{played.cases:,}",
        "steps": f"{played.steps:,}",
        "paths that differ from its own profile": f"{len(played.differences):,}",
        **{one.name: paths_that_show(one, node, reads) if one.is_in(profile) else None for one in broker_findings()},
    }


def page(folder: Path, same: Collection[Path] = ()) -> str:
    """Return the whole page, brokers and controllers. The columns of the transcripts in `same` are kept from the page."""
    old_columns = tables(PAGE.read_text(encoding="utf-8")) if same else [{}, {}]

    def made(kind: str, make_column: Callable[[Path], Column], kept_columns: Columns) -> list[list[str]]:
        found = dict(zip(releases(folder, kind), places(folder, kind), strict=True))
        return rows(
            make_column, found, {release: kept_columns[release] for release in kept_columns if found.get(release) in same}
        )

    head = HEAD.format(graphs=", ".join(GRAPHS), walks=WALKS, seed=SEED, scenarios=", ".join(SCENARIOS))
    ours = made(BROKER, column, old_columns[0])
    says = {finding.name: finding.says for finding in broker_findings()}
    sentences = [f"* **{row[0]}** {says[row[0]]}" for row in ours if says.get(row[0])]
    graphs = ", ".join(controllers.GRAPHS)
    second = CONTROLLERS.format(graphs=graphs, walks=controllers.WALKS, seed=controllers.SEED)
    theirs = made(CONTROLLER, controllers.column, old_columns[1])
    notes = controllers.sentences(theirs)
    return "\n".join((head, table(ours), "", *sentences, "", second, table(theirs), "", *notes, ""))


def record(release: str, jars: Path | None, folder: Path, parts: Sequence[str]) -> tuple[bool, str]:
    """Play a release on an unmodified broker and record it; return whether it follows its profile, and a text.

    If only some parts are played, the recordings of the others are kept, except paths on which the broker differed, so
    that the file is as if all had been played.
    """
    profile, place = profile_named(f"{RELEASE}{release}"), place_of(release, folder)
    began = time.monotonic()
    with KafkaNode(build_of(release, jars)) as node:
        cases, coverage = _cases_of(parts, node.capabilities, profile)
        all_of_them = set(parts) == set(PARTS)
        # In the order of a full recording, so that the file does not depend on which parts were played when.
        whole = cases if all_of_them else _cases_of(PARTS, node.capabilities, profile)[0]
        recorder = Recorder(cases)
        shown = run(node, cases, reference(profile), coverage, recorder, log_lines=node.log_lines)
        before = () if all_of_them else read(place, BROKER_FORMAT).recorded()
        recorded = {one.case: one for one in (*before, *recorder.recorded())}
        write(place, BROKER_FORMAT, node.capabilities, profile.name, [recorded[one] for one in whole if one in recorded])
    return not shown.played.differences, f"{text_of(shown)} ({time.monotonic() - began:.0f} s)"


def _cases_of(parts: Sequence[str], capabilities: Capabilities, profile: Profile) -> tuple[list[BrokerCase], list[str]]:
    """Return the paths of some parts, and their coverage."""
    scenarios = SCENARIOS if "scenarios" in parts else ()
    found = [one for name in scenarios for one in named_scenarios(name, profile, capabilities)]
    return cases_for(
        capabilities,
        profile,
        graphs=[name for name in GRAPHS if name in parts],
        walks=WALKS if "walks" in parts else 0,
        seed=SEED,
        scenarios={one.name: one.case for one in found},
    )


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> int:
    """Record the releases that are named, then make the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("release", nargs="*", help="releases to play on unmodified brokers and controllers")
    parser.add_argument(
        "--jars", type=Path, help="a folder with a folder of jars per release; by default Maven fetches them"
    )
    parser.add_argument(
        "--only", action="append", choices=PARTS, help="play only this part, on brokers, and keep the other recordings"
    )
    parser.add_argument(
        "--folder", type=Path, default=FOLDER, help="where the transcripts are (default: those that are shipped)"
    )
    args = parser.parse_args()
    jars = {release: args.jars and args.jars / release for release in args.release}
    asked: list[Callable[[], tuple[bool, str]]] = [
        partial(record, release, jars[release], args.folder, args.only or PARTS) for release in args.release
    ]
    if not args.only:
        newer = (release for release in args.release if parse_release(release) >= controllers.FIRST)
        asked += [partial(controllers.record, release, jars[release], args.folder) for release in newer]
    does_as_it_should = []
    before = _recorded(args.folder) if args.release else {}
    try:
        with workers(os.cpu_count() or 1) as side_by_side:
            for does, says in side_by_side(call, asked):
                _say(says)
                does_as_it_should.append(does)
    except TidegaugeError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    same = [place for place, recorded in _recorded(args.folder).items() if before.get(place) == recorded]
    PAGE.write_text(page(args.folder, same), encoding="utf-8")
    _say(f"{PAGE}: written" + (f"; {len(same)} columns are kept, since their transcripts are unchanged" if same else ""))
    return 0 if all(does_as_it_should) else 1


def _recorded(folder: Path) -> dict[Path, bytes]:
    """Read every transcript; its bytes depend only on what was done."""
    return {place: place.read_bytes() for kind in (BROKER, CONTROLLER) for place in places(folder, kind)}


if __name__ == "__main__":
    sys.exit(main())
