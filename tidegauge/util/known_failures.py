"""The list of failures that a project knows: which cases fail, and which fail at times.

Rules of this file

1. A line is the id of a case; `flaky:` before it says that it fails at times. A # and the reason may follow.
2. The list is strict: a case that fails and is not listed is a failure, and so is a line that is stale. A line is stale if
   its case is no longer there, or passes and is not flaky. Left in the list, it would hide that nothing is expected any
   more.
"""

from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from tidegauge.util.errors import UsageError

FLAKY = "flaky:"


class KnownFailure(NamedTuple):
    """A line of the list: where it is, why the case fails, and whether it does so only at times."""

    where: str
    reason: str
    flaky: bool = False


def known_failures(place: Path, cases: Collection[str] | None = None) -> Mapping[str, KnownFailure]:
    """Read a list; return its lines by the id of the case. Raises UsageError, also for an id of none of the `cases`."""
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{place}: expected a file of ids; seen {problem}; make one, with an id per line") from None
    known: dict[str, KnownFailure] = {}
    for number, line in enumerate(lines, start=1):
        text, _, reason = line.partition("#")
        name = text.strip().removeprefix(FLAKY).strip()
        if not name:
            continue
        if cases is not None and name not in cases:
            raise UsageError(f"{place}:{number}: expected the id of a case; seen {name!r}; take the line out")
        flaky = text.strip().startswith(FLAKY)
        why = reason.strip() or ("fails at times" if flaky else "expected to fail")
        known[name] = KnownFailure(f"{place}:{number}", why, flaky)
    return known
