"""How often the judge lets pass what, by model, event and changed field: let_pass.toml, held against what was counted.

Rule of this file: a count that changes is a difference, as is one that is missing or no longer met, and any kind without a
reason. Whoever sharpens the judge, or blunts it, writes the file anew (`--pin`) and shows the difference in review.
"""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from validation.product.false_accepts import LetPass

PATH = Path(__file__).with_name("false_accepts.toml")
Counts = Mapping[str, tuple[int, int]]
"""How many passed and how many left a check open, by event and changed field."""


def pinned(path: Path = PATH) -> dict[str, Counts]:
    """The counts of each model that has some."""
    if not path.exists():
        return {}
    tables = tomllib.loads(path.read_text(encoding="utf-8"))
    return {model: {kind: (one[0], one[1]) for kind, one in table.items()} for model, table in tables.items()}


def counted(found: Sequence[LetPass]) -> Counts:
    """What is let pass of what was found."""
    some = sorted((one for one in found if one.passed + one.open), key=lambda one: (one.event, one.field))
    return {f"{one.event} {one.field}".strip(): (one.passed, one.open) for one in some}


def differences(found: Sequence[LetPass], known: Counts) -> list[str]:
    """A line for each kind that has no reason, or other counts than are pinned."""
    seen = counted(found)
    lines = [f"{one.event} {one.field}".strip() + ": let pass without a reason" for one in found if not one.explained]
    for kind in sorted(seen.keys() | known.keys()):
        passed, left = known.get(kind, (0, 0))
        now_passed, now_left = seen.get(kind, (0, 0))
        if (passed, left) != (now_passed, now_left):
            lines.append(f"{kind}: expected {passed:,} passed and {left:,} open, saw {now_passed:,} and {now_left:,}")
    return lines


def pin(counts: Mapping[str, Counts], path: Path = PATH) -> None:
    """Write the counts, models in the order given."""
    lines = [
        "# What the judge lets pass: [passed, left open] by model, event and changed field. Reasons: reasons.py.",
        "# Made by `python -m validation.product --pin`.",
    ]
    for model, table in counts.items():
        lines += ["", f'["{model}"]', *(f'"{kind}" = [{passed}, {left}]' for kind, (passed, left) in table.items())]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
