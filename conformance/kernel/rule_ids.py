"""The rules the judge checks, read from catalog.toml: one number per stable id, in the catalog's order.

Rules of this file

1. An id is never reused; a new rule follows the last of its group in catalog.toml, which is the order of reports.
2. The sentence of a rule, its level and the bugs it resembles are read by conformance/judging/rulebook.py.
"""

import tomllib
from functools import cache
from importlib.resources import files
from types import ModuleType
from typing import Any


@cache
def catalog() -> dict[str, Any]:
    """Read catalog.toml."""
    return tomllib.loads(files("tidegauge").joinpath("catalog.toml").read_text(encoding="utf-8"))


RULE_IDS: tuple[str, ...] = tuple(catalog()["rule"])
RULES = len(RULE_IDS)

# A module, because Numba compiles attributes of modules as constants (`RULE.HW_10` is a number).
RULE = ModuleType("RULE", "The number of each rule, by its id.")
vars(RULE).update({rule_id.replace("-", "_"): number for number, rule_id in enumerate(RULE_IDS)})
