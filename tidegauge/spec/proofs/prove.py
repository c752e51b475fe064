"""Run groups of lemmas, each in a process of its own with a time limit.

A process, because z3 keeps its memory and cannot be interrupted safely; a time limit, because an undecided goal must be a
verdict (NOT PROVED), not a run that never ends. The limit is on processor time: a verdict must not depend on the load of the
machine.

In: names of groups, and the largest number of cache entries for which bounded lemmas are proved. Out: a `GroupResult` each.
A *goal* is a statement that a lemma sets; a *tally* counts on how many paths it is proved, refuted or undecided.
"""

import signal
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from multiprocessing.connection import Connection, wait
from typing import Any

from tidegauge.impl import rules
from tidegauge.spec.proofs.engine.paths import GoalResult, GoalTally, GroupResult, ProofVerdict, overall
from tidegauge.spec.proofs.groups import Group
from tidegauge.spec.proofs.premises import all_groups
from tidegauge.util.errors import SpecError
from tidegauge.util.interrupts import interruptible
from tidegauge.util.python_processes import process_context

DEFAULT_ENTRIES = 4
DEFAULT_TIME_LIMIT = 300.0
PATIENCE = 20
"""How many times the limit a group may take by the clock, in case its process hangs."""

ProveProgress = Callable[[str, GroupResult | None], None]
"""Called with a group's name when it starts, and with its result when it ends."""


def namespace_of(source: str | None) -> Mapping[str, Any]:
    """Return the rules to prove by name: those of `impl.rules`, or those that the text `source` defines (a mutant)."""
    if source is None:
        return vars(rules)
    # `__source__`: the proofs of the loops read the text of the rules, which has no file here.
    namespace: dict[str, Any] = {"__name__": "impl.rules", "__source__": source}
    exec(compile(source, "rules", "exec"), namespace)
    return namespace


def prove_group(
    group: Group, max_entries: int = DEFAULT_ENTRIES, source: str | None = None, stop_at_first: bool = False
) -> GroupResult:
    """Prove one group in this process, its lemmas for all sizes of up to `max_entries` cache entries.

    `source` is another text of the rules. `stop_at_first`: end at the first counter-model.
    """
    started = time.monotonic()
    namespace = namespace_of(source)
    goals: list[GoalResult] = [] if group.run is None else group.run(namespace, max_entries)
    paths = 0
    for lemma in group.lemmas:
        tally = GoalTally()
        for size in lemma.sizes(max_entries):
            tally.merge(lemma.explore(size, namespace, stop_at_first=stop_at_first))
            # One counter-model of a mutant is enough to kill it.
            if stop_at_first and tally.refuted:
                break
        goals.extend(_goal_results(lemma.name, tally))
        paths += tally.paths
        if stop_at_first and tally.refuted:
            break
    result = _finished(group, goals, paths)
    return replace(result, seconds=time.monotonic() - started)


def _goal_results(lemma: str, tally: GoalTally) -> list[GoalResult]:
    """Return the result of each goal of a lemma over all its paths and sizes: a refutation, else undecided, else proved."""
    results = [GoalResult(lemma, n, ProofVerdict.COUNTER_MODEL, counter_model=m) for n, m in tally.refuted.items()]
    undecided = {n: r for n, r in tally.unknown.items() if n not in tally.refuted}
    results += [GoalResult(lemma, n, ProofVerdict.NOT_PROVED, reason=r) for n, r in undecided.items()]
    # A goal may be proved on some paths and refuted or undecided on others: the worst counts.
    settled = tally.refuted.keys() | undecided.keys()
    results += [GoalResult(lemma, n, ProofVerdict.PROVED, checks=c) for n, c in tally.proved.items() if n not in settled]
    # No goal on any path: the premises of the lemma contradict each other, which would prove everything.
    if not results:
        results.append(GoalResult(lemma, "reaches a goal", ProofVerdict.NOT_PROVED, reason="no path reached any goal"))
    return results


def _finished(group: Group, goals: list[GoalResult], paths: int) -> GroupResult:
    """Return the result of a group whose goals have all been tried, on so many `paths`; the time it took is added later."""
    verdict = overall([g.verdict for g in goals])
    failures = tuple(g for g in goals if g.verdict is not ProofVerdict.PROVED)
    return GroupResult(group.name, group.title, group.method, verdict, tuple(goals), paths, failures=failures)


