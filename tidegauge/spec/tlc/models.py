"""The models, and comparing their results with what is pinned in models.toml.

A model is a TLA+ module of spec/models and a .cfg. A *pin* is an expected result of a model, recorded in its entry of
models.toml: the outcome, the number of states, the length of a counterexample.

Rules of this file

1. A PinComparison lists every way in which a result of TLC differs from the pins in models.toml.
2. A model that must fail is right only if the named property fails, after the pinned number of states. Any other failure
   is a difference.
3. TLC does not say which temporal property is refuted, nor which property of another module: a model that must fail in
   this way checks only that one.
4. Numbers that vary with the machine or with the order of the search (seconds, the length of a run that refutes liveness)
   are recorded and never compared; nor are the counts of a failing model, which depend on where TLC stopped.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from tidegauge.spec import SPEC
from tidegauge.spec.tlc.cfg import Cfg, parse_cfg
from tidegauge.spec.tlc.tlc import ONLY_RUN, Limits, TlcOutcome, TlcResult, TlcStart, modules, run_several, run_tlc
from tidegauge.util.errors import SpecError

TIERS = ("small", "medium", "large")
MODES = ("exhaustive",)


@dataclass(frozen=True)
class Model:
    """One entry of models.toml; None where nothing is pinned. Its cfg is spec/models/<module>/<name>.cfg."""

    module: str
    name: str
    mode: str
    expect: str
    tier: str

    @property
    def cfg(self) -> str:
        """The path of its cfg below spec/models."""
        return f"{self.module}/{self.name}.cfg"

    property: str = ""
    """that must fail"""
    distinct: int | None = None
    """distinct states"""
    depth: int | None = None
    length: int | None = None
    """states of the counterexample"""
    seconds: float | None = None
    repaired: str = ""
    """name of the model in which the property holds again"""

    def config(self, **constants: int) -> Cfg:
        """Read its cfg, with other numbers for the given constants: MaxLog=1."""
        text = (SPEC / "models" / self.cfg).read_text(encoding="utf-8")
        return parse_cfg(text, self.cfg).with_constants(**constants)


@dataclass(frozen=True)
class PinComparison:
    """A model, its result, and a line for each difference from the pins."""

    model: Model
    result: TlcResult
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether the result is as pinned."""
        return not self.differences

    def __str__(self) -> str:
        """Return the comparison as a line, and a line for each difference from the pinned result."""
        result, model = self.result, self.model
        verdict = result.outcome.value + (f" of {result.property}" if result.property else "")
        # Where only the number of states differs from the pins, "FAIL .. success" would contradict itself.
        if not self.ok and result.outcome is TlcOutcome.SUCCESS:
            changed = "; the number of states changed" if model.expect == result.outcome.value else ""
            verdict = f"no property fails{changed}"
        if result.counterexample:
            verdict += f" after {len(result.counterexample)} states"
        elif result.outcome is TlcOutcome.SUCCESS:
            verdict += f", {result.distinct} states, depth {result.depth}"
        head = f"{'ok  ' if self.ok else 'FAIL'} {model.cfg}: {verdict} ({result.seconds:.1f} s)"
        return "\n".join([head, *(f"     {difference}" for difference in self.differences)])


def _model(entry: dict[str, Any], where: str) -> Model:
    """Return the model of an entry of models.toml, called `where` in messages. Raises SpecError for a wrong one."""
    keys = {field.name for field in fields(Model)}
    unknown = sorted(set(entry) - keys)
    if unknown:
        raise SpecError(f"{where}: expected only {', '.join(sorted(keys))}; seen {', '.join(unknown)}: remove or rename it")
    missing = sorted({"module", "name", "mode", "expect", "tier"} - set(entry))
    if missing:
        raise SpecError(f"{where}: expected {', '.join(missing)}, seen none: add it")
    model = Model(**entry)
    outcomes = [outcome.value for outcome in TlcOutcome if outcome is not TlcOutcome.ERROR]
    for seen, allowed in ((model.expect, outcomes), (model.tier, TIERS), (model.mode, MODES)):
        if seen not in allowed:
            raise SpecError(f"{where}: expected one of {', '.join(allowed)}; seen {seen!r}")
    if model.expect in {TlcOutcome.SAFETY.value, TlcOutcome.LIVENESS.value} and not model.property:
        raise SpecError(f"{where}: expected the property that must fail, seen none: add property = ...")
    if not (SPEC / "models" / model.cfg).is_file():
        raise SpecError(f"{where}: expected the file models/{model.cfg}, seen none")
    if model.repaired and not (SPEC / "models" / model.module / f"{model.repaired}.cfg").is_file():
        raise SpecError(f"{where}: expected a repaired model beside it, seen no {model.repaired}.cfg")
    # TLC does not name a temporal property that it refutes (rule 3), so there must be no other one.
    if model.expect == TlcOutcome.LIVENESS.value and _only_property(model) != model.property:
        raise SpecError(f"{where}: expected PROPERTY {model.property} and no other one in its cfg, seen another")
    return model


