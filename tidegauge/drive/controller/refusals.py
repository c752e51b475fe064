"""Requests that a controller must refuse, and those beside them that it must not: what findings and random walks seldom ask.

Each path is one of a few beginnings and one request. An argument takes every kind of value: epochs before, at and after the
partition's, ISRs with who may not be in them, brokers and partitions that there are not. A report has all registrations, so
that what a refused request leaves behind is seen.
"""

from collections.abc import Iterator, Mapping
from itertools import product
from types import MappingProxyType

from tidegauge.drive.contract import Path, Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase
from tidegauge.drive.controller.findings import beats, fenced, finding_cases, registers, topic, up
from tidegauge.drive.controller.walks import walks as drawn
from tidegauge.impl.profiles import Profile

OUT_OF_REACH: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "each member of a proposed ISR is meant in the incarnation that it has": (
            "ReplicationControlManager#ineligibleReplicasForIsr",
        ),
        "a broker has read all metadata or none": ("BrokerHeartbeatManager#calculateNextBrokerState",),
    }
)
"""By reason, Kafka's methods of which a change in that regard is not seen."""

EXPIRES = "session_expires"
ONE: Path = (*up(1, 2, 3), registers(4), topic((1, 2, 3)))
"""Brokers 1 to 3 are up, 4 is fenced; 1 leads a partition with replicas 1, 2, 3, all in sync, in its epoch 0."""

SHUTS_DOWN: Path = (*ONE, beats(2, shut_down=True))
ONE_IS_DOWN: Path = (*ONE, (EXPIRES, 1))
ONE_IS_BACK: Path = (
    *ONE_IS_DOWN,
    *up(1),
    ("alter_partition", 2, 0, "t", 0, 1, 1, (1, 2, 3), False),
)
ALONE: Path = (*up(1, 2, 3), topic((1,), min_isr=1))
REASSIGNED: Path = (*ALONE, ("reassign", "t", 0, (2, 3)), ("alter_partition", 1, 0, "t", 0, 0, 1, (1, 2), False))
LEFT_ALONE: Path = (*REASSIGNED, (EXPIRES, 1))
NOBODY_LEADS: Path = (*ALONE, fenced(1))


def refusal_cases(opening: ClusterOpening) -> tuple[ControllerCase, ...]:
    """Return the paths, each with what it is for as its name."""
    asked = (
        *((ONE, step) for step in _proposals()),
        *((SHUTS_DOWN, ("alter_partition", 1, 0, "t", 0, *epochs, isr, False)) for epochs, isr in _after_a_shutdown()),
        *((beginning, step) for beginning, step in product((ONE, ONE_IS_DOWN, ONE_IS_BACK, NOBODY_LEADS), _elections())),
        *((beginning, step) for beginning, step in product((ONE, REASSIGNED, LEFT_ALONE), _reassignments())),
        *((beginning, step) for beginning, step in product((ONE, SHUTS_DOWN, ONE_IS_DOWN), _of_brokers())),
        *((ONE, step) for step in _of_topics()),
        # It has never registered.
        (ALONE, ("unregister", 4)),
    )
    paths = dict.fromkeys((*beginning, step) for beginning, step in asked)
    return tuple(ControllerCase(opening, path, f"refusal {number}") for number, path in enumerate(paths))


def usual_cases(profile: Profile, opening: ClusterOpening, *, walks: int, seed: int = 1) -> tuple[ControllerCase, ...]:
    """Return the paths of a run for which none were named: the findings', refusals, and random walks."""
    return (*finding_cases(opening), *refusal_cases(opening), *drawn(seed, walks, profile, opening))


def _proposals() -> Iterator[Step]:
    epochs, isrs = (-1, 0, 1), ((1, 2), (1,), (2, 3), (1, 2, 4), (1, 2, 3))
    yield from (
        ("alter_partition", 1, 0, "t", 0, leader_epoch, partition_epoch, isr, False)
        for leader_epoch, partition_epoch, isr in product(epochs, epochs, isrs)
    )
    yield from (("alter_partition", broker, lag, "t", 0, 0, 0, (1, 2), False) for broker in (1, 2, 4) for lag in (0, 1))
    yield from (("alter_partition", 1, 0, "t", 0, 0, 0, isr, True) for isr in ((1,), (1, 2)))
    yield from (("alter_partition", 1, 0, name, partition, 0, 0, (1, 2), False) for name, partition in (("u", 0), ("t", 7)))


def _after_a_shutdown() -> Iterator[tuple[tuple[int, int], tuple[int, ...]]]:
    # Whether the shutdown has taken broker 2 out of the ISR already is the controller's business.
    yield from product(product((0, 1), (0, 1, 2)), ((1, 2, 3), (1, 3)))


def _elections() -> Iterator[Step]:
    yield from (
        ("elect_leaders", unclean, *where) for unclean, where in product((False, True), (("t", 0), ("t", 7), ("u", 0)))
    )


def _reassignments() -> Iterator[Step]:
    yield from (("reassign", "t", 0, replicas) for replicas in (None, (1, 2, 3), (3, 2), (1,), (4,), (2, 4)))
    yield from (("reassign", *where, replicas) for where, replicas in product((("t", 7), ("u", 0)), (None, (1, 2))))


def _of_brokers() -> Iterator[Step]:
    yield from (
        registers(broker, new=new, clean=clean) for broker, new, clean in product((1, 2, 4), (True, False), (True, False))
    )
    yield from (beats(broker) for broker in (1, 2, 4))
    yield from (beats(broker, offset=-1) for broker in (2, 4))
    yield from (("heartbeat", broker, 1, -1, False, False, "") for broker in (1, 4))
    yield from (beats(2, shut_down=True), beats(4, shut_down=True), beats(1, fence=True))
    yield from (("unregister", broker) for broker in (2, 4))
    yield from (("assign_directory", broker, lag, "t", 0, "A") for broker, lag in product((1, 4), (0, 1)))


def _of_topics() -> Iterator[Step]:
    yield topic((1, 2))
    yield from (("delete_topic", name) for name in ("t", "u"))
