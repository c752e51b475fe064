"""Right runs in which no two values that may be mistaken for each other are equal: offsets, epochs, brokers, processes.

Rule of this file: a run that is changed in one place (kernel_pool.variants) tells a column or a local from those beside it
only where the two differ, so each of its values stands once.
"""

from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.hand import CONFIG, append, change, follow, lead, reported, send, serve, snapshot, start, take
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Event, Trace

ALL = (1, 2, 3)
SHARED = ((3, 0), (5, 4))
"""The epochs of the records that all have."""
FORK = (*SHARED, (6, 6))
LEADING = {"partition_epoch": 11, "replicas": ALL}
ASKED = {"req_epoch": 8, "req_last_epoch": 6}
DIVERGES = {"div_epoch": 5, "div_end": 7}
TRUNCATED = {"target": 6, "completed": True, "leo_before": 9, "hw_before": 4, "leo": 6, "hw": 4}
FETCHED_FORK = reported(1, "HandleFetch", peer=2, req_offset=9, error=0, **ASKED, **DIVERGES, remote_leo=-1, hw=5, leo=7)


def opening(epochs: Sequence[tuple[int, int]] = FORK) -> tuple[Event, ...]:
    """Broker 1 leads epoch 8; broker 2 has a fork of three records behind offset 6."""
    return (
        start(1, leo=7, hw=5, epochs=SHARED),
        start(2, leo=9, hw=4, epochs=tuple(epochs)),
        start(3, leo=7, hw=5, epochs=SHARED),
        change(1, 8, ALL, ALL, **LEADING),
        lead(1, 8, ALL, leo=7, hw_before=5, hw=5, partition_epoch=11),
        follow(2, 1, 8, leo=9, hw=4),
        follow(3, 1, 8, leo=7, hw=5),
    )


TRUNCATED_BY_FETCH = (
    *opening(),
    send(2, 1, 8, 9, 6),
    FETCHED_FORK,
    reported(2, "HandleDivergingResponse", peer=1, req_epoch=8, req_offset=9, **DIVERGES, **TRUNCATED),
    send(2, 1, 8, 6, 5),
)
TRUNCATED_LATER = (
    *TRUNCATED_BY_FETCH[:8],
    reported(1, "AnswerFetch", peer=2, req_offset=9, **ASKED, error=0, **DIVERGES),
    *TRUNCATED_BY_FETCH[9:],
)
FETCHED = (
    *TRUNCATED_BY_FETCH,
    serve(1, 2, 8, 6, 5, res_hw=5, hw=5, leo=7, rec_epoch=5, res_log_start=0, req_broker_epoch=21),
    take(2, 1, 8, 6, res_hw=5, hw_before=4, hw=5, rec_epoch=5, res_log_start=0),
)
COMMITTED = (
    *FETCHED,
    append(1, 8, 7, 5, 5),
    send(2, 1, 8, 7, 5),
    serve(1, 2, 8, 7, 5, res_hw=5, hw=5, leo=8, req_broker_epoch=21),
    take(2, 1, 8, 7, res_hw=5, hw_before=5, hw=5, rec_epoch=8),
    send(3, 1, 8, 7, 5),
    serve(1, 3, 8, 7, 5, res_hw=5, hw=7, leo=8, req_broker_epoch=31),
    take(3, 1, 8, 7, res_hw=5, hw_before=5, hw=5, rec_epoch=8),
)
DELAYED = (
    *COMMITTED,
    send(2, 1, 8, 8, 8),
    reported(1, "HandleFetch", peer=2, req_epoch=8, req_offset=8, req_last_epoch=8, error=0, remote_leo=8, hw=7, leo=8),
    append(1, 8, 8, 7, 7),
    append(1, 8, 9, 7, 7),
    send(3, 1, 8, 8, 8),
    serve(1, 3, 8, 8, 8, res_hw=7, hw=8, leo=10, rec_end=10, req_broker_epoch=31),
    reported(1, "AnswerFetch", peer=2, req_epoch=8, req_offset=8, error=0, res_hw=8, rec_base=8, rec_end=10, rec_epoch=8),
    take(2, 1, 8, 8, res_hw=8, hw_before=5, hw=8, count=2, rec_epoch=8),
)
SHRUNK = (
    *COMMITTED,
    reported(1, "ShrinkIsr", isr=(1, 2)),
    change(1, 8, (1, 2), ALL, partition_epoch=12, replicas=ALL),
    reported(1, "HandleAlterPartitionResponse", isr=(1, 2), partition_epoch=12, error=0, hw_before=7, hw=7),
    send(3, 1, 8, 8, 8),
    serve(1, 3, 8, 8, 8, res_hw=7, hw=7, leo=8, req_broker_epoch=31),
    reported(1, "ExpandIsr", peer=3, isr=ALL, remote_leo=8, broker_epoch=31),
)
ELECTED = (
    *SHRUNK,
    reported(1, "Crash"),
    reported(100, "FenceBroker", peer=1),
    change(2, 9, (2,), (2, 3), partition_epoch=13, replicas=ALL),
    lead(2, 9, (2,), leo=8, hw_before=5, hw=8, partition_epoch=13),
    append(2, 9, 8, 8, 9),
    reported(2, "ProduceAck", acks=-1, rec_base=8, rec_end=9, rec_epoch=9, error=0),
    reported(100, "RegisterBroker", peer=1, broker_epoch=41, clean=False),
    reported(100, "UnfenceBroker", peer=1),
    start(1, clean=False, leo=8, hw=7, epochs=(*SHARED, (8, 7))),
    reported(1, "BecomeLeader", leader_epoch=8, isr=(1, 2), leo=8, hw_before=7, hw=7),
    follow(1, 2, 9, leo=8, hw=7),
    snapshot(1, leo=8, hw=7, epochs=(*SHARED, (8, 7))),
)
TRUNCATED_BY_EPOCH = (
    *opening(),
    reported(2, "SendEpochRequest", peer=1, **ASKED),
    reported(1, "HandleEpochRequest", peer=2, **ASKED, error=0, **DIVERGES),
    reported(2, "HandleEpochResponse", peer=1, **ASKED, error=0, **DIVERGES, **TRUNCATED),
    send(2, 1, 8, 6, 5),
)
LOWER = {"req_epoch": 8, "req_last_epoch": 4}
TRUNCATED_TWICE = (
    *opening(((3, 0), (4, 4), (6, 6))),
    *TRUNCATED_BY_EPOCH[7:9],
    reported(2, "HandleEpochResponse", peer=1, **ASKED, error=0, **DIVERGES, **{**TRUNCATED, "completed": False}),
    reported(2, "SendEpochRequest", peer=1, **LOWER),
    reported(1, "HandleEpochRequest", peer=2, **LOWER, error=0, div_epoch=3, div_end=4),
    reported(
        2,
        "HandleEpochResponse",
        peer=1,
        **LOWER,
        error=0,
        div_epoch=3,
        div_end=4,
        **{**TRUNCATED, "target": 4, "leo_before": 6, "leo": 4},
    ),
    send(2, 1, 8, 4, 3),
)
OUT_OF_RANGE = (
    start(1, leo=7, hw=5, log_start=4, epochs=((5, 4),)),
    start(2, leo=3, hw=2, epochs=((3, 0),)),
    start(3, leo=7, hw=5, epochs=SHARED),
    change(1, 8, (1, 3), ALL, partition_epoch=11),
    lead(1, 8, (1, 3), leo=7, hw_before=5, hw=5, partition_epoch=11),
    follow(2, 1, 8, leo=3, hw=2),
    send(2, 1, 8, 3, 3),
    reported(1, "HandleFetch", peer=2, req_epoch=8, req_offset=3, req_last_epoch=3, error=1),
    reported(
        2,
        "HandleOutOfRange",
        peer=1,
        req_epoch=8,
        req_offset=3,
        leader_start=4,
        leader_end=7,
        target=4,
        leo_before=3,
        hw_before=2,
        leo=4,
        hw=4,
        log_start=4,
    ),
    send(2, 1, 8, 4, -1),
)


