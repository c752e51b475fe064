"""The probe's topics and fetch sessions: created, waited for, and removed at the end.

The methods of this file that talk to a broker raise NoResponseError where it does not respond, NotOfferedError where it does
not offer a request, UndecidedError where it refuses; a check then has no verdict about the broker.

Rules of this file

1. A topic that exists already is somebody else's: it is not touched, and ends the probe.
2. A topic is ready when its leader serves it. Every broker's metadata names the leader.
3. A topic is gone when metadata no longer names it. A broker learns of a deletion later than the controller decides it
   (BrokerMetadataPublisher), and Kafka with ZooKeeper deletes after its response (TopicDeletionManager).
4. Sessions are closed after the topics have gone. One that stays open is no loss: a broker without a free slot evicts it
   (KIP-227).
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from tidegauge.drive.probe.connection import (
    BrokerConnection,
    Dial,
    NoResponseError,
    UnreadableResponseError,
    WireExchange,
    single_entry,
)
from tidegauge.drive.probe.partition import LATEST, NotOfferedError, ProbePartition, ProbeSession
from tidegauge.drive.wire.compiler import Messages, WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl import errors
from tidegauge.impl.errors import error_text
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import UsageError
from tidegauge.util.untrusted_text import visible

T = TypeVar("T")

NOT_YET = frozenset(
    {
        errors.UNKNOWN_TOPIC_OR_PARTITION,
        errors.LEADER_NOT_AVAILABLE,
        errors.NOT_LEADER_OR_FOLLOWER,
        errors.UNKNOWN_TOPIC_ID,
        errors.FENCED_LEADER_EPOCH,
        errors.UNKNOWN_LEADER_EPOCH,
    }
)
"""Errors of a partition whose leader has not read its metadata yet."""

GONE = frozenset({errors.UNKNOWN_TOPIC_OR_PARTITION, errors.UNKNOWN_TOPIC_ID})
"""Errors in the metadata of a topic that does not exist."""

KEEPS_ALL: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""The configuration of topics unless a check has another: nothing is deleted by itself."""

POLL_SECONDS, READY_SECONDS = 0.02, 15.0

NOT_REQUESTED = "its deletion was not asked for"
GRANTED = "its deletion was granted, and metadata names it still"
NOT_FINAL = frozenset({errors.UNKNOWN_TOPIC_OR_PARTITION, errors.REQUEST_TIMED_OUT, errors.NOT_CONTROLLER})
"""Refusals of a deletion after which the same request may be granted a moment later."""


class UndecidedError(Exception):
    """A check cannot be decided: its fixture could not be made, or the broker sends nothing to compare."""


class NeverReadyError(UndecidedError):
    """A topic was created, and in all the time that the probe waits no leader served it."""


