"""What the steps of ELR tell: registrations, stops, elections of the last resort, by hand-written views.

The controller's part of a view goes on: elr, last leader, down after a clean stop, registered again since proposed.
"""

import pytest

from tests.traces.hand import DOWN, FOLLOWER, LEADER, NOBODY, broker, reported, state
from tidegauge.traces.from_model.views import Label


@pytest.mark.parametrize(("clean", "event"), [(2, "Stop"), (0, "CrashAndLose")])
def test_a_registration_tells_how_the_broker_had_stopped_and_what_the_controller_changes(clean: int, event: str) -> None:
    src = state(broker(LEADER), broker(DOWN, log=(0,), hw=1), (0, 0, 3, 3, 0, -1, clean, (0, 0)))
    dst = state(broker(LEADER), broker(NOBODY, log=(0,), hw=1), (0, 0, 1, 1, clean, -1, 0, (0, 0)))
    found = {"leo": 1, "hw": 1, "log_start": 0, "epochs": ((0, 0),)}
    registration = {"leader": 1, "leader_epoch": 0, "isr": (1,), "live": (1,), "clean": True, "elr": (2,) if clean else ()}
    assert reported(src, ("Register", 1, -1), dst, "elr") == [
        (2, "Start", {"clean": event == "Stop", **found}),
        (100, "ChangePartition", registration),
        (100, "RegisterBroker", {"peer": 2, "clean": event == "Stop"}),
    ]


@pytest.mark.parametrize("elr", [0, 2])
def test_a_registration_that_changes_nothing_is_no_change(elr: int) -> None:
    """Its session had ended before; that it is eligible no more is a change."""
    src = state(broker(LEADER), broker(DOWN), (0, 0, 1, 1, elr, -1, 0, (0, 0)))
    dst = state(broker(LEADER), broker(NOBODY), (0, 0, 1, 1, 0, -1, 0, (0, 0)))
    events = [event for _, event, _ in reported(src, ("Register", 1, -1), dst, "elr")]
    assert events == ["Start", *(["ChangePartition"] if elr else []), "RegisterBroker"]


@pytest.mark.parametrize(("label", "event"), [(("Stop", 0), "Stop"), (("CrashAndLose", 0, 0, 0), "Crash")])
def test_a_stop_is_told_as_one_and_a_loss_only_at_the_next_start(label: Label, event: str) -> None:
    src = state(broker(LEADER), broker(FOLLOWER), (0, 0, 3, 3, 0, -1, 0, (0, 0)))
    dst = state(broker(DOWN), broker(FOLLOWER), (0, 0, 3, 3, 0, -1, int(event == "Stop"), (0, 0)))
    assert reported(src, label, dst, "elr") == [(1, event, {"clean": True} if event == "Stop" else {})]


@pytest.mark.parametrize(("action", "clean"), [("UnfenceElr", True), ("ElectLastKnown", False), ("ElectAnybody", False)])
def test_an_election_of_the_last_resort_is_not_clean(action: str, clean: bool) -> None:
    src = state(broker(NOBODY), broker(NOBODY), (-1, 1, 0, 1, 0, 0, 0, (0, 0)))
    dst = state(broker(NOBODY), broker(NOBODY), (0, 2, 1, 1, 0, -1, 0, (0, 0)))
    label = (action, 0, 0) if clean else (action, 0)
    ((node, event, fields),) = reported(src, label, dst, "elr")
    assert (node, event, fields["leader"], fields["clean"]) == (100, "ChangePartition", 1, clean)


def test_a_refusal_is_told_also_when_the_controller_forgets_whom_it_refused() -> None:
    src = state(broker(LEADER, isr=1, pending=3), broker(NOBODY), (0, 0, 1, 3, 0, -1, 0, (2, 0)))
    dst = state(broker(LEADER, isr=1), broker(NOBODY), (0, 0, 1, 3, 0, -1, 0, (0, 0)))
    fields = {"isr": (1, 2), "error": 107}
    assert reported(src, ("AlterPartitionElr", 0), dst, "elr") == [(1, "HandleAlterPartitionResponse", fields)]
