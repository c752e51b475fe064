"""The kernel while another process compiles it: interpreted, some traces at a time, until the machine code is ready.

`st` is the kernel's table (judge.state), `inputs` are the kernel's arguments after the table (engine.judge.frozen_inputs)
without the starts of traces, `final` and `caches` the arrays that get the last states of the first traces.

Rules of this file

1. When the code becomes ready changes the time and nothing else: both kernels are one text, and each goes on with the table
   that the other has left.
2. A trace is judged as a whole by one kernel, unless it is long: then it is judged in pieces, as one that grows.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidegauge.conformance.engine.compiled import compiled, is_ready
from tidegauge.conformance.engine.judge import frozen
from tidegauge.conformance.engine.precompile import LISTENER
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.events.lifecycle import logs_agree
from tidegauge.conformance.judge.fields import RULE_IDS
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.conformance.judge.unobserved import forget_unobserved

PIECE = 20_000
"""Events that are interpreted before the code is looked for again: a second or two."""


def judge_until_compiled(st: s.State, *arguments: Any) -> None:
    """Judge as `kernel.judge_traces` does, with the same arguments, which follow its table."""
    *inputs, trace_starts, final, caches = arguments
    traces, begin = len(trace_starts) - 1, 0  # `begin`: the number of the next trace
    # PIECEWISE: what is passed as traces are pieces of one trace, which the caller has begun, and ends.
    if st[s.OPTION, s.PIECEWISE] == 1:
        for piece in range(traces):
            _judge_pieces(st, inputs, int(trace_starts[piece]), int(trace_starts[piece + 1]))
        return
    while begin < traces and st[s.PARTITION, s.OVERFLOW] == 0:  # a full table: the caller begins again with a larger one
        kernel, end = judge_traces, traces
        if is_ready():
            kernel = compiled()
        else:
            # As many traces as fit into the next piece, and at least one.
            end = max(begin + 1, int(np.searchsorted(trace_starts, trace_starts[begin] + PIECE, side="right")) - 1)
        # Last states are kept of few and short traces, and are copied by the kernel itself.
        if end == begin + 1 and begin >= len(final) and trace_starts[end] - trace_starts[begin] > PIECE:
            _judge_in_pieces(st, inputs, int(trace_starts[begin]), int(trace_starts[end]), begin)
        else:
            _judge_some(st, kernel, inputs, trace_starts, (begin, end), final, caches)
        begin = end
        _show_progress(st, int(trace_starts[begin]), int(trace_starts[-1]))


def _judge_some(
    st: s.State,
    kernel: Any,
    inputs: list[Any],
    trace_starts: s.Ints,
    numbers: tuple[int, int],
    final: NDArray[np.int64],
    caches: NDArray[np.int64],
) -> None:
    """Judge the traces with `numbers` from the first up to, without, the second; correct the numbers in their failures."""
    begin, end = numbers
    failures_before = int(st[s.PARTITION, s.FAILURES])
    kernel(st, *inputs, frozen(trace_starts[begin : end + 1]), final[begin:end], caches[begin:end])
    # The kernel numbers the traces that it is given from 0.
    first = int(st[s.PARTITION, s.AT_FAILURES])
    st[first + failures_before : first + int(st[s.PARTITION, s.FAILURES]), s.F_TRACE] += begin


def _judge_in_pieces(st: s.State, inputs: list[Any], first: int, last: int, trace: int) -> None:
    """Judge the trace of this number, the events from `first` up to, without, `last`."""
    # With PIECEWISE the kernel neither begins a trace, which is done here, nor ends it, which is done below.
    s.forget(st, trace)
    st[s.OPTION, s.PIECEWISE] = 1
    _judge_pieces(st, inputs, first, last)
    st[s.OPTION, s.PIECEWISE] = 0
    # Where kinds of events are not reported, some may have happened after the last event of the trace.
    if st[s.OPTION, s.UNOBSERVED] != 0:
        for b in range(st[s.OPTION, s.BROKERS]):
            forget_unobserved(st, b)
    logs_agree(st)


def _judge_pieces(st: s.State, inputs: list[Any], first: int, last: int) -> None:
    """Judge the events of a trace from `first` up to, without, `last`, in pieces of PIECE events.

    They are judged by the interpreted kernel; as soon as the machine code is ready, the rest is one piece for that.
    """
    # `final` and `caches` of the kernel: empty, since the state goes on in `st`.
    no_states = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)
    while first < last and st[s.PARTITION, s.OVERFLOW] == 0:
        ready = is_ready()
        stop = last if ready else min(first + PIECE, last)
        kernel: Any = compiled() if ready else judge_traces
        kernel(st, *inputs, frozen(np.array([first, stop], np.int64)), *no_states)
        first = stop
        _show_progress(st, first, last)


def _show_progress(st: s.State, judged: int, events: int) -> None:
    """Report how many events are judged, and which rules fail so far."""
    failing = [rule for at, rule in enumerate(RULE_IDS) if st[s.TALLIES + at, s.FAILED_COUNT] > 0]
    verdict = f"FAIL: {', '.join(failing)}" if failing else "no rule fails so far"
    LISTENER.progress(f"{judged:,} of {events:,} events judged: {verdict}")
