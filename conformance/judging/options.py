"""options_of(columns, config): what holds for all traces of a run, as the kernel takes it.

Rules of this file

1. A switch of the profile is an option of the kernel: the kernel knows no names of profiles.
2. What a source does not say it can report is not expected of it, and may have happened unseen.
"""

from collections.abc import Sequence

from tidegauge.conformance.kernel import fields
from tidegauge.conformance.kernel.state import (
    BATCH_EPOCH_FILTER,
    BLOCKS_UNDER_MIN_ISR,
    BROKERS,
    DUPLICATES,
    ELECTIONS_CLEAN,
    ELR,
    EPOCH_RESPONSES_CHECKED,
    FENCING,
    GUARDS_PARTITION_EPOCH,
    JOIN_NEEDS_EPOCH_START,
    KEEPS_REMOTE_LEO,
    LAG_RULE,
    MIN_ISR,
    REASSIGNED,
    REPORTS_CACHE_ENTRIES,
    REPORTS_FENCING,
    REPORTS_HANDLE_EPOCH_REQUEST,
    REPORTS_HANDLE_FETCH,
    REPORTS_ISR_PROPOSALS,
    REPORTS_SEND_EPOCH_REQUEST,
    REPORTS_SEND_FETCH,
    RESPONSE_EPOCH_CHECKED,
    RESPONSES_EPOCH,
    TRUNCATION_ON_FETCH,
    UNSEEN,
    UNSEEN_APPENDS,
    UNSEEN_COMMITS,
    UNSEEN_FETCHES,
    UNSEEN_LOG_STARTS,
    UNSEEN_PROPOSALS,
    UNSEEN_RESPONSES,
    UNSEEN_ROLES,
    UNSEEN_SENDS,
    UNSEEN_STARTS,
    UNSEEN_STOPS,
    WIDTH,
)
from tidegauge.impl.releases import named
from tidegauge.traces.columns import UNKNOWN, Columns
from tidegauge.traces.model.behaviour import DUPLICATES as REPEATS
from tidegauge.traces.schema import REASSIGNED as MOVED
from tidegauge.traces.schema import UNCLEAN_ELECTIONS, Config

REPORTS = "reports"
"""Key of a Config under which a source may list the events it can report. Without it every event is expected."""
CAPABILITIES = (
    (REPORTS_SEND_FETCH, ("SendFetch",)),
    (REPORTS_HANDLE_FETCH, ("HandleFetch",)),
    (REPORTS_ISR_PROPOSALS, ("ExpandIsr",)),
    (REPORTS_SEND_EPOCH_REQUEST, ("SendEpochRequest",)),
    (REPORTS_HANDLE_EPOCH_REQUEST, ("HandleEpochRequest",)),
)

UNSEEN_KINDS: Sequence[tuple[int, tuple[str, ...]]] = (
    (UNSEEN_STARTS, ("Start",)),
    (UNSEEN_STOPS, ("Stop", "Crash")),
    (UNSEEN_ROLES, ("BecomeLeader", "BecomeFollower")),
    (UNSEEN_APPENDS, ("LeaderAppend",)),
    (UNSEEN_SENDS, ("SendFetch", "SendEpochRequest")),
    (UNSEEN_FETCHES, ("HandleFetch",)),
    (UNSEEN_RESPONSES, ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "TruncateToHighWatermark")),
    (UNSEEN_RESPONSES, ("HandleEpochResponse",)),
    (UNSEEN_PROPOSALS, ("ExpandIsr", "ShrinkIsr")),
    (UNSEEN_COMMITS, ("HandleAlterPartitionResponse",)),
    (UNSEEN_LOG_STARTS, ("LogStartMoved",)),
)
"""What may have happened unseen where a source does not report all of these events."""
EPOCH_ROUNDS = ("SendEpochRequest", "HandleEpochResponse")
"""Events that happen only where followers do not truncate by fetching."""


def options_of(columns: Columns, config: Config) -> list[int]:
    """What holds for all traces of a run: the config, and the switches of its profile."""
    profile = named(config.profile)
    options = [0] * WIDTH
    options[BROKERS] = len(config.nodes)
    options[MIN_ISR] = config.min_isr
    options[LAG_RULE] = config.lag_rule
    options[TRUNCATION_ON_FETCH] = profile.truncation_on_fetch
    options[FENCING] = profile.fencing
    options[RESPONSE_EPOCH_CHECKED] = profile.response_epoch_checked
    options[BATCH_EPOCH_FILTER] = profile.batch_epoch_filter
    options[JOIN_NEEDS_EPOCH_START] = profile.join_needs_epoch_start
    options[BLOCKS_UNDER_MIN_ISR] = profile.blocks_under_min_isr
    options[KEEPS_REMOTE_LEO] = profile.keeps_remote_leo
    options[RESPONSES_EPOCH] = profile.epoch_in_response
    options[EPOCH_RESPONSES_CHECKED] = profile.epoch_responses_checked
    options[ELR] = profile.elr
    options[GUARDS_PARTITION_EPOCH] = profile.guards_partition_epoch
    options[DUPLICATES] = config.extra.get(REPEATS) is True
    options[ELECTIONS_CLEAN] = config.extra.get(UNCLEAN_ELECTIONS) is False
    reports = config.extra.get(REPORTS)
    for option, events in CAPABILITIES:
        options[option] = reports is None or any(event in reports for event in events)
    for bit, kinds in UNSEEN_KINDS:
        happening = set(kinds) - set(EPOCH_ROUNDS if profile.truncation_on_fetch else ())
        options[UNSEEN] |= bit if reports is not None and not happening <= set(reports) else 0
    options[REPORTS_FENCING] = reports is None or {"FenceBroker", "UnfenceBroker"} <= set(reports)
    options[REASSIGNED] = config.extra.get(MOVED) is True or _reassigned(columns, len(config.nodes))
    options[REPORTS_CACHE_ENTRIES] = bool((columns.event == fields.EPOCH_CACHE_ENTRY).any())
    return options


def _reassigned(columns: Columns, brokers: int) -> bool:
    """Whether some event says that not every broker is a replica."""
    replicas = columns.ints.get("replicas")
    return replicas is not None and bool(((replicas != UNKNOWN) & (replicas != (1 << brokers) - 1)).any())
