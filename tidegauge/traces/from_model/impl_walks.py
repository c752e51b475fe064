"""Traces of random walks of the reference itself, beyond what can be explored; and the bounds of a model.

*Bounds* limit what the explorer or a walk may do: how many brokers, records, epochs, crashes. A model's bounds and switches
are constants of its .cfg. A *profile* is the switches of one generation of the protocol, or of one broker. A *walk* is a
random run from the initial state; a `Walker` has its `start`, lists the `transitions` of a cluster, each with a label
(action, arguments...), takes one, and gives the `view` of a cluster, its state as nested tuples.
"""

import random
import re
from collections.abc import Iterator, Mapping

from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN, Bounds
from tidegauge.impl.explorer import isr_model
from tidegauge.impl.explorer.controller_model import ControlBounds
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.profiles import ELR, FETCH_TRUNCATION, KIP101, KIP279, KIP320, REPAIRED, Profile, Rules
from tidegauge.spec.tlc.models import Model
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.schema import Trace

# The explorer's bounds, read from the cfg of a model, which is the only place where they are defined.


LAST_RESORTS = {"MCLastKnownSpec": LAST_KNOWN, "MCAnybodySpec": ANYBODY}
"""The broker that a SPECIFICATION of MCELR elects when none may be elected cleanly."""

THREAD_TRUNCATES = frozenset({"EveryFollowerTruncates", "HasNoEpoch"})
"""Substitutions for StartsTruncating in models whose fetcher thread truncates in a step of its own."""


def bounds_of(model: Model, **constants: int) -> Bounds:
    """Return the explorer's bounds for a model's cfg, with other constants if given (MaxLog=1)."""
    cfg = model.config(**constants)
    bounds = Bounds(
        # brokers, max_log, max_epoch, max_crashes, max_fetch
        len(cfg.members("Broker")),
        cfg.number("MaxLog"),
        cfg.number("MaxEpoch"),
        cfg.number("MaxCrash"),
        cfg.number("MaxFetch"),
        # Most models have none of these constants and substitutions: they delete nothing, give up no request, and so on.
        max_start=cfg.number("MaxStart", default=0),
        keeps_in_flight=cfg.substitutions.get("LeftInFlight") == "KeepsInFlight",
        max_abandoned=cfg.number("MaxAbandoned", default=0),
        thread_truncates=cfg.substitutions.get("StartsTruncating") in THREAD_TRUNCATES,
    )
    # Only models of MCELR lose tails in a crash and elect a last resort.
    if model.module == "MCELR":
        return bounds._replace(
            min_insync_replicas=cfg.number("MinIsr"),
            loses_tails=cfg.substitutions.get("SurvivesCrash") == "AnyTailMayGo",
            last_resort=LAST_RESORTS.get(cfg.specification, ""),
        )
    if model.module != "MCAcks":
        return bounds
    # Models of MCAcks have producers that wait: one for each possible record, so that all of them may.
    return bounds._replace(max_waiting=bounds.max_log, min_insync_replicas=cfg.number("MinIsr"))


def isr_bounds_of(model: Model, **constants: int) -> isr_model.IsrBounds:
    """Return the bounds for a model of MCAlterPartition."""
    cfg = model.config(**constants)
    # The leader is no constant of that model.
    followers = len(cfg.members("Follower"))
    return isr_model.IsrBounds(followers, *map(cfg.number, ("MaxEnd", "MaxPartitionEpoch", "MaxRestarts")))


MIXED_GENERATIONS = (FETCH_TRUNCATION, REPAIRED, KIP320, KIP279, KIP101)

CONTROLLER_SWITCHES = (
    "ElrKeepsRemoved",
    "MinIsrByPartitionZero",
    "MinIsrChangeClearsElr",
    "IndexesGoStale",
    "ReassignmentKeepsAdding",
    "CompletesBeforeElection",
    "HeartbeatInOnePass",
    "NeglectsElrWhenOff",
    "RecreatedStaysEligible",
    "RaisedMinIsrKeepsEpoch",
    "ForgetsLastMember",
)
"""The switches of Controller.tla; in a profile they are written elr_keeps_removed and so on."""


def control_bounds_of(model: Model, **constants: int) -> ControlBounds:
    """Return the bounds for a model of MCController."""
    cfg = model.config(**constants)
    flags = ("Unclean", "Deletes", "Unregisters", "DisksFail", "LateConfig", "Toggles")
    unclean, deletes, unregisters, disks_fail, late_config, toggles = (cfg.constants[name] == "TRUE" for name in flags)
    return ControlBounds(
        # The replicas, how many brokers there are, and how many replicas partition 0 has (0: this is that partition).
        _replicas(cfg.number("Replicas")),
        len(cfg.members("Broker")),
        cfg.number("PartitionZero"),
        targets=tuple(_replicas(int(target)) for target in cfg.members("Targets")),
        min_isr=cfg.number("MinIsr"),
        min_isrs=tuple(map(int, cfg.members("MinIsrs"))),
        max_log=cfg.number("MaxLog"),
        max_partition_epoch=cfg.number("MaxPartitionEpoch"),
        max_stops=cfg.number("MaxStops"),
        unclean=unclean,
        deletes=deletes,
        unregisters=unregisters,
        disks_fail=disks_fail,
        late_config=late_config,
        toggles=toggles,
    )


