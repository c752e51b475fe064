"""TLC's labelled graph is the graph of the implementation, both ways."""

import pytest

from impl.cluster import Bounds
from impl.explore import Walker, explore
from spec.behaviour import counterexample
from spec.errors import SpecError
from spec.graph import REPORT, Reporter, labelled_graph, without_checks
from spec.models import find_model
from spec.tlc import run_tlc


def bounded(name: str, **bounds: int) -> tuple[str, str]:
    model = find_model(name)
    lines = []
    for line in model.config().splitlines():
        key = line.split("=")[0].strip()
        lines.append(f"  {key} = {bounds[key]}" if key in bounds else line)
    return model.module, "\n".join(lines)


@pytest.mark.tlc
@pytest.mark.parametrize(
    ("name", "profile", "log", "epoch", "crashes"),
    [("Small", "fetch-truncation", 2, 1, 1), ("Epochs", "fetch-truncation", 1, 2, 0), ("HwOnly", "hw-only", 1, 1, 1)],
)
def test_the_explorer_finds_the_same_transitions(name: str, profile: str, log: int, epoch: int, crashes: int) -> None:
    """Every labelled transition of TLC is one of the implementation's and the other way round."""
    theirs = labelled_graph(*bounded(name, MaxLog=log, MaxEpoch=epoch, MaxCrash=crashes))
    ours = explore(Bounds(2, log, epoch, crashes), profile)
    assert theirs.states[0] == ours.states[0]
    assert set(theirs.states) == set(ours.states)
    edges = {(ours.states[source], ours.labels[label], ours.states[target]) for source, label, target in ours.edges}
    assert theirs.edges() - edges == set()
    assert edges - theirs.edges() == set()
    assert len(edges) > 1000


@pytest.mark.tlc
def test_another_protocol_has_another_graph() -> None:
    """The comparison can fail: hw-only's graph is not fetch-truncation's."""
    theirs = labelled_graph(*bounded("HwOnly", MaxLog=1, MaxEpoch=1, MaxCrash=0))
    ours = explore(Bounds(2, 1, 1, 0), "fetch-truncation")
    edges = {(ours.states[source], ours.labels[label], ours.states[target]) for source, label, target in ours.edges}
    assert theirs.edges() != edges


@pytest.mark.tlc
def test_a_view_that_hides_a_variable_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """When two states look alike, the count of reported states falls short of TLC's and that is an error."""
    from spec import graph, tlc  # noqa: PLC0415

    module, config = bounded("Small", MaxLog=1, MaxEpoch=0, MaxCrash=1)
    blind = tlc.modules()["MCReplication.tla"].replace("committed, crashes>>", "committed, 0>>")

    def run(*args: object, **kwargs: object) -> tlc.Result:
        return run_tlc(*args, extra_modules={"MCReplication.tla": blind}, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(graph, "run_tlc", run)
    with pytest.raises(SpecError, match="hides or invents"):
        labelled_graph(module, config)


def test_lines_are_read_once_each_and_duplicates_are_one_transition() -> None:
    """The same step printed twice is one transition; its states and label are numbered once."""
    reporter = Reporter()
    step = r'"<<\"step\", <<\"Restart\", 0>>, \"from\", <<<<>>, -1>>, \"to\", <<<<2>>, 7>>>>"'
    for line in (r'"<<\"init\", <<<<>>, -1>>>>"', step, step):
        reporter.take(line)
    assert reporter.graph.states == [((), -1), ((2,), 7)]
    assert reporter.graph.edges() == {(((), -1), ("Restart", 0), ((2,), 7))}


def test_a_line_that_is_no_report_is_an_error() -> None:
    """What a spec prints for other reasons is not taken for a transition."""
    with pytest.raises(SpecError, match="expected a reported state or step"):
        Reporter().take('"<<1, 2>>"')


@pytest.mark.tlc
def test_a_counterexample_is_a_path_of_the_explorer() -> None:
    """The KIP-101 loss, told by TLC, is step by step a run of the implementation under the same profile."""
    found = counterexample(find_model("HwOnly"))
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
    config = without_checks(find_model("HwOnly").config())
    assert "INVARIANT" not in config
    assert "TruncateOnBecomeFollower <- TruncateToHighWatermark" in config
    assert "PrintStep" in REPORT
