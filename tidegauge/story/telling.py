"""Tell what happened to each partition, in order, from lines: a pure function, nothing is judged."""

from collections.abc import Callable, Iterable

from tidegauge.story.elections import Elections
from tidegauge.story.fetchers import Fetchers
from tidegauge.story.processes import Processes
from tidegauge.story.reading import SourcedLine
from tidegauge.story.state import Telling
from tidegauge.story.truncations import Truncations
from tidegauge.traces.kafka_logs.parsing.parsed_line import METADATA_LOG

FACES = frozenset(
    {"too-large", "out-of-order", "index-offset", "offset-mismatch", "isr-refused", "moved", "fatal", "append-refused"}
    | {"below", "fell"}
)
"""Statements that known bugs are recognised by."""


def telling_of(lines: Iterable[SourcedLine]) -> Telling:
    """Tell the story of lines that are in order."""
    teller = _Teller()
    for line in lines:
        try:
            teller.take(line)
        except ValueError:
            continue  # a number that no offset can reach: the line is damaged
    return teller.telling()


class _Teller(Processes, Truncations, Elections, Fetchers):
    """Takes lines one by one."""

    def __init__(self) -> None:
        super().__init__()
        self._handlers: dict[str, Callable[[SourcedLine], None]] = {
            name.removeprefix("say_").replace("_", "-"): getattr(self, name) for name in dir(self) if name.startswith("say_")
        }

    def take(self, line: SourcedLine) -> None:
        """Tell a line."""
        if line.partition == METADATA_LOG:
            return
        self.releases.note(line)
        if line.says.kind in FACES:
            self.faces.append(line)
        say = self._handlers.get(line.says.kind)
        if say is not None:
            say(line)

    def telling(self) -> Telling:
        """Return what was told."""
        # A marker of a start may be the one line that is there of it, after what the process did before: time decides.
        return Telling(sorted(self.entries, key=lambda entry: entry.order), self.high_watermarks, self.releases, self.faces)
