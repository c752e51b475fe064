"""A toy broker: one replica of one partition that leads and follows as Kafka 4 does, written without the reference.

It is safe where Kafka is not: F2 and F3 of docs/findings.md are repaired. Its log is a list of leader epochs, one per
record. `bug` plants KAFKA-14704: the follower adopts the high watermark of a diverging response before it truncates its log.
The replica is on broker 1 (ME), its peers are 2, 3, ..; UNDEFINED stands for no leader, no epoch, no offset.
"""

ME, UNDEFINED = 1, -1
NOT_LEADER, FENCED, UNKNOWN_EPOCH, OUT_OF_RANGE, INELIGIBLE, UNKNOWN_SERVER_ERROR = 6, 74, 75, 1, 107, -1


class ToyReplica:
    """One replica. Its public methods are steps of the contract (docs/drive.md), and what those need.

    A step that is a request returns the response to it; the others return None.
    """

    def __init__(self, peers: list[int], min_isr: int, *, bug: bool = False) -> None:
        """Begin with an empty log, and without metadata."""
        self.bug, self.peers, self.min_isr = bug, peers, min_isr
        self.log: list[int] = []
        self.cache: list[tuple[int, int]] = []  # (epoch, first offset)
        self.hw, self.highest = 0, UNDEFINED
        self.forget()

    def forget(self) -> None:
        """Reset what ends with the process: all but the log, the epoch cache and the high watermark."""
        self.leader = self.epoch = self.partition_epoch = self.epoch_start = UNDEFINED
        self.isr: list[int] = []
        self.proposed: list[int] | None = None  # the ISR that the leader counts with until the controller has responded
        self.in_flight: dict[str, object] | None = None
        self.ends: dict[int, int] = {}  # log ends of the followers
        self.source: int | None = None
        self.fetching: tuple[int, int] | None = None  # (leader epoch, offset) of the next fetch, if there is to be one
        self.requests: dict[int, dict[str, int]] = {}
        self.truncates = False

    # -- epochs

    def end_of(self, epoch: int) -> tuple[int, int]:
        """Return the largest epoch up to this one, and the offset where it ends. LeaderEpochFileCache#endOffsetFor."""
        if not self.cache or epoch > self.cache[-1][0] or epoch == UNDEFINED:
            return UNDEFINED, UNDEFINED
        if epoch == self.cache[-1][0]:
            return epoch, len(self.log)
        # An epoch before all that are in the cache ends where the first of those begins.
        if epoch < self.cache[0][0]:
            return epoch, self.cache[0][1]
        known_epoch = max(e for e, _ in self.cache if e <= epoch)
        return known_epoch, next(start for e, start in self.cache if e > epoch)

    def begin_epoch(self, epoch: int, start: int) -> None:
        """Add an entry to the epoch cache, and drop those that contradict it. LeaderEpochFileCache#assign."""
        if not self.cache or self.cache[-1][0] != epoch:
            self.cache = [(e, s) for e, s in self.cache if e < epoch and s < start] + [(epoch, start)]

    def truncate(self, offset: int) -> None:
        """Drop the records from an offset on, and the epochs that begin there or later."""
        del self.log[offset:]
        self.cache = [(e, s) for e, s in self.cache if s < offset]
        self.hw = min(self.hw, offset)

    # -- roles

    def metadata(self, leader: int, leader_epoch: int, partition_epoch: int, isr: list[int]) -> None:
        """Take the controller's registration of the partition: lead, or follow the leader."""
        self.highest = max(self.highest, leader_epoch)
        # The response to a proposal may have brought a newer registration before.
        if partition_epoch < self.partition_epoch:
            return
        # Or the same one: Kafka reads it again, and forgets what it has proposed since (F3).
        if leader == ME and (leader, leader_epoch, partition_epoch) == (self.leader, self.epoch, self.partition_epoch):
            return
        newer = leader_epoch > self.epoch
        # Kafka keeps the log ends if it led before, be it two epochs ago (F2).
        if newer:
            self.ends = {}
        self.leader, self.epoch, self.partition_epoch = leader, leader_epoch, partition_epoch
        self.isr, self.proposed = isr, None
        if leader == ME:
            self.source = self.fetching = None
            self.truncates = False
            if newer:
                self.epoch_start = len(self.log)
                self.begin_epoch(leader_epoch, len(self.log))
            self.raise_hw()
            return
        self.epoch_start = UNDEFINED
        if newer:
            # Without an epoch cache it has to truncate before it fetches: `ask`.
            self.truncates = not self.cache
            self.source = leader if leader != UNDEFINED else None
            self.fetching = (leader_epoch, len(self.log)) if self.source else None

    def raise_hw(self) -> None:
        """Raise the high watermark to the lowest log end of the ISR and of the members that are proposed for it.

        Not while the ISR has fewer members than `min_isr`, or than all replicas where those are fewer.
        """
        if self.leader == ME and len(self.isr) >= min(self.min_isr, 1 + len(self.peers)):
            counted = {*self.isr, *(self.proposed or ())} - {ME}
            # A follower that has not fetched yet has no known log end, and holds the high watermark back.
            self.hw = max(self.hw, min([len(self.log), *(self.ends.get(b, UNDEFINED) for b in counted)]))

    # -- leader

    def append(self, acks: int) -> dict[str, int]:  # noqa: ARG002
        """Append a producer's record, if this replica leads."""
        if self.leader != ME:
            return {"error": NOT_LEADER, "base": UNDEFINED}
        self.begin_epoch(self.epoch, len(self.log))
        self.log.append(self.epoch)
        self.raise_hw()
        return {"error": 0, "base": len(self.log) - 1}

    def refusal(self, current_leader_epoch: int) -> int:
        """Return the error for a request that carries this current leader epoch, 0 for none."""
        if current_leader_epoch not in (UNDEFINED, self.epoch):
            return FENCED if current_leader_epoch < self.epoch else UNKNOWN_EPOCH
        return 0 if self.leader == ME else NOT_LEADER

    def fetch(
        self, peer: int, current_leader_epoch: int, fetch_offset: int, last_fetched_epoch: int, may_join: bool
    ) -> dict[str, object]:
        """Respond to a follower's fetch with at most one record, [base offset, last offset, epoch].

        The order of the checks is Kafka's: epoch and role, then divergence, then the offset (Partition#fetchRecords).
        """
        if error := self.refusal(current_leader_epoch):
            return {"error": error}
        if fetch_offset < 0:
            return {"error": OUT_OF_RANGE}
        response: dict[str, object] = {"error": 0, "hw": self.hw, "log_start": 0, "records": [], "diverging": None}
        if last_fetched_epoch != UNDEFINED:
            epoch, end = self.end_of(last_fetched_epoch)
            # An epoch that this leader does not know.
            if epoch == UNDEFINED:
                return {"error": OUT_OF_RANGE}
            if epoch < last_fetched_epoch or end < fetch_offset:
                return {**response, "diverging": [epoch, end]}
        if fetch_offset > len(self.log):
            return {"error": OUT_OF_RANGE}
        known = self.ends.get(peer, UNDEFINED)
        self.ends[peer] = fetch_offset
        # A follower may join when it has all that is committed, and all that there was when this epoch began.
        caught_up = self.epoch_start != UNDEFINED and fetch_offset >= max(self.hw, self.epoch_start)
        if may_join and caught_up and self.proposed is None and peer not in self.isr:
            self.propose([*self.isr, peer])
        # The same offset again moves nothing.
        if fetch_offset != known:
            self.raise_hw()
        records = [[o, o, e] for o, e in enumerate(self.log) if o == fetch_offset]
        return {**response, "records": records}

    def offsets_for_leader_epoch(self, current_leader_epoch: int, leader_epoch: int) -> dict[str, int]:
        """Respond with the end of a leader epoch."""
        if error := self.refusal(current_leader_epoch):
            return {"error": error}
        epoch, end = self.end_of(leader_epoch)
        return {"error": 0, "leader_epoch": epoch, "end_offset": end}

    def propose(self, isr: list[int]) -> None:
        """Propose another ISR to the controller (AlterPartition)."""
        self.proposed = sorted(isr)
        self.in_flight = {"isr": self.proposed, "leader_epoch": self.epoch, "partition_epoch": self.partition_epoch}

    def lag(self, peers: list[int]) -> None:
        """Propose that these members of the ISR leave it: they have not caught up in time."""
        self.propose([b for b in self.isr if b not in peers])

    def alter_partition_response(self, error: int, partition_epoch: int, isr: list[int]) -> None:
        """Take the controller's response to a proposal."""
        asked, self.in_flight = self.in_flight, None
        # Metadata may have come before the response: it has decided already.
        if self.proposed is None or self.leader != ME:
            return
        if error == 0 and partition_epoch >= self.partition_epoch:
            self.isr, self.partition_epoch, self.proposed = isr, partition_epoch, None
            self.raise_hw()
        # After an error that is none of these two metadata comes, and decides.
        elif error == INELIGIBLE:
            self.proposed = None
        elif error == UNKNOWN_SERVER_ERROR:
            self.in_flight = asked  # it is sent again

    # -- follower

    def ask(self) -> None:
        """Put the fetcher thread's next fetch in flight, unless one is; called after each step."""
        # Without an epoch cache the thread truncates to the high watermark before it fetches.
        if self.truncates and self.source and self.source not in self.requests:
            self.truncate(self.hw)
            self.truncates, self.fetching = False, self.fetching and (self.fetching[0], len(self.log))
        if self.source and self.fetching and self.source not in self.requests:
            epoch, offset = self.fetching
            last = self.cache[-1][0] if self.cache else UNDEFINED
            request = {"current_leader_epoch": epoch, "fetch_offset": offset, "last_fetched_epoch": last, "log_start": 0}
            self.requests[self.source] = request

    def lose_response(self, peer: int) -> None:
        """Lose the fetch in flight to a peer."""
        del self.requests[peer]

    def fetch_response(
        self,
        peer: int,
        error: int,
        hw: int,
        log_start: int,  # noqa: ARG002
        records: list[tuple[int, int, int]],
        diverging: tuple[int, int] | None,
        offsets: tuple[int, int] | None,
    ) -> None:
        """Take the leader's response to the fetch in flight; ignore it if another epoch or offset would be fetched now.

        `records` are (base, last offset, epoch), one record each: this toy has no batches. `diverging` is an epoch with its
        end at the leader, `offsets` the leader's log start and log end.
        """
        request = self.requests.pop(peer)
        requested = (request["current_leader_epoch"], request["fetch_offset"])
        if peer != self.source or self.fetching is None:
            return
        epoch = self.fetching[0]
        if requested == self.fetching:
            # A newer leader epoch is under way: wait for its metadata.
            if error == FENCED:
                self.fetching = None
                return
            if error == OUT_OF_RANGE and offsets:
                self.reset(*offsets)
            elif error == 0 and diverging:
                if self.bug:
                    self.hw = min(hw, len(self.log))
                self.truncate(self.agreed(*diverging))
            elif error == 0:
                for base, _, record_epoch in records:
                    # Records of a later epoch than the fetcher's are not appended (KAFKA-18723).
                    if record_epoch > epoch:
                        break
                    self.begin_epoch(record_epoch, base)
                    self.log.append(record_epoch)
                self.hw = max(0, min(hw, len(self.log)))
        self.fetching = (epoch, len(self.log))

    def agreed(self, leader_epoch: int, leader_end: int) -> int:
        """Return the offset to truncate to after a divergence: up to it this log agrees with the leader's.

        The leader has responded that `leader_epoch` ends at `leader_end`. AbstractFetcherThread#getOffsetTruncationState.
        """
        # The leader knows no end: there is nothing to compare.
        if leader_end == UNDEFINED:
            return len(self.log)
        epoch, end = self.end_of(leader_epoch)
        if leader_epoch == UNDEFINED or epoch == UNDEFINED:
            return min(leader_end, len(self.log))
        # This log may have only an earlier epoch: then it agrees up to that one's end at most.
        return min(end, len(self.log)) if epoch != leader_epoch else min(end, leader_end, len(self.log))

    def reset(self, _leader_start: int, leader_end: int) -> None:
        """Truncate to the leader's log end after a fetch out of range. This toy does not follow a log start."""
        if leader_end < len(self.log):
            self.truncate(leader_end)

    # -- process

    def crash(self, hw: int, log_end: int) -> None:  # noqa: ARG002
        """End the process, and start it again with what is on disk: all of the log, and this high watermark.

        `log_end` is the log's end: a crash that loses records is only for brokers that promise so.
        """
        self.forget()
        # Recovery reads the log, and adds epochs above those in the cache.
        for offset, epoch in enumerate(self.log):
            if not self.cache or epoch > self.cache[-1][0]:
                self.begin_epoch(epoch, offset)
        self.cache = [(e, s) for e, s in self.cache if s < len(self.log)]
        self.hw = min(hw, len(self.log))
