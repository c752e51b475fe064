"""The steps of the main job that compare recordings of unmodified brokers and controllers with the reference."""

from pathlib import Path
from typing import Any

from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.controller.transcript import CONTROLLER_FORMAT
from tidegauge.drive.runner.recheck import Recheck, recheck
from tidegauge.drive.runner.transcript import BROKER, CONTROLLER, FOLDER, places, read
from tidegauge.util.workers import Echo
from validation.main_job.job import JobCase, StepResult
from validation.releases.evaluate_transcripts import of_each_distinct


def kafka_on_the_wire(echo: Echo) -> StepResult:
    """Compare every shipped transcript of a broker with the profile of its own release: no step differs."""
    return _result(BROKER, "releases of Kafka", echo)


def controllers_on_the_wire(echo: Echo) -> StepResult:
    """Do the same with every shipped transcript of a controller."""
    return _result(CONTROLLER, "releases of Kafka's controller", echo)


def _rechecked(place: Path) -> Recheck[Any]:
    return recheck(read(place, BROKER_FORMAT, CONTROLLER_FORMAT))


def _result(kind: str, subject: str, echo: Echo) -> StepResult:
    cases, steps, fields = [], 0, 0
    for name, rechecked in of_each_distinct(_rechecked, places(FOLDER, kind)):
        played, differ = rechecked.played, len(rechecked.played.differences)
        says = f"{played.steps:,} steps of {played.cases:,} paths, {differ:,} paths differ"
        echo(f"      {name}: {says}")
        passed = not differ and played.steps > 0
        cases.append(JobCase(name, passed, f"{says}\n{rechecked.first}".strip(), rechecked.seconds))
        steps, fields = steps + played.steps, fields + played.fields
    return StepResult(
        f"{steps:,} steps of {len(cases)} {subject} are those of the reference, {fields:,} values compared",
        tuple(cases),
        {"releases": len(cases), "steps": steps, "fields": fields},
    )
