"""Tells the story of INFO logs after what happens to logs in practice, and compares it with what the whole logs tell.

Rules of this file

1. A capture is a folder of logs, at INFO or with the lines of other levels left out. Its whole story has the losses that
   `expected.jsonl` beside it names, to the offset, where it names some, and no other.
2. A story of less tells the same or less. A loss is one of the whole story: of the same partition, within its offsets, no
   more surely committed, and for the same reason or none. An entry is one of the whole story with some fields unknown;
   those that count lines, or quote them (`MAY_BE_LESS`), may differ.
3. A shifted clock changes what came first, so a story of two clocks may differ: that loss of order is not among the cases.
"""

import json
import random
import re
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tidegauge.story.losses import DISK, Loss
from tidegauge.story.story import Story, story_of
from validation.metamorphic.cases import HALVES, LAYOUTS
from validation.metamorphic.log_files import Files, is_at_info
from validation.metamorphic.losses import LOSSES
from validation.metamorphic.mixtures import MIXTURES, ONE_DIRECTORY, halves
from validation.metamorphic.tree import Tree, is_log, joined, lines, tree_of, write

PACKED = Path(__file__).parents[2] / "tests" / "story" / "wild.tar.xz"
"""Logs of real clusters at INFO, and what their clients and disks say was lost."""
NO_STEPS = frozenset({"skew a clock", "behind-kubernetes-as-json"})
"""Rule 3; and a prefix whose time is another one than that of the JSON behind it."""
STEPS = tuple(name for name in (*LOSSES, *LAYOUTS, *MIXTURES, HALVES) if name not in NO_STEPS)
PAIRS = 0.4
MAY_BE_LESS = frozenset(
    {"times", "until", "reason", "error", "continues", "by", "byte", "cause", "sources", "source", "time", "cluster"}
    | {"epochs", "elections", "rejected_by", "unreachable", "timeouts"}
)
"""Fields that count lines, or quote them: fewer lines, less of them."""
LESS_SURE = {
    "committed": ("unknown",),
    # Where the line of the lost disk is gone, that the election behind it was unclean is as true.
    "why": ("truncated", "truncated below the high watermark", "unclean election"),
    "allowed": (None,),
}
"""Values of a loss that say less than others."""
_STAMP = re.compile(r"^(\[[\d\-: ,]+\] [A-Z]+) (?!\[(?:~|main|[\w-]*[Tt]hread[\w-]*|kafka-\d[\w-]*|quorum-[\w-]+)\])")
_SETTING = re.compile(r"\t[\w.]+ = ")
"""A line of the settings that each start prints: half of a short log, and nothing happens in it."""
_NO_THREAD = "~"


@dataclass(frozen=True)
class StoryCase:
    """One capture through one transformation, or two; `other` is a second cluster."""

    number: int
    capture: Path
    other: Path
    steps: tuple[str, ...]

    def __str__(self) -> str:
        return f"case {self.number}: {self.capture.name}, {' + '.join(self.steps)} ({self.other.name})"


@contextmanager
def unpacked() -> Iterator[Path]:
    """Unpack the captures for a while."""
    with tempfile.TemporaryDirectory(prefix="stories-") as folder:
        with tarfile.open(PACKED) as packed:
            packed.extractall(folder, filter="data")
        yield Path(folder)


def expected_losses(directories: Sequence[Path]) -> dict[str, list[dict[str, Any]]]:
    """Return the losses of each capture that an `expected.jsonl` has."""
    texts = [path.read_text(encoding="utf-8") for each in directories if (path := each / "expected.jsonl").exists()]
    entries = [json.loads(line) for text in texts for line in text.splitlines()]
    return {entry["case"]: entry["losses"] for entry in entries if "losses" in entry}


def captures_at_info(directories: Sequence[Path]) -> list[Path]:
    """Return the captures of whole clusters: `RELEASE/STORY`, or `zk-*` and `kraft-*`."""
    found: dict[str, Path] = {}
    for directory in directories:
        for folder in sorted([*directory.glob("zk-*"), *directory.glob("kraft-*"), *directory.glob("[0-9].*/*")]):
            if folder.is_dir():
                found.setdefault(folder.relative_to(directory).as_posix(), folder)
    return list(found.values())


@cache
def info_logs(folder: Path) -> Mapping[str, list[str]]:
    """Return the logs of a capture at INFO; lines of a layout without threads get one that `written` takes out again.

    Brokers of ZooKeeper clusters ship with TRACE for some loggers: what is not the judge's capture is as it was logged.
    """
    traced = folder.parent.name[:1].isdigit()
    tree = tree_of(folder)
    logs = {name: lines(tree[name]) for name in sorted(tree) if is_log(name) and not name.endswith("request.log")}
    return {
        name: [
            _STAMP.sub(rf"\1 [{_NO_THREAD}] ", line)
            for line in texts
            if not _SETTING.match(line) and (not traced or is_at_info(line))
        ]
        for name, texts in logs.items()
        if texts
    }


def written(files: Mapping[str, Sequence[str]], steps: Sequence[str], folder: Path) -> Path:
    """Write logs in the layout of a case."""
    tree: Tree = {name: joined(texts) for name, texts in files.items()}
    for step in steps:
        tree = LAYOUTS[step](tree) if step in LAYOUTS else tree
    mark = f"[{_NO_THREAD}]".encode()
    return write(
        {name: content.replace(mark + b" ", b"").replace(b" " + mark, b"") for name, content in tree.items()}, folder
    )


@cache
def whole_story(folder: Path) -> Story:
    """Tell the story of a capture as it is."""
    with tempfile.TemporaryDirectory(prefix="stories-") as place:
        return story_of([written(info_logs(folder), (), Path(place))])


