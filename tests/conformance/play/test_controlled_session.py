"""A session under the whole controller: every step can be typed as it is printed, and a mistake changes nothing."""

import random

import pytest

from tidegauge.conformance.play.arguments import controller_action_text
from tidegauge.conformance.play.directives import DIRECTIVES, Player
from tidegauge.conformance.play.session import CONTROLLER_INVARIANTS, Session
from tidegauge.impl.explorer import controller_model

BEGIN = "cluster brokers=3 control=on profile=elr min_isr=2 clients=on"
CREATED = ("reassign", "cancel", "set", "delete", "create", "shut-down", "unregister", "fail-directory", "elect-unclean")


def player(begin: str = BEGIN) -> Player:
    one = Player()
    assert one.run(begin) == ["ok"]
    return one


def session_of(one: Player) -> Session:
    assert one.session is not None
    assert one.session.has_whole_controller
    return one.session


def said(one: Player, *commands: str) -> list[str]:
    """What the last of them prints; no command is a mistake."""
    lines: list[str] = []
    for command in commands:
        lines = one.run(command)
        assert not any(line.startswith("error:") for line in lines), (command, lines)
    return lines


def test_every_step_can_be_typed_as_it_is_printed() -> None:
    """Random runs: what `actions` prints is understood and does that step, and no other first."""
    taken = set()
    for seed in range(16):
        rng = random.Random(seed)
        options = ("directories=2", "unclean=on partition_zero=3", "replicas=b2,b1", "")[seed % 4]
        one = player(f"{BEGIN} {options}")
        for _ in range(30):
            session = session_of(one)
            labels = session.enabled()
            assert one.run("actions") == [controller_action_text(label) for label in labels]
            if not labels:
                break
            label = rng.choice(labels)
            before = len(session.labels)
            lines = one.run(f"{controller_action_text(label)} told=nobody")
            if lines and "expected nothing more" in lines[0]:
                lines = one.run(controller_action_text(label))
            if not lines or not lines[0].startswith("error: deliver: expected one message"):
                assert not lines or not lines[0].startswith("error:"), (label, lines)
                assert session.labels[before:] == [label]
                taken.add(label[0])
    assert {"Fence", "Unfence", "Die", "ShutDown", "Register", "Unregister", "Delete", "FailDirectory"} <= taken


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("reassign", "expected brokers such as b2,b3, seen nothing"),
        ("reassign b7", "expected one of b1, b2, b3, seen 'b7'"),
        ("reassign b1,b2,b3", "expected an action that can happen now, seen Reassign to b1,b2,b3"),
        ("reassign b1,b1", "expected an action that can happen now, seen Reassign to b1,b1"),
        ("cancel", "expected an action that can happen now, seen Cancel"),
        ("set min_isr", "expected a number, seen nothing"),
        ("set elr", "expected on or off, seen nothing"),
        ("set elr on", "expected an action that can happen now, seen SetElr on"),
        ("set min_isr 2", "expected an action that can happen now, seen SetMinIsr 2"),
        ("set retention 2", "expected min_isr or elr, seen 'retention'"),
        ("create b1", "expected an action that can happen now, seen Create on b1"),
        ("unfence b1", "expected an action that can happen now, seen Unfence b1"),
        ("unfence b1 directory=lost", "expected directory=none|failed, seen directory=lost"),
        ("register b1", "expected an action that can happen now, seen Register b1"),
        ("unregister b1", "expected an action that can happen now, seen Unregister b1"),
        ("fail-directory b1", "expected an action that can happen now, seen FailDirectory b1"),
        ("elect-unclean", "expected an action that can happen now, seen ElectUnclean"),
        ("read-config b1", "expected an action that can happen now, seen ReadConfig"),
        ("alter b1", "expected an action that can happen now, seen AlterPartition"),
        ("delete told=b9", "expected one of b1, b2, b3, seen 'b9'"),
        ("delete now", "expected nothing more, seen 'now'"),
        ("cluster control=on replicas=b1,b9", "expected replicas of b1, b2, each once; seen replicas=b1,b9"),
        ("cluster control=on brokers=3 directories=2 replicas=b1", "expected all brokers as replicas"),
        ("cluster replicas=b1", "switch: expected one of"),
    ],
)
def test_a_mistake_is_told_and_changes_nothing(command: str, says: str) -> None:
    """Expected and seen, whatever was mistaken."""
    one = player()
    before = one.run("show")
    (line,) = one.run(command)
    assert line.startswith("error:")
    assert says in line
    assert one.run("show") == before
    assert session_of(one).labels == []


