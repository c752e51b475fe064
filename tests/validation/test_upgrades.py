"""The page about upgrades: which neighbours are looked at, and what is told of a mixture."""

import pytest

from tidegauge.drive.runner.transcript import BROKER, releases
from validation import upgrades
from validation.upgrades import (
    Mix,
    Pair,
    broker_switches,
    cluster_name,
    finding_rows,
    loses,
    measured,
    mixes,
    own_of,
    page,
    pairs,
)

PAIR = Pair("3.9.0", "3.9.1", (("response_epoch_checked", "off", "on"),))


def test_neighbours_are_those_whose_brokers_differ() -> None:
    """Not those of which the controllers do."""
    listed = {
        (pair.earlier, pair.later): {name: after for name, _, after in pair.differ}
        for pair in pairs(releases(kind=BROKER), broker_switches())
    }
    assert listed["3.9.0", "3.9.1"] == {"response_epoch_checked": "on", "batch_epoch_filter": "on"}
    assert ("3.8.1", "3.9.0") not in listed
    assert ("4.3.1", "4.4.0") not in listed


def test_both_mixtures_begin_with_the_broker_that_is_alone() -> None:
    """And the names say who is who, with F2 repaired."""
    assert list(mixes(PAIR))[2:] == [("3.9.1", "3.9.0", "3.9.0"), ("3.9.0", "3.9.1", "3.9.1")]
    assert cluster_name(("3.9.1", "3.9.0")).startswith("1=3.9.1+keeps_remote_leo=off")


def test_a_mixture_that_breaks_an_invariant_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """On walks, and in the graph; without F2's repair three brokers break some."""
    monkeypatch.setattr(upgrades, "REPAIRED", "+fencing=off")
    mix = measured(("kip320", "kip320", "kip320"), 12, 1)
    assert mix.walked or mix.graph


def test_what_neither_release_breaks_alone_is_the_mixtures_own() -> None:
    """It stands at the top of the page."""
    alone = Mix(("3.9.0",) * 3, (("IsrCompleteness", 2),), "")
    wrong = Mix(("3.9.1", "3.9.0", "3.9.0"), (("IsrCompleteness", 1), ("NoFalseExposure", 3)), "HwWithinLog after 4 steps")
    own = ["NoFalseExposure in 3.9.1 3.9.0 3.9.0", "HwWithinLog in 3.9.1 3.9.0 3.9.0"]
    assert own_of([alone, alone, wrong, alone]) == own
    text = page([(PAIR, [alone, alone, wrong, alone])], [], 10, 1)
    assert f"Of mixtures alone: {', '.join(own)}." in text
    assert "| IsrCompleteness on 1; NoFalseExposure on 3; graph: HwWithinLog after 4 steps |" in text
    assert "No mixture breaks what neither" in page([(PAIR, [alone] * 4)], [], 10, 1)
    assert "so few steps do not see it" not in text
    assert "so few steps do not see it" in page([(PAIR, [Mix(("3.9.0",) * 3, (), "")] * 4)], [], 10, 1)


def test_one_broker_with_a_finding_loses_the_record() -> None:
    """Broker 1 of its run; the others may be repaired."""
    assert loses("F2", ("4.3.1", "safe", "safe"))
    assert not loses("F2", ("safe", "4.3.1", "4.3.1"))
    (first, *_) = finding_rows(("3.9.0", "3.9.1"))
    assert first == "| F1 | 3.9.0 | 3.9.0 | none |"
