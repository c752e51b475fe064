"""An unmodified broker is driven and conforms to its release; what another release does is told; nothing is left of a run
that is killed. Needs Java, and the jars: from the cache, from $TIDEGAUGE_JARS/RELEASE, or by Maven."""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from tests.drive.broker.test_fetches_in_sessions import NAMED, WRONG
from tests.drive.broker.test_waiting_in_sessions import HEARD
from tests.drive.broker.test_waiting_in_sessions import WRONG as WRONG_WAITING
from tests.drive.broker.test_waiting_requests import recorded_node
from tests.drive.kafka_process.test_process import running_commands, soon
from tidegauge.drive.broker.contract import BrokerCase, Opening
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.state import Outcome, ReferenceBroker
from tidegauge.drive.contract import Report, Step
from tidegauge.drive.kafka_broker.broker import KafkaBroker
from tidegauge.drive.kafka_broker.node import KafkaNode
from tidegauge.drive.kafka_broker.partition import DrivenPartition
from tidegauge.drive.kafka_broker.worker_slot import WorkerSlot, start_slots
from tidegauge.drive.kafka_process.builds import KafkaBuild, build_of
from tidegauge.drive.kafka_process.clock import MovedClock, make_clock
from tidegauge.drive.paths.scenarios import ROUNDED, judged_text, named_scenarios
from tidegauge.drive.paths.selection import cases_for
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.run import run
from tidegauge.drive.runner.transcript import Recorder
from tidegauge.drive.wire.frames import end_tasks
from tidegauge.impl.releases import RELEASE, profile_named
from tidegauge.impl.rules import UNDEFINED
from tidegauge.util.errors import TidegaugeError
from tidegauge.util.java import find_java

pytestmark = pytest.mark.long

TAKES_THE_HIGH_WATERMARK = (
    ("metadata", 2, 1, 0, (1, 2)),
    ("fetch_response", 2, 0, 0, 0, ((0, 0, 0),), None, None),
    ("fetch_response", 2, 0, 0, 0, ((1, 1, 1),), None, None),
    ("fetch_response", 2, 0, 99, 0, (), (0, 1), None),
)
"""A diverging response with a high watermark: the log is truncated to its first record, which nobody has committed."""

LED = (("metadata", 1, 0, 0, (1, 2)), ("append", 1), ("fetch", 2, 0, 0, UNDEFINED, True))

NEW, OLD = "4.1.1", "3.4.0"


def build(release: str) -> KafkaBuild:
    """The build of a release, or the test is skipped."""
    try:
        find_java()
        given = os.environ.get("TIDEGAUGE_JARS")
        return build_of(release, Path(given) / release if given else None)
    except TidegaugeError as problem:
        pytest.skip(str(problem))


@pytest.mark.parametrize("release", [NEW, OLD])
def test_a_release_does_what_its_profile_says(release: str) -> None:
    """Also over a crash and a stop of the process."""
    profile = profile_named(f"{RELEASE}{release}")
    with KafkaNode(build(release)) as node:
        cases, _ = cases_for(node.capabilities, profile, graphs=["small", "waits"], walks=12, seed=3)
        given = {step[0] for case in cases for step in case.path}
        assert given >= {"crash", "stop", "append", "fetch_response", "fetch_and_wait"}
        found = run(node, cases, reference(profile))
        assert [failure.text for failure in found.failures] == []
        assert found.exit_code == 0
        assert found.played.steps == sum(len(case.path) + 1 for case in cases)


