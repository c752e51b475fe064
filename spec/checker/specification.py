r"""Split the SPECIFICATION of a cfg as its module defines it: Spec == Init /\ [][Next]_vars."""

import re
from typing import NamedTuple

from tidegauge.spec.checker.models import Model
from tidegauge.spec.errors import SpecError
from tidegauge.spec.place import SPEC


class Specification(NamedTuple):
    """The names of the initial predicate and of the next-state relation."""

    init: str
    next: str


def specification_of(model: Model) -> Specification:
    """Return the parts of a model's specification. Raises SpecError where the module does not define it so, on one line."""
    name = model.config().specification or "none"
    text = (SPEC / "models" / model.module / f"{model.module}.tla").read_text(encoding="utf-8")
    # A fair specification is another one with fairness added, which allows the same steps.
    while fair := re.search(rf"^{name} ==\s+(?:/\\ )?(\w+Spec)\s", text, flags=re.MULTILINE):
        name = fair[1]
    found = re.search(rf"^{name} == (\w+) /\\ \[\]\[(\w+)\]_\w+$", text, flags=re.MULTILINE)
    if found is None:
        raise SpecError(
            f"{model.cfg}: expected a SPECIFICATION that {model.module}.tla defines on a line as "
            rf"Init /\ [][Next]_variables, seen {name}: its steps cannot be reported"
        )
    return Specification(*found.groups())
