"""Known bugs by their face: what WARN and ERROR lines look like, only where the release can have the bug.

Rules of this file

1. A face is no verdict: it says what the lines look like, and which lines.
2. The release is what the log says, or what its lines can be of (releases.py). Where that leaves it open, the bug is named.

A *face* is a function of a story's content (`telling`: `entries`, and `faces`, the lines by which bugs are recognised) and
of its losses. It yields a *sighting*, (node, file, lines as file:number), for each place that looks like its bug. An entry
has its `kind`, `fields` and `sources` (lines as file:number), and `marks`: `start` of a reset to the start of the leader's
log, `led before` of a follower that was itself the leader before, `doubtful` of a high watermark that may be too high.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from tidegauge.story.advice import RENAMED_FOLDER, USED_BY_ANOTHER
from tidegauge.story.losses import NEVER, Loss
from tidegauge.story.releases import Release, release_of
from tidegauge.story.state import SECOND, StoryEntry, Telling

MOST_SOURCES = 6
OFTEN = 3
"""A reset to the offset it came from, so often in a row, is a loop."""


@dataclass(frozen=True)
class BugFace:
    """A known bug that lines look like: what the bug does, in which releases it is fixed, the lines, what to do."""

    bug: str
    says: str
    fixed_in: str | None
    sources: list[str]
    do: str

    def as_json(self) -> dict[str, Any]:
        """Return it as plain data."""
        return {"bug": self.bug, "says": self.says, "fixed_in": self.fixed_in, "sources": self.sources, "do": self.do}


Sighting = tuple[int | None, str, list[str]]
"""The node, the file, and the lines that look like the bug, as file:number."""

Face = Callable[[Telling, Sequence[Loss]], Iterator[Sighting]]


class KnownFace(NamedTuple):
    """A known bug and how it is found. `since` is the first release that has it (None: the first of all), `fixed_in` the
    first that has not (None: none that is known here).
    """

    bug: str
    says: str
    since: str | None
    fixed_in: str | None
    do: str
    face: Face


def _sighting(entry: StoryEntry) -> Sighting:
    """Return an entry as a sighting: its node, the file of its first line, all its lines."""
    return entry.node, entry.sources[0].rpartition(":")[0], entry.sources


def _of_entries(kind: str, fits: Callable[[StoryEntry], bool]) -> Face:
    """Return a face that sights every entry of a kind for which `fits` is true."""
    return lambda telling, _losses: (_sighting(entry) for entry in telling.entries if entry.kind == kind and fits(entry))


def _of_errors(kind: str, *texts: str) -> Face:
    """Return a face that sights every entry of a kind whose error, or cause, has one of these texts."""

    def fits(entry: StoryEntry) -> bool:
        """Return whether the error of an entry has one of the texts."""
        error = str(entry.fields.get("cause") or entry.fields["error"])
        return any(text in error for text in texts)

    return _of_entries(kind, fits)


def _of_lines(*kinds: str) -> Face:
    """Return a face that sights every line that is a statement of one of these kinds."""

    def face(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
        """Yield each of these lines."""
        for line in telling.faces:
            if line.says.kind in kinds:
                yield line.node, line.file, [line.at]

    return face


def _truncation_not_allowed(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield lines by which a follower stops its broker, as it is ahead of its leader and must not truncate."""
    for line in telling.faces:
        if line.says.kind == "fatal" and "log truncation is not allowed" in line.text:
            yield line.node, line.file, [line.at]


def _renounced_with_a_null_pointer(failed: StoryEntry) -> bool:
    """Return whether a controller ended by a NullPointerException as it gave up leading: a table that had no changes."""
    cause = str(failed.fields.get("cause", ""))
    no_changes = "deltaTable" in cause or cause.rstrip(".: ") == "java.lang.NullPointerException"
    return "renouncing leadership" in failed.fields["error"] and no_changes


def _is_open_on_windows(failed: StoryEntry) -> bool:
    """Return whether a directory of Windows failed because a file could not be renamed or deleted."""
    why = failed.fields.get("error", "")
    return "\\" in failed.fields["directory"] and any(text in why for text in ("AccessDenied", *USED_BY_ANOTHER))


def _was_flushed_after_a_rename(failed: StoryEntry) -> bool:
    """Return whether a directory failed as a log was flushed whose folder was renamed, as for a deletion."""
    why = str(failed.fields.get("error"))
    return why.startswith("flushing log") and RENAMED_FOLDER.search(why) is not None


