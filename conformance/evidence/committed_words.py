"""A step of the proof's cluster in words, with brokers counted as a trace counts them."""

from collections.abc import Callable

from tidegauge.spec.proofs.engine.plain import PlainStep

WORDS = {
    "elect": "the controller elects {b}",
    "learn": "{b} learns of epoch {second}",
    "append": "the leader of epoch {first} appends a record",
    "commit": "the leader of epoch {first} raises its high watermark",
    "fetch": "{b} fetches and holds {second} record(s) then",
    "truncate": "{b} truncates its log at {second}: it and its leader differ there",
    "shrink": "the ISR shrinks: {b} leaves, and the leader hears of it",
    "expand": "the ISR grows: {b} joins, and the leader hears of it",
    "propose_shrink": "the leader of epoch {first} asks for an ISR without {other}",
    "propose_expand": "the leader of epoch {first} asks for an ISR with {other}",
    "accept": "the controller takes that change",
    "accept_given_up": "the controller takes a change that its leader has given up",
    "refuse": "the controller refuses the change of the leader of epoch {first}",
    "hear_isr": "the leader of epoch {first} hears of the new ISR",
    "remove": "the controller itself takes {b} out of the ISR",
    "restart": "{b} restarts with an older high watermark, {second} lower",
    "lose_tail": "{b} restarts with the first {second} record(s) of its log",
    "delete": "{b} deletes what lies below offset {second}",
    "reset": "{b} drops its log and starts at its leader's log start",
}


def words(step: PlainStep, place: Callable[[int], int]) -> str:
    """The step as a sentence; `place` says where a later incarnation of a broker stands."""
    name, *arguments = step
    first, second = [*arguments, 0, 0][:2]
    other = place(second) + 1 if name in ("propose_shrink", "propose_expand") else ""
    return WORDS[name].format(first=first, second=second, b=f"broker {place(first) + 1}", other=f"broker {other}")
