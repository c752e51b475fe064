"""Generations of which nobody may read some switches."""

from collections.abc import Collection

from tidegauge.impl.profiles import Profile


def deaf_to(switches: Collection[str], profile: Profile) -> Profile:
    """The same generation; whoever reads one of the switches fails."""
    return type("Deaf", (Profile,), {name: _unread(name) for name in switches})(*profile)


def _unread(name: str) -> property:
    def read(_: Profile) -> bool:
        raise AssertionError(f"{name} is read")

    return property(read)
