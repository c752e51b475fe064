"""Run the judge over traces: judge(columns, config) returns a Judgement, which counts the checks of every rule.

Traces come as columns (traces.columns): a row per event, a column per field, UNKNOWN where a source does not report it. A
`Distinct` holds each distinct event once, in a table, and the row of that table for each event of the traces.

The kernel is judge.kernel.judge_traces, interpreted or compiled. It works on one table of integers, `st`: s.HW and the other
names of judge.state are its rows and columns. The table has the options of the run, what is known of the partition, the
tally of each rule (how many checks held, failed, or could not be decided) and the first failure of each rule in each trace.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.engine.precompile import compile_in_background
from tidegauge.conformance.judge import fields
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.fields import RULE_IDS, RULES
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.impl.profiles import SAFE
from tidegauge.impl.releases import profiles_named
from tidegauge.traces.columns import INT_FIELDS, UNKNOWN, Columns, Distinct, table_of
from tidegauge.traces.from_model.behaviour import DUPLICATES as REPEATS
from tidegauge.traces.schema import REASSIGNED as MOVED
from tidegauge.traces.schema import UNCLEAN_ELECTIONS, Config

# The options of the kernel for all traces of a run: options_of(columns, config).
#
# Rules of this part
#
# 1. A switch of the profiles is an option of the kernel, by broker: the kernel knows no names of profiles.
# 2. An event that a source does not list as reported is not expected of it, and may happen unobserved.


REPORTS = "reports"
"""Key of a Config under which a source may list the events that it reports. Without it every event is expected."""
CAPABILITIES = (
    (s.REPORTS_SEND_FETCH, ("SendFetch",)),
    (s.REPORTS_HANDLE_FETCH, ("HandleFetch",)),
    (s.REPORTS_ISR_PROPOSALS, ("ExpandIsr",)),
    (s.REPORTS_SEND_EPOCH_REQUEST, ("SendEpochRequest",)),
    (s.REPORTS_HANDLE_EPOCH_REQUEST, ("HandleEpochRequest",)),
)
"""The options that say whether a source reports any of these events."""

SWITCHES = (
    (s.TRUNCATION_ON_FETCH, "truncation_on_fetch"),
    (s.FENCING, "fencing"),
    (s.RESPONSE_EPOCH_CHECKED, "response_epoch_checked"),
    (s.BATCH_EPOCH_FILTER, "batch_epoch_filter"),
    (s.JOIN_NEEDS_EPOCH_START, "join_needs_epoch_start"),
    (s.BLOCKS_UNDER_MIN_ISR, "blocks_under_min_isr"),
    (s.KEEPS_REMOTE_LEO, "keeps_remote_leo"),
    (s.EPOCH_IN_RESPONSE, "epoch_in_response"),
    (s.EPOCH_RESPONSES_CHECKED, "epoch_responses_checked"),
    (s.GUARDS_PARTITION_EPOCH, "guards_partition_epoch"),
)
"""The switches of a broker's profile that the kernel reads, each the bit mask of the brokers that have it."""

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
    """Return the row s.OPTION of the kernel's table: what the config, the brokers' profiles and the columns decide.

    `config.extra` is the source's own JSON: a flag in it counts only as an explicit true or false.
    """
    profiles = profiles_named(config.profile, config.nodes)
    is_kafka = profiles.controller.name != SAFE.name  # SAFE is the profile of brokers that are not Kafka
    options = [0] * s.WIDTH
    options[s.BROKERS] = len(config.nodes)
    options[s.MIN_ISR] = config.min_isr
    options[s.LAG_RULE] = config.lag_rule
    for option, switch in SWITCHES:
        # A bit mask: bit b is set if the profile of broker b has the switch.
        options[option] = sum(getattr(of_broker, switch) << b for b, of_broker in enumerate(profiles.brokers))
    # Kafka keeps eligible replicas whether or not its logs show them; any other broker does if it reports them.
    options[s.ELR] = profiles.controller.elr and (is_kafka or _reports_elr(columns))
    options[s.DUPLICATES] = config.extra.get(REPEATS) is True  # requests may arrive twice
    options[s.ELECTIONS_CLEAN] = config.extra.get(UNCLEAN_ELECTIONS) is False  # the source says that there are none
    reports = config.extra.get(REPORTS)  # the kinds of events that the source reports
    no_epoch_rounds = all(of_broker.truncation_on_fetch for of_broker in profiles.brokers)
    # Without a list everything is reported; then what is absent did not happen.
    for option, events in CAPABILITIES:
        options[option] = reports is None or any(event in reports for event in events)
    for bit, kinds in UNSEEN_KINDS:
        # A profile without epoch rounds has none to leave out: their absence from the list makes nothing unobserved.
        possible = set(kinds) - set(EPOCH_ROUNDS if no_epoch_rounds else ())
        options[s.UNOBSERVED] |= bit if reports is not None and not possible <= set(reports) else 0
    options[s.REPORTS_FENCING] = reports is None or {"FenceBroker", "UnfenceBroker"} <= set(reports)
    # The source says that the nodes are not all replicas all the time, or an event shows it.
    options[s.REASSIGNED] = config.extra.get(MOVED) is True or _reassigned(columns, len(config.nodes))
    options[s.REPORTS_CACHE_ENTRIES] = bool((columns.event == fields.EPOCH_CACHE_ENTRY).any())
    return options


