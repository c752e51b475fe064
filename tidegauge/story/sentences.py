"""A story in words: a headline of what was lost, a sentence per partition that had something happen, the entries in order.

Rules of this file

1. What is in the first lines answers the question: did I lose data, which offsets, because of what, is it allowed.
2. A sentence says what an entry says, and no more; where a size is not known it says so.
3. Text of the input goes through `visible`.

Most functions return a piece of a sentence, which its caller puts together: such a piece begins with its comma or blank, and
is "" where there is nothing to say. `who` is what the sentence calls the node of an entry: "broker 1", "a node". `fields`
are those of the entry, by its kind; None in them is unknown, and `times` is how often the same happened in a row. `marks` of
an entry are notes of the code that read the lines. A *missing line* is what would tell what is left open.
"""

import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from tidegauge.story.advice import missing_sequence, step_for_process, without_leader
from tidegauge.story.losses import BELOW, BROKEN, DISK, NEVER, UNCLEAN, Loss, end_of_lost_log
from tidegauge.story.state import AN_ERROR, NO_LEADER, UNANNOUNCED, StoryEntry
from tidegauge.story.story import PASSING, Story, happened
from tidegauge.traces.kafka_logs.discovery.identify import SYSTEMS
from tidegauge.traces.problems import counted
from tidegauge.util.untrusted_text import visible

NO_LOSS = "No loss of data is told by these logs."
ALL_IN_SYNC = "Every partition that is described has a leader, and all of its replicas in sync."
_ORDINARY = {
    **dict.fromkeys(("start", "loaded", "broker_unfenced", "metadata_empty"), "starts"),
    "stop": "stops",
    "topic_created": "creations",
    **dict.fromkeys(("described", "segment_dumped", "metadata_dumped", "quorum_status"), "descriptions"),
    **dict.fromkeys(
        ("leader", "follower", "role_kept", "elected", "epoch_began", "truncated", "isr_changed", "controller", "quorum"),
        "leader changes",
    ),
    "metadata_behind": "waits for the quorum",
    **dict.fromkeys(("retention", "segments_deleted"), "retention"),
    "log_deleted": "deletions",
    "reassignment": "reassignments",
}
"""Kinds that may be of nothing but the ordinary, and what a sentence calls them."""
_SENTENCE_END = re.compile(r"\. (?=[A-Z])")
_OTHERS = {
    "Redpanda": "its replicas follow Raft, and what they print is not read",
    "AutoMQ": "what it prints of its own, of logs in shared storage, is not read",
}
"""Systems of which a story may have nothing to tell, and why."""
MOST_LINES = 5
"""Lines of a headline that ordinary refusals may fill."""
MOST_LOSSES = 5
MOST_PARTITIONS = 12
MOST_EVENTS = 4
LONGEST_REASON = 240
"""Characters of an error in a sentence."""
MOST_NAMES = 6
"""Partitions that are named of those of which the same is said."""
_SOURCE = re.compile(r" \([^()]*:\d+\)$")
"""The file and the line that a step rests on."""
_FIGURE = re.compile(r"\d{2}|\b[\w\-]{22}\b")

_WHY = {
    UNCLEAN: "by an unclean election",
    DISK: "because a disk, or a log directory, was lost",
    BELOW: "by a truncation below the high watermark",
    NEVER: "because they were not replicated when their leader stopped leading",
    BROKEN: "by a truncation, against what a leader had promised",
}


def headline(story: Story, *, judged: bool = False, failures: int = 0) -> list[str]:
    """Return the first lines: the losses, the worst first; known bugs; what happened to each partition.

    `judged`: a verdict is printed beside it, which speaks for partitions that nothing happened to. `failures`: how many
    rules failed in that; then it says nothing of a loss that the lines do not show.
    """
    lines = [visible(line) for line in (*_losses(story), *_bugs(story), *_partitions(story))]
    if not story.losses and any(map(happened, story.entries)) and not failures:
        lines[0:0] = [visible(_undecided_loss(story)) or NO_LOSS, *_last_descriptions(story)]
    if not lines and story.entries and not judged:
        lines.append(_nothing_happened(story))
        lines += map(visible, unread_errors(story))
        lines += map(visible, _asides(story))
    elif lines and not judged:
        # The state of the quorum, and refusals that pass, are told only while there is room.
        states = [
            f"{entry_sentence(entry)}." for entry in story.entries if entry.kind == "quorum_status" and not happened(entry)
        ]
        lines += [visible(line) for line in (*states, *_refusals(story))][: max(0, MOST_LINES - len(lines))]
    return lines


def _nothing_happened(story: Story) -> str:
    """Return the first sentence of a story in which nothing is out of the ordinary, with what is told."""
    kinds = {entry.kind for entry in story.entries}
    if kinds == {"described"}:
        return ALL_IN_SYNC
    # What passes by itself, or a broker that left, is not ordinary: it is told in the next sentences.
    if not kinds <= _ORDINARY.keys():
        return NO_LOSS
    words = list(dict.fromkeys(word for kind, word in _ORDINARY.items() if kind in kinds))
    listed = f"{', '.join(words[:-1])} and {words[-1]}" if len(words) > 1 else words[0]
    number = f"{counted(len(story.entries), 'event')} of {counted(len(story.of_partitions()), 'partition')}"
    return f"Nothing out of the ordinary is told: {number}, all of ordinary {listed}."


def _last_descriptions(story: Story) -> Iterator[str]:
    """Yield how partitions are by their last descriptions, if all of them are in sync there and were not before."""
    described = [entry for entry in story.entries if entry.kind == "described"]
    last = [entry for entry in described if "past" not in entry.marks]
    # A partition whose last description has no leader has an election of none there.
    if any(without_leader(entries) is not None for entries in story.of_partitions().values()):
        return
    if len(last) < len(described) and last and not any(map(happened, last)):
        yield f"{ALL_IN_SYNC.removesuffix('.')}, by its last description; what follows was before."


