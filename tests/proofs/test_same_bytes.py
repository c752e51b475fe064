"""The same question has the same response, letter by letter, in any process and whatever was proved before."""

import os
import subprocess
import sys
from pathlib import Path as File

import pytest

from tests.proofs.test_prove import broken
from tidegauge.spec.proofs.engine.paths import ProofPath, explore
from tidegauge.spec.proofs.premises import all_groups
from tidegauge.spec.proofs.prove import prove_group

ROOT = File(__file__).parents[2]

REPORTED = """
import sys
from tidegauge.spec.proofs.prove import prove_group
from tidegauge.spec.proofs.premises import all_groups
for name in sys.argv[2:]:
    print("group", name)
    for text in (None, open(sys.argv[1], encoding="utf-8").read()):
        result = prove_group(all_groups()[name], max_entries=2, source=text)
        for goal in result.goals:
            print("\\n".join(goal.describe()))
"""
QUICK = ("responses", "high-watermark", "loops", "fetch")
GROUPS = ("needed", "removals", *QUICK)


def reported(tmp_path: File, groups: tuple[str, ...], seed: str) -> dict[str, str]:
    """What a process of its own says, with other hash seeds and another order of the groups."""
    wrong = tmp_path / "rules.py"
    wrong.write_text(broken("values[n] <= bound", "values[n] < bound"), encoding="utf-8")
    said = {}
    environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", REPORTED, str(wrong), *groups], capture_output=True, env=environment, cwd=ROOT, check=True
    )
    for part in done.stdout.decode().split("group ")[1:]:
        name, _, text = part.partition("\n")
        said[name] = text
    return said


@pytest.mark.parametrize("groups", [pytest.param(QUICK, id="quick"), pytest.param(GROUPS, id="all", marks=pytest.mark.long)])
def test_every_counter_model_is_the_same_in_another_process(groups: tuple[str, ...], tmp_path: File) -> None:
    """Two processes that prove the groups in opposite orders print the same models."""
    one, other = reported(tmp_path, groups, "1"), reported(tmp_path, groups[::-1], "2")
    assert set(one) == set(groups)
    assert one == other
    assert sum(text.count("COUNTER-MODEL") for text in one.values()) >= 5


@pytest.mark.parametrize("removal", ["kip-101", "records-match"])
def test_a_scenario_and_its_trace_are_the_same_bytes_again(removal: str, tmp_path: File) -> None:
    """A scenario with `--trace` writes and prints the same bytes in two processes."""
    runs = []
    for seed in ("1", "2"):
        out = tmp_path / seed
        done = subprocess.run(
            [sys.executable, "-m", "validation.premises", removal, "--trace", str(out)],
            capture_output=True,
            env={**os.environ, "PYTHONHASHSEED": seed},
            cwd=ROOT,
            check=True,
        )
        runs.append((done.stdout, {path.name: path.read_bytes() for path in sorted(out.iterdir())}))
    assert runs[0] == runs[1]
    assert all(runs[0][1].values())


def test_a_counter_model_is_the_least_one() -> None:
    """Value by value in the order they were made, nearest to zero, positive before negative, false before true."""

    def lemma(path: ProofPath) -> None:
        a, b, c = path.integer("a"), path.integer("b", low=3), path.integer("c")
        truth = path.boolean("truth")
        path.assume(c * c == 4)
        path.goal("no such numbers", a + b < 205)
        path.goal("truth", truth)

    tally = explore(lemma, {})
    assert tally.refuted["no such numbers"].values == {"a": 0, "b": 205, "c": 2, "truth": False}
    assert tally.refuted["truth"].values == {"a": 0, "b": 3, "c": 2, "truth": False}


def test_a_group_of_removals_tells_the_same_after_others() -> None:
    """What this process has proved before leaves no trace in the models."""
    first = prove_group(all_groups()["removals"], max_entries=2)
    prove_group(all_groups()["fetch"], max_entries=2)
    again = prove_group(all_groups()["removals"], max_entries=2)
    assert [goal.describe() for goal in first.goals] == [goal.describe() for goal in again.goals]
