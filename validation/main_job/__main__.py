"""The main job: models, proofs, spec = impl, interleavings on Spark, real Kafka logs, seeded faults."""

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from tidegauge.cli.main import guarded
from tidegauge.cli.options import natural, positive
from tidegauge.cli.terminal import echo, only_steps
from tidegauge.conformance.engine.precompile import compiled_ahead
from tidegauge.util.files import directory
from tidegauge.util.workers import DEFAULT_SEED
from validation.main_job import steps
from validation.main_job.job import JobStep, exit_code, run_job, summary_table, write_json, write_junit
from validation.main_job.page import write_job_page
from validation.main_job.spark_steps import interleavings_judged
from validation.releases.job_steps import controllers_on_the_wire, kafka_on_the_wire

VERDICTS = {0: "CONFORMS", 1: "FAILS", 2: "SUITE ERROR"}


def main(argv: Sequence[str] | None = None) -> int:
    """Run the main job as the command line asks, and return its exit code."""
    parser = argparse.ArgumentParser(prog="python -m validation.main_job", description=__doc__)
    parser.add_argument("--quiet", action="store_true", help="print results only, no progress")
    parser.add_argument("--out", default="report", metavar="DIR", help="directory for the reports (default report)")
    parser.add_argument(
        "--interleavings", type=positive, default=1_000_000, help="distinct interleavings to judge (default 1000000)"
    )
    parser.add_argument("--seed", type=natural, default=DEFAULT_SEED, help=f"seed of the walks (default {DEFAULT_SEED})")
    return guarded(lambda: run(parser.parse_args(argv)))


def run(args: argparse.Namespace) -> int:
    """Run the steps, write the three reports and print the verdict."""
    out = directory(args.out)
    # TLC leaves a core idle now and then: there is time to compile the judge.
    with tempfile.TemporaryDirectory(prefix="tidegauge-") as scratch, compiled_ahead():
        outcomes = run_job(
            (
                JobStep("TLC models as pinned", steps.models_as_pinned),
                JobStep("rules proved", steps.rules_proved),
                JobStep("spec = impl", steps.spec_equals_impl),
                JobStep(
                    "interleavings judged on Spark",
                    lambda say: interleavings_judged(Path(scratch), args.interleavings, args.seed, say),
                ),
                JobStep("real Kafka logs judged", steps.real_logs_judged),
                JobStep("impl = Kafka on the wire", kafka_on_the_wire),
                JobStep("impl = Kafka's controller on the wire", controllers_on_the_wire),
                JobStep("seeded faults caught", steps.seeded_faults),
                JobStep("mutants rejected", steps.mutants_rejected),
                JobStep("judge = spec", steps.judge_equals_spec),
            ),
            only_steps if args.quiet else echo,
        )
    write_json(outcomes, out / "conformance.json")
    write_junit(outcomes, out / "conformance.xml")
    write_job_page(outcomes, out / "index.html")
    code = exit_code(outcomes)
    echo()
    echo(summary_table(outcomes))
    echo(f"reports: {out / 'index.html'}, conformance.json, conformance.xml")
    echo(f"{VERDICTS[code]}: {sum(outcome.seconds for outcome in outcomes):.0f} s, seed {args.seed}")
    return code


if __name__ == "__main__":
    sys.exit(main())