def _asides(story: Story) -> Iterator[str]:
    """Yield sentences on what looks bad in the lines and is part of ordinary starts and leader changes."""
    of_kind: dict[str, list[StoryEntry]] = defaultdict(list)
    for entry in story.entries:
        of_kind[entry.kind].append(entry)
    # Starts after an unclean stop.
    unclean = [entry for entry in of_kind["start"] if entry.fields["clean"] is False]
    yield from _first(unclean, " No line says that records were cut.")
    # Nodes that waited for the KRaft quorum (mark `ended`: no longer), and what --describe --status says of that.
    quiet = [
        entry
        for entry in story.entries
        if entry.kind == "quorum_status" or (entry.kind == "metadata_behind" and "ended" not in entry.marks)
    ]
    for entry in quiet[:MOST_EVENTS]:
        waits = " Every start prints that until the quorum has a leader; it is a fault where it goes on."
        yield from _first([entry], waits if "times" in entry.fields else "")
    yield from _first(of_kind["broker_left"])
    yield from _first(of_kind["controller_conflict"], " Where it goes on, restart that broker; no record is lost by it.")
    # Controllers that resigned, and nodes that led the quorum or knew no leader.
    resigned = [
        entry
        for entry in story.entries
        if (entry.kind == "controller" and not entry.fields["active"])
        or (entry.kind == "quorum" and entry.fields["leader"] in (None, entry.node) and entry.node is not None)
    ]
    yield from _first(resigned, " No record is lost by that.")
    yield from _first(
        of_kind["metadata_empty"],
        " That is the first start of a new cluster; of one that had topics, its metadata is gone: see that the right volume "
        "is mounted, and format nothing.",
    )
    yield from _first(of_kind["segment_dumped"])
    yield from _first(of_kind["metadata_dumped"])
    yield from _created(story)
    # Where nothing else is told, what goes on as it should is an answer, too.
    if all(entry.kind == "role_kept" for entry in story.entries):
        yield from _first(of_kind["role_kept"])
    yield from _first(of_kind["retention"])
    yield from _first(of_kind["segments_deleted"])
    completed = sorted({str(entry.partition) for entry in of_kind["reassignment"]})
    if completed:
        yield f"{_names(completed)}: {'its reassignment' if len(completed) == 1 else 'their reassignments'} completed."
    yield from _refusals(story)


def _first(entries: Sequence[StoryEntry], more: str = "") -> Iterator[str]:
    """Yield the sentence of each of the first MOST_EVENTS entries, and `more` behind it."""
    for entry in entries[:MOST_EVENTS]:
        yield f"{f'{entry.partition}: ' if entry.partition else ''}{entry_sentence(entry)}.{more}"


def _created(story: Story) -> Iterator[str]:
    """Yield sentences on topics that a dump creates of which no record of a partition is there, as behind a grep."""
    with_partitions = {name.rpartition("-")[0] for name in story.of_partitions()}
    created = [entry for entry in story.entries if entry.kind == "topic_created"]
    yield from (
        f"{entry_sentence(entry)}. Its partitions and leaders are in other records: give the whole dump."
        for entry in created[:MOST_EVENTS]
        if entry.fields["topic"] not in with_partitions
    )


def unread_errors(story: Story) -> Iterator[str]:
    """Yield a sentence if there are errors of a node that no row of statements.py is about: their meaning is unknown."""
    files = [file for file in story.files if file.unread_errors]
    if files:
        (number, text), count = files[0].unread_error, sum(file.unread_errors for file in files)
        first = _first_sentence(text.strip(" ]-"))[:LONGEST_REASON]
        yield f"Not known here: {counted(count, 'error')} of a node; the first: {first} [{files[0].label}:{number}]"


def _refusals(story: Story) -> Iterator[str]:
    """Yield sentences on refusals between nodes that pass by themselves (PASSING), one for each node and error."""
    refused: dict[tuple[int | None, str], list[StoryEntry]] = defaultdict(list)
    for entry in story.entries:
        # `told`: the first entry about that lost leader speaks for this one (Fetchers.lost_leaders).
        if not happened(entry) and entry.kind in PASSING and "told" not in entry.marks:
            refused[entry.node, str(entry.fields.get("error", entry.kind)).partition(":")[0]].append(entry)
    for entries in list(refused.values())[:MOST_EVENTS]:
        more = f"; and {len(entries) - 1:,} more such" if len(entries) > 1 else ""
        name = f"{entries[0].partition}: " if entries[0].partition else ""
        # No line that was read names the error: the exception stands behind the line, and a grep leaves it out.
        more += ", and the line behind it says which" if entries[0].fields.get("error") == AN_ERROR else ""
        if entries[0].kind == "not_leader":
            more += ": it took nothing, and whoever asked looks for the leader and asks again"
        # A connection is lost to a node; a refusal is about a partition.
        lost = entries[0].kind in ("unreachable", "disconnected")
        passing = "a broker restarts" if lost else "a broker restarts, a leader changes or a topic is made"
        yield f"{name}{entry_sentence(entries[0])}{more}. That passes while {passing}; it is a fault where it goes on."


def _losses(story: Story) -> Iterator[str]:
    """Yield a sentence for each loss, committed and large ones first, each with what to do about it."""
    order = {"yes": 0, "unknown": 1, "no": 2}
    worst = sorted(story.losses, key=lambda loss: (order[loss.committed], -loss.at_least))
    for loss in worst[:MOST_LOSSES]:
        yield loss_sentence(loss)
        if loss.do is not None and (loss.missing_line is None or loss.missing_line not in loss.do):
            yield f"  Do: {loss.do}."
    if len(worst) > MOST_LOSSES:
        yield f"... and {len(worst) - MOST_LOSSES:,} more losses; --json has all of them."


class _Open(NamedTuple):
    """An entry that leaves open whether records were lost, and which line would tell; the least one leaves it open most.

    `rank` is that of _left_open; `internal`: the partition is of one of Kafka's own topics.
    """

    rank: int
    internal: bool
    order: int
    partition: str
    entry: StoryEntry
    missing_line: str


def _open_entries(story: Story) -> Iterator[_Open]:
    """Yield the entries of all partitions that leave open whether records were lost."""
    for name, entries in story.of_partitions().items():
        # `kept`: a truncation that removed nothing.
        kinds = {(entry.kind if entry.fields.get("relation") != "no effect" else "kept", entry.node) for entry in entries}
        led = {entry.fields["leader_epoch"]: entry.fields["offset"] for entry in entries if entry.kind == "leader"}
        # The ISR by the entries so far.
        isr: list[int] | None = None
        for entry in entries:
            rank, missing_line = _left_open(name, entry, kinds, led)
            # What the only replica in sync had is nowhere else: no other one has to truncate, so no line counts it.
            if entry.kind == "replica_lost" and isr == [entry.node]:
                rank, missing_line = 0, end_of_lost_log(entry.node)
            changed = entry.fields.get("to" if entry.kind == "isr_changed" else "isr")
            isr = changed if isinstance(changed, list) else isr
            if missing_line:
                yield _Open(rank, name.startswith("__"), entry.order, name, entry, missing_line)


