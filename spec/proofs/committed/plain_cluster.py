"""The steps of the committed-data cluster on plain values."""

from collections.abc import Iterable

from tidegauge.impl import rules
from tidegauge.spec.proofs.committed.cluster import ACCEPTED, NONE, REFUSED, SENT, CommittedPremise
from tidegauge.spec.proofs.committed.plain_ghosts import PlainClusterState


class PlainCluster(PlainClusterState):
    """The steps of the cluster, executed. `fetch`, `shrink` and `expand` take several at once."""

    # -- leadership

    def elect(self, b: int, dropped: Iterable[int] = ()) -> bool:
        """Elect b, and take `dropped` out of the ISR."""
        if self.without != CommittedPremise.ELECT_FROM_ISR and b not in self.isr[self.current]:
            return False
        self.isr.append(self.isr[self.current].difference(dropped) | {b})
        self.leader.append(b)
        self.current += 1
        self.image[self.current, 0] = set(self.isr[self.current])
        return True

    def learn(self, b: int, e: int, lost: int = 0, behind: int = 0) -> bool:
        """Let b learn of epoch e: with a high watermark `lost` lower, as leader with an ISR `behind` versions old."""
        if b >= self.brokers or not self.known[b] < e <= self.current:
            return False
        self.hw[b] = max(self.log_start[b], self.hw[b] - lost)
        if self.leader[e] == b:
            for x in range(e):
                # b neither leads nor fetches in earlier epochs: that bounds what can still be committed there.
                if self.leader[x] == b:
                    self.cap[x], self.witness[x] = self.committed[x], b
                elif b in self.isr[x] and self.asked[x, b] <= self.cap.get(x, self.asked[x, b]):
                    self.cap[x], self.witness[x] = self.asked[x, b], b
            self.start[e], self.hist[e] = len(self.log[b]), list(self.log[b])
            self.known_version[e] = max(0, self.version[e] - behind)
            self.view[e] = set(self.image[e, self.known_version[e]])
            last = self.known[b]
            was_leader, as_kafka = last >= 0 and self.leader[last] == b, self.without == CommittedPremise.FORGET_LOG_ENDS
            if not rules.forgets_log_ends(last, e, was_leader, as_kafka):
                self.remote.update({(e, r): self.remote[last, r] for r in range(self.brokers)})
            self.deleted[e], self.shown[e], self.shown_from[e] = self.log_start[b], self.hw[b], self.origin[b]
        self.known[b] = e
        return True

    # -- logs

    def append(self, e: int) -> bool:
        """Let the leader of epoch e append a record."""
        if not self.leads(e):
            return False
        self.log[self.leader[e]].append(e)
        self.hist[e].append(e)
        return True

    def truncate(self, f: int, target: int) -> bool:
        """Let f truncate where it and its leader differ."""
        e = self.known[f]
        if not self.follows(f) or not 0 <= target < len(self.log[f]):
            return False
        if target < len(self.hist[e]) and self.hist[e][target] == self.log[f][target]:
            return False
        del self.log[f][target:]
        self.log_start[f] = min(self.log_start[f], target)
        self.hw[f] = rules.high_watermark_after_truncation(self.hw[f], target)
        return True

    def ask(self, f: int) -> bool:
        """Let f send a fetch at its end."""
        e, end = self.known[f], len(self.log[f])
        if not self.follows(f) or end > len(self.hist[e]) or (end and self.hist[e][end - 1] != self.log[f][end - 1]):
            return False
        self.asked[e, f] = max(self.asked[e, f], end)
        return True

    def serve(self, e: int, f: int, offset: int) -> bool:
        """Let the leader of epoch e record a fetch of f."""
        if not self.leads(e) or self.leader[e] == f or not 0 <= offset <= self.asked[e, f]:
            return False
        self.remote[e, f] = offset
        return True

    def take(self, f: int, new_end: int, late: int = 0) -> bool:
        """Let f take records up to `new_end`, and a high watermark `late` below the leader's last."""
        e, end = self.known[f], len(self.log[f])
        if not self.follows(f) or end > self.asked[e, f] or not end <= new_end <= len(self.hist[e]):
            return False
        reported = max(0, self.shown[e] - late)
        self.log[f] += self.hist[e][end:new_end]
        self.hw[f] = rules.follower_high_watermark(reported, self.log_start[f], new_end)
        if reported >= self.log_start[f]:
            self.origin[f] = self.shown_from[e]
        return True

    def fetch(self, f: int, new_end: int) -> bool:
        """Ask, serve and take at once."""
        e, end = self.known[f], len(self.log[f])
        if not self.leads(e) or not end <= new_end <= len(self.hist[e]):
            return False
        return self.ask(f) and self.serve(e, f, end) and self.take(f, new_end)

    def waits(self, e: int) -> set[int]:
        """Return the brokers that the leader of epoch e waits for: its maximal ISR."""
        if self.without == CommittedPremise.COMMIT_NEEDS_ALL:
            return set()
        pending = self.status[e] != NONE
        if self.without == CommittedPremise.COUNT_WHO_IS_TO_JOIN or not pending:
            return self.view[e]
        return self.proposed[e] | (set() if self.without == CommittedPremise.COUNT_WHO_IS_TO_LEAVE else self.view[e])

    def commit(self, e: int) -> bool:
        """Let the leader of epoch e raise its high watermark."""
        if not self.leads(e):
            return False
        b, waits = self.leader[e], self.waits(e)
        leos = [self.remote[e, r] for r in range(self.brokers)]
        counted = [r in waits and r != b for r in range(self.brokers)]
        hw = rules.leader_high_watermark(self.hw[b], len(self.hist[e]), leos, counted, False)
        if hw <= self.hw[b]:
            return False
        self.committed[e], self.hw[b], self.origin[b] = hw, hw, e
        self.shown[e], self.shown_from[e] = hw, e
        return True

    # -- the ISR

    def propose_shrink(self, e: int, *out: int) -> bool:
        """Let the leader of epoch e propose an ISR without some."""
        if not self.leads(e) or self.status[e] != NONE or self.leader[e] in out or not self.view[e].issuperset(out):
            return False
        self.proposed[e], self.status[e] = self.view[e].difference(out), SENT
        return True

    def propose_expand(self, e: int, r: int) -> bool:
        """Let the leader of epoch e propose an ISR with one more."""
        if not self.leads(e) or self.status[e] != NONE or r in self.view[e]:
            return False
        hw = 0 if self.without == CommittedPremise.JOIN_AT_HIGH_WATERMARK else self.hw[self.leader[e]]
        start = 0 if self.without == CommittedPremise.JOIN_AT_EPOCH_START else self.start[e]
        if not rules.may_join_isr(self.remote[e, r], hw, start):
            return False
        self.proposed[e], self.status[e] = self.view[e] | {r}, SENT
        return True

    def _change_isr(self, members: set[int]) -> bool:
        e = self.current
        self.version[e] += 1
        self.isr[e], self.image[e, self.version[e]] = set(members), set(members)
        return True

    def accept(self) -> bool:
        """Let the controller take the change in flight."""
        e = self.current
        if self.status[e] != SENT or self.known_version[e] != self.version[e]:
            return False
        old = self.proposed[e] & self.gone.keys()  # incarnations that have restarted without their last records (KIP-903)
        if old and self.without != CommittedPremise.NO_OLD_INCARNATION:
            return False
        self.status[e] = ACCEPTED
        return self._change_isr(self.proposed[e] | {self.gone[b] for b in old})

    def accept_given_up(self, number: int) -> bool:
        """Let the controller take a change that its leader has given up."""
        if number >= len(self.given_up) or self.without != CommittedPremise.CHANGE_KNOWS_THE_LATEST:
            return False
        e, _, members = self.given_up[number]
        return e == self.current and self._change_isr(members)

    def refuse(self, e: int) -> bool:
        """Let the controller refuse the change of epoch e's leader."""
        if self.status[e] != SENT:
            return False
        self.status[e] = REFUSED
        return True

    def hear_refusal(self, e: int) -> bool:
        """Let the leader of epoch e learn of the refusal."""
        if not self.leads(e) or self.status[e] != REFUSED:
            return False
        self.status[e] = NONE
        return True

    def hear_isr(self, e: int, behind: int = 0) -> bool:
        """Let the leader of epoch e learn of a later ISR."""
        version = self.version[e] - behind
        if not self.leads(e) or not self.known_version[e] < version:
            return False
        if self.status[e] == SENT:
            self.given_up.append((e, self.known_version[e], set(self.proposed[e])))
        self.known_version[e], self.view[e], self.status[e] = version, set(self.image[e, version]), NONE
        return True

    def remove(self, out: int) -> bool:
        """Let the controller take a broker out of the ISR."""
        if out == self.leader[self.current] or out not in self.isr[self.current]:
            return False
        return self._change_isr(self.isr[self.current] - {out})

    def shrink(self, out: int) -> bool:
        """Propose, take and learn of the change at once."""
        e = self.current
        return self.propose_shrink(e, out) and self.accept() and self.hear_isr(e)

    def expand(self, r: int) -> bool:
        """Propose, take and learn of the change at once."""
        e = self.current
        return self.propose_expand(e, r) and self.accept() and self.hear_isr(e)

    # -- disks

    def restart(self, b: int, lost: int) -> bool:
        """Let b restart with its log and a high watermark `lost` lower."""
        if (
            self.without != CommittedPremise.RESTART_LEADS_LATER
            and self.leads(self.known[b])
            and self.leader[self.known[b]] == b
        ):
            return False
        self.hw[b] = max(self.log_start[b], self.hw[b] - lost)
        return True

    def lose_tail(self, b: int, end: int) -> bool:
        """Let b restart with the first `end` records of its log, as another broker."""
        inside = b in self.isr[self.current]
        if not self.log_start[b] <= end <= len(self.log[b]) or (inside and self.without != CommittedPremise.LEFT_ISR_FIRST):
            return False
        if inside:  # only without the premise: the new incarnation takes the old one's place
            self.isr[self.current].add(self.brokers)
        self.gone[b] = self.brokers
        self.brokers += 1
        self.known.append(self.known[b])
        self.log.append(self.log[b][:end])
        self.log_start.append(self.log_start[b])
        self.hw.append(min(self.hw[b], end))
        self.origin.append(self.origin[b])
        return True

    def delete(self, b: int, start: int) -> bool:
        """Let b delete the records below `start`."""
        most = len(self.log[b]) if self.without == CommittedPremise.DELETE_BELOW_HIGH_WATERMARK else self.hw[b]
        if not self.log_start[b] < start <= most:
            return False
        self.log_start[b] = start
        e = self.known[b]
        if self.leads(e) and self.leader[e] == b:
            self.deleted[e] = start
        return True

    def reset(self, f: int, late: int = 0) -> bool:
        """Let f drop its log and start at its leader's log start, which was `late` lower when the response was sent."""
        e = self.known[f]
        if not self.follows(f):
            return False
        reported = max(0, self.deleted[e] - late)
        kind, target = rules.out_of_range_reset(reported, len(self.hist[e]), len(self.log[f]))
        if kind != rules.RESET_TO_LEADER_START:
            return False
        self.log[f], self.log_start[f] = self.hist[e][:target], target
        self.hw[f], self.origin[f] = target, self.shown_from[e]
        return True
