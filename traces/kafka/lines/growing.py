"""A log that grows: `feed` it whatever has been written, in any pieces, and it gives the lines.

Rules of this file

1. The lines are those that `read_lines` reads of the same bytes. A line waits for its end; one that is none by itself waits
   for the next, which may go on with its message.
2. How a log is written is found by its first ENOUGH lines: of fewer the thread cannot be told from the message. They wait,
   until the end if need be. The layout then stays, also in the files that take its place.
3. What a container wrote (docker, journald) is put together from parts that stand anywhere: that is not followed, nor is
   UTF-16, nor what is binary. A Problem says so, once.
"""

from tidegauge.traces.kafka.lines.layout.found import Layout
from tidegauge.traces.kafka.lines.lines import SEE, UTF_16, Line, Reader, everything, is_binary, layout_of
from tidegauge.traces.problems import Problem, shown

ENOUGH = 50
"""Lines by which a layout is known."""
LOOKED_AT = 1000
"""Lines in which a layout must show."""


class GrowingLog:
    """What has been read of one log called `label`."""

    def __init__(self, label: str, given: str | None = None) -> None:
        self.label = label
        self.layout: Layout | None = None
        self.problems: list[Problem] = []
        """New ones; whoever takes them clears it."""
        self.refused = False
        """Whether nothing of it can be read."""
        self._given = given
        self._left = b""
        self._before = 0
        self._reader: Reader | None = None

    def feed(self, data: bytes) -> list[Line]:
        """Read on."""
        content = self._left + data
        end = content.rfind(b"\n") + 1
        self._left = content[end:]
        return self._read(content[:end], ended=False)

    def next_file(self, label: str) -> list[Line]:
        """What follows is another file of this log, from its beginning."""
        lines = self.end()
        self.label, self._before, self._reader = label, 0, None
        return lines

    def end(self) -> list[Line]:
        """Nothing follows: a line that waits is all there is of it."""
        content, self._left = self._left, b""
        return self._read(content, ended=True)

    def _read(self, content: bytes, *, ended: bool) -> list[Line]:
        if not content or self.refused or not self._known(content, ended=ended) or self.layout is None:
            return []
        if self._reader is None:
            self._reader = Reader(self.label, self.layout, self.problems, everything)
        behind = None
        if not ended:
            last = content.rfind(b"\n", 0, len(content) - 1) + 1
            text = content[last:-1].decode("utf-8", "replace")
            if self.layout.entry(text) is None:
                content, self._left, behind = content[:last], content[last:] + self._left, text
        if content:
            self._before += self._reader.block(content, self._before, behind)
        lines, self._reader.lines = self._reader.lines, []
        return lines

    def _known(self, content: bytes, *, ended: bool) -> bool:
        """Whether the layout is known by now."""
        if self.layout is not None:
            return True
        if content.startswith(UTF_16) or is_binary(content):
            self._refuse("a text log in UTF-8", "another encoding, or a binary file")
            return False
        texts = content.decode("utf-8-sig", "replace").split("\n")
        if len(texts) <= ENOUGH and not ended and self._given is None:
            self._left = content + self._left
            return False
        layout = layout_of(texts, self._given)
        if layout is not None and layout.wrappers:
            self._refuse("a log as Kafka writes it", f"one that others wrote: {layout.name}")
            return False
        if layout is None and (ended or len(texts) > LOOKED_AT):
            self._refuse(SEE, shown(next((text for text in texts if text.strip("\0 \r")), "")))
            return False
        if layout is None:
            self._left = content + self._left
            return False
        self.layout = layout
        return True

    def _refuse(self, expected: str, seen: str) -> None:
        self.refused = True
        do = "it is not followed; judge it without --follow, or name its layout with --layout"
        self.problems.append(Problem(self.label, 1, expected, seen, do, lost=1))
