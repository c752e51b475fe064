"""The committed-data cluster on plain values: its steps, its state, and the conjuncts' own code run on it."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping
from typing import Any

from tidegauge.impl import rules
from tidegauge.spec.proofs.committed.invariant import (
    ACCEPTED,
    COMMITTED_INVARIANT,
    NONE,
    REFUSED,
    SENT,
    ClusterState,
    CommittedPremise,
)
from validation.premises.plain_values import PlainStep, PlainSystem, PremiseRun, broken_conjuncts

PLAIN_BROKERS = 3


class PlainClusterState(PlainSystem):
    """A small cluster with the ghosts of the proof."""

    def __init__(self, without: str = "", brokers: int = PLAIN_BROKERS) -> None:
        super().__init__(without)
        self.brokers = brokers
        self.current = 0
        self.leader = [0]
        self.isr = [set(range(brokers))]
        self.image: dict[tuple[int, int], set[int]] = {(0, 0): set(range(brokers))}
        self.version: Counter[int] = Counter()
        self.known_version: defaultdict[int, int] = defaultdict(lambda: -1)
        self.view: defaultdict[int, set[int]] = defaultdict(set)
        self.proposed: defaultdict[int, set[int]] = defaultdict(set)
        self.status: Counter[int] = Counter()
        self.given_up: list[tuple[int, int, set[int]]] = []
        self.known = [-1] * brokers
        self.gone: dict[int, int] = {}
        self.log: list[list[int]] = [[] for _ in range(brokers)]
        self.log_start = [0] * brokers
        self.start: dict[int, int] = {}
        self.hist: dict[int, list[int]] = {}
        self.deleted: Counter[int] = Counter()
        self.remote: Counter[tuple[int, int]] = Counter()
        self.asked: Counter[tuple[int, int]] = Counter()
        self.shown: Counter[int] = Counter()
        self.shown_from: Counter[int] = Counter()
        self.committed: Counter[int] = Counter()
        self.cap: dict[int, int] = {}
        self.witness: dict[int, int] = {}
        self.hw = [0] * brokers
        self.origin = [0] * brokers

    def leads(self, e: int) -> bool:
        """Return whether epoch e's leader leads it and has not learned of a later one."""
        return 0 <= e <= self.current and self.known[self.leader[e]] == e

    def follows(self, f: int) -> bool:
        """Return whether f follows a leader that has begun."""
        e = self.known[f]
        return e in self.hist and self.leader[e] != f

    def state(self) -> ClusterState:
        """Return the cluster as the invariant sees it. What does not exist is empty, small, or a number that nothing has."""

        def among(members: Any) -> Any:
            return lambda e, b: 0 <= e <= self.current and b in members[e]

        def at(logs: Any, outside: int) -> Any:
            # No epoch is negative, and the two numbers differ: records that do not exist never look equal.
            return lambda b, o: logs[b][o] if 0 <= o < len(logs[b]) else outside

        return ClusterState(
            brokers=self.brokers,
            current=self.current,
            leader=lambda e: self.leader[e] if 0 <= e <= self.current else 0,
            isr=among(self.isr),
            version=lambda e: self.version[e],
            image=lambda e, v, b: b in self.image.get((e, v), ()),
            known_version=lambda e: self.known_version[e],
            view=among(self.view),
            proposed=among(self.proposed),
            status=lambda e: self.status[e],
            known=lambda b: self.known[b],
            gone=lambda b: b in self.gone,
            log_start=lambda b: self.log_start[b],
            log_end=lambda b: len(self.log[b]),
            record=at(self.log, -9),
            begun=lambda e: e in self.hist,
            start=lambda e: self.start.get(e, 0),
            hist=at(defaultdict(list, self.hist), -7),
            hist_end=lambda e: len(self.hist.get(e, [])),
            deleted=lambda e: self.deleted[e],
            remote=lambda e, r: self.remote[e, r],
            asked=lambda e, r: self.asked[e, r],
            shown=lambda e: self.shown[e],
            shown_from=lambda e: self.shown_from[e],
            committed=lambda e: self.committed[e],
            capped=lambda e: e in self.cap,
            cap=lambda e: self.cap.get(e, 0),
            witness=lambda e: self.witness.get(e, 0),
            hw=lambda b: self.hw[b],
            origin=lambda b: self.origin[b],
        )

    def broken(self) -> set[str]:
        """Return the conjuncts that fail, over all small values of their variables."""
        brokers, epochs = range(self.brokers), range(-1, self.current + 2)
        versions = range(-1, max(self.version.values(), default=0) + 2)
        offsets = range(-1, max(6, *map(len, self.log)))
        values = {
            "b": brokers,
            "r": brokers,
            "e": epochs,
            "f": epochs,
            "v": versions,
            "w": versions,
            "o": offsets,
            "p": offsets,
        }
        return broken_conjuncts(COMMITTED_INVARIANT, self.state(), values)

    def place(self, b: int) -> int:
        """Return the number of the first incarnation of the broker that b is an incarnation of."""
        older = {new: old for old, new in self.gone.items()}
        while b in older:
            b = older[b]
        return b

    def name(self, b: int) -> str:
        """Return the name of a broker in messages: counted from 1, as in traces."""
        return f"broker {self.place(b) + 1}"

    def lost(self) -> list[str]:
        """Return the committed data that a later leader or an ISR member lacks, and what is shown but not committed."""
        losses = [
            f"{self.name(b)} shows all below offset {self.hw[b]}, of which {self.committed[self.origin[b]]} were committed"
            for b in range(self.brokers)
            if self.hw[b] > self.committed[self.origin[b]]
        ]
        for e, count in self.committed.items():
            data, what = self.hist.get(e, [])[:count], f"all that was committed in epoch {e} below offset {count}"
            for f, past in self.hist.items():
                # Only what a later leader began with counts: what it appended itself is another record at that offset.
                if f > e and past[: min(count, self.start[f])] != data:
                    losses.append(f"{self.name(self.leader[f])} leads epoch {f} without {what}")
            members = sorted(self.isr[self.current])
            losses += [f"{self.name(r)} is in the ISR without {what}" for r in members if self.log[r][:count] != data]
        return losses


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
        # A restart loads the checkpoint, which may be older than the high watermark, and raises it to the log start.
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

    def diverge(self, f: int) -> bool:
        """Let f's leader find that their logs diverge; the response stays on its way, so nothing changes."""
        e, end = self.known[f], len(self.log[f])
        return self.follows(f) and end > 0 and self.log[f][end - 1 :] != self.hist[e][end - 1 : end]

    def truncate(self, f: int, target: int, sent: int | None = None) -> bool:
        """Let f truncate where it and its leader differ, by a response to a request that it sent in epoch `sent`."""
        e, end = self.known[f], len(self.log[f])
        sent = e if sent is None else sent
        if not self.follows(f) or not 0 <= target < end or not self.led_before(sent, e):
            return False
        checked = self.without != CommittedPremise.RESPONSE_OF_ITS_EPOCH
        if not rules.accepts_fetch_response(end, e, True, end, sent, checked):
            return False
        # Where the logs agree nothing is truncated: the convergence proofs show that for the rules.
        if target < len(self.hist[sent]) and self.hist[sent][target] == self.log[f][target]:
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

    def led_before(self, sent: int, e: int) -> bool:
        """Return whether the leader of epoch e has led epoch `sent`, the same or an earlier one."""
        return 0 <= sent <= e and sent in self.hist and self.leader[sent] == self.leader[e]

    def serve(self, e: int, f: int, offset: int, sent: int | None = None) -> bool:
        """Let the leader of epoch e record a fetch that f sent in epoch `sent`."""
        sent = e if sent is None else sent
        if (
            not self.leads(e)
            or not self.led_before(sent, e)
            or self.leader[e] == f
            or not 0 <= offset <= self.asked[sent, f]
        ):
            return False
        fences = self.without != CommittedPremise.REQUEST_OF_ITS_EPOCH
        if rules.request_error(sent, e, True, fences) != rules.NONE:
            return False
        # A leader that has another record before the offset by now finds the logs diverging.
        if offset and self.hist[e][offset - 1 : offset] != self.hist[sent][offset - 1 : offset]:
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
        # Else the high watermark is raised to the log start (follower_high_watermark), which another leader reached.
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
        # The maximal ISR: with a proposal in flight, the members of both ISRs count.
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
        # The leader forgets its proposal, but the request may still be on its way to the controller.
        if self.status[e] == SENT:
            self.given_up.append((e, self.known_version[e], set(self.proposed[e])))
        self.known_version[e], self.view[e], self.status[e] = version, set(self.image[e, version]), NONE
        return True

    def remove(self, out: int) -> bool:
        """Let the controller take a broker out of the ISR."""
        # To take the leader out is an election, which begins an epoch.
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
        # The other cases truncate at the leader's end, as `truncate` does, or do nothing.
        if kind != rules.RESET_TO_LEADER_START:
            return False
        self.log[f], self.log_start[f] = self.hist[e][:target], target
        self.hw[f], self.origin[f] = target, self.shown_from[e]
        return True


