"""Expected failures: ids of cases in a file, a line each; what is behind a # says why."""

from collections.abc import Collection, Mapping
from pathlib import Path

from tidegauge.impl.errors import UsageError


def expected_failures(place: Path, cases: Collection[str]) -> Mapping[str, str]:
    """What is said of each case that is expected to fail. Raises UsageError for an id of no case: the file is stale."""
    try:
        lines = place.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{place}: expected a file of ids; seen {problem}; make one, with an id per line") from None
    found = {}
    for number, line in enumerate(lines, start=1):
        name, _, says = line.partition("#")
        if not name.strip():
            continue
        if name.strip() not in cases:
            raise UsageError(f"{place}:{number}: expected the id of a case; seen {name.strip()!r}; take the line out")
        found[name.strip()] = f"{place}:{number}: {says.strip() or 'expected to fail'}"
    return found
