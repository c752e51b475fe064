"""Cut what a verdict and a story need out of logs into one file, which reading.py reads.

Rules of this file

1. A bundle is a gzipped tar. Its global header says which part of the logs it has: whoever reads it reads that part. The
   same input gives the same bytes.
2. A line keeps its number: one that is left out is an empty line. What no reader understands in the way it was read
   before (another layout, wrapped lines) is kept whole.
3. Records in segments and in dumps lose what they contain: their offsets, epochs and checksums are what is judged.
4. Files that no reader reads are left out. Redacted, lines that none reads lose their message, a *stub* is left.

Rules of redaction, which replaces the names in logs consistently: hosts, addresses, topics, client ids, groups, users, racks
and paths

1. A name is learned where Kafka prints it (`host=`, `clientId=`, `[Partition x-0 broker=1]`, a path) and replaced wherever
   it stands as a word. A word of Kafka's own messages is replaced only where it is a name (in place).
2. The same name becomes the same number everywhere, by the order of all names: readers and sorted reports see the same.
3. Kafka's own names stay: internal topics, client ids of fetchers and of Raft, ANONYMOUS, ids of clusters, topics and
   nodes.
4. A name is of a *kind* (topic, host, path, ..), which its replacement begins with: `topic3`, `host12`; of a path, `pb`.
   A path is replaced part by part: folders and files, and in these each run of letters (a *word* of the path).

`_LEARNED` are the patterns of rule 1, each with the kind of the names that it finds. `statements_in` (of the story) returns
what a line says, with its partition. A file has a kind, too (identify.py): SEGMENT, a dump, a checkpoint, lines of a log.
"""

import gzip
import json
import re
import struct
import tarfile
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO

from tidegauge.bundle.reading import HEADER_KEY, VERSION
from tidegauge.impl.storage.checkpoints import LEADER_EPOCH_FILE
from tidegauge.story.raw_lines import date_of, writer_of
from tidegauge.story.reading import NEEDLES, OWN_ID, selects
from tidegauge.story.statements import STATEMENTS, TABLE, statements_in
from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.discovery.identify import (
    CHECKPOINT,
    SEGMENT,
    SEGMENT_DUMP,
    TRACE,
    UNKNOWN,
    InputFile,
    identify,
)
from tidegauge.traces.kafka_logs.discovery.selection import KIND_TEXTS, NAMES_ONE, TOPIC_ID, Selection
from tidegauge.traces.kafka_logs.parsing.layout import DOCUMENTED, KAFKAS
from tidegauge.traces.kafka_logs.parsing.lines import (
    KNOWN,
    PROCESS_BEGINS,
    blocks,
    is_binary,
    layout_of,
    lines_matching,
    pieces,
)
from tidegauge.traces.kafka_logs.parsing.patterns import TABLE as JUDGED
from tidegauge.traces.problems import Problem
from tidegauge.traces.segments import CHECKED_FROM, CHECKSUM, CHECKSUM_AT, HEADER, LENGTH_AT, MAGIC, MAGIC_AT, OVERHEAD
from tidegauge.util.errors import UsageError
from tidegauge.util.files import replacing

# Redaction.


