"""Topics of the probe's own, and its fetch sessions: made, waited for, taken away at the end.

Rules of this file

1. A topic that is there already is somebody else's: it is not touched, and ends the probe.
2. A topic is ready when its leader serves it. Metadata says who leads, also to a broker that does not.
3. Sessions are closed after the topics have gone. One that is not is no loss: a broker that has no slot left for another
   gives it up (KIP-227).
"""

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Any, TypeVar
from uuid import UUID

from tidegauge.drive.probe.connection import Dial, Exchange, Link, LinkError, only
from tidegauge.drive.probe.partition import LATEST, NotOfferedError, Partition
from tidegauge.drive.probe.removal import Removal
from tidegauge.drive.probe.session import Session
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.drive.wire.messages import Messages
from tidegauge.impl import error_codes
from tidegauge.impl.error_codes import error_text
from tidegauge.impl.errors import UsageError
from tidegauge.impl.rules import UNDEFINED

T = TypeVar("T")

NOT_YET = frozenset(
    {
        error_codes.UNKNOWN_TOPIC_OR_PARTITION,
        error_codes.LEADER_NOT_AVAILABLE,
        error_codes.NOT_LEADER_OR_FOLLOWER,
        error_codes.UNKNOWN_TOPIC_ID,
        error_codes.FENCED_LEADER_EPOCH,
        error_codes.UNKNOWN_LEADER_EPOCH,
    }
)
"""What a broker says of a partition while metadata is on its way."""

GONE = frozenset({error_codes.UNKNOWN_TOPIC_OR_PARTITION, error_codes.UNKNOWN_TOPIC_ID})
"""What metadata says of a topic that is not there."""

KEPT: Mapping[str, str] = {"retention.ms": "-1", "retention.bytes": "-1", "cleanup.policy": "delete"}
"""How topics are set unless a check says otherwise: nothing goes by itself."""

MOMENT, PATIENCE = 0.02, 15.0


class UndecidedError(Exception):
    """A check has nothing to look at."""