@pytest.mark.parametrize("release", [NEW, OLD])
def test_members_that_lag_are_proposed_to_leave_and_nobody_else_is(release: str) -> None:
    """On every local step of the ISR changes, the check of a process looking at all of them; over its ends, too, behind
    which partitions wait for their turn. A leader that proposes nothing is told from what the broker did."""
    profile = profile_named(f"{RELEASE}{release}")
    with KafkaNode(build(release)) as node:
        if "lag" not in node.capabilities.can:
            pytest.skip("no C compiler, or nothing can be preloaded here")
        cases, _ = cases_for(node.capabilities, profile, graphs=["isr", "acks"], walks=20, seed=5)
        cases = [case for case in cases if any(step[0] == "lag" for step in case.path)]
        recorder: Recorder[BrokerCase] = Recorder(cases)
        assert play(node, cases, reference(profile), recorder).differences == ()
    assert {step[0] for case in cases for step in case.path} >= {"lag", "crash", "alter_partition_response"}
    did = recorded_node(recorder)
    differ = play(did, cases, reference(profile, wrong_step=_nobody_leaves)).differences
    assert {found.fields for found in differ} == {("proposal",)}
    assert len(differ) == len(cases)


def _nobody_leaves(state: ReferenceBroker, taken: Step, after: ReferenceBroker, result: Report | None) -> Outcome:
    return (state, None) if taken[0] == "lag" else (after, result)


def test_a_fetch_that_waits_is_told_from_one_that_a_high_watermark_wakes() -> None:
    """As it was completed in 2.4 and 2.5: where the reference says too early, the broker is told to differ."""
    profile = profile_named(f"{RELEASE}{NEW}")
    with KafkaNode(build(NEW)) as node:
        cases, _ = cases_for(node.capabilities, profile, graphs=["waits"])
        found = run(node, cases[::4], reference(profile.switched({"hw_wakes_followers": True})))
    assert found.exit_code == 1
    assert {failure.shown.fields for failure in found.failures} == {("fetched",)}
    assert all("same as   hw_wakes_followers=off" in failure.text for failure in found.failures)


@pytest.mark.parametrize("release", [NEW, OLD])
def test_a_session_of_a_release_names_what_the_reference_does_and_no_wrong_one(release: str) -> None:
    """Each path of test_sessions; what the broker did is recorded and held against sessions of other makings."""
    profile = profile_named(f"{RELEASE}{release}")
    cases = [BrokerCase(Opening(), path) for path, _ in NAMED.values()]
    recorder: Recorder[BrokerCase] = Recorder(cases)
    with KafkaNode(build(release)) as node:
        assert play(node, cases, reference(profile), recorder).differences == ()
    did = recorded_node(recorder)
    unseen = [wrong.__name__ for wrong in WRONG if not play(did, cases, reference(profile, wrong_step=wrong)).differences]
    assert unseen == []


