"""Tell what fetchers meet: offsets out of range, errors, refused epochs, segments that remote storage lacks (KIP-405).

The same several times in a row is one entry.

A method `say_KIND` gets every line of its kind of statement (a row of statements.py; `fetch-error` goes to
`say_fetch_error`), in order of time. To *tell* something is to add an entry to the story (`self.add`), to count the last one
once more (`self.add_or_count`), or to add the line to an entry that another one began (`join`); to *note* it is to keep it
for later lines. `line.fields` has the values in the line by name, as text, `line.says` is its row, `line.order` its time in
microseconds. `self.replica_of(line)` is what is known of the replica that it is about: most attributes are the last entry of
a kind. `marks` of an entry are notes for later lines and for sentences.
"""

import re
from collections import defaultdict
from dataclasses import replace

from tidegauge.story.reading import SourcedLine, fetched_from
from tidegauge.story.state import AN_ERROR, NO_LEADER, SECOND, TOGETHER, StoryEntry, StoryState, join, of_broker, optional
from tidegauge.traces.kafka_logs.parsing.parsed_line import ids, number

_BEGINS_ON_DISK = re.compile(r"leaderLocalLogStartOffset: (\d{1,19})")
"""The first offset on the leader's disk: what lies below it is in remote storage only."""
_OF_A_START = ("Current offset ", "reset its fetch offset ")
"""Lines of 0.8 and 0.9 that tell a reset to the start of the leader's log."""
_AT_ONCE = SECOND // 100
"""Between the two lines of one reset, in microseconds: a fetcher asks again first."""
_NOT_ANSWERED = re.compile(
    r"was disconnected before|timed out|[tT]imeout|Connection refused|could not be established|reset by peer"
)
"""Errors of a fetch whose leader did not answer, or was not there."""


_PASSED = frozenset({"start", "stop", "leader", "follower", "elected", "isr_changed", "broker_left"})
"""Kinds of entries that show what became of a leader that was not reached."""


