"""Lines of one kind that are lost: every kind that the reader has a use for, and every API of the request log, in turn.

Rules of this file

1. A kind is rare or frequent, and what is drawn among all lines is nearly always a frequent one: a truncation is on one
   line of ten thousand. Here each kind of a capture has the same share.
2. Of a kind, one line is lost, a few in a row, those of a while in one file, all of one file, or all.
"""

import re
from functools import cache
from random import Random

from tidegauge.traces.kafka_logs.parsing.lines import Line
from tidegauge.traces.kafka_logs.parsing.parsed_line import parse_line
from validation.metamorphic.log_files import Files
from validation.metamorphic.tree import parts

ONE, FEW, FOR_A_WHILE, OF_A_FILE, ALL = "a line", "a few of a file", "a while of a file", "all of a file", "all"
HOW = (ONE, FEW, FOR_A_WHILE, OF_A_FILE, ALL)
_API = re.compile(r'"requestApiKeyName":"(\w+)"')


@cache
def kind(text: str) -> str | None:
    """Return the kind of a line: the first column of the reader's table, or the API of a request.

    None if no reader wants it.
    """
    line = parts(text)
    if line is None:
        return None
    # A request log has one kind of line for all APIs, of which the reader uses some.
    api = _API.search(line.message)
    if api is not None:
        return f"request {api[1]}"
    parsed = parse_line(Line("", 0, 0, line.thread, line.message, line.logger.rpartition(".")[2]))
    return None if parsed is None else parsed.kind


def kinds(files: Files) -> list[str]:
    """Return the kinds of line that a capture has."""
    return sorted({found for lines in files.values() for line in lines if (found := kind(line)) is not None})


def loss_of(how: str, what: str) -> str:
    """Return the name of a loss."""
    return f"{how}: {what}"


def is_of_a_kind(name: str) -> bool:
    """Return whether a loss is one of these."""
    return name.partition(": ")[0] in HOW


def lose(name: str, random: Random, files: Files) -> Files:
    """Return what is left of a capture that has lines of the kind."""
    how, _, what = name.partition(": ")
    places = [(path, at) for path, lines in sorted(files.items()) for at, line in enumerate(lines) if kind(line) == what]
    if how == ONE:
        places = [random.choice(places)]
    elif how != ALL:
        path = random.choice(sorted({path for path, _ in places}))
        places = [place for place in places if place[0] == path]
    if how in (FEW, FOR_A_WHILE):
        begin = random.randrange(len(places))
        places = places[begin : random.randint(begin + 1, min(len(places), begin + 4) if how == FEW else len(places))]
    gone = set(places)
    return {path: [line for at, line in enumerate(lines) if (path, at) not in gone] for path, lines in files.items()}
