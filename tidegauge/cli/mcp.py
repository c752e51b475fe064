"""tidegauge mcp: the Model Context Protocol, for agents and editors.

Rules of this file

1. A tool reads below the root that the user named, and writes nothing. Whoever calls it is no user: no tool reads elsewhere,
   starts a program, or connects to a broker.
2. Texts come from the reports of the library, which has escaped what a log or a trace wrote.
3. Standard output is the protocol's. A mistake of the caller is an error of its call, and the server goes on.

A *tool* is a function that an agent calls; `ToolError` is what it gets for a mistake. Paths are below the root.
"""

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegauge.util.errors import CONFORMS, TidegaugeError, UsageError

if TYPE_CHECKING:
    from mcp.server import MCPServer

    from tidegauge.library import Report

MOST_COMMANDS, MOST_FAILURES, MOST_SCENARIOS = 1000, 20, 3
"""Commands of a `play` call; failures (problems, causes) and scenarios of a response: an agent reads all of it."""


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of `tidegauge mcp` to its parser."""
    parser.add_argument(
        "--root", metavar="DIR", default=".", help="the directory whose logs and traces may be read (default: this one)"
    )


def run(args: argparse.Namespace) -> int:
    """Serve the tools check, explain, play and next_scenario to an agent or an editor, over MCP on stdin and stdout."""
    server(Path(args.root)).run("stdio")
    return CONFORMS


def server(root: Path) -> "MCPServer":
    """Make the server that reads below `root`. Raises UsageError if there is no such directory, or no SDK."""
    try:
        from mcp.server import MCPServer
        from mcp.server.mcpserver.exceptions import ToolError
    except ImportError:
        raise UsageError("mcp: expected the Python SDK of MCP; seen none; run: pip install 'tidegauge[mcp]'") from None
    if not root.is_dir():
        raise UsageError(f"--root: expected a directory; seen {str(root)!r}")
    from tidegauge.util.version import PACKAGE_VERSION

    # The docstrings of the tools below are what an agent reads of them.
    mcp_server: MCPServer = MCPServer(
        "tidegauge",
        version=PACKAGE_VERSION,
        log_level="ERROR",
        instructions="Tells whether the high watermark of a Kafka-like broker can be trusted, from its logs or traces.",
    )

    def below(path: str) -> Path:
        """Return the path below the root. Raises ToolError for one that leads out of it, or is no path."""
        try:
            # With links resolved, so that none can lead out of the root.
            resolved = (root / path).resolve()
        except (ValueError, OSError, RuntimeError) as error:  # a NUL byte, a loop of links (up to 3.12 a RuntimeError)
            raise ToolError(f"expected a path below {root}; seen {path!r}: {error}") from error
        if not resolved.is_relative_to(root.resolve()):
            raise ToolError(f"expected a path below {root}; seen {path!r}")
        return resolved

    def judged(path: str, release: str | None) -> "Report":
        """Judge a path below the root, by a release of Kafka if one is named. Raises ToolError if that cannot be."""
        from tidegauge import library

        resolved = below(path)
        try:
            # In one process: others would inherit standard output, which is the protocol's.
            return library.check(resolved, release=release, processes=1)
        except TidegaugeError as error:
            raise ToolError(str(error)) from error

    @mcp_server.tool()
    def check(path: str, release: str | None = None) -> dict[str, Any]:
        """Judge broker logs or traces below the root; release: judge by that release of Kafka, such as 3.4.1."""
        report = judged(path, release)
        fields = ("rule", "means", "at", "expected", "actual", "looks_like")
        failures = [{name: getattr(failure, name) for name in fields} for failure in report.failures[:MOST_FAILURES]]
        return {
            "verdict": report.verdict,
            "events": report.events,
            "failure_count": report.failure_count,
            "failures": failures,
            "missing": report.missing,
            "problems": report.problems[:MOST_FAILURES],
        }

    @mcp_server.tool()
    def explain(path: str, rule: str, release: str | None = None) -> dict[str, Any]:
        """Say what a rule (such as HW-06) demands, whether the logs or traces keep it, and which steps led to a failure."""
        report = judged(path, release)
        for result in report.rules:
            if result.rule == rule:
                break
        else:
            names = ", ".join(result.rule for result in report.rules)
            raise ToolError(f"expected a rule such as HW-06; seen {rule!r}; they are {names}")
        because = [[str(cause) for cause in failure.because] for failure in report.failures if failure.rule == rule]
        return {name: getattr(result, name) for name in ("rule", "sentence", "verdict", "held", "failed", "missing")} | {
            "because": because[:MOST_FAILURES]
        }

    @mcp_server.tool()
    def play(commands: list[str]) -> list[str]:
        """Play a small cluster of the reference by hand, from a new one; `help` as the only command lists the commands."""
        from tidegauge.conformance.play.scenario import play as play_commands

        if len(commands) > MOST_COMMANDS:
            raise ToolError(f"expected at most {MOST_COMMANDS} commands; seen {len(commands)}")
        printed: list[str] = []
        play_commands(commands, printed.append)
        return printed[1:]  # without the banner

    @mcp_server.tool()
    def next_scenario(path: str, release: str | None = None) -> dict[str, Any]:
        """Say how much of the model logs or traces exercise, and which short scenarios to try next, as steps and words."""
        from tidegauge.conformance.checking.check import CheckOptions
        from tidegauge.conformance.checking.sharded import check_in_parallel
        from tidegauge.drive.coverage import as_json, coverage_of, exercised_by_check
        from tidegauge.impl.releases import RELEASE

        resolved = below(path)
        # The name of the release's profile, None for that of the input; situations are what coverage is counted by.
        how = CheckOptions(release and f"{RELEASE}{release}", situations=True)
        # In one process, as in `judged`.
        try:
            report = check_in_parallel([str(resolved)], how, processes=1)
            coverage = as_json(coverage_of(exercised_by_check(path, report)))
        except TidegaugeError as error:
            raise ToolError(str(error)) from error
        shares = {name: f"{share['exercised']} of {share['total']}" for name, share in coverage["shares"].items()}
        # Items with `missing` are left out: no event of these inputs could show them, so there is no scenario to try.
        return {
            "shares": shares,
            "next": [item for item in coverage["not_exercised"] if not item["missing"]][:MOST_SCENARIOS],
        }

    return mcp_server
