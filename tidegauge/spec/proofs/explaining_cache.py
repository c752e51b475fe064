"""Ask whether any epoch cache explains an observed truncation, for sources that report the truncation but not the cache."""

from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.engine.symbolic import term
from tidegauge.spec.proofs.lemmas.logs import LogValue, well_formed_log


@dataclass(frozen=True)
class ObservedTruncation:
    """A truncation from outside: the follower's log end, the response (`leader_epoch`, `leader_end`), and where it cuts its
    log (`target`). `completed`: whether it asks for no further epoch. None is unknown.
    """

    log_end: int
    leader_epoch: int
    leader_end: int
    target: int
    completed: bool | None = None
    log_start: int | None = None
    latest_epoch: int | None = None


def cache_explaining(seen: ObservedTruncation) -> LogValue | None:
    """Return the smallest well-formed cache with which the follower's rule truncates as observed, or None."""
    # The rule reads at most four entries: the first, the last not above the epoch of the response, the next, and the last.
    # A longer cache can be thinned to those without changing the truncation, so four is a complete search.
    for entries in range(5):

        def not_seen(path: ProofPath, entries: int = entries) -> None:
            """Claim that no cache makes a follower truncate as was seen: a counter-model is one that does."""
            log = well_formed_log(path, "cache", entries)
            path.assume(log.log_end == seen.log_end)
            if seen.log_start is not None:
                path.assume(log.log_start == seen.log_start)
            if seen.latest_epoch is not None:
                path.assume(log.latest() == seen.latest_epoch)
            arguments = (log.epochs, log.starts, seen.log_end, seen.target, seen.leader_epoch, seen.leader_end)
            _, target, done = path.call("truncation_target", *arguments)
            completes_alike: Any = seen.completed is None or z3.BoolVal(seen.completed) == term(done)
            path.goal("another truncation", z3.Not(z3.And(target == seen.target, completes_alike)))

        tally = explore(not_seen, vars(rules), stop_at_first=True)
        if tally.refuted:
            cache: LogValue = tally.refuted["another truncation"].values["cache"]
            return cache
    return None
