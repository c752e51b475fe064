"""The operators of Rules.tla are the functions of impl/rules.py."""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from typing import Any

import pytest

from tidegauge.impl import rules
from tidegauge.spec import SPEC
from tidegauge.spec.tlc.tlc import TlcOutcome, run_tlc

Row = tuple[str, list[Any], Any]


def split(entries: list[list[int]]) -> tuple[list[int], list[int]]:
    return [epoch for epoch, _ in entries], [start for _, start in entries]


# How a row's arguments are handed to the Python function; the value is compared as it is.
CALLS: dict[str, Callable[..., Any]] = {
    "end_offset_for": lambda entries, end, asked: rules.end_offset_for(*split(entries), end, asked),
    "latest_epoch": lambda entries: rules.latest_epoch(split(entries)[0]),
    "check_leader_epoch": rules.check_leader_epoch,
    "request_error": rules.request_error,
    "forgets_log_ends": rules.forgets_log_ends,
    "fetch_decision": lambda entries, *rest: rules.fetch_decision(*split(entries), *rest),
    "truncation_target": lambda entries, *rest: rules.truncation_target(*split(entries), *rest),
    "out_of_range_reset": rules.out_of_range_reset,
    "may_join_isr": rules.may_join_isr,
    "high_watermark_after_truncation": rules.high_watermark_after_truncation,
    "follower_high_watermark": rules.follower_high_watermark,
    "leader_high_watermark": lambda hw, end, *leos: rules.leader_high_watermark(hw, end, leos, [True] * len(leos), False),
    "accepts_fetch_response": lambda own, at, asked, of: rules.accepts_fetch_response(own, at, True, asked, of, True),
    "accepts_epoch_response": lambda at, of: rules.accepts_epoch_response(at, True, of, True),
}


@cache
def rows() -> list[Row]:
    found: list[Row] = []

    def take(line: str) -> None:
        _, name, arguments, value = json.loads(line.strip('"').replace('\\"', '"').replace("<<", "[").replace(">>", "]"))
        found.append((name, arguments, value))

    result = run_tlc("MCRules", (SPEC / "models/MCRules/MCRules.cfg").read_text(), on_line=take)
    assert result.outcome is TlcOutcome.SUCCESS, result.message
    return found


def disagreements(calls: dict[str, Callable[..., Any]]) -> list[tuple[Row, Any]]:
    wrong: list[tuple[Row, Any]] = []
    for name, arguments, value in rows():
        got = calls[name](*arguments)
        plain = [int(part) for part in got] if isinstance(got, tuple) else int(got)
        if plain != value:
            wrong.append(((name, arguments, value), plain))
    return wrong


@pytest.mark.tlc
def test_every_row_agrees() -> None:
    """TLC's value of each operator is Python's value of the function, for all small arguments."""
    assert disagreements(CALLS) == []
    counts = Counter(name for name, _, _ in rows())
    assert set(counts) == set(CALLS)
    assert min(counts.values()) > 10


@pytest.mark.tlc
def test_a_wrong_rule_disagrees() -> None:
    """A function that is off by one in one row of a table is found."""

    def forgets_kafka_7415(entries: list[list[int]], end: int, asked: int) -> tuple[int, int]:
        epochs, starts = split(entries)
        if epochs and asked < epochs[0]:
            return rules.UNDEFINED, rules.UNDEFINED
        return rules.end_offset_for(epochs, starts, end, asked)

    wrong = disagreements({**CALLS, "end_offset_for": forgets_kafka_7415})
    assert wrong
    assert all(name == "end_offset_for" for (name, _, _), _ in wrong)
