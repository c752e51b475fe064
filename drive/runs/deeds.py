"""What is found out about each of the transcripts that are shipped, side by side.

Rule of this file: releases that did the same on the same paths, by the same switches, are looked at once, whatever they are
called.
"""

import gzip
import hashlib
import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tidegauge.conformance.judging.workers import workers
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import named

T = TypeVar("T")


def of_each(made: Callable[[Path], T], places: Sequence[Path]) -> list[T]:
    """What is made of each file, in their order; `made` goes to another process."""
    deeds = [deed_of(place) for place in places]
    first = dict(zip(reversed(deeds), reversed(places), strict=True))
    with workers(os.cpu_count() or 1) as side_by_side:
        found = dict(zip(first, side_by_side(made, first.values()), strict=True))
    return [found[deed] for deed in deeds]


def deed_of(place: Path) -> tuple[bytes, Profile]:
    """What a transcript holds but for its first line, as a hash, and the switches whose paths it has."""
    head, _, recorded = gzip.decompress(place.read_bytes()).partition(b"\n")
    return hashlib.sha256(recorded).digest(), named(json.loads(head)["profile"])._replace(name="")
