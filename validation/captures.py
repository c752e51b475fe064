"""`python -m validation.captures [DIRECTORY...]`: judges captures of real brokers, by default the shipped ones.

Each must fail exactly the rules that are expected, and the rebuilt replicas must be those on the disks at the end.

Rules of this file

1. expected.toml beside the captures, or that of the shipped ones, says which rules fail. A capture that fails another rule,
   or not that one, is a difference: a false alarm and a missed bug are the same mistake.
2. What the judge rebuilt from the logs (LEO, high watermark, log start, epoch cache of every replica) is compared with
   final_log.json, which another parser read from the segment files after a clean shutdown.
"""

import gzip
import json
import sys
import tarfile
import tempfile
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tidegauge.conformance.checking.check import JudgedBatch, Report, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.engine.judge import ReplicaState
from tidegauge.traces.kafka_logs.capture import FOLDER

EXCERPTS = Path(__file__).parents[1] / "tests" / "kafka_logs" / "wide"
"""Logs of one partition each, cut from real clusters where a verdict was wrong once (validation.real_clusters)."""


@dataclass(frozen=True)
class Captured:
    """One capture judged: `differences` is empty when it shows what it must."""

    name: str
    report: Report
    replicas: int
    differences: tuple[str, ...]

    @property
    def failing(self) -> tuple[str, ...]:
        """The rules that fail."""
        return tuple(sorted(rule.rule.id for rule in self.report.rules if rule.verdict is Verdict.FAIL))


def judge_captures(directory: Path = FOLDER) -> Iterator[Captured]:
    """Judge one capture after the other; they are two folders deep, by release and story."""
    expected = expectations(directory)
    for folder in sorted(directory.glob("*/*")):
        if folder.is_dir():
            name = folder.relative_to(directory).as_posix()
            yield judge_capture(name, folder, expected.get(name, {}).get("fails"))


def judge_excerpts(directory: Path = EXCERPTS) -> Iterator[Captured]:
    """Judge logs that were cut from real clusters: nothing is wrong in any, and nothing is missing."""
    for packed in sorted(directory.glob("*.tar.xz")):
        name = packed.name.removesuffix(".tar.xz")
        with tempfile.TemporaryDirectory(prefix="tidegauge-") as scratch:
            with tarfile.open(packed) as archive:
                archive.extractall(scratch, filter="data")
            report = check([Path(scratch) / name])
        seen = () if report.exit_code == 0 else (f"expected a pass, seen {report.verdict.value}", *report.missing[:3])
        yield Captured(name, report, 0, seen)


def judge_capture(name: str, folder: Path, fails: list[str] | None) -> Captured:
    """Judge one capture, and compare it with the rules that must fail and with its disks."""
    report = check([folder])
    captured = Captured(name, report, 0, ())
    differences = []
    if fails is None:
        differences.append(f"expected an entry for {name} in expected.toml, seen none")
    elif sorted(fails) != list(captured.failing):
        differences.append(f"expected failing rules: {sorted(fails) or 'none'}; seen: {list(captured.failing) or 'none'}")
    compared = list(_compared(report.judged, _disks(folder)))
    differences += [difference for difference in compared if difference]
    return Captured(name, report, len(compared), tuple(differences))


def expectations(directory: Path) -> dict[str, dict[str, list[str]]]:
    """Return which rules must fail on each capture."""
    beside = directory / "expected.toml"
    return tomllib.loads((beside if beside.exists() else FOLDER / "expected.toml").read_text(encoding="utf-8"))


def _compared(judged: tuple[JudgedBatch, ...], disks: Mapping[tuple[str, int], Mapping[str, Any]]) -> Iterator[str]:
    """Yield one entry per replica on disk: empty, or how the judge's last state of it differs."""
    final = {
        (trace.tp, broker): state
        for judged_batch in judged
        for trace, states in zip(judged_batch.batch.traces or (), judged_batch.judgement.final, strict=True)
        for broker, state in zip(judged_batch.batch.config.nodes, states, strict=False)
    }
    for (tp, broker), disk in disks.items():
        # A replica on disk without events differs in every value: its lines were not read.
        state = final.get((tp, broker), ReplicaState(None, None, None, None))
        seen = {"leo": state.leo, "hw": state.hw, "log_start": state.log_start, "epochs": state.epochs}
        wrong = [f"{name} {seen[name]}, on disk {value}" for name, value in disk.items() if seen[name] != value]
        yield f"{tp} of broker {broker}: rebuilt {'; '.join(wrong)}" if wrong else ""


def _disks(folder: Path) -> dict[tuple[str, int], dict[str, Any]]:
    """Return what final_log.json has of every replica; the log end only where there are batches."""
    zipped = folder / "final_log.json.gz"
    text = gzip.decompress(zipped.read_bytes()) if zipped.exists() else (folder / "final_log.json").read_bytes()
    disks: dict[tuple[str, int], dict[str, Any]] = {}
    for broker, files in json.loads(text)["brokers"].items():
        hws = _checkpoint(files["replication-offset-checkpoint"])
        starts = _checkpoint(files["log-start-offset-checkpoint"])
        for tp, partition in files["partitions"].items():
            batches = partition["batches"]
            disk: dict[str, Any] = {"epochs": tuple((e, s) for e, s in partition["leader_epoch_checkpoint"])}
            # Without batches nothing in this file shows where the log ends.
            if batches:
                disk["leo"] = batches[-1]["last"] + 1
                disk["log_start"] = starts.get(tp, partition["segments"][0])
            if tp in hws:
                disk["hw"] = hws[tp]
            disks[tp, int(broker)] = disk
    return disks


def _checkpoint(lines: list[str] | None) -> dict[str, int]:
    fields = [line.split() for line in lines or ()]  # a broker that was killed for good may have none
    return {f"{topic}-{partition}": int(offset) for topic, partition, offset in fields}


def main(directories: Sequence[str]) -> int:
    """Judge every capture below the directories and print a line for each; 1 when one differs from what it must show."""
    different = 0
    for directory in map(Path, directories or (FOLDER,)):
        for captured in judge_captures(directory):
            failing, verdict = ", ".join(captured.failing) or "no rule fails", captured.report.verdict.value
            print(f"{captured.name:<32} {verdict:<13} {failing}; {captured.replicas} replicas as on disk", flush=True)
            for difference in captured.differences:
                print(f"  {difference}")
            different += bool(captured.differences)
    return 1 if different else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
