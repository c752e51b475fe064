"""`python -m validation.metamorphic [DIRECTORY...]`: every case judged, and the table (`cases.py`)."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.capture import FOLDER
from tidegauge.util.workers import workers
from validation.metamorphic.cases import (
    MIXED,
    TRANSFORMATIONS,
    Outcome,
    captures,
    cases,
    cases_of_kinds,
    outcome,
    transformed,
    written,
)
from validation.metamorphic.stories import (
    captures_at_info,
    contradictions_of,
    expected_losses,
    missed,
    story_cases,
    unpacked,
)
from validation.metamorphic.stories import transformed as transformed_story
from validation.metamorphic.stories import written as lay_out

PROCESSES = 2
CASES = 2000
SHOWN, PROGRESS = 4, 250
"""Contradictions that are shown of a case; after how many cases a line says how far it is."""


@dataclass
class Count:
    """The outcomes of the cases of one transformation."""

    healthy: Counter[Verdict]
    broken: Counter[Verdict]
    found: int = 0
    wrong: int = 0

    def add(self, outcome: Outcome) -> None:
        """Count one outcome."""
        (self.broken if outcome.fails else self.healthy)[outcome.verdict] += 1
        self.found += outcome.still_fails
        self.wrong += outcome.wrong

    def row(self, name: str) -> str:
        """Return the line of the table."""
        healthy, broken = (
            f"{each[Verdict.PASS]:>6} {each[Verdict.INCONCLUSIVE] + each[Verdict.SUITE_ERROR]:>12} {each[Verdict.FAIL]:>5}"
            for each in (self.healthy, self.broken)
        )
        return f"{name:<42} |{healthy} |{broken} {self.found:>5} | {self.wrong:>5}"


HEAD = f"{'':<42} |{'healthy: PASS':>13} {'INC.':>5} {'FAIL':>5} |{'broken: PASS':>12} {'INC.':>6} {'FAIL':>5} found | wrong"


def compare_stories(chosen: argparse.Namespace) -> int:
    """Compare the stories of whole captures with what was lost, and those of cases with them; 1 when one is wrong."""
    wrong = 0
    with unpacked() as place:
        directories = [place, *chosen.directories]
        folders, losses = captures_at_info(directories), expected_losses(directories)
        known = [one for one in folders if one.name in losses]
        print(f"{len(folders)} captures, {sum(bool(losses.get(one.name)) for one in folders)} of {len(known)} with losses")
        for folder in folders:
            wrong += len(found := missed(folder, losses[folder.name]) if folder.name in losses else [])
            print(*(f"{folder.name}: {one}" for one in found), sep="\n", end="\n" if found else "")
        numbered = [case for case in story_cases(folders, chosen.cases, chosen.seed) if chosen.only in (None, case.number)]
        show_drawn(case.capture for case in numbered)
        if chosen.keep is not None:
            for case in numbered:
                lay_out(transformed_story(case, chosen.seed), case.steps, chosen.keep)
        with workers(chosen.processes) as side_by_side:
            outcomes = side_by_side(partial(contradictions_of, seed=chosen.seed), numbered, chunksize=8)
            for done, (case, found) in enumerate(zip(numbered, outcomes, strict=True), start=1):
                wrong += bool(found)
                if found:
                    print(case, *found[:SHOWN], sep="\n  ", flush=True)
                if done % PROGRESS == 0:
                    print(f"{done:,} cases, {wrong} wrong", flush=True)
    print(f"{len(numbered):,} cases, {wrong} wrong")
    return 1 if wrong else 0


def show_drawn(captures_drawn: Iterable[Path]) -> None:
    """Print how often each capture was drawn; those in the folder of a release are called by it, too."""
    names = Counter("/".join(path.parts[-2 if path.parent.name[:1].isdigit() else -1 :]) for path in captures_drawn)
    print("drawn:", ", ".join(f"{name} {times}" for name, times in names.most_common()), flush=True)


def main(arguments: Sequence[str]) -> int:
    """Judge every case and print the table; 1 when an outcome is wrong."""
    parser = argparse.ArgumentParser(description="judge captures after losses, repetitions and other layouts of their logs")
    parser.add_argument("directories", nargs="*", type=Path, default=[FOLDER])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--mixtures", action="store_true", help="mix nodes, clusters and other programs' logs only")
    parser.add_argument("--stories", action="store_true", help="tell the stories of INFO logs, and judge nothing")
    parser.add_argument("--kinds", action="store_true", help="lose lines of one kind; each kind of each capture in turn")
    parser.add_argument("--shares", type=int, default=1, help="judge the logs in so many shares, too, and compare")
    parser.add_argument("--processes", type=int, default=PROCESSES)
    parser.add_argument("--only", type=int, help="run only the case of this number")
    parser.add_argument("--keep", type=Path, help="with --only: write its logs to this folder")
    chosen = parser.parse_args(arguments)
    if chosen.stories:
        return compare_stories(chosen)
    fails_by_capture = captures(chosen.directories)
    numbered = list((cases_of_kinds if chosen.kinds else cases)(fails_by_capture, chosen.cases, chosen.seed))
    if chosen.mixtures:
        numbered = list(cases(fails_by_capture, chosen.cases, chosen.seed, MIXED))
    if chosen.only is not None:
        numbered = [case for case in numbered if case.number == chosen.only]
    if chosen.keep is not None:
        for case in numbered:
            written(transformed(case, chosen.seed), case, chosen.keep)
    names = {step for case in numbered for step in case.steps}
    print(f"seed {chosen.seed}: {len(numbered):,} cases of {len(fails_by_capture)} captures, {len(names)} transformations")
    show_drawn(case.capture for case in numbered)
    counts: dict[str, Count] = {}
    total = Count(Counter(), Counter())
    with workers(chosen.processes) as side_by_side:
        outcomes = side_by_side(partial(outcome, seed=chosen.seed, shares=chosen.shares), numbered, chunksize=4)
        for done, one in enumerate(outcomes, start=1):
            name = one.case.steps[0] if len(one.case.steps) == 1 else "pairs"
            counts.setdefault(name, Count(Counter(), Counter())).add(one)
            total.add(one)
            if one.wrong:
                print(one, flush=True)
            if done % PROGRESS == 0:
                print(f"{done:,} cases, {total.wrong} wrong", flush=True)
    print(HEAD)
    for name in sorted(counts) if chosen.kinds else sorted(counts, key=[*TRANSFORMATIONS, "pairs"].index):
        print(counts[name].row(name))
    print(total.row("all"))
    return 1 if total.wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
