"""What a fault is: one decision of impl.rules replaced by a wrong one.

Rules of this file

1. A fault is data: `Setup(rules=fault.rules)`, or `explore(bounds, profile, fault.rules)`. Nothing is patched.
2. Each resembles a bug that was shipped, or a slip one makes when writing the rule; `resembles` names it.
3. `breaks` is the invariant that a search within `bounds` finds violated first. None: no invariant fails there, because
   another rule heals it, or because it only stops progress; a judge of single steps sees it. Both are tested.
4. A wrong rule has the signature of the right one, and calls it wherever only part of the decision is wrong. Its row stands
   above it; its name is the fault's.
"""

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.profiles import Rules


class RevealingModel(NamedTuple):
    """Bounds and a generation in which traces of a fault differ from correct ones."""

    bounds: Bounds
    profile: str = "fetch-truncation"


class Fault(NamedTuple):
    """One wrong rule. `shown` is the model that reveals it, where that is not the one that reveals most faults."""

    name: str
    says: str
    resembles: str
    rule: str
    rules: Rules
    breaks: str | None
    bounds: Bounds
    shown: RevealingModel | None = None


SMALL_BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=1, max_crashes=1)
EPOCH_BOUNDS = Bounds(brokers=2, max_log=1, max_epoch=3, max_crashes=0)
LOG_START_BOUNDS = Bounds(brokers=2, max_log=2, max_epoch=0, max_crashes=0, max_start=1)

RuleT = TypeVar("RuleT", bound=Callable[..., Any])


def instead_of(
    faults: list[Fault],
    rule: str,
    *,
    says: str,
    resembles: str,
    breaks: str | None,
    bounds: Bounds = SMALL_BOUNDS,
    shown: RevealingModel | None = None,
) -> Callable[[RuleT], RuleT]:
    """Register the decorated wrong rule as a fault, named after the function: `_cut_one_high` is cut-one-high."""

    def made(wrong: RuleT) -> RuleT:
        name = wrong.__name__.strip("_").replace("_", "-")
        faults.append(Fault(name, says, resembles, rule, Rules.with_rule(rule, wrong), breaks, bounds, shown))
        return wrong

    return made
