"""Undo what mail, terminals and exports of log platforms do to a whole file, so that each log line is one line again.

In: the content of a file. Out: the same content if it is no export, else one with a log line, or a *document*, per line. A
document is a JSON object with the line and its *writer* (the host, pod or container), `{"log": .., "pod_name": ..}`, which
layout.py unwraps. A text is *wrapped* if its long lines were broken into several.

Rules of this file

1. A log line stands where it began, empty lines fill up: the numbers of lines stay those of the file. Only a line of several
   documents becomes several lines.
2. What one line shows by itself is not looked at here: `layout.py` and the story's `raw_lines.py` read it.
3. A row of a table, a document, or a line below a heading becomes a document with the line and its writer: columns are told
   by what they hold, whatever the language of their names.
4. Nothing is restored in a file that is larger than the bounds below, or that does not look like an export throughout.
"""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from tidegauge.traces.kafka_logs.parsing.layout import HEADING, WRITERS, document_with_a_line, is_of_a_log
from tidegauge.traces.kafka_logs.parsing.timestamps import date_in, iso

MOST_DOCUMENTS, MOST_WRAPPED = 64 << 20, 2 << 20
"""Bytes of a file of documents or rows, and of a text that a person may have wrapped."""
_ATTEMPTS = 50
"""Places in which a list of documents may begin."""
_SHOWN, _SAMPLE = 40, 2_000
"""Rows by which a table and its columns are told, and the one that names the writer."""
_OF_A_TOPIC = re.compile(r"\bPartition: ?\d")
"""A row of kafka-topics --describe, which has commas and tabs."""
_LONGEST_NAME, _MOST_WORDS = 60, 5
"""Characters and words of the name of a column: a sentence with a comma is no head of a table."""
_ENDS_SENTENCE = (".", ":", "!", "?", "\u3002", "\uff1a")
_SHORTEST, _LONGEST = 40, 300
"""Characters of the longest line of a wrapped text: nobody wraps to less, or to more."""

