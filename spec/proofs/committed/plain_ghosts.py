"""The state of the committed-data invariant on plain values."""

from collections import Counter, defaultdict
from typing import Any

from tidegauge.spec.proofs.committed.cluster import ClusterState
from tidegauge.spec.proofs.committed.invariant import COMMITTED_INVARIANT
from tidegauge.spec.proofs.engine.plain import PlainSystem, broken_conjuncts

PLAIN_BROKERS = 3


class PlainClusterState(PlainSystem):
    """A small cluster with the ghosts of the proof."""

    def __init__(self, without: str = "", brokers: int = PLAIN_BROKERS) -> None:
        super().__init__(without)
        self.brokers = brokers
        self.current = 0
        self.leader = [0]
        self.isr = [set(range(brokers))]
        self.image: dict[tuple[int, int], set[int]] = {(0, 0): set(range(brokers))}
        self.version: Counter[int] = Counter()
        self.known_version: defaultdict[int, int] = defaultdict(lambda: -1)
        self.view: defaultdict[int, set[int]] = defaultdict(set)
        self.proposed: defaultdict[int, set[int]] = defaultdict(set)
        self.status: Counter[int] = Counter()
        self.given_up: list[tuple[int, int, set[int]]] = []
        self.known = [-1] * brokers
        self.gone: dict[int, int] = {}
        self.log: list[list[int]] = [[] for _ in range(brokers)]
        self.log_start = [0] * brokers
        self.start: dict[int, int] = {}
        self.hist: dict[int, list[int]] = {}
        self.deleted: Counter[int] = Counter()
        self.remote: Counter[tuple[int, int]] = Counter()
        self.asked: Counter[tuple[int, int]] = Counter()
        self.shown: Counter[int] = Counter()
        self.shown_from: Counter[int] = Counter()
        self.committed: Counter[int] = Counter()
        self.cap: dict[int, int] = {}
        self.witness: dict[int, int] = {}
        self.hw = [0] * brokers
        self.origin = [0] * brokers

    def leads(self, e: int) -> bool:
        """Return whether epoch e's leader leads it and has not learned of a later one."""
        return 0 <= e <= self.current and self.known[self.leader[e]] == e

    def follows(self, f: int) -> bool:
        """Return whether f follows a leader that has begun."""
        e = self.known[f]
        return e in self.hist and self.leader[e] != f

    def state(self) -> ClusterState:
        """Return the cluster as the invariant sees it. What does not exist is empty, small, or a number that nothing has."""

        def among(members: Any) -> Any:
            return lambda e, b: 0 <= e <= self.current and b in members[e]

        def at(logs: Any, outside: int) -> Any:
            return lambda b, o: logs[b][o] if 0 <= o < len(logs[b]) else outside

        return ClusterState(
            brokers=self.brokers,
            current=self.current,
            leader=lambda e: self.leader[e] if 0 <= e <= self.current else 0,
            isr=among(self.isr),
            version=lambda e: self.version[e],
            image=lambda e, v, b: b in self.image.get((e, v), ()),
            known_version=lambda e: self.known_version[e],
            view=among(self.view),
            proposed=among(self.proposed),
            status=lambda e: self.status[e],
            known=lambda b: self.known[b],
            gone=lambda b: b in self.gone,
            log_start=lambda b: self.log_start[b],
            log_end=lambda b: len(self.log[b]),
            record=at(self.log, -9),
            begun=lambda e: e in self.hist,
            start=lambda e: self.start.get(e, 0),
            hist=at(defaultdict(list, self.hist), -7),
            hist_end=lambda e: len(self.hist.get(e, [])),
            deleted=lambda e: self.deleted[e],
            remote=lambda e, r: self.remote[e, r],
            asked=lambda e, r: self.asked[e, r],
            shown=lambda e: self.shown[e],
            shown_from=lambda e: self.shown_from[e],
            committed=lambda e: self.committed[e],
            capped=lambda e: e in self.cap,
            cap=lambda e: self.cap.get(e, 0),
            witness=lambda e: self.witness.get(e, 0),
            hw=lambda b: self.hw[b],
            origin=lambda b: self.origin[b],
        )

    def broken(self) -> set[str]:
        """Return the conjuncts that fail, over all small values of their variables."""
        brokers, epochs = range(self.brokers), range(-1, self.current + 2)
        versions = range(-1, max(self.version.values(), default=0) + 2)
        offsets = range(-1, max(6, *map(len, self.log)))
        values = {
            "b": brokers,
            "r": brokers,
            "e": epochs,
            "f": epochs,
            "v": versions,
            "w": versions,
            "o": offsets,
            "p": offsets,
        }
        return broken_conjuncts(COMMITTED_INVARIANT, self.state(), values)

    def place(self, b: int) -> int:
        """Return the number of the first incarnation of the broker that b is an incarnation of."""
        older = {new: old for old, new in self.gone.items()}
        while b in older:
            b = older[b]
        return b

    def name(self, b: int) -> str:
        """Return the name of a broker in messages: counted from 1, as in traces."""
        return f"broker {self.place(b) + 1}"

    def lost(self) -> list[str]:
        """Return the committed data that a later leader or an ISR member lacks, and what is shown but not committed."""
        losses = [
            f"{self.name(b)} shows all below offset {self.hw[b]}, of which {self.committed[self.origin[b]]} were committed"
            for b in range(self.brokers)
            if self.hw[b] > self.committed[self.origin[b]]
        ]
        for e, count in self.committed.items():
            data, what = self.hist.get(e, [])[:count], f"all that was committed in epoch {e} below offset {count}"
            for f, past in self.hist.items():
                if f > e and past[: min(count, self.start[f])] != data:
                    losses.append(f"{self.name(self.leader[f])} leads epoch {f} without {what}")
            members = sorted(self.isr[self.current])
            losses += [f"{self.name(r)} is in the ISR without {what}" for r in members if self.log[r][:count] != data]
        return losses
