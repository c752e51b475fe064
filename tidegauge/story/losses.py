"""The losses: which records are gone, how many, how sure that is, because of what, and who still has them.

Rules of this file

1. What a follower cuts because its leader's epochs end there is gone: the leader never had it. What it cuts to its own high
   watermark it copies again, unless the leader's log was shorter when it was elected.
2. Committed is what lay below a high watermark that a node had by its load, role or shrink line before the truncation; the
   high watermark of a warning counts only from a release that does not raise it just before (KAFKA-14704). `no` needs the
   high watermark of the node that cuts, else it is `unknown`: a line that is missing must not clear a loss.
3. One event is one loss, on however many replicas: those of one cause, with offsets in common, are one.
4. Where no line gives the size, `first`, `end` and `records` are None, `at_least` says what lines give, and `would_tell`
   the one that would.

In go the entries of a story (StoryEntry: `kind`, `fields`, `order`, a time in microseconds) and the high watermarks that
nodes had. The *event* of a loss is the leader that began without the records: one that had lost its disk, or was elected
uncleanly. Offsets are half-open: from `first`, or a truncation's `to`, to before `end`, or a truncation's `from`.

The `basis` of a truncation says why it was done: `epoch` (the answer of its leader), `high watermark` (to its own), `reset`
(it was out of its leader's range), `untold`, or "" if no line says. Its `relation` says how it lies to the high watermark
before it (`no effect`: it removed nothing). Marks: `doubtful`, that high watermark may be too high (KAFKA-14704); `led
before`, the follower was itself the leader before.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from tidegauge.story.state import SECOND, KnownHighWatermark, StoryEntry, Telling

UNCLEAN = "unclean election"
DISK = "disk lost"
BELOW = "truncated below the high watermark"
NEVER = "never replicated"
BROKEN = "a promise broken"
"""Of a loss that the judge knows more of than the lines of the story: a rule says that the records were promised."""
_LEADER_END = (
    "how far the leader's log reached when it was elected: its line `Completed load of log ..`, or a dump of both logs"
)
SOON = 30 * SECOND
"""A replica that loads or truncates its log and leads so soon has copied nothing since, in microseconds."""
SLACK = 5 * SECOND
"""By how much the clocks of two brokers may differ, in microseconds."""


class Cause(NamedTuple):
    """Why records are gone, and the leader epoch of the leader that began without them; empty before it is looked for."""

    why: str = ""
    leader_epoch: object = None


NO_CAUSE = Cause()


@dataclass
class Loss:
    """Records that are gone, from `first` to before `end`. `allowed`: whether Kafka's rules allow it, None: unknown.

    `committed` is "yes", "no" or "unknown", `why` one of the reasons above, or "truncated". `nodes` truncated them, `copies`
    still had all of them. `kept_offsets`: those after a reset at which `node` still has its old log, which differs from its
    leader's. `missing_line` names the line that would tell the size (rule 4), `do` is the next step (advice.py),
    `acknowledged` how many of them the judge knows to be acknowledged with acks=all.
    """

    partition: str
    node: int | None
    first: int | None
    end: int | None
    committed: str
    why: str
    allowed: bool | None
    at_least: int
    sources: list[str]
    time: str
    order: int
    generation: int
    cause: Cause = NO_CAUSE
    missing_line: str | None = None
    nodes: list[int] = field(default_factory=list)
    copies: list[int] = field(default_factory=list)
    kept_offsets: tuple[int, int] | None = None
    do: str | None = None
    acknowledged: int | None = None

    @property
    def records(self) -> int | None:
        """How many offsets are gone, where the lines give that."""
        return None if self.first is None or self.end is None else self.end - self.first

    def as_json(self) -> dict[str, Any]:
        """Return the loss as plain data."""
        return {
            "partition": self.partition,
            "node": self.node,
            "nodes": self.nodes,
            "first": self.first,
            "end": self.end,
            "records": self.records,
            "committed": self.committed,
            "acknowledged": self.acknowledged,
            "why": self.why,
            "allowed": self.allowed,
            "at_least": self.at_least,
            "would_tell": self.missing_line,
            "copies": self.copies,
            "do": self.do,
            "time": self.time,
            "sources": self.sources,
        }


@dataclass
class _LeaderStart:
    """The beginning of a leader: its leader line, or its election, with the log end of its load line as `offset`.

    `offset` is None if no line gives it; `clean`: whether it was elected cleanly, None if unknown; `disk`: it had lost its
    log before.
    """

    order: int
    node: int | None
    epoch: int | None
    offset: int | None
    clean: bool | None
    source: str
    time: str
    disk: bool = False


def _leader_start(entry: StoryEntry, node: int | None, offset: int | None, clean: bool | None) -> _LeaderStart:
    """Return the beginning of a leader as `entry`, a leader line or an election, tells it."""
    return _LeaderStart(entry.order, node, entry.fields["leader_epoch"], offset, clean, entry.sources[0], entry.time)


def _add_leader_line(starts: list[_LeaderStart], line: StoryEntry, election: StoryEntry | None) -> None:
    """Add a leader's own line to those who led; `election` elected this leader, None where no line tells that."""
    clean = election.fields["clean"] if election is not None else None
    same = [start for start in starts if start.epoch == line.fields["leader_epoch"] and start.node == line.node]
    # Of those, the ones by a leader line; the others are the election itself.
    earlier_lines = [start for start in same if election is None or start.source != election.sources[0]]
    added = _leader_start(line, line.node, line.fields["offset"], clean)
    # One node that leads one epoch twice, the second time with less, has lost its log in between.
    added.disk = any(start.offset is not None and start.offset > line.fields["offset"] for start in earlier_lines)
    # The leader's own line says more than the election, which it replaces; an unclean election is what explains a loss.
    if election is not None and not earlier_lines:
        starts[:] = [start for start in starts if start not in same]
        added.source = election.sources[0] if clean is False else added.source
    starts.append(added)


