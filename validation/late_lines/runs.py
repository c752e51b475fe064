"""Runs of late lines: healthy captures that must stay right, also with early ends, and captures with a fault each."""

import tarfile
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from random import Random

from benchmarks.cluster_logs import Cluster
from tidegauge.conformance.checking.check import CheckOptions, Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.capture import FOLDER
from validation.late_lines.delays import Late, late
from validation.late_lines.early_ends import end_early
from validation.late_lines.faults import FAULTS, Fault
from validation.late_lines.histories import Directory, Walks, merged
from validation.metamorphic.cases import captures, logs
from validation.metamorphic.log_files import Files
from validation.metamorphic.tree import joined, write

SHARES = (0.1, 0.5, 1.0)
"""Of the lines that can be late; drawn for each run."""
PARTITIONS, MEGABYTES, RATES = (4, 8, 16, 40), (0.3, 1.0), (10, 50, 200, 1000)
"""Of a simulated cluster; records a second. Small ones: threads that are silent leave the widest intervals."""
MEMORY = Path("/dev/shm")
"""Where directories are written that are judged once, if it is there."""
HISTORIES, FAULTY = 1000, 100
"""Walks of the reference in one directory, and those with a fault, each of which is judged alone."""


@dataclass(frozen=True)
class Source:
    """A healthy capture; `wide` if it was cut from a cluster of many partitions."""

    folder: Path
    wide: bool

    @property
    def name(self) -> str:
        """Its release and story, or the name of the case."""
        return self.folder.name if self.wide else f"{self.folder.parent.name}/{self.folder.name}"


@dataclass(frozen=True)
class Judged:
    """What was said of a capture: the rules that fail, what is missing, and problems."""

    verdict: Verdict
    failing: tuple[str, ...]
    missing: tuple[str, ...]

    @classmethod
    def from_report(cls, report: Report) -> "Judged":
        """Take from a report what is compared."""
        failing = tuple(rule.rule.id for rule in report.rules if rule.verdict is Verdict.FAIL)
        problems = tuple(str(problem) for problem in report.problems)
        return cls(report.verdict, failing, (*report.missing, *problems))

    def news(self, before: "Judged") -> tuple[str, ...]:
        """Return what is said here, and was not said of the capture as it was."""
        return tuple(one for one in (*self.failing, *self.missing) if one not in (*before.failing, *before.missing))


HEALTHY = Judged(Verdict.PASS, (), ())


@dataclass(frozen=True)
class Run:
    """A capture with late lines, and what was said of it; with a fault, `plain` is what was said without late lines."""

    number: int
    source: Source
    place_only: bool
    made: Late
    before: Judged
    after: Judged
    fault: str = ""
    plain: Judged | None = None

    @property
    def noticed_in_time(self) -> bool:
        """Whether the fault is told where no line is late."""
        return self.plain is not None and (self.plain.verdict, *self.plain.news(self.before)) != (self.before.verdict,)

    @property
    def noticed_late(self) -> bool:
        """Whether the fault is told where lines are late."""
        return (self.after.verdict, *self.after.news(self.before)) != (self.before.verdict,)

    def __str__(self) -> str:
        """Say what is needed to make the run again."""
        how = "placed late" if self.place_only else "late"
        new = "; ".join(self.after.news(self.before)) or "nothing new"
        return f"run {self.number} of {self.source.name}: {self.made.moved} lines {how}, {self.after.verdict.value}: {new}"


def unpacked(wide: Path, to: Path) -> list[Source]:
    """Unpack the kept cases of wide clusters."""
    for packed in sorted(wide.glob("*.tar.xz")):
        with tarfile.open(packed) as archive:
            archive.extractall(to, filter="data")
    return [Source(folder, True) for folder in sorted(to.iterdir())]


def small() -> list[Source]:
    """Return the shipped captures in which no rule fails."""
    return [Source(folder, False) for folder, fails in captures([FOLDER]).items() if not fails]


@cache
def _plain(source: Source) -> Judged:
    return judged(source, logs(source.folder))


def judged(source: Source, files: Files, disks: bool = True) -> Judged:
    """Judge the logs of a capture after a change, with its checkpoint files beside them unless without `disks`."""
    checkpoints = source.folder.glob("*/*checkpoint") if disks else ()
    beside = {path.relative_to(source.folder).as_posix(): path.read_bytes() for path in checkpoints}
    with _in_memory() as place:
        folder = Path(place) / source.folder.name
        write({**{path: joined(lines) for path, lines in files.items()}, **beside}, folder)
        return Judged.from_report(check([folder], CheckOptions(explained=0)))


def _in_memory() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="late-lines-", dir=MEMORY if MEMORY.is_dir() else None)


def simulated_runs(seed: int, count: int, faults: Mapping[str, Fault] | None = None) -> Iterator[tuple[Run, int]]:
    """Yield simulated clusters with late lines, each with its number of partitions; with `faults` in turn, one each."""
    names = list(faults or ())
    for number in range(count):
        random = Random(f"simulated {seed}/{number}")
        partitions, place_only = random.choice(PARTITIONS), random.random() < 0.5
        with _in_memory() as place:
            source = Source(Path(place), True)
            Cluster(source.folder, partitions, random.randrange(1 << 30)).run(
                int(random.uniform(*MEGABYTES) * 1e6), random.choice(RATES)
            )
            files: Files = logs.__wrapped__(source.folder)  # not cached: nobody asks for this folder again
            name = names[number % len(names)] if names else ""
            if faults:
                faulty = faults[name](random, files)
                if faulty is None:
                    continue
                files = faulty
            made = late(random, files, random.choice(SHARES), place_only)
            plain = judged(source, files) if faults else None
            yield Run(number, source, place_only, made, HEALTHY, judged(source, made.files), name, plain), partitions