def story_cases(folders: Sequence[Path], count: int, seed: int) -> Iterator[StoryCase]:
    """Yield `count` cases: all transformations in turn, some in pairs; shorter captures more often."""
    shares = [1 / sum(map(len, info_logs(folder).values())) for folder in folders]
    for number in range(count):
        chosen = random.Random(f"{seed}/stories/{number}")
        step = STEPS[number % len(STEPS)]
        steps = (step, chosen.choice(STEPS)) if chosen.random() < PAIRS else (step,)
        folder, other = chosen.choices(folders, shares, k=2)
        # What is laid out, in UTF-16 for one, has no lines for a second layout.
        if len(steps) == 2 and steps[0] in LAYOUTS and steps[1] in LAYOUTS:
            steps = steps[:1]
        # What is lost is lost before it is mixed, and mixed before it is laid out.
        order = sorted(dict.fromkeys(steps), key=lambda name: (name in LAYOUTS, name in MIXTURES or name == HALVES))
        yield StoryCase(number, folder, other, tuple(order))


def transformed(case: StoryCase, seed: int) -> Files:
    """Return the lines of a case after its losses and mixtures."""
    chosen = random.Random(f"{seed}/stories/{case.number}/logs")
    files = {name: list(texts) for name, texts in info_logs(case.capture).items()}
    for step in case.steps:
        if step == HALVES:
            files = halves(chosen, files, {name: list(texts) for name, texts in info_logs(case.other).items()}, "other-")
        elif step in MIXTURES:
            files = MIXTURES[step](chosen, files)
        elif step in LOSSES and any(files.values()):
            files = LOSSES[step](chosen, files)
        files = {name: [_STAMP.sub(rf"\1 [{_NO_THREAD}] ", line) for line in texts] for name, texts in files.items()}
    return files


def contradictions_of(case: StoryCase, seed: int) -> list[str]:
    """Tell the story of a case, and return where it contradicts the whole ones; an exception is one."""
    with tempfile.TemporaryDirectory(prefix="stories-") as place:
        written(transformed(case, seed), case.steps, Path(place))
        try:
            story = story_of([place])
        except Exception as error:  # whatever it is, it is what the suite is for
            return [f"{type(error).__name__}: {error}"]
    wholes = [whole_story(case.capture), *([whole_story(case.other)] if HALVES in case.steps else [])]
    return contradictions(story, wholes)


def contradictions(part: Story, wholes: Sequence[Story]) -> list[str]:
    """Return what a story tells that none of the whole ones does, or that they tell otherwise (rule 2)."""
    entries: dict[tuple[Any, ...], list[dict[str, Any]]] = defaultdict(list)
    for whole in wholes:
        isr: dict[str | None, Any] = {}
        for entry in whole.entries:
            entries[entry.kind, entry.partition].append({**entry.fields, "node": entry.node})
            # Where the line of an election is gone, the one behind it tells the change of the ISR alone.
            if entry.kind == "elected":
                change = {**entry.fields, "node": entry.node, "from": isr.get(entry.partition), "to": entry.fields["isr"]}
                entries["isr_changed", entry.partition].append({**change, "accepted": True})
            if entry.kind in ("elected", "isr_changed"):
                isr[entry.partition] = entry.fields["isr" if entry.kind == "elected" else "to"]
    found = []
    for entry in part.entries:
        # Two controllers may print one change of the ISR: who did is no part of it.
        fields = {**entry.fields, "node": None if entry.kind == "isr_changed" else entry.node}
        fields = {
            name: value
            for name, value in fields.items()
            if value not in (None, "unknown") and name not in MAY_BE_LESS and not _is_renamed(name, value)
        }
        # Whether an election was clean is told by what is known before it: lines that are gone may be those that hid it.
        if not any(
            all(other.get(name) == value or (name == "clean" and other[name] is None) for name, value in fields.items())
            for other in entries[entry.kind, entry.partition]
        ):
            found.append(f"{entry.kind} {entry.partition} {fields} {entry.sources}")
    losses = [loss for whole in wholes for loss in whole.losses]
    # Of a disk that was lost a part of the lines may show only that others have copies, and not that one of them led next.
    gone = [loss for loss in part.losses if not (loss.why == DISK and loss.copies)]
    return [*found, *(f"loss {loss.as_json()}" for loss in gone if not any(_is_part(loss, one) for one in losses))]


def _is_renamed(name: str, value: Any) -> bool:
    """Return whether a field is a directory as the mixtures call the one that all brokers have."""
    return name == "directory" and str(value).startswith(ONE_DIRECTORY)


def _is_part(loss: Loss, whole: Loss) -> bool:
    if loss.partition != whole.partition or any(
        getattr(loss, name) not in (getattr(whole, name), *less) for name, less in LESS_SURE.items()
    ):
        return False
    if loss.first is None or loss.end is None:
        return whole.at_least >= loss.at_least
    return whole.first is not None and whole.end is not None and whole.first <= loss.first and loss.end <= whole.end


def missed(folder: Path, losses: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return the expected losses that a whole story does not tell to the offset, and those that it tells besides."""
    seen = [loss.as_json() for loss in whole_story(folder).losses]
    fits = [[all(one.get(key) == value for key, value in wanted.items()) for one in seen] for wanted in losses]
    return [
        *(f"not told: {wanted}" for wanted, row in zip(losses, fits, strict=True) if not any(row)),
        *(f"told: {_short(one)}" for at, one in enumerate(seen) if not any(row[at] for row in fits)),
    ]


def _short(fields: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in fields.items() if name not in ("do", "sources") and value is not None}