@pytest.mark.parametrize("name", CREATED)
def test_what_only_the_whole_controller_has_is_refused_elsewhere(name: str) -> None:
    """With the command to begin with."""
    (line,) = player("cluster brokers=3").run(DIRECTIVES[name].example)
    assert line.startswith(f"error: {name}: expected a cluster under the whole controller")
    assert "cluster brokers=3 control=on" in line


def test_a_reassignment_is_made_completed_and_cancelled() -> None:
    """The new replica joins when it has caught up; what is taken back is as it was."""
    one = player(f"{BEGIN} replicas=b1,b2")
    assert said(one, "write b1", "reassign b3,b1")[0] == (
        "controller replicas=b3,b1,b2 leader=b1 epoch=0 partition_epoch=1 isr=b1,b2 elr=nobody adding=b3 removing=b2 "
        "active=b1,b2,b3 min_isr=2"
    )
    assert "replicas=b1,b2 leader=b1 epoch=1 partition_epoch=2 isr=b1,b2 elr=nobody active" in said(one, "cancel")[0]
    said(one, "reassign b3,b1", "fetch b3", "fetch b3")
    done = said(one, "alter b1")
    assert "replicas=b3,b1 leader=b1 epoch=2 partition_epoch=4 isr=b1,b3 elr=nobody active" in done[0]
    assert any(line.startswith("b2     deletes its replica, leo 0") for line in done)
    assert said(one, "elect-preferred")[0].startswith("controller replicas=b3,b1 leader=b3")
    assert said(one, "judge") == ["the judge accepts this run"]


def test_min_isr_is_set_and_read_later() -> None:
    """What the controller has and what brokers know is shown while they differ; a produce is refused by what they know."""
    one = player()
    said(one, "fence b3", "fence b2", "set min_isr 1 told=nobody")
    assert said(one, "show")[-1].endswith("; min_isr=1, 2 as brokers know")
    assert one.run("write b1")[0].startswith("error: expected an action that can happen now, seen LeaderAppend")
    assert said(one, "read-config b1") == ["b1     knows min_isr 1"]
    assert said(one, "write b1") == ["b1     append 0a@0, leo 0->1, hw 0->1"]
    assert said(one, "show")[-1].endswith("; min_isr=1")
    assert said(one, "judge") == ["the judge accepts this run"]


def test_the_feature_is_switched_off_and_on() -> None:
    """What the controller goes by is shown while it is not what the profile says; F9 from end to end."""
    one = player("cluster brokers=2 control=on profile=elr min_isr=2 clients=on")
    assert said(one, "write b1", "shrink b1 b2", "alter b1", "set elr off")[0].endswith(
        "elr=b2 active=b1,b2 min_isr=2 elr=off"
    )
    said(one, "set min_isr 1", "fetch b2 lost=response join=no", "answer-produce b1 1 0", "set elr on")
    assert "elr=off" not in said(one, "show")[-1]
    assert said(one, "shut-down b1")[1].startswith(
        "controller replicas=b1,b2 leader=b2 epoch=1 partition_epoch=2 isr=b2 elr=b1"
    )
    assert "LeaderCompleteness VIOLATED at b2" in said(one, "check")[0]
    assert said(one, "judge")[0] == "the judge rejects this run: CTRL-07, DATA-01, DATA-03"


def test_who_leads_no_more_answers_its_clients_before_it_reads_on() -> None:
    """It hears that another leads, and has somebody waiting."""
    one = player()
    lines = said(one, "write b1", "fence b1")
    assert lines[-3:-1] == ["b1     follows b2, epoch 0->1", "b1     the produce that ends at 1 is answered with error 6"]


def test_a_deleted_topic_has_no_registration_and_is_created_with_another_id() -> None:
    """And is judged life by life."""
    one = player()
    assert said(one, "write b1", "delete")[0] == "controller deleted active=b1,b2,b3 min_isr=0"
    assert said(one, "check") == ["all invariants hold"]
    said(one, "create b2,b3", "write b2")
    session = session_of(one)
    assert [trace.tp for trace in session.traces()] == ["model-0", "model-0.1"]
    assert session.trace().tp == "model-0.1"
    assert said(one, "judge") == ["the judge accepts this run"]


def test_every_invariant_of_the_controller_is_told_in_words() -> None:
    """None is missing, and they stand in the order in which they are looked at."""
    assert list(CONTROLLER_INVARIANTS) == list(controller_model.CONTROL_INVARIANTS)
