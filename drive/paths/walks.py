"""Random walks beyond any graph, also with inputs that no correct peer or controller would give.

Rules of this file

1. The reference says what is possible, so a walk is a path of the contract; what would end its process is left out.
2. A walk is drawn from (seed, number) alone: the same two give the same walk.
3. Hostile is what a wrong peer says: any epoch, any offset, any high watermark. What Kafka's wire format or its batch
   validation refuses before the protocol sees it is not drawn: records follow each other and begin where was asked.
4. Every other fetch may wait. Which ones is drawn apart: for all else that a walk does it makes no difference, but to the
   sessions that they are in.
5. In every other walk peers fetch in sessions between the steps there would be else: mostly with the session epoch that is
   due, and often what the session has already, or nobody would see what a leader makes of that.
"""

import random
from collections.abc import Callable

from tidegauge.drive.broker.contract import BROKER, EARLIEST, EVERYTHING, IN_SESSION, LATEST, MAY_WAIT, BrokerCase, Opening
from tidegauge.drive.broker.fetch_sessions import expected_epoch, known_of
from tidegauge.drive.broker.reference import lacking, possible, step
from tidegauge.drive.broker.state import Held, opened
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.impl.errors import TidegaugeError
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import (
    FENCED_LEADER_EPOCH,
    INELIGIBLE_REPLICA,
    INVALID_UPDATE_VERSION,
    NONE,
    NOT_LEADER_OR_FOLLOWER,
    OFFSET_OUT_OF_RANGE,
    UNDEFINED,
    UNKNOWN_LEADER_EPOCH,
)
from tidegauge.impl.sessions.fetch_metadata import FINAL_EPOCH, INITIAL_EPOCH, LARGEST_EPOCH

STEPS_OF_A_WALK = 24
FAR = 4
"""Offsets are drawn up to here."""

LED: Path = (("metadata", BROKER, 0, 0, (BROKER, 2, 3)), ("append", 1), ("append", 1))

Draw = Callable[[random.Random, Held], Step]


