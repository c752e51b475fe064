"""Tidegauge tells whether a broker's high watermark can be trusted.

The command line: it parses arguments, calls a room, prints what the room returns. Exit codes: 0 conforms, 1 a rule fails,
2 bad usage or bad input, 3 nothing could be decided.
"""

import argparse
import json
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from impl.errors import TidegaugeError
from spec.errors import SpecError

CONFORMS, FAILS, BAD, UNDECIDED, INTERRUPTED = 0, 1, 2, 3, 130
SEED = 20_101
EXTRAS = {"z3": "proofs", "pyspark": "spark", "pandas": "spark", "google_crc32c": "segments"}
"""Which extra of the distribution brings a package that not everybody needs."""


def echo(line: str = "") -> None:
    """One line to the terminal, at once: long work must be seen to move."""
    print(line, flush=True)


def model(args: argparse.Namespace) -> int:
    """Run TLC on the models and hold what it finds against what is pinned."""
    from spec import models

    chosen = [models.find_model(name) for name in args.name] or models.in_tier(args.tier)
    if args.list:
        echo(models.table(chosen))
        return CONFORMS
    done = []
    for number, one in enumerate(chosen, 1):
        if not args.quiet:
            echo(f"[{number}/{len(chosen)}] {one.name} ...")
        done.append(models.run_model(one))
        echo(str(done[-1]))
    if args.record:
        echo(f"recorded in {models.record(done)}")
        return CONFORMS
    wrong = sum(not comparison.ok for comparison in done)
    echo(f"{len(done) - wrong} of {len(done)} models gave what is pinned")
    return FAILS if wrong else CONFORMS


def prove(args: argparse.Namespace) -> int:
    """Prove the rules with z3."""
    from spec.proofs.premises import REMOVALS
    from spec.proofs.prove import exit_code
    from spec.proofs.prove import prove as prove_groups
    from spec.proofs.registry import all_groups
    from spec.proofs.verdicts import GroupResult

    if args.list:
        for group in all_groups().values():
            echo(f"{group.name:<24} {group.title}")
        echo("scenarios (--scenario NAME): what happens without a premise")
        for name, removal in REMOVALS.items():
            echo(f"{name:<24} {removal.name}")
        return CONFORMS
    if args.scenario:
        return _counter_model(args)
    if args.mutants:
        return _mutants(args)

    def progress(name: str, result: GroupResult | None) -> None:
        if result is not None:
            for line in result.describe(args.verbose):
                echo(line)
        elif not args.quiet:
            echo(f"{'...':13}  {name}")

    results = prove_groups(args.group or None, args.entries, args.processes, args.time_limit, progress=progress)
    code = exit_code(results)
    echo(
        {0: "PROVED: every goal", 1: "COUNTER-MODEL: a rule does not do what is claimed", 3: "NOT PROVED: undecided goals"}[
            code
        ]
    )
    return code


def _counter_model(args: argparse.Namespace) -> int:
    from conformance.counter_models import counter_model_trace
    from spec.proofs.premises import modes_of, removal_named
    from traces.ndjson import write

    echo(f"Suppose: {removal_named(args.scenario).name}")
    for mode in modes_of(args.scenario):
        found = counter_model_trace(args.scenario, mode)
        echo(f"\n{mode} mode")
        for line in (*found.run.lines(), found.line()):
            echo(f"  {line}")
        if args.trace:
            Path(args.trace).mkdir(parents=True, exist_ok=True)
            write([found.trace], Path(args.trace) / f"{found.trace.name}.ndjson")
    return CONFORMS


def _mutants(args: argparse.Namespace) -> int:
    from spec.proofs.mutants import kill_all

    def progress(done: int, total: int) -> None:
        if not args.quiet and (done % 100 == 0 or done == total):
            echo(f"{done} of {total} mutants tried")

    report = kill_all(args.processes, progress)
    for line in report.describe():
        echo(line)
    return report.exit_code


