"""Every bug that can be switched on in the broker that is driven: wrong rules, switches of older releases, wrong steps.

A bug is named as its fault is (impl.explorer.faults), or by its issue; its sentence is that of the fault or of catalog.toml.
A bug of the catalog that is neither here nor resembled by a fault has a reason there (`beyond`).

A wrong step is a function named after what goes wrong. It gets the broker before a step, the step, and the right broker and
the right response after it. It returns the broker and the response as a broker with the bug has them: changed where the bug
shows, and as they are after any other step.
"""

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from tidegauge.conformance.judge.rulebook import known_bugs
from tidegauge.drive.broker.contract import BROKER
from tidegauge.drive.broker.peer_fetches import known_of
from tidegauge.drive.broker.state import Outcome, ReferenceBroker, WrongStep, metadata_cache, with_partition
from tidegauge.drive.broker.steps import ENDS, IN_SESSION, MAY_WAIT, arguments_of
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.runner.reference_interface import Finding
from tidegauge.impl.cluster.broker import NOW
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.fetch.fetch_session import FINAL_EPOCH, INITIAL_EPOCH
from tidegauge.impl.frozen_map import FrozenMap
from tidegauge.impl.messages import FetchParams
from tidegauge.impl.profiles import FETCH_TRUNCATION, UNSAFE, Profile, Rules, switch_text
from tidegauge.impl.releases import SINCE, profile_named
from tidegauge.impl.replica.fetcher import PartitionFetchState
from tidegauge.impl.replica.partition import maybe_increment_leader_hw
from tidegauge.impl.replica.partition_state import Partition
from tidegauge.impl.rules import NONE, OFFSET_OUT_OF_RANGE, UNDEFINED
from tidegauge.impl.server.replica_manager import DelayedFetch
from tidegauge.impl.storage import log as log_
from tidegauge.impl.storage.epoch_cache import EpochCache, EpochEntries
from tidegauge.impl.storage.log import Log
from tidegauge.util.errors import UsageError

# Wrong steps: bugs that are no wrong rule and no switch. The sentence of the bug is in catalog.toml, under the issue.


_BY_ISSUE: dict[str, WrongStep] = {}

FETCHES = frozenset({"fetch", "fetch_in_session"}) | MAY_WAIT


def _as_in(issue: str) -> Callable[[WrongStep], WrongStep]:
    """Return a decorator that registers a wrong step under the issue whose bug it is."""

    def register(wrong_step: WrongStep) -> WrongStep:
        """Register the wrong step, and return it unchanged."""
        _BY_ISSUE[issue] = wrong_step
        return wrong_step

    return register


def _with_log(state: ReferenceBroker, log: Log) -> ReferenceBroker:
    """Return the state with the log of the broker's partition replaced."""
    return state._replace(broker=state.broker._replace(partition=state.broker.partition._replace(log=log)))


def _with_log_end(state: ReferenceBroker, peer: int, log_end: int) -> ReferenceBroker:
    """Return the state in which the leader has recorded this log end of a peer, and raised its high watermark if it may."""
    before = state.broker.partition
    remotes = tuple(
        replica._replace(log_end=log_end) if replica.broker_id == peer else replica for replica in before.remotes
    )
    partition: Partition = before._replace(remotes=remotes)
    cache = metadata_cache(state, eligible=False)
    return with_partition(state, maybe_increment_leader_hw(state.setup, partition, cache, NOW))


# ---------------------------------------------------------------------------------------------------------------------
# Leader


