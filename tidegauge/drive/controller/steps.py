"""The steps of a controller's contract, a class each: what it takes, what the reference's controller makes of it, and what a
random walk draws of it.

A new step is a class here, a line of STEPS and a function of drive/controller/node.py, which asks it of a real
controller; a line of drive/controller/walks.py says how often it is drawn.
"""

import random
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from tidegauge.drive.contract import Capabilities, Step, is_call, is_integer
from tidegauge.drive.controller.contract import ALL, BROKERS, REPORTED, ReferenceController, directory, epoch_of, lapsed
from tidegauge.drive.controller.findings import registers
from tidegauge.impl.controller import configurations, quorum_controller, requests
from tidegauge.impl.controller.brokers import BrokerHeartbeat
from tidegauge.impl.controller.configurations import ConfigChange
from tidegauge.impl.controller.features import ELR_VERSION, METADATA_VERSION, FeatureUpdate
from tidegauge.impl.controller.partition_change import Election
from tidegauge.impl.controller.partition_registration import RecoveryState
from tidegauge.impl.controller.records import BROKER, TOPIC, ConfigResource, ControllerRecord, RegisterBrokerRecord
from tidegauge.impl.controller.replication_control import (
    MIN_IN_SYNC_REPLICAS,
    UNCLEAN_LEADER_ELECTION,
    AlterPartition,
    Proposal,
    alter_partition,
)
from tidegauge.impl.controller.requests import DirectoryAssignment, Reassignment
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.topic_partition import TopicPartition

FEATURES: Mapping[str, str] = {"metadata.version": METADATA_VERSION, "elr": ELR_VERSION}
FOUR = (1, 2, 3, 4)
TOPICS = ("t", "u")
"""The brokers and topics of a walk."""

StepOutcome = tuple[ReferenceController, dict[str, Any] | None]
"""The cluster after a step, and the response; None for a step that is no request."""


class ControllerStep(ABC):
    """A kind of step; its docstring is its sentence in the contract. `takes` are its arguments, `result` the fields of its
    response.
    """

    name: ClassVar[str]
    takes: ClassVar[tuple[str, ...]] = ()
    result: ClassVar[tuple[str, ...]] = ()

    @property
    def says(self) -> str:
        """The sentence about it."""
        return " ".join((self.__doc__ or "").split())

    @abstractmethod
    def apply(self, state: ReferenceController, *args: Any, **kwargs: Any) -> StepOutcome:
        """Return the cluster after the step, and the response to its request, in which an incarnation is a broker epoch."""

    @abstractmethod
    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a step of this kind."""


class Register(ControllerStep):
    """BrokerRegistration. `clean`: it names the epoch it was stopped in. A directory is a letter."""

    name, takes, result = "register", ("broker", "new_incarnation", "clean", "directories"), ("error", "incarnation")

    def apply(self, state: ReferenceController, broker: int, new: bool, clean: bool, letters: str) -> StepOutcome:
        """Register a broker. ClusterControlManager#registerBroker."""
        # An incarnation id is a random uuid; the offset that the record will have is as unique, and the same in each run.
        before = state.incarnations.get(broker)
        incarnation = before if before is not None and not new else state.controller.end + 1
        directories = tuple(directory(broker, letter) for letter in letters)
        record = RegisterBrokerRecord(broker, 0, incarnation, directories=directories)
        previous = epoch_of(state, broker) if clean else UNDEFINED
        controller, (_, error) = quorum_controller.register_broker(state.controller, record, previous)
        state = state._replace(controller=controller)
        if error != NONE:
            return state, {"error": error}
        state = state._replace(incarnations=state.incarnations.put(broker, incarnation))
        return state, {"error": error, "incarnation": epoch_of(state, broker)}

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        letters = rng.choice(("A", "A", "A", "B", "AB"))
        return registers(rng.choice(FOUR), new=rng.random() < 0.85, clean=rng.random() < 0.5, directories=letters)


class RegisterLate(Register):
    """The same once the session of the incarnation before is over, and nobody has noticed yet. Not before 4.0."""

    name = "register_late"

    def apply(self, state: ReferenceController, broker: int, *rest: Any) -> StepOutcome:
        return super().apply(lapsed(state, broker), broker, *rest)

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        return self.name, *super().draw(rng, state)[1:]


