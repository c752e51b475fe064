"""The transcripts of unmodified Kafka brokers and controllers that are shipped, one of each per release."""

from pathlib import Path

from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.transcript import TranscriptNode
from tidegauge.impl.errors import UsageError
from tidegauge.impl.profiles import Profile
from tidegauge.impl.releases import RELEASE, parse_release, profile_named

FOLDER = Path(__file__).resolve().parent.parent / "transcripts"

BROKER, CONTROLLER = "kafka", "controller"
"""What the names of their files begin with."""


def place_of(release: str, folder: Path = FOLDER, kind: str = BROKER) -> Path:
    """The file of a release."""
    return folder / f"{kind}-{release}.gz"


def place_named(name: str, kind: str) -> Path:
    """A file, or that of a release that is shipped. Raises UsageError with the releases there are."""
    if Path(name).is_file():
        return Path(name)
    there = releases(kind=kind)
    if name not in there:
        raise UsageError(
            f"compare: expected a transcript, or a release of {', '.join(there)}; seen {name!r}; choose one of those"
        )
    return place_of(name, kind=kind)


def release_of(node: TranscriptNode[CaseT]) -> str:
    """Whose transcript it is: paths are made from the release's own profile."""
    return node.profile.removeprefix(RELEASE)


def profile_of(node: TranscriptNode[CaseT]) -> Profile:
    """What that release does."""
    return profile_named(node.profile)


def releases(folder: Path = FOLDER, kind: str = BROKER) -> list[str]:
    """Whose transcripts a folder has, oldest release first."""
    names = (place.name.removeprefix(f"{kind}-").removesuffix(".gz") for place in folder.glob(f"{kind}-*.gz"))
    return sorted(names, key=parse_release)


def places(folder: Path = FOLDER, kind: str = BROKER) -> list[Path]:
    """Their files."""
    return [place_of(release, folder, kind) for release in releases(folder, kind)]
