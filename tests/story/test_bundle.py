"""A bundle: its story and verdict are those of what was cut, redacted or not; no name is left in it; it may be hostile."""

import gzip
import io
import json
import re
import tarfile
import tempfile
from pathlib import Path

import pytest

import tidegauge
from tests.story.conftest import expected
from tidegauge.bundle import reading, writing
from tidegauge.bundle.reading import opened
from tidegauge.bundle.writing import Redactor, write_bundle
from tidegauge.cli.main import main
from tidegauge.conformance.checking.inputs import InputSource, read_input
from tidegauge.story.story import story_of
from tidegauge.traces import segments
from tidegauge.traces.kafka_logs.discovery.selection import Selection, selection_of
from tidegauge.traces.segments import batch_of
from tidegauge.util.errors import UsageError

CAPTURES = Path(reading.__file__).parents[1] / "traces" / "captures"
CASES = [case["case"] for case in expected() if case["case"] != "22-tool-output"]
SOME = ("4.2.0/d-unclean", "4.3.1/m-lost-disk")


@pytest.fixture
def redactor(monkeypatch: pytest.MonkeyPatch) -> Redactor:
    """The one that the next bundle uses."""
    made = Redactor()
    monkeypatch.setattr(writing, "Redactor", lambda: made)
    return made


def judged(path: Path, selection: Selection | None = None) -> list[str]:
    """What the judge gets of a path: every trace, and what is said about the rest."""
    seen = []
    for part in read_input(InputSource(path, "INPUT"), selection=selection):
        traces = [trace for batch in part.batches for trace in batch.traces or ()]
        seen += [re.sub(r"name='[^/']*/", "name='", repr(trace)) for trace in traces]
        seen += [*map(str, part.findings.problems), *part.findings.covered, *part.findings.missing, *part.findings.notes]
    return sorted(seen)


def story_lines(paths: list[Path], selection: Selection | None = None) -> list[str]:
    """The story as lines of JSON."""
    report = story_of(paths, selection=selection).as_json()
    return sorted(json.dumps(one, sort_keys=True) for part in report.values() for one in part)


def content(path: Path) -> str:
    """Everything in a bundle, names of files included."""
    return gzip.decompress(path.read_bytes()).decode("utf-8", "replace")


@pytest.mark.parametrize("case", [*SOME, *CASES])
def test_story_and_verdict_of_a_redacted_bundle_are_those_of_the_original(
    case: str, wild: Path, tmp_path: Path, redactor: Redactor
) -> None:
    path = CAPTURES / case if case in SOME else wild / case
    target = tmp_path / "b.tar.gz"
    write_bundle([path], target, redact=True)
    with opened([str(target)]) as ((unpacked,), selection):
        assert selection is None
        assert story_lines([Path(unpacked)]) == sorted(map(redactor.text, story_lines([path])))
        if not case.startswith("24"):  # its problems name a folder in a sentence
            assert judged(Path(unpacked)) == sorted(map(redactor.text, judged(path)))
    topics = {one.partition.rpartition("-")[0] for one in story_of([path]).entries if one.partition is not None}
    left = content(target)
    assert not [topic for topic in topics if not topic.startswith("_") and f"{topic}-0" in left]
    assert not redactor.names & set(re.findall(r"[\w.\-]+", left))


@pytest.mark.parametrize("topic", ["alpha", "strict"])
def test_a_part_of_the_logs_is_judged_as_that_part_of_the_original(topic: str, tmp_path: Path) -> None:
    path, target, whole = CAPTURES / SOME[0], tmp_path / "b.tar.gz", tmp_path / "whole.tar.gz"
    part = selection_of([topic], (), "2026-11-21T08:27:50", "2026-11-21T08:28:10")
    assert part is not None
    contents = write_bundle([path], target, part)
    assert contents.kept_lines < contents.lines
    write_bundle([path], whole)
    assert target.stat().st_size < whole.stat().st_size
    with opened([str(target)]) as ((unpacked,), selection):
        assert selection is not None
        assert selection.fresh_copy() == part.fresh_copy()
        assert story_lines([Path(unpacked)], selection) == story_lines([path], part)
        assert judged(Path(unpacked), selection) == judged(path, part)
    with opened([str(whole)]) as ((unpacked,), _):
        assert judged(Path(unpacked)) == judged(path)


