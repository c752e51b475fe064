"""What happens to a cluster while its clients write: a function per incident of `shapes.INCIDENTS`."""

import time
from collections.abc import Callable, Iterable, Mapping
from random import Random

from validation.real_clusters.clients import Load
from validation.real_clusters.cluster import SESSION_MS, RunningCluster
from validation.real_clusters.nodes import ClusterNode

Incident = Callable[[RunningCluster, Load, Random], None]


def _back(cluster: RunningCluster, *nodes: ClusterNode) -> None:
    for each in nodes:
        each.start()
    cluster.wait_for(nodes)
    cluster.say(f"started {', '.join(str(each.number) for each in nodes)}")


def _brokers(cluster: RunningCluster, random: Random, count: int = 1) -> list[ClusterNode]:
    return random.sample(list(cluster.brokers.values()), count)


def _kill(cluster: RunningCluster, _load: Load, random: Random, count: int = 1) -> None:
    chosen = _brokers(cluster, random, count)
    for broker in chosen:
        broker.kill()
        cluster.say(f"killed {broker.number}")
        time.sleep(random.choice((0, 0.5, 2)))
    time.sleep(random.uniform(1, SESSION_MS / 1000 + 2))
    _back(cluster, *chosen)


def _kill_two(cluster: RunningCluster, load: Load, random: Random) -> None:
    _kill(cluster, load, random, 2)


def _pause(cluster: RunningCluster, _load: Load, random: Random, longest: float = 6) -> None:
    broker = _brokers(cluster, random)[0]
    broker.pause()
    cluster.say(f"paused {broker.number}")
    time.sleep(random.uniform(longest / 3, longest))
    broker.resume()
    cluster.say(f"resumed {broker.number}")


def _long_pause(cluster: RunningCluster, load: Load, random: Random) -> None:
    """Pause for longer than the session: the controller fences the broker, which does not know."""
    _pause(cluster, load, random, SESSION_MS / 1000 + 5)


def _stop(cluster: RunningCluster, _load: Load, random: Random) -> None:
    broker = _brokers(cluster, random)[0]
    broker.stop()
    cluster.say(f"stopped {broker.number}")
    time.sleep(random.uniform(0, 5))
    _back(cluster, broker)


def _rolling_restart(cluster: RunningCluster, _load: Load, random: Random) -> None:
    for broker in _brokers(cluster, random, len(cluster.brokers)):
        broker.stop()
        cluster.say(f"stopped {broker.number}")
        time.sleep(random.uniform(0, 1))
        _back(cluster, broker)
        cluster.settle()


def _without_controller(cluster: RunningCluster, random: Random, end: Callable[[ClusterNode], None], word: str) -> None:
    controller = cluster.controllers[cluster.active_controller()]
    end(controller)
    cluster.say(f"{word} controller {controller.number}")
    time.sleep(random.uniform(1, 6))
    _back(cluster, controller)
    time.sleep(2)


def _kill_controller(cluster: RunningCluster, _load: Load, random: Random) -> None:
    _without_controller(cluster, random, ClusterNode.kill, "killed")


def _stop_controller(cluster: RunningCluster, _load: Load, random: Random) -> None:
    _without_controller(cluster, random, ClusterNode.stop, "stopped")


def _pause_controller(cluster: RunningCluster, _load: Load, random: Random) -> None:
    """Let the active controller stand still: the others elect one, and what it had decided may be late."""
    controller = cluster.controllers[cluster.active_controller()]
    controller.pause()
    cluster.say(f"paused controller {controller.number}")
    time.sleep(random.uniform(1, SESSION_MS / 1000 + 3))
    controller.resume()
    cluster.say(f"resumed controller {controller.number}")
    time.sleep(2)


def _reassign(cluster: RunningCluster, _load: Load, random: Random) -> None:
    brokers = sorted(cluster.brokers)
    everything = sorted((topic, n) for topic, count in cluster.watched.items() for n in range(count))
    chosen = random.sample(everything, min(len(everything), random.randint(4, 20)))
    few = max(2, cluster.shape.min_isr)
    cluster.reassign({tp: random.sample(brokers, random.randint(few, min(3, len(brokers)))) for tp in chosen})
    if random.random() < 0.5:
        cluster.elect(0)


