"""The steps of the main job that need no Spark: each runs one comparison and turns its results into cases."""

import os
from dataclasses import asdict
from typing import NamedTuple

from tidegauge.conformance.engine.compiled import compiled
from tidegauge.conformance.from_tlc.graph_comparison import COMPARED, Equality, compare_all
from tidegauge.conformance.kill_matrix import Fate, kill_all
from tidegauge.impl.explorer.explore import explore
from tidegauge.impl.profiles import FETCH_TRUNCATION
from tidegauge.spec.tlc import models
from tidegauge.traces.formats import ndjson
from tidegauge.util.workers import Echo, workers
from validation.captures import judge_captures, judge_excerpts
from validation.golden import DIRECTORY, SMALL, STORIES
from validation.main_job.job import JobCase, StepResult
from validation.product.false_accepts import completeness, differences, false_accepts, pinned
from validation.product.models import SMALLEST, Model
from validation.product.walk import soundness, walk
from validation.trace_language import Language
from validation.trace_mutants import figures
from validation.trace_mutants import run as run_mutants


def models_as_pinned(echo: Echo) -> StepResult:
    """Run TLC on every small model, and compare the results with models.toml."""
    done = models.run_models(models.in_tier("small"), on_done=lambda comparison: echo(f"      {comparison}"))
    cases = tuple(JobCase(c.model.name, c.ok, str(c), c.result.seconds) for c in done)
    states = sum(max(c.result.distinct, 0) for c in done)
    # A model without a guard must fail: that its invariant holds would mean that the guard is not needed, or not tested.
    failing = sum(c.model.expect != "success" for c in done)
    return StepResult(
        f"{len(done)} models, {states:,} distinct states; {failing} of them must fail and fail as they must",
        cases,
        {"models": len(done), "distinct_states": states},
    )


def rules_proved(echo: Echo) -> StepResult:
    """Prove the rules' own code by z3, in processes of their own."""
    from tidegauge.spec.proofs.engine.paths import GroupResult, ProofVerdict  # noqa: PLC0415
    from tidegauge.spec.proofs.prove import prove  # noqa: PLC0415  z3 is an extra; the other steps do without

    def progress(_name: str, result: GroupResult | None) -> None:
        if result is not None:
            echo(f"      {result.verdict.value}: {result.title} ({len(result.goals)} goals, {result.seconds:.1f} s)")

    results = prove(progress=progress)
    cases = tuple(JobCase(r.name, r.verdict is ProofVerdict.PROVED, "\n".join(r.describe()), r.seconds) for r in results)
    goals = sum(len(r.goals) for r in results)
    return StepResult(f"{goals} goals in {len(results)} groups", cases, {"goals": goals, "groups": len(results)})


def spec_equals_impl(echo: Echo) -> StepResult:
    """Compare the whole labelled graphs of TLC and of the explorer, in both directions."""

    def progress(equality: Equality) -> None:
        same = "the same " if equality.divergence is None else ""
        echo(f"      {equality.model}, {equality.profile}: {same}{equality.says.splitlines()[0]}")

    done = compare_all(COMPARED, on_done=progress)
    states, transitions = sum(equality.states for equality in done), sum(equality.transitions for equality in done)
    return StepResult(
        f"{transitions:,} labelled transitions of {states:,} states are the same set on both sides",
        tuple(
            JobCase(f"{equality.model} {equality.profile}", equality.divergence is None, equality.says) for equality in done
        ),
        {"states": states, "transitions": transitions},
    )


def judge_equals_spec(echo: Echo) -> StepResult:
    """Judge every behaviour of two small models, and every wrong next event: no alarm, no unexplained acceptance."""
    cases = []
    pairs = offered = passing = 0
    compiled()  # once, before several processes would each do it
    with workers(min(len(SMALLEST), os.cpu_count() or 1)) as side_by_side:
        for of_model in side_by_side(_product, SMALLEST):
            for case in of_model.cases:
                echo(f"      {case.says}")
            cases += of_model.cases
            pairs, offered, passing = pairs + of_model.pairs, offered + of_model.offered, passing + of_model.passing
    return StepResult(
        f"{pairs:,} pairs of model and judge, no alarm; {offered:,} wrong next events, {passing:,} let pass with a reason",
        tuple(cases),
        {"pairs": pairs, "offered": offered, "let_pass": passing},
    )


class _Product(NamedTuple):
    """One model and the judge."""

    cases: tuple[JobCase, ...]
    pairs: int
    offered: int
    passing: int


