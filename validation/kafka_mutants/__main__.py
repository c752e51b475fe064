"""Drives changed brokers and controllers of a release, and writes what the default run sees.

`python -m validation.kafka_mutants` runs all mutants and writes results.json and the table of README.md; with names only
these; with `--show CLASS METHOD` it lists what can be changed in a method. A mutant is driven until a path differs: first
the paths beside the cover, which are few, then a part of the rest, then the rest. One on which nothing differs has been
taken through the whole default run.
"""

import argparse
import json
import os
import subprocess
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.cli.drive import CONTROLLER_WALKS
from tidegauge.drive.broker.reference import reference as broker_reference
from tidegauge.drive.controller.node import ControllerNode
from tidegauge.drive.controller.reference import reference as controller_reference
from tidegauge.drive.controller.walks import OUT_OF_REACH, usual_cases
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_process.builds import KafkaBuild, build_of
from tidegauge.drive.paths.graphs import ON_THE_WIRE
from tidegauge.drive.paths.selection import Choice, cases_beside_covers, chosen_paths
from tidegauge.drive.paths.short_paths import OUT_OF_REACH_IN_KAFKA, refusals
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.reference_interface import Reference
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.util.errors import TidegaugeError, UsageError
from tidegauge.util.java import find_java
from validation.docs.tables import page_with, table
from validation.kafka_mutants.agent import MAIN, ChangedProcesses, built_agent, in_each_jvm

HERE = Path(__file__).parent
LIST, RESULTS, PAGE = HERE / "mutants.toml", HERE / "results.json", HERE / "README.md"
BROKER, CONTROLLER = "broker", "controller"
MAKER = "validation.kafka_mutants"
OUTCOMES = SEEN, NAMED, NOBODY_CAN, NOT_RUN, FAULT, UNSEEN = (
    "seen",
    "named as not seen",
    "nobody can see it",
    "not run",
    "the run fails",
    "**not seen**",
)
PART = 16
"""Every how many of the other paths come before the rest."""

CHUNK, TRIED = 64, 5
"""How many paths are played before a look at their differences, and how many of these are tried to come again."""


class Mutant(NamedTuple):
    """A change to a class, and what makes it hard to see."""

    name: str
    of: str
    kind: str
    says: str
    change: str
    near: str = ""
    """The kind of step at which it is likely to show: paths that end about there are tried first."""
    unseen: str = ""
    """Why the default run says that it does not see this."""
    equivalent: str = ""
    """Why nobody can see it, if so."""

    @property
    def method(self) -> str:
        """Return the class, without its package, and the method."""
        owner, method = self.change.split()[:2]
        # A lambda is named after the method that it is in.
        plain = method.removeprefix("$anonfun$").removeprefix("lambda$").partition("$")[0]
        return f"{owner.rpartition('.')[2]}#{plain}"

    @property
    def is_named(self) -> bool:
        """Return whether the default run says that it does not see such a change of this method."""
        return self.method in {**OUT_OF_REACH_IN_KAFKA, **OUT_OF_REACH}.get(self.unseen, ())


class MutantResult(NamedTuple):
    """What a run saw of a mutant: after how many steps it differs, and where; empty if it did not differ."""

    name: str
    paths: int
    steps: int = 0
    after: str = ""
    fields: tuple[str, ...] = ()
    fault: str = ""


def listed() -> tuple[str, tuple[Mutant, ...]]:
    """Return the release and the mutants of the list."""
    read = tomllib.loads(LIST.read_text(encoding="utf-8"))
    return read["release"], tuple(Mutant(**mutant) for mutant in read["mutant"])


