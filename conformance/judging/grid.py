"""A snapshot of what the judge knows, drawn in text: a row per replica with its log and its high watermark.

    offset       0 1 2
    n1 leader    0 0 1|      leo 3 hw 3 epoch 1 isr {1,2}
    n2 follower  0 0|?       leo 2 hw 2 epoch 1

A cell holds the leader epoch of a record, the bar is at the high watermark. Long logs are written as runs of epochs.
"""

from collections.abc import Iterator

from tidegauge.conformance.judging.events import IN_FLIGHT, node_ids
from tidegauge.conformance.judging.replay import ReplayedReplica, Snapshot
from tidegauge.traces.schema import Config

CELLS = 24
"""Logs up to this length are drawn to scale."""


def snapshot_grid(snapshot: Snapshot, config: Config) -> Iterator[str]:
    """Yield the lines of the drawing."""
    longest = max((replica.leo or 0 for replica in snapshot.replicas), default=0)
    scale = longest <= CELLS
    if scale and longest:
        yield "offset        " + " ".join(f"{offset:>2}" for offset in range(longest))
    for node, replica in zip(config.nodes, snapshot.replicas, strict=True):
        log = _cells(replica, longest) if scale else f" {_runs(replica)}"
        yield f"n{node:<3} {_role(replica):<9}{log}  {_facts(replica, config)}".rstrip()
    if snapshot.leader_epoch is not None:
        leader = "none" if snapshot.leader in (None, -1) else f"n{config.nodes[snapshot.leader or 0]}"
        isr = "" if snapshot.isr is None else f" isr {_set(snapshot.isr, config)}"
        yield f"controller    leader {leader} epoch {snapshot.leader_epoch}{isr}"
    for follower, leader_at, kind in snapshot.flying:
        yield f"in flight     n{config.nodes[follower]} - n{config.nodes[leader_at]}: {IN_FLIGHT[kind]}"


def _role(replica: ReplayedReplica) -> str:
    if replica.up is False:
        return "down"
    return {None: "?", 0: "starting", 1: "leader", 2: "follower"}[replica.role]


def _cells(replica: ReplayedReplica, longest: int) -> str:
    cells = []
    for offset in range(longest + 1):
        bar = "|" if replica.hw == offset else " "
        if replica.leo is None:
            cells.append(f"{bar} ?" if offset < longest else bar)
        elif offset < replica.leo and offset >= (replica.log_start or 0):
            epoch = replica.epoch_of(offset)
            cells.append(f"{bar}{'?' if epoch is None else epoch:>2}")
        else:
            cells.append(f"{bar}  " if offset < longest else bar)
    return "".join(cells)


def _runs(replica: ReplayedReplica) -> str:
    if replica.epochs is None or replica.leo is None:
        return "[?]"
    if not replica.epochs:
        return f"[{replica.log_start or 0},{replica.leo})"
    ends = [start for _, start in replica.epochs[1:]] + [replica.leo]
    return " ".join(f"[{start},{end}) epoch {epoch}" for (epoch, start), end in zip(replica.epochs, ends, strict=True))


def _set(mask: int, config: Config) -> str:
    return "{" + ",".join(map(str, node_ids(mask, config))) + "}"


def _facts(replica: ReplayedReplica, config: Config) -> str:
    facts = [("leo", replica.leo), ("hw", replica.hw), ("log start", replica.log_start or None), ("epoch", replica.epoch)]
    out = [f"{name} {value}" for name, value in facts if value is not None and (name != "epoch" or value >= 0)]
    if replica.role == 1 and replica.isr is not None:
        out.append(f"isr {_set(replica.isr, config)}")
    if replica.role == 1 and replica.proposed:
        out.append(f"proposed {_set(replica.proposed, config)}")
    trailing = (replica.epochs or ())[-1:]
    if trailing and replica.leo is not None and trailing[0][1] >= replica.leo:
        out.append(f"cache ends with {trailing[0]}")
    return " ".join(out)
