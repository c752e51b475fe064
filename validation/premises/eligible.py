"""A registration and its leaders on plain values."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

from tidegauge.impl import rules
from tidegauge.spec.proofs.eligible.invariant import ELECTION_INVARIANT, NOBODY, NUMBERS, ElectionPremise, RegistrationState
from validation.premises.plain_values import PlainStep, PlainSystem, PremiseRun, broken_conjuncts, perform


class RegistrationVersion(NamedTuple):
    """The registration after one record; `minimum` is min.insync.replicas when it was written."""

    isr: frozenset[int]
    minimum: int
    replicas: int


class PlainRegistration(PlainSystem):
    """A registration and the steps of controller and leaders, executed. A log is the set of committed records in it."""

    def __init__(self, without: str = "", replicas: Iterable[int] = (1, 2, 3), minimum: int = 2) -> None:
        super().__init__(without)
        self.replica = set(replicas)
        self.minimum, self.minimum_version = minimum, 0
        self.elr: set[int] = set()
        self.versions = [RegistrationVersion(frozenset(self.replica), minimum, len(self.replica))]
        self.leader, self.first, self.last = [min(self.replica)], [0], [0]
        self.learned = dict.fromkeys(self.replica, NOBODY)
        self.known: dict[int, int] = {}
        self.known_minimum: dict[int, int] = {}
        self.joins: dict[int, int] = {}
        self.fit: dict[int, bool] = {}
        self.witness: dict[int, int] = {}
        self.holds: dict[int, set[int]] = {b: set() for b in self.replica}
        self.committed = 0

    # -- the state

    @property
    def current(self) -> int:
        """The latest leader epoch."""
        return len(self.leader) - 1

    @property
    def isr(self) -> frozenset[int]:
        """The latest ISR."""
        return self.versions[-1].isr

    def leads(self, e: int) -> bool:
        """Return whether epoch e's leader leads it, deposed or not."""
        return e in self.known and self.learned[self.leader[e]] == e

    def last_version(self, e: int) -> int:
        """Return the latest version of epoch e."""
        return len(self.versions) - 1 if e == self.current else self.last[e]

    def waits(self, e: int) -> set[int]:
        """Return the brokers that epoch e's leader waits for."""
        return set(self.versions[self.known[e]].isr) | ({self.joins[e]} if e in self.joins else set())

    def effects(self) -> tuple[object, ...]:
        """Return the latest version, the ELR, and the min ISR that leaders know."""
        return self.versions[-1], frozenset(self.elr), tuple(self.known_minimum.items())

    def lost(self) -> list[str]:
        """Return the committed records that the latest leader lacks."""
        leader = self.leader[-1]
        missing = sorted(set(range(self.committed)) - self.holds.get(leader, set())) if leader != NOBODY else []
        return [f"record {o}: broker {leader} is elected for epoch {self.current} without it" for o in missing]

    def state(self) -> RegistrationState:
        """Return the registration as the invariant sees it. What does not exist is small, or nobody."""
        absent = RegistrationVersion(frozenset(), 0, 0)

        def version(v: int) -> RegistrationVersion:
            return self.versions[v] if 0 <= v < len(self.versions) else absent

        def at(values: list[int]) -> Callable[[int], int]:
            return lambda e: values[e] if 0 <= e < len(values) else NOBODY

        numbers = (self.current, len(self.versions) - 1, self.minimum, self.minimum_version)
        return RegistrationState(
            **dict(zip(NUMBERS, numbers, strict=True)),
            replica=lambda b: b in self.replica,
            elr=lambda b: b in self.elr,
            isr=lambda v, b: b in version(v).isr,
            size=lambda v: len(version(v).isr),
            replicas=lambda v: version(v).replicas,
            minimum_at=lambda v: version(v).minimum,
            leader=at(self.leader),
            first=at(self.first),
            last=at(self.last),
            learned=lambda b: self.learned.get(b, NOBODY),
            begun=lambda e: e in self.known,
            known=lambda e: self.known.get(e, 0),
            known_minimum=lambda e: self.known_minimum.get(e, 0),
            joins=lambda e: self.joins.get(e, NOBODY),
            fit=lambda e: self.fit.get(e, False),
            blocked=lambda e: e in self.witness,
            witness=lambda e: self.witness.get(e, NOBODY),
            whole=lambda b: len(self.holds.get(b, ())) == self.committed,
        )

    def broken(self) -> set[str]:
        """Return the conjuncts that fail, over all brokers, epochs and versions and some that do not exist."""
        brokers, epochs = range(max(self.holds) + 2), range(-1, self.current + 2)
        values = {"b": brokers, "e": epochs, "f": epochs, "v": range(-1, len(self.versions) + 1)}
        return broken_conjuncts(ELECTION_INVARIANT, self.state(), values)

    # -- the controller

    def _small(self, size: int, minimum: int, premise: ElectionPremise) -> bool:
        # Capped by the number of replicas before the change, as in Kafka.
        return self.without == premise or rules.under_min_isr(size, minimum, self.versions[-1].replicas)

    def _change(self, isr: frozenset[int], gone: set[int], elect: int | None) -> bool:
        """Write a version; `gone` leave the ELR. `elect`: None keeps the leader, NOBODY begins an epoch without one."""
        small = self._small(len(isr), self.minimum, ElectionPremise.ELIGIBLE_BELOW_MIN_ISR)
        # KIP-966: who leaves an ISR that is below min ISR stays eligible, because nothing was committed without it since.
        elr = (self.elr | self.isr) - isr - gone if small else set()
        # A leader outside the ISR may lack what the ISR commits: a change that removes it elects another one, or nobody.
        if elect is None and self.leader[-1] not in isr:
            return False
        if elect is not None and elect != NOBODY and elect not in isr:
            if elect not in elr and self.without != ElectionPremise.ELECT_ELIGIBLE:
                return False
            # Elected from the ELR: the new leader is the whole ISR, and the ELR is made once more for an ISR of one.
            isr, elr = frozenset({elect}), elr - {elect}
            elr = elr if self._small(1, self.minimum, ElectionPremise.ELECTION_LOOKS_AGAIN) else set()
        self.elr = elr
        self.versions.append(RegistrationVersion(isr, self.minimum, len(self.replica)))
        if elect is not None:
            self.last[-1] = len(self.versions) - 2
            self.leader.append(elect)
            self.first.append(len(self.versions) - 1)
            self.last.append(NOBODY)
        return True

    def fence(self, out: tuple[int, ...], elect: int | None = None) -> bool:
        """Remove brokers from the ISR, perhaps with an election."""
        return self._change(self.isr.difference(out), set(), elect)

    def reassign(self, to: tuple[int, ...], elect: int | None = None) -> bool:
        """Replace the replicas; those that were removed delete their logs."""
        out, before = self.replica.difference(to), set(self.replica)
        self.replica = set(to)
        if not self._change(self.isr - out, set() if self.without == ElectionPremise.REMOVED_LEAVES else out, elect):
            self.replica = before
            return False
        # StopReplica with a deletion: a replica that is added again begins empty (F4).
        for b in out:
            self.holds[b] = set()
        for b in self.replica - self.holds.keys():
            self.holds[b], self.learned[b] = set(), NOBODY
        return True

    def come_back(self, b: int, elect: int | None = None) -> bool:
        """Let b come back without its log."""
        gone = set() if self.without == ElectionPremise.LOST_LEAVES else {b}
        if b in self.isr | self.elr and not self._change(self.isr - {b}, gone, elect):
            return False
        self.holds[b], self.learned[b] = set(), self.current
        # A proposal that names its old incarnation is refused from now on, by the broker epoch (KIP-903).
        self.fit.update({e: False for e, joins in self.joins.items() if joins == b})
        return True

    def accept(self, e: int) -> bool:
        """Take the proposal of the leader of epoch e."""
        latest = e == self.current and self.known.get(e) == len(self.versions) - 1
        if (
            e not in self.joins
            or self.joins[e] in self.isr
            or not (latest or self.without == ElectionPremise.KNOWS_THE_LATEST)
        ):
            return False
        if not self.fit[e] and self.without != ElectionPremise.NO_OLD_INCARNATION:
            return False
        return self._change(self.isr | {self.joins[e]}, set(), None)

    def set_minimum(self, minimum: int) -> bool:
        """Change min.insync.replicas."""
        if not self._small(len(self.isr), minimum, ElectionPremise.CHANGE_LOOKS_AGAIN):
            self.elr = set()
        self.minimum, self.minimum_version = minimum, len(self.versions) - 1
        return True

    # -- leaders

    def learn(self, b: int, e: int) -> bool:
        """Let b learn of epoch e; its leader knows the last version of it."""
        if not self.learned[b] < e <= self.current:
            return False
        self.learned[b] = e
        if self.leader[e] == b:
            self.known[e] = self.last_version(e)
            self.known_minimum[e] = self.versions[self.known[e]].minimum
            # The new leader fetches no more in earlier epochs, whose leaders may wait for it in vain.
            self.witness.update({x: b for x in range(e) if x not in self.witness})
        return True

    def hear_isr(self, e: int, behind: int = 0) -> bool:
        """Let the leader of epoch e learn of a later ISR, `behind` versions before the last."""
        version = self.last_version(e) - behind
        if not self.leads(e) or not self.known[e] < version:
            return False
        self.known[e] = version
        if self.without != ElectionPremise.ISR_WITH_MIN_ISR:
            self.known_minimum[e] = self.versions[version].minimum
        # A newer ISR ends the proposal in flight.
        self.joins.pop(e, None)
        return True

    def hear_minimum(self, e: int) -> bool:
        """Let the leader of epoch e learn of the latest min ISR."""
        if not self.leads(e) or (self.known[e] < self.minimum_version and self.without != ElectionPremise.MIN_ISR_IN_ORDER):
            return False
        self.known_minimum[e] = self.minimum
        return True

    def propose(self, b: int) -> bool:
        """Let the latest leader propose b for the ISR."""
        e = self.current
        whole = len(self.holds.get(b, ())) == self.committed or self.without == ElectionPremise.JOINS_WHOLE
        if not self.leads(e) or e in self.joins or b not in self.replica or not whole:
            return False
        self.joins[e], self.fit[e] = b, True
        return True

    def catch_up(self, b: int) -> bool:
        """Let b fetch all that the latest leader has."""
        e = self.current
        if not self.leads(e) or self.learned.get(b) != e:
            return False
        self.holds[b] |= self.holds[self.leader[e]]
        return True

    def commit(self, e: int) -> bool:
        """Let the leader of epoch e commit a record that exactly the brokers it waits for have."""
        if not self.leads(e) or any(self.learned[b] != e for b in self.waits(e)):
            return False
        version = self.versions[self.known[e]]
        too_few = rules.under_min_isr(len(version.isr), self.known_minimum[e], version.replicas)
        # KAFKA-15583: else an ISR of one could commit what no eligible replica has.
        if too_few and self.without != ElectionPremise.COMMIT_ON_MIN_ISR:
            return False
        # Exactly these: whatever another broker has is luck, and no proof may use it.
        for b in self.waits(e):
            self.holds[b].add(self.committed)
        self.committed += 1
        return True


