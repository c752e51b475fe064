"""Reading TLA+ values as TLC prints them."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.spec.tlc.output import ModelValue, parse_state, parse_value

names = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,5}", fullmatch=True).filter(lambda name: name not in {"TRUE", "FALSE"})
scalars = st.booleans() | st.integers(-99, 10**12) | st.text("abc \"\\'<>", max_size=4) | names.map(ModelValue)
values = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=3).map(tuple)
        | st.frozensets(scalars, max_size=3)
        | st.dictionaries(names, inner, min_size=1, max_size=3)
    ),
    max_leaves=12,
)


def printed(value: Any) -> str:
    match value:
        case bool():
            return str(value).upper()
        case int():
            return str(value)
        case str():
            return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
        case ModelValue():
            return value.name
        case tuple():
            return "<<" + ", ".join(map(printed, value)) + ">>"
        case frozenset():
            return "{" + ", ".join(map(printed, value)) + "}"
        case dict():
            return "[ " + ",\n  ".join(f"{name} |-> {printed(inner)}" for name, inner in value.items()) + " ]"
    raise AssertionError(value)


@given(values)
def test_what_is_printed_is_read_back(value: Any) -> None:
    """Every value reads back as itself, of the same type."""
    assert repr(parse_value(printed(value))) == repr(value) or parse_value(printed(value)) == value


def test_functions_intervals_and_sets_of_records() -> None:
    """A function is a dict, an interval a set, and a set of records a tuple, as dicts cannot be members."""
    assert parse_value("(b1 :> <<>> @@\n  b2 :> <<0>>)") == {ModelValue("b1"): (), ModelValue("b2"): (0,)}
    assert parse_value("1..3") == frozenset({1, 2, 3})
    assert parse_value("{[a |-> 1]}") == ({"a": 1},)


@pytest.mark.parametrize("text", ["", "<<1", "{1 2}", "[a -> 1]", "1 2", "#"])
def test_what_is_no_value_is_refused(text: str) -> None:
    """Half a value, or more than one, is an error and not a guess."""
    with pytest.raises(ValueError, match="expected"):
        parse_value(text)


def test_a_state_is_its_variables() -> None:
    """A state is a list of conjuncts; a value may run over several lines and hold conjunctions in its strings."""
    text = '/\\ log = (b1 :> <<>> @@\n  b2 :> <<0, 1>>)\n/\\ says = "a = b"\n/\\ crashes = 0\n'
    assert parse_state(text) == {"log": {ModelValue("b1"): (), ModelValue("b2"): (0, 1)}, "says": "a = b", "crashes": 0}
