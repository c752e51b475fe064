"""Tell segments that a broker could not read from, or copy to, the remote storage (KIP-405).

A method `say_KIND` gets every line of its kind of statement (a row of statements.py), in order of time; to *tell* something
is to add an entry to the story, or to count the last one once more (`self.add_or_count`).
"""

import re

from tidegauge.story.reading import SourcedLine, fetched_from
from tidegauge.story.state import StoryState
from tidegauge.traces.kafka_logs.parsing.parsed_line import number

_BEGINS_ON_DISK = re.compile(r"leaderLocalLogStartOffset: (\d{1,19})")


class Tiers(StoryState):
    """Tells lines about remote storage; a part of story._Teller."""

    def say_tier_unread(self, line: SourcedLine) -> None:
        """Tell a follower that did not get from remote storage what lies below the first offset on its leader's disk."""
        replica, begin = self.replica_of(line), _BEGINS_ON_DISK.search(line.error)
        fields = {"leader": fetched_from(line.text), "offset": number(begin[1]) if begin is not None else None}
        replica.unread = self.add_or_count(replica.unread, line, "remote_read_failed", **fields, error=line.error or None)

    def say_tier_unwritten(self, line: SourcedLine) -> None:
        """Tell a leader that could not copy segments to the remote storage: it tries again, and keeps them on its disk."""
        replica = self.replica_of(line)
        replica.uncopied = self.add_or_count(replica.uncopied, line, "remote_copy_failed", error=line.error or None)
