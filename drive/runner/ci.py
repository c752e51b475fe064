"""A run where many look at it: annotations on GitHub, and a badge."""

import json
import os
from collections.abc import Sequence

BADGE_COLORS = {0: ("conforms", "brightgreen"), 1: ("differs", "red")}
"""By exit code: what a badge says, and its color."""


def on_github() -> bool:
    """Whether a workflow of GitHub runs this: it sets the variable in every step."""
    return os.environ.get("GITHUB_ACTIONS") == "true"


def annotations(name: str, stories: Sequence[str]) -> list[str]:
    """A workflow command per story: the run's page shows it as an error. What would end the command is escaped."""
    return [f"::error title={_property(f'{name} {story.splitlines()[0]}')}::{_data(story)}" for story in stories]


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def badge(exit_code: int, profile: str, steps: int) -> str:
    """The JSON of an endpoint badge of shields.io, schema version 1."""
    says, color = BADGE_COLORS.get(exit_code, ("undecided", "lightgrey"))
    message = f"{says} ({profile}, {steps:,} steps)"
    return json.dumps({"schemaVersion": 1, "label": "tidegauge", "message": message, "color": color}, indent=1) + "\n"
