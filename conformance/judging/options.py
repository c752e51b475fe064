"""The options of the kernel for all traces of a run: options_of(columns, config).

Rules of this file

1. A switch of the profile is an option of the kernel: the kernel knows no names of profiles.
2. An event that a source does not list as reported is not expected of it, and may happen unobserved.
"""

from collections.abc import Sequence

from tidegauge.conformance.kernel import fields
from tidegauge.conformance.kernel import state as s
from tidegauge.impl.releases import profile_named
from tidegauge.traces.columns import UNKNOWN, Columns
from tidegauge.traces.model.behaviour import DUPLICATES as REPEATS
from tidegauge.traces.schema import REASSIGNED as MOVED
from tidegauge.traces.schema import UNCLEAN_ELECTIONS, Config

REPORTS = "reports"
"""Key of a Config under which a source may list the events that it reports. Without it every event is expected."""
CAPABILITIES = (
    (s.REPORTS_SEND_FETCH, ("SendFetch",)),
    (s.REPORTS_HANDLE_FETCH, ("HandleFetch",)),
    (s.REPORTS_ISR_PROPOSALS, ("ExpandIsr",)),
    (s.REPORTS_SEND_EPOCH_REQUEST, ("SendEpochRequest",)),
    (s.REPORTS_HANDLE_EPOCH_REQUEST, ("HandleEpochRequest",)),
)

UNSEEN_KINDS: Sequence[tuple[int, tuple[str, ...]]] = (
    (s.UNOBSERVED_STARTS, ("Start",)),
    (s.UNOBSERVED_STOPS, ("Stop", "Crash")),
    (s.UNOBSERVED_ROLES, ("BecomeLeader", "BecomeFollower")),
    (s.UNOBSERVED_APPENDS, ("LeaderAppend",)),
    (s.UNOBSERVED_SENDS, ("SendFetch", "SendEpochRequest")),
    (s.UNOBSERVED_FETCHES, ("HandleFetch",)),
    (
        s.UNOBSERVED_RESPONSES,
        ("HandleFetchResponse", "HandleDivergingResponse", "HandleOutOfRange", "TruncateToHighWatermark"),
    ),
    (s.UNOBSERVED_RESPONSES, ("HandleEpochResponse",)),
    (s.UNOBSERVED_PROPOSALS, ("ExpandIsr", "ShrinkIsr")),
    (s.UNOBSERVED_COMMITS, ("HandleAlterPartitionResponse",)),
    (s.UNOBSERVED_LOG_STARTS, ("LogStartMoved",)),
)
"""The UNOBSERVED_ bit that is set where a source does not report all of these events."""
EPOCH_ROUNDS = ("SendEpochRequest", "HandleEpochResponse")
"""Events that happen only where followers do not truncate on fetch (IBP below 2.7-IV1)."""


def options_of(columns: Columns, config: Config) -> list[int]:
    """Return the options for all traces of a run: the config, and the switches of its profile."""
    profile = profile_named(config.profile)
    options = [0] * s.WIDTH
    options[s.BROKERS] = len(config.nodes)
    options[s.MIN_ISR] = config.min_isr
    options[s.LAG_RULE] = config.lag_rule
    options[s.TRUNCATION_ON_FETCH] = profile.truncation_on_fetch
    options[s.FENCING] = profile.fencing
    options[s.RESPONSE_EPOCH_CHECKED] = profile.response_epoch_checked
    options[s.BATCH_EPOCH_FILTER] = profile.batch_epoch_filter
    options[s.JOIN_NEEDS_EPOCH_START] = profile.join_needs_epoch_start
    options[s.BLOCKS_UNDER_MIN_ISR] = profile.blocks_under_min_isr
    options[s.KEEPS_REMOTE_LEO] = profile.keeps_remote_leo
    options[s.EPOCH_IN_RESPONSE] = profile.epoch_in_response
    options[s.EPOCH_RESPONSES_CHECKED] = profile.epoch_responses_checked
    options[s.ELR] = profile.elr
    options[s.GUARDS_PARTITION_EPOCH] = profile.guards_partition_epoch
    options[s.DUPLICATES] = config.extra.get(REPEATS) is True
    options[s.ELECTIONS_CLEAN] = config.extra.get(UNCLEAN_ELECTIONS) is False
    reports = config.extra.get(REPORTS)
    for option, events in CAPABILITIES:
        options[option] = reports is None or any(event in reports for event in events)
    for bit, kinds in UNSEEN_KINDS:
        happening = set(kinds) - set(EPOCH_ROUNDS if profile.truncation_on_fetch else ())
        options[s.UNOBSERVED] |= bit if reports is not None and not happening <= set(reports) else 0
    options[s.REPORTS_FENCING] = reports is None or {"FenceBroker", "UnfenceBroker"} <= set(reports)
    options[s.REASSIGNED] = config.extra.get(MOVED) is True or _reassigned(columns, len(config.nodes))
    options[s.REPORTS_CACHE_ENTRIES] = bool((columns.event == fields.EPOCH_CACHE_ENTRY).any())
    return options


def _reassigned(columns: Columns, brokers: int) -> bool:
    """Return whether some event reports that not every broker is a replica."""
    replicas = columns.ints.get("replicas")
    return replicas is not None and bool(((replicas != UNKNOWN) & (replicas != (1 << brokers) - 1)).any())
