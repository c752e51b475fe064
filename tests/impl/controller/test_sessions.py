"""Whose session keeps another incarnation of a broker out: a rule that changed three times (KAFKA-17793, KAFKA-19130)."""

import pytest

from tidegauge.drive.contract import Report, Step
from tidegauge.drive.controller.contract import ClusterOpening, ControllerCase, ReferenceController
from tidegauge.drive.controller.findings import SCENARIOS, fenced, registers, topic, up
from tidegauge.drive.controller.reference import reference
from tidegauge.impl.errors import DUPLICATE_BROKER_REGISTRATION, UNKNOWN_SERVER_ERROR
from tidegauge.impl.releases import profile_of_release
from tidegauge.impl.rules import NONE

OPENING = ClusterOpening(30)


def after(release: str, *steps: Step) -> tuple[ReferenceController, Report]:
    """A release's controller after these, and what it reported last."""
    expected = reference(profile_of_release(release))
    state = expected.opened(OPENING)
    for step in steps:
        state, report = expected.take(state, step)
    return state[0], report


def errors(release: str, *steps: Step) -> list[int]:
    """What a release's controller responds to these."""
    case = ControllerCase(OPENING, steps)
    results = (report["result"] for report in reference(profile_of_release(release)).reports(case))
    return [result["error"] for result in results if result is not None]


@pytest.mark.parametrize(("release", "error"), [("3.9.1", NONE), ("4.0.0", DUPLICATE_BROKER_REGISTRATION)])
def test_a_fenced_broker_has_a_session_since_4_0(release: str, error: int) -> None:
    """It beats, and another one takes its id."""
    assert errors(release, *up(1), fenced(1), registers(1))[-1] == error


@pytest.mark.parametrize("release", ["3.9.1", "4.0.0", "4.1.1"])
def test_nobody_replaces_a_broker_that_is_not_fenced(release: str) -> None:
    """Its session is valid in every release; over, it is none."""
    assert errors(release, *up(1), registers(1))[-1] == DUPLICATE_BROKER_REGISTRATION
    assert errors(release, *up(1), ("session_expires", 1), registers(1))[-1] == NONE


def test_a_session_that_is_over_and_not_noticed_keeps_nobody_out() -> None:
    """The broker is not fenced then: what its registration changes is changed by that alone."""
    late = ("register_late", *registers(1)[1:])
    state, seen = after("4.3.1", *up(1, 2), topic((1, 2)), late)
    assert seen["result"] == {"error": NONE, "incarnation": 1}
    assert seen["partitions"]["t-0"]["isr"] == [2]
    noticed, seen = after("4.3.1", *up(1, 2), topic((1, 2)), ("session_expires", 1), late)
    assert noticed.controller.end > state.controller.end
    assert (seen["result"]["error"], seen["partitions"]["t-0"]["isr"]) == (NONE, [2])


def test_up_to_3_9_the_silence_of_a_fenced_broker_writes_nothing() -> None:
    """BrokerHeartbeatManager#findOneStaleBroker looks at those that are not: the log ends where it did."""
    ends = []
    for release in ("3.9.1", "4.0.0"):
        expected = reference(profile_of_release(release))
        state = expected.opened(OPENING)
        for step in (*up(1), fenced(1), ("session_expires", 1), ("session_expires", 1)):
            before = state[0].controller.end
            state, _ = expected.take(state, step)
            ends.append(state[0].controller.end - before)
    assert ends == [1, 1, 1, 0, 0, 1, 1, 1, 1, 0]


@pytest.mark.parametrize(("release", "incarnation"), [("3.8.1", 1), ("3.9.0", 0)])
def test_who_registers_again_goes_on(release: str, incarnation: int) -> None:
    """The same process names its directories later: in its old broker epoch since 3.9 (KAFKA-16952), with its session."""
    steps = (*up(1), registers(1, new=False, directories="AB"))
    _, seen = after(release, *steps)
    assert seen["result"] == {"error": NONE, "incarnation": incarnation}
    assert seen["brokers"]["1"]["fenced"] is False
    _, refused = after(release, *steps, registers(1))
    assert refused["result"] == {"error": DUPLICATE_BROKER_REGISTRATION}
    _, silent = after(release, *steps, registers(1), ("session_expires", 1))
    assert silent["brokers"]["1"]["fenced"] is True


@pytest.mark.parametrize(("release", "error"), [("4.0.0", DUPLICATE_BROKER_REGISTRATION), ("4.1.0", UNKNOWN_SERVER_ERROR)])
def test_after_a_failover_of_4_0_a_fenced_broker_is_not_replaced(release: str, error: int) -> None:
    """The registration at the end of F6's scenario makes the controller resign; the next one finds who leads again."""
    assert errors(release, *SCENARIOS["F6"])[-3:] == [UNKNOWN_SERVER_ERROR, error, error]
