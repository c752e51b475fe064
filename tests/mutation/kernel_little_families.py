"""Short traces of one theme each, with every part of it told, changed or left out at random.

Rules of this file

1. A theme is a right run by hand and what may follow it. Each value is drawn from a few, or is left out: most traces have a
   fault that was planted so.
2. Every choice comes from the random numbers that are handed in.
"""

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

from tests.conformance.hand import (
    CONFIG,
    COPIED,
    FORKED,
    OPENING,
    TWO,
    append,
    change,
    follow,
    lead,
    reported,
    send,
    serve,
    take,
)
from tests.conformance.judge.test_forks import FORKED as FORKED_LOG
from tests.conformance.judge.test_forks import KIP101
from tidegauge.traces.from_model.behaviour import DUPLICATES, numbered
from tidegauge.traces.schema import EVENTS, Config, Event, Trace

SILENT = "silent"
"""A value that is left out."""
Values = Sequence[object]


def some_of(rng: random.Random, node: int, event: str, fields: Mapping[str, Values]) -> Event:
    """An event with one of the values for each field."""
    chosen = {name: rng.choice(list(values)) for name, values in fields.items()}
    return reported(node, event, **{name: value for name, value in chosen.items() if value != SILENT})


def little_families(count: int, seed: int) -> list[Trace]:
    """So many of each theme."""
    rng = random.Random(seed)
    return [theme(rng) for theme in (delayed, assigned, forked, repeated, snapshots, addressed) for _ in range(count)]


def _trace(events: Sequence[Event], config: Config) -> Trace:
    return Trace("", "t-0", config, numbered(events))


REQUEST: Mapping[str, Values] = {
    "req_epoch": (0, 0, 0, SILENT, 1),
    "req_offset": (1, 1, 1, SILENT, 0, 2),
    "req_last_epoch": (0, 0, SILENT),
}
RESPONSE: Mapping[str, Values] = {
    "error": (0, 0, SILENT, SILENT, 6, 1, 74),
    "res_hw": (1, 1, SILENT, 0, 2, None),
    "res_log_start": (SILENT, SILENT, 0, 1, None),
    "rec_base": (1, 1, SILENT, SILENT, None, 0, 2),
    "rec_end": (2, 2, 1, SILENT, 3),
    "rec_epoch": (0, 0, SILENT, 1),
}
DIVERGES: Mapping[str, Values] = {"div_epoch": (SILENT, SILENT, None, 0, 1), "div_end": (SILENT, SILENT, None, 0, 1)}
AFTER: Mapping[str, Values] = {"leo": (2, 2, SILENT, 1, 3), "hw": (1, 1, SILENT, 0, 2), "log_start": (SILENT, SILENT, 0, 1)}
TRUNCATES: Mapping[str, Values] = {"target": (SILENT, 0, 1), "completed": (True, SILENT, False)}


