"""Faults of a cluster while it works, after each of which the totals must be the same: nothing twice, nothing lost.

Rules of this file

1. A fault strikes when some of the work is done and some is not. One that strikes too late shows nothing, and has failed.
2. What was done before a run was interrupted is not done again: its files stay as they were.
"""

import hashlib
import os
import platform
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from benchmarks import cluster_logs
from tidegauge.spark_check.source import last_look
from validation.spark_cluster.commands import (
    Checked,
    check,
    ended,
    reached,
    row_groups_in,
    rows_by_worker,
    start,
    start_check,
    succeeded,
)
from validation.spark_cluster.standalone import Cluster, signalled

SMALL_DISK = "64k"
"""Room for the results of a few tasks."""

FOLLOW = ("--follow", "--until-idle", "10")

PARTITIONS, BYTES_OF_LOGS, RECORDS_A_SECOND = 60, 100_000_000, 250.0
"""What logs of an incident are about: as many bytes as are judged in shares, with one fetcher per leader."""

AWAKE = 60
"""Seconds to wait for a task to begin, or for a process that was stopped to end."""


@dataclass(frozen=True)
class Outcome:
    """The outcome of a fault: `wrong` lists what is not as it must be. `skipped`: the fault cannot be made here."""

    says: str
    wrong: tuple[str, ...] = ()
    skipped: bool = False


@dataclass(frozen=True)
class Scene:
    """A cluster, Parquet files that take it some time, and their report without a fault."""

    cluster: Cluster
    walks: Path
    undisturbed: Checked
    order: tuple[str, ...]
    """Arguments of a generation in several parts, without --out and --spark."""

    def folder(self, fault: str) -> Path:
        """Return where a fault keeps its files."""
        path = self.cluster.folder / fault
        path.mkdir()
        return path


def worker_killed(scene: Scene) -> Outcome:
    """Kill a worker and its executor."""

    def strike() -> None:
        scene.cluster.kill(2)

    try:
        return _struck(scene, "worker-killed", strike)
    finally:
        scene.cluster.start(2)


def straggler(scene: Scene) -> Outcome:
    """Stop an executor during a task, as on a very slow machine, and continue it when the run is over."""
    if not Path("/proc/self/maps").exists():
        return Outcome("this system does not say what a process reads", skipped=True)
    # Filled when the fault strikes: `over` and `finally` must continue what was stopped, also if the run fails before.
    stopped: list[int] = []

    def strike() -> None:
        stopped.extend(_stopped_in_the_midst(scene))

    try:
        outcome = _struck(scene, "straggler", strike, over=lambda: _wake(stopped))
    finally:
        signalled(stopped, signal.SIGCONT)
    return outcome if stopped else replace(outcome, wrong=(*outcome.wrong, "no task ran on the executor that was stopped"))


def _stopped_in_the_midst(scene: Scene) -> list[int]:
    """Stop the processes of worker 2's executor while one of them reads the walks; return none if none ever does."""
    until = time.monotonic() + AWAKE
    while time.monotonic() < until:
        # Stop first, then look: a running task could end between the look and the stop.
        stopped = scene.cluster.stop_executors(2)
        if any(str(scene.walks) in _mapped(pid) for pid in stopped):
            return stopped
        signalled(stopped, signal.SIGCONT)
        time.sleep(0.01)
    return []


def _mapped(process: int) -> str:
    """Return the memory map of a process: a worker maps its input for as long as its task takes."""
    try:
        return Path(f"/proc/{process}/maps").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _wake(stopped: Iterable[int]) -> None:
    """Continue stopped processes: they finish a task that no longer counts, and end."""
    until = time.monotonic() + AWAKE
    while signalled(stopped, signal.SIGCONT) and time.monotonic() < until:
        time.sleep(0.1)


def _struck(scene: Scene, name: str, strike: Callable[[], object], over: Callable[[], object] = lambda: None) -> Outcome:
    """Run a check through a fault that it must survive; `over` is called at its end."""
    folder = scene.folder(name)
    results = folder / "results"
    process = start_check(scene.cluster.master, folder / "out", scene.walks, results=results)
    # Strike once some results exist: before, the fault would meet the start of the session, not its work.
    in_time = reached(process, lambda: any(results.glob("*.parquet")))
    if in_time:
        strike()
    checked = ended(process, folder / "out")
    over()
    return _outcome(scene, checked, results, f"went on to its end in {checked.seconds:.1f} s", in_time=in_time)


def driver_killed(scene: Scene) -> Outcome:
    """Kill the command, and start it again."""
    folder = scene.folder("driver-killed")
    results = folder / "results"
    process = start_check(scene.cluster.master, folder / "out", scene.walks, results=results)
    in_time = reached(process, lambda: any(results.glob("*.parquet")))
    process.kill()
    process.communicate()
    return _again(scene, folder, results, in_time)


