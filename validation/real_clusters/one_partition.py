"""The logs of some partitions of a cluster: complete, but without a word about the others.

Rules of this file

1. A line about other partitions goes. A request, and a fetch that a replica sends, loses their entries.
2. A fetch session that ever asked for a kept partition keeps all its requests, empty ones too: they are counted (KIP-227).
3. Requests of which nothing is read (`parsing/request_log.py`) go, and dumps of configurations.
4. A line about no partition stays: starts, ends, signals, elections of controllers.
"""

import gzip
import json
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

TOPIC_ID = r"[\w-]{22}"
_IDS = (
    rf"partition (?P<a>\S+)-\d+ with topic id (?P<A>{TOPIC_ID})",
    rf"for (?P<b>\S+)-\d+ with topic ID (?P<B>{TOPIC_ID})",
    rf"(?:Leader|Follower) (?P<c>\S+)-\d+ with topic id Some\((?P<C>{TOPIC_ID})\)",
    rf"[Cc]reated topic (?P<d>\S+) with (?:topic )?ID (?P<D>{TOPIC_ID})",
    rf"TopicRecord\(name='(?P<e>[^']+)', topicId=(?P<E>{TOPIC_ID})\)",
)
_ID = re.compile("|".join(_IDS))
_STAMP = re.compile(r"\[?\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d")
_SENT_SESSION = re.compile(r"metadata=\(sessionId=(\w+), epoch")
_SENT_TO = re.compile(r"leaderId=(\d+)")
_THREAD = re.compile(r"\[(ReplicaFetcherThread-\d+-\d+)\]")
_SENT_PARTITION = re.compile(r"([\w.-]+-\d+)=PartitionData\([^()]*(?:\([^()]*\)[^()]*)*\)")
_SENT_LIST = re.compile(r"(removed=|replaced=)(.*?)(?=, replaced=|, metadata=)")
_RECORD_ID = re.compile(rf"topicId=({TOPIC_ID})")
_RECORD_PARTITION = re.compile(r"partitionId=(\d+)")
_ID_AND_PARTITION = re.compile(rf"(?<![\w-])({TOPIC_ID}):(\d+)\b")
_REQUEST, _SENDING, _CONFIGURATION = "Completed request:", "Sending fetch request", "values:"
_COORDINATORS = ("GroupCoordinator", "GroupMetadataManager", "Transaction State Manager", "TransactionCoordinator")
READ_KINDS = frozenset({"PRODUCE", "FETCH", "LIST_OFFSETS", "OFFSET_FOR_LEADER_EPOCH", "ALTER_PARTITION"})
_LISTS = ("topics", "responses", "topicData", "forgottenTopicsData")
_PARTITION_LISTS = ("partitions", "partitionData", "partitionResponses")