def delayed(rng: random.Random) -> Trace:
    """A response leaves later than its fetch was recorded; its leader may have been deposed, and elected, meanwhile."""
    events: list[Event] = list(COPIED)
    if rng.random() < 0.3:
        events.append(reported(rng.choice((1, 2)), "LogStartMoved", log_start=1, hw=1))
    events += [append(1, 0, 1, 1, 1), send(2, 1, 0, 1, 0)]
    given = rng.random()
    if given < 0.75:
        fetch = {**REQUEST, "error": (0, 0, SILENT), "remote_leo": (1, 1, SILENT), "hw": (1, SILENT), "leo": (2, SILENT)}
        silent = {**fetch, "rec_base": (SILENT, 1), "rec_end": (SILENT, 1)}
        events.append(
            replace(some_of(rng, 1, "HandleFetch", silent), fields={**some_of(rng, 1, "", silent).fields, "peer": 2})
        )
    between = rng.random()
    if between < 0.25:
        events += [change(2, 1, (2,)), follow(1, 2, 1, leo=2, hw=1)]
    elif between < 0.4:
        events += [change(1, 1, (1, 2)), lead(1, 1, (1, 2), leo=2, hw_before=1, hw=1)]
    elif between < 0.5:
        events += [reported(1, "Crash")]
    response = some_of(rng, 1, "AnswerFetch", {**REQUEST, **RESPONSE, **(DIVERGES if rng.random() < 0.6 else {})})
    events.append(replace(response, fields={**response.fields, "peer": 2}))
    taken = rng.random()
    if taken < 0.6:
        last = some_of(rng, 2, "HandleFetchResponse", {**REQUEST, **RESPONSE, **AFTER})
    elif taken < 0.85:
        last = some_of(
            rng, 2, "HandleDivergingResponse", {**REQUEST, "error": (0, SILENT), **DIVERGES, **TRUNCATES, **AFTER}
        )
    else:
        bounds: Mapping[str, Values] = {"leader_start": (0, 2, SILENT), "leader_end": (0, 2, SILENT)}
        last = some_of(rng, 2, "HandleOutOfRange", {**REQUEST, **bounds, **TRUNCATES, **AFTER})
        last = replace(last, fields={name: value for name, value in last.fields.items() if name != "completed"})
    events.append(replace(last, fields={**last.fields, "peer": 1}))
    events += [send(2, 1, 0, 2, 0)] if rng.random() < 0.4 else []
    profile = rng.choice(("fetch-truncation", "fetch-truncation", "kip279", "kip101", "repaired"))
    return _trace(events, replace(TWO, profile=profile, lag_rule=rng.random() < 0.15))


def assigned(rng: random.Random) -> Trace:
    """The assignment changes: which one a leader acts on, whom it answers and proposes, who is elected."""
    replicas: Values = ((1, 2), (1,), (1, 2, 3), SILENT)
    events: list[Event] = list(OPENING[:2])
    partition_epoch = 0
    for epoch in (0, 0, *rng.choices((0, 1, 2), k=rng.randint(0, 3))):
        partition_epoch += rng.choice((1, 1, 1, 0))
        registered: Mapping[str, Values] = {
            "leader": (1, 1, 1, 2, 3, SILENT, None),
            "leader_epoch": (epoch, epoch, epoch, SILENT, epoch + 1),
            "partition_epoch": (partition_epoch, partition_epoch, SILENT),
            "isr": ((1, 2), (1,), (1, 2), SILENT, ()),
            "replicas": replicas,
            "elr": (SILENT, SILENT, (), (2,), (2, 3)),
            "clean": (True, True, SILENT, False),
            "live": ((1, 2), (1, 2, 3), SILENT),
        }
        events.append(some_of(rng, 100, "ChangePartition", registered))
        if rng.random() < 0.6:
            leads: Mapping[str, Values] = {
                "leader_epoch": (epoch, epoch, SILENT),
                "partition_epoch": (partition_epoch, SILENT),
                "isr": ((1, 2), (1,), SILENT),
                "epoch_start": (0, SILENT),
                "leo": (0, SILENT),
                "hw": (0, SILENT),
            }
            events.append(some_of(rng, 1, "BecomeLeader", leads))
        if rng.random() < 0.4:
            process = rng.choice((100, 100, None))
            kind = rng.choice(("RegisterBroker", "FenceBroker", "UnfenceBroker"))
            fields = {"broker_epoch": rng.choice((1, 2, 3)), "clean": rng.random() < 0.5} if kind == "RegisterBroker" else {}
            events.append(reported(100, kind, peer=rng.choice((1, 2, 2)), **fields) if process else reported(2, "Crash"))
        if rng.random() < 0.5:
            proposed = {"isr": ((1, 2), (1,), SILENT), "remote_leo": (0, SILENT), "broker_epoch": (1, 2, SILENT)}
            events.append(
                replace(some_of(rng, 1, "ExpandIsr", proposed), fields={**some_of(rng, 1, "", proposed).fields, "peer": 2})
            )
        fetched = {"req_broker_epoch": rng.choice((1, 2, 3)), "error": rng.choice((0, 6, 3))}
        events.append(serve(1, 2, epoch, 0, -1, res_hw=0, hw=0, leo=0, **fetched))
    config = replace(
        rng.choice((TWO, CONFIG)), profile=rng.choice(("elr", "fetch-truncation", "repaired")), lag_rule=rng.random() < 0.3
    )
    return _trace(events, replace(config, extra={"reassigned": True} if rng.random() < 0.5 else {}))


