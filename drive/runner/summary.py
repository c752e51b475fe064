"""The last lines of a run, on a broker or on a controller: how much was compared, and the verdict."""

from tidegauge.conformance.judging.verdicts import CONFORMS, FAILS, UNDECIDED
from tidegauge.drive.contract import CaseT
from tidegauge.drive.runner.differences import Played


def summary(name: str, profile: str, played: Played[CaseT], seconds: float) -> list[str]:
    """How much was played and compared, and the verdict."""
    rate = played.steps / seconds if seconds else 0.0
    compared = (
        f"{played.cases:,} paths, {played.steps:,} steps in {seconds:.1f} s ({rate:,.0f}/s), "
        f"{played.fields:,} fields compared"
    )
    verdict = {
        CONFORMS: f"{name} CONFORMS to {profile}: no step differs",
        FAILS: f"{name} DIFFERS from {profile} on {len(played.differences):,} of {played.cases:,} paths",
        UNDECIDED: f"{name}: UNDECIDED, nothing was compared",
    }[played.exit_code]
    return [compared, verdict]
