"""Which fields the kernel reads of which event, from its own text; the schema marks the others as carried, not judged.

That a handler uses each of its parameters, the linter checks; of a group (conformance.judge.field_groups) it reads what it
names, or what those read that it hands the group on to.
"""

import ast
import inspect
import sys
from collections.abc import Iterator, Mapping
from types import FunctionType

from tidegauge.conformance.checking import rules_outside_kernel
from tidegauge.conformance.engine.compiled import functions_of
from tidegauge.conformance.judge import field_groups
from tidegauge.conformance.judge import fields as field
from tidegauge.conformance.judge.field_groups import response_of
from tidegauge.conformance.judge.kernel import judge_traces
from tidegauge.traces.schema import EVENTS, FIELDS

NAMES = {event.code: name for name, event in EVENTS.items()}
VARIABLES = {"peer": "peer", "reported": "epochs"}
"""What the loop reads before it knows the event."""


BESIDE_THE_KERNEL = {"req_last_epoch"}
"""Where a follower's cache is unknown, the last request it tells of says how the cache ended (judging.unknown_caches)."""


def test_the_schema_marks_the_fields_that_no_rule_reads() -> None:
    """Each mark is right, and none is missing."""
    read = fields_read(judge_traces)
    marked = {name: event.carried for name, event in EVENTS.items()}
    assert marked == {
        name: tuple(one for one in event.fields if one not in read[name] | BESIDE_THE_KERNEL)
        for name, event in EVENTS.items()
    }


def test_what_is_judged_beside_the_kernel_reads_nothing_else() -> None:
    """Of the truncations it looks at, it reads what the kernel reads too."""
    texts = {
        one.value for one in ast.walk(ast.parse(inspect.getsource(rules_outside_kernel))) if isinstance(one, ast.Constant)
    }
    for truncated in rules_outside_kernel.TRUNCATING:
        assert texts & set(FIELDS) <= fields_read(judge_traces)[truncated] | BESIDE_THE_KERNEL


def test_a_field_that_is_read_no_longer_would_be_noticed() -> None:
    """Three loops with less in them: a field, a helper that is given the columns, and a variable."""
    assert fields_read(_reads)["LogStartMoved"] == {"log_start", "hw"}
    assert fields_read(_reads)["Observe"] == {"leo", "hw"}
    assert fields_read(_reads)["AlterPartition"] == {"peer"}
    assert fields_read(_reads)["Stop"] == {"clean"}
    assert fields_read(_reads)["HandleFetch"] == {"res_hw", "error"}


def fields_read(loop: FunctionType) -> Mapping[str, set[str]]:
    """For each event the fields that its branch of the loop reads; those of the last branch for events without one."""
    read: dict[str, set[str]] = {}
    rest: set[str] = set()
    for branch in ast.walk(_tree(loop)):
        if isinstance(branch, ast.If):
            codes = list(_codes(branch.test))
            found = {one for statement in branch.body for one in _fields(statement, loop)}
            for code in codes:
                read.setdefault(NAMES[code], set()).update(found)
            rest |= found if not codes and _names(branch.test) >= {"peer"} else set()
    return {name: read.get(name, rest) for name in EVENTS}


def _tree(function: FunctionType) -> ast.AST:
    return ast.parse(inspect.getsource(function))


def _codes(test: ast.AST) -> Iterator[int]:
    """`code == field.SEND_FETCH`."""
    for node in ast.walk(test):
        if isinstance(node, ast.Attribute) and _names(node.value) == {"field"} and node.attr.lower() not in FIELDS:
            yield getattr(field, node.attr)


def _names(node: ast.AST) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name)}


def _fields(node: ast.AST, function: FunctionType) -> Iterator[str]:
    for one in ast.walk(node):
        if isinstance(one, ast.Attribute) and _names(one.value) == {"field"} and one.attr.lower() in FIELDS:
            yield one.attr.lower()
        elif isinstance(one, ast.Name) and one.id in VARIABLES:
            yield VARIABLES[one.id]
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            called = vars(sys.modules[function.__module__]).get(one.func.id)
            if any(_names(given) == {"c"} for given in one.args) and one.func.id not in GROUPS:
                yield from _fields(_tree(called), called)
            for at, given in enumerate(one.args):
                group = given.func.id if isinstance(given, ast.Call) and isinstance(given.func, ast.Name) else ""
                if group in GROUPS:
                    yield from (GROUPS[group][name] for name in _of_group(called, at))


def _of_group(function: FunctionType, at: int) -> set[str]:
    """What a function reads of the group that is its parameter `at`, itself or through those it hands the group on to."""
    tree = _tree(function)
    name = list(inspect.signature(function).parameters)[at]
    read: set[str] = set()
    for one in ast.walk(tree):
        if isinstance(one, ast.Attribute) and isinstance(one.value, ast.Name) and one.value.id == name:
            read.add(one.attr)
        elif isinstance(one, ast.Call) and isinstance(one.func, ast.Name):
            for place, given in enumerate(one.args):
                if isinstance(given, ast.Name) and given.id == name:
                    read |= _of_group(vars(sys.modules[function.__module__])[one.func.id], place)
    return read


def _members(maker: FunctionType) -> Mapping[str, str]:
    """The field behind each member of the group that `maker` makes."""
    (made,) = (one for one in ast.walk(_tree(maker)) if isinstance(one, ast.Return))
    assert isinstance(made.value, ast.Call)
    assert isinstance(made.value.func, ast.Name)
    members = getattr(field_groups, made.value.func.id)._fields
    return dict(zip(members, (next(_fields(given, maker)) for given in made.value.args), strict=True))


GROUPS: dict[str, Mapping[str, str]] = {}
GROUPS |= {name: _members(made) for name, made in functions_of(field_groups).items()}
"""What makes a group -> its members with the fields they hold."""


def _reads(c: list[list[int]], i: int, code: int, peer: int) -> object:
    if code == field.LOG_START_MOVED:
        return c[field.LOG_START][i], c[field.HW][i]
    elif code == field.OBSERVE:
        return _ends(c, i)
    elif code == field.ALTER_PARTITION:
        return peer
    elif code == field.HANDLE_FETCH:
        return _served(1, response_of(c, i))
    elif peer < 0:
        return c[field.CLEAN][i]
    return None


def _served(_st: int, response: field_groups.ReportedResponse) -> int:
    return response.hw + _refused(response)


def _refused(response: field_groups.ReportedResponse) -> int:
    return response.error


def _ends(c: list[list[int]], i: int) -> tuple[int, int]:
    return c[field.LEO][i], c[field.HW][i]
