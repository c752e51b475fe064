"""State, messages, labels, violations and runs as text. The only place in impl where they become text.

    offset        0   1
    b1 leader     0   0 |  hw=2 leo=2 epoch=0 isr=b1,b2
    b2 follower   0 | 0    hw=1 leo=2 epoch=0 leader=b1

Rules of this file

1. A row per replica, a column per offset, the record's leader epoch in it, x where it was deleted, a bar where the high
   watermark is.
2. A step prints its label and what it changed, nothing else. A message that is lost is visible.
3. Brokers are b1, b2, ..: index + 1, as in traces.
4. A *view* is a state as nested tuples of ints, as TLC prints it; sets of brokers are bit masks in it. A *label* is (action,
   arguments), all arguments ints. There are three models with labels and views of their own: the cluster (impl.cluster),
   the controller (`control_..`, impl.explorer.controller_model) and ISR changes (`isr_..`, impl.explorer.isr_model).
"""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from tidegauge.impl.cluster.broker import Broker
from tidegauge.impl.cluster.cluster import Cluster, NetworkRow, record_epochs
from tidegauge.impl.cluster.controller import Controller
from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.errors import ERROR_NAMES
from tidegauge.impl.explorer.search import Counterexample, Graph, View, Violation
from tidegauge.impl.messages import FetchRequest, Message, OffsetsForLeaderEpochRequest, OffsetsForLeaderEpochResponse
from tidegauge.impl.rules import NONE, UNDEFINED

Values = Mapping[tuple[int, int], str]
"""What a producer wrote at (epoch, offset), printed behind the epoch: 1c. Records have no values of their own here."""

NO_VALUES: Values = MappingProxyType({})


def broker_name(broker: int) -> str:
    """Return b1 for index 0; "none" for no broker."""
    return "none" if broker == UNDEFINED else f"b{broker + 1}"


def broker_names(brokers: tuple[int, ...]) -> str:
    """Return the names of several brokers, "nobody" for none."""
    return ",".join(map(broker_name, brokers)) or "nobody"


def mask_names(members: int) -> str:
    """Return the names of a set of brokers given as a bit mask."""
    return broker_names(tuple(b for b in range(members.bit_length()) if members >> b & 1))


ROLES = ("starting", "leader", "follower", "truncates")
"""By their number in views; one that truncates is a follower that fetches once it has."""


def role(broker: Broker) -> str:
    """Return the role that the broker believes it has, one of ROLES, or "down"."""
    if not broker.up:
        return "down"
    if broker.partition.leader_epoch == UNDEFINED:
        return "starting"
    if broker.entry is not None and broker.entry.truncating:
        return "truncates"
    return "leader" if broker.partition.is_leader else "follower"


# ---------------------------------------------------------------------------------------------------------------------
# States


def grid(cluster: Cluster, values: Values = NO_VALUES) -> str:
    """Format a whole state: logs with a column per offset, then the controller, then what is in flight.

    `values` are what producers wrote, by (epoch, offset).
    """
    width = max(broker.partition.log.end for broker in cluster.brokers)
    lines = ["offset        " + "".join(f"{offset:<4}" for offset in range(width))]
    lines += [_log_row(b, broker, width, values) for b, broker in enumerate(cluster.brokers)]
    lines.append(f"controller    {controller_text(cluster.controller)}")
    lines += list(_in_flight(cluster, values))
    return "\n".join(line.rstrip() for line in lines)


def _log_row(index: int, broker: Broker, width: int, values: Values) -> str:
    """Format the row of a broker, with a cell for each of `width` offsets: the record's epoch, and its value if known.

    `x` stands for a deleted record, a bar for the high watermark.
    """
    if not broker.partition.has_log:
        return f"{broker_name(index)} {role(broker):<9}no log"
    log = broker.partition.log
    not_deleted = ((offset, epoch) for offset, epoch in enumerate(record_epochs(broker)) if epoch != UNDEFINED)
    records = dict.fromkeys(range(log.start), "x") | {
        offset: f"{epoch}{values.get((epoch, offset), '')}" for offset, epoch in not_deleted
    }
    cells = "".join(("| " if log.hw == offset else "  ") + f"{records.get(offset, ''):<2}" for offset in range(width))
    bar = "|" if log.hw >= width else " "
    return f"{broker_name(index)} {role(broker):<9}{cells}{bar}  {_facts(broker)}"


