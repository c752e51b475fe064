"""The proofs are not vacuous: what is lost without each premise, replayed with the plain rules."""

import pytest

from tidegauge.impl import rules
from tidegauge.spec.proofs.lemmas.logs import LogValue
from tidegauge.spec.proofs.premises import (
    EPOCH_MODE,
    FETCH_MODE,
    OUT_OF_RANGE,
    REMOVALS,
    common_end,
    counter_model_scenario,
    modes_of,
    replay,
)
from tidegauge.util.errors import SpecError

CASES = [(removal, mode) for removal in REMOVALS for mode in modes_of(removal)]


@pytest.mark.parametrize(("removal", "mode"), CASES)
def test_without_a_premise_the_plain_rules_end_elsewhere(removal: str, mode: str) -> None:
    """The counter-model, run in CPython, does not end at the longest common prefix."""
    run = counter_model_scenario(removal, mode)
    assert not run.converged
    assert f"the common prefix ends at {run.common_end}" in run.lines()[-1]


def test_kip_101_keeps_a_record_the_leader_never_wrote() -> None:
    """With KIP-101's response the follower stops above the common prefix; with KIP-279's, on the same logs, it does not."""
    run = counter_model_scenario("kip-101", EPOCH_MODE)
    assert run.end > run.common_end
    assert replay(run.leader, run.follower, EPOCH_MODE).converged


def test_an_entry_without_records_breaks_log_matching_on_records() -> None:
    """Log matching as Raft states it is too weak: an epoch entry that has no record yet has a past, too."""
    leader, follower = LogValue((0, 1), (0, 1), 0, 1), LogValue((1,), (0,), 0, 2)
    run = replay(leader, follower, EPOCH_MODE)
    assert (run.end, run.common_end, run.converged) == (1, 0, False)


def test_a_leader_that_is_not_the_newest_is_out_of_range() -> None:
    """An older leader has no response for a newer epoch, though records are common."""
    run = counter_model_scenario("leader-older", FETCH_MODE)
    assert run.outcome == OUT_OF_RANGE
    assert run.common_end > max(run.leader.log_start, run.follower.log_start)


@pytest.mark.parametrize(
    ("leader", "follower"),
    [
        (LogValue((0, 2), (0, 3), 0, 5), LogValue((0, 1), (0, 3), 0, 8)),
        (LogValue((0, 3, 4), (0, 2, 8), 0, 9), LogValue((0, 1, 2), (0, 2, 4), 0, 9)),
        (LogValue((0,), (0,), 0, 4), LogValue((0,), (0,), 0, 9)),
        (LogValue((4,), (10,), 10, 20), LogValue((1,), (0,), 0, 5)),
    ],
)
@pytest.mark.parametrize("mode", [EPOCH_MODE, FETCH_MODE])
def test_under_the_premises_the_loop_ends_at_the_common_prefix(leader: LogValue, follower: LogValue, mode: str) -> None:
    """Concrete logs that keep the premises converge in both modes."""
    assert replay(leader, follower, mode).converged


def test_the_common_prefix_is_found_record_by_record() -> None:
    """Two logs that part at offset 3 have three records in common."""
    assert common_end(LogValue((0, 2), (0, 3), 0, 5), LogValue((0, 1), (0, 3), 0, 8)) == 3


def test_a_premise_that_does_not_exist_is_refused() -> None:
    """Asking for an unknown removal or mode says which ones exist."""
    with pytest.raises(SpecError, match="expected one of two-pasts"):
        counter_model_scenario("gravity")
    with pytest.raises(SpecError, match="expected mode epoch for kip-101"):
        counter_model_scenario("kip-101", FETCH_MODE)


def test_the_divergence_vectors_of_kafka() -> None:
    """PartitionTest#testLastFetchedOffsetValidation, row by row."""
    epochs, starts = (0, 3, 4, 7, 9, 10), (0, 2, 8, 13, 14, 17)
    for last, offset, response in [(2, 5, (0, 2)), (0, 4, (0, 2)), (6, 6, (4, 13)), (5, 9, (4, 13)), (10, 18, (10, 17))]:
        assert rules.fetch_decision(epochs, starts, 0, 17, offset, last) == (rules.DIVERGING, *response)
    for last, offset in [(0, 2), (7, 14), (9, 17), (10, 17)]:
        assert rules.fetch_decision(epochs, starts, 0, 17, offset, last)[0] == rules.READ
    assert rules.fetch_decision(epochs, starts, 0, 17, 5, 11)[0] == rules.OUT_OF_RANGE
