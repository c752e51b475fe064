"""The steps of the main job that hold what unmodified brokers and controllers did on Kafka's wire against the reference,
without them."""

from collections.abc import Callable
from pathlib import Path

from tidegauge.conformance.judging.progress import Echo
from tidegauge.drive.broker import transcript
from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.contract import CaseT
from tidegauge.drive.controller import contract as controller_contract
from tidegauge.drive.controller import recheck as controller_recheck
from tidegauge.drive.controller import transcript as controller_transcript
from tidegauge.drive.runner.recheck import recheck
from tidegauge.drive.runner.rechecked import Rechecked
from tidegauge.drive.runner.shipped import BROKER, CONTROLLER, FOLDER, places
from validation.main_job.job import JobCase, StepResult
from validation.releases.distinct import of_each


def kafka_on_the_wire(echo: Echo) -> StepResult:
    """Every shipped transcript of a broker against the profile of its own release: no step differs."""
    return _result(_rechecked, BROKER, "releases of Kafka", echo)


def controllers_on_the_wire(echo: Echo) -> StepResult:
    """The same with every shipped transcript of a controller."""
    return _result(_rechecked_controller, CONTROLLER, "releases of Kafka's controller", echo)


def _rechecked(place: Path) -> Rechecked[BrokerCase]:
    return recheck(transcript.read(place))


def _rechecked_controller(place: Path) -> Rechecked[controller_contract.ControllerCase]:
    return controller_recheck.recheck(controller_transcript.read(place))


def _result(held: Callable[[Path], Rechecked[CaseT]], kind: str, of: str, echo: Echo) -> StepResult:
    cases, steps, fields = [], 0, 0
    for name, found in of_each(held, places(FOLDER, kind)):
        played, differ = found.played, len(found.played.differences)
        says = f"{played.steps:,} steps of {played.cases:,} paths, {differ:,} paths differ"
        echo(f"      {name}: {says}")
        passed = not differ and played.steps > 0
        cases.append(JobCase(name, passed, f"{says}\n{found.first}".strip(), found.seconds))
        steps, fields = steps + played.steps, fields + played.fields
    return StepResult(
        f"{steps:,} steps of {len(cases)} {of} are those of the reference, {fields:,} values compared",
        tuple(cases),
        {"releases": len(cases), "steps": steps, "fields": fields},
    )
