"""Correct traces with one thing changed are rejected, or are correct themselves."""

from collections import Counter

import pytest

from tidegauge.impl.explorer.explore import explore
from tidegauge.traces.formats import ndjson
from tidegauge.traces.from_model.behaviour import trace_of_path
from tidegauge.traces.schema import Trace
from validation.golden import DIRECTORY, SMALL, STORIES
from validation.trace_language import Language
from validation.trace_mutants import BY_DESIGN, CHANGED, DROPPED, ONE_NUMBER, MutantOutcome, figures, mutants, run


@pytest.fixture(scope="module")
def language() -> Language:
    graph = explore(SMALL)
    return Language(graph.states, graph.labels, graph.edges, "fetch-truncation")


@pytest.fixture(scope="module")
def originals() -> list[Trace]:
    names = [story.name for story in STORIES if story.bounds == SMALL and story.profile == "fetch-truncation"]
    return [ndjson.read(DIRECTORY / f"{name}.ndjson").traces[0] for name in names]


@pytest.fixture(scope="module")
def outcomes(language: Language, originals: list[Trace]) -> list[MutantOutcome]:
    return run(originals, language)


def test_golden_traces_are_traces_of_the_graph(language: Language, originals: list[Trace]) -> None:
    """And so is every beginning of them."""
    for trace in originals:
        for end in range(len(trace.events) + 1):
            assert language.holds(trace.events[:end])


def test_a_trace_of_another_profile_is_none_of_the_graph(language: Language) -> None:
    """The runs that break a rule are no behaviours of the right graph."""
    for path in DIRECTORY.glob("fails-*.ndjson"):
        assert not language.holds(ndjson.read(path).traces[0].events), path.name


def test_every_mutant_is_rejected_or_legal_or_accepted_for_a_reason(outcomes: list[MutantOutcome]) -> None:
    """What is accepted and is no behaviour of the graph stands in BY_DESIGN, with its reason."""
    survivors = [outcome for outcome in outcomes if outcome.survived]
    for outcome in survivors:
        event = outcome.mutant.says.split()[1]
        assert (event, outcome.mutant.kind) in BY_DESIGN, outcome.mutant.says
    used = {(outcome.mutant.says.split()[1], outcome.mutant.kind) for outcome in survivors}
    assert used <= set(BY_DESIGN)


def test_the_judge_is_sharp(outcomes: list[MutantOutcome]) -> None:
    """More than nineteen of twenty changed values are rejected, and every gap in the numbers that can be seen."""
    by_kind = {figure.kind: figure for figure in figures(outcomes)}
    changed = by_kind[CHANGED]
    assert changed.made > 800
    assert changed.rejected > changed.made * 0.95
    assert by_kind[ONE_NUMBER].survived == by_kind[DROPPED].survived == 0
    assert sum(figure.survived for figure in figures(outcomes)) < len(outcomes) * 0.05


def test_figures_add_up(outcomes: list[MutantOutcome]) -> None:
    """Each mutant is counted once, under one heading."""
    counted = Counter(outcome.mutant.kind for outcome in outcomes)
    for figure in figures(outcomes):
        assert figure.made == counted[figure.kind]
        assert figure.survived == sum(o.survived for o in outcomes if o.mutant.kind == figure.kind)


def test_a_mutant_differs_from_its_original(originals: list[Trace]) -> None:
    """No kind of change leaves a trace as it was."""
    for mutant in mutants(originals[0]):
        assert mutant.trace.events != originals[0].events, mutant.says


def test_silent_steps_are_taken_silently(language: Language) -> None:
    """A lost response tells nothing when its follower sends nothing: the trace goes on as if it had not been."""
    graph = explore(SMALL)
    reported = {}
    for source, label, target in graph.edges:
        if graph.labels[label][0] == "LoseResponse":
            trace = trace_of_path([graph.states[source], graph.states[target]], [graph.labels[label]])
            reported.setdefault(len(trace.events), (source, label, target))
    assert len(reported) >= 1
    assert language.holds(())