def check(args: argparse.Namespace) -> int:
    """Judge traces: NDJSON or Parquet files, or directories of Kafka broker logs."""
    from conformance.check import check as check_paths
    from conformance.report.html import write_html
    from conformance.report.json_report import as_json, write_json
    from conformance.report.junit import write_junit
    from conformance.report.text import as_text

    report = check_paths(args.path, args.profile, echo=_quiet if args.quiet or args.json else _aside)
    if args.out:
        out = Path(args.out)
        out.mkdir(parents=True, exist_ok=True)
        write_json(report, out / "check.json")
        write_junit(report, out / "check.xml")
        write_html(report, out / "index.html")
    if args.json:
        echo(json.dumps(as_json(report), indent=2, ensure_ascii=False))
    else:
        echo(as_text(report, colour=_colour(), everything=args.all))
        if args.out:
            echo(f"reports: {out / 'index.html'}, check.json, check.xml")
    return report.exit_code


def convert(args: argparse.Namespace) -> int:
    """Turn Kafka broker logs, NDJSON or Parquet into NDJSON or Parquet."""
    from conformance.convert import convert as convert_path

    converted = convert_path(Path(args.source), Path(args.target))
    for problem in converted.problems:
        echo(str(problem))
    echo(f"{args.target}: {converted.traces:,} traces, {converted.events:,} events, {len(converted.problems):,} problems")
    return BAD if not converted.events else CONFORMS


def generate(args: argparse.Namespace) -> int:
    """Write distinct interleavings of a model as Parquet, or of the implementation with one faulty rule."""
    from conformance.spec_equals_impl import bounds_of
    from impl.explore import explore
    from impl.faults import fault_named
    from spec.models import find_model
    from traces.edges import edge_table
    from traces.walks import generate as write_walks

    bounds = bounds_of(find_model(args.model))
    rules = fault_named(args.fault).rules if args.fault else None
    if not args.quiet:
        echo(f"exploring {args.model}, {bounds.brokers} brokers ...")
    graph = explore(bounds, args.profile, rules)
    table = edge_table(
        graph.states, graph.labels, graph.edges, args.profile, source=f"{args.model} {args.fault or ''}".strip()
    )
    made = write_walks(table, args.out, args.traces, steps=args.steps, seed=args.seed)
    echo(f"{made.path}: {made.traces:,} distinct interleavings, {made.events:,} events, seed {args.seed}")
    return CONFORMS if made.traces else UNDECIDED


def bugs(args: argparse.Namespace) -> int:
    """The kill matrix: which rule of the judge catches which faulty implementation."""
    from conformance.kill_matrix import Fate, kill_all

    survived = 0
    for kill in kill_all(args.seed):
        rules = ", ".join(f"{rule} ({traces:,})" for rule, traces in kill.by_rule.items()) or kill.says
        echo(f"{kill.fault.name:<30} {kill.fault.resembles:<24} {kill.fate.value}{': ' if rules else ''}{rules}")
        survived += kill.fate is Fate.SURVIVED
    echo(f"seed {args.seed}; {survived} survived")
    return FAILS if survived else CONFORMS


def conformance(args: argparse.Namespace) -> int:
    """The main job: models, proofs, spec = impl, interleavings on Spark, real Kafka logs, seeded faults."""
    from conformance import steps
    from conformance.job import Step, exit_code, run_job, summary_table, write_json, write_junit
    from conformance.report.job_page import write_job_page
    from spark_check.steps import interleavings_judged

    out = Path(args.out)
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="tidegauge-") as scratch:
        outcomes = run_job(
            (
                Step("TLC models as pinned", steps.models_as_pinned),
                Step("rules proved", steps.rules_proved),
                Step("spec = impl", steps.spec_equals_impl),
                Step(
                    "interleavings judged on Spark",
                    lambda say: interleavings_judged(Path(scratch), args.interleavings, args.seed, say),
                ),
                Step("real Kafka logs judged", steps.real_logs_judged),
                Step("seeded faults caught", steps.seeded_faults),
                Step("mutants rejected", steps.mutants_rejected),
            ),
            _only_steps if args.quiet else echo,
        )
    write_json(outcomes, out / "conformance.json")
    write_junit(outcomes, out / "conformance.xml")
    write_job_page(outcomes, out / "index.html")
    code = exit_code(outcomes)
    echo()
    echo(summary_table(outcomes))
    echo(f"reports: {out / 'index.html'}, conformance.json, conformance.xml")
    echo(
        {0: "CONFORMS", 1: "FAILS", 2: "SUITE ERROR"}[code] + f": {sum(o.seconds for o in outcomes):.0f} s, seed {args.seed}"
    )
    return code


