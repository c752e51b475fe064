"""What the judge knows of epochs where nobody is fenced: records of one leader may follow those of a later one."""

from dataclasses import replace

import pytest

from tests.conformance.hand import TWO, append, broken, change, follow, judged, lead, reported, send, serve, start, take
from tidegauge.traces.schema import Event
from validation.random_runs import MISSED_EPOCH, RunCase, judge_runs

KIP101 = replace(TWO, profile="kip101")
HW_ONLY = replace(TWO, profile="hw-only")

SEND_EPOCH_REQUEST = reported(2, "SendEpochRequest", peer=1, req_epoch=2, req_last_epoch=1)
FORKED = (
    start(1, leo=3, epochs=((0, 0),)),
    start(2, leo=2, epochs=((0, 0), (1, 1))),
    change(1, 2, (1,)),
    lead(1, 2, (1,), leo=3, hw=3),
    follow(2, 1, 2, leo=2),
    SEND_EPOCH_REQUEST,
    reported(1, "HandleEpochRequest", peer=2, req_epoch=2, req_last_epoch=1, error=0, div_epoch=None, div_end=3),
    reported(
        2,
        "HandleEpochResponse",
        peer=1,
        req_epoch=2,
        error=0,
        div_epoch=None,
        div_end=3,
        target=2,
        completed=True,
        leo_before=2,
        hw_before=0,
        leo=2,
        hw=0,
    ),
    send(2, 1, 2, 2, 1),
    serve(1, 2, 2, 2, 1, res_hw=3, hw=3, leo=3, rec_epoch=0),
    take(2, 1, 2, 2, res_hw=3, hw_before=0, hw=3, rec_epoch=0),
    send(2, 1, 2, 3, 0),
)
"""Before KIP-279 the leader answers for an epoch it does not know: broker 2 keeps record 1 of epoch 1, and takes a record of
epoch 0 behind it, which evicts the entries of both."""


def reloaded(clean: bool, **fields: object) -> tuple[Event, ...]:
    """Broker 2 comes back and asks with an epoch that its cache had before."""
    gone = reported(2, "Stop") if clean else reported(2, "Crash")
    loaded = reported(2, "Start", clean=clean, leo=3, hw=3, log_start=0, **fields)
    return (*FORKED, gone, loaded, follow(2, 1, 2, leo=3, hw=3), SEND_EPOCH_REQUEST)


def test_an_unclean_restart_of_a_forked_log_leaves_its_epoch_cache_open() -> None:
    """LogSegment#recover adds the epochs above the latest that it meets: which cache that makes, nobody can tell."""
    assert broken(FORKED, KIP101) == set()
    assert broken(reloaded(clean=False), KIP101) == set()
    assert judged(reloaded(clean=False), KIP101).final[0][1].epochs is None


def test_a_cache_that_is_told_is_known_again() -> None:
    """As it was loaded, whatever that is; and what is asked next is held to it."""
    assert broken(reloaded(clean=False, epochs=((0, 0), (1, 1))), KIP101) == set()
    assert broken(reloaded(clean=False, epochs=((0, 0),)), KIP101) == {"FETCH-02"}


def test_a_clean_restart_reads_the_cache_it_had() -> None:
    """Nothing is recovered then, so the file says what memory said."""
    assert broken(reloaded(clean=True), KIP101) == {"FETCH-02"}


def test_a_log_truncated_below_its_fork_is_as_good_as_any() -> None:
    """The lost epochs went with the records: an empty log has an empty cache."""
    empty = (*FORKED, reported(2, "Crash"), reported(2, "Start", clean=False, leo=0, hw=0, log_start=0), follow(2, 1, 2))
    assert judged(empty, KIP101).final[0][1].epochs == ()
    assert broken((*empty, SEND_EPOCH_REQUEST), KIP101) == {"FETCH-02"}