@pytest.mark.parametrize("release", [NEW, OLD])
def test_a_fetch_that_waits_in_a_session_of_a_release_is_told_what_the_reference_tells_and_no_wrong_one(
    release: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each path of test_waiting_in_sessions, likewise."""
    profile = profile_named(f"{RELEASE}{release}")
    cases = [BrokerCase(Opening(), path) for path, _ in HEARD.values()]
    recorder: Recorder[BrokerCase] = Recorder(cases)
    with KafkaNode(build(release)) as node:
        assert play(node, cases, reference(profile), recorder).differences == ()
    did, unseen = recorded_node(recorder), []
    for wrong in WRONG_WAITING:
        with monkeypatch.context() as patched:
            patched.setattr(*wrong())
            unseen += [] if play(did, cases, reference(profile)).differences else [wrong.__name__]
    assert unseen == []


@pytest.mark.parametrize("release", [NEW, OLD])
def test_a_deletion_that_followers_have_not_heard_of_wakes_no_fetch_of_another_partition(release: str) -> None:
    """With a time-out of 0 ms some 20,000 did, and few in a whole run may: the fetch that waits has the leader epoch before,
    and whoever looks at it responds to it (docs/findings.md)."""
    moved = make_clock()
    if not isinstance(moved, MovedClock):
        pytest.skip("no C compiler, or nothing can be preloaded here")

    async def seen(broker: KafkaBroker, slots: list[WorkerSlot]) -> tuple[Report, Report]:
        await broker.start()
        await start_slots(slots)
        waits, deletes = (DrivenPartition(slot, Opening()) for slot in slots)
        for step in (*LED, ("fetch_and_wait", 2, 0, 1, 0, True), ("metadata", 1, 1, 1, (1,))):
            await waits.take(step)
        for step in (*LED, ("fetch", 2, 0, 1, 0, True)):
            await deletes.take(step)
        fetch, delete = ("fetch", 2, 1, 1, 0, False), ("delete_records", 1)
        fetched, deleted = await waits.take(fetch), await deletes.take(delete)
        for _ in range(50_000):
            moved.advance(10)  # so that the timer's wheel has to turn
            await asyncio.gather(waits.take(fetch, fetched), deletes.take(delete, deleted))
        found = await waits.report(), await deletes.report()
        for partition in (waits, deletes):
            await partition.close()
        return found

    async def closed() -> tuple[Report, Report]:
        broker = KafkaBroker(build(release), moved)
        slots = [WorkerSlot(broker, number) for number in range(2)]
        try:
            return await seen(broker, slots)
        finally:
            for slot in slots:
                slot.close()
            broker.close()
            await end_tasks()

    with closing(moved):
        waiting, deleted = asyncio.run(closed())
    assert (waiting["fetched"], deleted["log_start"]) == ({}, 1)


def test_an_old_release_is_told_from_todays_and_its_bug_is_named() -> None:
    """KAFKA-14704, in the broker's own words beside the path."""
    today = profile_named(f"{RELEASE}{NEW}")
    with KafkaNode(build(OLD)) as node:
        found = run(node, [BrokerCase(Opening(), TAKES_THE_HIGH_WATERMARK)], reference(today), log_lines=node.log_lines)
    said = "\n".join(failure.text for failure in found.failures)
    assert found.exit_code == 1
    assert "applies_diverging=on" in said
    assert "  log       [" in said
    assert "Truncating partition" in said


def test_a_request_that_is_held_for_longer_than_the_default_of_request_timeout_ms_stays_in_flight() -> None:
    """On a loaded machine a path takes its time: the suite lets half a minute go by."""
    path = (("metadata", 2, 0, 0, (1, 2)), ("metadata", 1, 1, 1, (1, 2)), ("list_offsets", 1, "latest"))
    seen: list[Report] = []

    def watch(_number: int, at: int, said: Report) -> bool:
        seen.append(said["requests"])
        time.sleep(35 if at == 2 else 0)
        return at < len(path)

    with KafkaNode(build(NEW), slots=1) as node:
        node.play([BrokerCase(Opening(), path)], watch)
    assert [set(requests) for requests in seen] == [set(), {"2"}, {"2"}, {"2"}]


@pytest.mark.parametrize(("release", "shown"), [(NEW, {"F2", "F3"}), (OLD, {"F1", "F2", "F3"})])
def test_findings_are_shown_on_the_releases_that_have_them(release: str, shown: set[str]) -> None:
    """Each step goes as the release's profile says, and the judge rejects the run of its cluster."""
    profile = profile_named(f"{RELEASE}{release}")
    with KafkaNode(build(release)) as node:
        found = {name: named_scenarios(name, profile, node.capabilities)[0] for name in ("F1", "F2", "F3", ROUNDED)}
        assert run(node, [one.case for one in found.values()], reference(profile)).exit_code == 0
    said = {name: "\n".join(judged_text(one.trace)) for name, one in found.items() if one.trace is not None}
    assert {name for name, text in said.items() if "the judge rejects this run" in text} == shown


@pytest.mark.parametrize("seed", range(20))
def test_killed_at_any_moment_no_process_and_no_folder_is_left(seed: int, tmp_path: Path) -> None:
    place, rng = build(NEW).jars[0].parent, random.Random(seed)
    command = [sys.executable, "-m", "tidegauge", "drive", "--kafka", NEW, "--jars", str(place), "--graph", "small"]
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    driving = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(rng.uniform(0.5, 12.0))
    driving.send_signal(rng.choice((signal.SIGKILL, signal.SIGTERM, signal.SIGINT)))
    driving.wait(60)
    assert soon(lambda: not any(str(tmp_path) in command for command in running_commands()))
    assert soon(lambda: not list(tmp_path.glob("tidegauge-kafka-*")))