def _facts(broker: Broker) -> str:
    """Format what a broker knows besides its records, for the end of its row."""
    partition = broker.partition
    facts = [f"hw={partition.log.hw}", f"leo={partition.log.end}", f"epoch={partition.leader_epoch}"]
    if partition.is_leader:
        facts.append(f"isr={broker_names(partition.state.isr)}")
        if partition.state.is_inflight:
            facts.append(f"proposed={broker_names(partition.state.proposed_isr)}")
        facts += [f"{broker_name(r.broker_id)}@{r.log_end}" for r in partition.remotes]
    elif partition.leader_epoch != UNDEFINED:
        facts.append(f"leader={broker_name(partition.leader_id)}")
    # An epoch without records yet is an entry at the log end, which the drawing of the records does not show.
    for epoch, start in partition.log.cache.memory.pairs()[-1:]:
        if start >= partition.log.end:
            facts.append(f"cache+=({epoch},{start})")
    return " ".join(facts)


def controller_text(controller: Controller) -> str:
    """Format the registration; the fields of ELR only where they are set."""
    text = (
        f"leader={broker_name(controller.leader)} epoch={controller.leader_epoch} isr={broker_names(controller.isr)} "
        f"live={broker_names(controller.live)}"
    )
    elr = f" elr={broker_names(controller.elr)}" if controller.elr else ""
    last = f" last={broker_names(controller.last_known_elr)}" if controller.last_known_elr else ""
    return text + elr + last


def _in_flight(cluster: Cluster, values: Values) -> Iterator[str]:
    """Yield a line for each message in flight, and for each copy of a request that may still arrive."""
    for f, row in enumerate(cluster.network):
        for leader, message in enumerate(row):
            if message is not None:
                yield f"in flight     {message_text(f, leader, message, values)}"
    # Copies are of one kind in a model: requests that were given up, or that arrive twice.
    copy = "given up " if cluster.model.bounds.max_abandoned else "once more"
    for f, row in enumerate(cluster.copies):
        for leader, message in enumerate(row):
            if message is not None:
                yield f"{copy}     {message_text(f, leader, message, values)}"


def message_text(follower: int, leader: int, message: Message, values: Values = NO_VALUES) -> str:
    """Format a message between a follower and a leader with its direction, as "b2->b1 Fetch offset=1 ..".

    `values` are what producers wrote, by (epoch, offset).
    """
    if message is None:
        return f"{broker_name(follower)}, {broker_name(leader)}: nothing"
    if isinstance(message, FetchRequest):
        return (
            f"{broker_name(follower)}->{broker_name(leader)} Fetch offset={message.fetch_offset} "
            f"epoch={message.current_leader_epoch} last_fetched_epoch={message.last_fetched_epoch}"
        )
    if isinstance(message, OffsetsForLeaderEpochRequest):
        return (
            f"{broker_name(follower)}->{broker_name(leader)} OffsetForLeaderEpoch of epoch={message.leader_epoch} "
            f"epoch={message.current_leader_epoch}"
        )
    if isinstance(message, OffsetsForLeaderEpochResponse):
        return (
            f"{broker_name(leader)}->{broker_name(follower)} EpochEndOffset to epoch={message.request_epoch}: "
            f"epoch={message.leader_epoch} end={message.end_offset}"
        )
    response = message.response
    head = f"{broker_name(leader)}->{broker_name(follower)} FetchResponse to offset={message.request_offset}"
    head += f" epoch={message.request_epoch}:"
    if response.error != NONE:
        offsets = message.offsets
        range_text = f" leader has [{offsets.earliest}, {offsets.latest})" if offsets is not None else ""
        return f"{head} {ERROR_NAMES.get(response.error, response.error)}{range_text}"
    if response.is_diverging:
        return f"{head} diverging epoch={response.diverging_epoch} end={response.diverging_end}"
    records = " ".join(
        f"{b.epoch}{values.get((b.epoch, b.base), '')}@{b.base}" + (f"-{b.last}" if b.last > b.base else "")
        for b in response.records
    )
    start = f" log_start={response.log_start}" if response.log_start else ""
    return f"{head} hw={response.hw}{start} records=[{records}]"


# ---------------------------------------------------------------------------------------------------------------------
# Steps


