"""The short paths of drive/paths/short_paths.py, and the table of unseen suspects in tidegauge/drive/README.md.

`python -m validation.docs.distinguishing` looks for a path for each suspect that has none, and writes the table. A test
compares the table with the paths. `--anew` looks for all of them.
"""

import argparse
import gzip
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from tidegauge.drive.broker.contract import REPORTED, BrokerCase
from tidegauge.drive.broker.reference import BrokerReference, reference
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.kafka_broker.node import CAN
from tidegauge.drive.paths.short_paths import distinguishes, recorded_paths, refusals, switch_of, telling_paths, why_unseen
from tidegauge.drive.paths.unsafe_or_repaired import TELLING
from tidegauge.drive.paths.walks import walks
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.runner.reference_interface import Suspect
from tidegauge.drive.runner.run import shrunk
from tidegauge.impl.profiles import OF_THE_CONTROLLER, SAFE, Profile
from tidegauge.impl.releases import profile_named
from validation.docs.tables import code, page_with, table

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "tidegauge" / "drive" / "paths" / "distinguishing.json.gz"
PAGE = ROOT / "tidegauge" / "drive" / "README.md"
MAKER = "validation.docs.distinguishing"

KAFKA = profile_named("release-4.3.1")
ON_THE_WIRE = Capabilities("Kafka", CAN, frozenset(REPORTED))
"""What an unmodified broker can be given, also without a clock that is moved."""

WALKS, SEED = 1000, 11
SECONDS = 60.0


def new_paths(profile: Profile, names: Sequence[str]) -> Iterator[tuple[str, BrokerCase]]:
    """Yield a shrunk path for each suspect that has none of these names, as far as refusals, repairs and walks have one."""
    right = reference(profile)
    drawn = (*TELLING.values(), *refusals(profile, ON_THE_WIRE), *walks(SEED, WALKS, profile, ON_THE_WIRE))
    cases = [case for case in drawn if right.can_be_given(case, ON_THE_WIRE)]
    for suspect in right.suspects():
        if suspect.name in names or why_unseen(suspect.name) or switch_of(suspect.name) in OF_THE_CONTROLLER:
            continue
        case = next((case for case in cases if distinguishes(case, right, suspect, ON_THE_WIRE.reports)), None)
        if case is not None:
            yield suspect.name, _shortest(case, right, suspect)


def _shortest(case: BrokerCase, right: BrokerReference, suspect: Suspect) -> BrokerCase:
    node = ReferenceNode(right.with_bugs([suspect]), ON_THE_WIRE)
    (difference,) = play(node, [case], right).differences
    short = shrunk(node, difference, right, SECONDS)
    return case if short is None else short.case._replace(name="")


def what_sees() -> str:
    """Return how many suspects a path tells from 4.3.1, and a table of the others with the reason why none does."""
    right, telling = reference(KAFKA), telling_paths(KAFKA, ON_THE_WIRE)
    steps = []
    unseen: dict[str, list[str]] = {}
    for suspect in right.suspects():
        if (case := telling.by_suspect.get(suspect.name)) is not None:
            (difference,) = play(ReferenceNode(right.with_bugs([suspect]), ON_THE_WIRE), [case], right).differences
            steps.append(difference.at)
        elif suspect.name in telling.unseen:
            unseen.setdefault(why_unseen(suspect.name) or "the same in this generation", []).append(suspect.name)
    seen = f"{len(steps)} differ after at most {max(steps)} steps. The others:\n\n"
    return seen + table(("not seen", "because"), [(code(names), why) for why, names in unseen.items()])


def main() -> int:
    """Look for paths and write the file and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--anew", action="store_true", help="look for every path, also where the file has one")
    parser.add_argument("--only-page", action="store_true", help="write the table for the paths that there are")
    args = parser.parse_args()
    paths = dict(recorded_paths()) if FILE.is_file() and not args.anew else {}
    for profile in () if args.only_page else (KAFKA, SAFE):
        for name, case in new_paths(profile, [*paths]):
            sys.stdout.write(f"{name}: {len(case.path)} steps\n")
            sys.stdout.flush()
            paths[name] = case
            write(paths)
    recorded_paths.cache_clear()
    PAGE.write_text(page_with({"distinguishing": what_sees()}, MAKER, PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    return 0


def write(paths: dict[str, BrokerCase]) -> None:
    """Write the paths, in the order of their names; the same paths give the same bytes."""
    recorded = [(name, [*case.opening], case.path) for name, case in sorted(paths.items())]
    lines = "".join(f"{json.dumps(one, separators=(',', ':'))},\n" for one in recorded)
    FILE.write_bytes(gzip.compress(f"[\n{lines.removesuffix(f',{chr(10)}')}\n]\n".encode(), mtime=0))


if __name__ == "__main__":
    sys.exit(main())
