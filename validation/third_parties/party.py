"""A broker of another hand: what it is, how it is started, and why it does what Kafka does not.

Rules of this file

1. A reason is written after its source was read. It names the file and the function, or where the third party says that it
   does not do this.
2. `claimed` is False for what its own words leave out: no difference then, whatever comes back.
3. The first reason whose pattern fits a check is that of the check.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple


class Reason(NamedTuple):
    """Why some checks fail, by patterns of their ids; `source` is Markdown."""

    checks: tuple[str, ...]
    says: str
    source: str
    claimed: bool = True

    def fits(self, check: str) -> bool:
        """Whether it is about a check."""
        return any(fnmatchcase(check, pattern) for pattern in self.checks)


class Party(NamedTuple):
    """A third party. `command` is given a scratch folder and says what to run; raises UsageError for what is missing."""

    name: str
    title: str
    about: str
    command: Callable[[Path], list[str]]
    reasons: tuple[Reason, ...]

    def reason(self, check: str) -> Reason | None:
        """Why a check fails, if that was looked up."""
        return next((reason for reason in self.reasons if reason.fits(check)), None)
