"""Random steps of the committed-data cluster on plain values."""

import random

from validation.premises import committed as concrete
from validation.premises.committed import PLAIN_BROKERS


class Cluster(concrete.PlainCluster):
    """The cluster, taking steps by chance."""

    def random_step(self, choice: random.Random) -> str:
        """One step that is possible, by its name; no step if the one chosen is possible for none of a few arguments."""
        name = choice.choices(list(WEIGHTS), weights=list(WEIGHTS.values()))[0]
        full = {
            "elect": self.current >= 3,
            "append": max(map(len, self.log)) >= 4,
            "lose_tail": self.brokers >= PLAIN_BROKERS + 2,
        }
        for _ in range(0 if full.get(name, False) else TRIES):
            b, e, size = choice.randrange(self.brokers), choice.randint(0, self.current), choice.randint(0, 4)
            arguments = self._arguments(name, b, e, size)
            if getattr(self, name)(*arguments):
                return f"deposed {name}" if name in OF_AN_EPOCH and e < self.current else name
        return ""

    def _arguments(self, name: str, b: int, e: int, size: int) -> tuple[int, ...]:
        late = size % 2
        if name in OF_AN_EPOCH:
            return {"serve": (e, b, size), "hear_isr": (e, late), "propose_shrink": (e, b), "propose_expand": (e, b)}.get(
                name, (e,)
            )
        two = dict.fromkeys(("truncate", "fetch", "restart", "lose_tail", "delete"), (b, size))
        return {"learn": (b, e, late, size // 3), "take": (b, size, late), "accept": (), "reset": (b, late), **two}.get(
            name, (b,)
        )


WEIGHTS = {
    "elect": 1, "learn": 12, "append": 12, "truncate": 16, "fetch": 20, "commit": 14, "remove": 1, "restart": 1, "ask": 6,
    "serve": 6, "take": 6, "propose_shrink": 2, "propose_expand": 10, "accept": 6, "refuse": 1, "hear_refusal": 6,
    "hear_isr": 6, "lose_tail": 1, "delete": 4, "reset": 6,
}  # fmt: skip
OF_AN_EPOCH = {
    "append", "commit", "serve", "refuse", "hear_refusal", "hear_isr", "propose_shrink", "propose_expand",
}  # fmt: skip
"""Steps whose first argument is an epoch: a deposed leader may take them, too."""
TRIES = 4
