"""Runs of many short terms, whose claims are handed on from leader to leader where the table has little room.

Rules of this file

1. Logs are loaded, not written: a broker starts with records, and with a cache that tells of all of them, of the later ones,
   of none, or of others. Leaders commit and acknowledge what they have; whoever is elected without it is a planted fault.
2. The line in which a broker begins to lead may come later than those of others, as when its clock is behind.
3. Every choice comes from the random numbers that are handed in.
"""

import random
from collections.abc import Sequence
from dataclasses import replace

from tests.conformance.hand import CONFIG, change, follow, lead, reported
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Event, Trace

FIRST = 5
"""The first leader epoch; the records are of lower ones."""
PROFILES = ("fetch-truncation", "fetch-truncation", "kip101", "kip279", "repaired")


def heirs(rng: random.Random) -> Trace:
    """A run of some terms."""
    nodes = rng.choice(((1, 2), (1, 2), (1, 2, 3)))
    profile = rng.choice(PROFILES)
    length = rng.randint(1, 5)
    ends = {node: length - rng.choice((0, 0, 0, 0, 1)) for node in nodes}
    events: list[Event] = []
    for node in nodes:
        events += _loaded(node, ends[node], rng, forks=profile in ("kip101", "kip279"))
    late: list[Event] = []
    epoch, partition_epoch = FIRST - 1, rng.choice((0, None))
    for _ in range(rng.randint(3, 8)):
        epoch += rng.choice((1, 1, 1, 1, 2))
        leader = rng.choice(nodes)
        isr = (leader,) if rng.random() < 0.8 else nodes
        for _ in range(rng.choice((1, 1, 1, 2))):
            more: dict[str, object] = {}
            if partition_epoch is not None and rng.random() < 0.9:
                partition_epoch += 1
                more["partition_epoch"] = partition_epoch
            if rng.random() < 0.3:
                more["replicas"] = nodes if rng.random() < 0.6 else nodes[:-1]
            registered = {**change(leader, epoch, isr, nodes).fields, "clean": rng.random() < 0.85, **more}
            if rng.random() < 0.1:
                del registered[rng.choice(list(registered))]
            events.append(reported(100, "ChangePartition", **registered))
        term = _term(leader, epoch, isr, ends[leader], rng)
        if rng.random() < 0.2:
            late += term
        else:
            events += term
        for node in nodes:
            if node != leader and rng.random() < 0.7:
                events.append(follow(node, leader, epoch, leo=ends[node], hw=0))
        events += _in_flight(leader, rng.choice(nodes), epoch, ends, rng)
        if late and rng.random() < 0.5:
            events += late
            late = []
        if rng.random() < 0.12:
            node = rng.choice(nodes)
            events += [reported(node, "Crash"), *_loaded(node, ends[node], rng, forks=False)]
    reassigned = {"reassigned": True} if rng.random() < 0.3 else {}
    config = replace(CONFIG, nodes=nodes, profile=profile, extra=reassigned)
    return Trace("", "t-0", config, numbered([*events, *late]))


def _loaded(node: int, end: int, rng: random.Random, forks: bool) -> list[Event]:
    """A broker starts with so many records: their epochs are those of the others, mostly, as far as its cache tells."""
    entries = [(epoch, at) for epoch, at in enumerate(range(0, end, rng.choice((1, 1, 2))))]
    drawn = rng.random()
    if drawn < 0.25:
        entries = entries[rng.randint(0, len(entries)) :]
    elif drawn < 0.4 and entries:
        at = rng.randrange(len(entries))
        entries = [*entries[:at], (FIRST - 1, entries[at][1])]
    elif drawn < 0.5:
        entries = entries[:1]
    given: dict[str, object] = {"epochs": tuple(entries)} if rng.random() < 0.93 else {}
    begin = reported(node, "Start", clean=True, leo=end, hw=0, log_start=rng.choice((0, 0, 0, 0, min(1, end))), **given)
    fork = [reported(node, "EpochCacheEntry", leader_epoch=rng.choice((0, 1)), epoch_start=rng.randint(0, end))]
    return [begin, *(fork * (forks and rng.random() < 0.6))]


def _term(leader: int, epoch: int, isr: Sequence[int], end: int, rng: random.Random) -> list[Event]:
    """It begins to lead, commits and acknowledges, perhaps less than it has."""
    hw = end if rng.random() < 0.7 else rng.randint(0, end)
    begins = lead(leader, epoch, isr, leo=end, hw_before=0, hw=hw)
    if rng.random() < 0.3:
        begins = replace(begins, fields={**begins.fields, "hw": 0})
    acknowledged = reported(leader, "ProduceAck", acks=-1, rec_end=rng.randint(0, max(hw, 1)), error=0)
    return [begins, *([acknowledged] * (rng.random() < 0.4))]


def _in_flight(leader: int, follower: int, epoch: int, ends: dict[int, int], rng: random.Random) -> list[Event]:
    """A response with all the leader has, and perhaps the follower's line about it."""
    if leader == follower or rng.random() < 0.7:
        return []
    asked = {"req_epoch": epoch, "req_offset": 0}
    records = {"error": 0, "res_hw": 0, "rec_base": 0, "rec_end": ends[leader], "rec_epoch": rng.choice((0, 3))}
    served = reported(leader, "HandleFetch", peer=follower, **asked, **records)
    taken = reported(follower, "HandleFetchResponse", peer=leader, **asked, **records, log_start=0)
    seen = reported(follower, "Observe", epochs=((0, 0),))
    return [served, *([taken, seen] * (rng.random() < 0.5))]
