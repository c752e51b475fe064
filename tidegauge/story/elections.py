"""Tell who leads and follows, who is in sync, and how leaders were elected.

Rules of this file

1. A change of the ISR and its acceptance are one entry, as are its refusals in a row.
2. An election is clean or not where a line says so, or where the ISR before it is known: its version in ZooKeeper, or the
   partition epoch, is one less.

A method `say_KIND` gets every line of its kind of statement (a row of statements.py; `fetch-error` goes to
`say_fetch_error`), in order of time. To *tell* something is to add an entry to the story (`self.add`), to count the last one
once more (`self.add_or_count`), or to add the line to an entry that another one began (`join`); to *note* it is to keep it
for later lines. `line.fields` has the values in the line by name, as text, `line.says` is its row, `line.order` its time in
microseconds. `self.replica_of(line)`, `self.partitions[name]` and `self.nodes[self.key(line)]` are what is known of its
replica, partition and node (state.py). Of a replica, `log_end` is where its log ended by the last line, `ended` when that
was so exactly (None: it may have grown since), `is_known`: its node has had it, `change` the last entry of an ISR that it
proposed. A *version* of an ISR is its version in ZooKeeper or the partition epoch. `marks` of an entry are notes for later
lines and for sentences. `renew` begins another generation of a partition if its topic was created anew, `had` notes a
high watermark.
"""

import json
import re
from dataclasses import replace

from tidegauge.story.reading import SourcedLine, fetched_from
from tidegauge.story.state import (
    NO_LEADER,
    SECOND,
    TOGETHER,
    PartitionStory,
    StoryEntry,
    StoryState,
    join,
    optional,
)
from tidegauge.story.statements import ANY_TP
from tidegauge.traces.kafka_logs.parsing.parsed_line import TP_IN_A_LIST, changes, ids, number

_FETCHED_TO = re.compile(
    rf"{TP_IN_A_LIST} -> InitialFetchState\((?:(?:Some\([^()]{{0,40}}\)|Optional\[[^\]]{{0,40}}\]|Optional\.empty|None),)?"
    r"BrokerEndPoint[(\[]id=(?P<leader>\d+),[^)\]]*+[)\]],(?P<epoch>\d+),"
)
_FETCHED_LIST = re.compile(rf"\[{TP_IN_A_LIST}, initOffset (?P<offset>-?\d+) to broker BrokerEndPoint\((?P<leader>\d+),")
_CHANGE_RECORD = re.compile(
    rf"{TP_IN_A_LIST} ?: PartitionChangeRecord\((?=[^()]*?\bisr=(?:\[(?P<isr>[\d, ]*)\]|null))"
    r"(?=[^()]*?\bleader=(?P<leader>-?\d+))(?=(?:[^()]*?\bleaderRecoveryState=(?P<recovery>-?\d+))?)"
)
_IN_A_LIST = re.compile(TP_IN_A_LIST)
_OF_AN_ISR = frozenset({"isr-accepted", "expand", "controller-isr"})
_SHOWS_RUNNING = _OF_AN_ISR | {"started", "follower", "truncating-to-epoch", "truncating-to-high-watermark"}
"""Kinds of lines that show a broker which runs: the node, the leader, or those of an ISR (_OF_AN_ISR)."""
_OFFLINE = re.compile(rf"(?<![A-Za-z0-9._\-*]){ANY_TP} -> OfflinePartition")
_SENT_ISR = re.compile(r"\b(?:ISR \[|isr=List\(|isr=\[)([\d, ]*)")
_BROKERS_LINES = ("received", "recovering")
"""Kinds of lines that tell an election without being of who elected."""
_BY_CONTROLLER = "refused, says the controller"
"""Of a refusal whose line of the broker is still to come: both are one."""
_LAGGING = re.compile(r"brokerId: (\d+), endOffset: (-?\d+)")
_WITH_EPOCHS = re.compile(r"brokerId=(\d+)")


def _isr_sent(text: str) -> list[int] | None:
    """Return the ISR in the text of a refused proposal; None if it names none."""
    sent = _SENT_ISR.search(text)
    return list(ids(sent[1])) if sent else None


