"""Select a part of the logs: some topics or partitions, some time, a shard of all partitions.

A *shard* is one of so many parts that all partitions are divided into, to be judged one after the other or at once. In: a
line. Out: the line as each shard reads it, or nothing; and notes on what lines outside of the selection showed of a node.

Rules of this file

1. A line about another partition is left out. A line about several (a fetch, a request) keeps what it has of those that are
   read, and of its session, which must not seem to have a gap.
2. What the other lines show of a node is noted: which loggers were on, how topics are named.
3. A partition belongs to one shard, the same in every process (CRC-32 of its name). What a line becomes is computed for all
   shards at once (`by_shard`): shards.py reads that of one shard, or writes all of them.
"""

import json
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple
from zlib import crc32

from tidegauge.traces.kafka_logs.parsing.lines import Gap, Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import TP_IN_A_LIST, parse_line, session_of
from tidegauge.traces.kafka_logs.parsing.request_log import (
    LOGGED,
    NAMES,
    NOT_KAFKAS,
    is_request,
    of_metadata_log,
    partition_of,
    replica_of,
)
from tidegauge.traces.kafka_logs.parsing.timestamps import moment
from tidegauge.util.errors import UsageError

_TP = r"(?>[A-Za-z0-9._\-]+-\d+)"
NAMES_ONE = re.compile(
    rf"(?:Partition |partition[ =]|partition change for |Cache |Leader |Follower |ISR for |load of Log\(dir=[^,(]*/)({_TP})"
)
"""A line about one partition; [1] is the partition."""
_FETCHED = re.compile(rf"{TP_IN_A_LIST}=PartitionData\([^()]*\)(?:, )?")
_LEADER = re.compile(r"leaderId=(\d+)")
TOPIC_ID = re.compile(r"(?:topicId=|topic id Some\(|topic ID )([A-Za-z0-9_\-]{22})")
_API = re.compile(r'"requestApiKey":(\d+)')
_READ_FIELDS = ("requestHeader", "connection", "totalTimeMs", "requestQueueTimeMs", "localTimeMs", "remoteTimeMs")
"""Fields of a document of the request log that are read, beside `request` and `response`."""
_UNREAD = frozenset({"clusterId", "nodeEndpoints", "throttleTimeMs", "rackId"})
"""Fields of these two that are not."""
FETCH = 1
"""The API key of a fetch."""
KIND_TEXTS = {
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
"""Texts of lines that show that a logger was on (log_coverage.py), and which node is the controller, for any partition."""


class SessionRequest(NamedTuple):
    """A fetch as its session counts it; `counter` is the fetcher thread, or the session at a leader.

    `opens` is the session that its response names, 0 if the line has no response.
    """

    counter: tuple[str, ...]
    session: int
    epoch: int
    opens: int = 0


class LineByShard(NamedTuple):
    """A line as each shard reads it: `named` by the shards of its partitions, `rest` for all others (None: nothing).

    `request` is the fetch that it is, if it is one. It is `unnamed` if it has a topic id without a name so far: it may be of
    any shard. A line `of_another_time` is outside the times that are read.
    """

    named: Mapping[int, Line] = {}
    rest: Line | None = None
    request: SessionRequest | None = None
    unnamed: bool = False
    of_another_time: bool = False


_NOTHING, _OF_ANOTHER_TIME = LineByShard(), LineByShard(of_another_time=True)
"""A line that no shard reads."""


@dataclass
class Selection:
    """What is read: topics and partitions (none named: all), between two times, of one `shard` (number, number of shards).

    `names` (topics by id) and `kinds` are what all lines about partitions showed, also those that are left out. `kinds` are
    kinds of lines by file and by shard of the partition. `shard_dir` has the logs by shard, if they were split (shards.py).
    `gaps` are those that other shards show, each with the folder of its cluster: they make what fails here undecided, too.
    """

    topics: frozenset[str] = frozenset()
    partitions: frozenset[str] = frozenset()
    begin: int | None = None
    end: int | None = None
    shard: tuple[int, int] = (0, 1)
    shard_dir: str = ""
    gaps: tuple[tuple[str, Gap], ...] = ()
    names: dict[str, str] = field(default_factory=dict)
    kinds: dict[str, dict[int | None, set[str]]] = field(default_factory=dict)
    _shards: dict[str, int | None] = field(default_factory=dict, repr=False)

    def shard_of(self, tp: str) -> int | None:
        """Return the number of a partition's shard; None if its topic is not selected."""
        if tp not in self._shards:
            selects_all = not (self.topics or self.partitions)
            selected = selects_all or tp in self.partitions or tp.rpartition("-")[0] in self.topics
            _, number_of_shards = self.shard
            self._shards[tp] = crc32(tp.encode()) % number_of_shards if selected else None
        return self._shards[tp]

    def wants(self, tp: str) -> bool:
        """Return whether a partition is selected, and of this shard."""
        return self.shard_of(tp) == self.shard[0]

    def fresh_copy(self) -> "Selection":
        """Copy the selection for other logs, without what these showed."""
        return Selection(self.topics, self.partitions, self.begin, self.end, self.shard, self.shard_dir, self.gaps)

    @property
    def chosen(self) -> tuple[object, ...]:
        """What a user has chosen, for a fingerprint."""
        return sorted(self.topics), sorted(self.partitions), self.begin, self.end

    @property
    def everything(self) -> bool:
        """Whether all partitions are read: none is named, and there is one shard."""
        return not (self.topics or self.partitions) and self.shard[1] == 1

    def kinds_left_out(self, file: str) -> set[str]:
        """Return the kinds of those lines of a file that are left out."""
        return {kind for shard, kinds in self.kinds.get(file, {}).items() if shard != self.shard[0] for kind in kinds}

    def by_shard(self, line: Line) -> LineByShard:
        """Return a line as each shard reads it, and note what it shows to shards that do not (rule 2)."""
        if (self.begin is not None and line.time < self.begin) or (self.end is not None and line.time > self.end):
            return _OF_ANOTHER_TIME
        if self.everything:
            return LineByShard(rest=line)
        if is_request(line):
            # A request names its partitions in JSON, and its session may ask for more than it names.
            return self._split_request(line)
        if "Sending fetch request" in line.message:
            return self._split_send(line)
        match = NAMES_ONE.search(line.message)
        named = match[1] if match is not None else ""
        if named:
            self._note_kind(line, named)
        parsed = parse_line(line)
        if parsed is None:
            # It bounds when its thread did what its other lines about the partition say.
            shard = self.shard_of(named) if named else None
            return _NOTHING if shard is None else LineByShard({shard: replace(line, message="")})
        # It is about a process or a session, not about a partition: every shard reads it.
        if not named and not parsed.tp:
            return LineByShard(rest=line)
        if not named:
            self._note_kind(line, parsed.tp)
        shard = self.shard_of(parsed.tp or named)
        # A line that names a partition of another shard than that which its pattern reads is damaged.
        if shard is None or (named and self.shard_of(named) != shard):
            return _NOTHING
        return LineByShard({shard: line})

    def _split_send(self, line: Line) -> LineByShard:
        """Split a fetch as its sender logs it: each shard has its partitions, the others only its session."""
        leader = _LEADER.search(line.message)
        try:
            request = SessionRequest((line.thread, leader[1] if leader is not None else ""), *session_of(line.message))
        except ValueError:
            request = None  # not a number of Kafka's: reported where the line is parsed
        shards = set()
        for fetched in _FETCHED.finditer(line.message):
            shards.add(self.shard_of(fetched[1]))
            topic_id = TOPIC_ID.search(fetched[0])
            if topic_id is not None:
                self.names[topic_id[1]] = fetched[1].rpartition("-")[0]
        if not shards:
            return LineByShard(rest=line, request=request)

        def line_of(shard: int | None) -> Line:
            """Return the line with the partitions of a shard only."""
            message = _FETCHED.sub(lambda fetched: fetched[0] if self.shard_of(fetched[1]) == shard else "", line.message)
            return replace(line, message=message)

        named = {shard: line_of(shard) for shard in shards if shard is not None}
        return LineByShard(named, replace(line, message=_FETCHED.sub("", line.message)), request)

    def _note_kind(self, line: Line, tp: str) -> None:
        """Note what a line about a partition shows also to shards that do not read it: its kind, the name of a topic id."""
        kinds = self.kinds.setdefault(line.file, {}).setdefault(self.shard_of(tp), set())
        if len(kinds) < len(KIND_TEXTS):
            kinds.update(kind for kind, words in KIND_TEXTS.items() if kind not in kinds and words in line.message)
        topic_id = TOPIC_ID.search(line.message)
        if topic_id is not None:
            self.names[topic_id[1]] = tp.rpartition("-")[0]

    def _split_request(self, line: Line) -> LineByShard:
        """Split a request of the request log: each shard has its partitions, the others only a fetch of a session."""
        # The key is near the beginning: requests of kinds that are not read need not be parsed as JSON.
        api = _API.search(line.message, 0, 400)
        if api is not None and int(api[1]) not in NAMES:
            return _NOTHING
        try:
            document = json.loads(line.message[line.message.index("{") :])
            if api is not None and int(api[1]) == FETCH and of_metadata_log(document["request"]):
                return _NOTHING
            shards: set[int | None] = set()
            # With the partitions of no shard only topics are left whose ids have no name so far: every shard reads those.
            for_others, has_unnamed = self._slim(line, document, shard=None, shards=shards)
            named = {shard: self._slim(line, document, shard)[0] for shard in shards if shard is not None}
            body, response = document["request"], document["response"]
            session, epoch, opens = (
                int(body.get("sessionId", 0)),
                int(body.get("sessionEpoch", -1)),
                int(response.get("sessionId", 0)),
            )
            # A consumer's session, too, leaves out what did not change: each request of it may read any partition.
            of_session = api is not None and int(api[1]) == FETCH and (epoch > 0 or opens > 0 or replica_of(body) >= 0)
            request = SessionRequest((str(session),), session, epoch, opens) if of_session else None
        except NOT_KAFKAS:
            return LineByShard(rest=line)  # malformed: reported where it is parsed
        return LineByShard(named, for_others if has_unnamed or of_session else None, request, has_unnamed)

    def _slim(
        self, line: Line, document: Any, shard: int | None, shards: set[int | None] | None = None
    ) -> tuple[Line, bool]:
        """Return the line of a request with the partitions of one shard only, and whether it has any.

        `document` is its JSON. With `shard` None it has those of unknown topics only. The shards of all partitions are added
        to `shards`.
        """
        slim = {key: document[key] for key in _READ_FIELDS if key in document}
        has_partitions = False
        for key in ("request", "response"):
            values = document[key].items()
            slim[key] = {name: self._topics(value, shard, shards) for name, value in values if name not in _UNREAD}
            has_partitions = has_partitions or any(isinstance(value, list) and value for value in slim[key].values())
        return replace(line, message=f"{LOGGED}:{json.dumps(slim)}"), has_partitions

    def _topics(self, value: Any, shard: int | None, shards: set[int | None] | None) -> Any:
        """Return a list of topics without those, and their partitions, of other shards; anything else unchanged.

        For `shard` and `shards` see `_slim`.
        """
        if not isinstance(value, list):
            return value
        return [slim_topic for topic in value if (slim_topic := self._topic(topic, shard, shards)) is not None]

    def _topic(self, topic: Any, shard: int | None, shards: set[int | None] | None) -> Any:
        """Return a topic of a request with only the partitions of a shard, None without any; see `_slim`."""
        if not isinstance(topic, dict):
            return topic
        name = topic.get("topic") or topic.get("name") or topic.get("topicName") or self.names.get(str(topic.get("topicId")))
        # The name of a topic id may be learned from a later file: until then every shard gets the topic.
        if not isinstance(name, str):
            return topic
        slim = dict(topic)
        for key, parts in topic.items():
            if isinstance(parts, list):
                owners = [self.shard_of(f"{name}-{partition_of(part)}") for part in parts]
                if shards is not None:
                    shards.update(owners)
                of_shard = () if shard is None else zip(parts, owners, strict=True)
                slim[key] = [part for part, owner in of_shard if owner == shard]
                if not slim[key]:
                    return None
        return slim


def selection_of(
    topics: Sequence[str] = (), partitions: Sequence[str] = (), begin: str | None = None, end: str | None = None
) -> Selection | None:
    """Return the selection of these topics and partitions between two times, as a user names them; None for everything.

    Raises UsageError for what is no partition or no time.
    """
    if not (topics or partitions or begin or end):
        return None
    for name in partitions:
        if not name.rpartition("-")[0] or not name.rpartition("-")[2].isdecimal():
            raise UsageError(f"partition: expected a topic and a number such as orders-0, seen {name!r}")
    first, last = _moment("from", begin), _moment("to", end)
    if first is not None and last is not None and last < first:
        raise UsageError(f"to: expected a time after {begin}, where it begins, seen {end}")
    return Selection(frozenset(topics), frozenset(partitions), first, last)


def _moment(name: str, text: str | None) -> int | None:
    """Parse the time of an option such as --from, microseconds since 1970. Raises UsageError that names the option."""
    if text is None:
        return None
    time = moment(text)
    if time is None:
        raise UsageError(f"{name}: expected a day and a time such as 2026-11-21T08:27:15, seen {text!r}")
    return time


# Summaries of sessions outside the selection: enough requests to detect a gap in the session epochs, and no more.
#
# 1. A session counts its requests (KIP-227). Of a chain of requests without a gap the first is kept, and the last ones; the
#    one before these summarizes all between. Where the count breaks, both sides of the break are kept.
# 2. A request that was counted already is a copy of a line (merge_streams.py): it is skipped.
# 3. A chain belongs to its counter, a fetcher thread or a session: another request of that thread in between ends it, as it
#    does for a reader of all lines.


LATEST = 3
"""Last requests of a chain that are kept: a 4.x broker that stops sends one or two more than it logs (unmatched.py)."""


@dataclass
class _RequestChain:
    """Requests `first` to `last` of a session: the lines of the `latest` of them, and `between`, the line before these."""

    session: int
    first: int
    last: int
    latest: deque[Line] = field(default_factory=deque)
    between: Line | None = None


@dataclass
class SessionSummaries:
    """The chains of requests in one file, in its order; it yields the lines that stay, some as summaries of others."""

    _open: dict[tuple[str, ...], _RequestChain] = field(default_factory=dict)
    """By counter, the chain that may go on."""
    _ended: dict[tuple[tuple[str, ...], int], list[tuple[int, int]]] = field(default_factory=dict)
    """By counter and session, the first and last request of each chain that has ended."""

    def add(self, line: Line, request: SessionRequest) -> Iterator[Line]:
        """Add a request of a session; yield the lines that are now certain to stay, of this chain and one that it ends."""
        chain = self._open.get(request.counter)
        if chain is not None and chain.session == request.session:
            # The session goes on: the summary takes the request in, and only the latest lines wait, which end it.
            if request.epoch == chain.last + 1:
                chain.last = request.epoch
                chain.latest.append(line)
                if len(chain.latest) > LATEST:
                    chain.between = chain.latest.popleft()
                return
            # A line that was read before: the file is a copy, or two files overlap.
            if chain.first <= request.epoch <= chain.last:
                return
        ended = self._ended.get((request.counter, request.session), ())
        if any(first <= request.epoch <= last for first, last in ended):
            return
        yield from self.end(request.counter)
        self._open[request.counter] = _RequestChain(request.session, request.epoch, request.epoch)
        yield replace(line, summarizes=1)

    def end(self, counter: tuple[str, ...]) -> Iterator[Line]:
        """End the chain of a counter, as another request comes in between; yield the lines that stay of it."""
        chain = self._open.pop(counter, None)
        if chain is not None:
            self._ended.setdefault((counter, chain.session), []).append((chain.first, chain.last))
            # It stands for all requests between the first and the latest ones.
            if chain.between is not None:
                yield replace(chain.between, summarizes=chain.last - LATEST - chain.first)
            yield from (replace(line, summarizes=1) for line in chain.latest)

    def end_all(self) -> Iterator[Line]:
        """End all chains at the end of the file; yield the lines that stay of them."""
        for counter in list(self._open):
            yield from self.end(counter)
