"""The exit codes of every command."""

CONFORMS, FAILS, BAD, UNDECIDED = 0, 1, 2, 3
"""Nothing differs; a rule fails, or a step differs; bad usage or bad input; nothing could be decided."""
