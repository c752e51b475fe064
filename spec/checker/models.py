"""The models and what each is expected to give.

Rules of this file

1. models.toml says what is expected; TLC says what is; a Comparison is every way in which they differ.
2. A model that must fail is right only if the named property fails, after the pinned number of states. Any other failure
   is a difference.
3. TLC does not name a temporal property that is refuted, nor one of another module: a model that must fail so checks only
   that one.
4. What varies with the machine or with how TLC walks (seconds, states generated, how long a run is that refutes liveness)
   is recorded and never compared. The counts of a failing model depend on where TLC stopped, so they are not either.
"""

import re
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from tidegauge.spec.checker.cfg import Cfg, parse_cfg
from tidegauge.spec.checker.several import ALONE, Start, several
from tidegauge.spec.checker.tlc import Limits, Outcome, Result, run_tlc
from tidegauge.spec.checker.transcript import OnProgress
from tidegauge.spec.errors import SpecError
from tidegauge.spec.place import SPEC

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
        """Its cfg below spec/models."""
        return f"{self.module}/{self.name}.cfg"

    property: str = ""
    distinct: int | None = None
    depth: int | None = None
    length: int | None = None
    seconds: float | None = None
    repaired: str = ""

    def config(self, **constants: int) -> Cfg:
        """Its cfg, with other numbers for the constants named: MaxLog=1."""
        text = (SPEC / "models" / self.cfg).read_text(encoding="utf-8")
        return parse_cfg(text, self.cfg).with_constants(**constants)


@dataclass(frozen=True)
class Comparison:
    """A model, what TLC found, and a line for each way in which that is not what is pinned."""

    model: Model
    result: Result
    differences: tuple[str, ...]

    @property
    def ok(self) -> bool:
        """Whether everything pinned was found."""
        return not self.differences

    def __str__(self) -> str:
        result, model = self.result, self.model
        found = result.outcome.value + (f" of {result.property}" if result.property else "")
        if result.counterexample:
            found += f" after {len(result.counterexample)} states"
        elif result.outcome is Outcome.SUCCESS:
            found += f", {result.distinct} states, depth {result.depth}"
        head = f"{'ok  ' if self.ok else 'FAIL'} {model.cfg}: {found} ({result.seconds:.1f} s)"
        return "\n".join([head, *(f"     {difference}" for difference in self.differences)])


def _model(entry: dict[str, Any], where: str) -> Model:
    known = {field.name for field in fields(Model)}
    unknown = sorted(set(entry) - known)
    if unknown:
        raise SpecError(f"{where}: expected only {', '.join(sorted(known))}; seen {', '.join(unknown)}: remove or rename it")
    missing = sorted({"module", "name", "mode", "expect", "tier"} - set(entry))
    if missing:
        raise SpecError(f"{where}: expected {', '.join(missing)}, seen none: add it")
    model = Model(**entry)
    outcomes = [outcome.value for outcome in Outcome if outcome is not Outcome.ERROR]
    for seen, allowed in ((model.expect, outcomes), (model.tier, TIERS), (model.mode, MODES)):
        if seen not in allowed:
            raise SpecError(f"{where}: expected one of {', '.join(allowed)}; seen {seen!r}")
    if model.expect in {Outcome.SAFETY.value, Outcome.LIVENESS.value} and not model.property:
        raise SpecError(f"{where}: expected the property that must fail, seen none: add property = ...")
    if not (SPEC / "models" / model.cfg).is_file():
        raise SpecError(f"{where}: expected the file models/{model.cfg}, seen none")
    if model.repaired and not (SPEC / "models" / model.module / f"{model.repaired}.cfg").is_file():
        raise SpecError(f"{where}: expected a repaired model beside it, seen no {model.repaired}.cfg")
    if model.expect == Outcome.LIVENESS.value and _only_property(model) != model.property:
        raise SpecError(f"{where}: expected PROPERTY {model.property} and no other one in its cfg, seen another")
    return model


def load_models(text: str | None = None) -> tuple[Model, ...]:
    """The models of models.toml, or of `text`. Raises SpecError with the entry that is wrong."""
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
    """The model of that name ("Small") or cfg. Raises SpecError with the names there are."""
    models = load_models()
    for model in models:
        if name in {model.name, model.cfg}:
            return model
    raise SpecError(f"expected a model, one of {', '.join(model.name for model in models)}; seen {name!r}")


def _only_property(model: Model) -> str:
    """The temporal property a model checks; "" when it checks none or several."""
    checked = model.config().properties
    return checked[0] if len(checked) == 1 else ""


