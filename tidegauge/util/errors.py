"""The errors of Tidegauge itself, of which every other error is one, and the exit codes of every command."""


class TidegaugeError(Exception):
    """Root of every error this package raises."""


class UsageError(TidegaugeError):
    """The caller named something that does not exist: a profile, a label that is not enabled."""


class SpecError(TidegaugeError):
    """Something that `spec` needs is missing or broken; the message says what, where, and what to do."""


CONFORMS, FAILS, BAD, UNDECIDED = 0, 1, 2, 3
"""The exit codes: nothing differs; a rule fails, or a step differs; bad usage or bad input; nothing could be decided."""
