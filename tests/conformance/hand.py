"""A small correct run written by hand, and ways to bend it: what the tests of single rules start from."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tidegauge.conformance.checking.rules_outside_kernel import judge_sequence
from tidegauge.conformance.engine.judge import Judgement, judge
from tidegauge.traces.columns import to_columns
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import EVENTS, Config, Event, Trace

CONFIG = Config(nodes=(1, 2, 3), min_isr=1, controller=100)
TWO = replace(CONFIG, nodes=(1, 2))


def reported(node: int, event: str, **fields: Any) -> Event:
    return Event(node, event, fields)


def start(node: int, **fields: Any) -> Event:
    return reported(node, "Start", **{"clean": True, "leo": 0, "hw": 0, "log_start": 0, "epochs": (), **fields})


def change(leader: int | None, epoch: int, isr: Sequence[int], live: Sequence[int] = (1, 2), **fields: Any) -> Event:
    return reported(
        100, "ChangePartition", leader=leader, leader_epoch=epoch, isr=tuple(isr), live=tuple(live), clean=True, **fields
    )


def changed(**fields: Any) -> Event:
    """A registration of which no more is told."""
    return reported(100, "ChangePartition", **fields)


def reporting_all_but(*kinds: str) -> Mapping[str, Any]:
    """For a Config: the source says that it does not report these."""
    return {"reports": [kind for kind in EVENTS if kind not in kinds]}


def takes(node: int = 2, leader: int = 1, **fields: Any) -> Event:
    """A line of the follower about a response, told in part."""
    return reported(node, "HandleFetchResponse", peer=leader, **fields)


def snapshot(node: int, **fields: Any) -> Event:
    return reported(node, "Observe", **fields)


def registered(broker: int, broker_epoch: int, **fields: Any) -> Event:
    return reported(100, "RegisterBroker", peer=broker, broker_epoch=broker_epoch, **fields)


def lead(node: int, epoch: int, isr: Sequence[int], leo: int = 0, hw_before: int = 0, hw: int = 0, **fields: Any) -> Event:
    own = {"leader_epoch": epoch, "isr": tuple(isr), "epoch_start": leo, "leo": leo, "hw_before": hw_before, "hw": hw}
    return reported(node, "BecomeLeader", **{**own, **fields})


def follow(node: int, leader: int | None, epoch: int, leo: int = 0, hw: int = 0) -> Event:
    return reported(node, "BecomeFollower", leader=leader, leader_epoch=epoch, leo=leo, hw=hw)


def append(node: int, epoch: int, at: int, hw_before: int = 0, hw: int = 0) -> Event:
    records = {"rec_base": at, "rec_end": at + 1, "rec_epoch": epoch}
    return reported(
        node, "LeaderAppend", leader_epoch=epoch, **records, leo_before=at, hw_before=hw_before, leo=at + 1, hw=hw
    )


def send(node: int, leader: int, epoch: int, offset: int, last: int) -> Event:
    return reported(node, "SendFetch", peer=leader, req_epoch=epoch, req_offset=offset, req_last_epoch=last)


def serve(node: int, peer: int, epoch: int, offset: int, last: int, res_hw: int, hw: int, leo: int, **fields: Any) -> Event:
    request = {"peer": peer, "req_epoch": epoch, "req_offset": offset, "req_last_epoch": last}
    count = 1 if leo > offset else 0
    records: dict[str, int] = {"rec_base": offset, "rec_end": offset + count}
    if count:
        records["rec_epoch"] = epoch
    response = {"error": 0, "res_hw": res_hw, **records, "remote_leo": offset, "hw_before": res_hw, "hw": hw, "leo": leo}
    return reported(node, "HandleFetch", **{**request, **response, **fields})


def take(
    node: int, leader: int, epoch: int, offset: int, res_hw: int, hw_before: int, hw: int, count: int = 1, **fields: Any
) -> Event:
    records: dict[str, int] = {"rec_base": offset, "rec_end": offset + count}
    if count:
        records["rec_epoch"] = epoch
    request = {"peer": leader, "req_epoch": epoch, "req_offset": offset, "error": 0, "res_hw": res_hw}
    log = {"leo_before": offset, "hw_before": hw_before, "leo": offset + count, "hw": hw}
    return reported(node, "HandleFetchResponse", **{**request, **records, **log, **fields})


def ack(node: int = 1, end: int = 1, **fields: Any) -> Event:
    return reported(node, "ProduceAck", **{"acks": -1, "rec_end": end, "error": 0, **fields})


OPENING = (start(1), start(2), change(1, 0, (1, 2)), lead(1, 0, (1, 2)), follow(2, 1, 0))
"""Broker 1 leads epoch 0, broker 2 follows."""

COPIED = (
    *OPENING,
    append(1, 0, 0),
    send(2, 1, 0, 0, -1),
    serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=1),
    take(2, 1, 0, 0, res_hw=0, hw_before=0, hw=0),
    send(2, 1, 0, 1, 0),
    serve(1, 2, 0, 1, 0, res_hw=0, hw=1, leo=1),
    take(2, 1, 0, 1, res_hw=0, hw_before=0, hw=0, count=0),
)
"""Record 0 is on both, and committed."""

FORKED = (
    *OPENING,
    append(1, 0, 0),
    reported(1, "Crash"),
    change(2, 1, (2,), (2,)),
    lead(2, 1, (2,)),
    append(2, 1, 0, 0, 1),
    start(1, clean=False, leo=1, epochs=((0, 0),)),
    change(2, 1, (2,)),
    follow(1, 2, 1, leo=1),
    send(1, 2, 1, 1, 0),
    reported(2, "HandleFetch", peer=1, req_epoch=1, req_offset=1, req_last_epoch=0, error=0, div_epoch=0, div_end=0, hw=1),
    reported(
        1,
        "HandleDivergingResponse",
        peer=2,
        req_epoch=1,
        req_offset=1,
        div_epoch=0,
        div_end=0,
        target=0,
        completed=True,
        leo_before=1,
        hw_before=0,
        leo=0,
        hw=0,
    ),
    send(1, 2, 1, 0, -1),
)
"""Broker 1 wrote record 0 alone and died; broker 2 led and wrote another; broker 1 comes back and truncates."""


def judged(events: Sequence[Event], config: Config = TWO, final: int = 1, missing: Collection[int] = ()) -> Judgement:
    """What the judge says; the lines at the positions that are `missing` are left out, as the numbers of the others show."""
    whole = numbered(events)
    trace = Trace("hand", "t-0", config, tuple(event for at, event in enumerate(whole) if at not in missing))
    columns = to_columns([trace], config)
    return judge_sequence(judge(columns, config, final=final), [trace], columns)


def broken(events: Sequence[Event], config: Config = TWO, missing: Collection[int] = ()) -> set[str]:
    return {failure.rule for failure in judged(events, config, missing=missing).failures}


def compared(events: Sequence[Event], config: Config = TWO) -> set[tuple[str, str, int | None, int]]:
    """What the judge says of each failure: its rule, what was compared, what was expected, what was seen."""
    return {(failed.rule, failed.compared, failed.expected, failed.actual) for failed in judged(events, config).failures}


def either_way(config: Config) -> tuple[Config, Config]:
    """The config, and the one that counts its nodes from the other end: nothing hangs on that."""
    return config, replace(config, nodes=tuple(reversed(config.nodes)))


def bent(events: Sequence[Event], at: int, **fields: Any) -> tuple[Event, ...]:
    """The events with some fields of one of them changed; `at` counts from the end when negative. ... leaves a field out."""
    at %= len(events)
    kept = {name: value for name, value in {**events[at].fields, **fields}.items() if value is not ...}
    return (*events[:at], replace(events[at], fields=kept), *events[at + 1 :])


def without(events: Sequence[Event], *names: str) -> tuple[Event, ...]:
    """The events as a source would tell them that has no such fields."""
    return tuple(replace(e, fields={k: v for k, v in e.fields.items() if k not in names}) for e in events)


Bend = Callable[[], Sequence[Event]]