def killed_over_logs(scene: Scene) -> Outcome:
    """Judge the logs of one incident in shares; kill the command, start it again, and kill a worker meanwhile."""
    folder = scene.folder("killed-over-logs")
    logs, results, master = folder / "logs", folder / "results", scene.cluster.master
    cluster_logs.make(logs, PARTITIONS, BYTES_OF_LOGS, seed=48, rate=RECORDS_A_SECOND)
    undisturbed = check("local[2]", folder / "local", logs)
    process = start_check(master, folder / "out", logs, results=results)
    in_time = reached(process, lambda: any(results.glob("*/*.share")))
    process.kill()
    process.communicate()
    kept = len([*results.glob("*/*.share")])
    process = start_check(master, folder / "again", logs, results=results)
    in_time = reached(process, lambda: len([*results.glob("*/*.share")]) > kept) and in_time
    scene.cluster.kill(2)
    try:
        checked = ended(process, folder / "again")
    finally:
        scene.cluster.start(2)
    wrong = [] if in_time else ["a run had ended before anything happened"]
    if checked.code or checked.totals != undisturbed.totals:
        wrong.append(f"ended with {checked.code}, other totals: {checked.said[:200]}")
    if not checked.resumed:
        wrong.append("nothing was resumed")
    left = [path.name for path in results.glob("*/.*")]
    return Outcome(f"{checked.resumed} shares were not judged again", (*wrong, *(f"{name} is left" for name in left)))


def disk_full(scene: Scene) -> Outcome:
    """Fill the disk of the results; make room, and start the command again."""
    folder = scene.folder("disk-full")
    with _small_disk(folder / "disk") as grow:
        if grow is None:
            return Outcome("this user may not mount a small disk", skipped=True)
        results = folder / "disk" / "results"
        first = check(scene.cluster.master, folder / "out", scene.walks, results=results)
        says_why = first.code == 2 and "No space left" in first.said and "Traceback" not in first.said
        grow()
        found = _again(scene, folder, results, in_time=first.report is None)
    return found if says_why else Outcome(found.says, (*found.wrong, f"ended with {first.code}, said {first.said[:200]!r}"))


def another_processor(scene: Scene) -> Outcome:
    """Leave one worker, whose processor the machine code was not made for: it compiles its own."""
    folder = scene.folder("another-processor")
    with _other_processor(scene.cluster):
        checked = check(scene.cluster.master, folder / "out", scene.walks, results=folder / "results")
        # Numba keeps the machine code of each processor in a folder of its own.
        made = {path.parent for path in (scene.cluster.folder / "worker-2" / "cache").rglob("*.nbc")}
        outcome = _outcome(scene, checked, folder / "results", f"made its own machine code, {checked.seconds:.1f} s in all")
    wrong = () if len(made) == 2 else (f"machine code: for 2 processors expected, for {len(made)} seen",)
    return replace(outcome, wrong=(*outcome.wrong, *wrong))


def mixed_processors(scene: Scene) -> Outcome:
    """Let two workers share the work, only one of which has a processor like the driver's."""
    folder = scene.folder("mixed-processors")
    with _other_processor(scene.cluster):
        first = min(scene.walks.glob("*.parquet"))
        # Let worker 2 compile before the shared run: worker 1, whose machine code was shipped, would do all the work.
        check(scene.cluster.master, folder / "first", first)
        scene.cluster.start(1)
        checked = check(scene.cluster.master, folder / "out", scene.walks, results=folder / "results")
    shares = sorted(rows_by_worker(folder / "results").values())
    outcome = _outcome(scene, checked, folder / "results", f"judged {' and '.join(map(str, shares))} row groups")
    return outcome if len(shares) > 1 else replace(outcome, wrong=(*outcome.wrong, "one worker did all"))


@contextmanager
def _other_processor(cluster: Cluster) -> Iterator[None]:
    """Run worker 2 alone, with a processor that it believes to be older; restore both workers afterwards."""
    generic = {"x86_64": "x86-64", "AMD64": "x86-64"}.get(platform.machine(), "generic")
    cluster.kill(1)
    cluster.kill(2)
    cluster.start(2, {"NUMBA_CPU_NAME": generic, "NUMBA_CPU_FEATURES": ""})
    try:
        yield
    finally:
        cluster.kill(2)
        cluster.start(2)
        if 1 not in cluster.running:
            cluster.start(1)


def follower_killed(scene: Scene) -> Outcome:
    """Kill `--follow` when some files are judged, and start it again; more files arrive, one of them broken at first."""
    folder = scene.folder("follower-killed")
    results, arriving = folder / "results", folder / "arriving"
    first, *others = sorted(scene.walks.glob("*.parquet"))
    arriving.mkdir()
    _arrive(first, arriving)
    process = start_check(scene.cluster.master, folder / "out", arriving, results=results, more=FOLLOW)
    in_time = reached(process, lambda: any(results.glob("*.parquet")))
    process.kill()
    process.communicate()
    before, looked = _stamps(results), last_look(results)
    # A file in the wrong form, later replaced by the right one: both versions are reported, the last one counts.
    (arriving / others[0].name).write_bytes(b"PAR1, and no more")
    process = start_check(scene.cluster.master, folder / "again", arriving, results=results, more=FOLLOW)
    reached(process, lambda: last_look(results) != looked)
    for file in others:
        _arrive(file, arriving)
    checked = ended(process, folder / "again")
    outcome = _outcome(scene, checked, results, f"{len(before)} tasks were not done again", in_time=in_time)
    again = () if before.items() <= _stamps(results).items() else ("tasks that were done were done again",)
    return replace(outcome, wrong=(*outcome.wrong, *again))


