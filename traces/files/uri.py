"""Names of files that may be URIs instead of local paths.

Rule of this file: no credentials in messages. A message that quotes a URI quotes it `without_keys`.
"""

import re
from pathlib import Path

_KEYS = re.compile(r"(?<=://)[^/?#]*@")


def is_uri(name: str) -> bool:
    """Return whether a name is a URI, as s3://BUCKET/KEY and file:/DIRECTORY are."""
    return "://" in name or name.lower().startswith("file:")


def without_keys(uri: str) -> str:
    """Return the URI without user and password. Malformed URIs are accepted: they may have them as well."""
    return _KEYS.sub("", uri)


def elsewhere(name: str | Path) -> str | None:
    """Return the URI without keys if a name is one where a local path is expected; None if it is a path."""
    return without_keys(str(name)) if is_uri(str(name)) and not Path(name).exists() else None
