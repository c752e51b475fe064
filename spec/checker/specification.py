r"""The SPECIFICATION of a cfg taken apart, as its module writes it: Spec == Init /\ [][Next]_vars."""

import re
from typing import NamedTuple

from tidegauge.spec.checker.models import Model
from tidegauge.spec.errors import SpecError
from tidegauge.spec.place import SPEC


class Specification(NamedTuple):
    """How it begins and goes on: the names that the module gives them."""

    init: str
    next: str


def specification_of(model: Model) -> Specification:
    """Raises SpecError where the module does not write it so, on one line."""
    name = model.config().specification or "none"
    text = (SPEC / "models" / model.module / f"{model.module}.tla").read_text(encoding="utf-8")
    # Fairness is added to another one, and takes no step away.
    while fair := re.search(rf"^{name} ==\s+(?:/\\ )?(\w+Spec)\s", text, flags=re.MULTILINE):
        name = fair[1]
    found = re.search(rf"^{name} == (\w+) /\\ \[\]\[(\w+)\]_\w+$", text, flags=re.MULTILINE)
    if found is None:
        raise SpecError(
            f"{model.cfg}: expected a SPECIFICATION that {model.module}.tla defines on a line as "
            rf"Init /\ [][Next]_variables, seen {name}: its steps cannot be reported"
        )
    return Specification(*found.groups())
