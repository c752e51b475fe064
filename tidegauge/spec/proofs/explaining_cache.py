"""Find an epoch cache that explains an observed truncation, for sources that report the truncation but not the cache.

z3 searches: a lemma claims that no cache makes the follower's rule truncate so, and a counter-model of it is such a cache.
A *lemma* is a function of a path, the run on which it assumes and sets goals; `explore` runs it along every path and returns
the tally of its goals. The cache has z3 terms for numbers until a counter-model gives them values (`LogValue`).
"""

from dataclasses import dataclass
from typing import Any

import z3

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.engine.symbolic import term
from tidegauge.spec.proofs.lemmas.logs import LogValue, well_formed_log


@dataclass(frozen=True)
class ObservedTruncation:
    """A truncation as seen from outside; None is unknown."""

    log_end: int
    """the follower's log end before it"""
    leader_epoch: int
    leader_end: int
    """the leader's response: epoch and end offset"""
    target: int
    """where the follower truncates its log"""
    completed: bool | None = None
    """whether it asks for no further epoch"""
    log_start: int | None = None
    latest_epoch: int | None = None
    """the last epoch in the follower's cache"""


def cache_explaining(observed: ObservedTruncation) -> LogValue | None:
    """Return the smallest well-formed cache with which the follower's rule truncates as observed, or None."""
    # The rule reads at most four entries: the first, the last not above the epoch of the response, the next, and the last.
    # A longer cache can be thinned to those without changing the truncation, so four is a complete search.
    for entries in range(5):

        def no_cache_explains(path: ProofPath, entries: int = entries) -> None:
            """Claim that with any cache of `entries` entries the follower truncates otherwise."""
            log = well_formed_log(path, "cache", entries)
            path.assume(log.log_end == observed.log_end)
            if observed.log_start is not None:
                path.assume(log.log_start == observed.log_start)
            if observed.latest_epoch is not None:
                path.assume(log.latest() == observed.latest_epoch)
            # The fetch offset is where a follower truncates when the leader has no response (row T1); nobody reports it, so
            # the observed target stands for it.
            _, target, done = path.call(
                "truncation_target",
                log.epochs,
                log.starts,
                observed.log_end,
                observed.target,
                observed.leader_epoch,
                observed.leader_end,
            )
            # Unknown fits either. `done`, a plain truth value or a term: the follower asks for no further epoch.
            completes_alike: Any = observed.completed is None or z3.BoolVal(observed.completed) == term(done)
            path.goal("another truncation", z3.Not(z3.And(target == observed.target, completes_alike)))

        tally = explore(no_cache_explains, vars(rules), stop_at_first=True)
        # The least counter-model: by the name of the goal, its values by the name of the log.
        if tally.refuted:
            cache: LogValue = tally.refuted["another truncation"].values["cache"]
            return cache
    return None
