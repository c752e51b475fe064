"""Which append an acknowledgement belongs to, and who may say it: ACK-02 and DATA-03."""

from dataclasses import replace
from typing import Any

import pytest

from tests.conformance.hand import (
    COPIED,
    OPENING,
    TWO,
    ack,
    append,
    bent,
    broken,
    change,
    either_way,
    follow,
    judged,
    lead,
    reported,
    reporting_all_but,
    send,
    serve,
    take,
    without,
)
from tidegauge.conformance.judge import compaction
from tidegauge.traces.schema import Config, Event

LOGS = replace(TWO, lag_rule=True)
"""As of brokers' logs, which have the line of a response when it is sent."""


TRUNCATED = (
    *OPENING,
    append(1, 0, 0),
    change(2, 1, (1, 2)),
    lead(2, 1, (1, 2)),
    append(2, 1, 0),
    follow(1, 2, 1, leo=1),
    send(1, 2, 1, 1, 0),
    reported(2, "HandleFetch", peer=1, req_epoch=1, req_offset=1, req_last_epoch=0, error=0, div_epoch=0, div_end=0),
    reported(1, "HandleDivergingResponse", peer=2, req_epoch=1, req_offset=1, div_epoch=0, div_end=0, target=0, leo=0),
    send(1, 2, 1, 0, -1),
    serve(2, 1, 1, 0, -1, res_hw=0, hw=0, leo=1),
    take(1, 2, 1, 0, res_hw=0, hw_before=0, hw=0),
    send(1, 2, 1, 1, 1),
    serve(2, 1, 1, 1, 1, res_hw=0, hw=1, leo=1),
    take(1, 2, 1, 1, res_hw=0, hw_before=0, hw=0, count=0),
    send(1, 2, 1, 1, 1),
    serve(2, 1, 1, 1, 1, res_hw=1, hw=1, leo=1),
    take(1, 2, 1, 1, res_hw=1, hw_before=0, hw=1, count=0),
)
"""Broker 1 was deposed before its record 0 was copied. It has truncated it, and copied the one of broker 2."""

AGAIN = (*TRUNCATED, change(1, 2, (1, 2)), lead(1, 2, (1, 2), leo=1, hw_before=1, hw=1))
"""Broker 1 leads again, with the record of broker 2."""


@pytest.mark.parametrize(
    ("said", "rules"),
    [
        (ack(), {"ACK-02", "DATA-03"}),
        (ack(rec_epoch=0), {"ACK-02", "DATA-03"}),
        (ack(rec_epoch=1), {"ACK-02"}),
        (ack(error=6), set()),
        (ack(acks=1), set()),
    ],
    ids=["its record", "its record by the epoch", "the one of the leader", "an error", "acks=1"],
)
def test_a_deposed_broker_acknowledges_nothing(said: Event, rules: set[str]) -> None:
    """ACK-02; and what it has truncated is lost, though another record stands there below its high watermark."""
    assert broken((*TRUNCATED, said)) == rules


def test_an_error_to_who_waits_at_a_deposed_broker_is_the_rule_held() -> None:
    """ACK-02; of who leads on, and of other acks, it says nothing."""
    said = (ack(error=6), bent((ack(error=6),), 0, acks=...)[0], ack(error=6, acks=1))
    assert [judged((*TRUNCATED, one)).tallies["ACK-02"].held for one in said] == [1, 0, 0]
    assert judged((*COPIED, ack(error=19))).tallies["ACK-02"].held == 0


@pytest.mark.parametrize(
    ("said", "rules"),
    [(ack(), {"DATA-03"}), (ack(rec_epoch=0), {"DATA-03"}), (ack(rec_epoch=1), set()), (ack(end=2), {"ACK-01"})],
    ids=["its record", "its record by the epoch", "one that was sent again and found", "past the high watermark"],
)
def test_who_leads_again_acknowledges_no_record_of_its_earlier_term(said: Event, rules: set[str]) -> None:
    """DATA-03: the offset is below the high watermark, but the record there is another one."""
    assert broken((*AGAIN, said)) == rules


def test_the_latest_append_at_an_offset_is_the_one_that_is_acknowledged() -> None:
    """Broker 1 truncates its record 0, and appends another one there in its second term."""
    lost = (*TRUNCATED[:13], change(1, 2, (1,)), lead(1, 2, (1,)), append(1, 2, 0, 0, 1))
    assert broken((*lost, ack())) == set()
    assert broken((*lost, ack(rec_epoch=2))) == set()
    assert broken((*lost, ack(rec_epoch=0))) == {"DATA-03"}


@pytest.mark.parametrize("config", either_way(TWO))
def test_an_acknowledgement_of_a_term_is_not_one_of_the_term_before_that_wrote_as_much(config: Config) -> None:
    """Broker 1 truncates two records of epoch 0 and appends two others in epoch 2; broker 2, in between, had neither."""
    lost = (
        *OPENING,
        append(1, 0, 0),
        append(1, 0, 1),
        change(2, 1, (1, 2)),
        lead(2, 1, (1, 2)),
        append(2, 1, 0),
        follow(1, 2, 1, leo=2),
        send(1, 2, 1, 2, 0),
        reported(2, "HandleFetch", peer=1, req_epoch=1, req_offset=2, req_last_epoch=0, error=0, div_epoch=0, div_end=0),
        reported(1, "HandleDivergingResponse", peer=2, req_epoch=1, req_offset=2, div_epoch=0, div_end=0, target=0, leo=0),
    )
    alone = (*lost, change(1, 2, (1,)), lead(1, 2, (1,)), append(1, 2, 0, 0, 1), append(1, 2, 1, 1, 2))
    assert broken((*alone, ack(end=2)), config) == set()
    assert broken((*alone, ack(end=2, rec_epoch=0)), config) == {"DATA-03"}
    # What is acknowledged too early is of the later term as well.
    together = (*lost, change(1, 2, (1, 2)), lead(1, 2, (1, 2)), append(1, 2, 0), append(1, 2, 1))
    assert broken((*together, ack(end=2)), config) == {"ACK-01"}


