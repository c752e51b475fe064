"""The user's cache: what is made or fetched once."""

import os
from pathlib import Path


def cache(name: str) -> Path:
    """The folder of that name in it, which need not be there. Raises RuntimeError for a user without a home."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "tidegauge" / name
