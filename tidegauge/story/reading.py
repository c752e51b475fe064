"""Read the lines of any text that say something about a partition, with file, line, time and who wrote them.

Rules of this file

1. No layout is needed. A line is read by what it says (statements.py), and its form undone (raw_lines.py): a pasted line, a
   grep, a container's prefix and a JSON export are read alike.
2. Most lines of a log say nothing here: they are passed over as bytes, a block at a time.
3. A line belongs to the node that it says itself, else to the only node that its writer names: the container, pod or host
   before the date or in the JSON, else the file, else the folder. What cannot be told is nobody's: the node is None. In a
   report, lines with prose, a fence or a command between them may be of two writers.
4. Binary files, record segments and their indexes are no text; nothing is printed about them here. An archive is a problem:
   what is in it is not told.
5. Lines that a viewer trimmed to one length end in the middle of a word, or of a number: that word is not read.
6. A line that does not end as Kafka ends one, and says nothing or less than it does with the lines behind it, was wrapped.

A *statement* is a row of statements.py; a line *says* something if it fits one. A *writer* is a key of who wrote a line: a
pod, host, prefix or part of a report. An `order` is a time in microseconds since 1970: a line without one has that of the
line before. `date_of(text, order)` returns where the date of a line begins and ends in it (-1: it has none) and its time,
`statements_in` what a line says: its row (`kind`, `text`), the partition, the values in it by name (`fields`).
"""

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from operator import itemgetter, lt
from pathlib import Path
from typing import NamedTuple

import numpy as np

from tidegauge.story.raw_lines import (
    date_of,
    exception_behind,
    exception_in,
    is_error,
    is_message,
    lines_within,
    whole_part,
    writer_of,
)
from tidegauge.story.statements import STATEMENTS, Fields, Statement, statements_in
from tidegauge.traces.kafka_logs.discovery.files import stem
from tidegauge.traces.kafka_logs.discovery.folders import FolderWalk
from tidegauge.traces.kafka_logs.discovery.selection import Selection
from tidegauge.traces.kafka_logs.discovery.writers import OF_ANY_PROGRAM, OWN_IDENTITY, OWN_IN_WORDS
from tidegauge.traces.kafka_logs.parsing.lines import blocks, is_binary, is_tar, lines_matching
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG
from tidegauge.traces.problems import Problem
from tidegauge.util.input_limits import without_packing

DEEPEST = 6
"""Folders below the one that was named."""

SAMPLE = 400
"""Lines at the beginning of a file that are looked at for the ids of its node."""

_NO_TEXT = re.compile(
    r"\d{20}(?:-\d{10})?\.(?:log|index|timeindex|snapshot|txnindex|checkpoint)|.*\.(?:jar|class|png|pdf|parquet)"
)

_ARCHIVES = {b"PK\x03\x04": "zip", b"7z\xbc\xaf": "7z"}
_TRIMMED, _DIGITS = 3, re.compile(r"\d+")
"""So many lines of the greatest length, different not only in their numbers, are no chance."""

OWN_ID = re.compile(
    rf"{OWN_IDENTITY}|\b(?:{OWN_IN_WORDS})"
    r"|\breplicaId=(\d+), leaderId="
    r"|\bcontrollerId=(\d+)\]"
    r"|\b(?:on|at) [cC]ontroller (\d+)\]"
    r"|\bExpirationReaper-(\d+)\b"
    r"|\bReplica (\d+) for partition \S{1,260} reset its fetch"
    r"|\bbrokerId=(\d+) performed a truncation"
    r"|\bkafka-(\d+)-(?:metadata-loader|raft)"
    r"|\bquorum-controller-(\d+)-event-handler\b"
    r"|^[^A-Za-z]{0,40}(?:broker|node)[ _\-]?(\d+) ?[:|] "
)
"""Places in which a line says whose it is; never those that name another node."""

