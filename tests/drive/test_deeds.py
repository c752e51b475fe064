"""What releases did is looked at once where it is the same, and whose it is stays said."""

import gzip
import json
from pathlib import Path

import pytest

from tidegauge.drive.recording import TranscriptError
from tidegauge.drive.runs.deeds import of_each


def transcript(place: Path, *, release: str, reports: str = "leo", recorded: str = "[1]") -> Path:
    """One of a release that did this."""
    head = {"name": f"Kafka {release}", "profile": f"release-{release}", "reports": [reports]}
    place.write_bytes(gzip.compress(f"{json.dumps(head)}\n{recorded}\n".encode()))
    return place


def test_who_did_the_same_by_the_same_switches_is_looked_at_once(tmp_path: Path) -> None:
    """4.2.1 and 4.2.2 have the same switches, 3.4.0 has others."""
    alike = [transcript(tmp_path / release, release=release) for release in ("4.2.1", "4.2.2")]
    others = [
        transcript(tmp_path / "older", release="3.4.0"),
        transcript(tmp_path / "other fields", release="4.2.1", reports="hw"),
        transcript(tmp_path / "other paths", release="4.2.1", recorded="[2]"),
    ]
    found = of_each(str, [*alike, *others])
    assert [name for name, _ in found] == [f"Kafka {release}" for release in ("4.2.1", "4.2.2", "3.4.0", "4.2.1", "4.2.1")]
    assert [made for _, made in found] == [str(place) for place in (alike[0], alike[0], *others)]


NO_GZIP = b"no gzip"


@pytest.mark.parametrize(
    "text", [b"", b"{}\n", b"[1]\n", b"x", NO_GZIP], ids=["empty", "nobody", "list", "no JSON", "no gzip"]
)
def test_what_is_no_transcript_is_told_with_its_file(text: bytes, tmp_path: Path) -> None:
    place = tmp_path / "broken"
    place.write_bytes(text if text == NO_GZIP else gzip.compress(text))
    with pytest.raises(TranscriptError, match=r"broken.*expected a .*transcript"):
        of_each(str, [place])
