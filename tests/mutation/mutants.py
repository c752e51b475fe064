"""Small changes of a module of `impl`: what its expressions may be mistaken for."""

import ast
from collections.abc import Iterator

from tidegauge.spec.proofs import small_changes
from tidegauge.spec.proofs.small_changes import Mutant, Swaps, confused

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


def mutants_of(source: str) -> list[Mutant]:
    """Every mutant of every function of a module, in the order of the text."""
    return small_changes.mutants_of(source, _replacements)


def _replacements(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.IfExp):
        yield from (node.body, node.orelse)
    else:
        yield from confused(node, SWAPS)