_FETCHED_FROM = re.compile(r"\bleaderId=(\d+)|\[ReplicaFetcherThread-\d+-(\d+)\]")
"""Where a fetcher names the leader of its partitions."""
WITH_EXCEPTIONS = frozenset(
    {"fetch-error", "produce-error", "fatal", "directory-error", "fetch-refused", "not-deleted", "request-failed"}
    | {"task-failed", "thread-died", "uncleanable", "read-failed", "tier-unread", "tier-unwritten"}
)
"""Statements behind which the exception says why."""
ONCE = frozenset(
    {"starting", "created", "directory-made", "loaded", "truncated", "truncated-fully", "no-effect", "below"}
    | {"truncating-to-high-watermark", "truncating-to-epoch"}
)
"""Statements that nobody prints twice at one time: the second one is a log shipper's, that tried again."""
GOES_ON = frozenset({"changed", "index-offset"})
"""Statements that say more with each line behind them: laid out in several, or with a path at the end."""
NEAR, FAR, LONGEST_TRACE = 3, 12, 200
"""Lines to an exception, behind one that mail wrapped, or, if no line between them has a date, any one; and to its cause."""
_MOST_BEHIND, _MOST_BETWEEN = 600, 3_000
"""Bytes behind a line in which it may go on, and before an exception in which the line that it is of may end."""
_BEHIND_THE_END, _ENDS = " \t.,;:!|>*_~", tuple(")]}\"'`")
"""How a line ends that is whole: with its logger, its thread, or what an export puts around it."""
_QUOTED = re.compile(r"^[ \t>|]+")
_BEGINS_ANEW = re.compile(
    r"^(?:at [\w$.]+[($/]|Caused by|\.\.\. \d+ more|(?:[a-z]\w*+\.)++\w*(?:Exception|Error)\b|\{(?!\"version\":)|[\[`])"
)
CAUSED_BY = "; caused by "

_FENCE_OR_COMMAND = re.compile(
    r"[ \t]*(?:```|~~~|\S{0,60}[$#] (?:sudo )?[a-z]|(?:sudo )?(?:docker|kubectl|oc|podman|journalctl)[ -][a-z]|#{1,6} \S)"
)
_PROSE = re.compile(r"[ *_>\-]{0,6}(?!at |Caused by)[A-Za-z\u00c0-\uffff][^=\t]*+$")
_LIST_ITEM = re.compile(r"[ *_>\-]{0,6}\d{1,3}[.)] ")

_PLACES = {id(row): place for place, row in enumerate(STATEMENTS)}
_OF_EXCEPTIONS = ("Exception: ", "Error: ", "NullPointerException")
NEEDLES = "|".join(re.escape(text) for text in dict.fromkeys([*(row.text for row in STATEMENTS), *_OF_EXCEPTIONS]))
_ERRORS = r"\b(?:ERROR|FATAL)\b"
_OF_A_NODE = re.compile(
    r"\bstate\.change\.logger\b"
    r"|\b(?:org\.apache\.)?kafka\.(?!(?:clients|connect|consumer|producer|streams|tools)\.)[a-z.]{1,100}+[A-Z]"
)
"""Loggers of a broker or controller, not of a client."""


@dataclass(frozen=True, slots=True)
class SourcedLine:
    """A line that says something: what, of which partition, who wrote it, when, and where it stands.

    `order` is its time in microseconds since 1970, or that of the last line before it that has one; `time` is its text,
    empty if it has none. `node` is None if the line does not tell, `place` a key of its writer; a `mixed` line may be of one
    of several nodes.
    """

    says: Statement
    partition: str | None
    fields: Fields
    node: int | None
    place: str
    time: str
    order: int
    file: str
    number: int
    text: str = field(repr=False)
    error: str = ""
    mixed: bool = False

    @property
    def at(self) -> str:
        """The file and the number of the line."""
        return f"{self.file}:{self.number}"


@dataclass
class _SegmentDump:
    """What was read of the dump of a segment: its first and last batch, how many; whether all are in order so far.

    `place` is that of its first line in `sourced_lines`; None if that was not read.
    """

    place: int | None = None
    first: Fields | None = None
    last: Fields | None = None
    batches: int = 0
    is_sound: bool = True


