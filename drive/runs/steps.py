"""The step of the main job that holds what unmodified brokers did on Kafka's wire against the reference, without them."""

from tidegauge.conformance.job.job import JobCase, StepResult
from tidegauge.conformance.judging.progress import Echo
from tidegauge.drive.runs.recheck import recheck
from tidegauge.drive.runs.shipped import shipped


def kafka_on_the_wire(echo: Echo) -> StepResult:
    """Every shipped transcript against the profile of its own release: no step differs."""
    cases, steps, fields = [], 0, 0
    for node in shipped():
        found = recheck(node)
        played, differ = found.played, len(found.played.differences)
        says = f"{played.steps:,} steps of {played.orders:,} paths, {differ:,} paths differ"
        echo(f"      {found.name}: {says}")
        cases.append(JobCase(found.name, not differ and played.steps > 0, f"{says}\n{found.first}".strip(), found.seconds))
        steps, fields = steps + played.steps, fields + played.fields
    return StepResult(
        f"{steps:,} steps of {len(cases)} releases of Kafka are those of the reference, {fields:,} values compared",
        tuple(cases),
        {"releases": len(cases), "steps": steps, "fields": fields},
    )
