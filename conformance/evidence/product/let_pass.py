"""Completeness: after every behaviour, what of all that the model cannot tell next does the judge let pass?

Rules of this file

1. In every pair of the product everything that conformance.evidence.product.offers makes is offered; but where a behaviour
   is between two events of one step nothing is: a real node does in several what is one step of the model.
2. What is not right is rejected at once, leaves a check open that right events of its kind decide, or passes. Whatever is
   not rejected stands in REASONS by event and changed field, or is a hole in the judge.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.evidence.product.automaton import Automaton
from tidegauge.conformance.evidence.product.executions import Machine, judge_of, machine_for
from tidegauge.conformance.evidence.product.machine import ASKED, MEMORY, OPEN, STATE, Ints
from tidegauge.conformance.evidence.product.offers import Offer, offers_of
from tidegauge.conformance.evidence.product.walk import Walked

BLOCK = 512
"""Memories that are asked about at a time."""

AGAIN = "metadata may reach a node, or a log, again, and late: only newer than what the node has is required"
RAISED = "before 3.6 a controller raises the leader epoch when the ISR shrinks (MetadataVersion)"
WAITS = "nothing in the trace says what the controller waited for, nor how far bounds let it go"
LIVES = "who is live only the controller says"
SENT_AGAIN = "a request may be lost on its way, and is sent again"
ASKS = "whether a follower has still to ask where its last epoch ends is not in the trace"
OUTLIVES = "a request may outlive its sender or be overtaken, so which one was handled is open, and what was answered"
LOADS = "an unclean restart may lose any part of the tail, and finds a checkpoint that the broker had"
BOUNDED = "only the bounds of the model forbid it"
HOW_FAR = "of records that are acknowledged or shown, the trace says only how far they go"
NO_RULE = "no rule says which log start a response carries; the follower that takes it over is held to LOG-03"
REFUSES = "a broker may refuse a request for a reason that is no part of the protocol"
FEWER = "a response holds as many records as the sizes of a fetch allow"
EMPTY = "a response that diverges may be told first as one without records that moves nothing"
RECORDED = "what the leader recorded may bring a replica up later than its fetch did: when the ISR changes"

REASONS: Mapping[tuple[str, str], str] = {
    ("ChangePartition", ""): WAITS,
    ("ChangePartition", "leader_epoch"): RAISED,
    ("ChangePartition", "leader"): WAITS,
    ("ChangePartition", "live"): LIVES,
    **{("BecomeLeader", field): AGAIN for field in ("", "epoch_start", "leo", "hw", "hw_before", "leader_epoch", "isr")},
    **{("BecomeFollower", field): AGAIN for field in ("", "leader", "leader_epoch")},
    ("SendFetch", ""): SENT_AGAIN,
    ("SendFetch", "req_last_epoch"): ASKS,
    **{("SendEpochRequest", field): ASKS for field in ("", "req_epoch", "req_last_epoch")},
    ("HandleFetch", "error"): REFUSES,
    ("HandleEpochRequest", "error"): REFUSES,
    **{("HandleFetch", field): FEWER for field in ("rec_end", "leo")},
    **{("HandleFetch", field): OUTLIVES for field in ("", "req_epoch", "req_offset", "req_last_epoch", "hw")},
    **{("HandleEpochRequest", field): OUTLIVES for field in ("", "req_epoch", "req_last_epoch")},
    **{("HandleEpochResponse", field): OUTLIVES for field in ("", "req_epoch", "error", "div_end", "hw_before")},
    **{("HandleOutOfRange", field): OUTLIVES for field in ("", "req_epoch", "leader_start")},
    ("HandleFetchResponse", "req_epoch"): OUTLIVES,
    ("HandleFetchResponse", ""): EMPTY,
    **{("HandleFetchResponse", field): OUTLIVES for field in ("rec_base", "rec_end", "rec_epoch", "res_hw", "hw_before")},
    **{("HandleDivergingResponse", field): OUTLIVES for field in ("", "div_epoch", "div_end", "hw_before")},
    **{("HandleAlterPartitionResponse", field): REFUSES for field in ("", "error", "isr")},
    **{(event, ""): BOUNDED for event in ("Crash", "Stop", "LeaderAppend", "LogStartMoved")},
    ("LogStartMoved", "log_start"): BOUNDED,
    **{("Start", field): LOADS for field in ("", "epochs")},
    **{("ProduceAck", field): HOW_FAR for field in ("", "acks", "error", "rec_base", "rec_end")},
    **{("Read", field): HOW_FAR for field in ("", "bound", "rec_base", "rec_end")},
    **{(event, "res_log_start"): NO_RULE for event in ("HandleFetch", "HandleFetchResponse")},
    **{("RegisterBroker", field): WAITS for field in ("", "peer")},
    **{("ExpandIsr", field): RECORDED for field in ("", "remote_leo")},
}
"""What is let pass although no behaviour of the model shows it, by event and changed field; "" for the model's own."""