def undecided_partitions(story: Story) -> set[str]:
    """Return the partitions of which the lines leave open whether records were lost."""
    return {open_entry.partition for open_entry in _open_entries(story)}


def _undecided_loss(story: Story) -> str:
    """Return a sentence on what may have cost records, and the line that would tell; "" if no entry leaves that open."""
    open_entries = list(_open_entries(story))
    if not open_entries:
        return ""
    worst = min(open_entries, key=lambda open_entry: open_entry[:3])
    others = len(open_entries) - 1
    more = f" ({others:,} more such {'entry' if others == 1 else 'entries'})" if others else ""
    says = f"{worst.partition}: {entry_sentence(worst.entry)}{more}"
    return f"Whether data was lost, these lines do not tell: {says}. What would: {worst.missing_line}."


def _left_open(name: str, entry: StoryEntry, kinds: Set[tuple[str, int | None]], led: Mapping[int, int]) -> tuple[int, str]:
    """Return how much an entry of partition `name` leaves open whether records were lost, and which lines would tell.

    How much is a rank, 0 the most; the lines are "" where the entry leaves nothing open. `kinds` are those of the
    partition's entries, with their nodes, `kept` where a truncation removed nothing; `led` has the first offset of each
    epoch that a leader's own line tells.
    """
    fields, who = entry.fields, "that broker" if entry.node is None else f"broker {entry.node}"
    ends = f"`Follower {name} starts at ..` (state-change.log) or `Completed load of ..` (server.log)"
    # An unclean election: the offsets between where its leader began and where another log ended.
    if entry.kind == "elected" and (fields["clean"] is False or "called unclean" in entry.marks):
        epoch, leader = fields["leader_epoch"], fields["leader"]
        others = any(kind in ("leader", "follower", "loaded") and node != leader for kind, node in kinds)
        begins = f"the line `{name} starts at leader epoch {epoch} from offset ..` of broker {leader}"
        wanted = [
            *([] if epoch in led else [begins]),
            *([] if others else [f"where the log of another replica ended: {ends}"]),
        ]
        return 0, ", and ".join(wanted)
    if entry.kind == "elected" and "past" in entry.marks and "replicas" in fields:
        return 0, f"which of its replicas led next, and where the logs of the others ended: {ends}"
    if entry.kind == "high_watermark_fell":
        truncated = ("truncated", entry.node) in kinds or ("reset", entry.node) in kinds
        if not truncated and ("kept", entry.node) in kinds:
            # It removed nothing, so it follows a leader whose high watermark was behind, or whose log was shorter. A leader
            # that began at or above the high watermark had all of it.
            line = f"the line `{name} starts at leader epoch ..` of the broker that it follows: where its log ended"
            return 1, "" if any(offset >= fields["from"] for offset in led.values()) else line
        return 1, "" if truncated else f"the lines `Truncating ..` of {who} just before it, and {ends}"
    # `diverged`: a consumer found another log than the one that it had read.
    if entry.kind == "reset" and "diverged" in entry.marks:
        return 1, f"where the log of each broker that led {name} began and ended: {ends}"
    if entry.kind == "reset" and fields["from"] is not None and fields["to"] is not None and "by" not in fields:
        # It went back: to the end of its leader's log, or, to 0.8, to the start of all that the leader has.
        open_end = fields["to"] < fields["from"] and "start" not in entry.marks and ("truncated", entry.node) not in kinds
        line = f"the lines `reset its fetch offset ..` and `Truncating ..` of {who}, and where the log of its leader ended"
        return 1, line if open_end else ""
    sequence = missing_sequence(entry)
    if sequence is not None:
        return 1, f"whether the leader before had the records of producer {sequence.producer} that are missing: {ends}"
    if entry.kind == "gap":
        topic = name.rpartition("-")[0]
        return (
            1,
            f"whether {topic} is compacted, which makes gaps (kafka-configs --describe --topic {topic}); no leader does",
        )
    if entry.kind == "process_failed" and "ahead of its leader" in entry.marks:
        return 1, "why the log of its leader ends there: its lines `Completed load of ..` and `Truncating ..`"
    # Not one to the own high watermark, nor a reset, whose own lines tell more.
    if entry.kind == "truncated" and fields["relation"] == "unknown" and entry.basis in ("", "untold", "epoch"):
        return 2, f"where the log of {who} ended before: {ends}"
    return 3, ""


def loss_sentence(loss: Loss) -> str:
    """Return the sentence on a loss: what was lost, by what, when, whether Kafka allows that, and what would tell more."""
    kind = {"yes": "committed record", "no": "never committed record", "unknown": "record"}[loss.committed]
    if loss.records is None:
        what = f"at least {counted(loss.at_least, kind)} of {loss.partition}{_where(loss)}"
    else:
        # Where a line is missing that would tell the size, this is the least. Of a lost disk it is what others had: no more
        # was committed, though acks=1 may have acknowledged more.
        least = "at least " if loss.missing_line is not None and loss.why != DISK else ""
        span = f"offset {loss.first}" if loss.records == 1 else f"{loss.first} to {(loss.end or 0) - 1}"
        what = f"{least}{counted(loss.records, kind)} of {loss.partition} ({span}){_where(loss)}"
    why = _WHY.get(loss.why, "by a truncation")
    at = f" at {loss.time}" if loss.time else ""
    allowed = {
        True: " Kafka allows that.",
        False: " Kafka does not allow that.",
        None: " Whether Kafka allows that, these lines do not tell.",
    }
    beginning = {
        "yes": "Data was lost" if not loss.copies else "Data was removed from a replica",
        "no": "Records were dropped",
        "unknown": "Records were removed",
    }[loss.committed]
    open_end = "whether more was lost" if loss.why == DISK and loss.records is not None else "the size"
    size = f" What would tell {open_end}: {loss.missing_line}." if loss.missing_line is not None else ""
    return f"{beginning}: {what}, {why}{at}.{allowed[loss.allowed]}{size} [{', '.join(loss.sources[:3])}]"


def _where(loss: Loss) -> str:
    """Return from which brokers records are gone, behind a comma."""
    if not loss.nodes:
        return ""
    nodes = loss.nodes
    return f", from broker {nodes[0]}" if len(nodes) == 1 else f", from brokers {', '.join(map(str, nodes))}"


