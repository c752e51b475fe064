"""Where the room lies: its modules are files that TLC reads."""

from pathlib import Path

SPEC = Path(__file__).parent
