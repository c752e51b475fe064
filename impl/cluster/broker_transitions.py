"""What a broker does by itself, and what it does when it reads the controller's registration.

Rule of this file: what is possible is decided here (which clock runs out, which process dies); what a move does, in
impl.cluster.broker.
"""

from collections.abc import Iterator
from itertools import combinations

from tidegauge.impl.cluster import broker as broker_
from tidegauge.impl.cluster import controller as controller_
from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.controller_transitions import register_transitions
from tidegauge.impl.cluster.transitions import (
    BoundedModel,
    NetworkRow,
    Transition,
    collect_transitions,
    exposed_epochs,
    mask,
    metadata_cache,
    with_only,
    without_partition_epoch,
)
from tidegauge.impl.messages import AlterPartitionRequest
from tidegauge.impl.replica import isr
from tidegauge.impl.rules import INELIGIBLE_REPLICA, NONE, UNDEFINED


@collect_transitions
def own_transitions(model: BoundedModel, b: int, broker: Broker, may_crash: bool) -> Iterator[Transition]:
    """Find LeaderAppend, ShrinkIsr, Crash (with ELR Stop, CrashAndLose), DeleteRecords: they read the broker alone."""
    setup, log = model.setup, broker.partition.log
    if broker.leads and log.end < model.bounds.max_log:
        after = broker_.append_record(
            setup, broker, metadata_cache(model, False), acks=-1 if model.bounds.max_waiting else 1
        )
        if after.partition.log.end > log.end:
            yield Transition(("LeaderAppend", b), b, after, exposed=exposed_epochs(after))
    for out_of_sync in _subsets(broker_.lagging_members(setup, broker)):
        yield Transition(("ShrinkIsr", b, mask(out_of_sync)), b, broker_.shrink_isr(broker, out_of_sync))
    if may_crash and broker.up:
        yield from _stops(model, b, broker)
    if broker.up:
        for start in range(log.start + 1, min(log.hw, model.bounds.max_start) + 1):
            yield Transition(("DeleteRecords", b, start), b, broker_.delete_records(setup, broker, start))


def _stops(model: BoundedModel, b: int, broker: Broker) -> Iterator[Transition]:
    log, elr = broker.partition.log, model.setup.profile.elr
    if elr:
        yield Transition(("Stop", b), b, broker_.stop(model.setup, broker))
    first_kept = log.start if elr and model.bounds.loses_tails else log.end
    for kept in range(first_kept, log.end + 1):
        dead = broker_.kill(model.setup, broker, kept)
        for hw in range(log.start, min(log.hw, kept) + 1):
            label = ("CrashAndLose" if elr else "Crash", b, hw, kept)
            yield Transition(label, b, broker_.with_checkpoint(model.setup, dead, hw))


def _subsets(members: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    for size in range(1, len(members) + 1):
        yield from combinations(members, size)


@collect_transitions
def image_transitions(
    model: BoundedModel, b: int, broker: Broker, row: NetworkRow, image: Controller
) -> Iterator[Transition]:
    """Find BecomeLeader, BecomeFollower, Restart or Register, AlterPartition: they read broker and controller."""
    partition = broker.partition
    if not broker.up:
        if model.setup.profile.elr:
            yield from register_transitions(model, b, broker, image)
        elif b not in image.live:
            yield Transition(("Restart", b), b, broker_.restart(broker))
        return
    known = partition.leader_epoch
    # Partition epochs are not in the model, so "a newer registration" of the same leader epoch is "another ISR".
    other_isr = partition.is_leader and partition.state.isr != image.isr
    if image.leader_epoch > known or (image.leader_epoch == known and other_isr):
        yield from role_change(model, b, broker, row, image)
    if partition.state.is_inflight and partition.is_leader:
        yield from _alter_partition(model, b, broker, image)


def role_change(model: BoundedModel, b: int, broker: Broker, row: NetworkRow, image: Controller) -> Iterator[Transition]:
    """Find BecomeLeader, BecomeFollower: a newer registration read by a broker that is up."""
    if image.leader == b and b in image.live:
        after = broker_.become_leader(model.setup, broker, image, metadata_cache(model, False))
        yield Transition(("BecomeLeader", b), b, after, exposed=exposed_epochs(after))
    elif image.leader != b and (b in image.live or broker.partition.leader_epoch != UNDEFINED):
        after = broker_.become_follower(model.setup, broker, image, truncates=not model.bounds.thread_truncates)
        # The new thread sends at once. A request or response that is still in flight with this leader stays: it may arrive
        # late.
        if after.source != UNDEFINED and row[after.source] is None:
            row = with_only(row, after.source, broker_.next_request(model.setup, after))
        yield Transition(("BecomeFollower", b), b, after, row)


def _alter_partition(model: BoundedModel, b: int, broker: Broker, image: Controller) -> Iterator[Transition]:
    action = "AlterPartitionElr" if model.setup.profile.elr else "AlterPartition"
    request = isr.alter_partition_request(broker.partition, broker.incarnation)
    request = request._replace(isr_epochs=sent_epochs(broker, request))
    if broker.partition.state.isr != image.isr:
        request = request._replace(partition_epoch=image.partition_epoch - 1)
    changed, response = controller_.alter_partition(model.setup, image, request)
    if response.error == NONE and changed.leader_epoch <= model.bounds.max_epoch:
        yield Transition((action, b), b, controller=without_partition_epoch(changed))
    elif response.error == INELIGIBLE_REPLICA:
        after = broker_.handle_alter_partition_response(model.setup, broker, response, metadata_cache(model, False))
        yield Transition((action, b), b, after)


def sent_epochs(broker: Broker, request: AlterPartitionRequest) -> tuple[int, ...]:
    """Return the broker epochs as they were when the proposal was sent, which is earlier than this step."""
    outdated = broker.partition.state.outdated
    return tuple(broker_.EARLIER if b in outdated else e for b, e in zip(request.isr, request.isr_epochs, strict=True))