_NAME = r"[A-Za-z0-9._\-]{1,249}"
_QUOTE = r"\\{0,3}[\"']?"
_IS = rf"{_QUOTE} {{0,2}}[=:] {{0,2}}{_QUOTE}"
_VALUE = r"(?P<name>[^\s\"'\\,\])}(]{1,249})"
_WORD = re.compile(r"[A-Za-z0-9._\-]+")
_TP = re.compile(r"(?P<topic>.+)-(?P<rest>\d{1,9}(?:\.[0-9a-f]{32}-[a-z]+)?)")
_AS_LETTERS = str.maketrans("0123456789", "abcdefghij")
_INTERNAL = re.compile(r"__[a-z_]+|_confluent[\w.\-]*|__\w+_[a-z]+")
_OF_ZOOKEEPER = "/brokers/ids/"
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
    # A consumer of Kafka to 1.1 is called by its group and host, within the name of its thread.
    ("consumer", re.compile(r"\bConsumerFetcherThread-(?P<name>[^\s\],]{1,500})-\d{1,6}-\d{1,9}(?=[\],])")),
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
    """Return the words in texts: letters, digits and `._-`, from a letter to a letter or digit."""
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
        """Begin with no names: `_names_by_kind` are those of the texts, `_new` is what each (kind, name) is replaced by."""
        self._names_by_kind: dict[str, set[str]] = defaultdict(set)
        self._new: dict[tuple[str, str], str] = {}
        # What a name is replaced by wherever it stands as a word; the same of topics alone, whatever words they are.
        self._words: dict[str, str] = {}
        self._topics: dict[str, str] = {}
        # Kinds with names that are replaced only where Kafka prints one.
        self._in_place_only = {"consumer"}
        # Parts of the paths of the files that are cut.
        self._files: set[str] = set()

    def learn(self, text: str) -> None:
        """Learn the names in a line: those that Kafka prints, the host that wrote it, and the words of paths."""
        for kind, pattern in _LEARNED:
            for match in pattern.finditer(text):
                self._note(kind, match["name"])
        # What stands before the date (date_of: where it begins and ends, and its time) may be a host.
        writer = writer_of(text, date_of(text)[0])
        if _WORD.fullmatch(writer):
            self._note("host", writer)
        for match in _PATH.finditer(text):
            self.learn_path(match["unix"] or match["windows"])

    def learn_path(self, path: str) -> None:
        """Learn the words in a path as names of kind `path`; not those of a path of ZooKeeper, which is Kafka's own."""
        if path.startswith(_OF_ZOOKEEPER):
            return
        for part in _LETTERS.findall(path):
            self._note("path", part)

    def learn_file(self, path: str) -> None:
        """Learn the words in the path of a file that is cut: the lines of reports may name it (`acme-prod.log:17`).

        A part without a digit, a dot or a dash may be any word there: in lines such a word stays.
        """
        self._files.update(part for part in path.split("/") if re.search(r"[\d._\-]", part))
        self.learn_path(path)

    def learn_topic(self, name: str) -> None:
        """Learn the name of a topic."""
        self._note("topic", name)

    def number_names(self) -> None:
        """Give each name its replacement; nothing is learned from here on."""
        self._names_by_kind["path"] -= _OF_FILES
        for kind, names in sorted(self._names_by_kind.items()):
            digits = len(str(len(names)))
            for at, name in enumerate(sorted(names), 1):
                number = f"{at:0{digits}}"
                # A path has letters for digits: a digit in the name of a file may be taken for a node.
                self._new[kind, name] = f"p{number.translate(_AS_LETTERS)}" if kind == "path" else f"{kind}{number}"
        self._topics = {name: self._new["topic", name] for name in self._names_by_kind["topic"]}
        # A later kind wins: what is a host and a topic is the topic. Names that are short, or words of Kafka's, are replaced
        # in place only.
        for kind in ("rack", "group", "client", "user", "host", "topic"):
            words = {
                name for name in self._names_by_kind[kind] if len(name) > 2 and name not in _KAFKAS and _WORD.fullmatch(name)
            }
            self._words |= {name: self._new[kind, name] for name in words}
            if words != self._names_by_kind[kind]:
                self._in_place_only.add(kind)

    @property
    def names(self) -> frozenset[str]:
        """The names that are replaced wherever they stand as a word."""
        return frozenset(self._words)

    def text(self, text: str) -> str:
        """Return a text of one or more lines with its names replaced: first those in place and paths, then words."""
        for kind, pattern in _LEARNED:
            if kind in self._in_place_only:
                text = pattern.sub(partial(self._in_place, kind), text)
        text = _PATH.sub(lambda match: self.path(match[0]), text)
        return _WORD.sub(lambda match: self._word(match[0]), text)

    def path(self, path: str) -> str:
        """Return a path with its names replaced; a path of ZooKeeper is Kafka's own and stays."""
        if path.startswith(_OF_ZOOKEEPER):
            return path
        return "".join(self._part(part) for part in re.split(r"([/\\]+)", path))

    def _note(self, kind: str, name: str) -> None:
        """Note a name to be replaced, unless it is Kafka's own or cannot be one of the kind."""
        name = _clean(name)
        if not name or _OF_KAFKA.fullmatch(name) or (kind == "host" and _NO_HOST.fullmatch(name)):
            return
        if kind == "topic" and (_INTERNAL.fullmatch(name) or not _WORD.fullmatch(name)):
            return
        self._names_by_kind[kind].add(name)

    def _in_place(self, kind: str, match: re.Match[str]) -> str:
        """Return the text of a match of _LEARNED with its name replaced; a substitution calls this, of kinds in place."""
        name = match["name"]
        new = self._new.get((kind, _clean(name)))
        if new is None:
            return match[0]
        begin = match.start("name") - match.start()
        # A port, or the end of a sentence, behind the name stays.
        return match[0][:begin] + new + match[0][begin + len(_clean(name)) :]

    def _part(self, part: str) -> str:
        """Return the replacement of one folder or file name in a path: of all of it if it is a name, else of its words."""
        tp = _TP.fullmatch(part)
        if tp is not None and _INTERNAL.fullmatch(tp["topic"]):
            return part  # a partition of an internal topic stays, though a word in it may be a name, too
        word = self._word(part)
        return word if word != part else _LETTERS.sub(self._letters, part)

    def _letters(self, match: re.Match[str]) -> str:
        """Return the replacement of letters in a path, if they are a word learned from one; a substitution calls this."""
        return self._new.get(("path", match[0]), match[0])

    def _word(self, word: str) -> str:
        """Return the replacement of a word: a learned name, a partition or file of one, or itself."""
        new = self._words.get(word)
        if new is not None:
            return new
        tp = _TP.fullmatch(word)
        if tp is not None and tp["topic"] in self._topics:
            return f"{self._topics[tp['topic']]}-{tp['rest']}"
        # The end of a sentence, or a dash behind it.
        shorter = word.rstrip(".-")
        if shorter and shorter != word:
            return self._word(shorter) + word[len(shorter) :]
        # A file beside segments (`orders-0.leader-epoch-checkpoint`), or a domain below a host.
        head, dot, tail = word.partition(".")
        if dot and (head in self._words or ((tp := _TP.fullmatch(head)) is not None and tp["topic"] in self._topics)):
            return f"{self._word(head)}.{tail}"
        # A file that was cut and that a report names (`acme-prod.log:17`).
        return _LETTERS.sub(self._letters, word) if word in self._files else word