class KeptPartitions:
    """What is kept of the logs below a directory: a folder a node, whose name ends with its number."""

    def __init__(self, source: Path, partitions: Collection[str]) -> None:
        self._files = sorted(path for path in source.rglob("*.log*") if path.is_file())
        self._source, self._partitions = source, frozenset(partitions)
        self._names = topic_names(self._files)
        self._sessions: set[tuple[str, int]] = set()
        """Leader and number of the sessions of rule 2."""
        self._known_by_first_line: dict[tuple[Path, int], int] = {}
        """Where a replica sends a full fetch: the session that the response opened."""
        topics = {tp.rpartition("-")[0] for tp in self._partitions} | set(self._names.values()) | {"__cluster_metadata"}
        names = "|".join(map(re.escape, sorted(topics, key=len, reverse=True)))
        self._named = re.compile(rf"(?<![\w.-])((?:{names})-\d+)(?![\w-])")
        self._read_sessions()

    def write(self, target: Path) -> None:
        """Write what is kept to a directory, file by file."""
        for path in self._files:
            place = target / path.relative_to(self._source).with_name(path.name.removesuffix(".gz"))
            place.parent.mkdir(parents=True, exist_ok=True)
            with place.open("w", encoding="utf-8", newline="\n") as out:
                node = _node(path)
                for number, line in enumerate(lines_of(path)):
                    kept = self._kept_line(path, node, number, line)
                    if kept is not None:
                        out.write(kept)

    def _read_sessions(self) -> None:
        full_fetches: dict[tuple[Path, str], list[tuple[Path, int]]] = defaultdict(list)
        asking: set[tuple[Path, str]] = set()
        # The parts of a rolled log in their order: a session may begin in one and go on in the next.
        for path in sorted(self._files, key=lambda path: next(lines_of(path), "")):
            for number, line in enumerate(lines_of(path)):
                if _REQUEST in line and '"FETCH"' in line:
                    _, document, _ = _parsed(line)
                    if document is not None and _lists(self._pruned(document["request"]), _LISTS):
                        sessions = {_session(document["request"]), _session(document["response"])}
                        self._sessions |= {(_node(path), session) for session in sessions - {0}}
                elif _SENDING in line and (session := _SENT_SESSION.search(line)) and (thread := _THREAD.search(line)):
                    # A leader may have logged only those requests of the session that did not ask for the partition yet.
                    if any(match[1] in self._partitions for match in _SENT_PARTITION.finditer(line)):
                        asking.add((path.parent, thread[1]))
                    leader = _SENT_TO.search(line)
                    if leader and session[1] != "INVALID" and (path.parent, thread[1]) in asking:
                        self._sessions.add((leader[1], int(session[1])))
                    if session[1] == "INVALID":
                        full_fetches[path.parent, thread[1]].append((path, number))
                    else:
                        for earlier in full_fetches.pop((path.parent, thread[1]), ()):
                            self._known_by_first_line[earlier] = int(session[1])

    def _kept_line(self, path: Path, node: str, number: int, line: str) -> str | None:
        if not _STAMP.match(line):
            # The rest of a dump or of a stack trace.
            return None
        if _REQUEST in line:
            return self._kept_request(node, line)
        if _SENDING in line:
            return self._kept_sending(path, number, line)
        if line.rstrip().endswith(_CONFIGURATION) or any(word in line for word in _COORDINATORS):
            return None
        named = set(self._named.findall(line))
        named |= {f"{self._names[i]}-{n}" for i, n in _ID_AND_PARTITION.findall(line) if i in self._names}
        if not named and "partitionId=" in line:
            topics, partitions = _RECORD_ID.findall(line), _RECORD_PARTITION.findall(line)
            named = {f"{self._names.get(topic, topic)}-{partition}" for topic in topics for partition in partitions}
        return None if named and not named & self._partitions else line

    def _kept_request(self, node: str, line: str) -> str | None:
        before, document, after = _parsed(line)
        if document is None:
            return line
        kind = document["requestHeader"]["requestApiKeyName"]
        if kind not in READ_KINDS:
            return None
        request, response = self._pruned(document["request"]), self._pruned(document["response"])
        of_session = {(node, _session(request)), (node, _session(response))} & self._sessions
        if not (_lists(request, _LISTS) or (kind == "FETCH" and of_session)):
            return None
        return before + json.dumps({**document, "request": request, "response": response}, separators=(",", ":")) + after

    def _kept_sending(self, path: Path, number: int, line: str) -> str | None:
        leader, session = _SENT_TO.search(line), _SENT_SESSION.search(line)
        begin, end = line.find("fetchData={"), line.find("}, isolationLevel")
        if leader is None or session is None or begin < 0 or end < begin:
            return line
        begin += len("fetchData={")
        parts = [match[0] for match in _SENT_PARTITION.finditer(line[begin:end]) if match[1] in self._partitions]
        known = int(session[1]) if session[1] != "INVALID" else self._known_by_first_line.get((path, number))
        if (leader[1], known) not in self._sessions and not parts:
            return None
        return _SENT_LIST.sub(self._kept_names, line[:begin] + ", ".join(parts) + line[end:])

    def _kept_names(self, match: re.Match[str]) -> str:
        """Keep the partitions in a list of them; Kafka writes each as topic-partition or as id:topic-partition."""
        names = [name for name in match[2].split(", ") if self._partitions & set(self._named.findall(name))]
        return match[1] + ", ".join(names)

    def _pruned(self, body: dict[str, Any]) -> dict[str, Any]:
        """Return a request or response without the entries of other partitions."""
        return {key: self._pruned_topics(value) if key in _LISTS else value for key, value in body.items()}

    def _pruned_topics(self, topics: list[Any]) -> list[Any]:
        kept = []
        for topic in topics:
            named = (topic[key] for key in ("topic", "name", "topicName") if topic.get(key))
            name = next(named, None) or self._names.get(topic.get("topicId", ""))
            for key in _PARTITION_LISTS:
                if key in topic:
                    parts = [part for part in topic[key] if f"{name}-{_number(part)}" in self._partitions]
                    if parts:
                        kept.append({**topic, key: parts})
        return kept


def topic_names(files: Iterable[Path]) -> dict[str, str]:
    """Return the topic of each topic id that the logs name."""
    names = {}
    for path in files:
        for line in lines_of(path):
            for match in _ID.finditer(line) if "opic" in line else ():
                name, topic_id = (text for text in match.groups() if text is not None)
                names[topic_id] = name
    return names


def fetched_partitions(path: Path, names: Mapping[str, str]) -> Iterator[tuple[int, str, list[str]]]:
    """Yield the number, the client and the partitions of each fetch in a request log that names some."""
    for number, line in enumerate(lines_of(path), 1):
        if _REQUEST in line and '"FETCH"' in line:
            _, document, _ = _parsed(line)
            topics = document["request"].get("topics") if document is not None else None
            if document is not None and topics:
                parts = [
                    f"{topic.get('topic') or names.get(topic.get('topicId', ''))}-{_number(part)}"
                    for topic in topics
                    for part in topic["partitions"]
                ]
                yield number, document["requestHeader"]["clientId"], parts


def write_partitions(source: Path, target: Path, partitions: Collection[str]) -> None:
    """Write the logs of some partitions to another directory."""
    KeptPartitions(source, partitions).write(target)


def lines_of(path: Path) -> Iterator[str]:
    """Yield the lines of a log, compressed or not; of a stream that was cut those that are there."""
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "rt", encoding="utf-8", errors="backslashreplace", newline="\n") as file, suppress(EOFError):
        yield from file


def _node(path: Path) -> str:
    match = re.search(r"(\d+)$", path.parent.name)
    return match[1] if match else ""


def _parsed(line: str) -> tuple[str, dict[str, Any] | None, str]:
    """Return what is before the document of a request, the document, and what is behind it."""
    begin, end = line.find("{"), line.rfind("}") + 1
    try:
        document = json.loads(line[begin:end])
    except ValueError:
        return line, None, ""
    return line[:begin], document, line[end:]


def _session(body: dict[str, Any]) -> int:
    return int(body.get("sessionId", 0))


def _lists(body: dict[str, Any], keys: Collection[str]) -> bool:
    return any(body.get(key) for key in keys)


def _number(part: Any) -> Any:
    if not isinstance(part, dict):
        return part
    return next((part[key] for key in ("partition", "partitionIndex", "index") if key in part), None)
