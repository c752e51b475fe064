"""Parse log lines with the table of patterns (patterns.py): a ParsedLine has the kind of a row and the values of its groups.

`parse_line` does that; the functions before it parse parts of messages that have a structure of their own.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE
from tidegauge.traces.schema import LARGEST

# Parts of log messages that have a structure of their own: proposals, changes, fetch requests.
#
# Names of groups are Kafka's names of fields; -1 is undefined, as on the wire.


METADATA_LOG = "__cluster_metadata-0"
"""The one partition of the metadata log."""


def number(text: str) -> int:
    """Parse an offset, an epoch or an id. Raises ValueError for text that is no number, or a larger one than Kafka has."""
    value = int(text)
    if len(text) < 19:
        return value
    # Columns hold 64-bit integers and the judge adds to them: a damaged line must not overflow there.
    if not -LARGEST < value < LARGEST:
        raise ValueError(f"expected a number below 2^62, seen {text}")
    return value


def ids(text: str) -> tuple[int, ...]:
    """Parse a list of node ids, `1, 2, 3` or `1,2,3`."""
    return tuple(number(part) for part in text.replace(" ", "").split(",") if part)


_LEO = re.compile(r"replica (\d+): \(offset=(-?\d+)")


def leos(text: str) -> dict[int, int]:
    """Parse log ends by replica: `replica 2: (offset=19, ..), replica 1: (offset=20, ..)` into {2: 19, 1: 20}."""
    return {int(replica): int(offset) for replica, offset in _LEO.findall(text)}


_PROPOSED = re.compile(r"\bisr=(?:List\(|\[)(?P<ids>[\d, ]*)[)\]]")
_PROPOSED_WITH_EPOCHS = re.compile(r"BrokerState\(brokerId=(\d+)")
_SENT_EPOCHS = re.compile(r"^(?>.*?leaderEpoch=(\d+)).*partitionEpoch=(\d+)")


def proposal(sent: str) -> tuple[tuple[int, ...], int, int]:
    """Parse the LeaderAndIsr of an ISR proposal into (ISR, leader epoch, partition epoch)."""
    # Since 3.5 the members of the ISR are BrokerStates, with broker epochs (KIP-903).
    plain = _PROPOSED.search(sent)
    members = ids(plain["ids"]) if plain else tuple(int(broker) for broker in _PROPOSED_WITH_EPOCHS.findall(sent))
    epochs = _SENT_EPOCHS.search(sent)
    leader_epoch, partition_epoch = (int(epochs[1]), int(epochs[2])) if epochs else (-1, -1)
    return members, leader_epoch, partition_epoch


_BROKER_EPOCHS = re.compile(r"BrokerState\(brokerId=(\d+), brokerEpoch=(\d+)\)")


def broker_epochs(sent: str) -> dict[int, int]:
    """Return the broker epochs in a LeaderAndIsr by member, as the leader knew them; since 3.5 (KIP-903)."""
    return {int(broker): int(epoch) for broker, epoch in _BROKER_EPOCHS.findall(sent)}


_CHANGE = re.compile(r"\b(\w++): (\[[^\[\]]*\]|-?\w++) -> (\[[^\[\]]*\]|-?\w++)")


def changes(text: str) -> dict[str, tuple[str, str]]:
    """Parse the values before and after a partition change: `isr: [1, 2] -> [2], ..` into {"isr": ("[1, 2]", "[2]"), ..}."""
    return {name: (old, new) for name, old, new in _CHANGE.findall(text)}


TP_IN_A_LIST = r"(?<![A-Za-z0-9._\-])(?P<tp>(?>[A-Za-z0-9._\-]+-\d+))"
"""A topic-partition that begins where a name does: looked for at each letter of a long name, it would take forever."""

_FETCH_DATA = re.compile(
    rf"{TP_IN_A_LIST}=PartitionData\(topicId=(?P<topic_id>[^,(]*), fetchOffset=(?P<offset>-?\d+), "
    r"logStartOffset=(?P<log_start>-?\d+), maxBytes=\d+, currentLeaderEpoch=Optional(?:\[(?P<epoch>\d+)\]|\.empty), "
    r"lastFetchedEpoch=Optional(?:\[(?P<last_epoch>\d+)\]|\.empty)\)"
)
_METADATA = re.compile(r"metadata=\(sessionId=(?P<session>\d+|INVALID), epoch=(?P<epoch>\d+|INITIAL|FINAL)\)")
_REMOVED_TP = re.compile(r"(?<![A-Za-z0-9._\-:])(?:[A-Za-z0-9_\-]+:)?((?>[A-Za-z0-9._\-]+-\d+))")


class PartitionRequest(NamedTuple):
    """What a fetch asks for one partition: the fetch offset, the follower's leader epoch, last fetched epoch and log start.

    -1 is undefined, as on the wire.
    """

    offset: int
    epoch: int
    last_epoch: int
    log_start: int


@dataclass(frozen=True, slots=True)
class FetchLine:
    """A `Sending fetch request` line: session id 0 when there is none yet, session epoch 0 for a full fetch.

    `requested` are the partitions that it adds or changes in the session, `removed` those that it takes out.
    """

    session: int
    session_epoch: int
    requested: Mapping[str, PartitionRequest]
    removed: tuple[str, ...]
    topic_ids: Mapping[str, str]


@lru_cache(maxsize=4)
def fetch_line(request: str) -> FetchLine:
    """Parse `(type=FetchRequest, .. fetchData={..}, .. removed=.., metadata=(sessionId=.., epoch=..), ..)`."""
    partitions: dict[str, PartitionRequest] = {}
    topics: dict[str, str] = {}
    for partition in _FETCH_DATA.finditer(request):
        partitions[partition["tp"]] = PartitionRequest(
            int(partition["offset"]),
            int(partition["epoch"] or -1),
            int(partition["last_epoch"] or -1),
            int(partition["log_start"]),
        )
        topics[partition["tp"].rpartition("-")[0]] = partition["topic_id"]
    # `removed=<list>, replaced=..`: without what follows, the list may have been cut off.
    removed, replaced, _ = request.partition("removed=")[2].partition(", replaced=")
    session, session_epoch = session_of(request)
    return FetchLine(
        session,
        session_epoch,
        partitions,
        tuple(_REMOVED_TP.findall(removed)) if replaced else (),
        topics,
    )


def session_of(request: str) -> tuple[int, int]:
    """Return (session id, session epoch) of a fetch: id 0 without a session, epoch 0 for a full fetch, -1 for the last.

    A line that was cut off before them counts as a full fetch without a session.
    """
    metadata = _METADATA.search(request)
    session = metadata["session"] if metadata else "INVALID"
    epoch = metadata["epoch"] if metadata else "INITIAL"
    return (
        0 if session == "INVALID" else int(session),
        {"INITIAL": 0, "FINAL": -1}[epoch] if epoch.isalpha() else int(epoch),
    )


# A log line matched with the table of patterns.
#
# 1. Numbers become ints, lists of ids tuples; a group that did not match is left out.
# 2. The metadata log is replicated by Raft (KIP-595), not by this protocol: its lines are ignored.


Value = int | str | tuple[int, ...] | None


@dataclass(slots=True)
class ParsedLine:
    """A line with a pattern: `kind` is the first column of the table, `values` are the groups.

    `tp` is the topic-partition, empty where the line names none.
    """

    kind: str
    line: Line
    values: Mapping[str, Value]
    tp: str = ""

    def number(self, name: str) -> int:
        """Return the value of a group that is a number. Raises TypeError for another one."""
        value = self.values[name]
        if not isinstance(value, int):
            raise TypeError(f"{name} of {self.line.at} is no number")
        return value

    def text(self, name: str) -> str:
        """Return the value of a group as text."""
        return str(self.values[name])

    def ids(self, name: str = "isr") -> tuple[int, ...]:
        """Return the value of a group that lists node ids, empty if it is no list. Raises KeyError if it did not match."""
        value = self.values[name]
        return value if isinstance(value, tuple) else ()


MOST_BEGINNINGS = 4
"""Places of a line at which a pattern is tried. Kafka's lines have one; a damaged one, in which another begins, has two."""


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table, compiled.

    `head` is the text that its pattern begins with, empty if that is `^`, the beginning of the message; `needle` the longest
    text that every match has; `readers` are the groups in their order, each with the function that reads its value.
    """

    kind: str
    head: str
    needle: str
    pattern: re.Pattern[str]
    readers: tuple[tuple[str, Callable[[str], "Value"]], ...]

    def match(self, message: str) -> re.Match[str] | None:
        """Return the first match of the pattern in a message, in time that is proportional to its length."""
        # To look for the head is many times faster than to search for the pattern. And a search has no bound: from each
        # place where the pattern could begin it may read to the end of the line.
        at = message.find(self.head)
        for _ in range(MOST_BEGINNINGS):
            if at < 0:
                return None
            match = self.pattern.match(message, at)
            if match is not None:
                return match
            at = message.find(self.head, at + 1) if self.head else -1
        return None


_HEAD = re.compile(r"((?:[^\\.^$*+?{}\[\]|()]|\\[^\w])+)(?![*+?{])")
"""The text that a pattern begins with; the last character may not be one that is repeated."""


def row_of(kind: str, pattern: str) -> Row:
    """Compile a row of the table. Raises ValueError for a pattern that begins with anything but `^` or a text."""
    head = _HEAD.match(pattern)
    if head is None and not pattern.startswith("^"):
        raise ValueError(f"expected a pattern that begins with a text or with ^, saw {pattern}")
    compiled = re.compile(pattern)
    names = sorted(compiled.groupindex, key=compiled.groupindex.__getitem__)
    # Each group has a name, so that the names are those of match.groups().
    if len(names) != compiled.groups:
        raise ValueError(f"expected a name for each group, saw {pattern}")
    readers = tuple((name, _reader(name)) for name in names)
    return Row(kind, "" if head is None else _UNESCAPED.sub(r"\1", head[1]), needle_of(pattern), compiled, readers)


_UNESCAPED = re.compile(r"\\(.)")
_TOKEN = re.compile(r"(?P<text>\\\W|[^\\.^$|()\[*+?{])|(?P<set>\[\^?\]?(?:\\.|[^\]])*\])|\\.|(?P<other>.)", re.DOTALL)
_REPEATED = re.compile(r"[*+?{]")


def needle_of(pattern: str) -> str:
    """Return the longest text outside of groups that every match of a pattern has, empty if there is none."""
    texts, depth, at = [""], 0, 0
    while at < len(pattern):
        token = _TOKEN.match(pattern, at)
        assert token is not None  # any character is one
        at = token.end()
        # How many groups are open here.
        depth += (token["other"] == "(") - (token["other"] == ")")
        # Of alternatives none is in every match.
        if token["other"] == "|" and not depth:
            return ""
        # What is repeated may not be there at all; such a token ends a text.
        if token["text"] and not depth and not _REPEATED.match(pattern, at):
            texts[-1] += _UNESCAPED.sub(r"\1", token["text"])
        else:
            texts.append("")
    return max(texts, key=len)


_ENDLESS = re.compile(r"\d{19}")
_IDS = frozenset({"isr", "replicas", "adding", "removing", "elr", "last_known_elr"})
_TEXTS = frozenset(
    {
        "tp",
        "topic",
        "topic_id",
        "version",
        "sent",
        "request",
        "reason",
        "changes",
        "entries",
        "partition",
        "completed",
        "session",
        "leos",
        "status",
        "status_before",
        "dir",
        "future",
    }
)


def _reader(name: str) -> Callable[[str], Value]:
    """Return the function that turns the text of a group into its value, by the name of the group."""
    if name in _IDS:
        return ids
    return _text if name in _TEXTS else number


def _text(text: str) -> str:
    """Return a text as it is. Raises ValueError for one with a number that Kafka cannot have."""
    # A text has numbers inside (a request, a list of changes): one that no offset can reach shows a damaged line.
    if len(text) >= 19 and _ENDLESS.search(text):
        raise ValueError(f"expected numbers below 2^62, seen {text}")
    return text


_BY_LOGGER: dict[str, list[Row]] = {}
for _kind, _logger, _pattern in TABLE:
    _BY_LOGGER.setdefault(_logger, []).append(row_of(_kind, _pattern))


def parse_line(line: Line) -> ParsedLine | None:
    """Parse a line; None if it matches no pattern of its logger, is damaged, or is about the metadata log."""
    message = line.message
    # An idle replica is fetched for and recorded again and again, in the very same words.
    parsed = _parse_short(line.logger, message) if len(message) <= SHORT else _parse(line.logger, message)
    if parsed is None:
        return None
    kind, values, tp = parsed
    return ParsedLine(kind, line, values, tp)


SHORT = 300
"""Characters of a message that may recur."""


def _parse(logger: str, message: str) -> tuple[str, Mapping[str, Value], str] | None:
    """Return the kind, the values and the partition ("" for none) of a message.

    None if it matches no row of its logger, is damaged, or is about the metadata log.
    """
    for row in _BY_LOGGER.get(logger, ()):
        # Most patterns are ruled out by their text alone.
        if row.needle in message and (match := row.match(message)) is not None:
            try:
                values = {
                    name: read(text)
                    for (name, read), text in zip(row.readers, match.groups(), strict=True)
                    if text is not None
                }
            except ValueError:
                return None  # not a number where the pattern has one: the line is damaged
            tp = str(values.get("tp", ""))
            return None if tp == METADATA_LOG else (row.kind, values, tp)
    return None


_parse_short = lru_cache(maxsize=1 << 14)(_parse)