class Heartbeat(ControllerStep):
    """BrokerHeartbeat. `offline`: the directories that have failed."""

    name, takes, result = (
        "heartbeat",
        ("broker", "lag", "metadata_offset", "want_fence", "want_shut_down", "offline"),
        ("error", "caught_up", "fenced", "should_shut_down"),
    )

    def apply(
        self,
        state: ReferenceController,
        broker: int,
        lag: int,
        offset: int,
        want_fence: bool,
        want_shut_down: bool,
        offline: str,
    ) -> StepOutcome:
        """Handle a heartbeat; `lag`: its broker epoch is so much too low."""
        failed = tuple(directory(broker, letter) for letter in offline)
        request = BrokerHeartbeat(broker, epoch_of(state, broker, lag), offset, want_fence, want_shut_down, failed)
        controller, (_, reply) = quorum_controller.process_broker_heartbeat(state.controller, request)
        result = {
            "error": reply.error,
            "caught_up": reply.caught_up,
            "fenced": reply.fenced,
            "should_shut_down": reply.should_shut_down,
        }
        return state._replace(controller=controller), result

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        """Draw a heartbeat, mostly of a broker that has read all metadata and wants nothing."""
        offset = ALL if rng.random() < 0.85 else UNDEFINED
        lag = 0 if rng.random() < 0.95 else 1
        fence, shut_down = rng.random() < 0.2, rng.random() < 0.15
        return self.name, rng.choice(FOUR), lag, offset, fence, shut_down, ""


class SessionExpires(ControllerStep):
    """No heartbeat comes for longer than a session, and that is noticed."""

    name, takes, result = "session_expires", ("broker",), ()

    def apply(self, state: ReferenceController, broker: int) -> StepOutcome:
        controller, _ = quorum_controller.fence_stale_broker(
            lapsed(state, broker).controller, (broker, epoch_of(state, broker))
        )
        return state._replace(controller=controller), None

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        return self.name, rng.choice(FOUR)


class Unregister(ControllerStep):
    """UnregisterBroker."""

    name, takes, result = "unregister", ("broker",), ("error",)

    def apply(self, state: ReferenceController, broker: int) -> StepOutcome:
        controller, (_, error) = quorum_controller.unregister_broker(state.controller, broker)
        return state._replace(controller=controller), {"error": error}

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        return self.name, rng.choice(FOUR)


