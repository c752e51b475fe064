"""Plays the recordings of unmodified brokers and controllers again: does the same come out each time?

    python -m validation.releases.replay 4.3.1 --times 3

A driven broker must do the same each time: its reports are those of the transcript to the last value. A difference is
reported as one between two releases.
"""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.contract import CaseT, Watch
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_process.builds import build_of
from tidegauge.drive.runner.compare import compare, text_of
from tidegauge.drive.runner.transcript import BROKER, CONTROLLER, FOLDER, Recorder, place_of, read, write
from tidegauge.util.errors import TidegaugeError, UsageError


class Replay(NamedTuple):
    """One replay: the number of paths, and the differences as text, empty if there are none."""

    paths: int
    otherwise: str


def to_the_end(cases: Sequence[CaseT], recorder: Recorder[CaseT]) -> Watch:
    """Return a watch under which every step of every case is given, whatever is seen."""
    return lambda number, at, seen: recorder(number, at, seen) and at < len(cases[number].path)


FORMATS = {BROKER: BROKER_FORMAT, CONTROLLER: CONTROLLER_FORMAT}


def replay(release: str, kind: str, jars: Path | None, folder: Path) -> Replay:
    """Play what is recorded of a broker or a controller on a new process of its release.

    Each replay is a process of its own: what one leaves behind cannot make the next one the same.
    """
    form: Any = FORMATS[kind]
    recorded = read(place_of(release, folder, kind), form)
    build = build_of(release, jars)
    # `always_read`: also the steps that paths have in common are compared on each path; whether they repeat is the question.
    started: Any = KafkaNode(build, always_read=True) if kind == BROKER else ControllerNode(build)
    with started as node:
        recorder = Recorder(recorded.cases)
        node.play(recorded.cases, to_the_end(recorded.cases, recorder))
        # Through a file, as the recording was: a transcript holds less than the reports that were seen.
        with TemporaryDirectory() as scratch:
            place = Path(scratch) / "again.gz"
            write(place, form, node.capabilities, recorded.profile, recorder.recorded())
            second = read(place, form)
    same = second.recorded() == recorded.recorded()
    return Replay(len(recorded.cases), "" if same else text_of(compare(recorded, second)))


def replays(release: str, jars: Path | None, folder: Path) -> Iterator[tuple[str, Replay]]:
    """Play whatever is recorded of a release, its broker first. Raises UsageError if nothing is."""
    kinds = [kind for kind in FORMATS if place_of(release, folder, kind).is_file()]
    if not kinds:
        raise UsageError(f"replay: expected a release that is recorded in {folder}; seen {release!r}; record it first")
    for kind in kinds:
        yield kind, replay(release, kind, jars, folder)


def main() -> int:
    """Replay the releases that are named; return 0 if all was the same every time, 1 if not, 2 if it could not be played."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("release", nargs="+", help="releases whose transcripts are played again")
    parser.add_argument("--times", type=int, default=1, help="how many times (default 1)")
    parser.add_argument(
        "--jars", type=Path, help="a folder with a folder of jars per release; by default Maven fetches them"
    )
    args = parser.parse_args()
    if args.times < 1:
        parser.error(f"expected --times of 1 or more, seen {args.times}: nothing would be played")
    same = True
    try:
        for number in range(1, args.times + 1):
            for release in args.release:
                began = time.monotonic()
                for kind, found in replays(release, args.jars and args.jars / release, FOLDER):
                    says = found.otherwise or f"{found.paths:,} paths as recorded"
                    sys.stdout.write(f"{release} {kind}, time {number}: {says} ({time.monotonic() - began:.0f} s)\n")
                    sys.stdout.flush()
                    same, began = same and not found.otherwise, time.monotonic()
    except TidegaugeError as problem:
        sys.stderr.write(f"{problem}\n")
        return 2
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
