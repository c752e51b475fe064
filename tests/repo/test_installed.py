"""The wheel and the sdist, used where users use them: neither needs links, the repository, or the folder one is in."""

import os
import subprocess
import sys
import tarfile
import zipfile
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("impl", "spec", "traces", "conformance", "drive", "spark_check", "cli", "util")
LINKS = ("impl", "spec", "traces", "conformance", "spark_check")
GOLDEN = next((ROOT / "tidegauge" / "traces" / "golden").glob("*.ndjson"))


def built(kind: str, folder: Path) -> Path:
    """Build the wheel or the sdist of the repository into a folder."""
    build = [sys.executable, "-m", "hatchling", "build", "-t", kind, "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (path,) = folder.iterdir()
    return path


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return built("wheel", tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked, as pip does it."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run this interpreter in a folder, with what is installed in `site` before anything else."""
    env = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=env, text=True, capture_output=True, check=False)


def tidegauge(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run the script that pip makes of the entry point: it does not put the current folder on the path."""
    script = "import sys; from tidegauge.__main__ import run; sys.argv[0] = 'tidegauge'; sys.exit(run())"
    return run(site, folder, "-P", "-c", script, *arguments)


def files_of_the_package() -> set[str]:
    """Return the files below tidegauge/, without what tools leave behind."""
    paths = (path.relative_to(ROOT) for path in (ROOT / "tidegauge").rglob("*") if path.is_file())
    ignored = (".", "__pycache__")
    return {path.as_posix() for path in paths if not any(part.startswith(ignored) for part in path.parts)}


def test_a_wheel_has_one_name_and_every_file_once(wheel: Path) -> None:
    """Modules, TLA+, models, scenarios, captures, pages: what the repository has of the package, the wheel has."""
    names = Counter(zipfile.ZipFile(wheel).namelist())
    version = wheel.name.split("-")[1]
    assert {name.split("/")[0] for name in names} == {"tidegauge", f"tidegauge-{version}.dist-info"}
    assert max(names.values()) == 1
    assert files_of_the_package() == {name for name in names if name.startswith("tidegauge/")}


def test_nothing_of_the_validation_is_in_the_wheel(wheel: Path) -> None:
    """Nor of the tests and benchmarks."""
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.startswith(("validation", "tests", "benchmarks"))]


def test_an_sdist_unpacked_where_links_cannot_be_made_gives_a_verdict(tmp_path: Path) -> None:
    """It has no links, and its files alone judge a trace."""
    (tmp_path / "dist").mkdir()
    with tarfile.open(built("sdist", tmp_path / "dist")) as sdist:
        assert not [member.name for member in sdist if member.issym() or member.islnk()]
        sdist.extractall(tmp_path, filter="data")
    (project,) = tmp_path.glob("tidegauge-*")
    assert (project / "pyproject.toml").is_file()
    checked = tidegauge(project, tmp_path, "check", "--quiet", str(GOLDEN))
    assert checked.returncode == 0, checked.stderr


@pytest.mark.parametrize("name", LINKS)
def test_the_names_at_the_top_are_links_to_the_package(name: str) -> None:
    """Nothing needs them: where links cannot be made, a checkout has small files of these names."""
    link = ROOT / name
    assert not link.is_symlink() or link.resolve() == (ROOT / "tidegauge" / name).resolve()
    assert (ROOT / "tidegauge" / name / "__init__.py").is_file()


def test_a_project_with_folders_of_the_same_names_uses_it(site: Path, tmp_path: Path) -> None:
    """Its own spec/, cli/ and impl/ are neither read nor in the way, however it starts it; nor at an import."""
    for package in (*PACKAGES, "tests", "validation"):
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text(f"raise ImportError('{package} of the project, not of tidegauge')\n")
    for start in (tidegauge(site, tmp_path, "--version"), run(site, tmp_path, "-m", "tidegauge", "--version")):
        assert (start.returncode, start.stderr) == (0, "")
        assert start.stdout.strip().endswith(str(site / "tidegauge"))
    checked = tidegauge(site, tmp_path, "check", "--quiet", str(GOLDEN))
    assert checked.returncode == 0, checked.stderr
    imported = run(site, tmp_path, "-c", "import tidegauge.conformance; print(tidegauge.conformance.__file__)")
    assert imported.stdout.strip() == str(site / "tidegauge" / "conformance" / "__init__.py")


def test_a_checkout_runs_its_own_files(tmp_path: Path) -> None:
    """`python -m tidegauge` at its root does, whatever is installed, and says so."""
    version = subprocess.run(
        [sys.executable, "-m", "tidegauge", "--version"], cwd=ROOT, text=True, capture_output=True, check=True
    )
    assert version.stdout.strip().endswith(str(ROOT / "tidegauge"))


def test_what_each_person_types_first_works_from_the_wheel_alone(site: Path, tmp_path: Path) -> None:
    """In an empty folder: the ways in, an adapter that passes, a verdict with its page, the library."""
    assert "You write a broker." in tidegauge(site, tmp_path).stdout
    assert tidegauge(site, tmp_path, "init", "python").returncode == 0
    driven = tidegauge(site, tmp_path, "drive", "--smoke", "--", sys.executable, "adapter.py")
    assert driven.returncode == 0, driven.stderr
    capture = site / "tidegauge" / "traces" / "captures" / "3.4.0" / "b-kill-leader"
    judged = tidegauge(site, tmp_path, "check", "--quiet", str(capture), "--out", "report")
    assert (judged.returncode, "KAFKA-14704" in judged.stdout) == (1, True)
    summed = tidegauge(site, tmp_path, "summary", "report/check.xml")
    assert (summed.returncode, "1 unexpected" in summed.stdout) == (1, True)
    library = "import tidegauge as tg; print(tg.check(tg.EXAMPLES / 'golden' / 'commit.ndjson').verdict)"
    assert run(site, tmp_path, "-c", library).stdout == "PASS\n"
