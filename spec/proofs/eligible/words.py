"""A run as text: each step as a sentence, with the registration after it."""

from tidegauge.spec.proofs.eligible.plain import PlainRegistration
from tidegauge.spec.proofs.eligible.registration import NOBODY
from tidegauge.spec.proofs.eligible.runs import CleanLoss
from tidegauge.spec.proofs.engine.plain import PlainStep, perform

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
