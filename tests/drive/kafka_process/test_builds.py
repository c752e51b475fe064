"""A build is found however it is laid out, and called what it calls itself. No Java is needed for that."""

import os
import zipfile
from pathlib import Path

import pytest

from tidegauge.cli.main import main
from tidegauge.drive.kafka_process.builds import VERSION_FILE, KafkaBuild, build_of, find_build
from tidegauge.impl.releases import release_of_version
from tidegauge.util.errors import UsageError


def put(folder: Path, *names: str) -> Path:
    """Make a folder with empty jars of these names."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        (folder / f"{name}.jar").touch()
    return folder


def jars(version: str) -> list[str]:
    return [f"kafka-clients-{version}", f"kafka-metadata-{version}", f"kafka_2.13-{version}", "jackson-core-2.21.2"]


def names(build: KafkaBuild) -> set[str]:
    return {jar.stem for jar in build.jars}


@pytest.mark.parametrize("where", ["", "libs", "share/java/kafka"])
@pytest.mark.parametrize("version", ["4.3.1", "4.4.0-SNAPSHOT", "3.9.0-cp1", "3.9.0.redhat-00001", "4.3.1.temurin", "trunk"])
def test_a_folder_of_jars_a_distribution_and_a_package_are_builds(where: str, version: str, tmp_path: Path) -> None:
    """Jars that are built beside those that run are left out."""
    besides = [f"kafka-clients-{version}-{kind}" for kind in ("test", "sources", "javadoc", "test-fixtures")]
    put(tmp_path / where, *jars(version), *besides)
    build = build_of(str(tmp_path))
    assert build.version == version
    assert names(build) == set(jars(version))
    assert {jar.name.split("-")[1] for jar in build.with_messages} == {"clients", "metadata"}
    assert build.class_path.split(os.pathsep) == [str(jar) for jar in build.jars]


def test_a_gradle_checkout_runs_its_own_jars_and_no_old_copy_of_one(tmp_path: Path) -> None:
    """What its projects depend on comes from the Scala version that was built, a logging backend from `tools`."""
    new, old = "4.5.0-SNAPSHOT", "4.4.0-SNAPSHOT"
    put(tmp_path / "clients/build/libs", f"kafka-clients-{new}", f"kafka-clients-{new}-test")
    put(tmp_path / "metadata/build/libs", f"kafka-metadata-{new}")
    put(tmp_path / "group-coordinator/api/build/libs", f"kafka-group-coordinator-api-{new}")
    put(tmp_path / "core/build/libs", f"kafka_2.13-{new}", f"kafka_2.13-{new}-test")
    put(tmp_path / "core/build/dependant-libs-2.13.18", f"kafka-metadata-{old}", "scala-library-2.13.18")
    put(tmp_path / "core/build/dependant-libs-2.12.9", "scala-library-2.12.9")
    put(tmp_path / "tools/build/dependant-libs-2.13.18", "scala-library-2.13.18", "log4j-core-2.25.1")
    put(tmp_path / "jmh-benchmarks/build/libs", f"kafka-jmh-benchmarks-{old}")
    build = build_of(str(tmp_path))
    own = {f"{name}-{new}" for name in ("kafka-clients", "kafka-metadata", "kafka-group-coordinator-api", "kafka_2.13")}
    assert names(build) == own | {"scala-library-2.13.18", "log4j-core-2.25.1"}
    assert (build.version, build.release) == (new, "4.4")
    assert "later than 4.4" in build.note


def test_jars_without_a_version_have_the_one_inside(tmp_path: Path) -> None:
    """Else none, and then they are compared with the newest release."""
    put(tmp_path, "kafka-clients", "kafka-metadata", "kafka_2.13")
    assert find_build(tmp_path).version == "of no version"
    with zipfile.ZipFile(tmp_path / "kafka-clients.jar", "w") as jar:
        jar.writestr(VERSION_FILE, "commitId=1234\nversion=4.1.2-SNAPSHOT\n")
    assert find_build(tmp_path)[:2] == ("4.1.2-SNAPSHOT", "4.1.2")


@pytest.mark.parametrize(
    ("version", "release", "noted"),
    [
        ("4.3.1", "4.3.1", ""),
        ("4.4.0-SNAPSHOT", "4.4.0", ""),
        ("v4.0.0-rc2", "4.0.0", ""),
        ("3.9.1.redhat-00001", "3.9.1", ""),
        ("3.4.1.7.1.9.0-387", "3.4.1", ""),
        ("0.10.2.1", "0.10.2.1", ""),
        ("4.3.1-ccs", "4.3.1", ""),
        ("7.9.1-ccs", "3.9.1", "Confluent's build of Kafka 3.9"),
        ("8.1.0-ce", "4.1.0", "Confluent's build of Kafka 4.1"),
        ("9.9.0-ccs", "4.4", "later than 4.4"),
        ("4.5.0", "4.4", "later than 4.4"),
        ("trunk", "4.4", "has no number"),
    ],
)
def test_any_version_has_a_release_to_compare_with(version: str, release: str, noted: str) -> None:
    """The number decides; what its vendor adds does not, but for Confluent's own numbers."""
    compared = release_of_version(version)
    assert compared.release == release
    assert noted in compared.note
    assert bool(noted) == bool(compared.note)


def test_what_is_no_build_is_refused_with_what_is_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"expected a release such as 4\.3\.1 or a folder .* seen no folder .*/nowhere"):
        build_of(str(tmp_path / "nowhere"))
    with pytest.raises(UsageError, match=r"a distribution \(libs\), .* seen nothing; build it first \(\./gradlew jar"):
        build_of(str(tmp_path))
    put(tmp_path / "core/build/libs", "kafka_2.13-4.5.0")
    with pytest.raises(UsageError, match="seen core;"):
        build_of(str(tmp_path))
    put(tmp_path / "clients/build/libs", "kafka-clients-4.5.0")
    with pytest.raises(UsageError, match=r"seen none of kafka-metadata, but kafka-clients-4\.5\.0\.jar"):
        build_of(str(tmp_path))
    two = put(tmp_path / "two", *jars("4.3.1"), *jars("4.4.0"))
    with pytest.raises(UsageError, match=r"jars of one version in .*; seen kafka-clients-4\.3\.1\.jar, kafka-clients-4\.4"):
        build_of(str(two))
    early = put(tmp_path / "early", *jars("2.8.2"))
    with pytest.raises(UsageError, match=r"expected a release from 3\.3 on, .*seen 2\.8\.2"):
        build_of(str(early))


def test_jars_beside_a_release_are_those_of_the_release(tmp_path: Path) -> None:
    put(tmp_path, *jars("4.1.0"))
    assert build_of("4.1.0", tmp_path).release == "4.1.0"
    with pytest.raises(UsageError, match=r"expected kafka-clients-4\.1\.1\.jar .* seen those of 4\.1\.0; .*--kafka "):
        build_of("4.1.1", tmp_path)
    with pytest.raises(UsageError, match="--jars: expected a release beside it"):
        build_of(str(tmp_path), tmp_path)


def test_the_command_refuses_what_is_no_build(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for more in ([], ["--controller"]):
        assert main(["drive", "--quiet", "--kafka", str(tmp_path), *more]) == 2
        assert "expected in" in capsys.readouterr().err