def _clean(name: str) -> str:
    """Return a name without what stands behind it: the end of a sentence, a port."""
    name = name.rstrip(".:;")
    return name.rpartition(":")[0] if name.count(":") == 1 and name.rpartition(":")[2].isdecimal() else name


# ---------------------------------------------------------------------------------------------------------------------
# Cutting


DEEPEST = 8
HEAD = 2000
"""Lines at the beginning of a file that show its layout."""
LINES_AT_ENDS = 20
"""Lines at the end of a process of which stubs are kept: more than readers look at, with requests between."""
_STUB = re.compile(r"(\[[^\]]*\] +[A-Z]+ +(?:\[[^\]]*\] +)?).*?(\([\w.$/]+\))?(\r?)")
_CONTENT = re.compile(r" (?:key|payload|headerKeys): .*")
_NEEDED = f"{KNOWN}|{NEEDLES}|Completed request"
"""What a line has that the judge or the story may read."""
_BESIDE = re.compile(r".*\.(?:index|timeindex|txnindex|snapshot|lock|jar|class|pyc)(?:\.gz)?|partition\.metadata")
_LENGTH = struct.Struct(">i")


@dataclass
class BundleContents:
    """What was put into a bundle: its files, how many of their lines, and what was left out."""

    files: int = 0
    lines: int = 0
    kept_lines: int = 0
    left_out: list[str] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)


@dataclass
class _File:
    """A file to be cut: where it is, what the bundle calls it, its kind (identify.py).

    The name is the number of the path that it is at or below, a slash, and its path there: `0/logs/server.log`.
    """

    path: Path
    name: str
    kind: str


def write_bundle(
    paths: Sequence[Path], target: Path, selection: Selection | None = None, redact: bool = False
) -> BundleContents:
    """Write to `target` what a verdict and a story of the paths need, of the part that is selected; `redact`: replace names.

    Raises UsageError, and leaves `target` as it was, if no file can be read, or if no line names a selected topic.
    """
    with replacing(target) as unfinished:
        return _write(paths, unfinished, selection, redact)


