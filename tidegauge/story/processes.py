"""Tell starts, stops and fatal ends of brokers, lost and failed directories, and what controllers say of brokers.

A method `say_KIND` gets every line of its kind of statement (a row of statements.py; `fetch-error` goes to
`say_fetch_error`), in order of time. To *tell* something is to add an entry to the story (`self.add`), to count the last one
once more (`self.add_or_count`), or to add the line to an entry that another one began (`join`); to *note* it is to keep it
for later lines. `line.fields` has the values in the line by name, as text, `line.says` is its row, `line.order` its time in
microseconds. `self.nodes[self.key(line)]` is what is known of the node that wrote it: most attributes are the last entry of
a kind, None before there is one. Its `phase` is "", "starting", "started" or "stopped"; `active`: one of its replicas leads
or follows; `made`: the log directories that the start made. A `mixed` line may be of one of several nodes. `marks` of an
entry are notes for later lines and for sentences.
"""

import re
from dataclasses import replace
from pathlib import PurePosixPath, PureWindowsPath

from tidegauge.story.reading import LONGEST_TRACE, SourcedLine
from tidegauge.story.state import (
    NO_LEADER,
    SECOND,
    TOGETHER,
    UNANNOUNCED,
    NodeStory,
    StoryEntry,
    StoryState,
    join,
    of_broker,
    optional,
)
from tidegauge.traces.kafka_logs.parsing.parsed_line import ids, number

LONG_START = 30 * SECOND
"""A node that starts may wait so long for the quorum."""
LONG_STOP = 300 * SECOND
"""Longer than a broker asks for a controlled shutdown (controlled.shutdown.max.retries)."""
LONG_WRITE = 10 * SECOND
"""Longer than a quorum without a leader, as elections go, keeps a write waiting."""
_OF_A_START = ("startup", "If using process.roles", "while starting SharedServer", "fatal error while waiting for")
"""Parts of fatal lines that only a process prints which starts."""
_OF_A_REPLICA = re.compile(r"\w-\d+(?:\.[0-9a-f]{32}-(?:delete|future|stray))?$")
_STATE_IN_ZOOKEEPER = re.compile(r"(?:Session expired|ConnectionLoss) for /brokers/topics/([^/\s]+)/partitions/(\d+)/state")
_REPLICA_KEY = re.compile(r"\bid=(\d+)")
_IP = re.compile(r"/[^/]{0,80}(?=:\d{1,5}$)")
_IN_DIRECTORY = re.compile(r"(?: in(?: log)?)?(?: dir(?:ectory)?| log dir)? $")


