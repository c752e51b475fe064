"""Random walks of a cluster's brokers and clients, also with requests that no correct broker makes; and refusals.

A step is a tuple of a name and arguments in the order of `STEPS[name].takes`, for "alter_partition": broker, lag, topic,
partition, leader epoch, partition epoch, ISR, whether the leader recovers. With a `lag` of 1 the request has a broker epoch
that is one too low. A path is steps, and a case is a path with the opening that sets up its cluster. A refusal is a path
that ends with a request which a controller must refuse, or with one beside these which it must not.

Rules of this file

1. A walk is drawn from (seed, number) alone, and from what the reference has after each step: the same two give the
   same walk.
2. It begins with brokers that are up and a topic. Every fourth has no ELR, every second needs two in-sync replicas.
3. What a process checks above the controller's managers is not drawn: a broker's own configuration, levels of
   metadata.version.
"""

import random
from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType

from tidegauge.drive.contract import Path, Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, ReferenceController, opened
from tidegauge.drive.controller.findings import beats, fenced, finding_cases, is_left_unnoticed, registers, topic, up
from tidegauge.drive.controller.metadata_image import Incarnations
from tidegauge.drive.controller.reference import take_step
from tidegauge.drive.controller.steps import FOUR, STEPS, CreateTopic
from tidegauge.impl.controller.records import TOPIC
from tidegauge.impl.controller.replication_control import UNCLEAN_LEADER_ELECTION
from tidegauge.impl.profiles import Profile

STEPS_OF_A_WALK = 28
"""With those by which its brokers start."""


def walk(seed: int, number: int, profile: Profile, opening: ClusterOpening) -> ControllerCase:
    """Draw one walk; ELR and min.insync.replicas of its opening follow from its number (rule 2)."""
    rng = random.Random(f"{seed}.{number}")
    opening = opening._replace(elr=opening.elr if number % 4 else 0, min_insync_replicas=1 + number % 2)
    # One walk in three has a fourth broker.
    path = [*up(*FOUR[: rng.choice((3, 3, 4))]), CreateTopic().draw_named(rng, "t")]
    state, incarnations = opened(opening, profile), Incarnations()
    for step in path:
        state, _ = take_step(state, step, incarnations)
    while len(path) < STEPS_OF_A_WALK:
        step = _draw_step(rng, state)
        state, _ = take_step(state, step, incarnations)
        path.append(step)
    return ControllerCase(opening, tuple(path), f"walk {seed}.{number}")


