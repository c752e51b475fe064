"""Fetches of peers in a session (KIP-227) on the wire, as a follower's FetchSessionHandler makes them.

Rules of this file

1. A peer's session has the partition that is driven and another one. A full request names both; an incremental one names
   the partition only if the session does not have it, or has it with another offset or epoch.
2. What a session has is known from the requests that were not refused, also while they wait. The session id is that of the
   last session that was given, also when its process is gone.
"""

from typing import Any, NamedTuple

from tidegauge.drive.kafka_broker.clients import Topic
from tidegauge.drive.kafka_broker.followers import Read
from tidegauge.drive.wire.compiler import Message
from tidegauge.drive.wire.frames import Call
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.sessions.fetch_metadata import INVALID_SESSION_ID, FetchMetadata

FROM_THE_START: Message = {"fetchOffset": 0, "currentLeaderEpoch": UNDEFINED, "lastFetchedEpoch": UNDEFINED}


class Session(NamedTuple):
    """A peer's: its id, and the partition as it was named last, None where the session does not have it."""

    id: int = INVALID_SESSION_ID
    partition: Message | None = None


class FetchSessions:
    """The sessions of the peers of one partition."""

    def __init__(self, topic: Topic, other: Topic) -> None:
        self._topic, self._other = topic, other
        self._sessions: dict[int, Session] = {}

    def fetch(self, peer: int, full: Call, session_epoch: int, *, wanted: bool) -> tuple[Call, Read]:
        """A full fetch of the partition as one with a session epoch, with `wanted` off one of the other partition alone; and
        how its response is read: what it says of the partition. An error of the whole stands for one of the partition.
        """
        before = self._sessions.get(peer, Session())
        (topic,) = full.body["topics"]
        partition = topic["partitions"][0] if wanted else None
        named, forgotten, opens = ([topic] if wanted else []), {}, FetchMetadata(before.id, session_epoch).is_full
        if opens:
            named.append({"topicId": self._other.id, "partitions": [topic["partitions"][0] | FROM_THE_START]})
        elif partition == before.partition:
            named = []
        elif not wanted:
            forgotten = {"forgottenTopicsData": [{"topicId": self._topic.id, "partitions": [0]}]}
        body = {**full.body, "sessionId": before.id, "sessionEpoch": session_epoch, "topics": named, **forgotten}
        after = self._sessions[peer] = Session(before.id, partition)

        def read(response: Message) -> Message | None:
            if response["errorCode"] != NONE:
                if self._sessions[peer] is after:
                    self._sessions[peer] = before
                return {"errorCode": response["errorCode"]}
            if opens and response["sessionId"] != INVALID_SESSION_ID:
                self._sessions[peer] = Session(response["sessionId"], partition)
            here: list[Any] = [one for one in response["responses"] if one["topicId"] == self._topic.id]
            return here[0]["partitions"][0] if here else None

        return full._replace(body=body), read
