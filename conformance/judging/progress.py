"""Types that long runs share: the function that gets lines of progress, and the default seed."""

from collections.abc import Callable

Echo = Callable[[str], None]

DEFAULT_SEED = 20_101
