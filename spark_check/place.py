"""Where input and results of a cluster lie: a path, or a URI of a file system that every worker has mounted."""

from pathlib import Path
from urllib.parse import unquote, urlsplit

from tidegauge.impl.errors import UsageError


def local(place: str | Path) -> Path:
    """The path that a path or a file: URI means. Raises UsageError for a URI of another file system."""
    parts = urlsplit(str(place))
    if isinstance(place, Path) or ("://" not in place and parts.scheme != "file"):
        return Path(place)
    if parts.scheme != "file" or parts.netloc not in ("", "localhost"):
        raise UsageError(
            f"{place}: expected a path or a file: URI that every worker can open, seen another file system; "
            "mount it on the workers (docs/spark.md says how)"
        )
    return Path(unquote(parts.path))
