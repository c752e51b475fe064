"""Histories of the reference as Kafka's logs: random walks, each of one partition, of a cluster that all of them share.

Rules of this file

1. A history is a walk of impl.cluster: every offset, epoch, role and response is the reference's. Only the words
   (kafka_lines.py) and the times of lines are made here.
2. The brokers are configured so that partitions meet nowhere else: each has fetchers (num.replica.fetchers), request
   handlers and network threads of its own. A fetch does not wait for records (replica.fetch.wait.max.ms=0), nor does a
   fetcher behind an error (replica.fetch.backoff.ms=0). benchmarks.cluster_logs has fetches that wait.
3. What happens to a broker all partitions see: its session expires, it leaves every ISR and leads nowhere. The process runs
   on and learns that late, partition by partition.
4. Left out are: a follower that leaves a leader before it has read the follower's last request, which is never read where
   FENCED_LEADER_EPOCH is due (a fetcher gives the partition up then); a proposal that is refused; a high watermark that a
   fetch session leaves out, for it was sent with a truncation (the reference has no sessions); a leader that has missed
   the epoch of another one, for it may do as Kafka does (F2). Where the last in-sync replica expires the walk ends.
"""

from collections.abc import Iterable
from operator import itemgetter
from random import Random

from tidegauge.impl.cluster.transitions import Bounds, Transition
from tidegauge.impl.explorer.explore import Walker
from tidegauge.impl.messages import FetchRequest, FetchResponseInFlight
from tidegauge.impl.rules import OFFSET_OUT_OF_RANGE, UNDEFINED
from validation.late_lines.kafka_lines import NODES, PROFILE, Lines, lines_of_no_partition
from validation.metamorphic.log_files import Files

BOUNDS = Bounds(brokers=3, max_log=8, max_epoch=5, max_crashes=0, max_fetch=3)
LIKELY = {
    "LeaderAppend": 6,
    "SendFetch": 8,
    "HandleFetch": 8,
    "HandleFetchResponse": 8,
    "HandleDivergingResponse": 8,
    "BecomeLeader": 3,
    "BecomeFollower": 3,
    "AlterPartition": 4,
    "ShrinkIsr": 1,
    "ElectPreferred": 1,
}
"""How likely each action is; the others are not walked."""
GAPS = (8_000, 20_000, 40_000)
"""Microseconds between two steps of a history, on average; drawn for each."""
CREATED, EXPIRIES, BETWEEN = 200_000, (0, 1, 1, 2), 100_000
"""When the walks begin, how many sessions expire, and the time between two expiries."""
REMEMBERED = 200
"""Directories after which what walks have in common is forgotten: it must not grow with their number."""


class Walks:
    """Walkers of the reference, made anew now and then."""

    def __init__(self) -> None:
        self._made = 0

    def walker(self) -> Walker:
        """Return a walker for one directory."""
        if self._made % REMEMBERED == 0:
            self._walker = Walker(BOUNDS, PROFILE)
        self._made += 1
        return self._walker


class Directory:
    """The logs of a cluster of so many partitions: `common` are lines of no partition, `histories` those of each."""

    def __init__(self, random: Random, count: int, walker: Walker) -> None:
        expiries = random.choice(EXPIRIES)
        self.expiries = [(CREATED + (number + 1) * BETWEEN, random.choice(NODES)) for number in range(expiries)]
        self.end = CREATED + (expiries + 1) * BETWEEN
        walks = (_Walk(random, walker, number) for number in range(count))
        self.histories: dict[str, Files] = {walk.lines.tp: walk.walked(self) for walk in walks}
        self.common = lines_of_no_partition(self.end, self.expiries)


