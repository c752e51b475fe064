"""The clusters that were made: a folder a seed, with logs, story, truth, what was said of it, and the cases cut from it.

Rules of this file

1. A case is the whole logs of one or two partitions that show what is wrong with the verdict on the cluster. It is small.
2. Everything that is written of a judgement can be made again from the kept logs.
"""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from validation.real_clusters.judgement import (
    PACKED,
    UNPACKED,
    Judgement,
    Rightness,
    judged,
    pack,
    story_contradictions,
    unpacked,
)
from validation.real_clusters.one_partition import fetched_partitions, lines_of, topic_names, write_partitions
from validation.real_clusters.run import TRUTH, run
from validation.real_clusters.shapes import ClusterShape

OUTCOME, RESULTS, CASES, NOTE = "outcome.json", "RESULTS.md", "cases", "kind.txt"
MOST_CASES, MOST_SUSPECTS, LARGEST_CASE = 3, 5, 400_000
"""Of a cluster; in bytes, packed."""

COLUMNS = ("seed", "cluster", "what happened", "truth", "verdict", "right?", "what it says", "suspected kind")
HEAD = f"| {' | '.join(COLUMNS)} |\n|{'---|' * len(COLUMNS)}"
_AT = re.compile(r"\((\S+\.log[\w.-]*):(\d+)\)")
_NAMED = re.compile(r"\b((?:[a-z]+|__\w+)-\d+)(?=[=,\]} ])")


@dataclass(frozen=True)
class Outcome:
    """What was said of the cluster in a folder, and whether that is right. `cases` are the names of its cases."""

    folder: Path
    shape: dict[str, Any]
    truth: dict[str, Any]
    judgement: dict[str, Any]

    @property
    def right(self) -> str:
        """The word for it."""
        return str(self.judgement["right"])

    def row(self) -> str:
        """Return its line of the table."""
        shape = ClusterShape.from_json(self.shape)
        truth = self.truth
        losses = f"{truth['acknowledged']} acked" + (f", {truth['lost_count']} lost" if truth["lost_count"] else "")
        losses += " (allowed)" if truth["lost_count"] and not truth["forbidden"] else ""
        losses += f", DIFFER {truth['differ'][:1]}" if truth["differ"] else ""
        losses += f", {len(truth['unread'])} partitions unread" if truth["unread"] else ""
        failures = self.judgement["failures"]
        counted = " ".join(f"{rule} x{count}" for rule, count in failures.items())
        says = counted + self.judgement["signature"].removeprefix(" ".join(failures))
        note = self.folder / NOTE
        kind = note.read_text(encoding="utf-8").strip() if note.is_file() else ""
        cases = ", ".join(self.judgement.get("cases", ()))
        cells = (
            shape.seed,
            shape.words,
            ", ".join(shape.incidents) or "nothing",
            losses,
            self.judgement["verdict"],
            self.right,
            says[:400],
            "; ".join(part for part in (kind, f"cases {cases}" if cases else "") if part),
        )
        return "| " + " | ".join(str(cell).replace("|", "/").replace("\n", " ") for cell in cells) + " |"


def make(shape: ClusterShape, family: Path) -> Path:
    """Make the cluster of a shape, and keep its logs and truth in a folder of the family. Raises ClusterError."""
    folder = family / str(shape.seed)
    run(shape, folder)
    return folder


def judge_cluster(folder: Path) -> Outcome:
    """Judge the logs in a folder, which are packed then, and cut cases from them if the verdict is wrong."""
    if (folder / UNPACKED).is_dir():
        pack(folder / UNPACKED, folder / PACKED)
        shutil.rmtree(folder / UNPACKED)
    truth = json.loads((folder / TRUTH).read_text(encoding="utf-8"))
    with unpacked(folder / PACKED) as logs:
        judgement = judged(logs)
        right = judgement.rightness(truth["forbidden"])
        cases = []
        # Without an offset a lost record is in no loss of a story.
        lost = [(f"{topic}-{partition}", offset) for topic, partition, offset, *_ in truth["lost"] if offset >= 0]
        differs = story_contradictions(logs, lost)
        if differs and right == Rightness.RIGHT:
            right = Rightness.WRONG_STORY
        if right in (Rightness.WRONG_FAIL, Rightness.UNTRUE_GAP):
            cases = list(_cases(folder, logs, judgement))
    said = {
        "verdict": judgement.verdict,
        "right": right,
        "failures": judgement.failures,
        "undecided": judgement.undecided,
        "missing": judgement.missing,
        "coverage": judgement.coverage,
        "signature": "; ".join(filter(None, [judgement.signature, *differs])),
        "output": judgement.output[-3000:],
        "explanations": judgement.report.get("explanations", []),
        "cases": cases,
    }
    (folder / OUTCOME).write_text(json.dumps(said, indent=1) + "\n", encoding="utf-8")
    return read_outcome(folder)