def _write(paths: Sequence[Path], target: Path, selection: Selection | None, redact: bool) -> BundleContents:
    """Write the bundle (write_bundle). After a UsageError `target` may have lines that are not selected."""
    contents = BundleContents()
    files = [file for at, path in enumerate(paths) for file in _files(path, at, redact, contents)]
    if not files:
        named = ", ".join(str(path) for path in paths)
        seen = contents.left_out[0] if contents.left_out else "none"
        raise UsageError(f"{named}: expected a file that a reader reads, seen {seen}; docs/operators.md names them")
    excerpts = _Excerpts(selection, Redactor() if redact else None, contents)
    if excerpts.redactor is not None:
        # All names first, so that a name is replaced by the same one in every file.
        for file in files:
            excerpts.redactor.learn_file(file.name.partition("/")[2])
            if file.kind == SEGMENT or file.path.name == LEADER_EPOCH_FILE:
                excerpts.redactor.learn_topic(file.path.parent.name.rpartition("-")[0])
            for text in excerpts.texts(file) if file.kind not in (SEGMENT, TRACE) else ():
                _learn_names(excerpts.redactor, text, file.kind)
        excerpts.redactor.number_names()
    names = [path.resolve().name for path in paths]
    # The header that reading.py reads.
    part = selection or Selection()
    header = {
        "version": VERSION,
        "paths": [excerpts.redactor.path(name) for name in names] if excerpts.redactor is not None else names,
        "topics": sorted(map(excerpts.named, part.topics)),
        "partitions": sorted(map(excerpts.named, part.partitions)),
        "begin": part.begin,
        "end": part.end,
        "redacted": redact,
    }
    pax_headers = {HEADER_KEY: json.dumps(header)}
    with (
        target.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT, pax_headers=pax_headers) as archive,
    ):
        for file in files:
            with tempfile.TemporaryFile() as content:
                excerpts.write(file, content)
                index, _, inner_path = file.name.partition("/")
                if excerpts.redactor is not None:
                    inner_path = excerpts.redactor.path(inner_path)
                member = tarfile.TarInfo(f"{index}/{inner_path}")
                member.size = content.tell()
                content.seek(0)
                archive.addfile(member, content)
            contents.files += 1
    excerpts.refuse_mistyped()
    return contents


def _files(path: Path, at: int, redact: bool, contents: BundleContents) -> Iterator[_File]:
    """Yield the files at and below path number `at` that a reader reads; name the others in `contents.left_out`.

    With `redact`, those in which names cannot be replaced are left out, too.
    """
    if path.is_file():
        identified = identify(path, path.name)
        if _may_matter(path, identified):
            yield _File(path, f"{at}/{path.resolve().name}", identified.kind)
        else:
            contents.left_out.append(f"{path.name} ({identified.kind})")
        return
    walk = FolderWalk(path)
    for _folder, files in walk.below(DEEPEST, hidden=True):
        for entry in files:
            label = entry.relative_to(path).as_posix()
            if _BESIDE.fullmatch(entry.name):
                contents.left_out.append(f"{label} (nobody reads it)")
                continue
            identified = identify(entry, label)
            # Names in a file of no known kind cannot be found, so it is not sent redacted.
            unredactable = redact and not identified.read and identified.kind != CHECKPOINT and entry.stat().st_size
            if not _may_matter(entry, identified) or unredactable:
                contents.left_out.append(f"{label} ({identified.kind})")
            elif identified.kind == TRACE and redact:
                contents.left_out.append(f"{label} (a trace: convert it again from the bundle)")
            else:
                yield _File(entry, f"{at}/{path.resolve().name}/{label}", identified.kind)
    contents.problems += walk.left_out.values()


def _may_matter(path: Path, identified: InputFile) -> bool:
    """Return whether a reader may need a file: not a key, a configuration or a dump of the heap beside the logs."""
    if identified.read or identified.kind != UNKNOWN or path.stat().st_size == 0:
        return True
    # Of a file of no known kind, some line has what a reader looks for: lines may be pasted in parts. lines_matching: where
    # the lines begin and end, and which match.
    return any(not is_binary(block) and lines_matching(block, _NEEDED)[2].any() for block in blocks(path, path.name, []))


def _learn_names(redactor: Redactor, text: str, kind: str) -> None:
    """Let the redactor learn the names in a line, by the kind of its file."""
    if kind == CHECKPOINT:
        # `orders 0 1234`: topic, partition, offset. Lines without a topic have numbers alone.
        name, _, numbers = text.partition(" ")
        if numbers[:1].isdigit():
            redactor.learn_topic(name)
        return
    for _, partition, _ in statements_in(text):
        if partition is not None:
            redactor.learn_topic(partition.rpartition("-")[0])
    redactor.learn(text)