def _preferred_election(cluster: RunningCluster, _load: Load, random: Random) -> None:
    broker = _brokers(cluster, random)[0]
    broker.stop()
    cluster.say(f"stopped {broker.number}")
    time.sleep(1)
    _back(cluster, broker)
    cluster.settle()
    cluster.elect(0)
    time.sleep(2)


def _leave_alone(cluster: RunningCluster, alone: ClusterNode, others: Iterable[ClusterNode]) -> None:
    """Pause the others until they have left every ISR."""
    for broker in others:
        broker.pause()
    cluster.say(f"paused all but {alone.number}")
    time.sleep(cluster.shape.lag_ms / 1000 + 2)


def _unclean_election(cluster: RunningCluster, _load: Load, random: Random) -> None:
    """Stop all brokers but one from following, kill that one, and let the others lead."""
    cluster.unclean = True
    by_setting = random.random() < 0.6
    if by_setting:
        for topic in cluster.watched:
            cluster.configure(topic, unclean_leader_election_enable="true")
    alone, *others = _brokers(cluster, random, len(cluster.brokers))
    _leave_alone(cluster, alone, others)
    alone.kill()
    for broker in others:
        broker.resume()
    cluster.say(f"killed {alone.number}, resumed the others")
    time.sleep(SESSION_MS / 1000 + 2)
    if not by_setting:
        leaderless = [tp for tp, (leader, _, _) in cluster.replicas().items() if leader < 0]
        if leaderless:
            cluster.elect(1, leaderless)
        time.sleep(3)
    _back(cluster, alone)


def _topics(cluster: RunningCluster, load: Load, random: Random) -> None:
    """Create topics, write, delete them, create one again."""
    for _ in range(random.choice((1, 2))):
        count = random.randint(3, 9)
        for topic in ("temp", "again"):
            cluster.create(topic, count, watched=False, min_insync_replicas=cluster.shape.min_isr)
        load.topics |= {"temp": count, "again": count}
        time.sleep(random.uniform(1, 4))
        for topic in ("temp", "again"):
            if random.random() < 0.7:
                load.topics.pop(topic)
            cluster.delete(topic)
        time.sleep(random.uniform(0, 2))
        for topic in ("temp", "again"):
            load.topics.pop(topic, None)
    cluster.create("again", 4, watched=False)
    load.topics["again"] = 4
    time.sleep(2)


def _recreate_topic(cluster: RunningCluster, load: Load, random: Random) -> None:
    """Delete a topic and create it again at once, with a broker down: it deletes what it has when it comes back."""
    cluster.create("again", 6, watched=False, min_insync_replicas=cluster.shape.min_isr)
    load.topics["again"] = 6
    time.sleep(random.uniform(1, 3))
    broker = _brokers(cluster, random)[0]
    end = random.choice((broker.kill, broker.stop))
    end()
    cluster.say(f"ended {broker.number}")
    for _ in range(random.choice((1, 2))):
        time.sleep(random.uniform(0, 2))
        cluster.delete("again")
        cluster.create("again", 6, watched=False, min_insync_replicas=cluster.shape.min_isr)
    time.sleep(random.uniform(0, 3))
    _back(cluster, broker)
    time.sleep(2)


def _more_partitions(cluster: RunningCluster, load: Load, random: Random) -> None:
    topic = random.choice(sorted(cluster.watched))
    count = cluster.watched[topic] + random.randint(1, 8)
    cluster.add_partitions(topic, count)
    time.sleep(1)
    load.topics[topic] = count
    time.sleep(2)


