"""Tidegauge checks whether a broker's high watermark can be trusted.

The command line: parses the arguments and runs one of the commands. Exit codes:
0 conforms, 1 a rule fails, 2 bad usage or bad input, 3 nothing could be decided.
"""

import argparse
import os
import sys
import traceback
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tidegauge.cli import check, ci, doctor, drive, logs, mcp, probe, recordings, scenarios, traces, verification
from tidegauge.cli.options import chosen_bounds
from tidegauge.cli.terminal import aside, echo, flushed, interrupted, nobody_reads
from tidegauge.util.errors import BAD, TidegaugeError, UsageError
from tidegauge.util.version import SUITE_VERSION, TOOL
from tidegauge.util.workers import collect_garbage_rarely

TRACEBACK = "TIDEGAUGE_TRACEBACK"
"""The environment variable that makes a fault of Tidegauge itself print its traceback."""

FAULT = "a fault of Tidegauge itself"

WAYS_IN = """Tidegauge tells whether a broker's high watermark can be trusted.

You run brokers.          tidegauge check DIR            what the logs of an incident tell, and which rule was broken
                          tidegauge doctor --logging 4.x the loggers to switch on for a verdict
You write a broker.       tidegauge init python          an adapter that passes, a CI file, a list of known failures
                          tidegauge drive -- CMD         your broker through every local step of the model
                          tidegauge probe HOST:PORT      any running broker, by client requests
You change the protocol.  tidegauge model                the models, and which invariant breaks where
                          tidegauge prove                the rules, by z3

`tidegauge COMMAND --help` explains a command, `tidegauge --help` lists them all."""

SHELLS = ("bash", "zsh", "tcsh")

EXTRAS = {"shtab": "completion", "z3": "proofs", "pyspark": "spark", "pandas": "spark", "google_crc32c": "segments"}
"""The extra of the distribution that installs an optional package."""


class Command(NamedTuple):
    """A command: what adds its options to a parser, and what runs it and returns the exit code.

    The docstring of `run` is the help text.
    """

    arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int]


COMMANDS = {
    "model": Command(verification.model_arguments, verification.model_command),
    "prove": Command(verification.prove_arguments, verification.prove_command),
    "check": Command(check.arguments, check.run),
    "story": Command(logs.story_arguments, logs.story_command),
    "bundle": Command(logs.bundle_arguments, logs.bundle_command),
    "convert": Command(traces.convert_arguments, traces.convert_command),
    "generate": Command(traces.generate_arguments, traces.generate_command),
    "bugs": Command(verification.bugs_arguments, verification.bugs_command),
    "scenario": Command(scenarios.scenario_arguments, scenarios.scenario_command),
    "play": Command(scenarios.play_arguments, scenarios.play_command),
    "mcp": Command(mcp.arguments, mcp.run),
    "init": Command(ci.init_arguments, ci.init_command),
    "drive": Command(drive.arguments, drive.run),
    "recheck": Command(recordings.recheck_arguments, recordings.recheck_command),
    "probe": Command(probe.arguments, probe.run),
    "summary": Command(ci.summary_arguments, ci.summary_command),
    "coverage": Command(recordings.coverage_arguments, recordings.coverage_command),
    "doctor": Command(doctor.arguments, doctor.run),
}


