"""Names of files that may be no paths of this machine.

Rule of this file: no key is repeated. Whoever quotes a URI in a report or an error quotes it `without_keys`.
"""

from urllib.parse import urlsplit


def is_uri(name: str) -> bool:
    """Whether a name is a URI, as s3://BUCKET/KEY and file:/DIRECTORY are."""
    return "://" in name or name.startswith("file:")


def without_keys(uri: str) -> str:
    """The URI without what stands in front of an @: who asks, and with which password."""
    parts = urlsplit(uri)
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
