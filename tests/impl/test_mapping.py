"""docs/mapping.md names what exists."""

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
MAPPING = (ROOT / "docs" / "mapping.md").read_text(encoding="utf-8")


def test_every_function_named_exists() -> None:
    """`impl.module:function` imports."""
    named = re.findall(r"`(impl\.\w+):(\w+)`", MAPPING)
    assert len(named) > 40
    for module, function in named:
        assert callable(getattr(importlib.import_module(module), function)), f"{module}:{function}"


def test_every_test_named_exists() -> None:
    """Paths under tests/ are files or directories."""
    named = set(re.findall(r"`(tests/[\w/.]+)`", MAPPING))
    assert len(named) > 5
    assert not [path for path in named if not (ROOT / path).exists()]
