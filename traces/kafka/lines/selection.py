"""Which part of the logs is read: some topics or partitions, some time, a share of all partitions.

Rules of this file

1. A line about another partition is left out. A line about several (a fetch, a request) keeps what it says of those that are
   read, and what it says of its session: that must not seem to have a gap.
2. What the other lines show of a node stays known: which loggers were on, how topics are called.
3. A partition belongs to one share, whichever process asks (CRC-32 of its name).
"""

import json
import re
from dataclasses import dataclass, field, replace
from typing import Any
from zlib import crc32

from tidegauge.traces.kafka.lines.lines import Line
from tidegauge.traces.kafka.lines.requests import NAMES, NOT_KAFKAS, partition_of, replica_of
from tidegauge.traces.kafka.lines.said import parse

_TP = r"[A-Za-z0-9._\-]+-\d+"
_NAMES_ONE = re.compile(
    rf"(?:Partition |partition[ =]|partition change for |Cache |Leader |Follower |ISR for |load of Log\(dir=[^,]*/)({_TP})"
)
_FETCHED = re.compile(rf"({_TP})=PartitionData\([^)]*\)(?:, )?")
_TOPIC_ID = re.compile(r"(?:topicId=|topic id Some\(|topic ID )([A-Za-z0-9_\-]{22})")
_API = re.compile(r'"requestApiKey":(\d+)')
_REQUEST = "Completed request"
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


@dataclass
class Selection:
    """What is read; `names` and `heard` are what the lines that are left out showed."""

    topics: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    begin: int | None = None
    end: int | None = None
    share: tuple[int, int] = (0, 1)
    names: dict[str, str] = field(default_factory=dict)
    heard: dict[str, set[str]] = field(default_factory=dict)
    _known: dict[str, bool] = field(default_factory=dict, repr=False)

    def wants(self, tp: str) -> bool:
        """Whether a partition is read."""
        known = self._known.get(tp)
        if known is None:
            named = not (self.topics or self.partitions) or tp in self.partitions or tp.rpartition("-")[0] in self.topics
            which, shares = self.share
            known = self._known[tp] = named and (shares == 1 or crc32(tp.encode()) % shares == which)
        return known

    def anew(self) -> "Selection":
        """The same part of other logs."""
        return Selection(self.topics, self.partitions, self.begin, self.end, self.share)

    @property
    def everything(self) -> bool:
        """Whether all partitions are read."""
        return not (self.topics or self.partitions) and self.share[1] == 1

    def line(self, line: Line) -> Line | None:
        """The line as far as it is read."""
        if (self.begin is not None and line.time < self.begin) or (self.end is not None and line.time > self.end):
            return None
        if self.everything:
            return line
        if line.logger == "logger" and line.message.startswith(_REQUEST):
            return self._request(line)
        if "Sending fetch request" in line.message:
            return replace(line, message=_FETCHED.sub(self._fetched, line.message))
        found = _NAMES_ONE.search(line.message)
        if found is not None and not self.wants(found[1]):
            self._learn(line, found[1])
            return None
        said = parse(line)
        if said is None:
            return None
        if said.tp and not self.wants(said.tp):
            self._learn(line, said.tp)
            return None
        return line

    def _fetched(self, found: re.Match[str]) -> str:
        topic_id = _TOPIC_ID.search(found[0])
        if topic_id is not None:
            self.names[topic_id[1]] = found[1].rpartition("-")[0]
        return found[0] if self.wants(found[1]) else ""

    def _learn(self, line: Line, tp: str) -> None:
        """What a line about another partition shows all the same."""
        heard = self.heard.setdefault(line.file, set())
        if len(heard) < len(_SAID):
            heard.update(what for what, words in _SAID.items() if what not in heard and words in line.message)
        topic_id = _TOPIC_ID.search(line.message)
        if topic_id is not None:
            self.names[topic_id[1]] = tp.rpartition("-")[0]

    def _request(self, line: Line) -> Line | None:
        """The request without other partitions; without any it only counts for its session, if it is a follower's."""
        api = _API.search(line.message, 0, 400)
        if api is not None and int(api[1]) not in NAMES:
            return None
        try:
            document = json.loads(line.message[line.message.index("{") :])
            slim = {key: document[key] for key in _KEPT if key in document}
            left = False
            for key in ("request", "response"):
                slim[key] = {name: self._topics(value) for name, value in document[key].items() if name not in _UNREAD}
                left = left or any(isinstance(value, list) and value for value in slim[key].values())
            follows = replica_of(slim["request"]) >= 0 and api is not None and int(api[1]) == FETCH
        except NOT_KAFKAS:
            return line  # whoever reads it says what is wrong with it
        return replace(line, message=f"{_REQUEST}:{json.dumps(slim)}") if left or follows else None

    def _topics(self, value: Any) -> Any:
        """A list of topics without those, and their partitions, that are not read; anything else as it is."""
        if not isinstance(value, list):
            return value
        return [left for topic in value if (left := self._topic(topic)) is not None]

    def _topic(self, topic: Any) -> Any:
        if not isinstance(topic, dict):
            return topic
        name = topic.get("topic") or topic.get("name") or topic.get("topicName") or self.names.get(str(topic.get("topicId")))
        if not isinstance(name, str):
            return topic
        slim = dict(topic)
        for key, parts in topic.items():
            if isinstance(parts, list):
                slim[key] = [part for part in parts if self.wants(f"{name}-{partition_of(part)}")]
                if not slim[key]:
                    return None
        return slim