@_as_in("KAFKA-6857")
def _undefined_epoch_ends_at_the_log_end(
    _before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Answer an OffsetsForLeaderEpoch request about epoch -1 with the log end, not with the undefined offset."""
    if step[0] != "offsets_for_leader_epoch" or result is None or result["error"] != NONE:
        return after, result
    if arguments_of(step)["leader_epoch"] != UNDEFINED:
        return after, result
    return after, {**result, "end_offset": after.broker.partition.log.end}


@_as_in("KAFKA-13141")
def _diverging_fetch_is_recorded(
    _before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Record the fetch offset of a diverging fetch as its follower's log end, though the logs differ below it."""
    if step[0] not in FETCHES or result is None or not result.get("diverging"):
        return after, result
    fetch = arguments_of(step)
    return _with_log_end(after, fetch["peer"], fetch["fetch_offset"]), result


@_as_in("KAFKA-8400")
def _failed_read_is_recorded(_before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """Record a log end of -1 for a follower whose fetch was out of range."""
    if step[0] not in FETCHES or result is None or result["error"] != OFFSET_OUT_OF_RANGE:
        return after, result
    return _with_log_end(after, arguments_of(step)["peer"], UNDEFINED), result


@_as_in("KAFKA-7152")
def _a_caught_up_peer_does_not_join(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Do not propose that a peer with the leader's whole log joins the ISR."""
    partition, state_before = after.broker.partition, before.broker.partition.state
    # A fetch changes the partition's state only by such a proposal.
    has_proposed = step[0] in FETCHES and partition.state != state_before
    if not has_proposed or arguments_of(step)["fetch_offset"] != partition.log.end:
        return after, result
    return with_partition(after, partition._replace(state=state_before)), result


@_as_in("KAFKA-5634")
def _deletes_above_the_high_watermark(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Delete records above the high watermark, which a right leader refuses to do."""
    log = before.broker.partition.log
    if step[0] != "delete_records" or not before.broker.leads:
        return after, result
    offset = arguments_of(step)["offset"]
    if not log.hw < offset <= log.end:
        return after, result
    return _with_log(after, log._replace(start=offset)), {"error": NONE}


@_as_in("apache/kafka#9434")
def _diverging_fetch_is_withheld(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Let a diverging fetch wait, or leave its partition out of a session's response: the follower never truncates."""
    if result is None or not result.get("diverging"):
        return after, result
    fetch = arguments_of(step)
    peer = fetch["peer"]
    # At the log end there is nothing to read, and DelayedFetch#tryComplete had no case for a divergence: it waits.
    if step[0] in MAY_WAIT and fetch["fetch_offset"] == after.broker.partition.log.end:
        # It waits for nothing (no statuses), so no later step completes it.
        withheld = DelayedFetch(peer, NOW, FetchParams(peer), FrozenMap())
        return after._replace(fetches=after.fetches.put(peer, withheld)), None
    # Nor had CachedPartition#maybeUpdateResponseData one: where high watermark and log start are those that the session
    # has reported last, an incremental response leaves the partition out.
    if step[0] in IN_SESSION and fetch["session_epoch"] not in {INITIAL_EPOCH, FINAL_EPOCH}:
        cached = known_of(before.sessions.get(peer))
        unchanged = cached is not None and (cached.hw, cached.log_start) == (result["hw"], result["log_start"])
        return after, None if unchanged else result
    return after, result


# ---------------------------------------------------------------------------------------------------------------------
# Follower


@_as_in("KAFKA-9491")
def _full_truncation_keeps_the_high_watermark(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Keep the high watermark when the whole log is dropped because the leader's log start is above its end."""
    old_log, new_log = before.broker.partition.log, after.broker.partition.log
    # Only the response to an out-of-range fetch has `offsets`.
    if step[0] != "fetch_response" or arguments_of(step)["offsets"] is None or new_log.start <= old_log.end:
        return after, result
    return _with_log(after, new_log._replace(hw=old_log.hw)), result


@_as_in("KAFKA-7164")
def _the_same_leader_is_followed_on(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Go on fetching from a leader that leads again in a newer epoch, without a truncation first."""
    if step[0] != "metadata":
        return after, result
    leader, old_broker = arguments_of(step)["leader"], before.broker
    if leader in {BROKER, UNDEFINED} or old_broker.source != leader:
        return after, result
    # The entry of the fetcher stays as it was, with the old leader epoch and the old fetch offset.
    broker = after.broker._replace(source=old_broker.source, entry=old_broker.entry)
    return _with_log(after._replace(broker=broker), old_broker.partition.log), result


@_as_in("KAFKA-2143")
def _a_new_leader_truncates_to_the_beginning(
    before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Truncate the whole log whenever a follower begins to fetch from a leader."""
    broker, log = after.broker, after.broker.partition.log
    # A fetcher that goes on as before keeps its entry for the partition.
    if step[0] != "metadata" or broker.entry is None or broker.entry == before.broker.entry:
        return after, result
    truncated, _ = log_.truncate_to(after.setup, log, log.start)
    entry: PartitionFetchState = broker.entry._replace(fetch_offset=log.start, last_fetched_epoch=UNDEFINED)
    return _with_log(after._replace(broker=broker._replace(entry=entry)), truncated), result


# ---------------------------------------------------------------------------------------------------------------------
# Restart


@_as_in("KAFKA-10432")
def _recovery_skips_epoch_zero(
    _before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Lose the entry of epoch 0 when the epoch cache is read after a crash."""
    log = after.broker.partition.log
    if step[0] != "crash":
        return after, result
    pairs = [(epoch, start) for epoch, start in log.cache.memory.pairs() if epoch != 0]
    entries = EpochEntries(tuple(epoch for epoch, _ in pairs), tuple(start for _, start in pairs))
    # The same entries in memory and in the cache's file.
    return _with_log(after, log._replace(cache=EpochCache(entries, entries))), result


@_as_in("KAFKA-8306")
def _an_empty_log_ends_at_zero(
    _before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None
) -> Outcome:
    """Let a log without records end at 0 after a restart, although its log start is higher."""
    log = after.broker.partition.log
    # ENDS: stop and crash, after which the process has started again.
    if step[0] not in ENDS or log.batches:
        return after, result
    return _with_log(after, log._replace(end=0)), result


@_as_in("KAFKA-769")
def _the_checkpoint_is_lost(_before: ReferenceBroker, step: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    """Begin with the log start as high watermark after a restart: the checkpoint was not written."""
    log = after.broker.partition.log
    return (_with_log(after, log._replace(hw=log.start)), result) if step[0] in ENDS else (after, result)


WRONG_STEPS: Mapping[str, WrongStep] = MappingProxyType(_BY_ISSUE)
"""By the issue."""


class DrivenBug(NamedTuple):
    """One bug, as a broker has it: values of switches, wrong rules or a wrong step.

    `right` is the generation without it, which a broker with the bug is compared with and whose paths it is taken through.
    """

    name: str
    says: str
    right: Profile = FETCH_TRUNCATION
    switches: Mapping[str, bool | str] = MappingProxyType({})
    rules: Rules = Rules()
    wrong_step: WrongStep | None = None

    @property
    def profile(self) -> Profile:
        """The generation with the bug's switches."""
        return self.right.switched(self.switches)


def _bugs_by_name() -> Mapping[str, DrivenBug]:
    """Collect all bugs by name: faults, then those of the catalog that are switches or wrong steps."""
    bugs = [DrivenBug(fault.name, f"{fault.says} ({fault.resembles})", rules=fault.rules) for fault in FAULTS.values()]
    for bug in known_bugs().values():
        # `beyond`: why no broker of the contract can have it. `right`: the name of the generation without it.
        if bug.beyond:
            continue
        if bug.switches:
            bugs.append(DrivenBug(bug.name, bug.says, profile_named(bug.right), bug.switches))
        elif bug.name in WRONG_STEPS:
            bugs.append(DrivenBug(bug.name, bug.says, profile_named(bug.right), wrong_step=WRONG_STEPS[bug.name]))
    return MappingProxyType({bug.name: bug for bug in bugs})


BUGS = _bugs_by_name()


def bug_named(name: str) -> DrivenBug:
    """Return the bug called `name`. Raises UsageError with the names there are."""
    if name not in BUGS:
        raise UsageError(f"bug: expected one of {', '.join(BUGS)}; seen {name!r}; choose one of those")
    return BUGS[name]


# Findings: what some release did and a repaired broker would not.


def broker_findings() -> list[Finding]:
    """Return every known bug with switches, then every other switch that some release had at another value than today's."""
    # Today's release still has the bugs of UNSAFE; a finding compares with a broker that has none.
    repaired = FETCH_TRUNCATION.without(UNSAFE.values())
    findings = []
    for bug in known_bugs().values():
        right = {name: getattr(repaired, name) for name in bug.switches}
        # Not a bug of which the repaired broker has the switches as well.
        if bug.switches and right != dict(bug.switches):
            findings.append(Finding(bug.name, bug.says, bug.switches, right))
    switches_of_bugs = {name for finding in findings for name in finding.has}
    # `since`: pairs of a first release and the value of the switch from then on.
    for name, since in SINCE.items():
        now = getattr(repaired, name)
        others = dict.fromkeys(value for _, value in since if value != now)
        if name not in switches_of_bugs:
            findings += [Finding(f"`{name}` = {switch_text(value)}", "", {name: value}, {name: now}) for value in others]
    return findings
