"""Tables of traces that watch the judge: which of them notices a mutant.

Rules of this file

1. A table notices a mutant when the judge says anything else of it, breaks, or does not end.
2. Asked are those alone for which the change comes to anything else (tests.mutation.kernel_probes): first those that noticed
   others lately, then in their order.
"""

from collections.abc import Iterator, Sequence
from contextlib import suppress

from tests.mutation.kernel_mutants import KernelMutant, function_of, in_place
from tests.mutation.kernel_probes import differing
from tests.mutation.prepared import Prepared
from tests.processor_time import processor_time

SECONDS = 0.5
"""Of processor time for a mutant and a table; the slowest takes a tenth of it."""


class Watch:
    """Tables, and what the judge says of each."""

    def __init__(self, tables: Sequence[Prepared]) -> None:
        self.tables = tables
        self.expected = [table.said() for table in tables]
        self.latest: list[int] = []
        """Tables that noticed a mutant, the last one first."""

    def first_to_notice(self, mutant: KernelMutant, reach: Sequence[int]) -> int | None:
        """The number of a table, one of these, of which the judge with this mutant says anything else; None without one."""
        known = set(reach)
        first = [at for at in self.latest if at in known]
        known.difference_update(first)
        with in_place(function_of(mutant.module, mutant.function), mutant.code):
            asked = (*first, *(at for at in reach if at in known))
            found = next((at for at in asked if differs(self.tables[at], self.expected[at])), None)
        if found is not None:
            with suppress(ValueError):
                self.latest.remove(found)
            self.latest.insert(0, found)
        return found

    def unnoticed(self, tried: Sequence[KernelMutant]) -> Iterator[KernelMutant]:
        """Those that no table notices."""
        apart = differing(self.tables, tried)
        for number, mutant in enumerate(tried):
            if number > 0 and number % 500 == 0:
                print(f"           {number} of {len(tried)}", flush=True)
            if self.first_to_notice(mutant, apart[mutant]) is None:
                yield mutant


def differs(table: Prepared, expected: object) -> bool:
    """Whether the judge as it now runs says anything else, breaks, or does not end."""
    try:
        with processor_time(SECONDS):
            return table.said() != expected
    except Exception:  # a mutant may break in any way
        return True
