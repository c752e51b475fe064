"""Puts captures through what happens to logs in practice, and judges the result.

Rules of this file

1. A capture of a healthy cluster, with lines lost or repeated, never fails: what is absent is unknown. A capture that
   shows a broken rule still fails or is inconclusive: it never passes. How often the rule still fails is a figure.
2. A capture is healthy if no rule fails on it by expected.toml, beside the captures or that of the shipped ones.
3. Every case is made from the seed and its number, so that one line of the output makes it again: `--seed S --only N`.
4. A capture is drawn the less often the more lines it has: in the same time, each line of each is in as many cases.
"""

import gzip
import random
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from tidegauge.conformance.checking.check import CheckOptions, check
from tidegauge.conformance.checking.sharded import check_in_shares
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.discovery.writers import CLUSTER_ID
from validation.captures import expectations
from validation.metamorphic.line_kinds import HOW, is_of_a_kind, kinds, lose, loss_of
from validation.metamorphic.log_files import Files
from validation.metamorphic.losses import LOSSES
from validation.metamorphic.mixtures import MIXTURES, halves
from validation.metamorphic.relayouts import RELAYOUTS
from validation.metamorphic.tree import Relayout, Tree, joined, write

SECOND_CLUSTER, HALVES = "interleave a second cluster", "mix: some nodes of two clusters"
OTHER, OTHER_ID = "other-", "T3RoZXJDbHVzdGVyMDAwMg"
LAYOUTS: Mapping[str, Relayout] = {name: relayout for name, relayout in RELAYOUTS.items() if name != "as-it-is"}
TRANSFORMATIONS = (*LOSSES, SECOND_CLUSTER, *LAYOUTS, *MIXTURES, HALVES)
"""Everything that happens to logs, by the name reports use."""
MIXED = (*MIXTURES, HALVES)
"""What mixes logs."""
PAIRS = 0.3
"""The share of cases that go through two transformations."""


@dataclass(frozen=True)
class Case:
    """One capture through one transformation, or two."""

    number: int
    capture: Path
    steps: tuple[str, ...]
    fails: tuple[str, ...]
    """The rules that the whole capture breaks; none if it is healthy."""
    other: Path
    other_fails: tuple[str, ...]
    """The same of the second cluster, if there is one."""


@dataclass(frozen=True)
class Outcome:
    """A verdict: `failing` are the rules, `error` an exception instead; `fails` are the rules that must not pass."""

    case: Case
    fails: tuple[str, ...]
    verdict: Verdict
    exit_code: int
    failing: tuple[str, ...]
    error: str = ""

    @property
    def wrong(self) -> bool:
        """Whether a healthy capture fails, a broken one passes, or the judge raised an exception."""
        if self.error:
            return True
        # Inconclusive is right for both: lost lines may hide a failure, and may hide that there is none.
        return self.verdict is (Verdict.PASS if self.fails else Verdict.FAIL)

    @property
    def still_fails(self) -> bool:
        """Whether one of the rules that the whole capture breaks is still seen broken."""
        return bool(set(self.failing) & set(self.fails))

    def __str__(self) -> str:
        name = f"{self.case.capture.parent.name}/{self.case.capture.name}"
        what = self.error or f"{self.verdict.value} {', '.join(self.failing)}".rstrip()
        return f"case {self.case.number}: {name}, {' + '.join(self.case.steps)}: {what}"


def captures(directories: Sequence[Path]) -> dict[Path, tuple[str, ...]]:
    """Return every capture below the directories with the rules that must fail; captures without an entry are left out.

    A capture that is in two directories, by release and story, counts once.
    """
    found: dict[str, tuple[Path, tuple[str, ...]]] = {}
    for directory in directories:
        expected = expectations(directory)
        for folder in sorted(directory.glob("*/*")):
            name = folder.relative_to(directory).as_posix()
            if folder.is_dir() and name in expected:
                found.setdefault(name, (folder, tuple(expected[name]["fails"])))
    return dict(found.values())


def cases(
    fails_by_capture: Mapping[Path, tuple[str, ...]], count: int, seed: int, names: Sequence[str] = TRANSFORMATIONS
) -> Iterator[Case]:
    """Yield `count` cases: all transformations in turn, some in pairs with a loss, of captures that are drawn (rule 4)."""
    folders = list(fails_by_capture)
    shares = [1 / max(1, sum(map(len, logs(folder).values()))) for folder in folders]
    for number in range(count):
        chosen = random.Random(f"{seed}/{number}")
        step = names[number % len(names)]
        steps = (step, chosen.choice((*LOSSES, SECOND_CLUSTER))) if chosen.random() < PAIRS else (step,)
        folder, other = chosen.choices(folders, shares, k=2)
        fails, other_fails = fails_by_capture[folder], fails_by_capture[other]
        yield Case(number, folder, steps, fails, other, other_fails)


