"""tidegauge convert, tidegauge generate: traces as files.

`generate` writes interleavings: distinct walks through the state graph of a model, in one process or on Spark (--spark); or
runs of the specification that TLC simulates (--simulate).
"""

import argparse

from tidegauge.cli.options import (
    add_bounds,
    add_layout,
    add_profile,
    add_spark,
    chosen_master,
    chosen_profile,
    natural,
    positive,
)
from tidegauge.cli.terminal import aside, echo
from tidegauge.util.errors import BAD, CONFORMS, UNDECIDED, TidegaugeError, UsageError
from tidegauge.util.files import replacing, writable
from tidegauge.util.untrusted_text import visible
from tidegauge.util.workers import DEFAULT_SEED


def convert_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge convert` to its parser."""
    parser.add_argument(
        "source", help="NDJSON or Parquet file, Kafka broker log, or a directory of these; - is standard input"
    )
    parser.add_argument(
        "target", help="the file to write: .parquet is Parquet, .itf.json ITF (a file per trace), all else NDJSON"
    )
    add_layout(parser)
    add_bounds(parser)


def convert_command(args: argparse.Namespace) -> int:
    """Turn Kafka broker logs, NDJSON or Parquet into NDJSON, Parquet, or ITF for viewers of Apalache and Quint.

    Lines that cannot be read are left out and reported, with exit code 2. If no event can be read, no file is written.
    """
    from tidegauge.conformance.checking.convert import convert
    from tidegauge.traces.problems import counted, lost

    converted = convert(args.source, args.target, args.layout)
    for problem in converted.problems:
        aside(visible(str(problem)))
    if not converted.events:
        aside(f"{args.target}: not written, because no event could be read; the lines above say what was expected")
        return BAD
    sizes = {"trace": converted.traces, "event": converted.events, "problem": len(converted.problems)}
    echo(f"{args.target}: {', '.join(counted(size, noun) for noun, size in sizes.items())}")
    return BAD if lost(converted.problems) else CONFORMS


DEFAULT_PARTS = 4
"""Files of a generation on Spark by default: the same parts give the same bytes on any cluster."""


def generate_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge generate` to its parser."""
    parser.add_argument(
        "--out",
        required=True,
        metavar="FILE",
        help="the Parquet file to write; with --simulate also NDJSON, with --spark a directory or a URI",
    )
    add_spark(parser, "write the interleavings on Spark, each into one of several files")
    parser.add_argument(
        "--parts",
        type=positive,
        default=DEFAULT_PARTS,
        help=f"with --spark: number of files, a power of two (default {DEFAULT_PARTS})",
    )
    parser.add_argument("--traces", type=positive, default=10_000, help="number of distinct interleavings (default 10000)")
    parser.add_argument("--model", default="Small", help="the model whose state graph is walked (default Small)")
    add_profile(parser, "profile of the implementation (default fetch-truncation)")
    parser.add_argument("--steps", type=positive, default=24, help="transitions per interleaving (default 24)")
    parser.add_argument(
        "--fault", help="walk the graph of an implementation with this fault instead; tidegauge bugs lists them"
    )
    parser.add_argument("--seed", type=natural, default=DEFAULT_SEED, help=f"seed of the walks (default {DEFAULT_SEED})")
    parser.add_argument(
        "--simulate",
        action="store_true",
        help="instead: write random runs of the specification, simulated by TLC, within the bounds of --bound",
    )
    parser.add_argument(
        "--bound",
        action="append",
        default=[],
        type=_bound,
        metavar="NAME=N",
        help="with --simulate: a bound of the model, such as MaxLog=12; may be repeated",
    )
    parser.add_argument(
        "--brokers", type=int, choices=(1, 2, 3), help="with --simulate: number of brokers (default: the model's)"
    )


def _bound(text: str) -> tuple[str, int]:
    """Parse a bound such as MaxLog=12. Raises ArgumentTypeError."""
    name, _, number = text.partition("=")
    if not name.isidentifier() or not number.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a bound such as MaxLog=12, seen {text!r}")
    return name, int(number)


def generate_command(args: argparse.Namespace) -> int:
    """Write distinct interleavings of a model, or of the implementation with one faulty rule, as Parquet."""
    if args.spark:
        return _on_spark(args)
    # Before the graph is explored, which may take minutes: raises for a file that cannot be written.
    writable(args.out)
    if args.simulate:
        return _simulate(args)
    if args.bound or args.brokers:
        raise UsageError(
            "generate: expected --bound and --brokers only with --simulate, seen one without it; add --simulate, or leave "
            "them out: the bounds are those of the model"
        )

    from tidegauge.impl.explorer.explore import explore
    from tidegauge.impl.explorer.faults import fault_named
    from tidegauge.impl.profiles import FETCH_TRUNCATION
    from tidegauge.spec.tlc.models import find_model
    from tidegauge.traces.from_model.impl_walks import bounds_of
    from tidegauge.traces.from_model.walks import edge_table, generate

    profile = chosen_profile(args) or FETCH_TRUNCATION.name
    bounds = bounds_of(find_model(args.model))
    rules = fault_named(args.fault).rules if args.fault else None
    if not args.quiet:
        echo(f"exploring {args.model}, {bounds.brokers} brokers ...")
    try:
        graph = explore(bounds, profile, rules)
    # A wrong name keeps its own message. Any other error of the explorer: the profile or fault leads to states that the
    # specification does not have.
    except UsageError:
        raise
    except TidegaugeError as error:
        # What was explored: the implementation with this profile, and the fault if there is one.
        walker = f"{profile} with {args.fault}" if args.fault else profile
        raise UsageError(
            f"generate: expected states that the specification has, seen that {walker} goes beyond them ({error}); "
            "take another --release, --profile or --fault, or a smaller --model"
        ) from error
    table = edge_table(graph.states, graph.labels, graph.edges, profile, source=f"{args.model} {args.fault or ''}".strip())
    with replacing(args.out) as file:
        generated = generate(table, file, args.traces, steps=args.steps, seed=args.seed)
    echo(f"{args.out}: {generated.traces:,} distinct interleavings, {generated.events:,} events, seed {args.seed}")
    return CONFORMS if generated.traces else UNDECIDED


def _on_spark(args: argparse.Namespace) -> int:
    """Write interleavings on Spark, print how many, and return the exit code. Raises UsageError for other options.

    An *order* says which interleavings to make; each part is one file.
    """
    if args.simulate or args.fault or args.bound or args.brokers:
        raise UsageError(
            "generate: expected --spark without --simulate, --fault, --bound and --brokers, seen one of them; leave it out"
        )

    from tidegauge.impl.profiles import FETCH_TRUNCATION
    from tidegauge.spark_check.generation import Order, generate_on_spark
    from tidegauge.spec.tlc.models import find_model
    from tidegauge.traces.from_model.impl_walks import bounds_of

    profile = chosen_profile(args) or FETCH_TRUNCATION.name
    order = Order(args.traces, bounds_of(find_model(args.model)), profile, args.steps, args.seed, args.parts)
    parts = generate_on_spark(args.out, order, chosen_master(args))
    traces, events = sum(part.traces for part in parts), sum(part.events for part in parts)
    echo(f"{args.out}: {traces:,} distinct interleavings, {events:,} events in {len(parts):,} parts, seed {args.seed}")
    return CONFORMS if traces else UNDECIDED


def _simulate(args: argparse.Namespace) -> int:
    """Write runs of the specification that TLC simulates, print how many, and return the exit code.

    `args.bound` has pairs of a bound's name and its value. Raises UsageError for options that are of the implementation.
    """
    if args.fault or args.profile or args.release:
        raise UsageError(
            "generate: expected --simulate without --fault, --profile and --release, seen one of them; leave it out: the "
            "profile comes from --model; RepairedFromInit, HwOnly, Kip101, Kip279, Kip320 and Kip966 have others"
        )

    from tidegauge.conformance.from_tlc.tlc_runs import simulated, write
    from tidegauge.spec.tlc.models import find_model

    model = find_model(args.model)
    if not args.quiet:
        echo(f"simulating {model.name} ...")
    runs = simulated(model, args.traces, steps=args.steps, seed=args.seed, brokers=args.brokers, bounds=dict(args.bound))
    with replacing(args.out) as file:
        write(runs, file)
    echo(f"{args.out}: {len(runs):,} simulated runs, {sum(len(trace.events) for trace in runs):,} events, seed {args.seed}")
    return CONFORMS if runs else UNDECIDED