class Topics:
    """What the probe makes at a broker. `dial` opens connections, `keep` is given every exchange."""

    def __init__(
        self,
        messages: Messages,
        dial: Dial,
        place: tuple[str, int],
        keep: Callable[[Exchange], None],
        pause: Callable[[float], None] = time.sleep,
        patience: float = PATIENCE,
    ) -> None:
        self._messages, self._dial, self._keep, self._pause, self._patience = messages, dial, keep, pause, patience
        self.first = Link(messages, dial, *place, keep)
        self._links: dict[int, Link] = {}
        self.sessions: list[Session] = []
        self._removal = Removal(self._deleted, self._is_named)

    def create(self, name: str, config: Mapping[str, str], replicas: list[int] | None = None) -> Partition:
        """A topic of one partition. Raises UndecidedError; UsageError for one that is there; NotOfferedError for replicas
        or a setting that one which Metadata creates has not."""
        creates = "CreateTopics" in self.first.versions
        if not creates and (replicas or dict(config) != KEPT):
            others = (f"{key}={value}" for key, value in config.items() if KEPT.get(key) != value)
            asked = f"replicas on {replicas}" if replicas else ", ".join(others)
            raise NotOfferedError(f"CreateTopics: needs version 0 or newer for {asked}; ApiVersions offers none")
        if only(self._metadata(name), "topics")["errorCode"] == error_codes.NONE:
            raise _there(name)
        self._removal.expect(name)
        if creates:
            self._created(name, config, replicas)
        else:
            self._removal.uncertain(name)  # the response comes before the topic
            self._metadata(name, create=True)
        return self.ready(name)

    def ready(self, name: str, behind: int = UNDEFINED) -> Partition:
        """The partition, when its leader says that it leads, in a leader epoch behind a given one."""

        def serving() -> Partition | None:
            found = self._metadata(name)
            topic = only(found, "topics")
            known = topic["partitions"][:1] if topic["errorCode"] == error_codes.NONE else []
            if known:
                self._removal.created(name)
            epoch = max(known[0].get("leaderEpoch", 0), 0) if known else UNDEFINED
            if not known or known[0]["leaderId"] < 0 or epoch <= behind:
                return None
            link = self._link(known[0]["leaderId"], found["brokers"])
            partition = Partition(link, name, topic.get("topicId") or UUID(int=0), epoch)
            return partition if self._serves(partition) else None

        partition = self.until(serving, lambda seen: seen is not None)
        if partition is None:
            which = f"a leader behind epoch {behind}" if behind >= 0 else "a leader"
            raise UndecidedError(f"topic {name}: expected {which} that serves it within {self._patience:g} s; seen none")
        return partition

    def until(self, look: Callable[[], T], met: Callable[[T], bool]) -> T:
        """Look until it is so, but not for ever; what was seen last."""
        deadline = time.monotonic() + self._patience
        while not met(seen := look()) and time.monotonic() < deadline:
            self._pause(MOMENT)
        return seen

    def brokers(self) -> list[int]:
        """Their ids, in order."""
        return sorted(one["nodeId"] for one in self._metadata()["brokers"])

    def administer(self, name: str, body: dict[str, Any]) -> None:
        """A request about a topic of the probe's own, of which the metadata shows what came of it."""
        if name not in self.first.versions:
            raise UndecidedError(f"leaders could not be changed: ApiVersions does not offer {name}")
        call = WireRequest(name, self.first.versions[name].stop - 1, {**body, "timeoutMs": 10_000})
        self._decided(call, lambda response: int(response.get("errorCode", error_codes.NONE)))

    @property
    def left(self) -> Mapping[str, str]:
        """Topics that may be there, and why."""
        return self._removal.left

    def close(self, dial: Dial) -> None:
        """Take away what was made, on connections that `dial` opens and on which nothing is under way."""
        self._dial = dial
        for link in self._all_links():
            link.dial_anew(dial)
        try:
            self._removal.run(lambda: self._pause(MOMENT), self._patience)
            with suppress(LinkError):  # the broker is away, and its sessions with it
                for session in self.sessions:
                    if session.is_open:
                        session.link.arrange(session.closing())
        finally:
            for link in self._all_links():
                link.close()

    def _all_links(self) -> Iterable[Link]:
        return (self.first, *self._links.values())

    def _created(self, name: str, config: Mapping[str, str], replicas: list[int] | None) -> None:
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
            code = self._decided(WireRequest("CreateTopics", version, body), _of_the_one("topics"))
        except (LinkError, KeyboardInterrupt):
            if any(link.unanswered for link in self._all_links()):
                self._removal.uncertain(name)
            raise
        if code == error_codes.TOPIC_ALREADY_EXISTS:  # the controller knows, where this broker's metadata lags
            self._removal.forget(name)
            raise _there(name)
        if code == error_codes.REQUEST_TIMED_OUT:
            self._removal.uncertain(name)
        if code != error_codes.NONE:
            raise UndecidedError(f"a topic with {dict(config)} could not be created: {error_text(code)}")

    def _decided(self, call: WireRequest, code_in: Callable[[WireMessage], int]) -> int:
        """The error code in the response; a broker that sends nothing on, as Kafka with ZooKeeper, says who decides."""
        code = code_in(self.first.arrange(call))
        if code == error_codes.NOT_CONTROLLER:
            found = self._metadata()
            controller = self._link(found["controllerId"], found["brokers"])
            code = code_in(controller.arrange(call))
        return code

    def _metadata(self, *names: str, create: bool = False) -> WireMessage:
        if "Metadata" not in self.first.versions:
            raise UndecidedError("ApiVersions does not offer Metadata")
        body = {"topics": [{"name": name} for name in names], "allowAutoTopicCreation": create}
        return self.first.arrange(WireRequest("Metadata", self.first.versions["Metadata"].stop - 1, body))

    def _serves(self, partition: Partition) -> bool:
        call = partition.list_offsets(LATEST)
        if call.version >= 4:
            call = partition.list_offsets(LATEST, current=partition.epoch)
        return only(partition.link.ask(call), "topics", "partitions")["errorCode"] not in NOT_YET

    def _link(self, node: int, brokers: list[WireMessage]) -> Link:
        if node not in self._links:
            at = {one["nodeId"]: (one["host"], one["port"]) for one in brokers}
            if node not in at:
                raise LinkError(f"Metadata: expected the broker {node} that leads; seen the brokers {sorted(at)}")
            self._links[node] = Link(self._messages, self._dial, *at[node], self._keep)
        return self._links[node]

    def _deleted(self, name: str) -> int:
        offered = self.first.versions.get("DeleteTopics")
        if not offered:
            raise NotOfferedError("ApiVersions does not offer DeleteTopics")
        body = {"topics": [{"name": name, "topicId": UUID(int=0)}], "topicNames": [name], "timeoutMs": 10_000}
        version = offered.stop - 1
        body.pop("topicNames" if version >= 6 else "topics")
        return self._decided(WireRequest("DeleteTopics", version, body), _of_the_one("responses"))

    def _is_named(self, name: str) -> bool:
        return bool(only(self._metadata(name), "topics")["errorCode"] not in GONE)


def _of_the_one(field: str) -> Callable[[WireMessage], int]:
    """The error code of the one topic that a request was about."""
    return lambda response: int(only(response, field)["errorCode"])


def _there(name: str) -> UsageError:
    return UsageError(f"topic {name}: expected a name that nobody has; seen that it is there; choose another --seed")
