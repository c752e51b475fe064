"""The wheel, used where users use it; and a checkout, which runs its own files."""

import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections import Counter
from pathlib import Path

import pytest

from tidegauge.commands import checkout

ROOT = Path(__file__).parents[2]
ROOMS = ("impl", "spec", "traces", "conformance", "drive", "spark_check", "commands")
GOLDEN = next((ROOT / "traces" / "golden").glob("*.ndjson"))


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from the repository."""
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel unpacked, as pip does it."""
    folder = tmp_path_factory.mktemp("site")
    zipfile.ZipFile(wheel).extractall(folder)
    return folder


def run(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """This interpreter in a folder, with what is installed in `site` before anything else."""
    env = {**os.environ, "PYTHONPATH": str(site), "COLUMNS": "200"}
    return subprocess.run([sys.executable, *arguments], cwd=folder, env=env, text=True, capture_output=True, check=False)


def tidegauge(site: Path, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The script that pip makes of the entry point: it does not put the current folder on the path."""
    script = "import sys; from tidegauge.__main__ import run; sys.argv[0] = 'tidegauge'; sys.exit(run())"
    return run(site, folder, "-P", "-c", script, *arguments)


def test_a_wheel_has_one_name_and_every_file_once(wheel: Path) -> None:
    """Modules, TLA+, models, scenarios, captures, pages: what the repository has of a room, the wheel has."""
    names = Counter(zipfile.ZipFile(wheel).namelist())
    assert {name.split("/")[0] for name in names} == {"tidegauge", f"tidegauge-{_wheels_version(wheel)}.dist-info"}
    assert max(names.values()) == 1
    tracked = {f"tidegauge/{name}" for name in checkout.files_of(ROOT / "tidegauge")}
    assert tracked == {name for name in names if name.startswith("tidegauge/")}
    for kind in (
        "Rules.tla",
        "Small.cfg",
        "models.toml",
        "frame.html",
        "style.css",
        "viewer.js",
        "log4j2.properties",
        "py.typed",
    ):
        assert any(name.endswith(f"/{kind}") for name in names), kind


def _wheels_version(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def test_a_project_with_folders_of_the_same_names_uses_it(site: Path, tmp_path: Path) -> None:
    """Its own spec/, commands/ and impl/ are neither read nor in the way, however it starts it; nor at an import."""
    for room in (*ROOMS, "tests"):
        (tmp_path / room).mkdir()
        (tmp_path / room / "__init__.py").write_text(f"raise ImportError('the {room} of the project, not of tidegauge')\n")
    for start in (tidegauge(site, tmp_path, "--version"), run(site, tmp_path, "-m", "tidegauge", "--version")):
        assert (start.returncode, start.stderr) == (0, "")
        assert start.stdout.startswith("tidegauge ")
        assert "checkout" not in start.stdout
    checked = tidegauge(site, tmp_path, "check", "--quiet", str(GOLDEN))
    assert checked.returncode == 0, checked.stderr
    imported = run(site, tmp_path, "-c", "import tidegauge.conformance; print(tidegauge.conformance.__file__)")
    assert imported.stdout.strip() == str(site / "tidegauge" / "conformance" / "__init__.py")


class Edited:
    """A checkout with another models.toml, and a package that was installed before that."""

    def __init__(self, site: Path, folder: Path) -> None:
        self.root, self.site = folder / "checkout", folder / "site"
        shutil.copytree(site / "tidegauge", self.root / "tidegauge")
        (self.root / "pyproject.toml").write_text('[project]\nname = "tidegauge"\nversion = "9.9"\n')
        shutil.copytree(site, self.site)
        models = self.root / "tidegauge" / "spec" / "models.toml"
        models.write_text(models.read_text().replace("distinct = 22393", "distinct = 123456789"))

    def says_where_it_comes_from(self, folder: Path) -> None:
        """pip records it: PEP 610."""
        info = next(self.site.glob("*.dist-info"))
        (info / "direct_url.json").write_text(json.dumps({"url": folder.as_uri(), "dir_info": {}}))


@pytest.fixture
def edited(site: Path, tmp_path: Path) -> Edited:
    return Edited(site, tmp_path)


@pytest.mark.parametrize("folder", [".", "tidegauge/spec/models"])
def test_a_checkout_runs_its_own_files(edited: Edited, folder: str) -> None:
    """From its root and from below: what was edited is what runs, and it is said."""
    edited.says_where_it_comes_from(edited.root)
    listed = tidegauge(edited.site, edited.root / folder, "model", "--list", "Small")
    assert "123,456,789" in listed.stdout, listed.stderr
    assert f"runs the files of {edited.root}; " in listed.stderr
    assert "differs in spec/models.toml" in listed.stderr
    version = tidegauge(edited.site, edited.root / folder, "--version").stdout.strip()
    assert version == f"tidegauge 9.9, the checkout in {edited.root}"


def test_another_checkout_is_not_run_but_it_is_said(edited: Edited) -> None:
    """A folder one happens to stand in is not run; how to run it is said, with what differs."""
    edited.says_where_it_comes_from(edited.root / "elsewhere")
    listed = tidegauge(edited.site, edited.root, "model", "--list", "Small")
    assert "22,393" in listed.stdout
    assert f"expected to run the files of {edited.root}, seen the package in {edited.site}" in listed.stderr
    assert "differs in spec/models.toml" in listed.stderr
    asked = run(edited.site, edited.root, "-m", "tidegauge", "model", "--list", "Small")
    assert "123,456,789" in asked.stdout
    assert asked.stderr == ""


def test_without_a_difference_nothing_is_said(edited: Edited) -> None:
    """Nor outside of a checkout."""
    shutil.copy(edited.site / "tidegauge" / "spec" / "models.toml", edited.root / "tidegauge" / "spec" / "models.toml")
    for folder in (edited.root, edited.root.parent):
        assert tidegauge(edited.site, folder, "model", "--list", "Small").stderr == ""


def test_a_difference_is_any_file_but_what_tools_leave_behind(tmp_path: Path) -> None:
    """Changed, added or gone; through links too."""
    here, there = tmp_path / "here", tmp_path / "there"
    for package in (here, there):
        (package / "spec").mkdir(parents=True)
        (package / "spec" / "Rules.tla").write_text("one")
    (there / "room").symlink_to(tmp_path / "linked")
    (tmp_path / "linked").mkdir()
    (there / "spec" / "__pycache__").mkdir()
    (there / "spec" / "__pycache__" / "x.pyc").write_text("")
    (there / "spec" / ".Rules.tla.swp").write_text("")
    assert list(checkout.differences(here, there)) == []
    (there / "spec" / "Rules.tla").write_text("two")
    (tmp_path / "linked" / "new.py").write_text("")
    (here / "gone.py").write_text("")
    assert list(checkout.differences(here, there)) == ["gone.py", "room/new.py", "spec/Rules.tla"]
    assert list(checkout.differences(there, there)) == []


@pytest.mark.parametrize("project", ['[project]\nname = "another"\n', "no TOML [", "[project]\n", 'project = "tidegauge"\n'])
def test_what_only_looks_like_a_checkout_is_none(project: str, tmp_path: Path) -> None:
    """A project that has a folder of that name."""
    (tmp_path / "tidegauge").mkdir()
    (tmp_path / "tidegauge" / "__init__.py").write_text("")
    (tmp_path / "pyproject.toml").write_text(project)
    assert checkout.checkout_of(tmp_path / "tidegauge") is None
    assert checkout.checkout_of(ROOT / "docs") == ROOT
