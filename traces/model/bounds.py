"""The explorer's bounds, read from the cfg of a model, which is the only place where they are defined."""

import re

from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN, Bounds
from tidegauge.impl.explored import isr_cluster
from tidegauge.impl.explored.control_cluster import ControlBounds
from tidegauge.impl.profiles import ELR, Profile
from tidegauge.spec.checker.models import Model

LAST_RESORTS = {"MCLastKnownSpec": LAST_KNOWN, "MCAnybodySpec": ANYBODY}
"""The broker that a SPECIFICATION of MCELR elects when none may be elected cleanly."""

THREAD_TRUNCATES = frozenset({"EveryFollowerTruncates", "HasNoEpoch"})
"""Substitutions for StartsTruncating in models whose fetcher thread truncates in a step of its own."""


def bounds_of(model: Model, **constants: int) -> Bounds:
    """Return the explorer's bounds for a model's cfg, with other constants if given (MaxLog=1)."""
    cfg = model.config(**constants)
    bounds = Bounds(
        len(cfg.members("Broker")),
        cfg.number("MaxLog"),
        cfg.number("MaxEpoch"),
        cfg.number("MaxCrash"),
        cfg.number("MaxFetch"),
        max_start=cfg.number("MaxStart", default=0),
        thread_truncates=cfg.substitutions.get("StartsTruncating") in THREAD_TRUNCATES,
    )
    if model.module == "MCELR":
        return bounds._replace(
            min_insync_replicas=cfg.number("MinIsr"),
            loses_tails=cfg.substitutions.get("SurvivesCrash") == "AnyTailMayGo",
            last_resort=LAST_RESORTS.get(cfg.specification, ""),
        )
    if model.module != "MCAcks":
        return bounds
    # One producer for each possible record: all of them may wait.
    return bounds._replace(max_waiting=bounds.max_log, min_insync_replicas=cfg.number("MinIsr"))


def isr_bounds_of(model: Model, **constants: int) -> isr_cluster.IsrBounds:
    """Return the bounds for a model of MCAlterPartition."""
    cfg = model.config(**constants)
    followers = len(cfg.members("Follower"))
    return isr_cluster.IsrBounds(followers, *map(cfg.number, ("MaxEnd", "MaxPartitionEpoch", "MaxRestarts")))


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
    """Return the bounds for a model of MCController, whose replicas are digits: 123."""
    cfg = model.config(**constants)
    flags = ("Unclean", "Deletes", "Unregisters", "DisksFail", "LateConfig", "Toggles")
    unclean, deletes, unregisters, disks_fail, late_config, toggles = (cfg.constants[name] == "TRUE" for name in flags)
    return ControlBounds(
        _replicas(cfg.number("Replicas")),
        len(cfg.members("Broker")),
        cfg.number("PartitionZero"),
        tuple(_replicas(int(target)) for target in cfg.members("Targets")),
        cfg.number("MinIsr"),
        tuple(map(int, cfg.members("MinIsrs"))),
        cfg.number("MaxLog"),
        cfg.number("MaxPartitionEpoch"),
        cfg.number("MaxStops"),
        unclean,
        deletes,
        unregisters,
        disks_fail,
        late_config,
        toggles,
    )


def _replicas(digits: int) -> tuple[int, ...]:
    return tuple(int(digit) - 1 for digit in str(digits))


def control_profile_of(model: Model) -> Profile:
    """Return the profile with the switches of a model of MCController."""
    constants = model.config().constants
    return ELR.switched({switch_name(name): constants[name] == "TRUE" for name in CONTROLLER_SWITCHES})


def switch_name(name: str) -> str:
    """Return the profile's name of a switch of Controller.tla: elr_keeps_removed for ElrKeepsRemoved."""
    return re.sub(r"(?<!^)(?=[A-Z])", "_", name).lower()
