"""A run of `runs.py` in words: each step as a sentence, with the registration after it."""

from tidegauge.spec.proofs.eligible.plain import PlainRegistration
from tidegauge.spec.proofs.eligible.registration import NOBODY
from tidegauge.spec.proofs.eligible.runs import CleanLoss, Step

WORDS = {
    "reassign": "the replicas become {first}: who is none any more deletes its log, who is new has none",
    "come_back": "broker {first} comes back without its log",
    "accept": "the controller takes the proposal of the leader of epoch {first}",
    "set_minimum": "min.insync.replicas becomes {first}",
    "learn": "broker {first} learns of epoch {second}",
    "hear_isr": "the leader of epoch {first} hears of the ISR",
    "hear_minimum": "the leader of epoch {first} hears of the min.insync.replicas of now",
    "propose": "the latest leader proposes broker {first} for the ISR",
    "catch_up": "broker {first} fetches all that the latest leader has",
    "commit": "the leader of epoch {first} commits a record that those it waits for have",
}


def sentence(step: Step) -> str:
    """What happens."""
    name, *arguments = step
    if name == "fence":
        return _fencing(*arguments)
    first, second = [*arguments, 0, 0][:2]
    return WORDS[name].format(first=_members(first) if isinstance(first, tuple) else first, second=second)


def _fencing(out: tuple[int, ...], elect: int | None = None) -> str:
    parts = [f"broker {_members(out)} leaves the ISR"] if out else []
    if elect is not None:
        parts.append("nobody is elected" if elect == NOBODY else f"broker {elect} is elected")
    return ", ".join(parts)


def _members(brokers: tuple[int, ...] | set[int] | frozenset[int]) -> str:
    return " ".join(map(str, sorted(brokers))) or "-"


def registration(now: PlainRegistration) -> str:
    """ISR, ELR and leader."""
    leader = "nobody leads" if now.leader[-1] == NOBODY else f"broker {now.leader[-1]} leads"
    return f"ISR {_members(now.isr)}, ELR {_members(now.elr)}, {leader}, epoch {now.current}"


def lines(loss: CleanLoss) -> list[str]:
    """The run without the premise, the step that needs it, and what is lost."""
    now = PlainRegistration(loss.premise, loss.replicas, loss.minimum)
    reported = [f"     replicas {_members(loss.replicas)}, min.insync.replicas {loss.minimum}: {registration(now)}"]
    for number, (name, *arguments) in enumerate(loss.steps, 1):
        getattr(now, name)(*arguments)
        needs = "   <- needs the premise" if number == loss.breach + 1 else ""
        reported.append(f"{number:>2}  {sentence((name, *arguments))}: {registration(now)}{needs}")
    seen = [f"Kafka: finding {loss.finding}"] if loss.finding else []
    return [*reported, *(f"lost: {one}" for one in now.lost()), *seen]