_LEVEL = re.compile(r"\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b")
_LIST = re.compile(r"\[\s*(?=\{)")
_BETWEEN = re.compile(r"[\s,]*")
_QUOTES = " \t>|"
_QUOTE = re.compile(r"^(?:(?:> ?)++|\| )")
"""What mail, or a table in a wiki, puts before a quoted line."""
_PREFIX = re.compile(r"(?=[^\d\[]{0,40}[A-Za-z])[\w.\-/]{2,60} *\|")
"""What docker compose puts before a line: `broker-1 |`."""
_HYPHEN = re.compile(r"\w-$")
_OF_AN_EXCEPTION = re.compile(
    r"[ \t>|]*+(?:[^\sA-Za-z]{1,40}|[^\s.]{0,80}(?:\.\w{1,8})?[:\-|>])?\s*+"
    r"(?:at [\w$.]+\.[\w$]|Caused by|\.\.\. \d+ more|(?:[a-z]\w*+\.)++\w*(?:Exception|Error)\b)"
)
"""A line of a stack trace; behind the number of the line, or the file that it was found in."""
_OF_A_DUMP = re.compile(
    r"[ \t>|]*+(?:(?:baseOffset|offset|Starting offset|Log starting offset|Snapshot end offset): ?\d"
    r"|Dumping \S|Found |payload:)"
)
"""A line of kafka-dump-log."""
_BEGINS_LINE = re.compile(
    r"[ \t>|*`\[({\"]*(?:(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b|%\d\|\d{10}|\$ \w"
    r"|(?:\d{13}|1\d{9}\.\d{1,9})\b(?=.{0,60}?\b(?:TRACE|DEBUG|INFO|WARN|ERROR|FATAL)\b))"
)
"""The beginning of a log line that has no time of the day at its beginning: a level, librdkafka's `%7|time`, a Unix time."""
_CLOCK = re.compile(r"(?<!\d)\d\d?:\d\d:\d\d(?!\d)")
"""Every date of a log line has a time of the day; a number alone may be an offset."""
_LOG_CONTEXT = re.compile(r"[ \t>|]*\[[A-Z]\w{2,40} (?:id|nodeId|brokerId|partition|topic)=")
"""What Kafka's LogContext puts before a message: where nobody wrote a date, a line begins with it."""
_SOFT_BREAK = re.compile(rb"=\r?\n")
_CODED, _NOT_CODED = re.compile(rb"=([0-9A-F]{2})"), re.compile(rb"=(?![0-9A-F]{2}|\r?\n)")
"""Of quoted-printable: the break of a wrapped line, a coded byte, and an equals sign that is neither."""
_MAY_CONTINUE = re.compile(rb"^(?!\[\d{4}-\d\d-\d\d \d\d:\d\d:\d\d|\tat |\n|\Z)", re.MULTILINE)
"""A line that begins neither as one of Kafka's own layout nor as one of a stack trace."""
_BYTES = re.compile(rb'"MESSAGE" ?: ?\[\d')
"""A message of journald as a list of bytes."""
_OF_A_CONTAINER = re.compile(r"(?P<head>\S{10,40} (?P<stream>stdout|stderr)) (?P<part>[PF]) ")
"""What CRI writes before a line, or before a part of one that it divides."""
_FIELDS = re.compile(rb"(?:__CURSOR|__REALTIME_TIMESTAMP)=|---\r?\n\w+:")
"""How `journalctl -o export` and `gcloud logging read` begin."""
_PAIR = re.compile(r"^ *([\w.\-]+)(?:=|: ?)(.*)$", re.MULTILINE)
_HEADING = re.compile(
    r"^(?:==> (?P<file>\S{1,300}) <==|(?P<task>[\w.\-]{1,200}) \| (?:CHANGED|SUCCESS|FAILED\S{0,3})(?: \| rc=\d+)? >>"
    r"|(?:={2,}|-{2,}|#{2,}|\*{2,}) ?(?P<host>\w[\w.\-/]{1,200}):? ?(?:={2,}|-{2,}|#{2,}|\*{2,}))"
)
"""Where the lines of another file or host begin: `tail`, Ansible, a loop of `ssh`."""
_DEEPEST = 8
"""Levels of a document that are searched for lines."""
_SPACES = {
    "\u00a0": " ",
    "&nbsp;": " ",
    "\u200b": "",
    "\u2192": "->",
    "\u201c": '"',
    "\u201d": '"',
    "\u2019": "'",
    "\u2018": "'",
}
_SPACED = re.compile("|".join(_SPACES))


def may_be_restored(content: bytes) -> bool:
    """Return whether a file may be an export (documents, fields or a table), by its beginning.

    An export is restored up to a larger size than a text.
    """
    head = content[:2048].lstrip(b"\xef\xbb\xbf \t\r\n")
    # JSON: restored unless its first document is a line of a log as it is, or an event of a trace.
    if head[:1] == b"{":
        line = content.lstrip(b"\xef\xbb\xbf \t\r\n").partition(b"\n")[0].rstrip(b"\r,")
        try:
            return bool(_BYTES.search(content)) or (not document_with_a_line(json.loads(line)) and b'"event"' not in head)
        except (ValueError, RecursionError):
            # The document goes on in the next line: nothing is certain yet.
            return True
    return (
        bool(_FIELDS.match(head))
        or (head[:1] == b"[" and head[1:].lstrip()[:1] == b"{")
        or _dialect(head.decode("utf-8", "replace")) is not None
    )


