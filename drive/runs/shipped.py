"""The transcripts of unmodified Kafka brokers that are shipped, one per release."""

from collections.abc import Iterator
from pathlib import Path

from tidegauge.drive.transcript import TranscriptNode, read
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, named, version_of

FOLDER = Path(__file__).resolve().parent.parent / "transcripts"


def place_of(release: str, folder: Path = FOLDER) -> Path:
    """The file of a release."""
    return folder / f"kafka-{release}.gz"


def release_of(node: TranscriptNode) -> str:
    """Whose transcript it is: paths are made from the release's own profile."""
    return node.profile.removeprefix(RELEASE)


def profile_of(node: TranscriptNode) -> Profile:
    """What that release does."""
    return named(node.profile)


def releases(folder: Path = FOLDER) -> list[str]:
    """Whose transcripts a folder has, oldest release first."""
    names = (place.name.removeprefix("kafka-").removesuffix(".gz") for place in folder.glob("kafka-*.gz"))
    return sorted(names, key=version_of)


def shipped(folder: Path = FOLDER) -> Iterator[TranscriptNode]:
    """Every transcript of a folder, oldest release first."""
    for release in releases(folder):
        yield read(place_of(release, folder))
