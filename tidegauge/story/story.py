"""The story of whatever logs a person has: what happened to each partition, what was lost, known bugs, what to do.

Rules of this file

1. Nothing here is a verdict: no exit code and no rule hangs on a story, and nothing is accused.
2. What no line says is not told; an excerpt tells the same as the whole, or less.

An *entry* (StoryEntry: `kind`, `fields`, `order`, a time) is something that happened to a partition, or to a node. Its
`marks` are notes of the code for itself, among them: `ended`, that state ended; `long`, it took long; `stopping`, the node
was stopping; `waits`, the broker waits for a node of ZooKeeper that is another's; `deletion`, it is part of a topic's
deletion; `called unclean`, its line says UNCLEAN. A *step* is a sentence that says what
to do.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

from tidegauge.story.advice import step_for_loss, step_for_process, steps_for_partition
from tidegauge.story.bug_faces import BugFace, bug_faces
from tidegauge.story.clusters import files_by_cluster
from tidegauge.story.elections import Elections
from tidegauge.story.fetchers import Fetchers
from tidegauge.story.losses import BROKEN, Loss, losses_of
from tidegauge.story.processes import Processes
from tidegauge.story.reading import ReadFile, SourcedLine, in_order, read_files
from tidegauge.story.state import StoryEntry, Telling
from tidegauge.story.truncations import Truncations
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG
from tidegauge.traces.problems import Problem

QUIET = frozenset(
    {"leader", "follower", "loaded", "start", "stop", "retention", "broker_unfenced", "metadata_empty", "segment_dumped"}
    | {"role_kept", "metadata_dumped", "topic_created"}
    | {"log_deleted", "segments_deleted", "epoch_began"}
)
"""Kinds that every healthy broker has: a partition with nothing else had nothing happen."""
PASSING = frozenset(
    {"epoch_refused", "fetch_refused", "not_assigned", "not_leader", "unreachable", "disconnected", "not_controller"}
)
"""Kinds that pass while a broker restarts, a leader changes or a topic is made: they count where they go on."""
LASTING = (
    "AuthorizationException",
    "CorruptRecordException",
    "java.lang.",
    "KafkaStorageException",
    "LogCleaningPaused",
    "UnknownServerException",
)
"""Errors of a fetch that no restart, and no change of the leader, brings with it."""
NO_LONGER_LEADS = ("NotLeaderException", "NotControllerException")
"""Exceptions by which a controller learns that another one leads."""
FACES = frozenset(
    {"too-large", "out-of-order", "index-offset", "offset-mismatch", "isr-refused", "moved", "fatal", "append-refused"}
    | {"below", "fell"}
)
"""Statements that known bugs are recognised by."""


@dataclass
class Story:
    """What lines tell: entries in order, losses, known bugs, and for each partition the next steps."""

    entries: list[StoryEntry] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    bugs: list[BugFace] = field(default_factory=list)
    steps: dict[str, list[str]] = field(default_factory=dict)
    files: list[ReadFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    unseen: Sequence[str] = ()
    """Topics and partitions that were asked for, where no line is about any of them."""

    @property
    def has_entries(self) -> bool:
        """Whether there is anything to tell."""
        return bool(self.entries)

    def note_broken_promises(self, partition: str, first: int, end: int, acknowledged: bool) -> None:
        """Note by the judge that offsets [first, end) of a partition are gone though they were committed.

        If `acknowledged`, producers with acks=all were told so. Losses that have offsets in common say it from here on.
        """
        for loss in self.losses:
            if loss.partition != partition or loss.first is None or loss.end is None:
                continue
            promised = min(end, loss.end) - max(first, loss.first)
            if promised <= 0:
                continue
            if acknowledged:
                loss.acknowledged = promised
            # The lines of the story need not have the high watermark that the judge followed step by step.
            if loss.committed != "yes":
                loss.committed, loss.why, loss.allowed = "yes", BROKEN, False
            loss.do = step_for_loss(loss)

    def of_partitions(self) -> dict[str, list[StoryEntry]]:
        """Return the entries by partition, in order of the first."""
        by_partition: dict[str, list[StoryEntry]] = defaultdict(list)
        for entry in self.entries:
            if entry.partition is not None:
                by_partition[entry.partition].append(entry)
        return by_partition

    def as_json(self) -> dict[str, Any]:
        """Return `story`, `losses`, `known_bugs` and `do` as plain data; docs/operators.md says what the fields mean."""
        return {
            "story": [entry.as_json() for entry in self.entries],
            "losses": [loss.as_json() for loss in self.losses],
            "known_bugs": [bug.as_json() for bug in self.bugs],
            "do": [
                *({"partition": partition, "says": step} for partition, steps in self.steps.items() for step in steps),
                *(
                    {"partition": None, "says": step}
                    for node in self.entries
                    if (step := step_for_process(node)) is not None
                ),
            ],
        }


def happened(entry: StoryEntry) -> bool:
    """Return whether an entry is out of the ordinary: more than what every healthy restart or leader change prints."""
    if entry.kind in QUIET or (entry.kind == "truncated" and entry.fields["relation"] == "no effect"):
        return False
    if entry.kind == "controller":
        # A controller resigns, too, when another one leads: that is no error. `waited`: writes were given up.
        return "waited" in entry.fields or entry.fields.get("error") not in (None, *NO_LONGER_LEADS)
    if entry.kind == "controller_conflict":
        # A race for the controller, which one broker loses, is over at once.
        return "waits" in entry.marks or bool(entry.fields["times"] > 3)
    if entry.kind == "elected":
        unclean = entry.fields["clean"] is False or "called unclean" in entry.marks
        return unclean or (entry.fields["leader"] < 0 and "deletion" not in entry.marks)
    if entry.kind == "described":
        return len(entry.fields["isr"]) < len(entry.fields["replicas"])
    if entry.kind == "reassignment":
        return bool(entry.fields["state"] != "completed")
    if entry.kind == "quorum_status":
        return bool(entry.fields["leader"] < 0)
    if entry.kind == "metadata_behind":
        return "long" in entry.marks and "ended" not in entry.marks
    if entry.kind == "isr_changed":
        before, after = entry.fields["from"], entry.fields["to"]
        # With a leader epoch it is told of a broker that went offline (Elections.say_removed), as it does at every restart.
        shrunk = before is not None and after is not None and len(after) < len(before) and "leader_epoch" not in entry.fields
        return shrunk or entry.fields["accepted"] is False
    if entry.kind == "broker_left":
        # ZooKeeper's controller says it of a clean stop, too; `ended`: the same dump has its return.
        return entry.fields["why"] is not None and "ended" not in entry.marks
    if entry.kind == "quorum":
        # Every start, and every change of the leader, has a moment without one: it counts if no line ends it, or if it took
        # more than one election.
        open_end = not entry.marks & {"ended", "stopping"} and not entry.fields.get("resigned")
        return entry.fields["leader"] is None and (open_end or entry.fields["elections"] > 1)
    if entry.fields.get("lost_by"):
        return True
    # An error that does not pass by itself, or more than three times in a row: it has not passed.
    if entry.kind in PASSING:
        lasts = any(name in str(entry.fields.get("error")) for name in LASTING)
        return lasts or bool(entry.fields["times"] > 3)
    return True


def story_of(
    paths: Sequence[str | PathLike[str]],
    echo: Callable[[str], None] = lambda _line: None,
    selection: Selection | None = None,
) -> Story:
    """Return the story of the text files at and below the paths; what cannot be read is a problem, never an error.

    `echo` gets a line on progress, `selection` is the part of the lines that is read (None: all).
    """
    problems: list[Problem] = []
    existing = [Path(path) for path in paths if str(path) != "-" and Path(path).exists()]
    files = read_files(_outermost(existing), problems, selection)
    echo(f"{len(files)} files, {sum(file.lines for file in files):,} lines read")
    story = Story(files=files, problems=problems)
    clusters = files_by_cluster(files)
    for cluster_files in clusters:
        _add_cluster(story, cluster_files, several=len(clusters) > 1)
    named = () if selection is None else sorted(selection.topics | selection.partitions)
    if named and not any(entry.partition for entry in story.entries):
        # A name that no line has is mistyped: that nothing happened to it must not be told.
        story.entries.clear()
        story.unseen = named
        problems.append(Problem("story", None, f"a line about {', '.join(named)}", "none", "check the name"))
    story.entries.sort(key=lambda entry: entry.order)
    story.losses.sort(key=lambda loss: loss.order)
    return story


def _outermost(paths: Sequence[Path]) -> list[Path]:
    """Return the paths without those that are, or lie below, another one: a line read twice looks like two brokers."""
    # By resolved path, so that links to one place are one.
    by_place: dict[Path, Path] = {}
    for path in paths:
        by_place.setdefault(path.resolve(), path)
    return [path for place, path in by_place.items() if not by_place.keys() & set(place.parents)]


def _add_cluster(story: Story, files: Sequence[ReadFile], several: bool) -> None:
    """Add the story of the files of one cluster; if there are `several`, its entries name it by the first of its files."""
    telling = telling_of(in_order(files))
    losses = losses_of(telling)
    for loss in losses:
        loss.do = step_for_loss(loss)
    by_partition: dict[str, list[StoryEntry]] = defaultdict(list)
    for entry in telling.entries:
        if several:
            entry.fields["cluster"] = files[0].label
        if entry.partition is not None:
            by_partition[entry.partition].append(entry)
    for partition, entries in by_partition.items():
        if steps := steps_for_partition(entries):
            story.steps.setdefault(partition, []).extend(steps)
    story.entries += telling.entries
    story.losses += losses
    story.bugs += [bug for bug in bug_faces(telling, losses) if bug not in story.bugs]


def telling_of(lines: Iterable[SourcedLine]) -> Telling:
    """Return the entries that lines tell, which come in order of time."""
    teller = _Teller()
    for line in lines:
        try:
            teller.take(line)
        except ValueError:
            continue  # a number that no offset can reach: the line is damaged
    return teller.telling()


class _Teller(Processes, Truncations, Elections, Fetchers):
    """Takes lines one by one, and gives each to the method of its kind of statement, of one of the classes it extends."""

    def __init__(self) -> None:
        """Find the methods: `say_fetch_error` gets the lines of kind `fetch-error`."""
        super().__init__()
        self._handlers: dict[str, Callable[[SourcedLine], None]] = {
            name.removeprefix("say_").replace("_", "-"): getattr(self, name) for name in dir(self) if name.startswith("say_")
        }

    def take(self, line: SourcedLine) -> None:
        """Add what a line says to the story; the log of the metadata is no partition of it."""
        # Where a dump of it begins, the one before it has ended.
        if line.partition == METADATA_LOG and line.says.kind != "dumped-segment":
            return
        self.releases.note(line)
        if self.away:
            self.note_back(line)
        if line.says.kind in FACES:
            self.faces.append(line)
        handler = self._handlers.get(line.says.kind)
        if handler is not None:
            handler(line)

    def telling(self) -> Telling:
        """Return the entries so far, by time, and what else was learned."""
        lost = self.lost_leaders()
        self.relate_pauses()
        for entry in self.entries:
            if entry.kind == "described" and entry.fields["leader"] in lost:
                entry.marks.add("leader lost")
        # By time, whichever line began an entry: the only line of a start may come after what the process did before it.
        return Telling(sorted(self.entries, key=lambda entry: entry.order), self.high_watermarks, self.releases, self.faces)
