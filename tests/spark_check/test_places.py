"""Input and results on another file system than this machine's: a server of S3, which holds what a disk would."""

import hashlib
import json
import logging
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from unittest.mock import Mock

import pytest
from pyarrow.fs import FileInfo, FileType

from tests.spark_check.conftest import fails
from tests.spark_check.right_and_wrong import right_and_wrong
from tests.spark_check.test_work import ORDER
from tidegauge.conformance.checking import sharded
from tidegauge.conformance.checking.check import CheckOptions, Report
from tidegauge.conformance.checking.verdicts import Verdict
from tidegauge.spark_check import check as spark_check
from tidegauge.spark_check import storage, worker
from tidegauge.spark_check.check import check_on_spark
from tidegauge.spark_check.follow import follow_on_spark
from tidegauge.spark_check.generation import write_part
from tidegauge.spark_check.judging import stored
from tidegauge.spark_check.storage import AnyPath, ArrowPath, Status, open_parquet, status_of, to_path, writable_directory
from tidegauge.spark_check.worker import atomic_write, remove_leftovers
from tidegauge.traces.formats.parquet import RowGroup
from tidegauge.traces.kafka_logs.capture import shipped
from tidegauge.util.errors import UsageError

NAME = "c+d=1%2?e#f.parquet"
"""Holds what means something else in a URI."""
KEYS = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_EC2_METADATA_DISABLED": "true"}


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The options of a URI that lead to it."""
    moto = pytest.importorskip("moto.server")
    with pytest.MonkeyPatch.context() as patch:
        for name, value in KEYS.items():
            patch.setenv(name, value)
        running = moto.ThreadedMotoServer("127.0.0.1", 0, verbose=False)
        running.start()
        patch.setattr(logging.getLogger("werkzeug"), "disabled", True)
        host, port = running.get_host_and_port()
        yield f"endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
        running.stop()


@pytest.fixture
def bucket(server: str, request: pytest.FixtureRequest) -> ArrowPath:
    """One of its own for each test."""
    name = hashlib.sha256(request.node.nodeid.encode()).hexdigest()[:20]
    found = ArrowPath.from_uri(f"s3a://{name}?{server}")
    found.mkdir()
    return found


@pytest.fixture(scope="module")
def walks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A right file, a wrong one and one that is none."""
    folder = tmp_path_factory.mktemp("walks")
    right_and_wrong(folder, 2000)
    (folder / "none.parquet").write_bytes(b"PAR1 and no more")
    return folder


def put(folder: Path, into: ArrowPath) -> None:
    for file in sorted(folder.iterdir()):
        (into / file.name).put(file)


def test_a_place_is_a_path_or_a_uri() -> None:
    assert to_path("file:///data/my%20walks") == Path("/data/my walks")
    assert to_path("walks/a.parquet") == Path("walks/a.parquet")
    assert to_path(Path("walks")) == Path("walks")
    with pytest.raises(UsageError, match="a file: URI of this machine, seen one of elsewhere"):
        to_path("file://elsewhere/walks")
    with pytest.raises(UsageError, match=r"^ftp://host/walks: expected a path, or a URI that Arrow opens"):
        to_path("ftp://host/walks")
    with pytest.raises(UsageError, match=r"^s3://\[bucket/walks: expected a URI, seen: "):
        to_path("s3://key:secret@[bucket/walks")


def test_keys_in_a_uri_are_refused_and_not_repeated() -> None:
    with pytest.raises(UsageError, match="s3a://bucket/walks: expected keys in the environment") as refused:
        to_path("s3a://key:secret@bucket/walks")
    assert "secret" not in str(refused.value)


def test_it_has_what_a_path_has(bucket: ArrowPath, tmp_path: Path) -> None:
    """The same done on a disk and in a bucket is seen alike."""

    def seen(root: AnyPath) -> list[object]:
        file = root / "a b" / NAME
        return [
            sorted(one.name for one in root.iterdir()),
            sorted(one.name for one in (root / "a b").glob("*.parquet")),
            [(one.exists(), one.is_dir()) for one in (root, root / "a b", file, root / "other")],
            file.read_bytes() if file.exists() else None,
            file.stat().st_size if file.exists() else None,
            (file.name, file.with_name("e").name, to_path(str(file)) == file),
        ]

    def both() -> None:
        assert seen(bucket) == seen(tmp_path)

    (tmp_path / "text").write_bytes(b"some text")
    (bucket / "text").put(tmp_path / "text")
    for root in (bucket, tmp_path):
        (root / "a b").mkdir()
    both()
    for name in (NAME, "e"):
        (bucket / "a b" / name).put(tmp_path / "text")
        shutil.copy(tmp_path / "text", tmp_path / "a b" / name)
    both()
    (tmp_path / "other text").write_bytes(b"other")
    (bucket / "other text").put(tmp_path / "other text")
    (bucket / "other text").replace(bucket / "a b" / NAME)
    (tmp_path / "other text").replace(tmp_path / "a b" / NAME)
    both()
    for root in (bucket, tmp_path):
        (root / "a b" / "e").unlink()
        (root / "a b" / "e").unlink(missing_ok=True)
        with pytest.raises(FileNotFoundError):
            (root / "a b" / "e").stat()
        with pytest.raises(OSError, match="e"):
            (root / "a b" / "e").read_bytes()
    both()


