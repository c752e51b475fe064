"""The explorer's bounds as a model's cfg states them.

Rules of this file

1. Bounds stand in the cfg and nowhere else: whoever explores the model of a cfg asks here.
2. It stands above both rooms it joins: `spec` knows no explorer, `impl` no cfg.
"""

from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN, Bounds
from tidegauge.impl.explored import isr_cluster
from tidegauge.spec.checker.models import Model

LAST_RESORTS = {"MCLastKnownSpec": LAST_KNOWN, "MCAnybodySpec": ANYBODY}
"""Whom a SPECIFICATION of MCELR elects when nobody may be elected cleanly."""


def bounds_of(model: Model, **constants: int) -> Bounds:
    """The explorer's bounds for a model's cfg, with other constants if named (MaxLog=1)."""
    cfg = model.config(**constants)
    bounds = Bounds(
        len(cfg.members("Broker")),
        cfg.number("MaxLog"),
        cfg.number("MaxEpoch"),
        cfg.number("MaxCrash"),
        cfg.number("MaxFetch"),
        max_start=cfg.number("MaxStart", default=0),
    )
    if model.module == "MCELR":
        return bounds._replace(
            min_insync_replicas=cfg.number("MinIsr"),
            loses_tails=cfg.substitutions.get("SurvivesCrash") == "AnyTailMayGo",
            last_resort=LAST_RESORTS.get(cfg.specification, ""),
        )
    if model.module != "MCAcks":
        return bounds
    # One producer for each record there can be: all of them may wait.
    return bounds._replace(max_waiting=bounds.max_log, min_insync_replicas=cfg.number("MinIsr"))


def isr_bounds_of(model: Model, **constants: int) -> isr_cluster.IsrBounds:
    """The same for a model of MCAlterPartition."""
    cfg = model.config(**constants)
    followers = len(cfg.members("Follower"))
    return isr_cluster.IsrBounds(followers, *map(cfg.number, ("MaxEnd", "MaxPartitionEpoch", "MaxRestarts")))