def read_outcome(folder: Path) -> Outcome:
    """Read what was kept of a judgement."""
    parts = [json.loads((folder / name).read_text(encoding="utf-8")) for name in ("shape.json", TRUTH, OUTCOME)]
    return Outcome(folder, *parts)


def made(family: Path) -> list[Path]:
    """Return the folders of the clusters whose truth is known, by seed."""
    return sorted((path.parent for path in family.glob(f"*/{TRUTH}")), key=lambda path: int(path.name))


def size_of_logs(folder: Path) -> float:
    """Return the megabytes of logs of a cluster."""
    return float(json.loads((folder / TRUTH).read_text(encoding="utf-8"))["megabytes"])


def outcomes(family: Path) -> Iterator[Outcome]:
    """Read what was said of those that were judged."""
    for folder in made(family):
        if (folder / OUTCOME).is_file():
            yield read_outcome(folder)


def write_results(family: Path) -> None:
    """Write the table of a family, and the counts above it."""
    found = list(outcomes(family))
    rights = [each.right for each in found]
    counts = ", ".join(f"{rights.count(word)} {word}" for word in Rightness if word in rights)
    four = sum(each.shape["fetchers"] == 4 for each in found)
    transactional = sum(each.shape["transactions"] > 0 for each in found)
    head = f"{len(found)} clusters, {four} with four fetchers, {transactional} with transactions: {counts}"
    signatures: dict[str, list[str]] = {}
    for each in found:
        if each.right != Rightness.RIGHT:
            signatures.setdefault(each.judgement["signature"], []).append(each.folder.name)
    groups = sorted(signatures.items(), key=lambda item: -len(item[1]))
    listed = "\n".join(f"* {len(seeds)} ({', '.join(seeds)}): {text}" for text, seeds in groups)
    rows = "\n".join(each.row() for each in found)
    (family / RESULTS).write_text(f"{head}\n\n{listed}\n\n{HEAD}\n{rows}\n", encoding="utf-8")


def _cases(folder: Path, logs: Path, judgement: Judgement) -> Iterator[str]:
    """Cut the logs down to partitions that show what is wrong, and keep those that still do."""
    place = folder / CASES
    shutil.rmtree(place, ignore_errors=True)
    seen = set()
    for partitions in _suspects(logs, judgement)[:MOST_SUSPECTS]:
        with tempfile.TemporaryDirectory(prefix="tidegauge-case-") as scratch:
            extracted = Path(scratch) / "logs"
            write_partitions(logs, extracted, partitions)
            said = judged(extracted)
            if said.verdict in ("PASS", "SUITE ERROR") or said.signature in seen:
                continue
            place.mkdir(exist_ok=True)
            archive = place / f"{'+'.join(partitions)}.tar.xz"
            pack(extracted, archive)
            if archive.stat().st_size > LARGEST_CASE:
                archive.unlink()
                continue
            seen.add(said.signature)
            yield f"{archive.name.removesuffix('.tar.xz')} ({said.verdict}: {said.signature[:120]})"
            if len(seen) == MOST_CASES:
                return


def _suspects(logs: Path, judgement: Judgement) -> list[tuple[str, ...]]:
    """Choose the partitions to look at: those that failed, a rule after the other, then those that gaps name."""
    failed: dict[str, str] = {}
    for explained in judgement.report.get("explanations", ()):
        failed.setdefault(explained["rule"], explained["tp"])
    chosen: list[tuple[str, ...]] = [(tp,) for tp in dict.fromkeys(failed.values())]
    names = topic_names(sorted(logs.rglob("*.log*"))) if judgement.missing else {}
    for text in judgement.missing[:6]:
        for path, line in _AT.findall(text):
            is_request_log = "request.log" in path
            fetches = list(fetched_partitions(logs / path, names)) if is_request_log else []
            if fetches:
                chosen += _of_fetchers(fetches, int(line))
            else:
                chosen += [(tp,) for tp in _partitions_at(logs / path, int(line))[:2]]
    return list(dict.fromkeys(chosen))


def _of_fetchers(fetches: Sequence[tuple[int, str, list[str]]], line: int) -> list[tuple[str, ...]]:
    """Choose a partition of the last fetch up to a line, and with it one of each other fetcher of that replica."""
    clients = {client: parts[0] for number, client, parts in fetches if number <= line}
    at = next((client for number, client, _ in reversed(fetches) if number <= line), "")
    replica = at.rpartition("-")[0]
    beside = [tp for client, tp in clients.items() if client.rpartition("-")[0] == replica and client != at]
    return [(clients[at],), (clients[at], *beside)] if at else []


def _partitions_at(path: Path, number: int) -> list[str]:
    if not path.is_file():
        return []
    text = next((line for at, line in enumerate(lines_of(path), 1) if at == number), "")
    return list(dict.fromkeys(_NAMED.findall(text)))
