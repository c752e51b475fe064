"""`python -m validation.product [MODEL ...]`: judge = spec.

Soundness for each model: the product with the judge, and the rules that a right behaviour breaks. Completeness: what of all
that the model cannot tell next is let pass, after every memory of the judge; each kind has a reason, its count is pinned.
With --memories only so many are asked about, drawn with the seed, and no counts are compared. With --less it is soundness
alone, without each field, kind of event and node in turn. It ends with 1 when a right behaviour breaks a rule that its
profile keeps, when something passes that no reason is given for, or when a count differs.
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
from validation.product.false_accepts import completeness, exactly, let_pass
from validation.product.models import MODELS, Model
from validation.product.partial_traces import walks
from validation.product.pinned import Counts, counted, differences, pin, pinned
from validation.product.walk import Walked, soundness, walk


@dataclass(frozen=True)
class Held:
    """One model: what is printed of it, what it counted, and whether all is as it must be."""

    model: str
    lines: tuple[str, ...]
    counts: Counts
    ok: bool


def main(argv: Sequence[str]) -> int:
    """A line for each model, then what is let pass."""
    parser = argparse.ArgumentParser(prog="python -m validation.product", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {'; '.join(model.name for model in MODELS)}")
    parser.add_argument("--memories", type=int, default=0, help="ask about so many memories of each judge; 0: about all")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--jobs", type=int, default=2, help="models at a time")
    parser.add_argument("--less", action="store_true", help="leave out one thing after the other")
    parser.add_argument("--pin", action="store_true", help="write let_pass.toml anew for these models")
    given = parser.parse_args(argv)
    unknown = sorted(set(given.models) - {model.name for model in MODELS})
    if unknown or given.memories < 0 or given.jobs < 1 or given.pin + given.less + bool(given.memories) > 1:
        parser.error(f"expected names of models and counts, and --pin, --less or --memories; seen {' '.join(argv)}")
    kernel_with(notes=not given.less)  # before there are several processes
    wanted = [model for model in MODELS if not given.models or model.name in given.models]
    counts, ok = pinned(), True
    # the largest come last in the list, and take longest
    with ProcessPoolExecutor(given.jobs, multiprocessing.get_context("fork")) as pool:
        held = partial(_held, memories=given.memories, seed=given.seed)
        for one in pool.map(_held_with_less if given.less else held, wanted[::-1]):
            print("\n".join(one.lines), flush=True)
            counts[one.model] = one.counts
            ok = ok and (one.ok or given.pin)
    if given.pin:
        pin({model.name: counts[model.name] for model in MODELS if model.name in counts})
    return 0 if ok else 1


def _held(model: Model, memories: int, seed: int) -> Held:
    begin = time.process_time()
    walked = walk(model.automaton(), model.config, model.room, notes=True)
    lines = [f"{model.name}: {soundness(walked)} ({time.process_time() - begin:.0f} s of processor time)", *_broken(walked)]
    begin = time.process_time()
    found = let_pass(walked, memories=memories, seed=seed) if memories else exactly(walked)
    asked = f" after {memories:,} memories drawn with seed {seed}" if 0 < memories < walked.memories else ""
    lines.append(f"  {completeness(found)}{asked} ({time.process_time() - begin:.0f} s)")
    for one in found:
        if one.open + one.passed:
            changed = f" {one.field}" if one.field else ""
            says = f"{one.passed:,} passed, {one.open:,} open, of {one.offered:,}"
            lines.append(f"    {one.event}{changed}: {says}: {one.reason or 'NO REASON'}")
    # of a sample there is nothing to compare but the reasons
    wrong = differences(found, counted(found) if memories else pinned().get(model.name, {}))
    lines += [f"  DIFFERS  {line}" for line in wrong]
    return Held(model.name, tuple(lines), counted(found), set(walked.rules) <= model.known and not wrong)


def _held_with_less(model: Model) -> Held:
    begin = time.process_time()
    omissions = pairs = 0
    lines: list[str] = []
    for less in walks(model):
        omissions, pairs = omissions + 1, pairs + len(less.walked.pairs)
        if not set(less.walked.rules) <= model.known:
            lines += [f"  without {less.what}", *_broken(less.walked)]
    taken = f"({time.process_time() - begin:.0f} s of processor time)"
    says = f"{model.name}: each of {omissions} left out in turn, {pairs:,} pairs: "
    said = "a rule breaks that holds where all is told" if lines else "no rule breaks that holds where all is told"
    return Held(model.name, (f"{says}{said} {taken}", *lines), {}, not lines)


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