def forked(rng: random.Random) -> Trace:
    """A log with records of a lower epoch behind higher ones: it is cut, loaded, grows, is led with and compared."""
    events = list(FORKED_LOG)
    leo, epoch = 3, 2
    for _ in range(rng.randint(1, 5)):
        drawn = rng.random()
        if drawn < 0.3:
            leo = rng.randint(0, leo)
            clean = rng.random() < 0.3
            loaded: Mapping[str, Values] = {
                "log_start": (0, 0, SILENT),
                "epochs": (SILENT, SILENT, ((0, 0),), ((0, 0), (1, 1))),
            }
            start = some_of(
                rng, 2, "Start", {**loaded, "clean": (clean,), "leo": (leo, leo, SILENT), "hw": (min(leo, 3), SILENT)}
            )
            events += [reported(2, "Stop" if clean else "Crash"), start, follow(2, 1, epoch, leo=leo, hw=min(leo, 3))]
        elif drawn < 0.5:
            end = rng.randint(0, leo)
            response = {"peer": 1, "req_epoch": epoch, "error": 0, "div_epoch": None, "div_end": end, "target": end}
            events.append(reported(2, "HandleEpochResponse", **response, completed=True, leo=end, hw=min(3, end)))
            leo = end
        elif drawn < 0.7:
            taken = rng.choice((0, 1, 2))
            events.append(take(2, 1, epoch, leo, res_hw=3, hw_before=min(leo, 3), hw=min(leo + 1, 3), rec_epoch=taken))
            leo += 1
        elif drawn < 0.85:
            epoch += 1
            unclean = reported(100, "ChangePartition", **{**change(2, epoch, (2,)).fields, "clean": False})
            events += [unclean, lead(2, epoch, (2,), leo=leo, hw_before=min(leo, 3), hw=leo)]
            events += [change(1, epoch + 1, (1,)), lead(1, epoch + 1, (1,), leo=3, hw_before=3, hw=3)]
            epoch += 1
            events.append(follow(2, 1, epoch, leo=leo, hw=leo))
        else:
            events.append(reported(2, "SendEpochRequest", peer=1, req_epoch=epoch, req_last_epoch=rng.choice((0, 1))))
    if rng.random() < 0.4:
        events.append(reported(2, "Observe", leo=leo, epochs=rng.choice((((0, 0),), ((0, 0), (1, 1))))))
    return _trace(events, replace(KIP101, profile=rng.choice(("kip101", "kip101", "hw-only", "kip279"))))