def results() -> dict[str, MutantResult]:
    """Return the committed results, by mutant."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []
    return {row["name"]: MutantResult(**{**row, "fields": tuple(row["fields"])}) for row in rows}


def write(changed: Sequence[MutantResult]) -> None:
    """Write results over those that are there, and the table."""
    kept = {**results(), **{result.name: result for result in changed}}
    rows = [kept[mutant.name]._asdict() for mutant in listed()[1] if mutant.name in kept]
    RESULTS.write_text("[\n" + ",\n".join(json.dumps(row) for row in rows) + "\n]\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with({"mutants": result_table()}, MAKER, page), encoding="utf-8")


def result_table() -> str:
    """Return the committed results as a table: how many mutants of each kind have which outcome."""
    known = results()
    outcomes = Counter(
        (mutant.of, mutant.kind, NOBODY_CAN if mutant.equivalent else _outcome(known.get(mutant.name), mutant.is_named))
        for mutant in listed()[1]
    )
    kinds = sorted({key[:2] for key in outcomes})
    rows = [(*kind, *(str(outcomes[*kind, outcome] or "") for outcome in OUTCOMES)) for kind in kinds]
    return table(("of", "kind", *OUTCOMES), rows)


def _outcome(result: MutantResult | None, is_named: bool) -> str:
    if is_named and (result is None or not result.after):
        return NAMED
    if result is None:
        return NOT_RUN
    if result.fault:
        return FAULT
    return SEEN if result.after else UNSEEN


# Driving mutants. One process is all of them in turn: between two paths another change is put into effect.


def default_parts(role: str, node: Any, profile: Profile) -> Iterator[tuple[Sequence[Any], bool]]:
    """Yield the paths of the default run in the order in which they are tried, and whether only those near a mutant are."""
    if role != BROKER:
        cases = node.possible(usual_cases(profile, node.opening(), walk_count=CONTROLLER_WALKS))
        yield from ((cases, True), (cases, False))
        return
    refused = refusals(profile, node.capabilities)
    yield from ((refused, True), (refused, False))
    telling, _ = cases_beside_covers(node.capabilities, profile, ())
    yield [case for case in telling if case not in refused], False
    covers = chosen_paths(Choice(graphs=ON_THE_WIRE, plays_telling_paths=False), node.capabilities, profile).cases
    others = [case for case in covers if case not in telling]
    yield others[::PART], False
    yield [case for number, case in enumerate(others) if number % PART], False


class MutantRunner:
    """Takes changed processes of a build through the default run: brokers, or controllers."""

    def __init__(self, build: KafkaBuild, role: str, mutants: Sequence[Mutant]) -> None:
        self._build, self._role, self._mutants = build, role, mutants
        self._profile = profile_named(f"{RELEASE}{build.release}")
        self._expected: Reference[Any, Any] = (broker_reference if role == BROKER else controller_reference)(self._profile)
        self._node: Any = None

    def results(self) -> Iterator[MutantResult]:
        """Yield a result for each mutant, when there is one."""
        played = dict.fromkeys(self._mutants, 0)
        with in_each_jvm([mutant.change for mutant in self._mutants]) as processes:
            processes.activate(0)
            self._start()
            try:
                for cases, only_near in default_parts(self._role, self._node, self._profile):
                    if only_near:
                        self._check_unchanged(cases)
                    for number, mutant in enumerate(self._mutants, 1):
                        if mutant not in played:
                            continue
                        tried = [
                            case for case in cases if not only_near or mutant.near in {step[0] for step in case.path[-3:]}
                        ]
                        result = self._drive(processes, number, tried, played[mutant])
                        played[mutant] = result.paths
                        if result.after or result.fault:
                            del played[mutant]
                            yield result
            finally:
                self._node.close()
            for number, mutant in enumerate(self._mutants, 1):
                if number not in processes.applied():
                    raise TidegaugeError(f"{mutant.name}: expected its class to be loaded; seen it not; correct the list")
        for mutant, paths in played.items():
            yield MutantResult(mutant.name, paths)

    def _start(self) -> None:
        self._node = (KafkaNode if self._role == BROKER else ControllerNode)(self._build).__enter__()

    def _check_unchanged(self, cases: Sequence[Any]) -> None:
        # With the agent, and none of its changes: what is seen of a change must be the change's.
        if play(self._node, cases, self._expected).differences:
            raise TidegaugeError("expected no difference without a change; seen one; run tidegauge drive --kafka first")

    def _drive(self, processes: ChangedProcesses, number: int, cases: Sequence[Any], played: int) -> MutantResult:
        """Take a mutant through paths until one differs."""
        mutant = self._mutants[number - 1]
        processes.activate(number)
        try:
            # A process that starts has it from the beginning.
            if not processes.is_active(number):
                self._node.close()
                self._start()
            # Neighbours are alike: each chunk has some of all kinds.
            chunks = -(-len(cases) // CHUNK)
            for first in range(chunks):
                chunk = cases[first::chunks]
                played += len(chunk)
                seen = sorted(play(self._node, chunk, self._expected).differences, key=lambda difference: difference.at)
                for difference in seen[:TRIED]:
                    # One that does not come again is no difference (runner/run.py).
                    case = difference.case._replace(path=difference.case.path[: difference.at])
                    if play(self._node, [case], self._expected).differences:
                        return MutantResult(mutant.name, played, difference.at, difference.after, difference.fields)
        except TidegaugeError as error:
            self._node.close()
            processes.activate(0)
            self._start()
            return MutantResult(mutant.name, played, fault=str(error).partition("\n")[0])
        return MutantResult(mutant.name, played)


def show(build: KafkaBuild, owner: str, method: str) -> int:
    """Print what can be changed in a method."""
    path = os.pathsep.join((str(built_agent()), build.class_path))
    return subprocess.run([str(find_java().path), "-cp", path, MAIN, owner, method], check=False).returncode


def main() -> int:
    """Run the mutants that are named, or all."""
    parser = argparse.ArgumentParser(prog="python -m validation.kafka_mutants", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME")
    parser.add_argument("--show", nargs=2, metavar=("CLASS", "METHOD"))
    args = parser.parse_args()
    release, mutants = listed()
    build = build_of(release)
    if args.show:
        return show(build, *args.show)
    unknown = set(args.names) - {mutant.name for mutant in mutants}
    if unknown:
        raise UsageError(f"kafka_mutants: expected names of {LIST.name}; seen {', '.join(sorted(unknown))}; correct them")
    began = time.monotonic()
    for role in (CONTROLLER, BROKER):
        chosen = [m for m in mutants if m.of == role and not m.equivalent and (not args.names or m.name in args.names)]
        for result in MutantRunner(build, role, chosen).results() if chosen else ():
            seconds = time.monotonic() - began
            where = f", {result.steps} steps, {result.after}: {', '.join(result.fields)}" if result.after else ""
            outcome = f"{_outcome(result, is_named=False)}{where}"
            print(f"{result.name}: {outcome} ({result.paths:,} paths, {seconds:.0f} s) {result.fault}", flush=True)
            write([result])
    return 0


if __name__ == "__main__":
    sys.exit(main())