def label_text(label: Label) -> str:
    """Format a label of the cluster in words: the action, the broker that acts, the other arguments."""
    name, actor, *_ = label
    broker = broker_name(actor)
    match label:
        case ("HandleFetch", _, follower, joins, *_):
            return f"HandleFetch {broker} <- {broker_name(follower)}" + (" proposing it for the ISR" if joins else "")
        case (
            "HandleFetchResponse"
            | "HandleDivergingResponse"
            | "HandleOutOfRange"
            | "LoseResponse"
            | "HandleEpochRequest"
            | "HandleEpochResponse"
            | "Duplicate"
            | "Disconnect",
            _,
            peer,
            *_,
        ):
            return f"{name} {broker} <- {broker_name(peer)}"
        case ("HandleDuplicate" | "HandleAbandoned", _, follower, joins, epoch, offset, *_):
            proposing = " proposing it for the ISR" if joins else ""
            return f"{name} {broker} <- {broker_name(follower)} of epoch={epoch} offset={offset}{proposing}"
        case ("AnswerProduce", _, end, error, *_):
            return f"AnswerProduce {broker} ending at {end}" + (f" with error {error}" if error else "")
        case ("Read", _, _, bound, *_):
            return f"Read {broker} up to {bound}"
        case ("DeleteRecords", _, start, *_):
            return f"DeleteRecords {broker} before {start}"
        case ("ShrinkIsr", _, removed, *_):
            return f"ShrinkIsr {broker} without {mask_names(removed)}"
        case ("Crash" | "CrashAndLose", _, hw, log_end, *_):
            return f"{name} {broker} checkpointed hw={hw} kept leo={log_end}"
        case ("FenceBroker" | "UnfenceBroker" | "FenceElr" | "UnfenceElr" | "Register", _, elected, *_):
            return f"{name} {broker}" + ("" if elected == UNDEFINED else f", {broker_name(elected)} elected")
        case _:
            return f"{name} {broker}"


def step_changes(before: Cluster, after: Cluster) -> list[str]:
    """Return lines that say what a step changed: brokers, the controller, and what was sent."""
    lines = []
    for b, (old, new) in enumerate(zip(before.brokers, after.brokers, strict=True)):
        if old != new:
            lines += [f"{broker_name(b)} {role(new):<9} {difference}" for difference in _differences(old, new)]
    if before.controller != after.controller:
        lines.append(f"controller   {controller_text(after.controller)}")
    for f, (old_row, new_row) in enumerate(zip(before.network, after.network, strict=True)):
        lines += _sent(f, old_row, new_row)
    return lines


def _differences(old: Broker, new: Broker) -> Iterator[str]:
    """Yield the fields in which a broker differs, as "hw 0 -> 1", in two lines at most."""
    before, after = old.partition, new.partition
    pairs = (
        ("start", before.log.start, after.log.start),
        ("leo", before.log.end, after.log.end),
        ("hw", before.log.hw, after.log.hw),
        ("epoch", before.leader_epoch, after.leader_epoch),
        ("leader", broker_name(before.leader_id), broker_name(after.leader_id)),
        ("isr", broker_names(before.state.isr), broker_names(after.state.isr)),
        ("proposed", _proposed(old), _proposed(new)),
        ("cache", before.log.cache.memory.pairs(), after.log.cache.memory.pairs()),
        ("followers at", _remotes(old), _remotes(new)),
    )
    # The first line has the log and the role, the second the ISR, the epoch cache and the followers.
    for group in (pairs[:5], pairs[5:]):
        changed = [f"{name} {was} -> {now}" for name, was, now in group if was != now]
        if changed:
            yield ", ".join(changed)


def _proposed(broker: Broker) -> str:
    """Format the ISR that a leader has proposed and has no response to, "nothing" if there is none."""
    state = broker.partition.state
    return broker_names(state.proposed_isr) if state.is_inflight else "nothing"


def _remotes(broker: Broker) -> str:
    """Format the log end that a leader has recorded of each follower, as b2@1; "-" for none."""
    return " ".join(f"{broker_name(r.broker_id)}@{r.log_end}" for r in broker.partition.remotes) or "-"


def _sent(follower: int, before: NetworkRow, after: NetworkRow) -> Iterator[str]:
    """Yield a line for each message that a step has put in flight between a follower and a leader."""
    for leader, (old, new) in enumerate(zip(before, after, strict=True)):
        # `is not` first: most messages are the same object as before.
        if old is not new and new is not None and old != new:
            yield f"sent         {message_text(follower, leader, new)}"


# ---------------------------------------------------------------------------------------------------------------------
# Violations and graphs


