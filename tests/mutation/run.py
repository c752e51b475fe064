"""Does a test notice? Every mutant of a module of `impl`, each in a process of its own.

    python -m tests.mutation.run isr fetcher

Rules of this file

1. A mutant is killed by the histories of Kafka's own classes first, by the room's tests where those let it pass.
2. A child forgets what its parent has imported of `impl`, so it sees only the mutated module. One that does not end
   counts as killed: what that is, the unchanged module says.
3. Survivors that cannot be told from the original stand in survivors.toml, each with its reason; those of the rules where
   the proofs have them (validation/rule_mutants.toml). All others fail the run.
"""

import gzip
import importlib.abc
import importlib.machinery
import json
import os
import resource
import signal
import sys
import time
import tomllib
from collections import Counter
from collections.abc import Sequence
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.mutation.mutants import mutants_of
from validation.rule_mutants import Mutant, equivalents

ROOT = Path(__file__).parents[2]
TABLES = ROOT / "tests" / "kafka_classes" / "data"
SURVIVORS = Path(__file__).with_name("survivors.toml")
SEQUENCES = 2_500
SECONDS = 240
"""Of processor time, for a module without a change: a busy machine kills nothing."""

TIMES = 4
"""A mutant that takes so many times what the module took without a change does not end."""

KILLERS: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "rules": (
        ("epoch_cache", "unified_log", "follower_fetcher", "leader_partition"),
        ("test_rules", "test_epoch_cache", "test_log", "test_partition", "test_isr", "test_fetcher", "test_generations"),
    ),
    "epoch_cache": (("epoch_cache", "unified_log"), ("test_epoch_cache", "test_switches_log")),
    "log": (("unified_log", "follower_fetcher"), ("test_log", "test_switches_log", "test_partition", "test_segmented_log")),
    "partition_state": (("leader_partition",), ("test_partition", "test_isr")),
    "partition": (
        ("leader_partition", "follower_fetcher"),
        (
            "test_partition",
            "test_isr",
            "test_switches_leader",
            "test_append_records",
            "test_fetch_messages",
            "test_offset_requests",
            "test_isr_updates",
            "test_partition_without_log",
            "test_idempotent_producers",
        ),
    ),
    "producer_state": ((), ("test_transactions", "test_idempotent_producers")),
    "fetch_session": ((), ("test_fetch_sessions", "test_fetch_sessions_together", "test_fetch_session_cache")),
    "fetcher": (
        ("follower_fetcher",),
        ("test_fetcher", "test_fetcher_edges", "test_switches_follower", "test_generations", "test_fetcher_thread"),
    ),
    "partition_change": ((), ("test_partition_reassignment", "test_replication_control", "test_clean_elections")),
    "brokers_to_elrs": ((), ("test_brokers_to_elrs",)),
}
"""The tables and the test files of `tests/impl` that try a module."""


