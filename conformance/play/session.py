"""A cluster under a person's hand: steps by label, told in lines, kept as a path that can be judged.

Rules of this file

1. The session decides nothing: `impl.cluster.cluster` says what is enabled and what a step does. A label that is not enabled
   changes nothing.
2. Records get letters in the order they are written; a record is its (epoch, offset), as everywhere.
3. The path is kept, so a session is a trace like any other, and the judge can be asked about it.
"""

from collections.abc import Iterable

from tidegauge.conformance.judging.judge import Judgement, judge
from tidegauge.conformance.play.step_text import reported
from tidegauge.impl.cluster.cluster import Bounds, Cluster, Label, actions, initial, record_epochs, step
from tidegauge.impl.errors import UsageError
from tidegauge.impl.explored import describe
from tidegauge.impl.explored.invariants import INVARIANTS
from tidegauge.impl.explored.view import view
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.traces.columns import to_columns
from tidegauge.traces.model.behaviour import trace_of_path
from tidegauge.traces.schema import Trace

UNBOUNDED = 1_000
"""Offsets, epochs, crashes and network faults a session will not reach by hand."""

WITH_ELR = {
    "Crash": "CrashAndLose",
    "FenceBroker": "FenceElr",
    "UnfenceBroker": "UnfenceElr",
    "AlterPartition": "AlterPartitionElr",
}

LETTERS = "abcdefghijklmnopqrstuvwxyz"


def bounds_for(brokers: int, max_fetch: int = UNBOUNDED, *, clients: bool = False) -> Bounds:
    """As many brokers; nothing else is bounded but what one fetch returns. With clients all records are theirs, acks=all."""
    waiting = UNBOUNDED if clients else 0
    unbounded = Bounds(brokers, UNBOUNDED, UNBOUNDED, UNBOUNDED, max_fetch, UNBOUNDED, UNBOUNDED, waiting, UNBOUNDED)
    return unbounded._replace(loses_tails=True)


class Session:
    """The run so far."""

    def __init__(self, bounds: Bounds, profile: Profile = FETCH_TRUNCATION) -> None:
        self.profile = profile
        self.cluster: Cluster = initial(bounds, profile)
        self.states: list[Cluster] = [self.cluster]
        self.labels: list[Label] = []
        self.values: dict[tuple[int, int], str] = {}

    @property
    def brokers(self) -> int:
        """How many there are."""
        return len(self.cluster.brokers)

    def action(self, name: str) -> str:
        """What the profile calls an action: with ELR some are others."""
        return WITH_ELR.get(name, name) if self.profile.elr else name

    def enabled(self) -> tuple[Label, ...]:
        """What can happen now."""
        return actions(self.cluster)

    def first_enabled(self, labels: Iterable[Label]) -> Label | None:
        """The first of `labels` that can happen now."""
        possible = set(self.enabled())
        return next((label for label in labels if label in possible), None)

    def take(self, label: Label) -> list[str]:
        """One step; what it did, a line each."""
        before = self.cluster
        if label not in self.enabled():
            raise UsageError(
                f"expected an action that can happen now, saw {describe.label_text(label)}; `actions` lists them"
            )
        self.cluster = step(before, label)
        self.labels.append(label)
        self.states.append(self.cluster)
        if label[0] == "LeaderAppend":
            written = record_epochs(self.cluster.brokers[label[1]])
            self.values[written[-1], len(written) - 1] = LETTERS[len(self.values) % len(LETTERS)]
        return reported(before, label, self.cluster, self.values)

    def back_to(self, steps: int) -> None:
        """Only the first `steps` steps have happened."""
        del self.labels[steps:], self.states[steps + 1 :]
        self.cluster = self.states[-1]

    def show(self) -> list[str]:
        """Every replica's log, the controller, what is in flight."""
        return describe.grid(self.cluster, self.values).splitlines()

    def violations(self) -> list[str]:
        """Every invariant that does not hold now."""
        found = (check(self.cluster) for check in INVARIANTS.values())
        return [describe.violation_text(violation) for violation in found if violation is not None]

    def trace(self, name: str = "session") -> Trace:
        """The run so far, as its nodes would have told it."""
        views = [view(state) for state in self.states]
        twice = any(label[0] == "HandleDuplicate" for label in self.labels)
        min_isr = self.cluster.model.bounds.min_insync_replicas
        profile = self.profile.name
        return trace_of_path(views, self.labels, name, profile, "impl", min_isr=min_isr, duplicates=twice)

    def judged(self) -> Judgement:
        """What the judge says of that trace, under the unchanged profile."""
        trace = self.trace()
        return judge(to_columns([trace], trace.config), trace.config)
