"""The page about upgrades: which neighbours are looked at, and what is told of a mixture."""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tidegauge.drive.runner.transcript import BROKER, releases
from validation import upgrades
from validation.rare_walks import Broken
from validation.upgrades import (
    BLOCK,
    REPAIRED_F1,
    REPAIRED_F2,
    Block,
    Mix,
    Pair,
    blocks,
    broken_of,
    broker_switches,
    campaign,
    cluster_name,
    finding_rows,
    is_distinct,
    loses,
    measured,
    mixes,
    own_of,
    page,
    pairs,
    repaired,
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
    """And the names say who is who."""
    assert list(mixes(PAIR))[2:] == [("3.9.1", "3.9.0", "3.9.0"), ("3.9.0", "3.9.1", "3.9.1")]
    assert cluster_name(("3.9.1", "3.9.0"), "+fencing=off").startswith("1=3.9.1+fencing=off")


def test_a_finding_of_both_releases_is_repaired_in_both() -> None:
    """F2 always, F1 unless one of the two ends or begins it."""
    assert repaired(PAIR) == REPAIRED_F2
    assert repaired(Pair("3.7.2", "3.8.1", (("cache_truncation_queued", "off", "on"),))) == REPAIRED_F1 + REPAIRED_F2


def test_releases_that_the_model_does_not_tell_apart_are_not_walked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pair whose brokers have the same transitions in each state: the page says so."""
    monkeypatch.setattr(upgrades, "APART", 200)
    same = Pair("3.7.2", "3.8.1", (("cache_truncation_queued", "off", "on"),))
    assert not is_distinct(same)
    assert is_distinct(PAIR)
    assert "\n* 3.7.2, 3.8.1: `cache_truncation_queued` off -> on\n" in page([], [same], [], 10)


def test_an_unfinished_campaign_is_even() -> None:
    """The first block of each cluster is made before the second of any; the last has what is left."""
    listed = blocks(["a", "b"], BLOCK + 7)
    assert listed == [Block("a", BLOCK, 0), Block("b", BLOCK, 0), Block("a", 7, 1), Block("b", 7, 1)]


def spread_over(made: list[Block], broken: Callable[[Block], list[Broken]]) -> Any:
    """Make blocks by `broken`, and note which."""

    def spread(_: object, missing: Sequence[Block]) -> Iterator[list[Broken]]:
        made.extend(missing)
        return map(broken, missing)

    return spread


def test_blocks_that_are_kept_are_not_made_again(tmp_path: Path) -> None:
    """The file has the run of each walk that breaks something."""
    kept, wanted, made = tmp_path / "kept.ndjson", [Block("a", 9, 0), Block("b", 9, 0)], list[Block]()
    spread = spread_over(made, lambda _: [Broken("HwWithinLog", 4, (("BecomeLeader", 1),))])
    first = campaign(wanted[:1], spread, kept)
    assert first == {"a": Counter({"HwWithinLog": 1})}
    assert campaign(wanted, spread, kept) == {**first, "b": Counter({"HwWithinLog": 1})}
    assert made == wanted
    assert kept.read_text().splitlines()[1] == '["b", 9, 0, [["HwWithinLog", 4, [["BecomeLeader", 1]]]]]'


def test_a_release_is_walked_alone_where_a_mixture_breaks_something() -> None:
    """Here the mixtures of one of two pairs do."""
    other, made = Pair("3.7.2", "3.8.1", (("cache_truncation_queued", "off", "on"),)), list[Block]()
    graph = cluster_name(("3.9.1", "3.9.0"), REPAIRED_F2)

    def broken(block: Block) -> list[Broken]:
        if block.walks == 0:
            return [Broken("HwWithinLog", 4, ())] if block.cluster == graph else []
        return [Broken("NoHole", 1, ())] if block.cluster.startswith("1=3.9.0") else []

    (_, first), (_, second) = measured([PAIR, other], 5, spread_over(made, broken), None)
    assert [mix.walked for mix in first] == [Counter({"NoHole": 1}), Counter(), Counter(), Counter({"NoHole": 1})]
    assert [mix.walked for mix in second] == [None, None, Counter(), Counter()]
    assert len([block for block in made if block.walks]) == 6
    assert own_of(first) == ["HwWithinLog in 3.9.1 3.9.0 3.9.0"]
    assert first[2].graph == "HwWithinLog after 4 steps"


def test_a_cluster_that_breaks_an_invariant_is_seen() -> None:
    """In its graph, after as many steps as the page says; and on walks."""
    (seen,) = broken_of(Block("1=hw-only,2=hw-only", 0, 0))
    assert (seen.invariant, seen.number) == ("IsrCompleteness", 8)
    assert broken_of(Block("1=hw-only,2=hw-only,3=kip101", 300, 0))


def test_what_neither_release_breaks_alone_is_the_mixtures_own() -> None:
    """It stands at the top of the page."""
    alone = Mix(("3.9.0",) * 3, "", {"IsrCompleteness": 2})
    wrong = Mix(("3.9.1", "3.9.0", "3.9.0"), "HwWithinLog after 4 steps", {"IsrCompleteness": 1, "NoFalseExposure": 3})
    own = ["HwWithinLog in 3.9.1 3.9.0 3.9.0", "NoFalseExposure in 3.9.1 3.9.0 3.9.0"]
    assert own_of([alone, alone, wrong, alone]) == own
    text = page([(PAIR, [alone, Mix(("3.9.1",) * 3, "", None), wrong, alone])], [], [], 10)
    assert f"Of mixtures alone: {', '.join(own)}." in text
    assert (
        "| IsrCompleteness on 2 | graph - | IsrCompleteness on 1; NoFalseExposure on 3; graph: HwWithinLog after 4 st"
        in text
    )
    assert "No mixture breaks what neither" in page([(PAIR, [alone] * 4)], [], [], 10)


def test_one_broker_with_a_finding_loses_the_record() -> None:
    """Broker 1 of its run; the others may be repaired."""
    assert loses("F2", ("4.3.1", "safe", "safe"))
    assert not loses("F2", ("safe", "4.3.1", "4.3.1"))
    (first, *_) = finding_rows(("3.9.0", "3.9.1"))
    assert first == "| F1 | 3.9.0 | 3.9.0 | none |"
