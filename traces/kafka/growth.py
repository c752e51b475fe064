"""The logs of a cluster as they grow: their last lines, read as a capture whenever somebody asks.

Rules of this file

1. Lines are held by volume: at least the last LINES that were read of all logs together, and three times as many at
   most, and a piece. What they make is a capture that begins late; what is forgotten leaves what `Before` holds.
2. A window is a stretch of reading, not of time: no clock has a say in what belongs to it.
3. A log lacks nothing in front of its last line. A node is *heard over* what another had logged by the look before, if it
   has logged something since, at a later time on its own clock. Then its log does not end there (between/doubts.py).
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from tidegauge.traces.kafka.before import NOTHING, Before
from tidegauge.traces.kafka.capture import Capture, capture_of
from tidegauge.traces.kafka.lines.clusters import separate
from tidegauge.traces.kafka.lines.files import Found, place, says_id
from tidegauge.traces.kafka.lines.growing import Growing
from tidegauge.traces.kafka.lines.lines import Line, clock
from tidegauge.traces.kafka.lines.tails import Log, Piece
from tidegauge.traces.problems import Problem

LINES = 20_000
"""Lines that are held at least. To read and judge twice as many takes some two seconds of one core."""


@dataclass
class _Held:
    """The lines of one log, the first of which were there when the window before ended."""

    group: Path
    path: Path
    growing: Growing
    lines: list[Line] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    old: int = 0
    old_problems: int = 0
    says: int | None = None
    latest: int = 0


class Growth:
    """What has been read of the logs at `root`."""

    def __init__(self, root: Path, layout: str | None = None, lines: int = LINES) -> None:
        self.root = root
        self.layout = layout
        self.lines = lines
        self.before: Mapping[str, Before] = {}
        """What is known in front of the window, by cluster."""
        self.counted: Mapping[int, str] = {}
        """Up to when, by node, the window before went."""
        self.news: list[Problem] = []
        """What could not be read; whoever takes them clears it."""
        self._logs: dict[Log, _Held] = {}
        self._fresh = 0
        self._target = 0
        """How far the furthest log was when the window was full."""
        self._latest: dict[int, int] = {}
        self._over: dict[tuple[int, int], int] = {}

    def full(self, more: Collection[Log]) -> bool:
        """Whether the window has to go on, and nothing that is read later is older: not if one of these logs, of which there
        is more, is not as far as the furthest was. One whose clock is far behind is not waited for.
        """
        if self._fresh < self.lines:
            return False
        self._target = self._target or max(held.latest for held in self._logs.values())
        return self._fresh >= 2 * self.lines or all(self.reached(log) >= self._target for log in more)

    @property
    def held(self) -> int:
        """Lines that are held."""
        return sum(len(log.lines) for log in self._logs.values())

    def reached(self, log: Log) -> int:
        """Up to when a log has been read, on its clock."""
        return self._logs[log].latest if log in self._logs else 0

    def feed(self, piece: Piece) -> None:
        """Read on."""
        held = self._logs.get(piece.log)
        if held is None:
            held = self._logs[piece.log] = _Held(piece.group, piece.path, Growing(piece.label, self.layout))
        lines = held.growing.next_file(piece.label) if piece.first else []
        held.path = piece.path
        self._take(held, [*lines, *held.growing.feed(piece.data)])

    def end(self) -> None:
        """Nothing follows."""
        for held in self._logs.values():
            self._take(held, held.growing.end())

    def look(self) -> list[Capture]:
        """What the lines that are held make: a capture for each cluster."""
        found = self._found()
        latest = {node.id: max(stream[-1].time for stream in node.streams) for node in found.nodes if node.streams}
        for one, time in latest.items():
            if time > self._latest.get(one, time):
                for other, logged in self._latest.items():
                    self._over[other, one] = max(min(logged, time), self._over.get((other, one), 0))
        self._latest |= latest
        for node in found.nodes:
            node.folder = self.root / "logs"  # what is on disk goes on while it is read
        return self._read(found, self._over)

    def whole(self) -> list[Capture]:
        """The same when nothing follows: as `check` reads these lines, and what brokers left on disk."""
        return self._read(self._found(), {})

    def forget(self, captures: list[Capture]) -> None:
        """The window goes on, behind these captures of it."""
        self.before = {one.cluster: one.known for one in captures}
        self.counted = {node: clock(time) for node, time in self._latest.items()}
        self._fresh = self._target = 0
        for held in self._logs.values():
            del held.lines[: held.old], held.problems[: held.old_problems]
            held.old, held.old_problems = len(held.lines), len(held.problems)

    def _take(self, held: _Held, lines: list[Line]) -> None:
        held.lines += lines
        self._fresh += len(lines)
        self.news += held.growing.problems
        held.problems += held.growing.problems
        held.growing.problems.clear()
        held.latest = max([held.latest, *(line.time for line in lines)])
        if held.says is None:
            held.says = says_id(lines)

    def _found(self) -> Found:
        found = Found()
        for number, (group, logs) in enumerate(self._groups()):
            parts = [(held.path, list(held.lines), held.says) for held in logs]
            label = "" if group == self.root or self.root.is_file() else f"{group.name}/"
            place(group, label, parts, [problem for held in logs for problem in held.problems], -number, found)
            for held in logs:
                if held.lines and held.growing.layout is not None:
                    name = held.growing.layout.name
                    found.layouts[name] = found.layouts.get(name, 0) + 1
        if not self._logs:
            do = "name the directory that brokers write their logs to, a folder n<id>/ each; see docs/kafka-logs.md"
            found.problems.append(Problem(str(self.root), None, "logs (*.log) with a whole line", "none", do))
        for folder in found.nested:
            seen, do = "a folder with the folders of several nodes", "follow it by itself"
            found.problems.append(Problem(str(folder), None, "a folder per node", seen, do, lost=1))
        found.nodes.sort(key=lambda node: node.id)
        return found

    def _groups(self) -> Iterator[tuple[Path, list[_Held]]]:
        groups: dict[Path, list[_Held]] = {}
        for _, held in sorted(self._logs.items()):
            groups.setdefault(held.group, []).append(held)
        yield from sorted(groups.items())

    def _read(self, found: Found, over: Mapping[tuple[int, int], int]) -> list[Capture]:
        return [
            capture_of(
                "/".join((self.root.name, one.name)).rstrip("/"),
                one,
                replace(self.before.get(one.name, NOTHING), over=over),
            )
            for one in separate(found)
        ]
