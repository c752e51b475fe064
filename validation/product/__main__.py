"""`python -m validation.product [MODEL ...]`: judge = spec.

Soundness: the product of each model with the judge, and the rules that a right behaviour breaks. Completeness: which wrong
next events the judge accepts, after every memory; each kind has a reason, its count is pinned. --memories asks about so
many memories, drawn with the seed, and compares no counts. --less checks soundness alone, leaving out each field, kind of
event and node in turn. Exit code 1: a right behaviour breaks a rule that its profile keeps, something passes without a
reason, or a count differs.
"""

import argparse
import multiprocessing
import sys
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial

from validation.product.executions import kernel_with
from validation.product.false_accepts import (
    Counts,
    completeness,
    counts_of,
    differences,
    false_accepts,
    false_accepts_by_group,
    pin,
    pinned,
)
from validation.product.models import MODELS, Model
from validation.product.partial_traces import walks
from validation.product.walk import Walked, soundness, walk


@dataclass(frozen=True)
class ModelOutcome:
    """The result of one model: its printed lines, its counts, and whether all is as it must be."""

    model: str
    lines: tuple[str, ...]
    counts: Counts
    ok: bool


def main(argv: Sequence[str]) -> int:
    """Print a line for each model, then the kinds that pass."""
    parser = argparse.ArgumentParser(prog="python -m validation.product", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {'; '.join(model.name for model in MODELS)}")
    parser.add_argument(
        "--memories", type=int, default=0, help="ask about so many memories of each model; 0: about all (default)"
    )
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=2, help="models that are walked at a time (default 2)")
    parser.add_argument(
        "--less",
        action="store_true",
        help="check soundness alone, leaving out one field, kind of event or node after the other",
    )
    parser.add_argument("--pin", action="store_true", help="write false_accepts.toml anew for these models")
    args = parser.parse_args(argv)
    unknown = sorted(set(args.models) - {model.name for model in MODELS})
    if unknown or args.memories < 0 or args.jobs < 1 or args.pin + args.less + bool(args.memories) > 1:
        parser.error(f"expected names of models, and at most one of --pin, --less and --memories N; seen {' '.join(argv)}")
    kernel_with(notes=not args.less)  # compiled once, before several processes would each do it
    wanted = [model for model in MODELS if not args.models or model.name in args.models]
    counts, ok = pinned(), True
    # The largest come last in the list and take longest, so they begin first.
    with ProcessPoolExecutor(args.jobs, multiprocessing.get_context("fork")) as pool:
        whole = partial(_outcome, memories=args.memories, seed=args.seed)
        for outcome in pool.map(_outcome_with_less if args.less else whole, wanted[::-1]):
            print("\n".join(outcome.lines), flush=True)
            counts[outcome.model] = outcome.counts
            ok = ok and (outcome.ok or args.pin)
    if args.pin:
        pin({model.name: counts[model.name] for model in MODELS if model.name in counts})
    return 0 if ok else 1


def _outcome(model: Model, memories: int, seed: int) -> ModelOutcome:
    begin = time.process_time()
    walked = walk(model.automaton(), model.config, model.room, notes=True)
    lines = [f"{model.name}: {soundness(walked)} ({time.process_time() - begin:.0f} s of processor time)", *_broken(walked)]
    begin = time.process_time()
    kinds = false_accepts(walked, memories=memories, seed=seed) if memories else false_accepts_by_group(walked)
    asked = f" after {memories:,} memories drawn with seed {seed}" if 0 < memories < walked.memories else ""
    lines.append(f"  {completeness(kinds)}{asked} ({time.process_time() - begin:.0f} s)")
    for kind in kinds:
        if kind.open + kind.passed:
            share = f"{kind.passed:,} passed, {kind.open:,} open, of {kind.offered:,}"
            lines.append(f"    {kind.kind}: {share}: {kind.reason or 'NO REASON'}")
    # The counts of a sample cannot be compared with the pinned ones, only its reasons are checked.
    wrong = differences(kinds, counts_of(kinds) if memories else pinned().get(model.name, {}))
    lines += [f"  DIFFERS  {line}" for line in wrong]
    return ModelOutcome(model.name, tuple(lines), counts_of(kinds), set(walked.rules) <= model.known and not wrong)


def _outcome_with_less(model: Model) -> ModelOutcome:
    begin = time.process_time()
    omissions = pairs = 0
    lines: list[str] = []
    for less in walks(model):
        omissions, pairs = omissions + 1, pairs + len(less.walked.pairs)
        if not set(less.walked.rules) <= model.known:
            lines += [f"  without {less.what}", *_broken(less.walked)]
    seconds = f"({time.process_time() - begin:.0f} s of processor time)"
    head = f"{model.name}: each of {omissions} left out in turn, {pairs:,} pairs: {'a' if lines else 'no'} rule breaks"
    return ModelOutcome(model.name, (f"{head} that holds where all is told {seconds}", *lines), {}, not lines)


def _broken(walked: Walked) -> list[str]:
    lines = []
    for broken in walked.first:
        lines.append(f"  {', '.join(broken.rules)}: {walked.broken[broken.rules]:,} times; first:")
        for event in broken.events:
            fields = " ".join(f"{name}={value}" for name, value in event.fields.items())
            lines.append(f"    {event.node:>4} {event.event} {fields}")
    return lines


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
