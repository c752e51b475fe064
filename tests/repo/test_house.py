"""The imports by folder: the committed drawing is what the house is, and every arrow runs downward."""

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.repo.house import DRAWING, ROOT, Folder, arrows, contracts, drawing, folders, upward


def test_the_drawing_is_of_this_house() -> None:
    """Else: python -m tests.repo.house."""
    assert DRAWING.read_text(encoding="utf-8") == drawing(folders(ROOT), arrows(ROOT))


def test_no_arrow_runs_upward() -> None:
    """Neither between rooms nor between the wings of one."""
    order = folders(ROOT)
    assert upward(arrows(ROOT), order) == []
    assert len(order) > 20


def test_every_room_and_wing_is_drawn_and_has_its_place_in_a_contract() -> None:
    """A folder of modules that no contract knows would be drawn last, wherever it belongs."""
    layers = contracts(ROOT)
    named = {name for layer in layers["tidegauge"] for name in layer}
    rooms = {path.parent.name for path in ROOT.glob("*/__init__.py")} - {"tests", "tidegauge"}
    assert rooms == named - {"__main__"} == {folder.room for folder in folders(ROOT)}
    for folder in folders(ROOT):
        wings = [name for layer in layers.get(f"tidegauge.{folder.room}", []) for name in layer]
        assert not folder.wing or folder.wing in wings, folder


def a_house(root: Path, above: str, below: str) -> Path:
    """Two rooms of one wing each, with what the modules of their wings say."""
    for room, wing, text in (("upper", "attic", above), ("lower", "cellar", below)):
        (root / room / wing).mkdir(parents=True)
        (root / room / wing / "__init__.py").write_text("")
        (root / room / wing / "a.py").write_text(text)
        (root / room / "top.py").write_text("")
    linter = '[[tool.importlinter.contracts]]\ncontainers = ["tidegauge"]\nlayers = ["upper", "lower"]\n'
    (root / "pyproject.toml").write_text(linter)
    return root


@pytest.mark.parametrize(
    ("statement", "to"),
    [
        ("from tidegauge.upper.attic import a", Folder("upper", "attic")),
        ("import os, tidegauge.upper.attic.a", Folder("upper", "attic")),
        ("def run():\n    from tidegauge.upper import attic", Folder("upper", "attic")),
        ("from tidegauge.upper import top", Folder("upper", "")),
        ("from tidegauge import upper", Folder("upper", "")),
    ],
)
def test_an_import_that_runs_upward_is_found_and_drawn_in_red(statement: str, to: Folder, tmp_path: Path) -> None:
    """However it is written, at the top or in a function."""
    root = a_house(tmp_path, "import os", statement)
    order, found = folders(root), arrows(root)
    assert upward(found, order) == [(Folder("lower", "cellar"), to)]
    assert 'stroke="red"' in drawing(order, found)


def test_an_import_that_runs_downward_is_an_arrow_and_none_of_a_folder_itself(tmp_path: Path) -> None:
    """What lies outside of the house is no folder."""
    root = a_house(tmp_path, "from tidegauge.lower.cellar import a\nfrom tidegauge.upper.attic import a\nimport numpy", "")
    assert arrows(root) == {(Folder("upper", "attic"), Folder("lower", "cellar"))}
    text = drawing(folders(root), arrows(root))
    assert 'stroke="red"' not in text
    assert [path.find("{*}title").text for path in ET.fromstring(text).findall("{*}path")] == [
        "upper/attic imports lower/cellar"
    ]
