"""Labels and states of ISR changes as text; brokers are b1, b2, .. as in impl.explored.describe."""

from tidegauge.impl.cluster.transitions import Label
from tidegauge.impl.explored.describe import broker_name, mask_names
from tidegauge.impl.explored.view import View


def isr_label_text(label: Label) -> str:
    """Format an action with its arguments in words."""
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
    return ", the response is lost" if lost else ""


def _partition(isr: int, partition_epoch: int) -> str:
    return f"isr={mask_names(isr)} partition_epoch={partition_epoch}"


def isr_view_text(view: View) -> str:
    """Format a view, a line for each broker, for what is in flight, and for the controller."""
    (end, hw, known, pending, ends, epochs), logs, incarnations, exchange, controller, images, committed, _, recent = view
    lines = [f"b1 leader    leo={end} hw={hw} {_partition(*known)} proposed={mask_names(pending)} committed={committed}"]
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
    match exchange:
        case (1, isr, partition_epoch, epochs):
            return f"AlterPartition {_partition(isr, partition_epoch)} broker_epochs={epochs}"
        case (2, isr, partition_epoch, asked):
            return f"answer to {mask_names(asked)}: {_partition(isr, partition_epoch)}"
        case (3, asked):
            return f"answer to {mask_names(asked)}: INELIGIBLE_REPLICA"
        case _:
            return "nothing"