def restored(content: bytes) -> bytes:
    """Return the content of a file as it was before it was exported, wrapped or quoted; itself if it was not."""
    if may_be_restored(content):
        text = content.decode("utf-8-sig", "replace")
        if len(content) > MOST_DOCUMENTS:
            return content
        of_fields = _of_fields(text) if _FIELDS.match(content) else None
        return (of_fields or _of_documents(text) or _of_rows(text) or text).encode()
    # Most files: every line begins as Kafka's own layout begins it, so that none goes on in the next.
    plain = content.isascii() and b"\r" not in content and b"&nbsp;" not in content
    if len(content) > MOST_WRAPPED or (plain and not _MAY_CONTINUE.search(content)):
        return content
    # Quoted-printable, as mail encodes a text: `=3D` is a sign, and `=` at the end of a line joins it with the next.
    if _SOFT_BREAK.search(content) and not _NOT_CODED.search(content):
        content = _CODED.sub(lambda coded: bytes.fromhex(coded[1].decode()), _SOFT_BREAK.sub(b"", content))
    text = content.decode("utf-8", "surrogateescape")
    # Lines that end with a carriage return alone.
    if text.count("\r") > 1 + text.count("\n"):
        text = text.replace("\r", "\n")
    text = _SPACED.sub(lambda character: _SPACES[character[0]], text)
    texts = text.split("\n")
    # CRI marks the parts of a long line with `P`, and the last one with `F`.
    if " P " in text:
        _join_parts(texts)
    joined = unwrapped([line.rstrip("\r") for line in texts])
    if joined is not None:
        # Each line keeps the number of its first piece: messages name it as the user's file has it.
        texts = [""] * len(texts)
        for position, line in joined:
            texts[position] = line
    return "\n".join(_below_headings(texts)).encode("utf-8", "surrogateescape")


def _join_parts(texts: list[str]) -> None:
    """Join, in place, the parts of a container's line where it began; the other parts become empty.

    `2026-01-01T.. stdout P ..` goes on in the next line of its stream, up to one with F.
    """
    # By stream, the position of the line whose last part is to come.
    began: dict[str, int] = {}
    for at, text in enumerate(texts):
        match = _OF_A_CONTAINER.match(text)
        if match is None:
            continue
        first = began.pop(match["stream"], at) if match["part"] == "F" else began.setdefault(match["stream"], at)
        if first != at:
            texts[first] = texts[first].rstrip("\r") + text[match.end() :]
            texts[at] = ""
        elif match["part"] == "P":
            texts[at] = f"{match['head']} F {text[match.end() :]}"


# Headings: the lines below one are of the file, or the host, that it names.


def _below_headings(texts: list[str]) -> list[str]:
    """Return the lines below headings as documents that name their writer; the texts themselves without two headings.

    A heading is a line such as `==> broker-1/server.log <==` (tail) that names the file, and so the writer, of the lines
    below. The heading itself becomes an empty line.
    """
    # Each heading has a name in one of several groups: `lastgroup` is the one that matched.
    headings = {at: match for at, text in enumerate(texts) if (match := _HEADING.fullmatch(text.strip())) is not None}
    names = {match[match.lastgroup or 0] for match in headings.values()}
    if len(names) < 2:
        return texts
    # The files of one host are of one writer, unless all lie in one folder.
    folders = {name: str(PurePosixPath(name).parent) for name in names}
    writers = folders if len(set(folders.values())) > 1 else {name: name for name in names}
    below: list[str] = []
    writer = ""
    for at, text in enumerate(texts):
        if at in headings:
            writer = writers[headings[at][headings[at].lastgroup or 0]]
            below.append("")
        else:
            below.append(_dumped({HEADING: writer, "log": text}) if writer and text.strip() else text)
    return below


def _of_fields(text: str) -> str | None:
    """Return a file whose records have a field per line (journald's export, Google's YAML) with a document per record.

    None if no record has a log line.
    """
    documents: list[tuple[int, str]] = []
    # Where the record begins in the text.
    at = 0
    for record in re.split(r"(?<=\n)(?:---\r?\n|(?=\r?\n\w+=))", text):
        fields = {pair[1]: pair[2].strip() for pair in _PAIR.finditer(record)}
        line = fields.get("MESSAGE") or _of_yaml(fields.get("textPayload") or fields.get("message") or "")
        writer = fields.get("_HOSTNAME") or fields.get("pod_name") or ""
        if line:
            documents.append((at, _dumped({"log": line, "pod_name": writer.strip("'")})))
        at = text.find(record, at) + len(record)
    return _at_their_lines(text, iter(documents)) if documents else None


