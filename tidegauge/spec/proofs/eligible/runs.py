"""For each premise of the proof about elections, a short run that elects a broker without a committed record."""

from collections.abc import Mapping
from dataclasses import dataclass

from tidegauge.spec.proofs.eligible.concrete import PlainRegistration
from tidegauge.spec.proofs.eligible.registration import NOBODY, ElectionPremise
from tidegauge.spec.proofs.engine.induction import PlainStep, PremiseRun, perform


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
"""By the name that `tidegauge prove --scenario` takes."""


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