def _bugs(story: Story) -> Iterator[str]:
    """Yield a sentence for each known bug that the lines look like, with what to do."""
    for bug in story.bugs:
        fixed = f", fixed in {bug.fixed_in}" if bug.fixed_in else ""
        yield f"Looks like {bug.bug}{fixed}: {bug.says} Do: {bug.do}. [{', '.join(bug.sources[:2])}]"


def _partitions(story: Story) -> Iterator[str]:
    """Yield a sentence for each partition or node to which something out of the ordinary happened, with the steps."""
    # A step that several partitions need is given once.
    eventful, given_steps = eventful_partitions(story), set[str]()
    # Partitions of which the same is to be said are named together: a broker that is away leaves many without a leader. The
    # same is the sentence and the steps, without the lines that these rest on.
    alike: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for name, events in eventful:
        more = f"; and {len(events) - MOST_EVENTS} more" if len(events) > MOST_EVENTS else ""
        says = f"{'; '.join(entry_sentence(entry) for entry in _telling(events))}{more}."
        alike[says, *(_SOURCE.sub("", step) for step in story.steps.get(name, ()))].append(name)
    # One of a partition is told with that.
    for entry in story.entries:
        if "lost_by" in entry.fields and entry.partition is None:
            yield from _with_step(entry)
    by_name = story.of_partitions()
    leaderless = [name for name, _ in eventful if without_leader(by_name[name]) is not None]
    if len(leaderless) > 1 < sum(names[0] in leaderless for names in alike.values()):
        yield f"Nobody leads {len(leaderless):,} partitions: {_numbers(leaderless)}."
    for (says, *_), names in list(alike.items())[:MOST_PARTITIONS]:
        yield f"{_names(names)}: {says}"
        steps = [step for step in story.steps.get(names[0], ()) if step not in given_steps]
        yield from (f"  Do: {step}." for step in steps)
        given_steps.update(steps)
    untold = sum(map(len, list(alike.values())[MOST_PARTITIONS:]))
    if untold:
        yield f"... and {untold:,} more partitions; `tidegauge story` lists all of them."
    process = [
        entry
        for entry in story.entries
        if entry.partition is None and happened(entry) and "lost_by" not in entry.fields and "told" not in entry.marks
    ]
    # What goes on for long has many entries, and does not say why.
    process.sort(key=lambda entry: entry.kind in ("quorum", "unreachable", "broker_left", "session_expired"))
    for entry in process[:MOST_EVENTS]:
        yield from _with_step(entry)


def _with_step(entry: StoryEntry) -> Iterator[str]:
    """Yield the sentence of an entry of a node, and what to do about it if that is known."""
    yield f"{entry_sentence(entry)}."
    if (step := step_for_process(entry)) is not None:
        yield f"  Do: {step}."


def _numbers(names: Sequence[str]) -> str:
    """Return partitions as their topics with the numbers, the first MOST_NAMES topics."""
    numbers: dict[str, list[str]] = defaultdict(list)
    for name in names:
        topic, _, number = name.rpartition("-")
        numbers[topic].append(number)
    others = f"; and {len(numbers) - MOST_NAMES:,} more topics" if len(numbers) > MOST_NAMES else ""
    listed = "; ".join(
        f"{topic} {', '.join(of_topic[:100])}{' and more' if len(of_topic) > 100 else ''}"
        for topic, of_topic in list(numbers.items())[:MOST_NAMES]
    )
    return f"{listed}{others}"


def _names(names: Sequence[str]) -> str:
    """Return the names of partitions, the first MOST_NAMES of them."""
    others = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"{', '.join(names[:MOST_NAMES])}{others}"


def eventful_partitions(story: Story) -> list[tuple[str, list[StoryEntry]]]:
    """Return the partitions to which something out of the ordinary happened, with these entries.

    Those with losses come first, then those without a leader, Kafka's own topics last.
    """
    lossy = {loss.partition for loss in story.losses}
    by_name = story.of_partitions()
    eventful = [
        (name, events) for name, entries in by_name.items() if (events := [entry for entry in entries if happened(entry)])
    ]
    # A partition that nobody leads comes before those of which a replica is away.
    return sorted(
        eventful,
        key=lambda pair: (pair[0] not in lossy, without_leader(by_name[pair[0]]) is None, pair[0].startswith("__")),
    )


def _telling(events: Sequence[StoryEntry]) -> Sequence[StoryEntry]:
    """Return the MOST_EVENTS entries that tell most, by their kinds; they come, and stay, in order of time."""
    # By kind, 0 tells most; kinds that are not here tell least.
    weight = {
        "elected": 0,
        "truncated": 0,
        "process_failed": 0,
        "replica_lost": 0,
        "append_refused": 1,
        "fetcher_failed": 1,
        "reset": 1,
        "corrupt": 0,
        "segments_missing": 0,
        "stray": 0,
        "records_deleted": 1,
        "topic_id_mismatch": 1,
    }
    chosen = sorted(range(len(events)), key=lambda at: (weight.get(events[at].kind, 2), at))[:MOST_EVENTS]
    return [events[at] for at in sorted(chosen)]


_OF_ANY_NODE = frozenset(
    {"controller", "voter_mismatch", "quorum", "unreachable", "metadata_behind", "migration", "thread_died"}
    | {"controller_overloaded", "disconnected"}
    | {"metadata_empty", "api_versions_failed"}
)
"""Kinds that a controller of KRaft tells of itself as a broker does."""


def entry_sentence(entry: StoryEntry) -> str:
    """Return what an entry says as a sentence, with its time, without a period."""
    of_any_node = entry.kind in _OF_ANY_NODE or "any node" in entry.marks
    role = "node" if of_any_node else "broker"
    who = f"{role} {entry.node}" if entry.node is not None else f"a {role}"
    at = f"{entry.time} " if entry.time else ""
    return at + _SENTENCES[entry.kind](_Subject(entry, who))


class _Subject(NamedTuple):
    """An entry, and what a sentence calls its node."""

    entry: StoryEntry
    who: str

    @property
    def fields(self) -> dict[str, Any]:
        """The fields of the entry."""
        return self.entry.fields