class AlterPartitionStep(ControllerStep):
    """AlterPartition of one partition; each member of the ISR is meant in the incarnation that it has."""

    name, takes, result = (
        "alter_partition",
        ("broker", "lag", "topic", "partition", "leader_epoch", "partition_epoch", "isr", "recovering"),
        ("error", "partition"),
    )

    def apply(
        self,
        state: ReferenceController,
        broker: int,
        lag: int,
        topic: str,
        partition: int,
        leader_epoch: int,
        partition_epoch: int,
        isr: tuple[int, ...],
        recovering: bool,
    ) -> StepOutcome:
        """Handle a proposal of a leader; `lag`: its broker epoch is so much too low."""
        tp = TopicPartition(topic, partition)
        epochs = tuple(epoch_of(state, member) for member in isr)
        recovery = RecoveryState(int(recovering))
        proposal = Proposal(tp, AlterPartitionRequest(broker, leader_epoch, partition_epoch, isr, epochs), recovery)
        records, altered = alter_partition(state.control, AlterPartition(broker, epoch_of(state, broker, lag), (proposal,)))
        # A request may be refused as a whole, for its broker epoch; else each partition has its own error.
        if altered.error != NONE:
            return _written(state, records, altered.error)
        (response,) = altered.responses
        if response.error != NONE:
            return _written(state, records, response.error)
        reported = {
            "leader": broker,
            "leader_epoch": response.leader_epoch,
            "partition_epoch": response.partition_epoch,
            "isr": list(response.isr),
            "recovering": recovering,
        }
        return _written(state, records, NONE, partition=reported)

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a proposal for some partition."""
        topic, partition = _partition(rng, state)
        registration = next(
            (
                registered
                for tp, registered in state.control.partitions.items()
                if (tp.topic, tp.partition) == (topic, partition)
            ),
            None,
        )
        if registration is None:
            return self.name, rng.choice(FOUR), 0, topic, partition, 0, 0, (1,), False
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
        # Each now and then (4 %): a broker epoch, a leader epoch or a partition epoch one too low, or the last one too high.
        lag, old, stale = (int(rng.random() < 0.04) for _ in range(3))
        ahead = int(rng.random() < 0.04)
        epochs = registration.leader_epoch - old, registration.partition_epoch - stale + ahead
        return self.name, leader, lag, topic, partition, *epochs, tuple(isr), rng.random() < 0.1


class ElectLeaders(ControllerStep):
    """ElectLeaders of one partition."""

    name, takes, result = "elect_leaders", ("unclean", "topic", "partition"), ("error",)

    def apply(self, state: ReferenceController, unclean: bool, topic: str, partition: int) -> StepOutcome:
        election = Election.UNCLEAN if unclean else Election.PREFERRED
        return _written(state, *requests.elect_leader(state.control, TopicPartition(topic, partition), election))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        return self.name, rng.random() < 0.4, *_partition(rng, state)


class Reassign(ControllerStep):
    """AlterPartitionReassignments of one partition; no replicas cancel what is under way."""

    name, takes, result = "reassign", ("topic", "partition", "replicas"), ("error",)

    def apply(self, state: ReferenceController, topic: str, partition: int, replicas: tuple[int, ...] | None) -> StepOutcome:
        """Request other replicas for a partition; None cancels a reassignment."""
        reassignment = Reassignment(TopicPartition(topic, partition), replicas)
        records, errors = requests.alter_partition_reassignments(state.control, (reassignment,))
        return _written(state, records, errors[0][1])

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        replicas = None if rng.random() < 0.25 else tuple(rng.sample(FOUR, rng.randint(1, 3)))
        return self.name, *_partition(rng, state), replicas


class AssignDirectory(ControllerStep):
    """AssignReplicasToDirs of one replica."""

    name, takes, result = "assign_directory", ("broker", "lag", "topic", "partition", "directory"), ("error",)

    def apply(
        self, state: ReferenceController, broker: int, lag: int, topic: str, partition: int, letter: str
    ) -> StepOutcome:
        assignment = DirectoryAssignment(
            broker, epoch_of(state, broker, lag), directory(broker, letter), TopicPartition(topic, partition)
        )
        return _written(state, *requests.assign_replicas_to_dirs(state.control, assignment))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        lag = int(rng.random() < 0.05)
        return self.name, rng.choice(FOUR), lag, *_partition(rng, state), rng.choice("AB")


class CreateTopic(ControllerStep):
    """CreateTopics with replicas for each partition."""

    name, takes, result = "create_topic", ("topic", "assignment", "configs"), ("error",)

    def apply(
        self,
        state: ReferenceController,
        topic: str,
        assignment: tuple[tuple[int, ...], ...],
        configs: tuple[tuple[str, str], ...],
    ) -> StepOutcome:
        return _written(state, *requests.create_topic(state.control, topic, assignment, dict(configs)))

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        return self.draw_named(rng, rng.choice(TOPICS))

    def draw_named(self, rng: random.Random, topic: str) -> Step:
        """Draw the creation of this topic."""
        size = rng.choice((1, 2, 3, 3))
        assignment = tuple(tuple(rng.sample(FOUR[:3], size)) for _ in range(rng.choice((1, 2))))
        configs = ((MIN_IN_SYNC_REPLICAS, rng.choice("123")),) if rng.random() < 0.5 else ()
        return self.name, topic, assignment, configs


class DeleteTopic(ControllerStep):
    """DeleteTopics by name."""

    name, takes, result = "delete_topic", ("topic",), ("error",)

    def apply(self, state: ReferenceController, topic: str) -> StepOutcome:
        return _written(state, *requests.delete_topic(state.control, topic))

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        return self.name, rng.choice(TOPICS)


class Configure(ControllerStep):
    """IncrementalAlterConfigs of one key of a TOPIC or a BROKER; the BROKER named "" is the default of the cluster, and
    without a value the key is deleted.
    """

    name, takes, result = "configure", ("type", "name", "key", "value"), ("error",)

    def apply(self, state: ReferenceController, kind: str, name: str, key: str, value: str | None) -> StepOutcome:
        """Set a configuration of a topic or broker, or delete it with None."""
        change = ConfigChange(ConfigResource(kind, name), key, value)
        controller, (_, error) = quorum_controller.incremental_alter_configs(state.controller, (change,))
        return state._replace(controller=controller), {"error": error}

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a change of min.insync.replicas or unclean.leader.election.enable."""
        topic, _ = _partition(rng, state)
        if rng.random() < 0.3:
            return self.name, TOPIC, topic, UNCLEAN_LEADER_ELECTION, rng.choice(("true", "false", None))
        if rng.random() < 0.2:
            return self.name, BROKER, "", MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", None))
        return self.name, TOPIC, topic, MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", "3", None))


