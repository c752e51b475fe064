"""What holding a transcript against a profile has shown, of a broker or of a controller."""

from typing import Generic, NamedTuple

from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Played

MOST = 60
"""How many paths are explained."""


class Rechecked(NamedTuple, Generic[CaseT]):
    """How a transcript compares; `causes` counts paths by what explains them, `first` tells the shortest."""

    name: str
    against: str
    played: Played[CaseT]
    seconds: float
    causes: tuple[tuple[str, int], ...]
    first: str

    @property
    def exit_code(self) -> int:
        """0 the same, 1 different, 3 nothing was compared."""
        return self.played.exit_code


def text_of(found: Rechecked[CaseT]) -> str:
    """The comparison as text."""
    lines = [found.first, ""] if found.first else []
    lines += [f"{paths:>6,} paths as with {cause}" for cause, paths in found.causes]
    played, differ = found.played, len(found.played.differences)
    lines.append(
        f"{found.name} against {found.against}: {differ:,} of {played.cases:,} paths differ; {played.steps:,} steps in "
        f"{found.seconds:.1f} s"
    )
    return "\n".join(lines)
