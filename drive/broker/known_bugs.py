"""Every bug that can be switched on in the broker that is driven: wrong rules, switches of older releases, wrong steps.

A bug is named as its fault is (impl.explored.faults), or by its issue; its sentence is that of the fault or of catalog.toml.
A bug of the catalog that is neither here nor resembled by a fault has a reason there (`beyond`).
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.conformance.judging.rulebook import known_bugs
from tidegauge.drive.broker.state import WrongStep
from tidegauge.drive.broker.wrong_steps import WRONG_STEPS
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored.faults import FAULTS
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile, Rules
from tidegauge.impl.releases import profile_named


class DrivenBug(NamedTuple):
    """One bug, as a broker has it. `right` is the generation without it: the reference, and whose paths are played."""

    name: str
    says: str
    right: Profile = FETCH_TRUNCATION
    switches: Mapping[str, bool | str] = MappingProxyType({})
    rules: Rules = Rules()
    wrong_step: WrongStep | None = None

    @property
    def profile(self) -> Profile:
        """The generation with it."""
        return self.right.switched(self.switches)


def _known() -> Mapping[str, DrivenBug]:
    bugs = [DrivenBug(fault.name, f"{fault.says} ({fault.resembles})", rules=fault.rules) for fault in FAULTS.values()]
    for bug in known_bugs().values():
        if bug.beyond:
            continue
        if bug.switches:
            bugs.append(DrivenBug(bug.name, bug.says, profile_named(bug.right), bug.switches))
        elif bug.name in WRONG_STEPS:
            bugs.append(DrivenBug(bug.name, bug.says, profile_named(bug.right), wrong_step=WRONG_STEPS[bug.name]))
    return MappingProxyType({bug.name: bug for bug in bugs})


BUGS = _known()


def bug_named(name: str) -> DrivenBug:
    """Return the bug called `name`. Raises UsageError with the names there are."""
    if name not in BUGS:
        raise UsageError(f"bug: expected one of {', '.join(BUGS)}; seen {name!r}; choose one of those")
    return BUGS[name]
