"""The state of the reference: the broker, the requests and responses under way around it, and the report on both.

What a broker does is decided in impl.cluster.broker and below. This module has what the suite's peers, controller and
producers know: the requests in flight, the proposal without a response, the appends and fetches that wait. A report is the
JSON that the contract has after a step (broker/contract.py).
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.broker.contract import BROKER, Opening
from tidegauge.drive.contract import Report, Step
from tidegauge.impl.cluster.broker import Broker, settle
from tidegauge.impl.fetch.fetch_session import FetchContext, FetchSession
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import (
    AlterPartitionRequest,
    BrokerState,
    BrokerStates,
    FetchRequest,
    FetchResponse,
    FollowerRequest,
)
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile, Rules, Setup
from tidegauge.impl.replica.partition_state import Partition, PartitionState
from tidegauge.impl.rules import NONE, UNDEFINED
from tidegauge.impl.server.replica_manager import DelayedFetch
from tidegauge.impl.storage import log as log_

LAGS_AT_ONCE = -1
"""replica.lag.time.max.ms: below any time, so nobody who is behind has caught up in time."""


Produced = tuple[tuple[int, int], ...]
"""Base offset and error of appends that were waiting."""

Fetched = Mapping[int, FetchResponse | None]
"""The responses to fetches that were waiting, by peer; None where one in a session does not name the partition."""


class WaitingAppend(NamedTuple):
    """An append with acks -1 that has no response yet: the offset of its first record, and the one after its last."""

    base: int
    end: int


class ReferenceBroker(NamedTuple):
    """The broker, and what is under way around it.

    `requests`: pairs of a peer and the request in flight to it, in order of the peer. `proposal`: the AlterPartition request
    in flight; `proposed`: the partition state that it was made from. `waiting`: the appends that wait. `partition_epoch`,
    `highest_epoch`: of the last metadata, and the highest leader epoch in any. By peer: `fetches`, the fetch that waits;
    `sessions`, its fetch session; `contexts`, what a fetch that waits means in its session. `lost`: the peers whose sessions
    were lost when the broker's process ended. `wrong_step`: what a broker with a bug makes of a step of the right one.
    """

    setup: Setup
    opening: Opening
    broker: Broker = Broker(Partition(BROKER))
    requests: tuple[tuple[int, FollowerRequest], ...] = ()
    proposal: AlterPartitionRequest | None = None
    proposed: PartitionState = PartitionState()
    waiting: tuple[WaitingAppend, ...] = ()
    fetches: FrozenMap[int, DelayedFetch] = FrozenMap()
    sessions: FrozenMap[int, FetchSession] = FrozenMap()
    contexts: FrozenMap[int, FetchContext] = FrozenMap()
    lost: tuple[int, ...] = ()
    partition_epoch: int = UNDEFINED
    highest_epoch: int = UNDEFINED
    wrong_step: "WrongStep | None" = None

    def request(self, peer: int) -> FollowerRequest | None:
        """Return the request in flight to a peer; None if there is none."""
        return dict(self.requests).get(peer)

    @property
    def overtaken(self) -> bool:
        """Whether metadata came while the controller's response to the proposal is still in flight."""
        return self.proposal is not None and self.broker.partition.state != self.proposed


Outcome = tuple[ReferenceBroker, Report | None]
"""After a step: the broker, and the response to the step's request."""

WrongStep = Callable[[ReferenceBroker, Step, ReferenceBroker, Report | None], Outcome]
"""Gets the broker before a step, the step, and the right broker and its response after it; returns the broker and the
response that a broker with a bug has instead."""


def opened(
    opening: Opening, profile: Profile = FETCH_TRUNCATION, rules: Rules | None = None, wrong_step: WrongStep | None = None
) -> ReferenceBroker:
    """Return an empty replica of a broker that has read no metadata. `rules` None: the right ones."""
    setup = Setup(rules or Rules(), profile, opening.min_insync_replicas, replica_lag_time_max_ms=LAGS_AT_ONCE)
    return ReferenceBroker(setup, opening, wrong_step=wrong_step)


NOTHING_FETCHED: Fetched = MappingProxyType({})


def report(
    state: ReferenceBroker, result: Report | None = None, produced: Produced = (), fetched: Fetched = NOTHING_FETCHED
) -> Report:
    """Return the report after a step, with every field of the contract.

    `result`: the response to the step's request; `produced`, `fetched`: the responses that the step gave to requests that
    had waited.
    """
    log, proposal = state.broker.partition.log, state.proposal
    # The fields and their meanings are REPORTED in broker/contract.py.
    return {
        "result": result,
        "requests": {str(peer): _request_json(state.setup, request) for peer, request in state.requests},
        "proposal": None
        if proposal is None
        else {"isr": [*proposal.isr], "leader_epoch": proposal.leader_epoch, "partition_epoch": proposal.partition_epoch},
        "produced": [[base, error] for base, error in produced],
        "fetched": {str(peer): optional_fetch_json(response) for peer, response in fetched.items()},
        "leo": log.end,
        "hw": log.hw,
        "log_start": log.start,
        "ends": [[*log_.end_offset_for_epoch(state.setup, log, epoch)] for epoch in range(state.highest_epoch + 1)],
    }


def fetch_json(response: FetchResponse) -> Report:
    """Return the response to a peer's fetch as a report has it: only the error, or the records and the diverging epoch."""
    if response.error != NONE:
        return {"error": response.error}
    return {
        "error": NONE,
        "hw": response.hw,
        "log_start": response.log_start,
        "records": [[batch.base, batch.last, batch.epoch] for batch in response.records],
        "diverging": [response.diverging_epoch, response.diverging_end] if response.is_diverging else None,
    }


def optional_fetch_json(response: FetchResponse | None) -> Report | None:
    """Return `fetch_json`, or None where there is no response: the fetch waits, or a session leaves the partition out."""
    return None if response is None else fetch_json(response)


def _request_json(setup: Setup, request: FollowerRequest) -> dict[str, int]:
    """Return a request in flight as a report has it. Fields that the generation's messages do not have are -1."""
    current_leader_epoch = request.current_leader_epoch if setup.profile.fencing else UNDEFINED
    if not isinstance(request, FetchRequest):
        return {"current_leader_epoch": current_leader_epoch, "leader_epoch": request.leader_epoch}
    last_fetched_epoch = request.last_fetched_epoch if setup.profile.truncation_on_fetch else UNDEFINED
    return {
        "current_leader_epoch": current_leader_epoch,
        "fetch_offset": request.fetch_offset,
        "last_fetched_epoch": last_fetched_epoch,
        "log_start": request.log_start,
    }


def metadata_cache(state: ReferenceBroker, *, eligible: bool) -> BrokerStates:
    """Return the broker's metadata cache with all replicas; unless `eligible`, all are fenced and may not join the ISR."""
    return tuple(BrokerState(replica, fenced=not eligible) for replica in (BROKER, *state.opening.peers))


def with_partition(state: ReferenceBroker, partition: Partition) -> ReferenceBroker:
    """Return the state with the broker's partition replaced, in the normal form of `settle`."""
    return state._replace(broker=settle(state.broker._replace(partition=partition)))
