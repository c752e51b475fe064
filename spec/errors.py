"""The error of the spec: something is missing or broken before TLC or z3 has a verdict."""


class SpecError(Exception):
    """Something that `spec` needs is missing or broken; the message says what, where, and what to do."""
