"""Terms that follow each other closely: what each claims is asked of whoever leads later.

The corpus of the judge's mutants (tests/mutation/kernel_corpus.py) holds the same traces with little room, where terms are
forgotten and their claims handed on.
"""

from collections.abc import Sequence

import pytest

from tests.conformance.hand import TWO, append, broken, change, either_way, follow, judged, lead, reported, start
from tidegauge.traces.schema import Event


def restarted(node: int, epoch: int, leo: int) -> tuple[Event, ...]:
    """It dies, comes back with all it had, and leads the same leader epoch again: another term."""
    return (
        reported(node, "Crash"),
        reported(node, "Start", clean=False, leo=leo, hw=leo, log_start=0),
        lead(node, epoch, (node,), leo=leo, hw_before=leo, hw=leo, epoch_start=leo),
    )


BEGIN = (start(1), start(2), change(1, 5, (1,)), lead(1, 5, (1,)), append(1, 5, 0, 0, 1))
"""Broker 1 leads alone and commits a record."""
FOUR_TIMES = (*BEGIN, *restarted(1, 5, 1), *restarted(1, 5, 1), *restarted(1, 5, 1))
HANDED_ON = (
    *BEGIN,
    change(1, 6, (1,)),
    lead(1, 6, (1,), leo=1, hw_before=1, hw=1),
    follow(2, 1, 6),
    *restarted(1, 6, 1),
    *restarted(1, 6, 1),
)
TWICE = (
    *BEGIN,
    *restarted(1, 5, 1),
    change(1, 6, (1,)),
    lead(1, 6, (1,), leo=1, hw_before=1, hw=1),
    follow(2, 1, 6),
    *restarted(1, 6, 1),
)
LOST = (change(2, 7, (2,)), lead(2, 7, (2,)))
"""Broker 2 has nothing, and is elected all the same."""
OLD_FORMAT = (
    start(1),
    start(2, leo=2),
    change(1, 5, (1,)),
    lead(1, 5, (1,)),
    append(1, 5, 0, 0, 1),
    append(1, 5, 1, 1, 2),
    change(2, 6, (2,)),
    lead(2, 6, (2,), leo=2, hw=2),
    reported(1, "Crash"),
)
"""Broker 2 has as many records as broker 1 has committed; of which epochs they are its cache does not say."""
ANOTHER = (
    start(1, clean=False, leo=2, epochs=((4, 0),)),
    change(1, 7, (1,)),
    lead(1, 7, (1,), leo=2, hw=2),
)

OUT_OF_ORDER = (
    start(1),
    start(2),
    change(1, 6, (1,)),
    lead(1, 6, (1,)),
    append(1, 6, 0, 0, 1),
    lead(2, 5, (2,)),
    follow(2, 1, 6),
    *restarted(1, 6, 1),
    lead(2, 7, (2,)),
)
"""The clock of broker 2 is behind; and it leads an epoch of which the controller has not told."""

CASES: dict[str, tuple[Sequence[Event], set[str], int]] = {
    "one leader, four terms of one epoch": (FOUR_TIMES, set(), 0),
    "and another without its record": ((*FOUR_TIMES, change(2, 6, (2,)), lead(2, 6, (2,))), {"CTRL-01", "DATA-01"}, 4),
    "two epochs, four terms": (HANDED_ON, set(), 0),
    "two epochs, and another leader without the record": ((*HANDED_ON, *LOST), {"CTRL-01", "DATA-01"}, 4),
    "two terms of each": ((*TWICE, *LOST), {"CTRL-01", "DATA-01"}, 4),
    "a leader of whose records no epochs are known": (OLD_FORMAT, {"CTRL-01"}, 0),
    "and one that has others than were committed": ((*OLD_FORMAT, *ANOTHER), {"CTRL-01", "DATA-01", "LOAD-02"}, 1),
}


@pytest.mark.parametrize("case", CASES)
def test_every_term_is_asked_for(case: str) -> None:
    """The rules that fail, and how often a later leader lacks what was committed."""
    events, rules, lacks = CASES[case]
    for config in either_way(TWO):
        assert broken(events, config) == rules
        assert judged(events, config).tallies["DATA-01"].failed == lacks


def test_terms_may_be_told_in_another_order() -> None:
    """Both terms of the leader epoch 6 are asked for; whether the election of epoch 7 was clean, nobody says."""
    for config in either_way(TWO):
        assert broken(OUT_OF_ORDER, config) == {"CTRL-03"}
        assert judged(OUT_OF_ORDER, config).tallies["DATA-01"].undecided == 2