def _refused_for_ever(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield refusals of ISR changes by ZooKeeper that go on, by broker and partition.

    A broker that only stood still for a while is refused, too, but for less than a second.
    """
    lines = defaultdict(list)
    for line in telling.faces:
        if line.says.kind == "isr-refused" and "zookeeper" in line.text:
            lines[line.node, line.file, line.partition].append(line)
    for (node, file, _), refused in lines.items():
        # Without times, two refusals count as going on.
        if len(refused) > 1 and (refused[-1].order - refused[0].order >= SECOND or not refused[0].time):
            yield node, file, [line.at for line in refused]


def _is_in_a_loop(reset: StoryEntry) -> bool:
    """Return whether a follower's fetch offset was reset to where it was, so often in a row that it goes on for ever."""
    return bool(reset.fields["from"] == reset.fields["to"] and reset.fields["times"] >= OFTEN)


def _was_emptied_by_a_race(reset: StoryEntry) -> bool:
    """Return whether a replica whose log reached beyond the start of its leader's was emptied, to begin anew there."""
    return "start" in reset.marks and (reset.fields["from"] or 0) > reset.fields["to"]


def _full_segment(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield offsets out of order at followers, if a leader's append met a full segment file, with the first such line."""
    full = [line for line in telling.faces if line.says.kind == "too-large"]
    out_of_order = [line for line in telling.faces if line.says.kind == "out-of-order"]
    for line in out_of_order:
        if full:
            yield line.node, line.file, [line.at, full[0].at]


def _stale_fetch_state(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield followers that fetch again what they have, with no truncation before that explains it."""
    truncated = {
        (entry.partition, entry.node)
        for entry in telling.entries
        if entry.kind == "truncated" and entry.fields["relation"] != "no effect"
    }
    for entry in telling.entries:
        if entry.kind == "append_refused" and (entry.partition, entry.node) not in truncated:
            yield _sighting(entry)
    yield from _of_lines("offset-mismatch")(telling, _losses)


def _old_session(telling: Telling, _losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield brokers that cannot register: the ZooKeeper node of their old session, which has expired, is still there."""
    expired: dict[int | None, StoryEntry] = {}
    for entry in telling.entries:
        if entry.kind == "session_expired":
            expired[entry.node] = entry
        elif entry.kind == "not_registered" and "already exists" in entry.fields["error"]:
            # A client's line of an expired session names no node (None): it may be of this broker.
            session = expired.get(entry.node, expired.get(None))
            if session is not None:
                yield entry.node, entry.sources[0].rpartition(":")[0], [session.sources[0], *entry.sources]


def _planned_transition(telling: Telling, losses: Sequence[Loss]) -> Iterator[Sighting]:
    """Yield losses of what was never replicated by a leader that did not die: it stopped cleanly, or just led no more."""
    for loss in losses:
        if loss.why != NEVER or loss.node is None:
            continue
        # When it led, and its starts since: by these it is known whether it died.
        led = [
            entry
            for entry in telling.entries
            if (entry.kind == "leader" or "led before" in entry.marks)
            and entry.partition == loss.partition
            and entry.node == loss.node
            and entry.order < loss.order
        ]
        starts = [
            entry
            for entry in telling.entries
            if entry.kind == "start" and entry.node == loss.node and led and led[-1].order < entry.order < loss.order
        ]
        if led and (not starts or all(start.fields["clean"] is True for start in starts)):
            yield loss.node, loss.sources[0].rpartition(":")[0], loss.sources


ROWS = (
    KnownFace(
        "KAFKA-1194",
        "On Windows Kafka cannot rename or delete files that it has open: to delete a topic, or segments that are too old, "
        "fails the whole log directory.",
        since=None,
        fixed_in=None,
        do="run the broker on Linux, in a container or WSL; here, remove the folder of a topic that was to be deleted while "
        "the broker is stopped, and nothing else",
        face=_of_entries("directory_failed", _is_open_on_windows),
    ),
    KnownFace(
        "KAFKA-1029",
        "A broker takes the controller's node in ZooKeeper for its own of an older session, and tries again for ever.",
        since=None,
        fixed_in="0.8.0",
        do="restart this broker: another one is the controller, and no record is lost by it",
        face=_of_entries("controller_conflict", lambda entry: "waits" in entry.marks),
    ),
    KnownFace(
        "KAFKA-2477",
        "A leader that is asked as it appends calls the offset out of range: its follower empties its log and copies anew.",
        since=None,
        fixed_in="0.9.0.0",
        do="keep its leader and the other replicas running until this one has copied all; then upgrade",
        face=_of_entries("reset", _was_emptied_by_a_race),
    ),
    KnownFace(
        "KAFKA-2729",
        "After a lost ZooKeeper session a broker goes on as leader and is refused every change of the ISR.",
        since=None,
        fixed_in="1.1.0",
        do="restart this broker: it does not recover by itself; then upgrade",
        face=_refused_for_ever,
    ),
    KnownFace(
        "KAFKA-3123",
        "A follower that could not truncate, or empty, its log leaves it paused for the cleaner: it copies no more records.",
        since=None,
        fixed_in="0.11.0.0",
        do="restart this broker; the first error of this partition after the start says why its log cannot be emptied",
        # Or the first error, by which it stays paused.
        face=_of_errors(
            "fetch_refused",
            "cannot be aborted and paused since it is in LogCleaningPaused state",
            "Cannot truncate to a negative offset",
        ),
    ),
    KnownFace(
        "KAFKA-3919",
        "After an unclean stop a log has offsets that do not increase: its index refuses them, the broker does not start.",
        since=None,
        fixed_in="0.11.0.0",
        do="keep a copy of this log directory, remove the partition's folder on this broker only and let it replicate again",
        face=_of_lines("index-offset"),
    ),
    KnownFace(
        "KAFKA-7104",
        "A leader deletes records while it answers: its follower is to begin behind its own end, and its fetcher dies.",
        since="1.0.0",
        fixed_in="1.0.2, 1.1.1, 2.0.0",
        do="restart this broker: until then none of the partitions of this fetcher replicates; nothing is lost by it",
        face=_of_errors("fetcher_failed", "Cannot increment the log start offset to"),
    ),
    KnownFace(
        "KAFKA-7165",
        "After a lost ZooKeeper session a broker finds the node of its old session, and does not register again.",
        since="1.1.0",
        fixed_in="2.2.0",
        do="restart this broker: it does not register by itself; then upgrade",
        face=_old_session,
    ),
    KnownFace(
        "KAFKA-7190",
        "Retention removed the last records of a producer, and what its broker knew of it: its next append is refused.",
        since="1.0.0",
        fixed_in="2.4.0",
        do="nothing: an idempotent producer begins its sequence anew and sends them again; then upgrade",
        face=_of_errors("produce_refused", "UnknownProducerIdException"),
    ),
    KnownFace(
        "KAFKA-7414",
        "A follower that is ahead of its leader stops its broker: log truncation is not allowed.",
        since=None,
        fixed_in="2.0.1",
        do="before you start it again copy the partition's folder: it has records that its leader lacks; then decide "
        "whether it is to lead (unclean.leader.election.enable of the topic) or is to lose them",
        face=_truncation_not_allowed,
    ),
    KnownFace(
        "KAFKA-13266",
        "A fetcher starts at an offset read before it stopped: the follower is sent what it has, refuses it and fails.",
        since="2.7.0",
        fixed_in="3.0.0",
        do="restart this broker, or move the leader away and back: the fetcher starts anew at its log end",
        face=_stale_fetch_state,
    ),
    KnownFace(
        "KAFKA-14946",
        "A controller that gives up leading ends by a NullPointerException as it goes back to its last snapshot.",
        since="2.8.0",
        fixed_in="3.4.1",
        do="start this controller again: no record and no metadata that was committed is lost; then upgrade",
        face=_of_entries("process_failed", _renounced_with_a_null_pointer),
    ),
    KnownFace(
        "KAFKA-15391",
        "A topic is deleted, or a move between directories ends, while its log is flushed: the whole log directory fails.",
        since="3.0.0",
        fixed_in="3.5.2",
        do="start the broker again, then upgrade: the disk itself is not at fault",
        face=_of_entries("directory_failed", _was_flushed_after_a_rename),
    ),
    KnownFace(
        "KAFKA-15608",
        (
            "After a move between log directories the leader's epochs lack one: followers are out of range at their own log "
            "end, again and again, and leave the ISR (KAFKA-20961)."
        ),
        since="2.7.0",
        fixed_in=None,
        do="make another replica that is in the ISR leader, or write one record to the partition; do not elect uncleanly",
        face=_of_entries("reset", _is_in_a_loop),
    ),
    KnownFace(
        "KAFKA-16814",
        "After an unclean stop a new partition's folder may lack partition.metadata: the KRaft broker does not start.",
        since="3.0.0",
        fixed_in="3.7.1, 3.8.0",
        do="copy the folder that it names, move it out of the log directory, and start the broker again; where the line "
        "says logEndOffset=0, nothing was appended to it",
        face=_of_errors("process_failed", "does not have a topic ID"),
    ),
    KnownFace(
        "KAFKA-16171",
        "As another controller takes over, the one before it writes to /migration once more: no metadata gets to ZooKeeper.",
        since="3.4.0",
        fixed_in="3.6.2, 3.7.0",
        do="restart the active controller: the next one reads /migration anew; go on with a release that has the repair",
        face=_of_errors("request_failed", "Check op on KRaft Migration ZNode failed"),
    ),
    KnownFace(
        "KAFKA-19407",
        "A leader whose segment file is full keeps what it could not append: followers get offsets out of order and fail.",
        since=None,
        fixed_in=None,
        do="compare the last segments of all replicas (kafka-dump-log) before anything is deleted; then restart the leader",
        face=_full_segment,
    ),
    KnownFace(
        "KAFKA-20554",
        "A planned change of the leader loses what only acks=1 acknowledged and was not replicated yet.",
        since=None,
        fixed_in=None,
        do="produce what must not be lost with acks=all; Kafka promises no more for acks=1",
        face=_planned_transition,
    ),
    KnownFace(
        "KAFKA-14704",
        "The answer that tells a follower to truncate first raises its high watermark, which then falls: nothing is lost.",
        since="2.7.0",
        fixed_in="3.4.1",
        do="nothing: compare the high watermark of the follower's line before it",
        face=lambda telling, _losses: (
            _sighting(entry)
            for entry in telling.entries
            if entry.kind == "high_watermark_fell" and "doubtful" in entry.marks and _raised_before(entry, telling)
        ),
    ),
)


def _raised_before(fell: StoryEntry, telling: Telling) -> bool:
    """Return whether a high watermark fell from where no line had it before, back to where the follower's line had it."""
    before = [
        entry
        for entry in telling.entries
        if entry.kind == "follower"
        and entry.partition == fell.partition
        and entry.node == fell.node
        and entry.order <= fell.order
    ]
    return bool(before) and before[-1].fields["high_watermark"] <= fell.fields["to"] < fell.fields["from"]


def _full(release: Release) -> Release:
    """Return a release as four parts, to compare it with others: (0, 11, 0) becomes (0, 11, 0, 0)."""
    return (*release, 0, 0, 0, 0)[:4]


def _is_fixed(earliest: Release, latest: Release, fixed: str) -> bool:
    """Return whether every release from `earliest` to `latest` has a fix.

    `fixed` names the releases with it, such as "1.0.2, 1.1.1, 2.0.0": all from the last one on have it, and those of a
    branch (1.0, 1.1) from the one of that branch on.
    """
    *branches, last = map(release_of, fixed.split(", "))
    # Within one branch, if both ends are of it and it has a fix of its own.
    in_branch = any(earliest[:2] == latest[:2] == fix[:2] and _full(earliest) >= _full(fix) for fix in branches)
    return in_branch or _full(earliest) >= _full(last)


def bug_faces(telling: Telling, losses: Sequence[Loss]) -> list[BugFace]:
    """Return the known bugs that the lines look like, where the release of the node can have the bug."""
    bugs: list[BugFace] = []
    for row in ROWS:
        sources: list[str] = []
        for node, file, lines in row.face(telling, losses):
            # What is known of a release is kept by node, or by file where no node is known.
            earliest, latest = telling.releases.bounds(node if node is not None else file)
            # Named unless every release that it can be is too old for the bug, or has the fix (rule 2).
            too_old = row.since is not None and _full(latest) < _full(release_of(row.since))
            if too_old or (row.fixed_in is not None and _is_fixed(earliest, latest, row.fixed_in)):
                continue
            sources += [at for at in lines if at not in sources]
        if sources:
            bugs.append(BugFace(row.bug, row.says, row.fixed_in, sources[:MOST_SOURCES], row.do))
    return bugs