def _arrive(file: Path, folder: Path) -> None:
    """Let a file arrive: whole, by a rename."""
    # A hard link costs no copy, and the rename shows the file whole or not at all.
    unfinished = folder / f".{file.name}.unfinished"
    unfinished.hardlink_to(file)
    unfinished.replace(folder / file.name)


def generation_killed(scene: Scene) -> Outcome:
    """Kill the generation when a part is written, and start it again: the same bytes."""
    folder = scene.folder("generation-killed")
    arguments = ("generate", "--quiet", *scene.order, "--spark", scene.cluster.master, "--out")
    succeeded(start(*arguments, folder / "whole"), "the generation")
    process = start(*arguments, folder / "killed")
    in_time = reached(process, lambda: any((folder / "killed").glob("*.parquet")))
    process.kill()
    process.communicate()
    before = _stamps(folder / "killed")
    succeeded(start(*arguments, folder / "killed"), "the generation that was started again")
    wrong = [] if in_time and len(before) < len(_stamps(folder / "whole")) else ["all was done before it was killed"]
    if _bytes_of(folder / "whole") != _bytes_of(folder / "killed"):
        wrong.append("other bytes")
    # The same inode and time: a part that was made again would have others, though the same bytes.
    if not before.items() <= _stamps(folder / "killed").items():
        wrong.append("parts that were done were made again")
    return Outcome(
        f"{len(before)} of {len(_stamps(folder / 'whole'))} parts were there already, the same bytes", tuple(wrong)
    )


FAULTS: dict[str, Callable[[Scene], Outcome]] = {
    "worker-killed": worker_killed,
    "driver-killed": driver_killed,
    "follower-killed": follower_killed,
    "killed-over-logs": killed_over_logs,
    "disk-full": disk_full,
    "straggler": straggler,
    "generation-killed": generation_killed,
    "another-processor": another_processor,
    "mixed-processors": mixed_processors,
}


def _again(scene: Scene, folder: Path, results: Path, in_time: bool) -> Outcome:
    """Run the same command again, after one that did not end."""
    before = _stamps(results)
    checked = check(scene.cluster.master, folder / "again", scene.walks, results=results)
    outcome = _outcome(scene, checked, results, f"{checked.resumed} row groups were not judged again", in_time=in_time)
    wrong = list(outcome.wrong)
    if not checked.resumed:
        wrong.append("nothing was resumed")
    if not before.items() <= _stamps(results).items():
        wrong.append("tasks that were done were done again")
    return Outcome(outcome.says, tuple(wrong))


def _outcome(scene: Scene, checked: Checked, results: Path, says: str, in_time: bool = True) -> Outcome:
    groups = row_groups_in(results)
    wrong = []
    if not in_time:
        wrong.append("the run had ended before anything happened")
    if checked.code != scene.undisturbed.code:
        wrong.append(f"ended with {checked.code} instead of {scene.undisturbed.code}: {checked.said[:200]}")
    if checked.totals != scene.undisturbed.totals:
        wrong.append("other totals")
    # Spark may run a task twice (speculation, lost workers); only one of its results may count.
    if len(groups) != len(set(groups)):
        wrong.append(f"{len(groups) - len(set(groups))} row groups are in the results twice")
    # A killed task leaves its unfinished file. That is untidy, not wrong: no reader takes a hidden file.
    left = [path.name for path in results.iterdir() if path.name.startswith(".")]
    return Outcome(says + (f"; {len(left)} files of killed tasks are left" if left else ""), tuple(wrong))


def _stamps(folder: Path) -> dict[str, tuple[int, int]]:
    """Return the finished files of a folder with their time and inode, which change when one is written anew."""
    return {path.name: (path.stat().st_ino, path.stat().st_mtime_ns) for path in folder.glob("*.parquet")}


def _bytes_of(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.glob("*.parquet")}


@contextmanager
def _small_disk(folder: Path) -> Iterator[Callable[[], object] | None]:
    """Mount a disk of SMALL_DISK bytes at `folder`.

    Yield a function that enlarges it, or None where this user may not mount.
    """
    folder.mkdir()
    options = ("mount", "-t", "tmpfs", "-o")
    mounted = (
        os.name == "posix"
        and subprocess.run(
            [*options, f"size={SMALL_DISK}", "tmpfs", str(folder)], capture_output=True, check=False
        ).returncode
        == 0
    )
    if not mounted:
        yield None
        return
    try:
        yield lambda: subprocess.run([*options, "remount,size=1g", "tmpfs", str(folder)], check=True)
    finally:
        subprocess.run(["umount", str(folder)], check=True)
