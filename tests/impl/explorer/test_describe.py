"""State, steps and violations as text."""

from tidegauge.impl.cluster.cluster import Bounds, initial, step
from tidegauge.impl.explorer import describe
from tidegauge.impl.explorer.explore import explore, find_violation
from tidegauge.impl.explorer.faults import FAULTS
from tidegauge.impl.explorer.spec_view import view
from tidegauge.impl.profiles import FETCH_TRUNCATION

KIP_101 = """\
offset
b1 leader   |  hw=0 leo=0 epoch=0 isr=b1,b2 b2@-1 cache+=(0,0)
b2 follower |  hw=0 leo=0 epoch=0 leader=b1
controller    leader=b1 epoch=0 isr=b1,b2 live=b1,b2

 1  LeaderAppend b1
      b1 leader    leo 0 -> 1
 2  SendFetch b2
      sent         b2->b1 Fetch offset=0 epoch=0 last_fetched_epoch=-1
 3  HandleFetch b1 <- b2
      b1 leader    followers at b2@-1 -> b2@0
      sent         b1->b2 FetchResponse to offset=0 epoch=0: hw=0 records=[0@0]
 4  HandleFetchResponse b2 <- b1
      b2 follower  leo 0 -> 1
      b2 follower  cache () -> ((0, 0),)
      sent         b2->b1 Fetch offset=1 epoch=0 last_fetched_epoch=0
 5  HandleFetch b1 <- b2
      b1 leader    hw 0 -> 1
      b1 leader    followers at b2@0 -> b2@1
      sent         b1->b2 FetchResponse to offset=1 epoch=0: hw=0 records=[]
 6  ElectPreferred b2
      controller   leader=b2 epoch=1 isr=b1,b2 live=b1,b2
 7  ElectPreferred b1
      controller   leader=b1 epoch=2 isr=b1,b2 live=b1,b2
 8  BecomeFollower b2
      b2 follower  leo 1 -> 0, epoch 0 -> 2
      b2 follower  cache ((0, 0),) -> ()
 9  FenceBroker b1, b2 elected
      controller   leader=b2 epoch=3 isr=b2 live=b1,b2
10  BecomeLeader b2
      b2 leader    epoch 2 -> 3, leader b1 -> b2
      b2 leader    isr nobody -> b2, cache () -> ((3, 0),), followers at - -> b1@-1

offset        0
b1 leader     0 |  hw=1 leo=1 epoch=0 isr=b1,b2 b2@1
b2 leader   |      hw=0 leo=0 epoch=3 isr=b2 b1@-1 cache+=(3,0)
controller    leader=b2 epoch=3 isr=b2 live=b1,b2
in flight     b1->b2 FetchResponse to offset=1 epoch=0: hw=0 records=[]

LeaderCompleteness VIOLATED at b2: it leads the current epoch and lacks committed records; expected [0], seen []"""


def test_a_run_reads_as_a_transcript() -> None:
    """First state, every step with what it changed, last state, verdict."""
    found = find_violation(Bounds(2, 1, 3, 0), "hw-only", invariants=("LeaderCompleteness",))
    assert found is not None
    assert describe.run_text(found) == KIP_101


def test_the_bar_stands_at_the_high_watermark() -> None:
    """Between the last committed record and the first uncommitted one, however long the log."""
    found = find_violation(Bounds(2, 3, 1, 0), rules_override=FAULTS["hw-not-clamped"].rules)
    assert found is not None
    follower = describe.grid(found.states[-1]).splitlines()[2]
    leo, hw = found.states[-1].brokers[1].partition.log.end, found.states[-1].brokers[1].partition.log.hw
    assert follower.index("|") - len("b2 follower ") == 4 * hw
    assert hw > leo


def test_every_label_and_state_of_a_model_has_text() -> None:
    """No label falls through to nothing, no view is refused."""
    graph = explore(Bounds(2, 1, 1, 1))
    texts = [describe.label_text(label) for label in graph.labels]
    assert len(set(texts)) == len(texts)
    assert all("committed" in describe.view_text(state) for state in graph.states[::50])
    assert describe.graph_text(graph).endswith(f"depth {graph.depth}")


def test_the_end_of_an_epoch_is_asked_for_and_answered() -> None:
    """Both messages, and a follower that truncates, have their words."""
    found = find_violation(Bounds(2, 2, 2, 0), "kip101", invariants=("IsrCompleteness",))
    assert found is not None
    text = describe.run_text(found)
    assert "b2 truncates epoch 1 -> 2, leader b2 -> b1" in text
    assert "sent         b2->b1 OffsetForLeaderEpoch of epoch=1 epoch=2" in text
    assert " 8  HandleEpochRequest b1 <- b2" in text
    assert "sent         b1->b2 EpochEndOffset to epoch=2: epoch=-1 end=1" in text
    assert "b2 truncates " in describe.view_text(view(found.states[7]))


def test_a_copy_is_shown_and_told() -> None:
    """What will arrive once more, and what it was when it does."""
    state = initial(Bounds(2, 1, 0, 0, max_duplicates=1), FETCH_TRUNCATION)
    for label in (("SendFetch", 1), ("Duplicate", 1, 0)):
        state = step(state, label)
    assert "once more     b2->b1 Fetch offset=0 epoch=0 last_fetched_epoch=-1" in describe.grid(state)
    assert describe.label_text(("Duplicate", 1, 0)) == "Duplicate b2 <- b1"
    assert describe.label_text(("HandleDuplicate", 0, 1, 0, 0, 0, -1)) == "HandleDuplicate b1 <- b2 of epoch=0 offset=0"
    assert describe.label_text(("HandleDuplicate", 0, 1, 1, 0, 0, -1)).endswith(" proposing it for the ISR")
    assert describe.label_text(("LoseDisk", 1)) == "LoseDisk b2"
    assert describe.label_text(("AnswerProduce", 0, 2, 0)) == "AnswerProduce b1 ending at 2"
    assert describe.label_text(("AnswerProduce", 0, 2, 6)) == "AnswerProduce b1 ending at 2 with error 6"
    assert describe.label_text(("Read", 0, 3, 2)) == "Read b1 up to 2"


def test_a_view_is_told_like_the_state_it_is_of() -> None:
    """The text of a view names every broker and what is in flight."""
    found = find_violation(Bounds(2, 1, 3, 0), "hw-only", invariants=("LeaderCompleteness",))
    assert found is not None
    text = describe.view_text(view(found.states[-1]))
    assert "b1 leader    log=0 hw=1" in text
    assert "committed    0  crashes=0" in text


def test_a_view_is_told_in_words() -> None:
    """Sets by the names of their members, messages by what they are."""
    lines = {line for state in explore(Bounds(2, 1, 1, 0)).states for line in describe.view_text(state).splitlines()}
    assert any("isr=b1,b2 pending=nobody" in line for line in lines)
    assert any("recorded=b2@0 " in line for line in lines)
    assert any("recorded=- epoch 1 begins at the log end, no record yet; in flight=" in line for line in lines)
    assert not any("mark=" in line for line in lines)
    in_flight = {line.partition("in flight=")[2] for line in lines}
    assert "b1: fetch from offset 0 after epoch -1 (request of epoch 0)" in in_flight
    assert "b1: data to offset 0: 1 record of epoch 0, hw 0 (request of epoch 0)" in in_flight
    assert "b2: divergence to offset 1: epoch 0 ends at 0 (request of epoch 1)" in in_flight
