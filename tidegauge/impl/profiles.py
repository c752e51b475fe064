"""Generations of the protocol: one table of switches.

A *switch* says whether, or in which way, a generation makes one decision; a *profile* is a value for each switch, under a
name such as `kip101` or `release-4.3.1`. A *setup* is what a broker runs with: a profile, the rules (functions of
impl.rules, one of which a fault replaces), and replica settings. Bugs of Kafka are named by issue, or F1 to F13: the
findings of docs/findings.md.

Rules of this file

1. A switch stands here if and only if some function of impl reads it, or of the reference behind a contract that is made of
   impl. Its comment names the change that turned it.
2. A profile is a full row. A generation differs from the next in what truncation and fencing need, in nothing else; what
   a release did in every respect is a row of impl.releases. Nothing else compares version numbers.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from operator import itemgetter
from types import FunctionType, MappingProxyType
from typing import Any, NamedTuple, TypeAlias

from tidegauge.impl import rules
from tidegauge.impl.rules import Ints


def switch_text(value: bool | str) -> str:
    """Format the value of a switch as names of profiles have it: a bool as on or off, a text as it is."""
    return ("on" if value else "off") if isinstance(value, bool) else value


class Profile(NamedTuple):
    """The switches of one generation of the protocol."""

    name: str
    truncation_on_fetch: bool  # Fetch carries lastFetchedEpoch and finds divergence (IBP 2.7-IV1)
    offsets_for_leader_epoch: (
        bool  # a truncating follower asks OffsetsForLeaderEpoch (KIP-101, 0.11); else it truncates at its own HW
    )
    fencing: bool  # currentLeaderEpoch of a request is compared (KIP-320, 2.1)
    response_epoch_checked: bool  # a fetch response of another epoch is dropped (KAFKA-18991, 3.9.1 and 4.0.1)
    batch_epoch_filter: bool  # batches of a later epoch are not appended (KAFKA-18723, 3.9.1 and 4.0.1)
    join_needs_epoch_start: bool  # an ISR member has reached this leader's epoch start (KAFKA-7128, 2.0.1)
    blocks_under_min_isr: bool  # the HW does not advance while the ISR is too small (KAFKA-15583, 3.7)
    cache_truncation_queued: bool  # the epoch cache writes a truncation later (KAFKA-16541, 3.8)
    hw_rounded_to_batches: bool  # a position look-up moves the HW to a batch base (KAFKA-17803, 4.0)
    keeps_remote_leo: bool  # a leader that is elected again keeps what it recorded (Partition#makeLeader, all releases)
    guards_partition_epoch: bool  # metadata of an older partition epoch is skipped (KAFKA-13790, 3.3)
    reads_equal_partition_epoch: bool  # a leader reads again the metadata it has (Partition#makeLeader, all releases)
    fetcher_restart: str  # what restarts a fetcher: "leader" 0.8, "leader-or-jump" 2.0.1, "leader-or-epoch" 2.1, "epoch" 3.3
    epoch_bump_on_shrink: bool  # an ISR that shrinks gets a new leader epoch (KRaft below MV 3.6)
    registration_leaves_isr: bool  # another incarnation leaves every ISR when it registers (KAFKA-18106, 4.0)
    strict_cache: bool  # an election marks its epoch, conflicts are evicted, lower epochs answered (KAFKA-7415, 2.0.1)
    epoch_in_response: bool  # the OffsetsForLeaderEpoch response names the epoch that was found (KIP-279, 2.0)
    initial_offset: str  # a follower starts at: its "hw"; its "log-end" 0.11 and 1.0; "log-end-or-hw" 2.8
    epoch_responses_checked: bool  # an epoch response of another epoch is dropped (KAFKA-7786, 2.1.1)
    fences_by_epoch: bool  # a fenced response fails the entry only in the epoch of the request (2.5)
    fails_partitions: bool  # an unexpected error stops one partition, not the thread (KIP-461, 2.3)
    exits_out_of_range: bool  # a follower ahead of its leader ends the broker if unclean election is off (up to 2.0.0)
    applies_diverging: bool  # a diverging response's high watermark is taken over first (up to 3.4.0, KAFKA-14704)
    out_of_range_first: bool  # out of range is tested before divergence (KAFKA-12996, 2.7.2 and 2.8.1)
    truncation_clears_cache: (
        bool  # a truncation that truncates nothing still removes entries at the log end (KAFKA-10706, 2.6.1)
    )
    truncation_lowers_hw: bool  # a truncation takes the high watermark with it (2.4)
    keeps_last_epoch: bool  # an empty response leaves lastFetchedEpoch (all but 3.5.1 to 3.6, KAFKA-15510)
    delay_restarts: bool  # a truncation starts a back-off that ran out again (4.0)
    counts_maximal_isr: bool  # a pending expansion holds the high watermark back (2.7)
    counts_only_eligible: bool  # outside the ISR only eligible replicas hold it back (KAFKA-15021, 3.6)
    hw_after_isr_response: bool  # a committed ISR may raise the high watermark (all but 2.7 to 3.0, KAFKA-13091)
    eligibility: str  # who may join the ISR: "alive"; "unfenced" 3.3 (KIP-841); "incarnation" 3.5 (KIP-903)
    rejects_stale_fetch: bool  # a fetch of an older incarnation is refused (KIP-903, 3.7)
    latest_needs_hw: bool  # consumers get no latest offset while the HW is below the epoch start (KIP-207, 2.2)
    unknown_producer: str  # a sequence above 0 of an unknown producer: "out-of-order"; "unknown" 1.0; "taken" 2.5 (KIP-360)
    old_batch_is_duplicate: bool  # a batch below the remembered ones is a duplicate, not out of order (1.0.0 and 1.0.1)
    hw_wakes_followers: bool  # a high watermark that moved completes a follower's fetch (2.4 and 2.5, KAFKA-9952)
    elr: bool  # eligible leader replicas (KIP-966, default for clusters made at MV 4.1)
    elr_keeps_removed: bool  # a replica that is removed stays eligible (F4, all releases with ELR)
    min_isr_by_partition_zero: bool  # effective min ISR counts the replicas of partition 0 (F4, all releases with ELR)
    min_isr_change_clears_elr: bool  # a new min.insync.replicas forgets every ELR (F5, all releases with ELR)
    indexes_go_stale: bool  # what forgets an ELR or deletes a topic leaves the controller's indexes (F6, all releases)
    completes_by_adding: bool  # a reassignment waits for those it adds, not for all (all but 3.8 to 4.2, KAFKA-19975)
    fewer_wait_for_all: bool  # one that leaves fewer replicas than there were waits for all of them (KAFKA-15665, 3.8)
    reassignment_keeps_adding: bool  # one that adds nobody keeps the list of the one before (F7, harmless from 3.8 to 4.2)
    completes_before_election: bool  # an election that brings in the last replica completes nothing (F12, all releases)
    heartbeat_in_one_pass: bool  # unfencing ignores the failed directories of the same heartbeat (F8, all releases)
    neglects_elr_when_off: bool  # an ELR from before the feature was switched off is not kept up (F9, all releases with ELR)
    recreated_stays_eligible: (
        bool  # a replica created anew because its directory failed stays eligible (F10, harmful in 4.3)
    )
    raised_min_isr_keeps_epoch: bool  # a leader that has not read a raised min ISR may still propose (F11, all with ELR)
    forgets_last_member: bool  # without a leader, switching ELR can leave no replica to wait for (F13, all with ELR)
    assigns_dirs_without_elr: bool  # AssignReplicasToDirs forgets the ELR (up to 4.2)
    amends_registration: bool  # registering the same incarnation again keeps its broker epoch (KAFKA-16952, 3.9)
    unclean_by_config: bool  # unclean.leader.election.enable is heeded by the KRaft controller (KAFKA-12670, 3.9)
    fenced_has_session: bool  # a fenced broker has one, and is not replaced while it lasts (KAFKA-17793, 4.0)
    failover_renews_fenced: bool  # a new active controller gives one to those that are fenced, too (KAFKA-19130, 4.0 alone)
    elects_fenced_last_known: bool  # the last known leader leads again, be it fenced (KAFKA-19522, 4.0)
    notes_no_leader: (
        bool  # a partition without leader that loses its ISR has the last known leader -1 (apache/kafka#20629, 4.1.1)
    )

    def switched(self, switches: Mapping[str, bool | str]) -> "Profile":
        """Return this profile with other values of some switches, by switch name; it keeps its own name."""
        values: dict[str, Any] = {**switches}
        return self._replace(**values)

    def with_switch(self, name: str, value: bool | str) -> "Profile":
        """Return this profile with another value of one switch, under the name that says so: 4.3.1+elr=off."""
        return self.switched({name: value})._replace(name=f"{self.name}{CHANGED}{name}={switch_text(value)}")

    def without(self, bugs: Collection[str]) -> "Profile":
        """Return this profile with bugs repaired, under the name that says so: 4.3.1-without-F2-F3.

        `bugs` are values of `UNSAFE`; those that this profile does not have are left out.
        """
        repaired = {switch: False for switch, bug in UNSAFE.items() if bug in bugs and getattr(self, switch)}
        if not repaired:
            return self
        repaired_bugs = "-".join(UNSAFE[switch] for switch in repaired)
        return self.switched(repaired)._replace(name=f"{self.name}{WITHOUT}{repaired_bugs}")

    @property
    def truncates_in_thread(self) -> bool:
        """Whether the fetcher thread also makes truncations that need no response (0.11); before, makeFollowers did."""
        return self.offsets_for_leader_epoch


FETCH_TRUNCATION = Profile(
    name="fetch-truncation",
    truncation_on_fetch=True,
    offsets_for_leader_epoch=True,
    fencing=True,
    response_epoch_checked=True,
    batch_epoch_filter=True,
    join_needs_epoch_start=True,
    blocks_under_min_isr=True,
    cache_truncation_queued=True,
    hw_rounded_to_batches=True,
    keeps_remote_leo=True,
    guards_partition_epoch=True,
    reads_equal_partition_epoch=True,
    fetcher_restart="epoch",
    epoch_bump_on_shrink=False,
    registration_leaves_isr=True,
    elr=False,
    elr_keeps_removed=True,
    min_isr_by_partition_zero=True,
    min_isr_change_clears_elr=True,
    indexes_go_stale=True,
    completes_by_adding=True,
    fewer_wait_for_all=True,
    reassignment_keeps_adding=True,
    completes_before_election=True,
    heartbeat_in_one_pass=True,
    neglects_elr_when_off=True,
    recreated_stays_eligible=True,
    raised_min_isr_keeps_epoch=True,
    forgets_last_member=True,
    assigns_dirs_without_elr=False,
    amends_registration=True,
    unclean_by_config=True,
    fenced_has_session=True,
    failover_renews_fenced=False,
    elects_fenced_last_known=False,
    notes_no_leader=False,
    strict_cache=True,
    epoch_in_response=True,
    initial_offset="log-end-or-hw",
    epoch_responses_checked=True,
    fences_by_epoch=True,
    fails_partitions=True,
    exits_out_of_range=False,
    applies_diverging=False,
    out_of_range_first=True,
    truncation_clears_cache=True,
    truncation_lowers_hw=True,
    keeps_last_epoch=True,
    delay_restarts=True,
    counts_maximal_isr=True,
    counts_only_eligible=True,
    hw_after_isr_response=True,
    eligibility="incarnation",
    rejects_stale_fetch=True,
    latest_needs_hw=True,
    unknown_producer="taken",
    old_batch_is_duplicate=False,
    hw_wakes_followers=False,
)

REPAIRED = FETCH_TRUNCATION._replace(name="repaired", keeps_remote_leo=False)
"""Today's Kafka with one rule repaired: a leader elected again forgets log ends from before another may have led (F2)."""