def load_models(text: str | None = None) -> tuple[Model, ...]:
    """Load the models of models.toml, or of `text`. Raises SpecError with the entry that is wrong."""
    if text is None:
        text = (SPEC / "models.toml").read_text(encoding="utf-8")
    try:
        entries = tomllib.loads(text).get("model", [])
    except tomllib.TOMLDecodeError as problem:
        raise SpecError(f"models.toml: expected TOML, seen: {problem}") from problem
    models = tuple(_model(entry, f"models.toml, model {n} ({entry.get('name')})") for n, entry in enumerate(entries, 1))
    names = [model.name for model in models]
    if len(set(names)) != len(names):
        raise SpecError(f"models.toml: expected each name once, seen {', '.join(names)}")
    return models


def find_model(name: str) -> Model:
    """Return a model by its name ("Small") or the path of its cfg, below spec/models or anywhere; it may be a user's own.

    Raises SpecError if there is none.
    """
    models = load_models()
    place = Path(name)
    for model in models:
        if name in {model.name, model.cfg} or place.absolute() == SPEC / "models" / model.cfg:
            return model
    if place.suffix == ".cfg" and place.is_file():
        return own_model(place)
    raise SpecError(
        f"expected a model such as {models[0].name}, or a file that ends in .cfg; seen {name!r}; `tidegauge model --list` "
        "lists all names"
    )


@dataclass(frozen=True)
class OwnModel(Model):
    """A model of a user: a cfg anywhere, of a module of spec/models. Nothing is pinned; it is right if no property fails."""

    place: Path = Path()

    @property
    def cfg(self) -> str:
        """The path of its cfg, as it was given."""
        return str(self.place)

    def config(self, **constants: int) -> Cfg:
        """Read its cfg, with other numbers for the given constants: MaxLog=1."""
        return parse_cfg(self.place.read_text(encoding="utf-8"), self.cfg).with_constants(**constants)


def own_model(place: Path) -> OwnModel:
    """Return the model of a cfg that models.toml does not list. Raises SpecError where no module has its SPECIFICATION.

    Its module is the one that its directory is called after, else the one that defines its SPECIFICATION and every operator
    that it puts in or checks, and declares its constants.
    """
    config = parse_cfg(place.read_text(encoding="utf-8"), str(place))
    # The modules of spec/models, each in a directory of its name.
    texts = {folder.name: folder / f"{folder.name}.tla" for folder in sorted((SPEC / "models").iterdir()) if folder.is_dir()}
    # The names that the module must define; "" is an INIT and NEXT in place of a SPECIFICATION.
    needed = {config.specification, *config.substitutions.values(), *config.checked} - {""}
    directory = place.absolute().parent.name
    assigned = {*config.constants, *config.substitutions}
    if directory in texts:
        fits = [directory]
    else:
        # TLC wants each constant that a module declares assigned, and no other.
        fits = [
            name
            for name in texts
            if needed <= _names_in(name).defined and {*config.constants} <= _names_in(name).constants <= assigned
        ]
    if not fits:
        raise SpecError(
            f"{place}: expected a SPECIFICATION and operators that one of {', '.join(texts)} defines, seen "
            f"{', '.join(sorted(needed))}; put the file into a directory that is called after its module"
        )
    # A module that extends another has all that the other defines: the one with the fewest definitions is meant.
    module = min(fits, key=lambda name: len(_names_in(name).defined))
    return OwnModel(module, place.stem, "exhaustive", TlcOutcome.SUCCESS.value, TIERS[0], place=place)


