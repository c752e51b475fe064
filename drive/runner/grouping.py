"""The differences of a run by their kinds, on a broker or on a controller.

Rule of this file: differences are of one kind when they come at the same step in the same fields; the shortest of a kind
is shrunk.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence

from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Difference

KINDS = 5
"""How many kinds of differences are shrunk and told."""

Kind = tuple[str, tuple[str, ...]]
"""The step after which a path differs, and the fields."""


def kinds_of(differences: Sequence[Difference[CaseT]]) -> dict[Kind, list[Difference[CaseT]]]:
    """What differs alike."""
    kinds: defaultdict[Kind, list[Difference[CaseT]]] = defaultdict(list)
    for found in differences:
        kinds[found.after, found.fields].append(found)
    return kinds


def shrunk_kinds(
    differences: Sequence[Difference[CaseT]],
    shrink: Callable[[Difference[CaseT]], Difference[CaseT] | None],
    echo: Callable[[str], None],
) -> Iterator[tuple[Difference[CaseT] | None, list[Difference[CaseT]]]]:
    """The kinds, most frequent first: what its shortest shrinks to, and all of it."""
    for (after, fields), alike in sorted(kinds_of(differences).items(), key=lambda item: -len(item[1]))[:KINDS]:
        echo(f"shrinking {after}: {', '.join(fields)}, {len(alike):,} paths")
        yield shrink(min(alike, key=lambda found: found.at)), alike
