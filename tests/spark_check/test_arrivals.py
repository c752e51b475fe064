"""What arrived in a directory, as a log: each version once, whatever its writer dies of."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegauge.spark_check.source import Arrivals, last_look, log_in
from tidegauge.spark_check.worker import file_fingerprint
from tidegauge.util.errors import TidegaugeError

JUDGE = "a judge"
STEP = st.one_of(
    st.tuples(st.just("write"), st.sampled_from("abc"), st.integers(1, 9)),
    st.tuples(st.just("look"), st.integers(1, 3)),
    st.tuples(st.just("killed"), st.binary(max_size=20).filter(lambda torn: b"\n" not in torn)),
)


def listed(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.parquet"))


@given(st.lists(STEP, max_size=20))
def test_each_version_that_was_seen_arrives_once(steps: list[tuple[object, ...]]) -> None:
    """Whoever is killed leaves the beginning of a line; what had been given away stands where it stood."""
    with TemporaryDirectory() as name:
        folder = Path(name)
        log = Arrivals(log_in(folder))
        seen: list[tuple[str, str]] = []
        for step in steps:
            if step[0] == "write":
                (folder / f"{step[1]}.parquet").write_bytes(b"x" * int(str(step[2])))
            elif step[0] == "look":
                before = log.end
                end = log.look(listed(folder), JUDGE, int(str(step[1])))
                new = log.between(before, end)
                assert len(new) <= int(str(step[1]))
                assert all(file_fingerprint(one.path, JUDGE) == one.mark for one in new)
                seen += new
            elif log.path.exists():
                with log.path.open("ab") as file:
                    file.write(step[1] if isinstance(step[1], bytes) else b"")
                log = Arrivals(log.path)
        log.look(listed(folder), JUDGE)
        arrived = Arrivals(log.path).between(0, log.end)
        assert arrived[: len(seen)] == seen
        assert len({one.mark for one in arrived}) == len(arrived)
        assert {file_fingerprint(path, JUDGE) for path in listed(folder)} <= {one.mark for one in arrived}


def test_another_judge_is_asked_about_all(tmp_path: Path) -> None:
    (tmp_path / "a.parquet").write_bytes(b"a")
    log = Arrivals(log_in(tmp_path))
    first = log.look(listed(tmp_path), JUDGE)
    assert log.look(listed(tmp_path), JUDGE) == first
    assert log.look(listed(tmp_path), "another judge") > first


def test_a_look_that_finds_nothing_is_seen(tmp_path: Path) -> None:
    assert last_look(tmp_path) == 0
    log = Arrivals(log_in(tmp_path))
    log.look([], JUDGE)
    first = last_look(tmp_path)
    assert first > 0
    os.utime(log.path, ns=(0, 1))
    log.look([], JUDGE)
    assert last_look(tmp_path) >= first


def test_a_file_that_is_gone_does_not_arrive(tmp_path: Path) -> None:
    assert Arrivals(log_in(tmp_path)).look([tmp_path / "gone.parquet"], JUDGE) == 0


@pytest.mark.parametrize(("start", "end"), [(0, 999), (999, 999), (999, 0)])
def test_a_position_of_another_log_is_refused(start: int, end: int, tmp_path: Path) -> None:
    """As of a checkpoint whose log was removed; what to do is said."""
    log = Arrivals(log_in(tmp_path))
    with pytest.raises(TidegaugeError, match=r"to reach 999, seen its end at 0; remove .*followed to begin again"):
        log.between(start, end)