class Cleanup:
    """Deletes the topics that may exist. `left`: the names of those, with the reason why each may still exist.

    `delete` requests the deletion of a topic and returns the error code; `is_named` returns whether metadata has a topic.
    Both raise NoResponseError, `delete` also NotOfferedError.
    """

    def __init__(self, delete: Callable[[str], int], is_named: Callable[[str], bool]) -> None:
        """Begin with no topics."""
        self._delete, self._is_named = delete, is_named
        self.left: dict[str, str] = {}
        self._uncertain: set[str] = set()
        """Topics that may come to exist: their creation was requested, and nobody knows whether it will happen."""

    def expect(self, name: str) -> None:
        """Note that the creation of a topic is about to be requested."""
        self.left[name] = NOT_REQUESTED

    def uncertain(self, name: str) -> None:
        """Note that the creation of a topic was requested, and may still happen: no response says whether it did."""
        self._uncertain.add(name)

    def forget(self, name: str) -> None:
        """Note that a topic is somebody else's, and must not be deleted."""
        del self.left[name]

    def created(self, name: str) -> None:
        """Note that metadata has named a topic: it exists, and its creation will not happen later."""
        self._uncertain.discard(name)

    def run(self, pause: Callable[[], None], patience: float) -> None:
        """Delete the topics, and wait at most `patience` seconds until all are gone; the others stay in `left`.

        `pause` is called between two looks at the metadata.
        """
        # All deletions are requested before any is waited for: an interrupted wait loses nothing.
        pending = [name for name in self.left if self._request_deletion(name)]
        deadline = time.monotonic() + patience
        while pending := [name for name in pending if not self._is_settled(name, time.monotonic() >= deadline)]:
            pause()

    def _request_deletion(self, name: str) -> bool:
        """Request the deletion of a topic; return whether the topic may go, at once or after another request."""
        try:
            code = self._delete(name)
        except NoResponseError as problem:
            # The response is lost; the broker may have deleted the topic all the same.
            self.left[name] = str(problem)
            return True
        except NotOfferedError as problem:
            self.left[name] = str(problem)
            return False
        self.left[name] = GRANTED if code == errors.NONE else error_text(code)
        # Only a topic that exists can be deleted: its creation will not happen later.
        if code == errors.NONE:
            self._uncertain.discard(name)
        return code == errors.NONE or code in NOT_FINAL

    def _is_settled(self, name: str, is_late: bool) -> bool:
        """Return whether a topic need not be waited for any more: it is gone, or it will stay.

        Requests its deletion again if that was not granted. `is_late`: the deadline has passed.
        """
        try:
            is_named = self._is_named(name)
        except NoResponseError as problem:
            self.left[name] = str(problem)
            return True
        # A topic that metadata does not name may still come to exist, if its creation was not answered. By the deadline,
        # which is later than that of the creation, it no longer can.
        if not is_named and (is_late or name not in self._uncertain):
            del self.left[name]
            return True
        # A deletion that was granted is only waited for. Any other is requested again, unless it is refused for good.
        return is_late or (self.left[name] != GRANTED and not self._request_deletion(name))


