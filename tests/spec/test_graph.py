"""TLC's labelled graph is the graph of the implementation, both ways."""

from typing import Any

import pytest

from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.impl.explorer.explore import Graph, Walker, explore
from tidegauge.spec.tlc.graph import Behaviour, GraphReporter, labelled_graph, reporting
from tidegauge.spec.tlc.models import find_model, specification_of
from tidegauge.spec.tlc.tlc import run_tlc
from tidegauge.traces.from_model.impl_walks import bounds_of
from tidegauge.util.errors import SpecError


def edges_of(graph: Graph) -> set[tuple[object, ...]]:
    return {(graph.states[source], graph.labels[label], graph.states[target]) for source, label, target in graph.edges}


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("name", "log", "epoch", "crashes"),
    [
        ("Small", 1, 1, 1),
        pytest.param("Small", 2, 1, 1, marks=pytest.mark.long),
        pytest.param("Epochs", 1, 2, 0, marks=pytest.mark.long),
    ],
)
def test_the_explorer_finds_the_same_transitions(name: str, log: int, epoch: int, crashes: int) -> None:
    """Every labelled transition of TLC is one of the implementation's and the other way round."""
    theirs = labelled_graph(find_model(name), MaxLog=log, MaxEpoch=epoch, MaxCrash=crashes)
    ours = explore(Bounds(2, log, epoch, crashes))
    assert theirs.states[0] == ours.states[0]
    assert set(theirs.states) == set(ours.states)
    edges = edges_of(ours)
    assert theirs.edges() - edges == set()
    assert edges - theirs.edges() == set()
    assert len(edges) > 1000


@pytest.mark.tlc
def test_another_protocol_has_another_graph() -> None:
    """The comparison can fail: hw-only's graph is not fetch-truncation's."""
    theirs = labelled_graph(find_model("HwOnly"), MaxLog=1, MaxEpoch=1, MaxCrash=0)
    assert theirs.edges() == edges_of(explore(Bounds(2, 1, 1, 0), "hw-only"))
    assert theirs.edges() != edges_of(explore(Bounds(2, 1, 1, 0), "fetch-truncation"))


@pytest.mark.tlc
def test_a_view_that_hides_a_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """When two states look alike, the count of reported states falls short of TLC's and that is an error."""
    from tidegauge.spec.tlc import graph, tlc  # noqa: PLC0415

    blind = tlc.modules()["MCReplication.tla"].replace("committed, crashes>>", "committed, 0>>")

    def run(*args: Any, extra_modules: dict[str, str], **kwargs: Any) -> tlc.TlcResult:
        return run_tlc(*args, extra_modules={**extra_modules, "MCReplication.tla": blind}, **kwargs)

    monkeypatch.setattr(graph, "run_tlc", run)
    with pytest.raises(SpecError, match="hides or invents"):
        labelled_graph(find_model("Small"), MaxLog=1, MaxEpoch=0, MaxCrash=1)


def test_a_bound_that_is_not_there_is_an_error() -> None:
    """A misspelt constant is not silently left as it was."""
    with pytest.raises(SpecError, match=r"Small\.cfg: expected a constant, .*; seen MaxLogs"):
        labelled_graph(find_model("Small"), MaxLogs=1)


@pytest.mark.parametrize("name", ["Small", pytest.param("Epochs", marks=pytest.mark.long)])
def test_the_pinned_counts_are_the_explorers(name: str) -> None:
    """States and depth in models.toml are what the implementation has under the bounds of the cfg."""
    model = find_model(name)
    ours = explore(bounds_of(model))
    assert (len(ours.states), ours.depth) == (model.distinct, model.depth)


def test_lines_are_read_once_each_and_duplicates_are_one_transition() -> None:
    """The same step printed twice is one transition; its states and label are numbered once."""
    reporter = GraphReporter()
    step = r'"<<\"step\", <<\"Restart\", 0>>, \"to\", <<<<2>>, 7>>>>"'
    for line in (r'"<<\"from\", <<<<>>, -1>>>>"', step, step):
        reporter.take(line)
    assert reporter.graph.states == [((), -1), ((2,), 7)]
    assert reporter.graph.edges() == {(((), -1), ("Restart", 0), ((2,), 7))}


def test_a_step_starts_from_the_state_named_last() -> None:
    """By a line of its own, which all steps after it share, or in the step's own line."""
    reporter = GraphReporter()
    restart = r'"<<\"step\", <<\"Restart\", 0>>, \"to\", <<7>>{}>>"'
    numbers = [
        reporter.take(line)
        for line in (
            r'"<<\"from\", <<-1>>>>"',
            restart.format(""),
            r'"<<\"from\", <<7>>>>"',
            restart.format(""),
            restart.format(r", \"from\", <<-1>>"),
        )
    ]
    assert numbers == [None, (0, 0, 1), None, (1, 0, 1), (0, 0, 1)]


def test_a_step_from_nowhere_is_an_error() -> None:
    """Its source is never guessed."""
    with pytest.raises(SpecError, match="the state that a step starts from, seen none"):
        GraphReporter().take(r'"<<\"step\", <<\"Restart\", 0>>, \"to\", <<7>>>>"')


def test_a_line_that_is_no_report_is_an_error() -> None:
    """What a spec prints for other reasons is not taken for a transition."""
    with pytest.raises(SpecError, match="expected a reported state or step"):
        GraphReporter().take('"<<1, 2>>"')


@pytest.mark.tlc
def test_a_counterexample_is_a_path_of_the_explorer(hw_only_loss: Behaviour) -> None:
    """The KIP-101 loss, told by TLC, is step by step a run of the implementation under the same profile."""
    found = hw_only_loss
    assert found.property == "LeaderCompleteness"
    walker = Walker(Bounds(2, 1, 3, 0), "hw-only")
    cluster = walker.start
    assert walker.view(cluster) == found.states[0]
    for label, state in zip(found.labels, found.states[1:], strict=True):
        cluster = dict(walker.successors(cluster))[label]
        assert walker.view(cluster) == state
    brokers, (leader, *_), committed, _ = found.states[-1]
    assert brokers[leader][0][: len(committed)] != committed


def test_checks_are_taken_out_and_constants_stay() -> None:
    """The whole graph of a failing model is asked for without its properties."""
    config = reporting(find_model("HwOnly").config())
    assert not config.checked
    assert config.substitutions["TruncateOnBecomeFollower"] == "MakeFollowerTruncates"
    assert config.substitutions["ReportStep"] == "PrintStep"


@pytest.mark.parametrize(
    ("name", "found"),
    [("Small", ("Init", "MCNext")), ("Kip966", ("ElrInit", "MCElrNext")), ("ProposalsEnd", ("Init", "MCNext"))],
)
def test_a_specification_is_taken_apart_as_its_module_writes_it(name: str, found: tuple[str, str]) -> None:
    """Init and next-state relation by name, whatever their variables, without fairness."""
    assert specification_of(find_model(name)) == found


def test_a_specification_without_a_name_for_its_steps_has_no_graph() -> None:
    """The error says which form was expected."""
    with pytest.raises(SpecError, match=r"MCReplication.tla defines on a line as Init .*, seen MCUncleanSpec"):
        labelled_graph(find_model("UncleanElection"))
