"""What `tidegauge check` and its story say of the kept logs of a cluster, and whether it is right.

Rules of this file

1. A story is told twice, of the whole logs and of what a broker at INFO had written of them; the truth is the same for both.
2. A record that is lost lies within a loss of its partition, or the story says that it does not know of that partition.
   Where clients lost nothing, nothing committed is lost: told as committed, it is to be looked at. Records that nobody
   acknowledged may be lost anywhere.
"""

import json
import re
import subprocess
import tarfile
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from tidegauge.story.losses import Loss
from tidegauge.story.sentences import undecided_partitions
from tidegauge.story.story import Story, story_of
from tidegauge.util.python_processes import python_command
from validation.metamorphic.log_files import is_at_info
from validation.real_clusters.one_partition import lines_of

PACKED, UNPACKED = "logs.tar.xz", "logs"
CHECK_SECONDS = 900


class Rightness(StrEnum):
    """Whether a verdict is right, given the truth."""

    RIGHT = "right"
    WRONG_FAIL = "wrong FAIL"
    UNTRUE_GAP = "gap that is none"
    BAD = "no verdict"
    WRONG_STORY = "look: the story differs from the truth"
    UNKNOWN = "look: the truth is a loss"
    KNOWN_BUG = "look: a bug of Kafka that was mended"


@dataclass(frozen=True)
class Judgement:
    """The verdict on one directory of logs. `report` is what `check --json` printed, {} if it printed none."""

    verdict: str
    report: Mapping[str, Any]
    output: str = ""

    @property
    def failures(self) -> dict[str, int]:
        """Rule -> how often it failed."""
        return {rule["rule"]: rule["failed"] for rule in self.report.get("rules", ()) if rule["failed"]}

    @property
    def missing(self) -> list[str]:
        """What the reader says is not there."""
        return [text for source in self.report.get("parts", ()) for text in source["missing"]]

    @property
    def coverage(self) -> list[str]:
        """How much of each node is known, but for those that are known wholly."""
        covered = [text for source in self.report.get("parts", ()) for text in source["covered"]]
        return [text for text in covered if not text.endswith(" 100%")]

    @property
    def undecided(self) -> dict[str, int]:
        """Rule -> how often it was not decided."""
        return {rule["rule"]: rule["undecided"] for rule in self.report.get("rules", ()) if rule["undecided"]}

    @property
    def signature(self) -> str:
        """What is wrong, without numbers and places: equal for runs that go wrong in the same way."""
        texts = dict.fromkeys(_PLACE.sub("#", text) for text in self.missing if not text.endswith("more gaps"))
        parts = [" ".join(self.failures), *texts]
        return "; ".join(part for part in parts if part) or self.output.strip().rpartition("\n")[2][:200]

    @property
    def looks_like_bugs(self) -> bool:
        """Whether every rule that failed looks like a bug of Kafka's own tracker: an older release may have it."""
        explained = {
            one["rule"]
            for one in self.report.get("explanations", ())
            if any(known["bug"].startswith("KAFKA-") for known in one["looks_like"])
        }
        return bool(self.failures) and self.failures.keys() <= explained

    def rightness(self, forbidden: list[str]) -> Rightness:
        """Compare with the truth: nothing went wrong in the cluster but what is `forbidden`."""
        if forbidden:
            return Rightness.UNKNOWN
        if self.verdict == "PASS":
            return Rightness.RIGHT
        if self.verdict == "FAIL":
            return Rightness.KNOWN_BUG if self.looks_like_bugs else Rightness.WRONG_FAIL
        return Rightness.UNTRUE_GAP if self.verdict == "INCONCLUSIVE" else Rightness.BAD


_PLACE = re.compile(r"[^\s(]+\.log[\w.-]*:\d+|\b\d+(?::\d+)*\b")


def judged(logs: Path) -> Judgement:
    """Judge a directory of logs in a process of its own."""
    command = python_command("tidegauge", "check", str(logs), "--json", "--quiet", "--processes", "1")
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=CHECK_SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return Judgement("TIMEOUT", {}, f"not done after {CHECK_SECONDS} s")
    try:
        report = json.loads(done.stdout)
    except ValueError:
        return Judgement(f"EXIT {done.returncode}", {}, done.stdout + done.stderr)
    return Judgement(report["verdict"], report)


# The story


def write_at_info(logs: Path, folder: Path) -> None:
    """Write to `folder` what brokers and controllers that log at INFO would have written of `logs`; they log no request."""
    for path in sorted(path for path in logs.rglob("*.log*") if path.is_file() and "request.log" not in path.name):
        written = folder / path.relative_to(logs).with_name(path.name.removesuffix(".gz"))
        written.parent.mkdir(parents=True, exist_ok=True)
        with written.open("w", encoding="utf-8") as file:
            file.writelines(line for line in lines_of(path) if is_at_info(line))


def story_contradictions(logs: Path, lost: Iterable[tuple[str, int]]) -> list[str]:
    """Return where the stories of these logs differ from what clients lost: partition and offset of each record."""
    records = list(lost)
    with tempfile.TemporaryDirectory(prefix="tidegauge-info-") as folder:
        write_at_info(logs, Path(folder))
        stories = {"the logs": story_of([logs]), "the logs at INFO": story_of([Path(folder)])}
    return [f"{text} ({name})" for name, story in stories.items() for text in contradictions(story, records)]


def contradictions(story: Story, lost: Iterable[tuple[str, int]]) -> Iterator[str]:
    """Yield what the losses of a story leave out of what clients lost, and what they tell beyond it (rule 2)."""
    undecided = undecided_partitions(story)
    records = set(lost)
    for tp, offset in sorted(records):
        if tp not in undecided and not any(loss.partition == tp and _covers(loss, offset) for loss in story.losses):
            yield f"{tp} lost offset {offset}: not told"
    with_losses = {tp for tp, _ in records}
    for loss in story.losses:
        # Clients read no topic of Kafka's own again.
        if loss.committed == "yes" and loss.partition not in with_losses and not loss.partition.startswith("__"):
            yield f"{loss.partition} lost {loss.first} to {loss.end}, it is told, committed: clients lost nothing"


def _covers(loss: Loss, offset: int) -> bool:
    """Return whether a record lies within a loss; one whose size no line gives has no end."""
    return (loss.first or 0) <= offset and (loss.end is None or loss.missing_line is not None or offset < loss.end)


def pack(folder: Path, archive: Path) -> None:
    """Write a folder to a tar.xz whose bytes depend on the content only."""

    def anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
        member.uid = member.gid = member.mtime = 0
        member.uname = member.gname = ""
        return member

    with tarfile.open(archive, "w:xz", preset=6 if archive.name != PACKED else 1) as tar:
        for path in sorted(folder.rglob("*")):
            if path.is_file() and path.stat().st_size:
                tar.add(path, path.relative_to(folder).as_posix(), filter=anonymous)


@contextmanager
def unpacked(archive: Path) -> Iterator[Path]:
    """Unpack an archive for a while."""
    with tempfile.TemporaryDirectory(prefix="tidegauge-logs-") as folder:
        with tarfile.open(archive) as tar:
            tar.extractall(folder, filter="data")
        yield Path(folder)