_SENTENCES: Mapping[str, Callable[[_Subject], str]] = {
    "start": lambda e: (
        f"{e.who} {'started' if 'started' in e.entry.marks else 'began to start'}{_clean(e.fields['clean'])}"
        + (" and made index files anew, by which nothing is lost" if "indexes_rebuilt" in e.fields else "")
    ),
    "session_expired": lambda e: (
        f"{'a client of ZooKeeper' if 'any client' in e.entry.marks else e.who} lost its session with ZooKeeper"
        + (
            f"; near that a full garbage collection took {e.fields['pause']:,} ms, and a session ends after "
            f"{e.fields['timeout']:,}"
            if "pause" in e.fields
            else ""
        )
    ),
    "epoch_began": lambda e: f"epoch {e.fields['leader_epoch']} began at {e.fields['offset']} in the log of {e.who}",
    "not_deleted": lambda e: (
        f"{e.who} could not delete the files of a deleted topic{_times(e.fields)}" + _because(e.fields["error"])
    ),
    "leaders_not_moved": lambda e: f"{e.who} stopped before its leaders were moved to others" + _because(e.fields["error"]),
    "migration": lambda e: f"{e.who} waited for brokers to register, of which KRaft knew none{_times(e.fields)}",
    "request_failed": lambda e: (
        f"{e.who} could not do {'its task ' + e.fields['task'] if 'task' in e.fields else 'what it was asked for'}: "
        f"{_first_sentence(e.fields['error'])}"
    ),
    "thread_died": lambda e: (
        f"the thread {e.fields['thread']} of {e.who} died: {_first_sentence(e.fields['error'] or 'no line says why')}"
    ),
    "metadata_behind": lambda e: (
        f"{e.who} waited for the KRaft quorum: it did not know how far the metadata goes{_times(e.fields)}"
    ),
    "quorum_status": lambda e: (
        ("the KRaft quorum had no leader" if e.fields["leader"] < 0 else f"node {e.fields['leader']} led the KRaft quorum")
        + (f" in epoch {e.fields['leader_epoch']}" if e.fields["leader_epoch"] is not None else "")
        + (f", followers {e.fields['followers']}" if e.fields.get("followers") else "")
        + (f", and the follower farthest behind lacked {e.fields['lag']} records" if e.fields["lag"] is not None else "")
    ),
    "described": lambda e: _described(e.entry),
    "reassignment": lambda e: f"its reassignment is {e.fields['state']}",
    "fetch_refused": lambda e: (
        f"{_several(e)} got no records from {_leader(e.fields['leader'])}: {_first_sentence(e.fields['error'])}"
        f"{_times(e.fields)}"
        + ("; that said its log ends below 0, and nothing was cut" if "to a negative offset" in e.fields["error"] else "")
    ),
    "read_failed": lambda e: (
        f"{e.who} could not read its log at offset {e.fields['offset']} for {e.fields['by']}"
        f"{_because(e.fields['error'])}{_times(e.fields)}"
    ),
    "segments_deleted": lambda e: (
        f"{e.who} deleted the segments that begin at {', '.join(map(str, e.fields['segments'][:MOST_NAMES]))}"
        f"{' and later ones' if len(e.fields['segments']) > MOST_NAMES else ''}, as retention and compaction do"
    ),
    "controller_conflict": lambda e: (
        f"{e.who} tried to become the controller, which broker {e.fields['active']} is{_times(e.fields)}"
        + ("; it takes the node of that in ZooKeeper for its own, and tries again" if "waits" in e.entry.marks else "")
    ),
    "gap": lambda e: f"the dump of a segment lacks {e.fields['first']} to {e.fields['end'] - 1}",
    "not_assigned": lambda e: (
        f"{e.who} leads, and sent no records to broker {e.fields['replica']}, which is none of its replicas "
        f"{e.fields['replicas']}{_times(e.fields)}"
    ),
    "not_leader": lambda e: f"{e.who} was asked as the leader, which it was not{_times(e.fields)}",
    "out_of_range": lambda e: f"{e.who} was asked for offset {e.fields['offset']}, {_beyond(e.fields)}{_times(e.fields)}",
    "voter_mismatch": lambda e: (
        f"{e.who} did not vote: a candidate has it as the voter of directory {e.fields['voter']}, and its own is "
        f"{e.fields['own']}{_times(e.fields)}"
    ),
    "quorum": lambda e: _quorum(e.entry, e.who),
    "unreachable": lambda e: f"{e.who} could not reach {_peer(e.fields)}{_times(e.fields)}",
    "disconnected": lambda e: f"{e.who} lost its connection to {_peer(e.fields)}{_times(e.fields)}",
    "not_registered": lambda e: (
        f"the controller has another registration of {e.who}, or none: "
        f"{e.fields['error']}{_epochs(e.fields)}{_times(e.fields)}"
        if "times" in e.fields
        else f"{e.who} could not register with ZooKeeper: {e.fields['error']}"
    ),
    "not_controller": lambda e: (
        f"a controller was asked that is not the active one{_active(e.fields['active'])}{_times(e.fields)}"
    ),
    "no_other_leader": lambda e: (
        "the controller could not move the leader off a broker that stops: "
        + (
            f"no other replica of the ISR {e.fields['isr']} is alive"
            if len(e.fields["isr"] or ()) > 1
            else f"no other replica is in sync{_isr(e.fields['isr'])}"
        )
        + _times(e.fields)
    ),
    "produce_refused": lambda e: (
        f"{e.who} did not take records of producers: {_first_sentence(e.fields['error'] or 'no line says why')}"
        f"{_times(e.fields)}{_missing(e.entry)}"
    ),
    "stop": lambda e: (
        f"{e.who} "
        + (
            "shut down, as its start had failed"
            if "never ran" in e.entry.marks
            else "stopped cleanly"
            if e.fields["clean"]
            else "began to stop"
        )
    ),
    "segment_dumped": lambda e: (
        f"the dump of its segment {e.fields['segment']} has {e.fields['first']} to {e.fields['last']}, "
        f"and {'its batch is valid' if e.fields['batches'] == 1 else 'all of its batches are valid, without a gap'}"
    ),
    "metadata_empty": lambda e: f"{e.who} found its metadata log empty, and began a new one",
    "broker_unfenced": lambda e: f"{e.who} is unfenced: the controller lets it serve",
    "api_versions_failed": lambda e: (
        f"{e.who} was answered {e.fields['error']} by node {e.fields['peer']}{_times(e.fields)}"
    ),
    "too_few_brokers": lambda e: (
        f"a topic was not made: it was to have {counted(e.fields['wanted'], 'replica')}, and "
        f"{counted(e.fields['brokers'], 'broker')} {'was' if e.fields['brokers'] == 1 else 'were'} registered"
        f"{_times(e.fields)}"
    ),
    "loaded": lambda e: (
        f"{e.who} loaded the log, which ended at {e.fields['log_end']}{_watermark(e.fields['high_watermark'])}"
    ),
    "leader": lambda e: (
        f"{e.who} led epoch {e.fields['leader_epoch']} from offset {e.fields['offset']}"
        f"{_watermark(e.fields['high_watermark'])}{_isr(e.fields['isr'])}"
    ),
    "follower": lambda e: (
        f"{e.who} followed {_leader(e.fields['leader'])} in epoch {e.fields['leader_epoch']} "
        f"from offset {e.fields['offset']}{_watermark(e.fields['high_watermark'])}"
    ),
    "elected": lambda e: (
        _election(e.fields)
        + (", as its topic was deleted" if "deletion" in e.entry.marks else "")
        + (", which its line calls UNCLEAN" if e.fields["clean"] is None and "called unclean" in e.entry.marks else "")
        + (
            f"; its replicas went from {e.fields['replicas_before']} to {e.fields['replicas_after']} in the same line"
            if "replicas_after" in e.fields
            else ""
        )
    ),
    "truncated": lambda e: _truncation(e.entry, e.who),
    "high_watermark_fell": lambda e: f"the high watermark of {e.who} fell from {e.fields['from']} to {e.fields['to']}",
    "isr_changed": lambda e: _isr_change(e.entry, e.who),
    "fetcher_failed": lambda e: (
        f"the fetcher of {e.who} failed{_at_offset(e.fields['offset'])}" + _because(e.fields["error"])
    ),
    "append_refused": lambda e: (
        f"{e.who} refused records from {e.fields['first_offset']} on, where {e.fields['expected_offset']} was expected"
    ),
    "corrupt": lambda e: (
        f"{e.fields.get('by') or e.who} found invalid records{_at_offset(e.fields['offset'])}{_times(e.fields)}"
    ),
    "uncleanable": lambda e: f"{e.who} compacts it no more: {_first_sentence(e.fields['error'] or 'no line says why')}",
    "reset": lambda e: _reset(e.entry, e.who),
    "epoch_refused": lambda e: (
        f"{e.who} was refused with {e.fields['error']}"
        + (f" by broker {e.fields['leader']}" if e.fields["leader"] is not None else "")
        + _times(e.fields)
    ),
    "directory_failed": lambda e: (
        f"the log directory {e.fields['directory']} of {e.who} failed"
        + _because(e.fields.get("error"))
        + ("; its partitions are offline there, those of other directories are not" if "given up" in e.entry.marks else "")
    ),
    "replica_lost": lambda e: f"{e.who} started without its log: {e.fields['directory']} was made anew",
    "segments_missing": lambda e: (
        f"segments of {e.who} were missing: its log ended at {e.fields['log_end']}, below its start "
        f"{e.fields['log_start']}, and was emptied"
    ),
    "records_deleted": lambda e: f"a client had the records below {e.fields['to']} deleted, says {e.who}",
    "retention": lambda e: f"{e.who} removed the records below {e.fields['to']}: {_limit(e.fields.get('limit'))}",
    "stray": lambda e: (
        f"{e.who} took its log for a stray and renamed it for deletion"
        + (f": {e.fields['reason']}" if e.fields["reason"] else "")
    ),
    "epochs_conflict": lambda e: f"{e.who} was given leader epochs out of order{_times(e.fields)}",
    "topic_id_mismatch": lambda e: (
        f"{e.who} has the log of topic id {e.fields['topic_id']} and was sent {e.fields['received']}{_times(e.fields)}"
    ),
    "role_kept": lambda e: (
        f"{e.who} went on to follow {_leader(e.fields['leader'])} in epoch {e.fields['leader_epoch']}{_isr(e.fields['isr'])}"
    ),
    "remote_read_failed": lambda e: (
        f"{e.who} could not begin to follow {_leader(e.fields['leader'])}, as it did not get from remote storage what it "
        f"needs{' of the offsets below ' + str(e.fields['offset']) if e.fields['offset'] is not None else ''}"
        f"{_because(e.fields['error'])}{_times(e.fields)}"
    ),
    "remote_copy_failed": lambda e: (
        f"{e.who} could not copy segments to remote storage{_because(e.fields['error'])}{_times(e.fields)}"
    ),
    "controller_overloaded": lambda e: (
        f"{e.who}, the active controller, had too much to do: a heartbeat"
        f"{' of broker ' + str(e.fields['broker']) if e.fields['broker'] is not None else ''} waited too long in its queue"
        f"{_times(e.fields)}"
    ),
    "metadata_dumped": lambda e: _metadata_dump(e.fields),
    "topic_created": lambda e: (
        f"the topic {e.fields['topic']} was created"
        + (f", at offset {e.fields['offset']} of the metadata log" if e.fields["offset"] is not None else "")
    ),
    "topic_deleted": lambda e: (
        f"the deletion of the topic {e.fields['topic']} began"
        if e.fields.get("completed") is False
        else f"the topic {e.fields['topic']} was deleted"
    ),
    "log_deleted": lambda e: (
        f"{e.who} deleted its log, {e.fields['directory']}, as where a topic is deleted or a replica moved"
    ),
    "controller": lambda e: (
        f"{e.who} {'became' if e.fields['active'] else 'ceased to be'} the active controller"
        + (f", epoch {e.fields['controller_epoch']}" if e.fields["controller_epoch"] is not None else "")
        + (f": {e.fields['event']} failed with {e.fields['error']}" if "error" in e.fields else "")
        + (f", and its writes had waited {e.fields['waited']} s: none was committed" if "waited" in e.fields else "")
    ),
    "broker_left": lambda e: (
        f"the controller says that broker {e.fields['broker']} left"
        + (f"{' ' if e.fields['why'] == UNANNOUNCED else ': '}{e.fields['why']}" if e.fields["why"] else "")
        + (", and led no partition" if "led" in e.fields else "")
        + (f"; it was back after {e.fields['back_after']:,} s" if "back_after" in e.fields else "")
    ),
    "process_failed": lambda e: (
        f"{e.who} failed: {e.fields['error']}" + (f", {_first_sentence(e.fields['cause'])}" if "cause" in e.fields else "")
    ),
}
"""By kind: what an entry says of its node."""


