"""The captures that come with the project."""

from pathlib import Path

FOLDER = Path(__file__).parent.parent / "captures"


def shipped() -> dict[str, Path]:
    """Every capture by name (`4.2.0/b-kill-leader`), sorted."""
    return {folder.relative_to(FOLDER).as_posix(): folder for folder in sorted(FOLDER.glob("*/*")) if folder.is_dir()}
