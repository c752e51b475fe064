"""The tables of Kafka's controller classes as paths of the controller's contract, so that a process is taken through them.

Rules of this file

1. A step of a table may have more than one form in the contract, and one request of a table may be several steps of it. The
   one is taken after which the reference has the state, and the error, that the class had.
2. Where none has, a step that changed nothing and is no broker's own is left out; at any other the path ends.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from tests.kafka_classes.controller_tables import brokers_of, initial_configs, named, partition_of
from tests.kafka_classes.replay import Sequence, Step
from tests.kafka_classes.replay_controller import LISTED, THROWN, expect, levels
from tidegauge.drive.contract import Path
from tidegauge.drive.controller.contract import ALL, ClusterOpening, ControllerCase, ReferenceController, opened
from tidegauge.drive.controller.metadata_image import Incarnations, state_report
from tidegauge.drive.controller.reference import take_step
from tidegauge.drive.controller.steps import is_step
from tidegauge.impl.controller.features import Features
from tidegauge.impl.controller.records import TOPIC, ConfigResource
from tidegauge.impl.controller.replication_control import MIN_IN_SYNC_REPLICAS, ReplicationControl
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.profiles import Profile
from tidegauge.impl.rules import UNDEFINED

NOBODY = "nobody"
"""A topic that is not there."""

OWN = frozenset({"register", "heartbeat", "sessionExpires"})
"""What changes what the controller alone knows of a broker."""


class Translated(NamedTuple):
    """The path; how many steps of the sequence it has taken, and how many of them were left out."""

    case: ControllerCase
    steps: int
    left_out: int


def translated(sequence: Sequence, profile: Profile) -> Translated | None:
    """As much of a sequence as the contract has; None where not even its beginning is."""
    features, expected = sequence["init"]["feature"], beginning(sequence)
    opening = ClusterOpening(features["level"], features["elr"], int(sequence["static"].get(MIN_IN_SYNC_REPLICAS, "1")))
    numbers = Incarnations()
    path = begin(sequence)
    state, _ = _after(opened(opening, profile), path, numbers)
    if seen(state.control) != listed(expected):
        return None
    done = left_out = 0
    for found in sequence["steps"]:
        before = dict(expected["brokers"])
        expect(expected, found)
        for form in forms(found, before, state):
            after, errors = _after(state, form, numbers)
            if seen(after.control) == listed(expected) and _error(found) in {errors[-1:], ()}:
                state, path = after, (*path, *form)
                break
        else:
            if found["op"] in OWN or found["records"]:
                break
            left_out += 1
        done += 1
    return Translated(ControllerCase(opening, path, f"seed {sequence['seed']}"), done, left_out)


def beginning(sequence: Sequence) -> dict[str, Any]:
    """What the table says of the cluster before the first step; `expect` brings it up to date."""
    init = sequence["init"]
    return {**{key: dict(init[key]) for key in LISTED}, "feature": levels(init["feature"])}


def begin(sequence: Sequence) -> Path:
    """The requests that make a sequence's first state."""
    init, configs = sequence["init"], initial_configs(sequence)
    starts: list[tuple[Any, ...]] = []
    for b, registration in init["brokers"].items():
        starts.append(("register", int(b), True, False, "".join(name[-1] for name in registration.get("dirs", ()))))
        if not registration["fenced"]:
            starts.append(("heartbeat", int(b), 0, ALL, False, False, ""))
    assignments: dict[str, list[tuple[int, ...]]] = {}
    for name, partition in init["parts"].items():
        assignments.setdefault(named(name).topic, []).append(tuple(partition["replicas"]))
    for topic, assignment in assignments.items():
        own = tuple((configs.get(ConfigResource(TOPIC, topic)) or FrozenMap[str, str]()).items())
        starts.append(("create_topic", topic, tuple(assignment), own))
    for name, partition in init["parts"].items():
        # a replica whose broker has two directories is assigned to one: a change of the partition each
        assigned = zip(partition["replicas"], partition.get("dirs", ()), strict=False) if partition["partitionEpoch"] else ()
        starts += (("assign_directory", b, 0, *named(name), directory[-1]) for b, directory in assigned)
    return tuple(starts)


