"""Random walks of a cluster's brokers and clients, also with requests that no correct broker makes.

Rules of this file

1. A walk is drawn from (seed, number) alone, and from what the reference has after each step: the same two give the
   same walk.
2. It begins with brokers that are up and a topic. Every fourth has no ELR, every second needs two in-sync replicas.
3. What a process checks above the controller's managers is not drawn: a broker's own configuration, levels of
   metadata.version.
"""

import random
from collections.abc import Mapping

from tidegauge.drive.contract import Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.findings import beats, is_left_unnoticed, up
from tidegauge.drive.controller.metadata_image import Incarnations
from tidegauge.drive.controller.reference import take_step
from tidegauge.drive.controller.state import ReferenceController, opened
from tidegauge.drive.controller.steps import FOUR, STEPS, CreateTopic
from tidegauge.impl.profiles import Profile

STEPS_OF_A_WALK = 28
"""With those by which its brokers start."""


def walk(seed: int, number: int, profile: Profile, opening: ClusterOpening) -> ControllerCase:
    """Draw one walk; ELR and min.insync.replicas of its opening follow from its number (rule 2)."""
    rng = random.Random(f"{seed}.{number}")
    opening = opening._replace(elr=opening.elr if number % 4 else 0, min_insync_replicas=1 + number % 2)
    path = [*up(*FOUR[: rng.choice((3, 3, 4))]), CreateTopic().draw_named(rng, "t")]
    state, incarnations = opened(opening, profile), Incarnations()
    for step in path:
        state, _ = take_step(state, step, incarnations)
    while len(path) < STEPS_OF_A_WALK:
        step = _drawn(rng, state)
        state, _ = take_step(state, step, incarnations)
        path.append(step)
    return ControllerCase(opening, tuple(path), f"walk {seed}.{number}")


def walks(seed: int, count: int, profile: Profile, opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the first walks of a seed."""
    return tuple(walk(seed, number, profile, opening) for number in range(count))


def _drawn(rng: random.Random, state: ReferenceController) -> Step:
    often = _possible(state.control.profile)
    (kind,) = rng.choices([*often], [*often.values()])
    return beats(rng.choice(FOUR), offline=rng.choice("AB")) if kind == FAILS else STEPS[kind].draw(rng, state)


def _possible(profile: Profile) -> Mapping[str, int]:
    """Return the kinds of steps that are possible with a release, with their weights."""
    return {kind: weight for kind, weight in OFTEN.items() if kind != "register_late" or is_left_unnoticed(profile)}


FAILS = "fails"
"""A heartbeat about a directory that has failed."""

OFTEN: Mapping[str, int] = {
    "heartbeat": 30,
    "session_expires": 10,
    "register": 14,
    "register_late": 3,
    FAILS: 2,
    "unregister": 2,
    "alter_partition": 24,
    "elect_leaders": 6,
    "reassign": 12,
    "assign_directory": 3,
    "create_topic": 2,
    "delete_topic": 2,
    "configure": 6,
    "update_feature": 2,
}
"""How often each is drawn."""
