"""What the captures of broken brokers look like as events."""

from collections.abc import Callable
from typing import Any

from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.schema import EVENTS, Event, Trace

Find = Callable[[str, str], Trace]


def test_the_captures_are_shipped() -> None:
    """They stand beside the code, in a checkout and in a wheel."""
    assert sorted(shipped()) == [
        "3.4.0/b-kill-leader",
        "3.4.1/b-kill-leader",
        "3.9.1/m-lost-disk",
        "4.1.1/m-lost-disk",
        "4.2.0/a-steady",
        "4.2.0/b-kill-leader",
        "4.2.0/d-unclean",
        "4.2.0/k-epoch-jump",
        "4.2.0/k-epoch-jump-control",
        "4.3.1/l-ghost-elr",
        "4.3.1/l-ghost-elr-control",
        "4.3.1/m-lost-disk",
    ]


def test_events_have_only_fields_the_schema_gives_them(capture: Callable[[str], Any]) -> None:
    """Names of events and fields are the schema's."""
    for name in shipped():
        for trace in capture(name).traces:
            for event in trace.events:
                assert set(event.fields) <= set(EVENTS[event.event].fields), (event.at, event.event)


def test_epoch_jump_raises_the_high_watermark_as_it_becomes_leader(trace: Find) -> None:
    """Broker 1 goes from leader epoch 0 to 2, and its high watermark from 1 to 2, though nobody has fetched in epoch 2."""
    events = trace("4.2.0/k-epoch-jump", "alpha-0").events
    jump = next(e for e in events if e.event == "BecomeLeader" and e.node == 1 and e.fields["leader_epoch"] == 2)
    assert (jump.fields["hw_before"], jump.fields["hw"], jump.fields["isr"]) == (1, 2, (1, 2))
    assert jump.at == "n1/server.log:132"
    after = events[events.index(jump) :]
    crash = next(e for e in after if e.event == "Crash" and e.node == 1)
    fetched = [
        e for e in after[: after.index(crash)] if e.event == "HandleFetch" and e.node == 1 and e.fields.get("req_epoch") == 2
    ]
    assert fetched == []


def test_epoch_jump_acknowledges_a_record_that_is_gone_at_the_end(trace: Find) -> None:
    """X1 at offset 1 is acknowledged to acks=all; broker 2 leads from offset 1 on without it."""
    events = trace("4.2.0/k-epoch-jump", "alpha-0").events
    ack = next(e for e in events if e.event == "ProduceAck" and e.at == "n1/request.log:52")
    assert dict(ack.fields) == {"acks": -1, "error": 0, "rec_base": 1, "rec_end": 2, "rec_epoch": 0}
    leads = next(e for e in events if e.event == "BecomeLeader" and e.node == 2 and e.fields["leader_epoch"] == 3)
    assert events.index(ack) < events.index(leads)
    assert leads.fields["leo"] == 1


def test_the_control_refuses_the_record(trace: Find) -> None:
    """Broker 1 became follower in between: the produce is answered with NOT_LEADER_OR_FOLLOWER."""
    events = trace("4.2.0/k-epoch-jump-control", "alpha-0").events
    refused = [e for e in events if e.event == "ProduceAck" and e.fields["error"] == 6]
    assert len(refused) == 1
    again = next(e for e in events if e.event == "BecomeLeader" and e.node == 1 and e.fields["leader_epoch"] == 2)
    assert (again.fields["hw_before"], again.fields["hw"]) == (1, 1)


def _diverging(events: tuple[Event, ...]) -> tuple[Event, list[Event]]:
    """The truncation of broker 1 and what it did since its last fetch left."""
    own = [event for event in events if event.node == 1]
    truncated = next(event for event in own if event.event == "HandleDivergingResponse")
    since = own[: own.index(truncated)]
    last = max(i for i, event in enumerate(since) if event.event == "SendFetch")
    return truncated, since[last + 1 :]


def test_3_4_0_moves_the_high_watermark_before_it_truncates(trace: Find) -> None:
    """KAFKA-14704: one response, first taken as data (48 -> 68), then as diverging (truncate at 62); no fetch in between."""
    truncated, between = _diverging(trace("3.4.0/b-kill-leader", "alpha-0").events)
    assert [event.event for event in between] == ["HandleFetchResponse"]
    assert (between[0].fields["hw_before"], between[0].fields["hw"], between[0].at) == (48, 68, "n1/server.log:719")
    assert (
        truncated.fields["hw_before"],
        truncated.fields["hw"],
        truncated.fields["leo_before"],
        truncated.fields["leo"],
    ) == (68, 62, 68, 62)
    assert (
        truncated.fields["div_epoch"],
        truncated.fields["div_end"],
        truncated.fields["target"],
        truncated.fields["completed"],
    ) == (
        0,
        62,
        62,
        True,
    )


def test_later_releases_only_truncate(trace: Find) -> None:
    """3.4.1 and 4.2.0: nothing happens between the fetch and the truncation, and the high watermark stays."""
    for release in ("3.4.1", "4.2.0"):
        truncated, between = _diverging(trace(f"{release}/b-kill-leader", "alpha-0").events)
        assert between == []
        assert truncated.fields["hw"] == truncated.fields["hw_before"]


def test_an_unclean_election_is_told_as_unclean(trace: Find) -> None:
    """Broker 2 was in neither ISR nor ELR; the ex-leader truncates 73 -> 40, below its high watermark."""
    events = trace("4.2.0/d-unclean", "alpha-0").events
    elected = [e for e in events if e.event == "ChangePartition" and e.fields["clean"] is False]
    assert [(e.fields["leader"], e.fields["isr"]) for e in elected] == [(2, (2,))]
    truncated = next(e for e in events if e.event == "HandleDivergingResponse" and e.node == 1)
    assert (
        truncated.fields["leo_before"],
        truncated.fields["leo"],
        truncated.fields["hw_before"],
        truncated.fields["hw"],
    ) == (73, 40, 73, 40)


def test_a_restart_is_a_crash_and_an_unclean_start(trace: Find) -> None:
    """kill -9: no SIGTERM line, then a start that recovers; LEO, high watermark and the rebuilt epoch cache are told."""
    own = [e for e in trace("4.2.0/b-kill-leader", "alpha-0").events if e.node == 1]
    crash = next(i for i, e in enumerate(own) if e.event == "Crash")
    start = own[crash + 1]
    assert start.event == "Start"
    assert dict(start.fields) == {"clean": False, "leo": 68, "hw": 37, "log_start": 0, "epochs": [[0, 0]]}
    assert [e.event for e in own if e.event in ("Crash", "Stop")] == ["Crash", "Stop"]