@dataclass
class ReadFile:
    """A text file: how many lines, the ids that its lines say as their own, whether it says anything here.

    `future` are the truncations of logs that move to another directory: partition and offset.
    """

    path: Path
    label: str
    lines: int = 0
    ids: dict[str, set[int]] = field(default_factory=lambda: defaultdict(set))
    sourced_lines: list[SourcedLine] = field(default_factory=list)
    head: tuple[str, ...] = ()
    future: set[tuple[str, str]] = field(default_factory=set)
    caused: list[int] = field(default_factory=list)
    """The lines that the last exception belongs to, by their places in `sourced_lines`: its cause does, too."""
    dump: _SegmentDump = field(default_factory=_SegmentDump)
    """The dump of a segment that is read."""
    between: bytes = b""
    """What stands between the last line that was read and this one, the last _MOST_BETWEEN bytes of it."""
    is_interrupted: bool = False
    """Whether a message that says nothing here stands behind the last line that was read."""
    part_starts: list[int] = field(default_factory=list)
    """The numbers of the lines behind prose, a fence or a command: a part of a report begins there."""
    trimmed: int = 1 << 62
    """Characters to which a viewer trimmed its lines, if it did."""
    unread_errors: int = 0
    """Errors of a node that no statement is about."""
    unread_error: tuple[int, str] = (0, "")
    """The first of them: its number and its text."""

    @property
    def nodes(self) -> tuple[int, ...]:
        """The ids, of all its writers."""
        return tuple(sorted(set().union(*self.ids.values())))


def text_files(path: Path, problems: list[Problem]) -> Iterator[tuple[Path, str]]:
    """Yield the files at and below a path that may be text, with what reports call them; folders not read are problems."""
    if path.is_file():
        yield path, without_packing(path.name)
        return
    walk = FolderWalk(path)
    for _folder, files in walk.below(DEEPEST):
        for file in files:
            if not _NO_TEXT.fullmatch(without_packing(file.name)):
                yield file, without_packing(file.relative_to(path).as_posix())
    problems += walk.left_out.values()


def selects(selection: Selection | None, time: int, partition: str | None) -> bool:
    """Return whether a line is read, by its time, in microseconds, and its partition (None: it is about none).

    Without a selection every line is.
    """
    if selection is None:
        return True
    early = selection.begin is not None and time < selection.begin
    late = selection.end is not None and time > selection.end
    return not (early or late) and (partition is None or selection.wants(partition))


def read_files(paths: Sequence[Path], problems: list[Problem], selection: Selection | None = None) -> list[ReadFile]:
    """Return every text file at and below the paths, read; each line has its node, where that can be told."""
    labelled = [(path, text_file, label) for path in paths for text_file, label in text_files(path, problems)]
    # Of folders that are named apart, a line is found by more than `server.log`.
    several = len({label for _, _, label in labelled}) < len(labelled) and len(paths) > 1
    files = []
    for path, text_file, label in labelled:
        of_path = path if path.is_dir() else path.parent
        named = f"{of_path.resolve().name}/{label}" if several else label
        if (file := read_file(text_file, named, problems, selection)) is not None:
            files.append(file)
    _attribute(files)
    return files


def read_file(path: Path, label: str, problems: list[Problem], selection: Selection | None = None) -> ReadFile | None:
    """Return one file, read; None for one that is no text. `label` is what reports call it."""
    file = ReadFile(path, label)
    # The time of the last line that has one.
    order = 0
    for block in blocks(path, label, problems):
        if file.lines == 0:
            kind = next((name for magic, name in _ARCHIVES.items() if block.startswith(magic)), None)
            if kind is not None or is_tar(block):
                problems.append(Problem(label, None, "text", f"an archive ({kind or 'tar'})", "unpack it; it is not read"))
                return None
            if is_binary(block) or b'"event":"Config"' in block[:4096]:
                return None  # a trace in NDJSON has events, no lines
            file.head = tuple(block[:65536].decode("utf-8", "replace").split("\n")[:SAMPLE])
            longest = max(map(len, file.head))
            # Several lines of the greatest length were trimmed, unless they differ in numbers only: one wording, one length.
            if len({_DIGITS.sub("", text) for text in file.head if len(text) == longest}) >= _TRIMMED:
                file.trimmed = longest
            file.part_starts += _part_starts(file.head)
            # Ids that the first lines name, whether they say something or not: a broker prints its own as it starts.
            for number, text in enumerate(file.head, 1):
                _note_ids(text, _writer(text, date_of(text)[0], number, file), file)
        lines, count = _lines_of(block)
        # Where the last line that says something ended in the block.
        ended = 0
        for number, text, end, speaks in lines:
            before = len(file.sourced_lines)
            if speaks:
                # What stands between says how far the exception of a line may be from it (_reach).
                begins = end - len(text.encode()) - 1
                file.between = block[max(ended, begins - _MOST_BETWEEN) : begins]
                ended = end
                # A log that begins as one goes on as one.
                if file.part_starts and file.lines + number >= SAMPLE:
                    between = file.between.decode("utf-8", "replace").split("\n")[1:]
                    file.part_starts += [file.lines + number + 1] if any(_part_starts(between)) else []
                trimmed = len(text) >= file.trimmed or text.endswith(("…", "..."))
                restored = whole_part(text) if trimmed else _joined(text, block, end)
                for line in lines_within(restored):
                    order = _take(line, file.lines + number + 1, order, file, selection)
            # It said nothing that a statement is about; it may be an error all the same.
            file.is_interrupted = len(file.sourced_lines) == before and (file.is_interrupted or is_message(text))
            if len(file.sourced_lines) == before:
                _note_error(text, block[end + 1 : end + 1 + _MOST_BEHIND], file.lines + number + 1, order, file, selection)
        file.lines += count
    _end_dump(file)
    times = [line.order for line in file.sourced_lines]
    # A log platform exports the newest first: more than half of the lines are followed by an earlier one.
    if sum(map(lt, times[1:], times)) * 2 > len(times):
        file.sourced_lines.reverse()
    return file