def _because(error: str | None) -> str:
    """Return the error by which something happened, behind a colon."""
    return f": {_first_sentence(error)}" if error else ""


def _first_sentence(text: str) -> str:
    """Return the first sentence of an error, and those behind it with figures or ids, up to LONGEST_REASON; no period."""
    first, *more = _SENTENCE_END.split(text)
    for sentence in more:
        if len(first) + len(sentence) > LONGEST_REASON or not _FIGURE.search(sentence):
            break
        first = f"{first}. {sentence}"
    return first.rstrip(".")


def _beyond(fields: Mapping[str, object]) -> str:
    """Return how an offset that was asked for lies to the log that does not have it: below its start or above its end."""
    offset, start, end = (int(str(fields[name])) for name in ("offset", "log_start", "log_end"))
    where = "which its log has no more" if offset < start else "which its log has not yet" if offset > end else ""
    return (
        f"{where or 'out of its range'}: it has {start} to {end - 1}" if end > start else f"and its log is empty at {start}"
    )


def _clean(clean: bool | None) -> str:
    """Return how the process before a start had stopped; "" where that is unknown (None)."""
    return {True: " after a clean stop", False: " after an unclean stop", None: ""}[clean]


def _watermark(offset: int | None) -> str:
    """Return the high watermark, behind a comma; "" for None."""
    return f", high watermark {offset}" if offset is not None else ""