def test_where_a_log_forked_the_cache_does_not_say_what_the_records_are() -> None:
    """Broker 2 leads with records of the epochs 0, 1, 2, 1. Its cache gives record 1 to epoch 0; nobody is held to that."""
    elected = change(2, 4, (2,))
    leads = (
        start(1, leo=4, epochs=((0, 0), (1, 1))),
        start(2, leo=3, epochs=((0, 0), (1, 1), (2, 2))),
        change(1, 3, (1,)),
        lead(1, 3, (1,), leo=4, hw=4),
        follow(2, 1, 3, leo=3),
        send(2, 1, 3, 3, 2),
        serve(1, 2, 3, 3, 2, res_hw=4, hw=4, leo=4, rec_epoch=1),
        take(2, 1, 3, 3, res_hw=4, hw_before=0, hw=4, rec_epoch=1),
        replace(elected, fields={**elected.fields, "clean": False}),
        lead(2, 4, (2,), leo=4, hw_before=4, hw=4),
        reported(1, "Crash"),
        start(1, clean=False, leo=1, hw=1, epochs=((0, 0),)),
        follow(1, 2, 4, leo=1, hw=1),
        send(1, 2, 4, 1, 0),
    )
    right = serve(2, 1, 4, 1, 0, res_hw=4, hw=4, leo=4, rec_end=2, rec_epoch=1)
    last = {"rec_end": 4, "rec_epoch": 1}
    assert judged(leads, HW_ONLY).final[0][1].epochs == ((0, 0), (1, 3), (4, 4))
    assert broken((*leads, right), HW_ONLY) == set()
    assert broken((*leads, serve(2, 1, 4, 1, 0, res_hw=4, hw=4, leo=4, **last)), HW_ONLY) == set()
    last["rec_epoch"] = 2
    assert broken((*leads, serve(2, 1, 4, 1, 0, res_hw=4, hw=4, leo=4, **last)), HW_ONLY) == {"FETCH-06"}


LATE_RESPONSE = (
    start(1, leo=1, epochs=((0, 0),)),
    start(2),
    change(1, 1, (1,)),
    lead(1, 1, (1,), leo=1, hw=1),
    follow(2, 1, 1),
    send(2, 1, 1, 0, -1),
    append(1, 1, 1, hw_before=1, hw=2),
    change(1, 2, (1,)),
    lead(1, 2, (1,), leo=2, hw_before=2, hw=2),
    append(1, 2, 2, hw_before=2, hw=3),
    serve(1, 2, 1, 0, -1, res_hw=3, hw=3, leo=3, rec_end=3, rec_epoch=2),
    take(2, 1, 1, 0, res_hw=3, hw_before=0, hw=3, count=3, rec_epoch=2),
    send(2, 1, 1, 3, 2),
)
"""Nobody is fenced: a leader answers a request of its last epoch with records of this one."""


def test_a_leader_that_fences_nobody_answers_from_the_log_of_the_term_it_answers_in() -> None:
    """What the records are is known although the response tells the epoch of the last one only."""
    seen = judged(LATE_RESPONSE, HW_ONLY)
    assert broken(LATE_RESPONSE, HW_ONLY) == set()
    assert seen.final[0][1].epochs == ((0, 0), (1, 1), (2, 2))


def test_without_the_response_the_records_of_an_unfenced_leader_are_open() -> None:
    """The request's epoch does not say in which term it was answered."""
    unseen = tuple(event for event in LATE_RESPONSE if event.event != "HandleFetch")
    silent = replace(HW_ONLY, extra={"reports": ["SendFetch", "BecomeLeader"]})
    assert broken(unseen, silent) == set()
    assert judged(unseen, silent).final[0][1].epochs is None


@pytest.mark.parametrize(("profile", "seed"), [("kip101", 0), ("hw-only", 0), ("kip279", 0)])
def test_runs_with_responses_of_several_epochs_are_judged_right(profile: str, seed: int) -> None:
    """These very runs broke FETCH-02 and LOAD-02 while the judge took a request's epoch for that of its response."""
    (found,) = judge_runs(20, cases=[RunCase(profile, 2, MISSED_EPOCH)], seed=seed)
    assert found.right, found.says
