"""Topics are seen to be gone, asked for again where they are not, and named where they stay."""

import os
import signal
from typing import Any

import pytest

from tests.drive.probe.recorded import Recording, asked, topics_in
from tidegauge.drive.probe.connection import NoResponseError, Wire
from tidegauge.drive.probe.run import CheckVerdict, probe, select_checks
from tidegauge.drive.probe.topics import GRANTED, NOT_REQUESTED, Cleanup
from tidegauge.drive.wire.compiler import WireMessage
from tidegauge.impl import errors
from tidegauge.util.interrupts import interruptible

TOPIC = "of-ours"


class Broker:
    """What it says to one deletion after the other, and whether metadata names the topic at one look after the other, the
    last one for ever. Words are why there is no response."""

    def __init__(self, codes: list[Any], looks: list[Any]) -> None:
        self._codes, self._looks = codes, looks
        self.deletions = 0
        self.cleanup = Cleanup(self._delete, self._is_named)
        self.cleanup.expect(TOPIC)

    def _delete(self, _name: str) -> int:
        self.deletions += 1
        return int(_next(self._codes))

    def _is_named(self, _name: str) -> bool:
        return bool(_next(self._looks))

    def left(self) -> dict[str, str]:
        self.cleanup.run(lambda: None, 0.05)
        return self.cleanup.left


def _next(left: list[Any]) -> Any:
    found = left.pop(0) if len(left) > 1 else left[0]
    if isinstance(found, str):
        raise NoResponseError(found)
    return found


@pytest.mark.parametrize(
    ("codes", "looks", "deletions"),
    [
        ([errors.NONE], [True, True, False], 1),
        ([errors.REQUEST_TIMED_OUT, errors.NONE], [True, True, False], 2),
        ([errors.UNKNOWN_TOPIC_OR_PARTITION], [False], 1),
        (["lost"], [False], 1),
        (["lost", errors.NONE], [True, False], 2),
    ],
    ids=["later", "timed out", "never created", "response lost", "request lost"],
)
def test_a_topic_is_gone_when_metadata_no_longer_names_it(codes: list[Any], looks: list[Any], deletions: int) -> None:
    broker = Broker(codes, looks)
    assert broker.left() == {}
    assert broker.deletions == deletions


@pytest.mark.parametrize(
    ("codes", "looks", "why"),
    [
        ([errors.NONE], [True], GRANTED),
        ([errors.REQUEST_TIMED_OUT], [True], "REQUEST_TIMED_OUT (7)"),
        ([errors.TOPIC_AUTHORIZATION_FAILED], [True], "TOPIC_AUTHORIZATION_FAILED (29)"),
        ([errors.REQUEST_TIMED_OUT, errors.POLICY_VIOLATION], [True], "POLICY_VIOLATION (44)"),
        (["lost"], ["nobody is there"], "nobody is there"),
    ],
)
def test_a_topic_that_stays_is_named_with_the_reason(codes: list[Any], looks: list[Any], why: str) -> None:
    assert Broker(codes, looks).left() == {TOPIC: why}


def test_a_topic_whose_creation_was_not_answered_is_waited_for() -> None:
    """It comes to be behind its first deletion, unless it never does."""
    unknown = errors.UNKNOWN_TOPIC_OR_PARTITION
    later = Broker([unknown, unknown, errors.NONE], [False, False, True, False])
    later.cleanup.uncertain(TOPIC)
    assert later.left() == {}
    assert later.deletions == 3
    never = Broker([unknown], [False])
    never.cleanup.uncertain(TOPIC)
    assert never.left() == {}
    assert never.deletions > 3


def test_every_topic_is_asked_for_before_any_is_waited_for() -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    broker = Broker([errors.NONE], [True])
    broker.cleanup.expect("another")
    with pytest.raises(KeyboardInterrupt):
        broker.cleanup.run(interrupted, 9.0)
    assert broker.cleanup.left == {TOPIC: GRANTED, "another": GRANTED}


# ---------------------------------------------------------------------------------------------------------------------
# In a run


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_interruption_waits_for_a_removal_that_has_begun(recording: Recording, number: int) -> None:
    """Every topic goes, as after an interruption before."""

    def at_the_first(name: str, message: WireMessage) -> None:
        if name == "DeleteTopics" and len(topics_in(recording, "DeleteTopics")) == 1:
            os.kill(os.getpid(), number)

    recording.rewrite = at_the_first
    checks = select_checks(["acks", "fencing"])
    with pytest.raises(KeyboardInterrupt), interruptible() as heed:
        probe(recording.dial, recording.place, recording.seed, checks, heed=heed, pause=lambda _: None)
    assert len(topics_in(recording, "CreateTopics")) > 3
    assert topics_in(recording, "CreateTopics") == topics_in(recording, "DeleteTopics")


def test_a_second_interruption_ends_the_removal_and_names_what_is_left(recording: Recording) -> None:
    """The first one came while a check was under way."""
    said: list[str] = []

    def twice(name: str, message: WireMessage) -> None:
        if len(recording.sent) == 60 or name == "DeleteTopics":
            os.kill(os.getpid(), signal.SIGINT)

    recording.rewrite = twice
    with pytest.raises(KeyboardInterrupt), interruptible() as heed:
        probe(recording.dial, recording.place, recording.seed, warn=said.append, heed=heed, pause=lambda _: None)
    said = [line for line in said if not line.startswith("goes on at ")]
    assert len(said) == len(topics_in(recording, "CreateTopics"))
    assert all(NOT_REQUESTED in line and "delete it by hand" in line for line in said)


class Slow(Wire):
    """A broker that creates topics after all, when nobody waits for that any more: behind their first deletion."""

    def __init__(self, wire: Wire, deleted: list[bytes]) -> None:
        self._wire, self._deleted, self._lost = wire, deleted, False
        self.close = wire.close

    def send(self, frame: bytes) -> None:
        name = asked(frame).name
        self._lost = name == "CreateTopics"
        if name == "DeleteTopics":
            self._deleted.append(frame)
        self._wire.send(frame)

    def receive(self) -> bytes:
        if self._lost:
            raise TimeoutError("timed out")
        return self._wire.receive()


def test_a_topic_that_is_created_behind_its_deletion_is_deleted_again(recording: Recording) -> None:
    deleted: list[bytes] = []

    def unknown_at_first(name: str, message: WireMessage) -> None:
        if name == "DeleteTopics" and len(deleted) == 1:
            message["responses"][0]["errorCode"] = errors.UNKNOWN_TOPIC_OR_PARTITION

    recording.rewrite = unknown_at_first
    found = probe(
        lambda *at: Slow(recording.dial(*at), deleted),
        recording.place,
        recording.seed,
        select_checks(["acks.one"]),
        pause=lambda _: None,
    )
    assert [one.verdict for one in found.outcomes] == [CheckVerdict.UNDECIDED]
    assert len(deleted) == 2
    assert found.left == {}