class _Excerpts:
    """Cuts files: by the selection, and by what readers read if names are replaced."""

    def __init__(self, selection: Selection | None, redactor: Redactor | None, contents: BundleContents) -> None:
        """Cut by `selection` (None: keep all), replace names by `redactor` (None: keep them), count lines in `contents`."""
        self.selection, self.redactor, self.contents = selection, redactor, contents
        # Kinds of lines that readers learn from, and that the file has shown (KIND_TEXTS).
        self._kinds: set[str] = set()
        wanted = (
            ()
            if selection is None
            else (*(rf"{re.escape(name)}(?:-\d+)?" for name in selection.topics), *map(re.escape, selection.partitions))
        )
        self._wanted = re.compile(rf"(?<![\w.\-])(?:{'|'.join(wanted)})(?![\w.\-])") if wanted else None
        self._sees_wanted = not wanted

    def refuse_mistyped(self) -> None:
        """Refuse a selection of which nothing was seen. Raises UsageError."""
        # A name that nobody has is mistyped: lines of all the others must not go out under it.
        if self.selection is not None and not self._sees_wanted:
            named = ", ".join(sorted(self.selection.topics | self.selection.partitions))
            raise UsageError(f"bundle: expected a line about {named}, seen none; check the name")

    def _note_wanted(self, text: str) -> None:
        """Note whether a text names a topic or partition that is selected."""
        if not self._sees_wanted and self._wanted is not None:
            self._sees_wanted = self._wanted.search(text) is not None

    def named(self, name: str) -> str:
        """Return what the bundle calls a topic or a partition: its name, or the replacement of it."""
        return name if self.redactor is None else self.redactor.text(name)

    def write(self, file: _File, out: IO[bytes]) -> None:
        """Write what the bundle keeps of a file."""
        label = file.name.partition("/")[2]
        # A segment, or a checkpoint, is of the partition by which its folder is named.
        self._note_wanted(file.path.parent.name)
        if file.kind == SEGMENT:
            _write_segment(file.path, out, self.contents.problems)
        # Unchanged: nothing is replaced, and no line of it is left out. A dump of a segment has the records' content.
        elif (
            self.redactor is None
            and (self.selection is None or file.kind in (CHECKPOINT, TRACE))
            and file.kind != SEGMENT_DUMP
        ):
            for piece in pieces(file.path, label, self.contents.problems):
                out.write(piece)
                self._note_wanted(piece.decode("utf-8", "replace"))
                self.contents.lines += piece.count(b"\n")
                self.contents.kept_lines += piece.count(b"\n")
        else:
            for text in self.texts(file):
                self.contents.lines += 1
                self.contents.kept_lines += bool(text.strip())
                self._note_wanted(text)
                out.write((text if self.redactor is None else self.redactor.text(text)).encode() + b"\n")

    def texts(self, file: _File) -> Iterator[str]:
        """Yield the lines of a file as they are kept, names not replaced yet; "" is a line that is left out (rule 2)."""
        # `time` is that of the last line with one, `whole_before`: the line before ends as a line of Kafka's layout does.
        first, is_kafkas, time, whole_before, lines_before = True, False, 0, False, 0
        self._kinds.clear()
        for block in blocks(file.path, file.name, []):
            if first and is_binary(block):
                return
            if file.kind in (CHECKPOINT, SEGMENT_DUMP):
                yield from (_CONTENT.sub("", text) for text in _lines(block))
                continue
            texts = _lines(block)
            # Lines before this one are kept whatever their time: the reader learns the layout from them.
            begin = 0
            if first:
                layout = layout_of(texts)
                # Kafka's own layout: it is known where the message of a line begins and ends.
                is_kafkas = layout is not None and not layout.wrappers and layout.name in (DOCUMENTED, KAFKAS)
                begin = HEAD
            # Lines of another layout are kept: only in Kafka's own is it known what of a line is its message (_stub).
            needed = lines_matching(block, _NEEDED)[2] if is_kafkas else ()
            times = [] if self.selection is None else _times(texts, time)
            outside = [not selects(self.selection, of_line, partition=None) for of_line in times]
            at_ends = _at_ends(texts, outside) if times else ()
            for at, text in enumerate(texts):
                if self.selection is not None:
                    time = times[at]
                    # A line behind one that is not whole may continue it.
                    of_others = is_kafkas and whole_before and bool(needed[at]) and self._of_others(text, time)
                    whole_before = text.startswith("[") and text.rstrip("\r").endswith(")")
                    if (outside[at] and at >= begin) or of_others:
                        # The last lines of a process show until when it logged, whatever they are about.
                        yield _stub(text, lines_before + at) if of_others and at in at_ends and not outside[at] else ""
                        continue
                yield text if not is_kafkas or self.redactor is None or needed[at] else _stub(text, lines_before + at)
            first, lines_before = False, lines_before + len(texts)

    def _of_others(self, text: str, time: int) -> bool:
        """Return whether a line is about partitions that are not selected, and no reader needs it for the others.

        `time` is its own, or that of the line before it. The first line of each kind in KIND_TEXTS is needed.
        """
        selection = self.selection or Selection()
        # A fetch or a request counts for its session, whatever it asks for.
        if "Sending fetch request" in text or "Completed request" in text:
            return False
        # A reader learns from the lines of others, too: how topics are named, and which loggers were on.
        if TOPIC_ID.search(text) is not None:
            return False
        new_kinds = {kind for kind, words in KIND_TEXTS.items() if words in text} - self._kinds
        self._kinds |= new_kinds
        names = [match[1] for match in NAMES_ONE.finditer(text)]
        names += [partition for _, partition, _ in statements_in(text) if partition is not None]
        return not new_kinds and bool(names) and not any(selects(selection, time, name) for name in names)


