"""Symbolic execution of the rules: the same code objects, other globals. This file holds the values and the overlay.

Rules of this file

1. A rule is never translated. `types.FunctionType(rule.__code__, overlay)` runs its own byte code; the overlay replaces
   `len`, `min`, `max` and, for proofs without a bound on lengths, the counting helpers. What is proved is what runs.
2. A comparison of symbolic ints is a symbolic bool. Where the byte code needs its truth, the path decides (`paths.py`).
3. The overlay's builtins are the four names of BUILTINS. A rule that uses another one fails with a NameError.
4. Reading outside a sequence is an error, at a negative index too.

Terms: a *term* is a z3 expression; `Int`, `Bool`, `Seq` and `AnySeq` wrap terms, so that the byte code of a rule can work
with them. An *overlay* is the dictionary of globals with which the rules run here. The *path* (`ProofPath`) is one run of a
lemma: it decides symbolic conditions and collects goals.
"""

import types
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import z3

if TYPE_CHECKING:
    from tidegauge.spec.proofs.engine.paths import ProofPath


class OutOfRangeError(Exception):
    """A rule read outside a sequence."""


def term(value: Any) -> Any:
    """Return the z3 term of an `Int` or `Bool`; any other value as it is."""
    return value.term if isinstance(value, (Int, Bool)) else value


class Int:
    """An integer given by a z3 term; plain ints stay plain. Arithmetic gives an Int, a comparison a Bool."""

    __hash__ = None  # type: ignore[assignment]
    __slots__ = ("path", "term")

    def __init__(self, path: "ProofPath", term: Any) -> None:
        """Wrap an integer term for use on this path."""
        self.path = path
        self.term = term

    def __add__(self, other: Any) -> "Int":
        return Int(self.path, self.term + term(other))

    def __radd__(self, other: Any) -> "Int":
        return Int(self.path, term(other) + self.term)

    def __sub__(self, other: Any) -> "Int":
        return Int(self.path, self.term - term(other))

    def __rsub__(self, other: Any) -> "Int":
        return Int(self.path, term(other) - self.term)

    def __lt__(self, other: Any) -> "Bool":
        return Bool(self.path, self.term < term(other))

    def __le__(self, other: Any) -> "Bool":
        return Bool(self.path, self.term <= term(other))

    def __gt__(self, other: Any) -> "Bool":
        return Bool(self.path, self.term > term(other))

    def __ge__(self, other: Any) -> "Bool":
        return Bool(self.path, self.term >= term(other))

    def __eq__(self, other: object) -> Any:
        return Bool(self.path, self.term == term(other))

    def __ne__(self, other: object) -> Any:
        return Bool(self.path, self.term != term(other))


class Bool:
    """A truth value given by a z3 formula. Asking for its truth forks the execution."""

    __slots__ = ("path", "term")

    def __init__(self, path: "ProofPath", term: Any) -> None:
        """Wrap a formula for use on this path."""
        self.path = path
        self.term = term

    def __bool__(self) -> bool:
        """Return the truth value that this path takes for the formula; another path takes the other one if it can hold."""
        return self.path.decide(self.term)


class Seq:
    """A sequence of known length with symbolic members. Reading outside it is an error, a negative index too."""

    __slots__ = ("members", "path")

    def __init__(self, path: "ProofPath", members: Sequence[Any]) -> None:
        """Take the members: terms, plain numbers or truth values."""
        self.path = path
        self.members = members

    def length(self) -> int:
        """Return the number of members."""
        return len(self.members)

    def __getitem__(self, index: Any) -> Any:
        """Return the member at a plain int, wrapped in Int or Bool if it is a term. Raises OutOfRangeError, TypeError."""
        self.path.count_step()
        # A symbolic index would need a branch per member. The rules index with counts that are plain ints here.
        if not isinstance(index, int):
            raise TypeError("a sequence of known length is read at a symbolic index")
        if not 0 <= index < len(self.members):
            raise OutOfRangeError(f"index {index} of a sequence of length {len(self.members)}")
        return self.path.lift(self.members[index])


