"""The brokers in Python, JavaScript, Go and Rust are built where their toolchain is there, are safe as far as they promise,
and a bug that is planted in one is caught.

A bug is a change of their text, so that the examples stay as clean as others are to copy them.
"""

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tidegauge.drive.broker.contract import BrokerCase
from tidegauge.drive.broker.reference import reference
from tidegauge.drive.contract import Capabilities
from tidegauge.drive.paths.selection import cases_beside_covers, cases_for
from tidegauge.drive.paths.unsafe_or_repaired import TELLING, ask, telling_cases
from tidegauge.drive.runner.run import DriveRun, run, text_of
from tidegauge.drive.transports.stdio import StdioNode
from tidegauge.impl.profiles import FETCH_TRUNCATION, SAFE, UNSAFE, Profile

ADAPTERS = Path(__file__).parents[3] / "tidegauge" / "drive" / "adapters"
BUILD_SECONDS = 300
MOST_LINES = 200
"""Of a file: what a reader takes in."""


class Toolchain(NamedTuple):
    """How an example is built into a folder, how it is started, and what the builder says for want of anything."""

    command: tuple[str, ...]
    start: tuple[str, ...]
    lacks: tuple[str, ...] = ()


TOOLCHAINS = {
    "python": Toolchain((sys.executable, "-m", "compileall", "-q", "."), (sys.executable, "{sources}/adapter.py")),
    "javascript": Toolchain(("node", "--check", "broker.js"), ("node", "{sources}/broker.js")),
    "go": Toolchain(("go", "build", "-o", "{out}/broker", "."), ("{out}/broker",), ("requires go >=",)),
    "rust": Toolchain(
        ("cargo", "build", "--offline", "--quiet", "--target-dir", "{out}"),
        ("{out}/debug/broker",),
        ("offline", "rustup could not"),
    ),
}