def cases_of_kinds(fails_by_capture: Mapping[Path, tuple[str, ...]], count: int, seed: int) -> Iterator[Case]:
    """Yield `count` cases that lose lines of one kind: all captures, kinds and ways in turn, in an order of the seed."""
    turns = [(folder, loss_of(how, what)) for folder in fails_by_capture for what in kinds(logs(folder)) for how in HOW]
    random.Random(f"{seed}/kinds").shuffle(turns)
    for number in range(count):
        folder, name = turns[number % len(turns)]
        fails = fails_by_capture[folder]
        yield Case(number, folder, (name,), fails, folder, fails)


@cache
def logs(folder: Path) -> Files:
    """Return the text logs of a capture."""
    return {
        path.relative_to(folder).as_posix().removesuffix(".gz"): _text(path).splitlines()
        for path in sorted(folder.glob("*/*.log*"))
        if not path.name.split(".")[0].isdigit() and "__cluster_metadata" not in path.name
    }


def _text(path: Path) -> str:
    raw = path.read_bytes()
    return (gzip.decompress(raw) if path.suffix == ".gz" else raw).decode("utf-8", errors="replace")


def _renamed(cluster: re.Match[str]) -> str:
    return cluster[0].replace(cluster[1], OTHER_ID)


def transformed(case: Case, seed: int) -> Files:
    """Return the lines of a case after its losses; `written` lays them out."""
    chosen = random.Random(f"{seed}/{case.number}/logs")
    files = dict(logs(case.capture))
    # What is lost is lost before it is mixed: an export has no lines as a broker wrote them.
    for step in sorted(case.steps, key=MIXED.__contains__):
        if step == SECOND_CLUSTER:
            # Captures of one laboratory share an id; clusters do not.
            second = {path: [CLUSTER_ID.sub(_renamed, line) for line in lines] for path, lines in logs(case.other).items()}
            files |= {f"{OTHER}{path}": lines for path, lines in second.items()}
        elif step == HALVES:
            files = halves(chosen, files, logs(case.other), OTHER)
        elif step in MIXTURES:
            files = MIXTURES[step](chosen, files)
        elif step in LOSSES and any(files.values()):  # the loss before may have left nothing to lose
            files = LOSSES[step](chosen, files)
        elif is_of_a_kind(step):
            files = lose(step, chosen, files)
    return files


def must_not_pass(case: Case, files: Files) -> tuple[str, ...]:
    """Return the rules that must not pass: those of each cluster of which lines are left."""
    # A cluster without any line left cannot fail: it is not there.
    left = {path.startswith(OTHER) for path, lines in files.items() if lines}
    # A mixture that merges all files loses no line of either.
    left |= {True} if SECOND_CLUSTER in case.steps and any(step in MIXED for step in case.steps) else set()
    return tuple(dict.fromkeys((*(case.fails if False in left else ()), *(case.other_fails if True in left else ()))))


def written(files: Files, case: Case, folder: Path) -> None:
    """Write the logs in their layout, with the checkpoint files beside them."""
    tree: Tree = {path: joined(lines) for path, lines in files.items()}
    nodes = {path.partition("/")[0] for path in files}
    for step in case.steps:
        tree = LAYOUTS[step](tree) if step in LAYOUTS else tree
    beside = {
        checkpoint.relative_to(case.capture).as_posix(): checkpoint.read_bytes()
        for checkpoint in case.capture.glob("*/*checkpoint")
        if checkpoint.parent.name in nodes
    }
    write({**tree, **beside}, folder)


def outcome(case: Case, seed: int, shares: int = 1) -> Outcome:
    """Judge one case; an exception is an outcome, not an end. It is one, too, if so many shares have another verdict."""
    with tempfile.TemporaryDirectory(prefix="metamorphic-") as place:
        folder = Path(place) / case.capture.name
        folder.mkdir()
        files = transformed(case, seed)
        must = must_not_pass(case, files)
        written(files, case, folder)
        try:
            how = CheckOptions(explained=0)
            report = whole = check([folder], how)
            if shares > 1:
                report = check_in_shares(folder, shares, how, map, place)
        except Exception as error:  # whatever it is, it is what the suite is for
            return Outcome(case, must, Verdict.SUITE_ERROR, -1, (), f"{type(error).__name__}: {error}")
    failing = tuple(rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL)
    differs = "" if report.verdict is whole.verdict else f"{report.verdict.value}, and in one share {whole.verdict.value}"
    return Outcome(case, must, report.verdict, report.exit_code, failing, differs)
