"""The controller of the explored cluster: one partition's registration, its elections, its answers to AlterPartition.

A function takes the controller's state and returns the state after one change. The controller elects whenever a change
leaves the partition without a leader that may lead. A *live* broker is one that is not fenced.

Rules of this file

1. impl.controller.partition_change decides what a change makes of the registration, impl.controller.replication_control what
   a proposal is answered: this file says which change is asked for.
2. Among several brokers that may be elected the choice is handed in: `preference` are the replicas in the order in which the
   election tries them, in place of the assignment's order.
3. Source: org.apache.kafka.controller.ReplicationControlManager, PartitionChangeBuilder.
"""

from typing import NamedTuple

from tidegauge.impl.controller.partition_change import ChangeRequest, Election, build_change
from tidegauge.impl.controller.partition_registration import PartitionRegistration, merge_change
from tidegauge.impl.controller.replication_control import validate_proposal
from tidegauge.impl.messages import AlterPartitionRequest, AlterPartitionResponse
from tidegauge.impl.profiles import Setup
from tidegauge.impl.rules import NONE, UNDEFINED


class Controller(NamedTuple):
    """PartitionRegistration, the assignment, and which brokers are not fenced. Sets are in order of broker id.

    `incarnations` are the broker epochs by broker; empty where nobody counts them.
    """

    assignment: tuple[int, ...]
    leader: int
    leader_epoch: int
    isr: tuple[int, ...]
    live: tuple[int, ...]
    partition_epoch: int = 0
    incarnations: tuple[int, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()


def _registration(controller: Controller, preference: tuple[int, ...]) -> PartitionRegistration:
    """Return the registration with its replicas in the order of `preference`, in which PartitionChangeBuilder elects."""
    return PartitionRegistration(
        replicas=preference,
        isr=controller.isr,
        leader=controller.leader,
        leader_epoch=controller.leader_epoch,
        partition_epoch=controller.partition_epoch,
        elr=controller.elr,
        last_known_elr=controller.last_known_elr,
    )


def _changed(
    setup: Setup, controller: Controller, request: ChangeRequest, live: tuple[int, ...], preference: tuple[int, ...]
) -> Controller:
    """Return the controller after a requested change, with `live` as the brokers that are not fenced from now on.

    They alone may lead. The same object is returned if nothing changes.
    """
    before = _registration(controller, preference)
    # At most the number of replicas, all of which `preference` has.
    min_isr = min(setup.min_insync_replicas, len(preference))
    changed = build_change(setup.profile, before, request, live.__contains__, min_isr)
    if changed is None:
        return controller if live == controller.live else controller._replace(live=live)
    after = merge_change(before, changed)
    return controller._replace(
        leader=after.leader,
        leader_epoch=after.leader_epoch,
        isr=after.isr,
        live=live,
        partition_epoch=after.partition_epoch,
        elr=after.elr,
        last_known_elr=after.last_known_elr,
    )


def _without(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    """Return the brokers without one of them."""
    return tuple(b for b in brokers if b != broker)


CLEANLY = ChangeRequest(elects_last_known=False)
"""A change without last resorts: in the specification these are elections of their own."""


def fence_broker(
    setup: Setup, controller: Controller, broker: int, comes_back: bool, preference: tuple[int, ...]
) -> Controller:
    """Take a broker out of the ISR and elect another leader if it led. ReplicationControlManager#handleBrokerFenced.

    `comes_back`: its session is renewed before anything else happens (#handleBrokerUnfenced), so it stays live, and if
    nobody else may lead it is elected again.
    """
    leaves_isr = CLEANLY._replace(isr=_without(controller.isr, broker))
    fenced = _changed(setup, controller, leaves_isr, _without(controller.live, broker), preference)
    if not comes_back:
        return fenced
    # Fencing and unfencing are one change here, of one epoch each: no broker reads the registration in between.
    unfenced = _changed(setup, fenced, CLEANLY, controller.live, preference)
    return unfenced._replace(
        leader_epoch=min(unfenced.leader_epoch, controller.leader_epoch + 1),
        partition_epoch=min(unfenced.partition_epoch, controller.partition_epoch + 1),
    )


def register_broker(
    setup: Setup, controller: Controller, broker: int, clean: bool, preference: tuple[int, ...]
) -> Controller:
    """Register another incarnation of a broker, fenced at first: it leaves the ISR.

    `clean`: the process before it was stopped in order. Otherwise the broker leaves the ELR as well: it may have lost
    records. ClusterControlManager#registerBroker, ReplicationControlManager#handleBrokerUncleanShutdown (KAFKA-18106).
    """
    stopped_uncleanly = frozenset() if clean else frozenset({broker})
    leaves_isr = CLEANLY._replace(isr=_without(controller.isr, broker), unclean_shutdown=stopped_uncleanly)
    return _changed(setup, controller, leaves_isr, _without(controller.live, broker), preference)


def unfence_broker(setup: Setup, controller: Controller, broker: int, preference: tuple[int, ...]) -> Controller:
    """Make a broker live again; a partition without leader gets one. ReplicationControlManager#handleBrokerUnfenced."""
    live = tuple(sorted((*controller.live, broker)))
    if controller.leader != UNDEFINED:
        return controller._replace(live=live)
    return _changed(setup, controller, CLEANLY, live, preference)


def elect_preferred(setup: Setup, controller: Controller, preference: tuple[int, ...]) -> Controller:
    """Move leadership to the first of `preference`, if it is a live member of the ISR. #electLeader (PREFERRED)."""
    return _changed(setup, controller, CLEANLY._replace(election=Election.PREFERRED), controller.live, preference)


def elect_last_known(setup: Setup, controller: Controller) -> Controller:
    """Elect the last leader when the ISR and the ELR are empty. PartitionChangeBuilder#canElectLastKnownLeader."""
    # Not CLEANLY: a change with nothing else requested tries the last resorts, too.
    return _changed(setup, controller, ChangeRequest(), controller.live, controller.assignment)


def elect_anybody(setup: Setup, controller: Controller, preference: tuple[int, ...]) -> Controller:
    """Elect any live replica: unclean.leader.election.enable. ReplicationControlManager#electLeader (UNCLEAN)."""
    return _changed(setup, controller, CLEANLY._replace(election=Election.UNCLEAN), controller.live, preference)


def alter_partition(
    setup: Setup, controller: Controller, request: AlterPartitionRequest
) -> tuple[Controller, AlterPartitionResponse]:
    """Accept a leader's proposed ISR, or refuse it; also return the response. ReplicationControlManager#alterPartition."""
    epochs = controller.incarnations

    def eligible(broker: int, named_epoch: int) -> bool:
        """Return whether a broker may be in the ISR: it is live, and the incarnation that the leader names (KIP-903)."""
        return broker in controller.live and (not epochs or named_epoch in {UNDEFINED, epochs[broker]})

    error = validate_proposal(_registration(controller, controller.assignment), request.broker_id, request, eligible)
    if error != NONE:
        return controller, AlterPartitionResponse(error)
    controller = _changed(setup, controller, CLEANLY._replace(isr=request.isr), controller.live, controller.assignment)
    return controller, AlterPartitionResponse(NONE, controller.leader_epoch, controller.partition_epoch, controller.isr)
