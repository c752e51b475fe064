"""Evaluates shipped transcripts in parallel, equal ones once.

Rules of this file

1. Releases that did the same on the same paths, by the same switches, are evaluated once, whatever they are called.
2. Switches that only a controller reads (FINDINGS) make no two brokers different.
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


def of_each_distinct(evaluate: Callable[[Path], T], places: Sequence[Path]) -> list[tuple[str, T]]:
    """Return for each file its name and the result of `evaluate`, which runs in another process. Raises TranscriptError."""
    transcripts = [parts(place) for place in places]
    contents = [content_of(transcript) for transcript in transcripts]
    # Reversed, so that of equal transcripts the first one is evaluated.
    first = dict(zip(reversed(contents), reversed(places), strict=True))
    with workers(os.cpu_count() or 1) as side_by_side:
        results = dict(zip(first, side_by_side(evaluate, first.values()), strict=True))
    return [(transcript.name, results[content]) for transcript, content in zip(transcripts, contents, strict=True)]


def content_of(transcript: TranscriptParts) -> tuple[str, str, Profile]:
    """Return what makes a transcript distinct: its kind, a hash of its content without its name, and its switches."""
    content = hashlib.sha256(f"{transcript.head}\n{transcript.recorded}".encode()).hexdigest()
    profile = profile_named(transcript.profile)._replace(name="")
    return transcript.format, content, of_a_broker(profile) if transcript.format == BROKER_FORMAT.name else profile


def of_a_broker(profile: Profile) -> Profile:
    """Return the profile with the switches of controllers reset, since no broker reads them (rule 2)."""
    return profile.switched({name: getattr(FETCH_TRUNCATION, name) for name in FINDINGS})
