"""The cases of tests/story/wild.tar.xz, unpacked once, and stories of texts."""

import json
import tarfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from tidegauge.story.story import Story, story_of

PACKED = Path(__file__).parent / "wild.tar.xz"
"""30 cases, and what is to be told of each (expected.jsonl). Those with a number are public reports of people who run Kafka,
reconstructed with other names; `zk-*` and `kraft-*` are logs of real clusters under faults whose outcome is known from the
client and the segments."""


def expected() -> list[dict[str, Any]]:
    """What is to be told of each case."""
    with tarfile.open(PACKED) as packed:
        member = packed.extractfile("./expected.jsonl")
        assert member is not None
        return [json.loads(line) for line in member.read().decode().splitlines()]


@pytest.fixture(scope="session")
def wild(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder with the cases."""
    folder = tmp_path_factory.mktemp("wild")
    with tarfile.open(PACKED) as packed:
        packed.extractall(folder, filter="data")
    return folder


@pytest.fixture
def telling(tmp_path: Path) -> Callable[..., Story]:
    """The story of texts: one file, or several by name."""

    def story_of_texts(text: str | Mapping[str, str]) -> Story:
        for name, content in ({"server.log": text} if isinstance(text, str) else text).items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content, encoding="utf-8")
        return story_of([tmp_path])

    return story_of_texts


def matches(wanted: Mapping[str, Any], seen: Mapping[str, Any]) -> bool:
    """Whether an object has every field that is named, with that value."""
    return all(seen.get(key) == value for key, value in wanted.items())
