"""The steps of a registration and its leaders on plain values; a step that its guard forbids does nothing and says so."""

from collections.abc import Iterable
from typing import NamedTuple

from tidegauge.impl import rules
from tidegauge.spec.proofs.eligible.registration import NOBODY, Premise


class Version(NamedTuple):
    """What one record made of the registration; `minimum` is min.insync.replicas when it was written."""

    isr: frozenset[int]
    minimum: int
    replicas: int


class PlainRegistration:
    """What `steps.py` and `leader_steps.py` say, done, for replicas 1, 2, 3. A log is the committed records it holds."""

    def __init__(self, without: str = "", replicas: Iterable[int] = (1, 2, 3), minimum: int = 2) -> None:
        self.without = without
        self.replica = set(replicas)
        self.minimum, self.minimum_version = minimum, 0
        self.elr: set[int] = set()
        self.versions = [Version(frozenset(self.replica), minimum, len(self.replica))]
        self.leader, self.first, self.last = [min(self.replica)], [0], [0]
        self.learned = dict.fromkeys(self.replica, NOBODY)
        self.known: dict[int, int] = {}
        self.known_minimum: dict[int, int] = {}
        self.joins: dict[int, int] = {}
        self.fit: dict[int, bool] = {}
        self.witness: dict[int, int] = {}
        self.holds: dict[int, set[int]] = {b: set() for b in self.replica}
        self.committed = 0

    # -- what there is

    @property
    def current(self) -> int:
        """The latest leader epoch."""
        return len(self.leader) - 1

    @property
    def isr(self) -> frozenset[int]:
        """The ISR of now."""
        return self.versions[-1].isr

    def leads(self, e: int) -> bool:
        """Epoch e's leader leads it, deposed or not."""
        return e in self.known and self.learned[self.leader[e]] == e

    def last_version(self, e: int) -> int:
        """The latest version of epoch e."""
        return len(self.versions) - 1 if e == self.current else self.last[e]

    def waits(self, e: int) -> set[int]:
        """Whom epoch e's leader waits for."""
        return set(self.versions[self.known[e]].isr) | ({self.joins[e]} if e in self.joins else set())

    def seen(self) -> tuple[object, ...]:
        """What a premise may make another of: the latest version, the ELR, the min ISR that leaders know."""
        return self.versions[-1], frozenset(self.elr), tuple(self.known_minimum.items())

    def lost(self) -> list[str]:
        """Records that the latest leader lacks although they are committed."""
        leader = self.leader[-1]
        missing = sorted(set(range(self.committed)) - self.holds.get(leader, set())) if leader != NOBODY else []
        return [f"record {o}: broker {leader} is elected for epoch {self.current} without it" for o in missing]

    # -- the controller

    def _small(self, size: int, minimum: int, premise: Premise) -> bool:
        """Capped by the replicas from before, as Kafka does."""
        return self.without == premise or rules.under_min_isr(size, minimum, self.versions[-1].replicas)

    def _change(self, isr: frozenset[int], gone: set[int], elect: int | None) -> bool:
        """`elect` is the leader of a new epoch, NOBODY for none; None keeps the one there is."""
        small = self._small(len(isr), self.minimum, Premise.ELIGIBLE_BELOW_MIN_ISR)
        elr = (self.elr | self.isr) - isr - gone if small else set()
        if elect is None and self.leader[-1] not in isr:
            return False
        if elect is not None and elect != NOBODY and elect not in isr:
            if elect not in elr and self.without != Premise.ELECT_ELIGIBLE:
                return False
            isr, elr = frozenset({elect}), elr - {elect}
            elr = elr if self._small(1, self.minimum, Premise.ELECTION_LOOKS_AGAIN) else set()
        self.elr = elr
        self.versions.append(Version(isr, self.minimum, len(self.replica)))
        if elect is not None:
            self.last[-1] = len(self.versions) - 2
            self.leader.append(elect)
            self.first.append(len(self.versions) - 1)
            self.last.append(NOBODY)
        return True

    def fence(self, out: tuple[int, ...], elect: int | None = None) -> bool:
        """Brokers leave the ISR, and there may be an election."""
        return self._change(self.isr.difference(out), set(), elect)

    def reassign(self, to: tuple[int, ...], elect: int | None = None) -> bool:
        """The replicas are these; who is none any more deletes its log."""
        out, before = self.replica.difference(to), set(self.replica)
        self.replica = set(to)
        if not self._change(self.isr - out, set() if self.without == Premise.REMOVED_LEAVES else out, elect):
            self.replica = before
            return False
        for b in out:
            self.holds[b] = set()
        for b in self.replica - self.holds.keys():
            self.holds[b], self.learned[b] = set(), NOBODY
        return True

    def come_back(self, b: int, elect: int | None = None) -> bool:
        """b comes back without its log."""
        gone = set() if self.without == Premise.LOST_LEAVES else {b}
        if b in self.isr | self.elr and not self._change(self.isr - {b}, gone, elect):
            return False
        self.holds[b], self.learned[b] = set(), self.current
        self.fit.update({e: False for e, joins in self.joins.items() if joins == b})
        return True

    def accept(self, e: int) -> bool:
        """What the leader of epoch e proposes is taken."""
        latest = e == self.current and self.known.get(e) == len(self.versions) - 1
        if e not in self.joins or self.joins[e] in self.isr or not (latest or self.without == Premise.KNOWS_THE_LATEST):
            return False
        if not self.fit[e] and self.without != Premise.NO_OLD_INCARNATION:
            return False
        return self._change(self.isr | {self.joins[e]}, set(), None)

    def set_minimum(self, minimum: int) -> bool:
        """min.insync.replicas becomes another one."""
        if not self._small(len(self.isr), minimum, Premise.CHANGE_LOOKS_AGAIN):
            self.elr = set()
        self.minimum, self.minimum_version = minimum, len(self.versions) - 1
        return True

    # -- leaders

    def learn(self, b: int, e: int) -> bool:
        """b learns of epoch e; its leader hears of the last version of it."""
        if not self.learned[b] < e <= self.current:
            return False
        self.learned[b] = e
        if self.leader[e] == b:
            self.known[e] = self.last_version(e)
            self.known_minimum[e] = self.versions[self.known[e]].minimum
            self.witness.update({x: b for x in range(e) if x not in self.witness})
        return True

    def hear_isr(self, e: int, behind: int = 0) -> bool:
        """The leader of epoch e hears of a later ISR."""
        version = self.last_version(e) - behind
        if not self.leads(e) or not self.known[e] < version:
            return False
        self.known[e] = version
        if self.without != Premise.ISR_WITH_MIN_ISR:
            self.known_minimum[e] = self.versions[version].minimum
        self.joins.pop(e, None)
        return True

    def hear_minimum(self, e: int) -> bool:
        """The leader of epoch e hears of the min ISR of now."""
        if not self.leads(e) or (self.known[e] < self.minimum_version and self.without != Premise.MIN_ISR_IN_ORDER):
            return False
        self.known_minimum[e] = self.minimum
        return True

    def propose(self, b: int) -> bool:
        """The latest leader proposes b for the ISR."""
        e = self.current
        whole = len(self.holds.get(b, ())) == self.committed or self.without == Premise.JOINS_WHOLE
        if not self.leads(e) or e in self.joins or b not in self.replica or not whole:
            return False
        self.joins[e], self.fit[e] = b, True
        return True

    def catch_up(self, b: int) -> bool:
        """b fetches all that the latest leader has."""
        e = self.current
        if not self.leads(e) or self.learned.get(b) != e:
            return False
        self.holds[b] |= self.holds[self.leader[e]]
        return True

    def commit(self, e: int) -> bool:
        """The leader of epoch e commits a record that those it waits for have, and nobody else."""
        if not self.leads(e) or any(self.learned[b] != e for b in self.waits(e)):
            return False
        known = self.versions[self.known[e]]
        too_few = rules.under_min_isr(len(known.isr), self.known_minimum[e], known.replicas)
        if too_few and self.without != Premise.COMMIT_ON_MIN_ISR:
            return False
        for b in self.waits(e):
            self.holds[b].add(self.committed)
        self.committed += 1
        return True