def _limit(limit: Sequence[object] | None) -> str:
    """Return why retention removed records; `limit` has the kind of the limit, time or size, and it in ms or bytes."""
    if limit is None:
        return "they were older, or more, than their topic keeps"
    return (
        f"they were older than retention.ms, {limit[1]:,}"
        if limit[0] == "time"
        else f"it had more than retention.bytes, {limit[1]:,}"
    )


def _isr(isr: Sequence[int] | None) -> str:
    """Return the ISR, behind a comma; "" for None."""
    return f", ISR {list(isr)}" if isr is not None else ""


def _out_of_sync(isr: Sequence[int], replicas: Sequence[int], *, was: bool = False) -> str:
    """Return which replicas are not in the ISR, or were not (`was`), behind a colon; "" where all are."""
    missing = [str(replica) for replica in replicas if replica not in isr]
    verbs = ("was", "were") if was else ("is", "are")
    return f": {', '.join(missing)} {verbs[len(missing) > 1]} not in sync" if missing else ""


def _leader(leader: int | None) -> str:
    """Return what a sentence calls a leader: a broker, none, or one that no line names."""
    return "an unnamed leader" if leader is None else "no leader" if leader == NO_LEADER else f"broker {leader}"


def _election(fields: dict[str, object]) -> str:
    """Return who was elected, for which epoch, and whether cleanly; or that no leader was left."""
    epoch = f" for epoch {fields['leader_epoch']}" if fields["leader_epoch"] is not None else ""
    if fields["leader"] == NO_LEADER and "new" in fields:
        assigned = f"of the brokers {fields['assigned']}" if "assigned" in fields else "no broker"
        runs = f"; those that ran: {fields['live']}" if "live" in fields else ""
        return (
            f"it is new and got no leader, as {assigned} that it was assigned to {'none ' * ('assigned' in fields)}ran{runs}"
        )
    if fields["leader"] == NO_LEADER:
        empty = ", and its ISR was empty, as unclean election is allowed for it" if "replicas" in fields else ""
        return f"no leader was left{epoch}{empty}"
    stops = f", as broker {fields['stops']} was to stop" if "stops" in fields else ""
    clean = {True: " cleanly", False: " UNCLEANLY", None: ""}[fields["clean"]]  # type: ignore[index]
    return f"broker {fields['leader']} was elected{clean}{epoch}{stops}"


def _missing(entry: StoryEntry) -> str:
    """Return which records of a producer a log that refused the next ones has not, behind a semicolon; "" if none."""
    sequence = missing_sequence(entry)
    if sequence is None:
        return ""
    count = counted(sequence.end - sequence.first, "record")
    return f"; its log has not the {count} with sequence number {sequence.first} to {sequence.end - 1} before that"


def _metadata_dump(fields: Mapping[str, Any]) -> str:
    """Return of what a dump of metadata is, and what it says of the quorum."""
    what = (
        f"the dump is of a snapshot of the metadata: what all records below offset {fields['snapshot_end']}, of epoch "
        f"{fields['snapshot_epoch']}, said"
        if "snapshot_end" in fields
        else "the dump is of the metadata log"
    )
    quorum = [
        *([f"kraft.version {fields['kraft_version']}"] if "kraft_version" in fields else []),
        *([f"the voters {fields['voters']}"] if "voters" in fields else []),
    ]
    return f"{what}; it has {' and '.join(quorum)}" if quorum else what


def _reset(entry: StoryEntry, who: str) -> str:
    """Return where a follower, or a consumer (the field `by`), was out of range or in another log, and where it went."""
    fields, at = entry.fields, _at(entry.fields["from"])
    was = f"was{at} in a log that its leader has not" if "diverged" in entry.marks else f"was out of range{at}"
    went = f" and went to {fields['to']}" if fields["to"] is not None else ""
    # `to END`, `to BEGINNING`: the client's setting auto.offset.reset sends it there.
    went = " and went to the end: it does not read what lies between" if "to END" in entry.marks else went
    went = " and went back to the beginning" if "to BEGINNING" in entry.marks else went
    return f"{fields.get('by') or who} {was}{went}{_times(fields)}"


def _quorum(entry: StoryEntry, who: str) -> str:
    """Say whom a node knows as the leader of the KRaft quorum, or what it did while it knew nobody."""
    fields = entry.fields
    # Several epochs of the quorum may pass while it knows no leader.
    first, last = fields.get("epochs") or [fields["leader_epoch"]] * 2
    epoch = "" if last is None else f" in epoch {last}" if first == last else f" in epochs {first} to {last}"
    if fields["leader"] is not None:
        led = "became the leader" if fields["leader"] == entry.node else f"followed node {fields['leader']} as the leader"
        return f"{who} {led} of the KRaft quorum{epoch}"
    before = f", after it led epoch {fields['led']}" if "led" in fields and not fields["resigned"] else ""
    if "lost" in fields:
        before = f", after node {fields['lost']} led epoch {fields['followed']}"
    more = [
        *(["it knew no voters"] if "no voters" in entry.marks else []),
        *([f"it stood for election{_times({'times': fields['elections']})}"] if fields["elections"] else []),
        *([f"it did not reach nodes {', '.join(map(str, fields['unreachable']))}"] if fields["unreachable"] else []),
        *([f"it was rejected by nodes {', '.join(map(str, fields['rejected_by']))}"] if fields["rejected_by"] else []),
        *([f"too few answered it{_times({'times': fields['timeouts']})}"] if "timeouts" in fields else []),
        *([f"no majority of the voters fetched from it for {fields['alone']} ms"] if "alone" in fields else []),
    ]
    did = "resigned as the leader" if fields["resigned"] else "knew no leader"
    return f"{who} {did} of the KRaft quorum{epoch}{before}" + (f": {', '.join(more)}" if more else "")