def overtaken(asks: Event, handled: Event, gone: str) -> Sequence[Event]:
    """Broker 2 asks, is gone, asks again, twice: the leader handles two of the three."""
    back = start(2, clean=gone == "Stop", leo=9, hw=4, epochs=FORK)
    return (*opening(), asks, reported(2, gone), back, follow(2, 1, 8, leo=9, hw=4), asks, asks, handled, handled)


FETCHES = {
    "truncated": TRUNCATED_BY_FETCH,
    "later": TRUNCATED_LATER,
    "committed": COMMITTED,
    "delayed": DELAYED,
    "range": OUT_OF_RANGE,
}
ISR = {"shrunk": SHRUNK, "elected": ELECTED}
EPOCHS = {"epoch": TRUNCATED_BY_EPOCH, "twice": TRUNCATED_TWICE}


def apart() -> list[Trace]:
    """Each run by the generations that differ there."""
    runs: list[tuple[str, Sequence[Event], Sequence[str]]] = []
    runs += [(name, events, ("fetch-truncation", "repaired")) for name, events in FETCHES.items()]
    runs += [(name, events, ("fetch-truncation", "elr")) for name, events in ISR.items()]
    runs += [(name, events, ("kip320", "kip279")) for name, events in EPOCHS.items()]
    for gone in ("Crash", "Stop"):
        runs.append((f"fetch {gone}", overtaken(TRUNCATED_BY_FETCH[7], FETCHED_FORK, gone), ("fetch-truncation",)))
        runs.append((f"epoch {gone}", overtaken(TRUNCATED_BY_EPOCH[7], TRUNCATED_BY_EPOCH[8], gone), ("kip320", "kip279")))
    return [
        Trace(f"{name} {profile}", "t-0", replace(CONFIG, profile=profile), numbered(events))
        for name, events, profiles in runs
        for profile in profiles
    ]
