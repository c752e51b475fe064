"""The controller's registration of the partition, elections, and its judgement of AlterPartition.

Rules of this file

1. What a change makes of the registration is impl.controller.partition_change's word, what a proposal is told
   impl.controller.requests's: this file says which change is asked for.
2. Who is elected among several is not decided here but handed in: an order of preference, in place of the assignment's.
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
    """Apply PartitionChangeBuilder to a request while `live` may lead; the same value when nothing changes."""
    before = _registration(controller, preference)
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


def _but(brokers: tuple[int, ...], broker: int) -> tuple[int, ...]:
    return tuple(b for b in brokers if b != broker)


CLEANLY = ChangeRequest(elects_last_known=False)
"""A change without last resorts: in the specification these are elections of their own."""


def fence_broker(
    setup: Setup, controller: Controller, broker: int, comes_back: bool, preference: tuple[int, ...]
) -> Controller:
    """Take a broker out of the ISR and elect another leader if it led. ReplicationControlManager#handleBrokerFenced.

    `comes_back`: its session is renewed before anything else happens (#handleBrokerUnfenced), so it stays live, and if
    nobody else may lead it is elected again. That is one change here: nobody reads the registration in between.
    """
    gone = CLEANLY._replace(isr=_but(controller.isr, broker))
    fenced = _changed(setup, controller, gone, _but(controller.live, broker), preference)
    if not comes_back:
        return fenced
    # Fencing and unfencing are one change here: no broker reads the registration in between.
    back = _changed(setup, fenced, CLEANLY, controller.live, preference)
    return back._replace(
        leader_epoch=min(back.leader_epoch, controller.leader_epoch + 1),
        partition_epoch=min(back.partition_epoch, controller.partition_epoch + 1),
    )


def register_broker(
    setup: Setup, controller: Controller, broker: int, clean: bool, preference: tuple[int, ...]
) -> Controller:
    """Register another incarnation, fenced at first: in no ISR, nor in the ELR unless it was stopped cleanly.

    ClusterControlManager#registerBroker, ReplicationControlManager#handleBrokerUncleanShutdown (KAFKA-18106).
    """
    lost = frozenset() if clean else frozenset({broker})
    gone = CLEANLY._replace(isr=_but(controller.isr, broker), unclean_shutdown=lost)
    return _changed(setup, controller, gone, _but(controller.live, broker), preference)


def unfence_broker(setup: Setup, controller: Controller, broker: int, preference: tuple[int, ...]) -> Controller:
    """Make a broker live again; a partition without leader gets one. ReplicationControlManager#handleBrokerUnfenced."""
    live = tuple(sorted((*controller.live, broker)))
    if controller.leader != UNDEFINED:
        return controller._replace(live=live)
    return _changed(setup, controller, CLEANLY, live, preference)


def elect_preferred(setup: Setup, controller: Controller, preference: tuple[int, ...]) -> Controller:
    """Move leadership to the first of them, a live member of the ISR. ReplicationControlManager#electLeader (PREFERRED)."""
    return _changed(setup, controller, CLEANLY._replace(election=Election.PREFERRED), controller.live, preference)


def elect_last_known(setup: Setup, controller: Controller) -> Controller:
    """Elect the last leader when the ISR and the ELR are empty. PartitionChangeBuilder#canElectLastKnownLeader."""
    return _changed(setup, controller, ChangeRequest(), controller.live, controller.assignment)


def elect_anybody(setup: Setup, controller: Controller, preference: tuple[int, ...]) -> Controller:
    """Elect any live replica: unclean.leader.election.enable. ReplicationControlManager#electLeader (UNCLEAN)."""
    return _changed(setup, controller, CLEANLY._replace(election=Election.UNCLEAN), controller.live, preference)


def alter_partition(
    setup: Setup, controller: Controller, request: AlterPartitionRequest
) -> tuple[Controller, AlterPartitionResponse]:
    """Judge a proposed ISR. ReplicationControlManager#alterPartition."""
    epochs = controller.incarnations

    # `meant`: the broker epoch that the leader names (KIP-903), so that no later start of that broker joins by mistake.
    def eligible(broker: int, meant: int) -> bool:
        return broker in controller.live and (not epochs or meant in {UNDEFINED, epochs[broker]})

    error = validate_proposal(_registration(controller, controller.assignment), request.broker_id, request, eligible)
    if error != NONE:
        return controller, AlterPartitionResponse(error)
    controller = _changed(setup, controller, CLEANLY._replace(isr=request.isr), controller.live, controller.assignment)
    return controller, AlterPartitionResponse(NONE, controller.leader_epoch, controller.partition_epoch, controller.isr)