def _reports_elr(columns: Columns) -> bool:
    """Return whether some event reports the ELR, the eligible leader replicas."""
    elr = columns.ints.get("elr")
    return elr is not None and bool((elr != UNKNOWN).any())


def _reassigned(columns: Columns, brokers: int) -> bool:
    """Return whether some event reports an assignment that lacks one of the brokers, which are so many."""
    replicas = columns.ints.get("replicas")  # a bit mask of brokers
    every_broker = (1 << brokers) - 1
    return replicas is not None and bool(((replicas != UNKNOWN) & (replicas != every_broker)).any())


# Judging columns: judge(columns, config) returns the tally of every rule, and the first failures.
#
# 1. Columns go to the kernel as they are; all fields that the file does not have share one column of UNKNOWN.
# 2. Small inputs are judged by the interpreted kernel, large ones by the compiled one: same text, same result. The first
# large one is judged by the interpreted kernel, too, until another process has compiled it (kernel_while_compiling.py).
# 3. When a trace needs more room than there is (epochs in a cache, registrations and terms that cannot be removed),
# everything is judged again with twice as much.


ROOM_AT_FIRST = 16
MOST_ROOM = 4096
PAST_AT_FIRST = 64
"""Room for registrations and terms at first. While it suffices, only those are removed that cannot matter any more."""
FAILURES_KEPT = 2048
COMPILE_FROM = 200_000
"""Events from which compiling pays: the interpreted kernel takes about as long for them as the compiler."""
LOAD_FROM = 20_000
"""Events from which loading machine code pays that another process has compiled."""


@dataclass(frozen=True)
class RuleTally:
    """Counts of the checks of one rule; `missing` names the fields that would have decided the undecided ones.

    `after_loss`: failed after a line that could not be read (conformance.checking.verdicts), so neither failed
    nor held.
    """

    held: int = 0
    failed: int = 0
    undecided: int = 0
    missing: tuple[str, ...] = ()
    failed_traces: int = 0
    after_loss: int = 0


@dataclass(frozen=True)
class Failure:
    """The first failure of a rule in a trace: the field compared at `row` of the columns, its expected and actual value."""

    trace: int
    row: int
    rule: str
    compared: str
    expected: int | None
    actual: int | None


@dataclass(frozen=True)
class ReplicaState:
    """A replica as known at the end of a trace; None where a value is unknown."""

    leo: int | None
    hw: int | None
    log_start: int | None
    epochs: tuple[tuple[int, int], ...] | None


@dataclass(frozen=True)
class Judgement:
    """The tallies of all rules, the first failures, and the last state of the first traces.

    `failures` are the first of each rule in each trace; `failures_left_out` counts those that there was no room for.
    """

    events: int
    traces: int
    tallies: dict[str, RuleTally]
    failures: tuple[Failure, ...]
    failures_left_out: int = 0
    notes: tuple[str, ...] = ()
    """Explanations of checks that stay undecided."""
    final: tuple[tuple[ReplicaState, ...], ...] = field(default=(), repr=False)
    """By trace and broker, if last states were asked for."""


class TooLargeError(ValueError):
    """A trace needs more room than the judge has: more entries than MOST_ROOM in an epoch cache."""


def judge(columns: Columns | Distinct, config: Config, final: int = 0, compile_from: int = COMPILE_FROM) -> Judgement:
    """Judge all traces; also return the last states of the first `final` traces.

    `compile_from` is the number of events from which compiling the kernel pays; 0 compiles it at once. Raises TooLargeError
    for a trace that needs more room than the judge has.
    """
    return judge_with(execution(len(columns), compile_from), columns, config, final)