@dataclass(frozen=True)
class LetPass:
    """What became of the offers of one event and changed field, "" where the event is the model's own."""

    event: str
    field: str
    rejected: int
    open: int
    passed: int

    @property
    def offered(self) -> int:
        """All of them."""
        return self.rejected + self.open + self.passed

    @property
    def reason(self) -> str | None:
        """Why some may pass; None where nothing says so."""
        return REASONS.get((self.event, self.field))

    @property
    def explained(self) -> bool:
        """Nothing of it is let pass, or it says why."""
        return self.open + self.passed == 0 or self.reason is not None


def let_pass(walked: Walked, machine: Machine | None = None, *, memories: int = 0, seed: int = 0) -> tuple[LetPass, ...]:
    """Offer everything after all memories, or after so many of them; those with most let pass first."""
    offers = offers_of(walked.automaton.events, walked.config)
    judge = judge_of([offer.event for offer in offers], walked.config, walked.room)
    made = machine or machine_for(judge, walked.tables)
    allowed = _allowed(walked.automaton, len(offers))
    decided = _decided(walked, offers)
    pairs = walked.pairs[walked.automaton.whole[walked.pairs[:, STATE]]]
    pairs = pairs[np.argsort(pairs[:, MEMORY], kind="stable")]
    asked = np.unique(pairs[:, MEMORY])
    if 0 < memories < len(asked):
        asked = np.sort(np.random.default_rng(seed).choice(asked, memories, replace=False))
        pairs = pairs[np.isin(pairs[:, MEMORY], asked)]
    states = np.ascontiguousarray(pairs[:, STATE])
    begin = np.append(np.searchsorted(pairs[:, MEMORY], asked), len(pairs)).astype(np.int64)
    counts = np.zeros((len(offers), 3), np.int64)
    for first in range(0, len(asked), BLOCK):
        some = asked[first : first + BLOCK]
        into = np.zeros((len(some), len(offers)), np.int64)
        made.offer(made.kernel[0], judge, walked.tables.spans, walked.tables.memory[some], into)
        made.counted(into, decided, states, begin[first : first + len(some) + 1], allowed, counts)
    return tuple(sorted(_summed(offers, counts), key=lambda one: (-one.open - one.passed, one.event, one.field)))


def completeness(found: Sequence[LetPass]) -> str:
    """One line on what is none."""
    offered, passed, left = (sum(getattr(one, name) for one in found) for name in ("offered", "passed", "open"))
    unexplained = sum(one.passed + one.open for one in found if not one.explained)
    share = (passed + left) / max(offered, 1)
    return (
        f"{offered:,} wrong events offered: {offered - passed - left:,} rejected at once, {left:,} leave a check open, "
        f"{passed:,} pass ({share:.2%} not rejected), {unexplained:,} of them without a reason"
    )


def _summed(offers: tuple[Offer, ...], counts: NDArray[np.int64]) -> Iterator[LetPass]:
    for event, field in sorted({(offer.event.event, offer.field) for offer in offers}):
        of = [at for at, offer in enumerate(offers) if (offer.event.event, offer.field) == (event, field)]
        yield LetPass(event, field, *counts[of].sum(axis=0).tolist())


def _decided(walked: Walked, offers: tuple[Offer, ...]) -> Ints:
    """For each offer the rules that a right event of its kind leaves decided somewhere."""
    always_open: dict[str, int] = {}
    for number, mask in zip(walked.verdicts[:, ASKED].tolist(), walked.verdicts[:, OPEN].tolist(), strict=True):
        kind = walked.automaton.events[number].event
        always_open[kind] = always_open.get(kind, -1) & mask
    return np.array([~always_open.get(offer.event.event, 0) for offer in offers], np.int64)


def _allowed(automaton: Automaton, offers: int) -> NDArray[np.bool_]:
    """Which events are right in which state."""
    allowed = np.zeros((automaton.states, offers), np.bool_)
    sources = np.repeat(np.arange(automaton.states), np.diff(automaton.first))
    allowed[sources, automaton.symbol] = True
    return allowed
