"""While the judge is compiled elsewhere: whenever the code becomes ready, the judgement is the same."""

import subprocess
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.conformance.checking.test_judge import golden
from tidegauge.conformance.engine import compiled, kernel_while_compiling, precompile
from tidegauge.conformance.engine.judge import (
    FAILURES_KEPT,
    PAST_AT_FIRST,
    ROOM_AT_FIRST,
    Judgement,
    execution,
    frozen_inputs,
    judge_with,
    options_of,
)
from tidegauge.conformance.judge import state as s
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.traces.columns import to_columns
from tidegauge.traces.schema import Config, Trace


def traces() -> list[Trace]:
    """Golden traces of three nodes, right and wrong ones, one of them long."""
    some = [trace for trace in golden() if trace.config.nodes == (1, 2, 3)]
    assert len(some) > 3
    return some


def patient(columns: Any, config: Config, ready_after: int, monkeypatch: pytest.MonkeyPatch, final: int = 0) -> Judgement:
    """Judged while the code becomes ready after so many looks; the code is the interpreted kernel, noted."""
    looks = count()
    monkeypatch.setattr(kernel_while_compiling, "is_ready", lambda: next(looks) >= ready_after)
    monkeypatch.setattr(kernel_while_compiling, "compiled", lambda: judge_traces)
    return judge_with(kernel_while_compiling.judge_until_compiled, columns, config, final)


@pytest.mark.parametrize("piece", [7, 40])
@pytest.mark.parametrize("final", [0, 2])
def test_when_it_becomes_ready_makes_no_difference(piece: int, final: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first event, in the middle of a trace, between two, and never."""
    monkeypatch.setattr(kernel_while_compiling, "PIECE", piece)
    config = traces()[0].config
    columns = to_columns(traces(), config)
    right = judge_with(judge_traces, columns, config, final)
    assert right.failures, "or wrong numbers of traces would not be seen"
    assert len({failure.trace for failure in right.failures}) > 1
    for ready_after in (*range(12), 10**9):
        assert patient(columns, config, ready_after, monkeypatch, final) == right


def test_a_caller_that_judges_piece_by_piece_keeps_its_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    """explain.replay does: nothing is forgotten in between, nor checked at the end."""
    monkeypatch.setattr(kernel_while_compiling, "PIECE", 7)
    monkeypatch.setattr(kernel_while_compiling, "is_ready", lambda: False)
    trace = max(traces(), key=lambda trace: len(trace.events))
    columns = to_columns([trace], trace.config)
    options = options_of(columns, trace.config)
    options[s.PIECEWISE] = 1
    tables = []
    kernels: tuple[Any, ...] = (judge_traces, kernel_while_compiling.judge_until_compiled)
    for kernel in kernels:
        st = s.allocate(options, ROOM_AT_FIRST, FAILURES_KEPT, PAST_AT_FIRST)
        s.forget(st, 0)
        inputs = frozen_inputs(columns, None, columns.missing)[:-1]
        for piece in ([0, 11], [11, len(columns)]):
            states = np.zeros((0, 0, 0), np.int64), np.zeros((0, 0, 0, 0), np.int64)
            kernel(st, *inputs, np.array(piece), *states)
        tables.append(st)
    assert (tables[0] == tables[1]).all()


def test_a_trace_that_needs_more_room_is_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tidegauge.conformance.engine.judge.ROOM_AT_FIRST", 1)
    monkeypatch.setattr(kernel_while_compiling, "PIECE", 7)
    config = traces()[0].config
    columns = to_columns(traces(), config)
    assert patient(columns, config, 3, monkeypatch) == judge_with(judge_traces, columns, config)


def test_it_says_how_far_it_is_and_what_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(precompile.LISTENER, "progress", said.append)
    monkeypatch.setattr(kernel_while_compiling, "PIECE", 7)
    config = traces()[0].config
    columns = to_columns(traces(), config)
    judgement = patient(columns, config, 10**9, monkeypatch)
    assert said[0].endswith("no rule fails so far")
    assert said[-1].startswith(f"{len(columns):,} of {len(columns):,} events judged: FAIL: ")
    assert all(failure.rule in said[-1] for failure in judgement.failures)


def test_the_first_large_input_begins_one_compilation_and_says_so(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    begun: list[Any] = []
    said: list[str] = []
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    # Set, so that it is put back whatever the code under test does to it.
    monkeypatch.setenv(precompile.UNDER_WAY, "")
    monkeypatch.delenv(precompile.UNDER_WAY)
    killed: list[str] = []

    class Begun:
        def __init__(self, command: list[str], **_named: Any) -> None:
            begun.append(command)

        def kill(self) -> None:
            killed.append("killed")

    monkeypatch.setattr(subprocess, "Popen", Begun)
    monkeypatch.setattr(precompile.LISTENER, "give_up", lambda: None)
    monkeypatch.setattr(precompile.LISTENER, "announcement", said.append)
    assert execution(10**6) is kernel_while_compiling.judge_until_compiled
    assert execution(10**6) is kernel_while_compiling.judge_until_compiled
    assert execution(100_000) is judge_traces
    assert (len(begun), said) == (1, [precompile.ANNOUNCEMENT])
    precompile.LISTENER.give_up()
    assert killed == ["killed"], "as Ctrl-C does"
    # Where nothing can be kept, another process would compile for nobody.
    monkeypatch.setattr(compiled, "cache_directory", lambda _rewriting=None: None)
    assert not precompile.compile_in_background()
