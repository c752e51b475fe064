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

    `kept_offsets`: those after a reset at which `node` still has its old log, which differs from its leader's.
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

    `offset` is None if no line gives it; `disk`: it had lost its log before.
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
    """Return the beginning of a leader as a leader line or an election tells it."""
    return _LeaderStart(entry.order, node, entry.fields["leader_epoch"], offset, clean, entry.sources[0], entry.time)


def _add_leader_line(led: list[_LeaderStart], line: StoryEntry, election: StoryEntry | None) -> None:
    """Add a leader line to those who led; `election` elected this leader, None where no line tells that."""
    clean = election.fields["clean"] if election is not None else None
    same = [one for one in led if one.epoch == line.fields["leader_epoch"] and one.node == line.node]
    earlier_lines = [one for one in same if election is None or one.source != election.sources[0]]
    begun = _leader_start(line, line.node, line.fields["offset"], clean)
    # One node that leads one epoch twice, the second time with less, has lost its log in between.
    begun.disk = any(one.offset is not None and one.offset > line.fields["offset"] for one in earlier_lines)
    # The leader's own line says more than the election, which it replaces; an unclean election is what explains a loss.
    if election is not None and not earlier_lines:
        led[:] = [one for one in led if one not in same]
        begun.source = election.sources[0] if clean is False else begun.source
    led.append(begun)


