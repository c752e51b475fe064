"""A profile that is watched: the same generation, which notes the switches that are read of it.

What was done without a look at a switch is done the same whatever its value is.
"""

from operator import itemgetter

from tidegauge.impl.profiles import Profile


def watched(profile: Profile) -> tuple[Profile, set[str]]:
    """The profile watched, and the names that have been read of it."""
    names: set[str] = set()

    def noted(at: int, name: str) -> property:
        value = itemgetter(at)

        def read(of: Profile) -> bool | str:
            names.add(name)
            found: bool | str = value(of)
            return found

        return property(read)

    return type("Watched", (Profile,), {name: noted(at, name) for at, name in enumerate(Profile._fields)})(*profile), names
