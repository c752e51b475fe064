"""Our own artefacts: third parties as they were probed last, and Kafka's releases as they were recorded.

A recording is held against the profile `safe`, as any broker is: what fails is what a release does otherwise. A path of
another generation may have a step that `safe` cannot be given; that shows nothing about the release.
"""

from collections import Counter
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path

from tidegauge.conformance.checking.situations import Seen
from tidegauge.conformance.report.results import FAIL, PASS, UNDECIDED, RunResults, as_json, counts_of
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.transcript import BROKER_FORMAT
from tidegauge.drive.coverage import Exercised, results_of_differences, rows_of
from tidegauge.drive.probe.run import CheckVerdict
from tidegauge.drive.runner.differences import by_kind
from tidegauge.drive.runner.player import play
from tidegauge.drive.runner.transcript import read
from tidegauge.impl.profiles import SAFE
from tidegauge.util.errors import CONFORMS, FAILS
from validation.third_parties.results import ThirdPartyResult, read_results
from validation.third_parties.run import PARTIES

RUNS = Path(__file__).with_name("runs")
BROKER = "Kafka's broker"


def of_third_party(result: ThirdPartyResult) -> dict[str, object]:
    """Return the artefact of a third party that was probed."""
    verdicts: dict[str, list[str]] = {}
    for check in result.checks:
        verdicts.setdefault(check.rule or f"probe.{check.id.partition('.')[0]}", []).append(check.verdict)
    fails = tuple(f"{check.id}: {check.says}" for check in result.checks if check.verdict == CheckVerdict.FAIL.value)
    # A version is told with what it was built with: the first word after the name is its own.
    version = result.version.removeprefix(f"{result.party} ").partition(" with ")[0]
    title = next((party.title for party in PARTIES if party.name == result.party), result.party)
    verdict = FAIL if fails else PASS if result.checks else UNDECIDED
    rules = {rule: counts_of(each) for rule, each in verdicts.items()}
    made = RunResults("probe", f"{title}@{version}", verdict, FAILS if fails else CONFORMS, rules, fails)
    return {**as_json(made), "date": result.day}


def of_recording(place: Path) -> dict[str, object]:
    """Return the artefact of a recorded release of Kafka's broker."""
    node = read(place, BROKER_FORMAT)
    observed = reference(SAFE).observed()
    played = play(node, node.cases, observed)
    differences = [each for each in played.differences if each.fields != ("step",)]
    rows = dict(zip(rows_of(observed.applied or Counter()), (observed.applied or Counter()).values(), strict=True))
    exercised = Exercised(SAFE.name, rows={row: Seen(times, "") for row, times in rows.items()}, driven=True)
    shown = [min(alike, key=lambda each: each.at) for alike in by_kind(differences).values()]
    made = results_of_differences(shown, FAILS if shown else played.exit_code, exercised, SAFE)
    version = place.name.removeprefix("kafka-").removesuffix(".gz")
    # What was exercised fills a megabyte: how much it was is in docs/kafka-releases.md.
    return as_json(made._replace(target=f"{BROKER}@{version}", coverage=None))


def ours() -> Iterator[tuple[str, dict[str, object]]]:
    """Yield the name of a file and its artefact for each."""
    for result in read_results():
        yield f"{result.party}-{result.day}.json", of_third_party(result)
    folder = Path(str(files("tidegauge.drive").joinpath("transcripts")))
    for place in sorted(folder.glob("kafka-*.gz")):
        yield f"{place.name.removesuffix('.gz')}.json", of_recording(place)
