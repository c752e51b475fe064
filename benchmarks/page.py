"""`python -m benchmarks.page [NAME...] [--render] [--strict]`: run benchmarks, keep their numbers, write docs/benchmarks.md.

Rules of this file

1. Each benchmark is a process of its own: what one holds on a core, or has compiled, is nothing to the next.
2. What was measured is written at once, in the place of what that benchmark measured before: a later one that fails costs
   none. The page is made of what is kept, also without measuring.
"""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.contents import BENCHMARKS, NAMES, PLOTS, Benchmark
from benchmarks.measure import Report
from benchmarks.page_text import page
from benchmarks.plots import drawn
from benchmarks.results import keep, kept_in

DOCS = Path(__file__).resolve().parents[1] / "docs"


def rendered(kept: Mapping[str, Report]) -> dict[str, str]:
    """The page and its plots: path below docs -> text."""
    plots = {f"benchmarks/{plot.name}.svg": drawn(plot, kept.values()) for plot in PLOTS}
    return {"benchmarks.md": page(kept), **{path: text for path, text in plots.items() if text}}


def render(docs: Path) -> None:
    """Make the page of what is kept."""
    (docs / "benchmarks").mkdir(exist_ok=True)
    for path, text in rendered(kept_in(docs)).items():
        (docs / path).write_text(text, encoding="utf-8")


def measured(benchmark: Benchmark, seed: int) -> Report | None:
    """What a benchmark found; None where it did not end well, which it has said itself."""
    with tempfile.TemporaryDirectory() as scratch:
        path = Path(scratch) / "report.json"
        command = (sys.executable, "-m", f"benchmarks.{benchmark.name}", "--json", str(path), "--seed", str(seed))
        done = subprocess.run((*command, *benchmark.arguments), check=False)
        if done.returncode or not path.exists():
            return None
        return Report.of_json(json.loads(path.read_text(encoding="utf-8")))


def main(arguments: Sequence[str], docs: Path = DOCS) -> int:
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("names", nargs="*", metavar="NAME", help=f"some of {', '.join(NAMES)}; all if none is named")
    options.add_argument("--render", action="store_true", help="measure nothing, make the page of what is kept")
    options.add_argument("--strict", action="store_true", help="exit with 1 when a bar is missed or undecided")
    options.add_argument("--seed", type=int, default=0)
    chosen = options.parse_args(arguments)
    unknown = [name for name in chosen.names if name not in NAMES]
    if unknown:
        options.error(f"expected some of {', '.join(NAMES)}, seen {', '.join(unknown)}")
    failed = []
    for benchmark in () if chosen.render else BENCHMARKS:
        if benchmark.name in (chosen.names or NAMES):
            print(f"{benchmark.name}: seed {chosen.seed}", file=sys.stderr, flush=True)
            found = measured(benchmark, chosen.seed)
            if found is None:
                failed.append(benchmark.name)
            else:
                keep(docs, kept_in(docs) | {benchmark.name: found})
    render(docs)
    if failed:
        print(f"without a report: {', '.join(failed)}; what stood there before is kept", file=sys.stderr)
    reports = kept_in(docs).values()
    missed = chosen.strict and not all(report.reached for report in reports)
    return 2 if failed else int(missed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
