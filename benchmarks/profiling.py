"""How long a run spends in some of its functions.

Rule of this file: the profiler counts calls, so it slows down Python that calls much. It is for runs whose time goes to few
long calls; the whole is timed without it.
"""

import cProfile
import pstats
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Function(NamedTuple):
    """A function by the end of its file and its name; `own`: without the Python that it calls.

    What Cython compiled is no Python: its time is its caller's own.
    """

    file: str
    name: str
    own: bool = False


def spent(run: Callable[[], object], functions: Mapping[str, Function]) -> dict[str, float]:
    """Seconds in each of the functions, with what it calls; "" for the whole run."""
    profile = cProfile.Profile()
    profile.runcall(run)
    stats: Any = pstats.Stats(profile)
    found = {what: _seconds(stats.stats, function) for what, function in functions.items()}
    missing = [str(functions[what]) for what, seconds in found.items() if not seconds]
    if missing:
        raise SystemExit(f"expected calls of {', '.join(missing)}, seen none; name what took their place")
    return found | {"": float(stats.total_tt)}


def _seconds(stats: Mapping[tuple[str, int, str], tuple[Any, ...]], function: Function) -> float:
    which = 2 if function.own else 3
    return float(
        sum(
            times[which]
            for (file, _, name), times in stats.items()
            if name == function.name and file.endswith(function.file)
        )
    )
