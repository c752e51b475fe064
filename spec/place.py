"""The directory of this package: its TLA+ modules are files that TLC reads."""

from pathlib import Path

SPEC = Path(__file__).parent
