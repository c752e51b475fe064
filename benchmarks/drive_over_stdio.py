"""The drive door: steps by the clock with the reference behind a pipe, against the same paths without a pipe."""

import sys

from benchmarks.measure import Report, parser
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.broker.steps import EVERYTHING
from tidegauge.drive.contract import Node
from tidegauge.drive.paths.selection import cases_for
from tidegauge.drive.runner.player import ReferenceNode, play
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.profiles import FETCH_TRUNCATION

SERVE = (sys.executable, "-m", "tidegauge.drive.transports.serve")
STEPS_PER_SECOND = 2000


def main() -> int:
    options = parser(__doc__ or "")
    options.add_argument("--repetitions", type=int, default=5)
    options.add_argument("--walks", type=int, default=0, help="random walks besides the usual covers")
    arguments = options.parse_args()
    report = Report("Driving a broker")
    cases, _ = cases_for(EVERYTHING, FETCH_TRUNCATION, walks=arguments.walks, seed=arguments.seed)
    steps = sum(len(case.path) + 1 for case in cases)

    def driven(node: Node) -> None:
        played = play(node, cases, reference())
        if played.differences or played.steps != steps:
            raise SystemExit(
                f"expected {steps:,} steps without a difference; seen {played.steps:,}, {played.differences[:1]}"
            )

    with StdioNode(SERVE) as node:
        driven(node)  # started, and warm
        piped = report.time("over stdio", steps, "steps", lambda: driven(node), arguments.repetitions)
    alone = ReferenceNode(reference())
    report.time("in one process", steps, "steps", lambda: driven(alone), arguments.repetitions)
    report.ratio("steps per second over stdio", piped.rate, STEPS_PER_SECOND)
    report.notes.append(f"{len(cases):,} paths; the suite and the driven program are two processes of Python")
    return report.finish(arguments)


if __name__ == "__main__":
    sys.exit(main())
