"""Which claims about committed data an unclean election ends: those of earlier epochs against its own and later ones."""

from dataclasses import replace

from tests.conformance.hand import append, broken, change, lead, start
from tidegauge.traces.schema import Event


def unclean(leader: int, epoch: int) -> Event:
    """A leader from outside the ISR."""
    event = change(leader, epoch, (leader,))
    return replace(event, fields={**event.fields, "clean": False})


LATE = (lead(1, 2, (1,)), lead(2, 1, (2,)), append(2, 1, 0, hw=1))
"""The leader of epoch 1 is heard after that of epoch 2: two brokers' events have no order of their own."""


def test_each_unclean_election_ends_the_claims_before_it() -> None:
    """Not only the latest one, when the trace reports all elections first."""
    run = (start(1), start(2), change(1, 0, (1,)), unclean(2, 1), unclean(1, 2), unclean(2, 3), *LATE)
    assert "DATA-01" not in broken(run)


def test_an_unclean_election_of_later_ends_nothing_between_earlier_ones() -> None:
    """Epoch 2 was elected cleanly from the ISR of epoch 1: it must have its record."""
    elections = (unclean(2, 1), change(2, 1, (1, 2)), change(1, 2, (1,)), unclean(2, 3))
    run = (start(1), start(2), change(1, 0, (1,)), *elections, *LATE)
    assert "DATA-01" in broken(run)
