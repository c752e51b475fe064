"""Starts a third party on the loopback for the time of a probe; it ends with this process, however that ends."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from tidegauge.drive.kafka_process.process import Guarded
from tidegauge.util.errors import UsageError
from validation.third_parties.third_party import ThirdParty

START_SECONDS, POLL_SECONDS = 60.0, 0.05
SHOWN_LINES = 5
ANNOUNCEMENT = re.compile(r"^listens on (?P<host>[^:\s]+):(?P<port>\d+): (?P<version>.+)\n", re.MULTILINE)


class RunningParty(NamedTuple):
    """The address where a third party listens, and the version that it reports."""

    host: str
    port: int
    version: str


@contextmanager
def running(party: ThirdParty, seconds: float = START_SECONDS) -> Iterator[RunningParty]:
    """Start a third party, and end it afterwards. Raises UsageError for what is missing, or when it does not come up."""
    with closing(Guarded(f"tidegauge-{party.name}-")) as guarded:
        guarded.run(party.command(guarded.home))
        party_running = _wait_until_up(guarded, seconds)
        if party_running is None:
            output = "\n".join(_output(guarded).splitlines()[-SHOWN_LINES:])
            raise UsageError(f"{party.name}: expected a line with its address within {seconds:g} s; seen\n{output}")
        yield party_running


def _wait_until_up(guarded: Guarded, seconds: float) -> RunningParty | None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if match := ANNOUNCEMENT.search(_output(guarded)):
            announced = RunningParty(match["host"], int(match["port"]), match["version"])
            # A program may announce its address before it listens there.
            with suppress(OSError), socket.create_connection((announced.host, announced.port), 1):
                return announced
        time.sleep(POLL_SECONDS)
    return None


def _output(guarded: Guarded) -> str:
    return guarded.out.read_text(encoding="utf-8", errors="backslashreplace") if guarded.out.is_file() else ""
