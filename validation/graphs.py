"""`python -m validation.graphs [MODEL ...]`: spec = impl over the whole graph of each model that holds,
bounds as pinned.

The main job compares some of these, others within tighter bounds (graph_comparison.COMPARED). Here every model of the
protocol that must hold is walked to its end by both sides, and has as many states as models.toml says. It ends with 1 when
one differs.
"""

import sys
import time

from tidegauge.conformance.from_tlc.graph_comparison import Compared, Equality, compare
from tidegauge.spec.tlc.models import find_model

WHOLE = (
    *(Compared(name, "fetch-truncation", {}) for name in ("Small", "Refines", "Live", "MovingStart", "MovingStartTwo")),
    Compared("Kip320", "kip320", {}),
    *(Compared(name, "skips-equal", {}) for name in ("SkipsEqual", "ProposalsEnd", "AnyResponse")),
    Compared("LateDivergingDropped", "fetch-truncation", {}, "SeedLateDiverging"),
    Compared("MissedEpochRepaired", "repaired", {}, "SeedMissedEpoch"),
    Compared("Interleaved", "kip320", {}, "SeedInterleaved"),
    Compared("LaggingHw", "fetch-truncation", {}, "SeedLaggingHw"),
    Compared("StaleLeader", "repaired", {}, "SeedStaleLeader"),
    *(Compared(name, "fetch-truncation", {}) for name in ("Epochs", "Medium", "AcksAll", "AcksAllEpochs")),
    *(Compared(name, "fetch-truncation", {}) for name in ("KeepingSmall", "KeepingMedium")),
    Compared("KeepingKip320", "kip320", {}),
    Compared("KeepingLateDivergingDropped", "fetch-truncation", {}, "SeedLateDiverging"),
    Compared("KeepingMissedEpochRepaired", "repaired", {}, "SeedMissedEpoch"),
    Compared("KeepingLaggingHw", "fetch-truncation", {}, "SeedLaggingHw"),
    Compared("KeepingStaleLeader", "repaired", {}, "SeedStaleLeader"),
    Compared("OldRequest", "repaired", {}, "SeedOldRequest"),
    Compared("Kip320Epochs", "kip320", {}),
    Compared("MixedTruncation", "1=kip320,2=fetch-truncation", {}),
    Compared("MixedFencing", "1=kip279,2=kip320", {}),
    Compared("MixedResponses", "1=fetch-truncation+response_epoch_checked=off,2=fetch-truncation", {}),
    Compared("MixedRepaired", "1=fetch-truncation,2=repaired", {}),
    Compared("DivergenceFirst", "fetch-truncation", {}, off="out_of_range_first"),
    *(Compared(name, "elr", {}) for name in ("OnMinIsr", "Kip966", "Kip966MinIsrOne")),
    Compared("Safe", "safe", {}),
    *(
        Compared(name, "elr", {})
        for name in ("RepairedRevert", "RepairedFeature", "RepairedDisks", "RepairedReassignmentAlone")
    ),
    *(Compared(name, "elr", {}) for name in ("RepairedReassignment", "RepairedMinIsr")),
)
"""With three brokers: ISR changes, and those from MissedEpoch, LaggingHw and StaleLeader. `Three` has 459,591 states, more
than fit here."""


def main(names: list[str]) -> int:
    """Print a line for each model, then the sum."""
    unknown = sorted(set(names) - {compared.model for compared in WHOLE})
    if unknown:
        print(f"models: expected some of {', '.join(c.model for c in WHOLE)}; seen {', '.join(unknown)}", file=sys.stderr)
        return 2
    wrong: list[str] = []
    states = transitions = 0
    for compared in WHOLE:
        if names and compared.model not in names:
            continue
        begin = time.perf_counter()
        equality = compare(compared)
        said = _difference(equality)
        print(
            f"{compared.model}, {compared.profile}: {said or _same(equality)} ({time.perf_counter() - begin:.0f} s)",
            flush=True,
        )
        wrong += [compared.model] if said else []
        states += equality.states
        transitions += equality.transitions
    print(f"{transitions:,} transitions of {states:,} states; different: {', '.join(wrong) or 'none'}")
    return 1 if wrong else 0


def _same(equality: Equality) -> str:
    return f"the same {equality.states:,} states, {equality.transitions:,} transitions"


def _difference(equality: Equality) -> str:
    pinned = find_model(equality.model).distinct
    # Equal graphs of another size: the bounds, or the model, are not those that models.toml was pinned with.
    if equality.divergence is None and equality.states != pinned:
        return f"expected {pinned:,} states, as models.toml has it; seen {equality.states:,}"
    return equality.divergence or ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