# For each premise of the committed-data invariant, a short run that loses committed data without it.
#
# Rules of this part
#
# 1. A run is a list of steps of `PlainCluster`. Brokers are counted from 0; a broker that comes back without its last
#    records is a new one, with the next number.
# 2. Where an ISR member lacks committed data the run goes on to elect it: that is when a client would notice.


class CommittedLoss(PremiseRun[PlainCluster]):
    """A run of three brokers that loses committed data."""

    def begin(self, without: str = "") -> PlainCluster:
        """Return the cluster before the first step."""
        return PlainCluster(without)


BOTH_LEARN: tuple[PlainStep, ...] = (("learn", 0, 0), ("learn", 1, 0))
ONE_COMMITTED: tuple[PlainStep, ...] = (
    *BOTH_LEARN,
    ("shrink", 2),
    ("append", 0),
    ("fetch", 1, 1),
    ("fetch", 1, 1),
    ("commit", 0),
)
"""Broker 2 leaves the ISR, and one record is committed on the two others."""

COMMITTED_LOSSES: Mapping[str, CommittedLoss] = {
    "elected-outside-isr": CommittedLoss(CommittedPremise.ELECT_FROM_ISR, (*ONE_COMMITTED, ("elect", 2), ("learn", 2, 1))),
    "commit-alone": CommittedLoss(
        CommittedPremise.COMMIT_NEEDS_ALL, (("learn", 0, 0), ("append", 0), ("commit", 0), ("elect", 1), ("learn", 1, 1))
    ),
    # the controller has taken broker 2 into the ISR, and the leader has not learned of it
    "joiner-not-counted": CommittedLoss(
        CommittedPremise.COUNT_WHO_IS_TO_JOIN,
        (
            *BOTH_LEARN, ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("accept",),
            ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # the controller has not taken broker 2 out of the ISR, and never does
    "leaver-not-counted": CommittedLoss(
        CommittedPremise.COUNT_WHO_IS_TO_LEAVE,
        (
            *BOTH_LEARN, ("propose_shrink", 0, 2), ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 0),
            ("refuse", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    "join-below-high-watermark": CommittedLoss(
        CommittedPremise.JOIN_AT_HIGH_WATERMARK,
        (
            *BOTH_LEARN, ("shrink", 1), ("shrink", 2), ("fetch", 1, 0), ("append", 0), ("commit", 0), ("expand", 1),
            ("elect", 1), ("learn", 1, 1),
        ),
    ),
    # KAFKA-7128: the new leader's high watermark is behind what the old one committed, the returning follower with it
    "join-below-epoch-start": CommittedLoss(
        CommittedPremise.JOIN_AT_EPOCH_START,
        (
            *ONE_COMMITTED, ("elect", 1), ("learn", 1, 1), ("learn", 2, 1), ("fetch", 2, 0), ("expand", 2), ("elect", 2),
            ("learn", 2, 2),
        ),
    ),
    # the request of a change that its leader has given up arrives late
    "late-isr-change": CommittedLoss(
        CommittedPremise.CHANGE_KNOWS_THE_LATEST,
        (
            ("learn", 0, 0), ("learn", 2, 0), ("shrink", 2), ("fetch", 2, 0), ("propose_expand", 0, 2), ("remove", 1),
            ("hear_isr", 0), ("append", 0), ("commit", 0), ("accept_given_up", 0), ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # KIP-903: the leader proposes a follower by what it had fetched before it lost its disk
    "old-incarnation": CommittedLoss(
        CommittedPremise.NO_OLD_INCARNATION,
        (
            *ONE_COMMITTED, ("remove", 1), ("hear_isr", 0), ("lose_tail", 1, 0), ("propose_expand", 0, 1), ("accept",),
            ("elect", 3), ("learn", 3, 1),
        ),
    ),
    "lost-tail-in-isr": CommittedLoss(
        CommittedPremise.LEFT_ISR_FIRST, (*ONE_COMMITTED, ("lose_tail", 1, 0), ("elect", 3), ("learn", 3, 1))
    ),
    # the leader comes back with an old checkpoint, and a follower joins that lacks what it committed before
    "leader-restarts-in-epoch": CommittedLoss(
        CommittedPremise.RESTART_LEADS_LATER,
        (
            *BOTH_LEARN, ("learn", 2, 0), *ONE_COMMITTED[2:], ("restart", 0, 1), ("fetch", 2, 0), ("expand", 2),
            ("elect", 2), ("learn", 2, 1),
        ),
    ),
    # Kafka 4.3.1 as it is: broker 0 does not know that broker 2 led in between, and that broker 1 truncated its log
    "kept-log-ends": CommittedLoss(
        CommittedPremise.FORGET_LOG_ENDS,
        (
            *BOTH_LEARN, ("append", 0), ("fetch", 1, 1), ("fetch", 1, 1), ("elect", 2), ("learn", 2, 1), ("learn", 1, 1),
            ("truncate", 1, 0), ("elect", 0, (2,)), ("learn", 0, 2), ("commit", 2), ("elect", 1), ("learn", 1, 3),
        ),
    ),
    # broker 1 has asked from behind a record, and has truncated it since; broker 0 leads again and reads the old request
    "old-request": CommittedLoss(
        CommittedPremise.REQUEST_OF_ITS_EPOCH,
        (
            *BOTH_LEARN, ("append", 0), ("fetch", 1, 1), ("ask", 1), ("elect", 2), ("learn", 2, 1), ("learn", 1, 1),
            ("truncate", 1, 0), ("elect", 0, (2,)), ("learn", 0, 2), ("serve", 2, 1, 1, 0), ("commit", 2), ("elect", 1),
            ("learn", 1, 3),
        ),
    ),
    # F1, before 3.9.1 and 4.0.1: broker 1 said that the logs diverge when it led before; the record is committed since
    "old-response": CommittedLoss(
        CommittedPremise.RESPONSE_OF_ITS_EPOCH,
        (
            ("learn", 0, 0), ("append", 0), ("elect", 1, (2,)), ("learn", 1, 1), ("learn", 0, 1), ("diverge", 0),
            ("elect", 0), ("learn", 0, 2), ("learn", 1, 2), ("fetch", 1, 1), ("fetch", 1, 1), ("commit", 2), ("elect", 1),
            ("learn", 1, 3), ("learn", 0, 3), ("truncate", 0, 0, 1), ("elect", 0), ("learn", 0, 4),
        ),
    ),
    # a follower that begins at the leader's log start shows every record below it
    "delete-above-high-watermark": CommittedLoss(
        CommittedPremise.DELETE_BELOW_HIGH_WATERMARK, (*BOTH_LEARN, ("append", 0), ("delete", 0, 1), ("reset", 1))
    ),
}  # fmt: skip
"""By the name that `python -m validation.premises` takes."""