class Fetchers(StoryState):
    """Tells lines about fetches and what leaders refuse; a part of story._Teller."""

    def say_reset(self, line: SourcedLine) -> None:
        """Tell a follower whose fetch offset is out of its leader's range, `from`, and that goes on at another one, `to`.

        Two lines, a warning and one of its handling, print each reset: `marks` has those that were read, by their row's
        text.
        """
        replica = self.replica_of(line)
        before, after = optional(line, "from"), number(line.fields["to"])
        # The line says that it goes on at the start of the leader's log, not at its end.
        of_start, last, statement = "'s start offset" in line.text, replica.reset, line.says.text
        if last is not None and self._is_of_one_reset(last, line, before, after):
            # The error says where it was and where it goes on: to 0.8 at the leader's start, though its log ends above.
            last.fields |= {"from": max(before or 0, last.fields["from"] or 0), "to": after}
            last.marks.add(statement)
            join(last, line)
            return
        # A replica whose log ends above that start goes on at its own log end.
        after = max(after, before or 0) if of_start else after
        # 0.8 prints this line (`which`: latest or start) after it has begun anew: the other line has where it was before.
        before = None if before == after and "which" in line.fields else before
        if last is not None and last.fields["to"] == after:
            # The first of the two lines did not have it.
            if last.fields["from"] is None and statement not in last.marks:
                last.fields["from"] = before
            if last.fields["from"] == before:
                # The warning and the line of the handling are one reset; the same statement again is another one.
                if statement in last.marks:
                    last.fields["times"] += 1
                    last.fields["until"] = line.time
                    last.marks.clear()
                last.marks |= {statement, *(["start"] if of_start else [])}
                join(last, line)
                return
        replica.reset = self.add(line, "reset", line.partition, **{"from": before}, to=after, times=1)
        replica.reset.marks = {statement, *(["start"] if of_start else [])}

    @staticmethod
    def _is_of_one_reset(last: StoryEntry, line: SourcedLine, before: int | None, after: int) -> bool:
        """Return whether a line is of the reset to the start of the leader's log that `last` tells, at the same time.

        Of each of these a release prints a warning and an error (0.8 and 0.9); a text may have both twice.
        """
        if "start" not in last.marks or line.says.text not in _OF_A_START or line.order - last.order > _AT_ONCE:
            return False
        # Once the error is there, `to` is where it went; before, a warning may have it too high.
        if "Current offset " in last.marks or "'s start offset" in line.text:
            return bool(line.time) and last.fields["to"] == after
        return last.fields["from"] in (None, before, after) and after <= (before or 0)

    def say_consumer_reset(self, line: SourcedLine) -> None:
        """Tell an offset that a consumer asked for and the log has not; the line need not say where it goes on."""
        # No node: consumers of a partition are kept as one more replica, under this name.
        reader, replica = "a consumer", self.replicas[str(line.partition), "a consumer"]
        fields = {"from": number(line.fields["from"]), "to": optional(line, "to"), "by": reader}
        replica.reset = self.add_or_count(replica.reset, replace(line, node=None), "reset", **fields)
        # `Truncation detected`: the epoch that it read differs from the log's. `which`: END or BEGINNING, where it goes on.
        replica.reset.marks |= {"diverged"} if line.says.text.startswith("Truncation") else set()
        replica.reset.marks |= {f"to {line.fields['which']}"} if "which" in line.fields else set()

    def say_fetch_error(self, line: SourcedLine) -> None:
        """Tell an error by which a fetcher gives a partition up; the exception behind the line, if any, says why."""
        replica = self.replica_of(line)
        replica.failed = self.add(
            line,
            "fetcher_failed",
            line.partition,
            offset=optional(line, "offset"),
            error=line.error or line.fields.get("error"),
        )

    def say_leader_unavailable(self, line: SourcedLine) -> None:
        """Tell a replica that does not replicate: its broker did not know the leader when it was to follow."""
        leader = line.fields["leader"]
        error = "there was no leader" if leader == str(NO_LEADER) else f"the new leader {leader} was not available"
        self.add(line, "fetcher_failed", line.partition, offset=None, error=f"it could not follow: {error}")

    def say_fetch_lost(self, line: SourcedLine) -> None:
        """Note why a fetch was not answered: the line behind it (say_fetch_refused) may lack that."""
        self.lost_fetch[self.key(line)] = line

    def say_fetch_refused(self, line: SourcedLine) -> None:
        """Tell with what error a leader answered a fetch, or why it did not answer."""
        replica = self.replica_of(line)
        lost = self.lost_fetch.get(self.key(line))
        # Why the fetch was not answered, if the line of that is at most a second old.
        lost_error = (
            lost.fields["error"].strip().rstrip(".") if lost is not None and line.order - lost.order <= SECOND else ""
        )
        error = (line.error or line.fields.get("error") or lost_error or AN_ERROR).strip()
        fetcher = fetched_from(line.text)
        leader = optional(line, "leader") if fetcher is None else fetcher
        replica.unanswered = self.add_or_count(replica.unanswered, line, "fetch_refused", leader=leader, error=error)

    def lost_leaders(self) -> set[int]:
        """Let one entry tell that several brokers lost their leader, if no line says that this passed; return these leaders.

        Of one broker it may be its own fault. In logs of a restart, lines of new roles follow. The others are marked `told`.
        """
        by_leader: dict[int, list[StoryEntry]] = defaultdict(list)
        for entry in self.entries:
            refused = entry.kind == "fetch_refused" and entry.fields["leader"] is not None
            if refused and _NOT_ANSWERED.search(entry.fields["error"]):
                by_leader[entry.fields["leader"]].append(entry)
        passed = max((entry.order for entry in self.entries if entry.kind in _PASSED), default=-1)
        lost = set()
        for leader, of_leader in by_leader.items():
            # What was long before is another matter.
            latest = max(entry.order for entry in of_leader)
            entries = [entry for entry in of_leader if latest - entry.order < 600 * SECOND]
            writers = {entry.node if entry.node is not None else entry.place for entry in entries}
            if len(writers) > 1 and passed < latest:
                lost.add(leader)
                nodes = sorted({entry.node for entry in entries if entry.node is not None})
                entries[0].fields |= {"lost_by": len(writers), "nodes": nodes if len(nodes) == len(writers) else []}
                for entry in entries[1:]:
                    entry.marks.add("told")
        return lost

    def say_not_assigned(self, line: SourcedLine) -> None:
        """Tell a follower that its leader does not count among the replicas: it is sent no records."""
        replica = self.replica_of(line)
        fields = {"replica": number(line.fields["replica"]), "replicas": list(ids(line.fields["replicas"]))}
        replica.unassigned = self.add_or_count(replica.unassigned, line, "not_assigned", **fields)

    def say_read_failed(self, line: SourcedLine) -> None:
        """Tell a leader that could not read its own log at an offset that somebody asked for."""
        # A paste may have another text over the topic, or none.
        of_line = replace(line, partition=line.partition or line.fields.get("hidden", "").replace(">", "") or None)
        replica = self.replica_of(of_line)
        reader = "a consumer" if line.fields["reader"] == "consumer" else line.fields["reader"]
        fields = {"offset": number(line.fields["offset"]), "by": reader, "error": line.error or None}
        replica.unread = self.add_or_count(replica.unread, of_line, "read_failed", **fields)

    def say_not_leader(self, line: SourcedLine) -> None:
        """Tell who was asked for a partition as its leader, and was not: a client, or a follower, knew no better yet."""
        # A client names the broker that it asked: the line is not the broker's own.
        asked = of_broker(line)
        replica = self.replica_of(asked)
        replica.not_leader = self.add_or_count(replica.not_leader, asked, "not_leader")

    def say_asked_for(self, line: SourcedLine) -> None:
        """Note the partition of an offset that the next line calls out of range."""
        self.out_of_range_requests[self.key(line)] = line

    def say_out_of_range(self, line: SourcedLine) -> None:
        """Tell an offset that somebody asked for and the log has not; to 0.10 its partition is in the line before."""
        request = self.out_of_range_requests.get(self.key(line))
        if line.partition is None:
            if request is None or request.fields["offset"] != line.fields["offset"] or line.order - request.order > SECOND:
                return
            line = replace(line, partition=request.partition, node=request.node, time=line.time or request.time)
        replica = self.replica_of(line)
        fields = {name: number(line.fields[name]) for name in ("offset", "log_start", "log_end")}
        replica.beyond = self.add_or_count(replica.beyond, line, "out_of_range", **fields)

    def say_produce_error(self, line: SourcedLine) -> None:
        """Tell records of producers that a leader did not take."""
        replica = self.replica_of(line)
        error, last = line.error or None, replica.unwritten
        # Messages of one error differ in their numbers: the class before the colon says whether it is the same.
        if last is not None and (error is None or error.partition(":")[0] == str(last.fields["error"]).partition(":")[0]):
            error = last.fields["error"]
        replica.unwritten = self.add_or_count(last, line, "produce_refused", error=error)

    def say_too_few_in_sync(self, line: SourcedLine) -> None:
        """Tell why a leader did not take records; the line of the append, if it is there, stands just before."""
        last = self.replica_of(line).unwritten
        if last is not None and line.says.text in str(last.fields["error"]) and line.order - last.order < TOGETHER:
            join(last, line)
            return
        fields = line.fields
        isr = list(map(int, re.findall(r"\d+", fields["isr"])))
        # Some releases give the number of those in sync, others who they are.
        who = str(isr[0]) if fields["isr"].startswith(":") else str(len(isr))
        in_sync = f"{who} of the {fields['least']} replicas of min.insync.replicas in sync"
        in_sync += "" if fields["isr"].startswith(":") else f", {isr}"
        error = f"NotEnoughReplicasException: {in_sync}"
        self.say_produce_error(replace(line, error=error))

    def say_marked_failed(self, line: SourcedLine) -> None:
        """Add the line to the entry that says why the fetcher gave the partition up."""
        replica = self.replica_of(line)
        # Since 2.3 a healthy restart marks partitions as failed, too, while they wait for the new leader epoch: just after
        # the refusal of an older epoch (at `older`, the entry is `refused`) the line belongs to that, once. Else it belongs
        # to a fetcher that failed just before, or says nothing.
        if replica.older is not None and line.order - replica.older < TOGETHER:
            if replica.refused is not None:
                join(replica.refused, line)
            replica.older = None
        elif replica.failed is not None and line.order - replica.failed.order < TOGETHER:
            join(replica.failed, line)

    def say_append_refused(self, line: SourcedLine) -> None:
        """Tell fetched records that a log refused: they begin below its end."""
        self.add(
            line,
            "append_refused",
            line.partition,
            first_offset=number(line.fields["first_offset"]),
            expected_offset=number(line.fields["expected_offset"]),
        )
        self.say_out_of_order(line)

    def say_out_of_order(self, line: SourcedLine) -> None:
        """Add the message of an exception, a line without a date, to the fetch error before it, which has no reason yet."""
        failed = self.replica_of(line).failed
        if failed is not None and failed.fields["error"] is None and not line.time:
            failed.fields["error"] = line.text.strip()

    say_offset_mismatch = say_out_of_order

    def say_epoch_refused(self, line: SourcedLine) -> None:
        """Tell that a leader refused the leader epoch of a request; the field `error` is its error code."""
        replica = self.replica_of(line)
        fields = {"error": line.fields["error"], "leader": fetched_from(line.text)}
        replica.refused = self.add_or_count(replica.refused, line, "epoch_refused", **fields)

    def say_epoch_older(self, line: SourcedLine) -> None:
        """Tell that a leader refused a request of an older leader epoch; say_marked_failed needs to know when."""
        self.replica_of(line).older = line.order
        self.say_epoch_refused(replace(line, fields={**line.fields, "error": "FENCED_LEADER_EPOCH"}))

    def say_epoch_newer(self, line: SourcedLine) -> None:
        """Tell that a leader refused a request of a leader epoch that it does not know yet."""
        self.say_epoch_refused(replace(line, fields={**line.fields, "error": "UNKNOWN_LEADER_EPOCH"}))

    def say_tier_unread(self, line: SourcedLine) -> None:
        """Tell a follower that did not get from remote storage what lies below the first offset on its leader's disk."""
        replica, begin = self.replica_of(line), _BEGINS_ON_DISK.search(line.error)
        fields = {"leader": fetched_from(line.text), "offset": number(begin[1]) if begin is not None else None}
        replica.untiered = self.add_or_count(
            replica.untiered, line, "remote_read_failed", **fields, error=line.error or None
        )

    def say_tier_unwritten(self, line: SourcedLine) -> None:
        """Tell a leader that could not copy segments to the remote storage: it tries again, and keeps them on its disk."""
        replica = self.replica_of(line)
        replica.uncopied = self.add_or_count(replica.uncopied, line, "remote_copy_failed", error=line.error or None)