def _truncation(entry: StoryEntry, who: str) -> str:
    """Return from where to where a log was truncated, and how that lies to its high watermark."""
    fields = entry.fields
    # A fetcher's line says what it wants; only the log's line says whether there was something to truncate.
    if entry.marks == {"fetcher"} and entry.basis == "high watermark":
        return f"{who} was to truncate to its own high watermark {fields['to']}; whether it cut anything, no line says"
    begin = f" from {fields['from']}" if fields["from"] is not None else ""
    relation = {
        "below": f", below its high watermark {fields['high_watermark']}",
        "not below": f", not below its high watermark {fields['high_watermark']}",
    }
    if fields["relation"] == "no effect":
        return f"{who} had nothing to truncate at {fields['to']}"
    own = ", its own high watermark" if entry.basis == "high watermark" and fields["relation"] == "unknown" else ""
    return f"{who} truncated{begin} to {fields['to']}{relation.get(str(fields['relation']), own)}"


def _isr_change(entry: StoryEntry, who: str) -> str:
    """Return how the ISR changed, or that a change was proposed and refused, or not answered in these lines."""
    fields = entry.fields
    # `wanted`: its broker was refused a change just before, so this one may be in vain, too.
    if fields["accepted"] is None and "wanted" in entry.marks:
        return f"{who} wanted the ISR {fields['to']} instead of {fields['from']}, and no line says whether it got it"
    begin = f" from {fields['from']}" if fields["from"] is not None else ""
    if fields["accepted"] is False:
        wanted = f"the ISR {fields['to']}" if fields["to"] is not None else "a change of the ISR"
        error = str(fields.get("error"))
        behind = ", for ZooKeeper has another version of it" if "zkVersion" in error else ""
        behind = ", for its session with ZooKeeper had expired" if "Session expired" in error else behind
        return f"{who} was refused {wanted}{_times(fields)}{behind}"
    few = ", fewer than min.insync.replicas" if "under min ISR" in entry.marks else ""
    behind = "".join(f"; the log of broker {node} ended at {end}" for node, end in fields.get("log_ends", {}).items())
    behind += f", the leader's at {fields['leader_log_end']}" if behind else ""
    return f"the ISR went{begin} to {fields['to']}{few}{behind}"


def _epochs(fields: Mapping[str, object]) -> str:
    """Return the broker epochs that a controller expected and got, in brackets, if its line has them."""
    return f" (it expected broker epoch {fields['expected']}, and got {fields['got']})" if "expected" in fields else ""


def _at(offset: object, what: str = "") -> str:
    """Return at which offset something was, with the word `what` before the number; "" for None."""
    return f" at {what}{offset}" if offset is not None else ""


def _at_offset(offset: object) -> str:
    """Return at which offset something was, called an offset."""
    return _at(offset, "offset ")


def _peer(fields: Mapping[str, object]) -> str:
    """Return what a sentence calls whom a node does not reach: below 0 it is known by its address only, if at all."""
    peer = fields["peer"]
    if isinstance(peer, int) and peer < 0:
        return f"the controller at {fields['address']}" if fields["address"] is not None else "a controller"
    return "the active controller" if peer is None else f"node {peer}"


def _active(node: int | None) -> str:
    """Return which controller is the active one; below 0: none is, None: unknown."""
    return "" if node is None else ": none is" if node < 0 else f": node {node} is"


def _described(entry: StoryEntry) -> str:
    """Return what a description shows of a partition: as it is, or as it was before a later line of these files."""
    fields = entry.fields
    isr, back = fields["isr"], fields.get("back", [])
    was = bool(back) or "past" in entry.marks
    runs = f"{', '.join(map(str, sorted(back)))} {'runs' if len(back) == 1 else 'run'}"
    later = f"; later lines show that {runs}" if back else ""
    return (
        f"broker {fields['leader']} {'led' if was else 'leads'}{_isr(isr)} of the replicas {fields['replicas']}"
        + _out_of_sync(isr, fields["replicas"], was=was)
        + later
        + ("" if fields["leader"] in isr else "; the leader is not in the ISR")
    )


def _several(subject: _Subject) -> str:
    """Return the node of an entry, or all of those to which the same happened."""
    fields = subject.fields
    if "lost_by" not in fields:
        return subject.who
    nodes = fields["nodes"]
    return f"brokers {', '.join(map(str, nodes[:-1]))} and {nodes[-1]}" if nodes else f"{fields['lost_by']} brokers"


def _times(fields: dict[str, object]) -> str:
    """Return how often the same happened in a row, if more than once."""
    return f", {fields['times']} times in a row" if isinstance(fields["times"], int) and fields["times"] > 1 else ""


def story_text(story: Story) -> str:
    """Return the whole story: the headline, then every entry with file and line; of no entries, what was read and not."""
    lines = headline(story)
    if story.entries:
        lines.append("")
    for entry in story.entries:
        lines.append(visible(f"{entry.partition or '-'}: {entry_sentence(entry)} [{entry.sources[0]}]"))
    if not story.entries:
        # Archives are not read; if there is nothing but these, that is all there is to say.
        packed = [problem for problem in story.problems if "archive" in problem.seen]
        lines += [
            visible(f"{archive.path} is {archive.seen}: {archive.do}. Give the folder of what was in it.")
            for archive in packed[:3]
        ]
        read = sum(file.lines for file in story.files)
        if read or not packed:
            counts = f"{counted(len(story.files), 'text file')}, {counted(read, 'line')}"
            lines.append(f"Nothing is told: {counts}, none that is known here to say what happened to a partition.")
            lines += map(visible, unread_errors(story))
            lines += [
                f"There are lines of {mark.says}: {_OTHERS[mark.says]}."
                for mark in SYSTEMS
                if mark.says in _OTHERS and any(mark.pattern.search(line) for file in story.files for line in file.head)
            ]
            lines.append("Give the server.log, controller.log and state-change.log of the brokers; see docs/operators.md.")
    lines += [visible(f"problem: {problem}") for problem in story.problems[:10]]
    return "\n".join(lines)
