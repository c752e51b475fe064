"""Whole logs and what is left of them: what the exception is that the proof sets apart."""

from tidegauge.impl import rules
from tidegauge.spec.proofs.groups import SizedLemma, two_full_caches
from tidegauge.spec.proofs.lemmas.convergence import READS_AT_START, fetch_step_with_deleted_records
from tidegauge.spec.proofs.lemmas.logs import LogValue


def test_a_fetch_at_the_leaders_log_start_is_compared_with_nothing() -> None:
    """Without the exception a read goes on above records that the leader never had: the rules let it."""
    tally = SizedLemma(fetch_step_with_deleted_records, two_full_caches).explore(
        (1, 1), vars(rules), frozenset({READS_AT_START})
    )
    assert list(tally.refuted) == ["a read goes on from what the whole logs share"]
    model = tally.refuted["a read goes on from what the whole logs share"].values
    assert (model["leader"], model["leader.deleted_below"]) == (LogValue((1,), (0,), 0, 1), 1)
    assert (model["follower"], model["follower.deleted_below"]) == (LogValue((0,), (0,), 0, 1), 0)
    assert rules.fetch_decision((1,), (1,), 1, 1, 1, 0)[0] == rules.READ


def test_an_epoch_that_the_leader_has_deleted_is_truncated_at_its_log_start() -> None:
    """The follower has only an epoch that the leader has deleted: it keeps what lies below the leader's log start."""
    decision, epoch, end = rules.fetch_decision((2,), (5,), 5, 9, 7, 0)
    assert (decision, epoch, end) == (rules.DIVERGING, 0, 5)
    assert rules.truncation_target((0,), (0,), 7, 7, epoch, end) == (5, 5, True)