STAMP = "[2026-01-01 10:00:0{n},000] INFO "
SECRETS = {
    "acme.billing.v2": "{secret}-0 broker=1] Shrinking ISR from 1,2 to 1",
    "kafka17.corp.example": "x-0 broker=1] to {secret}:9092",
    "10.20.30.40": "x-0 broker=1] from /{secret}:5511",
    "fe80:0:0:1::ab3": "x-0 broker=1] from {secret}",
    "billing-app": 'x-0 broker=1] "clientId":"{secret}"',
    "payroll-group": "x-0 broker=1] groupId={secret},",
    "CN=alice": "x-0 broker=1] User:{secret}",
    "zone-basel": "x-0 broker=1] rack: {secret})",
    "acmecorp": "x-0 broker=1] in /srv/{secret}/kafka",
    "payments_shop7": (
        STAMP
        + "[ConsumerFetcherThread-{secret}-1500000000000-6b1e-0-1], Current offset 7 for partition [x,0] out of range; "
        "reset offset to 9 (kafka.consumer.ConsumerFetcherThread)"
    ),
    "hunter2": "the password is {secret} (com.acme.Plugin)",
    "correct-horse": "the passphrase is {secret} (kafka.server.KafkaApis)",
    "swordfish": "sasl.jaas.config = {secret}",
}


def test_no_secret_is_left_in_a_redacted_bundle(tmp_path: Path) -> None:
    folder = tmp_path / "acmecorp-prod" / "broker-1"
    folder.mkdir(parents=True)
    lines = []
    for n, (secret, form) in enumerate(SECRETS.items()):
        partition = f"{STAMP}[Partition {form} (kafka.cluster.Partition)"
        line = partition if "broker=1" in form else f"{STAMP}{form}" if form.startswith("the pass") else form
        lines.append(line.format(secret=secret, n=n % 10))
    # At any level: that somebody reads errors is no reason to send them.
    lines += [line.replace("INFO", "ERROR") for line in lines]
    (folder / "server.log").write_text("\n".join(lines * 3) + "\n")
    (folder / "replication-offset-checkpoint").write_text("0\n1\nacme.billing.v2 0 17\n")
    (folder / "acme.billing.v2-0").mkdir()
    segments.write(folder / "acme.billing.v2-0", [batch_of(0, 3, [b"card 4111 1111"])])
    target = tmp_path / "b.tar.gz"
    write_bundle([folder.parent], target, redact=True)
    left = content(target)
    assert not [secret for secret in (*SECRETS, "card 4111") if secret in left]
    assert "Shrinking ISR from 1,2 to 1" in left
    assert "the pass" not in left
    # Not in vain: unredacted, the names are there, and records are not.
    write_bundle([folder.parent], target)
    assert all(secret in content(target) for secret in SECRETS)
    assert "card 4111" not in content(target)


@pytest.mark.parametrize("damage", [0, 30, 70, 90])
def test_segments_keep_their_offsets_and_their_damage(damage: int, tmp_path: Path) -> None:
    folder = tmp_path / "broker-1" / "x-0"
    folder.mkdir(parents=True)
    path = segments.write(folder, [batch_of(0, 3, [b"a" * 9, b"b"]), batch_of(2, 4, [b"c" * 30])])
    data = bytearray(path.read_bytes())
    if damage:
        data[damage] ^= 0x55
    path.write_bytes(data[:-1] if damage == 90 else data)
    (folder.parent / "meta.properties").write_text("node.id=1\ncluster.id=AAAAAAAAAAAAAAAAAAAAAQ\n")
    target = tmp_path / "b.tar.gz"
    write_bundle([folder.parent], target)
    with opened([str(target)]) as ((unpacked,), _):
        seen = segments.read(Path(unpacked) / "x-0" / path.name, records=False)
        wanted = segments.read(path, records=False)
        assert (seen.batches, seen.positions, seen.valid_bytes) == (wanted.batches, wanted.positions, wanted.valid_bytes)
        assert (seen.fault is None, seen.fault and seen.fault.torn) == (
            wanted.fault is None,
            wanted.fault and wanted.fault.torn,
        )


def test_check_and_story_read_a_bundle(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["bundle", str(CAPTURES / SOME[0]), "--redact", "--out", "b.tar.gz"]) == 0
    first = Path("b.tar.gz").read_bytes()
    assert main(["bundle", str(CAPTURES / SOME[0]), "--redact", "--out", "b.tar.gz"]) == 0
    assert Path("b.tar.gz").read_bytes() == first
    assert "names replaced" in capsys.readouterr().out
    codes, reports = [], []
    for path in ("b.tar.gz", str(CAPTURES / SOME[0])):
        codes.append(main(["check", path, "--json"]))
        reports.append(json.loads(capsys.readouterr().out))
    assert codes[0] == codes[1]
    assert reports[0]["inputs"]
    for part in ("verdict", "rules"):
        assert json.dumps(reports[0][part]).count('"passed"') == json.dumps(reports[1][part]).count('"passed"')
    assert [one["records"] for one in reports[0]["losses"]] == [33] == [one["records"] for one in reports[1]["losses"]]
    assert tidegauge.check("b.tar.gz").exit_code == codes[0]
    assert main(["story", "b.tar.gz"]) == 0
    assert "33 committed records of topic" in capsys.readouterr().out


