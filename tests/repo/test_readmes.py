"""What the README of a room says is there, is there, and its Python runs, but for what needs Spark."""

import re
import shutil
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ROOMS = ("impl", "spec", "traces", "story", "bundle", "conformance", "drive", "spark_check", "cli")
READMES = [
    *(ROOT / "tidegauge" / room / "README.md" for room in ROOMS),
    ROOT / "tidegauge" / "spec" / "proofs" / "README.md",
]
NEEDS_SPARK = ROOT / "tidegauge" / "spark_check" / "README.md"


def snippets(page: Path) -> list[str]:
    """Its Python, in order."""
    return re.findall(r"```python\n(.*?)```", page.read_text(encoding="utf-8"), re.DOTALL)


def rows(page: Path) -> list[str]:
    """The first cell of every table row."""
    return re.findall(r"^\| ([^|]*) \|", page.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(
    "page", [page for page in READMES if snippets(page) and page != NEEDS_SPARK], ids=lambda page: page.parent.name
)
def test_the_python_of_a_readme_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a folder that has the file it speaks of."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(next((ROOT / "tidegauge" / "traces" / "golden").glob("*.ndjson")), tmp_path / "failover.ndjson")
    names: dict[str, object] = {}
    for snippet in snippets(page):
        exec(compile(snippet, str(page), "exec"), names)


@pytest.mark.parametrize("page", READMES, ids=lambda page: page.parent.name)
def test_every_file_and_folder_in_a_table_is_there(page: Path) -> None:
    """Below the room; a name in a row of several may leave out the folder that the first one has."""
    below = {path.relative_to(page.parent).as_posix() for path in page.parent.rglob("*")}
    ends = {f"/{name}" for name in below}
    for row in rows(page):
        for name in re.findall(r"`([\w/]+(?:\.py|\.json|\.properties|/))`", row):
            assert any(end.endswith("/" + name.rstrip("/")) for end in ends), f"{page.parent.name}: {name}"


@pytest.mark.parametrize("room", ["impl", "traces", "conformance", "drive"])
def test_every_wing_is_in_its_readme(room: str) -> None:
    """A wing that nobody explains is one too many."""
    page = (ROOT / "tidegauge" / room / "README.md").read_text(encoding="utf-8")
    wings = [path.parent.name for path in (ROOT / "tidegauge" / room).glob("*/__init__.py")]
    assert wings
    assert not [wing for wing in wings if f"`{wing}/`" not in page]


def test_every_file_that_a_comment_or_docstring_names_is_there() -> None:
    """A reader who follows a name finds it; those of others' packages are named here."""
    names = {path.name for package in ("tidegauge", "validation", "tests") for path in (ROOT / package).rglob("*.py")}
    assert not {
        f"{path.relative_to(ROOT)}: {name}"
        for package in ("tidegauge", "validation")
        for path in (ROOT / package).rglob("*.py")
        for name in re.findall(r"\b\w+\.py\b", path.read_text(encoding="utf-8"))
        if name not in names | {"z3core.py", "pandas.py", "conf.py"}
    }