# Walks of the reference (histories.py). A shared directory tells whether all of its histories are right; only where it is
# not are they judged one by one. A fault is judged alone, so that what is told is told of it.

WALKS = Source(Path("walks"), True)
_walks = Walks()


@dataclass(frozen=True)
class Walked:
    """A directory of walks with late lines: the lines that moved, and what is wrong, by partition."""

    histories: int
    moved: int
    wrong: tuple[str, ...]


def walked(seed: int, number: int, count: int = HISTORIES) -> Walked:
    """Judge a directory of so many walks with late lines."""
    directory, made = late_walks(seed, number, count)
    said = tuple(f"walks {seed}/{number}, {one}" for one in _wrong(directory.common, made))
    return Walked(count, sum(one.moved for one in made.values()), said)


def _wrong(common: Files, made: Mapping[str, Late]) -> Iterator[str]:
    """Yield what is wrong with each of these walks; halves are judged until one is left."""
    after = judged(WALKS, merged((common, *(one.files for one in made.values()))))
    if after == HEALTHY:
        return
    names, half = list(made), len(made) // 2
    parts = [{name: made[name] for name in part} for part in (names[:half], names[half:])] if half else []
    wrong = [one for part in parts for one in _wrong(common, part)]
    yield from wrong or [f"{names[0]} to {names[-1]}: {after}"]


def late_walks(seed: int, number: int, count: int = HISTORIES) -> tuple[Directory, dict[str, Late]]:
    """Return a directory of walks as it is, and each of them with late lines."""
    random = Random(f"walks {seed}/{number}")
    directory = Directory(random, count, _walks.walker())
    share, place_only = random.choice(SHARES), random.random() < 0.5
    return directory, {tp: late(random, files, share, place_only) for tp, files in directory.histories.items()}


def walked_faults(seed: int, number: int, count: int = FAULTY) -> Counter[tuple[str, str]]:
    """Judge walks with a fault each, without late lines and with them; return how many there are and are told, by fault."""
    random, names = Random(f"faulty walks {seed}/{number}"), list(FAULTS)
    directory = Directory(random, count, _walks.walker())
    said: Counter[tuple[str, str]] = Counter()
    for at, files in enumerate(directory.histories.values()):
        name = names[(number * count + at) % len(names)]
        faulty = FAULTS[name](random, files)
        if faulty is None:
            continue
        moved = late(random, faulty, random.choice(SHARES), random.random() < 0.5).files
        plain, after = (judged(WALKS, merged((directory.common, one))) != HEALTHY for one in (faulty, moved))
        said.update({(name, "runs"): 1, (name, "plain"): plain, (name, "late"): after})
    return said


def _drawn(sources: list[Source], seed: int, number: int) -> tuple[Random, Source, bool]:
    random = Random(f"{seed}/{number}")
    return random, random.choice(sources), random.random() < 0.5


def late_files(sources: list[Source], seed: int, number: int) -> Late:
    """Return the logs of a healthy run again."""
    random, source, place_only = _drawn(sources, seed, number)
    return late(random, logs(source.folder), random.choice(SHARES), place_only)


def healthy_runs(sources: list[Source], seed: int, count: int) -> Iterator[Run]:
    """Yield captures by seed, with late lines by seed."""
    for number in range(count):
        _, source, place_only = _drawn(sources, seed, number)
        made = late_files(sources, seed, number)
        yield Run(number, source, place_only, made, _plain(source), judged(source, made.files))


def ended_runs(sources: list[Source], seed: int, count: int) -> Iterator[tuple[int, Source, tuple[str, ...]]]:
    """Yield captures by seed whose brokers end their logs early, each with what is said of it and was not said before."""
    for number in range(count):
        random, source, _ = _drawn(sources, seed, number)
        files = dict(logs(source.folder))
        made = end_early(random, files)
        # 3.x logs to the end.
        if made is None or any("Kafka version: 3." in line for lines in files.values() for line in lines):
            continue
        # The disks have what no line tells.
        before, after = _plain(source), judged(source, made, disks=False)
        yield number, source, () if after.verdict is before.verdict else (after.verdict.value, *after.news(before))


def faulty_runs(sources: list[Source], seed: int, count: int, faults: Mapping[str, object] | None = None) -> Iterator[Run]:
    """Yield captures by seed with one fault each, all faults in turn; those that have no line for it are left out."""
    names = list(FAULTS if faults is None else faults)
    for number in range(count):
        random, source, place_only = _drawn(sources, seed, number)
        name = names[number % len(names)]
        files = FAULTS[name](random, dict(logs(source.folder)))
        if files is None:
            continue
        made = late(random, files, random.choice(SHARES), place_only)
        plain, after = judged(source, files), judged(source, made.files)
        yield Run(number, source, place_only, made, _plain(source), after, name, plain)
