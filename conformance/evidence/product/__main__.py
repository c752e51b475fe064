"""`python -m tidegauge.conformance.evidence.product [MODEL ...] [--memories N] [--seed S]`: judge = spec.

Soundness for each model: the product with the judge, and the rules that a right behaviour breaks. Completeness: what of all
that the model cannot tell next is let pass, after every memory of the judge, or after N of them drawn with the seed. It ends
with 1 when a right behaviour breaks a rule that its profile keeps, or when something passes that no reason is given for.
"""

import argparse
import sys
import time
from collections.abc import Sequence

from tidegauge.conformance.evidence.product.let_pass import completeness, let_pass
from tidegauge.conformance.evidence.product.models import MODELS, Model
from tidegauge.conformance.evidence.product.walk import soundness, walk


def main(argv: Sequence[str]) -> int:
    """A line for each model, then what is let pass."""
    parser = argparse.ArgumentParser(prog="python -m tidegauge.conformance.evidence.product", description=__doc__)
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"some of: {'; '.join(model.name for model in MODELS)}")
    parser.add_argument("--memories", type=int, default=0, help="ask about so many memories of each judge; 0: about all")
    parser.add_argument("--seed", type=int, default=2026)
    given = parser.parse_args(argv)
    unknown = sorted(set(given.models) - {model.name for model in MODELS})
    if unknown or given.memories < 0:
        parser.error(f"expected names of models and a count; seen {', '.join(unknown) or given.memories}")
    wrong = 0
    for model in MODELS:
        if not given.models or model.name in given.models:
            wrong += not _held(model, given.memories, given.seed)
    return 1 if wrong else 0


def _held(model: Model, memories: int, seed: int) -> bool:
    begin = time.process_time()
    walked = walk(model.automaton(), model.config)
    print(f"{model.name}: {soundness(walked)} ({time.process_time() - begin:.0f} s of processor time)", flush=True)
    for broken in walked.first:
        print(f"  {', '.join(broken.rules)}: {walked.broken[broken.rules]:,} times; first:")
        for event in broken.events:
            print(
                f"    {event.node:>4} {event.event} " + " ".join(f"{name}={value}" for name, value in event.fields.items())
            )
    begin = time.process_time()
    found = let_pass(walked, memories=memories, seed=seed)
    asked = f" after {memories:,} memories drawn with seed {seed}" if 0 < memories < walked.memories else ""
    print(f"  {completeness(found)}{asked} ({time.process_time() - begin:.0f} s)")
    for one in found:
        if one.open + one.passed:
            changed = f" {one.field}" if one.field else ""
            counts = f"{one.passed:,} passed, {one.open:,} open, of {one.offered:,}"
            print(f"    {one.event}{changed}: {counts}: {one.reason or 'NO REASON'}")
    return set(walked.rules) <= model.known and all(one.explained for one in found)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