class ModuleNames(NamedTuple):
    """What a module and those that it extends define, and the constants that they declare."""

    defined: frozenset[str]
    constants: frozenset[str]


@cache
def _names_in(module: str) -> ModuleNames:
    """Return the operators and constants of a module and of those that it extends."""
    # No text for a standard module (Integers): nothing of it is looked for. Without \* comments.
    text = re.sub(r"\\\*.*", "", modules().get(f"{module}.tla", ""))
    extended = re.search(r"^EXTENDS (.+)$", text, flags=re.MULTILINE)
    inherited = [_names_in(name.strip()) for name in (extended[1].split(",") if extended else ())]
    defined = re.findall(r"^(\w+)(?:\(.*?\))? ==", text, flags=re.MULTILINE)
    # A declaration ends with an empty line.
    declared = re.findall(r"^CONSTANTS?\s+(.*?)\n\s*\n", text, flags=re.MULTILINE | re.DOTALL)
    constants = [name.strip() for names in declared for name in names.split(",")]
    return ModuleNames(
        frozenset(defined).union(*(names.defined for names in inherited)),
        frozenset(constants).union(*(names.constants for names in inherited)),
    )


def _only_property(model: Model) -> str:
    """Return the temporal property a model checks, the one that TLC means when it names none; "" for none or several."""
    checked = model.config().properties
    return checked[0] if len(checked) == 1 else ""


def compare_with_pins(model: Model, result: TlcResult) -> PinComparison:
    """Compare a result of TLC with the pins of its model."""
    if result.outcome is TlcOutcome.ERROR:
        return PinComparison(model, result, (f"expected {model.expect}, seen no verdict: {result.message}",))
    differences: list[str] = []

    def check(what: str, expected: Any, seen: Any) -> None:
        """Add a difference if `seen` is not the pinned value `expected`; None and "" mean that nothing is pinned."""
        if expected not in {None, ""} and expected != seen:
            differences.append(f"{what}: expected {expected}, seen {seen}")

    check("outcome", model.expect, result.outcome.value)
    # TLC does not name a temporal property that it refutes (rule 3).
    check("property", model.property, result.property or _only_property(model))
    # The length of a run that refutes liveness depends on the order of the search (rule 4).
    if model.expect != TlcOutcome.LIVENESS.value:
        check("states of the counterexample", model.length, len(result.counterexample))
    if model.expect == TlcOutcome.SUCCESS.value and result.outcome is TlcOutcome.SUCCESS:
        check("distinct states", model.distinct, result.distinct)
        check("depth", model.depth, result.depth)
    # Nothing of a user's own model is pinned.
    if differences and not isinstance(model, OwnModel):
        differences.append(f"if this is right, record it; if not, look at what changed in {model.module}.tla and below it")
    return PinComparison(model, result, tuple(differences))


def run_model(model: Model, *, limits: Limits | None = None, start: TlcStart = ONLY_RUN) -> PinComparison:
    """Run TLC on a model and compare the result with its pins.

    `start` is the Java, JVM flags and stop event that several runs share (run_several); ONLY_RUN for a single one.
    """
    # A run of a small model takes seconds: it is mostly start, for which there are JVM flags (`brief`).
    options = start.options(limits or Limits(brief=model.tier == "small"))
    return compare_with_pins(model, run_tlc(model.module, model.config().text(), **options))


def in_tier(tier: str) -> tuple[Model, ...]:
    """Return the models of a tier and of the cheaper ones, in the order of models.toml."""
    if tier not in TIERS:
        raise SpecError(f"expected a tier, one of {', '.join(TIERS)}; seen {tier!r}")
    return tuple(model for model in load_models() if TIERS.index(model.tier) <= TIERS.index(tier))


def run_models(
    models: Sequence[Model], *, on_done: Callable[[PinComparison], None] | None = None
) -> tuple[PinComparison, ...]:
    """Run models two at a time; `on_done` is called with each comparison, in the order given."""
    done: list[PinComparison] = []
    with run_several(lambda model, start: run_model(model, start=start), models) as comparisons:
        for comparison in comparisons:
            done.append(comparison)
            if on_done:
                on_done(comparison)
    return tuple(done)


