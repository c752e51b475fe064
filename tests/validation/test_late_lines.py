"""Late lines: what was right stays right, lines are late only as Kafka could write them, and faults are told."""

import re
from collections.abc import Sequence
from pathlib import Path
from random import Random

import pytest

from tidegauge.conformance.checking.verdicts import Verdict
from validation.late_lines.delays import late
from validation.late_lines.early_ends import SIGNAL, end_early
from validation.late_lines.faults import FAULTS
from validation.late_lines.runs import (
    Source,
    ended_runs,
    faulty_runs,
    healthy_runs,
    judged,
    late_walks,
    small,
    unpacked,
    walked,
    walked_faults,
)
from validation.metamorphic.cases import logs

SEED, WALKED = 45, 47
WIDE = Path(__file__).parents[1] / "kafka_logs" / "wide"


@pytest.fixture(scope="module")
def wide(tmp_path_factory: pytest.TempPathFactory) -> list[Source]:
    """The kept cases, unpacked."""
    return unpacked(WIDE, tmp_path_factory.mktemp("wide"))


def test_what_was_right_stays_right(wide: list[Source]) -> None:
    """`python -m validation.late_lines` makes a run again by seed and number."""
    sources = [*wide, *small()]
    said = [f"seed {SEED}, {run}" for run in healthy_runs(sources, SEED, 12) if run.noticed_late]
    assert said == []


def test_walks_of_the_reference_stay_right() -> None:
    """`python -m validation.late_lines --walks` judges such directories; some of the walks truncate and change leaders."""
    directories = [late_walks(WALKED, number, 40)[0] for number in range(2)]
    text = "".join(line for one in directories for files in one.histories.values() for of in files.values() for line in of)
    assert all(words in text for words in ("Truncating to offset", "Shrinking ISR", "PendingExpandIsr", "leader epoch 1"))
    runs = [walked(WALKED, number, 40) for number in range(2)]
    assert [wrong for run in runs for wrong in run.wrong] == []
    assert all(run.moved for run in runs)


def test_a_fault_in_a_walk_is_told_of_it() -> None:
    """Most of them; a walk may end before anything shows it."""
    said = walked_faults(SEED, 0, 26)
    noticed, runs = (sum(count for (_, what), count in said.items() if what == one) for one in ("late", "runs"))
    assert 2 * noticed > runs > 10


def test_logs_that_end_early_stay_right(wide: list[Source]) -> None:
    """`python -m validation.late_lines --ends` makes such runs."""
    runs = list(ended_runs(wide, SEED, 4))
    assert runs
    assert [run for run in runs if run[2]] == []


def test_a_logger_that_ends_prints_nothing_behind_it(wide: list[Source]) -> None:
    """Lines before the signal all stay; behind the end of the last logger some loggers alone go on."""
    files = dict(logs(next(one for one in wide if one.name == "shrink-append").folder))
    made = end_early(Random(SEED), files)
    assert made is not None
    assert sum(map(len, made.values())) < sum(map(len, files.values()))
    for path, lines in made.items():
        assert _messages([line for line in lines if SIGNAL in line]) == _messages([x for x in files[path] if SIGNAL in x])
        assert set(_messages(lines)) <= set(_messages(files[path]))


def test_a_fault_is_told_with_late_lines_and_without(wide: list[Source]) -> None:
    """A response with another high watermark, and an append that is lost, leave no order."""
    some = {name: FAULTS[name] for name in ("log end of an append", "an append lost")}
    runs = list(faulty_runs(wide, SEED, 4, some))
    assert [(run.fault, run.noticed_in_time, run.noticed_late) for run in runs] == [(run.fault, True, True) for run in runs]
    assert len(runs) == 4


def test_a_line_that_passes_one_of_its_own_thread_is_told(wide: list[Source]) -> None:
    """The suite can fail: an append printed in front of the one before it, of the same thread and log."""
    source = next(one for one in wide if one.name == "shrink-append")
    files = dict(logs(source.folder))
    path, lines = next((path, lines) for path, lines in sorted(files.items()) if sum(_appended(line) for line in lines) > 2)
    first, second = [at for at, line in enumerate(lines) if _appended(line)][:2]
    swapped = [*lines]
    swapped[first], swapped[second] = lines[second], lines[first]
    assert judged(source, files | {path: swapped}).verdict is not Verdict.PASS


def _appended(line: str) -> bool:
    return "request-handler" in line and "Appended message set" in line


def _thread(line: str) -> str:
    found = re.match(r"\[[^\]]+\] [A-Z]+ \[([^\]]+)\]", line)
    return found[1] if found is not None else ""


def _messages(lines: Sequence[str]) -> list[str]:
    return [re.sub(r"^\[[^\]]+\]", "", line) for line in lines]


@pytest.mark.parametrize("place_only", [False, True])
def test_threads_and_locks_keep_their_order(wide: list[Source], place_only: bool) -> None:
    """No line is lost or changed but in its stamp; a thread's lines, and those of a log, stay in their order."""
    source = next(one for one in wide if one.name == "append-raises-hw")
    files = logs(source.folder)
    made = late(Random(SEED), files, place_only=place_only)
    assert made.passed > 0
    assert made.moved > 0
    for path, lines in files.items():
        moved = made.files[path]
        assert sorted(_messages(moved)) == sorted(_messages(lines))
        assert place_only is False or sorted(moved) == sorted(lines)
        for thread in {_thread(line) for line in lines}:
            assert _messages([line for line in moved if _thread(line) == thread]) == _messages(
                [line for line in lines if _thread(line) == thread]
            )
        for log in set(re.findall(r"UnifiedLog partition=[\w-]+", "\n".join(lines))):
            assert _messages([line for line in moved if log in line]) == _messages([line for line in lines if log in line])


def test_the_same_seed_makes_the_same_logs(wide: list[Source]) -> None:
    """A run can be looked at again."""
    files = logs(wide[0].folder)
    assert late(Random(SEED), files) == late(Random(SEED), files)
    assert late(Random(SEED), files) != late(Random(SEED + 1), files)


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_changes_one_thing(name: str, wide: list[Source]) -> None:
    """Lines of one file, three at most."""
    files = dict(logs(next(one for one in wide if one.name == "late-append-line").folder))
    faulty = FAULTS[name](Random(SEED), files)
    assert faulty is not None
    (path,) = [path for path in files if faulty[path] != files[path]]
    gone = set(files[path]) - set(faulty[path])
    assert 1 <= len(gone) <= 3