class Elections(StoryState):
    """Tells lines about leaders, followers, elections and the ISR; a part of story._Teller."""

    def say_leader(self, line: SourcedLine) -> None:
        """Tell a replica that begins to lead an epoch at an offset: its log ends there."""
        self.serves(line)
        topic_id = line.fields.get("topic_id")
        # Leader epoch 0 is of a partition that is new.
        self.renew(line, topic_id, anew=optional(line, "leader_epoch") == 0)
        replica, partition = self.replica_of(line), self.partitions[str(line.partition)]
        isr = ids(line.fields["isr"]) if "isr" in line.fields else None
        epoch, offset = number(line.fields["leader_epoch"]), number(line.fields["offset"])
        high_watermark = optional(line, "high_watermark")
        self.add(
            line,
            "leader",
            line.partition,
            leader_epoch=epoch,
            offset=offset,
            high_watermark=high_watermark,
            isr=list(isr) if isr is not None else None,
        )
        replica.log_end, replica.ended, replica.is_known = offset, None, True
        replica.high_watermark, replica.truncation = high_watermark, None
        self.had(line, high_watermark, epoch)
        # The line of its election, just before, may lack the epoch.
        last = partition.elections[-1] if partition.elections else None
        if last is not None and last.fields["leader_epoch"] is None and last.fields["leader"] == line.node:
            last.fields["leader_epoch"] = epoch
        partition.leader, partition.leader_epoch = line.node, epoch
        if isr is not None:
            self._isr_is(partition, isr, optional(line, "version"))

    def say_leader_again(self, line: SourcedLine) -> None:
        """Note the high watermark and ISR of a leader that was told to lead an epoch again in which it leads: no entry."""
        partition = self.partitions[str(line.partition)]
        self.had(line, number(line.fields["high_watermark"]), number(line.fields["leader_epoch"]))
        self._isr_is(partition, ids(line.fields["isr"]), number(line.fields["version"]))

    def say_follower_again(self, line: SourcedLine) -> None:
        """Tell a follower that was told to follow in an epoch in which it does: who leads, and the ISR."""
        partition, fields = self.partitions[str(line.partition)], line.fields
        leader, epoch, isr = int(fields["leader"]), number(fields["leader_epoch"]), ids(fields["isr"])
        self._isr_is(partition, isr, number(fields["version"]))
        replica = self.replica_of(line)
        replica.follower_again = self.add_or_count(
            replica.follower_again, line, "role_kept", leader=leader, leader_epoch=epoch, isr=list(isr)
        )

    def say_follower(self, line: SourcedLine) -> None:
        """Tell a replica that begins to follow a leader: its log ends at `offset`."""
        self.serves(line)
        self.renew(line, line.fields.get("topic_id"), anew=number(line.fields["leader_epoch"]) == 0)
        replica = self.replica_of(line)
        leader = optional(line, "leader")
        epoch = number(line.fields["leader_epoch"])
        replica.follower = self.add(
            line,
            "follower",
            line.partition,
            leader=leader,
            leader_epoch=epoch,
            offset=number(line.fields["offset"]),
            high_watermark=number(line.fields["high_watermark"]),
        )
        # A process that has not led this partition, or has restarted since, names another leader, or none.
        if line.node is not None and optional(line, "previous") == line.node:
            replica.follower.marks.add("led before")
        replica.log_end, replica.ended, replica.is_known = number(line.fields["offset"]), line.order, True
        replica.high_watermark, replica.truncation = number(line.fields["high_watermark"]), None
        self.had(line, replica.high_watermark, epoch)

    def say_role_change(self, line: SourcedLine) -> None:
        """Note when replicas change their roles: a truncation soon after is due to that."""
        for name in _IN_A_LIST.findall(line.fields["partitions"]):
            self.replicas[name, self.key(line)].role_changed = line.order

    def say_fetching(self, line: SourcedLine) -> None:
        """Add to the entries of followers the leader that they fetch from, which their own lines may lack.

        The field `partitions` is a list: of each partition with its leader, epoch or offset, in the form of the release.
        """
        text = line.fields["partitions"]
        for match in (*_FETCHED_TO.finditer(text), *_FETCHED_LIST.finditer(text)):
            replica = self.replicas.get((match["tp"], self.key(line)))
            # Some releases name the leader once, before the partitions.
            leader = match["leader"] or line.fields.get("leader")
            if replica is None or leader is None:
                continue
            follower = replica.follower
            epoch = match["epoch"] if "epoch" in match.re.groupindex else None
            same_epoch = epoch is None or (follower is not None and follower.fields["leader_epoch"] == int(epoch))
            if (
                same_epoch
                and follower is not None
                and follower.fields["leader"] is None
                and line.order - follower.order < SECOND
            ):
                follower.fields["leader"] = int(leader)
                join(follower, line)
            # To 2.6 a fetcher starts at the high watermark, since 2.7 at the log end: an offset is read of old lines only.
            if "offset" in match.re.groupindex and replica.truncation is None and number(match["offset"]) >= 0:
                replica.high_watermark = number(match["offset"])

    def _isr_is(self, partition: PartitionStory, isr: tuple[int, ...], version: int | None) -> None:
        """Set the ISR of a partition, unless what is known is of a later version; `version` None: the line has none."""
        # A line without a version (2.x) that says the same leaves the version that is known.
        if version is None and partition.isr is not None and set(isr) == set(partition.isr):
            return
        if version is None or partition.version is None or version >= partition.version:
            partition.isr, partition.version = isr, version

    def say_shrink(self, line: SourcedLine) -> None:
        """Tell a leader that proposes another ISR, a smaller or a larger one; nothing says yet whether it is accepted."""
        replica = self.replica_of(line)
        self.had(line, optional(line, "high_watermark"), self.partitions[str(line.partition)].leader_epoch)
        if "high_watermark" in line.fields:
            replica.high_watermark = number(line.fields["high_watermark"])
        before, after = list(ids(line.fields["from"])), list(ids(line.fields["to"]))
        change = replica.change
        # The same change again: the last attempt was refused, or is not answered yet.
        if (
            change is not None
            and change.fields["from"] == before
            and change.fields["to"] == after
            and change.fields["accepted"] is not True
        ):
            join(change, line)
            return
        replica.change = self.add(line, "isr_changed", line.partition, **{"from": before}, to=after, accepted=None, times=1)
        if "lagging" in line.fields:
            ends = {node: number(end) for node, end in _LAGGING.findall(line.fields["lagging"])}
            replica.change.fields |= {"log_ends": ends, "leader_log_end": number(line.fields["log_end"])}
        # Its broker was refused a change just before: this one may be in vain, too, until a line says that it is accepted.
        refused = self.nodes[self.key(line)].refused
        if refused is not None and line.order - refused < TOGETHER:
            replica.change.marks.add("wanted")

    say_expand = say_shrink

    def say_isr_accepted(self, line: SourcedLine) -> None:
        """Tell that the ISR is now as a leader proposed: one entry with the proposal, if its line is there."""
        replica, partition = self.replica_of(line), self.partitions[str(line.partition)]
        after = ids(line.fields["to"])
        change = replica.change
        if change is not None and change.fields["to"] == list(after) and change.fields["accepted"] is None:
            change.fields["accepted"] = True
            join(change, line)
        else:
            change = replica.change = self.add(
                line, "isr_changed", line.partition, **{"from": None}, to=list(after), accepted=True, times=1
            )
        if line.fields.get("few"):  # acks=all is refused from here on (Partition#appendRecordsToLeader)
            change.marks.add("under min ISR")
        self._isr_is(partition, after, number(line.fields["version"]))

    def say_controller_isr(self, line: SourcedLine) -> None:
        """Note the ISR and its version as the controller has them: no entry."""
        self._isr_is(self.partitions[str(line.partition)], ids(line.fields["to"]), number(line.fields["version"]))

    def say_isr_refused(self, line: SourcedLine) -> None:
        """Tell that a leader's proposal of an ISR was refused; a refusal again of the same one is counted (`times`)."""
        # ZooKeeper refuses every change of a broker that has an old version of the ISR: see say_shrink.
        if "zkVersion" in line.says.text:
            self.nodes[self.key(line)].refused = line.order
        change = self.replica_of(line).change
        if change is None or change.fields["accepted"] is True:
            to = _isr_sent(line.fields.get("sent", ""))
            error = line.fields.get("error", line.says.text).strip(" .")
            self.replica_of(line).change = self.add(
                line, "isr_changed", line.partition, **{"from": None}, to=to, accepted=False, times=1, error=error
            )
            return
        # The controller's line of a refusal, if it came before this one, has counted it.
        if change.fields["accepted"] is False and _BY_CONTROLLER not in change.marks:
            change.fields["times"] += 1
        change.marks.discard(_BY_CONTROLLER)
        change.fields["accepted"] = False
        change.fields["until"] = line.time
        change.fields.setdefault("error", line.fields.get("error", "").rstrip(".") or line.says.text.strip())
        join(change, line)

    def say_isr_rejected(self, line: SourcedLine) -> None:
        """Tell by the controller's line that it refused an ISR: one entry with the line of the broker that proposed it.

        Either line may begin the entry. The mark _BY_CONTROLLER says that the broker's line of this refusal is to come.
        """
        proposer = optional(line, "proposer")
        change = self.replicas[str(line.partition), proposer].change if proposer is not None else None
        if change is None or change.fields["accepted"] is True:
            change = self.add(
                replace(line, node=proposer),
                "isr_changed",
                line.partition,
                **{"from": None},
                to=_isr_sent(line.text),
                accepted=False,
                times=1,
            )
            if proposer is not None:
                self.replicas[str(line.partition), proposer].change = change
        # Two lines of the controller without one of the broker between them are two refusals.
        elif _BY_CONTROLLER in change.marks:
            change.fields["times"] += 1
        change.marks.add(_BY_CONTROLLER)
        change.fields["accepted"] = False
        change.fields.setdefault("error", line.fields["error"].rstrip("."))
        join(change, line)

    def say_recovering(self, line: SourcedLine) -> None:
        """Tell by a leader's own line that it was elected uncleanly, out of the ISR; its leader line has the epoch."""
        if line.node is not None:
            self._elected(line, line.node, clean=False)

    def say_topic_id_mismatch(self, line: SourcedLine) -> None:
        """Tell a replica whose log has another topic id (`own`) than a request for the partition (`received`)."""
        replica = self.replica_of(line)
        fields = {"topic_id": line.fields["own"], "received": line.fields["received"]}
        replica.mismatch = self.add_or_count(replica.mismatch, line, "topic_id_mismatch", **fields)

    def _elected(
        self,
        line: SourcedLine,
        leader: int,
        *,
        epoch: int | None = None,
        isr: tuple[int, ...] | None = None,
        version: int | None = None,
        clean: bool | None = None,
    ) -> StoryEntry:
        """Tell an election, or add the line to the entry of it, as several nodes may print it; return the entry.

        `leader` may be NO_LEADER; `isr` and `version` are those of the election. Whether it was clean follows, where the
        line does not say (None), from the ISR before it, if that is of the version before.
        """
        partition = self.partitions[str(line.partition)]
        # The last one of this leader, and of this epoch if the line has one.
        election = next(
            (
                entry
                for entry in reversed(partition.elections)
                if entry.fields["leader"] == leader and epoch in (None, entry.fields["leader_epoch"])
            ),
            None,
        )
        if election is None:
            # Rule 2: by the ISR before it, which is surely that if no version lies between.
            if (
                clean is None
                and isr is not None
                and version is not None
                and partition.version == version - 1
                and partition.isr
            ):
                clean = None if leader == NO_LEADER else leader in partition.isr
            # A warning without the epoch (say_unclean_choice), less than a minute apart, is of this election. `unclean` has
            # by leader its time, and its file and line.
            if leader in partition.unclean and abs(line.order - partition.unclean[leader][0]) < 60 * SECOND:
                clean = False
            election = self.add(
                line,
                "elected",
                line.partition,
                leader=leader,
                leader_epoch=epoch,
                isr=list(isr) if isr is not None else None,
                clean=clean,
            )
            if clean is False and leader in partition.unclean:
                election.sources.append(partition.unclean[leader][1])
            if partition.election_request is not None and clean is False:
                election.fields["by"] = partition.election_request
            if leader == NO_LEADER:
                self._relate_deletion(election)
            # A broker that received it is not who elected.
            election.node = None if line.says.kind in _BROKERS_LINES else line.node
            partition.elections.append(election)
        else:
            join(election, line)
            election.node = election.node if election.node is not None or line.says.kind in _BROKERS_LINES else line.node
            if clean is not None and election.fields["clean"] is None:
                election.fields["clean"] = clean
        partition.leader, partition.leader_epoch = leader, epoch
        if isr is not None:
            self._isr_is(partition, isr, version)
        return election

    def _relate_deletion(self, election: StoryEntry) -> None:
        """Mark an election of none that is part of the deletion of its topic: nobody is to lead a partition then."""
        deletion = self.deletions.get(str(election.partition).rpartition("-")[0])
        if deletion is not None and election.order - deletion.order < 60 * SECOND:
            election.marks.add("deletion")

    def say_unclean_choice(self, line: SourcedLine) -> None:
        """Tell a controller that elects a leader out of the ISR, as no member of that is alive; the line has no epoch."""
        self.partitions[str(line.partition)].unclean[int(line.fields["leader"])] = line.order, line.at
        self._elected(line, int(line.fields["leader"]), clean=False)

    def say_chosen(self, line: SourcedLine) -> None:
        """Tell by the controller's line, to 1.0, whom it elected for an offline partition, with epoch and ISR."""
        partition = self.partitions[str(line.partition)]
        leader, epoch, isr = int(line.fields["leader"]), number(line.fields["leader_epoch"]), ids(line.fields["isr"])
        last = partition.elections[-1] if partition.elections else None
        # The warning before it (say_unclean_choice) has begun the entry without the epoch.
        if last is not None and last.fields["leader_epoch"] is None and last.fields["leader"] == leader:
            last.fields["leader_epoch"], last.fields["isr"] = epoch, list(isr)
        self._elected(line, leader, epoch=epoch, isr=isr)

    def say_leader_moved(self, line: SourcedLine) -> None:
        """Tell by the controller's line, to 1.0, whom it elected in the ISR, as the leader before (`before`) is to stop."""
        partition, leader = self.partitions[str(line.partition)], int(line.fields["leader"])
        # The line has no epoch: of an older election of this leader it is not.
        if partition.elections and partition.elections[-1].fields["leader"] != leader:
            election = self.add(line, "elected", line.partition, leader=leader, leader_epoch=None, isr=None, clean=True)
            partition.elections.append(election)
            partition.leader, partition.leader_epoch = leader, None
        else:
            election = self._elected(line, leader, clean=True)
        election.fields["stops"] = int(line.fields["before"])

    def say_elected(self, line: SourcedLine) -> None:
        """Tell by the line of a controller of ZooKeeper, 1.0 to 3.9, whom it elected; of a new partition that is clean."""
        fields = line.fields
        isr = (
            ids(fields["isr"])
            if "isr" in fields
            else tuple(map(int, _WITH_EPOCHS.findall(fields.get("isr_with_epochs", ""))))
        )
        recovery, epoch = fields.get("recovery"), number(fields["leader_epoch"])
        # The controller's state of the partition before the election: this is its first one.
        if fields["before"] == "NewPartition":
            self.renew(line, None, anew=True)
        # The leader's recovery state; where the line has none, only of a first election is it known.
        clean = {"RECOVERING": False, "RECOVERED": True}.get(
            recovery or "", True if fields["before"] == "NewPartition" else None
        )
        self._elected(line, int(fields["leader"]), epoch=epoch, isr=isr, version=optional(line, "version"), clean=clean)

    def say_received(self, line: SourcedLine) -> None:
        """Tell an election by what a broker was sent: the ISR is the election's only for its leader, or by its version."""
        partition, fields = self.partitions[str(line.partition)], line.fields
        leader, version, isr = int(fields["leader"]), optional(line, "version"), ids(fields["isr"])
        if leader < NO_LEADER:
            return  # -2: the topic is being deleted
        # The first version, or the one after the last that is known: no other change lies between.
        is_next = version == 0 or (version is not None and partition.version == version - 1)
        # Only a leader changes the ISR: its own broker hears of the election first, and where nobody leads it stays.
        # What it caches (a line with `Cached` or `cached`) may be of a later change, that the leader itself made.
        sent_to_leader = line.node == leader and "ached" not in line.says.text
        is_of_election = sent_to_leader or leader == NO_LEADER or is_next
        epoch = number(fields["leader_epoch"])
        self._elected(line, leader, epoch=epoch, isr=isr if is_of_election else None, version=version)
        self._isr_is(partition, isr, version)

    def say_removed(self, line: SourcedLine) -> None:
        """Tell a broker that the controller took out of the ISR as it went offline; if nobody leads then, an election."""
        partition, fields = self.partitions[str(line.partition)], line.fields
        epoch, isr, leader, version = (
            number(fields["leader_epoch"]),
            ids(fields["isr"]),
            int(fields["leader"]),
            optional(line, "version"),
        )
        if partition.leader_epoch is not None and epoch <= partition.leader_epoch and leader == partition.leader:
            return  # told again by the next controller, or after another change
        if leader == NO_LEADER:
            self._elected(line, leader, epoch=epoch, isr=isr, version=version)
            return
        # Only of the change just behind what is known is it sure that it is no election, which another line may tell.
        is_next = version is not None and partition.version == version - 1 and partition.leader_epoch == epoch - 1
        if not is_next or any(election.fields["leader_epoch"] == epoch for election in partition.elections):
            partition.leader, partition.leader_epoch = leader, epoch
            self._isr_is(partition, isr, version)
            return
        if partition.isr != isr:
            before = list(partition.isr) if partition.isr is not None else None
            change = {"from": before, "to": list(isr), "accepted": True, "times": 1, "leader_epoch": epoch}
            self.add(line, "isr_changed", line.partition, **change)
        partition.leader, partition.leader_epoch = leader, epoch
        self._isr_is(partition, isr, version)

    def say_no_leader(self, line: SourcedLine) -> None:
        """Tell that nobody can be elected, by the controller or by `kafka-topics --describe`: one entry, however often.

        `elr` are eligible leaders out of the ISR, `last_elr` who led last where there are none of these (KIP-966).
        """
        partition = self.partitions[str(line.partition)]
        isr = ids(line.fields["isr"]) if "isr" in line.fields else None
        last = partition.elections[-1] if partition.elections else None
        of_describe = line.says.logger == "kafka-topics --describe"
        if of_describe:
            self._describe(partition, None)
        if last is None or last.fields["leader"] != NO_LEADER or "past" in last.marks:
            fields = {"leader_epoch": None, "isr": None, "clean": None}
            last = self.add(line, "elected", line.partition, leader=NO_LEADER, **fields)
            partition.elections.append(last)
            self._relate_deletion(last)
        join(last, line)
        partition.leader = NO_LEADER
        last.fields["isr"] = last.fields["isr"] or (list(isr) if isr is not None else None)
        # The controller empties an ISR only where unclean election is allowed; eligible leaders (KIP-966) are a column more.
        if of_describe and not isr and "elr" not in line.fields:
            last.fields["isr"] = []
            last.fields["replicas"] = list(ids(line.fields.get("replicas", "")))
        elif isr:
            last.fields.pop("replicas", None)
        if line.fields.get("before") == "New" and line.order - last.order < 60 * SECOND:
            last.marks.add("first")
            # Only this line says that no broker runs that it was assigned to.
            if "assigned" in line.fields:
                last.fields["new"] = True
        # Some releases print an empty list, whatever was assigned (PR 11427).
        for name in ("assigned", "live"):
            if line.fields.get(name):
                last.fields[name] = list(ids(line.fields[name]))
        for name in ("elr", "last_elr"):
            if line.fields.get(name):
                last.fields[name] = list(ids(line.fields[name]))

    def say_initial_states(self, line: SourcedLine) -> None:
        """Tell the partitions that a new controller found without a leader, and for which it could elect none."""
        for match in _OFFLINE.finditer(line.fields["states"]):
            name = match["tp"] or f"{match['topic']}-{match['number']}"
            self.say_no_leader(replace(line, partition=name, fields={}))

    def say_no_other_leader(self, line: SourcedLine) -> None:
        """Tell that the controller cannot move a leader off a broker that stops: no other replica in the ISR is alive."""
        isr = list(ids(line.fields["isr"])) if "isr" in line.fields else None
        last = self.partitions[str(line.partition)].unmoved
        if last is not None and last.fields["isr"] == isr and not line.time:
            join(last, line)  # the exception behind the line says the same
            return
        unmoved = self.add_or_count(last, line, "no_other_leader", isr=isr)
        self.partitions[str(line.partition)].unmoved = unmoved

    def say_described(self, line: SourcedLine) -> None:
        """Tell a line of `kafka-topics --describe`: leader, ISR and replicas of a partition."""
        fields = line.fields
        isr, replicas = list(ids(fields["isr"])), list(ids(fields["replicas"]))
        described = self.add(line, "described", line.partition, leader=int(fields["leader"]), isr=isr, replicas=replicas)
        self._describe(self.partitions[str(line.partition)], described)
        for replica in {*replicas} - {*isr}:
            self.away[replica].append(described)

    @staticmethod
    def _describe(partition: PartitionStory, described: StoryEntry | None) -> None:
        """Note what a description shows of a partition (None: nobody leads it): what one before it showed is past."""
        last = partition.elections[-1] if partition.elections else None
        if partition.described is not None:
            partition.described.marks.add("past")
        if (
            described is not None
            and last is not None
            and last.fields["leader"] == NO_LEADER
            and last.order <= described.order
        ):
            last.marks.add("past")
        partition.described = described

    def note_back(self, line: SourcedLine) -> None:
        """Note by a line behind a description, in the same file, that brokers which were not in sync there run again."""
        if line.says.kind not in _SHOWS_RUNNING:
            return
        shown = {line.node, fetched_from(line.text), optional(line, "leader")}
        # In a truncation `to` is an offset.
        shown |= {*ids(line.fields["to"])} if line.says.kind in _OF_AN_ISR else set()
        for broker in [broker for broker in shown if broker is not None and broker in self.away]:
            for described in self.away.pop(broker):
                file, _, number_of_line = described.sources[0].rpartition(":")
                # Of another file nobody knows which is older.
                if file == line.file and int(number_of_line) < line.number:
                    described.fields.setdefault("back", []).append(broker)

    def say_reassignment(self, line: SourcedLine) -> None:
        """Tell what `kafka-reassign-partitions --verify` says of a partition: in progress, completed or failed."""
        self.add(line, "reassignment", line.partition, state=line.fields["done"])

    def say_asked(self, line: SourcedLine) -> None:
        """Note the partitions for which an operator requested an unclean election.

        `_elected` puts that into the entry of an unclean election, as its field `by`.
        """
        for name in _IN_A_LIST.findall(line.fields["partitions"]):
            self.partitions[name].election_request = "an operator's request"

    def say_changed(self, line: SourcedLine) -> None:
        """Tell an election by a KRaft controller's line of a partition change: `changes` has (before, after) by field."""
        changed = changes(line.fields["changes"])
        partition = self.partitions[str(line.partition)]
        if "leader" in changed or "leaderEpoch" in changed:
            leader = int(changed["leader"][1]) if "leader" in changed else partition.leader
            epoch = number(changed["leaderEpoch"][1]) if "leaderEpoch" in changed else None
            isr = ids(changed["isr"][1].strip("[]")) if "isr" in changed else partition.isr
            version = number(changed["partitionEpoch"][1]) if "partitionEpoch" in changed else None
            # 4.x prints UNCLEAN for whatever is RECOVERING afterwards; what is not printed so is from the ISR or the ELR.
            recovering = changed.get("leaderRecoveryState", ("", ""))[1] == "RECOVERING"
            clean = None if leader == NO_LEADER else not (line.fields.get("unclean") and recovering)
            # UNCLEAN without a change to RECOVERING: it was recovering before, or the line was trimmed.
            clean = None if line.fields.get("unclean") and clean else clean
            if leader is not None:
                election = self._elected(line, leader, epoch=epoch, isr=isr, version=version, clean=clean)
                if line.fields.get("unclean"):
                    election.marks.add("called unclean")
                if "replicas" in changed:
                    before, after = (list(ids(replicas.strip("[]"))) for replicas in changed["replicas"])
                    election.fields |= {"replicas_before": before, "replicas_after": after}

    def say_changes(self, line: SourcedLine) -> None:
        """Tell elections by a KRaft controller's line of several partition change records: each that names a leader."""
        for match in _CHANGE_RECORD.finditer(line.fields["partitions"]):
            leader = int(match["leader"])
            if leader < NO_LEADER:
                continue  # -2: the leader stays
            of_partition = replace(line, partition=match["tp"])
            partition = self.partitions[match["tp"]]
            # The line does not have the epoch: a new leader is one more.
            epoch = None if partition.leader_epoch is None else partition.leader_epoch + 1
            isr = ids(match["isr"]) if match["isr"] is not None else partition.isr  # null: it stays
            # 1 is RECOVERING, as after an unclean election.
            clean = False if match["recovery"] == "1" else (None if leader == NO_LEADER else True)
            self._elected(of_partition, leader, epoch=epoch, isr=isr, clean=clean)

    def say_registered(self, line: SourcedLine) -> None:
        """Tell the first leader of a new partition, by a KRaft controller's line of its record: that is a clean election."""
        self.renew(line, line.fields.get("topic_id"), anew=True)
        fields = line.fields
        self._elected(
            line,
            int(fields["leader"]),
            epoch=number(fields["leader_epoch"]),
            isr=ids(fields["isr"]),
            version=number(fields["version"]),
            clean=True,
        )

    def say_dumped_topic(self, line: SourcedLine) -> None:
        """Tell a topic that a TopicRecord in a metadata dump creates, and note its name: other records have the id only."""
        self.topics[line.fields["topic_id"]] = line.fields["topic"]
        self.add(line, "topic_created", topic=line.fields["topic"], offset=optional(line, "offset"))

    def say_dumped_partition(self, line: SourcedLine) -> None:
        """Tell the first leader of a partition, by a PartitionRecord in a metadata dump: that is a clean election."""
        data = json.loads(line.fields["data"])
        # By the name that a TopicRecord gave to the topic id, if the dump has it.
        of_partition = replace(line, partition=f"{self.topics.get(data['topicId'], data['topicId'])}-{data['partitionId']}")
        self.renew(of_partition, data["topicId"])
        self._elected(
            of_partition,
            int(data["leader"]),
            epoch=int(data["leaderEpoch"]),
            isr=tuple(data["isr"]),
            version=int(data["partitionEpoch"]),
            clean=True,
        )

    def say_dumped_change(self, line: SourcedLine) -> None:
        """Tell a PartitionChangeRecord in a metadata dump: what it does not name stays; a leader in it is a new epoch."""
        data = json.loads(line.fields["data"])
        # By the name that a TopicRecord gave to the topic id, if the dump has it.
        of_partition = replace(line, partition=f"{self.topics.get(data['topicId'], data['topicId'])}-{data['partitionId']}")
        partition = self.partitions[str(of_partition.partition)]
        isr = tuple(data["isr"]) if data.get("isr") is not None else None
        # Each record raises the partition epoch by one, and does not have it.
        version = None if partition.version is None else partition.version + 1
        old_isr = partition.isr
        leader = data.get("leader")
        if leader is not None and leader >= NO_LEADER:
            epoch = None if partition.leader_epoch is None else partition.leader_epoch + 1
            # 1 is RECOVERING, as after an unclean election; any other leader is from the ISR or the ELR.
            clean = None if leader == NO_LEADER else data.get("leaderRecoveryState") != 1
            self._elected(
                of_partition, int(leader), epoch=epoch, isr=isr if isr is not None else old_isr, version=version, clean=clean
            )
        elif isr is not None:
            fields = {"from": list(old_isr) if old_isr is not None else None}
            self.add(of_partition, "isr_changed", of_partition.partition, **fields, to=list(isr), accepted=True, times=1)
            self._isr_is(partition, isr, version)
