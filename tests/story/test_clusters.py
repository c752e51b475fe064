"""Two clusters in one folder have two stories."""

import shutil
from pathlib import Path

from tests.processor_time import processor_time
from tidegauge.story.clusters import files_by_cluster
from tidegauge.story.losses import Loss
from tidegauge.story.reading import ReadFile, SourcedLine
from tidegauge.story.statements import STATEMENTS
from tidegauge.story.story import story_of
from tidegauge.traces.kafka_logs.capture import shipped


def facts(losses: list[Loss]) -> list[tuple[object, ...]]:
    """What losses say."""
    return sorted((loss.partition, loss.first, loss.end, loss.committed, loss.why) for loss in losses)


def test_the_story_of_two_clusters_is_that_of_each(tmp_path: Path) -> None:
    names = ("4.2.0/d-unclean", "4.1.1/m-lost-disk")
    for name in names:
        shutil.copytree(shipped()[name], tmp_path / name.replace("/", "-"))
    alone = [story_of([shipped()[name]]) for name in names]
    together = story_of([tmp_path])
    assert facts(together.losses) == facts([loss for story in alone for loss in story.losses])
    assert len(together.entries) == sum(len(story.entries) for story in alone)
    assert len({entry.fields["cluster"] for entry in together.entries}) == 2


def test_a_topic_that_was_created_anew_is_no_second_cluster(wild: Path) -> None:
    story = story_of([wild / "zk-3.9-recreated"])
    assert not any("cluster" in entry.fields for entry in story.entries)
    assert {entry.generation for entry in story.entries if entry.partition == "staging-0"} == {0, 1}


def test_a_hundred_thousand_files_without_ids_are_one_cluster() -> None:
    """In time that is proportional to their number."""
    files = [ReadFile(Path(f"t-{number}/leader-epoch-checkpoint"), str(number)) for number in range(100_000)]
    with processor_time(30):
        assert list(map(len, files_by_cluster(files))) == [len(files)]


def named(number: int, partition: str | None = None, **ids: str) -> ReadFile:
    """A file in a folder of its own, with a line that names ids."""
    name = f"t-{number}/server.log"
    line = SourcedLine(STATEMENTS[0], partition, ids, None, name, "", number, name, 1, "")
    return ReadFile(Path(name), name, sourced_lines=[line])


def test_twenty_thousand_files_that_name_ids_are_grouped_in_linear_time() -> None:
    """Each of its own cluster, all of one, all of one topic, each with a topic of its own."""
    every = range(20_000)
    with processor_time(30):
        assert len(files_by_cluster([named(number, cluster=f"c{number}") for number in every])) == len(every)
        assert len(files_by_cluster([named(number, cluster="c") for number in every])) == 1
        assert len(files_by_cluster([named(number, "alpha-0", topic_id="T" * 22) for number in every])) == 1
        own_topics = [named(number, f"t{number}-0", topic_id=f"{number:022}") for number in every]
        assert len(files_by_cluster(own_topics)) == 1
