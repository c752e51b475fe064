"""A cfg is read as TLC reads it, whatever its layout, and written in one layout."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.spec import SPEC
from tidegauge.spec.tlc.cfg import Cfg, named_brokers, parse_cfg
from tidegauge.util.errors import SpecError

FILES = sorted((SPEC / "models").rglob("*.cfg"))

names = st.text("ABxy_9", min_size=1, max_size=4).map("N{}".format)
lists = st.lists(names, max_size=3).map(tuple)
values = st.one_of(
    st.integers(-9, 99).map(str), names, names.map('"{}"'.format), lists.map(lambda all_: "{" + ", ".join(all_) + "}")
)
cfgs = st.builds(
    lambda constants, substitutions, **rest: Cfg(
        constants=constants, substitutions={n: o for n, o in substitutions.items() if n not in constants}, **rest
    ),
    comment=st.lists(st.text("ab=<-{}. ", max_size=9).map(str.strip), max_size=2).map(tuple),
    specification=st.one_of(st.just(""), names),
    init=st.one_of(st.just(""), names),
    next=st.one_of(st.just(""), names),
    constants=st.dictionaries(names, values, max_size=4),
    substitutions=st.dictionaries(names, names, max_size=3),
    invariants=lists,
    properties=lists,
    constraints=lists,
    action_constraints=lists,
    symmetry=st.one_of(st.just(""), names),
    view=st.one_of(st.just(""), names),
)


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_shipped_cfg_is_written_as_it_is_read(path: Path) -> None:
    """Byte by byte: nothing of a file is left out, and all have one layout."""
    text = path.read_text(encoding="utf-8")
    assert parse_cfg(text).text() == text


@given(cfgs)
def test_what_is_written_is_read_again(cfg: Cfg) -> None:
    """Any cfg, not only those that are shipped."""
    assert parse_cfg(cfg.text()) == cfg


@given(cfgs, st.sampled_from(["\n", "  ", "\n\n\t", " \\* an aside\n", " (* two\nlines *) "]))
def test_layout_means_nothing(cfg: Cfg, space: str) -> None:
    """Line ends, blanks and comments between any two words; `}` and `,` hold no words apart that this could join."""
    words = cfg._replace(comment=()).text().replace(", ", ",").split()
    assert parse_cfg(space.join(["", *words, ""])) == cfg._replace(comment=())


def test_both_numbers_of_a_keyword_and_lists_behind_one_are_read() -> None:
    """INVARIANTS A B is INVARIANT A and INVARIANT B."""
    cfg = parse_cfg("INVARIANTS A B\nPROPERTIES\n P\nINVARIANT C\nCONSTANT X = 1\nCONSTANTS Y <- Z\nCONSTRAINTS Small")
    assert (cfg.invariants, cfg.properties, cfg.constraints) == (("A", "B", "C"), ("P",), ("Small",))
    assert (cfg.constants, cfg.substitutions) == ({"X": "1"}, {"Y": "Z"})


def test_the_opening_comment_is_claim_and_expectation() -> None:
    """What stands behind the first word is no opening comment."""
    cfg = parse_cfg("\\* Two\n\\* lines.  Expected: success.\nSPECIFICATION Spec\n\\* an aside\n")
    assert (cfg.claim, cfg.expected) == ("Two lines.", "success.")


def test_changes_leave_the_rest_as_it_was() -> None:
    """Each gives a new value; what was put in before gives way."""
    cfg = parse_cfg("SPECIFICATION S\nCONSTANTS\n  Broker = {b1}\n  MaxLog = 2\n  Step <- IsNext\nINVARIANT I\nPROPERTY P\n")
    changed = cfg.with_constants(MaxLog=1, Broker=named_brokers(2)).with_substitutions(Step="Print").without_properties()
    assert changed.text() == "SPECIFICATION S\nCONSTANTS\n  Broker = {b1, b2}\n  MaxLog = 1\n  Step <- Print\n"
    assert (changed.number("MaxLog"), changed.members("Broker"), cfg.checked) == (1, ("b1", "b2"), ("I", "P"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SPECIFICATION Spec\nCHECK_DEADLOCK FALSE\n", r"a\.cfg:2: expected a keyword that .*, seen CHECK_DEADLOCK"),
        ("SPECIFICATION Spec\nSPECIFICATION Other\n", r"a\.cfg:2: expected .* once, seen SPECIFICATION"),
        ("Spec\n", r"a\.cfg:1: expected a keyword, seen Spec"),
        ("SPECIFICATION\n\nINIT Init\n", r"a\.cfg:3: expected a name, seen INIT"),
        ("CONSTANTS\n  X\n", r"a\.cfg:2: expected = or <-, seen the end"),
        ("CONSTANTS\n  X <- 3\n", r"a\.cfg:2: expected an operator, seen 3"),
        ("CONSTANTS\n  X = INVARIANT\n", r"a\.cfg:2: expected a number.*, seen INVARIANT"),
        ("CONSTANTS\n  X = 1\n  X <- Y\n", r"a\.cfg:3: expected each constant once, seen X"),
        ("CONSTANTS\n  X <- [Module]Y\n", r"a\.cfg:2: expected a keyword, a name or a value, seen \[Module\]Y"),
    ],
)
def test_what_is_not_understood_is_refused_with_its_line(text: str, message: str) -> None:
    """A cfg that was read in part would be another model."""
    with pytest.raises(SpecError, match=message):
        parse_cfg(text, "a.cfg")


def test_a_constant_of_another_kind_is_an_error() -> None:
    """With the name of the cfg and what stands there."""
    cfg = parse_cfg("CONSTANTS\n  Broker = {b1}\n  MaxLog = 2\n", "a.cfg")
    with pytest.raises(SpecError, match=r"a\.cfg: expected a number for the constant Broker, seen {b1}"):
        cfg.number("Broker")
    with pytest.raises(SpecError, match=r"a\.cfg: expected a set for the constant MaxLog, seen 2"):
        cfg.members("MaxLog")
    with pytest.raises(SpecError, match=r"a\.cfg: expected a number for the constant MaxEpoch, seen no such constant"):
        cfg.number("MaxEpoch")
    assert cfg.number("MaxEpoch", default=0) == 0
    with pytest.raises(SpecError, match=r"a\.cfg: expected a constant, one of Broker, MaxLog; seen MaxLogs"):
        cfg.with_constants(MaxLogs=1)