def execution(events: int, compile_from: int = COMPILE_FROM) -> Callable[..., None]:
    """Return the kernel that is fastest for so many events: interpreted, compiled, or compiled while it is interpreted."""
    # Two thresholds: machine code that is on disk pays much earlier than code that would have to be compiled.
    if events >= min(compile_from, LOAD_FROM):
        from tidegauge.conformance.engine.compiled import compiled, is_ready  # noqa: PLC0415  (imports the compiler)

        # Code that cannot be kept on disk must be compiled by this process; compile_from 0 is the caller's wish for code.
        if is_ready() or not compile_from or (events >= compile_from and not compile_in_background()):
            return compiled()
        if events >= compile_from:
            from tidegauge.conformance.engine.kernel_while_compiling import judge_until_compiled  # noqa: PLC0415

            return judge_until_compiled
    return judge_traces


def judge_with(run: Callable[..., None], stored: Columns | Distinct, config: Config, final: int = 0) -> Judgement:
    """Judge with the kernel `run`, in a table that grows until every trace fits; return the first `final` last states."""
    columns, rows = table_of(stored)
    options = options_of(columns, config)
    traces = len(columns.trace_starts) - 1
    states_kept = min(final, traces)
    inputs = frozen_inputs(columns, rows, stored.missing)
    room, past = ROOM_AT_FIRST, PAST_AT_FIRST  # for entries of an epoch cache; for registrations and terms
    while True:
        st = s.allocate(options, room, FAILURES_KEPT, past)
        # The kernel fills both: by trace and broker, the values of s.FINAL, and the epoch cache as (epoch, start offset).
        last = np.full((states_kept, options[s.BROKERS], len(s.FINAL)), UNKNOWN, np.int64)
        caches = np.zeros((states_kept, options[s.BROKERS], room, 2), np.int64)
        run(st, *inputs, last, caches)
        if st[s.PARTITION, s.OVERFLOW] == 0:
            break
        # A full table has dropped something, so the tallies of this run are wrong from there on: judge all again.
        room, past = more_room(st)
        if room > MOST_ROOM:
            raise TooLargeError(f"expected at most {MOST_ROOM} leader epochs in one epoch cache, seen more; split the trace")
    return judgement_of(len(stored), traces, st, last, caches)


def more_room(st: s.State) -> tuple[int, int]:
    """Return (entries of a log, registrations and terms): the room to allocate after a table that was too small."""
    full = int(st[s.PARTITION, s.OVERFLOW])  # a bit for each kind of room that did not suffice
    room, past = int(st[s.PARTITION, s.CACHE_ROOM]), int(st[s.PARTITION, s.PAST_ROOM])
    return room * 2 if full & s.LOGS_FULL else room, past * 2 if full & s.PAST_FULL else past


def grown(st: s.State, room: int, past: int) -> s.State:
    """Copy a table into a larger one: `room` for entries of a log, `past` for registrations and terms."""
    larger = s.allocate(st[s.OPTION].tolist(), room, int(st[s.PARTITION, s.FAILURES_ROOM]), past)
    # The cells that say how much room there is, and where each part begins, are the larger table's own.
    layout = slice(s.CACHE_ROOM, s.AT_FAILURES + 1)
    larger_layout, old_room, width = larger[s.PARTITION, layout].copy(), st[s.PARTITION, s.CACHE_ROOM], st.shape[1]
    # The rows before SIZED are as many in any table; their copy overwrites the layout, which is put back.
    larger[: s.SIZED, :width] = st[: s.SIZED]
    larger[s.PARTITION, layout] = larger_layout
    # The parts of a table follow each other; the cells AT_PAIRS, AT_LOGS, .., AT_FAILURES say, in this order, where each
    # begins, and it ends where the next begins. Each is copied to where it begins in the larger one.
    ends = [*st[s.PARTITION, s.AT_LOGS : s.AT_FAILURES + 1].tolist(), len(st)]
    for at, end in zip(range(s.AT_PAIRS, s.AT_FAILURES + 1), ends, strict=True):
        begin, to = st[s.PARTITION, at], larger[s.PARTITION, at]
        larger[to : to + end - begin, :width] = st[begin:end]
        # A row of a log has one more cell after the room for its entries (rule 2 of judge.state): the room has grown.
        if at == s.AT_LOGS and room != old_room:
            larger[to : to + end - begin, room] = st[begin:end, old_room]
            larger[to : to + end - begin, old_room] = 0
    return larger