class Mutated(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds one module, with a changed text."""

    def __init__(self, module: str, source: str) -> None:
        self.module = module
        self.source = source

    def find_spec(self, name: str, _path: Any, _target: Any = None) -> importlib.machinery.ModuleSpec | None:
        return importlib.machinery.ModuleSpec(name, self) if name == self.module else None

    def exec_module(self, module: ModuleType) -> None:
        exec(compile(self.source, f"{self.module} mutated", "exec"), module.__dict__)


def killed(module: str, mutant: Mutant, tables: dict[str, list[dict[str, Any]]], seconds: float = SECONDS) -> bool:
    """Whether some test notices the mutant, within so many seconds of processor time."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        return status != 0
    signal.setitimer(signal.ITIMER_PROF, seconds)
    silent = os.open(os.devnull, os.O_WRONLY)
    os.dup2(silent, 1)
    os.dup2(silent, 2)
    for name in [name for name in sys.modules if name.startswith(("tidegauge.impl", "tests.impl", "tests.kafka_classes"))]:
        del sys.modules[name]
    sys.meta_path.insert(0, Mutated(name_of(module), mutant.source))
    noticed = True
    try:
        noticed = any(_differs(name, tables[name]) for name in KILLERS[module][0]) or _fails(KILLERS[module][1])
    finally:
        os._exit(1 if noticed else 0)


def _differs(table: str, sequences: list[dict[str, Any]]) -> bool:
    replays = importlib.import_module(f"tests.kafka_classes.replay_{table}")
    rules = importlib.import_module("tidegauge.impl.profiles").Rules()
    replay = replays.replay_with(rules)
    return any(replay(sequence, Counter())[1] is not None for sequence in sequences)


def _fails(files: Sequence[str]) -> bool:
    paths = [str(path) for name in files for path in (ROOT / "tests" / "impl").rglob(f"{name}.py")]
    # Tidegauge is a plugin of pytest, which imports plugins itself to rewrite their asserts: past `Mutated`
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    ended = pytest.main(["-x", "-q", "-p", "no:cacheprovider", "-m", "not tlc and not spark", *paths])
    return ended in {pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED}


def path_of(module: str) -> Path:
    """The file of a module of `impl`, whichever wing it is in."""
    (found,) = (ROOT / "tidegauge" / "impl").rglob(f"{module}.py")
    return found


def name_of(module: str) -> str:
    """What it is imported as."""
    return ".".join(path_of(module).relative_to(ROOT).with_suffix("").parts)


def load_tables(names: Sequence[str]) -> dict[str, list[dict[str, Any]]]:
    """The first sequences of each table."""
    tables = {}
    for name in names:
        with gzip.open(TABLES / f"{name}_4.1.1.jsonl.gz", "rt", encoding="utf-8") as lines:
            tables[name] = [json.loads(line) for line in islice(lines, SEQUENCES)]
    return tables


def known_survivors() -> dict[str, dict[str, str]]:
    """Per module: mutants that are the same behaviour, with the reason."""
    with SURVIVORS.open("rb") as file:
        return {module: dict(rows) for module, rows in tomllib.load(file).items()}


def _used() -> float:
    """Processor time of the children that have ended."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return children.ru_utime + children.ru_stime


def main(modules: Sequence[str]) -> int:
    """Try every mutant of `modules`; 1 when one goes unnoticed that is not listed."""
    wrong = 0
    for module in modules:
        listed = known_survivors().get(module, {})
        proved = equivalents() if module == "rules" else {}
        tables = load_tables(KILLERS[module][0])
        text = path_of(module).read_text(encoding="utf-8")
        before = _used()
        if killed(module, Mutant("no function", "no change", text), tables):
            print(f"{module}: expected its tests to pass without a change; seen a failure; mend that first")
            return 1
        seconds = max(1.0, TIMES * (_used() - before))
        made = mutants_of(text)
        begin, survivors = time.monotonic(), []
        for number, mutant in enumerate(made, 1):
            if not killed(module, mutant, tables, seconds):
                survivors.append(mutant.key)
                print(f"{'same' if mutant.key in {*listed, *proved} else 'UNNOTICED'}  {mutant.key}", flush=True)
            if number % 50 == 0:
                print(f"      {number} of {len(made)}", flush=True)
        unnoticed = [key for key in survivors if key not in listed and key not in proved]
        stale = [key for key in listed if key not in survivors]
        for key in stale:
            print(f"LISTED BUT KILLED  {key}: remove it", flush=True)
        dead, same = len(made) - len(survivors), len(survivors) - len(unnoticed)
        score = 100 * dead / max(1, dead + len(unnoticed))
        print(
            f"{module}: {len(made)} mutants, {dead} killed, {same} the same, {len(unnoticed)} unnoticed: {score:.1f} % "
            f"({time.monotonic() - begin:.0f} s)"
        )
        wrong += len(unnoticed) + len(stale)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:] or list(KILLERS)))