def _delete_records(cluster: RunningCluster, load: Load, random: Random) -> None:
    topic = random.choice(sorted(cluster.watched))
    half = random.random() < 0.6
    ends = cluster.ends(topic)
    cluster.delete_records(topic, {n: end // 2 if half else -1 for n, end in ends.items()})
    time.sleep(1)
    if random.random() < 0.5:
        _kill(cluster, load, random)


def _retention(cluster: RunningCluster, _load: Load, random: Random) -> None:
    """Let small segments expire while a follower is down: it comes back out of range."""
    topic = random.choice(sorted(cluster.watched))
    cluster.configure(topic, segment_ms=2000, retention_ms=4000)
    time.sleep(3)
    broker = _brokers(cluster, random)[0]
    broker.kill()
    cluster.say(f"killed {broker.number}")
    time.sleep(random.uniform(6, 12))
    _back(cluster, broker)


def _min_isr(cluster: RunningCluster, _load: Load, random: Random) -> None:
    topic = random.choice(sorted(cluster.watched))
    cluster.configure(topic, min_insync_replicas=3 - cluster.shape.min_isr)
    time.sleep(random.uniform(1, 3))


def _directories(cluster: RunningCluster, _load: Load, random: Random) -> None:
    for broker in _brokers(cluster, random, 2):
        topic = random.choice(sorted(cluster.watched))
        there = random.choice(broker.directories)
        held = [n for n in range(cluster.watched[topic]) if not (there / f"{topic}-{n}").is_dir()]
        held = [n for n in held if any((each / f"{topic}-{n}").is_dir() for each in broker.directories)]
        if held:
            cluster.relocate(broker.number, topic, random.sample(held, min(len(held), 6)), there)
        time.sleep(random.uniform(1, 3))


def _failed_directory(cluster: RunningCluster, _load: Load, random: Random) -> None:
    """Put a file where a directory was, until the broker has noticed; then restart it with the directory back."""
    broker = _brokers(cluster, random)[0]
    failed = random.choice(broker.directories)
    aside = failed.with_name(f"{failed.name}-aside")
    failed.rename(aside)
    failed.write_text("", encoding="utf-8")
    cluster.say(f"broker {broker.number}: {failed.name} failed")
    time.sleep(random.uniform(7, 10))
    broker.stop()
    failed.unlink()
    aside.rename(failed)
    time.sleep(1)
    _back(cluster, broker)


def _empty_directory(cluster: RunningCluster, _load: Load, random: Random) -> None:
    """Kill a broker and start it without what its disks held; half the time after the others have left every ISR."""
    broker, *others = _brokers(cluster, random, len(cluster.brokers))
    alone = random.random() < 0.5
    if alone:
        _leave_alone(cluster, broker, others)
    broker.kill()
    cluster.emptied = True
    # A new disk is formatted and has an id of its own (KIP-858); a tool may have left the old id in place.
    renamed = random.random() < 0.5
    broker.empty_directories(renamed)
    cluster.say(f"killed {broker.number} and emptied its directories" + (", which have new ids" if renamed else ""))
    for each in others if alone else ():
        each.resume()
    _back(cluster, broker)


def _upgrade(cluster: RunningCluster, _load: Load, random: Random) -> None:
    order = [*cluster.controllers.values(), *_brokers(cluster, random, len(cluster.brokers))]
    for each in order:
        each.stop()
        each.release = cluster.shape.upgrade_to
        _back(cluster, each)
        if each.number in cluster.brokers:
            cluster.settle()


DONE: Mapping[str, Incident] = {
    "kill": _kill,
    "kill two": _kill_two,
    "pause": _pause,
    "long pause": _long_pause,
    "stop": _stop,
    "rolling restart": _rolling_restart,
    "kill controller": _kill_controller,
    "stop controller": _stop_controller,
    "pause controller": _pause_controller,
    "reassign": _reassign,
    "preferred election": _preferred_election,
    "unclean election": _unclean_election,
    "topics": _topics,
    "recreate topic": _recreate_topic,
    "more partitions": _more_partitions,
    "delete records": _delete_records,
    "retention": _retention,
    "min isr": _min_isr,
    "directories": _directories,
    "failed directory": _failed_directory,
    "empty directory": _empty_directory,
    "upgrade": _upgrade,
}


def happen(cluster: RunningCluster, load: Load, random: Random) -> None:
    """Let the incidents of the shape happen, with some seconds of quiet around each."""
    time.sleep(random.uniform(4, 7))
    for name in cluster.shape.incidents:
        cluster.say(f"-- {name}")
        DONE[name](cluster, load, random)
        cluster.settle()
        time.sleep(random.uniform(2, 6))
    if not cluster.shape.incidents:
        time.sleep(8)