SENTENCES = {
    "HwWithinLog": "its high watermark lies outside its log",
    "LogMatchingBelowHw": "their logs differ below both high watermarks",
    "LeaderCompleteness": "it leads the current epoch and lacks committed records",
    "IsrCompleteness": "it is in the ISR and lacks committed records",
    "ElectableCompleteness": "it runs, may be elected and lacks committed records",
    "ElrIsApart": "it is eligible although it is in the ISR, or although the ISR is large enough",
    "ElectsWhomItCan": "it may be elected and nobody leads",
    "LeaderIsLive": "it leads and is fenced",
    "LastLeaderIsLast": "it is remembered as the last leader and somebody leads",
    "NoFalseExposure": "it shows records below its high watermark that were never committed",
    "IsrSuperset": "it does not count every member of the controller's ISR",
    "EpochCacheWellFormed": "its epoch cache is not what its records imply",
    "EpochsMonotone": "record epochs fall along its log",
    "AckedIsCommitted": "a producer was told that the record (offset, epoch) is safe, and it is not committed",
    "AckedCompleteness": "it may be elected and lacks the acknowledged record (offset, epoch)",
    "OnlyDeletedIsGone": "its log starts behind everything that was deleted",
    "NoHole": "records are missing behind its log start",
}


def violation_text(violation: Violation) -> str:
    """Format a violation in one line: invariant, brokers, expected, seen."""
    sentence = SENTENCES.get(violation.invariant, "it does not hold")
    return (
        f"{violation.invariant} VIOLATED at {broker_names(violation.brokers)}: {sentence}; "
        f"expected {list(violation.expected)}, seen {list(violation.seen)}"
    )


def run_text(counterexample: Counterexample[Cluster]) -> str:
    """Format a counterexample: the first state, every step with what it changed, the last state, the violation."""
    lines = [grid(counterexample.states[0]), ""]
    for number, label in enumerate(counterexample.labels, start=1):
        lines.append(f"{number:>2}  {label_text(label)}")
        lines += [f"      {line}" for line in step_changes(counterexample.states[number - 1], counterexample.states[number])]
    return "\n".join([*lines, "", grid(counterexample.states[-1]), "", violation_text(counterexample.violation)])


def graph_text(graph: Graph) -> str:
    """Format the size of an explored graph."""
    return f"{len(graph.states):,} states, {len(graph.edges):,} transitions, depth {graph.depth}"


def view_text(view: View) -> str:
    """Format a view of the cluster, a line per broker: for states from TLC, which are no `Cluster`.

    impl.explorer.spec_view says what the elements of a view are.
    """
    brokers, controller, committed, crashes, *more = view
    # Of a broker: `mark` is the epoch of a cache entry without records, `pending` the bit mask of the ISR that it proposes,
    # `remote` the log ends that it has recorded of the others, `slots` what is in flight between it and each leader.
    lines = []
    for b, (log, hw, mark, up, role_number, epoch, leader, isr, pending, remote, slots) in enumerate(brokers):
        # The epoch of each record, or x where it was deleted.
        records = " ".join("x" if record_epoch == UNDEFINED else str(record_epoch) for record_epoch in log) or "-"
        role_text = ROLES[role_number] if up else "down"
        recorded = " ".join(f"{broker_name(r)}@{end}" for r, end in enumerate(remote) if end != UNDEFINED) or "-"
        # A leader notes where its epoch begins before it has written anything in it (KAFKA-7415).
        begun = "" if mark == UNDEFINED else f"epoch {mark} begins at the log end, no record yet; "
        lines.append(
            f"{broker_name(b)} {role_text:<9} log={records} hw={hw} epoch={epoch} leader={broker_name(leader)} "
            f"isr={mask_names(isr)} pending={mask_names(pending)} recorded={recorded} {begun}in flight={_slots_text(slots)}"
        )
    # A model with ELR has four more elements.
    leader, epoch, isr, live, *with_elr = controller
    lines.append(f"controller   leader={broker_name(leader)} epoch={epoch} isr={mask_names(isr)} live={mask_names(live)}")
    if with_elr:
        elr, last, clean, reborn = with_elr
        lines[-1] += f" elr={mask_names(elr)} last={broker_name(last)} stopped cleanly={mask_names(clean)} reborn={reborn}"
    lines.append(f"committed    {' '.join(map(str, committed)) or '-'}  crashes={crashes}")
    # What only some models have: an int is the highest log start, a pair the clients, one tuple the requests given up.
    lines += [f"deleted      up to {start}" for start in more if isinstance(start, int)]
    match [part for part in more if isinstance(part, tuple)]:
        case [waiting, acked]:
            lines.append(f"clients      waiting={waiting} acknowledged={acked}")
        case [given_up]:
            lines.append(f"given up     {given_up}")
    return "\n".join(lines)


