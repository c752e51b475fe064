"""`python -m validation.tlc_oracle [--traces N]`: the judge, and TLC for the spec, decide about the same traces.

Half of the traces are right ones, half mutants. Exit code 1 if a difference has no known reason.

Rules of this file

1. TLC decides whether the spec can produce a trace (validation/tla/TraceEvents.tla), the judge whether a rule fails,
   of the same events of schema v1.
2. They may differ where one of them is stricter: a rule that a profile breaks, so that the spec does too; a line or value
   that the judge leaves free on purpose. ASKS_MORE, FREE and the REASONS of judge = spec list these, by the rules and by
   the change.
3. A difference without such a reason is a finding.
"""

import argparse
import random
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice

from tidegauge.conformance.engine.judge import judge
from tidegauge.impl.cluster.cluster import Bounds
from tidegauge.spec.tlc.models import find_model
from tidegauge.spec.tlc.tlc import Limits
from tidegauge.traces.columns import positions, to_columns
from tidegauge.traces.from_model.impl_walks import bounds_of, impl_walks
from tidegauge.traces.schema import FIELDS, Event, FieldKind, Trace
from tidegauge.util.workers import Echo
from validation import random_runs
from validation.product.reasons import REASONS
from validation.trace_mutants import CHANGED, DROPPED, ONE_NUMBER, SWAPPED, TraceMutant, mutants
from validation.trace_validation import EventValue, Reported, validate_events

STEPS = 40
MAX_FETCH = 2
FROM_EACH = 5
"""Mutants of one trace, drawn at random."""

BATCH = 500
"""Traces in one run of TLC: the start of a JVM counts little, and the tree stays small enough to be read in seconds."""

ASKS_MORE: Mapping[tuple[str, int], frozenset[str]] = {
    (case.profile, case.brokers): case.known for case in random_runs.CASES if not case.besides
}
"""Rules that a profile breaks by itself: a trace that breaks no other is one of the profile's spec."""

OPEN = "an absent line is an observation that was not made: what it would have reported is free"
EITHER_ORDER = "which of two nodes acted first is free where nothing that both reported decides it"
ONE_STEP = "which of two lines of one step comes first is the source's choice"
REGISTERS = "a restarted broker may register and read metadata before its fencing and unfencing are reported; the spec waits"
TOGETHER = "one registration may hold an election and another change of the ISR; the spec makes one at a time"
UNHEARD = "whether an ISR may grow is undecided where no proposal of it was reported"
FORKED = "what recovery makes of the epoch cache of a forked log is open; the spec's cache is what the records imply"

FREE: Mapping[tuple[str, str, str], str] = {
    ("ChangePartition", CHANGED, "isr"): TOGETHER,
    ("ChangePartition", SWAPPED, "ChangePartition"): UNHEARD,
    ("ExpandIsr", SWAPPED, "HandleFetch"): ONE_STEP,
    ("BecomeFollower", SWAPPED, "TruncateToHighWatermark"): ONE_STEP,
    ("TruncateToHighWatermark", SWAPPED, "SendFetch"): ONE_STEP,
}
"""What the judge leaves free and the spec does not: event, kind of change, and the field or the other event. Of one event
more, or one with another value, REASONS says it: those are offered in every state of the models, too."""

REGISTERING = frozenset({"Start", "Crash", "BecomeLeader", "BecomeFollower"})


@dataclass(frozen=True)
class OracleCase:
    """A profile, the model whose cfg puts it in, and how far its traces go."""

    profile: str
    model: str
    brokers: int

    @property
    def name(self) -> str:
        """The name of the case in the table."""
        return f"{self.profile}, {self.brokers} brokers"

    @property
    def bounds(self) -> Bounds:
        """Bounds beyond those of the explored graphs."""
        thread = bounds_of(find_model(self.model)).thread_truncates
        return Bounds(self.brokers, max_log=6, max_epoch=5, max_crashes=2, max_fetch=MAX_FETCH, thread_truncates=thread)


CASES = (
    OracleCase("fetch-truncation", "Small", 2),
    OracleCase("fetch-truncation", "Small", 3),
    OracleCase("repaired", "RepairedFromInit", 3),
    OracleCase("kip320", "Kip320", 3),
    OracleCase("kip279", "Kip279", 2),
    OracleCase("kip101", "Kip101", 2),
    OracleCase("hw-only", "HwOnly", 2),
    OracleCase("kip320", "ThreadKip320", 2),
    OracleCase("hw-only", "ThreadHwOnly", 2),
)