def losses_of(telling: Telling) -> list[Loss]:
    """Return the losses that a story tells, of all partitions, by time."""
    by_partition: dict[tuple[str, int], list[StoryEntry]] = defaultdict(list)
    everywhere = [entry for entry in telling.entries if entry.partition is None]
    for entry in telling.entries:
        if entry.partition is not None:
            by_partition[entry.partition, entry.generation].append(entry)
    losses: list[Loss] = []
    # A topic that was created anew is another generation: its offsets and epochs begin again.
    for (partition, generation), entries in by_partition.items():
        high_watermarks = [known for known in telling.high_watermarks.get(partition, ()) if known.generation == generation]
        losses += _PartitionLosses(partition, generation, entries, everywhere, high_watermarks).losses()
    return sorted(losses, key=lambda loss: loss.order)


class _PartitionLosses:
    """The losses of one partition."""

    def __init__(
        self,
        partition: str,
        generation: int,
        entries: Sequence[StoryEntry],
        everywhere: Sequence[StoryEntry],
        high_watermarks: Sequence[KnownHighWatermark],
    ) -> None:
        """Take the entries of one generation of the partition, and those that are about no partition (`everywhere`)."""
        self.partition, self.generation, self.entries, self.high_watermarks = partition, generation, entries, high_watermarks
        self.disks = [entry for entry in everywhere if entry.kind == "replica_lost"]
        self.disks += [entry for entry in entries if entry.kind == "replica_lost"]
        self.collected: list[Loss] = []
        self.starts = self._leaders()

    def losses(self) -> list[Loss]:
        """Return the losses of the partition: by leaders that began with too little, and by truncations; each once."""
        for leader in self.starts:
            self._by_leader(leader)
        for entry in self.entries:
            if entry.kind == "truncated" and entry.fields["relation"] != "no effect":
                self._by_truncation(entry)
        for loss in self.collected:
            self._note_copies(loss)
            self._note_tail(loss)
        return [loss for loss in self.collected if not self._is_repeated(loss) and not self._survived(loss)]

    def _is_repeated(self, loss: Loss) -> bool:
        """Return whether this loss is of no known node, and another such loss says more surely that the same is gone."""
        return (
            loss.node is None
            and loss.committed == "unknown"
            and any(
                other.node is None and other.committed != "unknown" and (other.first, other.end) == (loss.first, loss.end)
                for other in self.collected
            )
        )

    def _leaders(self) -> list[_LeaderStart]:
        """Return who led, in order: by leader lines, and by elections of which no leader line tells (0.10)."""
        starts: list[_LeaderStart] = []
        # By node: the last log end that a line gave, and when, as long as nothing is appended to that log.
        ended: dict[int | None, tuple[int, int]] = {}
        # By leader epoch and leader.
        elected: dict[tuple[object, object], StoryEntry] = {}
        for entry in self.entries:
            fields = entry.fields
            if entry.kind == "loaded" and fields["log_end"] is not None:
                ended[entry.node] = fields["log_end"], entry.order
            elif entry.kind == "truncated" and fields["relation"] != "no effect":
                ended[entry.node] = fields["to"], entry.order
            elif entry.kind in ("truncated", "follower"):
                # It follows from here on, and copies: its log does not end there any more.
                ended.pop(entry.node, None)
            elif entry.kind == "elected" and fields["leader"] >= 0:
                elected[fields["leader_epoch"], fields["leader"]] = entry
                end, since = ended.get(fields["leader"], (None, 0))
                # After an older log end, lines may be missing that say that it followed, and copied, since.
                starts.append(
                    _leader_start(entry, fields["leader"], end if entry.order - since < SOON else None, fields["clean"])
                )
            elif entry.kind == "leader":
                ended.pop(entry.node, None)  # it appends from here on
                _add_leader_line(starts, entry, elected.get((fields["leader_epoch"], entry.node)))
        for start in starts:
            start.disk = start.disk or self._lost_its_disk(start)
        return starts

    def _lost_its_disk(self, leader: _LeaderStart) -> bool:
        """Return whether a leader had lost its log before it began; not said of one whose first offset no line gives."""
        lost = [disk for disk in self.disks if disk.node == leader.node and disk.order <= leader.order]
        return bool(lost) and leader.offset is not None

    def _began_without(self, leader: _LeaderStart) -> _LeaderStart:
        """Return the event of a loss: the first beginning of this leader without the records that it lacks.

        That is this one, or, where it had lost its log, the first since then: it may have led again after that.
        """
        if not leader.disk:
            return leader
        since = max(
            (disk.order for disk in self.disks if disk.node == leader.node and disk.order <= leader.order),
            default=leader.order,
        )
        return next(start for start in self.starts if start.disk and start.node == leader.node and start.order >= since)

    def _is_of_lost_records(self, high_watermark: KnownHighWatermark, event: _LeaderStart) -> bool:
        """Return whether the records below a high watermark were gone before `event`: an earlier leader lacked them."""
        return any(
            high_watermark.order < start.order < event.order
            and start.offset is not None
            and start.offset < high_watermark.offset
            and (start.disk or start.clean is False)
            for start in self.starts
        )

    def _survived(self, loss: Loss) -> bool:
        """Return whether a loss by a lost disk is none: the next leader had all that was on the disk.

        A broker that is back before its session has ended leads on, without its log, in the epoch that it led, until it is
        registered. Then another replica leads, with all records, and the loss is one of this broker only.
        """
        # With a node it is a truncation, so what it says is gone was removed.
        if loss.why != DISK or loss.node is not None or loss.end is None:
            return False
        event = self._event_of(loss.cause)
        later = [
            start for start in self.starts if event is not None and start.order > event.order and start.node != event.node
        ]
        # Nobody else led, and nobody truncated: that is told only where another replica is known to have the records.
        if not later and not loss.nodes:
            return not loss.copies
        if not later or later[0].offset is None or later[0].offset < loss.end:
            return False
        # The next leader's log ends beyond them; they are gone all the same if it had cut them, and then copied others.
        return not any(
            entry.kind == "truncated" and entry.node == later[0].node and entry.fields["to"] < loss.end
            for entry in self.entries
            if event is not None and event.order < entry.order < later[0].order
        )

    def _event_of(self, cause: Cause) -> _LeaderStart | None:
        """Return the leader of a cause, DISK or UNCLEAN, that began without the records; None if no line tells of one."""
        fitting = [start for start in self.starts if (start.disk if cause.why == DISK else start.clean is False)]
        return next((start for start in fitting if start.epoch == cause.leader_epoch), None)

    def _note_tail(self, loss: Loss) -> None:
        """Set `missing_line` of a loss by a lost disk: the leader may have had more, which no other replica had fetched."""
        event = self._event_of(loss.cause) if loss.why == DISK else None
        before = [start for start in self.starts if event is not None and start.order < event.order]
        # Only if it led just before, too: a follower has no more than its leader.
        if event is not None and before and before[-1].node == event.node:
            loss.missing_line = end_of_lost_log(event.node)

    # A leader that begins below what was committed.

    def _by_leader(self, leader: _LeaderStart) -> None:
        """Add the loss of what a new leader lacks of what had been committed before: it begins below a high watermark."""
        if leader.offset is None:
            return
        event = self._began_without(leader)
        before = [
            high_watermark
            for high_watermark in self.high_watermarks
            if high_watermark.order < leader.order
            and not self._is_of_lost_records(high_watermark, event)
            and (
                high_watermark.leader_epoch is None
                or leader.epoch is None
                or high_watermark.leader_epoch < leader.epoch
                # Without its disk it may lead on in the epoch in which it had that high watermark.
                or (leader.disk and high_watermark.leader_epoch == leader.epoch)
            )
        ]
        highest = max(before, key=lambda high_watermark: high_watermark.offset, default=None)
        if highest is None or highest.offset <= leader.offset:
            return
        why = DISK if leader.disk else UNCLEAN if leader.clean is False else BELOW
        if why == BELOW:
            return  # not known to be another history: a high watermark of a line that is older than it looks
        self._add(
            Loss(
                self.partition,
                None,
                leader.offset,
                end=highest.offset,
                committed="yes",
                why=why,
                allowed=True,
                at_least=highest.offset - leader.offset,
                sources=[leader.source, highest.source],
                time=leader.time,
                order=leader.order,
                generation=self.generation,
                cause=Cause(why, event.epoch),
            )
        )

    # A follower that truncates.

    def _by_truncation(self, truncation: StoryEntry) -> None:
        """Add what a replica lost when it truncated: all of it, or what its leader lacks where it copies the rest again."""
        begin, to = truncation.fields["from"], truncation.fields["to"]
        leader = self._leader_of(truncation)
        # The first offset of the leader that it follows, from where on that leader's records are its own.
        start = leader.offset if leader is not None and leader.node != truncation.node else None
        if truncation.basis == "untold":
            return
        if truncation.basis == "high watermark":
            # What it copies again is no loss; what its leader lacked is.
            if start is None or begin is None or start >= begin:
                return
            to = max(to, start)
        elif truncation.basis == "reset" and start is not None and start < to:
            to = start  # its leader has written since: what stands there is another record
        cause = self._cause(truncation, leader)
        event = self._event_of(cause)
        # The time of a loss is that of its event, if one and the size are known.
        time = event.time if event is not None and cause.why in (UNCLEAN, DISK) else truncation.time
        bound, committed_to = self._committed_to(truncation, leader)
        sources = list(
            dict.fromkeys(
                [*truncation.sources, *([leader.source] if leader is not None and cause.why in (UNCLEAN, DISK) else [])]
            )
        )
        if begin is None:
            self._of_unknown_size(truncation, to, cause, committed_to, sources)
            return
        if begin <= to:
            return
        for first, end, committed in _parts(to, begin, bound, committed_to):
            why, allowed = _reason(cause, committed)
            loss = Loss(
                self.partition,
                truncation.node,
                first,
                end=end,
                committed=committed,
                why=why,
                allowed=allowed,
                at_least=end - first,
                sources=sources,
                time=time,
                order=truncation.order,
                generation=self.generation,
                cause=cause,
                nodes=[truncation.node] if truncation.node is not None else [],
            )
            if truncation.basis == "reset":
                if start is None:
                    loss.missing_line = _LEADER_END
                elif start < truncation.fields["to"] and truncation.node is not None:
                    loss.kept_offsets = start, truncation.fields["to"]
            self._add(loss)

    def _of_unknown_size(
        self,
        truncation: StoryEntry,
        to: int,
        cause: Cause,
        committed_to: int | None,
        sources: list[str],
    ) -> None:
        """Add the loss by a truncation of which no line says from where: its size is unknown, but for a least number.

        `to` is where the log ends now; all below `committed_to` was committed (None: no high watermark is known).
        """
        # It may have removed nothing, unless a leader's answer led to it (`epoch`), it had to begin anew in its leader's log
        # (`reset`), or it went below the high watermark: then a record at least is gone.
        if truncation.basis not in ("epoch", "reset") and truncation.fields["relation"] != "below":
            return
        least = max(1, (committed_to or 0) - to)
        committed = "yes" if committed_to is not None and committed_to > to else "unknown"
        why, allowed = _reason(cause, committed)
        node = f"broker {truncation.node}" if truncation.node is not None else "the broker that truncated"
        self._add(
            Loss(
                self.partition,
                truncation.node,
                None,
                end=None,
                committed=committed,
                why=why,
                allowed=allowed,
                at_least=least,
                sources=sources,
                time=truncation.time,
                order=truncation.order,
                generation=self.generation,
                cause=cause,
                nodes=[truncation.node] if truncation.node is not None else [],
                missing_line=f"where the log of {node} ended before: its line `Follower {self.partition} starts at ..` "
                "(state-change.log), or `Completed load of ..` (server.log), just before it",
            )
        )

    def _until(self, truncation: StoryEntry) -> Sequence[StoryEntry]:
        """Return the entries before a truncation: by their place, not their time, which lines may lack."""
        return self.entries[: next(at for at, entry in enumerate(self.entries) if entry is truncation)]

    def _leader_of(self, truncation: StoryEntry) -> _LeaderStart | None:
        """Return the leader because of which a replica truncates: that of the epoch in which it follows.

        If no line tells that epoch, the last leader before that is another node; None if no such leader is known.
        """
        epoch = next(
            (
                entry.fields["leader_epoch"]
                for entry in reversed(self._until(truncation))
                if entry.kind == "follower" and entry.node == truncation.node
            ),
            None,
        )
        before = [
            start for start in self.starts if start.order <= truncation.order + SLACK and start.node != truncation.node
        ]
        fitting = [start for start in before if epoch is None or start.epoch == epoch]
        return fitting[-1] if fitting else None

    def _cause(self, truncation: StoryEntry, leader: _LeaderStart | None) -> Cause:
        """Return why what a truncation removes is gone: by the last leader before it that began without some of that.

        BELOW where no leader did that had lost its disk or was elected uncleanly. `leader` is the one that it follows.
        """
        # Up to where its log had records, as far as a line tells; and the last epoch in which a line shows its log.
        top = truncation.fields["from"] if truncation.fields["from"] is not None else truncation.fields["high_watermark"]
        own_epoch = max(
            (
                known.leader_epoch
                for known in self.high_watermarks
                if known.node == truncation.node
                and known.leader_epoch is not None
                and known.order < truncation.order - SLACK
            ),
            default=None,
        )
        for start in reversed([start for start in self.starts if start.order <= truncation.order + SLACK]):
            below = start.offset is None or top is None or start.offset < top
            if start.disk and below:
                return Cause(DISK, self._began_without(start).epoch)
            if start.clean is False and below:
                return Cause(UNCLEAN, start.epoch)
            if own_epoch is not None and start.epoch is not None and start.epoch <= own_epoch and start is not leader:
                break  # what this node had by then is what that leader had: older leaders are no cause
        return Cause(BELOW, leader.epoch if leader is not None else None)

    def _committed_to(self, truncation: StoryEntry, leader: _LeaderStart | None) -> tuple[int | None, int | None]:
        """Return (bound, committed_to): all below `committed_to` was committed, nothing at or above the higher of the two.

        `_parts` divides the removed offsets by them. The bound is None where neither the node's own high watermark nor a
        clean election says what was not committed, `committed_to` where no high watermark is known.
        """
        own_high_watermark = None if "doubtful" in truncation.marks else truncation.fields["high_watermark"]
        reached = [
            high_watermark.offset
            for high_watermark in self.high_watermarks
            if high_watermark.order < truncation.order
            and (
                high_watermark.node == truncation.node
                or (leader is not None and _is_of_earlier_epoch(high_watermark, leader))
            )
        ]
        committed = max([*reached, *([own_high_watermark] if own_high_watermark is not None else [])], default=None)
        # Nothing of an older epoch at or above the first offset of a leader that was elected cleanly was ever committed.
        if (
            leader is not None
            and leader.clean is True
            and not leader.disk
            and leader.offset is not None
            and own_high_watermark is None
        ):
            return 0, leader.offset if committed is None else min(committed, leader.offset)
        return None if own_high_watermark is None else self._bound(truncation, leader), committed

    def _bound(self, truncation: StoryEntry, leader: _LeaderStart | None) -> int | None:
        """Return from which offset on nothing above a replica's own high watermark was committed, None if that is unknown.

        0: all above it was not. A follower's lags behind its leader's, and so does that of a new leader below its first
        offset: what was committed there is known to be on a leader that was elected cleanly, if its replicas truncate by
        epochs and its log was whole.
        """
        # Whether all that it knew to be committed stays: if not, its leader's log was not whole.
        whole = truncation.fields["to"] >= truncation.fields["high_watermark"]
        if (
            truncation.basis != "high watermark"
            and leader is not None
            and leader.clean is True
            and not leader.disk
            and whole
        ):
            return 0
        roles = [
            entry
            for entry in self._until(truncation)
            if entry.kind in ("leader", "follower") and entry.node == truncation.node
        ]
        # The role in which it truncates, if a line tells it; `roles` are those before.
        following = roles.pop() if roles and roles[-1].kind == "follower" else None
        # That it led before is enough: an election gives no first offset, as the load line that it is told by may be old.
        if truncation.basis != "high watermark":
            if following is not None and "led before" in following.marks:
                return 0
            # Only of the leader before the one that it follows is it known that nobody led in between.
            before = [start for start in self.starts if leader is not None and start.order < leader.order]
            if leader is not None and not roles and before and before[-1].node == truncation.node:
                epoch = before[-1].epoch
                if None in (epoch, leader.epoch) or (epoch or 0) + 1 == leader.epoch:
                    return 0
        # It did not lead before, so its high watermark may lag by any number.
        if not roles or roles[-1].kind != "leader":
            return None
        # It may have followed a leader with a higher one since, without a line: another broker's leader line shows that, or
        # an epoch that was skipped.
        since = [start for start in self.starts if start is not leader and roles[-1].order < start.order < truncation.order]
        followed = any(start.node not in (None, truncation.node) for start in since)
        epochs = [roles[-1].fields["leader_epoch"], None if following is None else following.fields["leader_epoch"]]
        skipped = None not in epochs and epochs[0] + 1 < epochs[1]
        return None if followed or skipped else roles[-1].fields["offset"]

    # The list.

    def _add(self, loss: Loss) -> None:
        """Add a loss, or merge it into one that is the same event: of the same cause, with offsets in common (rule 3)."""
        for other in self.collected:
            # What one replica cannot tell of these records, another one's line may.
            same = loss.first is not None and (loss.first, loss.end, loss.cause.leader_epoch) == (
                other.first,
                other.end,
                other.cause.leader_epoch,
            )
            if same and "unknown" in (loss.committed, other.committed):
                if other.committed == "unknown":
                    other.committed, other.why, other.allowed, other.cause = (
                        loss.committed,
                        loss.why,
                        loss.allowed,
                        loss.cause,
                    )
                _merge(other, loss)
                return
            if other.committed != loss.committed or other.cause != loss.cause:
                continue
            if loss.first is None or other.first is None or loss.end is None or other.end is None:
                # A loss without offsets may be part of one that is at least as large; of two it cannot be told.
                if (
                    loss.first is None
                    and other.first is not None
                    and loss.node is not None
                    and other.at_least >= loss.at_least
                ):
                    _merge(other, loss)
                    return
                continue
            if loss.first < other.end and other.first < loss.end:
                other.first, other.end = min(other.first, loss.first), max(other.end, loss.end)
                other.at_least = other.end - other.first
                _merge(other, loss)
                return
        self.collected.append(loss)

    def _note_copies(self, loss: Loss) -> None:
        """Set `copies` of a loss: the nodes whose log had all of it and was not truncated since."""
        if loss.end is None or loss.first is None:
            return
        # By node, whether it has all of it, as the lines so far say. A later line overrules an earlier one.
        copies: dict[int, bool] = {}
        # The leader that began without the records, if the loss is due to one: logs from before it may have them.
        before = [start for start in self.starts if start.order <= loss.order + SLACK]
        event = next(
            (
                start
                for start in reversed(before)
                if (loss.why == UNCLEAN and start.clean is False) or (loss.why == DISK and start.disk)
            ),
            None,
        )
        # Whoever had a high watermark that high had the records, the old leader among them.
        for high_watermark in self.high_watermarks:
            if (
                event is not None
                and high_watermark.order < event.order
                and high_watermark.offset >= loss.end
                and high_watermark.node is not None
            ):
                copies[high_watermark.node] = True
        for entry in self.entries:
            if entry.node is None:
                continue
            if entry.kind in ("follower", "loaded"):
                end = entry.fields.get("offset") if entry.kind == "follower" else entry.fields["log_end"]
                # A log that is seen only after the event may reach as far with the new leader's records.
                if end is not None and (event is None or entry.order < event.order or entry.node in copies):
                    copies[entry.node] = end >= loss.end
            elif (
                (entry.kind == "truncated" and entry.fields["to"] < loss.end and entry.fields["relation"] != "no effect")
                or entry.kind == "replica_lost"
                or (entry.kind == "leader" and event is not None and entry.order >= event.order)
            ):
                copies[entry.node] = False
            elif entry.kind == "leader" and event is None and entry.fields["offset"] >= loss.end and loss.committed == "yes":
                copies[entry.node] = True
        # Whenever a disk was lost, its copy is gone now.
        for disk in self.disks:
            if disk.node is not None:
                copies[disk.node] = False
        loss.copies = sorted(node for node, has in copies.items() if has and node not in loss.nodes)
        if loss.kept_offsets is not None and loss.node is not None:
            loss.copies = sorted({*loss.copies, loss.node})


