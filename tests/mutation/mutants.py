"""Small changes of a module: what its expressions may be mistaken for, and what may be left out of it."""

import ast
from collections.abc import Iterator

from validation import rule_mutants
from validation.rule_mutants import Mutant, Replacements, Swaps, confused

SWAPS: Swaps = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}


def mutants_of(source: str, calls: bool = False, more: Replacements | None = None) -> list[Mutant]:
    """Every mutant of every function of a module, in the order of the text.

    `calls`: also in what a bare call is given; `more`: what else an expression may be mistaken for.
    """

    def replacements(node: ast.expr) -> Iterator[ast.expr]:
        yield from _replacements(node)
        if more is not None:
            yield from more(node)

    return rule_mutants.mutants_of(source, replacements, calls)


def statements_less(source: str) -> list[Mutant]:
    """Each assignment to a place and each bare call left out."""
    tree = ast.parse(source)
    made: dict[str, Mutant] = {}
    for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
        bodies = [body for node in ast.walk(function) for _, body in ast.iter_fields(node) if isinstance(body, list)]
        for body in bodies:
            for at, statement in enumerate(body):
                if _is_update(statement):
                    body[at] = ast.Pass()
                    change, number = f"without {ast.unparse(statement)}", 1
                    while f"{function.name}: {change}" in made:
                        number += 1
                        change = f"without {ast.unparse(statement)} (no. {number})"
                    made[f"{function.name}: {change}"] = Mutant(function.name, change, ast.unparse(tree))
                    body[at] = statement
    return list(made.values())


def _is_update(node: object) -> bool:
    if isinstance(node, ast.Assign):
        return all(isinstance(target, ast.Subscript) for target in node.targets)
    return isinstance(node, ast.AugAssign) or (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call))


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    else:
        yield from confused(node, SWAPS)
