"""A behaviour as a trace: what each action tells, by hand-written views."""

import pytest

from tests.traces.hand import DOWN, FOLLOWER, LEADER, NOBODY, Fields, broker, reported, state
from tidegauge.traces.from_model.behaviour import initial_events, numbered, trace_of_path
from tidegauge.traces.from_model.views import Label, View


def test_the_initial_events_load_register_and_appoint() -> None:
    events = initial_events(state(broker(LEADER), broker(FOLLOWER)))
    assert [(e.node, e.event) for e in events] == [
        (1, "Start"),
        (2, "Start"),
        (100, "ChangePartition"),
        (1, "BecomeLeader"),
        (2, "BecomeFollower"),
    ]
    assert events[0].fields == {"clean": True, "leo": 0, "hw": 0, "log_start": 0, "epochs": ()}
    assert events[2].fields == {"leader": 1, "leader_epoch": 0, "isr": (1, 2), "live": (1, 2), "clean": True}
    assert events[3].fields == {"leader_epoch": 0, "isr": (1, 2), "epoch_start": 0, "leo": 0, "hw_before": 0, "hw": 0}


def test_an_append_tells_the_record_and_the_log_before_and_after() -> None:
    src = state(broker(LEADER, log=(0,), hw=1), broker(FOLLOWER))
    dst = state(broker(LEADER, log=(0, 2), hw=1), broker(FOLLOWER))
    fields = {"leader_epoch": 0, "rec_base": 1, "rec_end": 2, "rec_epoch": 2}
    log = {"leo_before": 1, "hw_before": 1, "leo": 2, "hw": 1}
    assert reported(src, ("LeaderAppend", 0), dst) == [(1, "LeaderAppend", fields | log)]


