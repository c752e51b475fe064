"""The steps of the main job that hold what unmodified brokers and controllers did on Kafka's wire against the reference,
without them."""

from collections.abc import Iterable

from tidegauge.conformance.job.job import JobCase, StepResult
from tidegauge.conformance.judging.progress import Echo
from tidegauge.drive.controller import recheck as of_controller
from tidegauge.drive.played import OrderT
from tidegauge.drive.reporting.rechecked import Rechecked
from tidegauge.drive.runs.recheck import recheck
from tidegauge.drive.runs.shipped import shipped, shipped_controllers


def kafka_on_the_wire(echo: Echo) -> StepResult:
    """Every shipped transcript of a broker against the profile of its own release: no step differs."""
    return _result(map(recheck, shipped()), "releases of Kafka", echo)


def controllers_on_the_wire(echo: Echo) -> StepResult:
    """The same with every shipped transcript of a controller."""
    return _result(map(of_controller.recheck, shipped_controllers()), "releases of Kafka's controller", echo)


def _result(every: Iterable[Rechecked[OrderT]], of: str, echo: Echo) -> StepResult:
    cases, steps, fields = [], 0, 0
    for found in every:
        played, differ = found.played, len(found.played.differences)
        says = f"{played.steps:,} steps of {played.orders:,} paths, {differ:,} paths differ"
        echo(f"      {found.name}: {says}")
        cases.append(JobCase(found.name, not differ and played.steps > 0, f"{says}\n{found.first}".strip(), found.seconds))
        steps, fields = steps + played.steps, fields + played.fields
    return StepResult(
        f"{steps:,} steps of {len(cases)} {of} are those of the reference, {fields:,} values compared",
        tuple(cases),
        {"releases": len(cases), "steps": steps, "fields": fields},
    )
