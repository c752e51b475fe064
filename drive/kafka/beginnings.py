"""What has been seen on paths that begin alike: a tree of steps, with what was seen after each."""

from tidegauge.drive.contract import Report, Step


class Beginning:
    """The first steps of some paths. `seen`: what was seen after the last of them, None if nobody has looked yet."""

    def __init__(self) -> None:
        self.seen: Report | None = None
        self._longer: dict[Step, Beginning] = {}

    def after(self, step: Step) -> "Beginning":
        """That with one step more."""
        return self._longer.setdefault(step, Beginning())
