"""The mutator changes one expression at a time, and a child sees the change."""

import ast
from dataclasses import replace
from random import Random

import numpy as np
import pytest

from tests.conformance.hand import COPIED, FORKED, OPENING, TWO
from tests.conformance.judge.test_elected_again import FOLLOWED, elected
from tests.mutation import kernel, kernel_pool, kernel_probes
from tests.mutation.kernel_choice import cover
from tests.mutation.kernel_corpus import LITTLE, differences, tables, with_little_room
from tests.mutation.kernel_heirs import heirs
from tests.mutation.kernel_mutants import Confusions, KernelMutant, all_mutants, columns, functions_of, modules
from tests.mutation.kernel_probes import change_of, differing
from tests.mutation.kernel_runs import unreliable
from tests.mutation.kernel_watch import Watch
from tests.mutation.mutants import mutants_of, statements_less
from tests.mutation.prepared import prepared
from tests.mutation.run import KILLERS, killed, known_survivors, load_tables, path_of
from tidegauge.conformance.judge import state
from tidegauge.conformance.judge.state import FAILED_TRACES, HELD_COUNT, MOST_PAST, PAST_FULL
from tidegauge.traces.from_model.behaviour import numbered
from tidegauge.traces.schema import Trace
from validation.rule_mutants import Mutant

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
    text = path_of("partition_state").read_text(encoding="utf-8")
    tables = {name: sequences[:60] for name, sequences in load_tables(KILLERS["partition_state"][0]).items()}
    worst = next(mutant for mutant in mutants_of(text) if mutant.change.startswith("max(leader_end"))
    assert killed("partition_state", worst, tables)
    unchanged = Mutant("no function", "no change", text)
    assert not killed("partition_state", unchanged, tables)


def test_the_tests_of_a_room_see_the_mutant_and_not_the_original() -> None:
    """Though Tidegauge is a plugin of pytest, whose own import of it would pass the mutant by."""
    text = path_of("fetch_session").read_text(encoding="utf-8")
    assert not killed("fetch_session", Mutant("no function", "no change", text), {})
    assert killed("fetch_session", mutants_of(text)[0], {})


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


CONFUSED = """
def note(st: State, b: int, end: int) -> None:
    hw = st[s.REPLICAS + b, s.HW]
    if UNKNOWN in (hw, end):
        decide(st, RULE.HW_01, True, field.HW, hw, end)
    last = hw
"""


def test_the_judge_may_mistake_columns_locals_what_is_unknown_and_members() -> None:
    """A local for those beside it that have a value, a column also for one like it; not what a check that holds reports."""
    made = {mutant.change for mutant in mutants_of(CONFUSED, calls=True, more=Confusions(CONFUSED).of)}
    assert {change for change in made if change.startswith("s.HW")} == {
        *("s.HW -> s.LEO", "s.HW -> s.LOG_START", "s.HW -> s.HIGHEST_HW", "s.HW -> s.HW_MOVED")
    }
    assert {"UNKNOWN -> 0", "UNKNOWN -> -1", "(hw, end) -> (end,)", "(hw, end) -> (hw,)"} <= made
    assert {change for change in made if change.startswith(("b ->", "end ->", "hw ->"))} == {
        *("b -> end", "end -> b", "end -> hw", "hw -> end", "hw -> end (no. 2)")
    }
    assert {change for change in made if change.startswith("st")} == set()


def test_every_column_may_be_mistaken_for_one_beside_it() -> None:
    """But no row, and nothing that says where rows begin."""
    assert set(columns()["ISR"]) == {"EPOCH_START", "PENDING", "PROPOSED", "ASSIGNED"}
    assert not {"PARTITION", "AT_PAIRS"} & (set(columns()) | {other for others in columns().values() for other in others})