def _of_yaml(text: str) -> str:
    """Return the text of a scalar of YAML, which may be quoted."""
    if text[:1] == text[-1:] == "'" and len(text) > 1:
        return text[1:-1].replace("''", "'")
    try:
        return str(json.loads(text)) if text.startswith('"') else text
    except ValueError:
        return text


# Documents of JSON over several lines, or many in one line.


def _of_documents(text: str) -> str | None:
    """Return a file of JSON objects, which may take several lines each, with each document that has a log line on one line.

    None if no object of the file, nor of a list in it, has one.
    """
    if text.lstrip()[:1] not in ("{", "["):
        return None
    starts = [0, *(match.end() for _, match in zip(range(_ATTEMPTS), _LIST.finditer(text), strict=False))]
    # A list of documents first: each has a place of its own in the file, what is deep in one document has not.
    for documents_in in (_within, _deep):
        for start in starts:
            first = [document for _, value in islice(_decoded(text, start), _SHOWN) for document in documents_in(value)]
            if any(map(is_of_a_log, first)):
                # One after the other: the documents of 64 MB at once may be some GB.
                documents = (
                    (at, _dumped(document)) for at, value in _decoded(text, start) for document in documents_in(value)
                )
                return _at_their_lines(text, documents)
    return None


def _dumped(document: Mapping[str, Any]) -> str:
    """Write a document on one line."""
    return json.dumps(document, ensure_ascii=False)


def _decoded(text: str, start: int) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield the JSON objects from a position on, each with the position where it begins, up to what is no object."""
    decoder, at = json.JSONDecoder(), start
    while True:
        between = _BETWEEN.match(text, at)
        at = at if between is None else between.end()
        if text[at : at + 1] != "{":
            return
        try:
            value, end = decoder.raw_decode(text, at)
        except (ValueError, RecursionError):
            return
        yield at, value
        at = end


def _within(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the JSON object itself if it has a log line, as a document; of Loki's streams, which have several, each line."""
    # Loki: a stream's labels, and pairs of a time and a line.
    if isinstance(pairs := value.get("values"), list) and isinstance(stream := value.get("stream"), dict):
        yield from (
            {"line": pair[1], "labels": stream}
            for pair in pairs
            if isinstance(pair, list) and len(pair) > 1 and isinstance(pair[1], str)
        )
    elif isinstance(printed := value.get("MESSAGE"), list) and all(
        isinstance(byte, int) and 0 <= byte < 256 for byte in printed
    ):
        # journald writes a line with a colour as a list of its bytes
        yield {"log": bytes(printed).decode("utf-8", "replace"), "pod_name": str(value.get("_HOSTNAME", ""))}
    elif document_with_a_line(value):
        yield value