def frozen_inputs(columns: Columns, rows: s.Ints | None, missing: s.Ints) -> tuple[Any, ...]:
    """Return the kernel's arguments between its table and the last states, in its order, all read-only.

    `rows` are the rows of the events in the columns, None if row i is event i; `missing` as in traces.columns.Columns.
    """
    # One shared array: a source has a few of the fields, and a column of UNKNOWN for each other one would be mostly memory.
    absent = np.full(len(columns), UNKNOWN, np.int64)
    return (
        tuple(frozen(columns.ints.get(name, absent)) for name in INT_FIELDS),
        frozen(columns.event),
        frozen(columns.node),
        frozen(columns.epochs_reported),
        frozen(columns.epochs_at),
        frozen(columns.epochs),
        frozen(np.zeros(0, np.int64) if rows is None else rows),
        frozen(missing),
        frozen(columns.trace_starts),
    )


def frozen(column: NDArray[Any]) -> NDArray[Any]:
    """Return a read-only view: one type for arrays that own their memory and those that borrow it from Arrow."""
    view = np.ascontiguousarray(column).view()
    view.flags.writeable = False
    return view


def judgement_of(events: int, traces: int, st: s.State, last: s.Ints, caches: NDArray[np.int64]) -> Judgement:
    """Read the judgement from a table after so many events of so many traces; `last`, `caches`: as in `judge_with`."""
    tallies = {rule: _tally(st[s.TALLIES + at]) for at, rule in enumerate(RULE_IDS)}
    # The failures that the table had room for: rows of six columns, F_TRACE to F_ACTUAL.
    failure_count = int(st[s.PARTITION, s.FAILURES])
    first = int(st[s.PARTITION, s.AT_FAILURES])
    failures = tuple(failure_of(row) for row in st[first : first + failure_count, :6].tolist())
    return Judgement(
        events=events,
        traces=traces,
        tallies=tallies,
        failures=failures,
        # A rule has one failure, its first, in each trace in which it fails.
        failures_left_out=int(st[s.TALLIES : s.TALLIES + RULES, s.FAILED_TRACES].sum()) - failure_count,
        final=tuple(
            tuple(_replica(row, cache) for row, cache in zip(rows, trace_caches, strict=True))
            for rows, trace_caches in zip(last.tolist(), caches, strict=True)
        ),
    )


def _tally(row: s.Ints) -> RuleTally:
    """Return the tally in a row of the table, whose MISSING is a bit mask of fields."""
    held, failed, undecided = (int(row[k]) for k in (s.HELD_COUNT, s.FAILED_COUNT, s.UNDECIDED_COUNT))
    return RuleTally(held, failed, undecided, fields.names(int(row[s.MISSING])), int(row[s.FAILED_TRACES]))


def failure_of(row: Sequence[int]) -> Failure:
    """Return the failure in a row of the table, whose columns are F_TRACE to F_ACTUAL."""
    trace, at, rule, compared, expected, actual = row
    return Failure(trace, at, RULE_IDS[rule], fields.COMPARED[compared], none_if_unknown(expected), none_if_unknown(actual))


def _replica(row: Sequence[int], cache: s.Ints) -> ReplicaState:
    """Return what the judge knows of a replica at the end of a trace, unknown values as None.

    `row` has the values of s.FINAL, the last of them the number of entries in `cache`, which are (epoch, start offset).
    """
    leo, hw, log_start, cached = (none_if_unknown(value) for value in row)
    epochs = None if cached is None else tuple((int(epoch), int(start)) for epoch, start in cache[:cached])
    return ReplicaState(leo, hw, log_start, epochs)


def none_if_unknown(value: int) -> int | None:
    """Return a value, None for UNKNOWN."""
    return None if value == UNKNOWN else int(value)


def add_tallies(a: RuleTally, b: RuleTally) -> RuleTally:
    """Add up a rule's tallies of two inputs."""
    missing = tuple(dict.fromkeys((*a.missing, *b.missing)))
    return replace(
        a,
        held=a.held + b.held,
        failed=a.failed + b.failed,
        undecided=a.undecided + b.undecided,
        missing=missing,
        failed_traces=a.failed_traces + b.failed_traces,
        after_loss=a.after_loss + b.after_loss,
    )


def total_tallies(judgements: Iterable[Judgement]) -> dict[str, RuleTally]:
    """Add up the tallies of several judgements, rule by rule."""
    tallies = {rule: RuleTally() for rule in RULE_IDS}
    for judgement in judgements:
        for rule, tally in judgement.tallies.items():
            tallies[rule] = add_tallies(tallies[rule], tally)
    return tallies
