"""Replace the names in logs, consistently: hosts, addresses, topics, client ids, groups, users, racks and paths.

Rules of this file

1. A name is learned where Kafka prints it (`host=`, `clientId=`, `[Partition x-0 broker=1]`, a path) and replaced wherever
   it stands as a word. A word of Kafka's own messages is replaced only where it is a name.
2. The same name becomes the same number everywhere, by the order of all names: readers and sorted reports see the same.
3. Kafka's own names stay: internal topics, client ids of fetchers and of Raft, ANONYMOUS, ids of clusters, topics and nodes.
"""

import re
from collections import defaultdict
from collections.abc import Iterable
from functools import partial

from tidegauge.story.forms import date_of, writer_of
from tidegauge.story.statements import STATEMENTS, TABLE
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE as JUDGED

_NAME = r"[A-Za-z0-9._\-]{1,249}"
_QUOTE = r"\\{0,3}[\"']?"
_IS = rf"{_QUOTE} {{0,2}}[=:] {{0,2}}{_QUOTE}"
_VALUE = r"(?P<name>[^\s\"'\\,\])}(]{1,249})"
_WORD = re.compile(r"[A-Za-z0-9._\-]+")
_TP = re.compile(r"(?P<topic>.+)-(?P<rest>\d{1,9}(?:\.[0-9a-f]{32}-[a-z]+)?)")
_AS_LETTERS = str.maketrans("0123456789", "abcdefghij")
_INTERNAL = re.compile(r"__[a-z_]+|_confluent[\w.\-]*|__\w+_[a-z]+")
_OF_KAFKA = re.compile(
    r"broker-\d+-fetcher-\d+|raft-client-\d+|ANONYMOUS|null|none|None|unknown|localhost|-?\d+|Optional.*|N/A"
)
_NO_HOST = re.compile(r".*\.(?:java|scala|kt)|\d{1,3}(?:\.\d{1,3}){0,2}|0(?:\.\d{1,3}){3}")
_BEFORE = (
    r"[Pp]artitions?|[Pp]artition\(s\):|change for|topicPartition|ISR for|append to|Leader|Follower|Cache|Truncating"
    r"|log|with|for"
)
_LEARNED: tuple[tuple[str, re.Pattern[str]], ...] = (
    *(
        ("topic", re.compile(pattern))
        for pattern in (
            rf"(?:{_BEFORE})[ =:(]{{1,2}}(?P<name>{_NAME})-\d{{1,6}}(?=[\s,:;\])}}=/'\"]|\.\s|$)",
            rf"(?:Set|List|Map|HashMap|HashSet|ArrayBuffer|Buffer|Vector)\(\(?(?P<name>{_NAME})-\d{{1,6}}(?=[\s,)=:])",
            rf"[,{{] (?P<name>{_NAME})-\d{{1,6}}(?= ?(?:=|->)|[,)\]}}])",
            rf"\[(?P<name>{_NAME}),\d{{1,6}}\]",
            rf"[/\\](?P<name>{_NAME})-\d{{1,6}}(?:\.[0-9a-f]{{32}}-[a-z]+|(?=[/\\]\d{{20}}\.))",
            rf"\bLog\(dir=[^,\s]{{0,500}}[/\\](?P<name>{_NAME})-\d{{1,6}}(?=,)",
            rf"\b[Tt]opic(?:Name)?{_IS}\[?(?P<name>{_NAME})",
            rf"\b(?:[Cc]reat|[Dd]elet)(?:ing|ed|e|ion of) topics? (?P<name>{_NAME})(?=[\s,]|$)",
            rf"\btype=TOPIC, name='(?P<name>{_NAME})'",
            rf"\"(?:name|resourceName)\\{{0,3}}\" ?: ?\\{{0,3}}\"(?P<name>{_NAME})(?=[^}}]{{0,200}}(?:topicId|partition))",
        )
    ),
    *(
        ("host", re.compile(pattern))
        for pattern in (
            rf"\b(?:host(?:[nN]ame)?|pod|pod_name|source_host|container_name|instance|fqdn){_IS}{_VALUE}",
            r"://(?P<name>[A-Za-z0-9.\-]{1,249})(?=[:/\s,\])])",
            r"(?<![\w.\-$/])(?P<name>[A-Za-z0-9][A-Za-z0-9.\-]{1,248}):(?:9\d{3}|[1-6]\d{4}|2181)\b(?!:)",
            r"BrokerEndPoint\(\d+,(?P<name>[^,\s)]{1,249}),",
            rf"\bconnection{_IS}(?P<name>[^:\s\"\\]{{1,249}}):\d+-",
            rf"\bconnection{_IS}[^:\s\"\\]{{1,249}}:\d+-(?P<name>[^:\s\"\\]{{1,249}}):\d+-",
            r"(?<![\d.])(?P<name>\d{1,3}(?:\.\d{1,3}){3})(?![\d.])",
            r"(?<![\w:])(?P<name>(?=[0-9a-f:]*(?:[a-f]|::))(?:[0-9a-f]{0,4}:){3,7}[0-9a-f]{0,4})(?![\w:])",
        )
    ),
    ("rack", re.compile(rf"\brack(?:Id)?{_IS}{_VALUE}")),
    ("client", re.compile(rf"\b(?:clientId|client\.id){_IS}{_VALUE}")),
    ("group", re.compile(rf"\b(?:groupId|group\.id|transactionalId|transactional\.id|memberId){_IS}{_VALUE}")),
    ("user", re.compile(rf"\bUser:{_VALUE}")),
    ("user", re.compile(rf"\bprincipal(?:Name)?{_IS}(?!User:){_VALUE}")),
)
_LETTERS = re.compile(r"[A-Za-z]{2,}")
_PATH = re.compile(
    r"(?<![\w./:\-<])(?P<unix>(?:/[^\s,;:'\"()\[\]{}=|/<>]{1,255}){1,40}/?)"
    r"|\b(?P<windows>[A-Z]:(?:\\{1,2}[^\s\\,;:'\"()\[\]{}=|/]{1,255}){1,40})"
)
_OF_FILES = frozenset(
    re.findall(
        r"\w+",
        "n node broker kafka b controller server request requests state change log logs kafkaServer dump dumps metadata out "
        "gz txt json ndjson csv md html checkpoint recovery point replication offset start leader epoch cleaner meta "
        "properties cleanshutdown files volumes index timeindex snapshot delete future stray describe quorum status var opt "
        "data tmp T Z d",
    )
)
"""Words in the names of files and folders that Kafka gives, or that say a node."""


