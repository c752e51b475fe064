"""What is found out about each of the transcripts that are shipped, side by side.

Rules of this file

1. Releases that did the same on the same paths, by the same switches, are looked at once, whatever they are called.
2. What only a controller reads (FINDINGS) makes no two brokers different.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller.findings import FINDINGS
from tidegauge.drive.runner.transcript import TranscriptParts, parts
from tidegauge.impl.profiles import FETCH_TRUNCATION, Profile
from tidegauge.impl.releases import profile_named
from tidegauge.util.workers import workers

T = TypeVar("T")


def of_each_distinct(made: Callable[[Path], T], places: Sequence[Path]) -> list[tuple[str, T]]:
    """Whose each file is, and what is made of it, in their order; `made` goes to another process. Raises TranscriptError."""
    found = [parts(place) for place in places]
    contents = [content_of(one) for one in found]
    first = dict(zip(reversed(contents), reversed(places), strict=True))
    with workers(os.cpu_count() or 1) as side_by_side:
        of = dict(zip(first, side_by_side(made, first.values()), strict=True))
    return [(one.name, of[content]) for one, content in zip(found, contents, strict=True)]


def content_of(found: TranscriptParts) -> tuple[str, str, Profile]:
    """Of what kind a transcript is, what it holds but for whose it is, as a hash, and the switches whose paths it has."""
    said = hashlib.sha256(f"{found.head}\n{found.recorded}".encode()).hexdigest()
    profile = profile_named(found.profile)._replace(name="")
    return found.format, said, of_a_broker(profile) if found.format == BROKER_FORMAT.name else profile


def of_a_broker(profile: Profile) -> Profile:
    """The same for a broker, whatever its controller does: rule 2 of this file."""
    return profile.switched({name: getattr(FETCH_TRUNCATION, name) for name in FINDINGS})
