"""The errors of Tidegauge itself: every other error is one of these."""


class TidegaugeError(Exception):
    """Root of every error this package raises."""


class UsageError(TidegaugeError):
    """The caller named something that does not exist: a profile, a label that is not enabled."""


class SpecError(TidegaugeError):
    """Something that `spec` needs is missing or broken; the message says what, where, and what to do."""
