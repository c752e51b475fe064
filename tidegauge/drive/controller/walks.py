"""Random walks of a cluster's brokers and clients, also with requests that no correct broker makes.

Rules of this file

1. A walk is drawn from (seed, number) alone, and from what the reference has after each step: the same two give the
   same walk.
2. It begins with brokers that are up and a topic. Every fourth has no ELR, every second needs two in-sync replicas.
3. What a process checks above the controller's managers is not drawn: a broker's own configuration, levels of
   metadata.version.
"""

import random
from collections.abc import Callable, Mapping

from tidegauge.drive.contract import Step
from tidegauge.drive.controller.contract import ALL, ClusterOpening, ControllerCase
from tidegauge.drive.controller.finding_paths import beats, is_left_unnoticed, registers, up
from tidegauge.drive.controller.metadata_image import Incarnations
from tidegauge.drive.controller.reference import ReferenceController, opened, take_step
from tidegauge.impl.controller.records import BROKER, TOPIC
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, UNCLEAN_LEADER_ELECTION
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

STEPS_OF_A_WALK = 20
FOUR = (1, 2, 3, 4)
TOPICS = ("t", "u")


def walk(seed: int, number: int, profile: Profile, opening: ClusterOpening) -> ControllerCase:
    """Draw one walk, on a cluster like `opening` but for ELR and min.insync.replicas."""
    rng = random.Random(f"{seed}.{number}")
    opening = opening._replace(elr=opening.elr if number % 4 else 0, min_insync_replicas=1 + number % 2)
    path = [*up(*FOUR[: rng.choice((3, 3, 4))]), _create_topic(rng, "t")]
    state, incarnations = opened(opening, profile), Incarnations()
    for step in path:
        state, _ = take_step(state, step, incarnations)
    while len(path) < 8 + STEPS_OF_A_WALK:
        step = _drawn(rng, state)
        state, _ = take_step(state, step, incarnations)
        path.append(step)
    return ControllerCase(opening, tuple(path), f"walk {seed}.{number}")


