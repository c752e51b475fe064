"""A fetch session (KIP-227): the broker remembers a client's fetch, so that the next request names only what has changed.

Rules of this file

1. A full fetch names every partition. Its session epoch is 0 to ask for a session, -1 to ask for none; either closes the
   session that it names. An incremental fetch has the next session epoch.
2. Offsets, limits and leader epochs of a partition stay as they were last named.
"""

from collections.abc import Iterable

from tidegauge.drive.probe.connection import BrokerConnection
from tidegauge.drive.probe.partition import ProbePartition
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.sessions.fetch_metadata import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID, next_session_epoch


class ProbeSession:
    """The client's side of a fetch session. `epoch`: of its next request; `is_open`: whether the broker may still have it.

    `opening`: the request that asked for it, whose limits all others have; `opened`: the response.
    """

    def __init__(self, connection: BrokerConnection, opening: WireRequest, opened: WireMessage) -> None:
        self.connection, self.opening, self.opened = connection, opening, opened
        self.id: int = opened["sessionId"]
        self.epoch = next_session_epoch(INITIAL_EPOCH)
        self.is_open = True

    def next(self, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make the next incremental fetch: with these partitions changed, without those to forget."""
        call = self.at(self.epoch, *changed, forget=forget)
        self.epoch = next_session_epoch(self.epoch)
        return call

    def at(self, epoch: int, *changed: WireRequest, forget: Iterable[ProbePartition] = ()) -> WireRequest:
        """Make a fetch with any session epoch, and leave the session's as it is."""
        return session_fetch(self.opening, *changed, session=self.id, epoch=epoch, forget=forget)

    def closing(self) -> WireRequest:
        """Make a full fetch of nothing that closes the session and asks for no other."""
        self.is_open = False  # not closed a second time at the end
        return self.at(FINAL_EPOCH)

    def replaced(self) -> WireRequest:
        """Make a full fetch of the same that closes the session and asks for another."""
        self.is_open = False
        return self.opening._replace(body={**self.opening.body, "sessionId": self.id})


def opening_fetch(first: WireRequest, *others: WireRequest) -> WireRequest:
    """Make a full fetch of the partitions of some fetches, in their order, that asks for a session."""
    return session_fetch(first, first, *others, session=INVALID_SESSION_ID, epoch=INITIAL_EPOCH)


def session_fetch(
    like: WireRequest, *fetches: WireRequest, session: int, epoch: int, forget: Iterable[ProbePartition] = ()
) -> WireRequest:
    """Make a fetch of the partitions of `fetches`, with the version and the limits of `like`."""
    named = [topic for one in fetches for topic in one.body["topics"]]
    forgotten = [{"topicId": one.id, "topic": one.name, "partitions": [0]} for one in forget]
    body = {**like.body, "sessionId": session, "sessionEpoch": epoch, "topics": named}
    return like._replace(body={**body, **({"forgottenTopicsData": forgotten} if forgotten else {})})