def repeated(rng: random.Random) -> Trace:
    """A request arrives more than once, and is served, or refused, each time; then the follower takes a response over."""
    events = [*COPIED, append(1, 0, 1, 1, 1), send(2, 1, 0, 1, 0)]
    for _ in range(rng.randint(2, 4)):
        drawn = rng.random()
        if drawn < 0.15:
            events.append(send(2, 1, 0, rng.choice((1, 2)), 0))
        elif drawn < 0.25:
            events.append(reported(1, "Crash"))
        elif drawn < 0.35:
            events.append(reported(2, "SendEpochRequest", peer=1, req_epoch=0, req_last_epoch=0))
        elif drawn < 0.5:
            asked = {"peer": 2, "req_epoch": 0, "req_last_epoch": 0, "error": rng.choice((0, 0, 6))}
            events.append(reported(1, "HandleEpochRequest", **asked, div_epoch=0, div_end=rng.choice((1, 2))))
        elif drawn < 0.7:
            events.append(
                reported(1, "HandleFetch", peer=2, req_epoch=0, req_offset=1, req_last_epoch=0, error=rng.choice((6, 3)))
            )
        else:
            events.append(serve(1, 2, 0, rng.choice((1, 1, 0)), rng.choice((0, 0, -1)), res_hw=1, hw=1, leo=2))
    last = some_of(rng, 2, "HandleFetchResponse", {**REQUEST, **RESPONSE, **AFTER})
    events.append(replace(last, fields={**last.fields, "peer": 1}))
    if rng.random() < 0.4:
        asked = {"peer": 1, "req_epoch": 0, "error": rng.choice((0, 6)), "div_epoch": rng.choice((0, 1))}
        events.append(reported(2, "HandleEpochResponse", **asked, div_end=rng.choice((1, 2)), target=1))
    profile = rng.choice(("fetch-truncation", "kip320", "kip279", "kip101"))
    return _trace(events, replace(TWO, profile=profile, extra={DUPLICATES: True}))


def snapshots(rng: random.Random) -> Trace:
    """Caches as large as there is room for, and restarts that tell them in part."""
    count = rng.choice((1, 2, 15, 16, 17))
    cache = tuple((epoch, epoch) for epoch in range(count))
    if rng.random() < 0.3 and count > 1:
        cache = (*cache[:-1], (cache[-1][0] + rng.choice((0, 1)), cache[-1][1] + rng.choice((-1, 1))))
    loaded: Mapping[str, Values] = {
        "clean": (True, False, SILENT),
        "leo": (count, SILENT),
        "hw": (count, 0, SILENT),
        "log_start": (0, 1, SILENT),
        "epochs": (cache, cache[:-1], SILENT),
    }
    node = rng.choice((1, 2))
    events = [some_of(rng, each, "Start", loaded) for each in (1, 2)]
    events += [change(node, count, (node,)), lead(node, count, (node,), leo=count, hw_before=0, hw=count)]
    for _ in range(rng.randint(1, 4)):
        drawn = rng.random()
        if drawn < 0.4:
            seen: Mapping[str, Values] = {name: values for name, values in loaded.items() if name != "clean"}
            events.append(some_of(rng, rng.choice((1, 2)), "Observe", seen))
        elif drawn < 0.6:
            events += [reported(node, rng.choice(("Stop", "Crash"))), some_of(rng, node, "Start", loaded)]
        elif drawn < 0.8:
            entry: Mapping[str, Values] = {
                "leader_epoch": (count, count + 1, None, 0),
                "epoch_start": (count, count + 1, 0, SILENT),
            }
            events.append(some_of(rng, rng.choice((1, 2)), "EpochCacheEntry", entry))
        else:
            events.append(append(node, count, count, count, count + 1))
    return _trace(events, TWO)


def addressed(rng: random.Random) -> Trace:
    """Events that name a node where none can be, or another than they should."""
    events = list(rng.choice((COPIED, FORKED)))
    at = rng.randint(2, len(events))
    node = rng.choice((1, 2, 100))
    fields: Mapping[str, Values] = {
        "peer": (100, 1, 2, None, SILENT),
        "req_epoch": (0, 1),
        "req_offset": (0, 1),
        "leo": (SILENT, 1, 2),
        "hw": (SILENT, 0, 1),
    }
    kinds = ("SendFetch", "HandleFetch", "HandleFetchResponse", "HandleFetchError", "Crash", "Start", "HwCheckpoint")
    kind = rng.choice(kinds)
    given = {name: values for name, values in fields.items() if name in EVENTS[kind].fields}
    return _trace((*events[:at], some_of(rng, node, kind, given), *events[at:]), TWO)
