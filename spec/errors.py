"""What can go wrong before TLC has a verdict, said so that the reader knows what to do."""


class SpecError(Exception):
    """Something the rooms of `spec` need is missing or broken; the message says what, where, and what to do."""
