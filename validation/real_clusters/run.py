"""One cluster of a seed, from its start to its logs, its story and its truth in a folder."""

import json
import shutil
from contextlib import closing
from pathlib import Path
from random import Random

from validation.real_clusters.clients import Load, read_topics
from validation.real_clusters.cluster import RunningCluster
from validation.real_clusters.incidents import happen
from validation.real_clusters.shapes import ClusterShape
from validation.real_clusters.truth import Truth, differences, truth_of

TRUTH = "truth.json"
TOPICS = ("orders", "payments", "clicks")
TRANSACTIONS_A_SECOND, ABORTS = 3, 0.3


def run(shape: ClusterShape, folder: Path) -> Truth:
    """Make the cluster, let everything happen, keep logs and truth. Raises ClusterError."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    random = Random(f"what happens to {shape.seed}")
    with closing(RunningCluster(shape)) as cluster:
        cluster.start()
        for topic in TOPICS[: shape.topics]:
            cluster.create(topic, shape.partitions // shape.topics, min_insync_replicas=shape.min_isr)
        cluster.settle()
        load = Load(cluster.bootstrap, shape.seed, cluster.watched, shape.large_records)
        for acks in shape.acks:
            load.produce(shape.rate / len(shape.acks), acks, shape.idempotent)
        for _ in range(shape.transactions):
            load.transact(TRANSACTIONS_A_SECOND, ABORTS)
        for kind in shape.consumers:
            load.consume(kind)
        try:
            happen(cluster, load, random)
        finally:
            load.stop()
        cluster.say(f"clients ended: {json.dumps(load.counts)}")
        read_again, unread = read_topics(cluster.bootstrap, cluster.watched)
        truth = truth_of(load.acknowledged, read_again)
        truth.unread = unread
        cluster.stop(random)
        truth.unclean, truth.emptied = cluster.unclean, cluster.emptied
        truth.differ = differences({n: broker.directories for n, broker in cluster.brokers.items()})
        size = cluster.keep(folder)
    written = {**truth.as_json(), "clients": load.counts, "megabytes": round(size / 1e6, 1)}
    (folder / TRUTH).write_text(json.dumps(written, indent=1) + "\n", encoding="utf-8")
    return truth