def test_an_answered_fetch_tells_request_response_and_what_was_recorded() -> None:
    src = state(broker(LEADER, log=(0, 0)), broker(FOLLOWER, log=(0,), slots=((1, 0, 1, 0), ())))
    dst = state(broker(LEADER, log=(0, 0), hw=1, remote=(-1, 1)), broker(FOLLOWER, log=(0,), slots=((2, 0, 1, 0, (0,)), ())))
    request = {"peer": 2, "req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}
    response = {"error": 0, "res_hw": 0, "rec_base": 1, "rec_end": 2, "rec_epoch": 0}
    after = {"remote_leo": 1, "hw_before": 0, "hw": 1, "leo": 2}
    assert reported(src, ("HandleFetch", 0, 1, 0), dst) == [(1, "HandleFetch", request | response | after)]


def test_a_fetch_that_expands_the_isr_tells_the_proposal_first() -> None:
    src = state(broker(LEADER, isr=1), broker(FOLLOWER, slots=((1, 0, 0, -1), ())))
    dst = state(broker(LEADER, isr=1, pending=3, remote=(-1, 0)), broker(FOLLOWER, slots=((2, 0, 0, 0, ()), ())))
    events = reported(src, ("HandleFetch", 0, 1, 1), dst)
    assert [name for _, name, _ in events] == ["ExpandIsr", "HandleFetch"]
    assert events[0][2] == {"peer": 2, "isr": (1, 2), "remote_leo": 0}
    assert "rec_epoch" not in events[1][2]


@pytest.mark.parametrize(
    ("leader", "epoch", "error"), [(LEADER, 1, 75), (LEADER | {"epoch": 2}, 1, 74), (FOLLOWER, 0, 6), (NOBODY, 0, 6)]
)
def test_a_refused_fetch_tells_its_error(leader: Fields, epoch: int, error: int) -> None:
    src = state(broker(leader), broker(FOLLOWER, slots=((1, epoch, 0, -1), ())))
    dst = state(broker(leader), broker(FOLLOWER))
    assert [fields["error"] for _, _, fields in reported(src, ("HandleFetch", 0, 1, 0), dst)] == [error]


def test_a_diverging_and_an_out_of_range_response_are_told() -> None:
    src = state(broker(LEADER), broker(FOLLOWER, log=(0,), slots=((1, 0, 1, 0), ())))
    diverging = state(broker(LEADER), broker(FOLLOWER, log=(0,), slots=((3, 0, 1, 0, 0), ())))
    out_of_range = state(broker(LEADER), broker(FOLLOWER, log=(0,), slots=((4, 0, 1, 0, 0), ())))
    fields = reported(src, ("HandleFetch", 0, 1, 0), diverging)[0][2]
    assert (fields["error"], fields["div_epoch"], fields["div_end"]) == (0, 0, 0)
    assert reported(src, ("HandleFetch", 0, 1, 0), out_of_range)[0][2]["error"] == 1


def test_a_request_to_a_dead_broker_is_no_event() -> None:
    src = state(broker(DOWN), broker(FOLLOWER, slots=((1, 0, 0, -1), ())))
    assert reported(src, ("HandleFetch", 0, 1, 0), state(broker(DOWN), broker(FOLLOWER))) == []


def test_an_accepted_response_tells_the_log_and_the_next_fetch() -> None:
    src = state(broker(LEADER), broker(FOLLOWER, slots=((2, 0, 0, 0, (0,)), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, log=(0,), slots=((1, 0, 1, 0), ())))
    events = reported(src, ("HandleFetchResponse", 1, 0), dst)
    assert [name for _, name, _ in events] == ["HandleFetchResponse", "SendFetch"]
    assert events[0][2]["leo_before"] == 0
    assert events[0][2]["leo"] == 1
    assert events[1][2] == {"peer": 1, "req_epoch": 0, "req_offset": 1, "req_last_epoch": 0}


@pytest.mark.parametrize(("profile", "names"), [("fetch-truncation", []), ("hw-only", ["HandleFetchResponse"])])
def test_a_response_of_another_epoch_is_taken_only_where_epochs_are_not_checked(profile: str, names: list[str]) -> None:
    src = state(broker(LEADER), broker(FOLLOWER, epoch=1, slots=((2, 0, 0, 0, ()), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, epoch=1))
    assert [name for _, name, _ in reported(src, ("HandleFetchResponse", 1, 0), dst, profile)] == names


def test_a_truncation_tells_target_and_whether_another_round_follows() -> None:
    """The leader has no epoch 1: its response names epoch 0, which the follower ends elsewhere."""
    src = state(broker(LEADER), broker(FOLLOWER, log=(0, 1), epoch=2, slots=((3, 2, 2, 0, 1), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, log=(0,), epoch=2, slots=((1, 2, 1, 0), ())))
    truncated, sent = reported(src, ("HandleDivergingResponse", 1, 0), dst)
    assert (truncated[2]["target"], truncated[2]["completed"], truncated[2]["leo_before"], truncated[2]["leo"]) == (
        1,
        True,
        2,
        1,
    )
    assert sent[1] == "SendFetch"
    no_epoch_3 = state(broker(LEADER), broker(FOLLOWER, log=(0, 1), epoch=4, slots=((3, 4, 2, 3, 2), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, log=(0, 1), epoch=4))
    assert reported(no_epoch_3, ("HandleDivergingResponse", 1, 0), dst)[0][2]["completed"] is True
    lower = state(broker(LEADER), broker(FOLLOWER, log=(0, 3), epoch=4, slots=((3, 4, 2, 2, 2), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, log=(0,), epoch=4))
    assert reported(lower, ("HandleDivergingResponse", 1, 0), dst)[0][2]["completed"] is False


def test_an_out_of_range_reset_tells_the_leaders_offsets() -> None:
    src = state(broker(LEADER), broker(FOLLOWER, log=(0, 0), slots=((4, 0, 2, 0, 1), ())))
    dst = state(broker(LEADER), broker(FOLLOWER, log=(0,)))
    fields = reported(src, ("HandleOutOfRange", 1, 0), dst)[0][2]
    assert (fields["leader_start"], fields["leader_end"], fields["target"]) == (0, 1, 1)


ASKS = FOLLOWER | {"role": 3, "epoch": 2, "log": (0, 1)}


def test_a_follower_that_asks_tells_its_last_epoch() -> None:
    src = state(broker(LEADER), broker(FOLLOWER, log=(0, 1), epoch=1), controller=(0, 2, 3, 3))
    dst = state(broker(LEADER), broker(ASKS, slots=((5, 2, 1), ())), controller=(0, 2, 3, 3))
    asked = (2, "SendEpochRequest", {"peer": 1, "req_epoch": 2, "req_last_epoch": 1})
    assert reported(src, ("BecomeFollower", 1), dst, "kip320")[1:] == [asked]
    waiting = state(broker(LEADER), broker(ASKS))
    assert reported(waiting, ("SendEpochRequest", 1), dst, "kip320") == [asked]
    lost = state(broker(LEADER), broker(ASKS, slots=((6, 2, 1, 1), ())))
    assert reported(lost, ("LoseResponse", 1, 0), dst, "kip320") == [asked]


@pytest.mark.parametrize(
    ("leader", "profile", "slot", "response"),
    [
        (LEADER | {"epoch": 2}, "kip320", (6, 2, 0, 1), {"error": 0, "div_epoch": 0, "div_end": 1}),
        (LEADER | {"epoch": 2}, "kip101", (6, 2, -1, 1), {"error": 0, "div_epoch": None, "div_end": 1}),
        (LEADER | {"epoch": 2}, "kip320", (6, 2, -1, -1), {"error": 0, "div_epoch": None, "div_end": None}),
        (LEADER | {"epoch": 1}, "kip320", (), {"error": 75}),
        (LEADER | {"epoch": 3}, "kip320", (), {"error": 74}),
        (FOLLOWER | {"epoch": 2}, "kip320", (), {"error": 6}),
        (FOLLOWER | {"epoch": 3}, "kip101", (), {"error": 6}),
    ],
)
def test_the_end_of_an_epoch_is_answered_or_refused(leader: Fields, profile: str, slot: View, response: Fields) -> None:
    src = state(broker(leader, log=(0,)), broker(ASKS, slots=((5, 2, 1), ())))
    dst = state(broker(leader, log=(0,)), broker(ASKS, slots=(slot, ())))
    request = {"peer": 2, "req_epoch": 2, "req_last_epoch": 1}
    assert reported(src, ("HandleEpochRequest", 0, 1), dst, profile) == [(1, "HandleEpochRequest", request | response)]


def test_an_epoch_request_to_a_dead_broker_is_no_event() -> None:
    src = state(broker(DOWN), broker(ASKS, slots=((5, 2, 1), ())))
    assert reported(src, ("HandleEpochRequest", 0, 1), state(broker(DOWN), broker(ASKS)), "kip320") == []


@pytest.mark.parametrize(("role", "completed", "then"), [(2, True, "SendFetch"), (3, False, "SendEpochRequest")])
def test_an_epoch_response_tells_the_truncation_and_what_is_asked_next(role: int, completed: bool, then: str) -> None:
    slot = (1, 2, 1, 0) if completed else (5, 2, 0)
    src = state(broker(LEADER), broker(ASKS, slots=((6, 2, 0, 1), ())))
    dst = state(broker(LEADER), broker(ASKS | {"role": role}, log=(0,), slots=(slot, ())))
    truncated, sent = reported(src, ("HandleEpochResponse", 1, 0), dst, "kip320")
    log = {"leo_before": 2, "hw_before": 0, "leo": 1, "hw": 0}
    response = {"peer": 1, "req_epoch": 2, "error": 0, "div_epoch": 0, "div_end": 1, "target": 1, "completed": completed}
    assert truncated == (2, "HandleEpochResponse", response | log)
    assert sent[1] == then


@pytest.mark.parametrize(("profile", "events"), [("kip320", 0), ("kip279", 1), ("kip101", 1)])
def test_an_epoch_response_of_another_epoch_is_taken_before_kip_320(profile: str, events: int) -> None:
    src = state(broker(LEADER), broker(ASKS, slots=((6, 1, 1, 2), ())))
    dst = state(broker(LEADER), broker(ASKS | {"role": 2 if events else 3}))
    assert len(reported(src, ("HandleEpochResponse", 1, 0), dst, profile)) == events


@pytest.mark.parametrize("changed", [{"role": 2}, {"leader": 1}, {"up": 0}])
def test_an_epoch_response_that_nobody_waits_for_is_no_event(changed: Fields) -> None:
    src = state(broker(LEADER), broker(ASKS | changed, slots=((6, 2, 1, 2), ())))
    assert reported(src, ("HandleEpochResponse", 1, 0), state(broker(LEADER), broker(ASKS | changed)), "kip279") == []


def test_a_restart_after_a_fork_tells_no_cache() -> None:
    """Record epochs fall along the log: what the records imply is not what the broker has."""
    down, back = broker(DOWN, log=(1, 0)), broker(NOBODY, log=(1, 0))
    ((_, _, fields),) = reported(state(broker(LEADER), down), ("Restart", 1), state(broker(LEADER), back), "kip101")
    assert "epochs" not in fields


@pytest.mark.parametrize(
    ("leader", "log", "label", "profile", "response"),
    [
        (LEADER, (0, 0), (0, 0, 1, 0), "fetch-truncation", {"error": 0, "res_hw": 0, "remote_leo": 1}),
        (LEADER, (), (0, 0, 1, 0), "fetch-truncation", {"error": 0, "div_epoch": 0, "div_end": 0, "hw": 0}),
        (LEADER, (), (0, 0, 1, 0), "kip320", {"error": 1}),
        (LEADER | {"epoch": 1}, (0,), (0, 0, 1, 0), "fetch-truncation", {"error": 74}),
        (FOLLOWER, (0,), (0, 0, 1, 0), "fetch-truncation", {"error": 6}),
    ],
)
def test_a_copy_of_a_fetch_tells_what_the_leader_answers_to_it(
    leader: Fields, log: tuple[int, ...], label: Label, profile: str, response: Fields
) -> None:
    """The records are not told: the response reaches nobody."""
    src = state(broker(leader, log=log), broker(FOLLOWER))
    dst = state(broker(leader, log=log, remote=(-1, 1)), broker(FOLLOWER))
    ((node, name, fields),) = reported(src, ("HandleDuplicate", 0, 1, *label), dst, profile)
    assert (node, name) == (1, "HandleFetch")
    assert fields | response == fields
    assert "rec_base" not in fields


def test_a_copy_may_expand_the_isr_and_reach_a_dead_broker() -> None:
    src = state(broker(LEADER, isr=1), broker(FOLLOWER))
    dst = state(broker(LEADER, isr=1, pending=3, remote=(-1, 0)), broker(FOLLOWER))
    assert [name for _, name, _ in reported(src, ("HandleDuplicate", 0, 1, 1, 0, 0, -1), dst)] == [
        "ExpandIsr",
        "HandleFetch",
    ]
    dead = state(broker(DOWN), broker(FOLLOWER))
    assert reported(dead, ("HandleDuplicate", 0, 1, 0, 0, 0, -1), dead) == []


@pytest.mark.parametrize(
    ("profile", "response"),
    [("kip320", {"error": 0, "div_epoch": 0, "div_end": 1}), ("kip101", {"error": 0, "div_epoch": None, "div_end": 1})],
)
def test_a_copy_of_an_epoch_request_is_answered_from_the_cache(profile: str, response: Fields) -> None:
    src = state(broker(LEADER, log=(0,), mark=-1), broker(FOLLOWER))
    request = {"peer": 2, "req_epoch": 0, "req_last_epoch": 0}
    assert reported(src, ("HandleDuplicate", 0, 1, 0, 0, -1, 0), src, profile) == [
        (1, "HandleEpochRequest", request | response)
    ]
    fenced = state(broker(LEADER | {"epoch": 1}), broker(FOLLOWER))
    error = 74 if profile == "kip320" else 0
    assert reported(fenced, ("HandleDuplicate", 0, 1, 0, 0, -1, 0), fenced, profile)[0][2]["error"] == error


def test_a_copy_that_is_made_is_no_event_and_a_disk_that_is_lost_is_one() -> None:
    s0 = state(broker(LEADER), broker(DOWN))
    assert reported(s0, ("Duplicate", 1, 0), s0) == []
    assert reported(s0, ("LoseDisk", 1), s0) == [(2, "LoseDisk", {})]


def test_a_trace_says_whether_requests_may_arrive_twice() -> None:
    """Its config does, so that a judge knows."""
    s0 = state(broker(LEADER), broker(FOLLOWER))
    assert trace_of_path([s0], []).config.extra == {}
    assert trace_of_path([s0], [], duplicates=True).config.extra == {"duplicates": True}


def test_hw_only_truncations_when_it_becomes_follower() -> None:
    src = state(broker(LEADER, log=(0, 0), hw=1), broker(FOLLOWER), controller=(1, 1, 3, 3))
    dst = state(broker(FOLLOWER, log=(0,), hw=1, epoch=1, leader=1), broker(FOLLOWER), controller=(1, 1, 3, 3))
    became, truncated = reported(src, ("BecomeFollower", 0), dst, "hw-only")
    assert became == (1, "BecomeFollower", {"leader": 2, "leader_epoch": 1, "leo": 2, "hw": 1})
    assert truncated == (1, "TruncateToHighWatermark", {"target": 1, "leo_before": 2, "leo": 1, "hw": 1})


def test_a_fetcher_thread_that_truncates_tells_so_and_fetches() -> None:
    """Where it is a step of its own becoming follower tells no truncation, hw-only neither."""
    was = state(broker(LEADER, log=(0, 0), hw=1), broker(LEADER, epoch=1), controller=(1, 1, 3, 3))
    waits = broker(FOLLOWER, role=3, log=(0, 0), hw=1, epoch=1, leader=1)
    src = state(waits, broker(LEADER, epoch=1), controller=(1, 1, 3, 3))
    assert [event[1] for event in reported(was, ("BecomeFollower", 0), src, "hw-only")] == ["BecomeFollower"]
    asks = broker(FOLLOWER, log=(0,), hw=1, epoch=1, leader=1, slots=((), (1, 1, 1, 0)))
    dst = state(asks, broker(LEADER, epoch=1), controller=(1, 1, 3, 3))
    truncated, sent = reported(src, ("TruncateToHighWatermark", 0), dst, "hw-only")
    assert truncated == (1, "TruncateToHighWatermark", {"target": 1, "leo_before": 2, "leo": 1, "hw": 1})
    assert sent == (1, "SendFetch", {"peer": 2, "req_epoch": 1, "req_offset": 1, "req_last_epoch": 0})


def test_a_follower_without_a_leader_tells_null() -> None:
    src = state(broker(LEADER), broker(FOLLOWER), controller=(-1, 1, 3, 3))
    dst = state(broker(FOLLOWER, epoch=1, leader=-1), broker(FOLLOWER), controller=(-1, 1, 3, 3))
    assert reported(src, ("BecomeFollower", 0), dst)[0][2]["leader"] is None


def test_the_epoch_start_is_told_only_with_a_new_epoch() -> None:
    old, new = broker(LEADER, log=(0,)), broker(LEADER, log=(0,), epoch=1, mark=1)
    first = reported(state(old, broker(FOLLOWER)), ("BecomeLeader", 0), state(new, broker(FOLLOWER)))[0][2]
    again = reported(state(new, broker(FOLLOWER)), ("BecomeLeader", 0), state(new, broker(FOLLOWER)))[0][2]
    assert first["epoch_start"] == 1
    assert "epoch_start" not in again


def test_a_crash_and_a_restart_tell_what_the_disk_kept() -> None:
    up, down = broker(FOLLOWER, log=(0, 0, 2), hw=3), broker(DOWN, log=(0, 0, 2), hw=1)
    assert reported(state(broker(LEADER), up), ("Crash", 1, 1, 3), state(broker(LEADER), down)) == [(2, "Crash", {})]
    back = broker(NOBODY, log=(0, 0, 2), hw=1)
    start = {"clean": False, "leo": 3, "hw": 1, "log_start": 0, "epochs": ((0, 0), (2, 2))}
    assert reported(state(broker(LEADER), down), ("Restart", 1), state(broker(LEADER), back)) == [(2, "Start", start)]


def test_the_controller_tells_the_new_registration() -> None:
    src = state(broker(LEADER), broker(FOLLOWER))
    dst = state(broker(LEADER), broker(FOLLOWER), controller=(-1, 1, 2, 1))
    fields = {"leader": None, "leader_epoch": 1, "isr": (2,), "live": (1,), "clean": True}
    assert reported(src, ("FenceBroker", 1, -1), dst) == [(100, "ChangePartition", fields)]


def test_a_proposal_is_registered_or_refused() -> None:
    src = state(broker(LEADER, isr=1, pending=3), broker(FOLLOWER), controller=(0, 0, 1, 1))
    taken = state(broker(LEADER, isr=1, pending=3), broker(FOLLOWER), controller=(0, 0, 3, 3))
    refused = state(broker(LEADER, isr=1), broker(FOLLOWER), controller=(0, 0, 1, 1))
    assert reported(src, ("AlterPartition", 0), taken)[0][1] == "ChangePartition"
    response = (1, "HandleAlterPartitionResponse", {"isr": (1, 2), "error": 107})
    assert reported(src, ("AlterPartition", 0), refused) == [response]


def test_seq_counts_per_node_and_incarnation() -> None:
    s0 = state(broker(LEADER), broker(FOLLOWER))
    s1 = state(broker(LEADER), broker(DOWN))
    trace = trace_of_path([s0, s1, s0], [("Crash", 1, 0, 0), ("Restart", 1)], name="x")
    assert [(e.node, e.event, e.seq) for e in trace.events][-2:] == [(2, "Crash", 2), (2, "Start", 0)]
    assert numbered(trace.events) == trace.events


def test_a_path_needs_one_state_more_than_labels() -> None:
    with pytest.raises(ValueError, match="one state more than labels"):
        trace_of_path([state(broker(LEADER), broker(FOLLOWER))], [("Crash", 1, 0, 0)])
