"""A profile that records which of its switches are read.

What was done without reading a switch is done the same whatever its value is.
"""

from operator import itemgetter

from tidegauge.impl.profiles import Profile


def recording_reads(profile: Profile) -> tuple[Profile, set[str]]:
    """Return the same generation, and the set to which it adds the name of each switch that is read."""
    names: set[str] = set()

    def noted(at: int, name: str) -> property:
        value = itemgetter(at)

        def read(of: Profile) -> bool | str:
            names.add(name)
            found: bool | str = value(of)
            return found

        return property(read)

    return type("RecordingProfile", (Profile,), {name: noted(at, name) for at, name in enumerate(Profile._fields)})(
        *profile
    ), names
