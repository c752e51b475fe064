"""tidegauge generate."""

import argparse

from commands import profiles
from commands.terminal import CONFORMS, SEED, UNDECIDED, echo


def arguments(parser: argparse.ArgumentParser) -> None:
    """What the command takes."""
    parser.add_argument("--out", required=True, metavar="FILE", help="Parquet file to write")
    parser.add_argument("--traces", type=int, default=10_000, help="how many distinct interleavings (default 10000)")
    parser.add_argument("--model", default="Small", help="model whose graph is walked (default Small)")
    profiles.arguments(parser, "profile of the implementation (default fetch-truncation)")
    parser.add_argument("--steps", type=int, default=24, help="transitions per interleaving (default 24)")
    parser.add_argument("--fault", help="walk the graph of this faulty implementation instead; tidegauge bugs lists them")
    parser.add_argument("--seed", type=int, default=SEED, help=f"seed of the walks (default {SEED})")


def run(args: argparse.Namespace) -> int:
    """Write distinct interleavings of a model as Parquet, or of the implementation with one faulty rule."""
    from conformance.spec_equals_impl import bounds_of
    from impl.explore import explore
    from impl.faults import fault_named
    from impl.profiles import FETCH_TRUNCATION
    from spec.models import find_model
    from traces.edges import edge_table
    from traces.walks import generate

    profile = profiles.chosen(args) or FETCH_TRUNCATION.name
    bounds = bounds_of(find_model(args.model))
    rules = fault_named(args.fault).rules if args.fault else None
    if not args.quiet:
        echo(f"exploring {args.model}, {bounds.brokers} brokers ...")
    graph = explore(bounds, profile, rules)
    table = edge_table(graph.states, graph.labels, graph.edges, profile, source=f"{args.model} {args.fault or ''}".strip())
    made = generate(table, args.out, args.traces, steps=args.steps, seed=args.seed)
    echo(f"{made.path}: {made.traces:,} distinct interleavings, {made.events:,} events, seed {args.seed}")
    return CONFORMS if made.traces else UNDECIDED