def losses_of(telling: Telling) -> list[Loss]:
    """Return the losses, in order."""
    by_partition: dict[tuple[str, int], list[StoryEntry]] = defaultdict(list)
    everywhere = [entry for entry in telling.entries if entry.partition is None]
    for entry in telling.entries:
        if entry.partition is not None:
            by_partition[entry.partition, entry.generation].append(entry)
    found: list[Loss] = []
    for (partition, generation), entries in by_partition.items():
        known = [one for one in telling.high_watermarks.get(partition, ()) if one.generation == generation]
        found += _PartitionLosses(partition, generation, entries, everywhere, known).losses()
    return sorted(found, key=lambda loss: loss.order)


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
        self.partition, self.generation, self.entries, self.high_watermarks = partition, generation, entries, high_watermarks
        self.disks = [entry for entry in everywhere if entry.kind == "replica_lost"]
        self.disks += [entry for entry in entries if entry.kind == "replica_lost"]
        self.collected: list[Loss] = []
        self.starts = self._leaders()

    def losses(self) -> list[Loss]:
        """Return the losses of the partition."""
        for led in self.starts:
            self._by_leader(led)
        for entry in self.entries:
            if entry.kind == "truncated" and entry.fields["relation"] != "no effect":
                self._by_truncation(entry)
        for loss in self.collected:
            self._note_copies(loss)
            self._note_tail(loss)
        return [loss for loss in self.collected if not self._is_repeated(loss) and not self._survived(loss)]

    def _is_repeated(self, loss: Loss) -> bool:
        """Return whether lines that name no node tell a loss twice, and this one less surely."""
        return (
            loss.node is None
            and loss.committed == "unknown"
            and any(
                one.node is None and one.committed != "unknown" and (one.first, one.end) == (loss.first, loss.end)
                for one in self.collected
            )
        )

    def _leaders(self) -> list[_LeaderStart]:
        """Return who led, in order: leader lines, and elections that no leader line tells (0.10)."""
        led: list[_LeaderStart] = []
        ended: dict[int | None, tuple[int, int]] = {}
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
                # Lines may be gone behind an older one, that say that it followed.
                led.append(
                    _leader_start(entry, fields["leader"], end if entry.order - since < SOON else None, fields["clean"])
                )
            elif entry.kind == "leader":
                ended.pop(entry.node, None)  # it writes
                _add_leader_line(led, entry, elected.get((fields["leader_epoch"], entry.node)))
        for one in led:
            one.disk = one.disk or self._lost_its_disk(one)
        return led

    def _lost_its_disk(self, led: _LeaderStart) -> bool:
        """Return whether a leader had lost its log when it began, and began with less than it had known."""
        lost = [disk for disk in self.disks if disk.node == led.node and disk.order <= led.order]
        return bool(lost) and led.offset is not None

    def _began_without(self, led: _LeaderStart) -> _LeaderStart:
        """Return the leader that began without the records that this one lacks.

        That is itself, or, where it had lost its log, its first beginning since: whatever it leads later, it lost it once.
        """
        if not led.disk:
            return led
        since = max(
            (disk.order for disk in self.disks if disk.node == led.node and disk.order <= led.order), default=led.order
        )
        return next(one for one in self.starts if one.disk and one.node == led.node and one.order >= since)

    def _is_of_lost_records(self, high_watermark: KnownHighWatermark, begun: _LeaderStart) -> bool:
        """Return whether a leader that lacked the records below a high watermark had led before this one: they were gone."""
        return any(
            high_watermark.order < one.order < begun.order
            and one.offset is not None
            and one.offset < high_watermark.offset
            and (one.disk or one.clean is False)
            for one in self.starts
        )

    def _survived(self, loss: Loss) -> bool:
        """Return whether other replicas had all that an emptied disk had held, when one of them led next: it was never gone.

        A broker that is back before its session has ended leads on, in the epoch that it led, until it is registered.
        """
        if loss.why != DISK or loss.node is not None or loss.end is None:
            return False
        begun = self._event_of(loss.cause)
        later = [one for one in self.starts if begun is not None and one.order > begun.order and one.node != begun.node]
        # Nobody led, nobody truncated: the other replicas have it, or no line tells.
        if not later and not loss.nodes:
            return not loss.copies
        if not later or later[0].offset is None or later[0].offset < loss.end:
            return False
        return not any(
            entry.kind == "truncated" and entry.node == later[0].node and entry.fields["to"] < loss.end
            for entry in self.entries
            if begun is not None and begun.order < entry.order < later[0].order
        )

    def _event_of(self, cause: Cause) -> _LeaderStart | None:
        """Return the leader that began without the records, of a cause that is one."""
        fitting = [one for one in self.starts if (one.disk if cause.why == DISK else one.clean is False)]
        return next((one for one in fitting if one.epoch == cause.leader_epoch), None)

    def _note_tail(self, loss: Loss) -> None:
        """Say that a leader whose disk was lost may have had more: what no other replica had fetched."""
        begun = self._event_of(loss.cause) if loss.why == DISK else None
        before = [one for one in self.starts if begun is not None and one.order < begun.order]
        if begun is not None and before and before[-1].node == begun.node:
            loss.missing_line = end_of_lost_log(begun.node)

    # A leader that begins below what was committed.

    def _by_leader(self, led: _LeaderStart) -> None:
        """Add what a new leader lacks of what had been committed before it led, as far as its start shows."""
        if led.offset is None:
            return
        begun = self._began_without(led)
        before = [
            one
            for one in self.high_watermarks
            if one.order < led.order
            and not self._is_of_lost_records(one, begun)
            and (
                one.leader_epoch is None
                or led.epoch is None
                or one.leader_epoch < led.epoch
                or (led.disk and one.leader_epoch == led.epoch)
            )
        ]
        highest = max(before, key=lambda high_watermark: high_watermark.offset, default=None)
        if highest is None or highest.offset <= led.offset:
            return
        why = DISK if led.disk else UNCLEAN if led.clean is False else BELOW
        if why == BELOW:
            return  # not known to be another history: a high watermark of a line that is older than it looks
        self._add(
            Loss(
                self.partition,
                None,
                led.offset,
                end=highest.offset,
                committed="yes",
                why=why,
                allowed=True,
                at_least=highest.offset - led.offset,
                sources=[led.source, highest.source],
                time=led.time,
                order=led.order,
                generation=self.generation,
                cause=Cause(why, begun.epoch),
            )
        )

    # A follower that truncates.

    def _by_truncation(self, truncation: StoryEntry) -> None:
        """Add what a replica lost when it truncated: all of it, or what its leader lacks where it copies the rest again."""
        begin, to = truncation.fields["from"], truncation.fields["to"]
        led = self._leader_of(truncation)
        start = led.offset if led is not None and led.node != truncation.node else None
        if truncation.basis == "untold":
            return
        if truncation.basis == "high watermark":
            # What it copies again is no loss; what its leader lacked is.
            if start is None or begin is None or start >= begin:
                return
            to = max(to, start)
        elif truncation.basis == "reset" and start is not None and start < to:
            to = start  # its leader has written since: what stands there is another record
        cause = self._cause(truncation, led)
        event = self._event_of(cause)
        time = event.time if event is not None and cause.why in (UNCLEAN, DISK) else truncation.time
        bound, committed_to = self._committed_to(truncation, led)
        sources = list(
            dict.fromkeys([*truncation.sources, *([led.source] if led is not None and cause.why in (UNCLEAN, DISK) else [])])
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
        """Tell a truncation of which no line says from where."""
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
        """Return the entries before a truncation: of its own node also where lines have no times."""
        return self.entries[: next(at for at, entry in enumerate(self.entries) if entry is truncation)]

    def _leader_of(self, truncation: StoryEntry) -> _LeaderStart | None:
        """Return the leader that a truncation follows; of a known epoch that one, if any line tells that it led."""
        epoch = next(
            (
                entry.fields["leader_epoch"]
                for entry in reversed(self._until(truncation))
                if entry.kind == "follower" and entry.node == truncation.node
            ),
            None,
        )
        before = [one for one in self.starts if one.order <= truncation.order + SLACK and one.node != truncation.node]
        fitting = [one for one in before if epoch is None or one.epoch == epoch]
        return fitting[-1] if fitting else None

    def _cause(self, truncation: StoryEntry, led: _LeaderStart | None) -> Cause:
        """Return why what a truncation removes is gone, with the leader epoch of the cause."""
        top = truncation.fields["from"] if truncation.fields["from"] is not None else truncation.fields["high_watermark"]
        own = max(
            (
                one.leader_epoch
                for one in self.high_watermarks
                if one.node == truncation.node and one.leader_epoch is not None and one.order < truncation.order - SLACK
            ),
            default=None,
        )
        for one in reversed([one for one in self.starts if one.order <= truncation.order + SLACK]):
            below = one.offset is None or top is None or one.offset < top
            if one.disk and below:
                return Cause(DISK, self._began_without(one).epoch)
            if one.clean is False and below:
                return Cause(UNCLEAN, one.epoch)
            if own is not None and one.epoch is not None and one.epoch <= own and one is not led:
                break  # what this node had by then is what that leader had
        return Cause(BELOW, led.epoch if led is not None else None)

    def _committed_to(self, truncation: StoryEntry, led: _LeaderStart | None) -> tuple[int | None, int | None]:
        """Return (bound, committed_to), as `_parts` divides by them.

        The bound is None where neither the node's own high watermark nor a clean election says what was not committed.
        """
        own = None if "doubtful" in truncation.marks else truncation.fields["high_watermark"]
        reached = [
            one.offset
            for one in self.high_watermarks
            if one.order < truncation.order
            and (one.node == truncation.node or (led is not None and _is_of_earlier_epoch(one, led)))
        ]
        committed = max([*reached, *([own] if own is not None else [])], default=None)
        # Nothing of an older epoch at or above the first offset of a leader that was elected cleanly was ever committed.
        if led is not None and led.clean is True and not led.disk and led.offset is not None and own is None:
            return 0, led.offset if committed is None else min(committed, led.offset)
        return None if own is None else self._bound(truncation, led), committed

    def _bound(self, truncation: StoryEntry, led: _LeaderStart | None) -> int | None:
        """Return from which offset on nothing above a replica's own high watermark was committed, None if that is unknown.

        A follower's lags behind its leader's, and so does that of a new leader below its first offset: what was committed
        there is known to be on a leader that was elected cleanly, if its replicas truncate by epochs and its log was whole.
        """
        whole = truncation.fields["to"] >= truncation.fields["high_watermark"]
        if truncation.basis != "high watermark" and led is not None and led.clean is True and not led.disk and whole:
            return 0
        roles = [
            one for one in self._until(truncation) if one.kind in ("leader", "follower") and one.node == truncation.node
        ]
        following = roles.pop() if roles and roles[-1].kind == "follower" else None
        # An election gives no offset: the load line that it is told by may be an old one.
        if truncation.basis != "high watermark":
            if following is not None and "led before" in following.marks:
                return 0
            # Only of the leader before the one that it follows is it known that nobody led in between.
            before = [one for one in self.starts if led is not None and one.order < led.order]
            if led is not None and not roles and before and before[-1].node == truncation.node:
                epoch = before[-1].epoch
                if None in (epoch, led.epoch) or (epoch or 0) + 1 == led.epoch:
                    return 0
        if not roles or roles[-1].kind != "leader":
            return None
        # It may have followed a leader with a higher one since, without a line: another broker's leader line shows that, or
        # an epoch that was skipped.
        since = [one for one in self.starts if one is not led and roles[-1].order < one.order < truncation.order]
        followed = any(one.node not in (None, truncation.node) for one in since)
        epochs = [roles[-1].fields["leader_epoch"], None if following is None else following.fields["leader_epoch"]]
        skipped = None not in epochs and epochs[0] + 1 < epochs[1]
        return None if followed or skipped else roles[-1].fields["offset"]

    # The list.

    def _add(self, loss: Loss) -> None:
        """Add a loss, or join it to the one that it is."""
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
        """Name the nodes whose log had all of it and was not truncated since."""
        if loss.end is None or loss.first is None:
            return
        copies: dict[int, bool] = {}
        # The leader that began without the records, if the loss is due to one: logs from before it may have them.
        led = [one for one in self.starts if one.order <= loss.order + SLACK]
        event = next(
            (
                one
                for one in reversed(led)
                if (loss.why == UNCLEAN and one.clean is False) or (loss.why == DISK and one.disk)
            ),
            None,
        )
        # Whoever had a high watermark that high had the records, the old leader among them.
        for known in self.high_watermarks:
            if event is not None and known.order < event.order and known.offset >= loss.end and known.node is not None:
                copies[known.node] = True
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
    """Say what tells how much a leader had whose disk was lost."""
    return (
        f"how far the log of broker {node} reached that was lost: its lines `Appended message set ..` (TRACE), or that disk"
    )


def _merge(loss: Loss, other: Loss) -> None:
    """Add to a loss who else lost these records, and the lines that say so."""
    loss.node = loss.node if loss.node is not None else other.node
    loss.nodes += [node for node in other.nodes if node not in loss.nodes]
    loss.sources = list(dict.fromkeys([*loss.sources, *other.sources]))
    loss.kept_offsets = loss.kept_offsets or other.kept_offsets


def _is_of_earlier_epoch(high_watermark: KnownHighWatermark, led: _LeaderStart) -> bool:
    """Return whether another node reached a high watermark in an epoch before this leader: it bounds the old history."""
    if high_watermark.order >= led.order or high_watermark.leader_epoch is None:
        return False
    return led.epoch is None or high_watermark.leader_epoch < led.epoch


def _parts(first: int, end: int, bound: int | None, committed_to: int | None) -> Iterator[tuple[int, int, str]]:
    """Divide offsets by whether they were committed.

    first ..... yes ..... committed_to ..... unknown ..... bound ..... no ..... end
    """
    if committed_to is None:
        yield first, end, "unknown"
        return
    middle = min(max(committed_to, first), end)
    if first < middle:
        yield first, middle, "yes"
    above = end if bound is None else min(max(bound, middle), end)
    if middle < above:
        yield middle, above, "unknown"
    if above < end:
        yield above, end, "no"


def _reason(cause: Cause, committed: str) -> tuple[str, bool | None]:
    """Return why it is gone, and whether Kafka allows that."""
    if cause.why in (UNCLEAN, DISK):
        return cause.why, True
    if committed == "no":
        return NEVER, True
    return (BELOW, None) if committed == "yes" else ("truncated", None)
