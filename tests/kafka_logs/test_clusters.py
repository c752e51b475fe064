"""Two clusters in one tree are two verdicts, however they lie; two copies of one are one."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.processor_time import processor_time
from tidegauge.conformance.checking.check import CheckedInput, CheckOptions, check
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.conformance.follow.broker_logs import BrokerLogs
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.traces.kafka_logs.discovery.clusters import find_clusters, separate
from tidegauge.traces.kafka_logs.discovery.files import FoundLogs, NodeFiles
from tidegauge.traces.kafka_logs.discovery.writers import CLUSTER_ID
from tidegauge.traces.kafka_logs.parsing.lines import Line

BROKEN, SOUND = "4.2.0/k-epoch-jump", "4.2.0/k-epoch-jump-control"


def lay(name: str, folder: Path, prefix: str = "") -> None:
    for node in shipped()[name].glob("n*"):
        shutil.copytree(node, folder / f"{prefix}{node.name}")


def side_by_side(folder: Path) -> None:
    """`n1`, `n2`, .. and `other-n1`, `other-n2`, ..: the ids of topics tell them apart."""
    lay(BROKEN, folder)
    lay(SOUND, folder, "other-")


def a_folder_each(folder: Path) -> None:
    lay(BROKEN, folder / "east")
    lay(SOUND, folder / "west")


def verdicts(folder: Path) -> dict[str, CheckedInput]:
    return {one.path.removeprefix(str(folder)).strip(" ()"): one for one in check([folder]).inputs}


@pytest.mark.parametrize(
    ("laid", "names"), [(side_by_side, ("", "other-n1")), (a_folder_each, ("east", "west"))], ids=["beside", "nested"]
)
def test_two_clusters_are_two_verdicts(laid: Callable[[Path], None], names: tuple[str, str], tmp_path: Path) -> None:
    """Each as if it lay there alone."""
    laid(tmp_path)
    found = verdicts(tmp_path)
    assert tuple(sorted(found)) == names
    broken, sound = (found[name] for name in names)
    assert (broken.verdict, sound.verdict) == (Verdict.FAIL, Verdict.PASS)
    alone = check([shipped()[BROKEN]])
    assert broken.events == alone.events
    assert [rule.verdict for rule in broken.rules] == [rule.verdict for rule in alone.rules]
    assert not sound.missing


def pods_of(name: str, first: int, cluster: str) -> list[str]:
    """Return the lines of a capture as a log platform exports them, of pods with numbers from `first` on."""
    documents = []
    for number, node in enumerate(sorted(shipped()[name].glob("n*")), first):
        for log in sorted(node.glob("server.log*")):
            text = gzip.decompress(log.read_bytes()) if log.suffix == ".gz" else log.read_bytes()
            documents += [
                json.dumps(
                    {
                        "kubernetes": {"pod_name": f"kafka-{number}"},
                        "log": f"{CLUSTER_ID.sub(lambda id_: id_[0].replace(id_[1], cluster), line)}\n",
                    }
                )
                for line in text.decode().splitlines()
            ]
    return documents


def test_pods_of_two_clusters_in_one_export_are_two_clusters(tmp_path: Path) -> None:
    """Both have a node 1; a new pod of the same node names the cluster of the pod before it."""
    first = pods_of("3.4.0/b-kill-leader", 0, "VGlkZWdhdWdlTGFiMDAwMQ")
    for cluster, number in (("T3RoZXJDbHVzdGVyMDAwMg", 2), ("VGlkZWdhdWdlTGFiMDAwMQ", 1)):
        export = [*first, *pods_of("3.4.1/b-kill-leader", 4, cluster)]
        # Its end is cut off: that is said once, not once for each cluster.
        (tmp_path / "pods.log.gz").write_bytes(gzip.compress("\n".join(export).encode())[:-4])
        clusters = find_clusters(tmp_path)
        assert sum(len(cluster.problems) for cluster in clusters) == 1
        assert [sorted(node.id for node in cluster.nodes) for cluster in clusters] == [[1, 2, 3, 100]] * number


def test_a_second_folder_of_a_node_is_no_second_cluster(tmp_path: Path) -> None:
    """Its topics have the ids that the first one names: it is left out, and said to be."""
    lay(SOUND, tmp_path)
    shutil.copytree(tmp_path / "n2", tmp_path / "n2-copy")
    (found,) = verdicts(tmp_path).values()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert any("one folder per node" in said for said in found.missing)


def test_a_node_that_names_no_topic_is_of_the_cluster_that_lacks_it(tmp_path: Path) -> None:
    """A broker of the second cluster that hosted nothing yet."""
    side_by_side(tmp_path)
    shutil.rmtree(tmp_path / "n3")
    for log in (tmp_path / "other-n3").glob("server.log*"):
        log.unlink()
    (tmp_path / "other-n3" / "server.log").write_text(
        "[2026-11-21 10:29:30,000] INFO [main] [BrokerServer id=3] Starting broker (kafka.server.BrokerServer)\n"
    )
    found = verdicts(tmp_path)
    assert any("node 3" in life for life in found[""].covered)


def test_without_a_controller_nobody_knows_how_many_replicas_there_were(tmp_path: Path) -> None:
    """HW-09 in a cluster whose partition had one replica for a while: undecided, not broken."""
    lay("4.3.1/l-ghost-elr-control", tmp_path)
    shutil.rmtree(tmp_path / "n100")
    (found,) = verdicts(tmp_path).values()
    assert found.verdict is Verdict.INCONCLUSIVE
    assert next(rule for rule in found.rules if rule.rule.id == "HW-09").tally.undecided


def node(number: int, topic_id: str | None = None, cluster: str | None = None) -> NodeFiles:
    """A node whose lines name a topic id, a cluster, both or nothing."""
    said = [f"[Broker id={number}] Creating new partition t{number}-0 with topic id {topic_id}." if topic_id else ""]
    said.append(f"Cluster ID = {cluster}" if cluster else "")
    lines = [Line("server.log", 1, number, "main", message, "KafkaServer") for message in said]
    return NodeFiles(number, Path(f"n{number}"), f"n{number}", [lines], [])


def test_thousands_of_nodes_are_divided_in_time_that_grows_with_their_number() -> None:
    """Each of a cluster of its own, all of one, each with a topic of its own, and none that names anything."""
    every = range(5_000)
    with processor_time(20):
        assert len(separate(FoundLogs([node(number, cluster=f"{number:022}") for number in every]))) == len(every)
        assert len(separate(FoundLogs([node(number, cluster="c" * 22) for number in every]))) == 1
        assert len(separate(FoundLogs([node(number, f"{number:022}") for number in every]))) == 1
        assert len(separate(FoundLogs([node(number) for number in every]))) == 1


def test_clusters_that_are_followed_have_their_names_at_every_look(tmp_path: Path) -> None:
    """What a window knows of a cluster is kept under its name: two of one name would get each other's."""
    for number, name in enumerate(("east", "north", "west")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "server.log").write_text(
            f"[2026-11-21 10:29:30,000] INFO [Broker id=1] Creating new partition t-0 with topic id {number:022}. "
            "(state.change.logger)\n"
        )
    source = BrokerLogs(tmp_path, CheckOptions(), [].append)
    with source.reading():
        while source.read_piece():
            pass
        growing = source._growth
        growing.end()
        names = [capture.cluster for capture in growing.whole()]
        assert names == ["", "north", "west"]
        assert [capture.cluster for capture in growing.look()] == names
