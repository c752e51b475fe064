"""Every group by name, in the order it is told."""

from spec.proofs.groups import BOUNDED, Group
from spec.proofs.premises import premise_groups


def all_groups() -> dict[str, Group]:
    """The bounded tables and convergence, then the premises."""
    return {group.name: group for group in (*BOUNDED, *premise_groups(BOUNDED))}
