"""The pytest plugin: with --tidegauge-command your broker is driven, and each case is a test.

A case is a list of paths that the broker is taken through, or a rule (cases.py); a Suite has all cases of the broker. A node
is the driven program, which pytest starts once. Both are kept in the stash of pytest's configuration.

Rules of this file

1. Unless a test asks for `tidegauge_case` or `tidegauge_broker`, no program is started and nothing else of the package is
   imported: pytest loads this plugin in every project. So the imports are in the functions.
2. A known failure is strict: once the case passes, its line in the file fails the run, unless it is flaky
   (util/junit.py).
"""
# ruff: noqa: PLC0415 - rule 1

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tidegauge.drive.pytest_plugin.cases import Suite
    from tidegauge.drive.transports.stdio import StdioNode
    from tidegauge.util.junit import KnownFailure

SETTINGS = {
    "command": ("", "what starts the driven program"),
    "profile": ("safe", "the generation of the protocol that is expected"),
    "graphs": ("", "the graphs to cover (default: the usual ones)"),
    "walks": ("240", "how many random walks"),
    "seed": ("1", "their seed"),
    "timeout": ("10", "seconds without a line of output before the program is considered hung"),
    "expected-failures": ("", "file with the ids of cases that are known to fail"),
}
"""Name -> (default, help). Each is an option, --tidegauge-NAME, and a line of the ini file, tidegauge_NAME."""

NODE = pytest.StashKey["StdioNode"]()
SUITE = pytest.StashKey["Suite"]()

NO_COMMAND = "expected --tidegauge-command, or tidegauge_command in the ini file; seen neither"


class PluginCase:
    """A case of the suite, as a test gets it by the argument `tidegauge_case`; `name` is the case's id."""

    def __init__(self, suite: "Suite", name: str) -> None:
        self._suite, self.name = suite, name

    def check(self) -> None:
        """Fail the test where the broker differs from the reference; skip it where nothing was compared."""
        from tidegauge.util.errors import TidegaugeError

        try:
            failure = self._suite.check(self.name)
        # The driven program itself is at fault.
        except TidegaugeError as problem:
            pytest.fail(str(problem), pytrace=False)
        if failure is not None and not failure.exercised:
            pytest.skip(failure.text)
        if failure is not None:
            pytest.fail(failure.text, pytrace=False)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the settings as options and as lines of the ini file."""
    group = parser.getgroup("tidegauge", "a broker that is driven (docs/drive.md)")
    for name, (default, text) in SETTINGS.items():
        group.addoption(f"--tidegauge-{name}", metavar="VALUE", help=f"{text} (default {default!r})" if default else text)
        parser.addini(f"tidegauge_{name.replace('-', '_')}", text, default=default)


def _setting(config: pytest.Config, name: str) -> str:
    """Return the value of a setting: that of the option, or else of the ini file, or else the default."""
    option = config.getoption(f"--tidegauge-{name}")
    return str(option if option is not None else config.getini(f"tidegauge_{name.replace('-', '_')}"))


def _number(config: pytest.Config, name: str) -> int:
    """Return a setting that is a whole number. Raises pytest.UsageError."""
    value = _setting(config, name)
    if not value.isdecimal():
        raise pytest.UsageError(f"tidegauge_{name}: expected a whole number; seen {value!r}")
    return int(value)


def _node(config: pytest.Config) -> "StdioNode | None":
    """Return the driven program, started once per session; None without a command."""
    from tidegauge.drive.transports.stdio import StdioNode

    command = shlex.split(_setting(config, "command"))
    if command and NODE not in config.stash:
        config.stash[NODE] = StdioNode(command, _number(config, "timeout"))
    return config.stash.get(NODE, None)


def _suite(config: pytest.Config) -> "Suite | None":
    """Return the suite of the session, built once; None without a command."""
    from tidegauge.drive.paths import unsafe_or_repaired
    from tidegauge.drive.paths.graphs import USUAL
    from tidegauge.drive.pytest_plugin.cases import Suite, path_cases
    from tidegauge.impl.releases import profile_named

    node = _node(config)
    if node is not None and SUITE not in config.stash:
        named_profile = profile_named(_setting(config, "profile"))
        # What the broker has repaired is expected to be repaired.
        profile = named_profile.without(unsafe_or_repaired.ask(node, named_profile).repaired)
        graphs = _setting(config, "graphs").replace(",", " ").split() or USUAL
        paths = path_cases(node.capabilities, profile, graphs, _number(config, "walks"), _number(config, "seed"))
        config.stash[SUITE] = Suite(node, profile, paths)
    return config.stash.get(SUITE, None)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test with the argument `tidegauge_case` once for every case (a hook of pytest)."""
    if "tidegauge_case" not in metafunc.fixturenames:
        return
    from tidegauge.util.errors import TidegaugeError
    from tidegauge.util.junit import known_failures

    try:
        suite = _suite(metafunc.config)
        if suite is None:
            parameters = [pytest.param(None, id="none", marks=pytest.mark.skip(NO_COMMAND))]
        else:
            path = _setting(metafunc.config, "expected-failures")
            failures = known_failures(metafunc.config.rootpath / Path(path), suite.ids) if path else {}
            parameters = [
                pytest.param(PluginCase(suite, name), id=name, marks=_xfail(failures[name]) if name in failures else ())
                for name in suite.ids
            ]
    except TidegaugeError as problem:
        raise pytest.UsageError(str(problem)) from None
    metafunc.parametrize("tidegauge_case", parameters)


def _xfail(failure: "KnownFailure") -> pytest.MarkDecorator:
    """Return the mark of a case that is known to fail (rule 2)."""
    return pytest.mark.xfail(reason=f"{failure.where}: {failure.reason}", strict=not failure.flaky)


@pytest.fixture(scope="session")
def tidegauge_broker(request: pytest.FixtureRequest) -> "StdioNode":
    """Return your broker as a node that plays cases (tidegauge.drive.runner.player), for tests of your own."""
    node = _node(request.config)
    if node is None:
        pytest.skip(NO_COMMAND)
    return node


@pytest.fixture(scope="session", autouse=True)
def _named_in_junit(request: pytest.FixtureRequest, record_testsuite_property: "Callable[[str, object], None]") -> None:
    """Write the driven broker's name into the JUnit file, where `tidegauge` reads it for the summary of a CI job."""
    if NODE in request.config.stash:
        from tidegauge.util.junit import DRIVEN

        record_testsuite_property(DRIVEN, request.config.stash[NODE].capabilities.name)


def pytest_unconfigure(config: pytest.Config) -> None:
    """End the program with the run."""
    node = config.stash.get(NODE, None)
    if node is not None:
        node.close()
