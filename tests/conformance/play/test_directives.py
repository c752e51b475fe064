"""What can be said to a session, and that a mistake changes nothing."""

import random
import re

import pytest

from tidegauge.conformance.play.arguments import ACTIONS, action_text, kebab
from tidegauge.conformance.play.directives import DIRECTIVES, Player
from tidegauge.conformance.play.scenario import run_scenario, shipped
from tidegauge.conformance.play.session import Session, bounds_for, broker_play
from tidegauge.impl.cluster.cluster import actions
from tidegauge.impl.cluster.transitions import ANYBODY, LAST_KNOWN
from tidegauge.impl.profiles import HW_ONLY, REPAIRED
from tidegauge.impl.releases import profile_named


def player(brokers: int = 3) -> Player:
    return Player(Session(broker_play(bounds_for(brokers))))


def test_every_directive_has_a_usage_and_an_example_that_is_understood() -> None:
    """`help` prints a line for each, and an example is never refused as unknown."""
    manual = player().run("help")
    assert len(manual) == len(DIRECTIVES)
    for name, directive in DIRECTIVES.items():
        assert directive.usage.split()[0] == name
        assert directive.says
        assert player().run(f"help {name}") == [line for line in manual if line.split()[0] == name]
        said = player().run(directive.example)
        assert not any("expected one of cluster" in line or "expected nothing more" in line for line in said)


