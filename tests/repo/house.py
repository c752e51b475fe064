"""The imports of the house by folder, as a drawing: docs/house.svg. Make it anew with `python -m tests.repo.house`.

Rules of this file

1. A folder is a wing of a room, or the files of the room that lie in no wing. Their order is that of the contracts in
   pyproject.toml: from the room that may import all others down, and so in each room.
2. An arrow leads from the folder that imports to the one that is imported, downward on the right. One that ran upward would
   be drawn on the left, in red.
3. Imports are read from the texts, those inside functions too: nothing is run.
4. The same files give the same bytes.
"""

import ast
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
DRAWING = ROOT / "docs" / "house.svg"
PACKAGE = "tidegauge"

ROW, LEFT, TOP, WIDTH = 26, 60, 40, 640
"""Pixels: from row to row, to the boxes, to the first of them, the whole."""
BOX = 190
"""How wide a box is."""
COLOURS = ("#5b6770", "#8a5a00", "#00695c", "#4527a0", "#1565c0", "#2e7d32", "#ad1457")


class Folder(NamedTuple):
    """A wing of a room; "" for the files of the room itself."""

    room: str
    wing: str

    def __str__(self) -> str:
        return f"{self.room}/{self.wing}" if self.wing else self.room


Arrow = tuple[Folder, Folder]
"""From the folder that imports to the one that is imported."""


def contracts(root: Path) -> dict[str, list[list[str]]]:
    """The layers of each contract, by what they are the layers of: "tidegauge", "tidegauge.impl", ..."""
    linter = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    return {
        container: [[name.strip() for name in layer.replace("|", ":").split(":")] for layer in contract["layers"]]
        for contract in linter["contracts"]
        for container in contract.get("containers", ())
    }


def folders(root: Path) -> list[Folder]:
    """All folders from the top down; the files of a room stand below its wings."""
    layers = contracts(root)
    found = []
    for room in (room for layer in layers[PACKAGE] for room in layer if (root / room).is_dir()):
        wings = {path.name for path in (root / room).iterdir() if (path / "__init__.py").is_file()}
        order = [name for layer in layers.get(f"{PACKAGE}.{room}", []) for name in sorted(layer)]
        found += [Folder(room, wing) for wing in (*(wing for wing in order if wing in wings), *sorted(wings - set(order)))]
        if any(path.name != "__init__.py" for path in (root / room).glob("*.py")):
            found.append(Folder(room, ""))
    return found


def arrows(root: Path) -> set[Arrow]:
    """Who imports whom, a folder and itself left out. How often is no part of it: a drawing is to change with the house."""
    known = folders(root)
    found = set()
    for room in dict.fromkeys(folder.room for folder in known):
        for path in (root / room).rglob("*.py"):
            here = _folder(path.relative_to(root).with_suffix("").parts, known)
            for name in _imported(ast.parse(path.read_text(encoding="utf-8"))):
                package, *parts = name.split(".")
                if package == PACKAGE and parts:
                    found.add((here, _folder(tuple(parts), known)))
    return {(here, there) for here, there in found if here != there}


def _folder(parts: tuple[str, ...], known: list[Folder]) -> Folder:
    """The folder of a module: impl.storage.log is in the wing storage, impl.rules in none."""
    wing = Folder(parts[0], parts[1] if len(parts) > 1 else "")
    return wing if wing in known else Folder(parts[0], "")


def _imported(tree: ast.Module) -> Iterator[str]:
    """The modules that a text imports; `from a import b` may mean the module a.b."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def upward(found: Iterable[Arrow], order: list[Folder]) -> list[Arrow]:
    """The arrows that lead to a folder above the one they start from."""
    return [(here, there) for here, there in found if order.index(there) < order.index(here)]


def drawing(order: list[Folder], found: Iterable[Arrow]) -> str:
    """The SVG: a box per folder in that order, an arc per arrow."""
    rows = {folder: row for row, folder in enumerate(order)}
    between = sorted(found, key=lambda arrow: (rows[arrow[0]], rows[arrow[1]]))
    colours = dict(zip(dict.fromkeys(folder.room for folder in order), COLOURS, strict=False))
    height = TOP + ROW * (len(order) + 1)
    wrong = len(upward(between, order))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" font-family="sans-serif">',
        f"<title>Imports by folder: {len(between)} arrows, {wrong} upward</title>",
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(LEFT, 24, "#333", f"Who imports whom: {len(between)} arrows, {wrong} upward (on the left, in red)"),
        *(_head(name, colour) for name, colour in {**colours, "up": "red"}.items()),
    ]
    for here, there in between:
        lines.append(_arc(rows[here], rows[there], here.room, colours[here.room], f"{here} imports {there}"))
    for folder, row in rows.items():
        y = TOP + ROW * row
        lines.append(f'<rect x="{LEFT}" y="{y + 2}" width="{BOX}" height="{ROW - 4}" fill="{colours[folder.room]}"/>')
        lines.append(_text(LEFT + 10, y + 17, "white", str(folder)))
    return "\n".join([*lines, "</svg>"]) + "\n"


def _text(x: int, y: int, colour: str, says: str) -> str:
    return f'<text x="{x}" y="{y}" font-size="13" fill="{colour}">{says}</text>'


def _head(name: str, colour: str) -> str:
    shape = f'<path d="M0 0L6 3L0 6z" fill="{colour}"/>'
    size = 'refX="6" refY="3" markerWidth="7" markerHeight="7" markerUnits="userSpaceOnUse"'
    return f'<marker id="{name}" viewBox="0 0 6 6" {size} orient="auto">{shape}</marker>'


def _arc(start: int, end: int, room: str, colour: str, says: str) -> str:
    down = end > start
    x = LEFT + BOX if down else LEFT
    reach = x + (30 + 17 * abs(end - start)) * (1 if down else -1)
    y, to = (TOP + ROW * row + ROW // 2 + shift for row, shift in ((start, 4), (end, -4)))
    look = (
        f'fill="none" stroke="{colour if down else "red"}" stroke-opacity="0.7" marker-end="url(#{room if down else "up"})"'
    )
    return f'<path d="M{x} {y}C{reach} {y} {reach} {to} {x} {to}" {look}><title>{says}</title></path>'


if __name__ == "__main__":
    DRAWING.write_text(drawing(folders(ROOT), arrows(ROOT)), encoding="utf-8")