class UpdateFeature(ControllerStep):
    """UpdateFeatures; a downgrade is a safe one."""

    name, takes, result = "update_feature", ("name", "level", "upgrade"), ("error",)

    def apply(self, state: ReferenceController, name: str, level: int, upgrade: bool) -> StepOutcome:
        update = FeatureUpdate(FEATURES[name], level, upgrade)
        return _written(state, *configurations.update_features(state.control, update, state.latest))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        level = 1 - state.control.features.elr if rng.random() < 0.8 else rng.choice((0, 1, 2))
        return self.name, "elr", level, level > 0


STEPS: Mapping[str, ControllerStep] = MappingProxyType(
    {
        step.name: step
        for step in (
            Register(),
            RegisterLate(),
            Heartbeat(),
            SessionExpires(),
            Unregister(),
            AlterPartitionStep(),
            ElectLeaders(),
            Reassign(),
            AssignDirectory(),
            CreateTopic(),
            DeleteTopic(),
            Configure(),
            UpdateFeature(),
        )
    }
)


def _written(state: ReferenceController, records: tuple[ControllerRecord, ...], error: int, **more: Any) -> StepOutcome:
    """Write what a manager has decided into the metadata log; `more`: fields of the result besides the error."""
    return state._replace(controller=quorum_controller.write_records(state.controller, records)), {"error": error, **more}


def _partition(rng: random.Random, state: ReferenceController) -> tuple[str, int]:
    """Draw a partition, seldom one that does not exist."""
    partitions = [*state.control.partitions]
    if partitions and rng.random() < 0.95:
        tp = rng.choice(partitions)
        return tp.topic, tp.partition
    return rng.choice(TOPICS), rng.choice((0, 7))


def controller_capabilities(name: str) -> Capabilities:
    """Return the capabilities of a controller called `name`: every step, every field."""
    return Capabilities(name, frozenset(STEPS), frozenset(REPORTED))


def step_line(step: Step) -> str:
    """Return a step on one line."""
    name, *arguments = step
    return " ".join((name, *(f"{field}={_word(value)}" for field, value in zip(STEPS[name].takes, arguments, strict=True))))


def _word(value: Any) -> str:
    """Return an argument of a step as text."""
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(map(_word, value)) + "]"
        case tuple() | list():
            return ",".join(map(_word, value)) or "none"
        case _ if value == ALL:
            return "all"
        case _:
            return str(value)


def is_step(value: Any) -> bool:
    """Return whether a value read from somewhere is a step of the contract."""
    if not is_call(value, STEPS):
        return False
    named = dict(zip(STEPS[value[0]].takes, value[1:], strict=True))
    # The name of a topic is any word; a broker is named by its number, and "" is the default of the cluster.
    if named.get("type") == BROKER and named["name"] and not str(named["name"]).isdecimal():
        return False
    return all(_IS.get(name, is_integer)(argument) for name, argument in named.items())


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_broker(value: Any) -> bool:
    return is_integer(value) and 1 <= value <= BROKERS


def _is_brokers(value: Any) -> bool:
    return isinstance(value, tuple) and all(map(_is_broker, value))


def _is_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_word, value))


_IS: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("new_incarnation", "clean", "want_fence", "want_shut_down", "recovering", "unclean", "upgrade"),
        lambda value: isinstance(value, bool),
    ),
    **dict.fromkeys(("directories", "offline", "topic", "directory", "name", "key"), _is_word),
    "broker": _is_broker,
    "isr": _is_brokers,
    "replicas": lambda value: value is None or _is_brokers(value),
    "assignment": lambda value: isinstance(value, tuple) and all(map(_is_brokers, value)),
    "configs": lambda value: isinstance(value, tuple) and all(map(_is_pair, value)),
    "type": lambda value: value in (TOPIC, BROKER),
    "value": lambda value: value is None or _is_word(value),
}
"""What an argument is; one that is not named here is an integer."""