class Topics:
    """The topics that the probe creates, and the connections to their leaders.

    `first`: the connection to the broker that the user named; `sessions`: the fetch sessions to close at the end.
    """

    def __init__(
        self,
        messages: Messages,
        dial: Dial,
        place: tuple[str, int],
        keep: Callable[[WireExchange], None],
        pause: Callable[[float], None] = time.sleep,
        patience: float = READY_SECONDS,
        follow_metadata: bool = False,
        note: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Prepare the connection to `place`, the host and the port that the user named.

        `dial` opens connections. `keep` is called with every exchange. `pause` waits some seconds. `patience`: seconds to
        wait for a topic. `follow_metadata`: whether other places that Metadata names may be connected to, even if it does
        not name the user's. `note` is called with a line for the report.
        """
        self._messages, self._dial, self._keep, self._pause, self._patience = messages, dial, keep, pause, patience
        self.first = BrokerConnection(messages, dial, *place, keep)
        self._place, self._follow_metadata, self._note = place, follow_metadata, note
        self._failed: dict[str, str] = {}
        """Why no topic of a setting came to be ready; a setting is replicas and configuration, in words."""
        self._connections: dict[int, BrokerConnection] = {}
        self.sessions: list[ProbeSession] = []
        self._cleanup = Cleanup(self._delete, self._is_named)

    def create(self, name: str, config: Mapping[str, str], replicas: list[int] | None = None) -> ProbePartition:
        """Create a topic of one partition, and wait until its leader serves it.

        `replicas`: the ids of the brokers to place it on, the preferred leader first; None for one replica anywhere. Raises
        UndecidedError; UsageError for a topic that exists; NotOfferedError for settings that need a CreateTopics request.
        """
        has_create_topics = "CreateTopics" in self.first.versions
        # Without CreateTopics a broker may create a topic that Metadata asks for: with its own settings, where it likes.
        if not has_create_topics and (replicas or dict(config) != KEEPS_ALL):
            others = (f"{key}={value}" for key, value in config.items() if KEEPS_ALL.get(key) != value)
            missing = f"replicas on {replicas}" if replicas else ", ".join(others)
            raise NotOfferedError(f"CreateTopics: needs version 0 or newer for {missing}; ApiVersions offers none")
        # A topic like one that never came to be ready will not be ready either: without this every check would wait in vain
        # for its own. If not even a plain topic did, no other will.
        setting = "a plain topic" if not replicas and dict(config) == KEEPS_ALL else f"{replicas or ''} {dict(config)}"
        for failed in {"a plain topic", setting} & self._failed.keys():
            raise UndecidedError(f"not tried again: {self._failed[failed]}")
        metadata = self._metadata(name)
        if single_entry(metadata, "topics")["errorCode"] == errors.NONE:
            raise _exists_error(name)
        self._check_named(metadata["brokers"])
        self._cleanup.expect(name)
        try:
            if has_create_topics:
                self._request_creation(name, config, replicas)
            else:
                self._cleanup.uncertain(name)  # the response to Metadata comes before the topic exists
                self._metadata(name, create=True)
            return self.ready(name)
        except (NeverReadyError, NoResponseError) as problem:
            self._failed[setting] = str(problem)
            raise

    def ready(self, name: str, behind: int = UNDEFINED) -> ProbePartition:
        """Return the partition of a topic as soon as its leader serves it, in a leader epoch greater than `behind`.

        By default in any epoch. Raises NeverReadyError if that takes too long.
        """

        def serving() -> ProbePartition | None:
            """Return the partition once its leader serves it, else None."""
            metadata = self._metadata(name)
            topic = single_entry(metadata, "topics")
            partitions = topic["partitions"][:1] if topic["errorCode"] == errors.NONE else []
            if partitions:
                self._cleanup.created(name)
            # Before Metadata version 7 there is no leader epoch, and later an unknown one is -1: both count as epoch 0.
            epoch = max(partitions[0].get("leaderEpoch", 0), 0) if partitions else UNDEFINED
            # No such topic yet, no leader (-1), or still the one before the election that is waited for.
            if not partitions or partitions[0]["leaderId"] < 0 or epoch <= behind:
                return None
            connection = self._connection_to(partitions[0]["leaderId"], metadata["brokers"])
            partition = ProbePartition(connection, name, topic.get("topicId") or UUID(int=0), epoch)
            return partition if self._serves(partition) else None

        partition = self.until(serving, lambda ready_partition: ready_partition is not None)
        if partition is None:
            expected = f"a leader after epoch {behind}" if behind >= 0 else "a leader"
            raise NeverReadyError(f"topic {name}: expected {expected} that serves it within {self._patience:g} s; seen none")
        return partition

    def until(self, look: Callable[[], T], is_met: Callable[[T], bool]) -> T:
        """Call `look` until `is_met` is true of its result, or patience is over; return the last result in either case."""
        deadline = time.monotonic() + self._patience
        while not is_met(result := look()) and time.monotonic() < deadline:
            self._pause(POLL_SECONDS)
        return result

    def brokers(self) -> list[int]:
        """Return the ids of the brokers that Metadata names, in order."""
        return sorted(broker["nodeId"] for broker in self._metadata()["brokers"])

    def administer(self, name: str, body: dict[str, Any]) -> None:
        """Send a request, called `name`, that changes the replicas or the leader of one of the probe's topics.

        Whether it was granted is not looked at: the caller waits for the result in the metadata. Raises UndecidedError.
        """
        if name not in self.first.versions:
            raise UndecidedError(f"leaders could not be changed: ApiVersions does not offer {name}")
        call = WireRequest(name, self.first.versions[name].stop - 1, {**body, "timeoutMs": 10_000})
        # ElectLeaders in version 0 has no error code for the whole response.
        self._send_to_controller(call, lambda response: int(response.get("errorCode", errors.NONE)))

    @property
    def left(self) -> Mapping[str, str]:
        """The topics that may still exist, and why."""
        return self._cleanup.left

    def close(self, dial: Dial) -> None:
        """Remove the topics and close the sessions, on new connections that `dial` opens."""
        self._dial = dial
        for connection in self._all_connections():
            connection.dial_anew(dial)
        try:
            self._cleanup.run(lambda: self._pause(POLL_SECONDS), self._patience)
            with suppress(NoResponseError):  # the broker has gone, and its sessions with it
                for session in self.sessions:
                    if session.is_open:
                        session.connection.request_leniently(session.closing())
        finally:
            for connection in self._all_connections():
                connection.close()

    def _all_connections(self) -> Iterable[BrokerConnection]:
        """Return the connection to the user's broker, and those to brokers that Metadata named."""
        return (self.first, *self._connections.values())

    def _request_creation(self, name: str, config: Mapping[str, str], replicas: list[int] | None) -> None:
        """Send CreateTopics, and note for the cleanup whether the topic may exist. Arguments as in `create`.

        Raises UndecidedError where the broker refuses, UsageError for a topic that exists, NoResponseError.
        """
        # With an assignment, CreateTopics wants -1 for both numbers.
        assignments = [{"partitionIndex": 0, "brokerIds": replicas}] if replicas else []
        topic = {
            "name": name,
            "numPartitions": -1 if replicas else 1,
            "replicationFactor": -1 if replicas else 1,
            "assignments": assignments,
            "configs": [{"name": key, "value": value} for key, value in config.items()],
        }
        version = self.first.versions["CreateTopics"].stop - 1
        body = {"topics": [topic], "timeoutMs": 10_000, "validateOnly": False}
        try:
            code = self._send_to_controller(WireRequest("CreateTopics", version, body), _error_code_in("topics"))
        except (NoResponseError, KeyboardInterrupt) as problem:
            unanswered = any(connection.unanswered for connection in self._all_connections())
            # The broker may have read the request: the topic may be created at any time until the response.
            if unanswered:
                self._cleanup.uncertain(name)
            # A response that cannot be read fails the check `versions.create-topics`. The other checks are about other
            # responses, and Metadata shows whether the topic exists: go on.
            if unanswered or not isinstance(problem, UnreadableResponseError):
                raise
            return
        # The metadata of this broker may lag behind the controller, which knows the topic.
        if code == errors.TOPIC_ALREADY_EXISTS:
            self._cleanup.forget(name)
            raise _exists_error(name)
        # The controller may create the topic after its response.
        if code == errors.REQUEST_TIMED_OUT:
            self._cleanup.uncertain(name)
        if code != errors.NONE:
            raise UndecidedError(f"a topic with {dict(config)} could not be created: {error_text(code)}")

    def _send_to_controller(self, call: WireRequest, code_in: Callable[[WireMessage], int]) -> int:
        """Send a request that the controller decides; return the error code, which `code_in` reads in the response."""
        code = code_in(self.first.request_leniently(call))
        # A broker with KRaft forwards the request. With ZooKeeper it does not, and metadata names the controller.
        if code == errors.NOT_CONTROLLER:
            metadata = self._metadata()
            controller = self._connection_to(metadata["controllerId"], metadata["brokers"])
            code = code_in(controller.request_leniently(call))
        return code

    def _metadata(self, *names: str, create: bool = False) -> WireMessage:
        """Return the metadata of the brokers and of topics; `create`: the broker shall create those that do not exist."""
        if "Metadata" not in self.first.versions:
            raise UndecidedError("ApiVersions does not offer Metadata")
        return self.first.request_leniently(metadata_call(names, self.first.versions["Metadata"].stop - 1, create=create))

    def _serves(self, partition: ProbePartition) -> bool:
        """Return whether the leader serves the partition: Metadata may name it before it knows itself that it leads."""
        call = partition.list_offsets(LATEST)
        # Given the current leader epoch, which version 4 can carry, a broker with older metadata refuses (KIP-320).
        if call.version >= 4:
            call = partition.list_offsets(LATEST, current=partition.epoch)
        return single_entry(partition.connection.request(call), "topics", "partitions")["errorCode"] not in NOT_YET

    def _connection_to(self, node: int, brokers: list[WireMessage]) -> BrokerConnection:
        """Return the connection to the broker with the id `node`, at the place where Metadata's `brokers` have it.

        Raises NoResponseError if none has this id.
        """
        if node not in self._connections:
            places = {broker["nodeId"]: (broker["host"], broker["port"]) for broker in brokers}
            if node not in places:
                raise NoResponseError(f"Metadata: expected the broker {node} that leads; seen the brokers {sorted(places)}")
            self._check_named(brokers)
            host, port = places[node]
            if not self._is_users_place((host, port)):
                self._note(f"goes on at {visible(host)}:{port}, which Metadata names")
            self._connections[node] = BrokerConnection(self._messages, self._dial, host, port, self._keep)
        return self._connections[node]

    def _check_named(self, brokers: list[WireMessage]) -> None:
        """Raise NoResponseError if Metadata names brokers, but none at the user's place, and others may not be used."""
        # Whoever listens at the other places may be somebody else's broker: nothing may be written to it.
        named = [(broker["host"], broker["port"]) for broker in brokers]
        if named and not self._follow_metadata and not any(map(self._is_users_place, named)):
            places = ", ".join(f"{visible(host)}:{port}" for host, port in named)
            raise NoResponseError(
                f"Metadata: expected a broker at {self._place[0]}:{self._place[1]}, where it was asked; seen {places}; "
                "--follow-metadata goes there"
            )

    def _is_users_place(self, place: tuple[str, int]) -> bool:
        """Return whether a host and a port are those that the user named."""
        return (place[0].lower(), place[1]) == (self._place[0].lower(), self._place[1])

    def _delete(self, name: str) -> int:
        """Request the deletion of a topic; return the error code."""
        offered = self.first.versions.get("DeleteTopics")
        if not offered:
            raise NotOfferedError("ApiVersions does not offer DeleteTopics")
        return self._send_to_controller(delete_topics_call(name, offered.stop - 1), _error_code_in("responses"))

    def _is_named(self, name: str) -> bool:
        """Return whether metadata has a topic; one with another error than those in GONE does exist."""
        return bool(single_entry(self._metadata(name), "topics")["errorCode"] not in GONE)


def metadata_call(names: Iterable[str], version: int, *, create: bool = False) -> WireRequest:
    """Make the request for the metadata of some topics; `create`: the broker shall create those that do not exist."""
    body: WireMessage = {"topics": [{"name": name} for name in names]}
    # Before version 4 the broker's settings decide whether a topic is created.
    return WireRequest("Metadata", version, {**body, "allowAutoTopicCreation": create} if version >= 4 else body)


def delete_topics_call(name: str, version: int) -> WireRequest:
    """Make the request that deletes a topic by its name."""
    # Since version 6 topics may be named by their ids, and have a field of their own (KIP-516).
    body = {"topics": [{"name": name, "topicId": UUID(int=0)}], "topicNames": [name], "timeoutMs": 10_000}
    body.pop("topicNames" if version >= 6 else "topics")
    return WireRequest("DeleteTopics", version, body)


def _error_code_in(field: str) -> Callable[[WireMessage], int]:
    """Return a function that reads the error code of the only topic in a response, whose list of topics is `field`."""
    return lambda response: int(single_entry(response, field)["errorCode"])


def _exists_error(name: str) -> UsageError:
    """Return the error about a topic that exists before the probe has created it: rule 1 of this file."""
    return UsageError(f"topic {name}: expected a name that nobody has; seen that it is there; choose another --seed")
