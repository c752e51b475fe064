"""One replica of one partition that leads: it takes records, serves its followers, and commits what all of its ISR have.

It is on broker 1 (ME). NONE (-1) stands for no leader, no epoch, no offset.
"""

ME, NONE = 1, -1
NOT_LEADER, OUT_OF_RANGE, FENCED, UNKNOWN_EPOCH = 6, 1, 74, 75


class Replica:
    """The replica. `metadata`, `append` and `fetch` are steps of Tidegauge's contract, with the same arguments.

    So the adapter has nothing to translate. What they return is the response to the step's request.
    """

    def __init__(self, peers, min_insync_replicas):
        """Begin with an empty log, and without metadata."""
        self.log, self.cache, self.hw = [], [], 0  # leader epochs of the records; (epoch, first offset)
        self.leader = self.epoch = self.partition_epoch = NONE
        self.isr, self.proposed, self.ends, self.epoch_start = [], None, {}, 0
        self.enough = min(min_insync_replicas, 1 + len(peers))

    def metadata(self, leader, leader_epoch, partition_epoch, isr):
        """Take the controller's registration of the partition."""
        is_known = (self.leader, leader_epoch, partition_epoch) == (ME, self.epoch, self.partition_epoch)
        if partition_epoch < self.partition_epoch or is_known:
            return
        # In another epoch a follower may have truncated: what it once had says nothing any more.
        if leader_epoch > self.epoch:
            self.ends, self.epoch_start = {}, len(self.log)
            if leader == ME:
                self.begin(leader_epoch)
        self.leader, self.epoch, self.partition_epoch = leader, leader_epoch, partition_epoch
        self.isr, self.proposed = isr, None
        self.promise()

    def begin(self, epoch):
        """Add a leader epoch to the epoch cache, at the log end; drop those that have no record."""
        if not self.cache or self.cache[-1][0] != epoch:
            self.cache = [entry for entry in self.cache if entry[1] < len(self.log)] + [(epoch, len(self.log))]

    def promise(self):
        """Raise the high watermark to the lowest log end of the ISR and of the follower proposed for it."""
        if self.leader == ME and len(self.isr) >= self.enough:
            counted = {*self.isr, *([self.proposed] if self.proposed else [])} - {ME}
            self.hw = max(self.hw, min([len(self.log), *(self.ends.get(peer, NONE) for peer in counted)]))

    def append(self, acks):  # noqa: ARG002
        """Append a producer's record."""
        if self.leader != ME:
            return {"error": NOT_LEADER}
        self.begin(self.epoch)
        self.log.append(self.epoch)
        self.promise()
        return {"error": 0, "base": len(self.log) - 1}

    def end_of(self, epoch):
        """Return the largest epoch up to this one, and the offset where it ends."""
        if not self.cache or epoch > self.cache[-1][0]:
            return NONE, NONE
        earlier = [entry for entry in self.cache if entry[0] <= epoch]
        if not earlier:
            return epoch, self.cache[0][1]
        later_starts = [start for entry_epoch, start in self.cache if entry_epoch > epoch]
        return earlier[-1][0], later_starts[0] if later_starts else len(self.log)

    def fetch(self, peer, current_leader_epoch, fetch_offset, last_fetched_epoch, may_join):
        """Respond to a follower's fetch; `may_join`: whether the metadata allows it to join the ISR."""
        # A peer that knows no epoch sends -1, which is not compared.
        if current_leader_epoch not in (NONE, self.epoch):
            return {"error": FENCED if current_leader_epoch < self.epoch else UNKNOWN_EPOCH}
        if self.leader != ME:
            return {"error": NOT_LEADER}
        if fetch_offset < 0:
            return {"error": OUT_OF_RANGE}
        response = {"error": 0, "hw": self.hw, "log_start": 0, "records": [], "diverging": None}
        if last_fetched_epoch != NONE:
            epoch, end = self.end_of(last_fetched_epoch)
            if epoch == NONE:
                return {"error": OUT_OF_RANGE}
            if epoch < last_fetched_epoch or end < fetch_offset:
                return {**response, "diverging": [epoch, end]}
        if fetch_offset > len(self.log):
            return {"error": OUT_OF_RANGE}
        moved, self.ends[peer] = self.ends.get(peer) != fetch_offset, fetch_offset
        if may_join and fetch_offset >= max(self.hw, self.epoch_start) and not self.proposed and peer not in self.isr:
            self.proposed = peer
        if moved:
            self.promise()
        response["records"] = [[fetch_offset, fetch_offset, epoch] for epoch in self.log[fetch_offset : fetch_offset + 1]]
        return response