def _deep(value: Any, writer: str = "", depth: int = 0) -> Iterator[dict[str, Any]]:
    """Yield a document for each line anywhere in a JSON value, with the nearest writer above it.

    Such are the exports of OpenTelemetry, Datadog, Azure and Ansible. `writer` and `depth` are those of the value.
    """
    if depth > _DEEPEST:
        return
    if isinstance(value, list):
        for element in value:
            yield from _deep(element, writer, depth + 1)
        return
    if not isinstance(value, dict):
        return
    writer = _writer_in(value) or writer
    body = value.get("body")
    # OpenTelemetry's log record.
    if isinstance(body, dict) and isinstance(body.get("stringValue"), str):
        yield {"log": body["stringValue"], "pod_name": writer}
    # Azure: a table with its columns and rows.
    elif isinstance(names := value.get("columns"), list) and isinstance(rows := value.get("rows"), list):
        head = [str(name.get("name")) if isinstance(name, dict) else str(name) for name in names]
        for row in rows:
            yield from _deep(dict(zip(head, row, strict=False)) if isinstance(row, list) else row, writer, depth + 1)
    # Ansible: the output of a task.
    elif isinstance(lines := value.get("stdout_lines"), list):
        yield from ({"log": str(line), "pod_name": writer} for line in lines)
    elif document_with_a_line(value) or isinstance(value.get("LogEntry"), str):
        yield {
            **value,
            **({"log": value["LogEntry"]} if "LogEntry" in value else {}),
            **({"pod_name": writer} if writer else {}),
        }
    else:
        hosts = value.get("hosts")
        # Ansible: the key is the host that wrote what is below it.
        for name, of_host in hosts.items() if isinstance(hosts, dict) else ():
            yield from _deep(of_host, str(name), depth + 1)
        for inner in value.values() if not isinstance(hosts, dict) else ():
            yield from _deep(inner, writer, depth + 1)


def _writer_in(value: Mapping[str, Any]) -> str:
    """Return the writer that a JSON object names in a field, or in an attribute of its resource; "" if it names none."""
    attributes = value.get("resource", {}).get("attributes") if isinstance(value.get("resource"), dict) else None
    fields = {**value}
    # OpenTelemetry: a list of {"key": .., "value": {"stringValue": ..}}.
    for attribute in attributes if isinstance(attributes, list) else ():
        if isinstance(attribute, dict) and isinstance(attribute.get("value"), dict):
            fields[str(attribute.get("key"))] = attribute["value"].get("stringValue")
    letters = {re.sub(r"[^a-z]", "", name.lower()): text for name, text in fields.items() if isinstance(text, str)}
    return next((text for part in WRITERS for name, text in letters.items() if part in name and 0 < len(text) <= 200), "")


def _at_their_lines(text: str, documents: Iterator[tuple[int, str]]) -> str:
    """Return a text with as many lines as `text`, in which each document stands on the line where it began (rule 1).

    `documents` has each with its position in `text`, in order; several of one line take the lines after it, too.
    """
    lines, lines_written = io.StringIO(), 0
    line_number = counted_to = 0
    for at, document in documents:
        line_number += text.count("\n", counted_to, at)
        counted_to = at
        lines.write("\n" * (line_number - lines_written) + document + "\n")
        lines_written = max(line_number, lines_written) + 1
    lines.write("\n" * (text.count("\n") + 1 - lines_written))
    # `text` has one line break less: none behind its last line.
    return lines.getvalue()[:-1]


# Tables with a head: CSV and its kin.


def _dialect(text: str) -> str | None:
    """Return the delimiter of the columns of a table that begins with `text`; None for a text that is no table."""
    head = text.partition("\n")[0]
    # The head of a table has names only; a time, a level or JSON in the first line is a log.
    if not head.strip() or _CLOCK.search(head) or _LEVEL.search(head) or "{" in head or _OF_A_TOPIC.search(head):
        return None
    for delimiter in ",;\t":
        names = head.split(delimiter)
        if delimiter not in head or max(map(len, names)) > _LONGEST_NAME:
            continue
        if head.rstrip().endswith(_ENDS_SENTENCE) or max(len(name.split()) for name in names) > _MOST_WORDS:
            continue
        rows = [row for _, row in islice(_rows(text, delimiter), 3)]
        # In a longer text the third row may not be whole: only its beginning is given.
        widths = {len(row) for row in rows[: 2 if len(text) > 1500 else 3]}
        if len(rows) > 1 and len(widths) == 1 and all(rows[0]):
            return delimiter
    return None


