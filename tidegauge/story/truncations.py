"""Tell what happens to a log: loads, truncations, high watermarks that fall, invalid and deleted records, lost segments.

Rules of this file

1. Lines of one truncation (the fetcher's, the log's, the warning below the high watermark) are one entry.
2. `from` and `high_watermark` come from the last line of the replica that gave them, if no fetching can lie between.
3. A line that names no node, of a file with several, joins the one truncation that it fits, or stays nobody's.

A method `say_KIND` gets every line of its kind of statement (a row of statements.py; `fetch-error` goes to
`say_fetch_error`), in order of time. To *tell* something is to add an entry to the story (`self.add`), to count the last one
once more (`self.add_or_count`), or to add the line to an entry that another one began (`join`); to *note* it is to keep it
for later lines. `line.fields` has the values in the line by name, as text, `line.says` is its row, `line.order` its time in
microseconds. `self.replica_of(line)` is what is known of its replica: `log_end` is where its log ended by the last line, and
`ended` when that was so exactly (None: it may have grown since), `is_known`: its node has had it. `renew` begins another
generation of a partition if its topic was created anew, `had` notes a high watermark for losses. Marks of a truncation are
who printed its lines (`log`, `fetcher`, `warning`, `report`), `truncated` (it surely had an effect) and `doubtful` (a high
watermark that its release may have raised just before, KAFKA-14704). Its `basis` is why it was done: `epoch`, `high
watermark`, `reset`, `untold` or "".
"""

import re
from dataclasses import replace
from itertools import chain

from tidegauge.story.reading import SourcedLine, fetched_from
from tidegauge.story.state import SECOND, TOGETHER, ReplicaStory, StoryEntry, StoryState, join, optional
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG, number

_VOTER = re.compile(r"\"voterId\": ?(\d{1,10})")
STALE = 90 * SECOND
"""A log end that a role line gave counts for a truncation so long: the fetcher starts with it, in microseconds."""

MOST_SEGMENTS = 100
"""Segments that an entry names."""