def _pins(comparison: PinComparison) -> dict[str, str]:
    """Return the result of a run as pins: key -> value as models.toml writes it."""
    result = comparison.result
    pins = {"expect": f'"{result.outcome.value}"', "seconds": f"{result.seconds:.0f}"}
    if result.property:
        pins["property"] = f'"{result.property}"'
    # The counts of a failing model depend on where TLC stopped (rule 4).
    if result.counterexample:
        return {**pins, "length": str(len(result.counterexample))}
    return {**pins, "distinct": str(result.distinct), "depth": str(result.depth)}


def recorded(text: str, comparisons: Iterable[PinComparison]) -> str:
    """Return `text`, that of models.toml, with the results as new pins; comments and order stay.

    Runs without a verdict change nothing.
    """
    pins_by_name = {c.model.name: _pins(c) for c in comparisons if c.result.outcome is not TlcOutcome.ERROR}
    # Each block is the text of one entry, up to the head of the next one.
    blocks = re.split(r"(?=^\[\[model\]\]$)", text, flags=re.MULTILINE)
    for number, block in enumerate(blocks):
        name = re.search(r'^name = "(.+)"$', block, flags=re.MULTILINE)
        if name and name[1] in pins_by_name:
            blocks[number] = _pinned(block, pins_by_name[name[1]])
    return "".join(blocks)


def _pinned(block: str, pins: dict[str, str]) -> str:
    """Return the text of one entry of models.toml with these pins replaced, or added after its last line with a value."""
    for key, value in pins.items():
        line = re.compile(rf"^{key} = .*$", re.MULTILINE)
        if line.search(block):
            block = line.sub(f"{key} = {value}", block)
        else:
            # After the last pin and not at the end of the block: comments and an empty line may follow.
            end = max(match.end() for match in re.finditer(r"^\w+ = .*$", block, flags=re.MULTILINE))
            block = f"{block[:end]}\n{key} = {value}{block[end:]}"
    return block


def pin_results(comparisons: Iterable[PinComparison]) -> Path:
    """Write the results into models.toml as pins; return its path. Needs a checkout that can be written."""
    path = SPEC / "models.toml"
    path.write_text(recorded(path.read_text(encoding="utf-8"), comparisons), encoding="utf-8")
    return path


def models_table(models: Iterable[Model]) -> str:
    """Return the models as a Markdown table; its last column is about how long TLC takes."""
    lines = ["| module | cfg | expected | states | depth | about |", "|---|---|---|---|---|---|"]
    for model in models:
        expected = model.expect + (f": {model.property}, {model.length} states" if model.property else "")
        states = "" if model.distinct is None else f"{model.distinct:,}"
        depth = "" if model.depth is None else str(model.depth)
        seconds = "" if model.seconds is None else f"{model.seconds:.0f} s"
        lines.append(f"| {model.module} | {model.name} | {expected} | {states} | {depth} | {seconds} |")
    return "\n".join(lines) + "\n"


# Split the SPECIFICATION of a cfg as its module defines it, Spec == Init /\ [][Next]_vars: graph.py runs TLC with a Next of
# its own around the module's, which prints each step.


class Specification(NamedTuple):
    """The names of the initial predicate and of the next-state relation."""

    init: str
    next: str


def specification_of(model: Model) -> Specification:
    """Return the names of Init and Next in the definition of a model's SPECIFICATION: Spec == Init /\\ [][Next]_vars.

    Raises SpecError where its module does not define it so, on one line.
    """
    name = model.config().specification or "none"
    text = (SPEC / "models" / model.module / f"{model.module}.tla").read_text(encoding="utf-8")
    # A specification may be another one, with fairness added or not: it allows the same steps.
    while fair := re.search(rf"^{name} ==\s+(?:/\\ )?(\w+Spec)\s", text, flags=re.MULTILINE):
        name = fair[1]
    definition = re.search(rf"^{name} == (\w+) /\\ \[\]\[(\w+)\]_\w+$", text, flags=re.MULTILINE)
    if definition is None:
        raise SpecError(
            f"{model.cfg}: expected a SPECIFICATION that {model.module}.tla defines on a line as "
            rf"Init /\ [][Next]_variables, seen {name}: its steps cannot be reported"
        )
    return Specification(*definition.groups())
