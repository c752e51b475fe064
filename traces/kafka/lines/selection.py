"""Which part of the logs is read: some topics or partitions, some time, a share of all partitions.

Rules of this file

1. A line about another partition is left out. A line about several (a fetch, a request) keeps what it says of those that are
   read, and what it says of its session: that must not seem to have a gap.
2. What the other lines show of a node stays known: which loggers were on, how topics are called.
3. A partition belongs to one share, whichever process asks (CRC-32 of its name). What a line becomes is worked out for all
   shares at once (`parts`): one share of them is read here (`line`), all are put apart in shares.py.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.phrases import session_of
from tidegauge.traces.kafka.lines.requests import (
    LOGGED,
    NAMES,
    NOT_KAFKAS,
    is_request,
    of_metadata_log,
    partition_of,
    replica_of,
)
from tidegauge.traces.kafka.lines.said import parse

_TP = r"[A-Za-z0-9._\-]+-\d+"
_NAMES_ONE = re.compile(
    rf"(?:Partition |partition[ =]|partition change for |Cache |Leader |Follower |ISR for |load of Log\(dir=[^,]*/)({_TP})"
)
_FETCHED = re.compile(rf"({_TP})=PartitionData\([^)]*\)(?:, )?")
_LEADER = re.compile(r"leaderId=(\d+)")
_TOPIC_ID = re.compile(r"(?:topicId=|topic id Some\(|topic ID )([A-Za-z0-9_\-]{22})")
_API = re.compile(r'"requestApiKey":(\d+)')
_KEPT = ("requestHeader", "totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs")
_UNREAD = frozenset({"clusterId", "nodeEndpoints", "throttleTimeMs", "rackId"})
FETCH = 1
_SAID = {
    "log-loaded": "Log loaded for",
    "high-watermark": "Setting high watermark",
    "log-created": "Created log for",
    "appended": "Appended message set",
    "epoch-entry": "Appended new epoch entry",
    "recorded": "Recorded replica",
    "leader-high-watermark": "High watermark updated",
    "changed": "partition change for",
    "registered": "PartitionRecord for new partition",
}
"""What shows that a logger was on (levels.py), and who the controller is, whichever partition the line is about."""


class Request(NamedTuple):
    """A follower's fetch as its session counts it. `counter` is who does: a fetcher thread, or the leader for a session.

    `opens` is the session that its response names, 0 where the line tells no response.
    """

    counter: tuple[str, ...]
    session: int
    epoch: int
    opens: int = 0


class Parts(NamedTuple):
    """What a line is to the shares of the partitions it names, by share, and to all others: nothing if that is None.

    It is `unnamed` if it names a topic by an id that no line has explained so far: it may be of any share.
    """

    named: Mapping[int, Line] = {}
    rest: Line | None = None
    request: Request | None = None
    unnamed: bool = False


_NOTHING = Parts()


@dataclass
class Selection:
    """What is read; `names` and `heard` are what lines about partitions showed, also those that are left out.

    `heard` is by file and by the share that the partition belongs to. `apart` is where the logs lie share by share, if they
    have been put there (shares.py).
    """

    topics: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    begin: int | None = None
    end: int | None = None
    share: tuple[int, int] = (0, 1)
    apart: str = ""
    names: dict[str, str] = field(default_factory=dict)
    heard: dict[str, dict[int | None, set[str]]] = field(default_factory=dict)
    _shares: dict[str, int | None] = field(default_factory=dict, repr=False)

    def share_of(self, tp: str) -> int | None:
        """The share that a partition belongs to; None if it is not read at all."""
        if tp not in self._shares:
            named = not (self.topics or self.partitions) or tp in self.partitions or tp.rpartition("-")[0] in self.topics
            self._shares[tp] = crc32(tp.encode()) % self.share[1] if named else None
        return self._shares[tp]

    def wants(self, tp: str) -> bool:
        """Whether a partition is read."""
        return self.share_of(tp) == self.share[0]

    def anew(self) -> "Selection":
        """The same part of other logs."""
        return Selection(self.topics, self.partitions, self.begin, self.end, self.share, self.apart)

    @property
    def everything(self) -> bool:
        """Whether all partitions are read."""
        return not (self.topics or self.partitions) and self.share[1] == 1

    def overheard(self, file: str) -> set[str]:
        """What the lines of a file that are left out showed."""
        return {what for share, of in self.heard.get(file, {}).items() if share != self.share[0] for what in of}

    def line(self, line: Line) -> Line | None:
        """The line as far as it is read."""
        parts = self.parts(line)
        return parts.named.get(self.share[0], parts.rest)

    def parts(self, line: Line) -> Parts:
        """The line as far as each share reads it."""
        if (self.begin is not None and line.time < self.begin) or (self.end is not None and line.time > self.end):
            return _NOTHING
        if self.everything:
            return Parts(rest=line)
        if is_request(line):
            return self._request(line)
        if "Sending fetch request" in line.message:
            return self._sending(line)
        found = _NAMES_ONE.search(line.message)
        if found is not None:
            self._learn(line, found[1])
        said = parse(line)
        if said is None:
            return _NOTHING
        if found is None and not said.tp:
            return Parts(rest=line)
        if found is None:
            self._learn(line, said.tp)
        share = self.share_of(said.tp or (found[1] if found is not None else ""))
        if share is None or (found is not None and self.share_of(found[1]) != share):
            return _NOTHING
        return Parts({share: line})

    def _sending(self, line: Line) -> Parts:
        """A fetch as its sender logs it: each share has the partitions of its own, the others only its session."""
        leader = _LEADER.search(line.message)
        try:
            request = Request((line.thread, leader[1] if leader is not None else ""), *session_of(line.message))
        except ValueError:
            request = None  # no number of Kafka's: whoever reads the line says so
        shares = set()
        for found in _FETCHED.finditer(line.message):
            shares.add(self.share_of(found[1]))
            topic_id = _TOPIC_ID.search(found[0])
            if topic_id is not None:
                self.names[topic_id[1]] = found[1].rpartition("-")[0]
        if not shares:
            return Parts(rest=line, request=request)

        def of(share: int | None) -> Line:
            kept = _FETCHED.sub(lambda found: found[0] if self.share_of(found[1]) == share else "", line.message)
            return replace(line, message=kept)

        named = {share: of(share) for share in shares if share is not None}
        return Parts(named, replace(line, message=_FETCHED.sub("", line.message)), request)

    def _learn(self, line: Line, tp: str) -> None:
        """What a line shows also to those who do not read it."""
        heard = self.heard.setdefault(line.file, {}).setdefault(self.share_of(tp), set())
        if len(heard) < len(_SAID):
            heard.update(what for what, words in _SAID.items() if what not in heard and words in line.message)
        topic_id = _TOPIC_ID.search(line.message)
        if topic_id is not None:
            self.names[topic_id[1]] = tp.rpartition("-")[0]

    def _request(self, line: Line) -> Parts:
        """The request as each share reads it; for the others it only counts for its session, if it is a follower's."""
        api = _API.search(line.message, 0, 400)
        if api is not None and int(api[1]) not in NAMES:
            return _NOTHING
        try:
            document = json.loads(line.message[line.message.index("{") :])
            if api is not None and int(api[1]) == FETCH and of_metadata_log(document["request"]):
                return _NOTHING
            shares: set[int | None] = set()
            rest, left = self._slim(line, document, None, shares)
            named = {share: self._slim(line, document, share)[0] for share in shares if share is not None}
            body, response = document["request"], document["response"]
            follows = replica_of(body) >= 0 and api is not None and int(api[1]) == FETCH
            session, epoch, opens = (
                int(body.get("sessionId", 0)),
                int(body.get("sessionEpoch", -1)),
                int(response.get("sessionId", 0)),
            )
            request = Request((str(session),), session, epoch, opens) if follows else None
        except NOT_KAFKAS:
            return Parts(rest=line)  # whoever reads it says what is wrong with it
        return Parts(named, rest if left or follows else None, request, left)

    def _slim(self, line: Line, document: Any, share: int | None, seen: set[int | None] | None = None) -> tuple[Line, bool]:
        """The request with the partitions of a share, and whether it has any; `seen` takes the shares of all."""
        slim = {key: document[key] for key in _KEPT if key in document}
        left = False
        for key in ("request", "response"):
            parts = document[key].items()
            slim[key] = {name: self._topics(value, share, seen) for name, value in parts if name not in _UNREAD}
            left = left or any(isinstance(value, list) and value for value in slim[key].values())
        return replace(line, message=f"{LOGGED}:{json.dumps(slim)}"), left

    def _topics(self, value: Any, share: int | None, seen: set[int | None] | None) -> Any:
        """A list of topics without those, and their partitions, that are of other shares; anything else as it is."""
        if not isinstance(value, list):
            return value
        return [left for topic in value if (left := self._topic(topic, share, seen)) is not None]

    def _topic(self, topic: Any, share: int | None, seen: set[int | None] | None) -> Any:
        if not isinstance(topic, dict):
            return topic
        name = topic.get("topic") or topic.get("name") or topic.get("topicName") or self.names.get(str(topic.get("topicId")))
        if not isinstance(name, str):
            return topic
        slim = dict(topic)
        for key, parts in topic.items():
            if isinstance(parts, list):
                of = [self.share_of(f"{name}-{partition_of(part)}") for part in parts]
                if seen is not None:
                    seen.update(of)
                slim[key] = [part for part, its in zip(parts, of, strict=True) if its == share is not None]
                if not slim[key]:
                    return None
        return slim
