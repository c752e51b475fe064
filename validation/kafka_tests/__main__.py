"""Runs the exported tests of the findings against an unmodified release and against a repaired one.

`python -m validation.kafka_tests [FINDING ..]` writes results.json and the table of README.md.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from tidegauge.drive.java_tests.findings import finding_names, finding_test
from tidegauge.util.errors import TidegaugeError
from validation.docs.tables import page_with, table
from validation.kafka_tests.junit_runs import HERE, compiled, failures, repaired

RESULTS, PAGE, MAKER = HERE / "results.json", HERE / "README.md", "validation.kafka_tests"
RELEASE = "4.3.1"
SHOWN = 200
FIXED = {"F1": ("3.9.0", "3.9.1")}
"""A finding that a release has fixed: one before, and that one, which is the repair."""


class TestResult(NamedTuple):
    """What became of the test of a finding: on which release it failed and how, and what else passed."""

    name: str
    release: str
    fails: str
    passes_as_it_is: bool
    passes_repaired: bool
    by: str


def results_of(names: Sequence[str]) -> Iterator[TestResult]:
    """Compile and run the tests of findings; what else than expected is seen goes to stderr."""
    for release in dict.fromkeys(FIXED.get(name, (RELEASE,))[0] for name in names):
        here = [name for name in names if FIXED.get(name, (RELEASE,))[0] == release]
        right = {name: finding_test(name, release) for name in here}
        as_is = {name: finding_test(name, release, repaired=False) for name in here}
        with compiled([*right.values(), *as_is.values()], release) as tests:
            full = {test.name: f"{test.package}.{test.name}" for test in (*right.values(), *as_is.values())}
            before = failures(tests, [*full.values()])
            for name in here:
                own, other = full[right[name].name], full[as_is[name].name]
                if name in FIXED:
                    fixed = FIXED[name][1]
                    with compiled([right[name]], fixed) as later:
                        passed, by = not failures(later, [own])[own], fixed
                else:
                    finding = name.partition("-")[0]
                    with repaired(finding, release) as options:
                        message = failures(tests, [own], options)[own]
                        passed, by = not message, "the agent"
                        if message:
                            print(f"{name} with its repair: {message[:900]}", file=sys.stderr)
                if before[other]:
                    print(f"{name} as it is: {before[other][:900]}", file=sys.stderr)
                yield TestResult(name, release, before[own], not before[other], passed, by)


def result_table() -> str:
    """Return the committed results as a table."""
    rows = [TestResult(**row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))]
    return table(
        ("finding", "compiled against", "fails", "the same path, as the release does it", "repaired"),
        [
            (
                row.name,
                row.release,
                "yes" if row.fails else "**no**",
                "passes" if row.passes_as_it_is else "**fails**",
                f"passes with {row.by}" if row.passes_repaired else "**fails**",
            )
            for row in rows
        ],
    )


def main() -> int:
    """Run the tests that are named, or all."""
    parser = argparse.ArgumentParser(prog=f"python -m {MAKER}", description=__doc__)
    parser.add_argument("names", nargs="*", metavar="FINDING")
    names = parser.parse_args().names or finding_names()
    done = []
    try:
        for result in results_of(names):
            done.append(result)
            write(result)
            print(f"{result.name}: {result.fails[:SHOWN] or 'does not fail'}", flush=True)
    except TidegaugeError as error:
        print(error, file=sys.stderr)
        return 2
    print(result_table())
    return 0 if all(row.fails and row.passes_as_it_is and row.passes_repaired for row in done) else 1


def write(result: TestResult) -> None:
    """Write a result over that which is there, and the table."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []
    every = {**{row["name"]: row for row in rows}, result.name: result._asdict()}
    lines = (json.dumps(every[name]) for name in finding_names() if name in every)
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with({"results": result_table()}, MAKER, page), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