@dataclass(frozen=True)
class Ruling:
    """Both decisions: the rules that fail, whether the spec accepts and how far. `mutant` is None for a right trace."""

    case: OracleCase
    name: str
    mutant: TraceMutant | None
    rules: tuple[str, ...]
    accepted: bool
    matched: int
    trace: Trace

    @property
    def agree(self) -> bool:
        """Whether both accept, or both reject a mutant."""
        # The implementation produced the right traces, so nothing may reject them.
        return self.accepted if not self.rules else not self.accepted and self.mutant is not None

    @property
    def why(self) -> str | None:
        """The known reason why they may differ, or both reject a right trace; None without one."""
        # Both reject: of a mutant that agrees, of a right trace no reason excuses it.
        if self.rules and not self.accepted:
            return None
        # Only before KIP-320 logs fork: an unclean restart then leaves the epoch cache open, but the spec computes it.
        if not self.rules and _reloads_fork(self.trace.events[: self.matched + 1]):
            return FORKED
        if self.rules:
            known = ASKS_MORE.get((self.case.profile, self.case.brokers), frozenset())
            return f"the profile breaks {', '.join(self.rules)}" if set(self.rules) <= known else None
        if self.mutant is None:
            return None
        kind = self.mutant.kind
        number, event, *more = self.mutant.says.split()  # "7 SendFetch req_offset 3 to 4", "7 SendFetch with Crash"
        at = int(number) - 1
        # The reasons go from the general to the particular: a dropped line needs no look at its event.
        if kind == DROPPED:
            return OPEN
        if kind == SWAPPED:
            one, two = self.trace.events[at : at + 2]
            return FREE.get((event, kind, more[1])) if one.node == two.node else _order(event, more[1])
        if kind == CHANGED:
            return FREE.get((event, kind, more[0])) or REASONS.get((event, more[0]))
        return REASONS.get((event, ""))

    @property
    def says(self) -> str:
        """The trace, the change and both decisions in one line."""
        changed = f", {self.mutant.kind}: {self.mutant.says}" if self.mutant else ""
        judged = f"rejects ({', '.join(self.rules)})" if self.rules else "accepts"
        reported = "accepts" if self.accepted else f"rejects event {self.matched + 1}, {self._refused}"
        return f"{self.case.name}, {self.name}{changed}: the judge {judged}, TLC {reported}"

    @property
    def _refused(self) -> str:
        event = self.trace.events[self.matched]
        return f"{event.event} at {event.node} {dict(event.fields)}"


def _reloads_fork(events: Sequence[Event]) -> bool:
    """Return whether the last event is a request of a broker whose record epochs fell, and which was then loaded again."""
    request = events[-1]
    own = [event for event in events if event.node == request.node]
    starts = [at for at, event in enumerate(own) if event.event == "Start"]
    epochs = [event.fields["rec_epoch"] for event in own[: starts[-1] if starts else 0] if "rec_epoch" in event.fields]
    return request.event in {"SendFetch", "SendEpochRequest"} and epochs != sorted(epochs)


def _order(first: str, second: str) -> str:
    events = {first, second}
    return REGISTERS if "ChangePartition" in events and events & REGISTERING else EITHER_ORDER


def reported(trace: Trace) -> list[Reported]:
    """Return a trace as TLC reads it: nodes by position, sets of nodes as bit masks, no truth values."""
    position = positions(trace.config)
    return [
        Reported(
            position[event.node],
            event.event,
            {name: _value(FIELDS[name].kind, value, position) for name, value in event.fields.items()},
        )
        for event in trace.events
    ]


def _value(kind: FieldKind, value: object, position: Mapping[int, int]) -> EventValue:
    match kind, value:
        case _, None:
            return -1
        case FieldKind.NODE, int(node):
            return position[node]
        case FieldKind.NODES, tuple(nodes) | list(nodes):
            return sum(1 << position[node] for node in nodes)
        case FieldKind.EPOCHS, tuple(entries) | list(entries):
            return tuple((int(epoch), int(start)) for epoch, start in entries)
        case _, int(number):
            return int(number)
    raise ValueError(f"expected a value of the schema's kind {kind.value}, seen {value!r}")


def right_traces(case: OracleCase, count: int, seed: int) -> list[Trace]:
    """Return runs of the implementation."""
    return list(impl_walks(count, bounds=case.bounds, profile=case.profile, steps=STEPS, seed=seed))