def end_of_lost_log(node: int | None) -> str:
    """Return which line tells how much a leader had whose disk was lost; a value of `missing_line`."""
    return (
        f"how far the log of broker {node} reached that was lost: its lines `Appended message set ..` (TRACE), or that disk"
    )


def _merge(loss: Loss, other: Loss) -> None:
    """Add to a loss the nodes and the lines of another one, which is of the same records."""
    loss.node = loss.node if loss.node is not None else other.node
    loss.nodes += [node for node in other.nodes if node not in loss.nodes]
    loss.sources = list(dict.fromkeys([*loss.sources, *other.sources]))
    loss.kept_offsets = loss.kept_offsets or other.kept_offsets


def _is_of_earlier_epoch(high_watermark: KnownHighWatermark, leader: _LeaderStart) -> bool:
    """Return whether another node reached a high watermark in an epoch before this leader: it bounds the old history."""
    if high_watermark.order >= leader.order or high_watermark.leader_epoch is None:
        return False
    return leader.epoch is None or high_watermark.leader_epoch < leader.epoch


def _parts(first: int, end: int, bound: int | None, committed_to: int | None) -> Iterator[tuple[int, int, str]]:
    """Yield the parts of [first, end) as (first, end, whether it was committed).

    first ..... yes ..... committed_to ..... unknown ..... bound ..... no ..... end

    Where `bound` is None nothing is known not to be committed, where `committed_to` is None nothing is known at all.
    """
    if committed_to is None:
        yield first, end, "unknown"
        return
    middle = min(max(committed_to, first), end)
    if first < middle:
        yield first, middle, "yes"
    unknown_to = end if bound is None else min(max(bound, middle), end)
    if middle < unknown_to:
        yield middle, unknown_to, "unknown"
    if unknown_to < end:
        yield unknown_to, end, "no"


def _reason(cause: Cause, committed: str) -> tuple[str, bool | None]:
    """Return why records are gone (Loss.why), and whether Kafka allows that (None: unknown).

    `committed` is "yes", "no" or "unknown". "truncated" is the reason where it is not known that committed records are gone.
    """
    if cause.why in (UNCLEAN, DISK):
        return cause.why, True
    if committed == "no":
        return NEVER, True
    return (BELOW, None) if committed == "yes" else ("truncated", None)