def _times(texts: Sequence[str], time: int) -> list[int]:
    """Return the time of each line, or that of the line before it; `time` is that before the first."""
    times = []
    for text in texts:
        own_time = date_of(text, time)[2]
        time = own_time if own_time is not None else time
        times.append(time)
    return times


def _at_ends(texts: Sequence[str], outside: Sequence[bool]) -> set[int]:
    """Return the numbers of the last lines of a block before another process begins, a time that is left out, or its end."""
    ends = [at for at, text in enumerate(texts) if PROCESS_BEGINS in text]
    ends += [at for at in range(1, len(texts)) if outside[at] and not outside[at - 1]]
    return {at for end in (*ends, len(texts)) for at in range(max(0, end - LINES_AT_ENDS), end)}


def _lines(block: bytes) -> list[str]:
    """Return the lines of a block, which ends at the end of a line, decoded and without their ends."""
    return block.decode("utf-8", "replace").removesuffix("\n").split("\n")


def _stub(text: str, number: int) -> str:
    """Return a line with its number for its message, so that no two are alike; a tab for what continues a line."""
    # `[date] LEVEL [thread] message (logger)`: all but the message stays.
    match = _STUB.fullmatch(text)
    if match is None:
        return "\t" if text.strip() else ""
    # The node that the line names as its own stays: readers know by it whose file this is.
    own = OWN_ID.search(text)
    identity = f"{own[0]}] " if own is not None and own.start() >= match.end(1) else ""
    return f"{match[1]}{identity}{number} {match[2] or ''}{match[3]}"


def _write_segment(path: Path, out: IO[bytes], problems: list[Problem]) -> None:
    """Write a segment with zeros for its records, offsets and epochs kept; where it is damaged, it stays damaged."""
    data = bytearray().join(pieces(path, path.name, problems))
    # `at` is where a batch begins: one after the other.
    at = 0
    while len(data) - at >= HEADER.size:
        (length,) = _LENGTH.unpack_from(data, at + LENGTH_AT)
        end = at + OVERHEAD + length
        # Damaged, or a format that is older than record batches: from here on nothing can be told apart.
        if length < HEADER.size - OVERHEAD or data[at + MAGIC_AT] != MAGIC:
            break
        # A torn batch, at the end of the file, is left without a checksum of what is there.
        checksum_of = CHECKSUM if end <= len(data) else None
        stored, checked = slice(at + CHECKSUM_AT, at + CHECKED_FROM), slice(at + CHECKED_FROM, end)
        stored_checksum = int.from_bytes(data[stored], "big")
        # Whether its checksum was right before its records are overwritten.
        was_right = checksum_of is not None and stored_checksum == checksum_of(bytes(data[checked]))
        records = slice(at + HEADER.size, min(end, len(data)))
        data[records] = bytes(records.stop - records.start)
        if checksum_of is not None:
            right_checksum = checksum_of(bytes(data[checked]))
            # A wrong checksum stays a wrong one: one bit of the right one is turned.
            data[stored] = (right_checksum if was_right else right_checksum ^ 1).to_bytes(4, "big")
        at = end
    # What is behind the first fault may be any data: zeros of the same length stay, so that there is a fault.
    if at < len(data):
        data[at + HEADER.size :] = bytes(max(0, len(data) - at - HEADER.size))
    out.write(gzip.compress(bytes(data), mtime=0) if path.suffix == ".gz" else data)