SKIPS_EQUAL = FETCH_TRUNCATION._replace(name="skips-equal", reads_equal_partition_epoch=False)
"""Today's Kafka with another rule repaired: metadata that a leader has read keeps its later proposal (finding F3)."""

ELR = FETCH_TRUNCATION._replace(name="elr", elr=True)
"""Today's Kafka with eligible leader replicas (KIP-966)."""

ELR_REPAIRED = ELR._replace(
    name="elr-repaired",
    elr_keeps_removed=False,
    min_isr_by_partition_zero=False,
    min_isr_change_clears_elr=False,
    indexes_go_stale=False,
    reassignment_keeps_adding=False,
    completes_before_election=False,
    heartbeat_in_one_pass=False,
    neglects_elr_when_off=False,
    recreated_stays_eligible=False,
    raised_min_isr_keeps_epoch=False,
    forgets_last_member=False,
)
"""The same with the controller repaired: the behaviour that findings F4 to F13 take to be right."""

SAFE = ELR_REPAIRED._replace(
    name="safe", keeps_remote_leo=False, reads_equal_partition_epoch=False, hw_rounded_to_batches=False
)
"""Every switch at its repaired value: what a broker has to be that is not Kafka (docs/decisions/0015)."""

UNSAFE: Mapping[str, str] = MappingProxyType(
    {"keeps_remote_leo": "F2", "reads_equal_partition_epoch": "F3", "hw_rounded_to_batches": "KAFKA-17803"}
)
"""What a broker of today's Kafka does and a safe one does not: the switch, and the name of the bug."""