def drawn_mutants(traces: Sequence[Trace], count: int, seed: int) -> list[TraceMutant]:
    """Return `count` mutants of traces spread over the given ones; none of event numbers, which TLC does not read."""
    chance = random.Random(f"{seed}/mutants")
    # Few mutants of many traces show more than all mutants of a few.
    sources = traces[:: max(1, len(traces) * FROM_EACH // max(count, 1))]
    made = (mutant for trace in sources for mutant in _some(trace, chance))
    return list(islice(made, count))


def _some(trace: Trace, chance: random.Random) -> list[TraceMutant]:
    made = [mutant for mutant in mutants(trace) if mutant.kind != ONE_NUMBER]
    return chance.sample(made, min(FROM_EACH, len(made)))


def rulings(case: OracleCase, subjects: Sequence[Trace | TraceMutant]) -> list[Ruling]:
    """Let the judge and TLC decide about traces of one case, in one run of TLC."""
    traces = [subject.trace if isinstance(subject, TraceMutant) else subject for subject in subjects]
    config = traces[0].config
    judgement = judge(to_columns(traces, config), config)
    broken: dict[int, set[str]] = {}
    for failure in judgement.failures:
        broken.setdefault(failure.trace, set()).add(failure.rule)
    tlc = validate_events(
        [reported(trace) for trace in traces],
        find_model(case.model),
        brokers=case.brokers,
        max_fetch=MAX_FETCH,
        limits=Limits(brief=True),
    )
    return [
        Ruling(
            case,
            trace.name,
            subject if isinstance(subject, TraceMutant) else None,
            tuple(sorted(broken.get(number, ()))),
            verdict.accepted,
            verdict.matched,
            trace,
        )
        for number, (subject, trace, verdict) in enumerate(zip(subjects, traces, tlc.verdicts, strict=True))
    ]


def oracle_rulings(
    traces: int, *, seed: int, cases: Sequence[OracleCase] = CASES, echo: Echo = lambda _line: None
) -> Iterator[Ruling]:
    """Yield rulings on `traces` traces of each case, half of them mutants."""
    for case in cases:
        right = right_traces(case, traces - traces // 2, seed)
        subjects: list[Trace | TraceMutant] = [*right, *drawn_mutants(right, traces // 2, seed)]
        for first in range(0, len(subjects), BATCH):
            batch = subjects[first : first + BATCH]
            echo(f"{case.name}: {first + len(batch):,} of {len(subjects):,} traces")
            yield from rulings(case, batch)


# ---------------------------------------------------------------------------------------------------------------------
# The table


def table(ruled: Iterable[Ruling]) -> str:
    """Return how often they agree, for right traces and for mutants, and each reason of a difference with its count."""
    ruled = list(ruled)
    lines = [f"{'':<34}{'right traces':>14}{'mutants':>10}"]
    for rejects, accepted, name in (
        (False, True, "both accept"),
        (True, False, "both reject"),
        (True, True, "the judge rejects, TLC accepts"),
        (False, False, "the judge accepts, TLC rejects"),
    ):
        same = [one for one in ruled if bool(one.rules) is rejects and one.accepted is accepted]
        mutated = sum(one.mutant is not None for one in same)
        lines.append(f"{name:<34}{len(same) - mutated:>14,}{mutated:>10,}")
        reasons: dict[str, int] = {}
        for one in same:
            if not one.agree:
                reason = one.why or "NOT EXPLAINED"
                reasons[reason] = reasons.get(reason, 0) + 1
        lines += [f"  {count:>6,}  {reason}" for reason, count in sorted(reasons.items(), key=lambda pair: -pair[1])]
    return "\n".join(lines)


def unexplained(ruled: Iterable[Ruling]) -> list[Ruling]:
    """Return the rulings that differ, or both reject a right trace, without a known reason."""
    return [ruling for ruling in ruled if not ruling.agree and ruling.why is None]


def main(argv: Sequence[str]) -> int:
    """Print how often both agree, and each difference without a known reason."""
    parser = argparse.ArgumentParser(prog="python -m validation.tlc_oracle", description=__doc__)
    parser.add_argument("--traces", type=int, default=750, help="traces of each case, half of them mutants (default 750)")
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args(argv)
    started = time.monotonic()
    ruled = list(oracle_rulings(args.traces, seed=args.seed, echo=lambda line: print(line, file=sys.stderr, flush=True)))
    print(f"{len(ruled):,} traces of {len(CASES)} cases, seed {args.seed}: {', '.join(case.name for case in CASES)}\n")
    print(table(ruled))
    left = unexplained(ruled)
    for ruling in left:
        print(f"not explained: {ruling.says}")
    print(f"{time.monotonic() - started:.0f} s")
    return 1 if left else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
