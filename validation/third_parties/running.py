"""A third party that runs on the loopback, for as long as somebody asks it; it ends with us, whatever happens to us."""

import re
import socket
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from typing import NamedTuple

from tidegauge.drive.kafka_process.guarded import Guarded
from tidegauge.impl.errors import UsageError
from validation.third_parties.party import Party

SECONDS, MOMENT = 60.0, 0.05
LAST_WORDS = 5
SAYS = re.compile(r"^listens on (?P<host>[^:\s]+):(?P<port>\d+): (?P<version>.+)\n", re.MULTILINE)


class Running(NamedTuple):
    """Where it listens, and what it says it is."""

    host: str
    port: int
    version: str


@contextmanager
def running(party: Party, seconds: float = SECONDS) -> Iterator[Running]:
    """Start it and end it. Raises UsageError where that needs something, or it does not come up."""
    with closing(Guarded(f"tidegauge-{party.name}-")) as guarded:
        guarded.run(party.command(guarded.home))
        found = _up(guarded, seconds)
        if found is None:
            said = "\n".join(_said(guarded).splitlines()[-LAST_WORDS:])
            raise UsageError(f"{party.name}: expected that it says where it listens within {seconds:g} s; seen\n{said}")
        yield found


def _up(guarded: Guarded, seconds: float) -> Running | None:
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        if match := SAYS.search(_said(guarded)):
            found = Running(match["host"], int(match["port"]), match["version"])
            with suppress(OSError), socket.create_connection((found.host, found.port), 1):
                return found
        time.sleep(MOMENT)
    return None


def _said(guarded: Guarded) -> str:
    return guarded.out.read_text(encoding="utf-8", errors="backslashreplace") if guarded.out.is_file() else ""