class _BlockLine(NamedTuple):
    """A line of a block: its number from 0, its text, where it ends in the block.

    `speaks`: it has a text of a row of statements.py, else only the level of an error.
    """

    number: int
    text: str
    end: int
    speaks: bool


def _lines_of(block: bytes) -> tuple[list[_BlockLine], int]:
    """Return the lines of a block that have a text of statements.py or are errors, and the number of all its lines."""
    begins, ends, matching = lines_matching(block, f"{NEEDLES}|{_ERRORS}")
    numbers = np.flatnonzero(matching).tolist()
    raw = [block[begins[at] : ends[at]] for at in numbers]
    speaking = lines_matching(b"\n".join(raw), NEEDLES)[2].tolist() if raw else []
    return [
        _BlockLine(number, text.decode("utf-8", "replace").rstrip("\r"), int(ends[number]), speaks)
        for number, text, speaks in zip(numbers, raw, speaking, strict=True)
    ], len(begins)


def _note_error(text: str, after: bytes, number: int, order: int, file: ReadFile, selection: Selection | None) -> None:
    """Count an error of a node that no statement is about, and keep the first one.

    `after` is what stands behind the line, `number` its number in the file, `order` the time if it has none.
    """
    if not is_error(text) or _OF_A_NODE.search(text) is None:
        return
    _, end, time = date_of(text, order)
    if not selects(selection, order if time is None else time, None):
        return
    if file.unread_errors == 0:
        # An exception in the next line says more.
        exception = exception_in(after.partition(b"\n")[0].decode("utf-8", "replace"), -1, -1)
        message = text[max(end, 0) :].lstrip(" ]-")
        file.unread_error = number, message if exception is None else f"{exception.rstrip('.')}, behind: {message}"
    file.unread_errors += 1


def _joined(text: str, block: bytes, end: int) -> str:
    """Return a line, which ends at `end` in its block, with the lines behind in which it goes on; itself if not wrapped."""
    # A pasted exception may have been broken behind a bracket in its midst.
    ends_whole = _is_whole(text)
    is_whole = ends_whole and (date_of(text)[0] >= 0 or exception_in(text, -1, -1) is None)
    if is_whole or text[:1] == "{":
        return text
    first = list(lines_within(text))
    # Several log lines in one line of the file: nothing wrapped those.
    if len(first) != 1:
        return text
    # The rows that it fits alone. Of a longer one only rows count whose text begins in this line.
    places, length = _places(first, len(text)), len(first[0].rstrip())
    if places and ends_whole:
        return text
    whole = longer = text
    for next_line in block[end + 1 : end + 1 + _MOST_BEHIND].decode("utf-8", "replace").split("\n")[:NEAR]:
        behind = _QUOTED.sub("", next_line.rstrip("\r"))
        if not behind or date_of(behind)[0] >= 0 or _BEGINS_ANEW.match(behind):
            break
        whole = f"{whole.rstrip()} {behind}"
        longer_places = _places(lines_within(whole), length)
        # Of two rows that a line fits, the one that says more comes first in the table: the first of the places. With some
        # (GOES_ON) each line behind says more.
        goes_on = bool(longer_places) and STATEMENTS[longer_places[0]].kind in GOES_ON
        if longer_places and (not places or longer_places[0] < places[0] or goes_on):
            places, longer = longer_places, whole
            if not goes_on:
                return whole
        if _is_whole(behind):
            break
    return longer