def walks(seed: int, count: int, profile: Profile, opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the first walks of a seed."""
    return tuple(walk(seed, number, profile, opening) for number in range(count))


def _drawn(rng: random.Random, state: ReferenceController) -> Step:
    kinds, weights = zip(*_draws(state.control.profile).items(), strict=True)
    (draw,) = rng.choices(kinds, weights)
    step: Step = draw(rng, state)
    return step


def _draws(profile: Profile) -> Mapping[Callable[[random.Random, ReferenceController], Step], int]:
    """Return the draws that are possible with a release, with their weights."""
    return {draw: often for draw, often in _DRAWS.items() if draw is not _register_late or is_left_unnoticed(profile)}


def _heartbeat(rng: random.Random, _: ReferenceController) -> Step:
    offset = ALL if rng.random() < 0.85 else UNDEFINED
    lag = 0 if rng.random() < 0.95 else 1
    fence, shut_down = rng.random() < 0.2, rng.random() < 0.15
    return ("heartbeat", rng.choice(FOUR), lag, offset, fence, shut_down, "")


def _session_expires(rng: random.Random, _: ReferenceController) -> Step:
    return ("session_expires", rng.choice(FOUR))


def _register(rng: random.Random, _: ReferenceController) -> Step:
    letters = rng.choice(("A", "A", "A", "B", "AB"))
    return registers(rng.choice(FOUR), new=rng.random() < 0.85, clean=rng.random() < 0.5, directories=letters)


def _register_late(rng: random.Random, state: ReferenceController) -> Step:
    return ("register_late", *_register(rng, state)[1:])


def _fails(rng: random.Random, _: ReferenceController) -> Step:
    return beats(rng.choice(FOUR), offline=rng.choice("AB"))


def _unregister(rng: random.Random, _: ReferenceController) -> Step:
    return ("unregister", rng.choice(FOUR))


def _partition(rng: random.Random, state: ReferenceController) -> tuple[str, int]:
    """Draw a partition, seldom one that does not exist."""
    partitions = [*state.control.partitions]
    if partitions and rng.random() < 0.95:
        tp = rng.choice(partitions)
        return tp.topic, tp.partition
    return rng.choice(TOPICS), rng.choice((0, 7))


def _alter_partition(rng: random.Random, state: ReferenceController) -> Step:
    topic, partition = _partition(rng, state)
    registration = next(
        (p for tp, p in state.control.partitions.items() if (tp.topic, tp.partition) == (topic, partition)), None
    )
    if registration is None:
        return ("alter_partition", rng.choice(FOUR), 0, topic, partition, 0, 0, (1,), False)
    # Mostly a proposal that a correct leader could make; now and then another ISR, sender, or any epoch one off.
    follows = [broker for broker in registration.replicas if broker != registration.leader]
    isr = (
        [registration.leader, *rng.sample(follows, rng.randint(0, len(follows)))]
        if registration.leader > 0
        else list(registration.replicas)
    )
    if rng.random() < 0.05:
        isr = rng.sample(FOUR, 2)
    leader = registration.leader if registration.leader > 0 and rng.random() < 0.95 else rng.choice(FOUR)
    lag, old, stale = (int(rng.random() < 0.04) for _ in range(3))
    ahead = int(rng.random() < 0.04)
    epochs = registration.leader_epoch - old, registration.partition_epoch - stale + ahead
    return ("alter_partition", leader, lag, topic, partition, *epochs, tuple(isr), rng.random() < 0.1)


def _elect_leaders(rng: random.Random, state: ReferenceController) -> Step:
    return ("elect_leaders", rng.random() < 0.4, *_partition(rng, state))


def _reassign(rng: random.Random, state: ReferenceController) -> Step:
    replicas = None if rng.random() < 0.25 else tuple(rng.sample(FOUR, rng.randint(1, 3)))
    return ("reassign", *_partition(rng, state), replicas)


def _assign_directory(rng: random.Random, state: ReferenceController) -> Step:
    lag = int(rng.random() < 0.05)
    return ("assign_directory", rng.choice(FOUR), lag, *_partition(rng, state), rng.choice("AB"))


def _create_topic(rng: random.Random, topic: str) -> Step:
    size = rng.choice((1, 2, 3, 3))
    assignment = tuple(tuple(rng.sample(FOUR[:3], size)) for _ in range(rng.choice((1, 2))))
    configs = ((MIN_IN_SYNC_REPLICAS, rng.choice("123")),) if rng.random() < 0.5 else ()
    return ("create_topic", topic, assignment, configs)


def _create(rng: random.Random, _: ReferenceController) -> Step:
    return _create_topic(rng, rng.choice(TOPICS))


def _delete(rng: random.Random, _: ReferenceController) -> Step:
    return ("delete_topic", rng.choice(TOPICS))


def _configure(rng: random.Random, state: ReferenceController) -> Step:
    topic, _ = _partition(rng, state)
    if rng.random() < 0.3:
        return ("configure", TOPIC, topic, UNCLEAN_LEADER_ELECTION, rng.choice(("true", "false", None)))
    if rng.random() < 0.2:
        return ("configure", BROKER, "", MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", None)))
    return ("configure", TOPIC, topic, MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", "3", None)))


def _update_feature(rng: random.Random, state: ReferenceController) -> Step:
    level = 1 - state.control.features.elr if rng.random() < 0.8 else rng.choice((0, 1, 2))
    return ("update_feature", "elr", level, level > 0)


_DRAWS: Mapping[Callable[[random.Random, ReferenceController], Step], int] = {
    _heartbeat: 30,
    _session_expires: 10,
    _register: 14,
    _register_late: 3,
    _fails: 2,
    _unregister: 2,
    _alter_partition: 24,
    _elect_leaders: 6,
    _reassign: 12,
    _assign_directory: 3,
    _create: 2,
    _delete: 2,
    _configure: 6,
    _update_feature: 2,
}
"""How often each is drawn."""