# For each premise of the proof about elections, a short run that elects a broker without a committed record.


@dataclass(frozen=True)
class CleanLoss(PremiseRun[PlainRegistration]):
    """A run that loses a committed record by clean elections. `finding`: the finding about a Kafka that does so."""

    replicas: tuple[int, ...] = (1, 2)
    minimum: int = 2
    finding: str = ""

    def begin(self, without: str = "") -> PlainRegistration:
        """Return the registration before the first step."""
        return PlainRegistration(without, self.replicas, self.minimum)


BROKER_1_LEADS: tuple[PlainStep, ...] = (("learn", 1, 0), ("learn", 2, 0))
"""Broker 1 leads, broker 2 follows."""

LEADER_ALONE: tuple[PlainStep, ...] = (*BROKER_1_LEADS, ("fence", (2,)), ("hear_isr", 0))
"""Broker 2 has left the ISR, and the leader knows."""

BROKER_2_ELECTED: tuple[PlainStep, ...] = (("fence", (1,), 2),)
"""Broker 1 is fenced, broker 2 elected."""

CLEAN_LOSSES: Mapping[str, CleanLoss] = {
    "not-eligible": CleanLoss(ElectionPremise.ELECT_ELIGIBLE, (*LEADER_ALONE, ("commit", 0), *BROKER_2_ELECTED), minimum=1),
    "eligible-beside-enough": CleanLoss(
        ElectionPremise.ELIGIBLE_BELOW_MIN_ISR, (*LEADER_ALONE, ("commit", 0), *BROKER_2_ELECTED), minimum=1
    ),
    # both are down when min ISR is lowered; the one that is elected meets it and commits alone
    "eligible-after-election": CleanLoss(
        ElectionPremise.ELECTION_LOOKS_AGAIN,
        (
            *BROKER_1_LEADS, ("fence", (2,)), ("fence", (1,), NOBODY), ("set_minimum", 1), ("fence", (), 1), ("learn", 1, 2),
            ("hear_minimum", 2), ("commit", 2), ("fence", (1,), 2),
        ),
        finding="F9; F5 repaired by halves",
    ),
    "eligible-after-change": CleanLoss(
        ElectionPremise.CHANGE_LOOKS_AGAIN,
        (*LEADER_ALONE, ("set_minimum", 1), ("hear_minimum", 0), ("commit", 0), *BROKER_2_ELECTED),
        finding="F9",
    ),
    # removed, added again, empty
    "removed-stays-eligible": CleanLoss(
        ElectionPremise.REMOVED_LEAVES,
        (
            ("learn", 1, 0), ("learn", 2, 0), ("learn", 3, 0), ("commit", 0), ("reassign", (1, 2)), ("fence", (2,)),
            ("reassign", (1, 2, 3)), ("fence", (1,), 3),
        ),
        replicas=(1, 2, 3), minimum=3, finding="F4",
    ),
    "lost-stays-eligible": CleanLoss(
        ElectionPremise.LOST_LEAVES,
        (*BROKER_1_LEADS, ("commit", 0), ("fence", (2,)), ("come_back", 2), *BROKER_2_ELECTED),
        finding="F9, F10",
    ),
    # KAFKA-15583
    "commit-below-min-isr": CleanLoss(ElectionPremise.COMMIT_ON_MIN_ISR, (*LEADER_ALONE, ("commit", 0), *BROKER_2_ELECTED)),
    # min ISR is raised, the ISR shrinks, and the leader learns only of the ISR
    "isr-before-min-isr": CleanLoss(
        ElectionPremise.ISR_WITH_MIN_ISR,
        (*BROKER_1_LEADS, ("set_minimum", 2), ("fence", (2,)), ("hear_isr", 0), ("commit", 0), *BROKER_2_ELECTED),
        minimum=1, finding="F11",
    ),
    # nobody leads when min ISR is lowered; a deposed leader learns of that first, and of its deposition later
    "min-isr-before-isr": CleanLoss(
        ElectionPremise.MIN_ISR_IN_ORDER,
        (*LEADER_ALONE, ("fence", (1,), NOBODY), ("set_minimum", 1), ("hear_minimum", 0), ("commit", 0), ("fence", (), 2)),
    ),
    "joins-behind": CleanLoss(
        ElectionPremise.JOINS_WHOLE,
        (*LEADER_ALONE, ("commit", 0), ("propose", 2), ("accept", 0), *BROKER_2_ELECTED),
        minimum=1,
    ),
    # the proposal of a leader that is deposed, of a replica that has come back without its log since
    "late-proposal": CleanLoss(
        ElectionPremise.KNOWS_THE_LATEST,
        (
            ("learn", 1, 0), ("learn", 2, 0), ("learn", 3, 0), ("fence", (3,)), ("hear_isr", 0), ("propose", 3),
            ("fence", (1,), 2), ("learn", 2, 1), ("commit", 1), ("accept", 0), ("fence", (2,), 3),
        ),
        replicas=(1, 2, 3), minimum=1,
    ),
    # KIP-903
    "old-incarnation-joins": CleanLoss(
        ElectionPremise.NO_OLD_INCARNATION,
        (
            *BROKER_1_LEADS, ("commit", 0), ("fence", (2,)), ("hear_isr", 0), ("propose", 2), ("come_back", 2),
            ("accept", 0), *BROKER_2_ELECTED,
        ),
        minimum=1,
    ),
}  # fmt: skip
"""By the name that `python -m validation.premises` takes."""


