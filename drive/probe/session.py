"""A fetch session (KIP-227): what a broker keeps of a client's fetch, so that the next request names only what changed.

Rules of this file

1. A full fetch names every partition; its session epoch is 0 where a session is asked for, -1 where none is. Either closes
   the session that it names. An incremental one has the epoch that comes next.
2. Offsets, limits and epochs are those that were named last, until another request names the partition.
"""

from collections.abc import Iterable

from tidegauge.drive.probe.connection import Link
from tidegauge.drive.probe.partition import Partition
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.drive.wire.frames import WireRequest
from tidegauge.impl.sessions.fetch_metadata import FINAL_EPOCH, INITIAL_EPOCH, INVALID_SESSION_ID, next_epoch


class Session:
    """A session of a broker. `epoch` is that of its next request, `is_open` whether the broker may still have it.

    `opening`: the request that asked for it, whose limits all others have; `opened`: the response.
    """

    def __init__(self, link: Link, opening: WireRequest, opened: WireMessage) -> None:
        self.link, self.opening, self.opened = link, opening, opened
        self.id: int = opened["sessionId"]
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.is_open = True

    def next(self, *changed: WireRequest, forget: Iterable[Partition] = ()) -> WireRequest:
        """The next incremental fetch."""
        call = self.at(self.epoch, *changed, forget=forget)
        self.epoch = next_epoch(self.epoch)
        return call

    def at(self, epoch: int, *changed: WireRequest, forget: Iterable[Partition] = ()) -> WireRequest:
        """A fetch with some epoch; the session is what it was."""
        return fetch_of(self.opening, *changed, session=self.id, epoch=epoch, forget=forget)

    def closing(self) -> WireRequest:
        """A full fetch of nothing, that asks for no other session."""
        self.is_open = False
        return self.at(FINAL_EPOCH)

    def replaced(self) -> WireRequest:
        """A full fetch of the same, that asks for another session."""
        self.is_open = False
        return self.opening._replace(body={**self.opening.body, "sessionId": self.id})


def asking(first: WireRequest, *others: WireRequest) -> WireRequest:
    """A full fetch of what some fetches name, in their order, that asks for a session."""
    return fetch_of(first, first, *others, session=INVALID_SESSION_ID, epoch=INITIAL_EPOCH)


def fetch_of(
    like: WireRequest, *fetches: WireRequest, session: int, epoch: int, forget: Iterable[Partition] = ()
) -> WireRequest:
    """A fetch in the version and with the limits of one, of what some name."""
    named = [topic for one in fetches for topic in one.body["topics"]]
    forgotten = [{"topicId": one.id, "topic": one.name, "partitions": [0]} for one in forget]
    body = {**like.body, "sessionId": session, "sessionEpoch": epoch, "topics": named}
    return like._replace(body={**body, **({"forgottenTopicsData": forgotten} if forgotten else {})})
