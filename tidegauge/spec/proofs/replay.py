"""Counter-models as runs: two concrete logs, replayed with the plain Python rules.

A counter-model of a convergence lemma is a pair of logs. Replaying it in CPython, round by round, shows that the loop ends
elsewhere than at the longest common prefix: there is no need to trust the solver.
"""

from dataclasses import dataclass

from tidegauge.impl import rules
from tidegauge.spec.proofs.lemmas.logs import LogValue

EPOCH_MODE, FETCH_MODE = "epoch", "fetch"

DONE, OUT_OF_RANGE, ENDLESS = "the follower stops", "the leader says out of range", "no end, still truncating"

ROUND_LIMIT = 50


@dataclass(frozen=True)
class Round:
    """One exchange: the follower's log end and requested epoch, the response, and its truncation."""

    log_end: int
    asked: int
    response: tuple[int, int]
    row: int
    target: int

    def __str__(self) -> str:
        epoch, end = self.response
        reported = f"told (epoch {epoch}, end {end})"
        return f"at LEO {self.log_end} with epoch {self.asked}: {reported}, row T{self.row}, truncated at {self.target}"


@dataclass(frozen=True)
class LossScenario:
    """Two logs, the rounds between them, and the actual and the expected end."""

    mode: str
    leader: LogValue
    follower: LogValue
    rounds: tuple[Round, ...]
    end: int
    common_end: int
    outcome: str

    @property
    def converged(self) -> bool:
        """Whether the follower's log ends at the common prefix; below the comparable part all offsets are equally good."""
        low = max(self.leader.log_start, self.follower.log_start)
        # Out of range is right where nothing is common.
        if self.outcome == OUT_OF_RANGE:
            return self.common_end <= low
        return self.outcome == DONE and max(self.end, low) == max(self.common_end, low)

    def lines(self) -> list[str]:
        """Return the run as text."""
        reported = [f"leader    {self.leader}", f"follower  {self.follower}", *[f"  {exchange}" for exchange in self.rounds]]
        return [*reported, f"  {self.outcome} at {self.end}; the common prefix ends at {self.common_end}"]


def record_epoch(log: LogValue, offset: int) -> int:
    """Return the epoch of the record at `offset`, by walking the cache from the start."""
    epoch = rules.UNDEFINED
    for e, s in zip(log.epochs, log.starts, strict=True):
        if s <= offset:
            epoch = e
    return epoch


def common_end(leader: LogValue, follower: LogValue) -> int:
    """Return the end of the longest common prefix, record by record."""
    end = min(leader.log_end, follower.log_end)
    for offset in range(max(leader.log_start, follower.log_start), end):
        if record_epoch(leader, offset) != record_epoch(follower, offset):
            return offset
    return end


def replay(leader: LogValue, follower: LogValue, mode: str = FETCH_MODE, kip_101: bool = False) -> LossScenario:
    """Run the truncation loop with the rules of `impl` until it ends.

    `kip_101`: the leader answers with the end offset only, and the follower takes it for the epoch it asked for.
    """
    now = follower
    rounds: list[Round] = []
    outcome = ENDLESS
    while outcome == ENDLESS and len(rounds) < ROUND_LIMIT:
        requested = rules.latest_epoch(now.epochs)
        if mode == FETCH_MODE:
            decision, *response = rules.fetch_decision(
                leader.epochs, leader.starts, leader.log_start, leader.log_end, now.log_end, requested
            )
            if decision != rules.DIVERGING:
                outcome = DONE if decision == rules.READ else OUT_OF_RANGE
                break
            epoch, end = response
        else:
            epoch, end = rules.end_offset_for(leader.epochs, leader.starts, leader.log_end, requested)
        # The response of KIP-101 has no epoch (KIP-279 added it), so the follower takes the offset for its own epoch.
        if kip_101:
            epoch = requested
        row, target, done = rules.truncation_target(now.epochs, now.starts, now.log_end, now.log_end, epoch, end)
        rounds.append(Round(now.log_end, requested, (epoch, end), row, target))
        now = truncated(now, target)
        if mode == EPOCH_MODE and done:
            outcome = DONE
    return LossScenario(mode, leader, follower, tuple(rounds), now.log_end, common_end(leader, follower), outcome)


def truncated(log: LogValue, target: int) -> LogValue:
    """Return the log after a truncation."""
    end = min(target, log.log_end)
    keeps = rules.truncate_from_end_keeps(log.starts, end)
    return LogValue(log.epochs[:keeps], log.starts[:keeps], min(log.log_start, end), end)
