"""OffsetsForLeaderEpoch: a follower asks where an epoch ends, the leader says, the follower truncates (KIP-101 to KIP-320).

Rule of this file: question and answer are held against each other as fetches are (conformance.kernel.flight).
"""

from tidegauge.conformance.kernel import fields as field
from tidegauge.conformance.kernel import state as s
from tidegauge.conformance.kernel.copies import FIRST, put_back, repetition
from tidegauge.conformance.kernel.fencing import fenced
from tidegauge.conformance.kernel.flight import as_answered, ask, fits, given, request_handled
from tidegauge.conformance.kernel.follower import follows
from tidegauge.conformance.kernel.groups import Log, Request, Response, Truncation
from tidegauge.conformance.kernel.lineage import cache_latest, inputs_missing
from tidegauge.conformance.kernel.log_checks import alive, found
from tidegauge.conformance.kernel.rule_ids import RULE
from tidegauge.conformance.kernel.tally import as_expected, decide, same, undecided
from tidegauge.conformance.kernel.truncations import truncate
from tidegauge.impl.rules import NONE, accepts_epoch_response, end_offset_for
from tidegauge.traces.columns import UNKNOWN


def send_offsets_for_leader_epoch_request(st: s.State, b: int, leader: int, epoch: int, last: int) -> None:
    """AbstractFetcherThread#fetchTruncatingPartitions: asks where the follower's latest epoch ends."""
    alive(st, b)
    follows(st, b, leader, epoch)
    same(st, RULE.FETCH_02, field.REQ_LAST_EPOCH, cache_latest(st, b), last, 1 << field.EPOCHS)
    ask(st, b, leader, s.EPOCH_REQUEST, epoch, UNKNOWN, last)


def handle_offsets_for_leader_epoch_request(st: s.State, b: int, f: int, asked: Request, response: Response) -> None:
    """EPOCH-05: the response table of OffsetsForLeaderEpoch; before KIP-279 the response is an end alone."""
    alive(st, b)
    p = s.pair(st, f, b)
    asked = Request(asked.epoch, UNKNOWN, asked.last_epoch)
    repeated = FIRST
    if st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 1:
        repeated = repetition(st, p, asked.epoch, UNKNOWN, asked.last_epoch, s.EPOCH_REQUEST)
    other = request_handled(st, p, f, s.EPOCH_REQUEST, asked, repeated != FIRST)
    epoch, last = st[p, s.REQ_EPOCH], st[p, s.REQ_LAST]
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    # a refusal has null in both, and so has a response about an epoch that the leader does not know
    if error == UNKNOWN and div_end >= 0:
        error = NONE
    # unlike a fetch it changes nothing at the leader: Partition#lastOffsetForLeaderEpoch only reads
    st[p, s.KIND] = UNKNOWN if error == UNKNOWN else s.EPOCH_RESPONSE if error == NONE else s.REFUSED
    st[p, s.ANS_ERROR] = error
    st[p, s.ANS_DIV_EPOCH] = div_epoch
    st[p, s.ANS_DIV_END] = div_end
    if repeated != FIRST:
        put_back(st, p, repeated)
    if other or (st[s.OPTION, s.DUPLICATES] == 1 and st[s.OPTION, s.REPORTS_SEND_EPOCH_REQUEST] == 0):
        st[p, s.KIND] = s.EITHER
    if error == UNKNOWN:
        undecided(st, RULE.EPOCH_05, 1 << field.ERROR)
        return
    fenced(st, b, epoch, error, 1, 0)
    n, leo = st[s.REPLICAS + b, s.CACHED], st[s.REPLICAS + b, s.LEO]
    if error != NONE:
        return
    if UNKNOWN in (n, leo, last):
        undecided(st, RULE.EPOCH_05, inputs_missing(n, leo, 0, 0, last))
        return
    expected_epoch, expected_end = end_offset_for(
        s.entries(st, s.epochs_row(st, b), n), s.entries(st, s.starts_row(st, b), n), leo, last
    )
    # KIP-101 responds with an end alone; the epoch came with KIP-279 (2.0)
    if st[s.OPTION, s.RESPONSES_EPOCH] == 0:
        expected_epoch = -1
    as_expected(st, RULE.EPOCH_05, field.DIV_END, expected_end, div_end)
    as_expected(st, RULE.EPOCH_05, field.DIV_EPOCH, expected_epoch, div_epoch)


def awaited(st: s.State, b: int, leader: int, epoch: int) -> None:
    """FETCH-09: an epoch response is taken from the leader that is followed, and (KAFKA-7786) for the epoch at hand."""
    role, own = st[s.REPLICAS + b, s.ROLE], st[s.REPLICAS + b, s.EPOCH]
    if UNKNOWN in (role, own, epoch):
        undecided(st, RULE.FETCH_09, 1 << field.REQ_EPOCH)
        return
    follows = role == s.FOLLOWING and fits(st[s.REPLICAS + b, s.LEADER], leader)
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
    """AbstractFetcherThread#truncateToEpochEndOffsets."""
    alive(st, b)
    found(st, b, before)
    p = s.pair(st, b, leader)
    seen, epoch = st[p, s.KIND], asked.epoch
    error, div_epoch, div_end = response.error, response.div_epoch, response.div_end
    if epoch == UNKNOWN and seen in (s.EPOCH_RESPONSE, s.REFUSED):
        epoch = st[p, s.REQ_EPOCH]
    awaited(st, b, leader, epoch)
    if error == UNKNOWN and (div_end >= 0 or seen == s.EPOCH_RESPONSE):
        error = NONE
    elif error == UNKNOWN and seen != s.REFUSED:
        div_epoch, div_end = UNKNOWN, UNKNOWN  # null in both is said by a refusal too
    refused = error not in (NONE, UNKNOWN) or (error == UNKNOWN and seen == s.REFUSED)
    if given(st, p, leader, s.REFUSED if refused else s.EPOCH_RESPONSE, epoch, UNKNOWN, True):
        as_answered(st, field.REQ_LAST_EPOCH, st[p, s.REQ_LAST], asked.last_epoch)
        as_answered(st, field.ERROR, st[p, s.ANS_ERROR], error)
        as_answered(st, field.DIV_EPOCH, st[p, s.ANS_DIV_EPOCH], div_epoch)
        as_answered(st, field.DIV_END, st[p, s.ANS_DIV_END], div_end)
    st[p, s.KIND] = s.NOTHING
    if not refused:
        offset = 0 if div_end >= 0 else UNKNOWN
        truncate(st, b, offset, div_epoch, div_end, truncated, after)