def test_a_change_that_does_not_end_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    """Probing goes on, and who judges with it is stopped as well."""
    monkeypatch.setattr(kernel_probes, "SECONDS", 0.02)
    text = functions_of("lifecycle")["start"].replace(
        "before != UNKNOWN and leo != UNKNOWN", "min(0 for _ in range(10**15))", 1
    )
    endless = KernelMutant("lifecycle", "start", "by hand", 1, text)
    assert differing([prepared("hand", [Trace("hand", "t-0", TWO, numbered(OPENING))])], [endless])[endless] == [0]


def test_a_mutant_of_the_judge_is_noticed_and_the_original_is_not() -> None:
    """One trace of a rule tells a judge without the check from the right one; then the judge is the right one again."""
    table = prepared("hand", [Trace("hand", "t-0", TWO, numbered(COPIED))])
    expected = [table.said()]
    made = {mutant.key: mutant for mutant in all_mutants(["leader", "lifecycle"])}
    without = next(mutant for key, mutant in made.items() if key.startswith("leader: leader_append: without leo_becomes("))
    assert list(Watch([table]).unnoticed([without])) == []
    assert table.said() == expected[0]
    elsewhere = next(mutant for key, mutant in made.items() if key.startswith("lifecycle: hw_checkpoint: without alive("))
    assert list(Watch([table]).unnoticed([elsewhere])) == [elsewhere]


def test_a_mutant_of_what_is_superseded_is_noticed_where_there_is_little_room() -> None:
    """Broker 1 lost everything: where the table is full, claims of the past are all that says so."""
    lost = Trace("hand", "t-0", TWO, numbered((*FOLLOWED, *elected(0))))
    made = all_mutants(["compaction"])
    without = next(
        mutant for mutant in made if mutant.key.startswith("compaction: inherit_claims: without st[later, past] = ")
    )
    roomy, crowded = prepared("roomy", [lost], 4 * len(lost.events)), prepared("crowded", [lost], LITTLE)
    assert list(Watch([roomy]).unnoticed([without])) == [without]
    assert list(Watch([roomy, crowded]).unnoticed([without])) == []
    assert [(table.name, table.full) for table in tables([lost])] == [("hand", False), ("hand", False), ("hand", True)]
    assert len(tables([Trace("hand", "t-0", TWO, numbered(OPENING))])) == 1


def test_a_full_table_forgets_and_goes_on() -> None:
    """One that may grow says that it is too small, and stops."""
    lost = Trace("hand", "t-0", TWO, numbered((*FOLLOWED, *elected(0))))
    *_, grows = prepared("grows", [lost], LITTLE).said()
    *_, goes_on = prepared("full", [lost], LITTLE, full=True).said()
    assert (grows, goes_on) == (PAST_FULL, 0)
    assert state.MOST_PAST == MOST_PAST


def test_traces_behind_each_other_stand_in_a_table_of_their_own() -> None:
    """Its rows are in another order, and the last state of the last trace is not asked for; what is said is the same."""
    one, two = (Trace(name, "t-0", TWO, numbered(events)) for name, events in (("o", OPENING), ("c", COPIED)))
    together, alone = prepared("both", [one, two]), [prepared(trace.name, [trace]) for trace in (one, two)]
    held = [np.frombuffer(table.said()[0], np.int64).reshape(-1, FAILED_TRACES + 1)[:, HELD_COUNT] for table in alone]
    assert (np.frombuffer(together.said()[0], np.int64).reshape(-1, FAILED_TRACES + 1)[:, HELD_COUNT] == sum(held)).all()
    assert together.said()[2] == alone[0].said()[2]


def test_a_table_is_asked_where_a_change_comes_to_anything_else() -> None:
    """Nobody stops here; and both brokers start for the first time, so where they ended before is not asked in any case."""
    made = {mutant.key: mutant for mutant in all_mutants(["lifecycle"])}
    starts, stops = (made[f"lifecycle: {name}: without process_gone(st, b)"] for name in ("start", "stop"))
    same = made["lifecycle: start: before != UNKNOWN and leo != UNKNOWN -> before != UNKNOWN"]
    apart = differing([prepared("hand", [Trace("hand", "t-0", TWO, numbered(OPENING))])], [starts, stops, same])
    assert (apart[starts], apart[stops], apart[same]) == ([0], [], [])


