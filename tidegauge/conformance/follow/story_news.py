"""The story of logs while they grow: each thing that happened is said once, a loss again when more is known of it.

The files are read anew each time, whole: lines of INFO go at 100 MB/s. Larger logs are left to `tidegauge check`, for a
report that comes after SIGTERM must come within seconds.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tidegauge.story.reading import text_files
from tidegauge.story.sentences import entry_sentence, loss_sentence
from tidegauge.story.story import Story, happened, story_of

MOST_BYTES = 64 << 20
"""Of all logs: they are read in half a second."""


class StoryNews:
    """What was said of the logs at one path."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._published: dict[tuple[object, ...], str] = {}

    def story(self) -> Story | None:
        """Tell the story of the logs as they are; None if they are too large."""
        size = 0
        for path, _ in text_files(self.path):
            # A log that is rotated may be gone since the folder was listed.
            with suppress(OSError):
                size += path.stat().st_size
        return story_of([self.path]) if size <= MOST_BYTES else None

    def look(self) -> Iterator[str]:
        """Yield what lines tell that they did not tell before."""
        story = self.story()
        if story is None:
            return
        for entry in filter(happened, story.entries):
            where = f"{entry.partition}: " if entry.partition else ""
            key = (entry.kind, entry.partition, entry.node, entry.sources[0])
            # What later lines add to an entry is in the report.
            if key not in self._published:
                self._published[key] = ""
                yield f"{where}{entry_sentence(entry)} [{entry.sources[0]}]"
        yield from self._losses(story)

    def _losses(self, story: Story) -> Iterator[str]:
        for loss in story.losses:
            key = (loss.partition, loss.generation, loss.why, loss.order)
            sentence = loss_sentence(loss)
            if self._published.get(key) != sentence:
                self._published[key] = sentence
                yield sentence
                if loss.do is not None:
                    yield f"  Do: {loss.do}."