class Truncations(StoryState):
    """Tells lines about logs; a part of story._Teller."""

    def say_loaded(self, line: SourcedLine) -> None:
        """Tell a log that is loaded at a start, with its offsets; a start that was attempting recovery was unclean."""
        replica = self.replica_of(line)
        # Another topic id begins another generation, with another state of the replica: so it is read again.
        self.renew(line, line.fields.get("topic_id"))
        replica = self.replica_of(line)
        offset = optional(line, "high_watermark") or None  # nearly every release prints 0, whatever it is
        entry = self.add(
            line,
            "loaded",
            line.partition,
            log_end=optional(line, "log_end"),
            log_start=optional(line, "log_start"),
            high_watermark=offset,
        )
        start = self.nodes[self.key(line)].start
        if start is not None and "attempting" in start.marks and start.fields["clean"] is None:
            start.fields["clean"] = False
        replica.loaded, replica.is_known = entry, True
        replica.log_end, replica.ended = entry.fields["log_end"], line.order
        replica.high_watermark = offset
        self.had(line, offset)

    def say_initial_high_watermark(self, line: SourcedLine) -> None:
        """Add to the entry of a loaded log the high watermark that the replica begins with."""
        replica = self.replica_of(line)
        offset = number(line.fields["high_watermark"])
        if "Replica loaded" in line.text:
            # 1.x says it of every replica without an id, and remote ones are at 0.
            if offset == 0 and replica.log_end != 0:
                return
            offset = max(offset, replica.high_watermark or 0) if replica.loaded is not None else offset
        replica.high_watermark = offset
        log_end = None if replica.loaded is None else replica.loaded.fields["log_end"]
        # A high watermark is never above the log end: that entry is of an earlier load, and the line of this one is missing.
        if log_end is not None and offset > log_end:
            replica.loaded = None
        if replica.loaded is not None:
            replica.loaded.fields["high_watermark"] = offset
            join(replica.loaded, line)
        self.had(line, offset)

    def say_created(self, line: SourcedLine) -> None:
        """Note that an empty log is made for a replica; tell that the replica is lost if its node had one before."""
        node = self.nodes[self.key(line)]
        self.renew(line, None, anew=True)
        replica = self.replica_of(line)
        # The node had this replica in an earlier process (`starts`), and its directory was neither deleted nor moved: the
        # log is gone. One that is made in another directory may be that of a broker that no line of this file names.
        directory = line.fields.get("directory")
        anew = replica.is_known and replica.loaded is None and node.starts > 1 and not line.mixed
        if anew and replica.directory in (None, directory) and not self.partitions[str(line.partition)].deleted:
            node.lost[str(line.partition)] = self.add(line, "replica_lost", line.partition, directory=directory)
        replica.log_end, replica.ended, replica.high_watermark, replica.is_known = 0, line.order, 0, True
        replica.directory = directory

    def say_creating(self, line: SourcedLine) -> None:
        """Note the topic id of a partition that a broker creates: another one than before is another generation."""
        self.renew(line, line.fields["topic_id"], anew=True)

    def say_deleted(self, line: SourcedLine) -> None:
        """Tell that the log of a replica is deleted, on purpose: nothing is known of it any more."""
        self.add(line, "log_deleted", line.partition, directory=line.fields["directory"])
        self.partition_deleted(str(line.partition), line.order)
        self.replicas[str(line.partition), self.key(line)] = ReplicaStory()

    def say_stray(self, line: SourcedLine) -> None:
        """Tell a log that the metadata do not give to this broker: it is renamed, and deleted later."""
        replica = self.replica_of(line)
        fields = {"directory": line.fields["directory"], "reason": replica.stray}
        self.add(line, "stray", line.partition, **fields)
        self.replicas[str(line.partition), self.key(line)] = ReplicaStory()

    def say_stray_because(self, line: SourcedLine) -> None:
        """Note why a log is a stray, for the line that says so (say_stray)."""
        self.replica_of(line).stray = line.fields["reason"].strip().rstrip(".")

    def say_truncated(self, line: SourcedLine) -> None:
        """Tell a truncation by the log's own line."""
        entry = self._truncation(line, number(line.fields["to"]), "log")
        if line.says.since is not None:
            entry.marks.add("truncated")  # since 1.0 the line is printed only of a truncation that has an effect
            relate(entry)

    def say_truncated_fully(self, line: SourcedLine) -> None:
        """Tell a log that is emptied and begins anew at an offset: part of a reset just before, or a truncation."""
        replica, to = self.replica_of(line), number(line.fields["to"])
        if replica.reset is not None and line.order - replica.reset.order < TOGETHER:
            join(replica.reset, line)  # the log begins anew where the leader's does: all that was removed lies below
        else:
            entry = self._truncation(line, to, "log")
            entry.fields["reason"], entry.basis = "started anew at the leader's log start", "high watermark"
            entry.fields["relation"] = "unknown"
        replica.log_end, replica.ended = to, line.order

    def say_truncating_to_high_watermark(self, line: SourcedLine) -> None:
        """Tell a truncation by its fetcher's line: to the replica's own high watermark."""
        entry = self._truncation(line, number(line.fields["to"]), "fetcher")
        entry.basis, entry.fields["reason"] = "high watermark", "to its own high watermark"

    def say_truncating_to_epoch(self, line: SourcedLine) -> None:
        """Tell a truncation by its fetcher's line: to where the leader's epoch ends (KIP-101)."""
        entry = self._truncation(line, number(line.fields["to"]), "fetcher")
        entry.basis, entry.fields["reason"] = "epoch", f"the leader's answer: {line.fields['answer']}"

    def say_no_effect(self, line: SourcedLine) -> None:
        """Tell a truncation that removes nothing: the log ends below its offset."""
        end = number(line.fields["last"]) + 1
        replica, to = self.replica_of(line), number(line.fields["to"])
        own = replica.truncation
        # To 0.10 a log says that it truncates before it says that there is nothing to truncate. Had it been truncated to
        # this offset, it would reach it.
        if own is not None and own.marks == {"log"} and own.fields["to"] == to and end < to:
            entry = own
            entry.fields["from"] = end
            join(entry, line)
        else:
            entry = self._truncation(line, to, "log", end)
        entry.fields["relation"] = "no effect"
        replica.log_end, replica.ended, replica.is_known = end, line.order, True

    def say_truncation_reported(self, line: SourcedLine) -> None:
        """Tell a truncation by the report of LinkedIn's Kafka, which has all of it: from, to, and the high watermark."""
        entry = self._truncation(line, number(line.fields["to"]), "report", number(line.fields["from"]))
        # The report has the high watermark after the truncation: it counts only if no line gave the one before.
        entry.fields["high_watermark"] = entry.fields["high_watermark"] or number(line.fields["high_watermark"])
        entry.basis = entry.basis or "epoch"
        relate(entry)

    def say_below(self, line: SourcedLine) -> None:
        """Tell a truncation by the warning that it is below the high watermark, with that."""
        entry = self._truncation(line, number(line.fields["to"]), "warning")
        high_watermark = number(line.fields["high_watermark"])
        doubtful = self.releases.raises_before_truncation(line)
        # A log is never shorter than its high watermark: it grew since the line that its end was taken from.
        if not doubtful and entry.fields["from"] is not None and entry.fields["from"] < high_watermark:
            entry.fields["from"] = entry.fields["high_watermark"] = None
        if entry.fields["high_watermark"] is None:
            entry.fields["high_watermark"] = high_watermark
            if doubtful:
                entry.marks.add("doubtful")
        entry.fields["relation"] = "below"

    def _truncation(self, line: SourcedLine, to: int, printer: str, end: int | None = None) -> StoryEntry:
        """Return the entry of a truncation to offset `to`: the one that other lines of it began, or a new one.

        `printer` is who printed the line (a mark: see above), `end` the log end before, where the line has it.
        """
        entry = self._open_truncation(line, to, printer)
        replica = self.replica_of(line)
        if entry is None:
            entry = self.add(
                line,
                "truncated",
                line.partition,
                **{"from": None},
                to=to,
                high_watermark=None,
                relation="unknown",
                reason=None,
            )
            self._fill(entry, replica, line, to)
            replica.truncation = entry
        else:
            join(entry, line)
            if entry.node is None and line.node is not None:
                entry.node = line.node
        entry.marks.add(printer)
        if end is not None:
            # The log has grown since its last line, so the high watermark that is known from then is too low. (A report has
            # its own.)
            if replica.log_end is not None and end > replica.log_end:
                entry.fields["high_watermark"] = None if printer == "log" else entry.fields["high_watermark"]
            entry.fields["from"] = end
        relate(entry)
        # The log itself says where it ends now; a fetcher's line, or a warning, what is to come.
        if printer in ("log", "report"):
            replica.log_end, replica.ended, replica.is_known = to, None, True
            if replica.high_watermark is not None:
                replica.high_watermark = min(replica.high_watermark, to)
        return entry

    def _fill(self, entry: StoryEntry, replica: ReplicaStory, line: SourcedLine, to: int) -> None:
        """Fill in what the lines before a truncation say: why the replica truncates, from where, its high watermark."""
        # Why: a reset to the same offset just before, or, before KIP-101, what the log's line alone lets one conclude.
        reset = replica.reset
        if reset is not None and reset.fields["to"] == to and line.order - reset.order < TOGETHER:
            entry.basis, entry.fields["reason"], entry.fields["from"] = (
                "reset",
                "out of range for its leader",
                reset.fields["from"],
            )
        elif "Truncating log " in line.says.text and not self.releases.has_epochs(line):
            self._before_epochs(entry, replica, line, to)
        # From where: the log end that is known, if it was so a short time ago and this removes something of it.
        is_fresh = replica.ended is not None and line.order - replica.ended < STALE
        if entry.fields["from"] is None and is_fresh and replica.log_end is not None and replica.log_end >= to:
            entry.fields["from"] = replica.log_end
        # It is truncated to above the log end that is known: it has fetched since, and its high watermark rose, too.
        has_grown = replica.log_end is not None and to > replica.log_end and entry.basis != "high watermark"
        just_truncated = replica.truncation is not None and line.order - replica.truncation.order < 2 * SECOND
        is_current = (is_fresh or just_truncated or entry.basis == "high watermark") and not has_grown
        entry.fields["high_watermark"] = replica.high_watermark if is_current else None

    def _before_epochs(self, entry: StoryEntry, replica: ReplicaStory, line: SourcedLine, to: int) -> None:
        """Set why a log truncates before KIP-101: to its own high watermark as it becomes a follower, else out of range.

        `to` is the offset that it truncates to. The basis is `untold` where neither fits.
        """
        became_follower = replica.role_changed is not None and line.order - replica.role_changed < 2 * SECOND
        if replica.high_watermark is not None and to < replica.high_watermark and not became_follower:
            entry.basis, entry.fields["reason"] = "reset", "below its high watermark: out of range for its leader"
        # Or it is the first truncation since the log was loaded: its broker has just become a follower.
        elif became_follower or (replica.loaded is not None and replica.truncation is None):
            entry.basis, entry.fields["reason"] = "high watermark", "to its own high watermark, as it did before KIP-101"
            replica.high_watermark, replica.role_changed = to, None
            self.had(line, to)
        else:
            entry.basis = "untold"

    def _open_truncation(self, line: SourcedLine, to: int, printer: str) -> StoryEntry | None:
        """Return the truncation that a line belongs to: to the same offset, near in time, without a line of this printer.

        None if there is none, or if a line of no known node fits several.
        """
        own = self.replica_of(line).truncation
        candidates = [own] if own is not None else []
        if line.node is None:
            candidates += [
                replica.truncation
                for (partition, _), replica in self.replicas.items()
                if partition == line.partition and replica.truncation
            ]
        fitting = {
            id(truncation): truncation
            for truncation in candidates
            if truncation.fields["to"] == to
            and printer not in truncation.marks
            and abs(line.order - truncation.order) < TOGETHER
        }
        return next(iter(fitting.values())) if len(fitting) == 1 else None

    def say_fell(self, line: SourcedLine) -> None:
        """Tell a high watermark that falls; it is added to the truncation just before, by which it does."""
        replica = self.replica_of(line)
        before, after = number(line.fields["from"]), number(line.fields["to"])
        last = replica.fell
        fields = {"from": before, "to": after}
        if last is not None and last.fields["to"] == before and line.order - last.order < TOGETHER:
            fields["continues"] = True  # it goes on where the last one ended: one fall, in two steps
        replica.fell = self.add(line, "high_watermark_fell", line.partition, **fields)
        doubtful = self.releases.raises_before_truncation(line)
        if doubtful:
            replica.fell.marks.add("doubtful")
        truncation = replica.truncation
        if (
            truncation is not None
            and truncation.fields["high_watermark"] is None
            and line.order - truncation.order < TOGETHER
            and truncation.fields["to"] <= after
        ):
            # Where the release may have raised it just before (KAFKA-14704), it says nothing of what was committed.
            if not doubtful:
                truncation.fields["high_watermark"] = before
                relate(truncation)
            join(truncation, line)

    def say_dumped_segment(self, line: SourcedLine) -> None:
        """Note of which partition the segment is whose dump begins here, and tell what it has if nothing in it is odd."""
        self.dumped[line.file] = line.partition
        self.metadata_dumps.pop(line.file, None)
        if "batches" in line.fields and line.partition != METADATA_LOG:
            first, last, batches = (number(line.fields[name]) for name in ("first", "last", "batches"))
            segment = number(line.fields["segment"])
            # A dump does not say whose disk it is of; a time in it is that of a record.
            of_dump = replace(line, node=None, time="")
            self.add(of_dump, "segment_dumped", line.partition, segment=segment, first=first, last=last, batches=batches)

    def say_dumped_snapshot(self, line: SourcedLine) -> None:
        """Tell the dump of a snapshot of the metadata: it has what all records below an offset said, in an epoch."""
        self.dumped[line.file] = METADATA_LOG
        dump = self.metadata_dumps[line.file] = self._metadata_dumped(line)
        dump.fields |= {"snapshot_end": number(line.fields["end"]), "snapshot_epoch": number(line.fields["epoch"])}

    def say_dumped_quorum(self, line: SourcedLine) -> None:
        """Tell what the dump of the metadata log says of the quorum: the last kraft.version, and the last voters."""
        of_quorum: dict[str, object] = {}
        if "kraft_version" in line.fields:
            of_quorum["kraft_version"] = number(line.fields["kraft_version"])
        voters = _VOTER.findall(line.fields.get("voters", ""))
        of_quorum |= {"voters": list(map(int, voters))} if voters else {}
        if not of_quorum:
            return
        if line.file not in self.metadata_dumps:
            self.metadata_dumps[line.file] = self._metadata_dumped(line)
        dump = self.metadata_dumps[line.file]
        dump.fields |= of_quorum
        join(dump, line)

    def _metadata_dumped(self, line: SourcedLine) -> StoryEntry:
        """Add an entry of the dump of the metadata log, or of a snapshot of it: of nobody's, and without a time."""
        return self.add(replace(line, node=None, time="", partition=None), "metadata_dumped")

    def say_dumped_batch(self, line: SourcedLine) -> None:
        """Tell what a dump shows: offsets that are not there, batches that are invalid, epochs that go back.

        reading.py gives only what is odd in a batch: a gap (`first` to before `end`), `invalid` (its offset), `epoch`.
        """
        fields = line.fields
        of_dump = replace(line, partition=self.dumped.get(line.file), node=None, time="")  # the time is a record's
        if of_dump.partition in (None, METADATA_LOG):
            return
        if "end" in fields:
            self.add(of_dump, "gap", of_dump.partition, first=number(fields["first"]), end=number(fields["end"]))
        if "invalid" in fields:
            self.say_corrupt(replace(of_dump, fields={"offset": fields["invalid"], "reader": "kafka-dump-log"}))
        if "epoch" in fields:
            self.say_epochs_conflict(of_dump)

    def say_segments_missing(self, line: SourcedLine) -> None:
        """Tell a log whose end was found below its start: what lay between is gone from this disk."""
        end, start = number(line.fields["log_end"]), number(line.fields["log_start"])
        self.add(line, "segments_missing", line.partition, log_end=end, log_start=start)
        replica = self.replica_of(line)
        replica.log_end, replica.ended, replica.is_known = start, line.order, True

    def say_records_deleted(self, line: SourcedLine) -> None:
        """Tell that a client had records deleted: those below `to` (DeleteRecords)."""
        self.add(line, "records_deleted", line.partition, to=number(line.fields["to"]))

    def say_retained(self, line: SourcedLine) -> None:
        """Tell what retention removed of a replica: one entry, which each line, and each limit, brings up to date."""
        replica, to = self.replica_of(line), number(line.fields["to"])
        if replica.retained is None:
            replica.retained = self.add(line, "retention", line.partition, to=to, times=0)
        replica.retained.fields |= {"to": to, "times": replica.retained.fields["times"] + 1}
        if replica.retention is not None:
            replica.retained.fields["limit"] = _limit(replica.retention)
        join(replica.retained, line)

    def say_segment_deleted(self, line: SourcedLine) -> None:
        """Tell the segments of a replica that were deleted, by their first offsets: one entry, each segment once."""
        if line.partition is None:
            return
        replica, base = self.replica_of(line), number(line.fields["base"])
        # A truncation deletes the segments behind it by the same lines (Log#truncateTo), after file.delete.delay.ms.
        truncated = replica.truncation
        if truncated is not None and line.order - truncated.order < 120 * SECOND and base >= (truncated.fields["to"] or 0):
            return
        if replica.deleted_segments is None:
            replica.deleted_segments = self.add(line, "segments_deleted", line.partition, segments=[])
        segments = replica.deleted_segments.fields["segments"]
        if base not in segments and len(segments) < MOST_SEGMENTS:
            segments.append(base)
            segments.sort()
        join(replica.deleted_segments, line)

    def say_start_moved(self, line: SourcedLine) -> None:
        """Tell what retention removed where it is known to have moved the log start: to 2.5 the line gives no reason."""
        retention = self.replica_of(line).retention
        if retention is not None and line.order - retention.order < TOGETHER:
            self.say_retained(line)

    def say_retained_because(self, line: SourcedLine) -> None:
        """Note which limit a segment was deleted by: the line stands before or after that of the new log start."""
        replica = self.replica_of(line)
        replica.retention = line
        if replica.retained is not None:
            replica.retained.fields["limit"] = _limit(line)

    def say_epochs_conflict(self, line: SourcedLine) -> None:
        """Tell leader epochs that came out of order in a log; the same again is counted."""
        replica = self.replica_of(line)
        replica.conflict = self.add_or_count(replica.conflict, line, "epochs_conflict")

    def say_corrupt(self, line: SourcedLine) -> None:
        """Tell invalid records at an offset or byte: in a log, fetched from a leader, or read by a consumer or a dump."""
        fields = {"offset": optional(line, "offset"), "byte": optional(line, "byte")}
        # `reader` is kafka-dump-log, or `Record`, the first word of a consumer's line.
        if "reader" in line.fields:
            line = replace(line, node=None)  # it says nothing of the replica that it was read from
        replica = self.replica_of(line)
        last = replica.corrupt
        # A fetcher asks for the same records again, every second.
        if last is not None and all(last.fields.get(name) == value for name, value in fields.items()):
            last.fields["times"] += 1
            join(last, line)
            return
        entry_fields: dict[str, object] = {
            name: value for name, value in fields.items() if value is not None or name == "offset"
        }
        reader = line.fields.get("reader")
        entry_fields |= {"by": "a consumer" if reader == "Record" else reader} if reader else {}
        replica.corrupt = self.add(line, "corrupt", line.partition, **entry_fields, times=1)
        # A follower's fetcher met them, not the log itself.
        if "during fetch" in line.says.text:
            replica.corrupt.marks.add("fetched")
            self._note_invalid(replica.corrupt, line)

    def _note_invalid(self, corrupt: StoryEntry, line: SourcedLine) -> None:
        """Set `leaders` of what came invalid from several leaders: they have in common the broker that fetched it."""
        invalid, leader = self.nodes[self.key(line)].invalid, fetched_from(line.text)
        if leader is None or corrupt.node is None:
            return
        invalid[leader].append(corrupt)
        if len(invalid) > 1:
            for entry in chain.from_iterable(invalid.values()):
                entry.fields["leaders"] = sorted(invalid)

    say_index_offset = say_corrupt

    def say_uncleanable(self, line: SourcedLine) -> None:
        """Tell a log that its broker compacts no more: its cleaner met an error there."""
        self.add(line, "uncleanable", line.partition, error=line.error or None)


def _limit(retention: SourcedLine) -> list[object]:
    """Return the limit that a line of retention names: its kind, `time` or `size`, and its milliseconds or bytes."""
    return [retention.fields["why"], number(retention.fields["limit"])]


def relate(entry: StoryEntry) -> None:
    """Set how a truncation lies to the high watermark before it: `below`, `not below`, `no effect` or `unknown`.

    It is called again whenever a line adds to the truncation.
    """
    begin, to, high_watermark = entry.fields["from"], entry.fields["to"], entry.fields["high_watermark"]
    # Once a line has told one of these, it stays.
    if entry.fields["relation"] in ("no effect", "below"):
        return
    if begin is not None and begin <= to:
        entry.fields["relation"] = "no effect"
    elif high_watermark is not None:
        # Not below only if it surely removed something: in 0.10 a log says the same of a truncation that does not, and a
        # fetcher says what it wants.
        had_effect = begin is not None or "truncated" in entry.marks
        entry.fields["relation"] = "below" if to < high_watermark else "not below" if had_effect else "unknown"