Built = Callable[[str, Path], list[str]]
"""Builds the sources of an example in a folder; gives the command that starts it."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """One folder for all that an example is built to: what its dependencies compile to is made once."""
    outs: dict[str, Path] = {}

    def build(language: str, sources: Path) -> list[str]:
        chain = TOOLCHAINS[language]
        if shutil.which(chain.command[0]) is None:
            pytest.skip(f"no {chain.command[0]} on the PATH")
        out = outs.setdefault(language, tmp_path_factory.mktemp(language))
        command = [part.format(out=out) for part in chain.command]
        environment = {**os.environ, "GOTOOLCHAIN": "local"}  # nothing is downloaded
        done = subprocess.run(
            command, cwd=sources, env=environment, capture_output=True, text=True, timeout=BUILD_SECONDS, check=False
        )
        if done.returncode != 0 and any(lack in done.stderr for lack in chain.lacks):
            pytest.skip(f"{chain.command[0]} cannot build it without a network: {done.stderr.strip().splitlines()[0]}")
        assert done.returncode == 0, done.stderr
        return [part.format(out=out, sources=sources) for part in chain.start]

    return build


def sources_of(language: str, place: Path) -> Path:
    """A copy: nothing is built into the checkout."""
    return Path(
        shutil.copytree(ADAPTERS / language, place / language, ignore=shutil.ignore_patterns("target", "Cargo.lock"))
    )


def driven(
    command: list[str], *, graph: str = "small", walks: int, profile: Profile = SAFE, beside: bool = False
) -> tuple[Capabilities, DriveRun[BrokerCase]]:
    with StdioNode(command) as node:
        expected = profile.without(ask(node, profile).repaired)
        cases, coverage = cases_for(node.capabilities, expected, graphs=[graph], walks=walks)
        cases += telling_cases(expected, node.capabilities)
        if beside:
            cases += cases_beside_covers(node.capabilities, expected, cases)[0]
        return node.capabilities, run(node, cases, reference(expected), coverage)


LANGUAGES = [
    pytest.param("python", {"lag", "lag_apart", "alter_partition_response", "crash"}),
    pytest.param("javascript", {"lag", "lag_apart", "alter_partition_response", "offsets_for_leader_epoch", "crash"}),
    pytest.param("go", {"lag", "lag_apart", "alter_partition_response", "offsets_for_leader_epoch", "lose_tail"}),
    pytest.param("rust", {"crash", "lose_response"}),
]


@pytest.mark.parametrize(("language", "promised"), LANGUAGES)
@pytest.mark.parametrize(
    ("graph", "walks"), [("small", 100), pytest.param("two", 1000, marks=pytest.mark.long)], ids=["quick", "whole"]
)
def test_it_conforms_as_far_as_it_promises(
    language: str, promised: set[str], graph: str, walks: int, built: Built, tmp_path: Path
) -> None:
    """Also where it has to refuse, and on the paths that tell known bugs."""
    command = built(language, sources_of(language, tmp_path))
    capabilities, shown = driven(command, graph=graph, walks=walks, beside=True)
    assert shown.exit_code == 0, text_of(shown)
    assert capabilities.can >= {"metadata", "append", "fetch", "fetch_response", *promised}
    assert capabilities.reports >= {"result", "requests", "leo", "hw", "ends"}


@pytest.mark.parametrize("words", [(sys.executable, "python/adapter.py"), ("node", "javascript/adapter.js")])
def test_an_example_to_copy_conforms_also_where_it_has_to_refuse(words: tuple[str, str]) -> None:
    program, path = words
    if shutil.which(program) is None:
        pytest.skip(f"no {program} on the PATH")
    _, shown = driven([program, str(ADAPTERS.parent / "examples" / path)], walks=100, beside=True)
    assert shown.exit_code == 0, text_of(shown)


@pytest.mark.parametrize("language", TOOLCHAINS)
def test_it_conforms_to_a_generation_that_is_unsafe_and_is_better(language: str, built: Built, tmp_path: Path) -> None:
    _, shown = driven(built(language, sources_of(language, tmp_path)), walks=100, profile=FETCH_TRUNCATION)
    assert shown.exit_code == 0, text_of(shown)
    # The broker in Rust does not propose an ISR, so nothing tells whether it would forget one.
    assert shown.profile == ("fetch-truncation-without-F2" if language == "rust" else "fetch-truncation-without-F2-F3")


@pytest.mark.parametrize(("language", "least"), [("javascript", 2), ("go", 3), ("rust", 3)])
def test_its_files_are_short(language: str, least: int) -> None:
    files = [path for path in (ADAPTERS / language).rglob("*") if path.suffix in {".js", ".go", ".rs"}]
    assert len(files) >= least
    assert max(len(path.read_text(encoding="utf-8").splitlines()) for path in files) <= MOST_LINES


@pytest.mark.parametrize(
    ("tool", "language"), [(("gofmt", "-l", "."), "go"), (("rustfmt", "-l", "--check", "src/main.rs"), "rust")]
)
def test_its_files_are_formatted(tool: tuple[str, ...], language: str) -> None:
    if shutil.which(tool[0]) is None:
        pytest.skip(f"no {tool[0]} on the PATH")
    done = subprocess.run(tool, cwd=ADAPTERS / language, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, ""), done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Planted bugs


class Planted(NamedTuple):
    """A bug: in which file, what is replaced by what, and its story."""

    file: str
    was: str
    becomes: str
    story: str
    finding: str = ""


PLANTED = tomllib.loads((Path(__file__).parent / "planted.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("language", "bug"),
    [
        pytest.param(language, bug, marks=pytest.mark.long if at and not bug.finding else (), id=f"{language}: {bug.story}")
        for language, bugs in PLANTED.items()
        for at, bug in enumerate(Planted(**one) for one in bugs)
    ],
)
def test_a_planted_bug_is_caught_in_a_few_steps(language: str, bug: Planted, built: Built, tmp_path: Path) -> None:
    """`pytest -s` tells in how many."""
    sources = sources_of(language, tmp_path)
    text = (sources / bug.file).read_text(encoding="utf-8")
    assert text.count(bug.was) == 1, "what is to be replaced is not there, or more than once"
    (sources / bug.file).write_text(text.replace(bug.was, bug.becomes), encoding="utf-8")
    _, shown = driven(built(language, sources), walks=100 if bug.finding else 1000)
    assert shown.exit_code == 1, text_of(shown)
    shortest = min(failure.shown.at for failure in shown.failures)
    print(f"{language}: {bug.story}: {shortest} steps")
    assert shortest <= 12
    if bug.finding:
        ((switch, _),) = [row for row in UNSAFE.items() if row[1] == bug.finding]
        assert all(f"same as   {switch}=on: as Kafka did ({bug.finding})" in failure.text for failure in shown.failures)
        nearest = "skips-equal" if bug.finding == "F2" else "repaired"
        assert f"--profile {nearest} accepts every difference that is shown" in text_of(shown)


# ---------------------------------------------------------------------------------------------------------------------
# Holes of Kafka's that an example is too small to have


HOLES = tomllib.loads((Path(__file__).parent / "holes.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("language", "finding"), [(language, one["finding"]) for language, holes in HOLES.items() for one in holes]
)
def test_a_hole_that_is_put_back_is_told(language: str, finding: str, built: Built, tmp_path: Path) -> None:
    """With what the example lacks it is right on the path that tells; with the hole the report names it."""
    ((switch, _),) = [row for row in UNSAFE.items() if row[1] == finding]
    (hole,) = [one for one in HOLES[language] if one["finding"] == finding]
    sources = sources_of(language, tmp_path)
    for changes, exit_code in ((hole["lacks"], 0), (hole["hole"], 1)):
        for name, was, becomes in changes:
            text = (sources / name).read_text(encoding="utf-8")
            assert text.count(was) == 1, f"{was}: not there, or more than once"
            (sources / name).write_text(text.replace(was, becomes), encoding="utf-8")
        with StdioNode(built(language, sources)) as node:
            shown = run(node, [TELLING[switch]], reference(SAFE))
        assert shown.exit_code == exit_code, text_of(shown)
    named = [line for line in text_of(shown).splitlines() if line.startswith(f"  same as   {switch}=on: as Kafka did")]
    assert named
    assert all(f"({finding})" in line for line in named)


def test_each_hole_is_put_back_in_each_language() -> None:
    covered = {(language, bug.get("finding")) for table in (PLANTED, HOLES) for language in table for bug in table[language]}
    assert covered >= {(language, finding) for language in TOOLCHAINS for finding in UNSAFE.values()}
