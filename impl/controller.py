"""The controller's registration of the partition, elections, and its judgement of AlterPartition.

Rules of this file

1. Every change adds one to the partition epoch; the leader epoch grows if and only if a leader is set, be it the same one
   or none (PartitionRegistration#merge).
2. The ISR never becomes empty: the last member stays in it, with no leader if it is fenced.
3. Source: org.apache.kafka.controller.ReplicationControlManager, PartitionChangeBuilder.
"""

from typing import NamedTuple

from impl.messages import (
    INELIGIBLE_REPLICA,
    INVALID_REQUEST,
    INVALID_UPDATE_VERSION,
    NOT_CONTROLLER,
    AlterPartitionRequest,
    AlterPartitionResponse,
)
from impl.rules import FENCED_LEADER_EPOCH, NONE, UNDEFINED


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


def register(controller: Controller, broker: int) -> Controller:
    """Another incarnation of a broker. ClusterControlManager#registerBroker."""
    if not controller.incarnations:
        return controller
    epochs = tuple(epoch + (b == broker) for b, epoch in enumerate(controller.incarnations))
    return controller._replace(incarnations=epochs)


def elect(isr: tuple[int, ...], acceptable: tuple[int, ...], preference: tuple[int, ...]) -> int:
    """First of `preference` that is in the ISR and acceptable, UNDEFINED for none. PartitionChangeBuilder#electAnyLeader."""
    return next((b for b in preference if b in isr and b in acceptable), UNDEFINED)


def _led_by(controller: Controller, leader: int, isr: tuple[int, ...], live: tuple[int, ...]) -> Controller:
    return controller._replace(
        leader=leader,
        leader_epoch=controller.leader_epoch + 1,
        isr=isr,
        live=live,
        partition_epoch=controller.partition_epoch + 1,
    )


def fence_broker(controller: Controller, broker: int, comes_back: bool, preference: tuple[int, ...]) -> Controller:
    """Take a broker out of the ISR and elect another leader if it led. ReplicationControlManager#handleBrokerFenced.

    `comes_back`: its session is renewed before anything else happens, so it stays live, and if it is the only member of
    the ISR it is elected again.
    """
    live = controller.live if comes_back else tuple(b for b in controller.live if b != broker)
    isr = tuple(b for b in controller.isr if b != broker) or controller.isr
    if controller.leader != broker:
        changed = controller.partition_epoch + (isr != controller.isr)
        return controller._replace(isr=isr, live=live, partition_epoch=changed)
    acceptable = live if isr == (broker,) else tuple(b for b in live if b != broker)
    return _led_by(controller, elect(isr, acceptable, preference), isr, live)


def unfence_broker(controller: Controller, broker: int) -> Controller:
    """A broker is live again; a partition without leader gets one. ReplicationControlManager#handleBrokerUnfenced."""
    live = tuple(sorted((*controller.live, broker)))
    if controller.leader == UNDEFINED and broker in controller.isr:
        return _led_by(controller, elect(controller.isr, live, (broker,)), controller.isr, live)
    return controller._replace(live=live)


def elect_preferred(controller: Controller, preferred: int) -> Controller:
    """Move leadership to a live member of the ISR. ReplicationControlManager#electLeader (PREFERRED)."""
    if preferred == controller.leader or elect(controller.isr, controller.live, (preferred,)) == UNDEFINED:
        return controller
    return _led_by(controller, preferred, controller.isr, controller.live)


def alter_partition(controller: Controller, request: AlterPartitionRequest) -> tuple[Controller, AlterPartitionResponse]:
    """Judge a proposed ISR. ReplicationControlManager#alterPartition, #validateAlterPartitionData, in their order."""
    error = _validate(controller, request)
    if error != NONE:
        return controller, AlterPartitionResponse(error)
    if request.isr != controller.isr:
        controller = controller._replace(isr=request.isr, partition_epoch=controller.partition_epoch + 1)
    return controller, AlterPartitionResponse(NONE, controller.leader_epoch, controller.partition_epoch, controller.isr)


def _validate(controller: Controller, request: AlterPartitionRequest) -> int:
    if request.leader_epoch > controller.leader_epoch or request.partition_epoch > controller.partition_epoch:
        return NOT_CONTROLLER
    if request.leader_epoch < controller.leader_epoch:
        return FENCED_LEADER_EPOCH
    if request.broker_id != controller.leader:
        return INVALID_REQUEST
    if request.partition_epoch < controller.partition_epoch:
        return INVALID_UPDATE_VERSION
    members = set(request.isr)
    if len(members) != len(request.isr) or not members <= set(controller.assignment) or controller.leader not in members:
        return INVALID_REQUEST
    if not members <= set(controller.live) or _of_another_incarnation(controller, request):
        return INELIGIBLE_REPLICA
    return NONE


def _of_another_incarnation(controller: Controller, request: AlterPartitionRequest) -> bool:
    """A member whose broker epoch, where the leader knows one, is not the registered one (KIP-903)."""
    if not controller.incarnations:
        return False
    told = zip(request.isr, request.isr_epochs, strict=True)
    return any(epoch not in {UNDEFINED, controller.incarnations[b]} for b, epoch in told)
