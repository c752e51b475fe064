"""Every group by name, in the order it is told."""

from tidegauge.spec.proofs.groups import BOUNDED, UNBOUNDED, Group
from tidegauge.spec.proofs.premises import premise_groups


def all_groups() -> dict[str, Group]:
    """What is proved for bounded caches, then for caches of any length, then that no premise is idle."""
    return {group.name: group for group in (*BOUNDED, *UNBOUNDED, *premise_groups(BOUNDED))}