def compare(model: Model, result: Result) -> Comparison:
    """Hold what TLC found against what is pinned."""
    if result.outcome is Outcome.ERROR:
        return Comparison(model, result, (f"expected {model.expect}, seen no verdict: {result.message}",))
    differences: list[str] = []

    def hold(what: str, expected: Any, seen: Any) -> None:
        if expected not in {None, ""} and expected != seen:
            differences.append(f"{what}: expected {expected}, seen {seen}")

    hold("outcome", model.expect, result.outcome.value)
    hold("property", model.property, result.property or _only_property(model))
    if model.expect != Outcome.LIVENESS.value:
        hold("states of the counterexample", model.length, len(result.counterexample))
    if model.expect == Outcome.SUCCESS.value and result.outcome is Outcome.SUCCESS:
        hold("distinct states", model.distinct, result.distinct)
        hold("depth", model.depth, result.depth)
    if differences:
        differences.append(f"if this is right, record it; if not, look at what changed in {model.module}.tla and below it")
    return Comparison(model, result, tuple(differences))


def run_model(
    model: Model,
    *,
    limits: Limits | None = None,
    on_progress: OnProgress | None = None,
    start: Start = ALONE,
) -> Comparison:
    """Run TLC on one model and compare; `start` if it is one of several."""
    options = start.options(limits or Limits(brief=model.tier == "small"))
    return compare(model, run_tlc(model.module, model.config().text(), on_progress=on_progress, **options))


def in_tier(tier: str) -> tuple[Model, ...]:
    """The models of a tier and of the cheaper ones, in the order of models.toml."""
    if tier not in TIERS:
        raise SpecError(f"expected a tier, one of {', '.join(TIERS)}; seen {tier!r}")
    return tuple(model for model in load_models() if TIERS.index(model.tier) <= TIERS.index(tier))


def run_models(
    models: Sequence[Model], *, limits: Limits | None = None, on_done: Callable[[Comparison], None] | None = None
) -> tuple[Comparison, ...]:
    """Run models two at a time; `on_done` hears of each, in the order given."""
    done: list[Comparison] = []
    with several(lambda model, start: run_model(model, limits=limits, start=start), models) as found:
        for comparison in found:
            done.append(comparison)
            if on_done:
                on_done(comparison)
    return tuple(done)


def run_tier(
    tier: str, *, limits: Limits | None = None, on_done: Callable[[Comparison], None] | None = None
) -> tuple[Comparison, ...]:
    """Run the models of a tier and of the cheaper ones, in the order of the file."""
    return run_models(in_tier(tier), limits=limits, on_done=on_done)


def _pins(comparison: Comparison) -> dict[str, str]:
    result = comparison.result
    pins = {"expect": f'"{result.outcome.value}"', "seconds": f"{result.seconds:.0f}"}
    if result.property:
        pins["property"] = f'"{result.property}"'
    if result.counterexample:
        return {**pins, "length": str(len(result.counterexample))}
    return {**pins, "distinct": str(result.distinct), "depth": str(result.depth)}


def recorded(text: str, comparisons: Iterable[Comparison]) -> str:
    """The text of models.toml with what was found pinned; comments and order stay. Runs without a verdict change nothing."""
    found = {c.model.name: _pins(c) for c in comparisons if c.result.outcome is not Outcome.ERROR}
    blocks = re.split(r"(?=^\[\[model\]\]$)", text, flags=re.MULTILINE)
    for number, block in enumerate(blocks):
        name = re.search(r'^name = "(.+)"$', block, flags=re.MULTILINE)
        if name and name[1] in found:
            blocks[number] = _pinned(block, found[name[1]])
    return "".join(blocks)


def _pinned(block: str, pins: dict[str, str]) -> str:
    """One entry with its pins replaced, or added after its last line that has a value."""
    for key, value in pins.items():
        line = re.compile(rf"^{key} = .*$", re.MULTILINE)
        if line.search(block):
            block = line.sub(f"{key} = {value}", block)
        else:
            end = max(found.end() for found in re.finditer(r"^\w+ = .*$", block, flags=re.MULTILINE))
            block = f"{block[:end]}\n{key} = {value}{block[end:]}"
    return block


def record(comparisons: Iterable[Comparison], path: Path | None = None) -> Path:
    """Pin what was found in models.toml (needs a checkout that can be written)."""
    path = path or SPEC / "models.toml"
    path.write_text(recorded(path.read_text(encoding="utf-8"), comparisons), encoding="utf-8")
    return path


def table(models: Iterable[Model]) -> str:
    """The models as a Markdown table: what README.md shows."""
    lines = ["| module | cfg | expected | states | depth | about |", "|---|---|---|---|---|---|"]
    for model in models:
        expected = model.expect + (f": {model.property}, {model.length} states" if model.property else "")
        states = "" if model.distinct is None else f"{model.distinct:,}"
        depth = "" if model.depth is None else str(model.depth)
        seconds = "" if model.seconds is None else f"{model.seconds:.0f} s"
        lines.append(f"| {model.module} | {model.name} | {expected} | {states} | {depth} | {seconds} |")
    return "\n".join(lines) + "\n"
