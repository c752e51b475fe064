"""A behaviour of the model as a trace: each labelled transition becomes the events that the nodes would report.

Rules of this file

1. Only views are read, so behaviours of TLC, of the explorer and of a faulty variant go through the same code.
2. An event has the values that the views show. A value that no view shows (whether a truncation is completed, the error of a
   refusal) comes from `impl.rules`, which also made the views.
3. Roles, processes and the controller are here, requests and responses in traces.from_model.broker_events.

A *view* is a state as nested tuples of ints (traces.from_model.views). A *label* is (action, arguments...), mostly the index
of the broker that acts. A function of an action takes the view before the step (`src`), the label, the view after it (`dst`)
and the name of the cluster's profile, and yields the events that nodes report of the step. Nodes have ids from 1, brokers
indexes from 0. `broker_events.report(index, event, **fields)` is an event of the broker at an index; an `Event` has a node
id, the name of its type and the `fields` of the schema. `views.members` gives the node ids of a bit mask of brokers.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise

from tidegauge.impl import rules
from tidegauge.impl.rules import INELIGIBLE_REPLICA
from tidegauge.traces.from_model import broker_events, views
from tidegauge.traces.from_model.views import Label, View
from tidegauge.traces.schema import Config, Event, Trace

DUPLICATES = "duplicates"
"""Key of a Config: true if a request may arrive more than once."""


def config_for(
    count: int, profile: str = "fetch-truncation", source: str = "", *, min_isr: int = 1, duplicates: bool = False
) -> Config:
    """Return the config of traces with `count` brokers, whose ids are 1 to `count`, and a controller.

    `source` says what the traces are made from; `duplicates` whether a request may arrive more than once.
    """
    extra = {DUPLICATES: True} if duplicates else {}
    return Config(tuple(range(1, count + 1)), min_isr, profile, controller=views.CONTROLLER, source=source, extra=extra)


def initial_events(view: View) -> tuple[Event, ...]:
    """Return the events that lead to an initial state: loading, registration, roles."""
    return tuple(_initial(view))


def events_of_step(src: View, label: Label, dst: View, profile: str = "fetch-truncation") -> tuple[Event, ...]:
    """Return the events of one transition, in the order in which the acting node sees them."""
    return tuple(_STEPS[label[0]](src, label, dst, profile))


def trace_of_path(
    states: Sequence[View],
    labels: Sequence[Label],
    name: str = "",
    profile: str = "fetch-truncation",
    source: str = "",
    *,
    min_isr: int = 1,
    duplicates: bool = False,
) -> Trace:
    """Return the trace of a path: `labels[i]` leads from `states[i]` to `states[i + 1]`, `states[0]` is initial.

    The other arguments are those of the trace and of `config_for`. Raises ValueError for lists that do not fit.
    """
    if len(states) != len(labels) + 1:
        raise ValueError(f"expected one state more than labels, seen {len(states)} states and {len(labels)} labels")
    events = list(initial_events(states[0]))
    for src, label, dst in zip(states, labels, states[1:], strict=False):
        events.extend(events_of_step(src, label, dst, profile))
    # The first part of a view has a tuple per broker.
    config = config_for(len(states[0][0]), profile, source, min_isr=min_isr, duplicates=duplicates)
    return Trace(name=name, tp="model-0", config=config, events=numbered(events))


def numbered(events: Sequence[Event]) -> tuple[Event, ...]:
    """Return the events with `seq` filled in: from 0 per node, and from 0 again when the node starts anew."""
    next_seq: dict[int, int] = {}
    out = []
    for event in events:
        seq = 0 if event.event == "Start" else next_seq.get(event.node, 0)
        next_seq[event.node] = seq + 1
        out.append(Event(event.node, event.event, event.fields, seq=seq))
    return tuple(out)


# ---------------------------------------------------------------------------------------------------------------------
# One function per action


def _initial(view: View) -> Iterator[Event]:
    """Yield the events that lead to the first view: starts, the registration, roles."""
    for index, b in enumerate(views.brokers(view)):
        # -1: no entry of the epoch cache without a record yet.
        yield broker_events.report(
            index, "Start", clean=True, leo=b.leo, hw=b.hw, log_start=b.start, epochs=views.epoch_cache(b.log, -1)
        )
    yield _change_partition(view)
    # The leader first: a follower names it.
    order = sorted(enumerate(views.brokers(view)), key=lambda pair: pair[1].role != views.LEADER)
    for index, b in order:
        if b.role == views.LEADER:
            # Its epoch begins behind the records of earlier epochs.
            epoch_start = rules.count_below(b.log, b.epoch)
            yield broker_events.report(
                index,
                "BecomeLeader",
                leader_epoch=b.epoch,
                isr=views.members(b.isr),
                epoch_start=epoch_start,
                leo=b.leo,
                hw_before=b.hw,
                hw=b.hw,
            )
        elif b.role == views.FOLLOWER:
            yield broker_events.report(
                index, "BecomeFollower", leader=views.node_id(b.leader), leader_epoch=b.epoch, leo=b.leo, hw=b.hw
            )


def _silent(_src: View, _label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield nothing: no node reports what happens to a message on its way."""
    yield from ()