# A run as text: each step as a sentence, with the registration after it.


STEP_SENTENCES = {
    "reassign": "the replicas become {first}: a removed one deletes its log, a new one has none",
    "come_back": "broker {first} comes back without its log",
    "accept": "the controller takes the proposal of the leader of epoch {first}",
    "set_minimum": "min.insync.replicas becomes {first}",
    "learn": "broker {first} learns of epoch {second}",
    "hear_isr": "the leader of epoch {first} learns of the ISR",
    "hear_minimum": "the leader of epoch {first} learns of the latest min.insync.replicas",
    "propose": "the latest leader proposes broker {first} for the ISR",
    "catch_up": "broker {first} fetches all that the latest leader has",
    "commit": "the leader of epoch {first} commits a record that the brokers it waits for have",
}


def step_sentence(step: PlainStep) -> str:
    """Describe a step."""
    name, *arguments = step
    if name == "fence":
        return _fencing(*arguments)
    first, second = [*arguments, 0, 0][:2]
    return STEP_SENTENCES[name].format(first=_members(first) if isinstance(first, tuple) else first, second=second)


def _fencing(out: tuple[int, ...], elect: int | None = None) -> str:
    parts = [f"broker {_members(out)} leaves the ISR"] if out else []
    if elect is not None:
        parts.append("nobody is elected" if elect == NOBODY else f"broker {elect} is elected")
    return ", ".join(parts)


def _members(brokers: tuple[int, ...] | set[int] | frozenset[int]) -> str:
    return " ".join(map(str, sorted(brokers))) or "-"


def _registration(now: PlainRegistration) -> str:
    leader = "nobody leads" if now.leader[-1] == NOBODY else f"broker {now.leader[-1]} leads"
    return f"ISR {_members(now.isr)}, ELR {_members(now.elr)}, {leader}, epoch {now.current}"


def describe_clean_loss(loss: CleanLoss) -> list[str]:
    """Describe the run without the premise, the step that needs it, and the loss."""
    now = loss.begin(loss.premise)
    first = f"     replicas {_members(loss.replicas)}, min.insync.replicas {loss.minimum}: {_registration(now)}"
    sentences = []
    for step in loss.steps:
        perform(now, step)
        sentences.append(f"{step_sentence(step)}: {_registration(now)}")
    finding = [f"Kafka: finding {loss.finding}"] if loss.finding else []
    return [first, *loss.lines(sentences, now.lost()), *finding]