def walk(seed: int, number: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> BrokerCase:
    """One walk: every third has two peers, every fourth needs two in-sync replicas.

    Of those with two peers every second begins where a leader has two records that nobody has fetched yet: what a leader
    makes of two followers takes more steps than the others leave.
    """
    rng = random.Random(f"{seed}.{number}")
    opening = Opening((2, 3) if number % 3 == 2 else (2,), 2 if number % 4 == 3 else 1)
    held = opened(opening, profile)
    may_wait, in_session = (random.Random(f"{seed}.{number}.{apart}") for apart in ("waits", "sessions"))
    has_sessions = number % 2 == 1 and capabilities.can >= IN_SESSION - MAY_WAIT
    path: list[Step] = []
    begun = LED if number % 6 == 5 else ()
    for at in range(8 * STEPS_OF_A_WALK):
        if at >= len(begun) and has_sessions and held.broker.leads and in_session.random() < 0.4:
            taken = _in_session(in_session, held)
        else:
            taken = begun[at] if at < len(begun) else _drawn(rng, held)
        if taken[0] in {"fetch", "fetch_in_session"} and may_wait.random() < 0.5:
            taken = _waiting(held, taken, capabilities)
        if not possible(held, taken) or lacking(capabilities, held, taken) is not None:
            continue
        try:
            held, _ = step(held, taken)
        except TidegaugeError:
            continue
        path.append(taken)
        if len(path) == STEPS_OF_A_WALK:
            break
    return BrokerCase(opening, tuple(path))


def _waiting(held: Held, fetch: Step, capabilities: Capabilities) -> Step:
    """The same fetch as one that may wait, if the contract allows that now and the broker can be given it."""
    taken = (f"{fetch[0]}_and_wait", *fetch[1:])
    return taken if possible(held, taken) and lacking(capabilities, held, taken) is None else fetch


def _in_session(rng: random.Random, held: Held) -> Step:
    """A fetch in a peer's session."""
    _, peer, *asked, may_join = rng.choice((_fetch, _catching_up, _catching_up))(rng, held)
    session, due, kind = held.sessions.get(peer), expected_epoch(held, peer), rng.random()
    if session is None and kind < 0.9:
        due = INITIAL_EPOCH
    elif kind < 0.1:
        return "fetch_others", peer, due
    elif kind < 0.2:
        due = rng.choice((INITIAL_EPOCH, FINAL_EPOCH, due + 1, LARGEST_EPOCH))
    elif kind < 0.6 and (known := known_of(session)) is not None:
        request = known.fetch.request
        asked = [request.current_leader_epoch, request.fetch_offset, request.last_fetched_epoch]
    return "fetch_in_session", peer, *asked, may_join, due


def walks(seed: int, count: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> tuple[BrokerCase, ...]:
    """The first walks of a seed."""
    return tuple(walk(seed, number, profile, capabilities) for number in range(count))


def _drawn(rng: random.Random, held: Held) -> Step:
    if held.overtaken:
        return _alter_partition_response(rng, held)
    if held.broker.partition.leader_epoch == UNDEFINED:
        return _metadata(rng, held)
    draws, weights = LEADING if held.broker.leads else FOLLOWING
    return rng.choices(draws, weights)[0](rng, held)


def _near(rng: random.Random, value: int) -> int:
    """Mostly the value, else one beside it."""
    return max(0, value + rng.choice((0, 0, 0, 0, -1, 1)))


def _epoch(rng: random.Random, held: Held, beyond: int = 0) -> int:
    return rng.randint(0, held.highest_epoch + beyond)


def _offset(rng: random.Random, held: Held) -> int:
    return rng.randint(0, max(FAR, held.broker.partition.log.end))


def _metadata(rng: random.Random, held: Held) -> Step:
    everybody, epoch = (BROKER, *held.opening.peers), held.highest_epoch
    leader = held.broker.partition.leader_id
    if epoch == UNDEFINED or rng.random() < 0.8:
        epoch, leader = epoch + rng.choice((1, 1, 2)), rng.choice((*everybody, *everybody, UNDEFINED))
    members = {leader if leader != UNDEFINED else BROKER, *rng.sample(everybody, rng.randint(0, len(everybody)))}
    return "metadata", leader, epoch, held.partition_epoch + 1, tuple(sorted(members))


def _append(rng: random.Random, held: Held) -> Step:
    return "append", -1 if held.opening.min_insync_replicas > 1 and rng.random() < 0.5 else 1


def _fetch(rng: random.Random, held: Held) -> Step:
    epoch, peer = _near(rng, held.broker.partition.leader_epoch), rng.choice(held.opening.peers)
    last, log = rng.choice((UNDEFINED, _epoch(rng, held, 1), _epoch(rng, held))), held.broker.partition.log
    offset = rng.randrange(log.start) if log.start and rng.random() < 0.5 else _offset(rng, held)
    return "fetch", peer, epoch, offset, last, rng.random() < 0.7


def _catching_up(rng: random.Random, held: Held) -> Step:
    """A fetch as a correct follower would send it: where its log could end."""
    log, peer = held.broker.partition.log, rng.choice(held.opening.peers)
    offset = rng.randint(log.start, log.end)
    last = next((batch.epoch for batch in log.batches if batch.last == offset - 1), UNDEFINED)
    return "fetch", peer, held.broker.partition.leader_epoch, offset, last, rng.random() < 0.7


def _offsets_for_leader_epoch(rng: random.Random, held: Held) -> Step:
    asked = UNDEFINED if rng.random() < 0.1 else _epoch(rng, held, 1)
    return "offsets_for_leader_epoch", _near(rng, held.broker.partition.leader_epoch), asked


def _list_offsets(rng: random.Random, held: Held) -> Step:
    return "list_offsets", _near(rng, held.broker.partition.leader_epoch), rng.choice((EARLIEST, LATEST))


def _delete_records(rng: random.Random, held: Held) -> Step:
    return "delete_records", _near(rng, rng.randint(0, held.broker.partition.log.hw))


def _response(rng: random.Random, held: Held) -> Step:
    if not held.requests:
        return _metadata(rng, held)
    peer, request = rng.choice(held.requests)
    kind = rng.random()
    error = rng.choice((NOT_LEADER_OR_FOLLOWER, FENCED_LEADER_EPOCH, UNKNOWN_LEADER_EPOCH)) if kind < 0.08 else NONE
    if not isinstance(request, FetchRequest):
        epoch = UNDEFINED if kind > 0.9 else _epoch(rng, held)
        return "offsets_for_leader_epoch_response", peer, error, epoch, UNDEFINED if kind > 0.85 else _offset(rng, held)
    head = ("fetch_response", peer)
    if error != NONE:
        return (*head, error, UNDEFINED, UNDEFINED, (), None, None)
    if kind < 0.35:
        return (*head, NONE, rng.randint(0, FAR), 0, (), (_epoch(rng, held), _offset(rng, held)), None)
    if kind < 0.45:
        earliest = rng.choice((0, 0, _offset(rng, held)))
        latest = max(earliest, _offset(rng, held))
        return (*head, OFFSET_OUT_OF_RANGE, UNDEFINED, UNDEFINED, (), None, (earliest, latest))
    epochs = sorted(_epoch(rng, held, 1) for _ in range(rng.choice((0, 1, 1, 2))))
    first = request.fetch_offset
    records = tuple((first + n, first + n, epoch) for n, epoch in enumerate(epochs))
    start = rng.choice((0,) * 9 + (_offset(rng, held),))
    return (*head, NONE, rng.randint(0, FAR), start, records, None, None)


def _lose_response(rng: random.Random, held: Held) -> Step:
    return "lose_response", rng.choice([peer for peer, _ in held.requests] or held.opening.peers)


def _lag(rng: random.Random, held: Held) -> Step:
    return "lag", tuple(sorted(rng.sample(held.opening.peers, rng.randint(1, len(held.opening.peers)))))


def _alter_partition_response(rng: random.Random, held: Held) -> Step:
    proposal = held.proposal
    if proposal is None:
        return _lag(rng, held)
    if rng.random() < 0.6:
        return "alter_partition_response", NONE, held.partition_epoch + rng.randint(0, 1), proposal.isr
    error = rng.choice((INELIGIBLE_REPLICA, INVALID_UPDATE_VERSION, FENCED_LEADER_EPOCH))
    return "alter_partition_response", error, UNDEFINED, ()


def _retention(_rng: random.Random, held: Held) -> Step:
    return "retention", held.broker.partition.log.start + 1


def _stop(_rng: random.Random, _held: Held) -> Step:
    return ("stop",)


def _crash(rng: random.Random, held: Held) -> Step:
    log = held.broker.partition.log
    kept = rng.choice((log.end, log.end, rng.randint(log.start, log.end)))
    return "crash", rng.randint(log.start, max(log.start, min(log.hw, kept))), kept


LEADING: tuple[tuple[Draw, ...], tuple[int, ...]] = (
    (
        _metadata,
        _append,
        _fetch,
        _catching_up,
        _offsets_for_leader_epoch,
        _list_offsets,
        _delete_records,
        _lag,
        _alter_partition_response,
        _response,
        _stop,
        _crash,
    ),
    (12, 24, 10, 24, 3, 3, 4, 6, 10, 2, 1, 3),
)
FOLLOWING: tuple[tuple[Draw, ...], tuple[int, ...]] = (
    (_metadata, _response, _lose_response, _fetch, _append, _list_offsets, _retention, _stop, _crash),
    (20, 50, 8, 4, 1, 1, 3, 1, 3),
)
