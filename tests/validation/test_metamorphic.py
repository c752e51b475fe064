"""Captures as operators have them: a quick sample of `./run metamorphic`, and that the suite can fail."""

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.traces.kafka_logs.capture import FOLDER
from validation.metamorphic.cases import (
    MIXED,
    SECOND_CLUSTER,
    TRANSFORMATIONS,
    Case,
    Outcome,
    captures,
    cases,
    cases_of_kinds,
    logs,
    must_not_pass,
    outcome,
    transformed,
)
from validation.metamorphic.line_kinds import ALL, FEW, HOW, OF_A_FILE, ONE, kind, kinds, lose, loss_of
from validation.metamorphic.stories import (
    captures_at_info,
    contradictions_of,
    expected_losses,
    missed,
    story_cases,
    unpacked,
)

SEED = 2026
SMALL = {
    folder: fails for folder, fails in captures([FOLDER]).items() if folder.name in ("k-epoch-jump", "k-epoch-jump-control")
}
"""One capture of a healthy cluster and one that shows a broken rule, both read in a fraction of a second."""


@pytest.mark.parametrize("case", list(cases(SMALL, len(TRANSFORMATIONS), SEED)), ids=lambda case: str(case.number))
def test_no_healthy_capture_fails_and_no_broken_one_passes(case: Case) -> None:
    """Every transformation once. The number in the name and the seed make the case again."""
    seen = outcome(case, SEED)
    assert not seen.wrong, f"seed {SEED}, {seen}"


@pytest.mark.parametrize("case", list(cases_of_kinds(SMALL, 50, SEED)), ids=lambda case: str(case.number))
def test_no_kind_of_line_is_needed(case: Case) -> None:
    """Rare ones as often as frequent ones."""
    seen = outcome(case, SEED)
    assert not seen.wrong, f"seed {SEED}, {seen}"


def test_a_kind_is_lost_as_its_name_says() -> None:
    """One line, a few, some or all of a file, or all, and no line of another kind."""
    folder = next(iter(SMALL))
    whole = logs(folder)
    for how in HOW:
        left = lose(loss_of(how, "sending"), Random(SEED), dict(whole))
        gone = {path: Counter(lines) - Counter(left[path]) for path, lines in whole.items()}
        assert {kind(line) for lines in gone.values() for line in lines} == {"sending"}
        counts = [lines.total() for lines in gone.values() if lines]
        of = {path: sum(kind(line) == "sending" for line in whole[path]) for path in whole}
        assert (len(counts) == 1) is (how != ALL)
        if how == ONE:
            assert counts == [1]
        elif how == FEW:
            assert counts[0] <= 4
        elif how in (OF_A_FILE, ALL):
            assert counts == [of[path] for path, lines in gone.items() if lines]


def test_every_kind_of_every_capture_comes_in_turn() -> None:
    """As many cases as captures have kinds and ways to lose them, and none twice."""
    every = sum(len(kinds(logs(folder))) * len(HOW) for folder in SMALL)
    some = [(case.capture, case.steps) for case in cases_of_kinds(SMALL, every, SEED)]
    assert len(set(some)) == every
    assert {"a few of a file: truncating", "all: request FETCH"} <= {name for _, (name,) in some}


def test_the_same_seed_makes_the_same_logs() -> None:
    """A case can be looked at again."""
    for case in list(cases(SMALL, 12, SEED)):
        assert transformed(case, SEED) == transformed(case, SEED)


def test_another_seed_makes_other_logs() -> None:
    """The seed decides what is lost."""
    case = next(cases(SMALL, 1, SEED))
    assert transformed(case, 1) != transformed(case, 2)


def test_nothing_is_invented() -> None:
    """Every line of a result is one of the capture, or the beginning of one; a moved clock and another form change lines."""
    for case in cases(SMALL, len(TRANSFORMATIONS), SEED):
        if "skew a clock" in case.steps or SECOND_CLUSTER in case.steps or {*MIXED} & {*case.steps}:
            continue
        known = {line for lines in logs(case.capture).values() for line in lines}
        other = [line for lines in transformed(case, SEED).values() for line in lines if line not in known]
        assert len(other) <= len(case.steps), case
        assert all(any(line.startswith(part) for line in known) for part in other)


@pytest.mark.parametrize(
    ("fails", "verdict", "wrong"),
    [
        ((), Verdict.FAIL, True),
        ((), Verdict.INCONCLUSIVE, False),
        ((), Verdict.PASS, False),
        (("HW-08",), Verdict.PASS, True),
        (("HW-08",), Verdict.INCONCLUSIVE, False),
        (("HW-08",), Verdict.FAIL, False),
    ],
)
def test_what_is_wrong(fails: tuple[str, ...], verdict: Verdict, wrong: bool) -> None:
    """A false alarm and a silent pass; an exception always is."""
    case = Case(0, Path("x"), ("drop a line",), fails, Path("x"), ())
    assert Outcome(case, fails, verdict, 0, ()).wrong is wrong
    assert Outcome(case, fails, verdict, 0, (), "KeyError: 1").wrong


def test_a_cluster_of_which_nothing_is_left_may_pass() -> None:
    """What the other one breaks must not pass only while lines of it are left."""
    case = Case(0, Path("x"), (SECOND_CLUSTER, "end early"), ("HW-01",), Path("y"), ("LOG-01",))
    assert must_not_pass(case, {"n1/server.log": ["a line"], "other-n1/server.log": []}) == ("HW-01",)
    assert must_not_pass(case, {"n1/server.log": [], "other-n1/server.log": ["a line"]}) == ("LOG-01",)


def test_every_loss_of_a_real_cluster_is_told_to_the_offset_and_no_other() -> None:
    with unpacked() as place:
        losses = expected_losses([place])
        folders = captures_at_info([place])
        assert sum(bool(losses[folder.name]) for folder in folders) >= 10
        assert {folder.name: found for folder in folders if (found := missed(folder, losses[folder.name]))} == {}
        wrong = [{**losses["zk-1.1-unclean"][0], "end": 709}]
        assert len(missed(place / "zk-1.1-unclean", wrong)) == 2


def test_no_story_of_less_contradicts_the_whole_one() -> None:
    with unpacked() as place:
        folders = [place / name for name in ("zk-1.1-acks1", "kraft-4.3-acks1", "zk-0.10-hw-truncation")]
        found = {str(case): wrong for case in story_cases(folders, 40, SEED) if (wrong := contradictions_of(case, SEED))}
    assert found == {}