class _Walk:
    def __init__(self, random: Random, walker: Walker, number: int) -> None:
        self.random, self.walker, self.number, self.cluster = random, walker, number, walker.start
        self.lines = Lines(random, number, walker.view(walker.start))
        self.leaders: dict[int, int] = {}

    def walked(self, directory: Directory) -> Files:
        """Walk until the end, or the first expiry that ends it; return the lines."""
        lines, gap = self.lines, self.random.choice(GAPS)
        lines.now = CREATED + self.random.randrange(gap)
        for until, expired in (*directory.expiries, (directory.end, None)):
            while self._step():
                lines.now += 400 + int(self.random.expovariate(1 / gap))
                if lines.now >= until - 2_000:
                    break
            if expired is not None:
                lines.now = until + self.number % 800
                if not self._expire(next(index for index in NODES if lines.node[index] == expired) - 1):
                    break
                lines.now = until + 3_000 + self.random.randrange(gap)
        return lines.files

    def _step(self) -> bool:
        possible: dict[str, list[Transition]] = {}
        for transition in self.walker.transitions(self.cluster):
            if transition.label[0] in LIKELY and self._is_walked(transition):
                possible.setdefault(transition.label[0], []).append(transition)
        if not possible:
            return False
        names = list(possible)
        name = self.random.choices(names, [LIKELY[name] for name in names])[0]
        self._take(self.random.choice(possible[name]))
        return True

    def _take(self, transition: Transition) -> None:
        src = self.walker.view(self.cluster)
        self.cluster = self.walker.take(self.cluster, transition)
        self.leaders[self.cluster.controller.leader_epoch] = self.cluster.controller.leader
        self.lines.write(src, transition.label, self.walker.view(self.cluster))

    def _expire(self, index: int) -> bool:
        """Let the session of a broker expire; False where it is the last one in sync, or no epoch is left."""
        isr = self.cluster.controller.isr
        if index not in isr:
            return True
        expired = [one for one in self.walker.transitions(self.cluster) if one.label[:2] == ("FenceBroker", index)]
        if isr == (index,) or not expired:
            return False
        self._take(self.random.choice(expired))
        return True

    # what is left out

    def _is_walked(self, transition: Transition) -> bool:
        action, actor, *rest = transition.label
        if action == "HandleFetch":
            return self._is_fetch_walked(transition, actor, rest[0])
        if action == "BecomeLeader" and self._has_missed_a_leader(actor):
            return False
        if action in ("BecomeLeader", "BecomeFollower"):
            return self._may_change_role(actor, self.cluster.controller.leader if action == "BecomeFollower" else UNDEFINED)
        if action == "AlterPartition":
            return transition.controller is not None
        # The first replica is the preferred one.
        return action != "ElectPreferred" or bool(actor == 0)

    def _has_missed_a_leader(self, broker: int) -> bool:
        """Return whether a broker that leads was not told of another leader since."""
        partition = self.cluster.brokers[broker].partition
        since = range(partition.leader_epoch + 1, self.cluster.controller.leader_epoch)
        return partition.is_leader and any(self.leaders.get(epoch, broker) != broker for epoch in since)

    def _is_fetch_walked(self, transition: Transition, leader: int, follower: int) -> bool:
        if transition.response is None:
            request = self.cluster.network[follower][leader]
            epoch = self.cluster.brokers[leader].partition.leader_epoch
            return isinstance(request, FetchRequest) and request.current_leader_epoch >= epoch
        assert isinstance(transition.response, FetchResponseInFlight)
        response, session = transition.response.response, self.lines.sessions[follower + 1]
        log = self.cluster.brokers[follower].partition.log
        untold = not response.records and not response.is_diverging and session.reported == response.hw
        return response.error != OFFSET_OUT_OF_RANGE and not (untold and log.hw != min(response.hw, log.end))

    def _may_change_role(self, broker: int, leader: int) -> bool:
        """Return whether what is in flight allows a broker to follow a leader, or UNDEFINED to lead."""
        session = self.lines.sessions.get(broker + 1)
        for other, message in enumerate(self.cluster.network[broker]):
            if message is None or (other == leader and session is not None and session.leader == other + 1):
                continue
            # The thread has closed its connection: a response that is still there does not come any more.
            if other == leader or isinstance(message, FetchRequest):
                return False
        return True


def merged(parts: Iterable[Files]) -> Files:
    """Return all lines by file, by the time at which they were written: a late line has that of the line before it."""
    timed: dict[str, list[tuple[str, int, str]]] = {}
    for number, files in enumerate(parts):
        for path, lines in files.items():
            written, at = timed.setdefault(path, []), ""
            for line in lines:
                at = max(at, line[:28])
                written.append((at, number, line))
    # Sorted by time and part; the order within a part stays.
    return {path: [line for *_, line in sorted(lines, key=itemgetter(0, 1))] for path, lines in timed.items()}
