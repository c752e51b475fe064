"""Random walks beyond any graph, also with inputs that no correct peer or controller would give: any epoch, any offset, any
high watermark.

A walk is a path of random steps. It depends on its seed and its number alone: the same two give the same walk. To draw is to
make a random step for the state that the broker is in; each kind of step can draw one of its own.
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
"""A beginning: the broker leads two peers, and has two records."""

Draw = Callable[[random.Random, ReferenceBroker], Step]
"""Draws a step of one kind for the state that the broker is in."""

DRAWN: Mapping[str, Any] = STEPS
"""The kinds of step by name; `Any`, for not all have a method `draw`."""


def walk(seed: int, number: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> BrokerCase:
    """Draw the walk with a number: every third has two peers, every fourth needs two in-sync replicas.

    Of those with two peers every second begins where a leader has two records that nobody has fetched yet (LED): drawn at
    random, such a state would leave too few steps for what a leader makes of two followers.
    """
    rng = random.Random(f"{seed}.{number}")
    opening = Opening((2, 3) if number % 3 == 2 else (2,), min_insync_replicas=2 if number % 4 == 3 else 1)
    state = opened(opening, profile)
    # Which fetches may wait, and which are in sessions, is drawn from generators of their own: whatever else a walk does is
    # the same as without them.
    may_wait, in_session = (random.Random(f"{seed}.{number}.{apart}") for apart in ("waits", "sessions"))
    # Every second walk has fetch sessions, if the node can be given them (those that do not wait are enough); every sixth
    # begins with LED, records unfetched.
    has_sessions = number % 2 == 1 and capabilities.can >= IN_SESSION - MAY_WAIT
    path: list[Step] = []
    beginning = LED if number % 6 == 5 else ()
    # Most steps that are drawn are not possible at that point, so try more often than a walk is long; it may stay short.
    for attempt in range(8 * STEPS_OF_A_WALK):
        # While it leads two of five steps are fetches in sessions.
        if attempt >= len(beginning) and has_sessions and state.broker.leads and in_session.random() < 0.4:
            step = DRAWN["fetch_in_session"].draw(in_session, state)
        else:
            step = beginning[attempt] if attempt < len(beginning) else _draw_step(rng, state)
        # Let every second fetch wait, where that is possible.
        if step[0] in {"fetch", "fetch_in_session"} and may_wait.random() < 0.5:
            waiting_step = (f"{step[0]}_and_wait", *step[1:])
            step = waiting_step if _can_be_given(state, waiting_step, capabilities) else step
        if not _can_be_given(state, step, capabilities):
            continue
        try:
            state, _ = take_step(state, step)
        # Where Kafka's code throws, a broker would end its process, or leave the partition in no defined state: leave the
        # step out.
        except TidegaugeError:
            continue
        path.append(step)
        if len(path) == STEPS_OF_A_WALK:
            break
    return BrokerCase(opening, tuple(path))


def _can_be_given(state: ReferenceBroker, step: Step, capabilities: Capabilities) -> bool:
    """Return whether a step is possible in a state, and the broker under test has what it needs."""
    return is_possible(state, step) and missing_capability(capabilities, state, step) is None


def walks(seed: int, count: int, profile: Profile, capabilities: Capabilities = EVERYTHING) -> tuple[BrokerCase, ...]:
    """Return the first walks of a seed."""
    return tuple(walk(seed, number, profile, capabilities) for number in range(count))


def _draw_step(rng: random.Random, state: ReferenceBroker) -> Step:
    """Draw a step, by how often each kind is to be drawn in the broker's role. It need not be possible in this state."""
    draws = LEADING if state.broker.leads else FOLLOWING
    # Metadata has overtaken a proposal: the contract allows only the response to it (rule 5).
    if state.overtaken:
        draws = {DRAWN["alter_partition_response"].draw: 1}
    # A broker that has read no metadata has no partition.
    elif state.broker.partition.leader_epoch == UNDEFINED:
        draws = {DRAWN["metadata"].draw: 1}
    # Without a choice no random number is used, so that what a walk draws later does not depend on it.
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
"""How often each kind of step is drawn, relative to the others, while the broker leads."""

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
