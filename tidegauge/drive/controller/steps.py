"""The steps of a controller's contract, a class each: what it takes, what the reference's controller makes of it, and what a
random walk draws of it.

A step is a tuple of its name and its arguments; most are a request of a broker or a client. `state` is everywhere the
reference's cluster before the step. `apply` gets the step's arguments in the order of `takes`, and returns the cluster after
it with the response as it is reported; `draw` returns a step of the kind for a random walk. A broker is a number from 1 on.
A `lag` makes a request carry a broker epoch that is so much lower than the broker's own. A directory is a letter, and
several are a string of letters.

Of `impl.controller`, a function of quorum_controller returns the controller after a request, and a pair: the records that
were written, and the response or its error code. A function of requests, configurations and replication_control returns such
a pair alone: `_written` writes its records.

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
"""By the name in a step, Kafka's name of a feature."""

FOUR = (1, 2, 3, 4)
TOPICS = ("t", "u")
"""The brokers and topics that walks draw."""

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
        """Return the cluster after the step, and the response to its request; None if it is no request.

        An incarnation in the response is still a broker epoch, which the caller turns into an ordinal.
        """

    @abstractmethod
    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a step of this kind."""


class Register(ControllerStep):
    """BrokerRegistration. `clean`: it names the epoch it was stopped in. A directory is a letter."""

    name, takes, result = "register", ("broker", "new_incarnation", "clean", "directories"), ("error", "incarnation")

    def apply(self, state: ReferenceController, broker: int, new: bool, clean: bool, letters: str) -> StepOutcome:
        """Register a broker, as the incarnation it last was or a `new` one. ClusterControlManager#registerBroker.

        `clean`: after a clean shutdown, so that the request names the broker epoch of before.
        """
        # An incarnation id is a random uuid; the offset that the record will have is as unique, and the same in each run.
        last_incarnation = state.incarnations.get(broker)
        incarnation = last_incarnation if last_incarnation is not None and not new else state.controller.end + 1
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
        """Draw a registration, mostly of a new incarnation that has directory A only."""
        letters = rng.choice(("A", "A", "A", "B", "AB"))
        return registers(rng.choice(FOUR), new=rng.random() < 0.85, clean=rng.random() < 0.5, directories=letters)


class RegisterLate(Register):
    """The same once the session of the incarnation before is over, and nobody has noticed yet. Not before 4.0."""

    # "The same" is Register: the sentence stands below that of Register in the contract's table, and is kept for it.
    name = "register_late"

    def apply(self, state: ReferenceController, broker: int, *other_arguments: Any) -> StepOutcome:
        """Register a broker whose session is over, which the controller has not noticed; arguments as of Register."""
        # `lapsed`: the state once that session is over.
        return super().apply(lapsed(state, broker), broker, *other_arguments)

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a step of Register, and give it the name of this one."""
        _, *arguments = super().draw(rng, state)
        return self.name, *arguments


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
        """Handle a heartbeat. `offset`: of the metadata that the broker has read; `offline`: its failed directories."""
        failed = tuple(directory(broker, letter) for letter in offline)
        request = BrokerHeartbeat(broker, epoch_of(state, broker, lag), offset, want_fence, want_shut_down, failed)
        controller, (_, response) = quorum_controller.process_broker_heartbeat(state.controller, request)
        result = {
            "error": response.error,
            "caught_up": response.caught_up,
            "fenced": response.fenced,
            "should_shut_down": response.should_shut_down,
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
        """Let the broker's session be over, and let the controller fence it for that."""
        session = broker, epoch_of(state, broker)
        controller, _ = quorum_controller.fence_stale_broker(lapsed(state, broker).controller, session)
        return state._replace(controller=controller), None

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        """Draw any broker."""
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
        """Handle the proposal of an ISR by a broker. `recovering`: the leader recovers from an unclean election."""
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
        """Draw a proposal for some partition.

        Mostly it is one that a correct leader could make; now and then it has another ISR, another sender, or an epoch that
        is one off.
        """
        topic, partition = _draw_partition(rng, state)
        registration = state.control.partitions.get(TopicPartition(topic, partition))
        # Of a partition that does not exist: any values, for the request is refused.
        if registration is None:
            return self.name, rng.choice(FOUR), 0, topic, partition, 0, 0, (1,), False
        # Brokers are numbered from 1; -1 is no leader.
        has_leader = registration.leader > 0
        followers = [broker for broker in registration.replicas if broker != registration.leader]
        isr = (
            [registration.leader, *rng.sample(followers, rng.randint(0, len(followers)))]
            if has_leader
            else list(registration.replicas)
        )
        if rng.random() < 0.05:
            isr = rng.sample(FOUR, 2)
        sender = registration.leader if has_leader and rng.random() < 0.95 else rng.choice(FOUR)
        # Each is 1 in 4 % of the draws, else 0: by how much the broker epoch, the leader epoch and the partition epoch are
        # too low, and by how much the last one is too high.
        broker_lag, leader_lag, partition_lag = (int(rng.random() < 0.04) for _ in range(3))
        ahead = int(rng.random() < 0.04)
        epochs = registration.leader_epoch - leader_lag, registration.partition_epoch - partition_lag + ahead
        return self.name, sender, broker_lag, topic, partition, *epochs, tuple(isr), rng.random() < 0.1


class ElectLeaders(ControllerStep):
    """ElectLeaders of one partition."""

    name, takes, result = "elect_leaders", ("unclean", "topic", "partition"), ("error",)

    def apply(self, state: ReferenceController, unclean: bool, topic: str, partition: int) -> StepOutcome:
        """Elect a leader of a partition: any live replica if `unclean`, else the preferred one."""
        election = Election.UNCLEAN if unclean else Election.PREFERRED
        return _written(state, *requests.elect_leader(state.control, TopicPartition(topic, partition), election))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw an election, more often a preferred than an unclean one."""
        return self.name, rng.random() < 0.4, *_draw_partition(rng, state)


class Reassign(ControllerStep):
    """AlterPartitionReassignments of one partition; no replicas cancel what is under way."""

    name, takes, result = "reassign", ("topic", "partition", "replicas"), ("error",)

    def apply(self, state: ReferenceController, topic: str, partition: int, replicas: tuple[int, ...] | None) -> StepOutcome:
        """Reassign a partition to these replicas; None cancels a reassignment."""
        reassignment = Reassignment(TopicPartition(topic, partition), replicas)
        records, ((_, error),) = requests.alter_partition_reassignments(state.control, (reassignment,))
        return _written(state, records, error)

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a cancellation, or a reassignment to one to three replicas."""
        replicas = None if rng.random() < 0.25 else tuple(rng.sample(FOUR, rng.randint(1, 3)))
        return self.name, *_draw_partition(rng, state), replicas


class AssignDirectory(ControllerStep):
    """AssignReplicasToDirs of one replica."""

    name, takes, result = "assign_directory", ("broker", "lag", "topic", "partition", "directory"), ("error",)

    def apply(
        self, state: ReferenceController, broker: int, lag: int, topic: str, partition: int, letter: str
    ) -> StepOutcome:
        """Assign the broker's replica of a partition to one of its directories."""
        tp, name = TopicPartition(topic, partition), directory(broker, letter)
        assignment = DirectoryAssignment(broker, epoch_of(state, broker, lag), name, tp)
        return _written(state, *requests.assign_replicas_to_dirs(state.control, assignment))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw an assignment, now and then with a broker epoch that is one too low."""
        lag = int(rng.random() < 0.05)
        return self.name, rng.choice(FOUR), lag, *_draw_partition(rng, state), rng.choice("AB")


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
        """Create a topic. `assignment`: the replicas of each of its partitions; `configs`: pairs of a key and a value."""
        return _written(state, *requests.create_topic(state.control, topic, assignment, dict(configs)))

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        """Draw the creation of any topic."""
        return self.draw_named(rng, rng.choice(TOPICS))

    def draw_named(self, rng: random.Random, topic: str) -> Step:
        """Draw the creation of this topic: one or two partitions on brokers 1 to 3, and perhaps min.insync.replicas."""
        replica_count = rng.choice((1, 2, 3, 3))
        assignment = tuple(tuple(rng.sample(FOUR[:3], replica_count)) for _ in range(rng.choice((1, 2))))
        configs = ((MIN_IN_SYNC_REPLICAS, rng.choice("123")),) if rng.random() < 0.5 else ()
        return self.name, topic, assignment, configs


class DeleteTopic(ControllerStep):
    """DeleteTopics by name."""

    name, takes, result = "delete_topic", ("topic",), ("error",)

    def apply(self, state: ReferenceController, topic: str) -> StepOutcome:
        """Delete a topic."""
        return _written(state, *requests.delete_topic(state.control, topic))

    def draw(self, rng: random.Random, _: ReferenceController) -> Step:
        """Draw any topic."""
        return self.name, rng.choice(TOPICS)


class Configure(ControllerStep):
    """IncrementalAlterConfigs of one key of a TOPIC or a BROKER; the BROKER named "" is the default of the cluster, and
    without a value the key is deleted.
    """

    name, takes, result = "configure", ("type", "name", "key", "value"), ("error",)

    def apply(self, state: ReferenceController, kind: str, name: str, key: str, value: str | None) -> StepOutcome:
        """Set a key of a topic's or broker's configuration, or delete it if `value` is None. `kind`: TOPIC or BROKER."""
        change = ConfigChange(ConfigResource(kind, name), key, value)
        controller, (_, error) = quorum_controller.incremental_alter_configs(state.controller, (change,))
        return state._replace(controller=controller), {"error": error}

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw a change of unclean.leader.election.enable of a topic, or of min.insync.replicas of one or of the cluster."""
        topic, _ = _draw_partition(rng, state)
        if rng.random() < 0.3:
            return self.name, TOPIC, topic, UNCLEAN_LEADER_ELECTION, rng.choice(("true", "false", None))
        if rng.random() < 0.2:
            return self.name, BROKER, "", MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", None))
        return self.name, TOPIC, topic, MIN_IN_SYNC_REPLICAS, rng.choice(("1", "2", "3", None))


class UpdateFeature(ControllerStep):
    """UpdateFeatures; a downgrade is a safe one."""

    name, takes, result = "update_feature", ("name", "level", "upgrade"), ("error",)

    def apply(self, state: ReferenceController, name: str, level: int, upgrade: bool) -> StepOutcome:
        """Upgrade a feature to a level, or (not `upgrade`) downgrade it safely. `name`: one of FEATURES."""
        update = FeatureUpdate(FEATURES[name], level, upgrade)
        return _written(state, *configurations.update_features(state.control, update, state.latest))

    def draw(self, rng: random.Random, state: ReferenceController) -> Step:
        """Draw the other level of ELR, 0 or 1; now and then any level, also 2, which it does not have."""
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
    """Return the outcome of a request: the cluster with these records written into its metadata log, and the response.

    `more`: fields of the response besides the error.
    """
    return state._replace(controller=quorum_controller.write_records(state.controller, records)), {"error": error, **more}


def _draw_partition(rng: random.Random, state: ReferenceController) -> tuple[str, int]:
    """Draw a topic and the number of a partition, seldom of one that does not exist."""
    partitions = [*state.control.partitions]
    if partitions and rng.random() < 0.95:
        tp = rng.choice(partitions)
        return tp.topic, tp.partition
    # No topic has a partition 7; a topic may not have been created, or be deleted.
    return rng.choice(TOPICS), rng.choice((0, 7))


def controller_capabilities(name: str) -> Capabilities:
    """Return the capabilities of a controller called `name`: every step, every field."""
    return Capabilities(name, frozenset(STEPS), frozenset(REPORTED))


def step_line(step: Step) -> str:
    """Return a step on one line, "name argument=value ..."."""
    name, *arguments = step
    by_name = zip(STEPS[name].takes, arguments, strict=True)
    return " ".join((name, *(f"{argument}={_argument_text(value)}" for argument, value in by_name)))


def _argument_text(value: Any) -> str:
    """Return an argument of a step as text."""
    match value:
        case None:
            return "none"
        case True | False:
            return "yes" if value else "no"
        # A list of lists: each inner one has commas, so blanks stand between them.
        case tuple() | list() if value and isinstance(value[0], tuple | list):
            return "[" + " ".join(map(_argument_text, value)) + "]"
        case tuple() | list():
            return ",".join(map(_argument_text, value)) or "none"
        # A metadata offset beyond the end of any log.
        case _ if value == ALL:
            return "all"
        case _:
            return str(value)


def is_step(value: Any) -> bool:
    """Return whether a value, such as one from a file, is a step of the contract with arguments of the right types."""
    if not is_call(value, STEPS):
        return False
    arguments = dict(zip(STEPS[value[0]].takes, value[1:], strict=True))
    # A configuration of a topic names it by any word, one of a broker by its number; "" is the default of the cluster.
    if arguments.get("type") == BROKER and arguments["name"] and not str(arguments["name"]).isdecimal():
        return False
    # An argument without a check of its own is an integer.
    return all(_ARGUMENT_CHECKS.get(name, is_integer)(argument) for name, argument in arguments.items())


def _is_word(value: Any) -> bool:
    return isinstance(value, str)


def _is_broker(value: Any) -> bool:
    """Return whether a value is the number of a broker that a path may name."""
    return is_integer(value) and 1 <= value <= BROKERS


def _is_brokers(value: Any) -> bool:
    """Return whether a value is a tuple of brokers."""
    return isinstance(value, tuple) and all(map(_is_broker, value))


def _is_pair(value: Any) -> bool:
    """Return whether a value is a configuration of a new topic: a pair of a key and a value, both text."""
    return isinstance(value, tuple) and len(value) == 2 and all(map(_is_word, value))


_ARGUMENT_CHECKS: Mapping[str, Callable[[Any], bool]] = {
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
"""By the name of an argument, whether a value may be one; an argument that is not named here is an integer."""
