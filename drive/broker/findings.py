"""What releases have done that today's does not: known bugs with switches, and every other switch that was turned."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tidegauge.conformance.judging.rulebook import known_bugs
from tidegauge.impl.profiles import FETCH_TRUNCATION, REPAIRED, SKIPS_EQUAL, Profile
from tidegauge.impl.releases import SINCE


class Finding(NamedTuple):
    """Something that a release may do and another does not: switches with a value, and what it would be without."""

    name: str
    says: str
    has: Mapping[str, Any]
    right: Mapping[str, Any]

    def is_in(self, profile: Profile) -> bool:
        """Whether a release does it."""
        return all(getattr(profile, name) == value for name, value in self.has.items())


def findings() -> list[Finding]:
    """Every known bug with switches, and whatever else releases have done that today's does not."""
    best = FETCH_TRUNCATION._replace(
        keeps_remote_leo=REPAIRED.keeps_remote_leo,
        reads_equal_partition_epoch=SKIPS_EQUAL.reads_equal_partition_epoch,
        hw_rounded_to_batches=False,
    )
    found = []
    for bug in known_bugs().values():
        right = {name: getattr(best, name) for name in bug.switches}
        if bug.switches and right != dict(bug.switches):
            found.append(Finding(bug.name, bug.says, bug.switches, right))
    known = {name for finding in found for name in finding.has}
    for name, since in SINCE.items():
        now = getattr(best, name)
        others = dict.fromkeys(value for _, value in since if value != now)
        if name not in known:
            found += [Finding(f"`{name}` = {_word(value)}", "", {name: value}, {name: now}) for value in others]
    return found


def _word(value: bool | str) -> str:
    return ("on" if value else "off") if isinstance(value, bool) else value
