"""The code of an invariant's conjuncts, run on plain values: nothing is said twice, and what is proved is what is tested."""

import types
from collections.abc import Callable, Iterable
from typing import Any

from tidegauge.spec.proofs.engine.induction import Conjunct


class Plain:
    """The connectives of z3 on plain values."""

    And = staticmethod(lambda *parts: all(parts))
    Or = staticmethod(lambda *parts: any(parts))
    Not = staticmethod(lambda part: not part)
    Implies = staticmethod(lambda left, right: not left or right)
    If = staticmethod(lambda test, yes, no: yes if test else no)


def plain_conjuncts(symbolic: types.ModuleType, conjuncts: Iterable[Conjunct]) -> dict[str, Callable[..., bool]]:
    """By name, every conjunct's own code object and those of the functions of `symbolic` that it calls."""
    overlay: dict[str, Any] = {
        "__builtins__": __builtins__,
        **{k: v for k, v in vars(symbolic).items() if isinstance(v, int)},
    }
    for name, value in vars(symbolic).items():
        if isinstance(value, types.FunctionType) and value.__module__ == symbolic.__name__:
            overlay[name] = types.FunctionType(value.__code__, overlay)
    overlay |= {"z3": Plain, "lower": min}
    return {c.name: types.FunctionType(c.holds.__code__, overlay) for c in conjuncts}