def test_what_is_written_is_there_whole_or_not_at_all(bucket: ArrowPath) -> None:
    path = bucket / "rows" / "a.parquet"
    with atomic_write(path) as one, atomic_write(path) as other:
        one.write_text("one")
        other.write_text("other")
        assert list((bucket / "rows").iterdir()) == []

    def fails() -> None:
        with atomic_write(path) as half:
            half.write_text("half")
            raise OSError("full")

    with pytest.raises(OSError, match="full"):
        fails()
    assert [left.name for left in (bucket / "rows").iterdir()] == ["a.parquet"]
    assert path.read_bytes() == b"one"


def test_what_cannot_take_its_place_is_removed(bucket: ArrowPath, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(path: ArrowPath, target: ArrowPath) -> None:
        assert path.read_bytes() == b"whole"
        raise OSError("connection lost")

    monkeypatch.setattr(ArrowPath, "replace", lost)
    with pytest.raises(OSError, match="connection lost"), atomic_write(bucket / "a.parquet") as unfinished:
        unfinished.write_text("whole")
    assert list(bucket.iterdir()) == []


def test_a_slash_at_the_end_means_nothing(bucket: ArrowPath) -> None:
    assert ArrowPath.from_uri(str(bucket / "walks").replace("/walks?", "/walks/?")) == bucket / "walks"


def test_what_killed_attempts_left_is_removed(bucket: ArrowPath, walks: Path) -> None:
    mine, others = f".rows.parquet.{'a' * 32}", f".lines.parquet.{'b' * 32}"
    for name in (mine, others, "rows.parquet"):
        (bucket / name).put(walks / "none.parquet")
    remove_leftovers(bucket, "rows.parquet")
    assert sorted(left.name for left in bucket.iterdir()) == sorted(["rows.parquet", others])


def test_a_worker_reads_it_there_and_leaves_its_rows_there(bucket: ArrowPath, walks: Path) -> None:
    """What is damaged or gone meanwhile is malformed, as on a disk."""
    put(walks, bucket / "walks")
    name = str(bucket / "walks" / "wrong.parquet")
    with open_parquet(name) as opened, open_parquet(str(walks / "wrong.parquet")) as there:
        assert opened.config == there.config
        groups = opened.row_groups()
    mark = worker.file_fingerprint(name, worker.judge_fingerprint())
    (task,) = worker.tasks_of(mark, groups, 10**9)
    (on_disk,) = worker.tasks_of(mark, [RowGroup(str(walks / "wrong.parquet"), *_rest(group)) for group in groups], 10**9)
    rows, there_rows = list(worker.run_task(task, str(bucket / "results"))), list(worker.run_task(on_disk, None))
    assert [(row.events, row.tallies, row.failures) for row in rows] == [
        (row.events, row.tallies, row.failures) for row in there_rows
    ]
    assert stored(bucket / "results") == rows
    (bucket / "walks" / "wrong.parquet").unlink()
    assert all(row.problem for row in worker.run_task(task, None))


def _rest(group: RowGroup) -> tuple[int, int, int, int]:
    return group.index, group.rows, group.first_trace, group.traces


def test_a_changed_file_has_another_fingerprint(bucket: ArrowPath, walks: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = bucket / "a.parquet"
    file.put(walks / "right.parquet")
    before = worker.file_fingerprint(str(file), "judge")
    (listed,) = bucket.iterdir()
    assert worker.file_fingerprint(str(file), "judge") == worker.file_fingerprint(listed, "judge") == before
    with monkeypatch.context() as patch:
        patch.setattr(ArrowPath, "_info", None)
        assert worker.file_fingerprint(listed, "judge") == before, "the list of a directory said all that is asked"
    file.put(walks / "wrong.parquet")
    assert worker.file_fingerprint(str(file), "judge") != before


def test_a_part_is_made_there_once(bucket: ArrowPath, tmp_path: Path) -> None:
    """The same bytes as on a disk."""
    made_once, there = write_part(ORDER.table(), bucket, ORDER, 1), bucket / ORDER.file(1)
    version = there.stat()
    assert (write_part(ORDER.table(), bucket, ORDER, 1), there.stat()) == (made_once, version)
    assert there.read_bytes() == Path(write_part(ORDER.table(), tmp_path, ORDER, 1).path).read_bytes()
    assert made_once.path == str(there)


def test_a_file_that_is_changed_in_another_second_is_another_version() -> None:
    """Whether it is listed, with milliseconds, or asked for by name."""
    listed, named, later = (FileInfo("a", FileType.File, size=3, mtime_ns=ms * 10**6) for ms in (1999, 1000, 2000))
    assert status_of(listed) == status_of(named) != status_of(later)


def test_what_cannot_be_written_to_is_said_before_anything_is_done(server: str) -> None:
    with pytest.raises(UsageError, match="expected a directory to write to"):
        writable_directory(f"s3://nowhere/results?{server.partition('&allow_bucket_creation')[0]}")


def test_what_is_not_there_is_refused(bucket: ArrowPath) -> None:
    with pytest.raises(UsageError, match=r"nothing.*: expected Parquet files or broker logs, seen nothing of that name"):
        check_on_spark([str(bucket / "nothing")], CheckOptions(), "local[2]")


def put_below(folder: Path, into: ArrowPath) -> None:
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        (into / file.relative_to(folder).as_posix()).put(file)


def judged(report: Report, names: Mapping[str, str] = {}) -> list[object]:
    """What a report says, with other names of inputs."""

    def name(text: str) -> str:
        for one, other in sorted(names.items(), reverse=True):
            text = text.replace(one, other)
        return text

    return [
        [(one.rule.id, one.tally) for one in report.rules],
        [(name(one.path), one.verdict, one.traces, one.events, one.missing) for one in report.inputs],
        [(name(problem.path), problem.seen) for one in report.inputs for problem in one.problems],
        [(name(one.path), one.trace, one.rule.id, one.at) for one in report.explanations],
        [name(note) for note in report.notes],
    ]


def test_logs_at_a_uri_are_judged_as_on_a_disk(
    bucket: ArrowPath, tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Captures in a folder, of which one is judged in shares; a file of a log; a file that is no trace."""
    monkeypatch.setattr(sharded, "LARGE_BYTES", 600_000)
    monkeypatch.setattr(sharded, "OF_A_SHARE", 400_000)
    captures = ["4.2.0/a-steady", "4.2.0/k-epoch-jump"]
    for name in captures:
        shutil.copytree(shipped()[name], tmp_path / "logs" / name)
    log = next((tmp_path / "logs" / captures[0]).rglob("*.log*")).relative_to(tmp_path).as_posix()
    (tmp_path / "no.ndjson").write_text('{"none"\n')
    put_below(tmp_path, bucket)
    inputs = ["logs", log, "no.ndjson"]
    at_uris, on_disk = (
        check_on_spark([root / one for one in inputs], CheckOptions(), "local[2]", tmp_path / f"results-{number}")
        for number, root in enumerate((bucket, tmp_path))
    )
    assert sharded.share_count(tmp_path / "logs" / captures[0]) > 1
    assert {one.verdict for one in at_uris.inputs} >= {Verdict.FAIL, Verdict.SUITE_ERROR}
    names = [*(f"logs/{name}" for name in captures), log, "no.ndjson"]
    assert judged(at_uris) == judged(on_disk, {str(tmp_path / name): str(bucket / name) for name in names})
    assert tasks_here.count(storage._copy) == len([path for path in (tmp_path / "logs").rglob("*") if path.is_file()]) + 2
    assert not list(tmp_path.glob(f"results-*/{spark_check.COPIED}*")), "copies are removed at the end"


def test_a_uri_that_is_named_twice_is_judged_once(bucket: ArrowPath, tmp_path: Path, tasks_here: list[object]) -> None:
    put_below(shipped()["4.2.0/k-epoch-jump"], bucket / "logs")
    paths = [str(bucket / "logs"), str(bucket / "logs").replace("/logs?", "/logs/?")]
    assert len(check_on_spark(paths, CheckOptions(), "local[2]", tmp_path / "results").inputs) == 1


def test_a_run_that_failed_goes_on_with_its_copies(
    bucket: ArrowPath, tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is at the URI no more is not judged, and a file that has changed is copied again."""
    logs = tmp_path / "logs"
    shutil.copytree(shipped()["4.2.0/a-steady"], logs)
    # As Kafka leaves it in each of its log directories.
    (logs / "n1" / ".lock").write_text("")
    put_below(logs, bucket / "logs")

    check = partial(check_on_spark, [bucket / "logs"], CheckOptions(), "local[2]", tmp_path / "results")
    with monkeypatch.context() as patch:
        patch.setattr(spark_check, "captures_in", fails)
        with pytest.raises(OSError, match="connection lost"):
            check()
    (copy,) = (tmp_path / "results").glob(f"{spark_check.COPIED}*")
    kept = sorted(path for path in (copy / "logs").rglob("*") if path.is_file())
    assert [path.read_bytes() for path in kept] == [(logs / path.relative_to(copy / "logs")).read_bytes() for path in kept]
    gone = copy / "logs" / "n9"
    gone.mkdir()
    (gone / "server.log").write_text("of a node that is gone")
    kept[0].write_text("another size")
    opened = list[str]()
    open_file = ArrowPath.opened
    monkeypatch.setattr(ArrowPath, "opened", lambda file: opened.append(file.name) or open_file(file))
    assert judged(check())[0] == judged(check_on_spark([logs], CheckOptions(), "local[2]"))[0]
    assert opened == [kept[0].name]
    assert not copy.exists()


def test_what_would_lead_out_of_the_copies_or_not_fit_is_refused(
    bucket: ArrowPath, tmp_path: Path, tasks_here: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "server.log").write_text("x")
    (bucket / "logs" / "server.log").put(tmp_path / "server.log")
    check = partial(check_on_spark, [bucket / "logs"], CheckOptions(), "local[2]")
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "disk_usage", lambda _: Mock(free=0))
        with pytest.raises(UsageError, match=r"GB free to copy .*logs.*, seen 0.0; make room"):
            check()
    with pytest.raises(UsageError, match="expected --results DIR at a path of all workers"):
        check_on_spark([bucket / "logs"], CheckOptions(), "spark://host:7077")
    assert tasks_here == []


@pytest.mark.parametrize(
    "keys",
    [["n1/../../server.log"], ["/tmp/server.log"], ["n1//server.log"], ["n" * 256], ["n1", "n1/server.log"]],
)
def test_a_key_that_no_disk_can_have_is_refused(
    keys: list[str], bucket: ArrowPath, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ArrowPath, "files_below", lambda path: ((key, path / "server.log") for key in keys))
    monkeypatch.setattr(ArrowPath, "stat", lambda _: Status(1, 0))
    with pytest.raises(UsageError, match=r"server.log.*: expected a (name that a disk can have|file in a folder)"):
        storage.copy_files(bucket, tmp_path / "logs", map)
    assert not list(tmp_path.iterdir())


def command(*arguments: str | Path) -> tuple[int, str, str]:
    """A command as a process of its own: a JVM that runs already has no keys, nor have its workers."""
    words = [sys.executable, "-m", "tidegauge", *map(str, arguments)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, done.stderr


def found(out: str) -> list[object]:
    report = json.loads(out)
    return [report[name] for name in ("verdict", "parts", "rules", "traces", "events", "lost", "explanations")]


@pytest.mark.spark
def test_workers_copy_logs_and_judge_them(bucket: ArrowPath) -> None:
    """By the command."""
    capture = shipped()["4.2.0/k-epoch-jump"]
    put_below(capture, bucket / capture.name)
    code, said, problem = command("check", "--spark=local[2]", "--json", str(bucket / capture.name))
    there, said_there, _ = command("check", "--json", capture)
    assert code == there, problem
    assert found(said) == found(said_there.replace(str(capture), str(bucket / capture.name)))


@pytest.mark.spark
def test_what_is_generated_into_it_is_judged_as_on_a_disk(bucket: ArrowPath, walks: Path, tmp_path: Path) -> None:
    """By the commands: the second time nothing is judged again, and a bucket that grows says the same in the end."""
    name, results = str(bucket / "walks"), str(bucket / "results")
    code, said, problem = command("generate", "--spark=local[2]", "--traces", "2000", "--parts", "2", "--out", name)
    assert (code, "2,000 distinct interleavings" in said) == (0, True), problem
    put(walks, bucket / "walks")
    for file in (bucket / "walks").glob("*.parquet"):
        (tmp_path / file.name).write_bytes(file.read_bytes())
    code, on_disk, _ = command("check", "--json", *sorted(tmp_path.iterdir()))
    for copied in tmp_path.iterdir():
        on_disk = on_disk.replace(str(copied), str(bucket / "walks" / copied.name))
    first, again = (command("check", "--spark=local[2]", "--json", "--results", results, name) for _ in range(2))
    assert (first[0], found(first[1])) == (again[0], found(again[1])) == (code, found(on_disk))
    assert json.loads(again[1])["notes"] == ["4 of 4 row groups had been judged before"]
    follow = ("--follow", "--until-idle", "2", "--results", tmp_path / "results")
    followed = command("check", "--spark=local[2]", *follow, "--json", name)
    assert (followed[0], found(followed[1])) == (code, found(on_disk))


def test_the_results_of_what_is_followed_lie_on_a_disk(bucket: ArrowPath) -> None:
    with pytest.raises(UsageError, match="at a path that every worker can open, seen another file system"):
        follow_on_spark(str(bucket), CheckOptions(), "local[2]", str(bucket / "results"), 2.0, print, print)