def test_a_file_that_is_named_and_says_nothing_is_left_out_by_name(tmp_path: Path) -> None:
    key = tmp_path / "server.key"
    key.write_text("-----BEGIN PRIVATE KEY-----\nMIIE\n")
    contents = write_bundle([CAPTURES / SOME[0], key], tmp_path / "b.tar.gz")
    assert any(left_out.startswith("server.key ") for left_out in contents.left_out)
    with pytest.raises(UsageError, match=r"seen server\.key"):
        write_bundle([key], tmp_path / "c.tar.gz")


def member(name: str, kind: bytes = tarfile.REGTYPE) -> tarfile.TarInfo:
    info = tarfile.TarInfo(name)
    info.type, info.linkname, info.size = kind, "/etc/passwd", 1 if kind == tarfile.REGTYPE else 0
    return info


@pytest.mark.parametrize(
    "bad",
    [member("../../evil"), member("/evil"), member("0/x", tarfile.SYMTYPE), member("0/x", tarfile.FIFOTYPE), member("x")],
)
def test_a_hostile_bundle_is_refused(bad: tarfile.TarInfo, tmp_path: Path) -> None:
    header = {"paths": ["x"], "topics": [], "partitions": [], "begin": None, "end": None}
    target = tmp_path / "b.tar.gz"
    with tarfile.open(
        target, "w:gz", format=tarfile.PAX_FORMAT, pax_headers={"TIDEGAUGE.bundle": json.dumps(header)}
    ) as out:
        out.addfile(bad, io.BytesIO(b"x"))
    with pytest.raises(UsageError, match="plain files"), opened([str(target)]):
        pass
    assert not (tmp_path.parent / "evil").exists()


def test_a_bundle_that_is_cut_off_or_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "b.tar.gz"
    write_bundle([CAPTURES / SOME[0]], target)
    monkeypatch.setattr(reading, "MOST_BYTES", 1000)
    with pytest.raises(UsageError, match="at most 1,000 bytes"), opened([str(target)]):
        pass
    monkeypatch.undo()
    target.write_bytes(target.read_bytes()[:-2000])
    with pytest.raises(UsageError, match="a complete bundle"), opened([str(target)]):
        pass


def bomb(target: Path, size: int, comment: str = "") -> Path:
    """A bundle with one member of zeros, and a comment in the member's header."""
    header = {"paths": ["x"], "topics": [], "partitions": [], "begin": None, "end": None}
    headers = {"TIDEGAUGE.bundle": json.dumps(header)}
    with (
        tarfile.open(target, "w:gz", format=tarfile.PAX_FORMAT, pax_headers=headers) as out,
        tempfile.TemporaryFile() as zeros,
    ):
        info = member("0/x")
        info.pax_headers, info.size = {"comment": comment} if comment else {}, size
        zeros.truncate(size)
        out.addfile(info, zeros)
    return target


def test_a_bundle_that_is_a_bomb_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(UsageError, match="unpacks to more than 100 times its size"),
        opened([str(bomb(tmp_path / "b", 1 << 30))]),
    ):
        pass


def test_a_header_that_tarfile_would_read_whole_makes_no_bundle(tmp_path: Path) -> None:
    """However long it says it is."""
    target = str(bomb(tmp_path / "b", 1, "x" * (3 << 20)))
    with opened([target]) as (paths, _):
        assert paths == [target]
    target = str(bomb(tmp_path / "b", 1, "x" * 1000))
    with opened([target]) as (paths, _):
        assert paths != [target]


@pytest.mark.parametrize("redact", [True, False])
def test_what_nobody_reads_makes_no_bundle(redact: bool, tmp_path: Path) -> None:
    (tmp_path / "notes.png").write_bytes(b"\x89PNG" + bytes(100))
    for place in (tmp_path, tmp_path / "notes.png"):
        with pytest.raises(UsageError, match="a file that a reader reads"):
            write_bundle([place], tmp_path / "b.tar.gz", redact=redact)


@pytest.mark.parametrize("redact", [True, False])
def test_what_lies_beside_the_logs_stays_there(redact: bool, tmp_path: Path) -> None:
    """Keys, passwords, dumps of the heap, archives; a paste of lines comes with the logs."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "server.log").write_text(
        f"{STAMP}[Partition orders-0 broker=1] Shrinking ISR from 1,2 to 1 (kafka.cluster.Partition)\n"
    )
    (folder / "server.key").write_text("-----BEGIN PRIVATE KEY-----\nMIIEsecret\n")
    (folder / "server.properties").write_text("ssl.keystore.password=secret\n")
    (folder / "heap.hprof").write_bytes(b"JAVA PROFILE\0secret" + bytes(range(128, 256)) * 40)
    with tarfile.open(folder / "old.tgz", "w:gz") as archive:
        archive.add(folder / "server.log", "secret/server.log")
    target = tmp_path / "b.tar.gz"
    contents = write_bundle([folder], target, redact=redact)
    assert "secret" not in content(target)
    assert (contents.files, len(contents.left_out)) == (1, 4)
