"""Labels and states of the controller's model as text; brokers are b1, b2, .. as in impl.explored.describe."""

from collections.abc import Sequence

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explored.describe import broker_name, broker_names, mask_names
from tidegauge.impl.explored.view import View

PROCESSES = ("runs", "is stopping", "stopped in order", "died")
REGISTERED = ("not registered", "fenced", "unfenced")
STARTS = ("", " without the directory that failed", " while the directory is failed still")
PLACES = ("", ", its directory failed", ", in another directory")


def control_label_text(label: Label) -> str:
    """Format an action with its arguments in words."""
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
    """Format a view, a line for each broker and one for the partition."""
    partition, brokers, logs, committed, stops, min_isr, known_min_isr, (listed, stale, elr) = view
    lines = []
    for b, ((process, registered, stopping, place), log) in enumerate(zip(brokers, logs, strict=True)):
        index = f" index={listed[b]}" if listed[b] else ""
        stale_index = " index names a deleted topic" if stale >> b & 1 else ""
        what = f"{PROCESSES[process]}, {REGISTERED[registered]}{' and shuts down' if stopping else ''}{PLACES[place]}"
        lines.append(f"{broker_name(b)} {what} log={_records(log)}{index}{stale_index}")
    config = f"min_isr={min_isr}" + (f", {known_min_isr} as the leader knows" if known_min_isr != min_isr else "")
    lines.append(f"partition    {partition_text(partition)}; {config}")
    if not elr:
        lines.append("feature      eligible.leader.replicas.version=0")
    return "\n".join([*lines, f"committed    {_records(committed)}  stops={stops}"])


def _records(epochs: tuple[int, ...]) -> str:
    return " ".join(map(str, epochs)) or "-"


def partition_text(partition: View) -> str:
    """Format the registration, as a view has it."""
    if not partition:
        return "deleted"
    replicas, adding, removing, isr, elr, last, leader, recovering, epoch, partition_epoch = partition
    text = (
        f"replicas={broker_names(replicas)} leader={broker_name(leader)} epoch={epoch} partition_epoch={partition_epoch} "
        f"isr={mask_names(isr)} elr={mask_names(elr)}"
    )
    changing = f" adding={mask_names(adding)} removing={mask_names(removing)}" if adding or removing else ""
    known = f" last={broker_names(last)}" if last else ""
    return text + changing + known + (" recovering" if recovering else "")


def control_run_text(states: Sequence[View], labels: Sequence[Label]) -> str:
    """Format a run: the first state, then each step with the lines that it changed."""
    lines = [control_view_text(states[0])]
    for number, (label, before, after) in enumerate(zip(labels, states, states[1:], strict=False), start=1):
        known = control_view_text(before).splitlines()
        lines.append(f"{number:>2}  {control_label_text(label)}")
        lines += [f"      {line}" for line in control_view_text(after).splitlines() if line not in known]
    return "\n".join(lines)