def _words(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in re.findall(r"[A-Za-z][A-Za-z0-9._\-]*[A-Za-z0-9]|[A-Za-z]", text))


_KAFKAS = _words(
    [
        *(row.text for row in STATEMENTS),
        *(field for row in TABLE for field in (row[2], row[3])),
        *(" ".join(row) for row in JUDGED),
        "TRACE DEBUG INFO WARN ERROR FATAL stdout stderr log message level logger thread main name topic host",
        "min.insync.replicas",
    ]
)
"""Words that a reader may need, whoever has the same name."""


class Redactor:
    """Learns the names of all texts first, then replaces them in each."""

    def __init__(self) -> None:
        self._found: dict[str, set[str]] = defaultdict(set)
        self._new: dict[tuple[str, str], str] = {}
        self._words: dict[str, str] = {}
        self._topics: dict[str, str] = {}
        self._in_place_only: set[str] = set()
        self._files: set[str] = set()

    def learn(self, text: str) -> None:
        """Note the names in a line."""
        for kind, pattern in _LEARNED:
            for match in pattern.finditer(text):
                self._note(kind, match["name"])
        writer = writer_of(text, date_of(text)[0])
        if _WORD.fullmatch(writer):
            self._note("host", writer)
        for match in _PATH.finditer(text):
            self.learn_path(match["unix"] or match["windows"])

    def learn_path(self, path: str) -> None:
        """Note the words in a path."""
        for part in _LETTERS.findall(path):
            self._note("path", part)

    def learn_file(self, path: str) -> None:
        """Note the words in the path of a file that is cut: reports name it."""
        self._files.update(part for part in path.split("/") if re.search(r"[\d._\-]", part))
        self.learn_path(path)

    def learn_topic(self, name: str) -> None:
        """Note a topic."""
        self._note("topic", name)

    def settle(self) -> None:
        """Give each name its number; nothing is learned from here on."""
        self._found["path"] -= _OF_FILES
        for kind, names in sorted(self._found.items()):
            digits = len(str(len(names)))
            for at, name in enumerate(sorted(names), 1):
                number = f"{at:0{digits}}"
                # A digit in the name of a file may be taken for a node.
                self._new[kind, name] = f"p{number.translate(_AS_LETTERS)}" if kind == "path" else f"{kind}{number}"
        self._topics = {name: self._new["topic", name] for name in self._found["topic"]}
        # What is two things is the topic.
        for kind in ("rack", "group", "client", "user", "host", "topic"):
            words = {name for name in self._found[kind] if len(name) > 2 and name not in _KAFKAS and _WORD.fullmatch(name)}
            self._words |= {name: self._new[kind, name] for name in words}
            if words != self._found[kind]:
                self._in_place_only.add(kind)

    @property
    def names(self) -> frozenset[str]:
        """The names that are left nowhere as a word."""
        return frozenset(self._words)

    def text(self, text: str) -> str:
        """Replace the names in a text of one or more lines."""
        for kind, pattern in _LEARNED:
            if kind in self._in_place_only:
                text = pattern.sub(partial(self._in_place, kind), text)
        text = _PATH.sub(lambda match: self.path(match[0]), text)
        return _WORD.sub(lambda match: self._word(match[0]), text)

    def path(self, path: str) -> str:
        """Replace the names in a path."""
        return "".join(self._part(part) for part in re.split(r"([/\\]+)", path))

    def _note(self, kind: str, name: str) -> None:
        name = _clean(name)
        if not name or _OF_KAFKA.fullmatch(name) or (kind == "host" and _NO_HOST.fullmatch(name)):
            return
        if kind == "topic" and (_INTERNAL.fullmatch(name) or not _WORD.fullmatch(name)):
            return
        self._found[kind].add(name)

    def _in_place(self, kind: str, match: re.Match[str]) -> str:
        name = match["name"]
        new = self._new.get((kind, _clean(name)))
        if new is None:
            return match[0]
        begin = match.start("name") - match.start()
        return match[0][:begin] + new + match[0][begin + len(_clean(name)) :]

    def _part(self, part: str) -> str:
        word = self._word(part)
        return word if word != part else _LETTERS.sub(self._letters, part)

    def _letters(self, match: re.Match[str]) -> str:
        return self._new.get(("path", match[0]), match[0])

    def _word(self, word: str) -> str:
        """Return the replacement of a word: a learned name, a partition or file of one, or itself."""
        new = self._words.get(word)
        if new is not None:
            return new
        tp = _TP.fullmatch(word)
        if tp is not None and tp["topic"] in self._topics:
            return f"{self._topics[tp['topic']]}-{tp['rest']}"
        shorter = word.rstrip(".-")
        if shorter and shorter != word:
            return self._word(shorter) + word[len(shorter) :]
        # A file beside segments (`orders-0.leader-epoch-checkpoint`), or a domain below a host.
        head, dot, rest = word.partition(".")
        if dot and (head in self._words or ((tp := _TP.fullmatch(head)) is not None and tp["topic"] in self._topics)):
            return f"{self._word(head)}.{rest}"
        # A file that was cut and that a report names (`acme-prod.log:17`).
        return _LETTERS.sub(self._letters, word) if word in self._files else word


def _clean(name: str) -> str:
    """Return a name without what stands behind it: the end of a sentence, a port."""
    name = name.rstrip(".:;")
    return name.rpartition(":")[0] if name.count(":") == 1 and name.rpartition(":")[2].isdecimal() else name
