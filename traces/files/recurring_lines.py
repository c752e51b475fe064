"""Lines that recur, each once: traces of a model say a few thousand different things in millions of lines.

Rule of this file: where more than one line in RECURS so far was new, they are not worth looking up, and nothing is said.
"""

from collections.abc import Iterable

import numpy as np

from tidegauge.traces.columns import Ints

RECURS = 2


class _Numbers(dict[bytes, int]):
    """Lines in the order in which they came first."""

    def __missing__(self, line: bytes) -> int:
        self[line] = number = len(self)
        return number


def recurring(blocks: Iterable[bytes]) -> tuple[bytes, Ints] | None:
    """The different lines of blocks of whole lines, and which of them each line is; None where too few recur."""
    numbers = _Numbers()
    found: list[Ints] = []
    lines = 0
    for block in blocks:
        texts = block.split(b"\n")[:-1]
        lines += len(texts)
        found.append(np.fromiter(map(numbers.__getitem__, texts), np.int64, len(texts)))
        if len(numbers) * RECURS > lines:
            return None
    return b"\n".join((*numbers, b"")), np.concatenate(found)
