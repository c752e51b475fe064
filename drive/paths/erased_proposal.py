"""F3 of docs/findings.md as a path, and as the trace of its cluster: metadata that a leader has read already erases the ISR
it has proposed since.

Rules of this file

1. The run is the shortest that the model of ISR changes (impl.explored.isr_cluster) has without a lag time that runs out:
   members leave because they are fenced, so no broker's clock is needed.
2. A proposal that metadata has overtaken is responded to before anything else: rule 5 of the contract.
3. The controller is the suite's: it does not raise the leader epoch for a member that leaves, as Kafka's has not since 3.6.
4. The model has no election. The path goes on to one: who lacks the record leads, and the leader truncates it.
"""

from collections.abc import Iterator

from tidegauge.drive.broker.contract import BROKER, BrokerCase, Opening
from tidegauge.drive.contract import Step
from tidegauge.drive.paths.inputs import isr_beginning, isr_step, renaming
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explored import isr_cluster
from tidegauge.impl.explored.isr_cluster import IsrBounds, IsrCluster
from tidegauge.impl.explored.search import Counterexample
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.rules import NONE
from tidegauge.traces.model.isr_changes import trace_of_isr_changes
from tidegauge.traces.model.isr_cluster_steps import steps_of
from tidegauge.traces.schema import Trace

CLAIM = "Metadata that a leader has read already erases the ISR that it proposed: a record commits that a member lacks."
BOUNDS = IsrBounds(followers=2, max_end=1, max_partition_epoch=4, max_restarts=0)
NOT_TAKEN = frozenset({"ShrinkIsr", "RestartEmpty"})


def erased_proposal(profile: Profile) -> tuple[BrokerCase, Trace]:
    """The leader's path, and what the cluster tells of the run, by the rules of a generation."""
    found = _found()
    labels, (lacking,) = (*found.labels, ("HandleAlterPartitionResponse",)), found.violation.brokers
    states = [isr_cluster.initial_isr_cluster(BOUNDS, profile._replace(epoch_bump_on_shrink=False))]
    for label in labels:
        states.append(dict(isr_cluster.isr_successors(states[-1]))[label])
    steps = list(isr_beginning(states[0]))
    for before, label, after in zip(states, labels, states[1:], strict=False):
        step = isr_step(before, label, after)
        if step is not None:
            steps.append(("append", -1) if step[0] == "append" else step)
    steps += _election(states[-1], lacking)
    peers = tuple(range(BROKER + 1, BROKER + 1 + BOUNDS.followers))
    return BrokerCase(Opening(peers), tuple(steps)), trace_of_isr_changes([*steps_of(states, labels)], "F3", "impl")


def _found() -> Counterexample[IsrCluster]:
    """By the rules of a generation that reads such metadata."""
    start = isr_cluster.initial_isr_cluster(BOUNDS, FETCH_TRUNCATION)
    found = isr_cluster.search_isr(start, _successors).first_violation(isr_cluster.check_isr_completeness)
    assert found is not None, "the model has the run"
    return found


def _successors(state: IsrCluster) -> Iterator[tuple[Label, IsrCluster]]:
    overtaken = state.exchange is not None and not state.leader.state.is_inflight
    for label, after in isr_cluster.isr_successors(state):
        if label[0].startswith("HandleAlterPartition") if overtaken else label[0] not in NOT_TAKEN:
            yield label, after


def _election(last: IsrCluster, elected: int) -> Iterator[Step]:
    """Who lacks the record leads. Its log is empty, and so the log of the leader that it was has to be."""
    rename, registration = renaming(isr_cluster.LEADER), last.registration
    members = tuple(sorted(map(rename, registration.isr)))
    yield "metadata", rename(elected), isr_cluster.EPOCH + 1, registration.partition_epoch + 1, members
    yield "fetch_response", rename(elected), NONE, 0, 0, (), (isr_cluster.EPOCH, 0), None