def _rows(text: str, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the rows of a table, each with its position in the text, up to what is no row."""
    # The csv module counts lines; where a row begins is what was read before it.
    source = io.StringIO(text, newline="")
    reader, begin = csv.reader(iter(source.readline, ""), delimiter=delimiter), 0
    try:
        for row in reader:
            if row:
                yield begin, row
            begin = source.tell()
    except csv.Error:
        return  # a cell without its end, or too large


def _of_rows(text: str) -> str | None:
    """Return a table with a head with each row as a document of its line and writer; None for a text that is no table."""
    delimiter = _dialect(text[:4096])
    if delimiter is None:
        return None
    (_, head), *first = islice(_rows(text, delimiter), _SAMPLE)
    sample = [row for _, row in first if len(row) == len(head)]
    first_rows = sample[:_SHOWN]
    if not first_rows:
        return None
    columns = range(len(head))
    # The column with the longest texts has the lines.
    message = max(columns, key=lambda column: sum(min(len(row[column]), 500) for row in first_rows))
    dates = [
        column for column in columns if column != message and all(date_in(row[column]) is not None for row in first_rows)
    ]
    levels = [column for column in columns if all(_LEVEL.fullmatch(row[column].strip().upper()) for row in first_rows)]
    writer = _writer_column(head, sample, {message, *dates, *levels})
    # 13/1/2026 is no month: then the day stands first in all of them.
    american = not any(re.match(r"(?:1[3-9]|[23]\d)/", row[column]) for column in dates for row in first_rows)

    def line_of(row: list[str]) -> str:
        """Return a row as a document of its line and writer."""
        line = row[message]
        # The platform has taken time and level off the line, and gives them columns of their own: put them back.
        if date_in(line[:80]) is None and dates:
            time = date_in(row[dates[0]], american=american)
            level = row[levels[0]].strip().upper() if levels else ""
            line = f"[{iso(time)}] {level + ' ' if level and not _LEVEL.match(line) else ''}{line}" if time else line
        pod_name = {} if writer is None else {"pod_name": re.sub(r"[^\w.\-/]+", " ", row[writer]).strip()}
        return _dumped({"log": line, **pod_name})

    rows = islice(_rows(text, delimiter), 1, None)
    return _at_their_lines(text, ((at, line_of(row)) for at, row in rows if len(row) == len(head)))


def _writer_column(head: Sequence[str], rows: Sequence[Sequence[str]], others: set[int]) -> int | None:
    """Return the column that names the writer, by the head of the column, else one with few names; None if there is none.

    `others` are the columns that have something else.
    """
    candidates = [column for column in range(len(head)) if column not in others and all(row[column].strip() for row in rows)]
    for name in WRITERS:
        for column in candidates:
            if name in re.sub(r"[^a-z]", "", head[column].lower()):
                return column
    # A broker's name comes again and again, and there is more than one.
    few = [column for column in candidates if 1 < len({row[column] for row in rows}) <= max(2, len(rows) // 3)]
    return few[0] if few else None


# Lines that mail, a terminal or a person has wrapped.


def unwrapped(texts: Sequence[str]) -> list[tuple[int, str]] | None:
    """Return the lines of a text that was wrapped, joined, each with the position of its first piece; None for any other."""
    # What stands between fences, the lines and the prose around them, has a width of its own each.
    fences = [at for at, text in enumerate(texts) if text.lstrip().startswith("```")]
    if not fences:
        return _unwrapped_part(texts)
    joined: list[tuple[int, str]] = []
    wrapped = False
    for first, end in zip((-1, *fences), (*fences, len(texts)), strict=True):
        part = _unwrapped_part(texts[first + 1 : end])
        wrapped |= part is not None
        joined += [(first + 1 + at, text) for at, text in part or enumerate(texts[first + 1 : end])]
        joined += [(end, texts[end])] if end < len(texts) else []
    return joined if wrapped else None


def _unwrapped_part(texts: Sequence[str]) -> list[tuple[int, str]] | None:
    """Return the lines of a wrapped text without fences, as `unwrapped` does."""
    longest = max((len(text) for text in texts if " " in _QUOTE.sub("", text).strip()), default=0)
    if not _SHORTEST <= longest <= _LONGEST:
        return None
    # One in eight: the other lines of a dump are the wrapped ones.
    is_dump = sum(_OF_A_DUMP.match(text) is not None for text in texts) * 8 > len(texts)
    # docker compose's prefix stands before each line, and before nothing that continues one.
    prefix = next((match[0] for text in texts if (match := _PREFIX.match(text)) is not None), None)
    undated = not any(_CLOCK.search(text) for text in texts)
    begins = [
        _begins(text, is_dump)
        or (undated and _LOG_CONTEXT.match(text) is not None)
        or (prefix is not None and text.startswith(prefix))
        for text in texts
    ]

    def continues_line(at: int) -> bool:
        """Return whether a text continues the line before it, which had no place for the text's first word."""
        text = texts[at]
        if at == 0 or begins[at] or _OF_AN_EXCEPTION.match(text):
            return False
        first_word = _QUOTE.sub("", text).lstrip().partition(" ")[0]
        indent = len(text) - len(text.lstrip(" "))
        return len(texts[at - 1].rstrip()) + 1 + len(first_word) > longest - 1 - indent

    continues = [continues_line(at) for at in range(len(texts))]
    broken = sum(continues)
    begun = sum(begin and bool(text.strip(_QUOTES)) for begin, text in zip(begins, texts, strict=True))
    # Long lines that happen to end near the limit are few; a text that was wrapped breaks at least one line in ten.
    if not broken or not begun or broken * 10 < begun:
        return None
    # A terminal breaks a line where it is full, mail between words.
    by_a_terminal = 2 * sum(len(texts[at - 1]) == longest for at, loose in enumerate(continues) if loose) > broken
    return _joined(texts, begins, continues, longest if by_a_terminal else None)


def _joined(
    texts: Sequence[str], begins: Sequence[bool], continues: Sequence[bool], width: int | None
) -> list[tuple[int, str]]:
    """Join each text that `continues` a line to it; return each line with the position of its first text.

    `begins` says which texts begin a line. `width` is that of the terminal that wrapped them, None for mail.
    """
    # The quote before most lines is taken off what continues them. Not what else may look like a quote: a terminal may break
    # `->` in two.
    quotes = Counter(
        match[0] if (match := _QUOTE.match(text)) else "" for text, begin in zip(texts, begins, strict=True) if begin
    )
    quote = quotes.most_common(1)[0][0]
    indented = min((len(text) - len(text.lstrip(" ")) for text in texts if text.strip()), default=0)
    joined: list[tuple[int, str]] = []
    for at, text in enumerate(texts):
        # What was quoted after it was wrapped, and wrapped again, has the end of a line on a line of its own, not quoted.
        left_over = (
            quote.startswith(">")
            and at > 1
            and not begins[at]
            and not (texts[at - 1].startswith(">") and text.startswith(">"))
        )
        if not joined or not (continues[at] or left_over):
            joined.append((at, text))
            continue
        before, after = joined[-1][1], text[indented:].removeprefix(quote)
        if width is not None:
            # If a line is not full, it ended with a space, which was lost.
            before += " " if len(texts[at - 1]) < width and not after.startswith(" ") else ""
        else:
            before, after = before.rstrip(), after.lstrip(" \t")
            # Mail breaks behind a hyphen without a space.
            before += "" if _HYPHEN.search(before) else " "
        joined[-1] = joined[-1][0], before + after
    return joined


def _begins(text: str, is_dump: bool) -> bool:
    """Return whether a text begins a line: of a log, or if `is_dump` of kafka-dump-log; an empty text does, too."""
    if not text.strip(_QUOTES):
        return True
    if is_dump:
        return _OF_A_DUMP.match(text) is not None
    return bool(_BEGINS_LINE.match(text) or _CLOCK.search(text[:80]))