def _work(name: str, max_entries: int, source: str | None, time_limit: float, pipe: Connection) -> None:
    """Prove the group `name` and send the result through `pipe`: the main function of a group's process.

    `time_limit` is in seconds of processor time.
    """
    signal.setitimer(signal.ITIMER_PROF, time_limit)  # ends the process, even within the solver
    pipe.send(prove_group(all_groups()[name], max_entries, source))
    pipe.close()


@dataclass
class _Running:
    """A group that is being proved in a process, which sends its result through the pipe and ends."""

    group: Group
    process: Any
    pipe: Connection
    started: float
    """seconds of the monotonic clock"""


def prove(
    groups: Iterable[str] | None = None,
    max_entries: int = DEFAULT_ENTRIES,
    processes: int = 2,
    time_limit: float = DEFAULT_TIME_LIMIT,
    *,
    progress: ProveProgress | None = None,
    source: str | None = None,
) -> list[GroupResult]:
    """Prove the named groups (all by default) for caches of up to `max_entries` entries.

    Runs at most `processes` groups at a time, each for at most `time_limit` seconds of processor time. `source` is another
    text of the rules, to find the goals it breaks. Raises SpecError for an unknown group.
    """
    groups_by_name = all_groups()
    names = list(groups_by_name) if groups is None else list(groups)
    unknown = [n for n in names if n not in groups_by_name]
    if unknown:
        raise SpecError(
            f"expected groups among {', '.join(groups_by_name)}; seen {', '.join(unknown)}; see `tidegauge prove --list`"
        )
    # The heaviest groups first, so that the processes end at about the same time.
    waiting = sorted((groups_by_name[n] for n in names), key=lambda g: -g.weight)
    running: list[_Running] = []
    results: dict[str, GroupResult] = {}
    context = process_context()
    progressed = progress or (lambda _name, _result: None)
    try:
        while waiting or running:
            while waiting and len(running) < processes:
                # Ctrl-C waits until the process is in `running`: else nothing would end it.
                with interruptible():
                    running.append(_start(context, waiting.pop(0), max_entries, source, time_limit))
                progressed(running[-1].group.name, None)
            # The solver can hang without using processor time: then the clock ends it (_result_of).
            left = min(r.started + PATIENCE * time_limit for r in running) - time.monotonic()
            wait([r.pipe for r in running], timeout=max(0.0, left))
            for group_process in list(running):
                result = _result_of(group_process, time_limit)
                if result is not None:
                    running.remove(group_process)
                    results[group_process.group.name] = result
                    progressed(group_process.group.name, result)
    finally:
        for group_process in running:
            group_process.process.kill()
            group_process.process.join()
    return [results[n] for n in names]


def _start(context: Any, group: Group, max_entries: int, source: str | None, time_limit: float) -> _Running:
    """Start a process that proves a group, and return it with the end of the pipe that receives the result.

    `context` is the multiprocessing context; the other arguments are those of `prove`.
    """
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_work, args=(group.name, max_entries, source, time_limit, sender), daemon=True)
    process.start()
    # The process has its own copy. With this one open, its death would not end the pipe.
    sender.close()
    return _Running(group, process, receiver, time.monotonic())


def _result_of(running: _Running, time_limit: float) -> GroupResult | None:
    """Return the result of a group that has ended or must end now; None while it may go on."""
    seconds = time.monotonic() - running.started
    too_long = f"no response within {time_limit:g} s of processor time; try a longer time limit or fewer cache entries"
    reason = ""
    if running.pipe.poll():
        try:
            result: GroupResult = running.pipe.recv()
        except EOFError:
            running.process.join()
            ended = f"its process ended with code {running.process.exitcode} and no result"
            # SIGPROF: the processor time that the process set itself as a limit is used up.
            reason = too_long if running.process.exitcode == -signal.SIGPROF else ended
        else:
            running.process.join()
            return replace(result, seconds=seconds)
    # The limit on processor time has not ended it: it waits for a processor, or hangs.
    elif seconds >= PATIENCE * time_limit:
        running.process.kill()
        running.process.join()
        reason = too_long
    # No result, no end, and time left.
    if not reason:
        return None
    group = running.group
    return GroupResult(group.name, group.title, group.method, ProofVerdict.NOT_PROVED, seconds=seconds, reason=reason)


def exit_code(results: list[GroupResult]) -> int:
    """Return 0 if all goals are proved, 1 for a counter-model, 3 if a goal is undecided or nothing ran."""
    return overall([r.verdict for r in results]).exit_code