def scenario(args: argparse.Namespace) -> int:
    """Play scenarios and hold what happens against what their files say."""
    from conformance.scenario import rewrite, run_scenario, shipped, summary
    from traces.ndjson import write

    done = []
    for path in args.file or shipped():
        one = run_scenario(path)
        done.append(one)
        if args.trace:
            Path(args.trace).mkdir(parents=True, exist_ok=True)
            write([one.trace], Path(args.trace) / f"{one.scenario.path.stem}.ndjson")
        if args.rewrite and rewrite(one):
            echo(f"{path}: rewritten, review the difference")
        elif not one.passed:
            echo(one.diff)
        elif not args.quiet:
            echo(f"{one.scenario.path.stem}: {one.scenario.expected}; {one.judge_says}")
    echo(summary(done))
    return CONFORMS if all(one.passed for one in done) else FAILS


def play(args: argparse.Namespace) -> int:
    """Play with a small cluster by hand: write, fetch, crash, elect, show."""
    from conformance.scenario import play as play_by_hand
    from conformance.transcript import render

    def prompt() -> None:
        if sys.stdin.isatty():
            print("> ", end="", flush=True)

    transcript = play_by_hand(sys.stdin, echo, prompt)
    if args.save:
        Path(args.save).write_text(render(transcript), encoding="utf-8")
        echo(f"saved in {args.save}; give it a claim and it is a scenario")
    return CONFORMS


