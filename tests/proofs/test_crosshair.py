"""A second opinion: CrossHair confirms the bounded lemmas, and refutes them for broken rules."""

import inspect
import os
import re
import subprocess
import sys
from pathlib import Path as File

import pytest

from tidegauge.impl import rules

pytest.importorskip("crosshair", reason="CrossHair is installed by `tox -e proofs` only")

LEMMAS = File(__file__).with_name("crosshair_lemmas.py")
NAMES = re.findall(r"^    (\w+),\n", LEMMAS.read_text(encoding="utf-8").partition("\nLEMMAS = (")[2], re.MULTILINE)


def crosshair(path: File) -> tuple[int, list[str]]:
    """Exit code and messages of `crosshair check`, in a process of its own: CrossHair patches the one it runs in."""
    ran = subprocess.run(
        [sys.executable, "-m", "crosshair", "check", "--report_all", "--per_condition_timeout", "60", str(path)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(path.parent), *sys.path])},
    )
    return ran.returncode, ran.stdout.splitlines() + ran.stderr.splitlines()


def test_crosshair_confirms_every_lemma() -> None:
    """Not one is left undecided."""
    code, messages = crosshair(LEMMAS)
    assert code == 0, messages
    assert [m.partition("info: ")[2] for m in messages] == ["Confirmed over all paths."] * len(NAMES), messages


@pytest.mark.parametrize(
    ("old", "new", "lemma"),
    [
        ("values[n] <= bound", "values[n] < bound", "answer_is_where_later_epochs_begin"),
        ("values[n] < bound", "values[n] <= bound", "assign_keeps_the_cache_increasing"),
        ("epoch < last_fetched_epoch or", "epoch <= last_fetched_epoch or", "one_fetch"),
        ("if requested < local", "if requested > local", "only_the_same_epoch_is_served"),
        ("values[i] < lowest", "values[i] > lowest", "the_leader_waits_for_everybody_counted"),
        ("return leo >= hw and leo >= epoch_start", "return leo > hw and leo >= epoch_start", "who_joins_has_both"),
        ("False\n    return 5", "True\n    return 5", "one_epoch_round"),
    ],
)
def test_crosshair_refutes_a_broken_rule(old: str, new: str, lemma: str, tmp_path: File) -> None:
    """A lemma about a rule with one place changed is false, with the arguments that show it."""
    source = inspect.getsource(rules)
    assert source.count(old) == 1
    (tmp_path / "broken_rules.py").write_text(source.replace(old, new), encoding="utf-8")
    lemmas = LEMMAS.read_text(encoding="utf-8").replace("from tidegauge.impl.rules import", "from broken_rules import")
    (tmp_path / "broken_lemmas.py").write_text(lemmas, encoding="utf-8")
    code, messages = crosshair(tmp_path / "broken_lemmas.py")
    assert code == 1, messages
    assert any(f"false when calling {lemma}(" in message for message in messages), messages