def _is_whole(text: str) -> bool:
    """Return whether a line ends as Kafka, or an export, ends one: it was not wrapped."""
    return text.rstrip(_BEHIND_THE_END).endswith(_ENDS)


def _places(lines: Iterable[str], length: int) -> list[int]:
    """Return the places in STATEMENTS of the rows that lines fit, whose text begins in the first `length` characters."""
    return [_PLACES[id(row)] for line in lines for row, _, _ in statements_in(line) if line.find(row.text) < length]


def _take(text: str, number: int, order: int, file: ReadFile, selection: Selection | None) -> int:
    """Add what line `number` says to the file; return the order that the next line has if it has no time.

    `order` is the one for this line. An exception is added to the line that it is of.
    """
    if "ReplicaAlterLogDirsThread" in text and "future replica" not in text:
        # Another log's: the copy in another directory, whose own line looks as that of the replica.
        file.future |= {(str(tp), fields["to"]) for _, tp, fields in statements_in(text) if "to" in fields}
        return order
    begin, end, time = date_of(text, order)
    # The line is, or belongs to, the exception of a line before.
    exception = exception_in(text, begin, end)
    if exception is not None:
        if file.sourced_lines:
            _add_error(exception, number, file, is_cause="Caused by" in text[:120])
        # Its own date, if any, is a container's.
        begin, end, time = -1, -1, file.sourced_lines[-1].order if file.sourced_lines else time
    # An exception at the end of a line, which may be a statement of its own.
    behind = exception_behind(text) if exception is None else ""
    for says, partition, values in chain(statements_in(text), statements_in(behind)):
        fields = _beside_the_last(file.dump, values) if says.kind == "dumped-batch" else values
        # The log's own line of a truncation whose fetcher's line, just before, was of a copy in another directory.
        if says.kind == "truncated" and (str(partition), fields["to"]) in file.future:
            file.future.discard((str(partition), fields["to"]))
            return order
        if "[ConsumerFetcher" in text and says.kind != "consumer-reset":
            continue  # what a consumer to 1.1 fetched: no broker did
        # A dump is told by its first line, with what it has (_end_dump), as long as no batch in it is odd.
        if says.kind in ("dumped-segment", "dumped-snapshot"):
            _end_dump(file)
        elif says.kind == "dumped-batch" and not fields:
            continue  # it follows on the batch before, as nearly all do
        written = time if time is not None else order
        if not selects(selection, written, partition):
            return max(order, written)
        # Who wrote it, rule 3: later, _attribute gives a node to lines that name none.
        writer = _writer(text, begin, number, file)
        node = _note_ids(text, writer, file)
        node = int(fields["node"]) if "node" in fields else node
        # A line of an exception is of whoever printed the line before it.
        if exception is not None and node is None and file.sourced_lines and number - file.sourced_lines[-1].number <= 2:
            node, writer = file.sourced_lines[-1].node, file.sourced_lines[-1].place
        if "node" in fields:
            file.ids[writer].add(int(fields["node"]))
        shown = text[begin:end] if end >= 0 else ""
        error = behind if says.kind in WITH_EXCEPTIONS else ""
        sourced = SourcedLine(says, partition, fields, node, writer, shown, written, file.label, number, text, error)
        # A cause that follows, `Caused by`, is of this line, too (_add_error).
        if (exception or error) and says.kind in WITH_EXCEPTIONS:
            file.caused.append(len(file.sourced_lines))
        if says.kind == "dumped-segment":
            file.dump.place = len(file.sourced_lines)
        # Only the metadata log has such records, whatever the folder is called from which it was copied.
        if says.kind == "dumped-quorum" and file.dump.place is not None:
            segment = file.sourced_lines[file.dump.place]
            file.sourced_lines[file.dump.place] = replace(segment, partition=METADATA_LOG)
        file.sourced_lines.append(sourced)
        order = max(order, written)
    return order


def _end_dump(file: ReadFile) -> None:
    """End the dump of a segment: add to its first line what it has, if nothing in it was odd, and forget it.

    That is its first and last offset and the number of its batches.
    """
    dump, file.dump = file.dump, _SegmentDump()
    if dump.is_sound and dump.place is not None and dump.first is not None and dump.last is not None:
        line = file.sourced_lines[dump.place]
        contents = {"first": dump.first["first"], "last": dump.last["last"], "batches": str(dump.batches)}
        file.sourced_lines[dump.place] = replace(line, fields={**line.fields, **contents})