def _product(model: Model) -> _Product:
    walked = walk(model.automaton(), model.config, model.room)
    kinds = false_accepts(walked)
    # Pinned counts: a judge that lets more pass, for whatever reason, must be noticed.
    wrong = differences(kinds, pinned().get(model.name, {}))
    sound = JobCase(
        f"{model.name}: no right behaviour breaks a rule", not walked.rules, f"{model.name}: {soundness(walked)}"
    )
    complete = JobCase(
        f"{model.name}: what passes has its reason and count",
        not wrong,
        "; ".join((f"{model.name}: {completeness(kinds)}", *wrong)),
    )
    passing = sum(kind.passed + kind.open for kind in kinds)
    return _Product((sound, complete), len(walked.pairs), sum(kind.offered for kind in kinds), passing)


def seeded_faults(echo: Echo) -> StepResult:
    """Judge traces of every fault of impl.explorer.faults."""
    kills = []
    for kill in kill_all():
        judged = kill.judged
        caught_by = ", ".join(list(judged.by_rule)[:3]) or judged.says
        echo(f"      {kill.fault.name}: {judged.fate.value}{' by ' if judged.by_rule else ' '}{caught_by}")
        kills.append(kill)
    cases = tuple(
        JobCase(
            k.fault.name,
            # A fault that shows nothing within the bounds has not been caught either.
            k.judged.fate in {Fate.CAUGHT, Fate.REFUSED},
            f"{k.fault.says} ({k.fault.resembles}): {k.judged.fate.value} {dict(k.judged.by_rule)}",
        )
        for k in kills
    )
    fates = {fate: sum(k.judged.fate is fate for k in kills) for fate in Fate}
    summary = ", ".join(f"{count} {fate.value}" for fate, count in fates.items() if count)
    figures = {
        "fates": {fate.value: count for fate, count in fates.items()},
        "matrix": {k.fault.name: dict(k.judged.by_rule) for k in kills},
    }
    return StepResult(f"{len(kills)} faults: {summary}", cases, figures)


def real_logs_judged(echo: Echo) -> StepResult:
    """Judge logs of real Kafka brokers under faults, and compare the rebuilt replicas with the disks."""
    done = []
    for captured in judge_captures():
        failing = ", ".join(captured.failing) or "no rule fails"
        events, replicas = captured.report.events, captured.replicas
        echo(f"      Kafka {captured.name}: {failing}; {events:,} events, {replicas} replicas rebuilt")
        done.append(captured)
    excerpts = list(judge_excerpts())
    wrong = sum(bool(excerpt.differences) for excerpt in excerpts)
    echo(f"      {len(excerpts)} logs cut from real clusters: {wrong} not judged rightly")
    cases = tuple(
        JobCase(
            c.name,
            not c.differences,
            "\n".join(c.differences) or f"{', '.join(c.failing) or 'no rule fails'}",
            c.report.seconds,
        )
        for c in (*done, *excerpts)
    )
    events = sum(c.report.events for c in done)
    broken = sum(bool(c.failing) for c in done)
    return StepResult(
        f"{len(done)} captures, {events:,} events; {broken} show the bug they must show, the others none; "
        f"{sum(c.replicas for c in done)} replicas as on disk; "
        f"{len(excerpts)} logs cut from real clusters, nothing wrong in any",
        cases,
        {"captures": {c.name: {"fails": list(c.failing), "events": c.report.events} for c in done}},
        tuple(explanation for c in done for explanation in c.report.explanations),
    )


def mutants_rejected(echo: Echo) -> StepResult:
    """Judge golden traces with one thing changed: rejected, legal in the graph, or accepted for a known reason."""
    graph = explore(SMALL)
    language = Language(graph.states, graph.labels, graph.edges, FETCH_TRUNCATION.name)
    stories = [story for story in STORIES if story.bounds == SMALL and story.profile == FETCH_TRUNCATION.name]
    traces = [trace for story in stories for trace in ndjson.read(DIRECTORY / f"{story.name}.ndjson").traces]
    outcomes = run_mutants(traces, language)
    # Only stories of the one graph: whether a mutant is legal is decided by its language.
    unexplained = [outcome for outcome in outcomes if outcome.survived and outcome.reason is None]
    cases = [
        JobCase("nothing passes without a reason", not unexplained, "\n".join(o.mutant.says for o in unexplained) or "none")
    ]
    for found in figures(outcomes):
        says = (
            f"{found.made} made: {found.rejected} rejected, {found.legal} legal behaviours, "
            f"{found.undecided} left undecided, {found.survived} let pass by design"
        )
        echo(f"      {found.kind}: {says}")
        # A kind of which none is rejected would show that its mutants change nothing that is judged.
        cases.append(JobCase(found.kind, found.rejected > 0, says))
    rejected = sum(bool(outcome.rules) for outcome in outcomes)
    return StepResult(
        f"{len(outcomes):,} mutants of {len(traces)} golden traces: {rejected:,} rejected, "
        f"{len(unexplained)} passed unexplained",
        tuple(cases),
        {"mutants": {f.kind: {**asdict(f), "by_design": f.survived} for f in figures(outcomes)}},
    )