class AnySeq:
    """A sequence of unknown length: a function of the index. Every read is an obligation to stay inside."""

    __slots__ = ("function", "path", "size")

    def __init__(self, path: "ProofPath", function: Any, size: Any) -> None:
        """Take the function from index to member, and the length, a term."""
        self.path = path
        self.function = function
        self.size = size

    def length(self) -> Int:
        """Return the number of members as a symbolic int."""
        return Int(self.path, self.size)

    def __getitem__(self, index: Any) -> Any:
        """Return the member at an index, plain or symbolic, and set as a goal of the path that the index is in range."""
        self.path.count_step()
        at = term(index)
        # The length is a term here, so it must be proved that the read stays inside; `Seq` can compare numbers.
        self.path.goal("every index in range", z3.And(at >= 0, at < self.size))
        return self.path.lift(self.function(at))


def _is_symbolic(value: Any) -> bool:
    """Return whether a number of a rule is an `Int`, and not a plain int."""
    return isinstance(value, Int)


def _length(values: Any) -> Any:
    """Return the length of a `Seq` or `AnySeq`: `len` itself must return a plain int."""
    return values.length()


def _lower(a: Any, b: Any) -> Any:
    """Return the smaller of two numbers, one term if either is symbolic: `min` would compare them and fork the path."""
    if not _is_symbolic(a) and not _is_symbolic(b):
        return min(a, b)
    path = a.path if _is_symbolic(a) else b.path
    return Int(path, z3.If(term(a) <= term(b), term(a), term(b)))


def _higher(a: Any, b: Any) -> Any:
    """Return the larger of two numbers, one term if either is symbolic: `max` would compare them and fork the path."""
    if not _is_symbolic(a) and not _is_symbolic(b):
        return max(a, b)
    path = a.path if _is_symbolic(a) else b.path
    return Int(path, z3.If(term(a) >= term(b), term(a), term(b)))


BUILTINS: dict[str, Any] = {"len": _length, "min": _lower, "max": _higher, "range": range}
"""The builtins a rule may use, in their symbolic form."""


def symbolic_rules(namespace: Mapping[str, Any], contracts: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the overlay: each function of `namespace` as a new one on the same code object, and its integer constants.

    `contracts` replaces functions by name, for proofs about sequences of any length.
    """
    overlay: dict[str, Any] = {"__builtins__": BUILTINS}
    for name, value in namespace.items():
        if isinstance(value, types.FunctionType):
            # The same overlay for all: a rule that calls another one calls its symbolic version.
            overlay[name] = types.FunctionType(value.__code__, overlay, name)
        elif isinstance(value, int):
            overlay[name] = value
    # After the loop: a contract replaces the helper of its name in every rule that calls it.
    overlay.update(contracts or {})
    return overlay


def evaluate(model: Any, value: Any) -> Any:
    """Return a value as plain Python in a z3 `model`: a term, a list of terms, or an object with `describe(model)`.

    A variable on which nothing depends has no value in the model; completion gives it one.
    """
    if hasattr(value, "describe"):
        return value.describe(model)
    if isinstance(value, (list, tuple)):
        return [evaluate(model, member) for member in value]
    if isinstance(value, z3.BoolRef):
        return z3.is_true(model.eval(value, model_completion=True))
    if isinstance(value, z3.ExprRef):
        return model.eval(value, model_completion=True).as_long()
    return value


def all_of(conditions: Iterable[Any]) -> Any:
    """Return the conjunction; true when empty."""
    return z3.And(list(conditions))


def any_of(conditions: Iterable[Any]) -> Any:
    """Return the disjunction; false when empty."""
    return z3.Or(list(conditions))


def lower(*values: Any) -> Any:
    """Return the minimum of terms or numbers as one term, for the statements of lemmas."""
    result = values[0]
    for value in values[1:]:
        result = z3.If(result <= value, result, value)
    return result


def higher(*values: Any) -> Any:
    """Return the maximum of terms or numbers as one term, for the statements of lemmas."""
    result = values[0]
    for value in values[1:]:
        result = z3.If(result >= value, result, value)
    return result
