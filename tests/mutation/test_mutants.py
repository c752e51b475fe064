"""The mutator changes one expression at a time, and a child sees the change."""

import ast

from tests.conformance.hand import COPIED, TWO
from tests.mutation import kernel
from tests.mutation.kernel_corpus import Judged, said
from tests.mutation.mutants import mutants_of, statements_less
from tests.mutation.run import KILLERS, killed, known_survivors, load_tables, path_of
from tidegauge.conformance.judging.judge import judge
from tidegauge.spec.proofs.small_changes import Mutant
from tidegauge.traces.columns import to_columns
from tidegauge.traces.model.behaviour import numbered
from tidegauge.traces.schema import Trace

SOURCE = '''
def rule(a: int, b: int) -> int:
    """Docstrings stay: 1 < 2."""
    if a < b and not a == 3:
        raise ValueError(f"{a} < {b}")
    return min(a, b) if a else b + 1
'''


def test_one_expression_changes_and_texts_stay() -> None:
    """Comparisons, and / or, not, numbers, min / max, conditionals; no message, no docstring."""
    made = mutants_of(SOURCE)
    changes = [mutant.change for mutant in made]
    assert "a < b -> a <= b" in changes
    assert "a < b and (not a == 3) -> a < b or not a == 3" in changes
    assert "not a == 3 -> a == 3" in changes
    assert "3 -> 4" in changes
    assert "min(a, b) -> max(a, b)" in changes
    assert "min(a, b) if a else b + 1 -> b + 1" in changes
    assert "b + 1 -> b - 1" in changes
    original = ast.unparse(ast.parse(SOURCE))
    for mutant in made:
        changed = [one for one, two in zip(original.splitlines(), mutant.source.splitlines(), strict=True) if one != two]
        assert len(changed) == 1
        assert "ValueError" not in changed[0]
        assert "Docstrings" not in changed[0]
    assert len({mutant.key for mutant in made}) == len(made)


def test_a_mutant_is_killed_and_the_original_is_not() -> None:
    """The histories of Kafka's classes tell a changed module from the right one."""
    text = path_of("replica").read_text(encoding="utf-8")
    tables = {name: sequences[:60] for name, sequences in load_tables(KILLERS["replica"][0]).items()}
    worst = next(mutant for mutant in mutants_of(text) if mutant.change.startswith("max(leader_end"))
    assert killed("replica", worst, tables)
    unchanged = Mutant("no function", "no change", text)
    assert not killed("replica", unchanged, tables)


def test_every_listed_survivor_is_a_mutant() -> None:
    """A reason for a mutant that no longer exists is removed."""
    for module, rows in known_survivors().items():
        made = {mutant.key for mutant in mutants_of(path_of(module).read_text(encoding="utf-8"))}
        assert set(rows) <= made
        assert all(len(reason) > 10 for reason in rows.values())


UPDATES = '''
def note(st: list[int], ok: bool) -> None:
    """What is known."""
    decide(st, ok, 1)
    if ok:
        st[0] = 1
        st[1] += 2
    known = 3
    return None
'''


def test_statements_that_update_or_check_are_left_out_one_at_a_time() -> None:
    """A bare call, what is assigned to a place, what is added; docstrings, names and what is returned stay."""
    changes = [mutant.change for mutant in statements_less(UPDATES)]
    assert changes == ["without decide(st, ok, 1)", "without st[0] = 1", "without st[1] += 2"]
    assert any("1 -> 2" in mutant.change for mutant in mutants_of(UPDATES, calls=True))
    assert not any("decide" in mutant.change for mutant in mutants_of(UPDATES))


def test_a_mutant_of_the_judge_is_noticed_and_the_original_is_not() -> None:
    """One trace of a rule tells a judge without the check from the right one; a change nobody can see is not noticed."""
    columns = to_columns([Trace("hand", "t-0", TWO, numbered(COPIED))], TWO)
    traces = [Judged(columns, TWO)]
    expected = [repr(said(traces[0], judge))]
    text = (kernel.ROOT / "leader.py").read_text(encoding="utf-8")
    assert not kernel.noticed("leader", text, traces, expected)
    without = next(mutant for mutant in statements_less(text) if mutant.change.startswith("without leo_becomes("))
    assert kernel.noticed("leader", without.source, traces, expected)
    assert kernel.noticed("leader", text.replace("    alive(st, b)\n", "    alive(st, nobody)\n", 1), traces, expected)