CARRIED = ("fencing", "truncation_on_fetch", "epoch_in_response")
"""What the sender's protocol decides: whether requests have a leader epoch, fetches the last one, epoch responses theirs."""

OF_THE_CONTROLLER = frozenset(
    {"epoch_bump_on_shrink", "registration_leaves_isr", *Profile._fields[Profile._fields.index("elr") :]}
)
"""The switches that a controller reads, and no broker: the last ones of Profile, and two that are older than ELR."""

CHANGED = "+"
"""Between the name of a generation and a switch that is changed in it: release-4.3.1+keeps_remote_leo=off."""

WITHOUT = "-without-"
"""Between the name of a generation and those of the bugs of `UNSAFE` that it has not: fetch-truncation-without-F2-F3."""

KIP320 = FETCH_TRUNCATION._replace(
    name="kip320",
    truncation_on_fetch=False,
    response_epoch_checked=False,
    batch_epoch_filter=False,
    blocks_under_min_isr=False,
    cache_truncation_queued=False,
    hw_rounded_to_batches=False,
    initial_offset="hw",
    delay_restarts=False,
    counts_only_eligible=False,
    registration_leaves_isr=False,
)
"""OffsetsForLeaderEpoch with fencing."""

KIP279 = KIP320._replace(name="kip279", fencing=False, epoch_responses_checked=False)
"""OffsetsForLeaderEpoch answers with epoch and end, and is asked until an epoch is shared; nobody is fenced."""

