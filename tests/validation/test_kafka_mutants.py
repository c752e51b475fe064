"""Changed classes of Kafka as mutants: the list, what is committed of their runs, and the agent on a class of its own."""

import os
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest

from tidegauge.util.java import find_java
from validation.docs.tables import page_with
from validation.kafka_mutants import __main__ as mutants
from validation.kafka_mutants.agent import BYTE_BUDDY, in_each_jvm

PROGRAM = """
public class Changed {
    static final String NAMED = "abcdef".strip(), OTHER = "abcdefgh".strip();
    static int calls;
    static boolean less(int a, int b) { return a < b; }
    static long sum(long a) { return twice(a) + 1; }
    static long twice(long a) { return 2 * a; }
    static void count(long by) { calls += by; }
    static void name() { count(NAMED.length() - 3); }
    public static void main(String[] args) {
        name();
        System.out.println(less(1, 2) + " " + less(2, 2) + " " + less(3, 2) + " " + sum(5) + " " + calls);
    }
}
"""
CHANGES = {
    "Changed less jump 0 invert": "false true true 11 3",
    "Changed less jump 0 never": "true true true 11 3",
    "Changed less jump 0 always": "false false false 11 3",
    "Changed less jump 0 boundary": "true true false 11 3",
    "Changed less return not": "false true true 11 3",
    "Changed sum call twice 0 +4": "true false false 15 3",
    "Changed sum call twice * 7": "true false false 8 3",
    "Changed sum return -1": "true false false 10 3",
    "Changed name field NAMED 0 OTHER": "true false false 11 5",
}


def test_the_list_has_more_than_enough_mutants_of_each_kind() -> None:
    _, listed = mutants.listed()
    names = Counter(mutant.name for mutant in listed)
    assert len(listed) >= 25
    assert max(names.values()) == 1
    assert Counter(mutant.of for mutant in listed).keys() == {"broker", "controller"}
    assert {mutant.kind for mutant in listed} == {"refusals", "contract", "time", "rare"}
    assert set(mutants.results()) <= {mutant.name for mutant in listed if not mutant.equivalent}


def test_all_but_one_in_25_are_found_or_named_as_not_seen() -> None:
    """One that was not run counts as not found."""
    seen = {name for name, result in mutants.results().items() if result.after}
    asked = [mutant for mutant in mutants.listed()[1] if not mutant.equivalent]
    assert 25 * sum(mutant.is_named or mutant.name in seen for mutant in asked) >= 24 * len(asked)


def test_the_page_has_the_committed_results() -> None:
    page = mutants.PAGE.read_text(encoding="utf-8")
    assert page == page_with({"mutants": mutants.result_table()}, mutants.MAKER, page)


def test_a_method_is_named_without_what_the_compiler_adds() -> None:
    def named(change: str) -> str:
        return mutants.Mutant("", "broker", "rare", "", change).method

    assert named("kafka.cluster.Partition $anonfun$makeLeader$1 jump 0 always") == "Partition#makeLeader"
    assert named("a.b.Replica lambda$updateFetchStateOrThrow$0 return true") == "Replica#updateFetchStateOrThrow"
    assert named("kafka.cluster.Partition shouldWaitForReplicaToJoinIsr$1 return true") == (
        "Partition#shouldWaitForReplicaToJoinIsr"
    )
    assert named("a.FetchContext$Incremental update jump 0 always") == "FetchContext$Incremental#update"


def _run(folder: Path) -> subprocess.CompletedProcess[str]:
    # The options of the agent are in the environment of this process.
    command = [str(find_java().path), "-cp", str(folder), "Changed"]
    return subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ)


@pytest.mark.long
@pytest.mark.skipif(not (shutil.which("mvn") and shutil.which("javac")), reason=f"needs javac, and mvn for {BYTE_BUDDY[1]}")
def test_the_agent_makes_each_kind_of_change_and_refuses_one_that_fits_nowhere(tmp_path: Path) -> None:
    (tmp_path / "Changed.java").write_text(PROGRAM, encoding="utf-8")
    subprocess.run([str(shutil.which("javac")), "-d", str(tmp_path), str(tmp_path / "Changed.java")], check=True)
    seen = {}
    for change in CHANGES:
        with in_each_jvm([change]) as processes:
            seen[change] = _run(tmp_path).stdout.strip()
            assert processes.applied() == {1}
    assert seen == CHANGES
    # All changes are in each process, and one is in effect, or none.
    apart = ["Changed less jump 0 invert", "Changed sum return -1"]
    with in_each_jvm(apart) as processes:
        for number, printed in enumerate(("true false false 11 3", *map(CHANGES.get, apart))):
            processes.activate(number)
            assert _run(tmp_path).stdout.strip() == printed
    with in_each_jvm(["Changed less jump 7 invert"]):
        ended = _run(tmp_path)
    assert ended.returncode == 97
    assert "fits nowhere" in ended.stderr
    assert not ended.stdout
