"""Runs of the proof's cluster that lose committed data, as traces that the judge rejects.

Rules of this file

1. The judge must accept a trace up to the step that needs the premise, and reject it at that step or after it.
2. With the premise kept, the steps that remain possible are told the same way, and the judge must accept those.
3. The proof is about a leader that forgets recorded log ends, profile `repaired`. Kafka as it is keeps them.
"""

from dataclasses import dataclass
from functools import cached_property

from tidegauge.conformance.evidence.committed_events import Reporter
from tidegauge.conformance.evidence.committed_words import words
from tidegauge.conformance.judging.judge import Failure, Judgement, judge
from tidegauge.spec.errors import SpecError
from tidegauge.spec.proofs.committed.cluster import CommittedPremise
from tidegauge.spec.proofs.committed.plain_cluster import PlainCluster
from tidegauge.spec.proofs.committed.runs import COMMITTED_LOSSES, CommittedLoss
from tidegauge.traces.columns import to_columns
from tidegauge.traces.model.views import CONTROLLER
from tidegauge.traces.schema import Config, Trace


@dataclass(frozen=True)
class CommittedRun:
    """A run, its trace, and what the judge says of it. `rows` has the first event of every step."""

    loss: CommittedLoss
    cluster: PlainCluster
    trace: Trace
    rows: tuple[int, ...]

    @cached_property
    def judgement(self) -> Judgement:
        """The judge's word."""
        return judge(to_columns([self.trace], self.trace.config), self.trace.config)

    @property
    def failures(self) -> list[Failure]:
        """The first failure of every rule that fails, in the order of the trace."""
        return sorted(self.judgement.failures, key=lambda failure: failure.row)

    @property
    def broken(self) -> tuple[str, ...]:
        """The rules that fail, in that order."""
        return tuple(failure.rule for failure in self.failures)

    def lines(self) -> list[str]:
        """The run in words, what it loses, and the judge's word."""
        sentences = (words(step, self.cluster.place) for step in self.loss.steps)
        return [*self.loss.lines(sentences, self.cluster.lost()), self.verdict()]

    def verdict(self) -> str:
        """The judge's word in one line."""
        if not self.failures:
            return "the judge accepts the trace"
        first = self.failures[0]
        event = self.trace.events[first.row]
        seen = f"{event.event} at {event.node}, {first.compared}: expected {first.expected}, seen {first.actual}"
        return f"the judge rejects the trace: {', '.join(self.broken)} ({seen})"


def committed_run(name: str, keep_premise: bool = False) -> CommittedRun:
    """The run of COMMITTED_LOSSES called `name`; with its premise kept, only the steps that are possible then."""
    if name not in COMMITTED_LOSSES:
        raise SpecError(f"expected one of {', '.join(COMMITTED_LOSSES)}; seen {name}")
    loss = COMMITTED_LOSSES[name]
    reporter = Reporter(PlainCluster() if keep_premise else PlainCluster(without=loss.premise))
    rows = []
    for step in loss.steps:
        at = reporter.step(step)
        if at is None and not keep_premise:
            raise SpecError(f"expected {step} to be possible without the premise that {loss.premise}; seen that it is not")
        rows.append(len(reporter.events) if at is None else at)
    profile = "fetch-truncation" if loss.premise == CommittedPremise.FORGET_LOG_ENDS and not keep_premise else "repaired"
    source = f"proofs: {'with' if keep_premise else 'without'} the premise that {loss.premise}"
    config = Config(nodes=reporter.all_nodes, profile=profile, controller=CONTROLLER, source=source)
    return CommittedRun(loss, reporter.cluster, Trace(name, "t-0", config, tuple(reporter.events)), tuple(rows))