KIP101 = KIP279._replace(name="kip101", epoch_in_response=False)
"""OffsetsForLeaderEpoch answers with an end offset only, and is asked once."""

HW_ONLY = KIP101._replace(
    name="hw-only",
    offsets_for_leader_epoch=False,
    join_needs_epoch_start=False,
    guards_partition_epoch=False,
    fetcher_restart="leader",
)
"""A follower truncates at its own high watermark. Nothing reads the epoch cache, so its content does not matter."""

PROFILES: Mapping[str, Profile] = MappingProxyType(
    {p.name: p for p in (SAFE, FETCH_TRUNCATION, REPAIRED, SKIPS_EQUAL, HW_ONLY, KIP101, KIP279, KIP320, ELR, ELR_REPAIRED)}
)


class Rules(NamedTuple):
    """The decisions a core runs with. The default is impl.rules; impl.explorer.faults replaces one of them."""

    latest_epoch: Callable[[Ints], int] = rules.latest_epoch
    end_offset_for: Callable[[Ints, Ints, int, int], tuple[int, int]] = rules.end_offset_for
    epoch_for_offset: Callable[[Ints, Ints, int], int] = rules.epoch_for_offset
    assign_keeps: Callable[[Ints, Ints, int, int], int] = rules.assign_keeps
    truncate_from_end_keeps: Callable[[Ints, int], int] = rules.truncate_from_end_keeps
    truncate_from_start_covers: Callable[[Ints, int], int] = rules.truncate_from_start_covers
    truncation_target: Callable[[Ints, Ints, int, int, int, int], tuple[int, int, bool]] = rules.truncation_target
    high_watermark_after_truncation: Callable[[int, int], int] = rules.high_watermark_after_truncation
    out_of_range_reset: Callable[[int, int, int], tuple[int, int]] = rules.out_of_range_reset
    check_leader_epoch: Callable[[int, int], int] = rules.check_leader_epoch
    request_error: Callable[[int, int, bool, bool], int] = rules.request_error
    fetch_error: Callable[[int, int, bool, bool, bool], int] = rules.fetch_error
    fetch_decision: Callable[[Ints, Ints, int, int, int, int], tuple[int, int, int]] = rules.fetch_decision
    accepts_fetch_response: Callable[[int, int, bool, int, int, bool], bool] = rules.accepts_fetch_response
    accepts_epoch_response: Callable[[int, bool, int, bool], bool] = rules.accepts_epoch_response
    batches_accepted: Callable[[Ints, int], int] = rules.batches_accepted
    initial_fetch_offset: Callable[[Ints, int, int], int] = rules.initial_fetch_offset
    follower_high_watermark: Callable[[int, int, int], int] = rules.follower_high_watermark
    high_watermark_after_log_start: Callable[[int, int], int] = rules.high_watermark_after_log_start
    forgets_log_ends: Callable[[int, int, bool, bool], bool] = rules.forgets_log_ends
    counts_for_high_watermark: Callable[[bool, bool, bool], bool] = rules.counts_for_high_watermark
    under_min_isr: Callable[[int, int, int], bool] = rules.under_min_isr
    leader_high_watermark: Callable[[int, int, Ints, Sequence[bool], bool], int] = rules.leader_high_watermark
    is_caught_up: Callable[[int, int, int, int, int], bool] = rules.is_caught_up
    last_caught_up_time: Callable[[int, int, int, int, int, int], int] = rules.last_caught_up_time
    may_join_isr: Callable[[int, int, int], bool] = rules.may_join_isr
    produce_response: Callable[[int, int, bool, bool], tuple[bool, int]] = rules.produce_response
    proposal_after: Callable[[int], int] = rules.proposal_after

    @classmethod
    def with_rule(cls, name: str, rule: Callable[..., Any]) -> "Rules":
        """Return the decisions with the rule called `name` replaced by `rule`, also where other rules call it.

        A rule that calls it, directly or through another, is rebuilt from its own code object in a namespace that has the
        replacement under that name. Rules come after those they call, so one pass over the fields suffices.
        """
        namespace = {**vars(rules), name: rule}
        changed = {name: rule}
        for caller in cls._fields:
            code = getattr(rules, caller).__code__
            if caller != name and changed.keys() & set(code.co_names):
                changed[caller] = namespace[caller] = FunctionType(code, namespace, caller)
        return cls(**changed)


