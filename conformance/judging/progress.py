"""What long runs share: where they say how far they are, and the seed where nobody names another."""

from collections.abc import Callable

Echo = Callable[[str], None]

DEFAULT_SEED = 20_101
