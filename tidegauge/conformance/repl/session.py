"""A session of play: takes steps by label, describes them in lines, and keeps the path, which can be judged.

Rules of this file

1. The session decides nothing: its cluster (play.clusters) says what is enabled and what a step does. A label that is not
   enabled changes nothing.
2. Records get letters in the order they are written; a record is its (epoch, offset), as everywhere.
3. The path is kept, so a session is a trace like any other, and the judge can be asked about it.
"""

from collections.abc import Iterable

from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.conformance.repl.clusters import ControllerPlay, PlayedCluster
from tidegauge.impl.cluster.cluster import Cluster, Label, record_epochs
from tidegauge.impl.profiles import Profile
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Trace
from tidegauge.util.errors import UsageError

LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Session:
    """The run so far: every state of the cluster, and the label of each step."""

    def __init__(self, start: PlayedCluster) -> None:
        self.path: list[PlayedCluster] = [start]
        self.labels: list[Label] = []
        self.values: dict[tuple[int, int], str] = {}

    @property
    def now(self) -> PlayedCluster:
        """The state after the last step."""
        return self.path[-1]

    @property
    def cluster(self) -> Cluster:
        """The brokers, their network and the registration after the last step."""
        return self.now.cluster

    @property
    def states(self) -> list[Cluster]:
        """The brokers, their network and the registration at the start and after each step."""
        return [state.cluster for state in self.path]

    @property
    def profile(self) -> Profile:
        """The profile of brokers and controller."""
        return self.now.profile

    @property
    def brokers(self) -> int:
        """The number of brokers."""
        return len(self.cluster.brokers)

    @property
    def has_whole_controller(self) -> bool:
        """Whether the controller is all of impl.controller."""
        return isinstance(self.now, ControllerPlay)

    def enabled(self) -> tuple[Label, ...]:
        """Return the labels of what can happen now."""
        return self.now.enabled()

    def first_enabled(self, labels: Iterable[Label]) -> Label | None:
        """Return the first of `labels` that can happen now."""
        possible = set(self.enabled())
        return next((label for label in labels if label in possible), None)

    def take(self, label: Label) -> list[str]:
        """Take one step; return what it did, a line each. Raises UsageError for a label that is not enabled."""
        before, after = self.now, self.now.step(label)
        if after is None:
            seen = before.label_text(label)
            raise UsageError(f"expected an action that can happen now, saw {seen}; `actions` lists them")
        self.labels.append(label)
        self.path.append(after)
        # A letter belongs to (epoch, offset): a record that another one replaces later keeps its own.
        if label[0] == "LeaderAppend":
            epochs = record_epochs(after.cluster.brokers[label[1]])
            self.values[epochs[-1], len(epochs) - 1] = LETTERS[len(self.values) % len(LETTERS)]
        return after.step_lines(before, label, self.values)

    def back_to(self, steps: int) -> None:
        """Take back all but the first `steps` steps."""
        # A letter of a record that is taken back stays used; the next write gets the next one, and may overwrite it.
        del self.labels[steps:], self.path[steps + 1 :]

    def show(self) -> list[str]:
        """Draw every replica's log, what is in flight, and the registration."""
        return self.now.show(self.values)

    def traces(self, name: str = "session") -> list[Trace]:
        """Return the run so far, as its nodes would have reported it: a trace for each life of the topic."""
        return self.now.traces(self.path, self.labels, name)

    def trace(self, name: str = "session") -> Trace:
        """Return the trace of the topic's present life."""
        return self.traces(name)[-1]

    def judged(self) -> Judgement:
        """Judge the traces by the unchanged profile: a switch that was turned off must not excuse what it breaks."""
        traces = self.traces()
        return judge(to_columns(traces, traces[0].config), traces[0].config)
