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


Telling = Callable[..., Story]
"""The fixture `telling`."""


def dated(*lines: str) -> str:
    """Lines a second apart; an exception has no date."""
    return "".join(
        f"{line}\n" if line[:1].islower() else f"[2026-01-01 00:00:{at:02},000] {line}\n" for at, line in enumerate(lines)
    )


def log(*messages: str) -> str:
    """Lines of INFO, a second apart."""
    return dated(*(f"INFO {message}" for message in messages))


def only(story: Story, kind: str) -> dict[str, Any]:
    """The one entry of a kind."""
    (entry,) = [entry for entry in story.entries if entry.kind == kind]
    return {**entry.fields, "node": entry.node, "partition": entry.partition, "time": entry.time}


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
def telling(tmp_path: Path) -> Telling:
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
