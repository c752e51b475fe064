"""How long a whole job takes, and how long it would have on cores that nobody else slows down: `conformance`, or `kafka`.

`conformance` is after its set-up. `kafka` begins without covers and archives of classes, and its jars are there; it makes
docs/kafka-releases.md and drive/transcripts anew, as `./run kafka` does.
"""

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from benchmarks.measure import Report, parser
from benchmarks.pace import Pace
from tidegauge.util.files import cache


class Job(NamedTuple):
    """What is run, and how many minutes it may take on two quiet cores."""

    command: tuple[str, ...]
    minutes: float
    from_nothing: tuple[str, ...] = ()
    """Folders of the user's cache that it begins without."""


JOBS = {
    "conformance": Job(("validation.main_job",), 5),
    "kafka": Job(("validation.releases.page", "3.6.2", "4.1.1", "4.3.1"), 10, ("covers", "classes")),
}


@contextmanager
def without(folders: tuple[str, ...]) -> Iterator[dict[str, str]]:
    """An environment whose cache is the user's but for some folders."""
    mine = cache("")
    with tempfile.TemporaryDirectory(prefix="tidegauge-cache-") as place:
        theirs = Path(place) / mine.name
        theirs.mkdir()
        for one in sorted(mine.iterdir()) if mine.is_dir() else ():
            if one.name not in folders:
                (theirs / one.name).symlink_to(one)
        yield {**os.environ, "XDG_CACHE_HOME": place}


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("job", choices=JOBS)
    arguments = options.parse_args()
    job = JOBS[arguments.job]
    report = Report(f"The whole of `{arguments.job}`")
    with without(job.from_nothing) as environment, Pace() as pace:
        began = time.monotonic()
        done = subprocess.run([sys.executable, "-m", *job.command], env=environment, check=False)
        seconds = time.monotonic() - began
    if done.returncode:
        raise SystemExit(f"expected that {' '.join(job.command)} passes; seen exit code {done.returncode}")
    report.add(arguments.job, 1, "jobs", [seconds])
    report.ratio("minutes on quiet cores, estimated", seconds * pace.share / 60, job.minutes, most=True)
    report.notes.append(
        f"{seconds / 60:.1f} min by the clock; the cores did {100 * pace.share:.0f} % of what they do at their best"
    )
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