class Setup(NamedTuple):
    """The settings of a broker: the rules, the generation, and the replica settings under Kafka's names."""

    rules: Rules = Rules()
    profile: Profile = FETCH_TRUNCATION
    min_insync_replicas: int = 1
    replica_lag_time_max_ms: int = 30_000
    unclean_leader_election_enable: bool = False


class ClusterProfiles(NamedTuple):
    """The profiles of a cluster in which releases differ, as while it is upgraded, under the name that says so."""

    name: str
    controller: Profile
    brokers: tuple[Profile, ...]


ModelProfile: TypeAlias = Profile | ClusterProfiles
"""The profile of all brokers of a model, or one for each."""


def serving(setup: Setup, sender: Profile) -> Setup:
    """Return the setup by which a leader handles a request of a broker with profile `sender`.

    It is the leader's own `setup`, but for the switches in `CARRIED`: requests have the version of their sender's protocol
    (inter.broker.protocol.version), and whoever leads knows them all: brokers are upgraded first, the protocol then. So the
    sender decides which epochs a request and its response have.
    """
    carried = {name: getattr(sender, name) for name in CARRIED}
    return setup._replace(profile=setup.profile.switched(carried))


def recording_reads(profile: Profile) -> tuple[Profile, set[str]]:
    """Return a copy of the profile that records its reads, and the set to which it adds the name of each switch read.

    A step that never reads a switch is the same whatever the switch's value is: callers rely on that.
    """
    names: set[str] = set()

    def recording_property(index: int, name: str) -> property:
        """Return a property that reads the field at `index` of the tuple, and adds `name` to the set."""
        field = itemgetter(index)

        def read(profile_read: Profile) -> bool | str:
            """Return the switch of a profile, and note that it was read."""
            names.add(name)
            switch: bool | str = field(profile_read)
            return switch

        return property(read)

    properties = {name: recording_property(index, name) for index, name in enumerate(Profile._fields)}
    return type("RecordingProfile", (Profile,), properties)(*profile), names
