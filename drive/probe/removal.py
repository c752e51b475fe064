"""Topics of the probe's own are taken away, and it is seen that they are gone.

Rules of this file

1. Every topic is asked for before any is waited for: whoever interrupts the waiting has lost nothing.
2. A topic is gone when metadata no longer names it. A broker hears of a deletion later than the controller decides it
   (BrokerMetadataPublisher), and Kafka with ZooKeeper deletes behind its response (TopicDeletionManager).
3. A deletion that was not granted is asked for again as long as metadata names the topic, or as long as its creation, sent
   and never answered, may still come to pass: by the deadline, which is later than that of the creation, it no longer can.
"""

import time
from collections.abc import Callable

from tidegauge.drive.probe.connection import LinkError
from tidegauge.drive.probe.partition import NotOfferedError
from tidegauge.impl import error_codes
from tidegauge.impl.error_codes import error_text

UNASKED = "its deletion was not asked for"
GRANTED = "its deletion was granted, and metadata names it still"
NOT_FINAL = frozenset({error_codes.UNKNOWN_TOPIC_OR_PARTITION, error_codes.REQUEST_TIMED_OUT, error_codes.NOT_CONTROLLER})
"""Refusals that a moment later are none."""


class Removal:
    """Topics that may be there, and why, in `left`. `delete` asks for one and returns the error code, `is_named` looks
    whether metadata has it: both raise LinkError, `delete` NotOfferedError."""

    def __init__(self, delete: Callable[[str], int], is_named: Callable[[str], bool]) -> None:
        self._delete, self._is_named = delete, is_named
        self.left: dict[str, str] = {}
        self._uncertain: set[str] = set()

    def expect(self, name: str) -> None:
        """It is about to be created."""
        self.left[name] = UNASKED

    def uncertain(self, name: str) -> None:
        """Nobody knows whether it will be created yet."""
        self._uncertain.add(name)

    def forget(self, name: str) -> None:
        """It is somebody else's."""
        del self.left[name]

    def created(self, name: str) -> None:
        """It was seen."""
        self._uncertain.discard(name)

    def run(self, pause: Callable[[], None], patience: float) -> None:
        """Delete, and wait so many seconds until all are gone; what is not stays in `left`."""
        waiting = [name for name in self.left if self._is_asked(name)]
        deadline = time.monotonic() + patience
        while waiting := [name for name in waiting if not self._is_over(name, time.monotonic() >= deadline)]:
            pause()

    def _is_asked(self, name: str) -> bool:
        """Whether it may go."""
        try:
            code = self._delete(name)
        except LinkError as problem:  # the response is lost, and the deletion perhaps not
            self.left[name] = str(problem)
            return True
        except NotOfferedError as problem:
            self.left[name] = str(problem)
            return False
        self.left[name] = GRANTED if code == error_codes.NONE else error_text(code)
        if code == error_codes.NONE:
            self._uncertain.discard(name)
        return code == error_codes.NONE or code in NOT_FINAL

    def _is_over(self, name: str, late: bool) -> bool:
        """Whether nothing more is waited for: it is gone, or stays."""
        try:
            is_named = self._is_named(name)
        except LinkError as problem:
            self.left[name] = str(problem)
            return True
        if not is_named and (late or name not in self._uncertain):
            del self.left[name]
            return True
        return late or (self.left[name] != GRANTED and not self._is_asked(name))
