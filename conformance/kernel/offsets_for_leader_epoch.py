"""OffsetsForLeaderEpoch: a follower asks where an epoch ends, the leader answers, the follower truncates (KIP-101, KIP-279).

Rule of this file: request and response are compared as those of fetches are (conformance.kernel.flight).
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.copies import FIRST, copy_kind, restore_pair
from tidegauge.conformance.kernel.fencing import check_fencing
from tidegauge.conformance.kernel.flight import (
    agree_if_known,
    request_handled,
    request_sent,
    response_in_flight,
    same_as_sent,
)
from tidegauge.conformance.kernel.follower import check_leader_followed
from tidegauge.conformance.kernel.groups import Log, Request, Response, Truncation
from tidegauge.conformance.kernel.lineage import cache_latest, inputs_missing
from tidegauge.conformance.kernel.log_checks import alive, log_unmoved
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.truncations import truncate
from tidegauge.impl.rules import NONE, accepts_epoch_response, end_offset_for
from tidegauge.traces.columns import UNKNOWN


def send_offsets_for_leader_epoch_request(st: s.State, b: int, leader: int, epoch: int, last: int) -> None:
    """Judge SendEpochRequest: it asks where the follower's latest epoch ends. #fetchTruncatingPartitions."""
    alive(st, b)
    check_leader_followed(st, b, leader, epoch)
    same(st, RULE.FETCH_02, field.REQ_LAST_EPOCH, cache_latest(st, b), last, 1 << field.EPOCHS)
    request_sent(st, b, leader, s.EPOCH_REQUEST, epoch, UNKNOWN, last)


def handle_offsets_for_leader_epoch_request(st: s.State, b: int, f: int, asked: Request, response: Response) -> None:
    """Check EPOCH-05: the response table of OffsetsForLeaderEpoch. Partition#lastOffsetForLeaderEpoch."""
    alive(st, b)
    p = s.pair(st, f, b)
    asked = Request(asked.epoch, UNKNOWN, asked.last_epoch)
    repeated = FIRST
    if st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 1:
        repeated = copy_kind(st, p, asked.epoch, UNKNOWN, asked.last_epoch, s.EPOCH_REQUEST)
    other = request_handled(st, p, f, s.EPOCH_REQUEST, asked, repeated != FIRST)
    epoch, last = st[p, s.REQ_EPOCH], st[p, s.REQ_LAST]
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    # A refusal has null in both fields, and so has a response about an epoch that the leader does not know.
    if error == UNKNOWN and div_end >= 0:
        error = NONE
    # Unlike a fetch it changes nothing at the leader: Partition#lastOffsetForLeaderEpoch only reads.
    st[p, s.KIND] = UNKNOWN if error == UNKNOWN else s.EPOCH_RESPONSE if error == NONE else s.REFUSED
    st[p, s.RES_ERROR] = error
    st[p, s.RES_DIV_EPOCH] = div_epoch
    st[p, s.RES_DIV_END] = div_end
    if repeated != FIRST:
        restore_pair(st, p, repeated)
    if other or (st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 0):
        st[p, s.KIND] = s.AMBIGUOUS
    if error == UNKNOWN:
        undecided(st, RULE.EPOCH_05, 1 << field.ERROR)
        return
    check_fencing(st, b, epoch, error, 1, 0)
    n, leo = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.LEO]
    if error != NONE:
        return
    if UNKNOWN in (n, leo, last):
        undecided(st, RULE.EPOCH_05, inputs_missing(n, leo, 0, 0, last))
        return
    expected_epoch, expected_end = end_offset_for(
        s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), leo, last
    )
    # KIP-101 responds with an end offset alone; the epoch came with KIP-279 (2.0).
    if st[s.OPTION, s.EPOCH_IN_RESPONSE] == 0:
        expected_epoch = -1
    as_expected(st, RULE.EPOCH_05, field.DIV_END, expected_end, div_end)
    as_expected(st, RULE.EPOCH_05, field.DIV_EPOCH, expected_epoch, div_epoch)


def check_epoch_response_accepted(st: s.State, b: int, leader: int, epoch: int) -> None:
    """Check FETCH-09: an epoch response is taken from the leader that is followed, and for its epoch (KAFKA-7786)."""
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    if UNKNOWN in (role, own, epoch):
        undecided(st, RULE.FETCH_09, 1 << field.REQ_EPOCH)
        return
    follows = role == s.FOLLOWING and agree_if_known(st[s.REPLICAS + b, s.LEADER], leader)
    taken = accepts_epoch_response(own, follows, epoch, st[s.OPTION, s.EPOCH_RESPONSES_CHECKED] == 1)
    decide(st, RULE.FETCH_09, taken, field.REQ_EPOCH, own, epoch)


def handle_epoch_response(
    st: s.State,
    b: int,
    leader: int,
    asked: Request,
    response: Response,
    truncated: Truncation,
    before: Log,
    after: Log,
) -> None:
    """Judge a truncation by an epoch response. AbstractFetcherThread#truncateToEpochEndOffsets."""
    alive(st, b)
    log_unmoved(st, b, before)
    p = s.pair(st, b, leader)
    seen, epoch = st[p, s.KIND], asked.epoch
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    if epoch == UNKNOWN and seen in (s.EPOCH_RESPONSE, s.REFUSED):
        epoch = st[p, s.REQ_EPOCH]
    check_epoch_response_accepted(st, b, leader, epoch)
    if error == UNKNOWN and (div_end >= 0 or seen == s.EPOCH_RESPONSE):
        error = NONE
    elif error == UNKNOWN and seen != s.REFUSED:
        # Null in both may be a refusal or a response about an epoch that the leader does not know.
        div_epoch, div_end = UNKNOWN, UNKNOWN
    refused = error not in (NONE, UNKNOWN) or (error == UNKNOWN and seen == s.REFUSED)
    if response_in_flight(st, p, leader, s.REFUSED if refused else s.EPOCH_RESPONSE, epoch, UNKNOWN, True):
        same_as_sent(st, field.REQ_LAST_EPOCH, st[p, s.REQ_LAST], asked.last_epoch)
        same_as_sent(st, field.ERROR, st[p, s.RES_ERROR], error)
        same_as_sent(st, field.DIV_EPOCH, st[p, s.RES_DIV_EPOCH], div_epoch)
        same_as_sent(st, field.DIV_END, st[p, s.RES_DIV_END], div_end)
    st[p, s.KIND] = s.NOTHING
    if not refused:
        # The table uses the fetch offset only for a response without an end (row T1), and no event shows it.
        offset = 0 if div_end >= 0 else UNKNOWN
        truncate(st, b, offset, div_epoch, div_end, truncated, after)
