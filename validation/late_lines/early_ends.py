"""Logs that end early: from a capture another one whose brokers stopped logging at SIGTERM while they still served.

In 4.x log4j2's own shutdown hook runs beside Kafka's: loggers end one after the other, on a busy machine up to two seconds
after the signal, and the broker serves for seconds more. Reload4j (3.x) goes on to the end.

Rules of this file

1. Everything happened as before; only lines are gone. So what was right stays right, and nothing is missing.
2. A signal may come earlier than it did: a broker serves until the controller has moved what it leads. It does not come
   before the broker was elected: its next heartbeat, which a signal sends, takes it out of elections
   (BrokerLifecycleManager#beginControlledShutdown, ClusterControlManager#isActive).
3. A logger prints all of its lines up to its end, and none behind it. Some print on, as in 4.x.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from random import Random

from validation.metamorphic.log_files import Files, brokers, node
from validation.metamorphic.tree import parts

SIGNAL, BEGIN = "Terminating process due to signal SIGTERM", "Registered signal handlers"
ELECTED = re.compile(r"\] Leader \S+ .*starts at leader epoch ")
LEADS, LASTS = (0, 0, 20, 200, 2000), (5, 140, 2000)
"""Milliseconds by which the signal comes earlier, and by which all loggers have ended after it, at most."""
SHARE = 0.8
"""Of the processes that end early."""
SURVIVORS = frozenset(
    (
        "KafkaRequestHandlerPool",
        "NodeToControllerChannelManagerImpl",
        "ReplicaAlterLogDirsManager",
        "TransactionStateManager",
    )
)


class _End:
    """The end of a process: told to stop at `stop`, not before `earliest`, with a next one `until` which its lines go."""

    def __init__(self, random: Random, earliest: datetime, stop: datetime, until: datetime) -> None:
        lead = timedelta(milliseconds=random.uniform(0, random.choice(LEADS)))
        self.stop, self.until = stop, until
        self.signal = min(stop, max(earliest, stop - lead))
        self._random, self._last = random, random.choice(LASTS)
        self._ends: dict[str, datetime] = {}

    def keeps(self, logger: str, time: datetime) -> bool:
        """Return whether a logger still printed a line of this time, which is not before the signal."""
        if logger not in self._ends:
            self._ends[logger] = self.signal + timedelta(milliseconds=self._random.uniform(0, self._last))
        return logger.rpartition(".")[2] in SURVIVORS or time <= self._ends[logger]

    def signal_line(self, text: str) -> str:
        """Return the line of the signal at its new time."""
        end = text.index("]")
        return f"[{self.signal:%Y-%m-%d %H:%M:%S},{self.signal.microsecond:06d}"[:end] + text[end:]


def end_early(random: Random, files: Files) -> Files | None:
    """Return a capture in which brokers that were told to stop soon log no more; None where none was."""
    ends = {
        name: [_End(random, *times) for times in _stops(files, name) if random.random() < SHARE] for name in brokers(files)
    }
    if not any(ends.values()):
        return None
    return {path: list(_printed_lines(lines, ends.get(node(path), []))) for path, lines in files.items()}


def _stops(files: Files, name: str) -> Iterator[tuple[datetime, datetime, datetime]]:
    """Yield how early each process of a node may be told to stop that was, when it was, and when the next one began."""
    of_node = [line for path in files if node(path) == name for line in files[path]]
    times, elected = (
        sorted((found.time, SIGNAL in line) for line in of_node if is_one(line) and (found := parts(line)) is not None)
        for is_one in (lambda line: SIGNAL in line or BEGIN in line, ELECTED.search)
    )
    times.append((datetime.max.replace(tzinfo=UTC), False))
    for (begin, _), (stop, stops), (until, _) in zip(times, times[1:], times[2:], strict=False):
        if stops:
            yield max(begin + timedelta(seconds=2), *(time for time, _ in elected if time < stop), begin), stop, until


def _printed_lines(lines: list[str], ends: list[_End]) -> Iterator[str]:
    """Yield the lines of a file that are printed, with the signals where they come now."""
    signals = [(end, line) for line in lines if SIGNAL in line for end in ends if _is_at(line, end.stop)]
    kept = True
    for line in lines:
        found = parts(line)
        if found is not None:
            while signals and found.time >= signals[0][0].signal:
                end, text = signals.pop(0)
                yield end.signal_line(text)
            ended = next((end for end in ends if end.signal <= found.time < end.until), None)
            kept = ended is None or BEGIN in line or (SIGNAL not in line and ended.keeps(found.logger, found.time))
        # Any other line is the rest of a message.
        if kept:
            yield line


def _is_at(line: str, time: datetime) -> bool:
    found = parts(line)
    return found is not None and found.time == time