def _slots_text(slots: Sequence[tuple[Any, ...]]) -> str:
    """Format what is in flight between a follower and each leader, as views have it; "-" for nothing."""
    texts = (f"{broker_name(leader)}: {_slot_text(slot)}" for leader, slot in enumerate(slots) if slot)
    return "; ".join(texts) or "-"


def _slot_text(slot: tuple[Any, ...]) -> str:
    """Format a message as it stands in a view: (kind, epoch of the request, ..), kinds 1 to 6 as spec_view numbers them."""
    kind, epoch, *arguments = slot
    match (kind, *arguments):
        case (1, offset, last):
            text = f"fetch from offset {offset} after epoch {last}"
        case (2, offset, hw, epochs, *start):
            several = "s" if len(epochs) > 1 else ""
            records = (
                f"{len(epochs)} record{several} of epoch{several} {' '.join(map(str, epochs))}" if epochs else "no records"
            )
            text = f"data to offset {offset}: {records}, hw {hw}" + "".join(f", log start {at}" for at in start)
        case (3, offset, diverging, end):
            text = f"divergence to offset {offset}: epoch {diverging} ends at {end}"
        case (4, offset, earliest, latest):
            text = f"out of range to offset {offset}: the log is {earliest} to {latest}"
        case (5, requested):
            text = f"question where epoch {requested} ends"
        case (6, response_epoch, end):
            text = f"answer that epoch {response_epoch} ends at {end}"
        case _:
            text = str(tuple(arguments))
    return f"{text} (request of epoch {epoch})"


# Labels and states of the controller's model as text.


# By their numbers in views and labels: the process of a broker, its registration, what becomes of a failed log directory
# when its broker starts, and where the replica is.
PROCESSES = ("runs", "is stopping", "stopped in order", "died")
REGISTERED = ("not registered", "fenced", "unfenced")
STARTS = ("", " without the directory that failed", " while the directory is failed still")
PLACES = ("", ", its directory failed", ", in another directory")


def control_label_text(label: Label) -> str:
    """Format a label of the controller's model in words: the action with its arguments."""
    match label:
        case ("CatchUp" | "Expand" | "Shrink" | "Fence" | "FailDirectory" | "ShutDown" | "Unregister", b):
            return f"{label[0]} {broker_name(b)}"
        case ("Unfence", b, fails):
            return f"Unfence {broker_name(b)}" + (" reporting that its directory failed" if fails else "")
        case ("Die", b, kept):
            return f"Die {broker_name(b)}" + ("" if kept else " losing its disk")
        case ("Register", b, directory):
            return f"Register {broker_name(b)}{STARTS[directory]}"
        case ("Reassign", target):
            return f"Reassign to {broker_names(target)}"
        case ("Create", replicas):
            return f"Create on {broker_names(replicas)}"
        case ("SetElr", level):
            return f"SetElr {'on' if level else 'off'}"
        case ("SetMinIsr", value):
            return f"SetMinIsr {value}"
        case _:
            return str(label[0])


def control_view_text(view: View) -> str:
    """Format a view of the controller's model: a line for each broker, then the partition, then what was committed.

    impl.explorer.controller_model:control_view says what the elements are.
    """
    partition, brokers, logs, committed, stops, min_isr, known_min_isr, (listed, stale, elr) = view
    # `listed`: by broker, the partitions in the index of ELRs; `stale`: the bit mask of the brokers whose entry in it is of
    # a deleted topic. The elements of a broker are numbers, which PROCESSES, REGISTERED and PLACES put into words.
    lines = []
    for b, ((process, registered, stopping, place), log) in enumerate(zip(brokers, logs, strict=True)):
        index = f" index={listed[b]}" if listed[b] else ""
        stale_index = " index names a deleted topic" if stale >> b & 1 else ""
        broker_text = f"{PROCESSES[process]}, {REGISTERED[registered]}{' and shuts down' if stopping else ''}{PLACES[place]}"
        lines.append(f"{broker_name(b)} {broker_text} log={_records(log)}{index}{stale_index}")
    config = f"min_isr={min_isr}" + (f", {known_min_isr} as the leader knows" if known_min_isr != min_isr else "")
    lines.append(f"partition    {partition_text(partition)}; {config}")
    if not elr:
        lines.append("feature      eligible.leader.replicas.version=0")
    return "\n".join([*lines, f"committed    {_records(committed)}  stops={stops}"])


