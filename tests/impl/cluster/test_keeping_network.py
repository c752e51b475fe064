"""A network that keeps what is in flight: what outlives a role, a connection or a process, and why that needs fencing."""

from functools import reduce

import pytest

from tests.impl.reached import reached
from tidegauge.impl.cluster.cluster import Bounds, Label, actions, initial, step
from tidegauge.impl.explorer import describe
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.invariants import violated
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.messages import FetchRequest
from tidegauge.impl.profiles import FETCH_TRUNCATION, REPAIRED
from tidegauge.traces.from_model.impl_walks import impl_walks

THREE = Bounds(3, 1, 2, 0)
KEEPS = THREE._replace(keeps_in_flight=True)
GIVES_UP = Bounds(2, 1, 1, 1, keeps_in_flight=True, max_abandoned=1)

ASKED_BEHIND_THE_RECORD: tuple[Label, ...] = (
    ("LeaderAppend", 0),
    ("SendFetch", 1),
    ("HandleFetch", 0, 1, 0),
    ("HandleFetchResponse", 1, 0),
)
LED_ELSEWHERE: tuple[Label, ...] = (
    *ASKED_BEHIND_THE_RECORD,
    ("ElectPreferred", 2),
    ("BecomeLeader", 2),
    ("BecomeFollower", 1),
)
"""b2 has a request under way to b1, and follows b3."""

LEADS_AGAIN: tuple[Label, ...] = (
    *LED_ELSEWHERE,
    ("HandleFetch", 2, 1, 0),
    ("HandleDivergingResponse", 1, 2),
    ("FenceBroker", 2, 0),
    ("BecomeLeader", 0),
    ("HandleFetch", 0, 1, 0),
)
"""b2 has truncated the record that its old request stands behind; b1 leads again, and reads that request."""

GIVEN_UP: tuple[Label, ...] = (*ASKED_BEHIND_THE_RECORD, ("Disconnect", 1, 0))


def test_a_request_to_a_former_leader_stays_under_way() -> None:
    """A thread that other partitions keep alive has asked; without one the connection is closed."""
    kept, closed = (reached(bounds, LED_ELSEWHERE).network[1] for bounds in (KEEPS, THREE))
    assert [isinstance(message, FetchRequest) for message in kept] == [True, False, True]
    assert [isinstance(message, FetchRequest) for message in closed] == [False, False, True]


def test_a_leader_that_answers_older_epochs_loses_what_it_commits() -> None:
    """It records where b2's log ended two epochs ago, and commits a record that b2, in the ISR, lacks."""
    state = reduce(step, LEADS_AGAIN, initial(KEEPS, REPAIRED, FAULTS["older-epochs-pass"].rules))
    violation = violated(state)
    assert violation is not None
    assert (violation.invariant, violation.brokers) == ("IsrCompleteness", (1,))


def test_a_leader_that_fences_refuses_the_old_request() -> None:
    """The same run, to its last step: nothing is recorded, and the follower's thread hears nothing."""
    state = reached(KEEPS, LEADS_AGAIN, REPAIRED)
    assert violated(state) is None
    assert [remote.log_end for remote in state.brokers[0].partition.remotes] == [-1, -1]
    assert state.network[1][0] is None


def test_where_a_fetch_gives_up_the_others_that_run_does_not_exist() -> None:
    """Nothing is left for the former leader to read, which is why no model without this network needs fencing of it."""
    state = reached(THREE, LEADS_AGAIN[:-1], REPAIRED)
    assert LEADS_AGAIN[-1] not in actions(state)


def test_a_request_that_was_given_up_is_handled_once_and_nobody_gets_the_response() -> None:
    """The follower may ask again before; the leader records both, in any order."""
    state = reached(GIVES_UP, (*GIVEN_UP, ("SendFetch", 1)))
    late = ("HandleAbandoned", 0, 1, 0, 0, 1, 0)
    handled = step(state, late)
    assert [remote.log_end for remote in handled.brokers[0].partition.remotes] == [1]
    assert handled.network == state.network
    assert late not in actions(handled)
    assert ("Disconnect", 1, 0) not in actions(state), "one at a time"
    assert describe.label_text(late) == "HandleAbandoned b1 <- b2 of epoch=0 offset=1"
    assert "given up      b2->b1 Fetch offset=1" in describe.grid(state)
    assert "given up     (((), ()), ((1, 0, 1, 0), ()))" in describe.view_text(view(state))


@pytest.mark.parametrize(("crashed", "left"), [(0, False), (1, True)])
def test_it_outlives_its_sender_and_dies_with_the_leader(crashed: int, left: bool) -> None:
    """What a leader had received is handled although the connection is closed; unless its process is gone."""
    state = reached(GIVES_UP, (*GIVEN_UP, ("Crash", crashed, 0, 1)))
    assert (state.copies[1][0] is not None) is left


def test_nobody_disconnects_from_a_broker_that_is_down() -> None:
    """It has received nothing."""
    state = reached(GIVES_UP, [("Crash", 0, 0, 0), ("SendFetch", 1)])
    assert ("Disconnect", 1, 0) not in actions(state)


def test_the_old_network_is_as_it_was() -> None:
    """Neither label, nor anything more to tell states apart by."""
    walker = Walker(THREE, FETCH_TRUNCATION)
    assert walker.start.copies == ()
    assert len(view(walker.start)) == 4


@pytest.mark.parametrize("profile", ["repaired", "fetch-truncation"])
def test_random_runs_use_it(profile: str) -> None:
    """Requests are given up and handled later, also by leaders of later epochs; the views of all states can be drawn."""
    bounds = Bounds(3, 6, 8, 2, 2, keeps_in_flight=True, max_abandoned=4)
    traces = list(impl_walks(20, bounds=bounds, profile=profile, steps=120, seed=7))
    fetches = [event.fields for trace in traces for event in trace.events if event.event == "HandleFetch"]
    assert sum(fetch["error"] != 0 for fetch in fetches) > 20
