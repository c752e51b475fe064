"""The contract of one broker under test: how it is set up, and what it reports after each step. The steps are in steps.py.

Rules of this file

1. One replica of one partition at a time, on a broker that decides nothing about time: its peers, its controller, its
   clients, the network, lag times and crashes are the suite's. The broker under test is broker 1, its peers are 2, 3, ..
2. A step is (name, arguments in the order of STEPS). Arguments are named as in Kafka's message schemas; UNDEFINED (-1)
   is what it is there: no leader, no epoch, no offset.
3. A report is a JSON object. A field that is absent is not known, null is known to be none. What a broker cannot be given or
   cannot report is declared (`Capabilities`) and costs coverage, never a failure.
4. Back-off has no length, and nobody who is behind has caught up in time: a member lags as soon as it lacks a record, and
   whether that is noticed is a step of its own (`lag`).
5. A proposal that metadata has overtaken is responded to before anything else happens.
6. A new step or field gets a new minor version, a new meaning a new major one. A driven program names the major version.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.drive.contract import DriveCase

VERSION = 1
"""The major version of the contract."""

BROKER = 1
"""The broker under test."""

EARLIEST, LATEST, COMMITTED = "earliest", "latest", "committed"
"""What a ListOffsets request asks for (`which`): a peer's for the log start or log end, a consumer's for the high watermark.
"""

FENCED, SHUTTING_DOWN, LATER, EARLIER = "fenced", "shutting_down", "later", "earlier"
STANDINGS = (FENCED, SHUTTING_DOWN, LATER, EARLIER)
"""Why a peer may not join the ISR: it is fenced or in controlled shutdown (KIP-841), or fetches as a later or an earlier
incarnation than the one that is registered (KIP-903)."""

CRASH, STOP = "crash", "stop"

ARGUMENT_TYPES: Mapping[str, str] = MappingProxyType(
    {
        "isr": "integers",
        "peers": "integers",
        "may_join": "boolean",
        "which": "which",
        "standing": "standing",
        "records": "records",
        "diverging": "pair",
        "offsets": "pair",
    }
)
"""The type of an argument; one that is not named here is an integer. A record is [base offset, last offset, epoch], a pair
may be null."""

LOSE_TAIL, ACKS_ALL, LOG_STARTS, SEGMENTS, BATCHES = "lose_tail", "acks_all", "log_starts", "segments", "batches"
LAG_APART = "lag_apart"
INCARNATIONS, CONSUMERS = "incarnations", "consumers"
EXTRAS: Mapping[str, str] = MappingProxyType(
    {
        LOSE_TAIL: "a crash may lose the end of the log: `log_end` below the log end",
        LOG_STARTS: "a leader's log start above 0, in its fetch responses and its earliest offset",
        SEGMENTS: "what lies before a log start is gone, also after a crash: no record shares its segment",
        ACKS_ALL: "an append with acks -1, and the responses in `produced`",
        BATCHES: "batches of several records in a fetch response; what is reported is seen by a consumer's read",
        LAG_APART: "the lag time of some members of the ISR runs out, while others are behind as well",
        INCARNATIONS: "a peer fetches as another incarnation than the one that is registered (KIP-903)",
        CONSUMERS: "a consumer asks for the latest offset: `which` is `committed`",
    }
)
"""Abilities beyond the steps themselves, each of which some arguments or states need."""

REPORTED: Mapping[str, str] = MappingProxyType(
    {
        "result": "what the step's request was answered with; null for a step that is no request",
        "requests": "by peer, the request in flight to it: a fetch, or an OffsetsForLeaderEpoch request; it stays until it "
        "is responded to or lost",
        "proposal": "the AlterPartition request in flight, null for none",
        "produced": "the waiting appends with acks -1 that this step answered: base offset and error of each",
        "fetched": "by peer, the waiting fetch that this step completed: what it was answered with, as in the `result` of "
        "that fetch",
        "leo": "the log end offset",
        "hw": "the high watermark",
        "log_start": "the log start offset",
        "ends": "for each leader epoch from 0 to the highest the broker has heard of, also in metadata that it refused, the "
        "epoch and end offset that its epoch cache answers",
    }
)

BY_PEER = frozenset({"requests", "fetched"})
"""Fields that are objects with a value for each peer that has one."""

NEEDED = frozenset({"metadata"})
"""Without these nothing can be driven."""


class Opening(NamedTuple):
    """The set-up of a partition: the brokers with replicas of it besides the one under test, and its min.insync.replicas."""

    peers: tuple[int, ...] = (2,)
    min_insync_replicas: int = 1


BrokerCase = DriveCase[Opening]
"""A path to be played on a partition of its own: steps from an empty replica that has read no metadata."""
