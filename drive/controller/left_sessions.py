"""Sessions whose broker sends no heartbeats any more: a controller finds each of them at a check of its own once it is over.

Those are counted that may not have been found yet, by the clock of the process.
"""

from tidegauge.drive.kafka_process.clock import Clock

OVER = 1.01
"""After that much of a session it is over for sure, however long the request took."""


class LeftSessions:
    """Of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since: list[float] = []

    def __len__(self) -> int:
        return len(self._since)

    def add(self, many: int = 1) -> None:
        """Count so many more that are left from now on."""
        self._since += [self._clock.now()] * many

    def looked_for(self) -> None:
        """Forget what was over: the controller has checked until there was nothing to find."""
        begun = self._clock.now() - OVER * self._clock.session
        self._since = [since for since in self._since if since > begun]
