"""Compare the processor time of `tidegauge check` in two checkouts, alternating, in one run.

    python -m benchmarks.two_checkouts BEFORE AFTER PATH... [--times 9]

Prints, for each path, the ratio of AFTER to BEFORE: of the least times, of the medians, and the median of pairs.
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

from benchmarks.machine import line, machine


def seconds(root: Path, path: Path, home: str) -> float:
    """Check a path with the code of a checkout; return the processor time of all its processes."""
    environment = {**os.environ, "PYTHONPATH": str(root), "HOME": home, "XDG_CACHE_HOME": f"{home}/cache"}
    command = [sys.executable, "-P", "-m", "tidegauge", "check", str(path.resolve())]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(command, env=environment, cwd=home, capture_output=True, text=True, check=False)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if ended.returncode not in (0, 1):
        raise SystemExit(f"{root}: expected a verdict on {path}, seen {ended.stdout}{ended.stderr}")
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main() -> int:
    """Compare, and print a line for each path."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("before", type=Path, help="a checkout")
    parser.add_argument("after", type=Path, help="another")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="what check takes")
    parser.add_argument("--times", type=int, default=9)
    options = parser.parse_args()
    roots = (options.before.resolve(), options.after.resolve())
    with tempfile.TemporaryDirectory() as one, tempfile.TemporaryDirectory() as two:
        homes = dict(zip(roots, (one, two), strict=True))
        for path in options.paths:
            # Twice without counting: a judge may be compiled in the background, and is then loaded.
            for root in roots * 2:
                seconds(root, path, homes[root])
            found: dict[Path, list[float]] = {root: [] for root in roots}
            for at in range(options.times):
                for root in roots[:: -1 if at % 2 else 1]:
                    found[root].append(seconds(root, path, homes[root]))
            before, after = (found[root] for root in roots)
            pairs = median(one / other for one, other in zip(after, before, strict=True))
            ratios = f"least {min(after) / min(before):.3f}, median {median(after) / median(before):.3f}, pairs {pairs:.3f}"
            print(f"{path.name}: after / before: {ratios} ({median(after):.2f} s)", flush=True)
    print(line(machine()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