def forms(found: Step, brokers: dict[str, Any], state: ReferenceController) -> Iterator[Path]:
    """A table's step as steps of the contract, in the ways that it may be meant; `brokers` as they were before it."""
    b = found.get("b")
    known = brokers.get(str(b))
    lag = 0 if known is None or found.get("epoch") == known["epoch"] else 1
    made: list[Path] = []
    match found["op"]:
        case "noop":
            made = [()]
        case "register":
            clean = found["detect"] and known is not None and found["previousEpoch"] == known["epoch"]
            name = "register" if found["session"] or known is None else "register_late"
            made = [((name, b, found["newIncarnation"], clean, found["dirs"]),)]
        case "unregister":
            made = [(("unregister", b),)]
        case "heartbeat":
            offline = "".join(name[-1] for name in found.get("offline", ()))
            wants = found["wantFence"], found["wantShutDown"], offline
            made = [(("heartbeat", b, lag, offset, *wants),) for offset in (ALL, UNDEFINED)]
        case "sessionExpires":
            made = [(("session_expires", b),)]
        case "alterPartition":
            made = [tuple(_proposal(found, ask, lag) for ask in found["ask"])]
        case "electLeaders":
            unclean = found["type"] == "UNCLEAN"
            asked = _everybody(state) if found["ask"] is None else found["ask"]
            made = [tuple(("elect_leaders", unclean, topic or NOBODY, number) for topic, number in asked)]
        case "balanceLeaders" | "electUncleanLeaders":
            changed = [(r["t"], r["p"]) for r in found["records"]]
            made = [tuple(("elect_leaders", found["op"] == "electUncleanLeaders", *one) for one in changed)]
        case "config":
            made = [(("configure", found["on"], found["name"], found["key"], found["value"]),)]
        case "feature":
            made = [(("update_feature", found["name"], found["level"], found["upgrade"]),)]
        case "reassign":
            made = [tuple(_reassignment(ask) for ask in found["ask"])]
        case "assignDirs":
            made = [(("assign_directory", b, lag, found["t"] or NOBODY, found["p"], found["dir"][-1]),)]
        case "createTopic":
            configs = tuple(found["topicConfig"].items())
            made = [(("create_topic", found["t"], tuple(map(tuple, found["assignment"])), configs),)]
        case "deleteTopic":
            made = [(("delete_topic", found["t"]),)]
    yield from (form for form in made if all(map(is_step, form)))


def _proposal(found: Step, ask: dict[str, Any], lag: int) -> tuple[Any, ...]:
    isr = tuple(member if isinstance(member, int) else member[0] for member in ask["isr"])
    where = ask["t"] or NOBODY, ask["p"], ask["leaderEpoch"], ask["partitionEpoch"]
    return ("alter_partition", found["b"], lag, *where, isr, ask["recovery"] == "RECOVERING")


def _reassignment(ask: dict[str, Any]) -> tuple[Any, ...]:
    replicas = ask["replicas"]
    return ("reassign", ask["t"] or NOBODY, ask["p"], None if replicas is None else tuple(replicas))


def _everybody(state: ReferenceController) -> Iterable[tuple[str, int]]:
    return [(tp.topic, tp.partition) for tp in sorted(state.control.partitions)]


def _after(state: ReferenceController, path: Path, numbers: Incarnations) -> tuple[ReferenceController, tuple[str, ...]]:
    errors = []
    for taken in path:
        state, report = take_step(state, taken, numbers)
        errors.append(ERROR_NAMES[(report["result"] or {}).get("error", 0)])
    return state, tuple(errors)


def _error(found: Step) -> tuple[str, ...]:
    """The error of a request with one response; nothing of one with several, or with none."""
    if "err" in found or "thrown" in found:
        return (found.get("err") or THROWN[found["thrown"]],)
    response = found.get("res")
    if isinstance(response, list):
        parts = [part["error"] if isinstance(part, dict) else part[-1] for part in response]
        return tuple(parts) if len(parts) == 1 else ()
    return (response,) if isinstance(response, str) else ()


def seen(control: ReplicationControl) -> dict[str, Any]:
    """What a report says of a state, without the ordinals of broker epochs."""
    report = state_report(control, Incarnations())
    for broker in report["brokers"].values():
        del broker["incarnation"]
    return report


def listed(expected: dict[str, Any]) -> dict[str, Any]:
    """The same of what a table says."""
    partitions = {named(name): partition_of(found) for name, found in expected["parts"].items()}
    features = Features(expected["feature"]["level"], expected["feature"]["elr"])
    return seen(ReplicationControl(brokers_of(expected["brokers"]), FrozenMap(partitions.items()), features=features))
