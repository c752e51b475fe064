"""The traces that mutants of the judge are held against, and what the judge says of each: both are fixed.

    python -m tests.mutation.kernel_corpus          # does the judge say what is pinned?
    python -m tests.mutation.kernel_corpus --pin    # it does now; read the difference before you commit it

Rules of this file

1. kernel_corpus.ndjson.gz holds the traces, kernel_corpus.txt a line for each: the rules that fail, and a digest of all
   else that the judge says. Where a digest alone changes, the tallies of the two versions say what it is.
2. A pin says that something has changed, not which side is right: that say the tests of the rules.
3. tests.mutation.kernel_choice made the traces; they are pinned, so that a change of what makes traces changes nothing here.
"""

import gzip
import hashlib
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

from tests.mutation.prepared import Prepared, prepared
from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.formats import ndjson
from tidegauge.traces.problems import lost
from tidegauge.traces.schema import Trace

TRACES = Path(__file__).with_name("kernel_corpus.ndjson.gz")
PINS = Path(__file__).with_name("kernel_corpus.txt")
TOGETHER = 4
"""So many traces of a config are also judged one behind the other."""
LITTLE, MIDDLING = 3, 20
"""Registrations and terms for which there is room where a trace is also judged with little: what is superseded goes. It is
looked for at once in the one, and only at some of the counts in the other."""


@cache
def traces() -> tuple[Trace, ...]:
    """Every trace of the corpus. Raises ValueError where one cannot be read as it was written."""
    read = ndjson.read_bytes(gzip.decompress(TRACES.read_bytes()), TRACES.name)
    if lost(read.problems):
        raise ValueError(f"expected traces that can be read in {TRACES}; seen {read.problems[0]}")
    return tuple(read.traces)


def write(chosen: Sequence[Trace]) -> None:
    """Write the corpus: the same traces, the same bytes."""
    # Not where each event was read: that is a line of the corpus before.
    unread = (replace(trace, events=tuple(replace(event, at="") for event in trace.events)) for trace in chosen)
    text = "".join(f"{line}\n" for trace in unread for line in ndjson.lines(trace))
    TRACES.write_bytes(gzip.compress(text.encode(), mtime=0))
    traces.cache_clear()


def tables(given: Sequence[Trace]) -> list[Prepared]:
    """Each trace by itself, some also with little room; then some together, for what one trace may leave to the next."""
    alone = [prepared(trace.name, [trace]) for trace in given]
    of: defaultdict[str, list[Trace]] = defaultdict(list)
    for trace in given:
        of[repr(trace.config)].append(trace)
    together = [some[at : at + TOGETHER] for some in of.values() for at in range(0, len(some) - 1, TOGETHER)]
    crowded = [table for trace in given for table in with_little_room(trace)]
    return [*alone, *crowded, *(prepared("together", some) for some in together if len(some) > 1)]


def with_little_room(trace: Trace) -> list[Prepared]:
    """Two tables of each size where something has to go: one that may grow, and says so, and one that may not."""
    rooms = [room for room in (LITTLE, MIDDLING) if changes(trace) > room]
    return [prepared(trace.name, [trace], room, full) for room in rooms for full in (False, True)]


def changes(trace: Trace) -> int:
    """How often the registration of the partition changes, or a broker begins to lead."""
    return sum(event.event in ("ChangePartition", "BecomeLeader") for event in trace.events)


def pin_of(trace: Trace) -> str:
    """One line: the trace, the rules that fail, and a digest of the tallies, the failures and the last state."""
    said = judge(to_columns([trace], trace.config), trace.config, final=1)
    rules = " ".join(sorted({failure.rule for failure in said.failures})) or "passes"
    return f"{trace.name} {hashlib.sha256(_all(said).encode()).hexdigest()[:12]} {rules}"


def _all(said: Judgement) -> str:
    """Rules that are not asked are left out: another rule changes only the pins of traces that it judges."""
    tallies = {rule: tally for rule, tally in sorted(said.tallies.items()) if tally.held or tally.failed or tally.undecided}
    return repr((tallies, said.failures, said.final))


def differences() -> list[str]:
    """What is pinned and is not said any more, and what is said instead."""
    pinned, said = PINS.read_text(encoding="utf-8").splitlines(), [pin_of(trace) for trace in traces()]
    return [f"- {line}" for line in pinned if line not in said] + [f"+ {line}" for line in said if line not in pinned]


def main(argv: Sequence[str]) -> int:
    """0 when the judge says what is pinned, or it is pinned now; 1 when not."""
    if list(argv) == ["--pin"]:
        PINS.write_text("".join(f"{pin_of(trace)}\n" for trace in traces()), encoding="utf-8")
        return 0
    if argv:
        print(f"expected --pin or nothing; seen {' '.join(argv)}", file=sys.stderr)
        return 2
    found = differences()
    print("\n".join(found) or f"{len(traces())} traces: the judge says what is pinned")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