def _aside(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def _quiet(_line: str) -> None:
    """Says nothing."""


def _only_steps(line: str) -> None:
    if line.startswith("["):
        echo(line)


def _colour() -> bool:
    return sys.stdout.isatty() and "NO_COLOR" not in os.environ


def doctor(_args: argparse.Namespace) -> int:
    """Say what this machine has of what Tidegauge needs."""
    from conformance.doctor import examine

    findings = examine()
    for finding in findings:
        echo(f"{'found  ' if finding.found else 'MISSING'}  {finding.name}: {finding.says}")
        if not finding.found:
            echo(f"         needed for: {finding.needed_for}")
    return CONFORMS if all(finding.found for finding in findings) else BAD


Command = Callable[[argparse.Namespace], int]


def parser() -> argparse.ArgumentParser:
    """Every command with its arguments."""
    top = argparse.ArgumentParser(
        prog="tidegauge",
        description="Tells whether a broker's high watermark can be trusted.",
        epilog="exit codes: 0 conforms, 1 a rule fails, 2 bad usage or bad input, 3 nothing could be decided",
    )
    top.add_argument("--version", action="version", version=f"tidegauge {_version()}")
    commands = top.add_subparsers(metavar="COMMAND", required=True)

    def add(run: Command, name: str | None = None) -> argparse.ArgumentParser:
        doc = (run.__doc__ or "").strip()
        added = commands.add_parser(name or run.__name__, help=doc.splitlines()[0].rstrip("."), description=doc)
        added.set_defaults(run=run)
        added.add_argument("--quiet", action="store_true", help="no progress, only results")
        return added

    one = add(model)
    one.add_argument("name", nargs="*", help="models to run, by name; default: a whole tier")
    one.add_argument("--tier", default="small", choices=("small", "medium", "large"), help="this tier and the cheaper ones")
    one.add_argument("--list", action="store_true", help="list the models, run nothing")
    one.add_argument("--record", action="store_true", help="pin what TLC finds in spec/models.toml")

    one = add(prove)
    one.add_argument("--group", action="append", help="prove only this group; may be repeated")
    one.add_argument("--entries", type=int, default=4, help="largest epoch cache of the bounded proofs (default 4)")
    one.add_argument("--processes", type=int, default=2, help="groups proved at once (default 2)")
    one.add_argument("--time-limit", type=float, default=300.0, metavar="SECONDS", help="per group (default 300)")
    one.add_argument("--verbose", action="store_true", help="tell what is lost without each premise, too")
    one.add_argument("--mutants", action="store_true", help="instead: is every small change of a rule refuted by a proof?")
    one.add_argument("--scenario", metavar="NAME", help="instead: two logs that do not converge without this premise")
    one.add_argument("--trace", metavar="DIR", help="with --scenario: also write it as a trace, NAME-MODE.ndjson, there")
    one.add_argument("--list", action="store_true", help="list the groups and scenarios, prove nothing")

    one = add(check)
    one.add_argument("path", nargs="+", help="NDJSON or Parquet file, or a directory of Kafka broker logs")
    one.add_argument("--profile", help="judge by this profile instead of the one the trace names")
    one.add_argument("--out", metavar="DIR", help="also write index.html, check.json and check.xml (JUnit) there")
    one.add_argument("--json", action="store_true", help="print the report as JSON")
    one.add_argument("--all", action="store_true", help="list the rules that passed or were not exercised, too")

    one = add(convert)
    one.add_argument("source", help="NDJSON or Parquet file, or a directory of Kafka broker logs")
    one.add_argument("target", help="file to write: NAME.parquet is Parquet, anything else NDJSON")

    one = add(generate)
    one.add_argument("--out", required=True, metavar="FILE", help="Parquet file to write")
    one.add_argument("--traces", type=int, default=10_000, help="how many distinct interleavings (default 10000)")
    one.add_argument("--model", default="Small", help="model whose graph is walked (default Small)")
    one.add_argument(
        "--profile", default="fetch-truncation", help="profile of the implementation (default fetch-truncation)"
    )
    one.add_argument("--steps", type=int, default=24, help="transitions per interleaving (default 24)")
    one.add_argument("--fault", help="walk the graph of this faulty implementation instead; tidegauge bugs lists them")
    one.add_argument("--seed", type=int, default=SEED, help=f"seed of the walks (default {SEED})")

    one = add(bugs)
    one.add_argument("--seed", type=int, default=SEED, help=f"seed of the walks (default {SEED})")

    one = add(conformance)
    one.add_argument("--out", default="report", metavar="DIR", help="where the reports go (default report)")
    one.add_argument(
        "--interleavings", type=int, default=1_000_000, help="distinct interleavings to judge (default 1000000)"
    )
    one.add_argument("--seed", type=int, default=SEED, help=f"seed of the walks (default {SEED})")

    one = add(scenario)
    one.add_argument("file", nargs="*", help="scenario files; default: all that are shipped")
    one.add_argument("--rewrite", action="store_true", help="write what happens into the files, and count them as failed")
    one.add_argument("--trace", metavar="DIR", help="also write each run as a trace, NAME.ndjson, there")

    one = add(play)
    one.add_argument("--save", metavar="FILE", help="keep the session as a transcript")

    add(doctor)
    return top


def _version() -> str:
    try:
        return version("tidegauge")
    except PackageNotFoundError:
        return "from a checkout"


def main(argv: Sequence[str] | None = None) -> int:
    """Entry point of the `tidegauge` command."""
    args = parser().parse_args(argv)
    try:
        return int(args.run(args))
    except (TidegaugeError, SpecError) as problem:
        print(f"tidegauge: {problem}", file=sys.stderr)
        return BAD
    except ModuleNotFoundError as missing:
        extra = EXTRAS.get((missing.name or "").split(".")[0])
        if extra is None:
            raise
        print(
            f"tidegauge: expected package {missing.name}, seen none; run: pip install 'tidegauge[{extra}]'", file=sys.stderr
        )
        return BAD
    except KeyboardInterrupt:
        print("tidegauge: interrupted; what was printed so far stands, nothing else was decided", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return CONFORMS


if __name__ == "__main__":
    sys.exit(main())
