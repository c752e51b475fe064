"""`python -m validation.third_parties.run [NAME ...]`: start the third parties, or those that are named, and probe them.

The results are kept in results.json, and docs/third-parties.md is made from them.

Exit codes: 0 every failure has its reason, 1 one has none or a reason is not needed any more, 2 something is missing,
130 Ctrl-C.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

from tidegauge.drive.probe.connection import tcp
from tidegauge.drive.probe.report import probe_json
from tidegauge.drive.probe.run import probe
from tidegauge.util.errors import BAD, CONFORMS, FAILS, UsageError
from tidegauge.util.interrupts import interruptible
from validation.third_parties.kfake import KFAKE
from validation.third_parties.librdkafka import LIBRDKAFKA
from validation.third_parties.page import failures, stale, third_parties_page
from validation.third_parties.results import RESULTS_FILE, ThirdPartyResult, read_results, result_of, write_results
from validation.third_parties.running import running
from validation.third_parties.tansu import TANSU
from validation.third_parties.third_party import ThirdParty

PAGE = Path(__file__).resolve().parents[2] / "docs" / "third-parties.md"
SEED, TIMEOUT_SECONDS = 1, 30.0

PARTIES: tuple[ThirdParty, ...] = (KFAKE, LIBRDKAFKA, TANSU)
"""The third parties, in the order of the page."""


def probe_party(party: ThirdParty, folder: Path | None = None) -> ThirdPartyResult:
    """Start a third party, probe it, and end it; `folder` gets every exchange in words and hex. Raises UsageError."""
    with running(party) as process, interruptible() as heed:
        probed = probe(tcp(TIMEOUT_SECONDS), (process.host, process.port), SEED, heed=heed)
    if folder is not None:
        (folder / f"{party.name}.json").write_text(probe_json(probed, process.version), encoding="utf-8")
    return result_of(party.name, process.version, datetime.now(UTC), probed)


def complaints(party: ThirdParty, result: ThirdPartyResult) -> Iterator[str]:
    """Return what has to be looked into before the page is published."""
    for check in failures(party, result).get(None, []):
        yield f"{party.name}: {check.id}: {check.says}: find the reason in the sources, and write it down"
    for reason in stale(party, result):
        yield f"{party.name}: {' '.join(reason.checks)}: no failing check needs this reason any more; delete it"


def main(arguments: Sequence[str] | None = None) -> int:
    """Probe the third parties, keep the results, and make the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    names = [party.name for party in PARTIES]
    parser.add_argument("party", nargs="*", help=f"some of {', '.join(names)} (default all)")
    parser.add_argument(
        "--exchanges", type=Path, metavar="FOLDER", help="write all requests and responses to FOLDER, in words and hex"
    )
    args = parser.parse_args(arguments)
    if unknown := set(args.party) - set(names):
        parser.error(f"expected some of {', '.join(names)}; seen {', '.join(sorted(unknown))}")
    results_by_party = {result.party: result for result in read_results()}
    try:
        for party in PARTIES:
            if party.name in (args.party or names):
                _print(f"{party.name}: seed {SEED}")
                results_by_party[party.name] = probe_party(party, args.exchanges)
                _print(f"{party.name}: {results_by_party[party.name].version}")
    except UsageError as problem:
        sys.stderr.write(f"{problem}\n")
        return BAD
    except KeyboardInterrupt:
        return 130
    # Parties that were not probed now keep their earlier results, with the day of those.
    results = [(party, results_by_party[party.name]) for party in PARTIES if party.name in results_by_party]
    write_results((result for _, result in results), RESULTS_FILE)
    PAGE.write_text(third_parties_page(results), encoding="utf-8")
    complaint_lines = [line for party, result in results for line in complaints(party, result)]
    _print("\n".join((*complaint_lines, f"{PAGE}: written")))
    return FAILS if complaint_lines else CONFORMS


def _print(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