def _beside_the_last(dump: _SegmentDump, batch: Fields) -> Fields:
    """Add a batch to the dump, and return what is odd in it beside the one before: a gap, an invalid one, a lower epoch."""
    before, dump.last = dump.last, batch
    dump.first = dump.first or batch
    dump.batches += 1
    # `invalid` is the offset of an invalid batch; a gap is from `first` to before `end`; `epoch` is below that before.
    odd = {"invalid": batch["first"]} if batch["valid"] == "false" else {}
    # In an excerpt, what is between them in the file may have been left out: nobody knows whether that is sound.
    is_next = before is not None and int(before["position"]) + int(before["size"]) == int(batch["position"])
    if before is not None and is_next:
        follows = int(before["last"]) + 1
        if int(batch["first"]) > follows:
            odd.update(first=str(follows), end=batch["first"])
        elif int(batch["first"]) < follows:
            odd["invalid"] = batch["first"]
        if int(batch["epoch"]) < int(before["epoch"]):
            odd["epoch"] = batch["epoch"]
    dump.is_sound &= not odd and (before is None or is_next)
    return odd


def _part_starts(lines: Sequence[str]) -> Iterator[int]:
    """Yield the number of each line that stands behind prose, a fence or a command: a part of a report begins there.

    Prose is words with an empty line before or behind them. An item of a numbered list is a part of its own.
    """
    for number, (before, line, after) in enumerate(zip(("-", *lines), lines, (*lines[1:], "-"), strict=False), 1):
        if not before.strip() and _LIST_ITEM.match(line):
            yield number
        prose = (not before.strip() or not after.strip()) and _PROSE.match(line) and " " in line.strip()
        # An exception, or a line of a log.
        if prose and (_BEGINS_ANEW.match(line) or OWN_ID.search(line)):
            continue
        if (prose or _FENCE_OR_COMMAND.match(line)) and date_of(line)[0] < 0:
            yield number + 1


def _writer(text: str, begin: int, number: int, file: ReadFile) -> str:
    """Return a key of who wrote a line: what stands before its date, or else the part of a report in which it stands."""
    return writer_of(text, begin) or (f"part {bisect_right(file.part_starts, number)}" if file.part_starts else "")


def _note_ids(text: str, writer: str, file: ReadFile) -> int | None:
    """Note for its writer the node that a line names as its own, and return it; None if it names none."""
    own_id = OWN_ID.search(text)
    if own_id is None:
        return None
    node = int(own_id[own_id.lastindex or 0])
    file.ids[writer].add(node)
    return node


def _add_error(error: str, number: int, file: ReadFile, is_cause: bool) -> None:
    """Give an exception to the last line, if it may be of that; a cause (`is_cause`), to the lines with that exception.

    `number` is that of the line of the exception. `file.caused` are the lines that have the last exception.
    """
    last = file.sourced_lines[-1]
    if is_cause:
        for at in file.caused if number - last.number <= LONGEST_TRACE else ():
            line = file.sourced_lines[at]
            before = line.error.partition(CAUSED_BY)[0]
            file.sourced_lines[at] = replace(line, error=f"{before}{CAUSED_BY}{error}" if before else error)
    elif _awaits_exception(last) and 0 <= number - last.number <= _reach(file):
        file.sourced_lines[-1] = replace(last, error=error)
        file.caused = [len(file.sourced_lines) - 1]
    else:
        file.caused = []


def _awaits_exception(line: SourcedLine) -> bool:
    """Return whether the exception behind a line may be of it: not if the line has one itself.

    In 0.9 and 0.10 a fetch error has its exception in its own line, and no other one follows (AbstractFetcherThread).
    """
    has_its_own = line.error or (line.says.kind == "fetch-refused" and line.fields.get("error", "").strip())
    return line.says.kind in WITH_EXCEPTIONS and not has_its_own


def _reach(file: ReadFile) -> int:
    """Return how many lines before an exception the line that it is of may be: none if another message lies between.

    Fewer if other dated lines lie between, whose level is not known.
    """
    between = file.between.decode("utf-8", "replace").split("\n")
    # An exception stands directly behind the message that it is of.
    if file.is_interrupted or any(map(is_message, between)):
        return 0
    return NEAR if any(date_of(line)[0] >= 0 for line in between if line) else FAR


