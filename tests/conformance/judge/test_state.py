"""The judge's table: each name stands for one column."""

import ast
from collections import Counter
from pathlib import Path

from tidegauge.conformance.judge import state


def test_no_name_of_a_column_stands_for_another_one_too() -> None:
    """The second one would be read and written in place of the first, in rows of another kind."""
    tree = ast.parse(Path(state.__file__).read_text(encoding="utf-8"))
    assigned = (node for node in tree.body if isinstance(node, ast.Assign | ast.AnnAssign))
    names = (name for node in assigned for name in ast.walk(node) if isinstance(name, ast.Name))
    bound = Counter(name.id for name in names if isinstance(name.ctx, ast.Store))
    assert [name for name, count in bound.items() if count > 1] == []