class Processes(StoryState):
    """Tells lines about processes, directories and controllers; a part of story._Teller."""

    def say_starting(self, line: SourcedLine) -> None:
        """Tell that a process starts; several lines of one start are one entry."""
        node = self.nodes[self.key(line)]
        # `Registered signal handlers` is the first line of a process: behind any other one it is of the next process.
        is_first = "Registered" in line.says.text
        if node.start is None or node.phase in ("started", "stopped") or (is_first and node.phase != ""):
            self.start(line, node)
        else:
            join(node.start, line)
        node.phase = "starting"

    def say_started(self, line: SourcedLine) -> None:
        """Note that a process has started, and tell its start if no line before did."""
        node = self.nodes[self.key(line)]
        # A BrokerServer says so of a start that fails, too, and a ControllerServer before it has begun.
        is_sure = line.says.text != "Transition from STARTING to STARTED"
        if not is_sure and node.fatal is not None and line.order - node.fatal.order < TOGETHER:
            return
        start = self.start(line, node) if node.start is None or node.phase == "stopped" else node.start
        node.phase = "started"
        start.marks |= {"started"} if is_sure else set()

    def start(self, line: SourcedLine, node: NodeStory) -> StoryEntry:
        """Begin a process of a node with an entry; forget what lines of the process before said of its replicas."""
        node.start = self.add(line, "start", clean=None)
        node.starts += 1
        node.stop = node.fatal = node.quorum = None
        node.active = False
        node.made = set()
        node.phase = "starting"
        key = self.key(line)
        # Of the replicas of this node: the entries of its last process get no more lines, and its log ends may be old.
        for (_, whose), replica in self.replicas.items():
            if whose == key:
                replica.loaded = replica.truncation = replica.fell = replica.reset = None
                replica.ended = None
        return node.start

    def _recovery(self, line: SourcedLine) -> StoryEntry:
        """Return the entry of the start that a line of recovery belongs to; begin one if no line has told that start."""
        node = self.nodes[self.key(line)]
        # Logs are recovered before a broker is started, and before it leads or follows.
        if node.start is None or node.active or node.phase in ("started", "stopped"):
            return self.start(line, node)
        return node.start

    def say_unclean(self, line: SourcedLine) -> None:
        """Tell that a process was not stopped in order before; a directory without logs shows nothing."""
        directory = line.fields.get("directory")
        if line.fields.get("logs") == "0" or line.mixed:
            return
        start = self._recovery(line)
        node = self.nodes[self.key(line)]
        # 2.8 says so of a directory that it has just made, too.
        if directory is not None and directory in node.made:
            return
        # 2.8 says so of an empty directory, too, which is unclean only if a log is recovered, or loaded, after it: see
        # Truncations.say_loaded.
        if "Attempting" in line.text:
            start.marks.add("attempting")
            return
        start.fields["clean"] = False
        join(start, line)

    def say_index_rebuilt(self, line: SourcedLine) -> None:
        """Tell index files that are made anew: part of an unclean start, and no loss."""
        if not line.mixed:
            start = self._recovery(line)
            start.fields["indexes_rebuilt"] = True
            join(start, line)

    def say_session_expired(self, line: SourcedLine) -> None:
        """Tell a broker that lost its session with ZooKeeper; its client may have begun the entry just before."""
        last = self.nodes[self.key(line)].expired
        if last is not None and line.order - last.order < TOGETHER:
            # The client's line before it was this broker's own, then.
            last.node = line.node
            last.marks.discard("any client")
            join(last, line)
        else:
            self.nodes[self.key(line)].expired = self.add(line, "session_expired")

    def say_client_session_expired(self, line: SourcedLine) -> None:
        """Tell a lost session by a line that any client of ZooKeeper prints: a broker's own line makes it that broker's."""
        last = self.nodes[self.key(line)].expired
        if last is not None and line.order - last.order < TOGETHER:
            join(last, line)
            return
        self.nodes[self.key(line)].expired = entry = self.add(replace(line, node=None), "session_expired")
        near = self.nodes[self.key(line)].broker_seen
        if near is None or line.order - near > TOGETHER:
            entry.marks.add("any client")

    def say_epoch_updated(self, line: SourcedLine) -> None:
        """Tell where a leader epoch begins in a log; only a broker prints that: a session lost near it is its."""
        node = self.nodes[self.key(line)]
        node.broker_seen = line.order
        if node.expired is not None and line.order - node.expired.order < TOGETHER:
            node.expired.marks.discard("any client")
        if line.partition is not None:
            epoch, offset = number(line.fields["leader_epoch"]), number(line.fields["offset"])
            self.add(line, "epoch_began", line.partition, leader_epoch=epoch, offset=offset)

    def say_paused(self, line: SourcedLine) -> None:
        """Note when and how long, in ms, a full collection stopped the JVM of the file's program."""
        fields = line.fields
        pause = float(fields["milliseconds"]) if "milliseconds" in fields else 1_000 * float(fields["seconds"])
        self.pauses[line.file].append((line.order, pause))

    def say_session_timeout(self, line: SourcedLine) -> None:
        """Note the timeout of a session with ZooKeeper."""
        self.timeouts[line.file] = number(line.fields["timeout"])

    def relate_pauses(self) -> None:
        """Add to lost sessions a pause of the JVM near them that is longer than the timeout, by lines of the same file."""
        for entry in self.entries if self.pauses else ():
            file = entry.sources[0].rpartition(":")[0]
            near = [pause for order, pause in self.pauses.get(file, ()) if abs(order - entry.order) < 60 * SECOND]
            pause, timeout = max(near, default=0), self.timeouts.get(file)
            if entry.kind == "session_expired" and timeout is not None and pause > timeout:
                entry.fields |= {"pause": round(pause), "timeout": timeout}

    def say_heartbeat_refused(self, line: SourcedLine) -> None:
        """Tell a heartbeat refused for its broker epoch, by the controller's line, which may not name the broker."""
        epochs = {name: optional(line, name) for name in ("expected", "got") if name in line.fields}
        self._refused_by_controller(replace(line, node=optional(line, "broker")), "STALE_BROKER_EPOCH", **epochs)

    def _refused_by_controller(self, line: SourcedLine, error: str, **epochs: int | None) -> None:
        """Tell that a KRaft controller refused a broker; `epochs` has broker epochs `expected` and `got`, if any."""
        # Every registration has an epoch of its own: two that are expected are two brokers.
        refused = self.nodes[self.key(line)].refused_by_controller
        expected = epochs.get("expected")
        last = refused.get(expected)
        refused[expected] = self.add_or_count(last, line, "not_registered", error=error, **epochs)

    def say_not_controller(self, line: SourcedLine) -> None:
        """Tell a request to a controller that is not the active one, and which is (None: no line says it, -1: none is)."""
        node = self.nodes[self.key(line)]
        active = NO_LEADER if line.says.text.startswith("No ") else optional(line, "active")
        node.inactive = self.add_or_count(node.inactive, replace(line, partition=None), "not_controller", active=active)

    def say_leaders_not_moved(self, line: SourcedLine) -> None:
        """Tell a broker that stops before the controller has moved its leaders away."""
        node = self.nodes[self.key(line)]
        if node.unmoved is not None and line.order - node.unmoved.order < TOGETHER:
            join(node.unmoved, line)
        else:
            node.unmoved = self.add(line, "leaders_not_moved", error=line.fields.get("error", "").strip() or None)

    def say_migration(self, line: SourcedLine) -> None:
        """Tell a controller that waits for the brokers of ZooKeeper: its migration has not begun."""
        node = self.nodes[self.key(line)]
        node.migrating = self.add_or_count(node.migrating, line, "migration")

    def say_migration_conflict(self, line: SourcedLine) -> None:
        """Tell a controller that found another one's writes in ZooKeeper; its stack trace has the line, too."""
        failed = self.nodes[self.key(line)].conflict
        if failed is not None and line.order - failed.order < TOGETHER:
            join(failed, line)
            return
        version = f" than {line.fields['version']}" if "version" in line.fields else ""
        error = f"{line.says.text}: ZooKeeper has another zkVersion{version}, so another controller writes to it"
        self.nodes[self.key(line)].conflict = self.add(line, "request_failed", error=error, task="of the migration")

    def say_request_failed(self, line: SourcedLine) -> None:
        """Tell a request that a broker could not do because of its disk or memory; others fail because of who sent them."""
        error = line.error or (line.says.text if line.says.logger == "CoreUtils" else "")
        if "java.io." in error or "java.lang.OutOfMemoryError" in error or line.says.logger == "CoreUtils":
            failed = self.add(replace(line, partition=None), "request_failed", error=error)
            failed.marks |= {"of no request"} if line.says.logger == "CoreUtils" else set()

    def say_in_recovery(self, line: SourcedLine) -> None:
        """Tell of what failed just before that it was the recovery of a log, by a line of its stack trace."""
        last = self.entries[-1] if self.entries else None
        if last is not None and "of no request" in last.marks and "task" not in last.fields:
            near = last.sources[0].rpartition(":")
            if near[0] == line.file and line.number - int(near[2]) < LONGEST_TRACE:
                last.fields["task"] = "of recovering a log as it starts"

    def say_task_failed(self, line: SourcedLine) -> None:
        """Tell a task that failed at its files, where no directory failed by that; it is done again at its time."""
        # KafkaZkClient#conditionalUpdatePath names the partition whose ISR it could not write.
        unwritten = _STATE_IN_ZOOKEEPER.search(line.error)
        if unwritten is not None:
            change = self.replica_of(replace(line, partition=f"{unwritten[1]}-{unwritten[2]}")).change
            if change is not None and change.fields["accepted"] is None and line.order - change.order < TOGETHER:
                change.fields |= {"accepted": False, "error": line.error}
                join(change, line)
        # A task that failed as its directory did is told by the entry of that.
        failures_near = self.nodes[self.key(line)].failed.values()
        if "java.io." in line.error and not any(line.order - failure.order < TOGETHER for failure in failures_near):
            self.add(line, "request_failed", error=line.error, task=line.fields["task"])

    def say_thread_died(self, line: SourcedLine) -> None:
        """Tell a thread that an error ended: nothing does its work until the broker starts again."""
        self.add(line, "thread_died", thread=line.fields["thread"], error=line.error or None)

    def say_not_deleted(self, line: SourcedLine) -> None:
        """Tell files of a deleted topic that could not be deleted: no partition needs them any more."""
        node = self.nodes[self.key(line)]
        error = line.error or line.fields.get("error")
        node.undeleted = self.add_or_count(node.undeleted, replace(line, partition=None), "not_deleted", error=error)

    def say_not_registered(self, line: SourcedLine) -> None:
        """Tell a broker that is not registered, as another process is under its id, or as the controller refused it.

        Clients and the controller do not see such a broker. The error NOT_CONTROLLER says only whom it asked.
        """
        if line.fields["error"] == "NOT_CONTROLLER":
            self.say_not_controller(line)
            return
        if line.says.logger == "BrokerLifecycleManager":
            self._refused_by_controller(line, line.fields["error"])
            return
        node = self.nodes[self.key(line)]
        if node.unregistered is not None and line.order - node.unregistered.order < TOGETHER:
            join(node.unregistered, line)
        else:
            node.unregistered = self.add(line, "not_registered", error=line.fields["error"])

    def say_clean(self, line: SourcedLine) -> None:
        """Tell that the process before was stopped in order, unless a line of another directory says the contrary."""
        if line.mixed:
            return
        start = self._recovery(line)
        if start.fields["clean"] is None:
            start.fields["clean"] = True
            join(start, line)

    def say_directory_made(self, line: SourcedLine) -> None:
        """Note a log directory that a start makes; of a node that had replicas before, tell that they are lost."""
        directory = line.fields["directory"]
        start = self._recovery(line)
        node = self.nodes[self.key(line)]
        node.made.add(directory)
        own_replicas = (replica for (_, whose), replica in self.replicas.items() if whose == self.key(line))
        had_replicas = node.starts > 1 or any(replica.is_known for replica in own_replicas)
        # Of lines that may be of several brokers, what one makes is nothing that another lost.
        if had_replicas and not line.mixed:
            node.lost[directory] = self.add(line, "replica_lost", directory=directory)
            start.fields["clean"] = None  # an empty directory says nothing of how the process before ended

    def say_stopping(self, line: SourcedLine) -> None:
        """Tell that a process begins to stop; whether it does so cleanly, say_stopped tells."""
        self._stop(line)

    def say_stop_announced(self, line: SourcedLine) -> None:
        """Tell a broker that asked the controller to move its leaders away, as it begins to stop: a controlled shutdown."""
        of_stopping = of_broker(line)
        node = self.nodes[self.key(of_stopping)]
        # It asks again where it is not answered; where its start is not in these lines, a later stop is another one.
        if node.stop is None or line.order - node.stop.order > LONG_STOP:
            node.stop = self.add(of_stopping, "stop", clean=None)
        else:
            join(node.stop, line)

    def say_stopped(self, line: SourcedLine) -> None:
        """Tell that a process has stopped in order; one whose start failed prints that, too, and never ran."""
        stop = self._stop(line)
        stop.fields["clean"] = None if "never ran" in stop.marks else True
        join(stop, line)
        self.nodes[self.key(line)].phase = "stopped"

    def _stop(self, line: SourcedLine) -> StoryEntry:
        """Return the entry of the end of a process, with its mark if its start had failed; begin it if needed."""
        node = self.nodes[self.key(line)]
        if node.stop is None:
            node.stop = self.add(line, "stop", clean=None)
            # A failure of long ago is of another process.
            failed = node.fatal is not None and "start" in node.fatal.marks and line.order - node.fatal.order < 60 * SECOND
            node.stop.marks |= {"never ran"} if failed else set()
        return node.stop

    def say_fatal(self, line: SourcedLine) -> None:
        """Tell an error that ends a process, in the words of its line; more lines of it, just behind, are one entry.

        An entry's `cause` is the exception behind its line, or what a later line says more precisely.
        """
        node = self.nodes[self.key(line)]
        # What the sentence says of the error, by the statement that the line is.
        error = line.fields.get("error", "").strip(" :") or None
        if "leader_end" in line.fields:
            leader_end, log_end = number(line.fields["leader_end"]), number(line.fields["log_end"])
            ends = f"the leader's log ends at {leader_end}, this replica's at {log_end}"
            error = f"log truncation is not allowed: {ends}, so the leader lacks {leader_end} to {log_end - 1}"
        if "stored" in line.fields:
            error = (
                f"its log directories are of the cluster {line.fields['stored']}, and it was to join "
                f"{line.fields['cluster_id']}"
            )
        if "logs loading" in line.says.text:
            self._recovery(line)  # another thread may print the first line of it later
            line, error = replace(line, error=""), f"loading its logs: {error}"
        if "Fatal error during" in line.says.text and error is not None:
            error = f"fatal error during {error}"
        if "waiting for" in line.says.text:
            error = f"it waited for {error}"
        if "setting" in line.fields:
            line, unset = replace(line, error=""), "controller.quorum.voters is not set"
            error = f"{unset}, nor is controller.quorum.bootstrap.servers" if "boot" in line.fields["setting"] else unset
        if "already registered" in line.says.text:
            error = f"/brokers/ids/{line.node} is already registered in ZooKeeper"
        if line.says.text.startswith("Exiting Kafka due") and error is not None:
            error = f"{line.says.text} {error}"
        error = error.rstrip(".") if error is not None else line.says.text.strip()
        # That it could not register is no entry of its own where its process ends by that.
        refused = node.unregistered
        if refused is not None and "NodeExists" in line.error and line.order - refused.order < TOGETHER:
            self.entries.remove(refused)
            node.unregistered = None
        # The entry is the last one if this line repeats it, or follows soon and may explain it; else it is a new one.
        same_error = node.fatal is not None and error == node.fatal.fields.get("cause", node.fatal.fields["error"])
        if same_error and node.fatal is not None:
            join(node.fatal, line)
        elif node.fatal is None or line.order - node.fatal.order > TOGETHER:
            node.fatal = self.add(
                line, "process_failed", line.partition, error=error, **({"cause": line.error} if line.error else {})
            )
            # A controller of KRaft has this line, too.
            is_of_any = "fatal fault" in line.says.text or "process.roles" in line.says.text
            node.fatal.marks |= {"any node"} if is_of_any else set()
            node.fatal.marks |= {"ahead of its leader"} if "leader_end" in line.fields else set()
        else:
            join(node.fatal, line)
            if "stored" in line.fields and node.fatal.fields["error"] != error:
                node.fatal.fields["cause"] = error
        if any(text in line.text for text in _OF_A_START):
            node.fatal.marks.add("start")
            # The stop that follows on it may be printed before it.
            if node.stop is not None and line.order - node.stop.order < TOGETHER:
                node.stop.fields["clean"] = None
                node.stop.marks.add("never ran")

    def say_directory_failed(self, line: SourcedLine, error: str | None = None) -> None:
        """Tell a log directory that failed, once; `error` is why, if a line says it, and the first one stays."""
        failed = self.nodes[self.key(line)].failed
        directory = line.fields["directory"]
        if directory in failed:
            join(failed[directory], line)
        else:
            failed[directory] = self.add(line, "directory_failed", directory=directory)
        failed[directory].marks |= {"given up"} if "Stopping serving" in line.says.text else set()
        if error is not None:
            failed[directory].fields.setdefault("error", error)

    def say_directory_error(self, line: SourcedLine) -> None:
        """Tell why a directory failed: the first error at a file in it makes its broker give it up."""
        # `what` is what the broker did at the file, such as "flushing log for orders-0 in dir ".
        path, what = line.fields["directory"], line.fields["what"]
        # It names a file, not the directory.
        if what.endswith("file "):
            folder = (PureWindowsPath if "\\" in path else PurePosixPath)(path)
            # A checkpoint lies in the directory, but that of leader epochs in a replica's folder, one below.
            path = str(folder.parents[1 if folder.name.startswith("leader-epoch-checkpoint") else 0])
        if "clean up" in line.says.text:
            what = f"cleaning the log of {what}"
        error, why = line.error or line.fields.get("error"), _IN_DIRECTORY.sub("", what)
        why = "it was not made, or is none" if why == "data" else why
        failed = replace(line, fields={**line.fields, "directory": path})
        self.say_directory_failed(failed, f"{why}: {error}" if error else why)

    def say_io_error(self, line: SourcedLine) -> None:
        """Tell a file that the system could not read or write, where no line of Kafka says of which directory it is.

        That is the folder of the file, or the one above if the file lies in a replica's folder.
        """
        node = self.nodes[self.key(line)]
        failures_near = [*node.failed.values(), *([node.fatal] if node.fatal is not None else [])]
        if any(abs(line.order - failure.order) < TOGETHER for failure in failures_near):
            return
        path = line.fields["path"]
        folder = (PureWindowsPath if "\\" in path else PurePosixPath)(path).parent
        directory = str(folder.parent if _OF_A_REPLICA.search(folder.name) else folder)
        self.say_directory_failed(replace(line, fields={"directory": directory}), line.text.strip())

    def say_directory_offline(self, line: SourcedLine) -> None:
        """Tell a directory of a broker that failed, by the controller's line, which has the directory's id."""
        self.say_directory_failed(of_broker(line))

    def say_controller(self, line: SourcedLine) -> None:
        """Tell a node that becomes the active controller: it knows the leader of the quorum."""
        quorum = self.nodes[self.key(line)].quorum
        self.nodes[self.key(line)].controls = True
        # `Becoming the active controller` is of KRaft: a controller of ZooKeeper has no quorum.
        if quorum is not None and "ecoming" in line.says.text:
            quorum.marks.add("ended")
        self.add(line, "controller", controller_epoch=optional(line, "controller_epoch"), active=True)

    def say_controller_conflict(self, line: SourcedLine) -> None:
        """Tell a broker that wants to become the controller while another one (`active`) is it."""
        node = self.nodes[self.key(line)]
        fields = {"active": number(line.fields["active"])}
        node.contended = self.add_or_count(node.contended, replace(line, partition=None), "controller_conflict", **fields)

    def say_own_conflict(self, line: SourcedLine) -> None:
        """Note that such a broker takes the other one's node in ZooKeeper for its own, and waits until it is gone."""
        contended = self.nodes[self.key(line)].contended
        if contended is not None:
            contended.marks.add("waits")
            join(contended, line)

    def say_controller_resigned(self, line: SourcedLine) -> None:
        """Tell a node that ceases to be the active controller: by which event and error, if the line has them.

        With ZooKeeper every broker that stops prints it (KafkaController#shutdown): it counts where the node was told to be
        the controller.
        """
        controls, self.nodes[self.key(line)].controls = self.nodes[self.key(line)].controls, False
        if line.says.until is not None and not controls:
            return
        why = {name: line.fields[name] for name in ("event", "error") if name in line.fields}
        self.nodes[self.key(line)].resigned = self.add(line, "controller", controller_epoch=None, active=False, **why)

    def say_write_given_up(self, line: SourcedLine) -> None:
        """Tell how long the writes waited that a controller gave up as it resigned: none of them was committed."""
        resigned, waited = self.nodes[self.key(line)].resigned, number(line.fields["waited"])
        if resigned is not None and line.order - resigned.order < TOGETHER and waited >= LONG_WRITE:
            resigned.fields["waited"] = max(waited // SECOND, resigned.fields.get("waited", 0))
            join(resigned, line)

    def say_quorum_state(self, line: SourcedLine) -> None:
        """Tell who leads the KRaft quorum, as a node knows it, by its change of state in Raft.

        All that it does while it knows no leader is one entry: elections, and the leaders and epochs before (`led`,
        `followed`).
        """
        node, fields = self.nodes[self.key(line)], line.fields
        leader = line.node if fields["state"] == "Leader" else optional(line, "leader")
        if leader is None:
            entry = self._without_leader(line, fields["epoch"])
            # A candidate stands for election, unless say_quorum_attempt has counted that already (its mark: `attempted`).
            entry.fields["elections"] += fields["state"] == "Candidate" and "attempted" not in entry.marks
            entry.marks.discard("attempted")
            if fields["state"] == "Resigned" and "led" in fields:
                entry.fields["resigned"] = True
            if fields.get("voters") == "":
                entry.marks.add("no voters")
            for name in ("led", "followed", "lost"):
                if name in fields:
                    entry.fields.setdefault(name, number(fields[name]))
            return
        # It knows a leader: another one, or in another epoch, ends what was told of the last one.
        epoch, last = number(fields["epoch"]), node.quorum
        if last is None or (last.fields["leader"], last.fields["leader_epoch"]) != (leader, epoch):
            node.quorum = self.add(line, "quorum", leader=leader, leader_epoch=epoch)
            node.unreachable.clear()
            if last is not None:
                last.marks.add("ended")

    def _without_leader(self, line: SourcedLine, epoch: str | None = None) -> StoryEntry:
        """Return the entry of the time in which a node knows no leader of the quorum, with this line; begin it if needed.

        `epoch` is the one that the line has (None: it has none): `epochs` of the entry are the first and the last.
        """
        node = self.nodes[self.key(line)]
        entry = node.quorum
        if entry is None or entry.fields["leader"] is not None:
            entry = self.add(
                line,
                "quorum",
                leader=None,
                leader_epoch=None,
                epochs=None,
                elections=0,
                rejected_by=[],
                unreachable=sorted(name for name in node.unreachable if name >= 0),
                resigned=None,
            )
            entry.marks |= {"stopping"} if node.stop is not None else set()
            node.quorum = entry
        join(entry, line)
        entry.fields["until"] = line.time
        if epoch is not None:
            entry.fields["epochs"] = [*(entry.fields["epochs"] or [number(epoch)])[:1], number(epoch)]
        return entry

    def say_metadata_empty(self, line: SourcedLine) -> None:
        """Tell a controller that found no metadata: of a new cluster, or of one that has lost it."""
        self.add(line, "metadata_empty")

    def say_unfenced(self, line: SourcedLine) -> None:
        """Tell a broker that the controller lets serve; both say so."""
        unfenced = of_broker(line)
        node = self.nodes[self.key(unfenced)]
        if node.unfenced is not None and line.order - node.unfenced.order < TOGETHER:
            join(node.unfenced, line)
        else:
            node.unfenced = self.add(unfenced, "broker_unfenced")

    def say_api_versions_failed(self, line: SourcedLine) -> None:
        """Tell a node to which another one (`peer`) answered its first request with an error: the log of that says why."""
        node, peer = self.nodes[self.key(line)], number(line.fields["peer"])
        fields = {"peer": peer, "error": line.fields["error"]}
        node.no_api_versions[peer] = self.add_or_count(
            node.no_api_versions.get(peer), replace(line, partition=None), "api_versions_failed", **fields
        )

    def say_heartbeat_late(self, line: SourcedLine) -> None:
        """Tell an active controller that had so much to do that a broker's heartbeat waited too long in its queue."""
        node = self.nodes[self.key(line)]
        fields = {"broker": optional(line, "broker")}
        node.overloaded = self.add_or_count(
            node.overloaded, replace(line, partition=None), "controller_overloaded", **fields
        )

    def say_dumped_fence(self, line: SourcedLine) -> None:
        """Tell a broker whose registration a record of a metadata dump fences; one that unfences it later ends that."""
        broker = number(line.fields["broker"])
        node = self.nodes[broker]
        if line.fields["fenced"] == "1":
            node.fenced = self.add(replace(line, node=None), "broker_left", broker=broker, why="its registration was fenced")
            node.fenced.marks.add("dump")
        else:
            self.add(replace(line, node=broker), "broker_unfenced")
            if node.fenced is not None:
                node.fenced.marks.add("ended")

    def say_too_few_brokers(self, line: SourcedLine) -> None:
        """Tell a topic that was not made, since fewer brokers are registered than it was to have replicas."""
        node = self.nodes[self.key(line)]
        fields = {"wanted": number(line.fields["wanted"]), "brokers": number(line.fields["brokers"])}
        node.too_few = self.add_or_count(node.too_few, replace(line, partition=None), "too_few_brokers", **fields)

    def say_quorum_attempt(self, line: SourcedLine) -> None:
        """Tell a state of Raft that a node is about to enter; the line that it did goes to say_quorum_state."""
        entry = self._without_leader(line, line.fields["epoch"])
        if line.fields["state"] == "Candidate":
            entry.fields["elections"] += 1
            entry.marks.add("attempted")

    def say_metadata_behind(self, line: SourcedLine) -> None:
        """Tell a node that waits for the quorum: every start prints it until the node knows how far the metadata goes."""
        node = self.nodes[self.key(line)]
        if node.behind is None:
            node.behind = self.add(line, "metadata_behind", times=0, until=line.time)
        node.behind.fields["times"] += 1
        node.behind.fields["until"] = line.time
        if line.order - node.behind.order > LONG_START:
            node.behind.marks.add("long")
        join(node.behind, line)

    def say_metadata_caught_up(self, line: SourcedLine) -> None:
        """Note that a node has caught up with the metadata: it waits no longer (say_metadata_behind)."""
        node = self.nodes[self.key(line)]
        if node.behind is not None:
            node.behind.marks.add("ended")
            node.behind = None

    def say_status_leader(self, line: SourcedLine) -> None:
        """Tell the leader in the output of `kafka-metadata-quorum describe --status`; lines behind it add to the entry."""
        leader = int(line.fields["leader"])
        self.status[line.file] = self.add(line, "quorum_status", leader=leader, leader_epoch=None, lag=None)

    def say_status_replica(self, line: SourcedLine) -> None:
        """Tell a row of `kafka-metadata-quorum describe --replication`: that of the leader comes first."""
        replica, lag = number(line.fields["replica"]), int(line.fields["lag"])
        status = self.status.get(line.file)
        if line.says.text.strip() == "Leader":
            status = self.add(line, "quorum_status", leader=replica, leader_epoch=None, lag=None, followers=[])
            self.status[line.file] = status
        elif status is not None and "followers" in status.fields:
            status.fields["followers"].append(replica)
            status.fields["lag"] = max(lag, status.fields["lag"] or 0)
            join(status, line)

    def say_status_epoch(self, line: SourcedLine) -> None:
        """Add the leader epoch in that output."""
        self._add_to_status(line, "leader_epoch", line.fields["epoch"])

    def say_status_lag(self, line: SourcedLine) -> None:
        """Add how many records the follower farthest behind lacks, in that output."""
        self._add_to_status(line, "lag", line.fields["lag"])

    def _add_to_status(self, line: SourcedLine, name: str, value: str) -> None:
        """Set a field of the entry that say_status_leader began in this file, if it is not set yet."""
        status = self.status.get(line.file)
        if status is not None and status.fields[name] is None:
            status.fields[name] = int(value)
            join(status, line)

    def say_quorum_none(self, line: SourcedLine) -> None:
        """Tell that a controller knows no leader of the quorum in an epoch."""
        self._without_leader(line, line.fields["epoch"])

    def say_quorum_rejected(self, line: SourcedLine) -> None:
        """Tell which voters rejected a candidate, by their ids."""
        rejected = self._without_leader(line).fields["rejected_by"]
        rejecting = _REPLICA_KEY.findall(line.fields["rejecting"]) or ids(line.fields["rejecting"])
        rejected += [voter for voter in map(int, rejecting) if voter not in rejected]

    def say_quorum_timeout(self, line: SourcedLine) -> None:
        """Count an election of the quorum in which too few voters answered in time."""
        entry = self._without_leader(line)
        entry.fields["timeouts"] = entry.fields.get("timeouts", 0) + 1

    def say_quorum_alone(self, line: SourcedLine) -> None:
        """Tell a leader of the quorum that no majority of the voters fetched from, within `limit` milliseconds."""
        self._without_leader(line).fields["alone"] = number(line.fields["limit"])

    def say_disconnected(self, line: SourcedLine) -> None:
        """Tell a lost connection to a peer of Raft, where the node has no leader: else Kafka closes what is idle."""
        node, peer = self.nodes[self.key(line)], int(line.fields["peer"])
        if node.behind is not None or (node.quorum is not None and node.quorum.fields["leader"] is None):
            fields = {"peer": peer} if peer >= 0 else {"peer": peer, "address": None}
            node.disconnected[peer] = self.add_or_count(node.disconnected.get(peer), line, "disconnected", **fields)

    def say_unreachable(self, line: SourcedLine) -> None:
        """Tell a node (`peer`) that the one which wrote the line could not connect to, or not send a request to."""
        node, peer = self.nodes[self.key(line)], int(line.fields["peer"])
        # That it could not connect says more than that it is not connected.
        lost = node.disconnected.pop(peer, None)
        if lost is not None and lost.fields["times"] == 1 and line.order - lost.order < TOGETHER:
            # From the end, and by identity: it is one of the last.
            del self.entries[next(at for at in range(len(self.entries) - 1, -1, -1) if self.entries[at] is lost)]
        # Only peers of Raft matter for the quorum.
        peers = node.unreachable if "RaftManager" in line.text else node.unanswering
        fields: dict[str, object] = {"peer": peer}
        if peer < 0:
            # No node, but a place in controller.quorum.bootstrap.servers (KafkaRaftClient): `host/ip:port` says which.
            fields["address"] = _IP.sub("", line.fields.get("address", "")) or None
        peers[peer] = self.add_or_count(peers.get(peer), replace(line, partition=None), "unreachable", **fields)
        if node.quorum is not None and node.quorum.fields["leader"] is None:
            node.quorum.fields["unreachable"] = sorted(name for name in node.unreachable if name >= 0)

    def say_unheard(self, line: SourcedLine) -> None:
        """Tell a broker whose requests do not get to the active controller."""
        node = self.nodes[self.key(line)]
        node.unheard = self.add_or_count(node.unheard, replace(line, partition=None), "unreachable", peer=None)

    def say_voter_mismatch(self, line: SourcedLine) -> None:
        """Tell a controller that other voters know by the id of another directory: it does not vote for them."""
        node, fields = self.nodes[self.key(line)], {"voter": line.fields["voter"], "own": line.fields["own"]}
        node.mismatch = self.add_or_count(node.mismatch, line, "voter_mismatch", **fields)

    def say_broker_left(self, line: SourcedLine) -> None:
        """Tell brokers that a controller counts as gone, and why, if the line says it."""
        for broker in ids(line.fields["brokers"]):
            self.left.pop(broker, None)
            self.left[broker] = self.add(line, "broker_left", broker=broker, why=line.fields.get("why"))

    def _just_left(self, line: SourcedLine) -> list[StoryEntry]:
        """Return the entries of the brokers that the controller, whose line this is, counted as gone just before.

        They are those of its last line about that.
        """
        near = [left for left in self.left.values() if left.node == line.node and line.order - left.order < SECOND]
        return [left for left in near if left.sources[0] == near[-1].sources[0]]

    def say_left_announced(self, line: SourcedLine) -> None:
        """Tell of brokers that left which had not asked for a controlled shutdown: the line names those that had."""
        for left in self._just_left(line):
            if left.fields["broker"] not in ids(line.fields["brokers"]):
                left.fields["why"] = UNANNOUNCED
                join(left, line)

    def say_left_leading(self, line: SourcedLine) -> None:
        """Tell of brokers that left that they led no partition: the controller's list of these is empty."""
        for left in self._just_left(line):
            left.fields["led"] = []
            join(left, line)

    def say_broker_came(self, line: SourcedLine) -> None:
        """Tell of brokers that left that they registered again."""
        for broker in ids(line.fields["brokers"]):
            left = self.left.pop(broker, None)
            if left is not None and left.time and line.time:
                left.fields["back_after"] = (line.order - left.order) // SECOND
                join(left, line)

    def say_topic_deleting(self, line: SourcedLine) -> None:
        """Tell topics whose deletion begins; a line of its end brings the entry up to date (say_topic_deleted)."""
        for topic in filter(None, line.fields["names"].split(",")):
            self.deletions[topic] = self.add(line, "topic_deleted", topic=topic, completed=False)

    def say_topic_deleted(self, line: SourcedLine) -> None:
        """Tell a topic that was deleted, and note it for its partitions."""
        topic = line.fields["name"]
        begun = self.deletions.pop(topic, None)
        if begun is not None:
            begun.fields["completed"] = True
            join(begun, line)
        else:
            self.add(line, "topic_deleted", topic=topic)
        for name in [name for name in self.partitions if name.rpartition("-")[0] == topic]:
            self.partition_deleted(name, line.order)