# Whose lines: those that do not say it themselves.


def _attribute(files: Sequence[ReadFile]) -> None:
    """Give each line without a node the only one that its writer, its file or its folder names; else it may be `mixed`."""
    # The ids that are named in a folder, and in all parts of a rotated log.
    folders: dict[Path, set[int]] = defaultdict(set)
    logs: dict[tuple[Path, str], set[int]] = defaultdict(set)
    beside: dict[Path, list[Path]] = defaultdict(list)
    for file in files:
        beside[file.path.parent].append(file.path)
    log_of = [(file.path.parent, stem(file.path, beside[file.path.parent])) for file in files]
    for file, log in zip(files, log_of, strict=True):
        folders[file.path.parent].update(file.nodes)
        logs[log].update(file.nodes)
    for file, log in zip(files, log_of, strict=True):
        # A rotated part of a log of several brokers may name one of them only.
        whole = logs[log]
        # A Connect worker prints its version and its signals as a broker does: beside one it is no node of the folder.
        of_any_program = all(line.says.logger in OF_ANY_PROGRAM for line in file.sourced_lines)
        of_folder = set() if of_any_program else folders[file.path.parent]
        described = _described_replicas(file)
        for at, line in enumerate(file.sourced_lines):
            if line.node is not None:
                continue
            leader = fetched_from(line.text)
            # The ids that its writer names.
            own = file.ids.get(line.place, set()) if line.place else set()
            # What others of a file with several writers are says nothing of one that does not say it.
            if not own and line.place and any(place and ids for place, ids in file.ids.items()):
                file.sourced_lines[at] = replace(line, mixed=True)
                continue
            # The nearest place that names any node decides (rule 3).
            for ids in (own, whole, of_folder):
                # Nobody fetches from himself. Where somebody else writes, too, it may be of a third.
                if ids - {leader}:
                    node = next(iter(ids)) if len(ids) == 1 else None
                    # A controller, or a broker of other partitions, may be the only one that a report names.
                    if node is not None and node not in described.get(line.partition, {node}):
                        break
                    file.sourced_lines[at] = replace(line, node=node, mixed=node is None)
                    break


def _described_replicas(file: ReadFile) -> dict[str | None, set[int]]:
    """Return the replicas of each partition that the output of kafka-topics --describe names, in this file."""
    replicas: dict[str | None, set[int]] = defaultdict(set)
    for line in file.sourced_lines:
        if line.says.kind == "described":
            replicas[line.partition].update(map(int, line.fields["replicas"].split(",")))
    return replicas


def fetched_from(text: str) -> int | None:
    """Return the leader from which the fetcher that wrote a line fetches; None if no fetcher wrote it."""
    fetched = _FETCHED_FROM.search(text)
    return None if fetched is None else int(fetched[fetched.lastindex or 0])


def in_order(files: Iterable[ReadFile]) -> list[SourcedLine]:
    """Return the lines of all files by time, each once: a second copy of a file, or of a line, says nothing new."""
    lines: list[tuple[int, int, SourcedLine]] = []
    # The file in which each line, by its key, was first seen; and the content of files without times.
    first_with: dict[tuple[object, ...], ReadFile] = {}
    undated: set[tuple[object, ...]] = set()
    for file in files:
        # Within one second the part of a log that was rolled away comes first, whatever it is called: it begins earlier.
        begins = min((line.order for line in file.sourced_lines), default=0)
        # Without times, the lines of a copy cannot be told from what was printed again: the whole file can.
        if not any(line.time for line in file.sourced_lines):
            text = file.lines, *((line.number, line.text) for line in file.sourced_lines)
            if text in undated:
                continue
            undated.add(text)
        for line in file.sourced_lines:
            # Two brokers may print the same at the same time: of nobody known, only what lies in one folder can be a copy.
            key = (
                file.path.parent if line.node is None else None,
                line.node,
                line.time,
                line.says.kind,
                line.partition,
                tuple(sorted(line.fields.items())),
            )
            is_again = key in first_with
            first = first_with.setdefault(key, file)
            # Within one file a node may print the same twice at one time, but for the statements in ONCE.
            if line.time and is_again and (first is not file or line.says.kind in ONCE):
                continue
            lines.append((line.order, begins, line))
    lines.sort(key=itemgetter(0, 1))
    return [line for *_, line in lines]
