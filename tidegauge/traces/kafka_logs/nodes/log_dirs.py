"""Tell the log of a replica from another one of the same name: one that is to replace it, or that was replaced.

Rules of this file

1. A replica is moved between directories of a broker (KIP-113) by a second log, `..-future`, which a thread of its own
   fills (ReplicaAlterLogDirsThread). Its lines name the partition as those of the replica's log do; the directory or the
   thread tell them apart, as the two are never in one directory. A log may begin after the move did: then the directory in
   which the replica was loaded, or else the first one that is seen, is the replica's.
2. The future log replaces the replica's when it has the same log end, with its high watermark, under the lock of the
   partition (Partition#maybeReplaceCurrentWithFutureReplica). So the replica makes no step; the other log is now the old
   one.
3. A fetcher looks the log up before it handles a response (ReplicaFetcherThread#processPartitionData). If the log is
   replaced meanwhile, the records go to the new log, and the log end and high watermark that it prints are the old one's.
"""

import re
from dataclasses import replace

from tidegauge.traces.kafka_logs.nodes.steps import LoggedBroker
from tidegauge.traces.kafka_logs.parsing.parsed_line import ParsedLine

_MOVER = "ReplicaAlterLogDirsThread-"
_DIRECTORY = re.compile(r"^\[UnifiedLog partition=[^,]*, dir=([^\]]*)\]")
_PLACED = re.compile(r"(?:Completed load of Log\(dir=|Created log for partition \S{1,260} in )([^,\s]++)")
_OF_THE_LOOKED_UP = frozenset({"after-append", "follower-high-watermark"})


class LogDirs:
    """Which log of a replica a line is about; lines are given in order."""

    def __init__(self, broker: LoggedBroker) -> None:
        self.broker = broker
        self._own: dict[str, str] = {}
        self._other: dict[str, str] = {}
        self._replaced: dict[str, str] = {}
        self._last: dict[tuple[str, str], str] = {}
        self._astride: set[tuple[str, str]] = set()

    def begin_process(self) -> None:
        """Begin a process, which finds out anew what is in its directories."""
        self._own.clear()
        self._other.clear()
        self._replaced.clear()
        self._last.clear()
        self._astride.clear()

    def of_replica(self, parsed: ParsedLine) -> ParsedLine | None:
        """Return the line, as far as it is about the replica's log."""
        tp, key = parsed.tp, (parsed.line.thread, parsed.tp)
        if parsed.kind in ("log-created", "future-completed") and "future" in parsed.values:
            self._other[tp] = self._last[key] = parsed.text("future")
            return None
        if parsed.kind == "log-replacing":
            self._other[tp], self._replaced[tp] = parsed.text("future"), parsed.text("dir")
            return None
        if parsed.kind == "log-replaced":
            self._own[tp], self._other[tp] = self._other.get(tp, ""), self._replaced.pop(tp, "")
            self._astride |= {
                at for at, step in self.broker.open.items() if at[1] == tp and step.name == "HandleFetchResponse"
            }
            return None
        directory = _DIRECTORY.match(parsed.line.message)
        if parsed.line.thread.startswith(_MOVER):
            if directory is not None:
                self._other.setdefault(tp, directory[1])
            return None
        if parsed.kind in ("log-completed", "log-created"):
            placed = _PLACED.match(parsed.line.message)
            self._own[tp] = placed[1].rpartition("/")[0] if placed is not None else ""
        elif parsed.kind == "log-deleted" and parsed.values.get("dir") == self._own.get(tp):
            self._own.pop(tp, None)
        elif directory is not None and self._own.setdefault(tp, directory[1]) not in ("", directory[1]):
            self._other.setdefault(tp, directory[1])
        if tp not in self._other:
            return parsed
        if directory is not None:
            self._last[key] = directory[1]
        named = parsed.values.get("dir") if directory is None else directory[1]
        # Partition#createLog prints the line of the log before its own.
        if parsed.kind == "log-loaded":
            named = self._last.get(key)
        if named == self._other[tp]:
            return None
        if key in self._astride and parsed.kind in _OF_THE_LOOKED_UP:
            if parsed.kind == "after-append":
                return None
            self._astride.discard(key)
            return replace(parsed, values={name: value for name, value in parsed.values.items() if name != "hw"})
        if parsed.kind == "received":
            self._astride.discard(key)
        return parsed