def _records(epochs: tuple[int, ...]) -> str:
    """Format a log: the leader epoch of each record, "-" for none."""
    return " ".join(map(str, epochs)) or "-"


def partition_text(partition: View) -> str:
    """Format the partition's registration as it stands in a view of the controller's model."""
    if not partition:
        return "deleted"
    replicas, adding, removing, isr, elr, last, leader, recovering, epoch, partition_epoch = partition
    text = (
        f"replicas={broker_names(replicas)} leader={broker_name(leader)} epoch={epoch} partition_epoch={partition_epoch} "
        f"isr={mask_names(isr)} elr={mask_names(elr)}"
    )
    changing = f" adding={mask_names(adding)} removing={mask_names(removing)}" if adding or removing else ""
    last_known = f" last={broker_names(last)}" if last else ""
    return text + changing + last_known + (" recovering" if recovering else "")


# Labels and states of ISR changes as text.


def isr_label_text(label: Label) -> str:
    """Format a label of the model of ISR changes in words: the action with its arguments."""
    match label:
        case ("HandleFetch", f, expand, lost):
            return f"HandleFetch of {broker_name(f)}" + (" proposing it for the ISR" if expand else "") + _lost(lost)
        case ("ShrinkIsr", removed):
            return f"ShrinkIsr without {mask_names(removed)}"
        case ("HandleAlterPartition", lost):
            return "HandleAlterPartition" + _lost(lost)
        case ("ReadMetadata", n):
            return f"ReadMetadata up to record {n} of those not read"
        case ("FenceBroker" | "RestartEmpty" | "LagLimitPasses", f):
            return f"{label[0]} {broker_name(f)}"
        case _:
            return str(label[0])


def _lost(lost: int) -> str:
    """Format the last argument of a label: 1 if the response is lost."""
    return ", the response is lost" if lost else ""


def _partition(isr: int, partition_epoch: int) -> str:
    """Format a registration as the model of ISR changes has it; `isr` is a bit mask."""
    return f"isr={mask_names(isr)} partition_epoch={partition_epoch}"


def isr_view_text(view: View) -> str:
    """Format a view of the model of ISR changes: a line for each broker, for the controller, for what is in flight.

    impl.explorer.isr_model:isr_view says what the elements are.
    """
    # `ends`, `epochs`: log end and broker epoch of each follower as the leader has recorded them; `images`: the
    # registrations that it has not read yet; `recent`: the bit mask of the followers that caught up lately.
    (end, hw, leader_isr, pending, ends, epochs), logs, incarnations, exchange, controller, images, committed, _, recent = (
        view
    )
    # Broker 0, b1, leads throughout; its followers are numbered from 1.
    lines = [
        f"b1 leader    leo={end} hw={hw} {_partition(*leader_isr)} proposed={mask_names(pending)} committed={committed}"
    ]
    for f, (log, incarnation, recorded, epoch) in enumerate(zip(logs, incarnations, ends, epochs, strict=True), start=1):
        late = " caught up within the lag limit" if recent >> f & 1 else ""
        lines.append(
            f"{broker_name(f)} follower  leo={log} broker_epoch={incarnation}; the leader recorded leo={recorded} "
            f"broker_epoch={epoch}{late}"
        )
    lines.append(f"controller   {_partition(*controller)}")
    lines += [f"not read     {_partition(*image)}" for image in images]
    return "\n".join([*lines, f"under way    {_exchange(exchange)}"])


def _exchange(exchange: View) -> str:
    """Format what is in flight between leader and controller: 1 is a request, 2 a response, 3 a refusal, () nothing."""
    match exchange:
        case (1, isr, partition_epoch, epochs):
            return f"AlterPartition {_partition(isr, partition_epoch)} broker_epochs={epochs}"
        case (2, isr, partition_epoch, proposed):
            return f"answer to {mask_names(proposed)}: {_partition(isr, partition_epoch)}"
        case (3, proposed):
            return f"answer to {mask_names(proposed)}: INELIGIBLE_REPLICA"
        case _:
            return "nothing"