def test_every_action_of_the_cluster_can_be_said() -> None:
    """Random runs of two to three brokers, typed as `actions` prints them: each line is understood and taken."""
    taken = set()
    for seed in range(64):
        rng = random.Random(seed)
        bounds = bounds_for(2 + seed // 4 % 2, max_fetch=1, clients=seed % 3 == 0)._replace(max_crashes=2)
        bounds = bounds._replace(last_resort=(LAST_KNOWN, ANYBODY)[seed // 8 % 2], thread_truncates=seed % 5 == 0)
        one = Player(Session(broker_play(bounds, profile_named(("fetch-truncation", "kip320", "kip101", "elr")[seed % 4]))))
        for _ in range(60):
            assert one.session is not None
            labels = actions(one.session.cluster)
            assert [action_text(label) for label in labels] == one.run("actions")
            names = sorted({label[0] for label in labels})
            name = rng.choice(names)
            label = rng.choice([label for label in labels if label[0] == name])
            said = one.run(action_text(label))
            assert not said[:1] or not said[0].startswith("error:")
            assert one.session.labels[-1] == label
            taken.add(label[0])
    assert set(ACTIONS) - taken <= {"HandleOutOfRange", "HandleDivergingResponse"}, "scenarios and a test below take these"


def test_names_are_those_of_the_specification_in_kebab_case() -> None:
    """HandleFetch is handle-fetch; every action has its directive."""
    assert kebab("HandleOutOfRange") == "handle-out-of-range"
    assert {kebab(name) for name in ACTIONS} <= set(DIRECTIVES)


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("", "expected one of cluster"),
        ("fetsch b2", "expected one of cluster"),
        ("fetch", "expected a broker such as b1, seen nothing"),
        ("fetch b9", "expected one of b1, b2, b3, seen 'b9'"),
        ("fetch b2 lost=request", "expected lost=nothing|response, seen lost=request"),
        ("fetch b2 quick=yes", "expected nothing more, seen 'quick=yes'"),
        ("fetch b1", "expected an action that can happen now, seen SendFetch b1"),
        ("write b1 0", "expected a number from 1 to 9999, seen '0'"),
        ("write b1 x", "expected a number from 1 to 9999, seen 'x'"),
        ("write b2", "expected an action that can happen now, seen LeaderAppend b2"),
        ("write b1 2 3", "expected nothing more, seen '3'"),
        ("deliver b2", "expected one message for b2, seen nothing"),
        ("lose b2", "expected a response in flight to b2, seen none"),
        ("crash b2 hw=7", "expected an action that can happen now"),
        ("restart b1", "expected a broker that is down, seen b1 up"),
        ("fence b1 elect=b1", "for elect= a live member of the ISR; seen b1 elect=b1"),
        ("unfence b1", "expected a broker that is up and not live, seen b1"),
        ("elect b1", "expected an action that can happen now, seen ElectPreferred b1"),
        ("elect b2 told=b7", "expected one of b1, b2, b3, seen 'b7'"),
        ("shrink b1", "expected brokers such as b2,b3, seen nothing"),
        ("alter b1", "expected an action that can happen now"),
        ("quiet maybe", "expected on or off, seen 'maybe'"),
        ("quiet", "expected on or off, seen nothing"),
        ("help wirte", "expected one of cluster"),
        ("cluster brokers=0", "expected 1 to 9, seen 0"),
        ("cluster brokers=many", "expected a number from 0 to 9999, seen 'many'"),
        ("cluster profile=kip9999", "expected one of safe, fetch-truncation"),
        ("cluster fencing=perhaps", "seen fencing=perhaps"),
        ("cluster fence=on", "seen fence=on"),
        ("cluster three", "expected nothing more, seen 'three'"),
        ("handle-fetch b1 b2", "expected a number, seen nothing"),
        ("handle-fetch b1 b2 2", "expected an action that can happen now"),
        ("fence-broker b1", "expected a broker such as b1, seen nothing"),
    ],
)
def test_a_mistake_says_what_was_expected_and_changes_nothing(command: str, says: str) -> None:
    """One line, and the cluster is what it was."""
    one = player()
    session, cluster = one.session, one.session.cluster if one.session else None
    (line,) = one.run(command)
    assert line.startswith("error: ")
    assert says in line
    assert one.session is session
    assert one.session is not None
    assert one.session.cluster == cluster
    assert not one.session.labels


def test_without_a_cluster_nothing_can_be_done() -> None:
    """A scenario begins with its cluster."""
    (line,) = Player().run("show")
    assert "expected `cluster` first, seen 'show'" in line


def test_switches_make_a_profile() -> None:
    """A scenario names what it turns off."""
    one = Player()
    assert one.run("cluster brokers=2 profile=hw-only") == ["ok"]
    assert one.session is not None
    assert one.session.profile == HW_ONLY
    assert one.run("cluster brokers=3 keeps_remote_leo=off") == ["ok"]
    assert one.session.profile._replace(name="repaired") == REPAIRED


def test_quiet_hides_steps_and_nothing_else() -> None:
    """Set-up is silent; mistakes and `show` are not."""
    one = player()
    assert one.run("quiet on") == ["ok"]
    assert one.run("write b1") == ["ok"]
    assert one.run("write b2")[0].startswith("error:")
    assert one.run("show")[1].startswith("b1 leader   | 0a")
    assert one.run("quiet off") == ["ok"]
    assert one.run("produce b1") == ["b1     append 0b@1, leo 1->2"]


def test_a_response_that_is_out_of_range_is_told() -> None:
    """After the loss of scenario 010 the old leader is ahead of the new one: it starts again where the leader ends."""
    one = Player()
    for block in run_scenario(next(path for path in shipped() if path.name.startswith("010"))).seen.blocks:
        one.run(block.command)
    said = [line for command in ("restart b1", "unfence b1", "fetch b1") for line in one.run(command)]
    assert "b2->b1 FetchResponse to offset=2 epoch=3: OFFSET_OUT_OF_RANGE leader has [0, 1)" in said
    assert said[-1] == "b1     truncate to 1, leo 2->1, hw 2->1"


def test_a_request_to_a_dead_broker_is_lost() -> None:
    """Nobody answers, and the follower asks again."""
    one = player(2)
    one.run("crash b1")
    said = one.run("fetch b2")
    assert said == ["b2->b1 Fetch offset=0 epoch=0 last_fetched_epoch=-1", "b1     is down, the request is lost"]
    assert any(re.match("send-fetch b2", line) for line in one.run("actions"))