def _replicas(digits: int) -> tuple[int, ...]:
    """Return replicas as indexes from 0; a cfg writes them as the digits of a number, 123 for brokers 1, 2 and 3."""
    return tuple(int(digit) - 1 for digit in str(digits))


def control_profile_of(model: Model) -> Profile:
    """Return the profile with the switches of a model of MCController."""
    constants = model.config().constants
    return ELR.switched({switch_name(name): constants[name] == "TRUE" for name in CONTROLLER_SWITCHES})


MIXED_SWITCHES = (
    "TruncationOnFetch",
    "Fencing",
    "EpochInResponse",
    "EpochResponsesChecked",
    "ResponseEpochChecked",
    "KeepsRemoteLeo",
)
"""The switches of MCMixed, whose values are sets of brokers."""


def mixed_profile_of(model: Model) -> str:
    """Return the name of the brokers' profiles of a model of MCMixed: 1=kip320,2=fetch-truncation."""
    cfg = model.config()
    sets = {switch_name(name): cfg.members(name) for name in MIXED_SWITCHES}
    named = []
    for node, broker in enumerate(cfg.members("Broker"), 1):
        switches = {switch: broker in brokers for switch, brokers in sets.items()}
        # The generation that has most of these switches; those that differ are then written behind its name.
        nearest = min(MIXED_GENERATIONS, key=lambda profile: len(_differing(profile, switches)))
        broker_profile = nearest
        for switch in _differing(nearest, switches):
            broker_profile = broker_profile.with_switch(switch, switches[switch])
        named.append(f"{node}={broker_profile.name}")
    return ",".join(named)


def _differing(profile: Profile, switches: Mapping[str, bool]) -> list[str]:
    """Return the names of those `switches` that the profile has set to the other value."""
    return [switch for switch, value in switches.items() if getattr(profile, switch) != value]


def switch_name(name: str) -> str:
    """Return the profile's name of a switch of a module: elr_keeps_removed for ElrKeepsRemoved."""
    # An underscore before each capital but the first.
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()


# Random walks of the reference, beyond what can be explored: more brokers, longer logs, more epochs.
#
# 1. A walk takes steps of impl.cluster.cluster one at a time; nothing is precomputed and no graph bounds it.
# 2. An action is drawn first, then one of its instances, so an action with many variants (a crash for each checkpointed high
#    watermark) is not more likely. Controller, crash and loss are rarer than data, as in practice; otherwise hardly a record
#    would be committed between two elections.
# 3. Walk n of seed s depends on (s, n) alone.


BOUNDS = Bounds(brokers=3, max_log=12, max_epoch=8, max_crashes=3, max_fetch=4)
STEPS = 120
RARE = (
    "FenceBroker",
    "UnfenceBroker",
    "FenceElr",
    "UnfenceElr",
    "Register",
    "ElectPreferred",
    "Crash",
    "CrashAndLose",
    "Stop",
    "ShrinkIsr",
    "LoseResponse",
    "Duplicate",
    "Disconnect",
    "LoseDisk",
    "Read",
    "DeleteRecords",
)
OFTEN = 8
"""How many times likelier any other action is than a rare one."""

FORGET = 200
"""Walks after which the walker's cache of values is dropped: it must not grow with the number of walks."""


def impl_walks(
    count: int,
    *,
    bounds: Bounds = BOUNDS,
    profile: str = "fetch-truncation",
    steps: int = STEPS,
    seed: int = 0,
    rules: Rules | None = None,
) -> Iterator[Trace]:
    """Yield the traces of `count` walks of at most `steps` transitions within `bounds`.

    `rules` replaces some of the implementation's rules by faulty ones.
    """
    for number in range(count):
        # A new walker, with an empty cache.
        if number % FORGET == 0:
            walker = Walker(bounds, profile, rules)
        # A generator per walk: one walk can be made again without those before it.
        rng = random.Random(f"{seed}/{number}")
        yield one_walk(walker, rng, steps, f"walk-{seed}-{number}", profile)


def one_walk(walker: Walker, rng: random.Random, steps: int, name: str, profile: str) -> Trace:
    """Return the trace of one walk from the initial state; it ends early where no transition is possible."""
    cluster = walker.start
    states, labels = [walker.view(cluster)], []
    for _ in range(steps):
        # Action -> indexes of its transitions: an action is drawn first, then one of them.
        by_action: dict[str, list[int]] = {}
        enabled = walker.transitions(cluster)
        for index, transition in enumerate(enabled):
            by_action.setdefault(transition.label[0], []).append(index)
        if not by_action:
            break
        names = list(by_action)
        action = rng.choices(names, [1 if name in RARE else OFTEN for name in names])[0]
        transition = enabled[rng.choice(by_action[action])]
        cluster = walker.take(cluster, transition)
        labels.append(transition.label)
        states.append(walker.view(cluster))
    bounds = walker.start.model.bounds
    # Whether a request may arrive a second time, or after its sender has given it up.
    twice, min_isr = bounds.max_duplicates > 0 or bounds.max_abandoned > 0, bounds.min_insync_replicas
    return trace_of_path(states, labels, name=name, profile=profile, source="impl", min_isr=min_isr, duplicates=twice)
