"""Random walks beyond any graph, also with inputs that no correct peer or controller would give: any epoch, any offset, any
high watermark.

A walk is drawn from (seed, number) alone: the same two give the same walk.
"""

import random
from collections.abc import Callable, Mapping
from typing import Any

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.broker.reference import is_possible, missing_capability, take_step
from tidegauge.drive.broker.state import ReferenceBroker, opened
from tidegauge.drive.broker.steps import EVERYTHING, IN_SESSION, MAY_WAIT, STEPS
from tidegauge.drive.contract import Capabilities, Path, Step
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import TidegaugeError

STEPS_OF_A_WALK = 24
LED: Path = (("metadata", BROKER, 0, 0, (BROKER, 2, 3)), ("append", 1), ("append", 1))

Draw = Callable[[random.Random, ReferenceBroker], Step]

DRAWN: Mapping[str, Any] = STEPS
"""The steps, those with a `draw` of their own among them."""


def walk(seed: int, number: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> BrokerCase:
    """Draw one walk: every third has two peers, every fourth needs two in-sync replicas.

    Of those with two peers every second begins where a leader has two records that nobody has fetched yet: what a leader
    makes of two followers takes more steps than the others leave.
    """
    rng = random.Random(f"{seed}.{number}")
    opening = Opening((2, 3) if number % 3 == 2 else (2,), 2 if number % 4 == 3 else 1)
    state = opened(opening, profile)
    # Which fetches may wait, and which are in sessions, is drawn from generators of their own: whatever else a walk does is
    # the same as without them.
    may_wait, in_session = (random.Random(f"{seed}.{number}.{apart}") for apart in ("waits", "sessions"))
    # Every second walk has fetch sessions, if the node can be given them; every sixth begins with LED, records unfetched.
    has_sessions = number % 2 == 1 and capabilities.can >= IN_SESSION - MAY_WAIT
    path: list[Step] = []
    begun = LED if number % 6 == 5 else ()
    # Most of what is drawn is not possible at that point; a walk that finds little may stay short.
    for at in range(8 * STEPS_OF_A_WALK):
        if at >= len(begun) and has_sessions and state.broker.leads and in_session.random() < 0.4:
            step = DRAWN["fetch_in_session"].draw(in_session, state)
        else:
            step = begun[at] if at < len(begun) else _drawn(rng, state)
        if step[0] in {"fetch", "fetch_in_session"} and may_wait.random() < 0.5:
            waits = (f"{step[0]}_and_wait", *step[1:])
            step = waits if _can_be_given(state, waits, capabilities) else step
        if not _can_be_given(state, step, capabilities):
            continue
        try:
            state, _ = take_step(state, step)
        # Where Kafka's code throws, a broker would end its process, or leave the partition in no defined state.
        except TidegaugeError:
            continue
        path.append(step)
        if len(path) == STEPS_OF_A_WALK:
            break
    return BrokerCase(opening, tuple(path))


def _can_be_given(state: ReferenceBroker, step: Step, capabilities: Capabilities) -> bool:
    return is_possible(state, step) and missing_capability(capabilities, state, step) is None


def walks(seed: int, count: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> tuple[BrokerCase, ...]:
    """Return the first walks of a seed."""
    return tuple(walk(seed, number, profile, capabilities) for number in range(count))


def _drawn(rng: random.Random, state: ReferenceBroker) -> Step:
    """Draw a step that the broker's role makes likely."""
    draws = LEADING if state.broker.leads else FOLLOWING
    # Rule 5 of the contract: nothing else is possible.
    if state.overtaken:
        draws = {DRAWN["alter_partition_response"].draw: 1}
    elif state.broker.partition.leader_epoch == UNDEFINED:
        draws = {DRAWN["metadata"].draw: 1}
    # Without a choice no number is drawn, so that what a walk draws later does not depend on it.
    (draw,) = rng.choices([*draws], [*draws.values()]) if len(draws) > 1 else draws
    return draw(rng, state)


LEADING: Mapping[Draw, int] = {
    DRAWN["metadata"].draw: 12,
    DRAWN["append"].draw: 24,
    DRAWN["fetch"].draw: 10,
    DRAWN["fetch"].draw_catching_up: 24,
    DRAWN["offsets_for_leader_epoch"].draw: 3,
    DRAWN["list_offsets"].draw: 3,
    DRAWN["delete_records"].draw: 4,
    DRAWN["lag"].draw: 6,
    DRAWN["alter_partition_response"].draw: 10,
    DRAWN["fetch_response"].draw: 2,
    DRAWN["stop"].draw: 1,
    DRAWN["crash"].draw: 3,
}
"""How often each step is drawn while the broker leads."""

FOLLOWING: Mapping[Draw, int] = {
    DRAWN["metadata"].draw: 20,
    DRAWN["fetch_response"].draw: 50,
    DRAWN["lose_response"].draw: 8,
    DRAWN["fetch"].draw: 4,
    DRAWN["append"].draw: 1,
    DRAWN["list_offsets"].draw: 1,
    DRAWN["retention"].draw: 3,
    DRAWN["stop"].draw: 1,
    DRAWN["crash"].draw: 3,
}
"""The same while it follows."""
