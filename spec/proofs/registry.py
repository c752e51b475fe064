"""All groups by name, in the order of the report."""

from tidegauge.spec.proofs.groups import BOUNDED, UNBOUNDED, Group
from tidegauge.spec.proofs.premises import premise_groups


def all_groups() -> dict[str, Group]:
    """Return the groups for bounded caches, for caches of any length, and those that show that every premise is needed."""
    return {group.name: group for group in (*BOUNDED, *UNBOUNDED, *premise_groups(BOUNDED))}
