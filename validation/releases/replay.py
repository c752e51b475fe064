"""What was recorded of unmodified brokers and controllers, played again: is it the same each time?

Rules of this file

1. A broker that is driven is the same each time: recorded again, its reports are those of the transcript to the last
   value. What it did otherwise is told as between two releases.
2. Each time is a process of its own. What one leaves behind cannot make the next one alike.
3. Every step of every path is looked at, also one that another path begins with: that it is the same is what is asked.
"""

import argparse
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from tidegauge.drive.broker import between_brokers, transcript
from tidegauge.drive.contract import CaseT, Watch
from tidegauge.drive.controller import between_controllers
from tidegauge.drive.controller import transcript as of_controller
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_process.jars import jars_of
from tidegauge.drive.runner.compare import text_of
from tidegauge.drive.runner.shipped import BROKER, CONTROLLER, FOLDER, place_of
from tidegauge.drive.runner.transcript import NodeT, Recorder
from tidegauge.impl.errors import TidegaugeError, UsageError


class Again(NamedTuple):
    """One time: how many paths were played, and what was otherwise, as text; empty where nothing was."""

    paths: int
    otherwise: str


def to_the_end(cases: Sequence[CaseT], recorder: Recorder[CaseT]) -> Watch:
    """Every step of every order is given, whatever is seen."""
    return lambda number, at, seen: recorder(number, at, seen) and at < len(cases[number].path)


def broker_again(release: str, jars: Path | None, folder: Path) -> Again:
    """Play what is recorded of a broker on a new process of its release."""
    recorded = transcript.read(place_of(release, folder))
    with KafkaNode(release, jars_of(release, jars), always_read=True) as node:
        write = partial(transcript.write, capabilities=node.capabilities, profile=recorded.profile)
        second = _recorded_again(recorded.cases, node.play, write, transcript.read)
    same = second.recorded() == recorded.recorded()
    return Again(len(recorded.cases), "" if same else text_of(between_brokers.compare(recorded, second)))


def controller_again(release: str, jars: Path | None, folder: Path) -> Again:
    """Play what is recorded of a controller on a new process of its release."""
    recorded = of_controller.read(place_of(release, folder, CONTROLLER))
    with ControllerNode(release, jars_of(release, jars)) as node:
        write = partial(of_controller.write, name=node.name, profile=recorded.profile)
        second = _recorded_again(recorded.cases, node.play, write, of_controller.read)
    same = second.recorded() == recorded.recorded()
    return Again(len(recorded.cases), "" if same else text_of(between_controllers.compare(recorded, second)))


def _recorded_again(
    cases: Sequence[CaseT],
    play: Callable[[Sequence[CaseT], Watch], None],
    write: Callable[..., None],
    read: Callable[[Path], NodeT],
) -> NodeT:
    """What is played now, as it reads from a file: a transcript holds less than what was seen."""
    recorder = Recorder(cases)
    play(cases, to_the_end(cases, recorder))
    with TemporaryDirectory() as scratch:
        place = Path(scratch) / "again.gz"
        write(place, recorded=recorder.recorded())
        return read(place)


PLAYED = {BROKER: broker_again, CONTROLLER: controller_again}


def again(release: str, jars: Path | None, folder: Path) -> Iterator[tuple[str, Again]]:
    """Whatever is recorded of a release, its broker first. Raises UsageError where nothing is."""
    kinds = [kind for kind in PLAYED if place_of(release, folder, kind).is_file()]
    if not kinds:
        raise UsageError(f"again: expected a release that is recorded in {folder}; seen {release!r}; record it first")
    for kind in kinds:
        yield kind, PLAYED[kind](release, jars, folder)


def main() -> int:
    """0: the same every time; 1: not; 2: it could not be played."""
    parser = argparse.ArgumentParser(description=__doc__)
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
                for kind, found in again(release, args.jars and args.jars / release, FOLDER):
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