def test_who_may_have_led_again_unseen_claims_nothing_for_its_earlier_term() -> None:
    """Broker 1 commits its record of epoch 0 in epoch 2; broker 2, who led in between, rightly had not copied it."""
    again = lead(1, 2, (1,), leo=1, hw_before=0, hw=1)
    (unnamed,) = bent((again,), 0, leader_epoch=...)
    for seen in (again, unnamed):
        run = (*OPENING, append(1, 0, 0), change(2, 1, (1, 2)), lead(2, 1, (1, 2)), change(1, 2, (1,)), seen)
        assert broken((*run, ack(rec_epoch=0))) == set()
    # Who is known to follow since has not led again.
    assert broken((*TRUNCATED, ack(rec_epoch=0))) == {"ACK-02", "DATA-03"}


def test_a_record_that_is_kept_may_be_acknowledged_in_a_later_term() -> None:
    """A leader that reads a new leader epoch of its own goes on; one that leads again has heard of the batch again."""
    at_once = (*COPIED, change(1, 1, (1, 2)), lead(1, 1, (1, 2), leo=1, hw_before=1, hw=1))
    assert broken((*at_once, ack())) == set()
    between = (
        *COPIED,
        change(2, 1, (1, 2)),
        follow(1, 2, 1, leo=1, hw=1),
        change(1, 2, (1, 2)),
        lead(1, 2, (1, 2), leo=1, hw_before=1, hw=1),
    )
    assert broken((*between, ack())) == set()
    assert judged((*between, ack())).tallies["ACK-02"].held == 1


@pytest.mark.parametrize(
    ("events", "config", "less"),
    [
        (TRUNCATED, LOGS, {}),
        ((), TWO, {}),
        (TRUNCATED, TWO, {"error": ...}),
        (TRUNCATED, TWO, {"acks": ...}),
        (TRUNCATED, replace(TWO, extra=reporting_all_but("BecomeFollower", "BecomeLeader")), {}),
    ],
    ids=["a broker's log", "not yet observed", "without the error", "without acks", "roles are not reported"],
)
def test_who_acknowledges_is_undecided_where_it_is_not_told(
    events: tuple[Event, ...], config: Config, less: dict[str, Any]
) -> None:
    """ACK-02; a broker's log has the line when the response is sent, and the broker may be deposed by then."""
    tally = judged(bent((*events, ack()), -1, **less), config).tallies["ACK-02"]
    assert (tally.failed, tally.undecided) == (0, 1)


def test_the_log_end_of_a_broker_that_is_deposed_shows_what_it_appended() -> None:
    """DATA-03 where appends are not reported."""
    config = replace(TWO, extra=reporting_all_but("LeaderAppend"))
    assert broken((*without(TRUNCATED[:5], "epochs"), *TRUNCATED[6:], ack()), config) == {"ACK-02", "DATA-03"}


def test_a_leader_that_misses_an_epoch_commits_what_it_had_appended_before() -> None:
    """Broker 2 led in between without the record, which was not committed then: it need not have it."""
    missed = (
        *OPENING,
        append(1, 0, 0),
        change(2, 1, (1, 2)),
        lead(2, 1, (1, 2)),
        change(1, 2, (1,)),
        lead(1, 2, (1,), leo=1, hw_before=0, hw=1),
    )
    for said in (ack(), ack(rec_epoch=0)):
        assert broken((*missed, said)) == set()
        assert "DATA-03" in broken((*missed, said, change(2, 3, (2,)), lead(2, 3, (2,))))


def test_a_gap_at_the_broker_hides_what_it_appended() -> None:
    """After a missing line it may have appended the record again."""
    assert "DATA-03" not in broken((*AGAIN, ack()), missing=(len(TRUNCATED) - 1,))
    assert "DATA-03" in broken((*AGAIN, ack()))


def test_in_a_log_an_offset_alone_says_nothing_of_an_append() -> None:
    """An idempotent producer that asks again is told where its batch is, by whoever leads; with the epoch it is exact."""
    assert broken((*AGAIN, ack()), LOGS) == set()
    assert broken((*AGAIN, ack(rec_epoch=0)), LOGS) == {"DATA-03"}
    assert broken((*TRUNCATED, ack(rec_epoch=0)), LOGS) == {"DATA-03"}


def test_an_unclean_election_ends_what_an_acknowledgement_promises() -> None:
    """Broker 2 was elected without the record: whoever said it before, and says it late, is not to blame."""
    unclean = bent((change(2, 1, (2,)),), 0, clean=False)[0]
    elected = (*TRUNCATED[:6], unclean, *TRUNCATED[7:])
    assert "DATA-03" not in broken((*elected, ack(rec_epoch=0)))


def test_the_last_term_of_a_broker_is_kept_until_its_appends_are_answered() -> None:
    """Thirty leader epochs of broker 2 later broker 1 says that its record is safe."""
    reigns = [
        event
        for epoch in range(3, 3 + 2 * compaction.TERMS_AT_ONCE)
        for event in (
            change(2, epoch, (1, 2)),
            lead(2, epoch, (1, 2), leo=1, hw_before=1, hw=1),
            follow(1, 2, epoch, leo=1, hw=1),
        )
    ]
    assert broken((*TRUNCATED, change(2, 2, (1, 2)), *reigns, ack())) == {"ACK-02", "DATA-03"}