def test_a_conjunct_less_beside_what_cannot_be_reckoned_twice_differs_wherever_it_runs() -> None:
    """The probe stands in front of the statement."""
    whole, less = (ast.parse(text).body for text in ("if writes(a) and b and c: d = 1", "if writes(a) and b: d = 1"))
    place, value, changed = change_of(whole, less)
    assert (place.node, place.field, ast.unparse(value), ast.unparse(changed)) == (whole[0], "", "0", "1")


def test_unreliable_runs_hang_on_the_seed_alone() -> None:
    """And on nothing else: the same seed, the same traces."""
    run = Trace("hand", "t-0", TWO, numbered(COPIED))
    made = [unreliable(run, Random(seed)) for seed in (1, 1, *range(2, 20))]
    assert made[0] == made[1]
    assert any(trace.config != TWO for trace in made)
    assert any(len(trace.events) < len(COPIED) for trace in made)


def test_a_trace_is_in_the_stock_once_wherever_it_was_read() -> None:
    """The corpus itself is read again when it is chosen anew."""
    written = Trace("hand", "t-0", TWO, numbered(OPENING))
    read = replace(written, name="0001", events=tuple(replace(event, at="corpus:7") for event in written.events))
    assert len(kernel_pool.once((written, read))) == 1
    assert len(kernel_pool.once((written, replace(read, events=read.events[:-1])))) == 2


def test_a_trace_with_a_gap_is_in_the_stock() -> None:
    """The numbers of the other lines show it: all that was written is read."""
    events = numbered(OPENING)
    less = Trace("hand", "t-0", TWO, (*events[:2], *events[3:]))
    (read,) = kernel_pool.once([less])
    assert [event.seq for event in read.events] == [event.seq for event in less.events]


def test_runs_of_short_terms_hang_on_the_random_numbers_alone() -> None:
    """And most of them need more room than three terms take."""
    made = [heirs(Random(seed)) for seed in range(40)]
    assert made == [heirs(Random(seed)) for seed in range(40)]
    assert sum(bool(with_little_room(trace)) for trace in made) > 30


def test_a_mutant_that_does_not_end_is_noticed() -> None:
    """Here it looks at the same entry of a cache for ever."""
    table = prepared("hand", [Trace("hand", "t-0", TWO, numbered(FORKED))])
    (endless,) = (mutant for mutant in all_mutants(["lifecycle"]) if mutant.change == "without i += 1")
    assert list(Watch([table]).unnoticed([endless])) == []


def test_a_variant_is_chosen_when_it_notices_what_the_stock_does_not() -> None:
    """And once: the next one that notices the same mutant is left where it is."""
    opening, copied, forked = (
        Trace(name, "t-0", TWO, numbered(events)) for name, events in (("o", OPENING), ("c", COPIED), ("f", FORKED))
    )
    made = {mutant.key: mutant for mutant in all_mutants(["leader", "lifecycle"])}
    appends = next(mutant for key, mutant in made.items() if key.startswith("leader: leader_append: without leo_becomes("))
    nobody = next(mutant for key, mutant in made.items() if key.startswith("lifecycle: hw_checkpoint: without alive("))
    assert cover([appends, nobody], [opening], [copied, forked]) == ([copied], 1)
    assert cover([appends], [opening, copied], [forked]) == ([], 0)


def test_the_judge_says_of_the_corpus_what_is_pinned() -> None:
    """A judge that says anything else has changed: python -m tests.mutation.kernel_corpus says of which traces."""
    assert differences() == []


def test_every_survivor_of_the_kernel_that_is_listed_is_a_mutant() -> None:
    """A reason for a mutant that no longer exists is removed."""
    listed = kernel.known_survivors()
    assert set(listed) <= {mutant.key for mutant in all_mutants(modules())}
    assert all(len(reason) > 10 for reason in listed.values())