def walks(seed: int, count: int, profile: Profile, opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the first walks of a seed."""
    return tuple(walk(seed, number, profile, opening) for number in range(count))


def _draw_step(rng: random.Random, state: ReferenceController) -> Step:
    """Draw a kind of step by its weight, then a step of the kind."""
    weights = _possible_weights(state.control.profile)
    (kind,) = rng.choices([*weights], [*weights.values()])
    return beats(rng.choice(FOUR), offline=rng.choice("AB")) if kind == DIRECTORY_FAILS else STEPS[kind].draw(rng, state)


def _possible_weights(profile: Profile) -> Mapping[str, int]:
    """Return the kinds of steps that are possible with a profile, with their weights."""
    # For register_late a session must be over without being noticed.
    return {kind: weight for kind, weight in WEIGHTS.items() if kind != "register_late" or is_left_unnoticed(profile)}


DIRECTORY_FAILS = "fails"
"""A kind of its own for walks: a heartbeat that says that a directory has failed."""

WEIGHTS: Mapping[str, int] = {
    "heartbeat": 30,
    "session_expires": 10,
    "register": 14,
    "register_late": 3,
    DIRECTORY_FAILS: 2,
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
"""How often each kind of step is drawn, in relation to the others."""


# Requests that a controller must refuse, and those beside them that it must not: what findings and random walks seldom ask.
#
# Each path is one of a few beginnings and one request. An argument takes every kind of value: epochs before, at and after
# the partition's, ISRs with who may not be in them, brokers and partitions that there are not. A report has all
# registrations, so that what a refused request leaves behind is seen.


OUT_OF_REACH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "each member of a proposed ISR is meant in the incarnation that it has": (
            "ReplicationControlManager#ineligibleReplicasForIsr",
        ),
        "a broker has read all metadata or none": ("BrokerHeartbeatManager#calculateNextBrokerState",),
        "an election of all partitions at once is not requested": ("ReplicationControlManager#electLeaders",),
        "each request has the newest version": ("ReplicationControlManager#alterPartition",),
        "a broker has the cluster's id, and the cluster a metadata.version with directories": (
            "ClusterControlManager#registerBroker",
        ),
    }
)
"""By reason, Kafka's methods of which a change in that regard is not seen."""

EXPIRES = "session_expires"
ONE: Path = (*up(1, 2, 3), registers(4), topic((1, 2, 3)))
"""Brokers 1 to 3 are up, 4 is fenced; 1 leads a partition with replicas 1, 2, 3, all in sync, in its epoch 0."""

SHUTS_DOWN: Path = (*ONE, beats(2, shut_down=True))
ONE_IS_DOWN: Path = (*ONE, (EXPIRES, 1))
ONE_IS_BACK: Path = (*ONE_IS_DOWN, *up(1), ("alter_partition", 2, 0, "t", 0, 1, 1, (1, 2, 3), False))
ALONE: Path = (*up(1, 2, 3), topic((1,), min_isr=1))
REASSIGNED: Path = (*ALONE, ("reassign", "t", 0, (2, 3)), ("alter_partition", 1, 0, "t", 0, 0, 1, (1, 2), False))
LEFT_ALONE: Path = (*REASSIGNED, (EXPIRES, 1))
NOBODY_LEADS: Path = (*ALONE, fenced(1))
TAKEN_OVER: Path = (
    *up(*FOUR),
    topic((1, 4), min_isr=1),
    ("reassign", "t", 0, (2, 3)),
    ("alter_partition", 1, 0, "t", 0, 0, 1, (1, 4, 2), False),
    (EXPIRES, 1),
    ("alter_partition", 2, 0, "t", 0, 1, 3, (2,), False),
)
"""The replicas to which a cancelled reassignment would go back have left the ISR: 4 is up, 1 is not."""
NOBODY_TAKES_OVER: Path = (
    *up(*FOUR),
    topic((1, 4), min_isr=1),
    ("alter_partition", 1, 0, "t", 0, 0, 0, (1,), False),
    ("reassign", "t", 0, (2, 3)),
    (EXPIRES, 1),
)
"""Without ELR: the only member of the ISR is down and stays in it, and 4 is up."""
CANCEL: Step = ("reassign", "t", 0, None)
UNCLEAN: Step = ("configure", TOPIC, "t", UNCLEAN_LEADER_ELECTION, "true")


def refusal_cases(opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the refusals as cases named "refusal 0" and so on: each is one of a few beginnings, and one request."""
    # In ONE broker 1 leads partition t-0, 2 and 3 are in sync, 4 is fenced. From there: 2 asks to shut down (SHUTS_DOWN), or
    # the session of 1 ends (ONE_IS_DOWN), after which 1 is in sync again while another leads (ONE_IS_BACK). In ALONE broker
    # 1 has the only replica. From there: it is fenced (NOBODY_LEADS), or the partition is being moved to 2 and 3
    # (REASSIGNED), and meanwhile the session of 1 ends (LEFT_ALONE). TAKEN_OVER: no replica to which a cancelled
    # reassignment would go back is in sync.
    beginnings_and_requests = (
        *((ONE, step) for step in _proposals()),
        *((SHUTS_DOWN, ("alter_partition", 1, 0, "t", 0, *epochs, isr, False)) for epochs, isr in _after_a_shutdown()),
        *((beginning, step) for beginning, step in product((ONE, ONE_IS_DOWN, ONE_IS_BACK, NOBODY_LEADS), _elections())),
        *((beginning, step) for beginning, step in product((ONE, REASSIGNED, LEFT_ALONE), _reassignments())),
        *((beginning, CANCEL) for beginning in (TAKEN_OVER, (*TAKEN_OVER, UNCLEAN))),
        *((beginning, step) for beginning, step in product((ONE, SHUTS_DOWN, ONE_IS_DOWN), _broker_requests())),
        *((ONE, step) for step in _topic_requests()),
        # Broker 4 has never registered in ALONE.
        (ALONE, ("unregister", 4)),
    )
    # A dict for its order: two of them may give the same path, which is played once.
    openings_and_paths = {(opening, (*beginning, step)): None for beginning, step in beginnings_and_requests}
    # NOBODY_TAKES_OVER: only without ELR does the last member of an ISR stay in it when it is fenced.
    openings_and_paths[opening._replace(elr=0), (*NOBODY_TAKES_OVER, CANCEL)] = None
    return tuple(ControllerCase(*case, f"refusal {number}") for number, case in enumerate(openings_and_paths))


def usual_cases(profile: Profile, opening: ClusterOpening, *, walk_count: int, seed: int = 1) -> tuple[ControllerCase, ...]:
    """Return the cases of a run for which none were named: the findings' paths, the refusals, and random walks."""
    return (*finding_cases(opening), *refusal_cases(opening), *walks(seed, walk_count, profile, opening))


def _proposals() -> Iterator[Step]:
    """Yield AlterPartition requests after ONE: each with one thing or two that may be wrong.

    That is epochs that are too low, right or too high, other members of the ISR, another sender or one with an old broker
    epoch, a leader that recovers, a topic or a partition that does not exist.
    """
    epochs, isrs = (-1, 0, 1), ((1, 2), (1,), (2, 3), (1, 2, 4), (1, 2, 3))
    yield from (
        ("alter_partition", 1, 0, "t", 0, leader_epoch, partition_epoch, isr, False)
        for leader_epoch, partition_epoch, isr in product(epochs, epochs, isrs)
    )
    yield from (("alter_partition", broker, lag, "t", 0, 0, 0, (1, 2), False) for broker in (1, 2, 4) for lag in (0, 1))
    yield from (("alter_partition", 1, 0, "t", 0, 0, 0, isr, True) for isr in ((1,), (1, 2)))
    yield from (("alter_partition", 1, 0, name, partition, 0, 0, (1, 2), False) for name, partition in (("u", 0), ("t", 7)))


def _after_a_shutdown() -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    """Yield ((leader epoch, partition epoch), ISR) of proposals with and without broker 2, which is shutting down."""
    # Whether the shutdown has taken broker 2 out of the ISR already is the controller's business.
    yield from product(product((0, 1), (0, 1, 2)), ((1, 2, 3), (1, 3)))


def _elections() -> Iterator[Step]:
    """Yield preferred and unclean elections of a partition, and of two that do not exist."""
    partitions = (("t", 0), ("t", 7), ("u", 0))
    yield from (("elect_leaders", unclean, *partition) for unclean, partition in product((False, True), partitions))


def _reassignments() -> Iterator[Step]:
    """Yield reassignments and cancellations (None) of a partition, and of two that do not exist."""
    yield from (("reassign", "t", 0, replicas) for replicas in (None, (1, 2, 3), (3, 2), (1,), (4,), (2, 4)))
    yield from (("reassign", *absent, replicas) for absent, replicas in product((("t", 7), ("u", 0)), (None, (1, 2))))


def _broker_requests() -> Iterator[Step]:
    """Yield what brokers request for themselves: registrations, heartbeats, shutdowns, directories."""
    yield from (
        registers(broker, new=new, clean=clean) for broker, new, clean in product((1, 2, 4), (True, False), (True, False))
    )
    yield from (beats(broker) for broker in (1, 2, 4))
    # Of brokers that have read nothing; the latter with a broker epoch that is one too low.
    yield from (beats(broker, offset=-1) for broker in (2, 4))
    yield from (("heartbeat", broker, 1, -1, False, False, "") for broker in (1, 4))
    yield from (beats(2, shut_down=True), beats(4, shut_down=True), beats(1, fence=True))
    yield from (("unregister", broker) for broker in (2, 4))
    yield from (("assign_directory", broker, lag, "t", 0, "A") for broker, lag in product((1, 4), (0, 1)))


def _topic_requests() -> Iterator[Step]:
    """Yield the creation of topic t, which exists, and deletions of it and of one that does not exist."""
    yield topic((1, 2))
    yield from (("delete_topic", name) for name in ("t", "u"))