@cache
def parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line, with a subparser for each of COMMANDS."""
    top = argparse.ArgumentParser(
        prog="tidegauge",
        description="Check whether a broker's high watermark can be trusted.",
        epilog="exit codes: 0 conforms, 1 a rule fails, 2 bad usage or bad input, 3 nothing could be decided",
    )
    top.add_argument(
        "--version",
        action=_PrintVersion,
        nargs=0,
        help="print the versions of package and suite, and the folder of the package",
    )
    top.add_argument(
        "--print-completion", choices=SHELLS, action=_PrintCompletion, help="print the completion script of a shell"
    )
    commands = top.add_subparsers(metavar="COMMAND", required=True)
    for name, command in COMMANDS.items():
        doc = (command.run.__doc__ or "").strip()
        subparser = commands.add_parser(name, help=doc.splitlines()[0].rstrip("."), description=doc)
        subparser.set_defaults(command_to_run=command)
        subparser.add_argument("--quiet", action="store_true", help="print results only, no progress")
        subparser.add_argument(
            "--suite", metavar="VERSION", help=f"refuse to run unless the suite has this version (it is {SUITE_VERSION})"
        )
        command.arguments(subparser)
    return top


class _PrintVersion(argparse.Action):
    """The option --version. argparse's own action would break the line at the width of the terminal."""

    def __call__(self, top: argparse.ArgumentParser, *_args: object) -> None:
        """Print versions and folder on one line, however long, since scripts read it; then end the program."""
        echo(f"{TOOL}, {Path(__file__).parents[1]}")
        top.exit()


class _PrintCompletion(argparse.Action):
    """The option --print-completion."""

    def __call__(self, top: argparse.ArgumentParser, _namespace: object, shell: object, _option: str | None = None) -> None:
        """Print the script by which a shell completes the command line; then end the program."""
        import shtab  # an extra, imported only where it is used

        echo(shtab.complete(top, str(shell)))
        top.exit()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the `tidegauge` command and return its exit code."""
    return guarded(lambda: _run(argv))


def _run(argv: Sequence[str] | None) -> int:
    """Parse the command line (sys.argv if None) and run its command; return the exit code."""
    if not (sys.argv[1:] if argv is None else argv):
        echo(WAYS_IN)
        return BAD
    args = parser().parse_args(argv)
    # A pipeline that has pinned the version of the suite must not get a verdict of another.
    if args.suite not in (None, SUITE_VERSION):
        raise UsageError(
            f"--suite: expected the suite {args.suite}, seen {SUITE_VERSION}; install the release of Tidegauge that has it, "
            "or name this one (docs/stable.md)"
        )
    with chosen_bounds(args):
        return int(args.command_to_run.run(args))


def guarded(command: Callable[[], int]) -> int:
    """Run a command and return its exit code; an exception becomes a sentence on standard error and the code BAD."""
    collect_garbage_rarely()
    try:
        return command()
    except KeyboardInterrupt:
        return interrupted()
    except BrokenPipeError:
        return nobody_reads()
    except Exception as raised:  # a user gets a sentence, not a traceback
        # A developer of Tidegauge wants the traceback.
        if TRACEBACK in os.environ:
            raise
        aside(f"tidegauge: {sentence(raised)}")
        # What was printed before may still wait to be written to a reader that is gone.
        return BAD if flushed() else nobody_reads(BAD)


def sentence(raised: Exception) -> str:
    """Write an exception as a sentence: what was expected, what was seen, what to do."""
    # Our own errors are sentences.
    if isinstance(raised, TidegaugeError):
        return str(raised)
    if isinstance(raised, ModuleNotFoundError) and (package := (raised.name or "").split(".")[0]) in EXTRAS:
        return f"expected the package {raised.name}, seen none; run: pip install 'tidegauge[{EXTRAS[package]}]'"
    if isinstance(raised, OSError):
        # A rename has two names of files.
        where = " ".join(map(str, filter(None, (raised.filename, raised.filename2)))) or "a file"
        seen = raised.strerror or raised
        return f"expected to read or write {where}, seen {seen}; check the path, its permissions and the free space"
    # Anything else is a fault that no user can mend: the sentence names its place, so that it can be reported.
    last = traceback.extract_tb(raised.__traceback__)[-1]
    where = f"{type(raised).__name__} at {Path(last.filename).name}:{last.lineno}"
    message = str(raised).splitlines() or ["no message"]
    return f"{FAULT}, no verdict: {where}: {message[0]}; please report it with what {TRACEBACK}=1 prints"
