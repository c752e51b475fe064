"""Names of files that may be no paths of this machine.

Rule of this file: no key is repeated. Whoever quotes a URI that is refused quotes it `without_keys`.
"""

import re
from pathlib import Path

_KEYS = re.compile(r"(?<=://)[^/?#]*@")


def is_uri(name: str) -> bool:
    """Whether a name is a URI, as s3://BUCKET/KEY and file:/DIRECTORY are."""
    return "://" in name or name.lower().startswith("file:")


def without_keys(uri: str) -> str:
    """The URI without who asks, and with which password. What is no right URI is taken as well: it may hold some, too."""
    return _KEYS.sub("", uri)


def elsewhere(name: str | Path) -> str | None:
    """The URI, without keys, that a name is where a path of this machine is meant; None if it is a path."""
    return without_keys(str(name)) if is_uri(str(name)) and not Path(name).exists() else None
