"""Runs the exported tests of the findings against an unmodified release and against a repaired one.

`python -m validation.kafka_tests [FINDING ..]` writes results.json and the table of README.md.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from tidegauge.drive.java_tests.export import FIXED, JavaTest, finding_names, finding_test, release_with
from tidegauge.util.errors import TidegaugeError
from validation.docs.tables import page_with, table
from validation.kafka_tests.junit_runs import HERE, compiled, failures, repaired

RESULTS, PAGE, MAKER = HERE / "results.json", HERE / "README.md", "validation.kafka_tests"
SHOWN = 900


class FindingResult(NamedTuple):
    """What became of the test of a finding: how it failed on the release, and whether it passed with the repair.

    `passes_as_it_is`: whether the test of the same path that asserts what the release does has passed on it.
    """

    name: str
    release: str
    fails: str
    passes_as_it_is: bool
    passes_repaired: bool


def results_of(names: Sequence[str]) -> Iterator[FindingResult]:
    """Compile and run the tests of findings; what else than expected is seen goes to stderr."""
    for release, group in groupby(names, key=release_with):
        yield from _results_of(release, tuple(group))


def _results_of(release: str, names: Sequence[str]) -> Iterator[FindingResult]:
    right = {name: finding_test(name, release) for name in names}
    as_is = {name: finding_test(name, release, repaired=False) for name in names}
    tests = (*right.values(), *as_is.values())
    with compiled(tests, release) as classes:
        before = failures(classes, [full_name(test) for test in tests])
        for name in names:
            own, other = full_name(right[name]), full_name(as_is[name])
            if name in FIXED:
                with compiled((right[name],), FIXED[name][1]) as mended:
                    after = failures(mended, [own])[own]
            else:
                with repaired(name.partition("-")[0], release) as options:
                    after = failures(classes, [own], options)[own]
            for what, message in ((f"{name} with its repair", after), (f"{name} as it is", before[other])):
                if message:
                    print(f"{what}: {message[:SHOWN]}", file=sys.stderr)
            yield FindingResult(name, release, before[own], not before[other], not after)


def full_name(test: JavaTest) -> str:
    """Return the name of a test's class with its package."""
    return f"{test.package}.{test.name}"


def result_table() -> str:
    """Return the committed results as a table."""
    known = {row["name"]: FindingResult(**row) for row in json.loads(RESULTS.read_text(encoding="utf-8"))}
    rows: list[tuple[str, ...]] = []
    for name in finding_names():
        if name not in known:
            rows.append((name, "not run", "", "", ""))
            continue
        row = known[name]
        verdicts = (row.fails, not row.passes_as_it_is, not row.passes_repaired)
        as_it_is, what_it_does, with_repair = ("fails" if fails else "passes" for fails in verdicts)
        mended = f"{with_repair}, on {FIXED[name][1]}" if name in FIXED else with_repair
        rows.append((name, row.release, as_it_is, what_it_does, mended))
    return table(("finding", "compiled against", "unmodified", "unmodified, the test of what it does", "repaired"), rows)


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


def write(result: FindingResult) -> None:
    """Write a result over that which is there, and the table."""
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.is_file() else []
    # A cause may name what is another one in each run, such as the id of a topic.
    result = result._replace(fails=result.fails.partition("; Caused by")[0])
    every = {**{row["name"]: row for row in rows}, result.name: result._asdict()}
    lines = (json.dumps(every[name]) for name in finding_names() if name in every)
    RESULTS.write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")
    page = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(page_with({"results": result_table()}, MAKER, page), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