def _become_leader(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the event of a broker that reads metadata in which it leads: in a new epoch, or with a new ISR in its epoch."""
    _, index, *_ = label  # further arguments are not needed
    before, after = views.broker(src, index), views.broker(dst, index)
    # Within an epoch the leader only reads a new ISR: it adds no entry to its epoch cache.
    start = {"epoch_start": after.leo} if after.epoch != before.epoch else {}
    yield broker_events.report(
        index,
        "BecomeLeader",
        leader_epoch=after.epoch,
        isr=views.members(after.isr),
        **start,
        leo=after.leo,
        hw_before=before.hw,
        hw=after.hw,
    )


def _crash(_src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield the death of a process."""
    yield broker_events.report(label[1], "Crash")


def _stop(_src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield the stop of a broker in order."""
    yield broker_events.report(label[1], "Stop", clean=True)


def _restart(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the start of a process, with what it finds on its disk."""
    _, index, *_ = label
    started = views.broker(dst, index)
    # Whether it went down by a stop in order: only models with ELR keep that, in others it is false.
    clean = bool(views.controller(src).clean >> index & 1)
    # Where epochs fall the log has forked (a counterexample), and no epoch cache describes it: it is left out.
    rises = all(epoch <= later for epoch, later in pairwise(started.log))
    cache = {"epochs": views.epoch_cache(started.log, started.mark)} if rises else {}
    yield broker_events.report(index, "Start", clean=clean, leo=started.leo, hw=started.hw, log_start=started.start, **cache)


def _lose_disk(_src: View, label: Label, _dst: View, _profile: str) -> Iterator[Event]:
    """Yield the loss of a broker's disk."""
    yield broker_events.report(label[1], "LoseDisk")


def _register(src: View, label: Label, dst: View, profile: str) -> Iterator[Event]:
    """Yield the start of the broker, the change that its registration causes, if any, and the registration."""
    yield from _restart(src, label, dst, profile)
    # A registration may take the broker out of ISR and leadership: by the schema RegisterBroker comes after such changes.
    if views.controller(src).registration != views.controller(dst).registration:
        yield _change_partition(dst)
    clean = bool(views.controller(src).clean >> label[1] & 1)
    yield Event(node=views.CONTROLLER, event="RegisterBroker", fields={"peer": views.node_id(label[1]), "clean": clean})


def _change_partition(view: View, *, clean: bool = True) -> Event:
    """Return the event of the registration that the controller has in a view; not `clean`: by an unclean election."""
    registration = views.controller(view)
    # `live` are the brokers that are not fenced.
    fields = {
        "leader": views.node_id(registration.leader),
        "leader_epoch": registration.epoch,
        "isr": views.members(registration.isr),
        "live": views.members(registration.live),
        "clean": clean,
    }
    if registration.keeps_elr:
        fields["elr"] = views.members(registration.elr)
    return Event(node=views.CONTROLLER, event="ChangePartition", fields=fields)


def _controller_step(_src: View, _label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the registration that a step of the controller leads to."""
    yield _change_partition(dst)


def _last_resort(_src: View, _label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield an election of a broker that may lack committed records."""
    yield _change_partition(dst, clean=False)


def _alter_partition(src: View, label: Label, dst: View, _profile: str) -> Iterator[Event]:
    """Yield the registration that a leader's proposal leads to, or the refusal that the leader gets."""
    if views.controller(src).registration != views.controller(dst).registration:
        yield _change_partition(dst)
    else:
        # The model has no refusal as a step: a proposal after which nothing changed was refused.
        proposal = views.members(views.broker(src, label[1]).pending)
        yield broker_events.report(label[1], "HandleAlterPartitionResponse", isr=proposal, error=INELIGIBLE_REPLICA)


_STEPS: Mapping[str, Callable[[View, Label, View, str], Iterator[Event]]] = {
    "LeaderAppend": broker_events.leader_append,
    "SendFetch": broker_events.send,
    "HandleFetch": broker_events.handle_fetch,
    "HandleFetchResponse": broker_events.handle_fetch_response,
    "HandleDivergingResponse": broker_events.handle_diverging_response,
    "HandleOutOfRange": broker_events.handle_out_of_range,
    "TruncateToHighWatermark": broker_events.truncate_to_high_watermark,
    "SendEpochRequest": broker_events.send,
    "HandleEpochRequest": broker_events.handle_offsets_for_leader_epoch_request,
    "HandleEpochResponse": broker_events.handle_epoch_response,
    "LoseResponse": broker_events.lose_response,
    "Duplicate": _silent,
    "HandleDuplicate": broker_events.handle_duplicate,
    "Disconnect": _silent,
    "HandleAbandoned": broker_events.handle_duplicate,
    "LoseDisk": _lose_disk,
    "AnswerProduce": broker_events.answer_produce,
    "Read": broker_events.read,
    "DeleteRecords": broker_events.delete_records,
    "ShrinkIsr": broker_events.shrink_isr,
    "BecomeLeader": _become_leader,
    "BecomeFollower": broker_events.become_follower,
    "Crash": _crash,
    "Restart": _restart,
    "FenceBroker": _controller_step,
    "UnfenceBroker": _controller_step,
    "ElectPreferred": _controller_step,
    "AlterPartition": _alter_partition,
    "Stop": _stop,
    "CrashAndLose": _crash,
    "Register": _register,
    "FenceElr": _controller_step,
    "UnfenceElr": _controller_step,
    "AlterPartitionElr": _alter_partition,
    "ElectLastKnown": _last_resort,
    "ElectAnybody": _last_resort,
}

LABELS = tuple(_STEPS)
"""The actions that this file has events for."""
