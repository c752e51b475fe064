"""Wrong next events that the walk over all behaviours found let pass (validation/product), one at a time."""

from tests.conformance.hand import (
    COPIED,
    FORKED,
    OPENING,
    bent,
    broken,
    change,
    follow,
    lead,
    reported,
    send,
    serve,
    start,
    take,
)

ALONE = (*OPENING, change(1, 0, (1,)), lead(1, 0, (1,)))
"""Broker 2 is out of the ISR and has fetched nothing."""


def expand(remote_leo: int) -> object:
    return reported(1, "ExpandIsr", peer=2, isr=(1, 2), remote_leo=remote_leo)


def test_a_replica_that_never_fetched_is_not_proposed() -> None:
    """ISR-01: with a fetch at hand, or behind one that was recorded, it may be."""
    assert broken((*ALONE, expand(0))) == {"ISR-01"}
    fetched = (*ALONE, send(2, 1, 0, 0, -1))
    assert broken((*fetched, expand(0))) == set()
    assert broken((*fetched, expand(1))) == {"ISR-01"}
    served = (*fetched, serve(1, 2, 0, 0, -1, res_hw=0, hw=0, leo=0))
    assert broken((*served, expand(0))) == set()
    assert broken((*served, expand(1))) == {"ISR-01"}


def test_a_fetch_of_an_earlier_epoch_brings_nobody_up() -> None:
    """ISR-01: it is refused (FENCED_LEADER_EPOCH), so the leader records nothing."""
    later = (*OPENING, send(2, 1, 0, 0, -1), change(1, 1, (1,)), lead(1, 1, (1,)))
    assert broken((*later, expand(0))) == {"ISR-01"}


def test_nobody_follows_itself() -> None:
    """EPOCH-04: who was registered as leader denies that it leads."""
    elected = (*OPENING, change(2, 1, (1, 2)))
    assert broken((*elected, follow(2, 2, 1))) == {"EPOCH-04"}
    assert broken((*elected, follow(1, 2, 1))) == set()


def test_who_was_named_first_leads_the_epoch_as_little_as_who_was_named_last() -> None:
    """CTRL-02: a controller names two leaders of one epoch. EPOCH-04: so whichever of the two leads, the other was named."""
    for first, last in ((1, 2), (2, 1)):
        named_twice = (*OPENING, change(first, 1, (1, 2)), change(last, 1, (1, 2)))
        assert broken(named_twice) == {"CTRL-02"}
        for leader in (first, last):
            assert broken((*named_twice, lead(leader, 1, (1, 2)))) == {"CTRL-02", "EPOCH-04"}


def test_news_within_an_epoch_leave_its_start() -> None:
    """EPOCH-01: the start of a leader epoch is the log end at its election, whatever was appended since."""
    again = {"leo": 1, "hw_before": 1, "hw": 1}
    assert broken((*COPIED, lead(1, 0, (1, 2), **{**again, "epoch_start": 0}))) == set()
    assert broken((*COPIED, lead(1, 0, (1, 2), **{**again, "epoch_start": 1}))) == {"EPOCH-01"}


def test_a_proposal_ends_with_its_epoch() -> None:
    """ISR-04: the controller refuses what the leader of an earlier epoch proposed."""
    proposed = (*ALONE, send(2, 1, 0, 0, -1), expand(0))
    assert broken((*proposed, change(1, 0, (1, 2)))) == set()
    assert broken((*proposed, change(1, 1, (1,)), change(1, 1, (1, 2)))) == {"ISR-04"}


def test_a_request_nobody_sent_is_not_handled() -> None:
    """FETCH-04: also where the leader is heard of only after the follower's life began in the trace."""
    opening = (start(1), start(2), change(2, 0, (1, 2)), lead(2, 0, (1, 2)), follow(1, 2, 0))
    handled = serve(2, 1, 0, 0, -1, res_hw=0, hw=0, leo=0)
    assert broken((*opening, send(1, 2, 0, 0, -1), handled)) == set()
    assert broken((*opening, handled)) == {"FETCH-04"}


def test_records_do_not_end_before_they_begin() -> None:
    """HW-06: a response that diverges may be told as one without records, not with fewer than none."""
    diverging = FORKED[:-2]
    empty = take(1, 2, 1, 1, res_hw=0, hw_before=0, hw=0, count=0)
    assert broken((*diverging, empty)) == set()
    assert broken(bent((*diverging, empty), -1, rec_base=2)) == {"HW-06"}
